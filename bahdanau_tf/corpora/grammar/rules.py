"""The rules of the built-in grammar: English sentences, from which the translations are made.

Rules append English words from left to right. Each rule returns a node of the sentence's tree,
which has the positions of its English words; `french.py` and `verb_final.py` put a tree into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from bahdanau_tf.corpora.grammar import words as lexicon
from bahdanau_tf.corpora.grammar.words import BE, Adjective, Determiner, Noun, Verb

T = TypeVar("T")
Links = tuple[int, ...]


class Piece(NamedTuple):
    """A part of the translation and the positions of the English words it translates."""

    form: str
    links: Links


class Referent(NamedTuple):
    """The features of a noun phrase that other words agree with."""

    gender: str = "m"
    plural: bool = False
    kind: str = "p"
    first_person: bool = False
    noun: Noun | None = None


class NounPhrase(NamedTuple):
    """A noun with its modifiers, or a pronoun.

    The phrase without links is the gap of a relative clause: the noun that the clause modifies.
    `negated` is the negated verb whose object this is.
    """

    referent: Referent
    links: Links = ()
    pronoun: str = ""
    determiner: tuple[Determiner, Links] | None = None
    negated: Verb | None = None
    owner: NounPhrase | None = None
    genitive: Links = ()
    adjectives: Sequence[tuple[Adjective, Links]] = ()
    relative: tuple[Links, Clause] | None = None


class Clause(NamedTuple):
    """A finite verb with what belongs to it; `marker` is a negation or an adverb.

    A verb has an object, a `content` (`that ...`) or neither; `be` an adjective or a place.
    """

    subject: NounPhrase
    verb: Verb
    auxiliary: Links
    links: Links
    particle: Links
    marker: Piece = Piece("", ())
    object: NounPhrase | None = None
    content: tuple[Links, Clause] | None = None
    very: Links = ()
    adjective: tuple[Adjective, Links] | None = None
    place: tuple[Piece, NounPhrase] | None = None


# Clauses, and the English words before, between and after them.
Sentence = list[Piece | Clause]


def spelled(words: list[str]) -> list[str]:
    """The words, the first one capitalized; `a` becomes `an` before a vowel."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    words = ["an" if word == "a" and after[:1] in "aeiou" else word for word, after in pairs]
    return [words[0].capitalize(), *words[1:]]


class Choices(Protocol):
    """Decides between the alternatives of the grammar."""

    def pick(self, count: int) -> int:
        """A number from 0 to `count` - 1."""

    def maybe(self, chance: float) -> bool:
        """True with probability `chance`."""


class TooLong(Exception):
    """The sentence would exceed its limit."""


PRONOUNS = {
    "I": Referent(first_person=True),
    "we": Referent(plural=True, first_person=True),
    "he": Referent("m"),
    "she": Referent("f"),
}


def english_form(verb: Verb, subject: Referent) -> str:
    """`am`, `see`, `sees`: the present tense that agrees with a subject."""
    if not subject.first_person and not subject.plural:
        return verb.third
    if verb is BE:
        return "are" if subject.plural else "am"
    return verb.base


