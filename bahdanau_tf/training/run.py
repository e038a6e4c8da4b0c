"""A run of a training: its parts, time, learning rate, signals and result."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from bahdanau_tf import optimizers
from bahdanau_tf.data.dataset import Position
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.optimizers import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.recipe import Name, ScheduleCall
from bahdanau_tf.system.notebook import progress_line
from bahdanau_tf.system.terminal import ProgressLine, heard
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.training.checkpoints import State
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.dev import DevSet, Evaluation
from bahdanau_tf.training.folder import ModelFolder
from bahdanau_tf.translator import Translator


class Pace:
    """The time of a training, evaluations included, and the share that is over.

    In each run the time starts after the first update, which takes longer than the others, because
    its graph is made. Time is reserved for the evaluation with which a training ends, as much as
    the longest one took (`longest`, NaN before the first); before the first evaluation, a tenth of
    the time. `used` are the seconds of earlier runs; with 0 `minutes` there is no limit.
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
        self._start = math.nan  # before the time starts
        self.longest = longest
        self._over = 0.0  # the largest share so far

    def begin(self) -> None:
        """Starts the time of this run; later calls do nothing."""
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
        """The time limit, without the last evaluation."""
        if math.isnan(self.longest):
            return 0.9 * self._limit
        return max(self._limit - self.longest, 1e-9)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the training must end now."""
        return self.seconds_left <= 0

    def share(self, step: int) -> float:
        """The share of the training that is over after `step` updates.

        It is the share of the updates or of the time, whichever is larger. It never falls within a
        run: if the first evaluation is shorter than the time reserved for it, the share stays until
        the time has caught up.
        """
        of_both = max(step / self._total_steps, self.seconds / self._for_updates)
        self._over = max(self._over, min(of_both, 1.0))
        return self._over

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Measures the evaluation in the block."""
        start = self._clock()
        # Else a training that is over would not be over for a later run.
        reserved = self._limit - self.seconds if self.is_out_of_time else 0.0
        yield
        seconds = max(self._clock() - start, reserved)
        # NaN is not larger than a number.
        self.longest = self.longest if self.longest > seconds else seconds


LARGEST_WARMUP = 0.1  # share of a training of limited time


class Rate:
    """The learning rate of a recipe.

    With a limit of time the number of updates is not known before the end, so a schedule that
    depends on it gets an estimate before each update: n updates in the share s of the training make
    n / s in all.

    Attributes:
        value: A number, or a Keras schedule.
        follows_time: Whether `follow` is to be called before each update.
    """

    def __init__(self, recipe: Recipe, steps_per_epoch: float) -> None:
        self.value: float | LearningRateSchedule = recipe.rate
        self.follows_time = False
        self._recipe = recipe
        self._total = recipe.total_updates(steps_per_epoch)
        call = ScheduleCall.parse(recipe.schedule)
        if call is None:
            return
        lengths: dict[str, Any] = _lengths(self._total, recipe.warmup_steps)
        self.follows_time = recipe.minutes > 0 and bool({"total", "after_warmup"} & call.names)
        if self.follows_time:
            lengths = {n: tf.Variable(float(x), trainable=False) for n, x in lengths.items()}
            self._variables = lengths
        numbers = {
            "rate": recipe.rate,
            "constant_share": recipe.constant_share,
            "steps_per_epoch": steps_per_epoch,
            **lengths,
        }
        self.value = _make_schedule(recipe.schedule, call, numbers)

    def follow(self, updates: int, share: float) -> None:
        """Estimates the number of updates from those in a share of the training.

        The warm-up is over after a tenth of the training at the latest.
        """
        if self.follows_time:
            total = updates / share if updates and share else self._total
            warmup = min(self._recipe.warmup_steps, LARGEST_WARMUP * total)
            for name, length in _lengths(total, warmup).items():
                # TensorFlow would keep a tensor for each number of Python.
                self._variables[name].assign(np.asarray(length, np.float32))


def _lengths(total: float, warmup: float) -> dict[str, float]:
    return {"total": total, "warmup_steps": warmup, "after_warmup": max(total - warmup, 1)}


def _make_schedule(
    schedule: str, call: ScheduleCall, numbers: Mapping[str, object]
) -> LearningRateSchedule:
    """The schedule of a class of ours, or else of Keras."""

    def number(argument: object) -> object:
        return numbers[argument.id] if isinstance(argument, Name) else argument

    for home in (optimizers, keras.optimizers.schedules):
        owner = getattr(home, call.owner, None)
        if isinstance(owner, type) and issubclass(owner, LearningRateSchedule):
            break
    else:
        raise ValueError(
            f"Recipe: schedule is {schedule!r}, but keras.optimizers.schedules has no class "
            f"{call.owner}"
        )
    keywords = {name: number(argument) for name, argument in call.keywords.items()}
    try:
        return owner(*map(number, call.arguments), **keywords)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Recipe: schedule is {schedule!r}, which cannot be made: {error}"
        ) from error


def make_optimizer(recipe: Recipe, steps_per_epoch: float, rate: Rate | None = None) -> Guarded:
    """The optimizer of a recipe; its learning rate is made here if None."""
    kinds: dict[str, type[Guarded]]
    kinds = {"adadelta": optimizers.Adadelta, "adam": optimizers.Adam, "sgd": optimizers.SGD}
    return kinds[recipe.optimizer](
        (rate or Rate(recipe, steps_per_epoch)).value,
        max_norm=recipe.max_norm,
        use_ema=recipe.average > 0,
        ema_momentum=recipe.average,
        gradient_accumulation_steps=(recipe.accumulate if recipe.accumulate > 1 else None),
    )


