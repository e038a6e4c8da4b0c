"""The model to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.ranges import Range

_SIZE = Range(1, 100_000)
_SHARE = Range(0, 1, below_high=True)

# The models that have an option.
_SEARCH = {"model": ["rnnsearch"]}
_RNN = {"model": ["rnnsearch", "rnnencdec"]}
_LSTM = {"model": ["seq2seq-lstm"]}


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
        "n', size of the alignment model (rnnsearch, with a score that has a size).",
        1000,
        _SIZE,
        used_if=_SEARCH,
    )
    maxout_units: int = option(
        "l, width of the readout (not for seq2seq-lstm).", 500, _SIZE, used_if=_RNN
    )
    layers: int = option(
        "Number of LSTM layers of each side (seq2seq-lstm).", 4, Range(1, 100), used_if=_LSTM
    )
    attention: str | None = option(
        "Class of the score in place of BahdanauAttention, such as GeneralAttention, or "
        "module.Class of your own (rnnsearch).",
        used_if=_SEARCH,
        kw_only=True,
    )
    cell: str | None = option(
        "Class of the cells in place of GRUCell, such as LSTMCell or keras.layers.GRUCell, or "
        "module.Class of your own (not for seq2seq-lstm).",
        used_if=_RNN,
        kw_only=True,
    )
    step_order: Literal["original", "appendix", "main-text", "conditional"] = option(
        '"original", "appendix" or "main-text", or "conditional" for a decoder with two '
        "updates in each step (not for seq2seq-lstm).",
        "original",
        used_if=_RNN,
    )
    factored_output: bool = option(
        "Whether the output matrix is factored, as in the original code (not for seq2seq-lstm).",
        True,
        used_if=_RNN,
    )
    tie_embeddings: bool = option(
        "Whether the output matrix is that of the target embeddings (not for seq2seq-lstm).",
        False,
        used_if=_RNN,
    )
    embedding_dropout: float = option("Dropout rate of the embeddings.", 0.0, _SHARE)
    annotation_dropout: float = option(
        "Dropout rate of the annotations (not for seq2seq-lstm).", 0.0, _SHARE, used_if=_RNN
    )
    state_dropout: float = option("Dropout rate of the recurrent states.", 0.0, _SHARE)
    readout_dropout: float = option("Dropout rate of the readout.", 0.0, _SHARE)
    initialization: Literal["paper", "glorot"] = option(
        '"paper", or "glorot" for larger initial kernels, which learn faster (not for '
        "seq2seq-lstm); an `attention` and a `cell` get it if they take kernel_initializer.",
        "paper",
        used_if=_RNN,
    )
    share_embeddings: bool = option(
        "Whether both sides have the same embeddings; needs --joint (not for seq2seq-lstm).",
        False,
        used_if=_RNN,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        narrow = self.maxout_units != self.embedding_dim
        if self.tie_embeddings and narrow and not self.factored_output:
            raise ValueError(
                f"ModelOptions: maxout_units is {self.maxout_units} and embedding_dim is "
                f"{self.embedding_dim}, wanted the same for tie_embeddings without factored_output"
            )

    @property
    def named_parts(self) -> dict[str, str]:
        """The names of classes for parts of the model, by field."""
        parts = {part: getattr(self, part) for part in ("attention", "cell")}
        unused = self.unused()
        return {n: v for n, v in parts.items() if v is not None and n not in unused}
