"""The rules of BUILD.md that a program can check, on the imported package."""

import ast
import functools
import graphlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import keywords
import pytest

import bahdanau_tf

PACKAGE = Path(bahdanau_tf.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
HTML = PACKAGE / "runtime" / "html"
PAGE = sorted(path for path in HTML.iterdir() if path.suffix != ".wasm")  # in other languages

# Imports go only down this list. Modules on one floor do not import each other,
# but the files of one folder may.
FLOORS = (
    ("system",),
    ("layers", "losses", "optimizers", "search", "text"),
    ("options",),
    ("data", "evaluation", "models"),
    ("corpora", "plotting"),
    ("translation",),
    ("runtime", "serving"),
    ("translator",),
    ("training",),
    ("exercises", "report", "tracing"),
    ("commands",),
    ("__main__",),
)
# How large the package may be. Files and lines are round limits, some 5 % above what is there:
# a change that needs more than that air takes away elsewhere, or says why in docs/decisions.md.
ROOMS = 23  # folders and modules of the package, with __init__ and __main__
IMPORTS = 74  # of one room by another
FILES_AT_MOST = 168
LINES = 42_700
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

PRIVATE_MODULES = (
    "keras.src",
    "tensorflow.compiler",
    "tensorflow.core",
    "tensorflow.python",
    "tensorflow_text.core",
    "tensorflow_text.python",
)
# Imported inside the functions that need them; BUILD.md says why.
LAZY = {"argcomplete", "matplotlib", "onnx", "onnxruntime", "sentencepiece", "tensorflow_text"}
FORBIDDEN_CALLS = {
    "numpy_function": "it cannot run in a served graph",
    "py_function": "it cannot run in a served graph",
    "splitlines": "it also splits at U+2028, U+0085 and others",
}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def label(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    """The top-level folder or module of the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(node: ast.AST) -> Iterator[str]:
    """All modules imported anywhere below `node`, with the imported names."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)


def imported_rooms(path: Path) -> set[str]:
    parts = (name.split(".") for name in imported_modules(tree(path)))
    rooms = {name[1] for name in parts if name[0] == "bahdanau_tf"}
    return rooms - {"__all__", "__version__"}


def dotted(node: ast.AST) -> str:
    """The dotted name of an expression, as `tf.raw_ops.Pack`, or ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_every_room_has_a_floor() -> None:
    rooms = {room(path) for path in FILES} - {"__init__"}
    assert rooms == set(FLOOR), "every module needs a floor in tests/test_architecture.py"


def test_imports_go_down() -> None:
    upward = [
        f"{label(path)} imports {other}, which is not on a lower floor"
        for path in FILES
        if path != PACKAGE / "__init__.py"
        for other in imported_rooms(path) - {room(path)}
        if FLOOR.get(other, len(FLOORS)) >= FLOOR[room(path)]
    ]
    assert not upward


def test_no_file_imports_itself_through_others() -> None:
    """Imports of type checkers count, too."""
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): tree(path)
        for path in FILES
    }
    modules = {name.removesuffix(".__init__"): parsed for name, parsed in modules.items()}
    imports = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for name in imported_modules(parsed)
        }
        for module, parsed in modules.items()
    }
    graphlib.TopologicalSorter(imports).prepare()  # names the files of a cycle


def test_the_package_stays_small() -> None:
    lines = sum(path.read_text("utf-8").count("\n") for path in FILES + PAGE)
    rooms = {room(path) for path in FILES}
    imports = {
        (room(path), other) for path in FILES for other in imported_rooms(path) - {room(path)}
    }
    assert len(rooms) <= ROOMS
    assert len(imports) <= IMPORTS
    assert len(FILES) <= FILES_AT_MOST
    assert lines <= LINES


def test_functions_are_short() -> None:
    assert not [
        f"{label(path)}, line {node.lineno}: {node.name}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > 60
    ]


def test_tensorflow_and_keras_are_used_through_public_names() -> None:
    private = re.compile(r"(tf|keras|tensorflow\w*)\..*\b_[a-z]\w*")
    names = [
        f"{label(path)}: {name}"
        for path in FILES
        for name in imported_modules(tree(path))
        if name.startswith(PRIVATE_MODULES)
    ]
    names += [
        f"{label(path)}, line {node.lineno}: {name}"
        for path in FILES
        for node in ast.walk(tree(path))
        if private.fullmatch(name := dotted(node))
        or name.startswith(("keras.src", "tf.python", "tf.__internal__"))
    ]
    assert not names


def test_heavy_modules_are_imported_when_needed() -> None:
    early = [
        f"{label(path)}, line {statement.lineno}: {name}"
        for path in FILES
        for statement in tree(path).body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in imported_modules(ast.Module([statement], type_ignores=[]))
        if name.split(".")[0] in LAZY
    ]
    assert not early


def test_no_call_breaks_served_graphs_or_splits_lines_elsewhere() -> None:
    calls = [
        f"{label(path)}, line {node.lineno} {node.attr}: {FORBIDDEN_CALLS[node.attr]}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_CALLS
    ]
    calls += [
        f"{label(path)}, line {node.lineno}: jit_compile is not False"
        for path in FILES
        if path.parent.name != "training"  # whose graphs no server runs
        for node in ast.walk(tree(path))
        if isinstance(node, ast.keyword) and node.arg == "jit_compile"
        if getattr(node.value, "value", None) is not False
    ]
    assert not calls


def test_keywords_for_type_checkers_are_the_fields_of_the_dataclasses() -> None:
    assert keywords.is_written(), "run tests/keywords.py"


def test_public_names_are_sorted_and_listed() -> None:
    names = bahdanau_tf.__all__
    assert list(names) == sorted(set(names))
    assert set(names) <= set(dir(bahdanau_tf))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bahdanau_tf.no_such_name


def test_public_names_are_documented() -> None:
    values = {name: getattr(bahdanau_tf, name) for name in bahdanau_tf.__all__}
    texts = {
        name: value.__doc__ or ""
        for name, value in values.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    # Dataclasses and named tuples without a docstring get a generated one.
    assert not [name for name, text in texts.items() if not text or text.startswith(f"{name}(")]
