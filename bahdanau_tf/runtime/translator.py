"""A translator that runs in ONNX Runtime, without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.training import no_folder, pretrained_names
from bahdanau_tf.runtime.search import (
    CHUNK,
    LEAST,
    Array,
    Continuations,
    Hypothesis,
    Rule,
    Sentence,
    search,
)
from bahdanau_tf.runtime.text import Reading, Subwords
from bahdanau_tf.system.cores import asked_threads, core_count
from bahdanau_tf.system.files import (
    CARD,
    LONGEST_SOURCE,
    RUNTIME,
    check_own_files,
    newest_export,
    read_arrays,
    read_versioned,
    reason,
)
from bahdanau_tf.system.ranges import Refusal, size
from bahdanau_tf.translation.batches import Sentences, Work, columns_of, decoded, in_batches
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.memory import read_memory
from bahdanau_tf.translation.protocol import StringTranslator
from bahdanau_tf.translation.result import Tokens, Translation

FORMAT_VERSION = 2  # that of models which copy words, 1 of others
_STEP = {"ids", "origins", "so_far", "state", "keys", "terms", "mask", "steps", "divisors"}
_STEP |= {"bounds", "done", "count", "barred"}
INPUTS = {
    "encode": {"source"},
    "step": _STEP,
    "own": {"own"},
    "shortlist": {*_STEP, "shortlist", "columns", "biases"},
}
UNTRANSLATED = -1e9  # the score of a text of whose start no word is read


class Translator(StringTranslator):
    """Translates what `bahdanau-tf export --format=onnx` wrote.

    Args:
        folder: The folder of the export.
        threads: Number of cores to use; default: all that the process may use, unless
            TF_NUM_INTRAOP_THREADS or TF_NUM_INTEROP_THREADS is set. Each translates a batch.

    Attributes:
        model_name: The class of the model that was exported.
        decoding: How to search, unless a call specifies it.
        max_source_length: Tokens that are read of a sentence, the end symbol included; the rest
            is cut off.
        card: The card of the translator that was exported, see `bahdanau_tf.Translator`.
        source_text, target_text: The tokenizers, `bahdanau_tf.runtime.text.Subwords`.

    Raises:
        ValueError: The folder holds no such export, or one of a newer version of this package, or
            a file is damaged.
        ImportError: onnxruntime or sentencepiece is not installed.

    Example:

    ```python
    from bahdanau_tf.runtime import Translator

    translator = Translator.load("served")
    translator.translate("The cat sleeps.").text
    ```
    """

    has_alignment = True
    model_name = ""
    target_text: Subwords

    def __init__(self, folder: str | os.PathLike[str], threads: int | None = None) -> None:
        folder = newest_export(folder)
        if not (folder / RUNTIME).is_file():
            if not folder.is_dir() and str(folder) not in pretrained_names():
                raise no_folder(folder)
            raise Refusal(
                "Translator.load",
                f"{folder} holds no export for ONNX Runtime, wanted what "
                f"`bahdanau-tf export --format=onnx --model_dir={folder} --export_dir=...` writes",
            )
        check_own_files("Translator.load", folder)
        options = read_versioned(folder / RUNTIME, FORMAT_VERSION, "Translator.load")
        try:
            self.model_name = str(options["model"])
            self.decoding = Decoding(**options["decoding"])  # type: ignore[arg-type]
            self.habits = Habits.read(options.get("habits", {}))
        except (KeyError, TypeError, ValueError) as error:
            raise Refusal("Translator.load", f"{folder / RUNTIME}: {error}") from error
        longest = options.get("max_source_length", LONGEST_SOURCE)
        name = f"Translator.load: {folder / RUNTIME}"
        self.max_source_length = size(name, "max_source_length", longest)
        self.source_text = Subwords(folder / "source")
        self.target_text = Subwords(folder / "target")
        lexicon = folder / "lexicon.npz"
        self._lexicon = read_arrays(lexicon) if lexicon.is_file() else None
        names = ["encode", "step", *(["own", "shortlist"] if self._lexicon else [])]
        card = folder / CARD
        self.card = card.read_text("utf-8") if card.is_file() else ""
        self.memory = read_memory(folder)
        self._threads = threads or asked_threads() or core_count()
        self._arguments = folder.absolute(), threads
        self._sessions = {name: _session(folder / f"{name}.onnx") for name in names}
        self._check(folder)

    @property
    def source_texts(self) -> tuple[Subwords]:
        """The tokenizer of the source, as in `bahdanau_tf.Translator`."""
        return (self.source_text,)

    def __repr__(self) -> str:
        source, target = (
            f"Subwords of {text.vocabulary_size:,} ids"
            for text in (self.source_text, self.target_text)
        )
        return f"<runtime.Translator: {self.model_name}; source {source}; target {target}>"

    def __reduce__(self) -> tuple[object, ...]:
        """A translator is pickled and copied by its folder, which must stay."""
        own = ("decoding", "max_source_length", "memory")
        return type(self), self._arguments, {name: getattr(self, name) for name in own}

    def _check(self, folder: Path) -> None:
        """Raises a ValueError unless graphs and tokenizers belong together."""
        made: dict[str, object] = {}  # widths of what earlier graphs compute
        for name, session in self._sessions.items():
            path, inputs = folder / f"{name}.onnx", {x.name: x for x in session.get_inputs()}
            if not INPUTS[name] <= inputs.keys():
                raise Refusal(
                    "Translator.load",
                    f"{path} has the inputs {', '.join(sorted(inputs))}, wanted "
                    f"{', '.join(sorted(INPUTS[name]))}",
                )
            for key, value in inputs.items():
                if made.get(key, value.shape[-1:]) != value.shape[-1:]:
                    raise Refusal(
                        "Translator.load",
                        f"{path} reads {key} of width {value.shape[-1:]}, wanted "
                        f"{made[key]}, which another graph computes",
                    )
            made |= {x.name: x.shape[-1:] for x in session.get_outputs()}
            is_source = name == "encode"
            count = (self.source_text if is_source else self.target_text).vocabulary_size
            size_of_graph = session.get_modelmeta().custom_metadata_map.get("vocabulary_size")
            if size_of_graph not in (None, str(count)):  # earlier versions wrote none
                raise Refusal(
                    "Translator.load",
                    f"{folder / ('source' if is_source else 'target')} has "
                    f"{count} ids and {path} {size_of_graph}, wanted equal numbers",
                )

    @classmethod
    def load(cls, folder: str | os.PathLike[str], threads: int | None = None) -> Translator:
        """The translator of a folder; see the class."""
        return cls(folder, threads)

    def _work(self, batch_size: int, constraints: Sequence[Any], attention: Any) -> Work:
        if constraints or attention is not None:
            raise Refusal(
                "Translator.translate",
                "constraints or attention are set, wanted none in ONNX Runtime: "
                "bahdanau_tf.Translator has them",
            )

        def work(
            decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
        ) -> list[Translation]:
            decoding.check_without_tensorflow()
            if decoding.shortlist and self._lexicon is None:
                raise Refusal(
                    "Translator",
                    "shortlist is True, but there is no lexicon; wanted the export of a "
                    "model with one, which `bahdanau-tf lexicon` learns",
                )
            if prefixes is not None and self.target_text.reverse:
                raise Refusal(
                    "Translator",
                    "target_text is reversed, so the last word of a translation comes "
                    "first; wanted no prefixes",
                )
            columns, batch = columns_of(sentences, prefixes), partial(self._batch, decoding)
            return in_batches("Translator.translate", columns, batch, batch_size, self._threads)

        return work

    def log_probs(self, source: Array, target: Array) -> tuple[Array, Array]:
        """log p(y_i | y_1 .. y_{i-1}, x) of all words y_i after given ones, and α.

        Args:
            source: int64 [B, T_x], padded with 0.
            target: int64 [B, T_y].

        Returns:
            float32 [B, T_y, K_y] and float32 [B, T_y, T_x].
        """
        model = _Model(self._sessions, source, None, [()] * len(source))
        previous = np.pad(target[:, :-1], [[0, 0], [1, 0]])
        rows = np.arange(len(source))[:, None]
        every = np.arange(self.target_text.vocabulary_size)[None].repeat(len(source), 0)
        nothing = np.zeros(rows.shape, np.float32)
        barred = np.zeros([len(source), 0], np.int64)
        rule = Rule.steps(1, len(source))
        steps = [
            model.advance(ids[:, None], rows, nothing, 1, rule, barred, asked=every)
            for ids in previous.T
        ]
        log_probs, weights = zip(*((x.asked, x.weights[0]) for x in steps), strict=True)
        return np.concatenate(log_probs, 1), np.concatenate(weights, 1)

    def _batch(
        self, decoding: Decoding, sentences: Sentences, prefixes: Sentences | None = None
    ) -> Iterator[Translation]:
        """The translations of a batch, in order; those of sentences without words are empty."""
        texts = [*map(decoded, sentences)]
        starts = map(decoded, prefixes or [""] * len(texts))
        readings = [self.source_text.read(text, self.max_source_length) for text in texts]
        rows = [*zip(texts, readings, starts, strict=True)]
        batch = [row for row in rows if row[1].offsets]
        translations = iter(self._search(batch, decoding) if batch else ())
        for text, reading, _ in rows:
            if reading.offsets:
                yield next(translations)
            elif reading.cut:
                yield Translation(text, score=UNTRANSLATED, finished=False, cut=True)
            else:
                yield Translation(text)

    def _search(
        self, batch: Sequence[tuple[str, Reading, str]], decoding: Decoding
    ) -> list[Translation]:
        """The translations of some sentences, which have words."""
        target = self.target_text
        width = max(len(reading.ids) for _, reading, _ in batch)
        source = np.zeros([len(batch), width], np.int64)
        for row, (_, reading, _) in enumerate(batch):
            source[row, : len(reading.ids)] = reading.ids
        # A prefix of more tokens than the longest translation has is not finished.
        prefixes = [target.read(prefix, decoding.max_length + 1) for _, _, prefix in batch]
        sentences = [
            Sentence(len(reading.ids), row != 0, prefix.ids[:-1])
            for (_, reading, _), row, prefix in zip(batch, source, prefixes, strict=True)
        ]
        forbidden = [target.pad_id, *([target.unk_id] if decoding.unknown == "forbid" else [])]
        lexicon = self._lexicon if decoding.shortlist else None
        model = _Model(self._sessions, source, lexicon, [x.prefix for x in sentences])
        results = search(model, sentences, decoding, target.eos_id, forbidden)
        return [
            self._translation(text, reading, hypotheses)
            for (text, reading, _), hypotheses in zip(batch, results, strict=True)
        ]

    def _translation(
        self, source: str, reading: Reading, hypotheses: Sequence[Hypothesis]
    ) -> Translation:
        """The best hypothesis of a sentence, with the others."""
        if not hypotheses:
            raise Refusal(
                "Translator.translate",
                f"{self._arguments[0]} computes NaN for {source[:60]!r}, "
                "wanted numbers: its weights are damaged",
            )
        read = Tokens.cut(source, reading.offsets, self.source_text.reverse)
        first, *others = (
            read.translated(
                Tokens.cut(*self.target_text.write(x.ids), self.target_text.reverse),
                x.weights,
                score=x.score,
                log_prob=x.log_prob,
                finished=x.finished,
                cut=reading.cut,
            )
            for x in hypotheses
        )
        return replace(first, alternatives=others) if others else first


def _session(path: Path) -> Any:
    """An ONNX graph, ready to run in the thread that calls it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # threads of its own would spin, on any core
    options.log_severity_level = 3
    try:  # by its contents, since a name need not be UTF-8
        contents = path.read_bytes()
        return onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each kind of damage
        raise Refusal("Translator.load", f"{path} cannot be read: {reason(error)}") from error


