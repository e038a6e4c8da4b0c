"""Constraints against their definitions in plain Python, and in a search."""

import itertools
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st
from refusals import refused

from bahdanau_tf import search
from bahdanau_tf.search import constraints
from bahdanau_tf.translation.shortlist import of_words

EOS = 1
PATIENT = settings(deadline=None, max_examples=25)


def history_of(tokens, step):
    """A history of a batch from which no row has been removed."""
    return search.History(tokens, step, tf.range(tf.shape(tokens)[0]))


def arguments(tokens, vocabulary=4, length=8):
    """Logits for `tokens` [B, K, step], these padded to `length`, and the step."""
    batch, width, step = np.shape(tokens)
    logits = np.random.default_rng(0).normal(size=[batch, width, vocabulary])
    padded = np.zeros([batch, width, length], np.int32)
    padded[..., :step] = tokens
    return tf.constant(logits, tf.float32), tf.constant(padded), tf.constant(step)


def check(constraint, tokens, is_forbidden):
    """Checks which words are forbidden, and that other logits do not change."""
    logits, padded, step = arguments(tokens)
    wanted = logits.numpy()
    for row, place, word in np.ndindex(*wanted.shape):
        if is_forbidden(row, list(tokens[row][place]), word):
            wanted[row, place, word] = -np.inf
    np.testing.assert_array_equal(constraint(logits, history_of(padded, step)), wanted)


def histories(vocabulary=4, longest=6):
    """int arrays [B, K, step], with a step from 0 to `longest`."""
    shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, longest))

    def tokens(shape):
        size = int(np.prod(shape))
        words = st.lists(st.integers(0, vocabulary - 1), min_size=size, max_size=size)
        return words.map(lambda w: np.array(w, np.int32).reshape(shape))

    return shapes.flatmap(tokens)


@PATIENT
@given(histories(), st.integers(1, 4))
def test_no_repeated_ngrams_equals_its_definition(tokens, n):
    def forbidden(row, past, word):
        del row
        grams = [tuple(past[i : i + n]) for i in range(len(past) - n + 1)]
        return len(past) >= n and (*past[len(past) - n + 1 :], word) in grams

    check(constraints.no_repeated_ngrams(n), tokens, forbidden)


@PATIENT
@given(histories(), st.integers(0, 5))
def test_minimum_length_equals_its_definition(tokens, least):
    rows = np.arange(tokens.shape[0], dtype=np.int32) * 2  # it may differ between rows
    for length, of_row in ((least, [least] * len(rows)), (tf.constant(rows), rows)):
        check(
            constraints.minimum_length(length, EOS),
            tokens,
            lambda row, past, word, of_row=of_row: word == EOS and len(past) < of_row[row],
        )


@PATIENT
@given(histories(), st.lists(st.integers(0, 3), max_size=4))
def test_forbid_equals_its_definition(tokens, ids):
    check(constraints.forbid(ids), tokens, lambda row, past, word: word in ids)


@PATIENT
@given(histories(), st.data())
def test_forced_prefix_equals_its_definition(tokens, data):
    rows = tokens.shape[0]
    width = data.draw(st.integers(0, 4))
    prefix = np.zeros([rows, width], np.int32)
    for row in range(rows):
        length = data.draw(st.integers(0, width))
        words = st.lists(st.integers(1, 3), min_size=length, max_size=length)
        prefix[row, :length] = data.draw(words)

    def forbidden(row, past, word):
        words = [w for w in prefix[row] if w]
        return len(past) < len(words) and word != words[len(past)]

    check(constraints.forced_prefix(prefix), tokens, forbidden)


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.no_repeated_ngrams(1),
        constraints.no_repeated_ngrams(2),
        constraints.minimum_length(4, EOS),
        constraints.minimum_length(tf.constant([3, 4]), EOS),
        constraints.forbid([2, 3]),
        constraints.forced_prefix([[2, 3, 1], [2, 1, 3]], [constraints.forbid([2])]),
    ],
)
def test_a_graph_of_any_shape_forbids_the_same_words(constraint):
    specs = [tf.TensorSpec([None] * 3), *(tf.TensorSpec([None] * n, tf.int32) for n in (3, 0))]
    traced = tf.function(
        lambda logits, tokens, step: constraint(logits, history_of(tokens, step)),
        input_signature=specs,
        autograph=False,
    )
    forbidden = 0
    for tokens in (np.zeros([2, 1, 0]), [[[2, 3], [3, 2]], [[2, 2], [1, 3]]], [[[2, 3, 2, 3]]] * 2):
        logits, padded, step = arguments(tokens)
        wanted = constraint(logits, history_of(padded, step)).numpy()
        forbidden += np.isinf(wanted).sum()
        np.testing.assert_array_equal(traced(logits, padded, step), wanted)
    assert forbidden


