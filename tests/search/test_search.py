"""Search, compared with exhaustive enumeration and NumPy references.

The "model" is a table with random logits and attention weights for each row and each prefix, so
that no regularity helps the search.
"""

import inspect
import itertools
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st
from refusals import refused

from bahdanau_tf import RNNSearch, search
from bahdanau_tf.search import constraints, selections

EOS = 1
START = 0
IDS = {"start_id": START, "eos_id": EOS}
SOURCE_LENGTH = 3
NO_DEADLINE = settings(deadline=None, max_examples=10)


class Table:
    """Logits and weights for every prefix over a vocabulary of V words."""

    def __init__(self, seed, vocabulary=3, length=3, rows=2, scale=2.0):
        rng = np.random.default_rng(seed)
        nodes = sum(vocabulary**i for i in range(length + 1))
        self.vocabulary = vocabulary
        self.length = length
        self.rows = rows
        self.logits = scale * rng.normal(size=[rows, nodes, vocabulary])
        weights = np.exp(rng.normal(size=[rows, nodes, SOURCE_LENGTH]))
        self.weights = weights / weights.sum(-1, keepdims=True)

    def state(self, rows=None):
        rows = tf.range(self.rows) if rows is None else tf.constant(rows)
        return {"row": rows, "node": tf.fill(tf.shape(rows), -1)}

    def step(self, ids, state, memory=()):
        first = state["node"] < 0
        node = tf.where(first, 0, state["node"] * self.vocabulary + ids + 1)
        # Impossible hypotheses may have any id: keep the node in the table.
        node = tf.minimum(node, self.logits.shape[1] - 1)
        where = tf.stack([state["row"], node], axis=-1)
        logits = tf.gather_nd(tf.constant(self.logits, tf.float32), where)
        weights = tf.gather_nd(tf.constant(self.weights, tf.float32), where)
        return logits, {"row": state["row"], "node": node}, weights

    def path(self, tokens):
        """Returns the node before each token."""
        nodes = [0]
        for token in tokens[:-1]:
            nodes.append(nodes[-1] * self.vocabulary + token + 1)
        return nodes

    def log_prob(self, row, tokens):
        logits = self.logits[row, self.path(tokens)]
        with np.errstate(invalid="ignore"):  # some tests use NaN
            norm = np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        log_probs = logits - norm
        return log_probs[np.arange(len(tokens)), tokens].sum()

    def coverage(self, row, tokens):
        return self.weights[row, self.path(tokens)].sum(axis=0)


def everything(vocabulary, length):
    """All finished and all unfinished hypotheses of at most `length` words."""
    others = [word for word in range(vocabulary) if word != EOS]
    finished = [
        (*words, EOS) for n in range(length) for words in itertools.product(others, repeat=n)
    ]
    return finished, list(itertools.product(others, repeat=length))


def divide_by_length(lengths):
    """log p(y | x) / |y|: a length penalty by a user."""
    return lengths


LENGTH_PENALTIES = {
    "none": (search.gnmt_length_penalty(0.0), lambda n: 1.0),
    "divide": (divide_by_length, lambda n: n),
    "one": (lambda _: 1.0, lambda n: 1.0),
    "gnmt": (search.gnmt_length_penalty(0.7), lambda n: ((5 + n) / 6) ** 0.7),
    "gnmt1": (search.gnmt_length_penalty(), lambda n: (5 + n) / 6),
}


def ranked(candidates, score):
    """(tokens, score, finished) of hypotheses: finished ones first, of each kind the best first."""
    every = [(tokens, score(tokens), tokens[-1] == EOS) for tokens in candidates]
    return sorted(every, key=lambda hypothesis: (not hypothesis[2], -hypothesis[1]))


def reference_beam(table, row, beam, n_best, length, divisor, shrink=False):
    """Plain beam search without early stopping, in float64."""
    live, finished, ended = [()], [], 0
    for _ in range(length):
        places = beam - ended if shrink else beam
        grown = [
            (*tokens, word)
            for tokens in live
            for word in range(table.vocabulary)
            if table.log_prob(row, (*tokens, word)) > -np.inf
        ]
        grown.sort(key=lambda tokens: -table.log_prob(row, tokens))
        kept = grown[:places]
        finished += [tokens for tokens in kept if tokens[-1] == EOS]
        ended = len(finished)
        live = [tokens for tokens in kept if tokens[-1] != EOS]

    def score(tokens):
        return table.log_prob(row, tokens) / divisor(len(tokens))

    return ranked(finished + live, score)[:n_best]


