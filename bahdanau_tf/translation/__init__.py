"""Translation: model, tokenizers and search in one graph, and its results."""

from bahdanau_tf.translation.graph import Translated
from bahdanau_tf.translation.graph import TranslationGraph
from bahdanau_tf.translation.result import Scored
from bahdanau_tf.translation.result import Translation
from bahdanau_tf.translation.shortlist import Lexicon
from bahdanau_tf.translation.shortlist import learn_lexicon

__all__ = [
    "Lexicon",
    "Scored",
    "Translated",
    "Translation",
    "TranslationGraph",
    "learn_lexicon",
]
