"""What is measured of a text before a recipe is chosen for it."""

import unicodedata
from pathlib import Path

import pytest
from comparisons import write_lines

from bahdanau_tf.data.held_out import measure
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import is_tokenized, script

ENGLISH = [f"The {n} dogs of house {n % 7} do not sleep." for n in range(300)]
KOREAN = [f"{n}번 집의 개들은 자지 않는다." for n in range(300)]


def facts_of(folder: Path, source: list[str], target: list[str]):
    sides = {"source": source, "target": target}
    return measure(ParallelCorpus(*(write_lines(folder / s, text) for s, text in sides.items())))


def test_counts_are_those_of_python(tmp_path):
    source = [*ENGLISH, "", *ENGLISH[:10], "a" * 5000]
    target = [*KOREAN, "x", *KOREAN[10:20], "b"]
    facts = facts_of(tmp_path, source, target)
    assert facts.pairs == 311
    assert facts.different == 301
    assert facts.source.characters == len({*"".join(source), "\n"})
    assert facts.target.characters == len({*"".join(target).replace("x", ""), "\n"})
    lengths = sorted(len(line) for line in source if line)
    assert facts.source.length == lengths[-2]  # 1 of 311 is longer
    assert facts.source.words == 9
    assert (facts.source.script, facts.target.script) == ("latin", "hangul")
    assert facts.source.has_blanks
    assert facts.target.has_blanks
    assert not facts.source.is_tokenized


def test_decomposed_text_is_measured_as_it_will_be_read(tmp_path):
    """Composed: decomposed Hangul has few letters, of which many syllables are made."""
    apart = [unicodedata.normalize("NFD", line) for line in KOREAN]
    facts = facts_of(tmp_path, KOREAN, apart)
    assert facts.source == facts.target
    assert facts.characters == facts.source.characters


def test_lines_of_any_length_and_number(tmp_path):
    facts = facts_of(tmp_path, ["x"], ["y"])
    assert (facts.pairs, facts.different, facts.source.length) == (1, 1, 1)
    facts = facts_of(tmp_path, ["long " * 100_000] * 5, ["1"] * 5)
    assert facts.source.length == 500_000
    assert facts.target.script == ""


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (ENGLISH, "latin"),
        (KOREAN, "hangul"),
        (["Быстрая лиса и Tom."], "cyrillic"),
        (["犬が公園を走っている。"], "kana"),
        (["那只狗在公园里跑。"], "han"),
        (["สุนัขกำลังวิ่งอยู่ในสวน"], "thai"),
        (["الكلب يركض"], "arabic"),
        (["1 + 1 = 2"], ""),
        ([], ""),
    ],
)
def test_scripts_are_named(lines, wanted):
    assert script(lines) == wanted


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["the dog sleeps .", "does it ?", "yes"], True),
        (["The dog sleeps.", "Does it?", "Yes"], False),
        (["no stops", "at all"], False),
        (["犬 が 公園 を 走っ て いる 。"], True),
        (["犬が公園を走っている。"], False),
        (["الكلب يركض ."], True),
        (["", " "], False),
    ],
)
def test_tokenized_text_is_seen(lines, wanted):
    assert is_tokenized(lines) is wanted


def test_lines_in_capitals_have_the_letters_of_sentences(tmp_path):
    """SentencePiece wants room for each letter of "Ax by", "Bx ay", ..."""
    lines = [f"{a}{b} {b}{a}" for a in "abcdef" for b in "xyz"]
    facts = facts_of(tmp_path, [line.upper() for line in lines], lines)
    assert facts.source.characters == len("ABCDEFXYZ") + len("abcdefxyz \n")
    assert facts.target.characters == len("abcdefxyz \n")
