"""Docstrings and signatures for Sphinx: our Markdown becomes its markup.

Like those of Keras they have blocks of code between fences and names between
single backticks. A block indented by four blanks is equations, and so is a
variable with an index in a sentence, s_{i-1}; see `equations`. Napoleon reads
the sections (Args, Returns, ...).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import keras
from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature

FENCE = re.compile(r"^( *)```(\w*)$")
SECTION = re.compile(r"^[A-Z][\w, ]*:$")
CODE = re.compile(r"(`[^`]*`)")
LETTER = re.compile(r"(?<!\S)([A-Za-z])\.(?!\S)")
VARIABLE = re.compile(r"(?<![\w.])[^\W\d_][~→←]?_(?:\{[^}]+\}|\w{1,2}\b)")


def convert(
    app: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Handles Sphinx' event `autodoc-process-docstring`: changes `lines`."""
    lines[:] = _converted(lines)


def _converted(lines: list[str]) -> Iterator[str]:
    margin = None  # that of a fence, inside one
    in_section = False
    before = ""
    for line in lines:
        fence = FENCE.match(line)
        if fence and margin is None:
            # Napoleon wants what belongs to a section to be indented.
            margin = fence[1] or ("    " if in_section else "")
            yield from (f"{margin}.. code-block:: {fence[2]}", "")
        elif fence:
            margin = None
            yield ""
        elif margin is not None:
            yield margin + "    " + line if line else line
        elif line.startswith("    ") and not in_section:
            if not before:
                yield from (".. math::", "")
            yield line
        else:
            if line.strip():
                in_section = SECTION.match(line) or (in_section and line.startswith("    "))
            yield _sentence(line)
        before = line


def _sentence(line: str) -> str:
    """A line of text with its variables, and without markup by accident."""
    parts = CODE.split(line)
    for i in range(0, len(parts), 2):
        text = parts[i].replace("\\", "\\\\").replace("|", "\\|")
        text = LETTER.sub(r"\1\\.", text)  # not an item of a list
        parts[i] = VARIABLE.sub(r"\\ :math:`\g<0>`\\ ", text)
    # At the end of a line the backslash would join it with the next.
    return "".join(parts).removesuffix("\\ ")


def sign(
    app: Sphinx, kind: str, name: str, value: type, *unused: object
) -> tuple[str, None] | None:
    """The arguments of a layer's constructor, which Keras hides."""
    if kind != "class" or not issubclass(value, keras.layers.Layer):
        return None
    _, *arguments = inspect.signature(value.__init__).parameters.values()
    signature = inspect.Signature(arguments)
    return stringify_signature(signature, unqualified_typehints=True), None


def setup(app: Sphinx) -> None:
    """Adds what is here to Sphinx; Napoleon comes after it, at 500."""
    app.connect("autodoc-process-docstring", convert, priority=400)
    app.connect("autodoc-process-signature", sign)
