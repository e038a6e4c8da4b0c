"""Training that can be stopped at any moment and goes on where it was."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from bahdanau_tf.corpora.parallel import ParallelCorpus
from bahdanau_tf.dataset import Position
from bahdanau_tf.dataset import stream_batches
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.device import describe_device
from bahdanau_tf.evaluation import bleu
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.options import Recipe
from bahdanau_tf.progress import ProgressLine
from bahdanau_tf.training.settings import remember
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.tensorboard import TensorBoard
from bahdanau_tf.translator import Translator

CHECKPOINT_SECONDS = 300
GREEDY = Decoding(beam_size=1)


@dataclass(frozen=True)
class TrainingFiles:
    """Parallel text, one sentence a line, plain or .gz.

    Attributes:
        train_source: Training text, source side.
        train_target: Training text, target side.
        dev_source: Text to choose the best model on, or None.
        dev_target: Its translation, or None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended.

    Attributes:
        best_bleu: Best BLEU on the dev set, greedy search; NaN without one.
        steps: Updates made.
        stopped_by: "epochs", "patience" or "signal".
        seconds: Time spent in this run.
        words_per_second: Target words, end symbols included, of this run's
            training, evaluation left out.
    """

    best_bleu: float
    steps: int
    stopped_by: str
    seconds: float
    words_per_second: float


class _State(tf.Module):
    """What is checkpointed beside weights and optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.position = tf.Variable(Position(), dtype=tf.int64, trainable=False)
        # In 64 bits, or an equal score may be the better one.
        self.best_bleu = tf.Variable(
            math.nan, dtype=tf.float64, trainable=False
        )
        self.stale = tf.Variable(0, trainable=False)
        self.seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)


def train(
    translator: Translator,
    files: TrainingFiles,
    recipe: Recipe,
    model_dir: str | os.PathLike[str],
    tensorboard: bool = False,
) -> TrainingResult:
    """Trains a translator's model; goes on where an earlier run stopped.

    `model_dir` gets checkpoints of weights, optimizer and data position,
    `log.jsonl` with a line for each evaluation, and `best`, the translator
    with the best BLEU on the dev set by greedy search (the last one without a
    dev set). SIGINT and SIGTERM write a checkpoint before the training ends.

    Args:
        translator: Model and tokenizers; the model's weights change.
        files: What to train on.
        recipe: How.
        model_dir: A folder; made if it is not there.
        tensorboard: Whether its folder `tensorboard` gets what TensorBoard
            shows; see `bahdanau_tf.training.tensorboard`.

    Returns:
        `TrainingResult`.

    Raises:
        ValueError: `model_dir` holds another model, or the files do not fit.
        OSError: A file cannot be read, or `model_dir` not be written.
    """
    model_dir = Path(model_dir)
    model_dir.mkdir(parents=True, exist_ok=True)
    training = _Training(translator, files, recipe, model_dir)
    if not tensorboard:
        return training.run()
    training.board = TensorBoard(model_dir / "tensorboard")
    with contextlib.closing(training.board):
        return training.run()


