"""The callbacks of a training: doubts, skipped pairs, status, rate, ends, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras

from bahdanau_tf.data.batching import Position
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.log import Log, Speed
from bahdanau_tf.training.run import Run, as_array
from bahdanau_tf.translator import Translator

ADVICE = "the training diverges (then a lower --learning_rate helps), or it"


class Doubts(keras.callbacks.Callback):
    """Compares the loss with that of guessing, and with the first one.

    It tells a loss above that of guessing at the first evaluation that has
    one, and what there is to doubt at the end.

    Args:
        run: The run.
        log: The log of the training, which has the last evaluation already.
        translator: The translator that is trained.
    """

    def __init__(self, run: Run, log: Log, translator: Translator) -> None:
        super().__init__()
        self._run = run
        self._log = log
        self._words = translator.target_text.vocabulary_size
        self._told = ""

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        if not self._told:
            self._tell(worse_than_guessing(self._log.records(), self._words))

    def on_train_end(self, logs: object = None) -> None:
        records = self._log.records()
        said = worse_than_guessing(records, self._words)
        said = said or not_improved(records)
        if said != self._told:
            self._tell(said)

    def _tell(self, said: str) -> None:
        self._told = said
        if said:
            self._run.line.note(said)


def worse_than_guessing(records: Sequence[Mapping[str, float]], words: int) -> str:
    """A sentence if the last loss is above that of guessing; else "".

    Args:
        records: The lines of the log.
        words: Number of words K of the target vocabulary; if each is guessed
            equally often, the loss is log K.
    """
    last = records[-1] if records else {}
    loss = last.get("dev_loss", last.get("train_loss", 0.0))
    if loss <= math.log(words):
        return ""
    return (
        f"the loss after update {last['step']} is {loss:.2f}, above that of "
        f"guessing among the {words:,} ids, {math.log(words):.2f}: {ADVICE} "
        "has only begun"
    )


def not_improved(records: Sequence[Mapping[str, float]]) -> str:
    """A sentence if the last loss is not below the first one; else "".

    It is the loss on the training text: that on the dev text also rises if the
    training text is learned by heart.

    Args:
        records: The lines of the log.
    """
    known = [one for one in records if "train_loss" in one]
    if len(known) < 2 or known[-1]["train_loss"] < known[0]["train_loss"]:
        return ""
    first, last = known[0], known[-1]
    return (
        f"the training loss after update {last['step']} is "
        f"{last['train_loss']:.2f}, not below the {first['train_loss']:.2f} of "
        f"the first evaluation: {ADVICE} learns nothing"
    )


class LeftOut(keras.callbacks.Callback):
    """Tells it once, when the first epoch is over.

    Args:
        run: The run.
        pairs: Number of sentence pairs of the corpus.
    """

    def __init__(self, run: Run, pairs: int) -> None:
        super().__init__()
        self._run = run
        self._pairs = pairs

    def on_train_begin(self, logs: object = None) -> None:
        self._last = self._run.state.read_position()
        self._was_over = self._is_over()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        for position in self._run.positions:
            before, self._last = self._last, Position(*map(int, position))
            if (before.epoch, self._last.epoch) == (0, 1):
                self._tell(self._pairs - before.pairs)

    def on_train_end(self, logs: object = None) -> None:
        # No batch of another epoch was read.
        if self._is_over() and not self._was_over and not self._last.epoch:
            self._tell(self._pairs - self._last.pairs)

    def _is_over(self) -> bool:
        return self._run.step >= self._run.steps_per_epoch

    def _tell(self, count: int) -> None:
        recipe = self._run.recipe
        limits = [
            f"{longest} {of}"
            for longest, of in (
                (recipe.max_length, "tokens"),
                (recipe.max_words, "source words"),
            )
            if longest
        ]
        if limits and count:
            self._run.line.note(
                f"{amount(count, 'sentence pair')} left out, with more than {' or '.join(limits)}"
            )


class Status(keras.callbacks.Callback):
    """Tells at first what is trained on what, then the progress.

    Args:
        run: The run.
        speed: Its speed.
        corpus: The training text.
        dev: The dev set, or None.
    """

    def __init__(self, run: Run, speed: Speed, corpus: ParallelCorpus, dev: DevSet | None) -> None:
        super().__init__()
        self._run = run
        self._speed = speed
        self._corpus = corpus
        self._dev = dev

    def on_train_begin(self, logs: object = None) -> None:
        tell = self._run.line.note
        weights = [weight.value for weight in self.model.weights]
        size = sum(w.dtype.size * w.shape.num_elements() for w in weights)
        tell(f"{self.model.count_params():,} weights, {size / 1e6:,.1f} MB")
        text = amount(len(self._corpus), "sentence pair")
        if blank := self._corpus.blank:
            text += f", without {amount(blank, 'pair')} with a blank line"
        tell(text)
        if self._dev is not None:
            tell(f"dev BLEU: greedy search, {self._dev.tokenize}")
        if self._run.step:
            tell(f"resuming from update {self._run.step}")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        state = self._run.state
        name, best = "BLEU", float(state.best_bleu)
        if self._run.recipe.monitor == "loss":
            name, best = "dev loss", float(state.best_loss)
        skipped = int(self._run.of_optimizer("skipped_updates"))
        text = f"loss {logs['loss']:.3f}, "
        text += f"{self._speed.words_per_second:.0f} words/s"
        if skipped:
            text += f", {amount(skipped, 'update')} skipped (not finite)"
        if self._dev is not None and not math.isnan(best):
            text += f", best {name} {best:.2f}"
        self._run.line.update(self._run.step, text)


class Divergence(keras.callbacks.Callback):
    """Writes down the pairs of skipped updates; ends after many in a row.

    The optimizer skips and counts these updates. `skipped.jsonl` gets a line
    for each sentence pair: update, number of the line from 1, source, target.
    The line is that of the text without the pairs that are held out.

    Args:
        run: The run.
        corpus: The training text.
        path: The file of the pairs.
    """

    def __init__(self, run: Run, corpus: ParallelCorpus, path: Path) -> None:
        super().__init__()
        self._run = run
        self._corpus = corpus
        self._path = path
        self._pairs = Log(path)

    def on_train_begin(self, logs: object = None) -> None:
        self._pairs.forget_after(self._run.step)
        self._skipped = self._run.of_optimizer("skipped_updates")
        self._in_a_row = 0

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Looks at the update.

        Raises:
            ValueError: As many in a row were skipped as the recipe allows.
        """
        before, self._skipped = (
            self._skipped,
            self._run.of_optimizer("skipped_updates"),
        )
        if self._skipped == before and math.isfinite(logs["loss"]):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        self._write_pairs()
        if self._in_a_row == 1:
            self._run.line.note(
                f"update {self._run.step} was skipped, its loss or gradient is "
                f"not finite; its sentence pairs: {self._path}"
            )
        if self._in_a_row >= self._run.recipe.max_skipped:
            raise ValueError(
                f"Recipe: max_skipped is {self._in_a_row}, and loss or "
                "gradient of so many updates in a row was not finite; their "
                f"sentence pairs are in {self._path}. The last checkpoint is "
                "kept: the same command with a lower --learning_rate goes on "
                "from it. If its weights are too large already, begin in "
                "another folder"
            )

    def _write_pairs(self) -> None:
        lines = self._run.lines
        for number, source, target in zip(lines, *self._corpus.read(lines), strict=True):
            self._pairs.add(
                {
                    "step": self._run.step,
                    "line": int(number) + 1,
                    "source": source.decode(),
                    "target": target.decode(),
                }
            )


