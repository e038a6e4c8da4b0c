"""Training that can be stopped at any time and resumed exactly."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import dataclass
from datetime import datetime
from datetime import timezone
from pathlib import Path

import keras
import tensorflow as tf

from bahdanau_tf.data.batching import Position
from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.device import describe_device
from bahdanau_tf.layers.weights import check_tracked
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.options import Recipe
from bahdanau_tf.progress import ProgressLine
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.errors import told_in_a_sentence
from bahdanau_tf.training.folder import DEV_TEXT
from bahdanau_tf.training.folder import DEV_TOKENIZER
from bahdanau_tf.training.folder import ModelFolder
from bahdanau_tf.training.lock import locked
from bahdanau_tf.training.pace import Pace
from bahdanau_tf.training.result import TrainingResult
from bahdanau_tf.training.selection import is_best
from bahdanau_tf.training.settings import TRAINING_TEXT
from bahdanau_tf.training.signals import signals_caught
from bahdanau_tf.training.state import State
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.tensorboard import TensorBoard
from bahdanau_tf.training.updates import updates_per_epoch
from bahdanau_tf.translator import Translator

CHECKPOINT_SECONDS = 300


@dataclass(frozen=True)
class TrainingFiles:
    """Paths of parallel text, one sentence per line, plain or .gz.

    Attributes:
        train_source: The training set, source side.
        train_target: The training set, target side.
        dev_source: The dev set, by which the best model is chosen, or None.
        dev_target: Its translation, or None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None