def hypotheses(result, row):
    """The (tokens, score, finished) of a row, without empty places."""
    fields = (result.tokens, result.lengths, result.scores, result.finished)
    places = zip(*(field[row].numpy().tolist() for field in fields), strict=True)
    return [(tuple(tokens[:n]), score, ends) for tokens, n, score, ends in places if n]


def assert_same(actual, wanted):
    """Compares hypotheses in order; scores may differ by 1e-4."""
    assert len(actual) == len(wanted)
    for ours, theirs in zip(actual, wanted, strict=True):
        assert ours[1] == pytest.approx(theirs[1], abs=1e-4)
        assert ours[2] == theirs[2]
    distinct = np.diff([score for _, score, _ in wanted])
    if not len(distinct) or np.abs(distinct).min() > 1e-4:
        assert [hypothesis[0] for hypothesis in actual] == [hypothesis[0] for hypothesis in wanted]


def by_features(step, state, counts=None, find=search.beam_search, normalizer=None, **options):
    """A search by `step`, whose logits are the `Features` of the hypotheses."""

    def to_logits(values):
        if counts is not None:
            counts.append(int(values.shape[0] * values.shape[1]))
        return tf.identity(values), normalizer(values) if normalizer else None

    def with_features(ids, state, memory):
        logits, state, weights = step(ids, state, memory)
        return search.Features(logits, to_logits), state, weights

    return find(with_features, state, **IDS, **options)


def run(table, beam_size, find=partial(search.beam_search, **IDS), **options):
    options.setdefault("max_length", table.length)
    return find(table.step, table.state(), beam_size=beam_size, **options)


seeds = st.integers(0, 2**32 - 1)
penalties = st.sampled_from(sorted(LENGTH_PENALTIES))


@NO_DEADLINE
@given(seeds, st.integers(2, 4), st.integers(1, 4), penalties)
def test_a_beam_as_wide_as_the_space_is_exhaustive(seed, vocabulary, length, penalty):
    table = Table(seed, vocabulary, length)
    finished, unfinished = everything(vocabulary, length)
    function, divisor = LENGTH_PENALTIES[penalty]
    width = len(finished) + len(unfinished)
    result = run(table, width, n_best=width, length_penalty=function)
    best = run(table, width, length_penalty=function)
    for row in range(table.rows):
        wanted = ranked(
            finished + unfinished,
            lambda tokens, row=row: table.log_prob(row, tokens) / divisor(len(tokens)),
        )
        assert_same(hypotheses(result, row), wanted)
        assert_same(hypotheses(best, row), wanted[:1])


@NO_DEADLINE
@given(seeds, penalties, st.floats(0.0, 2.0))
def test_ranking_with_coverage_penalty_equals_enumeration(seed, penalty, beta):
    table = Table(seed, vocabulary=3, length=4)
    function, divisor = LENGTH_PENALTIES[penalty]
    finished, unfinished = everything(3, 4)
    mask = np.array([[True, True, True], [True, True, False]])
    result = run(
        table,
        len(finished) + len(unfinished),
        n_best=len(finished),
        length_penalty=function,
        coverage_penalty=search.gnmt_coverage_penalty(beta, tf.constant(mask)),
    )
    for row in range(2):

        def score(tokens, row=row):
            covered = np.minimum(table.coverage(row, tokens), 1.0)
            bonus = beta * np.log(covered[mask[row]]).sum()
            return table.log_prob(row, tokens) / divisor(len(tokens)) + bonus

        assert_same(hypotheses(result, row), ranked(finished, score))


@pytest.mark.parametrize("find", [partial(search.beam_search, **IDS), by_features])
@settings(NO_DEADLINE, max_examples=15)
@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 5), penalties, st.booleans())
def test_a_narrow_beam_equals_beam_search_without_early_stopping(
    find, seed, beam_size, n_best, length, penalty, shrink
):
    """Early stopping loses nothing, nor do `Features`; `shrink` does what the original did."""
    n_best = min(n_best, beam_size)
    table = Table(seed, vocabulary=4, length=length)
    function, divisor = LENGTH_PENALTIES[penalty]
    result = run(table, beam_size, find, n_best=n_best, length_penalty=function, shrink=shrink)
    for row in range(table.rows):
        wanted = reference_beam(table, row, beam_size, n_best, length, divisor, shrink)
        assert_same(hypotheses(result, row), wanted)


