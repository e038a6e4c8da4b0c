"""Batches of sentences of similar length, and lines that are answered from memory."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, Translation
from bahdanau_tf.commands.files import most_frequent
from bahdanau_tf.translation.batches import LONG, in_batches, with_known
from bahdanau_tf.translation.habits import Habits


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


def test_the_most_frequent_target_is_remembered_and_the_first_of_equals():
    pairs = [("a", "x"), ("b", "y"), ("a", "z"), ("a", "z"), ("b", "x")]
    assert most_frequent(pairs) == {"a": "z", "b": "y"}


@pytest.mark.parametrize("prefixes", [None, ["", "p", "", "", ""]])
def test_lines_of_the_memory_are_not_searched_unless_they_have_a_prefix(prefixes):
    seen = []

    def work(decoding, sentences, starts):
        seen.append((sentences, starts))
        return (Translation(x, x.upper()) for x in sentences)

    remembering = with_known(work, {"a": "z", "e": ""}.get)
    rows = [*remembering(Decoding(), ["a", "a", "b", "e", b"a"], prefixes)]
    assert seen == [(["a", "b"], ["p", ""]) if prefixes else (["b"], None)]
    second = "A" if prefixes else "z"
    assert [x.text for x in rows] == ["z", second, "B", "", "z"]
    assert [x.source for x in rows] == [*"aabea"]


@pytest.mark.usefixtures("eager_search")
def test_text_without_letters_stays_as_it_is():
    """If training kept such, and not where something must be in the translation."""
    own = toy_translator(english(), french())
    texts = [" 12:30 ", "(555) 123-4567", "- -", "\u263a", "3 p.m."]
    searched = own.translate(texts)
    own.habits = Habits(copies=True)
    rows = own.translate(texts)
    assert [x.text for x in rows] == [*(x.strip() for x in texts[:4]), searched[4].text]
    assert [x.doubts for x in rows[:4]] == [()] * 4
    assert own.translate("<b>12:30</b> ", markup=True).text == "<b>12:30</b>"
    assert own.translate("12", prefixes="le").text.startswith("le")
    assert own.translate(texts[0], terms={"cat": "chat"}).text == searched[0].text
    own.habits = Habits(copies=True, is_short=True)
    assert [x.text for x in own.translate(texts)] == [x.text for x in searched]


@pytest.mark.usefixtures("eager_search")
def test_a_translator_answers_from_its_memory():
    own = toy_translator(english(), french())
    plain = own.translate(["a dog", "the cat"])
    own.memory = {"the cat": "!"}
    rows = own.translate(["a dog", "the cat"])
    assert [x.text for x in rows] == [plain[0].text, "!"]
    assert (rows[1].tokens, rows[1].doubts) == ([], ())
    assert own.translate("the cat").text == "!"
    assert own.translate("the cat", terms={"cat": "chat"}).doubts != ()
    own.memory = {"The cat. A dog.": "!", "A dog.": "?"}
    own.habits = Habits(singly=True)
    assert own.translate("The cat. A dog.").text == "!"
    assert own.translate("A dog. A dog.").text == "? ?"
    assert own.translate(["A dog."] * 2, prefixes=np.array(["", "le"]))[0].text == "?"
    refused(lambda: own.translate(["A dog."] * 2, prefixes=[]), "2 sentences, 0 prefixes")
    own.memory = "memory.tsv"
    refused(lambda: own.translate("A dog."), "memory is 'memory.tsv'", "a dict")
