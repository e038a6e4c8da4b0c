"""The search with the options of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import tensorflow as tf

from bahdanau_tf.options import Decoding
from bahdanau_tf.search import (
    Constraint,
    SearchResult,
    Step,
    beam_search,
    gnmt_coverage_penalty,
    gnmt_length_penalty,
    no_coverage_penalty,
    sample,
)
from bahdanau_tf.search.beam import sentence_seeds
from bahdanau_tf.search.constraints import forbid, forced_prefix, minimum_length, no_repeated_ngrams
from bahdanau_tf.system.tensors import Nest
from bahdanau_tf.text.tokenizer import Tokenizer

_ROUNDING = 1e-6  # of a length that is a whole number except for rounding


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
) -> SearchResult:
    """Searches with options, in graph.

    Args:
        decoding: The options.
        step: The step function, see `bahdanau_tf.search`.
        state: Nest of [B, ...], the state before the first word.
        memory: Nest of [B, ...], read by `step`.
        source: int32 [B, T_x], source ids padded with 0.
        start_id: The id given to `step` at the first word.
        text: Tokenizer of the target language, for its special ids.
        prefix: int32 [B, P], padded with 0, the words with which each translation begins, even if a
            constraint forbids them. It may exceed `max_length_ratio`, but not `max_length`.
        constraints: Further constraints.
        n_best: N in place of that of the options: an int, or without sampling int32 scalar, from 1
            to `beam_size`.

    Returns:
        `SearchResult` of [B, N] hypotheses.

    Raises:
        ValueError: `beta` is not 0 and the model has no attention.
    """
    lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.float64)
    longest = decoding.max_length_ratio * lengths + _ROUNDING
    longest = tf.cast(longest, tf.int32)
    if prefix is not None:
        words = tf.math.count_nonzero(prefix, axis=1, dtype=tf.int32)
        longest = tf.maximum(longest, words + 1)
    longest = tf.clip_by_value(longest, 1, decoding.max_length)
    every = [*_constraints(decoding, lengths, longest, text), *constraints]
    if prefix is not None:
        every = [forced_prefix(prefix, every)]
    coverage_penalty = (
        gnmt_coverage_penalty(decoding.beta, source != 0) if decoding.beta else no_coverage_penalty
    )
    if n_best is None:
        n_best = decoding.n_best
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
        run = partial(
            beam_search, beam_size=decoding.beam_size, n_best=n_best, shrink=decoding.shrink
        )
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
        shortest = decoding.min_length_ratio * lengths - _ROUNDING
        shortest = tf.math.ceil(shortest)
        shortest = tf.minimum(tf.cast(shortest, tf.int32), longest)
        words = shortest - 1  # minimum_length does not count the end symbol
        constraints.append(minimum_length(words, text.eos_id))
    if decoding.no_repeated_ngrams:
        constraints.append(no_repeated_ngrams(decoding.no_repeated_ngrams))
    return constraints
