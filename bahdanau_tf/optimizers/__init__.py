"""The papers' optimizers and learning rate schedules."""

from bahdanau_tf.optimizers.guarded import SGD as SGD, Adadelta as Adadelta, Adam as Adam
from bahdanau_tf.optimizers.schedules import (
    HalvedEveryHalfEpoch as HalvedEveryHalfEpoch,
    InverseSquareRoot as InverseSquareRoot,
    WarmupLinearDecay as WarmupLinearDecay,
)
