"""A run of a training: its files, its state and pace, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.data.batching import Position
from bahdanau_tf.options import Recipe
from bahdanau_tf.system.terminal import ProgressLine
from bahdanau_tf.training.cluster import Cluster


class State(tf.Module):
    """What is checkpointed besides weights and optimizer.

    Names that end in "seconds" are readings of a clock. All others have the
    same values in the end, however often a training was interrupted.

    Attributes:
        step: Number of updates.
        position: The `Position` in the text after the last batch.
        loss: Summed loss since the last evaluation.
        words: Number of target words over which it is summed.
        best_bleu: BLEU of the best model on the dev set; NaN before there is
            one.
        best_loss: Its loss per word of the dev set.
        stale: Number of evaluations since the best one.
        seconds: Time spent in all runs, each from the end of its first update.
        longest_seconds: Those of their longest evaluation; NaN before there
            is one.
        halvings: How often the learning rate of "plateau" was halved.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = _variable(0, tf.int64)
        self.position = _variable(Position(), tf.int64)
        self.loss = _variable(0.0)
        self.words = _variable(0.0)
        # In float64: rounded to float32, an equal score might look better.
        self.best_bleu = _variable(math.nan)
        self.best_loss = _variable(math.nan)
        self.stale = _variable(0, tf.int32)
        self.seconds = _variable(0.0)
        self.halvings = _variable(0, tf.int32)
        self.longest_seconds = _variable(math.nan)

    def advance(self, position: Position, cost: float, words: float) -> None:
        """Counts an update.

        Args:
            position: The position in the text after its batch.
            cost: The summed loss of the batch; left out if it is not finite.
            words: The number of its target words.
        """
        self.step.assign_add(1)
        self.position.assign(position)
        if math.isfinite(cost):
            self.loss.assign_add(as_array(cost))
            self.words.assign_add(as_array(words))

    def take_loss(self) -> dict[str, float]:
        """{"loss": the mean loss of a word since the last call}, if any."""
        if not self.words:
            return {}
        mean = float(self.loss / self.words)
        self.loss.assign(0.0)
        self.words.assign(0.0)
        return {"loss": mean}

    def forget_best(self) -> None:
        """Makes the next model that is evaluated the best."""
        self.best_bleu.assign(math.nan)
        self.best_loss.assign(math.nan)
        self.stale.assign(0)

    def read_position(self) -> Position:
        """`position` as numbers."""
        return Position(*self.position.numpy().tolist())


def as_array(number: float) -> np.ndarray:
    """The number in a form that TensorFlow does not keep.

    It keeps a tensor for each Python number that it was ever given, some 700
    bytes, so a training would grow with each update.
    """
    return np.asarray(number)


def _variable(value: object, dtype: tf.DType = tf.float64) -> tf.Variable:
    return tf.Variable(value, dtype=dtype, trainable=False)


