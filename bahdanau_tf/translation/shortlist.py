"""Lexicons: target words for each source word, learned from attention.

A search over a shortlist has places in it where another has ids of words.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import tensorflow as tf

from bahdanau_tf.layers.readout import OutputWeights, OutputWords
from bahdanau_tf.models.stepwise import Output, TranslationModel
from bahdanau_tf.search import Constraint, Features, History, Step
from bahdanau_tf.search.selections import NEVER
from bahdanau_tf.system.files import read_arrays, write_atomically
from bahdanau_tf.system.ranges import MARK, Refusal
from bahdanau_tf.system.tensors import Nest
from bahdanau_tf.text.tokenizer import Tokenizer

AT_ONCE = 2**20  # number of values collected before they are added up

# As from `make_dataset`: "source" and "target", int32 [B, T], by these names; labels, weights.
Batches = Iterable[tuple[Mapping[str, tf.Tensor], tf.Tensor, tf.Tensor]]
Sums = tuple[np.ndarray, np.ndarray]  # int64 [N], ascending; float64 [N]


class Lexicon:
    """Target words for each source word, for shortlists.

    The shortlist of a sentence is the first F words of the target vocabulary plus its *own* words:
    those that the lexicon has for its source words. It does not depend on other sentences. The
    first words of a word vocabulary are the most frequent ones; in a vocabulary of sub-words single
    characters come last, so they can only be own words.

    Args:
        words: int32 [K_x, k], target ids of F or more for each source id; -1 where there are fewer
            than k, and for padding.
        first: F.

    Raises:
        ValueError: `words` or `first` is not of this form.

    Reference:
        Jean et al. 2015, arXiv 1412.2007, section 3.2.
    """

    def __init__(self, words: np.ndarray, first: int) -> None:
        self.words = np.asarray(words, np.int32)
        self.first = int(first)
        if self.first < 1:
            raise Refusal("Lexicon", f"first is {first}, wanted 1 or more")
        if self.words.ndim != 2 or not self.words.size:
            raise Refusal(
                "Lexicon", f"words has shape {self.words.shape}, wanted a row for each source word"
            )
        if np.any(self.words[0] != -1) or np.any((self.words != -1) & (self.words < self.first)):
            raise Refusal(
                "Lexicon", f"words has ids below {first}, or ids for padding; wanted -1 for no word"
            )

    def own(self, source: tf.Tensor, more: tf.Tensor | None = None) -> tf.Tensor:
        """The own words of each sentence, each once, int32 [B, M], in graph.

        Every row has at least one -1, for no word. `more` [B, P] are further words, 0 for none.
        """
        batch, length = tf.unstack(tf.shape(source))
        words = tf.gather(self.words, source)
        words = tf.reshape(words, [batch, length * self.words.shape[1]])
        if more is not None:
            further = tf.where(more < self.first, -1, more)
            words = tf.concat([words, further], axis=1)
        words = tf.sort(tf.pad(words, [[0, 0], [1, 0]], constant_values=-1))
        is_new = tf.concat([words[:, :1] == -1, words[:, 1:] != words[:, :-1]], axis=1)
        return tf.ragged.boolean_mask(words, is_new).to_tensor(-1)

    def check(self, source_size: int, target_text: Tokenizer) -> None:
        """Raises ValueError if the lexicon does not fit these vocabularies."""
        size = target_text.vocabulary_size
        last = max(self.first - 1, int(self.words.max()))
        if len(self.words) != source_size or last >= size:
            raise Refusal(
                "Lexicon",
                f"the lexicon has {len(self.words)} source words and "
                f"{last + 1} target words or more, the vocabularies have "
                f"{source_size} and {size}; wanted the model's own lexicon",
            )
        special = (target_text.pad_id, target_text.unk_id, target_text.eos_id)
        if max(special) >= self.first or self.first <= len(special):
            raise Refusal(
                "Lexicon",
                f"the special symbols are {special}, wanted all of "
                f"them and another word among the first {self.first} words",
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the lexicon to a file, an .npz."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, words=self.words, first=self.first)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Lexicon:
        """Reads what `save` wrote.

        Raises:
            ValueError: The file is damaged or has other contents.
        """
        try:
            arrays = read_arrays(path)
            return cls(arrays["words"], int(arrays["first"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refusal("Lexicon.load", f"{path} holds no lexicon: {error}") from error


def learn_lexicon(
    model: TranslationModel, batches: Batches, words: int = 10, first: int = 2000
) -> Lexicon:
    """Learns a lexicon from a model's attention on known translations.

    A source word x gets the k target words y with id F or more that have the largest Σ α_ij over
    all positions with x_j = x and y_i = y. If the model copies words, x itself is another.

    Args:
        model: A trained model with attention, or an ensemble of such models.
        batches: Batches as from `make_dataset`.
        words: k.
        first: F; if larger than the vocabulary, its size is used.

    Raises:
        ValueError: The model has no attention or reads several sources, or k or F is less than 1.
    """
    for name, value in (("words", words), ("first", first)):
        if value < 1:
            raise Refusal("learn_lexicon", f"{name} is {value}, wanted 1 or more")
    kind = type(model).__name__
    if not model.has_alignment:
        raise Refusal("learn_lexicon", f"{kind} has no attention, wanted a model with attention")
    source_size = model.source_vocabulary_size
    if isinstance(source_size, tuple):
        raise Refusal("learn_lexicon", f"{kind} reads several sources, wanted a model of one")
    size = model.target_vocabulary_size
    first = min(first, size)
    keys, sums = _attended(model, batches, first)
    source, target = np.divmod(keys, size)
    order = np.lexsort((target, -sums, source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = rank < words
    table = np.full([source_size, words], -1, np.int32)
    table[source[kept], rank[kept]] = target[kept]
    for member in getattr(model, "members", [model]):
        if copying := getattr(member, "copying", None):  # each word may be copied
            same = np.abs(copying.copies.numpy())[:, None] % MARK
            table = np.hstack([table, np.where(same < first, -1, same)])
    return Lexicon(table, first)


def _attended(model: TranslationModel, batches: Batches, first: int) -> Sums:
    """Σ α_ij of each pair of words x, y; its key is x K_y + y."""
    size = model.target_vocabulary_size
    ids = tf.TensorSpec([None, None], tf.int32)
    attend = tf.function(
        lambda inputs: model.features(inputs)[1],
        input_signature=[{"source": ids, "target": ids}],
        autograph=False,
    )
    parts: list[Sums] = []
    for inputs, *_ in batches:
        source, target = inputs["source"].numpy(), inputs["target"].numpy()
        x, y = source[:, None, :], target[:, :, None]
        counted = (x != 0) & (y >= first)
        keys = (x.astype(np.int64) * size + y)[counted]
        parts.append((keys, attend(inputs).numpy()[counted]))
        more = sum(len(keys) for keys, _ in parts[1:])
        if more > max(AT_ONCE, len(parts[0][0])):
            parts = [_added(parts)]
    return _added(parts)


def _added(parts: list[Sums]) -> Sums:
    """Adds up the values of equal keys."""
    all_keys = [np.zeros(0, np.int64), *(keys for keys, _ in parts)]
    values = [np.zeros(0), *(values for _, values in parts)]
    keys, places = np.unique(np.concatenate(all_keys), return_inverse=True)
    return keys, np.bincount(places, np.concatenate(values), len(keys))


# What a `Step` gives.
Stepped = tuple["tf.Tensor | Features", Nest, "tf.Tensor | None"]


def full_step(model: TranslationModel, output: Output) -> Step:
    """The step over all words."""

    def step(ids: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        features, state, weights = model.step(ids, state, memory)
        to_logits = partial(model.normalized, output=output)
        return Features(features, to_logits), state, weights

    return step


def without_weights(step: Step) -> Step:
    """The same step without an alignment, of which search keeps a record."""

    def plain(ids: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        output, state, _ = step(ids, state, memory)
        return output, state, None

    return plain


@dataclass(eq=False)
class Shortlist(OutputWords):
    """Used in place of `OutputWeights` for a shortlist."""

    frequent: OutputWeights  # of the first F words, the same for all sentences
    kernel: tf.Tensor  # float [B, M, f], of the M own words of each sentence
    bias: tf.Tensor  # float32 [B, M], -inf for no word
    by_word: tf.Tensor  # int32 [B, K_y], as `word_places`; 0 for words that are not in it

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits: float [B, K, f] -> float32 [B, K, F + M]."""
        kernel = tf.cast(self.kernel, features.dtype)
        own = tf.matmul(features, kernel, transpose_b=True)
        own = tf.cast(own, tf.float32) + self.bias[:, tf.newaxis]
        return tf.concat([self.frequent.logits(features), own], axis=-1)

    def places(self, words: tf.Tensor) -> tf.Tensor:
        """The places of ids, int32 [B, ...]."""
        return tf.gather(self.by_word, words, batch_dims=1)


