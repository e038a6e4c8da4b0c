"""A translation step by step: the values of each step, their figure and their HTML.

The HTML has a style sheet and no script, as the view of an alignment. A step is chosen by radio
buttons, so that taps, clicks and arrow keys work; `:has` shows what belongs to it.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from bahdanau_tf.plotting.paper import (
    END,
    STYLES,
    Drawn,
    finished,
    heading,
    labels,
    new_figure,
    write_columns,
)
from bahdanau_tf.system.language import in_language, said

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Gate:
    """The values of a gate's n units, summarized.

    Attributes:
        mean: Their mean, from 0 (closed) to 1 (open).
        norm: Euclidean norm, at most √n.
    """

    mean: float
    norm: float


@dataclass(frozen=True)
class Candidate:
    """One of the most probable next words.

    Attributes:
        token: The word.
        probability: p(y_i | y_1 .. y_{i-1}, x).
    """

    token: str
    probability: float


@dataclass(frozen=True)
class Contributions:
    """The terms whose sum is a word's logit.

    A maxout unit outputs the larger of its two inputs, so only that input is split into terms.

    Attributes:
        state: Term of the decoder's state s; 0 if the readout does not use it.
        previous: Term of the previous word E y_{i-1}.
        context: Term of the context c_i.
        bias: Term of the biases of readout and word.
    """

    state: float = 0.0
    previous: float = 0.0
    context: float = 0.0
    bias: float = 0.0

    @property
    def total(self) -> float:
        """The word's logit."""
        return self.state + self.previous + self.context + self.bias


@dataclass(frozen=True)
class Step:
    """One target word.

    Attributes:
        token: The word y_i, or the end symbol.
        logit: Its logit.
        probability: p(y_i | y_1 .. y_{i-1}, x).
        candidates: The most probable words, best first.
        energies: e_ij of each source token and of the end symbol; None without attention, or if
            the attention has a `call` of its own.
        weights: α_ij of the same; None without attention.
        context_norm: ‖c_i‖; None for a model without a context.
        gates: The gates of the cell's update in this step, by name; for a deep cell the name begins
            with the layer, from the bottom. In the step order "original" the update with y_{i-1}
            comes before attention, and the first step has no update. A `ConditionalDecoder` has two
            updates: its names begin with "word" and "context". A plain recurrence has no gates.
        contributions: The terms of the logit; None for a readout that is neither `MaxoutReadout`
            nor `LinearReadout` itself.
    """

    token: str
    logit: float
    probability: float
    candidates: list[Candidate]
    energies: list[float] | None
    weights: list[float] | None
    context_norm: float | None
    gates: dict[str, Gate]
    contributions: Contributions | None


@dataclass(frozen=True)
class Trace:
    """All steps of one translation.

    It is plain data: `json.dumps(dataclasses.asdict(trace))`.

    Attributes:
        source: The sentence.
        source_tokens: Its tokens in the order of the text, without the end symbol. Energies and
            weights have one more entry, for that symbol.
        step_order: "original", "appendix" or "main-text", see `AttentionDecoder`, or
            "conditional", see `ConditionalDecoder`.
        gate_convention: The meaning of the gates, as an equation from s to s', since gates of
            the same name differ between cells; "" without gates. If the layers of a deep cell
            differ, a line for each.
        steps: One for each target word and for the end symbol.
        opens_at: The step that its view shows first: the first one whose attention was set, or 0.
    """

    source: str
    source_tokens: list[str]
    step_order: str
    gate_convention: str
    steps: list[Step] = field(default_factory=list)
    opens_at: int = 0

    def view(self, language: str | None = None) -> str:
        """The steps one by one, as HTML that a notebook draws; see `view_traces`."""
        return view_traces({"": self}, language)

    _repr_html_ = view


@dataclass(frozen=True)
class Continuation:
    """A word that beam search considered after a hypothesis.

    Attributes:
        token: The word, or the end symbol.
        parent: The place of the hypothesis in the step before; -1 in the first step.
        log_prob: log p of the hypothesis with this word.
        score: Its score with the length penalty if the word is the end symbol, else None.
        cut: Why search did not continue it; "" for those that lead to another and for the best.
        is_best: Whether it is part of the translation.
    """

    token: str
    parent: int
    log_prob: float
    score: float | None
    cut: str
    is_best: bool = False


@dataclass(frozen=True)
class BeamTree:
    """What beam search kept and cut; plain data as `Trace`.

    Attributes:
        source: The sentence.
        beam_size: K.
        steps: The continuations of each step, best first: at most K that were kept, then some of
            those that were cut.
    """

    source: str
    beam_size: int
    steps: list[list[Continuation]] = field(default_factory=list)

    def view(self, language: str | None = None) -> str:
        """As HTML: a column for each step, the translation bold, what was cut dashed.

        `language` is as for `view_traces`.
        """
        with in_language("BeamTree.view", language):
            return _tree_html(self)

    _repr_html_ = view


