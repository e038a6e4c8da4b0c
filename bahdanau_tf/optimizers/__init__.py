"""The papers' optimizers and learning rate schedules."""

from bahdanau_tf.optimizers.guarded import SGD
from bahdanau_tf.optimizers.guarded import Adadelta
from bahdanau_tf.optimizers.guarded import Adam
from bahdanau_tf.optimizers.schedules import HalvedEveryHalfEpoch
from bahdanau_tf.optimizers.schedules import InverseSquareRoot
from bahdanau_tf.optimizers.schedules import WarmupLinearDecay

__all__ = [
    "SGD",
    "Adadelta",
    "Adam",
    "HalvedEveryHalfEpoch",
    "InverseSquareRoot",
    "WarmupLinearDecay",
]
