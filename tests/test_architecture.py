"""The house rules that a program can check, over the package as imported."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bahdanau_tf

PACKAGE = Path(bahdanau_tf.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports go down this list only. On one floor nobody imports a neighbour,
# but the files of one folder may import each other.
FLOORS = (
    (
        "device",
        "files",
        "keras_register",
        "progress",
        "ranges",
        "text_files",
    ),
    (
        "evaluation",
        "layers",
        "losses",
        "optimizers",
        "plotting",
        "search",
        "text",
    ),
    ("data", "models"),
    ("corpora", "options"),
    ("translation",),
    ("experiments", "serving"),
    ("translator",),
    ("report", "tracing", "training"),
    ("flags",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

PRIVATE_MODULES = (
    "keras.src",
    "tensorflow.compiler",
    "tensorflow.core",
    "tensorflow.python",
    "tensorflow_text.core",
    "tensorflow_text.python",
)
# Imported by the function that needs them: see BUILD.md.
LAZY = {"argcomplete", "matplotlib", "sentencepiece", "tensorflow_text"}
FORBIDDEN_CALLS = {
    "numpy_function": "no served graph can hold it",
    "py_function": "no served graph can hold it",
    "splitlines": "it also cuts at U+2028, U+0085 and the like",
}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def label(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    """The folder of the package a file lies in, or the module it is."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(node: ast.AST) -> Iterator[str]:
    """All modules imported anywhere below `node`, with the names from them."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)


def imported_rooms(path: Path) -> set[str]:
    parts = (name.split(".") for name in imported_modules(tree(path)))
    rooms = {name[1] for name in parts if name[0] == "bahdanau_tf"}
    return rooms - {"__version__"}


def dotted(node: ast.AST) -> str:
    """`tf.raw_ops.Pack` of the expression, or "" where it is no such name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", FILES, ids=label)
def test_imports_go_down(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return
    own = room(path)
    assert own in FLOOR, f"give {own} a floor in tests/test_architecture.py"
    for other in imported_rooms(path) - {own}:
        assert FLOOR.get(other, len(FLOORS)) < FLOOR[own], (
            f"{label(path)} imports {other}, which is not on a lower floor"
        )


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_and_functions_are_short(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 400
    long = {
        f"{node.name}, line {node.lineno}": length(node)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and length(node) > 60
    }
    assert not long


@pytest.mark.parametrize("path", FILES, ids=label)
def test_only_public_interfaces_of_tensorflow_and_keras(path: Path) -> None:
    module = tree(path)
    private = re.compile(r"(tf|keras|tensorflow\w*)\..*\b_[a-z]\w*")
    names = [
        name
        for name in imported_modules(module)
        if name.startswith(PRIVATE_MODULES)
    ]
    names += [
        name
        for node in ast.walk(module)
        if private.fullmatch(name := dotted(node))
        or name.startswith(("keras.src", "tf.python", "tf.__internal__"))
    ]
    assert not names


@pytest.mark.parametrize("path", FILES, ids=label)
def test_heavy_modules_are_imported_when_needed(path: Path) -> None:
    top = [
        statement
        for statement in tree(path).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    names = imported_modules(ast.Module(top, type_ignores=[]))
    assert not {name.split(".")[0] for name in names} & LAZY


@pytest.mark.parametrize("path", FILES, ids=label)
def test_nothing_that_breaks_a_served_graph_or_a_line(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute):
            reason = FORBIDDEN_CALLS.get(node.attr)
            assert reason is None, f"line {node.lineno} {node.attr}: {reason}"
        if isinstance(node, ast.keyword) and node.arg == "jit_compile":
            assert isinstance(node.value, ast.Constant), f"line {node.lineno}"
            assert node.value.value is False, f"line {node.lineno}"


def test_public_names_are_sorted_and_listed() -> None:
    names = bahdanau_tf.__all__
    assert list(names) == sorted(set(names))
    assert set(names) <= set(dir(bahdanau_tf))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bahdanau_tf.no_such_name


@pytest.mark.parametrize("name", bahdanau_tf.__all__)
def test_public_names_are_documented(name: str) -> None:
    value = getattr(bahdanau_tf, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        text = value.__doc__ or ""
        assert text
        # Dataclasses and named tuples without a docstring are given one.
        assert not text.startswith(f"{name}(")
