"""Statements of a source file by name, and a source that tells which run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def first(function: ast.FunctionDef) -> ast.stmt:
    """The first statement of a function that is no docstring, if it has one."""
    has_docstring = ast.get_docstring(function) is not None
    return function.body[has_docstring and len(function.body) > 1]


def places_of(node: ast.AST, path: str, place: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Each node with its statement, "path:line", or "path" outside functions.

    The head of a function, so its defaults, is with the first statement of its body: what is
    written there matters when the function is called.
    """
    place = place or path
    for child in ast.iter_child_nodes(node):
        own = place
        if isinstance(child, FUNCTIONS):
            own = f"{path}:{first(child).lineno}"
        elif isinstance(child, ast.stmt) and place != path:
            own = f"{path}:{child.lineno}"
        yield child, own
        yield from places_of(child, path, own)


def notes(places: Set[str], statement: ast.stmt) -> list[ast.stmt]:
    """Calls that note places; none before a docstring."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return []
    return [ast.parse(f"__runs__({place!r})").body[0] for place in places]


def noting(source: str, path: str, wanted: Set[str]) -> str:
    """A source whose functions call `__runs__(place)` at the places wanted."""
    tree = ast.parse(source)
    places = dict(places_of(tree, path))
    for node in [*places]:
        if isinstance(node, ast.ClassDef):
            continue
        for name, block in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody") and isinstance(block, list):
                block[:] = [
                    part
                    for statement in block
                    for part in (*notes({places[statement], path} & wanted, statement), statement)
                ]
    return ast.unparse(ast.fix_missing_locations(tree))
