"""The site's reference has every public name; equations keep what they say.

The site itself is built by `make site`, where a warning is an error: a page that no contents name,
a link without a target, a docstring that is not understood.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

import pytest
from notebooks import REPOSITORY

import bahdanau_tf
from bahdanau_tf import evaluation

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
ENTRY = re.compile(r"^\.\. (currentmodule|autoclass|autofunction|py:data):: (\S+)$")
IMPORT = re.compile(r"^from (bahdanau_tf[\w.]*) import (\w+)$", re.MULTILINE)


@cache
def reference() -> dict[str, Any]:
    """What the pages of the reference document, by its full name."""
    entries: list[tuple[str, Any]] = []
    for page in sorted((DOCS / "reference").glob("*.md")):
        module = "bahdanau_tf"
        for line in page.read_text(encoding="utf-8").splitlines():
            if entry := ENTRY.match(line):
                kind, name = entry.groups()
                if kind == "currentmodule":
                    module = name
                    continue
                value = getattr(import_module(module), name)
                assert inspect.isclass(value) == (kind == "autoclass"), name
                entries.append((f"{module}.{name}", value))
    assert len(dict(entries)) == len(entries), "a name is documented twice"
    return dict(entries)


@pytest.mark.parametrize(
    ("module", "left_out"),
    # A name of a type has no docstring.
    [(bahdanau_tf, set()), (evaluation, {"Links"})],
    ids=["bahdanau_tf", "evaluation"],
)
def test_reference_has_every_public_name(module, left_out):
    names = [n for n, x in vars(module).items() if not (n.startswith("_") or inspect.ismodule(x))]
    wanted = {f"{module.__name__}.{name}" for name in getattr(module, "__all__", names)}
    missing = wanted - {*reference()}
    assert missing == {f"{module.__name__}.{name}" for name in left_out}, "a page of docs/reference"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_reference_has_what_pages_import(page):
    documented = [*reference().values()]
    text = page.read_text(encoding="utf-8")
    for module, name in IMPORT.findall(text):
        value = getattr(import_module(module), name, None)
        if value is not None and not inspect.ismodule(value):
            assert value in documented, name


@pytest.fixture(scope="module")
def equations() -> Iterator[Any]:
    """docs/equations.py and docs/docstrings.py."""
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(DOCS))
    yield import_module("equations"), import_module("docstrings")
    sys.path.remove(str(DOCS))


def tree(mathml: str) -> ElementTree.Element:
    return ElementTree.fromstring(mathml)


def test_an_equation_as_mathml(equations):
    def first(text: str) -> ElementTree.Element:
        return tree(equations[0].expression(text))[0]

    assert first("h~_{t-1}").tag == "msub"
    letter, index = first("h~_{t-1}")
    assert letter.tag == "mover"
    assert [part.text for part in letter] == ["h", "~"]
    assert "".join(index.itertext()) == "t−1"
    assert [part.text for part in first("α_ij")[1]] == ["i", "j"]
    assert first("h^2_Tx").tag == "msubsup"
    assert first("h^2_Tx")[1].find("msub") is not None
    assert first("Σ_k exp(x)").tag == "munder"
    assert tree(equations[0].expression("Σ_k exp(x)")).find("mi").text == "exp"
    assert first("√(E[g²] + ε)").tag == "msqrt"
    assert first("√(E[g²] + ε)").find(".//msup") is not None


def test_equations_of_docstrings_keep_every_sign(equations):
    """Rendered, they have the letters, digits and signs of the source."""
    as_mathml, as_markup = equations
    count = 0
    for name, value in reference().items():
        lines = inspect.getdoc(value).splitlines()
        before = [*lines]
        as_markup.convert(None, "", name, value, None, lines)
        start = 0
        while ".. math::" in lines[start:]:
            start = lines.index(".. math::", start) + 2
            for line in lines[start:]:
                if not line.startswith("    "):
                    break
                assert line in before
                row = tree(f"<div>{as_mathml._row(line)}</div>")
                assert signs("".join(row.itertext())) == signs(line), name
                count += 1
    assert count > 30


@pytest.mark.parametrize(
    ("docstring", "markup"),
    [
        (["W_a", "of"], ["\\ :math:`W_a`", "of"]),
        (["[B, T_x]", ""], ["[B, \\ :math:`T_x`\\ ]", ""]),
        (["`s_1`, y_true"], ["`s_1`, y_true"]),  # code, and no variable
        (["|y|"], ["\\|y\\|"]),  # no name of a substitution
        (["Args:", "    m: n."], ["Args:", "    m: n\\."]),  # no list
        (
            ["Is", "", "    a = b", "    b = c", "", "so"],
            ["Is", "", ".. math::", "", "    a = b", "    b = c", "", "so"],
        ),
        (
            ["Returns:", "    n", "", "    more"],  # is no equation
            ["Returns:", "    n", "", "    more"],
        ),
        (
            ["Example:", "", "```python", "s_1 = 1", "```"],
            ["Example:", "", "    .. code-block:: python", ""] + ["        s_1 = 1", ""],
        ),
    ],
)
def test_docstrings_as_markup(docstring, markup, equations):
    equations[1].convert(None, "", "", None, None, docstring)
    assert docstring == markup


def signs(text: str) -> str:
    """The signs of an equation without its markup."""
    for sign, same in ("−-", "∣|", "∑Σ", "∏Π", "′'"):
        text = text.replace(sign, same)
    text = text.replace("²", "2").replace("ᵀ", "T").replace("…", "..")
    # A superscript comes after the subscript, and its brackets are dropped.
    return "".join(sorted(re.sub(r"[\s_^{}()`√]", "", text)))
