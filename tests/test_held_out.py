"""Pairs that are held out of a training text share no source line with it."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from comparisons import write_lines
from hypothesis import given, strategies as st

from bahdanau_tf.data.held_out import held_out_rows, hold_out
from bahdanau_tf.data.parallel import ParallelCorpus

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
            count = hold_out(corpus, wanted, folder / "text")
        except ValueError:
            most = Counter(numbers).most_common(1)[0][1]
            assert most > len(pairs) // 20  # too many of the same line
            assert not (folder / "text").exists()
            return
        train_source, train_target, dev_source, dev_target = parts(folder / "text")
    dev = {line.strip() for line in dev_source}
    assert not dev & {line.strip() for line in train_source}
    assert wanted <= len(dev_source) == count <= wanted + len(pairs) // 20
    sides = train_source + dev_source, train_target + dev_target
    assert sorted(zip(*sides, strict=True)) == sorted(pairs)  # nothing is lost or torn apart


def test_the_same_pairs_whatever_their_order(tmp_path):
    """A hash of the line decides, not its place."""
    pairs = [(f"line {n}", f"ligne {n}") for n in range(500)]
    chosen = []
    for some in (pairs, pairs[::-1]):
        corpus = corpus_of(tmp_path, some)
        assert hold_out(corpus, 25, tmp_path / "text") == 25
        *_, source, target = parts(tmp_path / "text")
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
    assert {*held_out_rows(corpus, 45, longest=21)} & {*long}
    rows = {*held_out_rows(corpus, 45, longest=20)}
    assert len(rows) >= 45
    assert not rows & {*long}
    if side == 1:
        assert not rows & {n + 80 for n in long}


def test_blank_lines_stay_where_they_are_counted(tmp_path):
    pairs = [(f"{n}", "") if n % 2 else (f"{n}", f"{n}") for n in range(100)]
    hold_out(corpus_of(tmp_path, pairs), 5, tmp_path / "text")
    train = ParallelCorpus(*(tmp_path / "text" / name for name in NAMES[:2]))
    dev = ParallelCorpus(*(tmp_path / "text" / name for name in NAMES[2:]))
    assert (len(train), train.blank, len(dev), dev.blank) == (45, 50, 5, 0)


@pytest.mark.parametrize(
    "pairs", [[("the same", str(n)) for n in range(100)], [(str(n), "x") for n in range(12)]]
)
def test_too_few_are_refused_and_nothing_written(tmp_path, pairs):
    corpus = corpus_of(tmp_path, pairs)
    with pytest.raises(ValueError, match="dev_pairs is 7, which is too many"):
        hold_out(corpus, 7, tmp_path / "text")
    assert not (tmp_path / "text").exists()
