"""Splits a word's logit into the terms of state, word, context and biases."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bahdanau_tf.layers import LinearReadout
from bahdanau_tf.layers import MaxoutReadout
from bahdanau_tf.layers.readout import Readout
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.tracing.data import Contributions


def hidden_of(
    readout: Readout,
    state: tf.Tensor,
    previous: tf.Tensor,
    context: tf.Tensor | None,
) -> tf.Tensor:
    """The readout's t_i, float [T_y, l]; the context may be None."""
    term = None if context is None else readout.context_term(context)
    return readout.hidden(state, previous, term)


def contributions_of(
    model: EncoderDecoder,
    state: tf.Tensor,
    previous: tf.Tensor,
    context: tf.Tensor | None,
    ids: np.ndarray,
) -> list[Contributions] | None:
    """The terms of state, previous word, context and bias in each logit.

    The term of x is Σ_k (x U)_w(k) W_ky for a maxout readout, where w(k) is the
    larger unit of pair k and W = W_1 W_2 if the output is factored; it is x W_y
    for a linear readout.

    Returns:
        One `Contributions` for each word; None for other readouts.
    """
    readout = model.readout
    given = {"state": state, "previous": previous, "context": context}
    values = {
        term: _array(value)
        for term, value in given.items()
        if value is not None
    }
    # One row of W for each word: what each unit adds to that word's logit.
    output = model.output_weights()
    kernel, bias = _array(output.kernel), _array(output.bias)
    rows, of_bias = kernel[ids], bias[ids]
    if readout.factor_kernel is not None:
        rows = rows @ _array(readout.factor_kernel).T
    # Exact types: a subclass may compute something else.
    if type(readout) is LinearReadout:
        terms = readout.used_terms
        ends = np.cumsum([values[term].shape[1] for term in terms])
        blocks = np.split(rows, ends[:-1], axis=1)
        shares = {
            term: (values[term] * block).sum(1)
            for term, block in zip(terms, blocks, strict=True)
        }
    elif type(readout) is MaxoutReadout:
        kernels = {term: getattr(readout, f"{term}_kernel") for term in values}
        added = {
            term: values[term] @ _array(matrix)
            for term, matrix in kernels.items()
            if matrix is not None
        }
        added["bias"] = np.tile(_array(readout.bias), [len(ids), 1])
        pairs = sum(added.values()).reshape(*rows.shape, 2)
        is_larger = np.stack([pairs[..., 0] >= pairs[..., 1]] * 2, -1)
        is_larger[..., 1] ^= True
        routed = (is_larger * rows[..., None]).reshape(len(ids), -1)
        shares = {term: (x * routed).sum(1) for term, x in added.items()}
    else:
        return None
    shares["bias"] = shares.get("bias", 0.0) + of_bias
    return [
        Contributions(**{term: float(x[i]) for term, x in shares.items()})
        for i in range(len(ids))
    ]


def _array(tensor: tf.Tensor) -> np.ndarray:
    array: np.ndarray = tf.cast(tensor, tf.float64).numpy()
    return array