TERMS = ("state", "previous", "context", "bias")
_HATCHES = ("", "//", "xx", "..")  # differ in black and white
_LONGEST = 10  # number of characters shown of a candidate
_SHOWN = 3  # number of candidates
_ROW = 0.34  # inches of a target word
_COLUMN = 0.28  # of a source word
_WIDEST = 10.0  # inches of a row of panels: a notebook shows it in its full size

Panel = tuple[float, Callable[["Axes"], None]]


def plot_trace(
    trace: Trace, path: str | os.PathLike[str] | None = None, *, language: str | None = None
) -> Figure:
    """Draws a translation step by step, with a line for each target word.

    The panels: weights and energies, with a column for each source token as in `plot_alignment`;
    the most probable words; what state, previous word, context and biases add to the logit of the
    chosen word; the means of the gates; the norm of the context. Panels for which the model has no
    values are left out. They are laid out in rows of at most 10 inches; only the panel of a long
    sentence is wider.

    Args:
        trace: from `bahdanau_tf.trace`.
        path: File to write; its extension sets the format, PNG, PDF or SVG.
        language: Of the titles, as for `view_traces`.

    Returns:
        The figure.

    Raises:
        ValueError: The trace has no steps, or there are no texts in this language.
        ImportError: matplotlib is not installed.
    """
    if not trace.steps:
        raise ValueError("plot_trace: the trace has no steps, wanted one or more")
    rows = _rows(trace)
    width = max(map(_width, rows))
    height = len(rows) * (_ROW * len(trace.steps) + 2.2)
    figure = new_figure("plot_trace", min(width, 60.0), min(height, 60.0))
    tokens = labels(step.token for step in trace.steps)
    for part, row in zip(figure.subfigures(len(rows), squeeze=False)[:, 0], rows, strict=True):
        widths = [panel_width for panel_width, _ in row]
        columns = part.subplots(ncols=len(row), sharey=True, squeeze=False, width_ratios=widths)[0]
        for axes, (_, draw) in zip(columns, row, strict=True):
            axes.tick_params(axis="y", length=0)
            with in_language("plot_trace", language):
                draw(axes)
        columns[0].set_yticks(range(len(tokens)), tokens)
        columns[0].set_ylim(len(tokens) - 0.5, -0.5)
    return finished(figure, path)


def _width(row: Sequence[Panel]) -> float:
    """Inches of a row of panels, with the target words at its left."""
    return sum(width for width, _ in row) + 0.3 * len(row) + 0.8


def _rows(trace: Trace) -> list[list[Panel]]:
    """Width in inches and drawing of each panel, in rows that are filled from the top."""
    first = trace.steps[0]
    wide = max(_COLUMN * len(first.weights or ()), 1.5)
    panels = (
        (wide, first.weights is not None, partial(_draw_source, "weights")),
        (wide, first.energies is not None, partial(_draw_source, "energies")),
        (0.8 * _SHOWN, True, _draw_words),
        (2.4, first.contributions is not None, _draw_contributions),
        (2.0, any(step.gates for step in trace.steps), _draw_gates),
        (1.0, first.context_norm is not None, _draw_context),
    )
    rows: list[list[Panel]] = [[]]
    for panel in [(width, partial(draw, trace)) for width, is_shown, draw in panels if is_shown]:
        if rows[-1] and _width([*rows[-1], panel]) > _WIDEST:
            rows.append([])
        rows[-1].append(panel)
    return rows


def _draw_source(name: str, trace: Trace, axes: Axes) -> None:
    """Draws weights, 0 black to 1 white, or energies minus their maximum.

    A constant added to all energies of a step does not change the weights.
    """
    values = np.array([getattr(step, name) for step in trace.steps])
    least, largest = 0.0, 1.0
    if name == "energies":
        values -= values.max(1, keepdims=True)
        least, largest = values.min(), 0.0
    axes.imshow(values, cmap="gray", aspect="auto", vmin=least, vmax=largest)
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0)
    write_columns(axes, [*labels(trace.source_tokens), END])
    weights = "Weights α of the source\n(black 0, white 1)"
    energies = "Energies e, less the largest\nof the step (black {:.1f}, white 0)"
    _title(axes, heading(weights if name == "weights" else energies).format(least))


def _draw_words(trace: Trace, axes: Axes) -> None:
    """Draws the most probable words; the chosen one is bold."""
    for row, step in enumerate(trace.steps):
        for column, candidate in enumerate(step.candidates[:_SHOWN]):
            token = candidate.token
            if len(token) > _LONGEST:
                token = token[: _LONGEST - 1] + "…"
            axes.text(
                column,
                row,
                f"{token}\n{candidate.probability:.1%}",
                ha="center",
                va="center",
                fontsize="small",
                fontweight="bold" if candidate.token == step.token else "normal",
            )
    axes.set_xlim(-0.5, _SHOWN - 0.5)
    axes.set_xticks(range(_SHOWN), [str(i + 1) for i in range(_SHOWN)])
    _title(axes, heading("The most probable words\n(bold: chosen)"))


