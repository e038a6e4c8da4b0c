"""Training that can be stopped and resumed; its state is kept in a folder.

Names are imported when they are first used: `request` needs no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bahdanau_tf.options import Recipe
from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.training.fitting import fit
    from bahdanau_tf.training.folder import locked
    from bahdanau_tf.training.loop import train
    from bahdanau_tf.training.plan import Start, TrainingPlan, is_begun
    from bahdanau_tf.training.run import TrainingResult
    from bahdanau_tf.training.step import train_step
    from bahdanau_tf.training.texts import TrainingFiles

_HOMES = {
    "Start": "plan",
    "TrainingFiles": "texts",
    "TrainingPlan": "plan",
    "TrainingResult": "run",
    "fit": "fitting",
    "is_begun": "plan",
    "locked": "folder",
    "train": "loop",
    "train_step": "step",
}

__all__ = [
    "Recipe",
    "Start",
    "TrainingFiles",
    "TrainingPlan",
    "TrainingResult",
    "fit",
    "is_begun",
    "locked",
    "train",
    "train_step",
]


def __getattr__(name: str) -> Any:
    return imports.first_use(__name__, _HOMES, name)
