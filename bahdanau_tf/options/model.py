"""The model to train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bahdanau_tf.system.ranges import Range, check_values

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
class ModelOptions:
    """The model to train.

    Attributes:
        model: "rnnsearch", "rnnencdec" or "seq2seq-lstm".
        units: n, number of hidden units.
        embedding_dim: m, width of the embeddings.
        attention_units: n', size of the alignment model (rnnsearch, with a
            score that has a size).
        maxout_units: l, width of the readout (not for seq2seq-lstm).
        layers: Number of LSTM layers of each side (seq2seq-lstm).
        attention: Class of the score in place of BahdanauAttention, such as
            GeneralAttention, or module.Class of your own (rnnsearch).
        cell: Class of the cells in place of GRUCell, such as LSTMCell or
            keras.layers.GRUCell, or module.Class of your own (not for
            seq2seq-lstm).
        step_order: "original", "appendix" or "main-text", or "conditional" for
            a decoder with two updates in each step (not for seq2seq-lstm).
        factored_output: Whether the output matrix is factored, as in the
            original code (not for seq2seq-lstm).
        tie_embeddings: Whether the output matrix is that of the target
            embeddings (not for seq2seq-lstm).
        embedding_dropout: Dropout rate of the embeddings.
        annotation_dropout: Dropout rate of the annotations (not for
            seq2seq-lstm).
        state_dropout: Dropout rate of the recurrent states.
        readout_dropout: Dropout rate of the readout.
        share_embeddings: Whether both sides have the same embeddings; needs
            --joint (not for seq2seq-lstm).
        initialization: "paper", or "glorot" for larger initial kernels, which
            learn faster (not for seq2seq-lstm); an `attention` and a `cell` get
            it if they take kernel_initializer.

    Raises:
        ValueError: A value is out of range, or options do not fit together.
    """

    model: Literal["rnnsearch", "rnnencdec", "seq2seq-lstm"] = "rnnsearch"
    units: int = 1000
    embedding_dim: int = 620
    attention_units: int = 1000
    maxout_units: int = 500
    layers: int = 4
    attention: str | None = field(default=None, kw_only=True)
    cell: str | None = field(default=None, kw_only=True)
    step_order: Literal["original", "appendix", "main-text", "conditional"] = "original"
    factored_output: bool = True
    tie_embeddings: bool = False
    embedding_dropout: float = 0.0
    annotation_dropout: float = 0.0
    state_dropout: float = 0.0
    readout_dropout: float = 0.0
    initialization: Literal["paper", "glorot"] = "paper"
    share_embeddings: bool = False

    def __post_init__(self) -> None:
        check_values(
            self,
            units=_SIZE,
            embedding_dim=_SIZE,
            attention_units=_SIZE,
            maxout_units=_SIZE,
            layers=Range(1, 100),
            embedding_dropout=_SHARE,
            annotation_dropout=_SHARE,
            state_dropout=_SHARE,
            readout_dropout=_SHARE,
        )
        narrow = self.maxout_units != self.embedding_dim
        if self.tie_embeddings and narrow and not self.factored_output:
            raise ValueError(
                f"ModelOptions: maxout_units is {self.maxout_units} and "
                f"embedding_dim is {self.embedding_dim}, wanted the same for "
                "tie_embeddings without factored_output"
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
