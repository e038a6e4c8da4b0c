"""A translation step by step."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bahdanau_tf.plotting.paper import END, STYLES, labels, new_figure, save, set_fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Gate(Protocol):
    """As `bahdanau_tf.tracing.Gate`."""

    @property
    def mean(self) -> float: ...


class Candidate(Protocol):
    """As `bahdanau_tf.tracing.Candidate`."""

    @property
    def token(self) -> str: ...

    @property
    def probability(self) -> float: ...


class Step(Protocol):
    """As `bahdanau_tf.tracing.Step`."""

    @property
    def token(self) -> str: ...

    @property
    def logit(self) -> float: ...

    @property
    def candidates(self) -> Sequence[Candidate]: ...

    @property
    def energies(self) -> Sequence[float] | None: ...

    @property
    def weights(self) -> Sequence[float] | None: ...

    @property
    def context_norm(self) -> float | None: ...

    @property
    def gates(self) -> Mapping[str, Gate]: ...

    @property
    def contributions(self) -> object | None: ...


class Trace(Protocol):
    """As `bahdanau_tf.tracing.Trace`."""

    @property
    def source_tokens(self) -> Sequence[str]: ...

    @property
    def gate_convention(self) -> str: ...

    @property
    def steps(self) -> Sequence[Step]: ...


TERMS = ("state", "previous", "context", "bias")
_HATCHES = ("", "//", "xx", "..")  # differ in black and white
_LONGEST = 10  # number of characters shown of a candidate
_SHOWN = 3  # number of candidates
_ROW = 0.34  # inches of a target word
_COLUMN = 0.28  # of a source word
_WIDEST = 10.0  # inches of a row of panels: a notebook shows it in its full size

Panel = tuple[float, Callable[["Axes"], None]]


def plot_trace(trace: Trace, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draws a translation step by step, with a line for each target word.

    The panels: weights and energies, with a column for each source token as in `plot_alignment`;
    the most probable words; what state, previous word, context and biases add to the logit of
    the chosen word; the means of the gates; the norm of the context. Panels for which the model
    has no values are left out. They stand in rows of at most 10 inches; only a panel of a long
    sentence is wider.

    Args:
        trace: `bahdanau_tf.tracing.Trace`.
        path: File to write; its extension sets the format, PNG, PDF or SVG.

    Returns:
        The figure.

    Raises:
        ValueError: The trace has no steps.
        ImportError: matplotlib is not installed.
    """
    if not trace.steps:
        raise ValueError("plot_trace: the trace has no steps, wanted one or more")
    rows = _in_rows(_panels(trace))
    width = max(map(_width, rows))
    height = len(rows) * (_ROW * len(trace.steps) + 2.2)
    figure = new_figure("plot_trace", min(width, 60.0), min(height, 60.0))
    tokens = labels(step.token for step in trace.steps)
    for part, row in zip(figure.subfigures(len(rows), squeeze=False)[:, 0], rows, strict=True):
        widths = [panel_width for panel_width, _ in row]
        columns = part.subplots(ncols=len(row), sharey=True, squeeze=False, width_ratios=widths)[0]
        for axes, (_, draw) in zip(columns, row, strict=True):
            axes.tick_params(axis="y", length=0)
            draw(axes)
        columns[0].set_yticks(range(len(tokens)), tokens)
        columns[0].set_ylim(len(tokens) - 0.5, -0.5)
        for axes in columns:
            set_fonts(axes)
    save(figure, path)
    return figure


def _in_rows(panels: Sequence[Panel]) -> list[list[Panel]]:
    """Fills rows with panels, from the top; each has one or more."""
    rows: list[list[Panel]] = []
    for panel in panels:
        if rows and _width([*rows[-1], panel]) <= _WIDEST:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return rows


def _width(row: Sequence[Panel]) -> float:
    """Inches of a row of panels, with the target words at its left."""
    return sum(width for width, _ in row) + 0.3 * len(row) + 0.8


def _panels(trace: Trace) -> list[Panel]:
    """Width in inches and drawing of each panel, in their order."""
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
    return [(width, partial(draw, trace)) for width, is_shown, draw in panels if is_shown]


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
    axes.set_xticks(range(values.shape[1]), [*labels(trace.source_tokens), END], rotation=90)
    _title(
        axes,
        "Weights α of the source\n(black 0, white 1)"
        if name == "weights"
        else f"Energies e, less the largest\nof the step (black {least:.1f}, white 0)",
    )


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
    _title(axes, "The most probable words\n(bold: chosen)")


def _draw_contributions(trace: Trace, axes: Axes) -> None:
    """Draws bars side by side: terms of both signs cannot be stacked."""
    steps = trace.steps
    places = np.arange(len(steps))
    for number, (term, hatch) in enumerate(zip(TERMS, _HATCHES, strict=True)):
        axes.barh(
            places + 0.18 * (number - 1.5),
            [getattr(step.contributions, term) for step in steps],
            0.18,
            label=term,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
    axes.plot([step.logit for step in steps], places, "k|", markersize=16, label="sum")
    axes.axvline(0.0, color="black", linewidth=0.5)
    _legend(axes)
    _title(axes, "Terms of the chosen\nword's logit")


def _draw_gates(trace: Trace, axes: Axes) -> None:
    names = {name: None for step in trace.steps for name in step.gates}
    for number, name in enumerate(names):
        means = [step.gates[name].mean if name in step.gates else np.nan for step in trace.steps]
        axes.plot(means, range(len(means)), STYLES[number % len(STYLES)], label=name)
    axes.set_xlim(0.0, 1.0)
    lines = trace.gate_convention.split("\n")
    _legend(axes, "\n".join(textwrap.fill(line, 32) for line in lines))
    _title(axes, "Gates, mean\nof their units")


def _draw_context(trace: Trace, axes: Axes) -> None:
    norms = np.array([step.context_norm for step in trace.steps], np.float64)
    axes.plot(norms, range(len(norms)), "ko-", markersize=4)
    axes.set_xlim(left=0.0)
    _title(axes, "Norm of the\ncontext c")


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
