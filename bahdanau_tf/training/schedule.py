"""How far a training is, by updates and by time, and the learning rate that follows from it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from bahdanau_tf import optimizers
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.optimizers import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.recipe import Name, ScheduleCall
from bahdanau_tf.system.ranges import OptionError
from bahdanau_tf.text.tokenizer import Tokenizer

LARGEST_WARMUP = 0.1  # share of a training of limited time


class Schedule:
    """The share of a training that is over, and the learning rate.

    In each run the time starts after the first update, which takes longer than the others, because
    its graph is made. Time is reserved for the last evaluation, as much as the longest one
    took; before the first evaluation, a tenth of the time.

    With a limit of time the number of updates is not known before the end, so a rate that depends
    on it gets an estimate before each update: n updates in the share s of the training make n / s
    in all.

    Attributes:
        steps_per_epoch: Number of updates in a pass over the corpus; it may end within one.
        total_steps: Number of updates of the whole training, unless its time is over before.
        rate: The learning rate of an optimizer: a number, or a Keras schedule.
        follows_time: Whether `follow` is to be called before each update.
        longest: Seconds of the longest evaluation, NaN before the first.
    """

    def __init__(
        self, recipe: Recipe, steps_per_epoch: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self.total_steps = recipe.total_updates(steps_per_epoch)
        self.rate: float | LearningRateSchedule = recipe.rate
        self.follows_time = False
        self._warmup_steps = recipe.warmup_steps
        if (call := ScheduleCall.parse(recipe.schedule)) is not None:
            lengths: dict[str, Any] = _lengths(self.total_steps, recipe.warmup_steps)
            self.follows_time = recipe.minutes > 0 and bool({"total", "after_warmup"} & call.names)
            if self.follows_time:
                lengths = {n: tf.Variable(float(x), trainable=False) for n, x in lengths.items()}
            self._lengths = lengths
            numbers = {
                "rate": recipe.rate,
                "constant_share": recipe.constant_share,
                "steps_per_epoch": steps_per_epoch,
                **lengths,
            }
            self.rate = _make_schedule(recipe.schedule, call, numbers)
        self._limit = 60 * recipe.minutes if recipe.minutes else math.inf
        self._clock = clock
        self._start = math.nan  # before the time of this run starts
        self._over = 0.0  # the largest share so far
        self.resume()

    def resume(self, used: float = 0.0, longest: float = math.nan) -> None:
        """Continues after earlier runs, which took `used` seconds."""
        self._used, self.longest = used, longest

    def begin(self) -> None:
        """Starts the time of this run; later calls do nothing."""
        if math.isnan(self._start):
            self._start = self._clock()

    @property
    def seconds(self) -> float:
        """The time of all runs so far, evaluations included."""
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
        of_both = max(step / self.total_steps, self.seconds / self._for_updates)
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

    def follow(self, updates: int, share: float) -> None:
        """Estimates the number of updates from those in a share of the training.

        The warm-up is over after a tenth of the training at the latest.
        """
        if self.follows_time:
            total = updates / share if updates and share else self.total_steps
            warmup = min(self._warmup_steps, LARGEST_WARMUP * total)
            for name, length in _lengths(total, warmup).items():
                # TensorFlow would keep a tensor for each number of Python.
                self._lengths[name].assign(np.asarray(length, np.float32))


def updates_per_epoch(
    corpus: ParallelCorpus, source_text: Tokenizer, target_text: Tokenizer, recipe: Recipe
) -> float:
    """The number of updates in an epoch, which may end within an update of several batches.

    Batches of a fixed number of pairs are counted as if no pair were too long. With a token budget
    the first epoch is read and its batches are counted; other epochs have nearly as many.
    """
    batching = recipe.make_batching()
    if batching.token_budget is None:
        batches = math.ceil(len(corpus) / batching.batch_size)
    else:
        # Faster, and as many: sub-words that are drawn move no pair.
        batching = replace(batching, sample_subwords=False)
        stream = stream_batches(corpus, source_text, target_text, batching)
        first_epoch = stream.take_while(lambda _, position, lines: position.epoch == 0)
        batches = int(first_epoch.reduce(0, lambda count, _: count + 1))
    return batches / recipe.accumulate


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
        why = f"but keras.optimizers.schedules has no class {call.owner}"
        raise OptionError("Recipe", "schedule", schedule, why=why)
    keywords = {name: number(argument) for name, argument in call.keywords.items()}
    try:
        return owner(*map(number, call.arguments), **keywords)
    except (TypeError, ValueError) as error:
        why = f"which cannot be made: {error}"
        raise OptionError("Recipe", "schedule", schedule, why=why) from error


def make_optimizer(recipe: Recipe, schedule: Schedule) -> Guarded:
    """The optimizer of a recipe, with the learning rate of a schedule."""
    kinds: dict[str, type[Guarded]]
    kinds = {"adadelta": optimizers.Adadelta, "adam": optimizers.Adam, "sgd": optimizers.SGD}
    return kinds[recipe.optimizer](
        schedule.rate,
        max_norm=recipe.max_norm,
        use_ema=recipe.average > 0,
        ema_momentum=recipe.average,
        gradient_accumulation_steps=(recipe.accumulate if recipe.accumulate > 1 else None),
    )
