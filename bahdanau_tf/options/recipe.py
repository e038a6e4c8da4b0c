"""The options of training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.system.ranges import Range, check_values

if TYPE_CHECKING:
    import keras

_COUNT = Range(0, 10**9)
_LIMITS = ("max_length", "max_words")  # 0 here is None in `Batching`
FINAL_SHARE = 0.02  # the last rate of "linear" as a share of the peak
LARGEST_WARMUP = 0.1  # share of a training of limited time
# Of earlier versions, with the value that did nothing: old folders name them.
FORMER = {"r_drop": 0.0, "word_dropout": 0.0, "encoder_layers": 1}
# Default rates: the paper's, Keras', and Sutskever et al.'s.
_RATES = {"adadelta": 1.0, "adam": 0.001, "sgd": 0.7}


@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are the paper's (appendix B.2).

    Attributes:
        optimizer: "adadelta", "adam" or "sgd".
        learning_rate: The learning rate, or its peak if it changes; if not
            given, 1.0 with "adadelta", 0.001 with "adam" and 0.7 with "sgd".
        schedule: "constant"; "linear", which warms up and falls from
            `constant_share` of the training to 2 % at its end;
            "inverse_sqrt", which warms up and falls with the square root of
            the number of updates (Vaswani et al.); "halved", every half epoch
            after the fifth (Sutskever et al.); or "plateau", halved after
            every `plateau` evaluations without a better model.
        warmup_steps: Number of updates until the peak of "linear" and
            "inverse_sqrt"; with `minutes` "linear" reaches it after a tenth of
            the training at the latest.
        constant_share: Share of the training after which "linear" falls.
        plateau: Number of evaluations after which "plateau" halves the rate.
        max_norm: Largest global norm of a batch's gradient.
        max_skipped: Number of updates in a row whose loss or gradient is not
            finite, after which training stops. Such updates are skipped, and
            their sentence pairs written to the file skipped.jsonl.
        average: Decay a of the moving average of the weights, w̄ ← a w̄ +
            (1 - a) w after each update; 0 for none. The average is what is
            evaluated and saved as the model. It covers about 1 / (1 - a)
            updates, which should be a small part of the training.
        product_dtype: dtype of matrix products in training: "float32";
            "bfloat16" or "float16", to which operands and results are rounded,
            with a scale of the loss for float16; "auto" for bfloat16 if the
            device multiplies it faster. All else, and the saved model, stays
            float32.
        jit_compile: Whether XLA compiles the update: "on", "off", or "auto" for
            on one GPU, unless the training takes less than ten minutes. The
            batches then have a few fixed shapes; results differ by rounding and
            by the dropout that is drawn.
        label_smoothing: ε of the loss.
        risk_samples: Number of translations that are drawn of each sentence
            for minimum risk training (Shen et al. 2016), after which the more
            probable ones have the higher BLEU; 0 for none, else 2 or more. It
            is for the end: it begins with a trained model, at a low learning
            rate, and an update takes N times as long for N translations. There
            is no label smoothing.
        divisor: Divides the summed loss of a batch.
        batch_size: Number of sentence pairs in a batch.
        token_budget: Largest number of tokens on the longer side of a batch,
            padding included; `batch_size` then only sets how many pairs are
            sorted together. Sub-words are counted as they are without
            `sample_subwords`, here and for `max_length`.
        accumulate: Number of batches of an update, which uses the mean of
            their gradients; so one batch at a time is in memory. The last
            batches of an epoch that are too few for an update are joined by
            the first ones of the next.
        max_length: Longest sentence in tokens on either side, without the end
            symbol; longer pairs are left out. 0 leaves none out.
        max_words: Longest source sentence in words between blanks; longer
            pairs are left out. 0 leaves none out.
        pool_batches: Number of batches whose pairs are sorted by length
            together (a pool).
        shuffle_pool: Whether the batches of a pool come in random order, not
            the shortest first.
        shuffle: The order of the lines: "none" (that of the files), "once"
            (random, the same in all epochs) or "each_epoch".
        sample_subwords: Whether words are split into sub-words in a newly
            drawn way in each epoch.
        sampled_epochs: Number of first epochs in which they are; all if not
            given.
        epochs: Number of passes over the corpus; the last update is made of
            whole batches, also if some are of the next pass. Without a token
            budget pairs that are left out count, too, so that passes are more
            if many are.
        updates: Largest number of updates of all runs together; 0 for any.
            Training ends after the epochs, too.
        minutes: Longest time of all runs together, evaluations included, each
            run from the end of its first update, for which its graph is made;
            0 for any. The rate of "linear" then falls with the time, if that
            is over sooner than the epochs.
        evaluate_every: Number of updates between evaluations on the dev set; 0
            for once an epoch.
        monitor: What the best model has on the dev set: "bleu", the highest
            BLEU, among equal ones, and as long as it is below 1, the lowest
            loss; or "loss", the lowest loss of a word. `patience` and "plateau"
            count evaluations without a better model.
        patience: Number of evaluations after which training stops, without a
            better model; with "linear" counted from when the rate falls.
        tokenize: sacreBLEU's tokenizer for the dev BLEU, such as char, or none
            for tokenized text; if not given, it follows from the target's
            language and script.
        keep: Number of checkpoints that are kept, the last ones. If the newest
            is damaged, training goes on from the one before it.
        seed: Seed of the weights, the shuffling and the dropout.
        deterministic: Whether the same training gives the same weights bit for
            bit, also if it was killed and resumed, on the same machine with
            the same number of threads, which it tells and writes down.
            TensorFlow then takes slower operations where the faster ones are
            not deterministic, until the process ends.

    Raises:
        ValueError: A value is out of range.
    """

    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float | None = None
    schedule: Literal["constant", "linear", "inverse_sqrt", "halved", "plateau"] = "constant"
    warmup_steps: int = 200
    constant_share: float = 0.5
    plateau: int = field(default=3, kw_only=True)
    max_norm: float = 1.0
    max_skipped: int = field(default=10, kw_only=True)
    average: float = field(default=0.0, kw_only=True)
    product_dtype: Literal["float32", "bfloat16", "float16", "auto"] = field(
        default="float32", kw_only=True
    )
    jit_compile: Literal["auto", "on", "off"] = field(default="auto", kw_only=True)
    label_smoothing: float = 0.0
    risk_samples: int = field(default=0, kw_only=True)
    divisor: float = 1.0
    batch_size: int = Batching.batch_size
    token_budget: int | None = field(default=Batching.token_budget, kw_only=True)
    accumulate: int = field(default=1, kw_only=True)
    max_length: int = Batching.max_length or 0
    max_words: int = field(default=Batching.max_words or 0, kw_only=True)
    pool_batches: int = Batching.pool_batches
    shuffle_pool: bool = Batching.shuffle_pool
    shuffle: Literal["none", "once", "each_epoch"] = Batching.shuffle
    sample_subwords: bool = Batching.sample_subwords
    sampled_epochs: int | None = field(default=Batching.sampled_epochs, kw_only=True)
    epochs: float = 5.0
    updates: int = field(default=0, kw_only=True)
    minutes: float = field(default=0.0, kw_only=True)
    evaluate_every: int = 0
    monitor: Literal["bleu", "loss"] = field(default="bleu", kw_only=True)
    patience: int = 10
    tokenize: str | None = field(default=None, kw_only=True)
    keep: int = field(default=2, kw_only=True)
    seed: int = 1
    deterministic: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_values(
            self,
            learning_rate=Range(0, 100, above_low=True),
            warmup_steps=_COUNT,
            constant_share=Range(0, 1),
            plateau=Range(1, _COUNT.high),
            max_norm=Range(0, 1e9, above_low=True),
            max_skipped=Range(1, _COUNT.high),
            average=Range(0, 1, below_high=True),
            label_smoothing=Range(0, 1, below_high=True),
            accumulate=Range(1, _COUNT.high),
            max_length=_COUNT,
            max_words=_COUNT,
            risk_samples=Range(0, 1000),
            divisor=Range(0, 1e9, above_low=True),
            epochs=Range(0, 1e6, above_low=True),
            updates=_COUNT,
            minutes=Range(0, 1e6),
            evaluate_every=_COUNT,
            patience=Range(1, _COUNT.high),
            keep=Range(1, _COUNT.high),
        )
        if self.risk_samples == 1:  # is as probable as all, whatever it is
            raise ValueError("Recipe: risk_samples is 1, wanted 0 or 2 to 1,000")
        if self.risk_samples and self.sample_subwords:
            raise ValueError(
                "Recipe: sample_subwords is True with risk_samples, wanted "
                "False, since what is drawn is compared with the reference "
                "sub-word by sub-word"
            )
        if self.product_dtype == "float16" and self.accumulate > 1:
            raise ValueError(
                f"Recipe: accumulate is {self.accumulate} with product_dtype "
                "'float16', wanted 1, since a batch that overflows would be "
                "left out of an update"
            )
        self.make_batching()  # checks the options of batching
        if self.deterministic:
            self._check_deterministic()

    def _check_deterministic(self) -> None:
        """Raises for what no seed makes repeatable."""
        for name, why in (
            ("minutes", "how many updates fit into a time varies"),
            ("sample_subwords", "no seed makes these draws repeatable"),
        ):
            if value := getattr(self, name):
                raise ValueError(
                    f"Recipe: {name} is {value!r} with deterministic, wanted none, since {why}"
                )

    @property
    def rate(self) -> float:
        """`learning_rate`, or the optimizer's default if it is not given."""
        if self.learning_rate is None:
            return _RATES[self.optimizer]
        return self.learning_rate

    @property
    def is_paced(self) -> bool:
        """Whether the learning rate follows the time, by `rate_after`."""
        return self.schedule == "linear" and self.minutes > 0

    def rate_after(self, updates: int, share: float) -> float:
        """The learning rate of "linear" in a training of limited time.

        It is that of `WarmupLinearDecay`, but falls by the share of the
        training that is over, which need not be a share of its updates. If
        few updates fit into the time, it rises by that share, too.

        Args:
            updates: Number of updates made.
            share: Share of the training that is over, from 0 to 1.
        """
        warm = (updates + 1) / max(self.warmup_steps, 1)
        warm = min(max(warm, share / LARGEST_WARMUP), 1.0)
        span = max(1.0 - self.constant_share, 1e-9)
        fallen = min(max((share - self.constant_share) / span, 0.0), 1.0)
        return self.rate * min(warm, 1.0 - fallen * (1.0 - FINAL_SHARE))

    @staticmethod
    def from_preset(name: str) -> Recipe:
        """The recipe of a paper's system, with the name of the model's preset.

        Args:
            name: "rnnsearch-30", "rnnsearch-50", "rnnencdec-30" or
                "rnnencdec-50": appendix B.2, with sentences of up to 30 or 50
                words. RNNencdec-30 sorts 10 batches together, not 20, as its
                code does. "sutskever-2014": SGD, section 3.4 of that paper,
                with sentences of any length.

        Raises:
            ValueError: There is no such preset.
        """
        if name not in _PRESETS:
            raise ValueError(
                f"Recipe.from_preset: name is {name!r}, wanted one of {sorted(_PRESETS)}"
            )
        return _PRESETS[name]

    def unused(self) -> dict[str, str]:
        """Options without effect, and the flag behind it."""
        used_by = {
            "warmup_steps": ("linear", "inverse_sqrt"),
            "constant_share": ("linear",),
            "plateau": ("plateau",),
        }
        unused = {
            name: f"--schedule={self.schedule}"
            for name, schedules in used_by.items()
            if self.schedule not in schedules
        }
        if not self.sample_subwords:
            unused["sampled_epochs"] = "--nosample_subwords"
        if self.risk_samples:
            unused["label_smoothing"] = "--risk_samples"
        return unused

    def make_batching(self) -> Batching:
        """How the corpus becomes batches."""
        known = {one.name: getattr(self, one.name) for one in fields(Batching)}
        limits = {name: known[name] or None for name in _LIMITS}
        return Batching(**known | limits)

    def total_updates(self, steps_per_epoch: float) -> int:
        """The number of updates of the whole training, unless it ends early.

        Args:
            steps_per_epoch: Number of updates in an epoch.
        """
        # Rounded first: 0.07 * 100 is 7.000000000000001.
        total = max(math.ceil(round(self.epochs * steps_per_epoch, 6)), 1)
        return min(total, self.updates) if self.updates else total

    def make_optimizer(self, steps_per_epoch: float) -> keras.optimizers.Optimizer:
        """The optimizer, with the learning rate of `schedule`.

        If `is_paced`, its learning rate is a variable, to which the training
        assigns `rate_after` before each update. So it is with "plateau".
        """
        from bahdanau_tf import optimizers

        rate: float | keras.optimizers.schedules.LearningRateSchedule
        rate = self.rate
        if self.schedule == "linear" and not self.is_paced:
            rate = optimizers.WarmupLinearDecay(
                rate,
                self.total_updates(steps_per_epoch),
                self.warmup_steps,
                self.constant_share,
                FINAL_SHARE,
            )
        elif self.schedule == "inverse_sqrt":
            rate = optimizers.InverseSquareRoot(rate, self.warmup_steps)
        elif self.schedule == "halved":
            rate = optimizers.HalvedEveryHalfEpoch(rate, steps_per_epoch)
        makers = {
            "adadelta": optimizers.Adadelta,
            "adam": optimizers.Adam,
            "sgd": optimizers.SGD,
        }
        return makers[self.optimizer](
            rate,
            max_norm=self.max_norm,
            use_ema=self.average > 0,
            ema_momentum=self.average,
            gradient_accumulation_steps=(self.accumulate if self.accumulate > 1 else None),
        )


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
