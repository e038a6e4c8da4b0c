"""Whether the parts of a translation model are parts, and fit together."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.readout import Readout


def check_kinds(owner: str, encoder: Any, readout: Any, bridge: Any) -> None:
    """Looks at what was given in place of the model's own parts.

    Args:
        owner: The model's class.
        encoder: What has an `encoded_shape`, as the encoders here, or None.
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
    """Looks at a model made of parts.

    Args:
        model: The model, its parts in place.
        arguments: Of its constructor.

    Raises:
        ValueError: Arguments and parts contradict; it names both.
    """
    if arguments["readout"] is not None:
        for name, default in (
            ("tie_embeddings", False),
            ("factored_output", True),
        ):
            if arguments[name] != default:
                raise ValueError(
                    f"{type(model).__name__}: {name} is for the readout made "
                    "here, but readout is given; wanted one of the two (a "
                    "readout has `tied` and `factor_units`)"
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
