"""Constraints: functions that forbid words during search.

Each factory returns a function `(logits [B, K, V], history) -> logits` that sets the logit of
forbidden words to -inf; any other function of this form is a constraint as well. A constraint that
forbids only a few words is a `Few`, which search need not apply to all logits.

Example:

```python
beam_search(
    ...,
    constraints=[
        minimum_length(5, eos_id=text.eos_id),
        forbid([text.unk_id]),
        no_repeated_ngrams(3),
    ],
)
```
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from bahdanau_tf.search.selections import NEVER, Constraint, Few, History, constrain


def minimum_length(length: int | tf.Tensor, eos_id: int) -> Constraint:
    """Forbids the end symbol before `length` words.

    Args:
        length: int, or int32 `[B]`, one for each row; the end symbol is not counted, as in the
            original code.
        eos_id: the id of the end symbol.
    """

    def forbidden(history: History) -> tf.Tensor:
        least = tf.convert_to_tensor(length)
        if least.shape.rank:
            least = tf.gather(least, history.rows)
        early = history.step < tf.reshape(least, [-1, 1, 1])
        return tf.where(early, eos_id, -1)

    return Few(1, forbidden)


def forbid(ids: Sequence[int]) -> Constraint:
    """Forbids words at every step, such as the unknown word.

    Args:
        ids: their ids.

    Raises:
        ValueError: an id is negative. Search raises it if one is not in the vocabulary.
    """
    words = list(ids)
    if min(words, default=0) < 0:
        raise ValueError(f"forbid: ids are {words}, wanted 0 or more.")
    return Few(len(words), lambda _: tf.constant([[words]], tf.int32))


def no_repeated_ngrams(n: int) -> Constraint:
    """Forbids the word that would complete an n-gram a second time.

    Args:
        n: 1 or more; 1 forbids every repeated word.

    Raises:
        ValueError: n is less than 1.

    Reference: Paulus et al. 2017, arXiv 1705.04304, section 2.5.
    """
    if n < 1:
        raise ValueError(f"no_repeated_ngrams: n is {n}, wanted 1 or more.")

    def lowered(logits: tf.Tensor, history: History) -> tf.Tensor:
        tokens, step = history.tokens, history.step
        batch, width = tf.unstack(tf.shape(tokens)[:2])
        # The positions at which the n-grams so far end.
        ends = tf.range(n - 1, tf.maximum(step, n - 1))
        again = tf.ones([batch, width, tf.size(ends)], tf.bool)
        for back in range(1, n):
            last = tokens[..., tf.maximum(step - back, 0), tf.newaxis]
            again &= tf.gather(tokens, ends - back, axis=-1) == last
        completed = tf.gather(tokens, ends, axis=-1)  # [B, K, size of ends]
        limits = tf.where(again, NEVER, math.inf)
        axes = tf.range(batch), tf.range(width), ends
        row, place, _ = tf.meshgrid(*axes, indexing="ij")
        return tf.tensor_scatter_nd_min(logits, tf.stack([row, place, completed], -1), limits)

    return lowered


def forced_prefix(prefix: tf.Tensor, others: Sequence[Constraint] = ()) -> Constraint:
    """Makes every hypothesis begin with given words.

    Args:
        prefix: int32 `[B, P]`, padded with 0 where a row's prefix is shorter.
        others: constraints for the words after the prefix; the prefix itself may contain words that
            they forbid.
    """
    prefix = tf.pad(tf.convert_to_tensor(prefix, tf.int32), [[0, 0], [0, 1]])
    last = tf.shape(prefix)[1] - 1

    def begin(logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.gather(prefix, tf.minimum(history.step, last), axis=1)
        word = tf.gather(words, history.rows)
        word = tf.reshape(word, [-1, 1, 1])  # 0 where the prefix is over
        is_word = tf.range(tf.shape(logits)[-1]) == word
        forced = tf.where(is_word, logits, NEVER)
        return tf.where(word != 0, forced, constrain(logits, history, others))

    return begin
