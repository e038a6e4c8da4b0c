"""What a training tells: its progress, a table, a log, curves for TensorBoard, warnings, a card."""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import tensorflow as tf

from bahdanau_tf import __version__
from bahdanau_tf.data.dataset import Position
from bahdanau_tf.evaluation.scores import METRICS
from bahdanau_tf.options.training import FILE
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.ranges import named
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.training.checkpoints import LOW
from bahdanau_tf.training.run import Run, RunCallback, as_score
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.protocol import unit_of


class Status(RunCallback):
    """Prints the sizes of model and text, then the progress."""

    def on_train_begin(self, logs: object = None) -> None:
        run, note = self._run, self._run.line.note
        weights = [weight.value for weight in self.model.weights]
        size = sum(w.dtype.size * w.shape.num_elements() for w in weights)
        note(f"{self.model.count_params():,} weights, {size / 1e6:,.1f} MB")
        text = amount(len(run.corpus), "pair")
        if empty := run.corpus.blank:
            text += f", not counting {amount(empty, 'pair')} with a blank line"
        note(text)
        if run.dev is not None:
            metric = METRICS.get(run.recipe.monitor, METRICS["bleu"])
            by = metric.title if metric.takes_any else f"BLEU with {run.tokenize}"
            note(f"dev scores: greedy search, {by}")
        if run.step:
            limit = run.recipe.minutes
            used = f", {run.used['minutes']} of {limit:g} minutes used" if limit else ""
            note(f"resuming from update {run.step}{used}")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        run = self._run
        best = run.state.best_score(run.recipe.monitor)
        text = f"loss {logs['loss']:.3f}, {run.words_per_second:.0f} words/s"
        if skipped := int(run.read_optimizer("skipped_updates")):
            text += f", {amount(skipped, 'update')} skipped (not finite)"
        if run.dev is not None and not math.isnan(best):
            text += f", best {as_score(run.recipe.monitor, best)}"
        run.line.update(run.step, text)


class DroppedPairs(RunCallback):
    """Reports how many pairs were dropped for their length, after epoch 1."""

    def on_train_begin(self, logs: object = None) -> None:
        self._last, self._start = self._run.state.read_position(), self._run.step

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        for position in self._run.positions:
            before, self._last = self._last, Position(*map(int, position))
            if (before.epoch, self._last.epoch) == (0, 1):
                self._report(before)

    def on_train_end(self, logs: object = None) -> None:
        run = self._run
        # No batch of another epoch was read.
        if self._start < run.schedule.steps_per_epoch <= run.step and not self._last.epoch:
            self._report(self._last)

    def _report(self, last: Position) -> None:
        recipe, dropped = self._run.recipe, len(self._run.corpus) - last.pairs
        longest = {"tokens": recipe.max_length, "source words": recipe.max_words}
        limits = [f"{count} {unit}" for unit, count in longest.items() if count]
        if limits and dropped:
            self._run.line.note(
                f"{amount(dropped, 'pair')} left out: more than {' or '.join(limits)}"
                + ", with what synthetic pairs add" * (recipe.synthetic_pairs > 0)
            )


# The columns of the table that is shown, by the names of a record's numbers.
COLUMNS = {
    "step": "update",
    "epoch": "epoch",
    "words_per_second": "words/s",
    "skipped_updates": "skipped",
    "learning_rate": "rate",
    "train_loss": "train loss",
    "dev_loss": "dev loss",
    **{f"dev_{name}": f"dev {metric.title}" for name, metric in METRICS.items()},
}