class Derivation:
    """The English words so far, and the rules of the grammar, one method each.

    A rule appends English words and returns their node. Clauses are chained up to `goal` English
    tokens; above `limit`, `TooLong` is raised.
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

    def say_one_of(self, table: dict[str, str]) -> Piece:
        """Appends a key of the table; returns it with its positions."""
        english = self.pick(list(table))
        return Piece(english, self.say(english))

    def remember(self, noun: Noun, plural: bool) -> Referent:
        """Records a noun that `they` or `it` could refer to later."""
        referent = Referent(noun.gender, plural, noun.kind, noun=noun)
        if plural:
            self.plurals.append(referent)
        elif noun.kind != "p":
            self.neuters.append(referent)
        return referent

    def antecedents(self) -> dict[str, Referent]:
        """`they` and `it`, each if only one noun so far fits it."""
        nouns = {"they": self.plurals, "it": self.neuters}
        return {pronoun: fitting[0] for pronoun, fitting in nouns.items() if len(fitting) == 1}

    # Sentences and clauses.

    def sentence(self) -> Sentence:
        asks = self.maybe(0.15)
        parts = self.question() if asks else self.statement()
        last = Piece("?" if asks else ".", (len(self.english),))
        self.english.append(last.form)
        return [*parts, last]

    def statement(self) -> Sentence:
        parts: Sentence = []
        if self.maybe(0.1):
            parts += [self.say_one_of(lexicon.OPENERS), self.clause(), Piece(",", self.say(","))]
        parts.append(self.clause())
        while self.maybe(float(len(self.english) + 4 <= self.goal)):
            parts += [*self.connector(), self.clause()]
        return parts

    def connector(self) -> Sentence:
        """A conjunction, after a comma if it is a coordination."""
        self.room_for(3)
        comma = self.maybe(0.5)
        before = [Piece(",", self.say(","))] if comma else []
        table = lexicon.COORDINATIONS if comma else lexicon.SUBORDINATIONS
        return [*before, self.say_one_of(table)]

    def clause(self) -> Clause:
        subject = self.subject("patl", self.antecedents())
        if subject.referent.kind == "p" and self.maybe(0.07):
            return self.report(subject)
        return self.predicate(subject)

    def report(self, subject: NounPhrase) -> Clause:
        """`says that ...`."""
        says = self.affirmed(self.pick(lexicon.REPORTS), subject)
        return says._replace(content=(self.say("that"), self.clause()))

    def question(self) -> Sentence:
        """`Who ...?`, `Does ...?`, `Why is ...?`."""
        if self.maybe(0.25):
            who = NounPhrase(Referent(), self.say("who"), "who")
            return [self.predicate(who, nested=True)]
        verb = lexicon.BE if self.maybe(0.25) else lexicon.DO
        word = [self.say_one_of(lexicon.QUESTION_WORDS[verb])] if self.maybe(0.4) else []
        auxiliary = self.say(verb.base)
        subject = self.subject("patl" if verb is lexicon.BE else "pa", nested=True)
        self.english[auxiliary[0]] = english_form(verb, subject.referent)
        asked = [*word, Piece(verb.base, auxiliary)]
        if verb is lexicon.BE:
            return [*asked, self.complement(Clause(subject, verb, auxiliary, (), ()))]
        return [*asked, self.action(subject, auxiliary, nested=True)]

    # Noun phrases.

    def subject(
        self, kinds: str, antecedents: dict[str, Referent] | None = None, nested: bool = False
    ) -> NounPhrase:
        """A pronoun or a noun phrase, mostly of a person."""
        if self.maybe(0.35):
            pronouns = PRONOUNS | (antecedents or {})
            english = self.pick(list(pronouns))
            return NounPhrase(pronouns[english], self.say(english), english)
        self.room_for(3)
        kind = "p" if self.maybe(0.65) else self.pick(kinds)
        return self.noun_phrase(kind, nested=nested)

    def noun_phrase(
        self, kind: str, negated: Verb | None = None, nested: bool = False
    ) -> NounPhrase:
        """Determiner, adjectives, noun and, unless nested, perhaps a relative clause."""
        self.room_for(2)
        noun = self.pick(lexicon.nouns(kind))
        if kind != "p" and self.maybe(0.1):
            return self.possession(noun)
        common = self.maybe(0.7)
        determiner = self.pick(lexicon.ARTICLES if common else lexicon.DETERMINERS)
        english = "any" if negated and determiner.english == "some" else determiner.english
        article = (determiner, self.say(english))
        phrase = self.described(noun, determiner.plural)
        phrase = phrase._replace(determiner=article, negated=negated)
        if not nested and self.maybe(0.1):
            phrase = phrase._replace(relative=self.relative_clause(phrase.referent))
        return phrase

    def described(self, noun: Noun, plural: bool) -> NounPhrase:
        """Adjectives and a noun."""
        places = (("before", "fixed"), ("after",))
        adjectives = [self.attribute(noun, *each) for each in places if self.maybe(0.2)]
        links = self.say(noun.plural if plural else noun.singular)
        return NounPhrase(self.remember(noun, plural), links, adjectives=adjectives)

    def attribute(self, noun: Noun, *positions: str) -> tuple[Adjective, Links]:
        self.room_for(2)
        adjective = self.pick(lexicon.adjectives(noun.kind, *positions))
        return adjective, self.say(adjective.english)

    def possession(self, noun: Noun) -> NounPhrase:
        """`the man's black cat`."""
        self.room_for(4)
        who = self.pick(lexicon.nouns("p"))
        determiner = self.pick(lexicon.OWNERS)
        article = (determiner, self.say(determiner.english))
        referent = Referent(who.gender, False, who.kind, noun=who)
        owner = NounPhrase(referent, self.say(who.singular), determiner=article)
        genitive = self.say("'s")
        owned = self.described(noun, plural=self.maybe(0.3))
        return owned._replace(owner=owner, genitive=genitive)

    def relative_clause(self, referent: Referent) -> tuple[Links, Clause]:
        """`who sleeps`, `that he sees`."""
        self.room_for(2)
        if self.maybe(0.5):
            pronoun = self.say("who" if referent.kind == "p" else "that")
            return pronoun, self.predicate(NounPhrase(referent), nested=True)
        that = self.say("that")
        agent = self.subject("pa", nested=True)
        verb = self.pick(lexicon.transitives(agent.referent.kind, referent.kind))
        return that, self.affirmed(verb, agent)._replace(object=NounPhrase(referent))

    # Verb phrases.

    def predicate(self, subject: NounPhrase, nested: bool = False) -> Clause:
        if subject.referent.kind in "tl" or self.maybe(0.15):
            return self.complement(self.verbal(lexicon.BE, subject))
        return self.action(subject, nested=nested)

    def complement(self, be: Clause) -> Clause:
        """`is very happy`, `is in the park`."""
        subject = be.subject.referent
        if subject.first_person or (subject.kind in "pa" and self.maybe(0.3)):
            return be._replace(place=self.place())
        very = self.say("very") if self.maybe(0.25) else ()
        adjective = self.pick(lexicon.adjectives(subject.kind, "before", "after"))
        return be._replace(very=very, adjective=(adjective, self.say(adjective.english)))

    def action(self, subject: NounPhrase, auxiliary: Links = (), nested: bool = False) -> Clause:
        """A verb with its object and perhaps a place."""
        self.room_for(1)
        verb = self.pick(lexicon.verbs(subject.referent.kind))
        clause = self.verbal(verb, subject, auxiliary)
        pronouns = self.object_pronouns(verb, subject.referent)
        if pronouns and self.maybe(0.3):
            pronoun = self.say_one_of(pronouns)
            kind = "p" if "p" in verb.objects else "t"
            him = NounPhrase(Referent(kind=kind), pronoun.links, pronoun.form)
            clause = clause._replace(object=him)
        elif verb.objects:
            negated = verb if clause.marker.form in lexicon.NEGATIONS else None
            whom = self.noun_phrase(self.pick(verb.objects), negated, nested)
            clause = clause._replace(object=whom)
        if not nested and self.maybe(0.2):
            clause = clause._replace(place=self.place())
        return clause

    def verbal(self, verb: Verb, subject: NounPhrase, auxiliary: Links = ()) -> Clause:
        """`does not look for`; in a question the auxiliary was appended before."""
        marker = ""
        if not auxiliary and self.maybe(0.25):
            marker = self.pick(list(lexicon.NEGATIONS))
        elif self.maybe(0.15):
            marker = self.pick(list(lexicon.ADVERBS))
        if verb is lexicon.BE:
            auxiliary = self.say(english_form(verb, subject.referent))
        elif marker == "not":
            auxiliary = self.say(english_form(lexicon.DO, subject.referent))
        marked = Piece(marker, self.say(marker))
        if verb is lexicon.BE:
            return Clause(subject, verb, auxiliary, (), (), marked)
        links = self.say(verb.base if auxiliary else english_form(verb, subject.referent))
        return Clause(subject, verb, auxiliary, links, self.say(verb.particle), marked)

    def affirmed(self, verb: Verb, subject: NounPhrase) -> Clause:
        """The verb, without negation and adverb."""
        links = self.say(english_form(verb, subject.referent))
        return Clause(subject, verb, (), links, self.say(verb.particle))

    def object_pronouns(self, verb: Verb, subject: Referent) -> dict[str, str]:
        """Pronouns for the direct object that cannot refer to the subject."""
        if verb.tail or not verb.objects:
            return {}
        if "p" not in verb.objects:
            return {"them": "les"}
        if subject.first_person:
            return lexicon.OBJECT_PRONOUNS
        return lexicon.OBJECT_PRONOUNS | lexicon.FIRST_PERSON_OBJECTS

    def place(self) -> tuple[Piece, NounPhrase]:
        """`in front of the house`."""
        self.room_for(3)
        preposition = self.say_one_of(lexicon.PREPOSITIONS)
        return preposition, self.noun_phrase("l", nested=True)
