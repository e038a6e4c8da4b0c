"""Texts are plain English: the words of CONTRIBUTING.md, "Words", do not occur."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
# Pages, and folders of the package, that still have to be rewritten in plain English.
NOT_YET = (
    "benchmarks/README.md",
    "docs/results.md",
    *(
        f"bahdanau_tf/{room}"
        for room in (
            "commands",
            "corpora",
            "evaluation",
            "flags",
            "models",
            "optimizers",
            "options",
            "plotting",
            "report",
            "search",
            "system",
            "training",
        )
    ),
)
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
        name
        for pattern in PAGES
        for path in REPOSITORY.glob(pattern)
        if not (name := path.relative_to(REPOSITORY).as_posix()).startswith(NOT_YET)
    }
)
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
