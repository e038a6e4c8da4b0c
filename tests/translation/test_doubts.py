"""Doubts and confidence, against counting."""

import itertools

import numpy as np
import pytest

from bahdanau_tf.translation import doubts
from bahdanau_tf.translation.doubts import Habits
from bahdanau_tf.translation.result import Translation

USUAL = frozenset("abcdefghijklmnopqrstuvwxyz.0123456789")


def translation(source: str = "a", text: str = "b", **values: object) -> Translation:
    tokens = text.split()
    return Translation(source, text, tokens, source_tokens=source.split(), **values)


def kinds(habits: Habits, x: Translation) -> list[str]:
    return [doubt.kind for doubt in habits.judged(x, USUAL).doubts]


@pytest.mark.parametrize(
    ("source", "text", "missing"),
    [
        ("347 books", "37 livres", ["347"]),
        ("$20", "120 dollars", ["20"]),
        ("3.50", "350", ["50"]),
        ("3.50", "3,50", []),
        ("9:45", "9 h 45", []),
        ("9:45", "9 h 30", ["45"]),
        ("14,000 men", "14\u202f000 hommes", []),
        ("14,000 men", "14000 hommes", []),
        ("1,234,567", "1.234.567", []),
        ("2026-11-28", "28/11/2026", []),
        ("\uff13\uff15 \u500b", "35 of them", []),  # full width
        ("2 cats", "deux chats", []),  # words say small numbers
    ],
)
def test_numbers_that_are_missing(source: str, text: str, missing: list[str]) -> None:
    assert doubts.missing_numbers(source, text) == missing


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("no no", ""),
        ("no no no", "no"),
        ("a b a b a b c", "a b"),
        ("so a b c d a b c d a b c d", "a b c d"),
        ("a b a c a b", ""),
        ("", ""),
    ],
)
def test_repeated_phrases(text: str, phrase: str) -> None:
    assert doubts.repeated_phrase(text) == phrase


def test_characters_are_compared_in_any_width() -> None:
    assert (
        doubts.strange_characters("a cat\u00a0\uff42 \u201cno\u201d \u263a\u201d", USUAL) == "“”☺"
    )


def test_confidence_is_the_share_of_less_likely_translations_of_similar_lengths() -> None:
    random = np.random.default_rng(1)
    lengths = random.integers(2, 40, 4000)
    log_probs = -random.gamma(2.0, 0.2, 4000) * lengths * (1 + lengths / 40)
    habits = Habits().measured(log_probs, lengths)
    groups = [*itertools.pairwise([1, *habits.lengths])]
    for length, mean in ((3, -0.2), (15, -0.4), (39, -1.5), (20, -9.0), (8, 0.0)):
        start, end = next((a, b) for a, b in groups if a < length <= b)
        similar = (start < lengths) & (lengths <= end)
        share = np.mean(log_probs[similar] / lengths[similar] < mean)
        text = " ".join("x" * (length - 1))
        x = translation(text=text, log_prob=mean * length)
        assert habits.judged(x, USUAL).confidence == pytest.approx(share, abs=0.01)


def test_each_doubt_has_its_cause() -> None:
    habits = Habits(longest=3).measured([-1.0] * 100, [2] * 100)
    usual = {"log_prob": -0.5}
    assert kinds(habits, translation(**usual)) == []
    assert kinds(habits, translation("\u4eba", **usual)) == ["characters"]
    assert kinds(habits, translation("12", **usual)) == ["number"]
    assert kinds(habits, translation(finished=False, **usual)) == ["cut"]
    assert kinds(habits, translation(cut=True, **usual)) == ["cut"]
    assert kinds(habits, translation(text="b b b", **usual)) == ["repeated"]
    assert kinds(habits, translation("a a a", "b b b", **usual)) == []
    assert kinds(habits, translation("a b c d", **usual)) == ["long"]
    assert kinds(habits, translation(log_prob=-9.0)) == ["unlikely"]
    assert kinds(Habits(), translation("", "", log_prob=-9.0)) == []


def test_an_ensemble_knows_the_lengths_that_all_its_members_know() -> None:
    members = [Habits(n, 5, [2], [[0.0] * 21]) for n in (None, 4, 3, 9)]
    assert Habits.joined(members) == Habits(3, 5)


def test_alternatives_are_judged_too() -> None:
    x = translation("12", "12", alternatives=[translation("12", "13")])
    judged = Habits().judged(x, USUAL)
    assert judged.doubts == ()
    assert [str(doubt) for doubt in judged.alternatives[0].doubts] == ["the number 12 is missing"]
