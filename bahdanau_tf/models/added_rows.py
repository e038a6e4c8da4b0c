"""A trained model with rows for more words."""

from __future__ import annotations

import math

import keras
import numpy as np

from bahdanau_tf.models.encoder_decoder import EncoderDecoder


def with_added_rows(
    model: keras.Model, source: int, target: int, unknown: tuple[int, int]
) -> EncoderDecoder:
    """Copies a model and adds rows to its embeddings and output matrix.

    At first the copy translates as the model does: an added word is read as
    the unknown word is, whose rows it gets, and the probability of the unknown
    word is divided equally among itself and the n added ones:

        b_new = b_unknown ← b_unknown - log(n + 1)

    Random rows would be noise in states that are trained already, and would
    take probability from words that are known.

    Args:
        model: The model, which stays as it is.
        source: Number of words added to the source side; their ids follow the
            others.
        target: n, the same of the target side.
        unknown: Ids of the unknown word of both sides.

    Returns:
        The copy.

    Raises:
        ValueError: The model is not made of parts, both sides share their
            embeddings, or a part has a vocabulary of its own.
    """
    if not isinstance(model, EncoderDecoder):
        raise ValueError(
            f"with_added_rows: the model is a {type(model).__name__}, wanted "
            "an EncoderDecoder, such as RNNSearch"
        )
    config = model.get_config()
    if config.get("share_embeddings"):
        raise ValueError(
            "with_added_rows: share_embeddings is True, wanted embeddings of "
            "each side of its own"
        )
    grown = model.from_config(
        config
        | {
            "source_vocabulary_size": model.source_vocabulary_size + source,
            "target_vocabulary_size": model.target_vocabulary_size + target,
        }
    )
    of_source, of_target = (source, unknown[0]), (target, unknown[1])
    added = {
        model.source_embedding.embeddings.path: of_source,
        model.target_embedding.embeddings.path: of_target,
        model.readout.output_bias.path: of_target,
    }
    if model.readout.output_kernel is not None:
        added[model.readout.output_kernel.path] = of_target
    for old, new in zip(model.weights, grown.weights, strict=True):
        value = old.numpy()
        if old.path in added:
            rows, row = added[old.path]
            value = np.concatenate([value, *[value[row : row + 1]] * rows])
        new.assign(value)
    bias = grown.readout.output_bias.numpy()
    shared = [unknown[1], *range(model.target_vocabulary_size, len(bias))]
    bias[shared] -= math.log(target + 1)
    grown.readout.output_bias.assign(bias)
    return grown
