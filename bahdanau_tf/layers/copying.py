"""Copying: words of the source as next words of the translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.readout import OutputWords
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

SUFFIX = 3  # words of the longest match
MARKS = 2 * SUFFIX
LENGTHS = (1.0, 6.0, 36.0)  # added for matches of 1, 2 and 3 words: w = 1, 7, 43
NEAR = 0.05  # added to α, so that a position without weight is followed, too
TINY = 1e-30  # odds of nothing
NEVER = -1e9  # log odds of a word that the source, or a shortlist, lacks


class CopyMemory(NamedTuple):
    """What copying reads of a source, whose words x_j are here those of the target."""

    words: tf.Tensor  # int32 [B, T_x], x_j where it occurs first; 0 elsewhere, and for none
    suffixes: tf.Tensor  # int32 [B, 3, T_x], x_j, x_{j-1} and x_{j-2}; -1 for none
    first: tf.Tensor  # float32 [B, T_x, T_x], 1 from each x_j to where this word occurs first
    after: tf.Tensor  # float32 [B, T_x, T_x], the same from j to x_{j+1} if it continues a word
    fates: tf.Tensor  # float32 [B, T_x, 2], whether x_{j+1} continues a word, and whether not


class Match(NamedTuple):
    """Where the words before the next one occur in the source; summed at first occurrences."""

    words: tf.Tensor  # int32 [..., T_x], as in `CopyMemory`
    marks: tf.Tensor  # float32 [..., 6], m_i
    pointer: tf.Tensor  # float32 [..., T_x], α_i
    follower: tf.Tensor  # float32 [..., T_x], f_i


class CopyState(NamedTuple):
    """The state of a model that copies, between two steps."""

    decoder: Nest
    words: tf.Tensor  # int32 [B, K, 2], y_{i-2} and y_{i-3}
    weights: tf.Tensor  # float32 [B, K, T_x], α_{i-1}


class Copied(NamedTuple):
    """Features of next words, with the odds of those of the source."""

    features: tf.Tensor  # float [..., f]
    words: tf.Tensor  # int32 [..., T_x], as in `CopyMemory`
    log_odds: tf.Tensor  # float32 [..., T_x]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Copying(weights.ConfiguredLayer):
    """Copies words of the source: those that are attended to, and the one after the last copied.

        k_ij     = the largest k <= 3 with x_{j-k+1} .. x_j = y_{i-k} .. y_{i-1}
        f_i,j+1  ∝ w(k_ij) (α_{i-1,j} + 0.05)     if x_{j+1} continues a word;  w = 0, 1, 7, 43
        (v_i, u_i) = W t_i + M m_i + b
        o_ij     = exp(v_i) α_ij + exp(u_i) f_ij
        p(y_i)   = (softmax_{y_i}(l_i) + Σ_j [x_j = y_i] o_ij) / (1 + Σ_j o_ij)

    The pointer α_ij finds where a name starts, but loses its way within it; the follower f_ij
    goes on behind the words that are the last of the translation. The shares of the vocabulary,
    whose logits are l_i, of the pointer and of the follower are the softmax of (0, v_i, u_i). The
    marks m_i are six: for k = 1, 2, 3 whether the last k words occur in the source before a piece
    that continues a word, and before another one. There is no gradient through f and m.

    All this is kept as logits, which change for the source's words alone:

        l'_iy = log(exp(l_iy) + Σ_k exp(l_ik) Σ_j [x_j = y] o_ij)

    Args:
        source_vocabulary_size: K_x.
        hint_units: Width of H m_i, a term of the readout's hidden layer; 0 for none.
        kernel_initializer: Initializer of W, M and H.

    Attributes:
        copies: int32 [K_x], a constant of the tokenizers: the target id that is spelled as each
            source id, negative if it continues a word, 0 for none. At first each id is its own,
            and none continues a word: there is no follower.

    Call arguments:
        features: float [B, T_y, f], t_i.
        alignment: float [B, T_y, T_x], α_i.
        source: int32 [B, T_x].
        target: int32 [B, T_y], the words to predict, unshifted.

    Returns:
        log Σ_j [x_j = y] o_ij of each word y of the source, float32 [B, T_y, T_x], at the first
        place where it occurs; about -69 elsewhere.

    Reference:
        Gulcehre et al. 2016, arXiv 1603.08148; See et al. 2017, arXiv 1704.04368 (pointers).
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        hint_units: int = 0,
        kernel_initializer: weights.Initializer = None,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.source_vocabulary_size = size(
            "Copying", "source_vocabulary_size", source_vocabulary_size
        )
        self.hint_units = hint_units
        self.kernel_initializer = weights.for_kernel(kernel_initializer)

    def build(self, features_shape: Shape, *others: Shape) -> None:
        own = (self.source_vocabulary_size,)
        self.copies = self.add_weight(
            own,
            lambda shape, dtype: tf.range(shape[0]),
            "int32",
            trainable=False,
            aggregation="only_first_replica",
            name="copies",
        )
        widths = {"kernel": (features_shape[-1], 2), "mark_kernel": (MARKS, 2)}
        if self.hint_units:
            widths["hint_kernel"] = MARKS, self.hint_units
        for name, shape in widths.items():
            setattr(
                self, name, self.new_weight(name, shape, weights.fresh(self.kernel_initializer))
            )
        self.bias = self.new_weight("bias", (2,), keras.initializers.Constant(-2.0))

    def memory(self, source: tf.Tensor) -> CopyMemory:
        """What steps read of source ids, int32 [B, T_x]."""
        # Keras with replicas passes floats
        codes = tf.gather(tf.convert_to_tensor(self.copies), tf.cast(source, tf.int32))
        words = tf.where(codes == 0, -1, tf.abs(codes))  # -1 equals no word
        same = (words[:, :, None] == words[:, None]) & (codes != 0)[:, None]
        same = tf.cast(same, tf.float32)
        first = tf.where(tf.cumsum(same, 2) == 1, same, 0.0)
        continues = tf.pad(tf.cast(codes < 0, tf.float32)[:, 1:], [[0, 0], [0, 1]])
        after = tf.pad(first[:, 1:], [[0, 0], [0, 1], [0, 0]]) * continues[..., None]
        padded = tf.pad(words, [[0, 0], [SUFFIX - 1, 0]], constant_values=-1)
        return CopyMemory(
            tf.where(tf.reduce_max(first, 1) > 0, words, 0),
            tf.stack([padded[:, 2:], padded[:, 1:-1], padded[:, :-2]], 1),
            first,
            after,
            tf.stack([continues, 1.0 - continues], -1),
        )

    def match(
        self, memory: CopyMemory, last: tf.Tensor, before: tf.Tensor, alignment: tf.Tensor
    ) -> Match:
        """The match of K hypotheses of each sentence, or of K words.

        `last`, int32 [B, K, 3], has y_{i-1}, y_{i-2} and y_{i-3}, 0 for none; before is α_{i-1},
        float [B, K, T_x], and the alignment α_i.
        """
        before, alignment = (tf.cast(x, tf.float32) for x in (before, alignment))
        same = tf.equal(memory.suffixes[:, None], last[..., None])  # of `==` no rank is known
        same = tf.cast(same, tf.float32)  # [B, K, 3, T_x]
        runs = tf.math.cumprod(same, 2)
        shape = tf.shape(runs)
        rows = tf.reshape(runs, [shape[0], shape[1] * SUFFIX, shape[3]])
        marks = tf.minimum(tf.matmul(rows, memory.fates), 1.0)
        near = tf.reduce_sum(runs * tf.constant(LENGTHS)[:, None], 2)
        follower = tf.matmul(near * (tf.stop_gradient(before) + NEAR), memory.after)
        total = tf.reduce_sum(follower, -1, keepdims=True)
        return Match(
            tf.tile(memory.words[:, None], [1, shape[1], 1]),
            tf.reshape(marks, [shape[0], -1, MARKS]),
            tf.matmul(alignment, memory.first),
            follower / tf.maximum(total, TINY),
        )

    def of_sentences(self, source: tf.Tensor, target: tf.Tensor, alignment: tf.Tensor) -> Match:
        """The match of each word of known translations, [B, T_y, ...]; arguments as in a call."""
        padded = tf.pad(tf.cast(target, tf.int32), [[0, 0], [SUFFIX, 0]])
        last = tf.stack([padded[:, 2:-1], padded[:, 1:-2], padded[:, :-3]], -1)
        before = tf.pad(alignment[:, :-1], [[0, 0], [1, 0], [0, 0]])
        return self.match(self.memory(source), last, before, alignment)

    def hinted(self, term: tf.Tensor, match: Match) -> tf.Tensor:
        """A term of the readout plus H m_i, if there are hints: float [..., h]."""
        if not self.hint_units:
            return term
        hint = weights.linear(tf.cast(match.marks, term.dtype), self.hint_kernel)
        return term + tf.reshape(hint, tf.shape(term))

    def copied(self, features: tf.Tensor, match: Match) -> Copied:
        """The features, float [..., f], with the odds of the source's words."""
        gates = weights.linear(tf.cast(features, tf.float32), self.kernel, self.bias)
        gates += weights.linear(match.marks, self.mark_kernel)
        most = tf.reduce_max(gates, -1, keepdims=True)
        pointer, follower = tf.split(tf.exp(gates - most), 2, -1)
        odds = pointer * match.pointer + follower * match.follower
        log_odds = most + tf.math.log(tf.maximum(odds, TINY))
        return Copied(features, match.words, log_odds)

    def call(
        self, features: tf.Tensor, alignment: tf.Tensor, source: tf.Tensor, target: tf.Tensor
    ) -> tf.Tensor:
        return self.copied(features, self.of_sentences(source, target, alignment)).log_odds


def mixed_logits(copied: Copied, output: OutputWords) -> tf.Tensor:
    """l', float32 [..., K], of the words that `output` has rows for."""
    logits = output.logits(copied.features)
    places = output.places(copied.words)
    # As in search, the fastest way to a sum of exponentials.
    share = tf.reduce_max(tf.nn.softmax(logits), -1, keepdims=True)
    total = tf.reduce_max(logits, -1, keepdims=True) - tf.math.log(share)
    shape = tf.shape(logits, tf.int64)
    starts = tf.range(tf.reduce_prod(shape[:-1])) * shape[-1]
    at = tf.reshape(starts, tf.concat([shape[:-1], [1]], 0)) + tf.cast(places, tf.int64)
    at = tf.reshape(at, [-1, 1])
    flat = tf.reshape(logits, [-1])
    own = tf.gather(flat, at[:, 0])
    log_odds = tf.where(places > 0, copied.log_odds, NEVER)  # 0 is the place of no word
    more = tf.math.softplus(tf.reshape(total + log_odds, [-1]) - own)  # l' - l
    flat = tf.tensor_scatter_nd_add(flat, at, more)
    return tf.ensure_shape(tf.reshape(flat, shape), logits.shape)
