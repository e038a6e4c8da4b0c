"""Translation: model, tokenizers and search in one graph, and its results.

Names are imported when they are first used: results need no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.translation.graph import (
        Constraint as Constraint,
        Translated as Translated,
        TranslationGraph as TranslationGraph,
    )
    from bahdanau_tf.translation.result import (
        Scored as Scored,
        Translation as Translation,
        Translations as Translations,
    )
    from bahdanau_tf.translation.shortlist import Lexicon as Lexicon, learn_lexicon as learn_lexicon

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.py")
__all__ = sorted(_homes)
