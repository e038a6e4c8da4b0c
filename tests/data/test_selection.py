"""Data selection: the n-gram model, scores, the selected pairs, the command."""

import gzip
import itertools
import math
import random
import tracemalloc
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import hypothesis
import hypothesis.extra.numpy
import numpy as np
import pytest
from comparisons import lines_of as read, write_lines
from hypothesis import strategies
from refusals import says

from bahdanau_tf.commands.main import COMMANDS, main
from bahdanau_tf.corpora.grammar import generate
from bahdanau_tf.data import parallel
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.selection import (
    BEGIN,
    END,
    SPECIAL,
    UNKNOWN,
    CrossEntropyDifference,
    NGramModel,
    WordList,
    lowest,
    score_pairs,
    split_words,
)

WANTED = [(e.source, e.target) for e in generate(600, max_words=8)]
OTHER = [(f"total {n} of {n * 7} items", f"en tout {n} de {n * 7} articles") for n in range(900)]


def write(folder: Path, name: str, pairs) -> list[str]:
    sides = zip(("en", "fr"), zip(*pairs, strict=True), strict=True)
    return [write_lines(folder / f"{name}.{side}", lines) for side, lines in sides]


@pytest.fixture
def pool() -> list[tuple[str, str]]:
    """500 pairs of the wanted kind and 900 of another, shuffled."""
    pairs = WANTED[100:] + OTHER
    random.Random(0).shuffle(pairs)
    return pairs


@pytest.fixture
def flags(monkeypatch, tmp_path, pool) -> dict[str, str]:
    """Flags of the command; the in-domain text is 100 of the wanted pairs."""
    monkeypatch.setitem(COMMANDS, "select", COMMANDS.get("select", "select"))
    files = {"": write(tmp_path, "pool", pool), "in_domain_": write(tmp_path, "in", WANTED[:100])}
    files["output_"] = tmp_path / "out.en", tmp_path / "out.fr"
    sides = {f"{kind}source": str(path) for kind, (path, _) in files.items()}
    sides |= {f"{kind}target": str(path) for kind, (_, path) in files.items()}
    return {**sides, "pairs": "500"}


def select(flags: dict[str, str]) -> int:
    return main(["select", *(f"--{name}={x}" for name, x in flags.items())])


def test_the_score_is_the_sum_of_four_cross_entropies(tmp_path, pool):
    """If the corpus is smaller than the sample, all of it is used."""
    corpus = ParallelCorpus(*write(tmp_path, "pool", pool[:300]))
    in_domain = ParallelCorpus(*write(tmp_path, "in", WANTED))
    wanted = np.zeros(300)
    for side in (0, 1):
        inside, outside = ([pair[side] for pair in pairs] for pairs in (WANTED, pool[:300]))
        words = WordList.build(inside)
        for sign, text in ((1, inside), (-1, outside)):
            model = NGramModel(words.encode(text), words.size, 3)
            wanted += [sign * model.cross_entropy(words.encode([line]))[0] for line in outside]
    scores = score_pairs(corpus, in_domain, order=3)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5)


def test_scores_do_not_depend_on_the_chunk_size(tmp_path, pool, monkeypatch):
    corpus = ParallelCorpus(*write(tmp_path, "pool", pool))
    in_domain = ParallelCorpus(*write(tmp_path, "in", WANTED[:100]))
    whole = score_pairs(corpus, in_domain)
    monkeypatch.setattr(parallel, "CHUNK", 37)
    np.testing.assert_array_equal(score_pairs(corpus, in_domain), whole)


def test_a_text_scores_zero_against_itself():
    lines = [source.encode() for source, _ in WANTED]
    assert np.all(CrossEntropyDifference(lines, lines)(lines) == 0)


@hypothesis.given(
    hypothesis.extra.numpy.arrays(
        np.float32, strategies.integers(1, 30), elements=strategies.integers(0, 9)
    ),
    strategies.data(),
)
def test_lowest_returns_the_places_of_the_lowest_scores(scores, data):
    count = data.draw(strategies.integers(1, len(scores)))
    best = sorted(range(len(scores)), key=lambda place: (scores[place], place))
    assert lowest(scores, count).tolist() == sorted(best[:count])