@NO_DEADLINE
@given(seeds, st.integers(2, 5), st.integers(1, 5), penalties)
def test_a_beam_of_one_equals_greedy_search(seed, vocabulary, length, penalty):
    table = Table(seed, vocabulary, length, rows=3)
    function, divisor = LENGTH_PENALTIES[penalty]
    beam = run(table, 1, length_penalty=function)
    greedy = search.greedy_search(
        table.step, table.state(), **IDS, max_length=length, length_penalty=function
    )
    for beam_field, greedy_field in zip(beam, greedy, strict=True):
        np.testing.assert_allclose(beam_field, greedy_field, atol=1e-5)
    for row in range(table.rows):
        tokens = ()
        while len(tokens) < length and EOS not in tokens:
            node = table.path((*tokens, 0))[-1]
            tokens += (int(table.logits[row, node].argmax()),)
        score = table.log_prob(row, tokens) / divisor(len(tokens))
        wanted = [(tokens, score, EOS in tokens)]
        assert_same(hypotheses(greedy, row), wanted)


@NO_DEADLINE
@given(seeds, st.integers(1, 5))
def test_log_probs_and_weights_belong_to_the_returned_tokens(seed, beam):
    table = Table(seed, vocabulary=5, length=4, rows=3)
    result = run(table, beam, n_best=beam)
    for row, n in itertools.product(range(3), range(beam)):
        length = int(result.lengths[row, n])
        tokens = result.tokens[row, n, :length].numpy()
        assert not result.tokens[row, n, length:].numpy().any()
        assert (EOS in tokens) == bool(result.finished[row, n])
        if not length:
            continue
        np.testing.assert_allclose(result.log_probs[row, n], table.log_prob(row, tokens), atol=1e-4)
        weights = result.weights[row, n].numpy()
        np.testing.assert_allclose(
            weights[:length], table.weights[row, table.path(tokens)], atol=1e-6
        )
        assert not weights[length:].any()


@NO_DEADLINE
@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_row_does_not_depend_on_other_rows(seed, limits):
    table = Table(seed, vocabulary=4, length=4, rows=len(limits))
    options = {**IDS, "beam_size": 4, "n_best": 3, "length_penalty": divide_by_length}
    together = search.beam_search(
        table.step, table.state(), max_length=tf.constant(limits), **options
    )
    assert together.tokens.shape[-1] == max(limits)
    for row, limit in enumerate(limits):
        alone = search.beam_search(table.step, table.state([row]), max_length=limit, **options)
        for field, alone_field in zip(together, alone, strict=True):
            ours = field[row].numpy()
            if ours.ndim > 1:  # T is the longest row's
                assert not ours[:, limit:].any()
                ours = ours[:, :limit]
            np.testing.assert_allclose(ours, alone_field[0], atol=1e-5)


def test_unfinished_hypotheses_are_returned_if_none_finishes():
    table = Table(seed=5, vocabulary=3, length=4)
    table.logits[:, :, EOS] = -np.inf
    result = run(table, 4, n_best=4)
    assert not result.finished.numpy().any()
    assert (result.lengths.numpy() == 4).all()
    for row in range(2):
        wanted = reference_beam(table, row, 4, 4, 4, lambda n: (5 + n) / 6)
        assert_same(hypotheses(result, row), wanted)


def test_places_without_a_hypothesis_are_empty():
    result = run(Table(seed=1, vocabulary=2, length=1), 7, n_best=7)
    np.testing.assert_array_equal(result.lengths[0], [1, 1, 0, 0, 0, 0, 0])
    assert np.isfinite(result.scores.numpy()).all()
    assert result.scores.numpy()[:, 2:].max() <= -1e9


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_scores_are_finite_for_any_logits(poison):
    table = Table(seed=2, vocabulary=4, length=3, rows=3)
    clean = run(table, 4, n_best=2)
    table.logits[1] = poison
    poisoned = run(table, 4, n_best=2)
    assert np.isfinite(poisoned.scores.numpy()).all()
    assert np.isfinite(poisoned.log_probs.numpy()).all()
    assert (poisoned.lengths.numpy()[1] == 0).all()
    for clean_field, poisoned_field in zip(clean, poisoned, strict=True):
        np.testing.assert_array_equal(clean_field[0], poisoned_field[0])
        np.testing.assert_array_equal(clean_field[2], poisoned_field[2])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beam_size", [2, 3, 4])