def _own_weights(output: OutputWeights, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The kernel and the bias of each sentence's own words, see `Shortlist`."""
    rows = tf.maximum(words, 0)
    bias = tf.cast(tf.gather(output.bias, rows), tf.float32)
    bias = tf.where(words < 0, -math.inf, bias)
    return tf.gather(output.kernel, rows), bias


def shortlist_step(
    model: TranslationModel, memory: Nest, first: int, words: tf.Tensor
) -> tuple[Step, Nest]:
    """A step over a shortlist, which uses places in it instead of ids, and its memory.

    A place below F = `first` equals the id; `words` [B, M] are the ids at the places from F on, -1
    for none. The memory includes them, so that search removes them with the rows that have stopped.
    """
    output = model.output_weights()
    every = tf.nest.flatten(output)
    frequent = [weights.first(first) for weights in every]
    own = [_own_weights(weights, words) for weights in every]
    by_word = word_places(first, words, model.target_vocabulary_size)
    by_word = tf.where(by_word < first + tf.shape(words)[1], by_word, 0)

    def step(places: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        memory, words, own, by_word = memory
        ids = word_ids(places, first, words)
        short = [
            Shortlist(some, kernel, bias, by_word)
            for some, (kernel, bias) in zip(frequent, own, strict=True)
        ]
        short = tf.nest.pack_sequence_as(output, short)
        features, state, weights = model.step(ids, state, memory)
        return model.logits(features, short), state, weights

    return step, (memory, words, own, by_word)


def word_ids(places: tf.Tensor, first: int, words: tf.Tensor) -> tf.Tensor:
    """Converts places [B, ...] in a shortlist to ids; `words` [B, M] are those from F on."""
    own = tf.gather(words, tf.maximum(places - first, 0), batch_dims=1)
    return tf.where(places < first, places, own)


def word_places(first: int, own: tf.Tensor, size: int) -> tf.Tensor:
    """The place of each word of the vocabulary in the shortlist of each sentence, [B, K_y].

    It is F + M for a word that is not among the first F nor the M own words, `own` [B, M].
    """
    batch, count = tf.unstack(tf.shape(own))
    row, place = tf.meshgrid(tf.range(batch), tf.range(first, first + count), indexing="ij")
    ids = tf.range(size + 1)  # the last one stands for "no word"
    places = tf.where(ids < first, ids, first + count)
    places = tf.tile(places[tf.newaxis], [batch, 1])
    at = tf.stack([row, tf.where(own < 0, size, own)], axis=-1)
    return tf.tensor_scatter_nd_update(places, at, place)[:, :size]


def of_words(constraint: Constraint, first: int, own: tf.Tensor, size: int) -> Constraint:
    """Makes a constraint on words work in a shortlist.

    The constraint gets logits of the whole vocabulary, with -inf for words that are not in the
    shortlist, and tokens that are ids. The other arguments are those of `word_places`.
    """
    places = word_places(first, own, size)

    def constrain(logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.gather(own, history.rows)
        frequent = tf.tile([tf.range(first)], [tf.shape(words)[0], 1])
        shortlist = tf.concat([frequent, words], axis=1)
        every = tf.pad(logits, [[0, 0], [0, 0], [0, 1]], constant_values=NEVER)
        every = tf.gather(every, tf.gather(places, history.rows), axis=2, batch_dims=1)
        every = tf.ensure_shape(every, [None, None, size])
        tokens = word_ids(history.tokens, first, words)
        every = constraint(every, history._replace(tokens=tokens))
        there = tf.gather(every, tf.maximum(shortlist, 0), axis=2, batch_dims=1)
        return tf.where(shortlist[:, tf.newaxis] < 0, NEVER, there)

    return constrain