class Pace:
    """The time of a training, evaluations included, and what of it is over.

    In each run the time begins when the first update is over, since that one
    waits until its graph is made, which says nothing of the others.

    Time is kept for the evaluation with which a training ends, as much as the
    longest one took; before the first one, a tenth of the time.

    Args:
        total_steps: Number of updates of the whole training.
        minutes: Longest time of all runs together; 0 for any.
        used: Seconds that earlier runs took.
        clock: Returns seconds, by which the time is measured.
        longest: Seconds of the longest evaluation of earlier runs; NaN if
            there was none.

    Attributes:
        longest: The same of all runs so far.
    """

    def __init__(
        self,
        total_steps: int,
        minutes: float = 0.0,
        used: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        longest: float = math.nan,
    ) -> None:
        self._total_steps = total_steps
        self._limit = 60 * minutes if minutes else math.inf
        self._clock = clock
        self._used = used
        self._start = math.nan  # before the time begins
        self.longest = longest
        self._over = 0.0  # the largest share so far

    def begin(self) -> None:
        """The first update of this run is over; later calls do nothing."""
        if math.isnan(self._start):
            self._start = self._clock()

    @property
    def seconds(self) -> float:
        """The time of all runs so far."""
        if math.isnan(self._start):
            return self._used
        return self._used + self._clock() - self._start

    @property
    def seconds_left(self) -> float:
        """The time left for updates; infinite without a limit."""
        return max(self._for_updates - self.seconds, 0.0)

    @property
    def _for_updates(self) -> float:
        """The whole time without that of the last evaluation."""
        if math.isnan(self.longest):
            return 0.9 * self._limit
        return max(self._limit - self.longest, 1e-9)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the training must end now."""
        return self.seconds_left <= 0

    def share(self, step: int) -> float:
        """The share of the training that is over after `step` updates.

        It is that of the updates or that of the time, whichever is larger. It
        never gets smaller in a run: if the first evaluation is shorter than
        what was kept for it, the share stays until the time has caught up.
        """
        of_time = self.seconds / self._for_updates
        of_both = min(max(step / self._total_steps, of_time), 1.0)
        self._over = max(self._over, of_both)
        return self._over

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Measures the evaluation in the block."""
        start = self._clock()
        # Else a training that is over would not be so for a later run.
        kept = self._limit - self.seconds if self.is_out_of_time else 0.0
        yield
        found = max(self._clock() - start, kept)
        # NaN is not larger than it.
        self.longest = self.longest if self.longest > found else found


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


@dataclass(frozen=True)
class TrainingFiles:
    """Paths of parallel text, one sentence per line, plain or .gz.

    Attributes:
        train_source: The training set, source side.
        train_target: The training set, target side.
        dev_source: The dev set, by which the best model is chosen, or None.
        dev_target: Its translation, or None.

    Raises:
        ValueError: One of `dev_source` and `dev_target` is None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None

    def __post_init__(self) -> None:
        if (self.dev_source is None) != (self.dev_target is None):
            raise ValueError(
                f"TrainingFiles: dev_source is {self.dev_source!r} and "
                f"dev_target {self.dev_target!r}, wanted both or neither"
            )


# What is said of each reason for which a training ends.
ENDINGS = {
    "epochs": "epoch limit reached",
    "updates": "update limit reached",
    "minutes": "time limit reached",
    "patience": "stopped early, as no later model was better",
    "signal": "stopped by a signal",
    "callback": "stopped by a callback",
}


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        best_bleu: BLEU of the best model, by greedy search on the dev set; NaN
            without one.
        steps: Number of updates, those of earlier runs included.
        stopped_by: "epochs", "updates", "minutes", "patience", "signal" or
            "callback".
        seconds: Time of this run after its first update.
        words_per_second: Target words per second in this run, end symbols
            included, without the time of evaluations.
        tokenize: sacreBLEU's tokenizer of the dev BLEU; "" without a dev set.
        monitor: By what the best model was chosen, "bleu" or "loss".
        best_loss: Its loss of a word of the dev set; NaN without one.
    """

    best_bleu: float
    steps: int
    stopped_by: str
    seconds: float
    words_per_second: float
    tokenize: str = ""
    monitor: str = "bleu"
    best_loss: float = math.nan

    def __str__(self) -> str:
        bleu = f"dev BLEU {self.best_bleu:.2f}"
        best = f"best model: {bleu} (greedy, {self.tokenize}, NFC)"
        if self.monitor == "loss":
            best = f"best model: dev loss {self.best_loss:.3f}, {bleu}"
        if not self.tokenize:
            best = "no dev set, so the last model is kept as the best"
        elif math.isnan(self.best_bleu):
            best = "no evaluation yet"
        updates = f"{self.steps} update{'s' * (self.steps != 1)}"
        work = "no updates in this run"
        if self.words_per_second:
            work = (
                f"{self.seconds / 60:.1f} minutes, {self.words_per_second:.0f} "
                "target words a second"
            )
        return f"{updates}, {ENDINGS[self.stopped_by]}; {best}; {work}"
