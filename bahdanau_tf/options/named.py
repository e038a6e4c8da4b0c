"""Parts of a model by the names of their classes: ours, Keras', a user's."""

from __future__ import annotations

import inspect
import re
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import keras

    from bahdanau_tf.models import StepwiseModel

LAYERS = "bahdanau_tf.layers"


def make_part(field: str, name: str, **arguments: object) -> keras.layers.Layer:
    """Makes an attention or a cell of a class that is named.

    Args:
        field: "attention" or "cell".
        name: A class of `bahdanau_tf.layers`, such as "LSTMCell", or a path,
            such as "keras.layers.GRUCell" or "my_module.MyScore".
        **arguments: Given to the constructor, those that it takes.

    Returns:
        A layer, not built; it can be saved and loaded.

    Raises:
        ValueError: There is no such class, it cannot be made of these
            arguments, saved and loaded, or it is no such part.
    """
    import keras

    from bahdanau_tf.layers.attention import as_attention
    from bahdanau_tf.layers.nested_cells import as_cell

    owner = _class(field, name)
    taken = {key: arguments[key] for key in arguments if _takes(owner, key)}
    try:
        made = owner(**taken)
        config = keras.saving.serialize_keras_object(made)
        part = keras.saving.deserialize_keras_object(config)
    except Exception as error:  # a user's class may raise anything
        what = f"{field} is {name!r}, which cannot be made, saved and loaded"
        raise blamed(error, what) from error
    check = {"attention": as_attention, "cell": as_cell}[field]
    check("ModelOptions", part)
    return part


def _class(field: str, name: str) -> type:
    module, _, last = name.rpartition(".")
    home = imported(module or LAYERS, f"{field} is {name!r}")
    found = getattr(home, last, None)
    if not isinstance(found, type):
        raise ValueError(
            f"ModelOptions: {field} is {name!r}, but {module or LAYERS} has no "
            f"class {last!r}{_like(last, home)}; wanted a class of {LAYERS} "
            "or module.Class"
        )
    return found


def imported(module: str, what: str) -> ModuleType:
    """Imports a module that the user names.

    Args:
        module: Its name.
        what: Where it is named, such as "cell is 'my_module.MyCell'".

    Raises:
        ValueError: There is no such module, or it fails.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"ModelOptions: {what}, but there is no module {error.name}; add "
            "its folder to PYTHONPATH if you trust it"
        ) from error
    except (Exception, SystemExit) as error:  # as above
        what = f"{what}, but {module} cannot be imported"
        raise blamed(error, what) from error


def _like(name: str, home: ModuleType) -> str:
    """The classes of a module with a name that is like this one."""
    classes = [x for x in dir(home) if isinstance(getattr(home, x), type)]
    like = get_close_matches(name, classes)
    return f" (did you mean {' or '.join(like)}?)" if like else ""


def takes(field: str, name: str, argument: str) -> bool:
    """Whether the constructor of a class that is named has such an argument.

    Raises:
        ValueError: There is no such class.
    """
    return _takes(_class(field, name), argument)


def _takes(owner: type, argument: str) -> bool:
    """Whether a constructor has an argument, or passes it to one that has."""
    for one in owner.__mro__:
        parameters = inspect.signature(one.__init__).parameters  # type: ignore[misc]
        if argument in parameters:
            return True
        kinds = {parameter.kind for parameter in parameters.values()}
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return False
    return False


def try_model(model: StepwiseModel) -> None:
    """Runs a model as training and search will: over a sentence, and stepwise.

    Raises:
        ValueError: Checkpoints would lack a weight.
        Exception: Whatever its parts raise.
    """
    import tensorflow as tf

    from bahdanau_tf.layers.weights import check_tracked
    from bahdanau_tf.models import StepwiseModel

    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[{"source": ids, "target": ids}], autograph=False)
    def run(inputs: dict[str, tf.Tensor]) -> object:
        whole, _ = model.features(inputs, training=True)
        stepwise, _ = StepwiseModel.features(model, inputs)
        return whole, stepwise

    words = tf.constant([[1, 2], [1, 0]])
    run({"source": words, "target": words})
    check_tracked(model)


def blamed(error: BaseException, what: str) -> ValueError:
    """The refusal of a user's part, whose code raised an error.

    Args:
        error: The error.
        what: What it is about, such as "cell is 'MyCell', which does not run".

    Raises:
        Exception: The error, if it is that memory is short.
    """
    if is_shortage(error):
        raise error
    # Without Keras' appendices, on one line.
    text = re.split("Arguments received|Full object config", str(error))[0]
    words = re.sub(r"\x1b\[\d*m", "", text).split()
    name = type(error).__name__
    return ValueError(f"ModelOptions: {what}: {name}: {' '.join(words)}")


def is_shortage(error: BaseException) -> bool:
    """Whether memory is short."""
    import tensorflow as tf

    return isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError))
