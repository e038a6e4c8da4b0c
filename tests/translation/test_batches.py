"""Batches of sentences of similar length."""

import itertools
from collections.abc import Iterator

from hypothesis import given, strategies as st

from bahdanau_tf.translation.batches import LONG, in_batches


def batches(lengths: list[int], size: int) -> list[list[int]]:
    """The lengths of the rows of each batch; results must be in order."""
    sizes: list[list[int]] = []

    def work(rows: list[str]) -> Iterator[str]:
        sizes.append([len(row) for row in rows])
        return iter(rows)

    rows = [chr(0x100 + place) * length for place, length in enumerate(lengths)]
    assert in_batches("test", {"rows": rows}, work, size) == rows
    return sizes


@given(st.lists(st.integers(1, LONG)), st.integers(1, 9))
def test_sentences_are_in_batches_by_their_lengths(lengths, size):
    ordered = sorted(lengths)
    wanted = [ordered[n : n + size] for n in range(0, len(ordered), size)]
    assert batches(lengths, size) == wanted


@given(st.lists(st.integers(1, 6 * LONG)), st.integers(1, 9))
def test_a_padded_batch_is_no_larger_than_one_of_sentences(lengths, size):
    made = batches(lengths, size)
    assert [length for batch in made for length in batch] == sorted(lengths)
    for batch in made:
        assert len(batch) * batch[-1] <= size * LONG or len(batch) == 1
    for batch, after in itertools.pairwise(made):
        full = len(batch) == size
        assert full or (len(batch) + 1) * after[0] > size * LONG


def test_equal_rows_are_one_row():
    seen: list[tuple[str, str]] = []

    def work(*columns: list[str]) -> Iterator[int]:
        seen.extend(rows := [*zip(*columns, strict=True)])
        return (len(x + y) for x, y in rows)

    sources, prefixes = ["a", "bb", "a", "bb", "a"], ["", "", "x", "", ""]
    assert in_batches("test", {"a": sources, "b": prefixes}, work, 2) == [1, 2, 2, 2, 1]
    assert sorted(seen) == [("a", ""), ("a", "x"), ("bb", "")]


def test_short_rows_are_not_padded_to_one_of_20_000_characters():
    assert batches([60, 20_000, *[60] * 62], 64) == [[60] * 63, [20_000]]
