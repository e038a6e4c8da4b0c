"""What all layers use: configs, initializers, building, products with weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypedDict

import keras
import tensorflow as tf

from bahdanau_tf.system.ranges import Shown
from bahdanau_tf.system.tensors import Shape, product

Weight: TypeAlias = "keras.Variable | tf.Tensor"

# In the forms that Keras accepts: an object, its name, its config; None for a default.
Initializer: TypeAlias = "keras.initializers.Initializer | str | dict[str, object] | None"


class KerasOptions(TypedDict, total=False):
    """The arguments of every layer of Keras, and here."""

    name: str | None
    dtype: str | keras.DTypePolicy | None
    trainable: bool
    autocast: bool
    activity_regularizer: keras.regularizers.Regularizer | str | None


class _ConstructorSignature:
    """The signature of a class, not of its objects, which is that of `__init__`.

    Before Python 3.11.4 `inspect` takes that of Keras' `__new__` for a class that inherits its
    constructor, (*args, **kwargs).
    """

    def __get__(self, layer: object, owner: type) -> inspect.Signature:
        if layer is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=[*signature.parameters.values()][1:])


class ConfiguredLayer(keras.layers.Layer):
    """A layer whose config is the arguments of its constructor.

    Each argument is an attribute of the same name. A subclass with a `get_config` of its own
    adds its own arguments there; those of the classes above are in the config already.
    """

    __signature__ = _ConstructorSignature()

    def get_config(self) -> dict[str, object]:
        kinds = inspect.Parameter
        arguments = {
            name: serialized(getattr(self, name))
            for owner in type(self).__mro__
            if issubclass(owner, ConfiguredLayer)
            and "__init__" in vars(owner)
            and "get_config" not in vars(owner)
            for name, parameter in inspect.signature(owner.__init__).parameters.items()
            if name != "self" and parameter.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        }
        return {**super().get_config(), **arguments}

    def new_weight(
        self, name: str, shape: Shape, initializer: Initializer, **options: Any
    ) -> keras.Variable:
        """`add_weight`, with zeros in `read_later`."""
        return self.add_weight(shape, initial(initializer), name=name, **options)


_READ_LATER = ContextVar("weights are read later", default=False)


@contextmanager
def read_later() -> Iterator[None]:
    """All weights that are made in the block start with zeros.

    Drawing random numbers takes most of the time in which a large model is built, and a file's
    weights replace them.
    """
    before = _READ_LATER.set(True)
    try:
        yield
    finally:
        _READ_LATER.reset(before)


def initial(initializer: Initializer) -> Initializer:
    """What a weight starts with: zeros in `read_later`."""
    return "zeros" if _READ_LATER.get() else initializer


def paper_kernel() -> keras.initializers.Initializer:
    """N(0, 0.01²), the paper's initializer of most kernels (appendix B.1)."""
    return keras.initializers.RandomNormal(stddev=0.01)


def for_kernel(initializer: Initializer) -> keras.initializers.Initializer:
    """A copy of the initializer; of `paper_kernel` if it is None."""
    return fresh(initializer or paper_kernel())


def fresh(initializer: Initializer, number: int = 0) -> keras.initializers.Initializer:
    """A copy: a Keras initializer used twice gives the same numbers.

    Copies of one that has a seed differ by their numbers. One with a `SeedGenerator` is returned
    as it is: it draws other numbers each time, and each copy would draw the first ones again.
    """
    original = keras.initializers.get(initializer)
    if not isinstance(original, keras.initializers.Initializer):
        return original  # a function
    if isinstance(getattr(original, "seed", None), keras.random.SeedGenerator):
        return original
    config = keras.initializers.serialize(original)
    seed = config["config"].get("seed")
    if isinstance(seed, int):
        config["config"]["seed"] = seed + number
    return keras.initializers.get(config)


