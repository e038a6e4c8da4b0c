"""Models from options, with parts that are named by class: ours, Keras' or a user's."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.attention import as_attention
from bahdanau_tf.layers.cells import as_cell
from bahdanau_tf.layers.weights import accepted
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.models.papers import RNNEncDec, RNNSearch, Seq2SeqLSTM
from bahdanau_tf.models.stepwise import StepwiseModel
from bahdanau_tf.options.model import ModelOptions
from bahdanau_tf.system.imports import blamed, imported, is_shortage
from bahdanau_tf.system.ranges import OptionError, did_you_mean, named

LAYERS = "bahdanau_tf.layers"
_CLASSES: dict[str, type[EncoderDecoder]] = {
    "rnnsearch": RNNSearch,
    "rnnencdec": RNNEncDec,
    "seq2seq-lstm": Seq2SeqLSTM,
}
_SIZES = {"attention": "attention_units", "cell": "units"}  # of parts


def make_model(
    options: ModelOptions, source_vocabulary_size: int, target_vocabulary_size: int
) -> EncoderDecoder:
    """Makes the Keras model, with initialized weights.

    Raises ValueError if `attention` or `cell` does not name such a class.
    """
    left_out = {"model", *options.unused()}
    arguments = {name: value for name, value in asdict(options).items() if name not in left_out}
    if arguments.pop("initialization", "paper") == "glorot":
        arguments["kernel_initializer"] = "glorot_uniform"
        normal = keras.initializers.RandomNormal(stddev=options.embedding_dim**-0.5)
        arguments["embeddings_initializer"] = normal
    return _CLASSES[options.model](
        source_vocabulary_size, target_vocabulary_size, **arguments | _make_parts(options)
    )


def _make_parts(options: ModelOptions) -> dict[str, Any]:
    """The named parts, as arguments of the model's class."""
    arguments: dict[str, Any] = {}
    if options.initialization == "glorot":
        arguments["kernel_initializer"] = "glorot_uniform"
    parts: dict[str, Any] = {
        part: make_part(part, name, units=getattr(options, _SIZES[part]), **arguments)
        for part, name in options.named_parts.items()
    }
    if "cell" in parts:
        parts["encoder"] = _CLASSES[options.model].encoder_class(
            parts["cell"], state_dropout=options.state_dropout, residual=True
        )
    return parts


def try_parts(options: ModelOptions) -> dict[str, str]:
    """Makes and runs a model, if classes of parts are named.

    Returns the options that the parts do not use, and the flag behind each.

    Raises ValueError, which names the class, if one is not found, is not such a part, or fails. A
    part is not blamed for an error that also occurs without it, and no part for a lack of memory.
    """
    names = options.named_parts
    _make_parts(options)  # raises first for wrong names
    unused = {
        _SIZES[part]: named(part, name)
        for part, name in names.items()
        if not accepted(_class(part, name), {"units": None})
    }
    if not names or (error := _failure(options)) is None:
        return unused

    def without(*parts: str) -> Exception | None:
        nothing: Any = dict.fromkeys(parts)
        return _failure(replace(options, **nothing))

    guilty = [part for part in names if not without(part)]
    if not guilty and (other := without(*names)):
        raise other
    part, *others = guilty or names
    also = "".join(f"and {other} is {names[other]!r}, " for other in others)
    what = f"{also}with which the model does not run"
    raise blamed(error, part, names[part], what) from error


def _failure(options: ModelOptions) -> Exception | None:
    """The error that is raised when a model is made and run, unless it ran out of memory."""
    try:
        try_model(make_model(options, 3, 3))
    except Exception as error:  # a user's class may raise anything
        if is_shortage(error):
            raise
        return error
    return None


def make_part(field: str, name: str, **arguments: object) -> keras.layers.Layer:
    """Makes a part of a named class, for the field "attention" or "cell" of the options.

    The name is that of a class of `bahdanau_tf.layers`, such as "LSTMCell", or a path, such as
    "keras.layers.GRUCell" or "my_module.MyScore". Arguments that the constructor lacks are dropped.
    Raises ValueError if there is no such class, if it cannot be made with these arguments, saved
    and loaded, or if it is not such a part.
    """
    owner = _class(field, name)
    try:
        config = keras.saving.serialize_keras_object(owner(**accepted(owner, arguments)))
        part = keras.saving.deserialize_keras_object(config)
    except Exception as error:  # a user's class may raise anything
        what = "which cannot be made, saved and loaded"
        raise blamed(error, field, name, what) from error
    {"attention": as_attention, "cell": as_cell}[field]("ModelOptions", part)
    return part


def _class(field: str, name: str) -> type:
    module, _, last = name.rpartition(".")
    home = imported(module or LAYERS, field, name)
    owner = getattr(home, last, None)
    example = {"attention": "GeneralAttention", "cell": "LSTMCell"}[field]
    if not isinstance(owner, type):
        classes = [x for x in dir(home) if isinstance(getattr(home, x), type)]
        hint = did_you_mean(last, classes)
        why = f"but {module or LAYERS} has no class {last!r}{hint}"
        wanted = f"a class of {LAYERS}, such as {example}, or module.Class"
        raise OptionError("ModelOptions", field, name, wanted, why)
    is_registered = keras.saving.get_registered_name(owner) != owner.__name__
    if owner.__module__.startswith("bahdanau_tf.") and not is_registered:
        wanted = f"a class such as {example}, or one of your own as module.Class"
        raise OptionError("ModelOptions", field, name, wanted, "a base class")
    return owner


def try_model(model: StepwiseModel) -> None:
    """Runs a model as training and search will: over a sentence, and stepwise.

    Raises whatever its parts raise, and ValueError if checkpoints would lack a weight.
    """
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[{"source": ids, "target": ids}], autograph=False)
    def run(inputs: dict[str, tf.Tensor]) -> object:
        whole, _ = model.features(inputs, training=True)
        stepwise, _ = StepwiseModel.features(model, inputs)
        return whole, stepwise

    words = tf.constant([[1, 2], [1, 0]])
    run({"source": words, "target": words})
    check_tracked(model)


def check_tracked(layer: keras.layers.Layer) -> None:
    """Raises ValueError unless TensorFlow, which saves weights in checkpoints, finds all of them.

    It misses those of a layer in a list, for example.
    """
    tracked = {id(x) for x in tf.train.TrackableView(layer).descendants()}
    for weight in layer.weights:
        if id(weight) not in tracked:
            raise ValueError(
                f"{type(layer).__name__}: checkpoints would lack the weight {weight.path}; wanted "
                "each layer as an attribute of its own, made in __init__, and not in a list"
            )