def train(
    translator: Translator,
    files: TrainingFiles,
    recipe: Recipe,
    model_dir: str | os.PathLike[str],
    tensorboard: bool = False,
) -> TrainingResult:
    """Trains a translator's model, or resumes its training.

    `model_dir` gets checkpoints of weights, optimizer and data position,
    `log.jsonl` with a line for each evaluation, and `best`, the translator
    with the best BLEU of greedy search on the dev set, among equal ones that
    with the lowest loss. Without a dev set it is the last one. After SIGINT or
    SIGTERM a checkpoint is written before the training ends; a second SIGINT
    ends it at once. If the newest checkpoint is damaged, the one before it is
    used. One process at a time trains in a folder.

    Args:
        translator: Model and tokenizers; the model's weights change.
        files: The training and dev sets.
        recipe: The options of training.
        model_dir: A folder; made if it does not exist.
        tensorboard: Whether to write curves and pictures for TensorBoard to
            the folder `tensorboard` in it; see
            `bahdanau_tf.training.tensorboard`.

    Returns:
        `TrainingResult`.

    Raises:
        ValueError: The files do not match; `model_dir` holds another model,
            another process trains in it, or its best model would be lost.
            Nothing is written then.
        OSError: A file cannot be read, or `model_dir` not written to; what was
            written before is kept.
    """
    model_dir = Path(model_dir)
    training = _Training(translator, files, recipe, model_dir)
    with contextlib.ExitStack() as until_over:
        until_over.enter_context(locked(model_dir))
        training.go_on()
        if tensorboard:
            training.board = until_over.enter_context(
                contextlib.closing(TensorBoard(model_dir / "tensorboard"))
            )
        until_over.enter_context(told_in_a_sentence())
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
        self.translator = translator
        self.model: keras.Model = translator.model
        check_tracked(self.model)
        self.recipe = recipe
        self.corpus = ParallelCorpus(files.train_source, files.train_target)
        self.dev = _dev_set(translator, files, recipe)
        self.steps_per_epoch = updates_per_epoch(
            self.corpus,
            translator.source_text,
            translator.target_text,
            recipe.make_batching(),
        )
        self.total_steps = math.ceil(recipe.epochs * self.steps_per_epoch)
        self.evaluate_every = recipe.evaluate_every or self.steps_per_epoch
        self.optimizer = recipe.make_optimizer(self.steps_per_epoch)
        self.step = train_step(
            self.model,
            self.optimizer,
            TokenCrossentropy(recipe.label_smoothing, divisor=recipe.divisor),
            recipe.r_drop,
        )
        self.state = State()
        seeds = _seeds(self.model)
        self.checkpoints = Checkpoints(
            model_dir / "checkpoints",
            added=[*self.state.added, *seeds],  # a layer may have dropout now
            model=self.model,
            optimizer=self.optimizer,
            state=self.state,
            seeds=seeds,
        )
        self.folder = ModelFolder(
            model_dir,
            self.checkpoints,
            self.state,
            self._settings(),
            recipe.is_paced,
        )
        self.words = 0.0
        self.training_seconds = 0.0

    def _settings(self) -> dict[str, object]:
        """The settings that a resumed training must have in common."""
        return {
            "model": json.loads(self.model.to_json()),
            "recipe": {
                **asdict(self.recipe),
                "learning_rate": self.recipe.rate,
            },
            TRAINING_TEXT: self.corpus.checksum,
            DEV_TEXT: self.dev and self.dev.checksum,
            DEV_TOKENIZER: self.dev and self.dev.tokenize,
        }

    def go_on(self) -> None:
        """Restores the state of the folder, then writes what must exist."""
        notes = self.folder.restore()
        self.batches = self._batches()
        self.folder.begin()
        step = int(self.state.step)
        used = float(self.state.seconds)
        self.pace = Pace(self.total_steps, self.recipe.minutes, used)
        self.line = ProgressLine(
            self.total_steps, step, seconds=self.pace.seconds_left
        )
        for note in notes:
            self.line.note(note)
        weights = [weight.value for weight in self.model.weights]
        size = sum(w.dtype.size * w.shape.num_elements() for w in weights)
        self.line.note(
            f"{self.model.count_params():,} weights, {size / 1e6:,.1f} MB"
        )
        self.line.note(
            f"{len(self.corpus)} sentence pairs, {self.corpus.blank} blank "
            "lines left out"
        )
        if self.dev is not None:
            self.line.note(f"dev BLEU: greedy search, {self.dev.tokenize}")
        if step:
            self.line.note(f"resuming from update {step}")

    def run(self) -> TrainingResult:
        """Trains until all is done, time is over, BLEU stalls or a signal."""
        used = self.pace.seconds
        with signals_caught(self.line.note) as caught:
            stopped_by = self._loop(caught)
        if stopped_by == "signal":
            self.line.note(f"stopped at update {int(self.state.step)}, saved")
        return TrainingResult(
            best_bleu=float(self.state.best_bleu),
            steps=int(self.state.step),
            stopped_by=stopped_by,
            seconds=self.pace.seconds - used,
            words_per_second=self.words / max(self.training_seconds, 1e-9),
            tokenize=self.dev.tokenize if self.dev else "",
        )

    def _loop(self, caught: list[int]) -> str:
        step = int(self.state.step)
        saved = lap = time.monotonic()
        over = self._is_over(step)
        if over:
            if not self.folder.best.exists():  # moved away
                self.folder.log.forget_after(step - 1)
                self._evaluate(step)
                self._save()
            return over
        for batch, position in self.batches:
            self._tell_what_was_left_out(position)
            if self.recipe.is_paced:
                share = self.pace.share(step)
                rate = self.recipe.rate_after(step, share)
                self.optimizer.learning_rate = rate
            cost = float(self.step(*batch)) * self.recipe.divisor
            step += 1
            words = float(tf.reduce_sum(batch[2]))
            self.words += words
            now = time.monotonic()
            self.training_seconds += now - lap
            self._count(step, cost, words)
            is_due = step % self.evaluate_every == 0
            over = self._is_over(step)
            if is_due or over:
                with self.pace.evaluating():
                    self._evaluate(step)
                self._be_patient(step)
                over = self._is_over(step) or over
            self.state.step.assign(step)
            self.state.position.assign(position)
            over = "signal" if caught else over
            if over or is_due or now - saved > CHECKPOINT_SECONDS:
                self._save()
                saved = time.monotonic()
            if over == "signal" and self.dev is None:
                self.folder.save_best(self.translator)  # without a dev set
            if over:
                return over
            lap = time.monotonic()
        raise RuntimeError("the stream of batches ended")

    def _count(self, step: int, cost: float, words: float) -> None:
        """Adds the loss of an update and reports it."""
        if math.isfinite(cost):
            self.state.loss.assign_add(cost)
            self.state.words.assign_add(words)
        self.line.update(step, self._status(cost / words))
        if self.board is not None:
            self.board.update(
                step,
                cost / words,
                self.optimizer,
                self.words,
                self.training_seconds,
            )

    def _save(self) -> None:
        self.state.seconds.assign(self.pace.seconds)
        self.checkpoints.save()

    def _tell_what_was_left_out(self, position: Position) -> None:
        """Reports after the first epoch how many pairs were too long."""
        before = Position(*self.state.position.numpy().tolist())
        is_second = (before.epoch, int(position.epoch)) == (0, 1)
        if is_second and self.recipe.max_length:
            long = len(self.corpus) - before.pairs
            if long:
                self.line.note(
                    f"{long} too long (over {self.recipe.max_length} "
                    "tokens), left out"
                )

    def _be_patient(self, step: int) -> None:
        """Does not count evaluations before a paced rate falls."""
        falls_from = self.recipe.constant_share
        if self.recipe.is_paced and self.pace.share(step) <= falls_from:
            self.state.stale.assign(0)

    def _is_over(self, step: int) -> str:
        if int(self.state.stale) >= self.recipe.patience:
            return "patience"
        if step >= self.total_steps:
            return "epochs"
        return "minutes" if self.pace.is_out_of_time else ""

    def _batches(self) -> Iterator[tuple[Batch, Position]]:
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

    def _evaluate(self, step: int) -> None:
        """Evaluates; saves the model if it is the best (always without dev)."""
        found = None
        if self.dev is not None:
            found = self.dev.evaluate(self.translator)
        record = self._record(step, found)
        if self.board is not None and found is not None:
            note = self.board.evaluation(
                step, found.loss, found.bleu, found.translations
            )
            if note:
                self.line.note(note)
        if is_best(found, self.state):
            self.folder.save_best(self.translator)
        self.state.loss.assign(0.0)
        self.state.words.assign(0.0)
        self.line.note(
            ", ".join(f"{name} {_short(v)}" for name, v in record.items())
        )
        third = step >= 3 * self.evaluate_every
        if self.dev is not None and third and self.state.best_bleu < 0.005:
            self.line.note(
                f"dev BLEU ({self.dev.tokenize}) was 0.00 at every evaluation "
                "so far: the best model is chosen by dev loss; --tokenize sets "
                "another tokenizer for BLEU"
            )
        record["seconds"] = self.pace.seconds
        record["device"] = describe_device()
        record["date"] = datetime.now(timezone.utc).isoformat(" ", "seconds")
        self.folder.log.add(record)

    def _record(self, step: int, found: Evaluation | None) -> dict[str, object]:
        """The log's record of an evaluation."""
        record: dict[str, object] = {
            "step": step,
            "epoch": step / self.steps_per_epoch,
            "words_per_second": self.words / max(self.training_seconds, 1e-9),
            "skipped_updates": int(self.optimizer.skipped_updates),
            "learning_rate": float(self.optimizer.learning_rate),
        }
        if self.state.words:
            record["train_loss"] = float(self.state.loss / self.state.words)
        if found is not None:
            record |= {"dev_loss": found.loss, "dev_bleu": found.bleu}
        return record


def _seeds(model: keras.Model) -> list[tf.Variable]:
    """The seeds of dropout, which tf.train.Checkpoint does not find."""
    return [one.value for one in model.non_trainable_variables]


def _dev_set(
    translator: Translator, files: TrainingFiles, recipe: Recipe
) -> DevSet | None:
    if files.dev_source is None or files.dev_target is None:
        return None
    language = getattr(translator.target_text, "language", "")
    return DevSet(files.dev_source, files.dev_target, language, recipe.tokenize)


def _short(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"