def per_block(initializer: Initializer, count: int) -> Callable[..., tf.Tensor]:
    """Initializes `count` matrices, joined along the last axis, one by one.

    So each of the three recurrent matrices in a kernel [n, 3n] is orthogonal, as in the paper,
    and not the kernel as one wide matrix.
    """
    blocks = [fresh(initial(initializer), place) for place in range(count)]

    def initialize(shape: tuple[int, ...], dtype: tf.DType | str | None = None) -> tf.Tensor:
        block_shape = (*shape[:-1], shape[-1] // count)
        return tf.concat([b(block_shape, dtype=dtype) for b in blocks], -1)

    return initialize


def build_once(layer: keras.layers.Layer, *shapes: Sequence[object] | None) -> None:
    """Builds a sub-layer unless it is built.

    When Keras loads a model, it builds sub-layers before the layer itself. A layer that has no
    `build` is built by Keras when it is first called.
    """
    if not layer.built and type(layer).build is not keras.layers.Layer.build:
        layer.build(*shapes)
    stay_frozen(layer)


def stay_frozen(layer: keras.layers.Layer) -> None:
    """Freezes the parts of a frozen layer, which Keras loads without parts."""
    if not layer.trainable:
        layer.trainable = True  # Keras ignores an assignment that changes nothing
        layer.trainable = False


def serialized(part: object) -> object:
    """The config of a layer or initializer; a tuple as a list; other values as they are."""
    if part is None or isinstance(part, (str, int, float, type)):
        return part
    return keras.saving.serialize_keras_object(list(part) if isinstance(part, tuple) else part)


def deserialized(part: object) -> Any:
    """A layer, given it or its config; other values as they are."""
    return keras.saving.deserialize_keras_object(part) if isinstance(part, dict) else part


def accepted(owner: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a class' constructor has, or passes to one that has."""

    def takes(name: str) -> bool:
        for base in owner.__mro__:
            parameters = inspect.signature(base.__init__).parameters  # type: ignore[misc]
            if name in parameters:
                return True
            if not any(x.kind is x.VAR_KEYWORD for x in parameters.values()):
                return False
        return False

    return {name: value for name, value in arguments.items() if takes(name)}


def described(part: object) -> Shown:
    """What an error calls a wrong part: a layer by its class, others fully."""
    if isinstance(part, type):
        return Shown(f"the class {part.__name__} itself, not an instance")
    return Shown(type(part).__name__ if isinstance(part, keras.layers.Layer) else repr(part))


def linear(inputs: tf.Tensor, kernel: Weight, bias: Weight | None = None) -> tf.Tensor:
    """x W + b over the last axis, in the dtype of the inputs: float [..., p] -> [..., q].

    The kernel is float [p, q], the bias float [q] or None.
    """
    # Not tf.tensordot, whose gradient XLA cannot compile in a loop.
    is_matrix = inputs.shape.rank == 2
    outputs = product(inputs if is_matrix else as_rows(inputs), kernel)
    if bias is not None:
        # Not `+`: TensorFlow fuses only bias_add, and its gradient is faster.
        outputs = tf.nn.bias_add(outputs, tf.cast(bias, outputs.dtype))
    return outputs if is_matrix else reshaped(outputs, inputs, kernel.shape[1])


def masked_softmax(energies: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """The softmax over real positions, where the mask is True or None; uniform if none is real."""
    if mask is not None:
        energies = tf.where(mask, energies, energies.dtype.min)
    return tf.nn.softmax(energies)


def reshaped(x: tf.Tensor, like: tf.Tensor, *last: int) -> tf.Tensor:
    """Reshapes to all dimensions of `like` except the last, then `last`.

    With at most one unknown dimension this is a single operation.
    """
    leading = like.shape[:-1].as_list()
    if leading.count(None) <= 1 and 0 not in (*leading, *last):
        sizes = [-1 if size is None else size for size in leading]
        return tf.reshape(x, [*sizes, *last])
    shape = tf.shape(like)[:-1]
    outputs = tf.reshape(x, tf.concat([shape, last], 0) if last else shape)
    outputs.set_shape([*leading, *last])
    return outputs


def as_rows(x: tf.Tensor) -> tf.Tensor:
    """Joins all axes but the last: [..., p] -> [N, p]."""
    return tf.reshape(x, [-1, x.shape[-1] or tf.shape(x)[-1]])


def rows_at(sequence: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Rows of a batch of sequences: float [B, T, p], indices into B x T -> [N, p]."""
    return tf.gather(as_rows(sequence), positions)
