"""Training that can be stopped and resumed; its state is kept in a folder.

Names are imported when they are first used: `request` needs no TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bahdanau_tf.options import Recipe
    from bahdanau_tf.training.fitting import fit
    from bahdanau_tf.training.folder import locked
    from bahdanau_tf.training.loop import train
    from bahdanau_tf.training.plan import Start, TrainingPlan, is_begun
    from bahdanau_tf.training.run import TrainingResult
    from bahdanau_tf.training.step import train_step
    from bahdanau_tf.training.texts import TrainingFiles

_HOMES = {
    "Recipe": "options",
    "Start": "training.plan",
    "TrainingFiles": "training.texts",
    "TrainingPlan": "training.plan",
    "TrainingResult": "training.run",
    "fit": "training.fitting",
    "is_begun": "training.plan",
    "locked": "training.folder",
    "train": "training.loop",
    "train_step": "training.step",
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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"bahdanau_tf.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
