"""Searches with a given prefix, with constraints of callers, by sampling."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close
from toys import ENGLISH, FRENCH, SPECIAL, english, french, toy_translator, with_alternatives

from bahdanau_tf import Decoding, Dictionary, RNNEncDec, Translation, Translator
from bahdanau_tf.search import History
from bahdanau_tf.translation import Lexicon
from bahdanau_tf.translation.graph import search
from bahdanau_tf.translation.shortlist import of_words

# Translators search eagerly here; with prefixes, test_translator.py does it in a graph.
pytestmark = pytest.mark.usefixtures("eager_search")
UNK, END = 1, 2

# A table of bigrams, compared with all sequences enumerated ---------------

SIZE = 5  # padding, unknown, end and two words
TEXT = SimpleNamespace(pad_id=0, unk_id=UNK, eos_id=END)
SOURCES = np.array([[3, 0, 0], [3, 3, 0], [3, 3, 3], [3, 3, 0], [3, 0, 0]])
PREFIXES = np.array([[0, 0, 0, 0], [3, 4, 0, 0], [4, 0, 0, 0], [4, 4, 4, 1], [1, 3, 3, 0]])


def table_of(seed: int) -> np.ndarray:
    """Logits of the next word, for each row and last word."""
    random = np.random.default_rng(seed)
    return random.normal(0, 2, [len(SOURCES), SIZE, SIZE])


def searched(
    table: np.ndarray, decoding: Decoding, prefix: Any, source: np.ndarray = SOURCES
) -> Any:
    logits, rows = tf.constant(table, tf.float32), tf.range(len(SOURCES))

    def step(ids: tf.Tensor, row: tf.Tensor, _: Any) -> Any:
        return tf.gather_nd(logits, tf.stack([row, ids], -1)), row, None

    if prefix is not None:
        prefix = tf.constant(prefix, tf.int32)
    given = {"source": tf.constant(source, tf.int32), "start_id": 0, "text": TEXT}
    return search(decoding, step, rows, (), **given, prefix=prefix)


def log_prob(logits: np.ndarray, tokens: tuple[int, ...]) -> float:
    normal = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return sum(normal[pair] for pair in itertools.pairwise([0, *tokens]))


def allowed(limit: int, prefix: list[int], unknown: bool) -> list[tuple]:
    """All sequences that begin with the prefix and have no [UNK] after it."""
    start = prefix[:limit]
    words = [UNK, 3, 4] if unknown else [3, 4]
    sequences = [
        (*start, *rest, END)
        for count in range(limit - len(start))
        for rest in itertools.product(words, repeat=count)
    ]
    return sequences or [tuple(start)]


@pytest.mark.parametrize("unknown", ["keep", "forbid"])
@pytest.mark.parametrize("seed", [0, 1])
def test_search_finds_the_best_sequences_with_the_prefix(seed, unknown):
    """The rows of a batch have different prefixes."""
    table = table_of(seed)
    decoding = Decoding(beam_size=120, n_best=4, alpha=0.6, max_length=4, unknown=unknown)
    result = searched(table, decoding, PREFIXES)
    for row, padded in enumerate(PREFIXES):
        prefix = [int(word) for word in padded if word]
        ranked = sorted(
            (log_prob(table[row], tokens) / ((5 + len(tokens)) / 6) ** 0.6, tokens)
            for tokens in allowed(4, prefix, unknown == "keep")
        )[::-1]
        for n, (score, tokens) in enumerate(ranked[:4]):
            length = int(result.lengths[row, n])
            assert tuple(result.tokens[row, n, :length].numpy()) == tokens
            assert bool(result.finished[row, n]) == (tokens[-1] == END)
            np.testing.assert_allclose(result.scores[row, n], score, atol=1e-4)
            wanted = log_prob(table[row], tokens)
            np.testing.assert_allclose(result.log_probs[row, n], wanted, atol=1e-4)


@pytest.mark.parametrize("ratio", ["0.3", "1.05", "1.1"])
@pytest.mark.parametrize(("limit", "rounded"), [("min", math.ceil), ("max", math.floor)])
def test_limits_are_multiples_of_the_length(ratio, limit, rounded):
    """Of a decimal number, where a binary one is rounded, too; at least 10 are allowed."""
    lengths = np.array([10, 20, 50, 60, 7])
    source = (np.arange(60) < lengths[:, None]).astype("int32")
    limits = {"max_length_ratio": 9.0, f"{limit}_length_ratio": float(ratio)}
    decoding = Decoding(beam_size=1, max_length=99, **limits)
    table = np.zeros([len(SOURCES), SIZE, SIZE])
    table[..., END] = 9 if limit == "min" else -9
    result = searched(table, decoding, None, source)
    wanted = [rounded(Fraction(ratio) * int(length)) for length in lengths]
    wanted = np.maximum(wanted, 0 if limit == "min" else 10)
    np.testing.assert_array_equal(result.lengths[:, 0], wanted)


def test_empty_prefixes_change_nothing():
    table = table_of(2)
    decoding = Decoding(beam_size=3, n_best=3, no_repeated_ngrams=2)
    results = (searched(table, decoding, prefix) for prefix in (np.zeros([5, 2]), None))
    all_close(*([x for x in result if x is not None] for result in results), atol=1e-5)


def test_words_of_the_prefix_may_be_repeated():
    decoding = Decoding(no_repeated_ngrams=1, max_length=6, max_length_ratio=9)
    result = searched(table_of(3), decoding, PREFIXES)
    assert result.tokens[3, 0, :4].numpy().tolist() == [4, 4, 4, 1]


def test_only_equal_sentences_have_equal_samples():
    """All tables are equal, and the sources of rows 0 and 4, and of 1 and 3."""
    table = np.tile(table_of(5)[:1], [5, 1, 1])
    decoding = Decoding(sampling=True, n_best=40, max_length=1, seed=1)
    first, second, third, fourth, last = searched(table, decoding, None).tokens.numpy()[..., 0]
    assert first.tolist() == last.tolist()
    assert second.tolist() == fourth.tolist()
    assert first.tolist() != second.tolist() != third.tolist()
    another = replace(decoding, seed=2)
    again = searched(table, another, None).tokens.numpy()[0, :, 0]
    assert again.tolist() != first.tolist()


def test_sampling_from_one_word_equals_greedy_search():
    """With `top_k` or `top_p`, also after a prefix."""
    table = table_of(6)
    decoding = Decoding(sampling=True, top_k=1)
    greedy = searched(table, decoding.greedy(), PREFIXES)
    for few in (decoding, Decoding(sampling=True, top_p=1e-6)):
        drawn = searched(table, few, PREFIXES)
        np.testing.assert_array_equal(drawn.tokens, greedy.tokens)
        np.testing.assert_allclose(drawn.scores, greedy.scores, atol=1e-5)


# Strings to strings -------------------------------------------------------


def make_translator(**options: Any) -> Translator:
    """A model with weights so large that it clearly prefers some words."""
    decoding = Decoding(max_length=9, max_length_ratio=9)
    return toy_translator(english(), french(), decoding, **options)


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Its model prefers [UNK], which a dictionary replaces by ELSE."""
    translator = make_translator()
    bias = translator.model.readout.output_bias
    bias.assign(bias + 9.0 * np.eye(12)[UNK])
    translator.dictionary = Dictionary(dict.fromkeys(ENGLISH, "ELSE"))
    return translator


