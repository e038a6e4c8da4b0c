"""Checks the parts of a translation model: their kinds, and that they fit."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.readout import Readout


def check_kinds(owner: str, encoder: Any, readout: Any, bridge: Any) -> None:
    """Checks the kinds of parts given in place of the model's own.

    Args:
        owner: The model's class.
        encoder: An encoder, a layer with `encoded_shape`; or None.
        readout: A `Readout`, or None.
        bridge: A `Bridge`, or None.

    Raises:
        ValueError: One of them is something else.
    """
    for name, part, fits, wanted in (
        (
            "encoder",
            encoder,
            hasattr(encoder, "encoded_shape"),
            "an encoder such as BidirectionalEncoder",
        ),
        (
            "readout",
            readout,
            isinstance(readout, Readout),
            "a subclass of Readout such as MaxoutReadout",
        ),
        (
            "bridge",
            bridge,
            isinstance(bridge, Bridge),
            "a subclass of Bridge such as BackwardBridge",
        ),
    ):
        if part is not None and not fits:
            raise ValueError(
                f"{owner}: {name} is {type(part).__name__}, wanted {wanted}"
            )


def check_fit(model: Any, arguments: dict[str, Any]) -> None:
    """Checks that the parts of a model fit together.

    Args:
        model: The model, with its parts.
        arguments: The arguments of its constructor.

    Raises:
        ValueError: Arguments and parts contradict each other. The message
            names both.
    """
    if arguments["readout"] is not None:
        for name, default in (
            ("tie_embeddings", False),
            ("factored_output", True),
        ):
            if arguments[name] != default:
                raise ValueError(
                    f"{type(model).__name__}: {name} and readout are both "
                    "given, wanted one of them (a readout has its own `tied` "
                    "and `factor_units`)"
                )
    bridge, cell = model.bridge, model.decoder.cell
    for one, other in (
        (
            ("readout.vocabulary_size", model.readout.vocabulary_size),
            ("target_vocabulary_size", model.target_vocabulary_size),
        ),
        (
            ("bridge.state_size", tf.nest.flatten(bridge.state_size)),
            ("cell.state_size", tf.nest.flatten(cell.state_size)),
        ),
        (
            ("bridge.embedding_dim", bridge.embedding_dim),
            ("embedding_dim", model.target_embedding.embedding_dim),
        ),
        (
            ("encoder.state_dropout", model.encoder.state_dropout),
            ("state_dropout", model.decoder.state_dropout),
        ),
    ):
        if one[1] != other[1]:
            raise ValueError(
                f"{type(model).__name__}: {one[0]} ({one[1]}) and {other[0]} "
                f"({other[1]}) must be equal"
            )
