"""The callbacks of a training: they select the best model, report, limit and save."""

from __future__ import annotations

import io
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.data.dataset import Position
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.synthetic import LOOKED_AT
from bahdanau_tf.evaluation import References, right_answers
from bahdanau_tf.evaluation.scores import METRICS
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.ranges import OptionError, named
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.text.script import UNKNOWN, guess_language
from bahdanau_tf.training.checkpoints import LOW, as_array
from bahdanau_tf.training.folder import Log
from bahdanau_tf.training.run import SIGNALS, Run, as_score, card_of
from bahdanau_tf.training.text import LINES
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.doubts import Habits, new_words
from bahdanau_tf.translator import Translator

SECONDS = 300  # between two checkpoints without an evaluation
ABOVE = 1.05  # times the loss of guessing, near which a training starts


class RunCallback(keras.callbacks.Callback):
    """A callback of a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run


class Status(RunCallback):
    """Prints the sizes of model and text, then the progress."""

    def on_train_begin(self, logs: object = None) -> None:
        run, note = self._run, self._run.line.note
        weights = [weight.value for weight in self.model.weights]
        size = sum(w.dtype.size * w.shape.num_elements() for w in weights)
        note(f"{self.model.count_params():,} weights, {size / 1e6:,.1f} MB")
        text = amount(len(run.corpus), "sentence pair")
        if empty := run.corpus.blank:
            text += f", not counting {amount(empty, 'pair')} with a blank line"
        note(text)
        if run.dev is not None:
            note(f"dev scores: greedy search, BLEU with {run.tokenize}")
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
        if self._start < run.steps_per_epoch <= run.step and not self._last.epoch:
            self._report(self._last)

    def _report(self, last: Position) -> None:
        recipe, dropped = self._run.recipe, len(self._run.corpus) - last.pairs
        limits = [
            f"{longest} {unit}"
            for longest, unit in ((recipe.max_length, "tokens"), (recipe.max_words, "source words"))
            if longest
        ]
        if limits and dropped:
            self._run.line.note(
                f"{amount(dropped, 'sentence pair')} left out: more than {' or '.join(limits)}"
            )


class Divergence(RunCallback):
    """Writes the pairs of skipped updates to a file; ends after many in a row.

    The optimizer skips and counts these updates. `skipped.jsonl` gets a line for each sentence
    pair: update, number of the line from 1, source, target. The line is that of the text without
    the pairs that are held out.
    """

    def on_train_begin(self, logs: object = None) -> None:
        self._path = self._run.folder.path / "skipped.jsonl"
        self._pairs = Log(self._path)
        self._pairs.forget_after(self._run.step)
        self._skipped = self._run.read_optimizer("skipped_updates")
        self._in_a_row = 0

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Raises ValueError after as many skipped updates in a row as the recipe allows."""
        run, before = self._run, self._skipped
        self._skipped = run.read_optimizer("skipped_updates")
        if self._skipped == before and math.isfinite(logs["loss"]):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        for number, source, target in zip(run.lines, *run.corpus.read(run.lines), strict=True):
            pair = {"source": source.decode(), "target": target.decode()}
            self._pairs.add({"step": run.step, "line": int(number) + 1, **pair})
        if self._in_a_row == 1:
            run.line.note(
                f"update {run.step} was skipped because its loss or gradient is "
                f"not finite; its sentence pairs are in {self._path}"
            )
        if self._in_a_row >= run.recipe.max_skipped:
            raise OptionError(
                "Recipe",
                "max_skipped",
                self._in_a_row,
                why=f"and the loss or gradient of that many "
                f"updates in a row was not finite; their sentence pairs are in {self._path}. The "
                f"last checkpoint is kept: the same command with a lower {named('learning_rate')} "
                "resumes from it. If its weights are already too large, start in another folder",
            )


