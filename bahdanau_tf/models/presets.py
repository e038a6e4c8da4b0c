"""Presets: constructor arguments of the models of papers and textbooks.

A preset with parts of its own makes them in the sizes that are asked for:
`from_preset("gru-attention", units=64)` has a cell of 64 units.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from bahdanau_tf.layers.bridge import Bridge, SentenceBridge, ZeroBridge
from bahdanau_tf.layers.cells import GRUCell, RecurrentCell, TanhCell
from bahdanau_tf.layers.readout import LinearReadout
from bahdanau_tf.layers.recurrent import BidirectionalEncoder, UnidirectionalEncoder
from bahdanau_tf.models.architecture import Arguments

# 0 padding, 1 unknown, 2 to 29,999 words, 30,000 end of sentence.
_PAPER_VOCABULARIES = {"source_vocabulary_size": 30_001, "target_vocabulary_size": 30_001}


def _paper(**options: Any) -> Arguments:
    return {**_PAPER_VOCABULARIES, **options}


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
    start: Arguments = {
        name: options[name] for name in ("kernel_initializer", "dtype") if name in options
    }
    recurrent: Arguments = dict(start)
    if "recurrent_initializer" in options:
        recurrent["recurrent_initializer"] = options["recurrent_initializer"]
    encoder = encoder_class(
        make_cell(units, **recurrent), state_dropout=state_dropout, dtype=options.get("dtype")
    )
    readout = LinearReadout(options["target_vocabulary_size"], terms=("state",), **start)
    return {
        "encoder": encoder,
        "cell": make_cell(units, **recurrent),
        "bridge": bridge_class(units, embedding_dim, **start),
        "readout": readout,
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


_biased_gru = partial(GRUCell, use_gate_bias=True)

# Name -> class, and a function from the overrides to all arguments. The presets
# -30 and -50 are the same model; the papers trained them on sentences of up to
# 30 and 50 words.
_PRESETS: dict[str, tuple[str, Callable[..., Arguments]]] = {
    "gru-attention": (
        "RNNSearch",
        partial(_textbook, _biased_gru, BidirectionalEncoder, ZeroBridge),
    ),
    "rnn-attention": ("RNNSearch", partial(_textbook, TanhCell, BidirectionalEncoder, ZeroBridge)),
    "rnn-encdec": ("RNNEncDec", _textbook_encdec),
    "rnnencdec-30": ("RNNEncDec", _paper),
    "rnnencdec-50": ("RNNEncDec", _paper),
    "rnnsearch-30": ("RNNSearch", _paper),
    "rnnsearch-50": ("RNNSearch", _paper),
    "sutskever-2014": (
        "Seq2SeqLSTM",
        partial(dict, source_vocabulary_size=160_000, target_vocabulary_size=80_000),
    ),
}


def class_name(name: str) -> str:
    """The name of a preset's class.

    Raises:
        ValueError: There is no such preset.
    """
    if name not in _PRESETS:
        raise ValueError(f"from_preset: name is {name!r}, wanted one of {sorted(_PRESETS)}")
    return _PRESETS[name][0]


def arguments(owner: str, name: str, overrides: Arguments) -> Arguments:
    """Constructor arguments of a preset of the class called `owner`.

    Args:
        owner: Such as "RNNSearch".
        name: The preset.
        overrides: Arguments that differ from the preset's.

    Raises:
        ValueError: There is no such preset, or it is of another class.
    """
    if class_name(name) != owner:
        raise ValueError(
            f"{owner}.from_preset: {name!r} is a preset of {class_name(name)}, not of {owner}"
        )
    return _PRESETS[name][1](**overrides)
