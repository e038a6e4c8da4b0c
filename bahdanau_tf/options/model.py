"""The model to train."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from bahdanau_tf.options.named import blamed, is_shortage, make_part, takes, try_model
from bahdanau_tf.system.ranges import Range, check_values

if TYPE_CHECKING:
    from bahdanau_tf.models.encoder_decoder import EncoderDecoder

_SIZE = Range(1, 100_000)
_SHARE = Range(0, 1, below_high=True)

_SIZES = {"attention": "attention_units", "cell": "units"}  # of parts

# Options that a model does not have.
_WITHOUT = {
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
        return dict.fromkeys(_WITHOUT[self.model], f"--model={self.model}")

    def unused_by_parts(self) -> dict[str, str]:
        """Options that the named parts do not use, and the flag behind it.

        Raises:
            ValueError: A class is not found, or is no such part.
        """
        self._parts()  # tells first what is wrong with their names
        return {
            _SIZES[part]: f"--{part}={name}"
            for part, name in self._named.items()
            if not takes(part, name, "units")
        }

    def make(self, source_vocabulary_size: int, target_vocabulary_size: int) -> EncoderDecoder:
        """Makes the Keras model, with initialized weights.

        Raises:
            ValueError: `attention` or `cell` is not the name of such a part.
        """
        import keras

        arguments = asdict(self)
        for argument in ("model", *_WITHOUT[self.model]):
            del arguments[argument]
        if arguments.pop("initialization", "paper") == "glorot":
            arguments["kernel_initializer"] = "glorot_uniform"
            arguments["embeddings_initializer"] = keras.initializers.RandomNormal(
                stddev=self.embedding_dim**-0.5
            )
        return self._model_class(
            source_vocabulary_size,
            target_vocabulary_size,
            **arguments | self._parts(),
        )

    @property
    def _model_class(self) -> type[EncoderDecoder]:
        from bahdanau_tf import models

        classes: dict[str, type[EncoderDecoder]] = {
            "rnnsearch": models.RNNSearch,
            "rnnencdec": models.RNNEncDec,
            "seq2seq-lstm": models.Seq2SeqLSTM,
        }
        return classes[self.model]

    @property
    def _named(self) -> dict[str, str]:
        """The names of classes that are given, by field."""
        named = {"attention": self.attention, "cell": self.cell}
        return {
            field: name
            for field, name in named.items()
            if name is not None and field not in _WITHOUT[self.model]
        }

    def _parts(self) -> dict[str, Any]:
        """The parts of these classes, as arguments of the model's class."""
        parts: dict[str, Any] = {}
        start = {}
        if self.initialization == "glorot":
            start["kernel_initializer"] = "glorot_uniform"
        if "attention" in self._named:
            parts["attention"] = make_part(
                "attention",
                self._named["attention"],
                units=self.attention_units,
                **start,
            )
        if "cell" in self._named:
            cell = make_part("cell", self._named["cell"], units=self.units, **start)
            parts["cell"] = cell
            parts["encoder"] = self._model_class.encoder_class(
                cell,
                state_dropout=self.state_dropout,
                residual=True,  # as folders of earlier versions have it
            )
        return parts

    def try_parts(self) -> None:
        """Makes and runs a model, if classes of parts are named.

        An error that comes without a part, too, is not blamed on it, and a
        lack of memory on none.

        Raises:
            ValueError: A class is not found, is no such part, or fails.
        """
        if not self._named:
            return
        self._parts()
        error = _failure(self)
        if error is None:
            return
        guilty = [one for one in self._named if not self._without(one)]
        if not guilty and (other := self._without(*self._named)):
            raise other
        given = " and ".join(f"{part} is {self._named[part]!r}" for part in guilty or self._named)
        what = f"{given}, with which the model does not run"
        raise blamed(error, what) from error

    def _without(self, *parts: str) -> Exception | None:
        """What is raised without these parts."""
        nothing: Any = dict.fromkeys(parts)
        return _failure(replace(self, **nothing))


def _failure(options: ModelOptions) -> Exception | None:
    """What is raised when a model is made and run.

    Raises:
        Exception: Memory is short.
    """
    try:
        try_model(options.make(3, 3))
    except Exception as error:  # a user's class may raise anything
        if is_shortage(error):
            raise
        return error
    return None
