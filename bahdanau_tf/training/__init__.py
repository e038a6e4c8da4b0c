"""Training that can be stopped and resumed; its state is kept in a folder.

Names are imported when they are first used: `ask` needs no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bahdanau_tf.options import Recipe as Recipe
from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.training.ask import Training as Training
    from bahdanau_tf.training.folder import locked as locked
    from bahdanau_tf.training.keywords import fit as fit
    from bahdanau_tf.training.loop import train as train
    from bahdanau_tf.training.run import TrainingResult as TrainingResult
    from bahdanau_tf.training.update import train_step as train_step

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.py")
__all__ = sorted(["Recipe", *_homes])