class Logger(RunCallback):
    """Shows the results of each evaluation, and adds them to the log.

    A training that ends before its first evaluation has an entry without results.
    """

    def on_train_end(self, logs: object = None) -> None:
        if self._run.step and not self._run.folder.log.records():
            self.on_epoch_end(0, {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        run = self._run
        run.folder.check_place()
        record: dict[str, Any] = {
            "step": run.step,
            "epoch": run.step / run.schedule.steps_per_epoch,
            "words_per_second": run.words_per_second,
            "skipped_updates": int(run.read_optimizer("skipped_updates")),
            "learning_rate": run.read_optimizer("learning_rate"),
        }
        if "loss" in logs:
            record["train_loss"] = logs["loss"]
        record |= {f"dev_{name}": score for name, score in run.scores.items()}
        shown = [n for n in COLUMNS if n in record and (record[n] or n != "skipped_updates")]
        run.line.row({COLUMNS[name]: record[name] for name in shown})
        is_third = 3 <= run.step / run.evaluate_every < 4  # reported once
        is_low = is_third and run.state.best_score("bleu") < LOW
        if is_low and run.recipe.monitor == "bleu":
            run.line.note(
                f"dev BLEU ({run.tokenize}) is still below {LOW:g}: the best model is chosen "
                f"by dev loss; if it stays that low, try another tokenizer ({named('tokenize')})"
            )
        record["seconds"] = run.schedule.seconds
        record["device"] = describe_device()
        record["date"] = datetime.now(timezone.utc).isoformat(" ", "seconds")
        run.folder.log.add(record)


EVERY = 10  # updates between two points of a curve
PICTURES = 4
# The names and data classes of TensorBoard's plugins; `tf.summary.scalar` and
# `tf.summary.image` would need its package.
_SCALAR, _IMAGE = ("scalars", 1), ("images", 3)


class TensorBoard(RunCallback):
    """Writes curves and pictures for TensorBoard, without its package.

    Curves: train/loss of a batch, per word, train/gradient_norm before clipping,
    train/learning_rate, train/words_per_second without evaluation time, dev/loss per word, dev/bleu
    of greedy search, and the score that selects the best model. Pictures: alignment/1 and so on of
    the first dev sentences, as in the paper's Figure 3.
    """

    def __init__(self, run: Run, directory: str | os.PathLike[str]) -> None:
        super().__init__(run)
        # TensorFlow would make it with mode 755, whatever the umask.
        os.makedirs(directory, exist_ok=True)
        self._writer = tf.summary.create_file_writer(os.fspath(directory))
        self._words = self._seconds = 0.0  # those of the run at the last point

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        run, read = self._run, self._run.read_optimizer
        if run.step % EVERY:
            return
        words, seconds = run.words - self._words, run.seconds - self._seconds
        self._words, self._seconds = run.words, run.seconds
        values = {"loss": logs["loss"], "words_per_second": words / max(seconds, 1e-9)}
        values |= {name: read(name) for name in ("gradient_norm", "learning_rate")}
        self._scalars({f"train/{name}": value for name, value in values.items()})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        if scores := self._run.scores:
            self._scalars({f"dev/{name}": score for name, score in scores.items()})
            self._draw(self._run.translations)
            self._writer.flush()

    def _draw(self, translations: Sequence[Translation]) -> None:
        """Draws the first alignments, if the model has any."""
        with self._writer.as_default(self._run.step):
            for number, translation in enumerate(translations[:PICTURES], start=1):
                if translation.weights is None:
                    continue
                try:
                    picture = _picture(translation)
                except ImportError as error:
                    self._run.line.note(f"no alignment pictures: {error}")
                    return
                _write(f"alignment/{number}", picture, _IMAGE)

    def close(self) -> None:
        """Writes buffered events and closes the file."""
        self._writer.close()

    def _scalars(self, values: Mapping[str, float]) -> None:
        with self._writer.as_default(self._run.step):
            for name, value in values.items():
                _write(name, tf.constant(value), _SCALAR)


def _write(name: str, value: tf.Tensor, kind: tuple[str, int]) -> None:
    metadata = tf.compat.v1.SummaryMetadata(data_class=kind[1])
    metadata.plugin_data.plugin_name = kind[0]
    tf.summary.write(name, value, metadata=metadata)


def _picture(translation: Translation) -> tf.Tensor:
    """The alignment as string [3]: width, height and the PNG file."""
    png = io.BytesIO()
    translation.plot().savefig(png, format="png", dpi=100, bbox_inches="tight")
    data = png.getvalue()
    sizes = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    return tf.constant([*(str(size) for size in sizes), data])


ABOVE = 1.05  # times the loss of guessing, near which a training starts


class Doubts(RunCallback):
    """Warns of a loss above that of guessing, or not below the first one.

    The first is checked at the first evaluation that has a loss, and both at the end. The `Logger`
    has logged an evaluation before.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._words = run.translator.target_text.vocabulary_size
        self._warning = ""

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        if not self._warning:
            self._warn(worse_than_guessing(self._run.folder.log.records(), self._words))

    def on_train_end(self, logs: object = None) -> None:
        records = self._run.folder.log.records()
        warning = worse_than_guessing(records, self._words) or not_improved(records)
        if warning != self._warning:
            self._warn(warning)

    def _warn(self, warning: str) -> None:
        self._warning = warning
        if warning:
            self._run.line.note(warning)


def advice(otherwise: str) -> str:
    """What may be wrong if a loss does not fall, and what helps."""
    return f"the training is diverging (a lower {named('learning_rate')} helps), or it {otherwise}"


def worse_than_guessing(records: Sequence[Mapping[str, float]], words: int) -> str:
    """A sentence if the last loss is well above log K, that of guessing among K words; else ""."""
    last = records[-1] if records else {}
    loss = last.get("dev_loss", last.get("train_loss", 0.0))
    if loss <= ABOVE * math.log(words):
        return ""
    return (
        f"the loss after update {last['step']} is {loss:.2f}, above the "
        f"{math.log(words):.2f} of guessing among the {words:,} ids: "
        f"{advice('has only just started')}"
    )


def not_improved(records: Sequence[Mapping[str, float]]) -> str:
    """A sentence if the last training loss is not below the first one; else "".

    The loss on the dev text also rises if the model memorizes the training text.
    """
    with_loss = [record for record in records if "train_loss" in record]
    if len(with_loss) < 2 or with_loss[-1]["train_loss"] < with_loss[0]["train_loss"]:
        return ""
    first, last = with_loss[0], with_loss[-1]
    return (
        f"the training loss after update {last['step']} is {last['train_loss']:.2f}, not below the "
        f"{first['train_loss']:.2f} of the first evaluation: {advice('is learning nothing')}"
    )


def card_of(run: Run) -> str:
    """What describes the model of a training, as Markdown: `Translator.card`."""
    languages = [x for x in run.translator.habits.languages if x]
    between = f"From {' to '.join(languages)}, trained" if len(languages) == 2 else "Trained"
    scores = ", ".join(as_score(name, score) for name, score in run.scores.items())
    texts = (*run.translator.source_texts, run.translator.target_text)
    *sources, target = (f"{x.vocabulary_size:,} {unit_of(x)}" for x in texts)
    model = repr(run.translator)[1:-1].removeprefix("Translator: ").partition(";")[0]
    rows = {
        "model": f"{model}; source {' and '.join(sources)}; target {target}",
        "text": f"{len(run.corpus):,} pairs",
        "training": f"{run.step:,} updates, {run.used['epochs']} epochs",
        "dev": scores and f"{scores} ({len(run.dev or ()):,} pairs, greedy)",
    }
    file = run.folder.path / FILE
    flags = file.read_text("utf-8").split("\n") if file.is_file() else []
    shown = [x for x in flags if x.startswith("--") and not x.startswith("--init_from")]
    lines = [f"# {run.folder.path.name}\n"]
    lines += [f"{between} on {time.strftime('%Y-%m-%d')} with bahdanau-tf {__version__}.\n"]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in rows.items() if text]
    return "\n".join([*lines, "\nIts options:\n", *(f"    {x}" for x in shown), ""])
