"""The n-gram model compared with a plain implementation and by hand."""

import itertools
import math
import random
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from bahdanau_tf.corpora.grammar import generate
from bahdanau_tf.data.selection import (
    BEGIN,
    END,
    SPECIAL,
    UNKNOWN,
    NGramModel,
    WordList,
    split_words,
)


class PlainKneserNey:
    """The equation of the docstring with tuples, sets and recursion."""

    def __init__(self, sentences, size, order):
        self.kinds = size - 1
        raw = Counter()
        before = defaultdict(set)
        for sentence in sentences:
            for end in range(1, len(sentence)):
                for length in range(1, min(order, end + 1) + 1):
                    gram = tuple(sentence[end + 1 - length : end + 1])
                    raw[gram] += 1
                    if end >= length:
                        before[gram].add(sentence[end - length])
        self.after = defaultdict(dict)
        for gram, count in raw.items():
            if len(gram) < order and gram[0] != BEGIN:
                count = len(before[gram])
            self.after[gram[:-1]][gram[-1]] = count
        self.discounts = {}
        for length in range(1, order + 1):
            words = [words for history, words in self.after.items() if len(history) == length - 1]
            counts = [count for of_history in words for count in of_history.values()]
            ones, twos = counts.count(1), counts.count(2)
            self.discounts[length] = (ones + 1) / (ones + 2 * twos + 2)
        self.order = order

    def probability(self, word, history):
        history = tuple(history[max(len(history) - self.order + 1, 0) :])
        shorter = self.probability(word, history[1:]) if history else 1 / self.kinds
        words = self.after.get(history)
        if not words:
            return shorter
        discount = self.discounts[len(history) + 1]
        total = sum(words.values())
        own = max(words.get(word, 0) - discount, 0) / total
        return own + discount * len(words) / total * shorter


def random_sentences(generator, size, count, max_words=7):
    """Sentences in which a few words are frequent and many are rare."""
    weights = [1 / (rank + 1) for rank in range(UNKNOWN, size)]

    def words():
        return generator.choices(range(UNKNOWN, size), weights, k=generator.randint(0, max_words))

    return [[BEGIN, *words(), END] for _ in range(count)]


