"""Constraints against their definitions in plain Python, and in a search."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from bahdanau_tf import search
from bahdanau_tf.search import constraints
from bahdanau_tf.translation.shortlist import of_words

EOS = 1
VOCABULARY = 4
LENGTH = 4
PATIENT = settings(deadline=None, max_examples=25)


def history_of(tokens, step):
    """A history of a batch from which no row has been removed."""
    return search.History(tokens, step, tf.range(tf.shape(tokens)[0]))


def apply(constraint, logits, tokens, length, graph=False):
    """Applies a constraint to `tokens`: per row, lists of equal length."""
    padded = np.zeros([*np.shape(tokens)[:2], length], np.int32)
    step = np.shape(tokens)[2]
    padded[..., :step] = tokens
    if not graph:
        history = history_of(tf.constant(padded), tf.constant(step))
        return constraint(tf.constant(logits, tf.float32), history).numpy()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, None]),
            tf.TensorSpec([None, None, None], tf.int32),
            tf.TensorSpec([], tf.int32),
        ],
        autograph=False,
    )
    def traced(logits, tokens, step):
        return constraint(logits, history_of(tokens, step))

    return traced(tf.constant(logits, tf.float32), tf.constant(padded), tf.constant(step)).numpy()


OPTIONS = {"start_id": 0, "eos_id": EOS, "max_length": LENGTH}


def check(constraint, tokens, is_forbidden):
    """Checks which of four words are forbidden, and that other logits do not change."""
    logits = np.random.default_rng(0).normal(size=[*np.shape(tokens)[:2], 4])
    logits = logits.astype(np.float32)
    wanted = logits.copy()
    for row, place, word in np.ndindex(*wanted.shape):
        if is_forbidden(row, list(tokens[row][place]), word):
            wanted[row, place, word] = -np.inf
    for graph in (False, True):
        np.testing.assert_array_equal(apply(constraint, logits, tokens, 8, graph), wanted)


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
        return len(past) >= n and (*past[len(past) - n + 1 :], word) in ngrams(tuple(past), n)

    check(constraints.no_repeated_ngrams(n), tokens, forbidden)


@PATIENT
@given(histories(), st.integers(0, 5))
def test_minimum_length_equals_its_definition(tokens, least):
    def forbidden(row, past, word):
        return word == EOS and len(past) < least

    check(constraints.minimum_length(least, EOS), tokens, forbidden)


@PATIENT
@given(histories())
def test_minimum_length_may_differ_between_rows(tokens):
    def forbidden(row, past, word):
        return word == EOS and len(past) < 2 * row

    least = tf.range(tokens.shape[0]) * 2
    check(constraints.minimum_length(least, EOS), tokens, forbidden)


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


def test_no_repeated_ngrams_refuses_a_length_of_zero():
    with pytest.raises(ValueError, match="n is 0"):
        constraints.no_repeated_ngrams(0)


# In a search: a bigram table, compared with all sentences enumerated ----------


def bigrams(seed):
    return np.random.default_rng(seed).normal(size=[VOCABULARY, VOCABULARY])


def step_of(table):
    logits = tf.constant(table, tf.float32)
    return lambda ids, state, _: (tf.gather(logits, ids), state, None)


def log_prob(table, tokens):
    normal = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    pairs = itertools.pairwise([0, *tokens])
    return sum(normal[one, two] for one, two in pairs)


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


def searched(find, table, **options):
    """A search of one sentence by bigrams."""
    return find(step_of(table), tf.zeros([1, 1]), **OPTIONS, **options)


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
    result = searched(
        search.beam_search,
        table,
        beam_size=VOCABULARY**LENGTH,
        n_best=count,
        length_penalty=search.gnmt_length_penalty(0.0),
        constraints=[constraint for constraint, _ in chosen],
    )
    assert result.finished.numpy().all()
    for n, tokens in enumerate(allowed[:count]):
        np.testing.assert_allclose(result.log_probs[0, n], log_prob(table, tokens), atol=1e-4)
        length = int(result.lengths[0, n])
        assert tuple(result.tokens[0, n, :length].numpy()) == tokens


@pytest.mark.parametrize("name", sorted(CASES))
def test_greedy_and_sampled_search_obey_constraints(name):
    constraint, predicate = CASES[name]
    own = {"constraints": [constraint]}
    greedy = searched(search.greedy_search, bigrams(3), **own)
    drawn = searched(search.sample, bigrams(3), seed=1, n_samples=300, **own)
    for result in (greedy, drawn):
        for tokens, length in zip(result.tokens.numpy()[0], result.lengths.numpy()[0], strict=True):
            assert predicate(tuple(tokens[:length].tolist()))
    assert len({tuple(t) for t in drawn.tokens.numpy()[0]}) > 1


def only(words):
    """A constraint of a user's own: no words but these."""
    allowed = np.isin(np.arange(VOCABULARY), words)
    return lambda logits, _: tf.where(allowed, logits, -np.inf)


