"""How to train: everything but the text and the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras

from bahdanau_tf.dataset import Batching
from bahdanau_tf.optimizers import SGD
from bahdanau_tf.optimizers import Adadelta
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.optimizers import WarmupLinearDecay

OPTIMIZERS = ("adadelta", "adam", "sgd")


@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are the paper's (appendix B.2).

    Attributes:
        optimizer: "adadelta", "adam" or "sgd".
        learning_rate: The rate, or its peak where it decays.
        decay: Whether the rate warms up, then falls from `constant_share` of
            the training to 2 % at its end.
        warmup_steps: Updates until the peak.
        constant_share: Share of the training before the rate falls.
        max_norm: Largest global norm of a batch's gradient.
        label_smoothing: ε of the loss.
        batch_size: Sentence pairs an update.
        max_length: Longest sentence in tokens on either side, the end symbol
            not counted; longer pairs are left out.
        pool_batches: Batches fetched at once, sorted by length and cut.
        shuffle_pool: Whether the batches of a pool come in random order, not
            the shortest first.
        shuffle: "once" or "each_epoch".
        sample_subwords: Whether sub-words are drawn anew in each epoch.
        epochs: Passes over the corpus.
        evaluate_every: Updates between evaluations on the dev set; 0 means
            once an epoch.
        patience: Evaluations without a better BLEU after which to stop.
        seed: Of the weights, the shuffle and the dropout.
    """

    optimizer: str = "adadelta"
    learning_rate: float = 1.0
    decay: bool = False
    warmup_steps: int = 200
    constant_share: float = 0.5
    max_norm: float = 1.0
    label_smoothing: float = 0.0
    batch_size: int = 80
    max_length: int = 50
    pool_batches: int = 20
    shuffle_pool: bool = False
    shuffle: str = "once"
    sample_subwords: bool = False
    epochs: float = 5.0
    evaluate_every: int = 0
    patience: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"Recipe: optimizer is {self.optimizer!r}, wanted one of "
                f"{list(OPTIMIZERS)}"
            )
        for name in ("batch_size", "max_length", "pool_batches", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Recipe: {name} is {getattr(self, name)}, wanted 1 or more"
                )
        if self.epochs <= 0:
            raise ValueError(
                f"Recipe: epochs is {self.epochs}, wanted more than 0"
            )

    @classmethod
    def from_preset(cls, name: str) -> Recipe:
        """The training of a paper's system, named like the model's preset.

        Args:
            name: "rnnsearch-30", "rnnsearch-50", "rnnencdec-30" or
                "rnnencdec-50": appendix B.2, with sentences of up to 30 or 50
                words. RNNencdec-30 sorts 10 batches at once, not 20, as its
                code does.

        Raises:
            ValueError: There is no such preset.
        """
        if name not in _PRESETS:
            raise ValueError(
                f"Recipe.from_preset: name is {name!r}, wanted one of "
                f"{sorted(_PRESETS)}"
            )
        return cls(**_PRESETS[name])

    def make_batching(self) -> Batching:
        """How the corpus becomes batches."""
        return Batching(
            batch_size=self.batch_size,
            max_length=self.max_length,
            pool_batches=self.pool_batches,
            shuffle_pool=self.shuffle_pool,
            shuffle=self.shuffle,
            seed=self.seed,
            sample_subwords=self.sample_subwords,
        )

    def make_optimizer(self, total_steps: int) -> keras.optimizers.Optimizer:
        """The optimizer, its rate falling over `total_steps` if it decays."""
        rate: Any = self.learning_rate
        if self.decay:
            rate = WarmupLinearDecay(
                self.learning_rate,
                total_steps,
                self.warmup_steps,
                self.constant_share,
            )
        makers = {"adadelta": Adadelta, "adam": Adam, "sgd": SGD}
        return makers[self.optimizer](rate, max_norm=self.max_norm)


_PRESETS: dict[str, dict[str, Any]] = {
    "rnnsearch-30": {"max_length": 30},
    "rnnsearch-50": {"max_length": 50},
    "rnnencdec-30": {"max_length": 30, "pool_batches": 10},
    "rnnencdec-50": {"max_length": 50},
}