def test_no_repeated_ngrams_refuses_a_length_of_zero():
    refused(lambda: constraints.no_repeated_ngrams(0), "n is 0")


# In a search: a bigram table, compared with all sentences enumerated ----------

VOCABULARY = 4
LENGTH = 4


def bigrams(seed):
    return np.random.default_rng(seed).normal(size=[VOCABULARY, VOCABULARY])


def find(function, seed, every, rows=1, **options):
    """What a kind of search finds in a table of bigrams under constraints."""
    logits = tf.constant(bigrams(seed), tf.float32)
    return function(
        lambda ids, state, _: (tf.gather(logits, ids), state, None),
        tf.zeros([rows, 1]),
        start_id=0,
        eos_id=EOS,
        max_length=LENGTH,
        constraints=every,
        **options,
    )


def log_prob(table, tokens):
    normal = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    pairs = itertools.pairwise([0, *tokens])
    return sum(normal[before, after] for before, after in pairs)


def sentences():
    words = [w for w in range(VOCABULARY) if w != EOS]
    for n in range(LENGTH):
        for start in itertools.product(words, repeat=n):
            yield (*start, EOS)


def ngrams(tokens, n):
    return [tokens[i : i + n] for i in range(len(tokens) - n + 1)]


CASES = {
    "minimum length": (constraints.minimum_length(2, EOS), lambda tokens: len(tokens) > 2),
    "forbidden words": (constraints.forbid([2]), lambda tokens: 2 not in tokens),
    "no repeated bigrams": (
        constraints.no_repeated_ngrams(2),
        lambda tokens: len(set(ngrams(tokens, 2))) == len(ngrams(tokens, 2)),
    ),
    "no repeated words": (
        constraints.no_repeated_ngrams(1),
        lambda tokens: len(set(tokens)) == len(tokens),
    ),
    "prefix": (constraints.forced_prefix([[3, 2]]), lambda tokens: tokens[:2] == (3, 2)),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", [*sorted(CASES), "all"])
def test_search_finds_the_best_allowed_sentences(name, seed):
    """Their log-probabilities are the model's, not renormalised."""
    chosen = list(CASES.values()) if name == "all" else [CASES[name]]
    if name == "all":  # the prefix contains the forbidden word
        chosen.remove(CASES["forbidden words"])
    table = bigrams(seed)
    allowed = [
        tokens for tokens in sentences() if all(predicate(tokens) for _, predicate in chosen)
    ]
    allowed.sort(key=lambda tokens: -log_prob(table, tokens))
    count = min(5, len(allowed))
    result = find(
        search.beam_search,
        seed,
        [constraint for constraint, _ in chosen],
        beam_size=VOCABULARY**LENGTH,
        n_best=count,
        length_penalty=search.gnmt_length_penalty(0.0),
    )
    assert result.finished.numpy().all()
    for n, tokens in enumerate(allowed[:count]):
        np.testing.assert_allclose(result.log_probs[0, n], log_prob(table, tokens), atol=1e-4)
        length = int(result.lengths[0, n])
        assert tuple(result.tokens[0, n, :length].numpy()) == tokens


@pytest.mark.parametrize("name", sorted(CASES))
def test_greedy_and_sampled_search_obey_constraints(name):
    constraint, predicate = CASES[name]
    greedy = find(search.greedy_search, 3, [constraint])
    drawn = find(partial(search.sample, seed=1, n_samples=300), 3, [constraint])
    for result in (greedy, drawn):
        for tokens, length in zip(result.tokens.numpy()[0], result.lengths.numpy()[0], strict=True):
            assert predicate(tuple(tokens[:length].tolist()))
    assert len({tuple(t) for t in drawn.tokens.numpy()[0]}) > 1


def only(words):
    """A constraint of a user's own: no words but these."""
    allowed = np.isin(np.arange(VOCABULARY), words)
    return lambda logits, _: tf.where(allowed, logits, -np.inf)


@pytest.mark.parametrize(
    ("every", "left"),
    [
        ([constraints.forbid(range(VOCABULARY))], []),
        (
            [constraints.forced_prefix([[3]]), constraints.forbid([3])],
            [constraints.forced_prefix([[3]], [constraints.forbid([3])])],
        ),
        ([constraints.forbid([0]), only([0])], [constraints.forbid([0])]),
        (
            [constraints.forced_prefix([[2]], [only([1, 3]), only([0, 2])])],
            [constraints.forced_prefix([[2]], [only([1, 3])])],
        ),
    ],
)
def test_a_constraint_that_would_leave_no_word_is_ignored(every, left):
    """A hypothesis is always returned, and obeys those before it."""
    result, wanted = (find(search.beam_search, 2, some, beam_size=3) for some in (every, left))
    assert np.isfinite(result.scores.numpy()).all()
    assert (result.lengths.numpy() > 0).all()
    np.testing.assert_array_equal(result.tokens, wanted.tokens)


@pytest.mark.parametrize("others", [[], [constraints.no_repeated_ngrams(2)]])
@pytest.mark.parametrize("function", [search.beam_search, partial(search.sample, seed=1)])
def test_forbid_refuses_words_outside_the_vocabulary(function, others):
    """The last id of the vocabulary is accepted."""
    find(function, 1, [constraints.forbid([2, VOCABULARY - 1]), *others])
    beyond = [constraints.forbid([2, VOCABULARY]), *others]
    refused(lambda: find(function, 1, beyond), "word 4 is")


def test_forbid_refuses_such_words_in_a_shortlist_and_negative_ones():
    own = tf.constant([[3, -1]])
    many = of_words(constraints.forbid([99_999]), 2, own, VOCABULARY)
    history = history_of(tf.zeros([1, 1, 4], tf.int32), tf.constant(1))
    refused(lambda: tf.function(many)(tf.zeros([1, 1, 4]), history), "word 99999 is forbidden")
    refused(lambda: constraints.forbid([2, -3]), "ids are")


def test_values_per_row_stay_with_their_row_when_others_are_removed():
    history = search.History(
        tokens=tf.zeros([2, 1, 4], tf.int32), step=tf.constant(1), rows=tf.constant([3, 1])
    )
    logits = tf.zeros([2, 1, VOCABULARY])
    least = constraints.minimum_length(tf.constant([0, 1, 0, 2]), EOS)
    least_logits = least(logits, history).numpy()
    assert least_logits[0, 0, EOS] == -np.inf
    assert least_logits[1, 0, EOS] == 0
    prefix = tf.constant([[0, 0], [2, 0], [0, 0], [2, 3]])
    prefix_logits = constraints.forced_prefix(prefix)(logits, history).numpy()
    assert np.flatnonzero(np.isfinite(prefix_logits[0, 0])).tolist() == [3]
    assert np.isfinite(prefix_logits[1, 0]).all()


def test_an_empty_batch_can_be_constrained():
    every = [constraint for constraint, _ in CASES.values()]
    every[-1] = constraints.forced_prefix(tf.zeros([0, 2], tf.int32))
    result = find(search.beam_search, 0, every, rows=0)
    assert result.tokens.shape == (0, 1, LENGTH)
