"""The keywords of functions that take the fields of dataclasses, for type checkers.

After a change of a field `python tests/keywords.py`, then `make format`, write them to a stub; a
test compares.
"""

import ast
from dataclasses import MISSING, fields
from pathlib import Path

import bahdanau_tf
from bahdanau_tf.models.architecture import Architecture
from bahdanau_tf.options.training import OWNERS

STUB = Path(bahdanau_tf.__file__).with_name("options") / "keywords.pyi"
HEAD = '''"""Keywords for type checkers, made of dataclasses by `python tests/keywords.py`."""

from typing import Literal, TypedDict

import keras

from bahdanau_tf.layers.bridge import Bridge
from bahdanau_tf.layers.readout import Readout
from bahdanau_tf.layers.weights import Initializer, KerasOptions
'''
CLASSES = {
    ("PartOptions", "KerasOptions", "models made of parts"): [Architecture],
    ("FitOptions", "TypedDict", "`fit`"): OWNERS,
}
NAMED = {"init_from", "minutes"}  # by `fit` itself


def written() -> str:
    """What the stub contains, except for its format."""
    text = HEAD
    for (name, base, function), owners in CLASSES.items():
        text += f'\n\nclass {name}({base}, total=False):\n    """The options of {function}."""\n\n'
        for field in (field for owner in owners for field in fields(owner)):
            if field.default is not MISSING and field.name not in NAMED:
                text += f"    {field.name}: {field.type}\n"
    return text


def is_written() -> bool:
    """Whether the stub is as it would be written."""
    return ast.dump(ast.parse(STUB.read_text("utf-8"))) == ast.dump(ast.parse(written()))


if __name__ == "__main__":
    STUB.write_text(written(), "utf-8")
