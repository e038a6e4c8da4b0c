"""Steps that give `Features`: logits of the live hypotheses only."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st
from test_search import EOS, LENGTH_PENALTIES, START, Table, assert_same, hypotheses, reference_beam

from bahdanau_tf import search
from bahdanau_tf.search import constraints


def searched(step, state, counts=None, find=search.beam_search, normalizer=None, **options):
    """A search by `step`, whose logits are the features of the hypotheses."""

    def to_logits(values):
        if counts is not None:
            counts.append(int(values.shape[0] * values.shape[1]))
        return tf.identity(values), normalizer(values) if normalizer else None

    def with_features(ids, state, memory):
        logits, state, weights = step(ids, state, memory)
        return search.Features(logits, to_logits), state, weights

    return find(with_features, state, start_id=START, eos_id=EOS, **options)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(sorted(LENGTH_PENALTIES)),
    st.booleans(),
)
def test_a_beam_equals_beam_search_without_early_stopping(
    seed, beam_size, n_best, length, penalty, shrink
):
    """What is left out is neither among the n best nor leads to them."""
    n_best = min(n_best, beam_size)
    table = Table(seed, vocabulary=4, length=length)
    function, divisor = LENGTH_PENALTIES[penalty]
    sizes = {"beam_size": beam_size, "n_best": n_best, "max_length": length}
    result = searched(table.step, table.state(), **sizes, length_penalty=function, shrink=shrink)
    for row in range(table.rows):
        wanted = reference_beam(table, row, beam_size, n_best, length, divisor, shrink)
        assert_same(hypotheses(result, row), wanted)


@pytest.mark.parametrize("size", [490, 640, 1009])
@pytest.mark.parametrize("forbidden", [[], [0], [0, 7]])
@pytest.mark.parametrize("normalizer", [None, partial(tf.reduce_logsumexp, axis=-1)])
def test_a_large_vocabulary_gives_the_same_hypotheses(size, forbidden, normalizer):
    """A vocabulary in chunks, with and without padding, and in one piece."""
    random = np.random.default_rng(size)
    table = 4 * random.normal(size=[size, size])
    table[:, EOS] = 3 * table.std() + random.normal(size=size)
    logits = tf.constant(table, tf.float32)
    result = searched(
        lambda ids, state, _: (tf.gather(logits, ids), state, None),
        tf.zeros([1, 1]),
        normalizer=normalizer,
        beam_size=4,
        n_best=4,
        max_length=5,
        constraints=[constraints.forbid(forbidden)] if forbidden else [],
    )
    log_probs = table - np.logaddexp.reduce(table, -1, keepdims=True)
    live, finished = [((), 0.0)], []
    for _ in range(5):
        grown = [
            ((*words, word), total + log_probs[(START, *words)[-1], word])
            for words, total in live
            for word in range(size)
            if word not in forbidden
        ]
        kept = sorted(grown, key=lambda hypothesis: -hypothesis[1])[:4]
        finished += [x for x in kept if x[0][-1] == EOS]
        live = [x for x in kept if x[0][-1] != EOS]

    wanted = []
    for group, is_finished in ((finished, True), (live, False)):
        scored = [(words, total / ((5 + len(words)) / 6), is_finished) for words, total in group]
        wanted += sorted(scored, key=lambda hypothesis: -hypothesis[1])
    assert_same(hypotheses(result, 0), wanted[:4])


def test_logits_of_hopeless_hypotheses_are_not_computed():
    """Word 0 may win, the end has come, word 2 can only lose."""
    first = np.log([0.60, 0.39, 0.01])
    later = np.log([0.97, 0.02, 0.01])

    def step(ids, state, memory):
        logits = tf.where(state[..., None] == 0, first, later)
        return tf.cast(logits, tf.float32), state + 1, None

    counts: list[int] = []
    result = searched(step, tf.zeros([1]), counts, beam_size=3, max_length=6, n_best=1)
    np.testing.assert_array_equal(result.tokens[0, 0, :2], [EOS, 0])
    # One at first. The bound of words "0", log .6 * 6 / 11, is more than the
    # score of the end, log .39; that of "2", log .01 * 6 / 11, is less.
    assert counts[:2] == [1, 1]
    every: list[int] = []
    searched(step, tf.zeros([1]), every, beam_size=3, max_length=6, n_best=3)
    assert every[:2] == [1, 2]  # three are wanted: "2" may be the third


def test_sampling_takes_features():
    table = Table(seed=3)
    options = {"max_length": 3, "n_samples": 3, "seed": 1}
    plain = search.sample(table.step, table.state(), start_id=START, eos_id=EOS, **options)
    result = searched(table.step, table.state(), find=search.sample, **options)
    np.testing.assert_array_equal(result.tokens, plain.tokens)
    np.testing.assert_array_equal(result.log_probs, plain.log_probs)
