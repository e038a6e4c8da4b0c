"""A translator of size small with the weights it begins with.

A search of fixed length takes the same time with it as with a trained one.
"""

from __future__ import annotations

import random

import keras
import numpy as np
from sizes import SIZES

from bahdanau_tf import RNNSearch
from bahdanau_tf import Translator
from bahdanau_tf.text import Vocabulary
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.translation import Lexicon

SHORTLISTED = 500, 10  # first words, and own words of each source word


def make_translator() -> Translator:
    """Made words on both sides, and a lexicon drawn at random."""
    keras.utils.set_random_seed(1)
    size = SIZES["small"]
    words = [f"w{number}" for number in range(size.vocabulary_size)]
    tokens = [*SPECIAL, *words][: size.vocabulary_size]
    source, target = (WordTokenizer(Vocabulary(tokens)) for _ in range(2))
    first, own = SHORTLISTED
    drawn = np.random.default_rng(1).integers(
        first, size.vocabulary_size, [size.vocabulary_size, own]
    )
    drawn[0] = -1  # padding
    model = RNNSearch(
        len(tokens),
        len(tokens),
        units=size.units,
        embedding_dim=size.embedding_dim,
        attention_units=size.attention_units,
        maxout_units=size.maxout_units,
    )
    return Translator(model, source, target, lexicon=Lexicon(drawn, first))


def make_lines(count: int) -> list[str]:
    """Sentences of 4 to 24 of its words, 13 on average or a little more."""
    draw = random.Random(1)
    return [
        " ".join(f"w{draw.randrange(5000)}" for _ in range(draw.randint(4, 24)))
        for _ in range(count)
    ]
