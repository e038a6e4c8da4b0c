"""The model to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bahdanau_tf.options.fields import OptionGroup, setting
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

    Attributes:
        model: "rnnsearch", "rnnencdec" or "seq2seq-lstm".
        units: n, number of hidden units.
        embedding_dim: m, width of the embeddings.
        attention_units: n', size of the alignment model (rnnsearch, with a score that has a size).
        maxout_units: l, width of the readout (not for seq2seq-lstm).
        layers: Number of LSTM layers of each side (seq2seq-lstm).
        attention: Class of the score in place of BahdanauAttention, such as GeneralAttention, or
            module.Class of your own (rnnsearch).
        cell: Class of the cells in place of GRUCell, such as LSTMCell or keras.layers.GRUCell, or
            module.Class of your own (not for seq2seq-lstm).
        step_order: "original", "appendix" or "main-text", or "conditional" for a decoder with two
            updates in each step (not for seq2seq-lstm).
        factored_output: Whether the output matrix is factored, as in the original code (not for
            seq2seq-lstm).
        tie_embeddings: Whether the output matrix is that of the target embeddings (not for
            seq2seq-lstm).
        embedding_dropout: Dropout rate of the embeddings.
        annotation_dropout: Dropout rate of the annotations (not for seq2seq-lstm).
        state_dropout: Dropout rate of the recurrent states.
        readout_dropout: Dropout rate of the readout.
        initialization: "paper", or "glorot" for larger initial kernels, which learn faster (not for
            seq2seq-lstm); an `attention` and a `cell` get it if they take kernel_initializer.
        share_embeddings: Whether both sides have the same embeddings; needs --joint (not for
            seq2seq-lstm).

    Raises:
        ValueError: A value is out of range, or options do not fit together.
    """

    model: Literal["rnnsearch", "rnnencdec", "seq2seq-lstm"] = "rnnsearch"
    units: int = setting(1000, _SIZE)
    embedding_dim: int = setting(620, _SIZE)
    attention_units: int = setting(1000, _SIZE, used_if=_SEARCH)
    maxout_units: int = setting(500, _SIZE, used_if=_RNN)
    layers: int = setting(4, Range(1, 100), used_if=_LSTM)
    attention: str | None = setting(used_if=_SEARCH, kw_only=True)
    cell: str | None = setting(used_if=_RNN, kw_only=True)
    step_order: Literal["original", "appendix", "main-text", "conditional"] = setting(
        "original", used_if=_RNN
    )
    factored_output: bool = setting(True, used_if=_RNN)
    tie_embeddings: bool = setting(False, used_if=_RNN)
    embedding_dropout: float = setting(0.0, _SHARE)
    annotation_dropout: float = setting(0.0, _SHARE, used_if=_RNN)
    state_dropout: float = setting(0.0, _SHARE)
    readout_dropout: float = setting(0.0, _SHARE)
    initialization: Literal["paper", "glorot"] = setting("paper", used_if=_RNN)
    share_embeddings: bool = setting(False, used_if=_RNN)

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
