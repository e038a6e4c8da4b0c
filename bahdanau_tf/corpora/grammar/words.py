"""The words of the built-in corpora, one table per class; the large ones are .tsv files.

Nouns have a kind, and adjectives and verbs list the kinds that they combine with: `p` people, `a`
animals, `t` things, `l` places.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `gender` ("m", "f") is that of the French noun."""

    singular: str
    plural: str
    french_singular: str
    french_plural: str
    gender: str
    kind: str


class Adjective(NamedTuple):
    """An adjective; `liaison` is the masculine singular before a vowel."""

    english: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    liaison: str
    position: str
    kinds: str

    def form(self, gender: str, plural: bool) -> str:
        """The French form that agrees with a gender and a number."""
        if gender == "m":
            return self.masculine_plural if plural else self.masculine
        return self.feminine_plural if plural else self.feminine


class Verb(NamedTuple):
    """A verb; `particle` follows it in English, `tail` in French."""

    base: str
    third: str
    particle: str
    je: str
    il: str
    nous: str
    ils: str
    tail: str
    subjects: str
    objects: str

    def form(self, first_person: bool, plural: bool) -> str:
        """The French form that agrees with a person and a number."""
        if first_person:
            return self.nous if plural else self.je
        return self.ils if plural else self.il


class Determiner(NamedTuple):
    """A determiner of one number."""

    english: str
    plural: bool
    masculine: str
    feminine: str


def rows(table: str) -> list[list[str]]:
    """The cells of a text table, with a row a line or `|`; `-` is an empty cell, `_` a space."""
    rows = [row.split() for row in re.split(r"[\n|]", table.strip())]
    return [["" if cell == "-" else cell.replace("_", " ") for cell in row] for row in rows]


def in_file(name: str) -> list[list[str]]:
    """The cells of a table in a file of this folder, as of `rows`."""
    path = files("bahdanau_tf.corpora.grammar").joinpath(f"{name}.tsv")
    return rows(path.read_text("utf-8"))


NOUNS = [Noun(*row) for row in in_file("nouns")]

# Position: before or after the French noun; both may also be predicates. A `fixed` one is before
# the noun and never a predicate, where French uses another word.
ADJECTIVES = [Adjective(*row) for row in in_file("adjectives")]

# English base, third person, particle; French je, il, nous, ils, tail; kinds (subject, object).
VERBS = [Verb(*row) for row in in_file("verbs")]

# Verbs that report a clause; never negated, since French would change the mood.
_REPORTS = """
say    says    -     dis      dit      disons       disent      - p -
think  thinks  -     pense    pense    pensons      pensent     - p -
know   knows   -     sais     sait     savons       savent      - p -
"""
REPORTS = [Verb(*row) for row in rows(_REPORTS)]

BE = Verb("be", "is", "", "suis", "est", "sommes", "sont", "", "patl", "")
DO = Verb("do", "does", "", "", "", "", "", "", "pa", "")

# English; `s` if plural; the French masculine and feminine.
_DETERMINERS = """
the - le la | the s les les | a - un une | some s des des
this - ce cette | these s ces ces | my - mon ma | my s mes mes | our - notre notre
our s nos nos | his - son sa | his s ses ses | her - son sa | her s ses ses
every - chaque chaque | two s deux deux | three s trois trois
"""
_ALL = [Determiner(word, bool(plural), *forms) for word, plural, *forms in rows(_DETERMINERS)]
ARTICLES, DETERMINERS = _ALL[:4], _ALL[4:]
OWNERS = [each for each in ARTICLES[:1] + DETERMINERS if not each.plural]

OBJECT_PRONOUNS = {"him": "le", "her": "la", "them": "les"}
FIRST_PERSON_OBJECTS = {"me": "me", "us": "nous"}
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
ADVERBS = {"often": "souvent", "always": "toujours", "sometimes": "parfois"}
PREPOSITIONS = {"in": "dans", "behind": "derrière", "in front of": "devant", "near": "près de"}
COORDINATIONS = {"and": "et", "but": "mais"}
SUBORDINATIONS = {"because": "parce que", "when": "quand", "while": "pendant que", "if": "si"}
OPENERS = {"when": "quand", "if": "si"}
_WHY = {"why": "pourquoi", "when": "quand"}
QUESTION_WORDS = {BE: _WHY, DO: {**_WHY, "where": "où"}}
ASKS = {"be": "est-ce que", "do": "est-ce que"}
CONNECTORS = COORDINATIONS | SUBORDINATIONS | QUESTION_WORDS[DO] | ASKS
_THIRD = {"he": "il", "she": "elle", "it": "il", "they": "ils", "who": "qui"}  # masculine
SUBJECT_PRONOUNS = {"I": "je", "we": "nous", **_THIRD}
CLITICS = OBJECT_PRONOUNS | FIRST_PERSON_OBJECTS


# The words of Korean and Japanese, by the English word and, where it matters, the kind of noun it
# belongs to. After a noun stands its counter, after a verb what follows its object. `of` is a
# number before a counter, `plural` a suffix, `form` that of a verb before `if` ..., with an ending.
def _verb_final(language: int) -> dict[str, str]:
    """The column of a language, with counters and particles as the words of `with ...`."""
    words: dict[str, str] = {}
    for english, *cells in in_file("verb_final"):
        word, *companion = cells[language::2] if len(cells) == 2 else cells[2 * language :][:2]
        words |= {english: word} | {f"with {english}": other for other in companion}
    return words


VERB_FINAL = {"ko": _verb_final(0), "ja": _verb_final(1)}


@cache
def nouns(kind: str) -> list[Noun]:
    """The nouns of a kind."""
    return [noun for noun in NOUNS if noun.kind == kind]


@cache
def adjectives(kind: str, *positions: str) -> list[Adjective]:
    """The adjectives for nouns of a kind, in one of these positions."""
    return [each for each in ADJECTIVES if each.position in positions and kind in each.kinds]


@cache
def verbs(subject: str) -> list[Verb]:
    """The verbs that a subject of this kind can have."""
    return [verb for verb in VERBS if subject in verb.subjects]


@cache
def transitives(subject: str, direct_object: str) -> list[Verb]:
    """The verbs with these kinds and no preposition in French."""
    return [each for each in verbs(subject) if direct_object in each.objects and not each.tail]