def joined(sentences) -> np.ndarray:
    return np.array([*itertools.chain(*sentences)], np.int64)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_equal_the_plain_implementation(order):
    generator = random.Random(order)
    size = 12
    sentences = random_sentences(generator, size, 60)
    # The text has fewer words than the word list: some are never seen.
    sentences = [[w for w in s if w != size - 1] for s in sentences]
    plain = PlainKneserNey(sentences, size, order)
    model = NGramModel(joined(sentences), size, order)
    others = random_sentences(generator, size, 60)
    wanted = [
        1.0 if end == 0 else plain.probability(sentence[end], sentence[:end])
        for sentence in others
        for end in range(len(sentence))
    ]
    np.testing.assert_allclose(model.probabilities(joined(others)), wanted, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one(order):
    generator = random.Random(order)
    size = 15
    text = joined(random_sentences(generator, size, 40))
    model = NGramModel(text, size, order)
    histories = [s[:-1] for s in random_sentences(generator, size, 50)]
    for history in histories:
        ways = [[*history, word] for word in range(END, size)]
        at_end = np.arange(1, len(ways) + 1) * len(ways[0]) - 1
        probabilities = model.probabilities(joined(ways))[at_end]
        assert np.all(probabilities > 0)
        assert math.isclose(probabilities.sum(), 1, rel_tol=1e-12)


def test_probabilities_equal_values_by_hand():
    """Bigrams of `a b` and `a a`; `<` and `>` mark begin and end.

    V = 4, with UNKNOWN and END.
    Counts: <a 2; ab, aa, a>, b> 1. So D₂ = (4 + 1) / (4 + 2 + 2) = 5/8.
    Words before a: < a; before b: a; before >: a b.
    So D₁ = (1 + 1) / (1 + 4 + 2) = 2/7.
    p(a) = p(>) = (2 - 2/7) / 5 + 2/7 · 3/5 · 1/4 = 27/70, p(b) = 13/70.
    p(a | <) = (2 - 5/8) / 2 + 5/8 · 1/2 · 27/70 = 181/224.
    p(b | a) = (1 - 5/8) / 3 + 5/8 · 3/3 · 13/70 = 27/112.
    p(> | b) = (1 - 5/8) / 1 + 5/8 · 1/1 · 27/70 = 69/112.
    """
    words = WordList("ab")
    model = NGramModel(words.encode(["a b", "a a"]), words.size, order=2)
    expected = [Fraction(181, 224), Fraction(27, 112), Fraction(69, 112)]
    probabilities = model.probabilities(words.encode(["a b"]))
    np.testing.assert_allclose(probabilities, [1, *map(float, expected)], rtol=1e-12)
    bits = -sum(math.log2(p) for p in expected) / 3
    entropy = model.cross_entropy(words.encode(["A  B", "b", "a b"]))
    np.testing.assert_allclose(entropy[[0, 2]], bits, rtol=1e-12)
    unknown = model.probabilities(words.encode(["a c"]))[2]
    assert math.isclose(unknown, 5 / 8 * 3 / 70, rel_tol=1e-12)


def test_word_order_is_learned():
    """Bigrams predict sentences better than unigrams, shuffled ones worse."""
    lines = [example.source for example in generate(1200, max_words=12)]
    train, dev = lines[:1000], lines[1000:]
    words = WordList.build(train)
    generator = random.Random(0)

    def bits(text, order):
        model = NGramModel(words.encode(train), words.size, order)
        return model.cross_entropy(words.encode(text)).mean()

    def shuffled(text):
        for line in map(split_words, text):
            yield " ".join(generator.sample(line, len(line)))

    assert bits(dev, 2) < bits(dev, 1) - 1
    for order in (2, 3):
        assert bits(train, order) < bits(dev, order)
        assert bits(shuffled(dev), order) > bits(dev, order) + 1
        assert bits(shuffled(train), order) > bits(train, order) + 1


def test_words_that_occur_once_are_unknown():
    words = WordList.build(["The cat, the dog.", "A cat."])
    assert words.size == SPECIAL + 3  # the, cat, "."
    ids = words.encode(["the lion", "", "CAT ."])
    unknown = ids[2]
    assert unknown == UNKNOWN
    assert ids[[0, 4, 6]].tolist() == [BEGIN] * 3
    assert ids[[3, 5, 9]].tolist() == [END] * 3
    assert len(ids) == 10
    assert len({*ids[[1, 7, 8]].tolist(), BEGIN, END, UNKNOWN}) == 6


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("L'Été, c'est 3.5 €!", "l ' été , c ' est 3 . 5 € !"),
        ("\u2028 x\u00a0y\u202f!\t", "x y !"),
        ("ｶﾞガ漢字kana12", "ガ ガ 漢 字 kana12"),
        ("나는 학교에", "나는 학교에"),
        ("e\u0301 \u1112\u1161\u11ab", "é 한"),
        ("😀\x00a", "😀 \x00 a"),
        ("", ""),
        ("\u00a0", ""),
    ],
)
def test_lines_are_split_into_words(line, words):
    assert split_words(line) == words.split(" ") if words else not words


def test_empty_and_unusual_texts_have_finite_entropy():
    words = WordList([])
    for text in ([], [""], ["", "a b"], ["x"] * 3):
        model = NGramModel(words.encode(text), words.size, order=6)
        bits = model.cross_entropy(words.encode(["", "a b c d e f g h", "x"]))
        assert bits.shape == (3,)
        assert np.all(np.isfinite(bits) & (bits >= 0))
        assert model.cross_entropy(words.encode([])).shape == (0,)
    with pytest.raises(ValueError, match="NGramModel: order is 0"):
        NGramModel(words.encode(["x"]), words.size, order=0)
