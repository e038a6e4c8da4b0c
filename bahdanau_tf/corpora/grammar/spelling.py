"""Spelling rules of the built-in grammar that depend on neighbouring words.

Elision, contraction and liaison in French, `a` and `an` in English, capitals,
and the spaces between the tokens of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bahdanau_tf.corpora.grammar.words import nouns, transitives

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


def contracted(pieces: Iterable[Piece]) -> list[Piece]:
    """Elides and contracts: `de le homme` to `de l' homme`, `de le` to `du`.

    It works from right to left, so that the piece after each one is already final.
    """
    out: list[Piece] = []
    for piece in reversed(list(pieces)):
        following = out[-1].form if out else ""
        if form := CONTRACTIONS.get((piece.form, following)):
            links = sorted({*piece.links, *out.pop().links})
            piece = Piece(form, tuple(links))
            following = out[-1].form
        out.append(Piece(_before(piece.form, following), piece.links))
    return out[::-1]


def _before(form: str, following: str) -> str:
    """The form of a French word before the following one."""
    if form == "si" and following in ("il", "ils"):
        return "s'"
    if following and starts_with_vowel(following):
        return ELISIONS.get(form, LIAISONS.get(form, form))
    return form


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


def phrases() -> list[list[list[str]]]:
    """Groups of sentences, for two pictures of sentence vectors.

    The sentences of a group have about the same meaning; both groups of a picture have
    the same words.
    """
    first, second = (noun.singular for noun in nouns("p")[:2])
    verbs = [verb.third for verb in transitives("p", "p")[:3]]
    pairs = ((first, second), (second, first))
    objects = [[f"The {who} {verb} the {whom}." for verb in verbs] for who, whom in pairs]
    clauses = [
        [
            f"The {who} sings when the {whom} sleeps.",
            f"When the {whom} sleeps, the {who} sings.",
            f"The {who} sings while the {whom} sleeps.",
        ]
        for who, whom in pairs
    ]
    return [objects, clauses]
