"""Training that can be stopped and resumed; its state is kept in a folder.

Names are imported when they are first used: `request` needs no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bahdanau_tf.options import Recipe as Recipe
from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.training.fitting import fit as fit
    from bahdanau_tf.training.folder import locked as locked
    from bahdanau_tf.training.loop import train as train
    from bahdanau_tf.training.plan import (
        Start as Start,
        TrainingPlan as TrainingPlan,
        is_begun as is_begun,
    )
    from bahdanau_tf.training.run import TrainingResult as TrainingResult
    from bahdanau_tf.training.step import train_step as train_step
    from bahdanau_tf.training.texts import TrainingFiles as TrainingFiles

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.py")
__all__ = sorted(["Recipe", *_homes])