class _Training:
    """One run of `train`."""

    board: TensorBoard | None = None

    def __init__(
        self,
        translator: Translator,
        files: TrainingFiles,
        recipe: Recipe,
        model_dir: Path,
    ) -> None:
        model = translator.model
        self.translator = translator
        self.recipe = recipe
        self.model_dir = model_dir
        self.corpus = ParallelCorpus(files.train_source, files.train_target)
        self.dev = None
        if files.dev_source is not None and files.dev_target is not None:
            self.dev = ParallelCorpus(files.dev_source, files.dev_target)
        remember(
            model_dir / "training.json",
            {
                "model": json.loads(model.to_json()),
                "recipe": asdict(recipe),
                "training_text_checksum": self.corpus.checksum,
            },
            free=("epochs", "patience", "evaluate_every", "name"),
        )
        self.steps_per_epoch = math.ceil(len(self.corpus) / recipe.batch_size)
        self.total_steps = math.ceil(recipe.epochs * self.steps_per_epoch)
        self.evaluate_every = recipe.evaluate_every or self.steps_per_epoch
        self.optimizer = recipe.make_optimizer(self.steps_per_epoch)
        self.step = train_step(
            model,
            self.optimizer,
            TokenCrossentropy(recipe.label_smoothing, divisor=recipe.divisor),
        )
        self.state = _State()
        self.checkpoints = tf.train.CheckpointManager(
            tf.train.Checkpoint(
                model=model,
                optimizer=self.optimizer,
                state=self.state,
                # The seeds of dropout, which TensorFlow does not see in a
                # Keras model.
                seeds=[v.value for v in model.non_trainable_variables],
            ),
            str(model_dir / "checkpoints"),
            max_to_keep=2,
        )
        self.words = 0.0
        self.training_seconds = 0.0
        self.started = time.monotonic()

    def run(self) -> TrainingResult:
        """Trains until the epochs are over, BLEU stalls or a signal comes."""
        self.checkpoints.restore_or_initialize()
        started = time.monotonic()
        # As if earlier runs had ended just now.
        self.started = started - float(self.state.seconds)
        step = int(self.state.step)
        line = ProgressLine(self.total_steps, step)
        line.note(
            f"{len(self.corpus)} sentence pairs, {self.corpus.blank} blank "
            "lines left out"
        )
        if step:
            line.note(f"going on from update {step}")
        with _signals_caught() as caught:
            stopped_by = self._loop(step, line, caught)
        if stopped_by == "signal":
            line.note(f"stopped at update {int(self.state.step)}, saved")
        return TrainingResult(
            best_bleu=float(self.state.best_bleu),
            steps=int(self.state.step),
            stopped_by=stopped_by,
            seconds=time.monotonic() - started,
            words_per_second=self.words / max(self.training_seconds, 1e-9),
        )

    def _loop(self, step: int, line: ProgressLine, caught: list[int]) -> str:
        saved = lap = time.monotonic()
        if self._is_over(step):
            return self._is_over(step)
        for batch, position in self._batches():
            self._tell_what_was_left_out(position, line)
            cost = self.step(*batch)
            step += 1
            words = float(tf.reduce_sum(batch[2]))
            self.words += words
            now = time.monotonic()
            self.training_seconds += now - lap
            per_word = float(cost) * self.recipe.divisor / words
            line.update(step, self._status(per_word))
            if self.board is not None:
                self.board.update(
                    step,
                    per_word,
                    self.optimizer,
                    self.words,
                    self.training_seconds,
                )
            is_due = step % self.evaluate_every == 0
            if is_due or step >= self.total_steps:
                self._evaluate(step, line)
            self.state.step.assign(step)
            self.state.position.assign(position)
            over = "signal" if caught else self._is_over(step)
            if over or is_due or now - saved > CHECKPOINT_SECONDS:
                self.state.seconds.assign(time.monotonic() - self.started)
                self.checkpoints.save()
                saved = time.monotonic()
            if over:
                return over
            lap = time.monotonic()
        raise RuntimeError("the stream of batches ended")

    def _tell_what_was_left_out(
        self, position: Position, line: ProgressLine
    ) -> None:
        """Says after the first epoch how many pairs were too long."""
        before = Position(*self.state.position.numpy().tolist())
        is_second = (before.epoch, int(position.epoch)) == (0, 1)
        if is_second and self.recipe.max_length:
            long = len(self.corpus) - before.pairs
            line.note(
                f"{long} too long (over {self.recipe.max_length} tokens), "
                "left out"
            )

    def _is_over(self, step: int) -> str:
        if int(self.state.stale) >= self.recipe.patience:
            return "patience"
        return "epochs" if step >= self.total_steps else ""

    def _batches(self) -> Iterator[Any]:
        position = Position(*self.state.position.numpy().tolist())
        return iter(
            stream_batches(
                self.corpus,
                self.translator.source_text,
                self.translator.target_text,
                self.recipe.make_batching(),
                position,
            )
        )

    def _status(self, cost: float) -> str:
        rate = self.words / max(self.training_seconds, 1e-9)
        text = f"loss {cost:.3f}, {rate:.0f} words/s"
        skipped = int(self.optimizer.skipped_updates)
        if skipped:
            text += f", {skipped} updates skipped (gradient not finite)"
        if self.dev is not None and not math.isnan(self.state.best_bleu):
            text += f", best BLEU {float(self.state.best_bleu):.2f}"
        return text

    def _evaluate(self, step: int, line: ProgressLine) -> None:
        """Keeps the model if it is the best so far; without dev, always."""
        record: dict[str, Any] = {
            "step": step,
            "epoch": step / self.steps_per_epoch,
            "words_per_second": self.words / max(self.training_seconds, 1e-9),
            "skipped_updates": int(self.optimizer.skipped_updates),
        }
        best = float(self.state.best_bleu)
        score = math.nan
        if self.dev is not None:
            sources, references = (
                [line.decode() for line in side]
                for side in self.dev.read(self.dev.rows)
            )
            found = self.translator.translate(sources, GREEDY)
            score = bleu([t.text for t in found], references).score
            record["dev_bleu"] = score
            if self.board is not None:
                scored = self.translator.score(sources, references)
                words = sum(len(one.token_log_probs) for one in scored)
                loss = -sum(one.log_prob for one in scored) / words
                note = self.board.evaluation(step, loss, score, found)
                if note:
                    line.note(note)
        if self.dev is None or math.isnan(best) or score > best:
            self.translator.save(self.model_dir / "best")
            self.state.best_bleu.assign(score)
            self.state.stale.assign(0)
        else:
            self.state.stale.assign_add(1)
        line.note(
            ", ".join(f"{name} {_short(v)}" for name, v in record.items())
        )
        record["seconds"] = time.monotonic() - self.started
        record["device"] = describe_device()
        with open(self.model_dir / "log.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")


def _short(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


@contextlib.contextmanager
def _signals_caught() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM; the training looks after each update."""
    caught: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(
                number, lambda received, _: caught.append(received)
            )
        except ValueError:  # not the main thread: signals go elsewhere
            break
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