def test_nan_logits_of_one_hypothesis_do_not_change_others(seed, beam_size):
    table = Table(seed, vocabulary=3, length=3, rows=1)
    table.logits[0, 0] = [0.2, -5.0, 0.1]
    table.logits[0, 1] = np.nan  # after word 0, the most probable
    result = run(table, beam_size, n_best=beam_size)
    wanted = reference_beam(table, 0, beam_size, beam_size, 3, lambda n: (5 + n) / 6)
    assert_same(hypotheses(result, 0), wanted)


@pytest.mark.parametrize("weights", [True, False])
def test_an_empty_batch_is_searched(weights):
    table = Table(seed=0)

    def step(ids, state, memory=()):
        logits, state, attention = table.step(ids, state)
        return logits, state, attention if weights else None

    state = table.state(np.zeros([0], np.int32))
    result = search.beam_search(step, state, **IDS, max_length=5, n_best=2)
    assert result.tokens.shape == (0, 2, 5)
    assert result.scores.shape == (0, 2)
    if weights:
        assert result.weights.shape == (0, 2, 5, SOURCE_LENGTH)
    else:
        assert result.weights is None
    limits = tf.zeros([0], tf.int32)
    result = search.greedy_search(step, state, **IDS, max_length=limits)
    assert result.tokens.shape[0] == 0


def ending_at_once(vocabulary, logit):
    """A step after which the end is the most probable word, and the shapes of its calls."""
    calls = []

    def step(ids, state, memory=()):
        calls.append(ids.shape)
        return tf.one_hot(tf.fill(tf.shape(ids), EOS), vocabulary, logit, 0.0), state, None

    return step, calls


def test_a_row_stops_if_its_n_best_cannot_change():
    """The end is certain at once; without length penalty one step is enough."""
    step, calls = ending_at_once(5, 20.0)
    options = {**IDS, "max_length": 50}
    penalty = search.gnmt_length_penalty(0.0)
    search.beam_search(step, tf.zeros([2, 1]), beam_size=3, length_penalty=penalty, **options)
    assert calls == [(2, 3)]
    calls.clear()
    search.beam_search(step, tf.zeros([2, 1]), beam_size=3, n_best=3, **options)
    assert 1 < len(calls) < 10
    assert set(calls) == {(2, 3)}
    calls.clear()
    search.greedy_search(step, tf.zeros([2, 1]), **options)
    assert calls == [(2, 1)]


@pytest.mark.parametrize(("shrink", "least", "most"), [(False, 20, 40), (True, 2, 6)])
def test_shrink_stops_if_all_hypotheses_have_finished(shrink, least, most):
    """With `divide_by_length`, only `shrink` makes the search stop early."""
    step, calls = ending_at_once(3, 0.1)
    options = {**IDS, "beam_size": 4, "max_length": 40, "length_penalty": divide_by_length}
    search.beam_search(step, tf.zeros([1, 1]), shrink=shrink, **options)
    assert least <= len(calls) <= most


def test_bfloat16_logits_are_normalised_in_float32():
    table = Table(seed=4, vocabulary=4, length=3)
    table.logits = np.round(table.logits)  # so that bfloat16 is exact

    def step(ids, state, memory=()):
        logits, state, weights = table.step(ids, state)
        return (tf.cast(logits, tf.bfloat16), state, tf.cast(weights, tf.bfloat16))

    half = search.beam_search(step, table.state(), **IDS, max_length=3)
    full = run(table, 12)
    assert half.scores.dtype == half.weights.dtype == tf.float32
    np.testing.assert_array_equal(half.tokens, full.tokens)
    np.testing.assert_allclose(half.scores, full.scores, atol=1e-6)