def _draw_contributions(trace: Trace, axes: Axes) -> None:
    """Draws bars side by side: terms of both signs cannot be stacked."""
    steps = trace.steps
    places = np.arange(len(steps))
    for number, (term, hatch) in enumerate(zip(TERMS, _HATCHES, strict=True)):
        axes.barh(
            places + 0.18 * (number - 1.5),
            [getattr(step.contributions, term) for step in steps],
            0.18,
            label=heading(term),
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
    axes.plot([step.logit for step in steps], places, "k|", markersize=16, label=heading("sum"))
    axes.axvline(0.0, color="black", linewidth=0.5)
    _legend(axes)
    _title(axes, heading("Terms of the chosen\nword's logit"))


def _draw_gates(trace: Trace, axes: Axes) -> None:
    names = {name: None for step in trace.steps for name in step.gates}
    for number, name in enumerate(names):
        means = [step.gates[name].mean if name in step.gates else np.nan for step in trace.steps]
        axes.plot(means, range(len(means)), STYLES[number % len(STYLES)], label=name)
    axes.set_xlim(0.0, 1.0)
    lines = trace.gate_convention.split("\n")
    _legend(axes, "\n".join(textwrap.fill(line, 32) for line in lines))
    _title(axes, heading("Gates, mean\nof their units"))


def _draw_context(trace: Trace, axes: Axes) -> None:
    norms = np.array([step.context_norm for step in trace.steps], np.float64)
    axes.plot(norms, range(len(norms)), "ko-", markersize=4)
    axes.set_xlim(left=0.0)
    _title(axes, heading("Norm of the\ncontext c"))


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize="medium")


def _legend(axes: Axes, title: str = "") -> None:
    """Writes a legend below the panel: its lines may be anywhere in it."""
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, -0.08),
        title=title or None,
        title_fontsize="small",
        fontsize="small",
        borderaxespad=0.0,
        markerscale=0.6,
    )


_LEAST_WEIGHT = 0.05  # smaller ones get no line
_ROOT, _TREE = ".bahdanau-tf-trace", ".bahdanau-tf-tree"


def view_traces(traces: Mapping[str, Trace], language: str | None = None) -> str:
    """Draws traces side by side, step by step, such as those of one sentence by two models.

    For the chosen step it shows the row of attention next to the source words, lines between the
    two sentences, the most probable words and the gates. The translation grows with the steps.

    Args:
        traces: The traces by the headings above them; "" for none.
        language: Language of the headings and hints, "en", "ko" or "ja"; None for that of
            `bahdanau_tf.set_language`.

    Returns:
        HTML for any page; it loads nothing from elsewhere.

    Raises:
        ValueError: There are no texts in this language.

    Example:

    ```python
    view_traces({"RNNencdec": trace(old, sentence), "RNNsearch": trace(new, sentence)})
    ```
    """
    longest = max((trace.steps for trace in traces.values()), key=len, default=[])
    tokens = [step.token for step in longest]
    first = min(max((trace.opens_at for trace in traces.values()), default=0), len(tokens) - 1)
    names = labels(tokens) if len(traces) == 1 else [str(i + 1) for i in range(len(tokens))]
    buttons = "".join(
        f'<label><input type="radio" name="step" value="{i}"{" checked" * (i == first)}>'
        f" <bdi>{escape(name)}</bdi></label>"
        for i, name in enumerate(names)
    )
    with in_language("view_traces", language):
        hint = said("Choose a step; the arrow keys move.")
        sections = "".join(_section(name, trace) for name, trace in traces.items())
    # Without the button, Enter would send the form and load the page again.
    return Drawn(
        f'<form class="{_ROOT[1:]}"><style>{_style()}{_rules(len(names))}</style>'
        f"<button disabled hidden></button><fieldset><legend>{hint}</legend>{buttons}</fieldset>"
        f"<div>{sections}</div></form>"
    )


@cache
def _style() -> str:
    return files("bahdanau_tf.plotting").joinpath("steps.css").read_text("utf-8")


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


def _tree_html(tree: BeamTree) -> Drawn:
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
                f"<small>{_reason(x)}</small></p>"
            )
    columns = len(tree.steps)
    return Drawn(
        f'<section class="{_TREE[1:]}" tabindex="0"><style>{_style()}</style>'
        f"<h4>{said('Beam search, width {}').format(tree.beam_size)}</h4>"
        f'<div style="width:{10 * columns}rem;grid-template-columns:repeat({columns or 1},10rem)">'
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(lines)}</svg>{''.join(nodes)}</div></section>"
    )


def _reason(x: Continuation) -> str:
    """The log-probability, or the score of a finished hypothesis, and what became of it."""
    value = f"log p {x.log_prob:.2f}"
    if x.score is not None:
        value += f"; {said('Score')} {x.score:.2f}"
    reason = x.cut or ("the translation" if x.score is not None else "")
    return f"{value}<br>{said(reason)}" if reason else value
