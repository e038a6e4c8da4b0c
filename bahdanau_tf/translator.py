"""From strings to strings: text, model and search in one graph."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import bahdanau_tf.models  # noqa: F401  (tells Keras how to load them)
from bahdanau_tf.constraints import forbid
from bahdanau_tf.files import replaced_directory
from bahdanau_tf.saved_model import write_saved_model
from bahdanau_tf.search import SearchResult
from bahdanau_tf.search import beam_search
from bahdanau_tf.search import gnmt_length_penalty
from bahdanau_tf.search import greedy_search
from bahdanau_tf.text import load_text
from bahdanau_tf.translation import Translation

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Decoding:
    """How to search; the defaults suit most models.

    Attributes:
        beam_size: K hypotheses kept alive; 1 is greedy search.
        n_best: Translations returned for each sentence, best first.
        alpha: α of the length penalty ((5 + |y|) / 6)^α; 0 ranks by
            log p(y | x) alone, as the paper does.
        max_length_ratio: Longest translation, in tokens for each source
            token (end symbols counted on both sides); 3 as in the original
            code.
        max_length: Longest translation in tokens, whatever the source.
        forbid_unknown: Whether the unknown word may not be produced.
    """

    beam_size: int = 5
    n_best: int = 1
    alpha: float = 1.0
    max_length_ratio: float = 3.0
    max_length: int = 200
    forbid_unknown: bool = False

    def __post_init__(self) -> None:
        for name, value, good, wanted in (
            ("beam_size", self.beam_size, self.beam_size >= 1, "1 or more"),
            (
                "n_best",
                self.n_best,
                1 <= self.n_best <= self.beam_size,
                f"1 to beam_size ({self.beam_size})",
            ),
            ("alpha", self.alpha, self.alpha >= 0, "0 or more"),
            (
                "max_length_ratio",
                self.max_length_ratio,
                self.max_length_ratio > 0,
                "more than 0",
            ),
            ("max_length", self.max_length, self.max_length >= 1, "1 or more"),
        ):
            if not good:
                raise ValueError(
                    f"Decoding: {name} is {value}, wanted {wanted}"
                )


class Translated(NamedTuple):
    """What the graph gives for a batch of strings.

    Attributes:
        texts: string [B, N], the n best translations of each sentence.
        result: The `SearchResult` they come from.
    """

    texts: tf.Tensor
    result: SearchResult


class Translator(tf.Module):
    """A model with the text of its two sides: strings to strings.

    Tokenisation, search and detokenisation run in one graph, the same here
    and in the exported SavedModel.

    Args:
        model: A translation model of this package, or anything with
            `encode`, `decode_step` and `start_id`.
        source_text: Tokenizer of the source language.
        target_text: Tokenizer of the target language.
        decoding: How to search unless a call says otherwise.

    Raises:
        ValueError: A vocabulary and the model's embedding differ in size.

    Example:

    ```python
    translator = Translator.load("model/best")
    (translation,) = translator.translate(["A man sleeps."])
    print(translation.text, translation.score)
    ```
    """

    def __init__(
        self,
        model: Any,
        source_text: Any,
        target_text: Any,
        decoding: Decoding = Decoding(),
    ) -> None:
        super().__init__()
        for side, text, size in (
            ("source", source_text, model.source_vocabulary_size),
            ("target", target_text, model.target_vocabulary_size),
        ):
            if text.vocabulary_size != size:
                raise ValueError(
                    f"Translator: {side}_text has {text.vocabulary_size} ids, "
                    f"the model's {side} vocabulary {size}; wanted equal"
                )
        self.model = model
        self.source_text = source_text
        self.target_text = target_text
        self.decoding = decoding
        self._graphs: dict[Decoding, Any] = {}

    def search(self, source: tf.Tensor, decoding: Decoding) -> SearchResult:
        """Searches the n best translations, in graph.

        Args:
            source: int32 [B, T_x], source ids padded with 0.
            decoding: How to search.

        Returns:
            `SearchResult` of [B, N] hypotheses.
        """
        memory, state = self.model.encode(source)
        lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.float32)
        limits = tf.cast(decoding.max_length_ratio * lengths, tf.int32)
        options = {
            "start_id": self.model.start_id,
            "eos_id": self.target_text.eos_id,
            "max_length": tf.clip_by_value(limits, 1, decoding.max_length),
            "length_penalty": gnmt_length_penalty(decoding.alpha),
            "constraints": self._constraints(decoding),
        }

        def step(ids: tf.Tensor, state: Any) -> Any:
            return self.model.decode_step(ids, state, memory)

        if decoding.beam_size == 1:
            return greedy_search(step, state, **options)
        return beam_search(
            step,
            state,
            beam_size=decoding.beam_size,
            n_best=decoding.n_best,
            **options,
        )

    def _constraints(self, decoding: Decoding) -> list[Any]:
        # Padding is never a word; a hypothesis with it could not be told from
        # a shorter one.
        forbidden = [self.target_text.pad_id]
        if decoding.forbid_unknown:
            forbidden.append(self.target_text.unk_id)
        return [forbid(forbidden)]

    def translate_graph(
        self, sentences: tf.Tensor, decoding: Decoding
    ) -> Translated:
        """Strings to strings, in graph; no words in, no words out.

        Args:
            sentences: string [B].
            decoding: How to search.
        """
        ids = self.source_text.tokenize(tf.ensure_shape(sentences, [None]))
        result = self.search(_padded(ids), decoding)
        shape = tf.shape(result.tokens)
        flat = tf.reshape(result.tokens, [shape[0] * shape[1], shape[2]])
        texts = tf.reshape(self.target_text.detokenize(flat), shape[:2])
        blank = ids.row_lengths() == 1  # the end symbol alone
        return Translated(tf.where(blank[:, None], "", texts), result)

    def translate(
        self,
        sentences: Sequence[str],
        decoding: Decoding | None = None,
        batch_size: int = 64,
    ) -> list[Translation]:
        """Translates sentences.

        Args:
            sentences: The sentences, of any length and in any order.
            decoding: How to search; the translator's own if None.
            batch_size: Sentences translated at once, like lengths together.

        Returns:
            A `Translation` for each sentence, in order; the other n best are
            its `alternatives`.

        Raises:
            ValueError: `sentences` is one string, not a sequence of them.
        """
        if isinstance(sentences, (str, bytes)):
            raise ValueError(
                "Translator.translate: sentences is one string, wanted a "
                "sequence of strings"
            )
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        translations: dict[int, Translation] = {}
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            batch = [sentences[place] for place in places]
            found = self._translate_batch(batch, decoding or self.decoding)
            translations.update(zip(places, found, strict=True))
        return [translations[place] for place in range(len(sentences))]

    def _graph(self, decoding: Decoding) -> Any:
        if decoding not in self._graphs:
            self._graphs[decoding] = tf.function(
                lambda sentences: self.translate_graph(sentences, decoding),
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            )
        return self._graphs[decoding]

    def _translate_batch(
        self, batch: Sequence[str], decoding: Decoding
    ) -> Iterator[Translation]:
        sentences = tf.constant(list(batch), tf.string)
        found = self._graph(decoding)(sentences)
        pieces, starts, ends = (
            ragged.to_list()
            for ragged in self.source_text.tokenize_with_offsets(sentences)
        )
        tokens = self.target_text.ids_to_tokens(found.result.tokens).numpy()
        texts = found.texts.numpy()
        arrays = tf.nest.map_structure(
            lambda tensor: None if tensor is None else tensor.numpy(),
            found.result._asdict(),
        )
        for row, sentence in enumerate(batch):
            if not pieces[row]:
                yield Translation(sentence)
                continue
            n_best = [
                _translation(
                    source=sentence,
                    text=texts[row, n].decode("utf-8", "replace"),
                    tokens=tokens[row, n],
                    found={
                        key: None if array is None else array[row, n]
                        for key, array in arrays.items()
                    },
                    pieces=pieces[row],
                    offsets=list(zip(starts[row], ends[row], strict=True)),
                )
                for n in range(texts.shape[1])
                if arrays["lengths"][row, n] > 0
            ]
            yield replace(n_best[0], alternatives=n_best[1:])

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Writes a SavedModel that translates strings.

        Its signature `serving_default` takes `text`, string [B], and gives
        `translation`, string [B], and `score`, float32 [B].

        Args:
            path: Base folder; the model goes to `path/<version>`, one more
                than the largest version there.

        Returns:
            The version's folder.
        """

        def serving_default(text: tf.Tensor) -> dict[str, tf.Tensor]:
            found = self.translate_graph(text, self.decoding)
            return {
                "translation": found.texts[:, 0],
                "score": found.result.scores[:, 0],
            }

        text = tf.TensorSpec([None], tf.string, name="text")
        return write_saved_model(
            path,
            parts=[self.model, self.source_text, self.target_text],
            signatures={"serving_default": (serving_default, [text])},
        )

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes everything `load` needs, in place of `directory`.

        Args:
            directory: A folder; replaced as a whole, so that it is never half
                written.
        """
        with replaced_directory(directory) as aside:
            self.model.save(aside / "model.keras")
            self.source_text.save(aside / "source")
            self.target_text.save(aside / "target")
            description = {
                "format_version": FORMAT_VERSION,
                "decoding": vars(self.decoding),
            }
            (aside / "translator.json").write_text(
                json.dumps(description, indent=2) + "\n", "utf-8"
            )

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Translator:
        """Reads what `save` wrote.

        Raises:
            ValueError: The folder holds no translator, or one written by a
                newer version of this package.
        """
        path = Path(directory) / "translator.json"
        if not path.is_file():
            raise ValueError(
                f"Translator.load: {directory} holds no translator "
                "(no translator.json)"
            )
        description = json.loads(path.read_text("utf-8"))
        if description["format_version"] > FORMAT_VERSION:
            raise ValueError(
                f"Translator.load: {directory} has format version "
                f"{description['format_version']}, newer than the "
                f"{FORMAT_VERSION} that this bahdanau_tf reads"
            )
        model = keras.models.load_model(
            path.with_name("model.keras"), compile=False
        )
        return cls(
            model,
            load_text(path.with_name("source")),
            load_text(path.with_name("target")),
            Decoding(**description["decoding"]),
        )


def _padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Rows padded with 0; at least one column, even for an empty batch."""
    padded = ids.to_tensor()
    missing = tf.maximum(1 - tf.shape(padded)[1], 0)
    return tf.pad(padded, [[0, 0], [0, missing]])


def _translation(
    source: str,
    text: str,
    tokens: np.ndarray,
    found: dict[str, Any],
    pieces: list[bytes],
    offsets: list[tuple[int, int]],
) -> Translation:
    """One row of a search's result as a `Translation`."""
    length = int(found["lengths"])
    words = length - int(found["finished"])
    weights = found["weights"]
    return Translation(
        source=source,
        text=text,
        tokens=[t.decode("utf-8", "replace") for t in tokens[:words]],
        score=float(found["scores"]),
        log_prob=float(found["log_probs"]),
        finished=bool(found["finished"]),
        source_tokens=[p.decode("utf-8", "replace") for p in pieces],
        source_offsets=offsets,
        weights=None
        if weights is None
        else weights[:length, : len(pieces) + 1],
    )
