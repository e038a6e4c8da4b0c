"""An untrained translator.

A search of fixed length takes the same time with it as with a trained one.
"""

from __future__ import annotations

import random

import keras
import numpy as np
from sizes import Size

from bahdanau_tf import RNNSearch, Translator
from bahdanau_tf.text import Vocabulary, WordTokenizer
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.translation import Lexicon

SHORTLISTED = 500, 10  # first words, and own words of each source word
USED = 5000  # words that lines are made of


def make_translator(size: Size) -> Translator:
    """Invented words on both sides, and a random lexicon."""
    keras.utils.set_random_seed(1)
    words = [f"w{number}" for number in range(size.vocabulary_size)]
    tokens = [*SPECIAL, *words][: size.vocabulary_size]
    source, target = (WordTokenizer(Vocabulary(tokens)) for _ in range(2))
    first, own = min(SHORTLISTED[0], len(tokens) // 2), SHORTLISTED[1]
    drawn = np.random.default_rng(1).integers(first, len(tokens), [len(tokens), own])
    drawn[0] = -1  # padding
    lexicon = Lexicon(drawn, first)
    return Translator(RNNSearch(*size.of_model), source, target, lexicon=lexicon)


def make_lines(count: int, shortest: int = 4, longest: int = 24) -> list[str]:
    """Sentences of its words, with lengths in a range."""
    draw = random.Random(1)
    lengths = (draw.randint(shortest, longest) for _ in range(count))
    return [" ".join(f"w{draw.randrange(USED)}" for _ in range(length)) for length in lengths]
