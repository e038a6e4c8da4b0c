"""How to train: everything but the text and the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.ranges import Range
from bahdanau_tf.ranges import check_values

if TYPE_CHECKING:
    import keras

_COUNT = Range(0, 10**9)
# Rates that are not given: the paper's, Keras', and Sutskever et al.'s.
_RATES = {"adadelta": 1.0, "adam": 0.001, "sgd": 0.7}


@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are the paper's (appendix B.2).

    Attributes:
        optimizer: "adadelta", "adam" or "sgd".
        learning_rate: The rate, or its peak where it decays; if not given,
            1.0 with "adadelta", 0.001 with "adam" and 0.7 with "sgd".
        schedule: "constant"; "linear", which warms up and falls from
            `constant_share` of the training to 2 % at its end; or "halved",
            every half epoch after the fifth (Sutskever et al.).
        warmup_steps: Updates until the peak of "linear".
        constant_share: Share of the training before "linear" falls.
        max_norm: Largest global norm of a batch's gradient.
        label_smoothing: ε of the loss.
        divisor: What a batch's summed loss is divided by.
        batch_size: Sentence pairs an update.
        token_budget: Most tokens on the longer side of an update, padding
            included; then `batch_size` only says how many are sorted at once.
        max_length: Longest sentence in tokens on either side, the end symbol
            not counted; longer pairs are left out. 0 leaves none out.
        pool_batches: Batches fetched at once, sorted by length and cut.
        shuffle_pool: Whether the batches of a pool come in random order, not
            the shortest first.
        shuffle: The order of the lines: "none" (that of the files), "once"
            (random, the same in all epochs) or "each_epoch".
        sample_subwords: Whether sub-words are drawn anew in each epoch.
        epochs: Passes over the corpus.
        evaluate_every: Updates between evaluations on the dev set; 0 means
            once an epoch.
        patience: Evaluations without a better BLEU, or as good a one with less
            loss, after which to stop.
        tokenize: sacreBLEU's tokenizer for the dev BLEU, such as char, or none
            for tokenized text; if not given, that of the target's language
            and script.
        seed: Of the weights, the shuffle and the dropout.
    """

    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float | None = None
    schedule: Literal["constant", "linear", "halved"] = "constant"
    warmup_steps: int = 200
    constant_share: float = 0.5
    max_norm: float = 1.0
    label_smoothing: float = 0.0
    divisor: float = 1.0
    batch_size: int = 80
    token_budget: int | None = None
    max_length: int = 50
    pool_batches: int = 20
    shuffle_pool: bool = False
    shuffle: Literal["none", "once", "each_epoch"] = "once"
    sample_subwords: bool = False
    epochs: float = 5.0
    evaluate_every: int = 0
    patience: int = 10
    tokenize: str | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        check_values(
            self,
            learning_rate=Range(0, 100, above_low=True),
            warmup_steps=_COUNT,
            constant_share=Range(0, 1),
            max_norm=Range(0, 1e9, above_low=True),
            label_smoothing=Range(0, 1, below_high=True),
            max_length=_COUNT,
            divisor=Range(0, 1e9, above_low=True),
            epochs=Range(0, 1e6, above_low=True),
            evaluate_every=_COUNT,
            patience=Range(1, _COUNT.high),
        )
        self.make_batching()  # it knows its own ranges

    @property
    def rate(self) -> float:
        """`learning_rate`, or that of the optimizer if it is not given."""
        if self.learning_rate is None:
            return _RATES[self.optimizer]
        return self.learning_rate

    @staticmethod
    def from_preset(name: str) -> Recipe:
        """The training of a paper's system, named like the model's preset.

        Args:
            name: "rnnsearch-30", "rnnsearch-50", "rnnencdec-30" or
                "rnnencdec-50": appendix B.2, with sentences of up to 30 or 50
                words. RNNencdec-30 sorts 10 batches at once, not 20, as its
                code does. "sutskever-2014": SGD, section 3.4 there, with
                sentences of any length.

        Raises:
            ValueError: There is no such preset.
        """
        if name not in _PRESETS:
            raise ValueError(
                f"Recipe.from_preset: name is {name!r}, wanted one of "
                f"{sorted(_PRESETS)}"
            )
        return _PRESETS[name]

    def unused(self) -> dict[str, str]:
        """What this schedule does not take, and why, in words."""
        if self.schedule == "linear":
            return {}
        names = ("warmup_steps", "constant_share")
        return dict.fromkeys(names, f"--schedule={self.schedule}")

    def make_batching(self) -> Batching:
        """How the corpus becomes batches."""
        return Batching(
            batch_size=self.batch_size,
            max_length=self.max_length or None,
            pool_batches=self.pool_batches,
            shuffle_pool=self.shuffle_pool,
            token_budget=self.token_budget,
            shuffle=self.shuffle,
            seed=self.seed,
            sample_subwords=self.sample_subwords,
        )

    def make_optimizer(
        self, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """The optimizer, its rate changing as `schedule` says."""
        from bahdanau_tf import optimizers

        rate: float | keras.optimizers.schedules.LearningRateSchedule
        rate = self.rate
        if self.schedule == "linear":
            rate = optimizers.WarmupLinearDecay(
                rate,
                math.ceil(self.epochs * steps_per_epoch),
                self.warmup_steps,
                self.constant_share,
            )
        elif self.schedule == "halved":
            rate = optimizers.HalvedEveryHalfEpoch(rate, steps_per_epoch)
        makers = {
            "adadelta": optimizers.Adadelta,
            "adam": optimizers.Adam,
            "sgd": optimizers.SGD,
        }
        return makers[self.optimizer](rate, max_norm=self.max_norm)


_PRESETS = {
    "rnnsearch-30": Recipe(max_length=30),
    "rnnsearch-50": Recipe(max_length=50),
    "rnnencdec-30": Recipe(max_length=30, pool_batches=10),
    "rnnencdec-50": Recipe(max_length=50),
    "sutskever-2014": Recipe(
        optimizer="sgd",
        learning_rate=0.7,
        schedule="halved",
        max_norm=5.0,
        batch_size=128,
        divisor=128.0,
        max_length=0,
        shuffle_pool=True,
        epochs=7.5,
    ),
}
