"""A run of a training: its parts, its signals and its result."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.data.dataset import Position
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation.scores import METRICS
from bahdanau_tf.optimizers import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.system.terminal import ANSWERED, ProgressLine, handling, short
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.training.checkpoints import State
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.folder import ModelFolder
from bahdanau_tf.training.schedule import Schedule
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator


@dataclass(kw_only=True)
class Run:
    """One run of a training, which may resume earlier runs.

    Attributes:
        translator: Model and tokenizers; the model's weights change.
        recipe: The options of training.
        corpus: The training text.
        dev: The dev text, by which the best model is selected, or None.
        tokenize: sacreBLEU's tokenizer of the dev text; "" without one.
        cluster: The processes that train together.
        schedule: The fraction completed, and the learning rate.
        optimizer: The optimizer.
        update: Updates the weights by a batch; returns its loss.
        folder: The folder of the training.
        notes: What to report when the run begins.
        line: Shows the progress.
        lines: int64 [B], the numbers of the lines of the last update, from 0.
        positions: The positions in the text after each of its batches.
        words: Number of target words of this run, end symbols included.
        seconds: The time that they took to read and process, without evaluations and checkpoints.
        scores: Those of the last evaluation of this run on the dev text, by name.
        translations: Its translations.
        caught: The numbers of the signals that this worker got.
        ending: Why the training ends, a key of `ENDINGS`; "" until the callback `Ends` sets it.
        signal: The number of the signal that some worker got; 0 for none.
    """

    translator: Translator
    recipe: Recipe
    corpus: ParallelCorpus
    dev: ParallelCorpus | None
    tokenize: str
    cluster: Cluster
    schedule: Schedule
    optimizer: Guarded
    update: Callable[..., tf.Tensor]
    folder: ModelFolder
    notes: list[str]
    line: ProgressLine = field(init=False)
    lines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    positions: Sequence[Position] = ()
    words: float = 0.0
    seconds: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    translations: Sequence[Translation] = ()
    caught: Sequence[int] = ()
    ending: str = ""
    signal: int = 0

    @property
    def state(self) -> State:
        """What checkpoints hold in addition to weights and optimizer."""
        return self.folder.state

    @property
    def texts(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of source and target."""
        return self.translator.source_text, self.translator.target_text

    @property
    def titles(self) -> dict[str, str]:
        """The metrics of the dev text other than the loss, and their titles.

        BLEU is one of them, but not of short strings.
        """
        names = ["bleu"] * (not self.is_short) + [self.recipe.monitor]
        return {n: METRICS[n].title for n in names if n in METRICS}

    @property
    def is_short(self) -> bool:
        """Whether the texts are short strings, by the measure that selects the best model."""
        monitor = self.recipe.monitor
        return monitor in METRICS and METRICS[monitor].takes_any

    @property
    def step(self) -> int:
        """Number of updates so far, those of earlier runs included."""
        return int(self.state.step)

    @property
    def used(self) -> dict[str, float]:
        """How much of each limit all runs have used, by the name of its option."""
        return {
            "epochs": round(self.step / self.schedule.steps_per_epoch, 2),
            "updates": self.step,
            "minutes": round(self.schedule.seconds / 60, 2),
            "patience": int(self.state.stale),
        }

    @property
    def evaluate_every(self) -> int:
        """Number of updates between two evaluations."""
        return self.recipe.evaluate_every or math.ceil(self.schedule.steps_per_epoch)

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


class RunCallback(keras.callbacks.Callback):
    """A callback of a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run


def as_score(name: str, score: float) -> str:
    """A score on the dev set with its title, as in the table: "loss 2.35", "BLEU 31.25"."""
    return f"{'loss' if name == 'loss' else METRICS[name].title} {short(score)}"


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_caught(note: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list that the training checks; `note` answers.

    A second SIGINT raises KeyboardInterrupt, which ends the training after the update; a command
    ends at once anyway. There is a complete checkpoint at every moment.
    """
    caught: list[int] = []

    def catch(number: int, _: FrameType | None) -> None:
        caught.append(number)
        if caught.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt
        again = "; press Ctrl-C again to stop at once, with the last checkpoint"
        if not ANSWERED.is_set():
            ANSWERED.set()
            note(f"stopping after this update{again * (number == signal.SIGINT)}")

    ANSWERED.clear()
    with handling(dict.fromkeys(SIGNALS, catch)):
        yield caught


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
        best: The scores of the best model on the dev set, by name: "loss" per word, and by greedy
            search those that were computed, "bleu" and that of `monitor`; others are NaN. Empty
            without a dev set.
        steps: Number of updates, those of earlier runs included.
        stopped_by: "epochs", "updates", "minutes", "patience", "signal" or "callback".
        seconds: Time of this run after its first update.
        words_per_second: Target words per second in this run, end symbols included, without the
            time of evaluations.
        tokenize: sacreBLEU's tokenizer of the dev BLEU; "" without a dev set.
        monitor: Which score selected the best model.
        signal: The number of the signal that stopped it; 0 for none.
        total_seconds: Time of all runs.
    """

    best: Mapping[str, float]
    steps: int
    stopped_by: str
    seconds: float
    words_per_second: float
    tokenize: str = ""
    monitor: str = "bleu"
    signal: int = 0
    total_seconds: float = 0.0

    @property
    def best_bleu(self) -> float:
        """BLEU of the best model; NaN if it was not computed."""
        return self.best.get("bleu", math.nan)

    def __str__(self) -> str:
        scores = {n: self.best.get(n, math.nan) for n in (self.monitor, "bleu")}
        shown = [f"dev {as_score(n, x)}" for n, x in scores.items() if not math.isnan(x)]
        how = f" (greedy, {self.tokenize}, NFC)" if self.monitor == "bleu" else ""
        best = f"best model: {', '.join(shown)}{how}" if shown else "no evaluation yet"
        if not self.tokenize:
            best = "no dev set, so the last model is kept as the best"
        updates = f"{self.steps} update{'s' * (self.steps != 1)}"
        work = "no updates in this run"
        if self.words_per_second:
            work = f"{self.seconds / 60:.1f} minutes"
            if self.total_seconds > self.seconds:
                work += f" of {self.total_seconds / 60:.1f} in all runs"
            work += f", {self.words_per_second:.0f} target words a second"
        return f"{updates}, {ENDINGS[self.stopped_by]}; {best}; {work}"
