"""The French of a sentence's tree, and its spelling, which depends on neighbouring words."""

from __future__ import annotations

import re

from bahdanau_tf.corpora.grammar import words as lexicon
from bahdanau_tf.corpora.grammar.rules import Clause, Links, NounPhrase, Piece, Sentence

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


def sentence(parts: Sentence) -> tuple[str, list[Piece]]:
    """The text of a sentence, and its tokens, in the order of the English clauses."""
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, Clause):
            pieces += clause(part)
        else:
            pieces += french(lexicon.CONNECTORS.get(part.form, part.form), part.links)
    (first, links), *others = contracted(pieces)
    pieces = [Piece(first.capitalize(), links), *others]
    text = " ".join(piece.form for piece in pieces)
    return re.sub(r"(?<=') | (?=[.,])", "", text), pieces


def clause(node: Clause) -> list[Piece]:
    """`ne dort pas`, `ne le voit jamais`, `a besoin de`: words before and after the verb."""
    subject, verb, marker = node.subject.referent, node.verb, node.marker
    negation = lexicon.NEGATIONS.get(marker.form, "")
    before = french("ne", marker.links) if negation else []
    after = french(negation or lexicon.ADVERBS.get(marker.form, ""), marker.links)
    links = node.auxiliary + node.links
    after += french(verb.tail, node.particle or links)
    if not verb.tail:
        links += node.particle
    if node.object and node.object.pronoun:
        before += french(lexicon.CLITICS[node.object.pronoun], node.object.links)
    elif node.object:
        after += noun_phrase(node.object)
    if node.content:
        after += french("que", node.content[0]) + clause(node.content[1])
    if node.adjective:
        adjective, of_adjective = node.adjective
        after += french("très" if node.very else "", node.very)
        after += french(adjective.form(subject.gender, subject.plural), of_adjective)
    if node.place:
        preposition, where = node.place
        after += french(lexicon.PREPOSITIONS[preposition.form], preposition.links)
        after += noun_phrase(where)
    form = verb.form(subject.first_person, subject.plural)
    return noun_phrase(node.subject) + before + french(form, links) + after


def noun_phrase(phrase: NounPhrase) -> list[Piece]:
    """`le chat noir de l'homme qui dort`; nothing for the gap of a relative clause."""
    referent, noun = phrase.referent, phrase.referent.noun
    if phrase.pronoun:
        form = lexicon.SUBJECT_PRONOUNS[phrase.pronoun]
        return french(form.replace("il", "elle") if referent.gender == "f" else form, phrase.links)
    if not phrase.links or not noun:
        return []
    form = noun.french_plural if referent.plural else noun.french_singular
    before, rest = [], french(form, phrase.links)
    for adjective, links in phrase.adjectives:
        form = adjective.form(referent.gender, referent.plural)
        if referent.gender == "m" and not referent.plural and starts_with_vowel(rest[0].form):
            form = adjective.liaison or form
        if adjective.position == "after":
            rest += french(form, links)
        else:
            before += french(form, links)
    pieces = article(phrase, bool(before)) + before + rest
    if phrase.owner:
        pieces += french("de", phrase.genitive) + noun_phrase(phrase.owner)
    if phrase.relative:
        links, relative = phrase.relative
        pieces += french("que" if relative.subject.links else "qui", links) + clause(relative)
    return pieces


def article(phrase: NounPhrase, described: bool) -> list[Piece]:
    """A determiner; `un`, `des` of a negated verb's object and `des` before adjectives are `de`."""
    referent = phrase.referent
    word, links = phrase.determiner or (lexicon.ARTICLES[referent.plural], phrase.genitive)
    form = word.feminine if referent.gender == "f" else word.masculine
    if phrase.negated and not phrase.negated.tail and word.english in ("a", "some"):
        form = "de"
    return french("de" if described and form == "des" else form, links)