class _Model:
    """The graphs, with the memory and the states of a batch; see `search.Model`."""

    def __init__(
        self,
        sessions: dict[str, Any],
        source: Array,
        lexicon: dict[str, Array] | None,
        prefixes: Sequence[Sequence[int]],
    ) -> None:
        self._step = sessions["step" if lexicon is None else "shortlist"]
        self._memory = _run(sessions["encode"], source=source)
        for x in self._step.get_inputs():
            if x.name == "term":
                self._memory["term"] = np.zeros([len(source), x.shape[-1]], np.float32)
        outputs = [x.name for x in self._step.get_outputs()]
        states = [name for name in self._memory if f"last_{name}" in outputs]
        self._state = {name: self._memory.pop(name) for name in states}
        self._names = ["all_words", "all_parents", "all_log_probs", "all_weights"]
        self._names += ["all_probabilities", *(f"last_{name}" for name in states)]
        if lexicon is not None:
            own = _own_words(lexicon["words"], int(lexicon["first"]), source, prefixes)
            self._shorten(int(lexicon["first"]), own, _run(sessions["own"], own=own))
        self._places = self._memory.pop("places", None)  # of words that may be copied

    def _shorten(self, first: int, own: Array, weights: dict[str, Array]) -> None:
        """Adds a shortlist to the memory: the first words, and each sentence's own."""
        frequent = np.arange(first)[None].repeat(len(own), 0)
        memory = self._memory
        memory |= {"shortlist": np.concatenate([frequent, own], 1), **weights}
        if (words := memory.get("places")) is not None:
            memory["places"] = self._places_of(words)
            is_there = memory["places"][:, None] > 0
            memory["after"] = memory["after"] * is_there
            memory["reach"][..., : words.shape[1]] *= is_there

    def _places_of(self, words: Array) -> Array:
        """The places of words, int64 [B, N], in the shortlist; 0 for one that is not in it."""
        shortlist = self._memory.get("shortlist")
        if shortlist is None:
            return words
        places: Array = (shortlist[:, None] == words[..., None]).argmax(-1)
        return places

    def advance(
        self,
        ids: Array,
        origins: Array,
        so_far: Array,
        count: int,
        rule: Rule,
        barred: Array,
        eos_id: int = 0,
        asked: Array | None = None,
    ) -> Continuations:
        batch, width = ids.shape
        words = np.zeros([batch, 0], np.int64) if asked is None else self._places_of(asked)
        inputs = {
            **self._memory,
            **self._state,
            "ids": ids,
            "origins": origins,
            "so_far": so_far,
            **rule._asdict(),
            "steps": np.array(len(rule.divisors)),
            "count": np.array([count]),
            "eos": np.array([eos_id]),
            "starts": np.arange(0, batch * count, count)[:, None],
            "barred": barred[:, None].repeat(width, 1),
            "nothing": np.zeros([batch, width, barred.shape[1]], np.float32),
            "asked": words[:, None].repeat(width, 1),
        }
        if self._places is not None:
            inputs["places"] = self._places[:, None].repeat(width, 1)
        results = self._step.run(self._names, inputs)
        *best, probabilities = results[:5]
        self._state = dict(zip(self._state, results[5:], strict=True))
        return Continuations._make([*best, np.log(np.maximum(probabilities[0], LEAST))])

    def keep(self, rows: Array) -> None:
        self._memory = {name: x[rows] for name, x in self._memory.items()}
        if self._places is not None:
            self._places = self._places[rows]


def _run(session: Any, **inputs: Array) -> dict[str, Array]:
    """All outputs of a graph, by name."""
    names = [x.name for x in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def _own_words(words: Array, first: int, source: Array, prefixes: Sequence[Sequence[int]]) -> Array:
    """The words of each sentence's own from F on, ascending and each once; 0 for none."""
    own = []
    for row, prefix in zip(source, prefixes, strict=True):
        values = np.unique(np.append(words[row].ravel(), np.array(prefix, np.int64)))
        own.append(values[values >= first])
    width = max(1, *map(len, own))
    table = np.zeros([len(own), width + -(first + width) % CHUNK], np.int64)
    for row, values in enumerate(own):
        table[row, : len(values)] = values
    return table
