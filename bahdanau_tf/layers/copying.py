"""Copying: words of the source as next words of the translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.readout import OutputWords
from bahdanau_tf.system.ranges import MARK, size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

LONGEST = 5  # words of the longest match: 1980-12-12 has -12 twice, and 0-12 once
MARKED = 3  # words of the longest match that has a mark of its own
MARKS = 2 * MARKED
BASE = 6.0  # a match that is a word longer weighs some six times as much
NEAR = 0.05  # added to α, so that a position without weight is followed, too
TINY = 1e-30  # odds of nothing
NEVER = -1e9  # log odds of a word that the source, or a shortlist, lacks
LARGEST = 60.0  # log odds count as at most this
LEAST = 1e-37  # a share of the vocabulary counts as at least this


class CopyMemory(NamedTuple):
    """What copying reads of a source, whose words x_j are here those of the target."""

    words: tf.Tensor  # int32 [B, T_x], x_j where it occurs first; 0 elsewhere, and for none
    spelled: tf.Tensor  # int32 [B, 1, T_x], x_j; -1 for none
    first: tf.Tensor  # float32 [B, T_x, T_x], 1 from each x_j to where this word occurs first
    after: tf.Tensor  # float32 [B, T_x, T_x], the same from j to x_{j+1} if it continues a word
    fates: tf.Tensor  # float32 [B, 1, T_x, 2], whether x_{j+1} continues a word, and whether not


class Match(NamedTuple):
    """Where the words before the next one occur in the source; summed at first occurrences."""

    words: tf.Tensor  # int32 [..., T_x], as in `CopyMemory`
    marks: tf.Tensor  # float32 [..., 6], m_i
    pointer: tf.Tensor  # float32 [..., T_x], α_i
    follower: tf.Tensor  # float32 [..., T_x], f_i


class CopyState(NamedTuple):
    """The state of a model that copies, between two steps."""

    decoder: Nest
    runs: tf.Tensor  # float32 [B, K, T_x], k_{i-1}
    weights: tf.Tensor  # float32 [B, K, T_x], α_{i-1}


class Copied(NamedTuple):
    """Features of next words, with the odds of those of the source."""

    features: tf.Tensor  # float [..., f]
    words: tf.Tensor  # int32 [..., T_x], as in `CopyMemory`
    log_odds: tf.Tensor  # float32 [..., T_x]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Copying(weights.ConfiguredLayer):
    """Copies words of the source: those that are attended to, and the one after the last copied.

        k_ij     = the largest k <= 5 with x_{j-k+1} .. x_j = y_{i-k} .. y_{i-1}
                 = min(k_{i-1,j-1} + 1, 5) if x_j = y_{i-1}, otherwise 0
        f_i,j+1  ∝ (6^k_ij - 1) (α_{i-1,j} + 0.05)     if x_{j+1} continues a word
        (v_i, u_i) = W t_i + M m_i + b
        o_ij     = exp(v_i) α_ij + exp(u_i) f_ij
        p(y_i)   = (softmax_{y_i}(l_i) + Σ_j [x_j = y_i] o_ij) / (1 + Σ_j o_ij)

    The pointer α_ij finds where a name starts, but loses its way within it; the follower f_ij
    goes on behind the words that are the last of the translation. The shares of the vocabulary,
    whose logits are l_i, of the pointer and of the follower are the softmax of (0, v_i, u_i). The
    marks m_i are six: for k = 1, 2, 3 whether the last k words occur in the source before a piece
    that continues a word, and before another one. They tell the readout where a copied word ends:
    H m_i is a term of its hidden layer. There is no gradient through f and m.

    All this is kept as logits, which change for the source's words alone:

        l'_iy = log(exp(l_iy) + Σ_k exp(l_ik) Σ_j [x_j = y] o_ij)

    Args:
        source_vocabulary_size: K_x.
        hint_units: Width of H m_i.
        kernel_initializer: Initializer of W, M and H.

    Attributes:
        copies: int32 [K_x], a constant of the tokenizers: the target id that is spelled as each
            source id, negative if it continues a word, 0 for none. A mark such as a period, whose
            id is 2^24 more, continues a word only if letters of it follow, as in notes.txt. At
            first each id is its own, and none continues a word: there is no follower.

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
        hint_units: int,
        kernel_initializer: weights.Initializer = None,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.source_vocabulary_size = size(
            "Copying", "source_vocabulary_size", source_vocabulary_size
        )
        self.hint_units = size("Copying", "hint_units", hint_units)
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
        shapes = {
            "kernel": (features_shape[-1], 2),
            "mark_kernel": (MARKS, 2),
            "hint_kernel": (MARKS, self.hint_units),
        }
        for name, shape in shapes.items():
            setattr(
                self, name, self.new_weight(name, shape, weights.fresh(self.kernel_initializer))
            )
        self.bias = self.new_weight("bias", (2,), keras.initializers.Constant(-2.0))

    def memory(self, source: tf.Tensor) -> CopyMemory:
        """What steps read of source ids, int32 [B, T_x]."""
        # Keras with replicas passes floats
        codes = tf.gather(tf.convert_to_tensor(self.copies), tf.cast(source, tf.int32))
        words, continues = _words(codes)
        same = (words[:, :, None] == words[:, None]) & (codes != 0)[:, None]
        same = tf.cast(same, tf.float32)
        first = tf.where(tf.cumsum(same, 2) == 1, same, 0.0)
        continues = tf.pad(tf.cast(continues, tf.float32)[:, 1:], [[0, 0], [0, 1]])
        after = tf.pad(first[:, 1:], [[0, 0], [0, 1], [0, 0]]) * continues[..., None]
        return CopyMemory(
            tf.where(tf.reduce_max(first, 1) > 0, words, 0),
            tf.where(codes == 0, -1, words)[:, None],  # -1 equals no word
            first,
            after,
            tf.stack([continues, 1.0 - continues], -1)[:, None],
        )

    def runs(self, memory: CopyMemory, before: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        """k_i, float32 [B, K, T_x], of K hypotheses, given k_{i-1}, and y_{i-1}, int [B, K]."""
        same = tf.equal(memory.spelled, tf.cast(last, tf.int32)[..., None])
        moved = tf.pad(before[..., :-1], [[0, 0], [0, 0], [1, 0]])
        return tf.where(same, tf.minimum(moved + 1.0, LONGEST), 0.0)

    def match(
        self, memory: CopyMemory, runs: tf.Tensor, before: tf.Tensor, alignment: tf.Tensor
    ) -> Match:
        """The match of K hypotheses of each sentence, or of K words.

        k_i and α_{i-1} are float [B, K, T_x], as is the alignment α_i.
        """
        before, alignment = (tf.cast(x, tf.float32) for x in (before, alignment))
        lengths = tf.range(1.0, MARKED + 1.0)[:, None]
        marked = tf.cast(runs[:, :, None] >= lengths, tf.float32)  # [B, K, 3, T_x]
        marks = tf.minimum(tf.matmul(marked, memory.fates), 1.0)
        near = (BASE**runs - 1.0) * (tf.stop_gradient(before) + NEAR)
        follower = tf.matmul(near, memory.after)
        total = tf.reduce_sum(follower, -1, keepdims=True)
        return Match(
            tf.broadcast_to(memory.words[:, None], tf.shape(near)),
            weights.reshaped(marks, runs, MARKS),
            tf.matmul(alignment, memory.first),
            tf.math.divide_no_nan(follower, total),
        )

    def of_sentences(self, source: tf.Tensor, target: tf.Tensor, alignment: tf.Tensor) -> Match:
        """The match of each word of known translations, [B, T_y, ...]; arguments as in a call."""
        memory = self.memory(source)
        last = tf.pad(tf.cast(target, tf.int32)[:, :-1], [[0, 0], [1, 0]])
        same = tf.cast(tf.equal(memory.spelled, last[..., None]), tf.float32)
        runs = same
        for _ in range(LONGEST - 1):
            runs = same * (1.0 + tf.pad(runs[:, :-1, :-1], [[0, 0], [1, 0], [1, 0]]))
        before = tf.pad(alignment[:, :-1], [[0, 0], [1, 0], [0, 0]])
        return self.match(memory, runs, before, alignment)

    def hinted(self, term: tf.Tensor, match: Match) -> tf.Tensor:
        """A term of the readout plus H m_i, float [..., h]."""
        hint = weights.linear(tf.cast(match.marks, term.dtype), self.hint_kernel)
        return term + tf.reshape(hint, tf.shape(term))

    def copied(self, features: tf.Tensor, match: Match) -> Copied:
        """The features, float [..., f], with the odds of the source's words."""
        inputs = tf.concat([tf.cast(features, tf.float32), match.marks], -1)
        kernel = tf.concat([self.kernel, self.mark_kernel], 0)
        gates = tf.minimum(weights.linear(inputs, kernel, self.bias), LARGEST)
        pointer, follower = tf.split(tf.exp(gates), 2, -1)
        odds = pointer * match.pointer + follower * match.follower
        log_odds = tf.math.log(tf.maximum(odds, TINY))
        return Copied(features, match.words, log_odds)

    def call(
        self, features: tf.Tensor, alignment: tf.Tensor, source: tf.Tensor, target: tf.Tensor
    ) -> tf.Tensor:
        return self.copied(features, self.of_sentences(source, target, alignment)).log_odds


def _words(codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The target ids of `copies` of a source, int32 [B, T_x]; whether they continue a word."""
    is_inner, is_mark = codes < 0, codes < -MARK
    number = tf.cumsum(tf.cast(~is_inner, tf.int32), 1)
    letters = tf.cumsum(tf.cast(is_inner & ~is_mark, tf.int32), 1)
    same = number[:, :, None] == number[:, None]
    all_letters = tf.reduce_max(tf.where(same, letters[:, None], 0), 2)
    return tf.abs(codes) % MARK, is_inner & ~(is_mark & (letters == all_letters))


def mixed_logits(copied: Copied, output: OutputWords) -> tuple[tf.Tensor, tf.Tensor]:
    """l', float32 [..., K], of the words that `output` has rows for; log Σ exp l', [...]."""
    logits = output.logits(copied.features)
    places, log_odds = output.places(copied.words), copied.log_odds
    if places is not copied.words:
        log_odds = tf.where(places > 0, log_odds, NEVER)  # 0 is the place of no word
    shares = tf.nn.softmax(logits)
    shape = tf.shape(logits)
    size = logits.shape[-1] or shape[-1]
    flat = tf.reshape(logits, [-1])
    starts = tf.range(0, tf.size(flat, tf.int64), tf.cast(size, tf.int64))[:, None]
    at = tf.cast(weights.as_rows(places), tf.int64) + starts
    share = tf.maximum(tf.gather(tf.reshape(shares, [-1]), at), LEAST)
    more = tf.math.softplus(weights.as_rows(log_odds) - tf.math.log(share))  # l' - l
    flat = tf.tensor_scatter_nd_add(flat, at[..., None], more)
    # As in search, the fastest way to a sum of exponentials.
    total = tf.reduce_max(logits, -1) - tf.math.log(tf.reduce_max(shares, -1))
    total += tf.math.log1p(tf.reduce_sum(tf.exp(log_odds), -1))
    return tf.ensure_shape(tf.reshape(flat, shape), logits.shape), total