@pytest.mark.slow
def test_shrink_equals_the_original_program(shared):
    """8 sources in one batch, each with its own limits, with `shrink`."""
    folder = shared("groundhog") / "rnnsearch"
    model = RNNSearch.from_groundhog(folder / "params.npz")
    sources = [np.load(folder / "forward.npz")[f"s{n:02}_x"] for n in range(8)]
    lengths = np.array([len(source) for source in sources])
    padded = [np.pad(x, [0, max(lengths) - len(x)]) for x in sources]
    runs = dict(np.load(folder / "beam.npz"))

    @tf.function(autograph=False)
    def beams(minimum, beam_size, ignore_unknown):
        memory, state = model.encode(tf.constant(np.array(padded), tf.int32))
        forbidden = [constraints.forbid([1])] if ignore_unknown else []
        return search.beam_search(
            model.decode_step,
            state,
            memory,
            start_id=model.start_id,
            eos_id=model.target_vocabulary_size - 1,
            max_length=tf.constant(3 * lengths),
            beam_size=beam_size,
            n_best=beam_size,
            length_penalty=search.gnmt_length_penalty(0.0),
            constraints=[constraints.minimum_length(minimum, 26), *forbidden],
            shrink=True,
        )

    compared = 0
    for beam_size, ignore, half in itertools.product((3, 10), (False, True), (0, 1)):
        minimum = lengths // 2 if half else np.ones_like(lengths)
        result = beams(tf.constant(minimum, tf.int32), beam_size, ignore)
        for run in np.flatnonzero(
            (runs["run_n_samples"] == beam_size)
            & (runs["run_minlen_is_half"] == half)
            & (runs["run_ignore_unk"] == ignore)
            & (runs["run_n_calls"] == 1)
        ):
            row, start, stop = (runs["run_src"][run], *runs["run_start"][run : run + 2])
            wanted = [
                (tuple(tokens[:length].tolist()), -cost, True)
                for tokens, length, cost in zip(
                    runs["hyp_tokens"][start:stop],
                    runs["hyp_len"][start:stop],
                    runs["hyp_cost"][start:stop],
                    strict=True,
                )
            ]
            ours = [hypothesis for hypothesis in hypotheses(result, row) if hypothesis[2]]
            assert_same(ours, wanted)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (search.beam_search, {"n_best": 3, "beam_size": 2}, "n_best is 3"),
        (search.beam_search, {"n_best": 0}, "n_best is 0"),
        (search.beam_search, {"max_length": 0}, "max_length is 0"),
        (search.sample, {"seed": 1, "temperature": 0.0}, "temperature is 0"),
        (search.sample, {"seed": 1, "top_k": 0}, "top_k is 0"),
        (search.sample, {"seed": 1, "top_p": 1.5}, "top_p is 1.5"),
        (search.sample, {"seed": 1, "n_samples": 0}, "n_samples is 0"),
    ],
)
def test_options_out_of_range_are_refused(function, options, message):
    table = Table(seed=0)
    options = {"max_length": 3, **options}
    refused(lambda: function(table.step, table.state(), **IDS, **options), message)


def test_penalties_out_of_range_are_refused():
    refused(lambda: search.gnmt_length_penalty(-1), "alpha is -1")
    refused(lambda: search.gnmt_coverage_penalty(-1, tf.ones([1, 1], tf.bool)), "beta is -1")


def test_coverage_penalty_needs_weights():
    refused(
        lambda: search.beam_search(
            lambda ids, state, _: (tf.zeros([1, 12, 3]), state, None),
            tf.zeros([1, 1]),
            **IDS,
            max_length=2,
            coverage_penalty=search.gnmt_coverage_penalty(1.0, tf.ones([1, 1], tf.bool)),
        ),
        "coverage_penalty",
    )