def n_best(translator: Translator) -> Decoding:
    return replace(translator.decoding, n_best=5, unknown="replace")


SENTENCES = ["the cat sleeps.", "", "a red dog sees the cat.", "cat", "a dog."]
PREFIXED = ["Le chat", "le", "l'Zyx voit", "", "un chien rouge"]
WORDS = [["Le", "chat"], [], ["l'", "Zyx", "voit"], [], ["un", "chien", "rouge"]]


def check(translation: Translation, text: str, words: list[str]) -> None:
    """The text begins with the prefix, and offsets cut the tokens out of it."""
    assert translation.text.startswith(text)
    assert translation.tokens[: len(words)] == words
    data = translation.text.encode()
    assert [data[i:j].decode() for i, j in translation.target_offsets] == translation.tokens
    if translation.weights is not None:
        height = len(translation.tokens) + translation.finished
        width = len(translation.source_tokens) + 1
        assert translation.weights.shape == (height, width)
        np.testing.assert_allclose(translation.weights.sum(1), 1, atol=1e-5)


def test_a_prefix_longer_than_the_limit_is_scored_and_aligned(translator):
    """As by teacher forcing: other words have no room."""
    words = "un chien rouge voit le chat rouge dort un chat voit un chien"
    cut = translator.translate("a red dog sees.", n_best(translator), prefixes=words)
    assert cut.tokens == words.split()[:9]
    assert not cut.finished
    assert not cut.alternatives
    (scored,) = translator.score(["a red dog sees."], [words])
    assert cut.log_prob == pytest.approx(float(scored.token_log_probs[:9].sum()), abs=1e-4)
    source = translator.source_text.tokenize(["a red dog sees."]).to_tensor()
    target = translator.target_text.tokenize([words]).to_tensor()
    weights = translator.model.hidden({"source": source, "target": target})[1].weights[0, :9]
    np.testing.assert_allclose(cut.weights, weights, atol=1e-5)


