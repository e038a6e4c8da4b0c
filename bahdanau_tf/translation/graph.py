"""From strings to strings in one graph: tokenizers, model and search."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import tensorflow as tf

from bahdanau_tf.models.encoder_decoder import forced_attention
from bahdanau_tf.models.scoring import log_probs_and_alignment
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import LEAST_LIMIT
from bahdanau_tf.search import Constraint as Constraint, SearchResult, Step
from bahdanau_tf.search.beam import Watch, beam_search, sample, sentence_seeds
from bahdanau_tf.search.constraints import forbid, forced_prefix, minimum_length, no_repeated_ngrams
from bahdanau_tf.search.loop import gnmt_coverage_penalty, gnmt_length_penalty, no_coverage_penalty
from bahdanau_tf.search.selections import ABSENT as ABSENT  # the doctor also reads it
from bahdanau_tf.system.device import check_not_forked
from bahdanau_tf.system.ranges import Refusal, named
from bahdanau_tf.system.tensors import Nest
from bahdanau_tf.system.terminal import uncollected
from bahdanau_tf.text import Dictionary, Reading, Tokenizer
from bahdanau_tf.translation import shortlist
from bahdanau_tf.translation.shortlist import Lexicon

# int32 [B, T_x], padded with 0; a tuple of them for a model of many sources.
Sources: TypeAlias = "tf.Tensor | tuple[tf.Tensor, ...]"


def joined(sources: Sequence[tf.RaggedTensor]) -> Sources:
    """The ids of all sources, padded, as a model takes them."""
    ids = [padded(rows) for rows in sources]
    return tuple(ids) if len(ids) > 1 else ids[0]


def padded(rows: tf.RaggedTensor) -> tf.Tensor:
    """Pads rows with 0 or "" to at least one column, even without rows."""
    values = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(values)[1], 0)
    fill = tf.zeros([tf.shape(values)[0], missing], values.dtype)
    return tf.concat([values, fill], axis=1)


Result = TypeVar("Result")
STRINGS = tf.TensorSpec([None], tf.string)
_making = threading.RLock()  # held by a thread that makes a function
_ROUNDING = 1e-6  # of a length that is a whole number except for rounding
KEPT = 16  # functions; each takes some 20 MB, and a second or two to make


class Translated(NamedTuple):
    """The translations of a batch of strings.

    A sentence without words has one translation, "" with padding as its tokens, score 0, finished.
    """

    texts: tf.Tensor  # string [B, N], the n best translations of each sentence
    starts: tf.RaggedTensor  # int32 [B N, (T)], the offset of each token's first byte in its text
    ends: tf.RaggedTensor  # int32 [B N, (T)], that of the byte after its last
    result: SearchResult


class TranslationGraph(tf.Module):
    """The part of a `Translator` that runs in the graph, including when served.

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
        check_not_forked()
        if not isinstance(model, TranslationModel):
            raise Refusal(
                "Translator",
                f"model is {type(model).__name__}, wanted a "
                "TranslationModel, such as a subclass of StepwiseModel",
            )
        texts: Sequence[Tokenizer] = (
            source_text if isinstance(source_text, Sequence) else [source_text]
        )
        sizes = tf.nest.flatten(model.source_vocabulary_size)
        if len(texts) != len(sizes):
            raise Refusal(
                "Translator",
                f"{len(texts)} tokenizers for the source, wanted "
                f"{len(sizes)}, one for each source of the model",
            )
        for side, text, size in (
            *(("source", *pair) for pair in zip(texts, sizes, strict=True)),
            ("target", target_text, model.target_vocabulary_size),
        ):
            if text.vocabulary_size != size:
                raise Refusal(
                    "Translator",
                    f"{side}_text has {text.vocabulary_size} ids and "
                    f"the model's {side} vocabulary {size}, wanted equal numbers",
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
    def _functions(self) -> OrderedDict[Hashable, tf.types.experimental.ConcreteFunction]:
        """The last functions used; cached so that TensorFlow tracks none."""
        return OrderedDict()

    def function(
        self, key: Hashable, function: Callable[..., Result], *inputs: object
    ) -> Callable[..., Result]:
        """The graph of a function with inputs of these `tf.TypeSpec`, or nests of them.

        It is made once for each key, and again if `KEPT` others were used since then. It is traced
        here, not when called: TensorFlow warns of functions that differ only in their options as of
        one that is traced again and again.
        """
        check_not_forked()
        with _making:
            if key not in self._functions:
                with uncollected():
                    self._functions[key] = tf.function(
                        function, input_signature=inputs, autograph=False
                    ).get_concrete_function()
            self._functions.move_to_end(key)
            traced: Callable[..., Result] = self._functions[key]
            if len(self._functions) > KEPT:
                self._functions.popitem(last=False)
        return traced

    @property
    def source_text(self) -> Tokenizer:
        """The tokenizer of source 0, to which alignments refer."""
        return self.source_texts[0]

    def read(self, sentences: tf.Tensor) -> tuple[Sources, Reading]:
        """Reads sentences, in graph: the ids of all sources; what else there is of source 0."""
        first, *others = self.source_texts
        reading = first.read(sentences)
        return joined([reading.ids, *(text.tokenize(sentences) for text in others)]), reading

    def search(
        self,
        source: Sources,
        decoding: Decoding,
        prefix: tf.Tensor | None = None,
        constraints: Sequence[Constraint] = (),
        n_best: int | tf.Tensor | None = None,
        with_weights: bool = True,
        attention: Mapping[int, np.ndarray] | None = None,
        watch: Watch | None = None,
    ) -> SearchResult:
        """Searches the n best translations of the ids of all sources, in graph.

        `prefix`, int32 [B, P], has target ids padded with 0; each translation begins with them.
        The constraints are added to those of `decoding`; `n_best` is as for `search`. Without
        `with_weights` the result has no soft alignments. `attention` is from `forced_rows`,
        `watch` as for `beam_search`. Raises ValueError if there is no lexicon for
        `decoding.shortlist`.
        """
        first_source = tf.nest.flatten(source)[0]
        model = forced_attention(self.model, attention or {})
        memory, state = model.encode(source)
        own = None
        if decoding.shortlist:
            if self.lexicon is None:
                raise Refusal(
                    "Translator",
                    "shortlist is True, but there is no lexicon; "
                    "wanted one, which `bahdanau-tf lexicon` learns",
                )
            # The number of words that all sentences share, and each one's own.
            own = self.lexicon.first, self.lexicon.own(first_source, prefix)
            step, memory = shortlist.shortlist_step(model, memory, *own)
            size = self.target_text.vocabulary_size
            if prefix is not None:
                places = shortlist.word_places(*own, size)
                prefix = tf.gather(places, prefix, batch_dims=1)
            constraints = [shortlist.of_words(x, *own, size) for x in constraints]
        else:
            step = shortlist.full_step(model, model.output_weights())
        if not (with_weights or decoding.beta):
            step = shortlist.without_weights(step)
        result = search(
            decoding,
            step,
            state,
            memory,
            source=first_source,
            start_id=self.model.start_id,
            text=self.target_text,
            prefix=prefix,
            constraints=constraints,
            n_best=n_best,
            watch=watch,
        )
        if own is None:
            return result
        return result._replace(tokens=shortlist.word_ids(result.tokens, *own))

    def translate(
        self,
        source: Sources,
        decoding: Decoding,
        words: tf.RaggedTensor | None = None,
        prefix: Reading | None = None,
        constraints: Sequence[Constraint] = (),
        n_best: int | tf.Tensor | None = None,
        with_weights: bool = True,
        attention: Mapping[int, np.ndarray] | None = None,
    ) -> Translated:
        """Translates what was read, in graph; `search` describes the other arguments.

        `words`, ragged string [B, (T)], are those of source 0, which replace unknown words;
        None if no word is replaced. The translations begin with the texts that `prefix` was read
        from. Raises ValueError if the model has no alignment to replace words by, or if
        prefixes or attention are given, but the target tokenizer is reversed.
        """
        if self.target_text.reverse and not (prefix is None and attention is None):
            raise Refusal(
                "Translator",
                "target_text is reversed, so the last word of a "
                "translation comes first; wanted no prefixes and no attention",
            )
        prefix_ids = None
        if prefix is not None:  # without the end, and what would be behind the longest translation
            prefix_ids = padded(prefix.ids[:, :-1])[:, : decoding.max_length]
        replaces = decoding.unknown == "replace" and words is not None
        with_weights = with_weights or replaces
        result = self.search(
            source, decoding, prefix_ids, constraints, n_best, with_weights, attention
        )
        is_first = tf.range(tf.shape(result.scores)[1]) == 0
        lengths = tf.math.count_nonzero(tf.nest.flatten(source)[0], 1)
        is_empty = lengths[:, None] == 1  # the end symbol alone
        tokens = tf.where(is_empty[..., None], 0, result.tokens)
        result = result._replace(
            tokens=tokens,
            scores=tf.where(is_empty, tf.where(is_first, 0.0, ABSENT), result.scores),
            finished=tf.where(is_empty, is_first, result.finished),
        )
        shape = tf.shape(tokens)
        flat = [shape[0] * shape[1], shape[2]]
        instead = self._instead(words if replaces else None, prefix, result)
        texts, starts, ends = self.target_text.detokenize_with_offsets(
            tf.reshape(tokens, flat), None if instead is None else tf.reshape(instead, flat)
        )
        return Translated(tf.reshape(texts, shape[:2]), starts, ends, result)

    def _instead(
        self, words: tf.RaggedTensor | None, prefix: Reading | None, result: SearchResult
    ) -> tf.Tensor | None:
        """What is written for each target word if it is unknown: [B, N, T].

        In the prefix it is the word that the caller gave.
        """
        shape = tf.shape(result.tokens)
        instead = None if words is None else self._replacements(words, result)
        if prefix is None:
            return instead
        first_words = prefix.words.to_tensor(shape=tf.stack([shape[0], shape[2]]))
        first_words = tf.broadcast_to(first_words[:, None], shape)
        if instead is None:
            return first_words
        return tf.where(first_words != "", first_words, instead)

    def _replacements(self, rows: tf.RaggedTensor, result: SearchResult) -> tf.Tensor:
        """For each target word the dictionary's translation of the source word with most weight."""
        if result.weights is None:
            raise Refusal(
                "Translator",
                "the model has no attention, so unknown words cannot be replaced; "
                "wanted unknown='keep' or 'forbid'",
            )
        words = padded(rows)
        width = tf.shape(words)[1]
        # Only columns with a word of this sentence: `words` has none for the end symbol, but a
        # column if another sentence is longer.
        is_word = tf.sequence_mask(rows.row_lengths(), width)
        weights = result.weights[..., :width]
        weights = tf.where(is_word[:, None, None, :], weights, -1.0)
        place = tf.argmax(weights, axis=-1, output_type=tf.int32)
        return self.dictionary.lookup(tf.gather(words, place, batch_dims=1))

    def score(self, sentences: tf.Tensor, translations: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of given translations, int32 [B, T_y], end symbol included, in graph.

        Beside them log p(y_i | y_1 .. y_{i-1}, x), float32 [B, T_y], 0 on padding.
        """
        source = joined([text.tokenize(sentences) for text in self.source_texts])
        target = padded(self.target_text.tokenize(translations))
        return target, log_probs_and_alignment(self.model, source, target)[0]

    def align(
        self, sentences: tf.Tensor, translations: tf.Tensor
    ) -> tuple[Reading, Reading, tf.Tensor, tf.Tensor | None]:
        """Scores and aligns given translations, in graph.

        Returns what is read of both sides; log p(y | x), float32 [B]; α, float32 [B, T_y, T_x], end
        symbols included, or None for a model without attention.
        """
        source, reading = self.read(sentences)
        target = self.target_text.read(translations)
        log_probs, weights = log_probs_and_alignment(self.model, source, padded(target.ids))
        return reading, target, tf.reduce_sum(log_probs, axis=1), weights


PARTS = ("model", "source_texts", "target_text", "decoding", "dictionary", "lexicon")


def joined_texts(members: Sequence[TranslationGraph]) -> tuple[list[Tokenizer], list[int]]:
    """The tokenizers of the sources of an ensemble, each once, and which of them each member has.

    Raises a ValueError if there are no members, or their target tokenizers differ.
    """
    if not members:
        raise Refusal("Translator.ensemble", "there are no translators, wanted one or more")
    targets = [member.target_text.settings() for member in members]
    if any(other != targets[0] for other in targets):
        what = (
            "the target vocabularies or tokenizers differ, wanted one for all; a training with "
            f"{named('init_from')} takes those of another model"
        )
        raise Refusal("Translator.ensemble", what)
    texts = [member.source_texts[0] for member in members]
    settings = [text.settings() for text in texts]
    places = [settings.index(own) for own in settings]
    kept = sorted({*places})
    return [texts[place] for place in kept], [kept.index(place) for place in places]


class Owner(Protocol):
    """An object with a graph."""

    graph: TranslationGraph


def part(name: str, what: str) -> Any:  # of the type that the owner says
    """A property, with a docstring, for a part of `self.graph`; setting it makes a new graph.

    It raises a ValueError if the value does not fit the other parts.
    """

    def get(owner: Owner) -> object:
        return getattr(owner.graph, name)

    def replace(owner: Owner, value: object) -> None:
        parts = {part: getattr(owner.graph, part) for part in PARTS}
        owner.graph = TranslationGraph(*(parts | {name: value}).values())

    return property(get, replace, doc=what)


def search(
    decoding: Decoding,
    step: Step,
    state: Nest,
    memory: Nest,
    source: tf.Tensor,
    start_id: int,
    text: Tokenizer,
    prefix: tf.Tensor | None = None,
    constraints: Sequence[Constraint] = (),
    n_best: int | tf.Tensor | None = None,
    watch: Watch | None = None,
) -> SearchResult:
    """Searches with options, in graph, as `beam_search` or `sample` (see there for the rest).

    The source is int32 [B, T_x], ids padded with 0; `text` is the tokenizer of the target. The
    prefix, int32 [B, P], has the first words of each translation, even if a constraint
    forbids them; it may exceed `max_length_ratio`, but not `max_length`. `n_best` replaces N of the
    options: an int, or without sampling int32 scalar, from 1 to `beam_size`.
    """
    lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.float64)
    longest = decoding.max_length_ratio * lengths + _ROUNDING
    longest = tf.maximum(tf.cast(longest, tf.int32), LEAST_LIMIT)
    if prefix is not None:
        words = tf.math.count_nonzero(prefix, axis=1, dtype=tf.int32)
        longest = tf.maximum(longest, words + 1)
    longest = tf.minimum(longest, decoding.max_length)
    every = [*_constraints(decoding, lengths, longest, text), *constraints]
    if prefix is not None:
        every = [forced_prefix(prefix, every)]
    coverage_penalty = (
        gnmt_coverage_penalty(decoding.beta, source != 0) if decoding.beta else no_coverage_penalty
    )
    n_best = decoding.n_best if n_best is None else n_best
    if decoding.sampling:
        run = partial(
            sample,
            seed=sentence_seeds(source, decoding.seed),
            temperature=decoding.temperature,
            top_k=decoding.top_k or None,
            top_p=decoding.top_p,
            n_samples=n_best,
        )
    else:
        beam_size, shrink = decoding.beam_size, decoding.shrink
        run = partial(beam_search, beam_size=beam_size, n_best=n_best, shrink=shrink, watch=watch)
    return run(
        step,
        state,
        memory,
        start_id=start_id,
        eos_id=text.eos_id,
        max_length=longest,
        length_penalty=gnmt_length_penalty(decoding.alpha),
        coverage_penalty=coverage_penalty,
        constraints=every,
    )


def _constraints(
    decoding: Decoding, lengths: tf.Tensor, longest: tf.Tensor, text: Tokenizer
) -> list[Constraint]:
    # Padding is never a word: a hypothesis with it could not be distinguished from a shorter one.
    forbidden = [text.pad_id]
    if decoding.unknown == "forbid":
        forbidden.append(text.unk_id)
    constraints = [forbid(forbidden)]
    if decoding.min_length_ratio:
        shortest = tf.math.ceil(decoding.min_length_ratio * lengths - _ROUNDING)
        shortest = tf.minimum(tf.cast(shortest, tf.int32), longest)
        words = shortest - 1  # minimum_length does not count the end symbol
        constraints.append(minimum_length(words, text.eos_id))
    if decoding.no_repeated_ngrams:
        constraints.append(no_repeated_ngrams(decoding.no_repeated_ngrams))
    return constraints