def test_the_text_is_not_held_in_memory(tmp_path, monkeypatch):
    """A further line needs less memory than its length: only a score."""
    monkeypatch.setattr(parallel, "CHUNK", 100)  # both texts have several chunks
    in_domain = ParallelCorpus(*write(tmp_path, "in", OTHER[:100]))
    peaks = []
    for times in (2, 12):
        corpus = ParallelCorpus(*write(tmp_path, "pool", OTHER * times))
        tracemalloc.start()
        lowest(score_pairs(corpus, in_domain), 100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / (10 * len(OTHER)) < 20


def test_precision_on_multi30k_in_tatoeba(shared, tmp_path):
    """Multi30k mixed into Tatoeba, 1 pair in 6.

    Precision measured at 500, 1,000 and 2,000 pairs: 0.984, 0.982, 0.898.
    """
    folder = shared("data")
    pairs = []
    for name, count in (("multi30k", 2000), ("tatoeba-en-fr", 10000)):
        sides = (read(folder / name / f"train.{side}") for side in ("en", "fr"))
        pairs += [*zip(*sides, strict=True)][:count]
    corpus = ParallelCorpus(*write(tmp_path, "pool", pairs))
    seed = (folder / f"multi30k/val.{side}" for side in ("en", "fr"))
    scores = score_pairs(corpus, ParallelCorpus(*seed))
    precision = {count: np.mean(lowest(scores, count) < 2000) for count in (500, 1000, 2000)}
    assert precision[500] > 0.95
    assert precision[1000] > 0.95
    assert precision[2000] > 0.85


def test_the_command_keeps_the_best_in_order(flags, pool, tmp_path, capsys):
    assert select({**flags, "scores": f"{tmp_path / 'scores'}"}) == 0
    sources, targets = (read(tmp_path / f"out.{s}") for s in ("en", "fr"))
    kept = list(zip(sources, targets, strict=True))
    assert len(kept) == 500
    scores = np.array([float(x) for x in read(tmp_path / "scores")])
    assert len(scores) == len(pool)
    best = np.sort(np.argsort(scores, kind="stable")[:500])
    assert kept == [pool[place] for place in best]
    assert len(set(kept) & set(WANTED)) >= 495
    out, err = capsys.readouterr()
    assert "kept 500 of 1,400 pairs" in out
    assert "1400/1400 pairs scored" in err
    names = "in.en in.fr out.en out.fr pool.en pool.fr scores"
    assert sorted(path.name for path in tmp_path.iterdir()) == names.split()


def test_the_best_pairs_that_have_a_number_of_words_are_kept(flags, pool, tmp_path, capsys):
    del flags["pairs"]
    assert select({**flags, "words": "700", "scores": f"{tmp_path / 'scores'}"}) == 0
    kept = [*zip(*(read(tmp_path / f"out.{side}") for side in ("en", "fr")), strict=True)]
    order = np.argsort([float(x) for x in read(tmp_path / "scores")], kind="stable")
    words = [len(pool[place][1].split()) for place in order]
    count = len(kept)
    assert sum(words[: count - 1]) < 700 <= sum(words[:count])
    assert kept == [pool[place] for place in sorted(order[:count])]
    assert f"{sum(words[:count])} words of --target" in capsys.readouterr().out


def test_compressed_text_with_blank_lines_is_selected(flags, pool, tmp_path, capsys):
    """Text in .gz with blank lines and CR LF gives the same pairs."""
    assert select(flags) == 0
    expected = [read(tmp_path / f"out.{side}") for side in ("en", "fr")]
    for side, name in (("en", "source"), ("fr", "target")):
        lines = read(tmp_path / f"pool.{side}")
        lines.insert(3, "" if side == "en" else "rien")
        lines.insert(9, " " if side == "fr" else "nothing")
        text = "\ufeff" + "".join(f"{line}\r\n" for line in lines)
        flags[name] = f"{tmp_path / side}.gz"
        flags[f"output_{name}"] = f"{tmp_path / 'chosen'}.{side}.gz"
        with gzip.open(flags[name], "wb") as stream:
            stream.write(text.encode())
    capsys.readouterr()
    assert select({**flags, "scores": f"{tmp_path / 'scores.gz'}"}) == 0
    assert "2 with a blank line" in capsys.readouterr().out
    for side, lines in zip(("en", "fr"), expected, strict=True):
        with gzip.open(f"{tmp_path / 'chosen'}.{side}.gz") as stream:
            assert stream.read().decode().split("\n")[:-1] == lines
    with gzip.open(tmp_path / "scores.gz", "rt") as stream:
        scores = [float(line) for line in stream]
    assert len(scores) == len(pool) + 2
    assert np.flatnonzero(np.isinf(scores)).tolist() == [3, 9]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pairs": "0"}, "--pairs 0 1"),
        ({"pairs": "1401"}, "--pairs 1401 1"),
        ({"words": "9"}, "--pairs --words one"),
        ({"pairs": ""}, "--pairs --words missing"),
        ({"pairs": "", "words": "99999"}, "--words 99999 1"),
        ({"source": "{tmp}/in.en"}, "100 lines"),
        ({"in_domain_target": "{tmp}/pool.fr"}, "1,400"),
        ({"in_domain_source": "{tmp}/bad"}, "2 UTF-8 line"),
        ({"in_domain_source": "{tmp}/empty"}, "0 lines"),
    ],
)
def test_a_bad_flag_is_reported_in_one_line(flags, tmp_path, capfd, change, sentence):
    (tmp_path / "bad").write_bytes(b"good\ncaf\xe9\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "out.fr").write_text("old\n")
    for name, value in change.items():
        flags[name] = value.replace("{tmp}", str(tmp_path))
    flags = {name: value for name, value in flags.items() if value}
    assert select(flags) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("bahdanau-tf: select: ")
    assert err.count("\n") == 1
    says(err, sentence)
    assert (tmp_path / "out.fr").read_text() == "old\n"


# The n-gram model, compared with a plain implementation and by hand -----------


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
    places = ((sentence, end) for sentence in others for end in range(len(sentence)))
    wanted = [plain.probability(x[end], x[:end]) if end else 1.0 for x, end in places]
    np.testing.assert_allclose(model.probabilities(joined(others)), wanted, rtol=1e-12)


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
