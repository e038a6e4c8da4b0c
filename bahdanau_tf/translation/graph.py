"""From strings to strings in one graph: tokenizers, model and search."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import tensorflow as tf

from bahdanau_tf.models.scoring import log_probs_and_alignment
from bahdanau_tf.models.stepwise import Output, TranslationModel
from bahdanau_tf.options import Decoding
from bahdanau_tf.search import Constraint, SearchResult
from bahdanau_tf.system.tensors import Nest
from bahdanau_tf.system.terminal import uncollected
from bahdanau_tf.text import Dictionary
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation.shortlist import (
    Lexicon,
    full_step,
    of_words,
    shortlist_step,
    without_weights,
    word_ids,
    word_places,
)

# int32 [B, T_x], padded with 0; a tuple of them for a model of many sources.
Sources: TypeAlias = "tf.Tensor | tuple[tf.Tensor, ...]"


class Reading(NamedTuple):
    """What is read of the sentences of a batch before they are translated.

    Attributes:
        source: The ids of all sources.
        words: Ragged string [B, (T_x)], the words of source 0, with which
            unknown words are replaced; None to keep these.
        prefix: Ragged int32 [B, (P)], ids with which each translation begins;
            None for no prefixes.
        given: Ragged string [B, (P)], the words of the prefixes.
    """

    source: Sources
    words: tf.RaggedTensor | None = None
    prefix: tf.RaggedTensor | None = None
    given: tf.RaggedTensor | None = None


def joined(rows: Sequence[tf.RaggedTensor]) -> Sources:
    """The ids of all sources, padded, as a model takes them."""
    ids = [padded(one) for one in rows]
    return tuple(ids) if len(ids) > 1 else ids[0]


def padded(rows: tf.RaggedTensor) -> tf.Tensor:
    """Pads rows with 0 or "" to at least one column, even without rows."""
    values = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(values)[1], 0)
    fill = tf.zeros([tf.shape(values)[0], missing], values.dtype)
    return tf.concat([values, fill], axis=1)


Found = TypeVar("Found")
_making = threading.RLock()  # held by a thread that makes a function
KEPT = 16  # functions; each takes some 20 MB, and a second or two to make


class Translated(NamedTuple):
    """The translations of a batch of strings.

    Attributes:
        texts: string [B, N], the n best translations of each sentence.
        starts: Ragged int32 [B N, (T)], the offset of each target token's first
            byte in its text.
        ends: Ragged int32 [B N, (T)], that of the byte after its last.
        result: The `SearchResult` they come from.
    """

    texts: tf.Tensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    result: SearchResult


class TranslationGraph(tf.Module):
    """The part of a `Translator` that runs in the graph, also when served.

    Its parts never change; for another part a new graph is made.

    Args and Raises are those of `Translator`.
    """

    def __init__(
        self,
        model: TranslationModel,
        source_text: Tokenizer | Sequence[Tokenizer],
        target_text: Tokenizer,
        decoding: Decoding = Decoding(),
        dictionary: Dictionary | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(model, TranslationModel):
            raise ValueError(
                f"Translator: model is {type(model).__name__}, wanted a "
                "TranslationModel, such as a subclass of StepwiseModel"
            )
        texts: Sequence[Tokenizer] = (
            source_text if isinstance(source_text, Sequence) else [source_text]
        )
        sizes = tf.nest.flatten(model.source_vocabulary_size)
        if len(texts) != len(sizes):
            raise ValueError(
                f"Translator: {len(texts)} tokenizers for the source, wanted "
                f"{len(sizes)}, one for each source of the model"
            )
        for side, text, size in (
            *(("source", *pair) for pair in zip(texts, sizes, strict=True)),
            ("target", target_text, model.target_vocabulary_size),
        ):
            if text.vocabulary_size != size:
                raise ValueError(
                    f"Translator: {side}_text has {text.vocabulary_size} ids, "
                    f"the model's {side} vocabulary {size}; wanted equal"
                )
        self.model = model
        self.source_texts = tuple(texts)
        self.target_text = target_text
        self.decoding = decoding
        self.dictionary = dictionary or Dictionary()
        if lexicon is not None:
            lexicon.check(sizes[0], target_text)
        self.lexicon = lexicon

    @cached_property
    def _functions(
        self,
    ) -> OrderedDict[Hashable, tf.types.experimental.ConcreteFunction]:
        """The last functions used; cached so that TensorFlow tracks none."""
        return OrderedDict()

    def function(
        self, key: Hashable, function: Callable[..., Found], n: int
    ) -> Callable[..., Found]:
        """The graph of a function of n vectors of strings.

        It is made once, and again if `KEPT` others were used since then. It is
        traced here, not when called: TensorFlow warns of functions that differ
        only in their options as of one that is traced again and again.

        Args:
            key: Identifies the function among those of this graph.
            function: The function.
            n: Number of vectors.
        """
        with _making:
            if key not in self._functions:
                with uncollected():
                    self._functions[key] = tf.function(
                        function,
                        input_signature=[tf.TensorSpec([None], tf.string)] * n,
                        autograph=False,
                    ).get_concrete_function()
            self._functions.move_to_end(key)
            made: Callable[..., Found] = self._functions[key]
            if len(self._functions) > KEPT:
                self._functions.popitem(last=False)
        return made

    @property
    def source_text(self) -> Tokenizer:
        """The tokenizer of source 0, to which alignments refer."""
        return self.source_texts[0]

    def _source_ids(self, sentences: tf.Tensor) -> Sources:
        """int32 [B, T_x], or a tuple of them for a model of several sources."""
        return joined([text.tokenize(sentences) for text in self.source_texts])

    def encode(self, source: Sources) -> tuple[Nest, Nest]:
        """The memory of source sentences, and the state before the first step.

        Search calls it; the graph of signatures shares it.
        """
        return self.model.encode(source)

    def output_weights(self) -> Output:
        """The output weights of a search over all words.

        An export has its own.
        """
        return self.model.output_weights()

    def search(
        self,
        source: Sources,
        decoding: Decoding,
        prefix: tf.Tensor | None = None,
        constraints: Sequence[Constraint] = (),
        n_best: int | tf.Tensor | None = None,
        with_weights: bool = True,
    ) -> SearchResult:
        """Searches the n best translations, in graph.

        Args:
            source: int32 [B, T_x], source ids padded with 0; a tuple of them
                for a model of several sources.
            decoding: How to search.
            prefix: int32 [B, P], target ids padded with 0, with which each
                translation begins.
            constraints: Constraints in addition to those of `decoding`.
            n_best: N in place of that of `decoding`, see `Decoding.search`.
            with_weights: Whether the result has the soft alignments, if the
                model has any.

        Returns:
            `SearchResult` of [B, N] hypotheses.

        Raises:
            ValueError: `decoding.shortlist` is set, but there is no lexicon.
        """
        first_source = tf.nest.flatten(source)[0]
        memory, state = self.encode(source)
        shortlist = None
        if decoding.shortlist:
            shortlist = self._shortlist(first_source, prefix)
            step, memory = shortlist_step(self.model, memory, *shortlist)
            size = self.target_text.vocabulary_size
            if prefix is not None:
                places = word_places(*shortlist, size)
                prefix = tf.gather(places, prefix, batch_dims=1)
            constraints = [of_words(one, *shortlist, size) for one in constraints]
        else:
            step = full_step(self.model, self.output_weights())
        if not (with_weights or decoding.beta):
            step = without_weights(step)
        result = decoding.search(
            step,
            state,
            memory,
            source=first_source,
            start_id=self.model.start_id,
            text=self.target_text,
            prefix=prefix,
            constraints=constraints,
            n_best=n_best,
        )
        if shortlist is None:
            return result
        return result._replace(tokens=word_ids(result.tokens, *shortlist))

    def _shortlist(self, source: tf.Tensor, prefix: tf.Tensor | None) -> tuple[int, tf.Tensor]:
        """The number of words that all sentences share, and each one's own."""
        if self.lexicon is None:
            raise ValueError(
                "Translator: shortlist is True, but there is no lexicon; "
                "wanted one, which `bahdanau-tf lexicon` learns"
            )
        return self.lexicon.first, self.lexicon.own(source, prefix)

    def translate_graph(
        self,
        sentences: tf.Tensor,
        decoding: Decoding,
        prefixes: tf.Tensor | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> Translated:
        """Translates strings, in graph; without words the result is "".

        Args:
            sentences: string [B].
            decoding: How to search.
            prefixes: string [B], with which each translation begins; "" for
                no prefix.
            constraints: Constraints in addition to those of `decoding`.

        Raises:
            ValueError: Unknown words are to be replaced, but the model has no
                alignment; or prefixes are given, but the target tokenizer is
                reversed.
        """
        sentences = tf.ensure_shape(sentences, [None])
        reading = Reading(self._source_ids(sentences))
        if decoding.unknown == "replace":
            words, *_ = self.source_text.tokenize_with_offsets(sentences)
            reading = reading._replace(words=words)
        if prefixes is not None:
            prefixes = tf.ensure_shape(prefixes, [None])
            text = self.target_text
            reading = reading._replace(
                prefix=text.tokenize(prefixes)[:, :-1],
                given=text.tokenize_with_offsets(prefixes)[0],
            )
        return self.translate_read(reading, decoding, constraints)

    def translate_read(
        self,
        reading: Reading,
        decoding: Decoding,
        constraints: Sequence[Constraint] = (),
        n_best: int | tf.Tensor | None = None,
        with_weights: bool = True,
    ) -> Translated:
        """Translates what was read of strings, in graph.

        Args:
            reading: What was read.
            decoding: How to search.
            constraints, n_best: As for `search`.
            with_weights: Whether the caller wants the soft alignments.

        Raises:
            ValueError: As for `translate_graph`.
        """
        result = self.search(
            reading.source,
            decoding,
            self._prefix_ids(reading.prefix),
            constraints,
            n_best,
            with_weights or reading.words is not None,
        )
        lengths = tf.math.count_nonzero(tf.nest.flatten(reading.source)[0], 1)
        blank = lengths == 1  # the end symbol alone
        tokens = tf.where(blank[:, None, None], 0, result.tokens)
        result = result._replace(tokens=tokens)
        shape = tf.shape(tokens)
        flat = [shape[0] * shape[1], shape[2]]
        instead = self._instead(reading, result)
        texts, starts, ends = self.target_text.detokenize_with_offsets(
            tf.reshape(tokens, flat),
            None if instead is None else tf.reshape(instead, flat),
        )
        return Translated(tf.reshape(texts, shape[:2]), starts, ends, result)

    def _prefix_ids(self, prefix: tf.RaggedTensor | None) -> tf.Tensor | None:
        """int32 [B, P], without the end symbol."""
        if prefix is None:
            return None
        if self.target_text.reverse:
            raise ValueError(
                "Translator: target_text is reversed, so the last word of a "
                "translation comes first; wanted no prefixes"
            )
        return padded(prefix)

    def _instead(self, reading: Reading, result: SearchResult) -> tf.Tensor | None:
        """What is written for each target word if it is unknown: [B, N, T].

        In the prefix it is the word that the caller gave.
        """
        shape = tf.shape(result.tokens)
        instead = None
        if reading.words is not None:
            instead = self._replacements(reading.words, result)
        if reading.given is None:
            return instead
        given = reading.given.to_tensor(shape=tf.stack([shape[0], shape[2]]))
        given = tf.broadcast_to(given[:, None], shape)
        return given if instead is None else tf.where(given != "", given, instead)

    def _replacements(self, rows: tf.RaggedTensor, result: SearchResult) -> tf.Tensor:
        """The replacement of each target word if it is unknown: [B, N, T].

        It is the dictionary's translation of the source word with the largest
        weight.
        """
        if result.weights is None:
            raise ValueError(
                f"Translator: {type(self.model).__name__} has no attention, so "
                "unknown words cannot be replaced; wanted unknown='keep' or "
                "'forbid'"
            )
        words = padded(rows)
        width = tf.shape(words)[1]
        # Only columns with a word of this sentence: `words` has none for the
        # end symbol, but a column if another sentence is longer.
        is_word = tf.sequence_mask(rows.row_lengths(), width)
        weights = result.weights[..., :width]
        weights = tf.where(is_word[:, None, None, :], weights, -1.0)
        place = tf.argmax(weights, axis=-1, output_type=tf.int32)
        return self.dictionary.lookup(tf.gather(words, place, batch_dims=1))

    def score_graph(
        self, sentences: tf.Tensor, translations: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Scores given translations, in graph.

        Args:
            sentences: string [B].
            translations: string [B].

        Returns:
            int32 [B, T_y], the ids of the translations, end symbol included;
            float32 [B, T_y], log p(y_i | y_1 .. y_{i-1}, x), 0 on padding.
        """
        return self.align_graph(sentences, translations)[:2]

    def align_graph(
        self, sentences: tf.Tensor, translations: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """Scores and aligns given translations, in graph.

        Returns:
            Those of `score_graph`; α, float32 [B, T_y, T_x], end symbols
            included, or None for a model without attention.
        """
        source = self._source_ids(tf.ensure_shape(sentences, [None]))
        target = padded(self.target_text.tokenize(translations))
        found = log_probs_and_alignment(self.model, source, target)
        return target, *found


PARTS = (
    "model",
    "source_texts",
    "target_text",
    "decoding",
    "dictionary",
    "lexicon",
)


class Owner(Protocol):
    """Whoever has a graph."""

    graph: TranslationGraph


def part(name: str, what: str) -> Any:  # of the type that the owner says
    """A property for a part of `self.graph`; setting it makes a new graph.

    Args:
        name: The name of the part.
        what: The docstring of the property.

    Raises:
        ValueError: When it is set to a value that does not fit the other parts.
    """

    def given(owner: Owner) -> object:
        return getattr(owner.graph, name)

    def replaced(owner: Owner, value: object) -> None:
        parts = {one: getattr(owner.graph, one) for one in PARTS}
        owner.graph = TranslationGraph(*(parts | {name: value}).values())

    return property(given, replaced, doc=what)
