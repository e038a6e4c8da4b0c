"""Translation: model, tokenizers and search in one graph, and its results."""

from bahdanau_tf.search import Constraint as Constraint
from bahdanau_tf.translation.graph import (
    Translated as Translated,
    TranslationGraph as TranslationGraph,
)
from bahdanau_tf.translation.result import (
    Scored as Scored,
    Translation as Translation,
    Translations as Translations,
)
from bahdanau_tf.translation.shortlist import Lexicon as Lexicon, learn_lexicon as learn_lexicon