def test_a_greedy_translation_is_continued_unchanged(translator):
    """A part of the translation as the prefix does not change the rest."""
    decoding = replace(translator.decoding, beam_size=1, unknown="forbid")
    free = translator.translate(SENTENCES, decoding)
    for share in (0.0, 0.5, 1.0):
        ends = [[0, *(end for _, end in x.target_offsets)] for x in free]
        places = [end[round(share * (len(end) - 1))] for end in ends]
        prefixes = [x.text.encode()[:end].decode() for x, end in zip(free, places, strict=True)]
        again = translator.translate(SENTENCES, decoding, prefixes=prefixes)
        for wanted, x in zip(free, again, strict=True):
            assert (x.text, x.tokens) == (wanted.text, wanted.tokens)
            assert x.target_offsets == wanted.target_offsets
            assert x.score == pytest.approx(wanted.score, abs=1e-4)
            if x.source:
                np.testing.assert_allclose(x.weights, wanted.weights, atol=1e-5)


# Constraints of a caller --------------------------------------------------


def only_after(word: int, other: int) -> Any:
    """A constraint: `word` is allowed only right after `other`."""

    def constrain(logits: tf.Tensor, history: History) -> tf.Tensor:
        place = tf.maximum(history.step - 1, 0)
        is_after = history.tokens[:, :, place, None] == other
        is_word = tf.range(tf.shape(logits)[-1]) == word
        return tf.where(is_word & ~is_after, -np.inf, logits)

    return constrain


def test_a_constraint_in_a_shortlist_equals_that_of_the_vocabulary():
    """Compared with the same constraint on the logits of the vocabulary."""
    random = np.random.default_rng(0)
    own = np.array([[9, 5, -1], [-1, 7, 11], [6, -1, -1]], np.int32)
    first, size = 4, 12
    lists = [[*range(first), *row] for row in own.tolist()]
    logits = random.normal(size=[2, 3, 7]).astype(np.float32)
    places = random.integers(0, 5, [2, 3, 6]).astype(np.int32)
    rows = [2, 0]  # row 1 has stopped
    every = np.full([2, 3, size], -np.inf, np.float32)
    tokens = np.zeros_like(places)
    for n, row in enumerate(rows):
        for place, word in enumerate(lists[row]):
            if word >= 0:
                every[n, :, word] = logits[n, :, place]
                tokens[n][places[n] == place] = word
    history = History(tf.constant(tokens), tf.constant(2), tf.constant(rows))
    for word, other in ((9, 3), (6, 6), (3, 9), (5, 9)):
        constraint = only_after(word, other)
        full = constraint(tf.constant(every), history).numpy()
        wanted = np.full_like(logits, -np.inf)
        for n, row in enumerate(rows):
            for place, listed_word in enumerate(lists[row]):
                if listed_word >= 0:
                    wanted[n, :, place] = full[n, :, listed_word]
        short = of_words(constraint, first, tf.constant(own), size)
        short_logits = short(tf.constant(logits), history._replace(tokens=tf.constant(places)))
        np.testing.assert_array_equal(short_logits, wanted)


