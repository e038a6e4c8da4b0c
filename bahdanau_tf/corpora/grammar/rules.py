"""The rules of the built-in grammar, and its spelling, which depends on neighbouring words.

Rules append English words from left to right. Each rule returns its French as pieces with links to
the English words that they translate: the pieces in order are the translation, and their links are
the gold word alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from bahdanau_tf.corpora.grammar import words as lexicon
from bahdanau_tf.corpora.grammar.words import BE, Determiner, Noun, Verb

T = TypeVar("T")
Links = tuple[int, ...]

ELISIONS = {"le": "l'", "la": "l'", "je": "j'", "ne": "n'", "que": "qu'", "de": "d'", "me": "m'"}
LIAISONS = {"ce": "cet", "ma": "mon", "sa": "son"}
CONTRACTIONS = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("de", "des"): "de",
    ("de", "de"): "de",
    ("à", "le"): "au",
    ("à", "les"): "aux",
}
ASPIRATED = ("héros", "hibou")


class Piece(NamedTuple):
    """A French token and the positions of the English words it translates."""

    form: str
    links: Links


def french(text: str, links: Links) -> list[Piece]:
    """The words of `text` as pieces that share their links."""
    return [Piece(form, links) for form in text.split()]


def starts_with_vowel(form: str) -> bool:
    """Whether French elides before `form`; h is mute unless listed."""
    return form[0] in "aeiouhàâéèêëîïôûœ" and not form.startswith(ASPIRATED)


def contracted(pieces: list[Piece]) -> list[Piece]:
    """Elides and contracts: `de le homme` to `de l' homme`, `de le` to `du`.

    It works from right to left, so that the piece after each one is already final.
    """
    out: list[Piece] = []
    for form, links in reversed(pieces):
        following = out[-1].form if out else ""
        if contraction := CONTRACTIONS.get((form, following)):
            form, links = contraction, tuple(sorted({*links, *out.pop().links}))
            following = out[-1].form
        if form == "si" and following in ("il", "ils"):
            form = "s'"
        elif following and starts_with_vowel(following):
            form = ELISIONS.get(form, LIAISONS.get(form, form))
        out.append(Piece(form, links))
    return out[::-1]


def with_an(words: list[str]) -> list[str]:
    """`a` becomes `an` before a vowel."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return ["an" if word == "a" and after[:1] in "aeiou" else word for word, after in pairs]


def capitalised(words: list[str]) -> list[str]:
    """The words, the first one capitalized."""
    return [words[0][0].upper() + words[0][1:], *words[1:]]


def written(tokens: Iterable[str], suffixes: tuple[str, ...]) -> str:
    """The text of a sentence; there is no space before a suffix or after an apostrophe."""
    text = ""
    for token in tokens:
        is_attached = not text or token in suffixes or text.endswith("'")
        text += token if is_attached else f" {token}"
    return text


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


Pronouns = dict[str, tuple[str, Referent]]  # French form and features, by the English word
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


class Verbal(NamedTuple):
    """A finite French verb, and the words right before and after it."""

    before: list[Piece]
    verb: list[Piece]
    after: list[Piece]


