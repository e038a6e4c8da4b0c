"""Equations as docstrings write them, in plain Unicode, become MathML.

    h~_t = tanh(W x_t + U [r_t ∘ h_{t-1}])      (A.1.1)

`_` and `^` begin a subscript and a superscript: letters and digits, or a group
in brackets. Letters without a bracket are indices, e_ij, and a capital among
them has one of its own, h_Tx. ~, → and ← right after a letter are over it.
Names of several letters are functions. After a comma and two blanks another
equation follows, after two blanks a remark.

Browsers read MathML as it is: a page needs no script for it and no network.
"""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

RELATION = re.compile(r" +([=←∝]) +")
NAME = re.compile(r"[A-Za-z]{2,}")
ATOM = re.compile(rf"√\(([^()]*)\)|{NAME.pattern}|[\d.]*\d|\.\.|.")
SCRIPT = re.compile(r"([_^])(?:\{([^}]*)\}|\(([^)]*)\)|(<?[^\W_]+))|([²ᵀ'])")
POWERS = {"²": "2", "ᵀ": "T", "'": "′"}
SIGNS = {"-": "−", "..": "…", "Σ": "∑", "Π": "∏"}
WIDE = "\u2003"  # between two equations
FUNCTION_SPACE = '<mspace width="0.17em"/>'


def visit_inline(page: HTML5Translator, node: nodes.math) -> None:
    """Writes an expression inside a sentence."""
    page.body.append(f"<math>{expression(node.astext())}</math>")
    raise nodes.SkipNode


def visit_block(page: HTML5Translator, node: nodes.math_block) -> None:
    """Writes equations, one a line, the signs of relation below each other."""
    rows = "".join(map(_row, node.astext().splitlines()))
    page.body.append(f'<div class="equations">{rows}</div>')
    raise nodes.SkipNode


def _row(line: str) -> str:
    line = re.sub(", {2,}", "," + WIDE, RELATION.sub(r" \1 ", line.strip()))
    equation, _, remark = line.partition("  ")
    relation = RELATION.search(equation)
    cut = relation.start() if relation else 0
    left, right = expression(equation[:cut]), expression(equation[cut:])
    remark = re.sub("`(.+?)`", r"<code>\1</code>", escape(remark.strip()))
    return (
        f'<math display="block">{left}</math>'
        f'<math display="block">{right}</math><span>{remark}</span>'
    )


def expression(text: str) -> str:
    """The MathML of an expression."""
    parts = []
    text = text.strip(" ").replace(" | ", " ∣ ")  # "given", not a bar
    while text:
        name = NAME.match(text)
        part, rest = _term(text)
        text = rest.lstrip(" ")
        parts.append(part)
        if text != rest and (name or NAME.match(text)):
            parts.append(FUNCTION_SPACE)
    return f"<mrow>{''.join(parts)}</mrow>"


def _term(text: str) -> tuple[str, str]:
    """The MathML of an atom with its scripts, and the text after them."""
    found = ATOM.match(text)
    base, text = _atom(found), text[found.end() :]
    if base.startswith("<mi>") and text[:1] in ("~", "→", "←"):
        accent = f'<mo stretchy="false">{text[0]}</mo>'
        base, text = f'<mover accent="true">{base}{accent}</mover>', text[1:]
    scripts = {"_": "", "^": ""}
    while found := SCRIPT.match(text):
        kind, *groups, bare, power = found.groups()
        script = next(filter(None, groups), None) or _indices(bare or "")
        scripts[kind or "^"] += expression(POWERS.get(power, script))
        text = text[found.end() :]
    below, above = scripts.values()
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>", text
    if below:
        kind = "munder" if "∑" in base or "∏" in base else "msub"
        return f"<{kind}>{base}{below}</{kind}>", text
    return (f"<msup>{base}{above}</msup>" if above else base), text


def _atom(found: re.Match[str]) -> str:
    if found[1]:
        return f"<msqrt>{expression(found[1])}</msqrt>"
    text = found[0]
    if text == WIDE:
        return '<mspace width="1em"/>'
    if text[-1].isdigit():
        return f"<mn>{text}</mn>"
    if text in SIGNS or not text.isalpha():
        # Brackets of one size, as in a line of text.
        sign = escape(SIGNS.get(text, text))
        space = ' lspace="0" rspace="0"' if sign == "|" else ""
        return f'<mo stretchy="false"{space}>{sign}</mo>'
    return f"<mi>{text}</mi>"


def _indices(text: str) -> str:
    """Letters apart, ij as i j; the one after a capital is below it."""
    below = re.sub("([A-Z])([a-z])", r"\1_\2", text)
    return re.sub("(?<=[a-z])(?=[a-z])", " ", below)


def setup(app: Sphinx) -> None:
    """Adds what is here to Sphinx, as `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
