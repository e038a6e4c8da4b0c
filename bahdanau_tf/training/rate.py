"""The learning rate of a training: its schedule, and the time that it follows."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from bahdanau_tf import optimizers
from bahdanau_tf.optimizers.guarded import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.recipe import Name, ScheduleCall

LARGEST_WARMUP = 0.1  # share of a training of limited time


class Rate:
    """The learning rate of a recipe.

    With a limit of time the number of updates is not known before the end, so a
    schedule that depends on it gets an estimate before each update: n updates
    in the share s of the training make n / s in all.

    Args:
        recipe: The options of training.
        steps_per_epoch: Number of updates in an epoch.

    Attributes:
        value: A number, or a Keras schedule.
        follows_time: Whether `follow` is to be called before each update.

    Raises:
        ValueError: There is no such class of schedules, or it cannot be made
            with these arguments.
    """

    def __init__(self, recipe: Recipe, steps_per_epoch: float) -> None:
        self.value: float | LearningRateSchedule = recipe.rate
        self.follows_time = False
        self._recipe = recipe
        self._total = recipe.total_updates(steps_per_epoch)
        call = ScheduleCall.parse(recipe.schedule)
        if call is None:
            return
        numbers: dict[str, object] = {
            "rate": recipe.rate,
            "constant_share": recipe.constant_share,
            "steps_per_epoch": steps_per_epoch,
            **self._lengths(self._total, recipe.warmup_steps),
        }
        self.follows_time = recipe.minutes > 0 and not {"total", "after_warmup"}.isdisjoint(
            call.names
        )
        if self.follows_time:
            self._variables = {
                name: tf.Variable(float(length), trainable=False)
                for name, length in self._lengths(self._total, recipe.warmup_steps).items()
            }
            numbers |= self._variables
        self.value = _make_schedule(recipe.schedule, call, numbers)

    def follow(self, updates: int, share: float) -> None:
        """Estimates the number of updates, if the schedule depends on it.

        The warm-up is over after a tenth of the training at the latest.

        Args:
            updates: Number of updates so far.
            share: Share of the training that is over, from 0 to 1.
        """
        if self.follows_time:
            total = updates / share if updates and share else self._total
            warmup = min(self._recipe.warmup_steps, LARGEST_WARMUP * total)
            for name, length in self._lengths(total, warmup).items():
                # TensorFlow would keep a tensor for each number of Python.
                self._variables[name].assign(np.asarray(length, np.float32))

    @staticmethod
    def _lengths(total: float, warmup: float) -> dict[str, float]:
        return {"total": total, "warmup_steps": warmup, "after_warmup": max(total - warmup, 1)}


def _make_schedule(
    schedule: str, call: ScheduleCall, numbers: dict[str, object]
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
    """The optimizer of a recipe.

    Args:
        recipe: The options of training.
        steps_per_epoch: Number of updates in an epoch.
        rate: Its learning rate, made here if None.
    """
    makers = {"adadelta": optimizers.Adadelta, "adam": optimizers.Adam, "sgd": optimizers.SGD}
    return makers[recipe.optimizer](
        (rate or Rate(recipe, steps_per_epoch)).value,
        max_norm=recipe.max_norm,
        use_ema=recipe.average > 0,
        ema_momentum=recipe.average,
        gradient_accumulation_steps=(recipe.accumulate if recipe.accumulate > 1 else None),
    )
