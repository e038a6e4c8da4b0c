"""The arguments of translation models made of parts: as one checked value, and of presets.

A preset of a paper or a textbook with parts of its own makes them in the sizes that are asked
for: `from_preset("gru-attention", units=64)` has a cell of 64 units.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import keras

from bahdanau_tf.layers.attention import Attention, FixedContext
from bahdanau_tf.layers.bridge import Bridge, SentenceBridge, ZeroBridge
from bahdanau_tf.layers.cells import GRUCell, RecurrentCell, TanhCell
from bahdanau_tf.layers.readout import LinearReadout, Readout
from bahdanau_tf.layers.recurrent import BidirectionalEncoder, UnidirectionalEncoder
from bahdanau_tf.layers.weights import Initializer, described, serialized
from bahdanau_tf.system.ranges import Refusal, size

_F = TypeVar("_F", bound=Callable[..., None])
Arguments: TypeAlias = dict[str, Any]  # of a constructor


@dataclass(frozen=True)
class Architecture:
    """The arguments that all models made of parts have in common.

    Attributes:
        source_vocabulary_size: K_x.
        target_vocabulary_size: K_y.
        units: n, hidden units of encoder (each direction) and decoder.
        embedding_dim: m.
        maxout_units: l.
        attention: An attention layer, `FixedContext`, or None.
        cell: A cell instead of the decoder's `GRUCell`; may be Keras'.
        encoder: An encoder instead of the model's `encoder_class` with a `GRUCell`; its
            `state_dropout` must equal the model's.
        readout: A readout instead of the maxout readout.
        bridge: A bridge instead of the model's `bridge_class`.
        step_order: "original", "appendix" or "main-text", see `AttentionDecoder`, or
            "conditional", see `ConditionalDecoder`.
        factored_output: Whether W_o is W_1 [l, m] W_2 [m, K_y], as in the original code, or one
            matrix [l, K_y], as in the paper.
        tie_embeddings: Whether the last output matrix is the transposed target embedding; needs
            l = m unless the output is factored.
        share_embeddings: Whether both sides share their embeddings; needs one vocabulary for both.
            With `tie_embeddings` the three matrices are one (Press and Wolf 2017, arXiv
            1608.05859).
        copying: "off", or "hint" for words of the source as next words, see `Copying`; the readout
            needs a hidden layer.
        embedding_bias: Whether embeddings have a bias, as in the original code, unlike the paper.
        embedding_dropout: Dropout rate of the embeddings.
        annotation_dropout: Dropout rate of the annotations, before keys, contexts and s_0 are
            computed.
        state_dropout: Dropout rate of the states in the recurrent products, with one mask for
            all steps of a sentence.
        readout_dropout: Dropout rate of the readout's hidden layer.
        kernel_initializer: Initializer of kernels; if None, N(0, 0.01²), and N(0, 0.001²) of
            those of the attention.
        recurrent_initializer: Initializer of recurrent matrices.
        embeddings_initializer: Initializer of the embeddings, N(0, 0.01²) if None.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    units: int
    embedding_dim: int
    maxout_units: int
    _: KW_ONLY
    attention: Attention | FixedContext | None
    cell: keras.layers.Layer | None = None
    encoder: keras.layers.Layer | None = None
    readout: Readout | None = None
    bridge: Bridge | None = None
    step_order: str = "original"
    factored_output: bool = True
    tie_embeddings: bool = False
    share_embeddings: bool = False
    copying: Literal["off", "hint"] = "off"
    embedding_bias: bool = True
    embedding_dropout: float = 0.0
    annotation_dropout: float = 0.0
    state_dropout: float = 0.0
    readout_dropout: float = 0.0
    kernel_initializer: Initializer = None
    recurrent_initializer: Initializer = "orthogonal"
    embeddings_initializer: Initializer = None

    def config(self) -> dict[str, object]:
        """The arguments as a Keras config; parts as they are now."""
        return {field.name: serialized(getattr(self, field.name)) for field in fields(self)}

    def check(self, owner: str) -> None:
        """Checks the sizes and parts that a model of the class `owner` was given.

        Layers check their own sizes, and the model checks that all parts fit together. Raises
        ValueError for a size that is not a whole number, an encoder, a readout or a bridge that is
        something else, an argument for a readout that is not made here, or shared embeddings of
        two sizes.
        """
        for name in SIZES:
            size(owner, name, getattr(self, name))
        sizes = self.source_vocabulary_size, self.target_vocabulary_size
        if self.share_embeddings and sizes[0] != sizes[1]:
            raise Refusal(
                owner,
                f"source_vocabulary_size is {sizes[0]} and target_vocabulary_size is "
                f"{sizes[1]}, wanted the same for share_embeddings",
            )
        is_readout, is_bridge = isinstance(self.readout, Readout), isinstance(self.bridge, Bridge)
        is_encoder = hasattr(self.encoder, "encoded_shape") and not isinstance(self.encoder, type)
        for name, fits, wanted in (
            ("encoder", is_encoder, "an encoder such as BidirectionalEncoder"),
            ("readout", is_readout, "a subclass of Readout such as MaxoutReadout"),
            ("bridge", is_bridge, "a subclass of Bridge such as BackwardBridge"),
        ):
            part = getattr(self, name)
            if part is not None and not fits:
                raise Refusal(owner, f"{name} is {described(part)}, wanted {wanted}")
        is_hinted = self.readout is None or (
            self.readout.units is not None and "context" in self.readout.terms
        )
        if self.copying not in ("off", *["hint"] * is_hinted):
            wanted = "'off' or, for a readout of the context with a hidden layer, 'hint'"
            raise Refusal(owner, f"copying is {self.copying!r}, wanted {wanted}")
        for name, default, own in (
            ("tie_embeddings", False, "tied"),
            ("factored_output", True, "factor_units"),
        ):
            if self.readout is not None and getattr(self, name) != default:
                raise Refusal(
                    owner,
                    f"{name} and readout are both set, wanted one "
                    f"of them (the readout has its own `{own}`)",
                )


