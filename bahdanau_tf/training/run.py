"""What the callbacks of a training share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

import keras
import numpy as np

from bahdanau_tf.data.batching import Position
from bahdanau_tf.options import Recipe
from bahdanau_tf.system.terminal import ProgressLine
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.pace import Pace
from bahdanau_tf.training.state import State


@dataclass
class Run:
    """One run of a training, which may go on with what earlier runs did.

    Attributes:
        cluster: The processes that train together.
        recipe: The options of training.
        optimizer: The optimizer, one of `bahdanau_tf.optimizers`.
        state: What is checkpointed besides weights and optimizer.
        pace: The time of the training.
        line: Where the training tells what it does.
        steps_per_epoch: Number of updates in a pass over the corpus; it may
            end within one.
        total_steps: Number of updates of the whole training.
        evaluate_every: Number of updates between two evaluations.
        lines: int64 [B], the numbers of the lines of the last update, from 0.
        positions: The positions in the text after each of its batches.
    """

    cluster: Cluster
    recipe: Recipe
    optimizer: keras.optimizers.Optimizer
    state: State
    pace: Pace
    line: ProgressLine
    steps_per_epoch: float
    total_steps: int
    evaluate_every: int
    lines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    positions: Sequence[Position] = ()

    @property
    def step(self) -> int:
        """Number of updates so far, those of earlier runs included."""
        return int(self.state.step)

    def of_optimizer(self, name: str) -> float:
        """A number of the optimizer, such as "skipped_updates"."""
        # A variable of several replicas can be read in this way only.
        return float(keras.ops.convert_to_numpy(getattr(self.optimizer, name)))

    @property
    def is_due(self) -> bool:
        """Whether an evaluation follows the last update."""
        return self.step % self.evaluate_every == 0
