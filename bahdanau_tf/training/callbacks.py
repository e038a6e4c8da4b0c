"""The callbacks of a training that act: they select the best model, set the rate, end and save."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import keras
import tensorflow as tf

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.synthetic import LOOKED_AT
from bahdanau_tf.evaluation import References, right_answers
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.ranges import OptionError, named
from bahdanau_tf.text.script import UNKNOWN, guess_language
from bahdanau_tf.training import reporting
from bahdanau_tf.training.checkpoints import as_array
from bahdanau_tf.training.folder import Log
from bahdanau_tf.training.run import SIGNALS, Run, RunCallback
from bahdanau_tf.training.text import LINES
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.doubts import new_words
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translator import Translator

SECONDS = 300  # between two checkpoints without an evaluation


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
                f"not finite; its pairs are in {self._path}"
            )
        if self._in_a_row >= run.recipe.max_skipped:
            why = (
                "and the loss or gradient of that many updates in a row was not finite; their "
                f"pairs are in {self._path}. The last checkpoint is kept: the same command with a "
                f"lower {named('learning_rate')} resumes from it. If its weights are already too "
                "large, start in another folder"
            )
            raise OptionError("Recipe", "max_skipped", self._in_a_row, why=why)


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
    its scores in their logs, `val_loss`, `val_bleu` (not for short strings) and that of `monitor`.
    Without a dev set each model is the best, even the one at which a signal ends training. With one
    the model at a signal is saved if there was no evaluation yet. Of several workers the chief
    evaluates and saves; the others wait.
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
        translated = [x for x in run.translations if x.tokens]
        rows = [(x.log_prob, len(x.tokens) + x.finished, new_words(x)[1]) for x in translated]
        usual = self._usual
        run.translator.habits = usual.measured(*zip(*rows, strict=True)) if rows else usual
        run.translator.card = reporting.card_of(run)
        run.folder.save_best(run.translator)

    @cached_property
    def _usual(self) -> Habits:
        """The habits of the training text, and of those before that of `init_from`."""
        corpus, recipe = self._run.corpus, self._run.recipe
        pairs = [*corpus.pairs(corpus.spread(LOOKED_AT))]
        guesses = [guess_language(side) for side in zip(*pairs[:LINES], strict=True)]
        own = replace(
            Habits.of_pairs(pairs, recipe.synthetic_pairs > 0),
            longest=recipe.max_length or None,
            longest_words=recipe.max_words or None,
            languages=["" if x == UNKNOWN else x for x in guesses],
            is_short=self._run.is_short,
        )
        earlier = self._run.translator.habits
        return own.after(earlier) if any(vars(earlier).values()) else own

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
    translations = translator.translate(sources, GREEDY, split_sentences=False)
    log_probs = translator.score(sources, references)
    words = sum(len(score.token_log_probs) for score in log_probs)
    texts = [translation.text for translation in translations]
    judge = References(references, tokenize, answers=right_answers(sources, references))
    scores = {name: judge.score(name, texts).score for name in metrics}
    loss = -sum(score.log_prob for score in log_probs) / words
    return {"loss": loss, **scores}, translations


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
        own = self.model.stop_training, *(number in self._run.caught for number in SIGNALS)
        self._is_stopped, *came = self._run.cluster.any(*own)
        self._run.signal = next((n for n, x in zip(SIGNALS, came, strict=True) if x), 0)

    def _limit(self) -> str:
        run = self._run
        updates = run.recipe.updates
        if int(run.state.stale) >= run.recipe.patience:
            return "patience"
        if run.step >= run.schedule.total_steps:
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
    run: Run, of_user: Sequence[keras.callbacks.Callback]
) -> keras.callbacks.CallbackList:
    """All callbacks of a training, in the order in which they are called at each point of it.

    1. `DroppedPairs` and `Status` report.
    2. `Divergence` records what was skipped.
    3. `Selection` evaluates and keeps the best model; later ones find its results in their logs.
    4. `Logger` writes them, `Doubts` warns.
    5. `LearningRate` sets the rate of the next update.
    6. `TensorBoard` draws. The user's own may change weights, or stop the training.
    7. `Ends` decides whether it is over.
    8. `CheckpointSaver` saves what all of them have changed.

    Workers other than the chief report and write nothing.
    """

    def of_chief(*kinds: type[RunCallback]) -> list[RunCallback]:
        return [kind(run) for kind in kinds if run.cluster.is_chief]

    return keras.callbacks.CallbackList(
        [
            *of_chief(reporting.DroppedPairs, reporting.Status, Divergence),
            Selection(run),
            *of_chief(reporting.Logger, reporting.Doubts),
            LearningRate(run),
            *of_user,
            Ends(run),
            *of_chief(CheckpointSaver),
        ],
        model=run.translator.model,
        epochs=math.ceil(run.schedule.total_steps / run.evaluate_every),
        steps=run.evaluate_every,
    )