class LearningRate(keras.callbacks.Callback):
    """Sets the rate where it is a variable of the optimizer, not a schedule.

    It is that of the recipe, also if an earlier run had another; it follows
    the time if the recipe is paced, and is halved on a plateau.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def on_train_begin(self, logs: object = None) -> None:
        if self._run.recipe.schedule in ("constant", "plateau"):
            halvings = int(self._run.state.halvings)
            self._set(self._run.recipe.rate * 0.5**halvings)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        run = self._run
        if run.recipe.is_paced:
            share = run.pace.share(run.step)
            self._set(run.recipe.rate_after(run.step, share))

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        recipe, stale = self._run.recipe, int(self._run.state.stale)
        is_due = stale > 0 and stale % recipe.plateau == 0
        if recipe.schedule == "plateau" and is_due:
            self._run.state.halvings.assign_add(1)
            self.on_train_begin()

    def _set(self, rate: float) -> None:
        self._run.optimizer.learning_rate = as_array(rate)


class Ends(keras.callbacks.Callback):
    """Decides after each update and each evaluation whether all is over.

    A signal to one worker ends the training of all, and so does a callback.

    Args:
        run: The run.
        signals: The signals that were caught so far.

    Attributes:
        reason: Why it is over: "patience", "updates", "epochs", "minutes",
            "callback" (a callback set `model.stop_training`) or "signal"; ""
            while it is not. After a signal only a due evaluation is made.
    """

    def __init__(self, run: Run, signals: Sequence[int]) -> None:
        super().__init__()
        self.reason = ""
        self._run = run
        self._signals = signals

    def on_train_begin(self, logs: object = None) -> None:
        self._listen()
        self._be_patient()  # with a new end the rate may have risen again
        self.reason = self._limit()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._run.pace.begin()  # after the chief's clock was heard
        self.reason = self._limit() or self._signal()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._be_patient()
        self.reason = self._signal() or self._limit() or self.reason

    def _listen(self) -> None:
        """Learns whether a callback or a signal of some worker ends it."""
        own = self.model.stop_training, bool(self._signals)
        self._is_stopped, self._is_signalled = self._run.cluster.any(*own)

    def _limit(self) -> str:
        run = self._run
        updates = run.recipe.updates
        if int(run.state.stale) >= run.recipe.patience:
            return "patience"
        if run.step >= run.total_steps:
            return "updates" if run.step >= updates > 0 else "epochs"
        if run.pace.is_out_of_time:
            return "minutes"
        return "callback" if self._is_stopped else ""

    def _signal(self) -> str:
        return "signal" if self._is_signalled else ""

    def _be_patient(self) -> None:
        """Does not count evaluations before the rate of "linear" falls."""
        run, recipe = self._run, self._run.recipe
        falls = recipe.schedule == "linear" and recipe.constant_share < 1
        if falls and run.pace.share(run.step) <= recipe.constant_share:
            run.state.stale.assign(0)


SECONDS = 300  # between two checkpoints, if nothing is evaluated


class CheckpointSaver(keras.callbacks.Callback):
    """Saves after each evaluation, every five minutes and at the end.

    Args:
        run: The run.
        checkpoints: The checkpoints of the training.
        ends: Tells whether the training is over.
    """

    def __init__(self, run: Run, checkpoints: Checkpoints, ends: Ends) -> None:
        super().__init__()
        self._run = run
        self._checkpoints = checkpoints
        self._ends = ends

    def on_train_begin(self, logs: object = None) -> None:
        self._saved, self._time = self._run.step, time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        follows_later = self._run.is_due or self._ends.reason
        if time.monotonic() - self._time > SECONDS and not follows_later:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._save()

    def on_train_end(self, logs: object = None) -> None:
        if self._saved != self._run.step:
            self._save()

    def _save(self) -> None:
        pace, state = self._run.pace, self._run.state
        state.seconds.assign(pace.seconds)
        state.longest_seconds.assign(pace.longest)
        self._checkpoints.save()
        self._saved, self._time = self._run.step, time.monotonic()
