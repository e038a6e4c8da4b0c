"""Sentences of the built-in grammar that differ in the order of words alone.

They are for pictures of sentence vectors: those of a group say about the same,
and the other group of a picture has the same words.
"""

from __future__ import annotations

from bahdanau_tf.corpora.grammar.words import nouns
from bahdanau_tf.corpora.grammar.words import transitives


def phrases() -> list[list[list[str]]]:
    """Groups of sentences, for two pictures."""
    one, other = (noun.singular for noun in nouns("p")[:2])
    verbs = [verb.third for verb in transitives("p", "p")[:3]]
    pairs = ((one, other), (other, one))
    objects = [
        [f"The {who} {verb} the {whom}." for verb in verbs]
        for who, whom in pairs
    ]
    clauses = [
        [
            f"The {who} sings when the {whom} sleeps.",
            f"When the {whom} sleeps, the {who} sings.",
            f"The {who} sings while the {whom} sleeps.",
        ]
        for who, whom in pairs
    ]
    return [objects, clauses]
