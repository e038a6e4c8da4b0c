"""Translation: model, tokenizers and search in one graph, and its results."""

from bahdanau_tf.search import Constraint
from bahdanau_tf.translation.graph import Translated, TranslationGraph
from bahdanau_tf.translation.result import Scored, Translation, Translations
from bahdanau_tf.translation.shortlist import Lexicon, learn_lexicon

__all__ = [
    "Constraint",
    "Lexicon",
    "Scored",
    "Translated",
    "Translation",
    "TranslationGraph",
    "Translations",
    "learn_lexicon",
]