SIZES = [field.name for field in fields(Architecture) if not field.kw_only]


def with_options_shown(constructor: _F) -> _F:
    """Names the options of `Architecture` in the signature of a constructor, which passes them on.

    What else it passes on, as its last argument, are those of Keras.
    """
    own = inspect.signature(constructor)
    *arguments, rest = own.parameters.values()
    options = [
        parameter
        for name, parameter in inspect.signature(Architecture).parameters.items()
        if name not in own.parameters and parameter.default is not parameter.empty
    ]
    rest = rest.replace(name="kwargs", annotation="Unpack[KerasOptions]")
    shown = own.replace(parameters=[*arguments, *options, rest])
    constructor.__signature__ = shown  # type: ignore[attr-defined]
    return constructor


def divided(arguments: Mapping[str, Any]) -> tuple[Arguments, Arguments]:
    """Splits the arguments of a model: of `Architecture`, and of Keras."""
    common = {field.name for field in fields(Architecture)}
    return (
        {name: arguments[name] for name in arguments if name in common},
        {name: arguments[name] for name in arguments if name not in common},
    )


# 0 padding, 1 unknown, 2 to 29,999 words, 30,000 end of sentence.
_paper: Callable[..., Arguments] = partial(
    dict, source_vocabulary_size=30_001, target_vocabulary_size=30_001
)


def _textbook(
    make_cell: Callable[..., RecurrentCell],
    encoder_class: Callable[..., keras.layers.Layer],
    bridge_class: type[Bridge],
    /,
    units: int = 1000,
    embedding_dim: int = 620,
    state_dropout: float = 0.0,
    **options: Any,
) -> Arguments:
    """s_t from y_{t-1}, s_{t-1} and c_t; y^_t = softmax(W_y s_t + b_y).

    As in textbooks, all recurrences are of one kind and have biases, embeddings have none, and
    the readout has no hidden layer.
    """
    options = _paper(**options)

    def among(*names: str) -> Arguments:
        return {name: options[name] for name in names if name in options}

    start = among("kernel_initializer", "dtype")
    recurrent = start | among("recurrent_initializer")
    return {
        "encoder": encoder_class(
            make_cell(units, **recurrent), state_dropout=state_dropout, dtype=options.get("dtype")
        ),
        "readout": LinearReadout(options["target_vocabulary_size"], terms=("state",), **start),
        "cell": make_cell(units, **recurrent),
        "bridge": bridge_class(units, embedding_dim, **start),
        "step_order": "main-text",
        "embedding_bias": False,
        "units": units,
        "embedding_dim": embedding_dim,
        "state_dropout": state_dropout,
        **options,
    }


def _textbook_encdec(units: int = 1000, **options: Any) -> Arguments:
    """s_0 = y_0 = h_Tx, so embeddings are as wide as states; no c_t."""
    return _textbook(
        TanhCell,
        UnidirectionalEncoder,
        SentenceBridge,
        **{"units": units, "embedding_dim": units, "use_context": False, **options},
    )


def _textbook_attention(make_cell: Callable[..., RecurrentCell]) -> Callable[..., Arguments]:
    return partial(_textbook, make_cell, BidirectionalEncoder, ZeroBridge)


# Name -> class, and a function from the overrides to all arguments. Those that begin alike
# are the same model; the paper trained them on sentences of up to 30 or 50 words.
_PRESETS: dict[str, tuple[str, Callable[..., Arguments]]] = {
    "gru-attention": ("RNNSearch", _textbook_attention(partial(GRUCell, use_gate_bias=True))),
    "rnn-attention": ("RNNSearch", _textbook_attention(TanhCell)),
    "rnn-encdec": ("RNNEncDec", _textbook_encdec),
    "rnnencdec-30": ("RNNEncDec", _paper),
    "rnnencdec-50": ("RNNEncDec", _paper),
    "rnnsearch-30": ("RNNSearch", _paper),
    "rnnsearch-50": ("RNNSearch", _paper),
    "rnnsearch-50-star": ("RNNSearch", _paper),
    "sutskever-2014": (
        "Seq2SeqLSTM",
        partial(dict, source_vocabulary_size=160_000, target_vocabulary_size=80_000),
    ),
}


def preset_class(name: str) -> str:
    """The name of a preset's class; raises ValueError if there is no such preset."""
    if name not in _PRESETS:
        raise Refusal(
            "from_preset",
            f"name is {name!r}, wanted one of {sorted(_PRESETS)}; "
            "Translator.from_preset has trained translators",
        )
    return _PRESETS[name][0]


def preset_arguments(owner: str, name: str, overrides: Arguments) -> Arguments:
    """Constructor arguments of a preset of the class called `owner`, with overrides.

    Raises ValueError if there is no such preset, or it is of another class.
    """
    if (other := preset_class(name)) != owner:
        raise Refusal(f"{owner}.from_preset", f"{name!r} is a preset of {other}, not of {owner}")
    return _PRESETS[name][1](**overrides)
