"""The parts of a translation model, made where none were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.cells import GRUCell
from bahdanau_tf.layers.cells import KerasCell
from bahdanau_tf.layers.decoder import AttentionDecoder
from bahdanau_tf.layers.decoder import ConditionalDecoder
from bahdanau_tf.layers.embedding import WordEmbedding
from bahdanau_tf.layers.readout import MaxoutReadout
from bahdanau_tf.layers.readout import Readout
from bahdanau_tf.models.architecture import Architecture

if TYPE_CHECKING:
    from bahdanau_tf.models.encoder_decoder import EncoderDecoder


def make_embedding(
    given: Architecture, side: str, dtype: keras.DTypePolicy
) -> WordEmbedding:
    """E of the words of one side, "source" or "target"."""
    return WordEmbedding(
        getattr(given, f"{side}_vocabulary_size"),
        given.embedding_dim,
        use_bias=given.embedding_bias,
        embeddings_initializer=given.embeddings_initializer,
        dtype=dtype,
        name=f"{side}_embedding",
    )


def make_cell(given: Architecture, dtype: keras.DTypePolicy) -> GRUCell:
    """The paper's gated unit, for either side."""
    return GRUCell(
        given.units,
        kernel_initializer=given.kernel_initializer,
        recurrent_initializer=given.recurrent_initializer,
        dtype=dtype,
    )


def make_encoder(
    given: Architecture,
    encoder_class: type[keras.layers.Layer],
    dtype: keras.DTypePolicy,
) -> keras.layers.Layer:
    """The encoder that was given, or one of the model's class."""
    return given.encoder or encoder_class(
        make_cell(given, dtype),
        state_dropout=given.state_dropout,
        dtype=dtype,
    )


def make_decoder(
    given: Architecture, dtype: keras.DTypePolicy
) -> AttentionDecoder:
    """The decoder, of the cell that was given and the attention."""
    cell = given.cell or make_cell(given, dtype)
    if given.step_order == "conditional":
        return ConditionalDecoder(
            cell,
            given.attention,
            state_dropout=given.state_dropout,
            dtype=dtype,
        )
    return AttentionDecoder(
        cell,
        given.attention,
        step_order=given.step_order,
        state_dropout=given.state_dropout,
        kernel_initializer=given.kernel_initializer,
        dtype=dtype,
    )


def make_bridge(
    given: Architecture,
    bridge_class: type[Bridge],
    state_size: int | Sequence[int],
    dtype: keras.DTypePolicy,
) -> Bridge:
    """The bridge that was given, or one of the model's class."""
    return given.bridge or bridge_class(
        state_size,
        given.embedding_dim,
        kernel_initializer=given.kernel_initializer,
        dtype=dtype,
    )


def make_readout(given: Architecture, dtype: keras.DTypePolicy) -> Readout:
    """The readout that was given, or the paper's."""
    return given.readout or MaxoutReadout(
        given.target_vocabulary_size,
        given.maxout_units,
        factor_units=given.embedding_dim if given.factored_output else None,
        tied=given.tie_embeddings,
        kernel_initializer=given.kernel_initializer,
        dtype=dtype,
    )


def make_dropout(
    given: Architecture, name: str, dtype: keras.DTypePolicy
) -> keras.layers.Layer:
    """The dropout that an argument is called after."""
    return keras.layers.Dropout(getattr(given, name), name=name, dtype=dtype)


def check_fit(model: EncoderDecoder) -> None:
    """Checks that the parts of a model fit together, before they are built.

    Raises:
        ValueError: Parts contradict one another; it names both.
    """
    bridge, cell = model.bridge, model.decoder.cell
    of_decoder = model.decoder.state_dropout
    dropout_of_encoder = getattr(model.encoder, "state_dropout", of_decoder)
    of_model = ("dtype", model.compute_dtype)
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
            ("encoder.state_dropout", dropout_of_encoder),
            ("state_dropout", of_decoder),
        ),
        *((named, of_model) for named in _dtypes(model).items()),
    ):
        if one[1] != other[1]:
            raise ValueError(
                f"{type(model).__name__}: {one[0]} ({one[1]}) and {other[0]} "
                f"({other[1]}) must be equal"
            )


def _dtypes(model: EncoderDecoder) -> dict[str, str]:
    """The dtypes of parts that a user may have given."""
    decoder = model.decoder
    parts = {"attention": decoder.attention, "bridge": model.bridge}
    if isinstance(decoder.cell, KerasCell):
        parts["cell"] = decoder.cell
    return {
        f"{name}.dtype": part.compute_dtype
        for name, part in parts.items()
        if part is not None
    }
