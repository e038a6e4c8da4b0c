"""Small mistakes in a source file: where each is, and the file with it."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from places import places_of

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutant(NamedTuple):
    """The package with one mistake.

    Attributes:
        path: The file with the mistake, below the package.
        line: Where.
        column: Where.
        before: What stands there.
        after: What the mutant has there.
        statement: The place of its statement (`places.py`).
        source: The whole file of the mutant.
    """

    path: str
    line: int
    column: int
    before: str
    after: str
    statement: str
    source: str

    @property
    def room(self) -> str:
        return self.path.split("/")[0]

    @property
    def name(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place}: {self.mistake}"

    @property
    def mistake(self) -> str:
        return f"{self.before} -> {self.after}"


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """A node's mutants, each with one mistake in the node itself."""
    other = copy.copy(node)
    match node:
        case ast.Compare(ops=[operator]):
            other.ops = [COMPARISONS[type(operator)]()]
            yield other
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OPERATORS:
            other.op = OPERATORS[type(node.op)]()
            yield other
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield ast.Constant(2 * node.value if node.value else 1.0)
        case ast.IfExp() | ast.If() | ast.While():
            # Only the condition: what follows an `if` keeps its own text.
            yield ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass()


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run: no annotations, no words of errors or f-strings."""
    yield node
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from nodes(child)


def replaced(source: str, node: ast.AST, text: str) -> str:
    """A source with other text where a node stands; columns are bytes."""
    lines = source.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    head = lines[first][: node.col_offset]
    tail = lines[last][node.end_col_offset :]
    lines[first : last + 1] = [head + text.encode() + tail]
    return b"\n".join(lines).decode()


def mutants_of(package: Path, path: Path) -> Iterator[Mutant]:
    """All mutants of one file that Python can compile."""
    source = path.read_text("utf-8")
    name = path.relative_to(package).as_posix()
    tree = ast.parse(source)
    places = dict(places_of(tree, name))
    for node in nodes(tree):
        for other in changed(node):
            place = getattr(node, "test", node)
            after = ast.unparse(other)
            text = f"({after})" if isinstance(other, ast.expr) else after
            mutant = replaced(source, place, text)
            compile(mutant, str(path), "exec")
            yield Mutant(
                name,
                place.lineno,
                place.col_offset + 1,
                ast.unparse(place),
                after,
                places[node],
                mutant,
            )


def everything(package: Path, rooms: Sequence[str]) -> list[Mutant]:
    """All mutants of files and folders of the package."""
    files = [
        file
        for room in rooms
        for file in (
            [package / room] if room.endswith(".py") else sorted((package / room).rglob("*.py"))
        )
    ]
    return [mutant for file in files for mutant in mutants_of(package, file)]


def draw(mutants: Sequence[Mutant], number: int, seed: int) -> list[Mutant]:
    """Mutants of a package, each as likely as any."""
    return random.Random(seed).sample(mutants, number)