@pytest.mark.parametrize(
    ("contradictory", "obeyed"),
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
def test_a_constraint_that_would_leave_no_word_is_ignored(contradictory, obeyed):
    """A hypothesis is always returned, and obeys those before it."""
    result, wanted = (
        searched(search.beam_search, bigrams(2), beam_size=3, constraints=some)
        for some in (contradictory, obeyed)
    )
    assert np.isfinite(result.scores.numpy()).all()
    assert (result.lengths.numpy() > 0).all()
    np.testing.assert_array_equal(result.tokens, wanted.tokens)


@pytest.mark.parametrize("others", [[], [constraints.no_repeated_ngrams(2)]])
@pytest.mark.parametrize("find", [search.beam_search, search.sample])
def test_forbid_refuses_words_outside_the_vocabulary(find, others):
    """The last id of the vocabulary is accepted."""
    options = {"seed": 1} if find is search.sample else {}

    def find_without(ids):
        searched(find, bigrams(1), constraints=[constraints.forbid(ids), *others], **options)

    find_without([2, VOCABULARY - 1])
    with pytest.raises(ValueError, match=r"word 4 is .* wanted ids below 4"):
        find_without([2, VOCABULARY])


def test_forbid_refuses_such_words_in_a_shortlist_and_negative_ones():
    own = tf.constant([[3, -1]])
    many = of_words(constraints.forbid([99_999]), 2, own, VOCABULARY)
    history = history_of(tf.zeros([1, 1, 4], tf.int32), tf.constant(1))
    with pytest.raises(ValueError, match="word 99999 is forbidden"):
        tf.function(many)(tf.zeros([1, 1, 4]), history)
    with pytest.raises(ValueError, match="ids are"):
        constraints.forbid([2, -3])


def test_each_row_has_its_own_prefix():
    prefix = constraints.forced_prefix(tf.constant([[3, 2], [2, 0], [0, 0]]))
    step = step_of(bigrams(1))
    result = search.beam_search(step, tf.zeros([3, 1]), constraints=[prefix], **OPTIONS)
    tokens = result.tokens.numpy()[:, 0]
    assert tokens[0, :2].tolist() == [3, 2]
    assert tokens[1, 0] == 2
    free = searched(search.beam_search, bigrams(1))
    np.testing.assert_array_equal(tokens[2], free.tokens[0, 0])


def test_values_per_row_stay_with_their_row_when_others_are_removed():
    tokens, rows = tf.zeros([2, 1, 4], tf.int32), tf.constant([3, 1])
    history = search.History(tokens=tokens, step=tf.constant(1), rows=rows)
    logits = tf.zeros([2, 1, VOCABULARY])
    least = constraints.minimum_length(tf.constant([0, 1, 0, 2]), EOS)
    left = least(logits, history).numpy()
    assert left[0, 0, EOS] == -np.inf
    assert left[1, 0, EOS] == 0
    prefix = tf.constant([[0, 0], [2, 0], [0, 0], [2, 3]])
    left = constraints.forced_prefix(prefix)(logits, history).numpy()
    assert np.flatnonzero(np.isfinite(left[0, 0])).tolist() == [3]
    assert np.isfinite(left[1, 0]).all()


def test_an_empty_batch_can_be_constrained():
    every = [constraint for constraint, _ in CASES.values()]
    every[-1] = constraints.forced_prefix(tf.zeros([0, 2], tf.int32))
    step = step_of(bigrams(0))
    result = search.beam_search(step, tf.zeros([0, 1]), constraints=every, **OPTIONS)
    assert result.tokens.shape == (0, 1, LENGTH)
