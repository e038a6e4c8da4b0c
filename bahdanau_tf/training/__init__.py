"""Training that can be stopped and resumed; its state is kept in a folder."""

from bahdanau_tf.options import Recipe
from bahdanau_tf.training.folder import locked
from bahdanau_tf.training.loop import train
from bahdanau_tf.training.plan import Start, TrainingPlan, is_begun
from bahdanau_tf.training.run import TrainingResult
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.texts import TrainingFiles

__all__ = [
    "Recipe",
    "Start",
    "TrainingFiles",
    "TrainingPlan",
    "TrainingResult",
    "is_begun",
    "locked",
    "train",
    "train_step",
]
