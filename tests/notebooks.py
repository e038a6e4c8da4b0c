"""Reads notebooks; runs their cells, and blocks of pages, in this process."""

import ast
import json
import re
import symtable
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "colab"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# How a notebook displays the last value of a cell, in order of preference.
SHOWN_BY = ("_repr_html_", "_repr_png_", "__repr__")
MAGIC = re.compile(r"^(\s*)%\w+ .*$", flags=re.MULTILINE)


def read_notebook(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def source(cell: Mapping[str, Any]) -> str:
    return "".join(cell["source"])


def code_cells(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if c["cell_type"] == "code"]


def as_python(text: str) -> str:
    """A cell without its `%` lines, which install what is already there."""
    return MAGIC.sub(r"\1pass", text)


def run_blocks(
    blocks: Iterable[tuple[str, str]], namespace: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Runs named blocks of Python one after another, as a notebook does.

    If a block ends with an expression, its value is displayed.
    """
    namespace = {"__name__": "__main__"} if namespace is None else namespace
    for name, text in blocks:
        tree = ast.parse(as_python(text), name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            show(eval(compile(last, name, "eval"), namespace))
    return namespace


def show(value: Any) -> None:
    """Calls the method with which a notebook would display a value."""
    for name in SHOWN_BY:
        draw = getattr(value, name, None)
        if draw is not None:
            draw()
            return


def run_notebook(path: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a notebook in the current folder.

    Args:
        path: The notebook.
        parameters: Values set after the cell tagged `parameters`, which must set the same names.

    Returns:
        The notebook's namespace.
    """
    blocks = []
    for cell in code_cells(read_notebook(path)):
        blocks.append((f"{path.stem}/{cell['id']}", source(cell)))
        if "parameters" in cell["metadata"].get("tags", []):
            unknown = {*parameters} - names_set(source(cell))
            if unknown:
                raise ValueError(f"{path.name} has no parameter {unknown}")
            lines = (f"{name} = {value!r}" for name, value in parameters.items())
            blocks.append((f"{path.stem}/small", "\n".join(lines)))
    return run_blocks(blocks)


def names_set(text: str) -> set[str]:
    """The names that a cell sets, by any statement outside of functions."""
    symbols = symtable.symtable(as_python(text), "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