@contextmanager
def averaged(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
    """Gives a model the average of its weights while the block runs.

    It is the exponential moving average of the optimizer, w̄ ← a w̄ + (1 - a) w after each update,
    which starts as the weights after the first. Before that, or if the optimizer does not
    `use_ema`, the model stays as it is.
    """
    # A variable of several replicas can be read in this way only.
    updates = int(keras.ops.convert_to_numpy(optimizer.iterations))
    if not optimizer.use_ema or not updates:
        yield
        return
    weights = model.trainable_variables
    raw = [tf.identity(weight.value) for weight in weights]
    optimizer.finalize_variable_values(weights)
    try:
        yield
    finally:
        for weight, value in zip(weights, raw, strict=True):
            weight.assign(value)


class Selection(RunCallback):
    """Evaluates the model on the dev set, and saves it if it is the best.

    If the recipe has an `average`, the model has the averaged weights then. Later callbacks find
    its scores in their logs, `val_loss`, `val_bleu` and that of `monitor`. Without a dev set each
    model is the best, even the one at which a signal ends training. With a dev set the model at a
    signal is saved if there was no evaluation yet. Of several workers the chief evaluates and
    saves; the others wait.
    """

    def on_train_begin(self, logs: object = None) -> None:
        self._last = self._run.step

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        with self._run.schedule.evaluating():
            self._select()
        self._run.line.end_in(self._run.schedule.seconds_left)
        logs.update({f"val_{name}": score for name, score in self._run.scores.items()})

    def on_train_end(self, logs: object = None) -> None:
        run, best = self._run, self._run.folder.best
        if run.dev is None and self._last != run.step:
            self._select()
        (has_none,) = run.cluster.from_chief([not best.exists()])
        if has_none and run.step:
            with averaged(self.model, run.optimizer):
                if run.cluster.is_chief:
                    self._save()
            run.note(
                f"no evaluation yet: {best} is the model after update {run.step}, until "
                "an evaluation selects the best one"
            )

    def _select(self) -> None:
        run = self._run
        self._last = run.step
        with averaged(self.model, run.optimizer):
            if run.dev is not None:
                self._evaluate(run.dev)
            is_best = run.state.record(run.scores, run.recipe.monitor)
            # An update that was lost after its evaluation is repeated: the best
            # model may be of it, and then no later one is better.
            was_best = run.step in run.folder.improved
            if run.cluster.from_chief([was_best])[0]:
                run.state.stale.assign(0)
            if is_best and run.cluster.is_chief:
                self._save()

    def _save(self) -> None:
        """Saves the model with its habits, of the last translations of the dev text, and a card."""
        run = self._run
        rows = [
            (x.log_prob, len(x.tokens) + x.finished, new_words(x)[1])
            for x in run.translations
            if x.tokens
        ]
        usual = self._usual
        run.translator.habits = usual.measured(*zip(*rows, strict=True)) if rows else usual
        run.translator.card = card_of(run)
        run.folder.save_best(run.translator)

    @cached_property
    def _usual(self) -> Habits:
        """The habits of the training text."""
        corpus, recipe = self._run.corpus, self._run.recipe
        pairs = [*corpus.pairs(corpus.spread(LOOKED_AT))]
        guesses = [guess_language(side) for side in zip(*pairs[:LINES], strict=True)]
        return replace(
            Habits.of_pairs(pairs),
            longest=recipe.max_length or None,
            longest_words=recipe.max_words or None,
            languages=["" if x == UNKNOWN else x for x in guesses],
        )

    def _evaluate(self, dev: ParallelCorpus) -> None:
        run = self._run
        scores = dict.fromkeys(("loss", *run.titles), 0.0)
        if run.cluster.is_chief:
            scores, run.translations = evaluate(run.translator, dev, run.tokenize, [*run.titles])
        values = run.cluster.from_chief([*scores.values()])
        run.scores = dict(zip(scores, map(float, values), strict=True))


GREEDY = Decoding(beam_size=1)


def evaluate(
    translator: Translator, dev: ParallelCorpus, tokenize: str, metrics: Sequence[str]
) -> tuple[dict[str, float], list[Translation]]:
    """Translates and scores the dev text.

    Returns:
        "loss", the mean of -log p(y_i) over all words, end symbols included, and the scores of
        greedy search by `metrics`; and the translations, in the order of the text.
    """
    sources, references = ([x.decode() for x in side] for side in dev.read(dev.rows))
    translations = translator.translate(sources, GREEDY)
    log_probs = translator.score(sources, references)
    words = sum(len(score.token_log_probs) for score in log_probs)
    texts = [translation.text for translation in translations]
    judge = References(references, tokenize, answers=right_answers(sources, references))
    scores = {name: judge.score(name, texts).score for name in metrics}
    loss = -sum(score.log_prob for score in log_probs) / words
    return {"loss": loss, **scores}, translations


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
            "epoch": run.step / run.steps_per_epoch,
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
        self._scalars(
            {
                "train/loss": logs["loss"],
                "train/gradient_norm": read("gradient_norm"),
                "train/learning_rate": read("learning_rate"),
                "train/words_per_second": words / max(seconds, 1e-9),
            }
        )

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


class LearningRate(RunCallback):
    """Sets the learning rate before each update, unless a schedule gives it.

    A resumed training with a new rate uses the new rate. A schedule whose end is a limit of time
    gets the fraction completed; on a plateau the rate is halved.
    """

    def on_train_begin(self, logs: object = None) -> None:
        if self._run.recipe.schedule in ("constant", "plateau"):
            rate = self._run.recipe.rate * 0.5 ** int(self._run.state.halvings)
            self._run.optimizer.learning_rate = as_array(rate)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        run = self._run
        if run.schedule.follows_time:
            run.schedule.follow(run.step, run.schedule.share(run.step))

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        recipe, stale = self._run.recipe, int(self._run.state.stale)
        is_due = stale > 0 and stale % recipe.plateau == 0
        if recipe.schedule == "plateau" and is_due:
            self._run.state.halvings.assign_add(1)
            self.on_train_begin()


class Ends(RunCallback):
    """Decides after each update and each evaluation whether training ends, as `Run.ending`.

    A signal to one worker ends the training of all, and so does a callback (it sets
    `model.stop_training`). After a signal only a due evaluation is made.
    """

    def __init__(self, run: Run, signals: Sequence[int]) -> None:
        super().__init__(run)
        self._signals = signals

    @property
    def _signal(self) -> str:
        return "signal" if self._run.signal else ""

    def on_train_begin(self, logs: object = None) -> None:
        self._listen()
        self._reset_patience()  # with another end the rate may have risen again
        self._run.ending = self._limit()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._run.schedule.begin()  # after the chief has sent the time
        self._run.ending = self._limit() or self._signal

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._reset_patience()
        self._run.ending = self._signal or self._limit() or self._run.ending

    def _listen(self) -> None:
        """Asks all workers whether a callback or a signal ends the training."""
        own = self.model.stop_training, *(number in self._signals for number in SIGNALS)
        self._is_stopped, *came = self._run.cluster.any(*own)
        self._run.signal = next((n for n, x in zip(SIGNALS, came, strict=True) if x), 0)

    def _limit(self) -> str:
        run = self._run
        updates = run.recipe.updates
        if int(run.state.stale) >= run.recipe.patience:
            return "patience"
        if run.step >= run.total_steps:
            return "updates" if run.step >= updates > 0 else "epochs"
        if run.schedule.is_out_of_time:
            return "minutes"
        return "callback" if self._is_stopped else ""

    def _reset_patience(self) -> None:
        """Ignores evaluations before the rate falls, if it is constant first."""
        run, recipe = self._run, self._run.recipe
        falls = "constant_share" not in recipe.unused() and recipe.constant_share < 1
        if falls and run.schedule.share(run.step) <= recipe.constant_share:
            run.state.stale.assign(0)


class CheckpointSaver(RunCallback):
    """Saves after each evaluation, every five minutes and at the end."""

    def on_train_begin(self, logs: object = None) -> None:
        self._saved, self._time = self._run.step, time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        follows_later = self._run.is_due or self._run.ending
        if time.monotonic() - self._time > SECONDS and not follows_later:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._save()

    def on_train_end(self, logs: object = None) -> None:
        if self._saved != self._run.step:
            self._save()

    def _save(self) -> None:
        self._run.folder.check_place()
        schedule, state = self._run.schedule, self._run.state
        state.seconds.assign(schedule.seconds)
        state.longest_seconds.assign(schedule.longest)
        self._run.folder.checkpoints.save()
        self._saved, self._time = self._run.step, time.monotonic()


def build_callbacks(
    run: Run,
    signals: Sequence[int],
    board: Sequence[TensorBoard],
    of_user: Sequence[keras.callbacks.Callback],
) -> keras.callbacks.CallbackList:
    """All callbacks of a training, in the order in which they are called at each point of it.

    1. `DroppedPairs` and `Status` report.
    2. `Divergence` records what was skipped.
    3. `Selection` evaluates and keeps the best model; later ones find its results in their logs.
    4. `TensorBoard` and `Logger` write them, `Doubts` warns.
    5. `LearningRate` sets the rate of the next update.
    6. The user's own may change weights, or stop the training.
    7. `Ends` decides whether it is over.
    8. `CheckpointSaver` saves what all of them have changed.

    Workers other than the chief report and write nothing.
    """

    def of_chief(*kinds: type[RunCallback]) -> list[RunCallback]:
        return [kind(run) for kind in kinds if run.cluster.is_chief]

    return keras.callbacks.CallbackList(
        [
            *of_chief(DroppedPairs, Status, Divergence),
            Selection(run),
            *board,
            *of_chief(Logger, Doubts),
            LearningRate(run),
            *of_user,
            Ends(run, signals),
            *of_chief(CheckpointSaver),
        ],
        model=run.translator.model,
        epochs=math.ceil(run.total_steps / run.evaluate_every),
        steps=run.evaluate_every,
    )