@dataclass
class Run:
    """One run of a training, which may resume earlier runs.

    Attributes:
        steps_per_epoch: Number of updates in a pass over the corpus; it may end within one.
        line: Shows the progress.
        lines: int64 [B], the numbers of the lines of the last update, from 0.
        positions: The positions in the text after each of its batches.
        words: Number of target words of this run, end symbols included.
        seconds: The time that they took to read and process, without evaluations and checkpoints.
        evaluation: The last evaluation of this run, or None.
        ending: Why the training ends, a key of `ENDINGS`; "" while it continues.
        signal: The number of the signal that some worker got; 0 for none.
    """

    translator: Translator
    recipe: Recipe
    corpus: ParallelCorpus
    dev: DevSet | None
    cluster: Cluster
    optimizer: Guarded
    rate: Rate
    state: State
    folder: ModelFolder
    steps_per_epoch: float
    pace: Pace = field(init=False)
    line: ProgressLine = field(init=False)
    lines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    positions: Sequence[Position] = ()
    words: float = 0.0
    seconds: float = 0.0
    evaluation: Evaluation | None = None
    ending: str = ""
    signal: int = 0

    def start_clock(self) -> None:
        """Makes `pace` and `line` from the state, once it is restored."""
        used, longest = float(self.state.seconds), float(self.state.longest_seconds)
        clock = self.cluster.clock
        self.pace = Pace(self.total_steps, self.recipe.minutes, used, clock, longest)
        curves = (("dev loss", "train loss"), ("dev BLEU",))
        self.line = progress_line(self.total_steps, self.step, self.pace.seconds_left, curves)

    @property
    def texts(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of source and target."""
        return self.translator.source_text, self.translator.target_text

    @property
    def step(self) -> int:
        """Number of updates so far, those of earlier runs included."""
        return int(self.state.step)

    @property
    def total_steps(self) -> int:
        """Number of updates of the whole training."""
        return self.recipe.total_updates(self.steps_per_epoch)

    @property
    def used(self) -> dict[str, float]:
        """What is done of each limit of all runs together, by the name of its option."""
        return {
            "epochs": round(self.step / self.steps_per_epoch, 2),
            "updates": self.step,
            "minutes": round(self.pace.seconds / 60, 2),
            "patience": int(self.state.stale),
        }

    @property
    def evaluate_every(self) -> int:
        """Number of updates between two evaluations."""
        return self.recipe.evaluate_every or math.ceil(self.steps_per_epoch)

    @property
    def is_due(self) -> bool:
        """Whether an evaluation follows the last update."""
        return self.step % self.evaluate_every == 0

    @property
    def words_per_second(self) -> float:
        """Target words per second."""
        return self.words / max(self.seconds, 1e-9)

    def note(self, text: str) -> None:
        """Prints a line at the chief."""
        if self.cluster.is_chief:
            self.line.note(text)

    def read_optimizer(self, name: str) -> float:
        """A number of the optimizer, such as "skipped_updates"."""
        # A variable of several replicas can be read in this way only.
        return float(keras.ops.convert_to_numpy(getattr(self.optimizer, name)))


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_caught(note: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list that the training checks.

    `note` prints a line at once, even if an update takes long. A second SIGINT raises
    KeyboardInterrupt, which ends the training at once, or after the update; a command ends at once
    anyway. There is a complete checkpoint at every moment.
    """
    caught: list[int] = []
    received: list[int] = []  # even those that Python has not handled yet
    before = {}

    def listen(number: int) -> None:
        received.append(number)
        text = "stopping after this update"
        if number == signal.SIGINT:
            text += "; press Ctrl-C again to stop at once, with the last checkpoint"
        if number in before and received.count(signal.SIGINT) < 2:
            note(text)

    def catch(number: int, _: FrameType | None) -> None:
        if max(x.count(signal.SIGINT) for x in ([*caught, number], received)) > 1:
            raise KeyboardInterrupt
        caught.append(number)

    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # a job of a script may ignore Ctrl-C
        try:
            before[number] = signal.signal(number, catch)
        except ValueError:  # only the main thread can handle signals
            break
    try:
        with heard(listen):
            yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The reasons for which a training ends, and how they are reported.
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
        best_bleu: BLEU of the best model, by greedy search on the dev set; NaN without one.
        steps: Number of updates, those of earlier runs included.
        stopped_by: "epochs", "updates", "minutes", "patience", "signal" or "callback".
        seconds: Time of this run after its first update.
        words_per_second: Target words per second in this run, end symbols included, without the
            time of evaluations.
        tokenize: sacreBLEU's tokenizer of the dev BLEU; "" without a dev set.
        monitor: What selected the best model, "bleu" or "loss".
        best_loss: Its loss per word of the dev set; NaN without one.
        signal: The number of the signal that stopped it; 0 for none.
        total_seconds: Time of all runs.
    """

    best_bleu: float
    steps: int
    stopped_by: str
    seconds: float
    words_per_second: float
    tokenize: str = ""
    monitor: str = "bleu"
    best_loss: float = math.nan
    signal: int = 0
    total_seconds: float = 0.0

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
            work = f"{self.seconds / 60:.1f} minutes"
            if self.total_seconds > self.seconds:
                work += f" of {self.total_seconds / 60:.1f} in all runs"
            work += f", {self.words_per_second:.0f} target words a second"
        return f"{updates}, {ENDINGS[self.stopped_by]}; {best}; {work}"
