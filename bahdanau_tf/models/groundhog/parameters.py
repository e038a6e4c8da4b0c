"""Reads GroundHog's parameter files and assigns them to a model's weights."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import TypedDict

import keras
import numpy as np
from numpy.typing import ArrayLike

from bahdanau_tf.arrays import read_arrays
from bahdanau_tf.models.stepwise import StepwiseModel

Parameters = dict[str, np.ndarray]


class Sizes(TypedDict):
    """The sizes of a model, as its constructor takes them."""

    source_vocabulary_size: int
    target_vocabulary_size: int
    units: int
    embedding_dim: int
    maxout_units: int


class RNNSearchSizes(Sizes):
    """Those of an `RNNSearch`."""

    attention_units: int


def _gru(side: str, path: str) -> dict[str, tuple[str, ...]]:
    """The weights of a gated unit; ours hold z, r, h~ side by side."""
    gates = ("update", "reset", "input")
    return {
        f"{path}.kernel": tuple(f"W_0_{side}_{g}_embdr_0:m,n" for g in gates),
        f"{path}.recurrent_kernel": tuple(
            f"{letter}_{side}_transition_0:n,n" for letter in "GRW"
        ),
        f"{path}.bias": (f"b_0_{side}_input_embdr_0:n",),
    }


# Our weight: GroundHog's tensors, which are concatenated, with their shapes in
# the paper's letters (a stands for n', c for the width of a context).
_SHARED = {
    "source_embedding.embeddings": ("W_0_enc_approx_embdr:Kx,m",),
    "source_embedding.bias": ("b_0_enc_approx_embdr:m",),
    "target_embedding.embeddings": ("W_0_dec_approx_embdr:Ky,m",),
    "target_embedding.bias": ("b_0_dec_approx_embdr:m",),
    **_gru("enc", "encoder.stack.0.0.cell"),
    "bridge.kernel": ("W_0_dec_initializer_0:n,n",),
    "bridge.bias": ("b_0_dec_initializer_0:n",),
    **_gru("dec", "decoder.cell"),
    "decoder.context_kernel": (
        "W_0_dec_dec_updater_0:c,n",
        "W_0_dec_dec_reseter_0:c,n",
        "W_0_dec_dec_inputter_0:c,n",
    ),
    "readout.state_kernel": ("W_0_dec_hid_readout_0:n,2l",),
    "readout.previous_kernel": ("W_0_dec_prev_readout_0:m,2l",),
    "readout.context_kernel": ("W_0_dec_repr_readout:c,2l",),
    "readout.bias": ("b_0_dec_hid_readout_0:2l",),
    "readout.factor_kernel": ("W1_dec_deep_softmax:l,m",),
    "readout.output_kernel": ("W2_dec_deep_softmax:m,Ky",),
    "readout.output_bias": ("b_dec_deep_softmax:Ky",),
}
_TRANSPOSED = {"readout.output_kernel"}
_ATTENTION = {
    **_gru("back_enc", "encoder.stack.0.1.cell"),
    "decoder.attention.query_projection.kernel": ("B_dec_transition_0:n,a",),
    "decoder.attention.key_projection.kernel": ("A_dec_transition_0:c,a",),
    "decoder.attention.energy.kernel": ("D_dec_transition_0:a,1",),
}
_RNNSEARCH = {**_SHARED, **_ATTENTION}


def read_parameters(
    parameters: str | os.PathLike[str] | Mapping[str, ArrayLike],
) -> Parameters:
    """Reads a GroundHog parameter file; nothing in it is unpickled.

    Args:
        parameters: Path of the .npz file, or its arrays by name.

    Returns:
        The arrays by GroundHog's names, float32.

    Raises:
        ValueError: It is not an .npz file of arrays of finite numbers.
    """
    if not isinstance(parameters, Mapping):
        parameters = _load(parameters)
    arrays = {name: np.asarray(value) for name, value in parameters.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(
                f"read_parameters: {name} is not all finite numbers"
            )
    return {name: a.astype(np.float32) for name, a in arrays.items()}


def _load(path: str | os.PathLike[str]) -> Parameters:
    try:
        return read_arrays(path)
    except ValueError as error:
        raise ValueError(f"read_parameters: {error}") from error


def rnnsearch_sizes(arrays: Parameters) -> RNNSearchSizes:
    """The sizes of an RNNsearch, as arguments of `RNNSearch`.

    Args:
        arrays: From `read_parameters`.

    Raises:
        ValueError: Tensors are missing, unknown or do not fit together; a
            file of an RNNencdec lacks those of the attention.
    """
    letters = _measure(arrays, _RNNSEARCH, "RNNSearch")
    _want("RNNSearch", "context", letters["c"], 2 * letters["n"])
    return {**_shared_sizes(letters), "attention_units": letters["a"]}


def rnnencdec_sizes(arrays: Parameters) -> Sizes:
    """The sizes of an RNNencdec, as arguments of `RNNEncDec`.

    Args and Raises are those of `rnnsearch_sizes`.
    """
    letters = _measure(arrays, _SHARED, "RNNEncDec")
    _want("RNNEncDec", "context", letters["c"], letters["n"])
    return _shared_sizes(letters)


def _shared_sizes(letters: dict[str, int]) -> Sizes:
    return {
        "source_vocabulary_size": letters["Kx"],
        "target_vocabulary_size": letters["Ky"],
        "units": letters["n"],
        "embedding_dim": letters["m"],
        "maxout_units": letters["l"],
    }


def _measure(
    arrays: Parameters, table: dict[str, tuple[str, ...]], model: str
) -> dict[str, int]:
    """Checks names and shapes; returns the value of every letter."""
    wanted = dict(
        entry.split(":") for entries in table.values() for entry in entries
    )
    for problem, names in (
        ("lacks", wanted.keys() - arrays.keys()),
        ("has unknown", arrays.keys() - wanted.keys()),
    ):
        if names:
            raise ValueError(
                f"{model}.from_groundhog: the file {problem} "
                f"{', '.join(sorted(names))}"
            )
    letters = {"1": 1}
    for name, symbols in wanted.items():
        shape, signs = arrays[name].shape, symbols.split(",")
        known = [letters.get(sign) for sign in signs]
        if len(shape) != len(signs) or any(
            size is not None and size != given
            for size, given in zip(known, shape, strict=True)
        ):
            raise ValueError(
                f"{model}.from_groundhog: {name} has shape {shape}, "
                f"wanted ({symbols}) with {letters}"
            )
        letters.update(zip(signs, shape, strict=True))
    _want(model, "maxout input", letters["2l"], 2 * letters["l"])
    return letters


def _want(model: str, what: str, size: int, wanted: int) -> None:
    if size != wanted:
        raise ValueError(
            f"{model}.from_groundhog: the {what} is {size} wide, "
            f"wanted {wanted}"
        )


def named_weights(
    model: StepwiseModel,
) -> Iterator[tuple[keras.Variable, tuple[str, ...], bool]]:
    """Pairs each weight with the GroundHog tensors it is made of.

    Args:
        model: An `RNNSearch` or `RNNEncDec` with the default parts.

    Yields:
        A Keras variable; the names of the arrays that, concatenated along the
        last axis, are its value; whether that must be transposed.
    """
    table = _RNNSEARCH if model.has_alignment else _SHARED
    for path, entries in table.items():
        weight = functools.reduce(_member, path.split("."), model)
        names = tuple(entry.split(":")[0] for entry in entries)
        yield weight, names, path in _TRANSPOSED


def _member(part: Any, name: str) -> Any:
    return part[int(name)] if name.isdigit() else getattr(part, name)


def assign_weights(model: StepwiseModel, arrays: Parameters) -> None:
    """Sets all weights of a model to those of a GroundHog file.

    Args:
        model: An `RNNSearch` or `RNNEncDec` of the file's sizes.
        arrays: From `read_parameters`.
    """
    for weight, names, is_transposed in named_weights(model):
        value = np.concatenate([arrays[n] for n in names], axis=-1)
        weight.assign(value.T if is_transposed else value)
