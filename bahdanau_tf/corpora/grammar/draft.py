"""A sentence being derived: its words so far and the nouns in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from typing import Protocol
from typing import TypeVar

from bahdanau_tf.corpora.grammar.spelling import Links
from bahdanau_tf.corpora.grammar.spelling import Piece
from bahdanau_tf.corpora.grammar.spelling import french
from bahdanau_tf.corpora.grammar.words import BE
from bahdanau_tf.corpora.grammar.words import Noun
from bahdanau_tf.corpora.grammar.words import Verb

T = TypeVar("T")


class Choices(Protocol):
    """Decides between the alternatives of the grammar."""

    def pick(self, count: int) -> int:
        """A number from 0 to `count` - 1."""

    def maybe(self, chance: float) -> bool:
        """True with probability `chance`."""


class TooLong(Exception):
    """The sentence would exceed its limit."""


class Referent(NamedTuple):
    """The features of a noun phrase with which other words agree."""

    gender: str = "m"
    plural: bool = False
    kind: str = "p"
    first_person: bool = False


PRONOUNS = {
    "I": ("je", Referent(first_person=True)),
    "we": ("nous", Referent(plural=True, first_person=True)),
    "he": ("il", Referent("m")),
    "she": ("elle", Referent("f")),
}


def english_form(verb: Verb, subject: Referent) -> str:
    """`am`, `see`, `sees`: the present tense that agrees with a subject."""
    if not subject.first_person and not subject.plural:
        return verb.third
    if verb is BE:
        return "are" if subject.plural else "am"
    return verb.base


def french_form(verb: Verb, subject: Referent) -> str:
    """`vois`, `voit`, `voyons`, `voient`: the same in French."""
    return verb.form(subject.first_person, subject.plural)


class Draft:
    """The English words so far, and the source of choices.

    Args:
        choices: decides between the alternatives of a rule.
        goal: number of English tokens up to which clauses are chained.
        limit: number of English tokens above which `TooLong` is raised.
    """

    def __init__(self, choices: Choices, goal: int, limit: int) -> None:
        self.goal = goal
        self.limit = limit - 1  # the last token is punctuation
        self.english: list[str] = []
        self.plurals: list[Referent] = []
        self.neuters: list[Referent] = []
        self.maybe = choices.maybe
        self._pick = choices.pick

    def pick(self, options: Sequence[T]) -> T:
        return options[self._pick(len(options))]

    def room_for(self, words: int) -> None:
        """Raises `TooLong` if so many more words would exceed the limit."""
        if len(self.english) + words > self.limit:
            raise TooLong

    def say(self, text: str) -> Links:
        """Appends English words and returns their positions."""
        words = text.split()
        self.room_for(len(words))
        first = len(self.english)
        self.english += words
        return tuple(range(first, first + len(words)))

    def say_one_of(self, table: dict[str, str]) -> list[Piece]:
        """Appends a key of the table; returns its value as French."""
        english = self.pick(list(table))
        return french(table[english], self.say(english))

    def remember(self, noun: Noun, plural: bool) -> Referent:
        """Records a noun that `they` or `it` could refer to later."""
        referent = Referent(noun.gender, plural, noun.kind)
        if plural:
            self.plurals.append(referent)
        elif noun.kind != "p":
            self.neuters.append(referent)
        return referent

    def antecedents(self) -> dict[str, tuple[str, Referent]]:
        """`they` and `it`, if only one noun so far fits each."""
        found = {}
        if len(self.plurals) == 1:
            they = self.plurals[0]
            found["they"] = ("ils" if they.gender == "m" else "elles", they)
        if len(self.neuters) == 1:
            it = self.neuters[0]
            found["it"] = ("il" if it.gender == "m" else "elle", it)
        return found