def test_the_words_of_a_prefix_are_added_to_the_shortlist():
    """5 of 12 words are frequent; no source word has words of its own."""
    lexicon = Lexicon(np.full((11, 1), -1), 5)
    translator = make_translator(model_class=RNNEncDec, lexicon=lexicon)
    decoding = replace(translator.decoding, shortlist=True, unknown="forbid", n_best=3)
    no_rouge = only_after(len(SPECIAL) + FRENCH.index("rouge"), 0)  # no word follows padding
    translations = translator.translate(
        SENTENCES, decoding, prefixes=PREFIXED, constraints=[no_rouge]
    )
    for row, (best, text, words) in enumerate(zip(translations, PREFIXED, WORDS, strict=True)):
        for translation in with_alternatives(best) if best.source else []:
            check(translation, text, words)
            assert {*translation.tokens} <= {"le", "chat", *words}
            assert translation.tokens.count("rouge") == (row == 4)


RATIOS = "min_length_ratio", "max_length_ratio"


@pytest.mark.parametrize(
    ("own", "options", "wanted"),
    [
        ({"beam_size": 12, "alpha": 0.5}, {"sampling": True}, {"sampling": True, "alpha": 0.5}),
        ({"sampling": True, "seed": 3, "n_best": 8}, {"sampling": False}, {"n_best": 5}),
        ({"n_best": 3}, {"beam_size": 2}, {"beam_size": 2, "n_best": 2}),
        ({"min_length_ratio": 2.0}, {"max_length_ratio": 1.5}, dict.fromkeys(RATIOS, 1.5)),
        ({"sampling": True}, {"beam_size": 2}, "beam_size is 2, which has no effect"),
        ({}, {"temperature": 0.5}, "temperature is 0.5, which has no effect"),
        ({}, {"seed": 1}, "seed is 1, which has no effect"),
        ({}, {"sampling": True, "shrink": True}, "shrink is True, which has no effect"),
        ({}, {"sampling": True, "beam_size": 2}, "beam_size is 2, .*leave it"),
        ({}, {"sampling": True, "temperature": 0.0}, "temperature is 0.0"),
        ({}, {"sampling": True, "top_p": 1.5}, "top_p is 1.5"),
        ({}, {"sampling": True, "top_k": -1}, "top_k is -1"),
        ({"beam_size": 2}, {"n_best": 3}, "n_best is 3, wanted 1 to 2, the beam_size"),
    ],
)
def test_only_options_of_the_call_are_refused(own, options, wanted):
    """Those that the translator has yield to them."""
    if isinstance(wanted, dict):
        assert Decoding.with_options(Decoding(**own), options) == Decoding(**wanted)
    else:
        with pytest.raises(ValueError, match=wanted):
            Decoding.with_options(Decoding(**own), options)


def test_options_are_checked_once_for_equal_calls():
    first, second = (Decoding.with_options(Decoding(), {"beam_size": 1}) for _ in range(2))
    assert first is second
    with pytest.raises(ValueError, match="beam_size is True"):  # which equals 1
        Decoding.with_options(Decoding(), {"beam_size": True})
