"""Pairs that are held out of a training text share no source line with it; pairs match or not."""

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from comparisons import write_lines
from hypothesis import given, strategies as st
from refusals import refused

from bahdanau_tf.corpora import generate
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.training.text import held_out_rows, hold_out, match, measure, slip

NAMES = ("train.source", "train.target", "dev.source", "dev.target")


def corpus_of(folder: Path, pairs: list[tuple[str, str]]) -> ParallelCorpus:
    sides = enumerate(("a", "b"))
    return ParallelCorpus(*(write_lines(folder / n, (p[side] for p in pairs)) for side, n in sides))


def parts(folder: Path) -> list[list[str]]:
    return [(folder / n).read_text("utf-8").split("\n")[:-1] for n in NAMES]


@given(st.lists(st.integers(0, 300), min_size=60, max_size=300), st.integers(1, 10))
def test_no_source_line_is_on_both_sides(numbers, wanted):
    """Lines repeat, with other translations and with blanks around them."""
    pairs = [(f"{' ' * (i % 3)}line {number}", f"{i}") for i, number in enumerate(numbers)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        corpus = corpus_of(folder, pairs)
        try:
            hold_out(corpus, measure(corpus)[1], folder / "text", wanted)
        except ValueError:
            most = Counter(numbers).most_common(1)[0][1]
            assert most > len({*pairs}) // 20  # too many of the same line
            assert not (folder / "text").exists()
            return
        train_source, train_target, dev_source, dev_target = parts(folder / "text")
    dev = {line.strip() for line in dev_source}
    assert not dev & {line.strip() for line in train_source}
    assert wanted <= len(dev_source) <= wanted + len(pairs) // 20
    sides = train_source + dev_source, train_target + dev_target
    assert sorted(zip(*sides, strict=True)) == sorted(pairs)  # nothing is lost or torn apart


def test_the_same_pairs_whatever_their_order(tmp_path):
    """A hash of the line decides, not its place."""
    pairs = [(f"line {n}", f"ligne {n}") for n in range(500)]
    chosen = []
    for some in (pairs, pairs[::-1]):
        corpus = corpus_of(tmp_path, some)
        hold_out(corpus, measure(corpus)[1], tmp_path / "text", 25)
        train, _, source, target = parts(tmp_path / "text")
        assert (len(source), len(train)) == (25, 475)
        chosen.append({*zip(source, target, strict=True)})
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("side", [0, 1])
def test_lines_that_are_too_long_are_not_held_out(tmp_path, side):
    """Nor is a pair whose source line has a long translation elsewhere."""
    pairs = [[f"{n % 80}", f"{n}"] for n in range(100)]
    long = range(10)
    for n in long:
        pairs[n][side] = f"{n}" + "é" * 10  # 21 bytes
    corpus = corpus_of(tmp_path, pairs)
    assert {*held_out_rows(corpus, measure(corpus)[1], 45, longest=21)["dev"]} & {*long}
    rows = {*held_out_rows(corpus, measure(corpus)[1], 45, longest=20)["dev"]}
    assert len(rows) >= 45
    assert not rows & {*long}
    if side == 1:
        assert not rows & {n + 80 for n in long}


def test_repeated_pairs_are_held_out_once(tmp_path):
    """Each pair 28 times, and once with another target; spaces at the ends do not count."""
    pairs = [(f"{n}", f"{n}{' ' * (k % 2)}") for n in range(100) for k in range(28)]
    pairs += [(f"{n}", "other") for n in range(100)]
    corpus = corpus_of(tmp_path, pairs)
    hold_out(corpus, measure(corpus)[1], tmp_path / "text", 10)
    train_source, _, dev_source, dev_target = parts(tmp_path / "text")
    dev = {*zip(dev_source, map(str.strip, dev_target), strict=True)}
    assert dev == {(n, target) for n in {*dev_source} for target in (n, "other")}
    assert (len(dev_source), len(train_source)) == (10, 95 * 29)
    assert not {*dev_source} & {*train_source}


def test_blank_lines_stay_where_they_are_counted(tmp_path):
    pairs = [(f"{n}", "") if n % 2 else (f"{n}", f"{n}") for n in range(100)]
    corpus = corpus_of(tmp_path, pairs)
    hold_out(corpus, measure(corpus)[1], tmp_path / "text", 5)
    train = ParallelCorpus(*(tmp_path / "text" / name for name in NAMES[:2]))
    dev = ParallelCorpus(*(tmp_path / "text" / name for name in NAMES[2:]))
    assert (len(train), train.blank, len(dev), dev.blank) == (45, 50, 5, 0)


@pytest.mark.parametrize(
    "pairs", [[("the same", str(n)) for n in range(100)], [(str(n), "x") for n in range(12)]]
)
def test_too_few_are_refused_and_nothing_written(tmp_path, pairs):
    corpus = corpus_of(tmp_path, pairs)
    keys = measure(corpus)[1]
    refused(lambda: hold_out(corpus, keys, tmp_path / "text", 7), "dev_pairs", "7", "many")
    assert not (tmp_path / "text").exists()


@pytest.mark.parametrize("language", ["fr", "ko", "ja", "reversed", "sums"])
def test_pairs_match_and_shuffled_ones_do_not(language):
    """Japanese has no spaces; sums are hardly related to their numbers, letter by letter."""
    draw = random.Random(2)
    if language == "sums":
        numbers = [(draw.randrange(999), draw.randrange(999)) for _ in range(900)]
        pairs = [(f"{a}+{b}", f"{a + b}") for a, b in numbers]
    elif language == "reversed":
        words = ["".join(draw.choices("abcdefgh", k=9)) for _ in range(500)]
        pairs = [(word, word[::-1]) for word in words]
    else:
        pairs = [(x.source, x.target) for x in generate(500, max_words=9, language=language)]
    source, target = map(list, zip(*pairs, strict=True))
    assert match(ParallelCorpus(source, target))
    draw.shuffle(target)
    assert not match(ParallelCorpus(source, target))
    assert match(ParallelCorpus(source[:400], target[:400]))  # too few to know


@pytest.mark.parametrize(("at", "lines"), [(None, 0), (0, 1), (900, -2)])
def test_where_a_side_has_slipped(at, lines):
    """One side lacks lines from `at` on and has others at its end; both have equal many."""
    pairs = [(x.source, x.target) for x in generate(2400, max_words=9)]
    sides = [*map(list, zip(*pairs, strict=True))]
    if at is not None:
        lacking = sides[lines > 0]
        del lacking[at : at + abs(lines)]
        lacking += ["End."] * abs(lines)
    where = slip(ParallelCorpus(*sides))
    assert (where or (0, 0))[1] == lines
    if where is not None:
        assert abs(where[0] - at) < 300


def test_several_translations_of_each_line_have_not_slipped():
    pairs = [(x.source, x.target) for x in generate(300, max_words=9) for _ in range(5)]
    assert slip(ParallelCorpus(*map(list, zip(*pairs, strict=True)))) is None


def test_a_text_with_translations_beside_each_pair_has_not_slipped():
    """What `distil` and `backtranslate` write: of each target one translates back."""
    pairs = [(x.source, x.target) for x in generate(400, max_words=9)]
    rows = [y for s, t in pairs for y in ((s, t), (s, f"{t} a"), (f"{s} b", t))]
    assert slip(ParallelCorpus(*map(list, zip(*rows, strict=True)))) is None
    assert slip(ParallelCorpus(["a b"] * 900, ["c d"] * 900)) is None
