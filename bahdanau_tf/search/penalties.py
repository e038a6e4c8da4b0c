"""Penalties: how hypotheses of different length are ranked.

    score(y) = log p(y | x) / length_penalty(|y|) + coverage_penalty(Σᵢ αᵢ)

A length penalty is a function of lengths, float32 -> float32; it is positive
and does not fall with the length. A coverage penalty is a function of summed
weights, float32 `[B, K, T_x]`, and of their rows in the batch, int32 `[B]`,
-> float32 `[B, K]`; it is at most 0. The stop rule of search relies on both.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

Penalty = Callable[[tf.Tensor], tf.Tensor]
CoveragePenalty = Callable[[tf.Tensor, tf.Tensor], "tf.Tensor | float"]


def gnmt_length_penalty(alpha: float = 1.0) -> Penalty:
    """Returns the length penalty of GNMT; the score is log p(y | x) / lp(y).

        lp(y) = ((5 + |y|) / 6)^α

    With α = 0 it is 1: the score is log p(y | x), as in the original code.

    Reference: Wu et al. 2016, arXiv 1609.08144, section 7.
    """
    if alpha < 0:
        raise ValueError(
            f"gnmt_length_penalty: alpha is {alpha}, wanted 0 or more."
        )
    return lambda lengths: ((5.0 + lengths) / 6.0) ** alpha


def no_coverage_penalty(coverage: tf.Tensor, rows: tf.Tensor) -> float:
    """Returns 0: no penalty."""
    del coverage, rows
    return 0.0


def gnmt_coverage_penalty(
    beta: float, source_mask: tf.Tensor
) -> CoveragePenalty:
    """Returns the coverage penalty of GNMT, which is added to a score.

        cp(y) = β Σ_j log(min(Σ_i α_ij, 1))

    The sum of a source word's weights counts as at least 1e-6.

    Args:
        beta: β, 0 or more.
        source_mask: bool `[B, T_x]`, True where there is a source word.

    Returns:
        A function of the coverage Σ_i α_ij, float32 `[B, K, T_x]`, and its rows
        in the batch, int32 `[B]`, -> float32 `[B, K]`.

    Reference: Wu et al. 2016, arXiv 1609.08144, section 7.
    """
    if beta < 0:
        raise ValueError(
            f"gnmt_coverage_penalty: beta is {beta}, wanted 0 or more."
        )

    def penalty(coverage: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        covered = tf.math.log(tf.clip_by_value(coverage, 1e-6, 1.0))
        mask = tf.gather(source_mask, rows)[:, tf.newaxis]
        covered = tf.where(mask, covered, 0.0)
        return beta * tf.reduce_sum(covered, axis=-1)

    return penalty
