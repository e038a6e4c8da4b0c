"""The options of training."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from bahdanau_tf.options.fields import OptionGroup, setting
from bahdanau_tf.system.ranges import OptionError, Range, Refusal, named

_COUNT = Range(0, 10**9)
_POSITIVE = Range(1, 10**9)
_FEW = Range(1, 10**6)
_SHARE = Range(0, 1, below_high=True)
# Default rates: the paper's, Keras', and Sutskever et al.'s.
_RATES = {"adadelta": 1.0, "adam": 0.001, "sgd": 0.7}

# Schedules of the learning rate, each a call of a class of
# `bahdanau_tf.optimizers` or `keras.optimizers.schedules`, with numbers and the
# names of `Recipe.schedule`; "" is a rate that the training sets itself.
SCHEDULES = {
    "constant": "",
    "linear": "WarmupLinearDecay(rate, total, warmup_steps, constant_share)",
    "cosine": "CosineDecay(0.0, after_warmup, 0.02, warmup_target=rate, warmup_steps=warmup_steps)",
    "inverse_sqrt": "InverseSquareRoot(rate, warmup_steps)",
    "halved": "HalvedEveryHalfEpoch(rate, steps_per_epoch)",
    "plateau": "",
}
_NAMES = ("rate", "total", "warmup_steps", "after_warmup", "constant_share", "steps_per_epoch")


class Name(NamedTuple):
    """A number that is named in a call of a schedule, such as "total"."""

    id: str


class ScheduleCall(NamedTuple):
    """How a schedule is made."""

    owner: str  # the name of its class
    arguments: list[object]  # by position, numbers or a `Name`
    keywords: dict[str, object]  # the same by name

    @classmethod
    def parse(cls, schedule: str) -> ScheduleCall | None:
        """The call of a schedule of `Recipe`; None if the training sets the rate itself."""
        call = SCHEDULES.get(schedule, schedule)
        if schedule in SCHEDULES and not call:
            return None
        try:
            node = ast.parse(call if "(" in call else f"{call}(rate, total)", mode="eval").body
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and call[0].isupper():
                keywords = {str(part.arg): _value(part.value) for part in node.keywords}
                return cls(node.func.id, [_value(part) for part in node.args], keywords)
        except (SyntaxError, ValueError):
            pass
        wanted = f"one of {sorted(SCHEDULES)}, or a class of keras.optimizers.schedules, such as "
        wanted += f"ExponentialDecay(rate, total, 0.02), with numbers and names of {_NAMES}"
        raise OptionError("Recipe", "schedule", schedule, wanted)

    @property
    def names(self) -> set[str]:
        """The names of numbers among the arguments."""
        values = (*self.arguments, *self.keywords.values())
        return {value.id for value in values if isinstance(value, Name)}


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return Name(node.id)
    return ast.literal_eval(node)


@dataclass(frozen=True)
class Batching(OptionGroup):
    """How sentence pairs become batches: the options of `Recipe` of these names.

    Here None stands for no limit of `max_length` and `max_words`.
    """

    batch_size: int = setting(80, _FEW)
    max_length: int | None = setting(50, _FEW)
    pool_batches: int = setting(20, _FEW)
    shuffle_pool: bool = False
    token_budget: int | None = setting(None, _POSITIVE)
    shuffle: Literal["none", "once", "each_epoch"] = "once"
    seed: int = setting(0, Range(0, 2**32, below_high=True))
    sample_subwords: bool = False
    sampled_epochs: int | None = setting(None, _COUNT)
    max_words: int | None = setting(None, _FEW)
    synthetic_pairs: float = setting(0.0, _SHARE)
    careless_sources: float = setting(0.0, _SHARE)


@dataclass(frozen=True)
class Recipe(OptionGroup):
    """How to train; the defaults are the paper's (appendix B.2).

    Attributes:
        optimizer: "adadelta", "adam" or "sgd".
        learning_rate: The learning rate, or its peak if it changes; default: 1.0 with "adadelta",
            0.001 with "adam" and 0.7 with "sgd".
        schedule: "constant"; "linear", which warms up and falls from `constant_share` of the
            training to 2 % at its end; "cosine", which warms up and falls to 2 % as half a cosine
            (Loshchilov and Hutter); "inverse_sqrt", which warms up and falls with the square root
            of the number of updates (Vaswani et al.); "halved", every half epoch after the fifth
            (Sutskever et al.); "plateau", halved after every `plateau` evaluations without a better
            model; or a class of keras.optimizers.schedules with its arguments, numbers or rate,
            total (updates of the training), warmup_steps, after_warmup (the other updates),
            constant_share and steps_per_epoch, such as "ExponentialDecay(rate, total, 0.02)".
        warmup_steps: Number of updates until the peak of "linear", "cosine" and "inverse_sqrt";
            with `minutes`, a schedule with a total reaches it after at most a tenth of the
            training.
        constant_share: Share of the training after which "linear" starts to fall.
        plateau: Number of evaluations after which "plateau" halves the rate.
        max_norm: Largest global norm of a batch's gradient.
        max_skipped: Training stops after this many updates in a row whose loss or gradient is not
            finite. Such updates are skipped, and their sentence pairs are written to the file
            skipped.jsonl.
        average: Decay a of the moving average of the weights, w̄ ← a w̄ + (1 - a) w after each
            update; 0 for none. The average is evaluated and saved as the model. It covers about 1 /
            (1 - a) updates, which should be a small part of the training.
        product_dtype: dtype of matrix products in training: "float32"; "bfloat16" or "float16", to
            which operands and results are rounded, with loss scaling for float16; "auto" for
            bfloat16 if the device multiplies it faster. Everything else, and the saved model, stays
            float32.
        jit_compile: Whether XLA compiles the update, "on" or "off". The batches then have a few
            fixed shapes, of `batch_size` pairs and up to `max_length`; results differ by rounding
            and by the dropout that is drawn.
        label_smoothing: ε of the loss.
        risk_samples: Number of translations to draw of each sentence for minimum risk training
            (Shen et al. 2016), which makes those with the higher BLEU more probable; 0 for none,
            otherwise 2 or more. Use it last: it starts from a trained model, at a low learning
            rate, without label smoothing; with N translations an update takes N times as long.
        divisor: Divides the summed loss of a batch.
        batch_size: Number of sentence pairs in a batch.
        token_budget: Largest number of tokens on the longer side of a batch, padding included;
            `batch_size` then only sets how many pairs are sorted together. Here and for
            `max_length`, sub-words are counted as if without `sample_subwords`.
        accumulate: Number of batches per update, which uses the mean of their gradients, so that
            only one batch is in memory. If the last batches of an epoch are too few for an update,
            the first ones of the next epoch are added.
        max_length: Longest sentence on either side, in tokens without the end symbol; longer pairs
            are dropped; 0 for no limit.
        max_words: Longest source sentence in words between spaces; longer pairs are dropped; 0 for
            no limit.
        pool_batches: Number of batches whose pairs are sorted together by length (a pool).
        shuffle_pool: Whether the batches of a pool come in random order, not shortest first.
        shuffle: The order of the lines: "none" (that of the files), "once" (random, the same in all
            epochs) or "each_epoch".
        sample_subwords: Whether to split words into sub-words at random, differently in each epoch.
        sampled_epochs: Number of epochs, from the first, that sample sub-words; default: all.
        synthetic_pairs: Share of the pairs of each epoch in whose place come pairs with other
            numbers and names, drawn anew: of pairs that have the same number or name on both sides.
            Some get an emoji on both, too, or more sentences. With "char" on both sides they are
            a number or signs alone. So a model learns to copy what the text lacks.
        careless_sources: Share of the pairs of each epoch whose source loses its capitals, the mark
            at its end, its apostrophes, the spaces behind its commas, or several of these, or
            gets a capital for each word, drawn anew. So a model translates "i dont know" as
            "I don't know.".
        epochs: Number of passes over the corpus; the last update has whole batches, even if some
            belong to the next pass. Without a token budget dropped pairs also count, so there are
            more passes if many are dropped.
        updates: Largest number of updates, over all runs; 0 for no limit. Training also ends after
            the epochs.
        minutes: Longest time, over all runs, evaluations included; each run counts from the end of
            its first update, for which its graph is made; 0 for no limit. A schedule with a total,
            such as linear, then falls with time, if that ends before the epochs.
        evaluate_every: Number of updates between evaluations on the dev set; 0 for once an epoch.
        monitor: How to select the best model on the dev set: "loss", by the lowest loss per word;
            or a metric of `evaluate`, such as "bleu", "ter", "cer" or "exact", by its best score,
            and by the lowest loss if scores are equal, or below 1 and higher is better.
            `patience` and "plateau" count evaluations without a better model.
        patience: Training stops after this many evaluations without a better model; with "linear"
            counted from when the rate falls.
        tokenize: sacreBLEU's tokenizer for the dev BLEU, such as char, or none for tokenized text;
            default: by the target's language and script.
        keep: Number of recent checkpoints to keep. If the newest is damaged, training resumes from
            the one before it.
        seed: Seed of the weights, the shuffling and the dropout.
        deterministic: Whether the same training gives the same weights bit for bit, even if it was
            killed and resumed, on the same machine with the same number of threads, which it
            reports and records. Until the process ends, TensorFlow then uses slower, deterministic
            operations.

    Raises:
        ValueError: A value is out of range.
    """

    optimizer: Literal["adadelta", "adam", "sgd"] = "adadelta"
    learning_rate: float | None = setting(None, Range(0, 100, above_low=True))
    schedule: str = "constant"
    warmup_steps: int = setting(200, _COUNT)
    constant_share: float = setting(0.5, Range(0, 1))
    plateau: int = setting(3, _POSITIVE, kw_only=True)
    max_norm: float = setting(1.0, Range(0, 1e9, above_low=True))
    max_skipped: int = setting(10, _POSITIVE, kw_only=True)
    average: float = setting(0.0, _SHARE, kw_only=True)
    product_dtype: Literal["float32", "bfloat16", "float16", "auto"] = setting(
        "float32", kw_only=True
    )
    jit_compile: Literal["on", "off"] = setting("off", kw_only=True)
    label_smoothing: float = setting(0.0, _SHARE, used_if={"risk_samples": [0]})
    risk_samples: int = setting(0, Range(0, 1000), kw_only=True)
    divisor: float = setting(1.0, Range(0, 1e9, above_low=True))
    batch_size: int = Batching.batch_size
    token_budget: int | None = setting(Batching.token_budget, kw_only=True)
    accumulate: int = setting(1, _POSITIVE, kw_only=True)
    max_length: int = setting(Batching.max_length or 0, _COUNT)
    max_words: int = setting(Batching.max_words or 0, _COUNT, kw_only=True)
    pool_batches: int = Batching.pool_batches
    shuffle_pool: bool = Batching.shuffle_pool
    shuffle: Literal["none", "once", "each_epoch"] = Batching.shuffle
    sample_subwords: bool = Batching.sample_subwords
    sampled_epochs: int | None = setting(
        Batching.sampled_epochs, used_if={"sample_subwords": [True]}, kw_only=True
    )
    synthetic_pairs: float = setting(Batching.synthetic_pairs, kw_only=True)
    careless_sources: float = setting(Batching.careless_sources, kw_only=True)
    epochs: float = setting(5.0, Range(0, 1e6, above_low=True))
    updates: int = setting(0, _COUNT, kw_only=True)
    minutes: float = setting(0.0, Range(0, 1e6), kw_only=True)
    evaluate_every: int = setting(0, _COUNT)
    monitor: str = setting("bleu", kw_only=True)
    patience: int = setting(10, _POSITIVE)
    tokenize: str | None = setting(kw_only=True)
    keep: int = setting(2, _POSITIVE, kw_only=True)
    seed: int = 1
    deterministic: bool = setting(False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        ScheduleCall.parse(self.schedule)
        if self.risk_samples == 1:  # one alone has the probability 1
            raise OptionError("Recipe", "risk_samples", 1, "0 or 2 to 1,000")
        self.make_batching()  # checks the options of batching
        of_risk = "translations are compared with the reference sub-word by sub-word"
        of_half = "a batch that overflows would be missing from an update"
        of_time, of_draws = "how many updates fit into a time varies", "no seed repeats these draws"
        of_shapes = "XLA compiles the update for each shape of a batch"
        for name, other, is_refused, why in (
            ("sample_subwords", "risk_samples", self.risk_samples > 0, of_risk),
            ("sample_subwords", "deterministic", self.deterministic, of_draws),
            ("minutes", "deterministic", self.deterministic, of_time),
            ("accumulate", "product_dtype", self.product_dtype == "float16", of_half),
            ("jit_compile", "max_length", not self.max_length, of_shapes),
            ("jit_compile", "token_budget", self.token_budget is not None, of_shapes),
            ("jit_compile", "risk_samples", self.risk_samples > 0, of_shapes),
        ):
            value, default = getattr(self, name), getattr(Recipe, name)
            if is_refused and value != default:
                wanted = f"{default!r} with {named(other, getattr(self, other))}, since {why}"
                raise OptionError("Recipe", name, value, wanted)

    @property
    def rate(self) -> float:
        """`learning_rate`, or the optimizer's default if it is not given."""
        return _RATES[self.optimizer] if self.learning_rate is None else self.learning_rate

    @staticmethod
    def from_preset(name: str) -> Recipe:
        """The recipe of a paper's system, named as the preset of its model.

        Args:
            name: "rnnsearch-30", "rnnsearch-50", "rnnencdec-30" or "rnnencdec-50": appendix B.2,
                with sentences of up to 30 or 50 words and the epochs of Table 2. RNNencdec-30 sorts
                10 batches together, not 20, as its code does. "rnnsearch-50-star": until the dev
                text stops improving. "sutskever-2014": SGD, section 3.4 of that paper, with
                sentences of any length.

        Raises:
            ValueError: There is no such preset.
        """
        if name not in _PRESETS:
            what = f"name is {name!r}, wanted one of {sorted(_PRESETS)}"
            raise Refusal("Recipe.from_preset", what)
        return _PRESETS[name]

    def unused(self) -> dict[str, str]:
        """Options without effect, and the flag behind it."""
        call = ScheduleCall.parse(self.schedule)
        names = call.names if call else {self.schedule}
        if "after_warmup" in names:
            names.add("warmup_steps")
        return super().unused() | {
            name: named("schedule", self.schedule)
            for name in ("warmup_steps", "constant_share", "plateau")
            if name not in names
        }

    def make_batching(self) -> Batching:
        """How the corpus becomes batches."""
        values = {option.name: getattr(self, option.name) for option in fields(Batching)}
        for limit in ("max_length", "max_words"):
            values[limit] = values[limit] or None
        return Batching(**values)

    def total_updates(self, steps_per_epoch: float) -> int:
        """The number of updates of the whole training, unless it ends early."""
        # Rounded first: 0.07 * 100 is 7.000000000000001.
        total = max(math.ceil(round(self.epochs * steps_per_epoch, 6)), 1)
        return min(total, self.updates) if self.updates else total


_PRESETS = {
    "rnnsearch-30": Recipe(max_length=30, epochs=3.6),
    "rnnsearch-50": Recipe(max_length=50, epochs=2.2),
    "rnnsearch-50-star": Recipe(max_length=50, epochs=1000, evaluate_every=20_000),
    "rnnencdec-30": Recipe(max_length=30, pool_batches=10, epochs=6.4),
    "rnnencdec-50": Recipe(max_length=50, epochs=4.5),
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
