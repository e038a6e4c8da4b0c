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
from bahdanau_tf.options.training import pretrained_names
from bahdanau_tf.runtime.search import Array, Hypothesis, Sentence, Words, search
from bahdanau_tf.runtime.text import Reading, Subwords
from bahdanau_tf.system.cores import asked_threads, core_count
from bahdanau_tf.system.files import (
    CARD,
    LONGEST_SOURCE,
    RUNTIME,
    check_own_files,
    found_directory,
    read_arrays,
    read_versioned,
    reason,
)
from bahdanau_tf.system.ranges import Refusal, size
from bahdanau_tf.translation.batches import Sentences, Work, decoded, in_batches
from bahdanau_tf.translation.doubts import Habits
from bahdanau_tf.translation.protocol import StringTranslator
from bahdanau_tf.translation.result import Tokens, Translation

FORMAT_VERSION = 2  # that of models which copy words, 1 of others
INPUTS = {
    "encode": {"source"},
    "step": {"ids", "state", "keys", "terms", "mask"},
    "words": {"features", "count"},
    "shortlist": {"features", "count", "own"},
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
        folder = found_directory(folder)
        if not (folder / RUNTIME).is_file():
            if not folder.is_dir() and str(folder) not in pretrained_names():
                raise Refusal("Translator.load", f"there is no folder {folder}")
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
        names = ["encode", "step", "words", *(["shortlist"] if self._lexicon else [])]
        card = folder / CARD
        self.card = card.read_text("utf-8") if card.is_file() else ""
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
        own = ("decoding", "max_source_length")
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

    def _work(self, batch_size: int) -> Work:
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
            columns = {"sentences": sentences}
            if prefixes is not None:
                columns["prefixes"] = prefixes
            batch = partial(self._batch, decoding)
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
        steps = []
        for time in range(target.shape[1]):
            parents = np.zeros([len(source), 1], np.int64) if time else None
            weights = model.step(previous[:, time : time + 1], parents)
            steps.append((model.all_log_probs(), weights))
        log_probs, weights = (np.concatenate(x, 1) for x in zip(*steps, strict=True))
        return log_probs, weights

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
            self._translation(text, reading, hypotheses, reading.cut or prefix.cut)
            for (text, reading, _), prefix, hypotheses in zip(batch, prefixes, results, strict=True)
        ]

    def _translation(
        self, source: str, reading: Reading, hypotheses: Sequence[Hypothesis], cut: bool
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
                cut=cut,
            )
            for x in hypotheses
        )
        return replace(first, alternatives=others)


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
        self._step, self._words = sessions["step"], sessions["words"]
        names = [x.name for x in sessions["encode"].get_outputs()]
        self._names = [x.name for x in self._step.get_outputs()]
        outputs = sessions["encode"].run(None, {"source": source})
        self._memory = dict(zip(names, outputs, strict=True))
        states = [name for name in names if f"{name}_after" in self._names]
        self._state = {name: self._memory.pop(name)[:, None] for name in states}
        if any(x.name == "term" for x in self._step.get_inputs()):
            width = self._step.get_inputs()[-1].shape[-1]
            self._state["term"] = np.zeros([len(source), 1, width], np.float32)
        self._own: Array = None  # without a shortlist
        if lexicon is not None:
            self._words = sessions["shortlist"]
            self._first = int(lexicon["first"])
            self._own = _own_words(lexicon["words"], self._first, source, prefixes)
        self._places: Array = self._memory.pop("copied", None)  # of words that may be copied
        if lexicon is not None and self._places is not None:
            self._places = _places(self._places, self._own, self._first)

    def step(self, ids: Array, parents: Array | None) -> Array:
        if parents is None:
            shape = ids.shape
            state = {k: np.repeat(x, shape[1], 1) for k, x in self._state.items()}
        else:
            rows = np.arange(len(parents))[:, None]
            state = {k: x[rows, parents] for k, x in self._state.items()}
        outputs = self._step.run(None, {"ids": ids, **self._memory, **state})
        named = dict(zip(self._names, outputs, strict=True))
        self._features = {x: named[x] for x in ("features", "log_odds") if x in named}
        self._state = {k: named[f"{k}_after"] for k in state}
        return named["weights"]

    def words(self, count: int) -> Words:
        log_probs, ids = self._run(count, "log_probs", "words")
        if self._own is not None:
            ids = self._ids(ids)
        return Words(log_probs, ids)

    def all_log_probs(self) -> Array:
        """Log-probabilities of all next words, or of the shortlist's: float32 [B, K, V]."""
        logits, normalizer = self._run(1, "logits", "normalizer")
        return logits - normalizer

    def log_probs(self, ids: Array) -> Array:
        rows = np.arange(len(ids))
        if self._own is not None:
            own = self._own == ids[:, None]
            ids = np.where(own.any(1), self._first + own.argmax(1), ids)
        return self.all_log_probs()[rows, :, ids]

    def _ids(self, places: Array) -> Array:
        """The ids of places in the shortlist."""
        own = np.take_along_axis(self._own[:, None], np.maximum(places - self._first, 0), -1)
        return np.where(places < self._first, places, own)

    def _run(self, count: int, *outputs: str) -> list[Array]:
        inputs = {**self._features, "count": np.array([count])}
        if self._places is not None:
            inputs["places"] = self._places
        if self._own is not None:
            inputs["own"] = self._own
        results: list[Array] = self._words.run(list(outputs), inputs)
        return results

    def keep(self, rows: Array) -> None:
        self._memory = {name: x[rows] for name, x in self._memory.items()}
        self._state = {name: x[rows] for name, x in self._state.items()}
        self._own = None if self._own is None else self._own[rows]
        self._places = None if self._places is None else self._places[rows]


def _places(words: Array, own: Array, first: int) -> Array:
    """The places of words [B, T] in the shortlist; 0 for one that is not in it."""
    same = own[:, None] == words[..., None]
    return np.where(words < first, words, np.where(same.any(-1), first + same.argmax(-1), 0))


def _own_words(words: Array, first: int, source: Array, prefixes: Sequence[Sequence[int]]) -> Array:
    """The words of each sentence's own from F on, ascending and each once; 0 for none."""
    own = []
    for row, prefix in zip(source, prefixes, strict=True):
        values = np.unique(np.append(words[row].ravel(), np.array(prefix, np.int64)))
        own.append(values[values >= first])
    table = np.zeros([len(own), max(1, *map(len, own))], np.int64)
    for row, values in enumerate(own):
        table[row, : len(values)] = values
    return table