class Derivation:
    """The English words so far, and the rules of the grammar, one method each.

    A rule appends English words and returns their French translation. Clauses are chained up to
    `goal` English tokens; above `limit`, `TooLong` is raised.
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
        """Raises `TooLong` if this number of further words exceeds the limit."""
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

    def antecedents(self) -> Pronouns:
        """`they` and `it`, each if only one noun so far fits it."""
        pronouns = {}
        if len(self.plurals) == 1:
            they = self.plurals[0]
            pronouns["they"] = ("ils" if they.gender == "m" else "elles", they)
        if len(self.neuters) == 1:
            it = self.neuters[0]
            pronouns["it"] = ("il" if it.gender == "m" else "elle", it)
        return pronouns

    # Sentences and clauses.

    def sentence(self) -> list[Piece]:
        asks = self.maybe(0.15)
        pieces = self.question() if asks else self.statement()
        last = french("?" if asks else ".", (len(self.english),))
        self.english.append(last[0].form)
        return pieces + last

    def statement(self) -> list[Piece]:
        pieces = []
        if self.maybe(0.1):
            pieces += self.say_one_of(lexicon.OPENERS) + self.clause()
            pieces += french(",", self.say(","))
        pieces += self.clause()
        while self.maybe(float(len(self.english) + 4 <= self.goal)):
            pieces += self.connector() + self.clause()
        return pieces

    def connector(self) -> list[Piece]:
        """A conjunction, after a comma if both languages have one."""
        self.room_for(3)
        comma = self.maybe(0.5)
        pieces = french(",", self.say(",")) if comma else []
        table = lexicon.COORDINATIONS if comma else lexicon.SUBORDINATIONS
        return pieces + self.say_one_of(table)

    def clause(self) -> list[Piece]:
        referent, subject = self.subject("patl", self.antecedents())
        if referent.kind == "p" and self.maybe(0.07):
            return subject + self.report(referent)
        return subject + self.predicate(referent)

    def report(self, subject: Referent) -> list[Piece]:
        """`says that ...`: `dit que ...`."""
        verb = self.pick(lexicon.REPORTS)
        says = self.conjugated(verb, subject)
        return says + french("que", self.say("that")) + self.clause()

    def question(self) -> list[Piece]:
        """`Who ...?`, `Does ...?`, `Why is ...?`, with `est-ce que`."""
        if self.maybe(0.25):
            who = french("qui", self.say("who"))
            return who + self.predicate(Referent(), nested=True)
        verb = lexicon.BE if self.maybe(0.25) else lexicon.DO
        french_words = []
        if self.maybe(0.4):
            french_words = self.say_one_of(lexicon.QUESTION_WORDS[verb])
        auxiliary = self.say(verb.base)
        kinds = "patl" if verb is lexicon.BE else "pa"
        referent, subject = self.subject(kinds, nested=True)
        self.english[auxiliary[0]] = english_form(verb, referent)
        french_words += french("est-ce que", auxiliary) + subject
        if verb is lexicon.BE:
            be = french(verb.form(referent.first_person, referent.plural), auxiliary)
            return french_words + self.complement(Verbal([], be, []), referent)
        return french_words + self.action(referent, auxiliary, nested=True)

    # Noun phrases.

    def subject(
        self, kinds: str, antecedents: Pronouns | None = None, nested: bool = False
    ) -> tuple[Referent, list[Piece]]:
        """A pronoun or a noun phrase, mostly of a person."""
        if self.maybe(0.35):
            pronouns = PRONOUNS | (antecedents or {})
            english = self.pick(list(pronouns))
            form, referent = pronouns[english]
            return referent, french(form, self.say(english))
        self.room_for(3)
        kind = "p" if self.maybe(0.65) else self.pick(kinds)
        return self.noun_phrase(kind, nested=nested)

    def noun_phrase(
        self, kind: str, negated: Verb | None = None, nested: bool = False
    ) -> tuple[Referent, list[Piece]]:
        """Determiner, adjectives, noun and, unless nested, perhaps a relative clause.

        `negated` is the negated verb whose object this is, if any.
        """
        self.room_for(2)
        noun = self.pick(lexicon.nouns(kind))
        if kind != "p" and self.maybe(0.1):
            return self.possession(noun)
        common = self.maybe(0.7)
        determiner = self.pick(lexicon.ARTICLES if common else lexicon.DETERMINERS)
        referent = self.remember(noun, determiner.plural)
        article = self.article(determiner, noun, negated)
        before, rest = self.described(noun, determiner.plural)
        if before and article[0].form == "des":
            article = french("de", article[0].links)
        pieces = article + before + rest
        if not nested and self.maybe(0.1):
            pieces += self.relative_clause(referent)
        return referent, pieces

    def article(self, word: Determiner, noun: Noun, negated: Verb | None = None) -> list[Piece]:
        """A determiner; `un`, `des` of a negated verb's object become `de`."""
        english = word.english
        feminine = noun.gender == "f"
        form = word.feminine if feminine else word.masculine
        if negated and not negated.tail and english in ("a", "some"):
            form = "de"
        if negated and english == "some":
            english = "any"
        return french(form, self.say(english))

    def described(self, noun: Noun, plural: bool) -> tuple[list[Piece], list[Piece]]:
        """Adjectives before the French noun; the noun and those after it."""
        before, after = [], []
        if self.maybe(0.2):
            before = self.attribute(noun, plural, "before", "fixed")
        if self.maybe(0.2):
            after = self.attribute(noun, plural, "after")
        links = self.say(noun.plural if plural else noun.singular)
        form = noun.french_plural if plural else noun.french_singular
        return before, french(form, links) + after

    def attribute(self, noun: Noun, plural: bool, *positions: str) -> list[Piece]:
        self.room_for(2)
        adjective = self.pick(lexicon.adjectives(noun.kind, *positions))
        form = adjective.form(noun.gender, plural)
        masculine = noun.gender == "m" and not plural
        if masculine and starts_with_vowel(noun.french_singular):
            form = adjective.liaison or form
        return french(form, self.say(adjective.english))

    def possession(self, noun: Noun) -> tuple[Referent, list[Piece]]:
        """`the man's black cat`: `le chat noir de l'homme`."""
        self.room_for(4)
        owner = self.pick(lexicon.nouns("p"))
        determiner = self.pick(lexicon.OWNERS)
        whose = self.article(determiner, owner)
        whose += french(owner.french_singular, self.say(owner.singular))
        genitive = self.say("'s")
        plural = self.maybe(0.3)
        before, rest = self.described(noun, plural)
        form = "les" if plural else "le" if noun.gender == "m" else "la"
        owned = french(form, genitive) + before + rest
        of = french("de", genitive)
        return self.remember(noun, plural), owned + of + whose

    def relative_clause(self, referent: Referent) -> list[Piece]:
        """`who sleeps`: `qui dort`; `that he sees`: `qu'il voit`."""
        self.room_for(2)
        if self.maybe(0.5):
            pronoun = self.say("who" if referent.kind == "p" else "that")
            who = french("qui", pronoun)
            return who + self.predicate(referent, nested=True)
        that = french("que", self.say("that"))
        agent, subject = self.subject("pa", nested=True)
        verb = self.pick(lexicon.transitives(agent.kind, referent.kind))
        return that + subject + self.conjugated(verb, agent)

    # Verb phrases.

    def predicate(self, subject: Referent, nested: bool = False) -> list[Piece]:
        if subject.kind in "tl" or self.maybe(0.15):
            return self.complement(self.verbal(lexicon.BE, subject), subject)
        return self.action(subject, nested=nested)

    def complement(self, be: Verbal, subject: Referent) -> list[Piece]:
        """`is very happy`: `est très heureux`; `is in the park`."""
        copula = be.before + be.verb + be.after
        if subject.first_person or (subject.kind in "pa" and self.maybe(0.3)):
            return copula + self.place()
        very = french("très", self.say("very")) if self.maybe(0.25) else []
        adjective = self.pick(lexicon.adjectives(subject.kind, "before", "after"))
        form = adjective.form(subject.gender, subject.plural)
        return copula + very + french(form, self.say(adjective.english))

    def action(self, subject: Referent, auxiliary: Links = (), nested: bool = False) -> list[Piece]:
        """A verb with its object and perhaps a place."""
        self.room_for(1)
        verb = self.pick(lexicon.verbs(subject.kind))
        verbal = self.verbal(verb, subject, auxiliary)
        clitic: list[Piece] = []
        phrase: list[Piece] = []
        pronouns = self.object_pronouns(verb, subject)
        if pronouns and self.maybe(0.3):
            clitic = self.say_one_of(pronouns)
        elif verb.objects:
            negated = verb if verbal.before else None
            kind = self.pick(verb.objects)
            _, phrase = self.noun_phrase(kind, negated, nested)
        pieces = verbal.before + clitic + verbal.verb + verbal.after + phrase
        if not nested and self.maybe(0.2):
            pieces += self.place()
        return pieces

    def verbal(self, verb: Verb, subject: Referent, auxiliary: Links = ()) -> Verbal:
        """`does not look for`; in a question the auxiliary was appended before."""
        before, marker = [], ""
        if negated := not auxiliary and self.maybe(0.25):
            marker = self.pick(list(lexicon.NEGATIONS))
        elif self.maybe(0.15):
            marker = self.pick(list(lexicon.ADVERBS))
        if verb is lexicon.BE:
            auxiliary = self.say(english_form(verb, subject))
        elif marker == "not":
            auxiliary = self.say(english_form(lexicon.DO, subject))
        links = self.say(marker)
        if verb is not lexicon.BE:
            form = verb.base if auxiliary else english_form(verb, subject)
            auxiliary += self.say(form)
        if negated:
            before = french("ne", links)
            after = french(lexicon.NEGATIONS[marker], links)
        else:
            after = french(lexicon.ADVERBS.get(marker, ""), links)
        particle = self.say(verb.particle)
        after += french(verb.tail, particle or auxiliary)
        links = auxiliary if verb.tail else auxiliary + particle
        finite = french(verb.form(subject.first_person, subject.plural), links)
        return Verbal(before, finite, after)

    def conjugated(self, verb: Verb, subject: Referent) -> list[Piece]:
        """The verb, without negation and adverb."""
        links = self.say(f"{english_form(verb, subject)} {verb.particle}")
        return french(verb.form(subject.first_person, subject.plural), links)

    def object_pronouns(self, verb: Verb, subject: Referent) -> dict[str, str]:
        """Pronouns for the direct object that cannot refer to the subject."""
        if verb.tail or not verb.objects:
            return {}
        if "p" not in verb.objects:
            return {"them": "les"}
        if subject.first_person:
            return lexicon.OBJECT_PRONOUNS
        return lexicon.OBJECT_PRONOUNS | lexicon.FIRST_PERSON_OBJECTS

    def place(self) -> list[Piece]:
        """`in front of the house`: `devant la maison`."""
        self.room_for(3)
        preposition = self.say_one_of(lexicon.PREPOSITIONS)
        return preposition + self.noun_phrase("l", nested=True)[1]
