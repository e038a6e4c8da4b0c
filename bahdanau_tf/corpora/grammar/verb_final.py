"""The Korean and the Japanese of a sentence's tree: particles after nouns, verbs at the end.

Both are in the polite style, have no articles, repeat the noun where English has `it` or `they`,
and omit a pronoun that is also the subject of the main clause. A new subject (`a cat`) has 이/가 or
が, unless it is described or its verb negated. Korean words are separated as usual, Japanese
phrases as in books for learners. A token is a word or a phrase, with its particle or ending.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bahdanau_tf.corpora.grammar import rules, words as lexicon
from bahdanau_tf.corpora.grammar.rules import Clause, Links, NounPhrase, Piece, Referent, Sentence

NONE = Piece("", ())
N, L = 4, 8  # the consonants ㄴ, ㄹ at the end of a syllable, by their place in Unicode
AFTER_VOWELS = {"은": "는", "이": "가", "을": "를", "과": "와"}
NEW = ("a", "some", "two", "three")
OBJECTS = {"him": "he", "her": "she", "me": "I", "us": "we"}
# Whose own things are `my`, `our` ... things.
POSSESSORS = dict(zip(("my", "our", "his", "her"), rules.PRONOUNS.values(), strict=True))
# By the end of the dictionary form: before -masu, before -nai, the form in -te.
_GODAN = "う い わ って|く き か いて|す し さ して|つ ち た って|る り ら って|た てい てい ていて"
VERBS = {last: forms for last, *forms in lexicon.rows(_GODAN)}
OPPOSITES = {"알다/알면/알아요": "모르다/모르면/몰라요", "있다/있으면/있어요": "없다/없으면/없어요"}
Forms = tuple[str, dict[str, str]]


class VerbFinal:
    """A language; `forms` returns the start of a verb, and what follows it in each form."""

    def __init__(self, language: str, token: str, forms: Callable[[str, bool], Forms]) -> None:
        self.language, self.token, self.forms = language, token, forms

    def word(self, english: str, kind: str = "") -> str:
        """The translation of a word, which may depend on the kind of noun it belongs to."""
        words = lexicon.VERB_FINAL[self.language]
        return words.get(f"{english} {kind}", words.get(english, ""))

    def adjective(self, english: str, referent: Referent) -> str:
        """The translation of an adjective; a young child has another word than a young man."""
        is_child = referent.noun and referent.noun.singular in ("boy", "girl", "child")
        return self.word(english, "child" if is_child else referent.kind)

    def said(self, english: str, links: Links, kind: str = "") -> list[Piece]:
        """The translation of a word, if it has any."""
        word = self.word(english, kind)
        return [Piece(f" {word}", links)] if word else []

    def sentence(self, parts: Sentence) -> tuple[str, list[Piece]]:
        """The text of a sentence, and its tokens with their links."""
        pieces = self.clauses(parts)
        text = "".join(piece.form for piece in pieces)
        links = [piece.links for piece in pieces for _ in piece.form]  # of each character
        return text.strip(), [
            Piece(match[0], tuple(sorted({i for own in links[slice(*match.span())] for i in own})))
            for match in re.finditer(self.token, text)
        ]

    def clauses(self, parts: Sentence) -> list[Piece]:
        """The clauses; up to a comma or the end, subordinate ones precede the main clause."""
        pieces: list[Piece] = []
        chunk: list[tuple[Piece, Clause]] = []
        word = NONE
        for part, after in zip(parts, [*parts[1:], NONE], strict=True):
            if isinstance(part, Clause):
                chunk.insert(0, (word, part))
                word = NONE
            elif part.form not in (",", ".", "?"):
                word = word if part.form in lexicon.ASKS else part
            else:
                opener, main = chunk.pop()
                asked = opener if part.form == "?" else None
                if isinstance(after, Clause):  # `when`, `if` and a clause before the main clause
                    ending, subject = opener, after.subject
                else:
                    ending, subject = after, main.subject
                for connector, clause in [*chunk, (ending, main)]:
                    pieces += self.clause(clause, connector, subject, asked)
                pieces.append(Piece(self.word(part.form), part.links))
                chunk = []
        return pieces

    def clause(
        self, node: Clause, ending: Piece, main: NounPhrase, asked: Piece | None = None
    ) -> list[Piece]:
        """Subject, place, object or complement, adverb, verb; a question has a word `asked`."""
        subject, verb, marker = node.subject, node.verb, node.marker
        english = f"{verb.base} {verb.particle}".strip()
        kind = node.object.referent.kind if node.object else ""
        particle = self.word(f"with {english}", kind)
        negation = marker.links if marker.form in lexicon.NEGATIONS else ()
        pieces: list[Piece] = []
        is_main = ending.form in ("", "and", "but")
        if is_main or not subject.pronoun or subject.referent != main.referent:
            is_new = subject.determiner and subject.determiner[0].english in NEW
            stative = node.adjective or node.content or negation or particle == self.word("subject")
            is_topic = is_main and subject.pronoun != "who" and (stative or not is_new)
            role = self.word("topic" if is_topic else "subject")
            pieces += self.noun_phrase(subject, role, main.referent)
        if asked:
            pieces += self.said(*asked)
            ending = Piece("?", ())
        if node.place:
            preposition, where = node.place
            at = self.word(preposition.form) + self.word("place", verb.base)
            pieces += self.noun_phrase(where, at, subject.referent, preposition.links)
        links = node.links or node.auxiliary
        links, of = (links, node.particle) if verb.tail else (links + node.particle, ())
        if node.object:
            pieces += self.noun_phrase(node.object, particle, subject.referent, of, links)
        elif node.content:
            english += " that"
            pieces += self.clause(node.content[1], Piece(english, node.content[0]), subject)
        word = self.word(english, kind)
        pieces += self.said(*marker)  # next to the verb, so that it is not read with a noun
        if node.adjective:
            adjective, links = node.adjective
            word = self.adjective(adjective.english, subject.referent)
            degree = "French" if adjective.english == "French" else marker.form
            pieces += self.said("very" if node.very else "", node.very, degree)
        contrast = self.word("contrast", marker.form) if node.very else ""
        start, *rest = self.predicate(word, links, ending, node.auxiliary, negation)
        form = f"{start.form}{contrast}".replace("이는", "은")  # of 사람이 아니에요
        return [*pieces, Piece(form, links), *rest]

    def predicate(
        self, word: str, links: Links, ending: Piece, auxiliary: Links = (), negation: Links = ()
    ) -> list[Piece]:
        """A verb or adjective, in the form that its ending needs."""
        start, forms = self.forms(word, bool(negation))
        form, suffix = (self.word(key, ending.form) for key in ("form", "with form"))
        rest, last = auxiliary + negation + (() if negation and start else links), ending.links
        if not (forms[form] and suffix):
            rest = last = rest + last
        return [Piece(f" {start}", links), Piece(forms[form], rest), Piece(suffix, last)]

    def noun_phrase(
        self, phrase: NounPhrase, particle: str, owner: Referent, of: Links = (), by: Links = ()
    ) -> list[Piece]:
        """Modifiers, noun, particle; only the particle's further words after a relative clause.

        What belongs to `owner` is its own. The particle's last word has the links `of`; without
        these, further words have `by`.
        """
        particle, *rest = particle.split(" ")
        words = [Piece(f" {word}", of or by) for word in rest]
        if not phrase.links:
            return words
        referent, noun = phrase.referent, phrase.referent.noun
        determiner, links = phrase.determiner or (None, ())
        english = determiner.english if determiner else ""
        english = "any" if english == "some" and phrase.negated else english
        if owner is not referent and owner._replace(noun=None) == POSSESSORS.get(english):
            english += " own"
        pieces: list[Piece] = []
        if phrase.relative:
            pieces += self.clause(phrase.relative[1], Piece("noun", phrase.relative[0]), phrase)
        pieces += self.said(english, links, referent.kind)
        if phrase.owner:
            pieces += self.noun_phrase(phrase.owner, self.word("owner"), owner, phrase.genitive)
        # A number stands after a Korean noun and before a Japanese noun.
        counter = self.word(f"with {noun.singular}") if noun else ""
        number, brace, end = self.word(f"{english} of", counter).partition("{}")
        counted = [Piece(f" {number}", links), Piece(brace and counter + end, phrase.links)]
        pieces += counted if number and self.language == "ja" else []
        for adjective, own in phrase.adjectives:
            word = self.adjective(adjective.english, referent)
            pieces += self.predicate(word, own, Piece("attribute", ()))
        name = noun.singular if noun else OBJECTS.get(phrase.pronoun, phrase.pronoun)
        form = self.word(name, referent.kind)
        if noun and referent.plural and not number and english != "any":
            form += self.word("plural", referent.kind) or self.word(f"plural {english}")
        form = "제" if (form, particle) == ("저", "이") else form
        pieces.append(Piece(f" {form}", phrase.links))
        pieces += counted if number and self.language == "ko" else []
        if not final(pieces[-1].form):
            particle = AFTER_VOWELS.get(particle, particle)
        return [*pieces, Piece(particle, phrase.links + (() if rest else of)), *words]


def final(text: str) -> int:
    """The place of the consonant at the end of a Hangul syllable in Unicode; 0 if there is none."""
    return (ord(text[-1]) - ord("가")) % 28


def with_final(text: str, consonant: int) -> str:
    """Korean text whose last syllable ends in this consonant: 보 and ㄴ are 본."""
    return text[:-1] + chr(ord(text[-1]) - final(text) + consonant)


def korean(word: str, negated: bool) -> Forms:
    """The forms of a verb, such as 듣다/들으면/들어요, or of an adjective: 크다/큰/커요."""
    if "/" not in word:  # only before a noun
        return "", {"attribute": word}
    if negated and word in OPPOSITES:
        word, negated = OPPOSITES[word], False
    stem, second, polite = (form.removesuffix("다").removesuffix("요") for form in word.split("/"))
    is_verb, is_copula = second.endswith("면"), stem.endswith("이")
    exists, is_past = stem.endswith(("있", "없")), stem.endswith("됐")
    opened = second.removesuffix("면") if is_verb else with_final(second, 0)
    start, opened = "", stem if is_copula else opened
    if negated:
        start = stem if is_copula else f"{opened if is_past else stem}지"
        stem = " 아니" if is_copula else " 않"
        opened, polite = (stem, f"{stem}에") if is_copula else (f"{stem}으", f"{stem}아")
    adnominal = second if final(second) == N and not negated else with_final(opened, N)
    if is_past:
        stem, polite = (" 않았", " 않았어") if negated else (stem, polite)
        opened = f"{stem}으"
    plain = f"{stem}라" if is_copula else f"{stem}다"
    if is_verb and not exists:
        plain = f"{with_final(stem, N)}다" if final(stem) in (0, L) else f"{stem}는다"
    if is_verb and not (exists and negated):
        adnominal = f"{with_final(stem, 0) if final(stem) == L else stem}는"
    forms = {"polite": f"{polite}요", "stem": stem, "open": opened, "plain": plain}
    forms |= {"attribute": second, "adnominal": adnominal, "prospective": with_final(opened, L)}
    return start, forms


def japanese(word: str, negated: bool) -> Forms:
    """The forms of a verb (寝-る, 歌う, the state 取った) or an adjective (大きい, 幸せな, の)."""
    word = "知る" if negated and word == "知ってい-る" else word
    stem, last = word[:-1], word[-1]
    if last in "なの":
        forms = {"polite": "です", "plain": "", "te": "で", "declarative": "だ", "fact": "である"}
        forms |= {"adnominal": last, "attribute": last, "lasting": last, "causal": "な"}
        polite, plain = "ではありません", "ではない"
    elif last == "い":
        forms = {"polite": "いです", "plain": "い", "te": "くて"}
        polite, plain = "くありません", "くない"
    else:
        masu, nai, te = ("", "", "て") if stem.endswith("-") else VERBS[last]
        stem = stem.removesuffix("-")
        forms = {"polite": f"{masu}ます", "plain": last, "te": te}
        if last == "た":
            forms |= {"plain": "ている", "attribute": last}
        elif not stem.endswith("い"):  # not a state, as 持っている
            forms["lasting"] = f"{te}いる"
        polite, plain = f"{masu}ません", f"{nai}ない"
    if negated:
        forms = {"polite": polite, "plain": plain, "te": f"{polite}し"}
    others = ("adnominal", "attribute", "lasting", "causal", "declarative", "fact")
    return stem, dict.fromkeys(others, forms["plain"]) | forms


KOREAN = VerbFinal("ko", r"[가-힣]+|\S", korean)
JAPANESE = VerbFinal("ja", r"[^\s、。]+|\S", japanese)
