"""The model to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.ranges import Range

_SIZE = Range(1, 100_000)
_SHARE = Range(0, 1, below_high=True)

# Options that a model does not have.
WITHOUT = {
    "rnnsearch": ("layers",),
    "rnnencdec": ("layers", "attention_units", "attention"),
    "seq2seq-lstm": (
        "attention",
        "cell",
        "attention_units",
        "maxout_units",
        "step_order",
        "factored_output",
        "tie_embeddings",
        "share_embeddings",
        "annotation_dropout",
        "initialization",
    ),
}


@dataclass(frozen=True)
class ModelOptions(OptionGroup):
    """The model to train.

    Raises:
        ValueError: A value is out of range, or options do not fit together.
    """

    model: Literal["rnnsearch", "rnnencdec", "seq2seq-lstm"] = option(
        '"rnnsearch", "rnnencdec" or "seq2seq-lstm".', "rnnsearch"
    )
    units: int = option("n, number of hidden units.", 1000, _SIZE)
    embedding_dim: int = option("m, width of the embeddings.", 620, _SIZE)
    attention_units: int = option(
        "n', size of the alignment model (rnnsearch, with a score that has a size).", 1000, _SIZE
    )
    maxout_units: int = option("l, width of the readout (not for seq2seq-lstm).", 500, _SIZE)
    layers: int = option("Number of LSTM layers of each side (seq2seq-lstm).", 4, Range(1, 100))
    attention: str | None = option(
        "Class of the score in place of BahdanauAttention, such as GeneralAttention, or "
        "module.Class of your own (rnnsearch).",
        kw_only=True,
    )
    cell: str | None = option(
        "Class of the cells in place of GRUCell, such as LSTMCell or keras.layers.GRUCell, or "
        "module.Class of your own (not for seq2seq-lstm).",
        kw_only=True,
    )
    step_order: Literal["original", "appendix", "main-text", "conditional"] = option(
        '"original", "appendix" or "main-text", or "conditional" for a decoder with two '
        "updates in each step (not for seq2seq-lstm).",
        "original",
    )
    factored_output: bool = option(
        "Whether the output matrix is factored, as in the original code (not for seq2seq-lstm).",
        True,
    )
    tie_embeddings: bool = option(
        "Whether the output matrix is that of the target embeddings (not for seq2seq-lstm).", False
    )
    embedding_dropout: float = option("Dropout rate of the embeddings.", 0.0, _SHARE)
    annotation_dropout: float = option(
        "Dropout rate of the annotations (not for seq2seq-lstm).", 0.0, _SHARE
    )
    state_dropout: float = option("Dropout rate of the recurrent states.", 0.0, _SHARE)
    readout_dropout: float = option("Dropout rate of the readout.", 0.0, _SHARE)
    initialization: Literal["paper", "glorot"] = option(
        '"paper", or "glorot" for larger initial kernels, which learn faster (not for '
        "seq2seq-lstm); an `attention` and a `cell` get it if they take kernel_initializer.",
        "paper",
    )
    share_embeddings: bool = option(
        "Whether both sides have the same embeddings; needs --joint (not for seq2seq-lstm).", False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        narrow = self.maxout_units != self.embedding_dim
        if self.tie_embeddings and narrow and not self.factored_output:
            raise ValueError(
                f"ModelOptions: maxout_units is {self.maxout_units} and embedding_dim is "
                f"{self.embedding_dim}, wanted the same for tie_embeddings without factored_output"
            )

    def unused(self) -> dict[str, str]:
        """Options that this model does not use, and the flag behind it."""
        return dict.fromkeys(WITHOUT[self.model], f"--model={self.model}")

    @property
    def named_parts(self) -> dict[str, str]:
        """The names of classes for parts of the model, by field."""
        return {
            part: name
            for part in ("attention", "cell")
            if (name := getattr(self, part)) is not None and part not in WITHOUT[self.model]
        }
