"""A translation step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bahdanau_tf.plotting.canvas import new_figure
from bahdanau_tf.plotting.canvas import save
from bahdanau_tf.plotting.canvas import set_fonts
from bahdanau_tf.plotting.trace import Step
from bahdanau_tf.plotting.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TERMS = ("state", "previous", "context", "bias")
_HATCHES = ("", "//", "xx", "..")  # differ without colour, too
_STYLES = ("o-", "s--", "^:", "D-.", "v-", "x--")
_LONGEST = 10  # number of characters shown of a candidate
_SHOWN = 3  # number of candidates
_INCHES = 0.3  # height of a row of words

Panel = tuple[float, Callable[["Axes"], None]]


def plot_trace(
    trace: Trace, path: str | os.PathLike[str] | None = None
) -> Figure:
    """Draws a translation step by step, a column for each target word.

    Panels from the top: weights and energies of the source tokens; the most
    probable words; what state, previous word, context and biases add to the
    logit of the chosen word; the means of the gates; the norm of the context.
    Panels for which the model has no values are left out.

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
        raise ValueError(
            "plot_trace: the trace has no steps, wanted one or more"
        )
    panels = _panels(trace)
    heights = [height for height, _ in panels]
    width = 1.0 * len(trace.steps) + 4.0
    height = sum(heights) + 0.4 * len(panels) + 0.5
    figure = new_figure("plot_trace", min(width, 60.0), min(height, 60.0))
    rows = figure.subplots(
        len(panels), sharex=True, squeeze=False, height_ratios=heights
    )[:, 0]
    for axes, (_, draw) in zip(rows, panels, strict=True):
        axes.tick_params(axis="x", length=0)
        draw(axes)
    tokens = [step.token for step in trace.steps]
    rows[0].set_xticks(range(len(tokens)), tokens)
    rows[0].tick_params(axis="x", labeltop=True, labelbottom=False)
    for axes in rows:
        set_fonts(axes)
    save(figure, path)
    return figure


def _panels(trace: Trace) -> list[Panel]:
    """Height in inches and drawing of each panel, from the top."""
    steps = trace.steps
    panels: list[Panel] = []
    if steps[0].weights is not None:
        high = _INCHES * len(steps[0].weights)
        panels += [
            (high, lambda axes: _draw_source(axes, trace, "weights")),
            (high, lambda axes: _draw_source(axes, trace, "energies")),
        ]
    panels.append((_INCHES * 2 * _SHOWN, lambda axes: _draw_words(axes, steps)))
    if steps[0].contributions is not None:
        panels.append((2.0, lambda axes: _draw_contributions(axes, steps)))
    if any(step.gates for step in steps):
        panels.append((1.5, lambda axes: _draw_gates(axes, trace)))
    if steps[0].context_norm is not None:
        panels.append((1.0, lambda axes: _draw_context(axes, steps)))
    return panels


def _draw_source(axes: Axes, trace: Trace, name: str) -> None:
    """Draws weights, 0 black to 1 white, or energies minus their maximum.

    A constant added to all energies of a step does not change the weights.
    """
    values = np.array([getattr(step, name) for step in trace.steps]).T
    least, largest = 0.0, 1.0
    if name == "energies":
        values -= values.max(0)
        least, largest = values.min(), 0.0
    image = axes.imshow(
        values, cmap="gray", aspect="auto", vmin=least, vmax=largest
    )
    axes.figure.colorbar(image, ax=axes, pad=0.01, shrink=0.9)
    axes.set_yticks(range(len(values)), [*trace.source_tokens, "<end>"])
    axes.set_title(
        "Weights α of the source"
        if name == "weights"
        else "Energies e, less the largest of the step",
        loc="left",
        fontsize="medium",
    )


def _draw_words(axes: Axes, steps: Sequence[Step]) -> None:
    """Draws the most probable words; the chosen one is bold."""
    for column, step in enumerate(steps):
        for row, one in enumerate(step.candidates[:_SHOWN]):
            token = one.token
            if len(token) > _LONGEST:
                token = token[: _LONGEST - 1] + "…"
            axes.text(
                column,
                row,
                f"{token}\n{one.probability:.1%}",
                ha="center",
                va="center",
                fontsize="small",
                fontweight="bold" if one.token == step.token else "normal",
            )
    axes.set_ylim(_SHOWN - 0.5, -0.5)
    axes.set_yticks(range(_SHOWN), [str(i + 1) for i in range(_SHOWN)])
    axes.set_title(
        "The most probable words (bold: chosen)", loc="left", fontsize="medium"
    )


def _draw_contributions(axes: Axes, steps: Sequence[Step]) -> None:
    """Draws bars side by side: terms of both signs cannot be stacked."""
    places = np.arange(len(steps))
    for number, (term, hatch) in enumerate(zip(TERMS, _HATCHES, strict=True)):
        axes.bar(
            places + 0.18 * (number - 1.5),
            [getattr(step.contributions, term) for step in steps],
            0.18,
            label=term,
            hatch=hatch,
            edgecolor="black",
            linewidth=0.5,
        )
    axes.plot(
        places, [step.logit for step in steps], "k_", markersize=24, label="sum"
    )
    axes.axhline(0.0, color="black", linewidth=0.5)
    _legend(axes)
    axes.set_title(
        "Terms of the chosen word's logit",
        loc="left",
        fontsize="medium",
    )


def _draw_gates(axes: Axes, trace: Trace) -> None:
    names = {name: None for step in trace.steps for name in step.gates}
    for number, name in enumerate(names):
        means = [
            step.gates[name].mean if name in step.gates else np.nan
            for step in trace.steps
        ]
        axes.plot(means, _STYLES[number % len(_STYLES)], label=name)
    axes.set_ylim(0.0, 1.0)
    _legend(axes)
    axes.set_title(
        f"Gates, mean of their units: {trace.gate_convention}",
        loc="left",
        fontsize="medium",
    )


def _draw_context(axes: Axes, steps: Sequence[Step]) -> None:
    norms = np.array([step.context_norm for step in steps], np.float64)
    axes.plot(norms, "ko-", markersize=4)
    axes.set_ylim(bottom=0.0)
    axes.set_title("Norm of the context c", loc="left", fontsize="medium")


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        fontsize="small",
        borderaxespad=0.0,
    )
