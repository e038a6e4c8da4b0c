"""The papers' optimizers and learning rate schedules."""

from bahdanau_tf.optimizers.guarded import SGD, Adadelta, Adam
from bahdanau_tf.optimizers.schedules import (
    HalvedEveryHalfEpoch,
    InverseSquareRoot,
    WarmupLinearDecay,
)

__all__ = [
    "SGD",
    "Adadelta",
    "Adam",
    "HalvedEveryHalfEpoch",
    "InverseSquareRoot",
    "WarmupLinearDecay",
]