def test_a_row_that_has_stopped_is_removed_from_the_batch():
    """Row r ends after r words and is not computed in later steps."""
    seen = []

    def step(ids, state, memory):
        seen.append((ids.shape[0], memory.numpy().tolist()))
        ends = (state == 0)[..., tf.newaxis]
        logits = tf.where(ends, tf.one_hot(EOS, 4), tf.one_hot(2, 4))
        return 50.0 * logits, state - 1, None

    lengths = tf.constant([3, 0, 4, 1, 0])
    result = search.beam_search(
        step,
        lengths,
        lengths,
        **IDS,
        beam_size=2,
        max_length=20,
        length_penalty=search.gnmt_length_penalty(0.0),
    )
    assert result.lengths.numpy()[:, 0].tolist() == [4, 1, 5, 2, 1]
    assert result.finished.numpy().all()
    left = [[3, 0, 4, 1, 0], [3, 4, 1], [3, 4], [3, 4], [4]]
    assert seen == [(len(rest), rest) for rest in left]


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 900),
    count=st.integers(1, 7),
    levels=st.sampled_from([2, 5, 1000]),
)
@NO_DEADLINE
def test_top_continuations_equal_top_k(seed, size, count, levels):
    """Also with many equal or infinite logits, and any vocabulary size."""
    rng = np.random.default_rng(seed)
    logits = rng.integers(0, levels, [2, 3, size]).astype(np.float32)
    logits[rng.random(logits.shape) < 0.2] = -np.inf
    offset = rng.integers(-levels, levels, [2, 3]).astype(np.float32)
    offset[rng.random(offset.shape) < 0.2] = -np.inf
    chunks = selections._chunks(tf.constant(logits))
    best = selections.top_continuations(chunks, tf.constant(offset[..., None]), count)
    every = (logits + offset[..., None]).reshape(2, 3 * size)
    every = np.pad(every, [[0, 0], [0, count]], constant_values=-np.inf)
    wanted = tf.math.top_k(every, count)
    np.testing.assert_array_equal(best.log_probs, wanted.values)
    real = np.isfinite(wanted.values)
    for ours, theirs in (
        (best.tokens, wanted.indices % size),
        (best.parents, wanted.indices // size),
    ):
        np.testing.assert_array_equal(np.where(real, ours, 0), np.where(real, theirs, 0))
    assert (best.tokens.numpy() < size).all()
    assert (best.parents.numpy() < 3).all()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 700])
