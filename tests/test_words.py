"""Texts are plain English: the words of CONTRIBUTING.md, "Words", do not occur."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = (
    "*.md",
    "docs/**/*.md",
    "docs/conf.py",
    "*/README.md",
    "bahdanau_tf/**/*.py",
    "export/*.py",
)
CLEAN = sorted(
    {
        path.relative_to(REPOSITORY).as_posix()
        for pattern in PAGES
        for path in REPOSITORY.glob(pattern)
    }
)
NAMELESS = {"found", "given", "known", "one", "told"}
FOLDERS = ("bahdanau_tf", "benchmarks", "export", "tests")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
FINE = re.compile(r"\bthere (is|are)\s+no\b|\bblank\s+lines?\b|\bno\s+longer\b", re.IGNORECASE)


def avoided() -> list[str]:
    """Patterns of the words in the left column of the table in CONTRIBUTING.md."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", page.split("\n## Words\n")[1], re.MULTILINE)
    return [rf"\b{word}\b".replace(" ", r"\s+") for row in rows[1:] for word in row.split(", ")]


def prose(path: Path) -> str:
    """A page without code, or the comments and strings of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        kinds = (tokenize.COMMENT, tokenize.STRING)
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        text = "\n".join(token.string for token in tokens if token.type in kinds)
    elif path.name == "CONTRIBUTING.md":
        before, _, after = text.partition("\n## Words\n")
        text = before + after.partition("\n## ")[2]
    return FINE.sub("", CODE.sub("", text))


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_text_stays_in_plain_english(name: str) -> None:
    text = prose(REPOSITORY / name)
    assert not [
        " ".join(text[max(match.start() - 30, 0) : match.end() + 30].split())
        for pattern in avoided()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_the_table_is_read() -> None:
    text = "It tells you also\nwhere a blank stands."
    assert sum(len(re.findall(pattern, text)) for pattern in avoided()) == 3


def named(source: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each variable, attribute, argument and function of a module.

    A field of a class is read with its owner, as in `coverage.known`, and may have any name.
    """
    tree = ast.parse(source)
    fields = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        if id(node) in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield node.lineno, name


@pytest.mark.parametrize("folder", FOLDERS)
def test_variables_are_called_after_what_they_hold(folder: str) -> None:
    assert not [
        f"{path.relative_to(REPOSITORY)}, line {line}: {name}"
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for line, name in named(path.read_text(encoding="utf-8"))
        if name in NAMELESS
    ]


def test_every_kind_of_name_is_read() -> None:
    source = "def told(given):\n    with x as self.found:\n        [one for one in given]\n"
    source += "class Coverage:\n    known: int\n"
    assert NAMELESS & {name for _, name in named(source)} == NAMELESS - {"known"}
