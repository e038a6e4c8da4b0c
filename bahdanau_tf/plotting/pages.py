"""Traces and trees of beam search as HTML that a notebook draws.

Style sheets and no script, as in the view of an alignment. A step is chosen by radio buttons,
so that taps, clicks and arrow keys work; `:has` shows what belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from bahdanau_tf.plotting.language import said
from bahdanau_tf.plotting.paper import END, labels

if TYPE_CHECKING:
    from bahdanau_tf.plotting.steps import BeamTree, Continuation, Step, Trace

_LEAST_WEIGHT = 0.05  # smaller ones get no line
_ROOT, _TREE = ".bahdanau-tf-trace", ".bahdanau-tf-tree"


class Drawn(str):
    """HTML that a notebook draws where a cell ends with it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def view_traces(traces: Mapping[str, Trace]) -> str:
    """Draws traces side by side, step by step, such as those of one sentence by two models.

    For the chosen step it shows the row of attention beside the source words, lines between the
    two sentences, the most probable words and the gates. The translation grows with the steps.

    Args:
        traces: The traces by the headings above them; "" for none.

    Returns:
        HTML for any page; it loads nothing from elsewhere.

    Example:

    ```python
    view_traces({"RNNencdec": trace(old, sentence), "RNNsearch": trace(new, sentence)})
    ```
    """
    longest = max((trace.steps for trace in traces.values()), key=len, default=[])
    tokens = [step.token for step in longest]
    names = labels(tokens) if len(traces) == 1 else [str(i + 1) for i in range(len(tokens))]
    buttons = "".join(
        f'<label><input type="radio" name="step" value="{i}"{"" if i else " checked"}>'
        f" <bdi>{escape(name)}</bdi></label>"
        for i, name in enumerate(names)
    )
    sections = (_section(name, trace) for name, trace in traces.items())
    # Without the button, Enter would send the form and load the page again.
    return Drawn(
        f'<form class="{_ROOT[1:]}"><style>{_style()}{_rules(len(names))}</style>'
        f"<button disabled hidden></button><fieldset>"
        f"<legend>{said('Choose a step; the arrow keys move.')}</legend>{buttons}</fieldset>"
        f"<div>{''.join(sections)}</div></form>"
    )


def _style() -> str:
    return files("bahdanau_tf.plotting").joinpath("pages.css").read_text("utf-8")


def _rules(count: int) -> str:
    """What the choice of each step shows."""
    return "".join(
        f'{_ROOT}:has([value="{i}"]:checked){{& [data-weights] li{{--p:var(--p{i},0)}}'
        f'& line[data-step="{i}"]{{opacity:1}}& div[data-step="{i}"]{{display:block}}'
        f'& [data-side="target"] li:nth-child({i + 1}){{font-weight:bold}}'
        f'& [data-side="target"] li:nth-child(n+{i + 2}){{opacity:.25}}}}\n'
        for i in range(count)
    )


def _section(name: str, trace: Trace) -> str:
    """A trace: both sentences, and what is shown of each step."""
    rows = [step.weights for step in trace.steps if step.weights is not None]
    sources = [*labels(trace.source_tokens), END]
    shares = [
        ";".join(f"--p{i}:{row[j]:.0%}".rstrip("%") for i, row in enumerate(rows))
        for j in range(len(sources))
    ]
    lines = "".join(
        f'<line data-step="{i}" x1="0" y1="{i + 0.5}" x2="1" y2="{j + 0.5}" style="--w:{x:.2f}"/>'
        for i, row in enumerate(rows)
        for j, x in enumerate(row)
        if x >= _LEAST_WEIGHT
    )
    count = max(len(sources), len(trace.steps))
    targets = _items((token, "", "") for token in labels(step.token for step in trace.steps))
    return (
        f"<section>{f'<h4>{escape(name)}</h4>' if name else ''}<div>"
        f'<ol data-side="target">{targets}</ol>'
        f'<svg viewBox="0 0 1 {count}" preserveAspectRatio="none" aria-hidden="true" '
        f'style="height:{1.75 * count}rem">{lines}</svg>'
        f"<ol{' data-weights' if rows else ''}>"
        f"{_items((*pair, '') for pair in zip(sources, shares, strict=True))}</ol></div>"
        f"{''.join(_step(i, step, trace) for i, step in enumerate(trace.steps))}</section>"
    )


def _items(rows: Iterable[tuple[str, str, str]]) -> str:
    """Rows of a list: a word, its style, and a number beside it."""
    return "".join(
        f'<li style="{style}"><bdi>{escape(word)}</bdi>{number}</li>'
        for word, style, number in rows
    )


def _step(number: int, step: Step, trace: Trace) -> str:
    """The candidates and the gates of a step."""
    words = [(x.token, x.probability, f"{x.probability:.1%}") for x in step.candidates]
    gates = [(name, gate.mean, f"{gate.mean:.2f}") for name, gate in step.gates.items()]
    lists = "".join(
        f"<h5>{said(heading)}</h5><ol>"
        f"{_items((name, f'--p:{100 * share:.1f}', text) for name, share, text in rows)}</ol>"
        for heading, rows in {
            "The most probable words": words,
            "Gates, mean of their units": gates,
        }.items()
        if rows
    )
    note = f"<small>{escape(trace.gate_convention)}</small>" if gates else ""
    return f'<div data-step="{number}">{lists}{note}</div>'


def tree_html(tree: BeamTree) -> Drawn:
    """Draws a tree; `BeamTree.view` describes it."""
    rows = max(map(len, tree.steps), default=1)
    lines, nodes = [], []
    for i, step in enumerate(tree.steps):
        for j, x in enumerate(step):
            mark = " data-best" if x.is_best else " data-cut" if x.cut else ""
            if x.parent >= 0:
                lines.append(
                    f'<line x1="{i - 0.1}" y1="{x.parent + 0.5}" x2="{i + 0.1}" y2="{j + 0.5}"'
                    f"{mark}/>"
                )
            nodes.append(
                f'<p style="grid-area:{j + 1}/{i + 1}"{mark}><bdi>{escape(x.token)}</bdi>'
                f"<small>{_reason(x, tree)}</small></p>"
            )
    columns = len(tree.steps)
    return Drawn(
        f'<section class="{_TREE[1:]}" tabindex="0"><style>{_style()}</style>'
        f"<h4>{said('Beam search with {} hypotheses').format(tree.beam_size)}</h4>"
        f'<div style="width:{10 * columns}rem;grid-template-columns:repeat({columns or 1},10rem)">'
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(lines)}</svg>{''.join(nodes)}</div></section>"
    )


def _reason(x: Continuation, tree: BeamTree) -> str:
    """The log-probability, or the score of a finished hypothesis, and what became of it."""
    value = f"log p {x.log_prob:.2f}"
    if x.score is not None:
        value += f"; {said('Score')} {x.score:.2f}"
    reason = x.cut or ("the translation" if x.score is not None else "")
    return f"{value}<br>{said(reason).format(tree.beam_size)}" if reason else value