@pytest.mark.parametrize("forbidden", [[], [0]])
def test_a_vocabulary_of_unknown_size_gives_the_same_continuations(size, forbidden):
    random = np.random.default_rng(size)
    logits = random.normal(size=(2, 3, size)).astype(np.float32)
    so_far = random.normal(size=(2, 3)).astype(np.float32)
    history = selections.History(tf.zeros([2, 3, 4], tf.int32), tf.constant(0), tf.range(2))
    chosen = [constraints.forbid(forbidden)] if forbidden else []

    def best(logits):
        return selections.best_of_all(logits, so_far, history, chosen, 3)

    unknown = [tf.TensorSpec([None, 3, None])]
    continuations = tf.function(best, input_signature=unknown, autograph=False)(logits)
    total = logits.astype(np.float64)
    total -= np.log(np.exp(total).sum(-1, keepdims=True))
    total += so_far[..., None]
    total[..., forbidden] = -np.inf
    flat = total.reshape(2, -1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, :3]
    wanted = np.take_along_axis(flat, order, 1)
    np.testing.assert_allclose(continuations.log_probs, wanted, rtol=1e-4)
    possible = np.isfinite(wanted)
    for name, values in (("parents", order // size), ("tokens", order % size)):
        np.testing.assert_array_equal(
            getattr(continuations, name).numpy()[possible], values[possible]
        )


@pytest.mark.parametrize("size", [1, 3, 640, 1009])
def test_log_normalizer_equals_numpys(size):
    logits = 8 * np.random.default_rng(size).normal(size=[4, 2, size])
    logits[0, 0, 0] = 300.0
    logits[1, 1, 1:] = -np.inf
    chunks = selections._chunks(tf.constant(logits, tf.float32))
    wanted = np.logaddexp.reduce(logits, axis=-1)
    normalizers = selections.log_normalizer(chunks)
    np.testing.assert_allclose(normalizers, wanted, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_forbidding_few_words_equals_a_constraint_on_all_logits(seed):
    """Compared with the same constraints as functions of all logits."""
    rng = np.random.default_rng(seed)
    numbers = 3 * rng.normal(size=[500, 500])
    best = numbers.argmax(-1)[:3].tolist()
    numbers[:, best] += 20  # each hypothesis has them before all others
    table = tf.constant(numbers, tf.float32)
    few = [constraints.forbid(best), constraints.minimum_length(2, EOS)]

    def beams(chosen):
        return search.beam_search(
            lambda ids, state, _: (tf.gather(table, ids), state, None),
            tf.zeros([2, 1]),
            **IDS,
            beam_size=4,
            n_best=4,
            max_length=6,
            constraints=chosen,
        )

    dense = [
        lambda logits, history, constraint=constraint: constraint(logits, history)
        for constraint in few
    ]
    by_few, by_dense = beams(few), beams(dense)
    np.testing.assert_array_equal(by_few.tokens, by_dense.tokens)
    np.testing.assert_allclose(by_few.scores, by_dense.scores, atol=1e-5)
    assert not set(best) & set(by_few.tokens.numpy().ravel().tolist()) - {0}


# Sampling --------------------------------------------------------------------

LOGITS = np.array([1.0, 0.0, 2.0, -1.0, 0.5])  # word 1 is the end symbol


def draw(count, logits=LOGITS, rows=1, **options):
    """Samples one word `count` times for each row, `[rows, count]`."""
    table = tf.constant(logits, tf.float32)

    def step(ids, state, memory=()):
        shape = tf.concat([tf.shape(ids), tf.shape(table)], axis=0)
        return tf.broadcast_to(table, shape), state, None

    options = {"seed": 1, "max_length": 1, **options}
    return search.sample(step, tf.zeros([rows, 1]), **IDS, n_samples=count, **options)


def assert_frequencies(tokens, probabilities):
    """Frequencies are within five standard deviations of a binomial."""
    tokens = np.ravel(tokens)
    for word, p in enumerate(probabilities):
        deviation = np.sqrt(p * (1 - p) / tokens.size)
        share = np.mean(tokens == word)
        assert abs(share - p) <= 5 * deviation, (word, share, p)


def softmax(logits):
    exponentials = np.exp(logits - np.max(logits))
    return exponentials / exponentials.sum()


@pytest.mark.parametrize(
    ("logits", "option"),
    [
        # Divided by the temperature, the logits would overflow.
        ([0.0, 1.0, 20.0, 5.0], {"temperature": 1e-38}),
        ([0.0, 1.0, 1.5, 1.0], {"top_p": 1e-50}),  # 0 as a float32
    ],
)
def test_at_a_tiny_temperature_or_share_the_best_word_is_drawn(logits, option):
    assert set(draw(50, np.array(logits), **option).tokens.numpy().ravel().tolist()) == {2}


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_samples_follow_the_distribution(temperature):
    result = draw(20_000, temperature=temperature)
    assert_frequencies(result.tokens, softmax(LOGITS / temperature))
    log_probs = np.log(softmax(LOGITS))[result.tokens.numpy()[..., 0]]
    np.testing.assert_allclose(result.log_probs, log_probs, atol=1e-5)


def test_top_k_and_top_p_sample_from_the_most_probable_words():
    probabilities = softmax(LOGITS)
    order = np.argsort(-probabilities)
    sums = np.cumsum(probabilities[order])
    of_top_p = [({"top_p": p}, 1 + np.searchsorted(sums, p)) for p in (0.01, 0.5, 0.9, 0.999)]
    for option, count in [*(({"top_k": k}, k) for k in (1, 2, 4, 9)), *of_top_p]:
        kept = np.zeros(5)
        kept[order[:count]] = probabilities[order[:count]]
        assert_frequencies(draw(10_000, **option).tokens, kept / kept.sum())
    # Both together: top_p is a share of the probability that top_k keeps.
    assert sums[0] / sums[1] > 0.7
    assert set(np.ravel(draw(500, top_k=2, top_p=0.7).tokens)) == {order[0]}
    assert len(set(np.ravel(draw(500, top_k=2, top_p=0.8).tokens))) == 2


def test_hypotheses_are_sampled_with_their_probability():
    table = Table(seed=3, vocabulary=3, length=2, rows=1, scale=1.0)
    result = search.sample(table.step, table.state(), **IDS, max_length=2, seed=7, n_samples=20_000)
    drawn = [tokens for tokens, _, _ in hypotheses(result, 0)]
    finished, unfinished = everything(3, 2)
    for tokens in finished + unfinished:
        p = np.exp(table.log_prob(0, tokens))
        share = np.mean([tokens_drawn == tokens for tokens_drawn in drawn])
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 20_000)


def test_equal_seeds_give_equal_samples_and_others_differ():
    first = draw(50, seed=3, rows=2)
    again = draw(50, seed=tf.constant(3), rows=2)
    other = draw(50, seed=4, rows=2)
    np.testing.assert_array_equal(first.tokens, again.tokens)
    assert (first.tokens.numpy() != other.tokens.numpy()).any()
    # Steps and rows are sampled independently.
    logits = [0.0, -np.inf, 0.0]
    long = draw(1, logits, rows=200, max_length=20).tokens.numpy()[:, 0] / 2
    correlation = np.corrcoef(long, rowvar=False) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(200)
    assert len({tuple(row) for row in long}) == 200


def test_a_sample_does_not_depend_on_other_rows():
    table = Table(seed=3, vocabulary=4, length=4, rows=4)
    options = {**IDS, "max_length": 4, "seed": 5, "n_samples": 3}
    first = search.sample(table.step, table.state([0, 1]), **options)
    second = search.sample(table.step, table.state([0, 2, 3]), **options)
    np.testing.assert_array_equal(first.tokens[0], second.tokens[0])
    assert (first.tokens[1].numpy() != second.tokens[1].numpy()).any()


def test_sampling_a_row_of_nan_gives_finite_scores():
    result = draw(3, logits=np.full(5, np.nan), rows=2)
    assert (result.lengths.numpy() == 0).all()
    assert np.isfinite(result.scores.numpy()).all()


@pytest.mark.parametrize("run", [search.beam_search, search.greedy_search, search.sample])
def test_the_default_length_penalty_is_that_of_gnmt(run):
    """((5 + 7) / 6)^1."""
    penalty = inspect.signature(run).parameters["length_penalty"].default
    assert penalty(7.0) == 2.0


# Steps that give `Features`: logits of the live hypotheses only ----------------


@pytest.mark.parametrize("size", [490, 640, 1009])
@pytest.mark.parametrize("forbidden", [[], [0], [0, 7]])
@pytest.mark.parametrize("normalizer", [None, partial(tf.reduce_logsumexp, axis=-1)])
def test_a_large_vocabulary_gives_the_same_hypotheses(size, forbidden, normalizer):
    """A vocabulary in chunks, with and without padding, and in one piece."""
    random = np.random.default_rng(size)
    table = 4 * random.normal(size=[size, size])
    table[:, EOS] = 3 * table.std() + random.normal(size=size)
    logits = tf.constant(table, tf.float32)
    result = by_features(
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

    totals = dict(finished + live)
    wanted = ranked(totals, lambda words: totals[words] / ((5 + len(words)) / 6))
    assert_same(hypotheses(result, 0), wanted[:4])


def test_logits_of_hopeless_hypotheses_are_not_computed():
    """Word 0 may win, the end has come, word 2 can only lose."""
    first = np.log([0.60, 0.39, 0.01])
    later = np.log([0.97, 0.02, 0.01])

    def step(ids, state, memory):
        logits = tf.where(state[..., None] == 0, first, later)
        return tf.cast(logits, tf.float32), state + 1, None

    counts: list[int] = []
    result = by_features(step, tf.zeros([1]), counts, beam_size=3, max_length=6, n_best=1)
    np.testing.assert_array_equal(result.tokens[0, 0, :2], [EOS, 0])
    # One at first. The bound of words "0", log .6 * 6 / 11, is more than the
    # score of the end, log .39; that of "2", log .01 * 6 / 11, is less.
    assert counts[:2] == [1, 1]
    every: list[int] = []
    by_features(step, tf.zeros([1]), every, beam_size=3, max_length=6, n_best=3)
    assert every[:2] == [1, 2]  # three are wanted: "2" may be the third


def test_sampling_takes_features():
    table = Table(seed=3)
    options = {"max_length": 3, "n_samples": 3, "seed": 1}
    plain = search.sample(table.step, table.state(), **IDS, **options)
    result = by_features(table.step, table.state(), find=search.sample, **options)
    np.testing.assert_array_equal(result.tokens, plain.tokens)
    np.testing.assert_array_equal(result.log_probs, plain.log_probs)
