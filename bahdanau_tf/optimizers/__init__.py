"""The papers' optimizers and learning rate schedules."""

from bahdanau_tf.optimizers.schedules import HalvedEveryHalfEpoch
from bahdanau_tf.optimizers.schedules import InverseSquareRoot
from bahdanau_tf.optimizers.schedules import WarmupLinearDecay
from bahdanau_tf.optimizers.updates import SGD
from bahdanau_tf.optimizers.updates import Adadelta
from bahdanau_tf.optimizers.updates import Adam

__all__ = [
    "SGD",
    "Adadelta",
    "Adam",
    "HalvedEveryHalfEpoch",
    "InverseSquareRoot",
    "WarmupLinearDecay",
]
