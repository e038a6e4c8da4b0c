"""The paper's figures: alignments (Figure 3) and BLEU by length (Figure 2)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Protocol

import numpy as np

from bahdanau_tf.plotting.canvas import END
from bahdanau_tf.plotting.canvas import labels
from bahdanau_tf.plotting.canvas import new_figure
from bahdanau_tf.plotting.canvas import save
from bahdanau_tf.plotting.canvas import set_fonts

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_STYLES = ("o-", "s--", "^:", "D-.", "v-", "x--")  # differ without colour, too


class _Score(Protocol):
    """As `bahdanau_tf.evaluation.Score`."""

    @property
    def score(self) -> float: ...

    @property
    def interval(self) -> tuple[float, float] | None: ...


class _LengthBin(Protocol):
    """As `bahdanau_tf.evaluation.LengthBin`."""

    @property
    def shortest(self) -> int: ...

    @property
    def longest(self) -> int: ...

    @property
    def score(self) -> _Score: ...


def plot_alignment(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: ArrayLike | None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draws a soft alignment αᵢⱼ as in Figure 3: 0 is black, 1 is white.

    Args:
        source_tokens: the columns, written on top.
        target_tokens: the rows, written at the side.
        weights: float `[T_y, T_x]`. One more row or column than tokens is that
            of the end symbol.
        path: file to write; its extension sets the format, PNG, PDF or SVG.

    Returns:
        The figure.

    Raises:
        ValueError: there are no weights, or they do not fit the tokens.
        ImportError: matplotlib is not installed.
    """
    if weights is None:
        raise ValueError(
            "plot_alignment: weights is None, as of a model without attention; "
            "wanted float [T_y, T_x]."
        )
    weights = np.asarray(weights, np.float32)
    shape = (len(target_tokens), len(source_tokens))
    is_matrix = weights.ndim == 2 and weights.size
    more = np.subtract(weights.shape, shape).tolist() if is_matrix else [-1]
    if not {*more} <= {0, 1}:
        raise ValueError(
            f"plot_alignment: weights have shape {weights.shape}, wanted "
            f"{shape} like the tokens, or 1 more for end symbols."
        )
    inches = np.clip(0.3 * np.array(weights.shape[::-1]) + 1.5, 2.0, 60.0)
    figure = new_figure("plot_alignment", *inches)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="gray", vmin=0.0, vmax=1.0)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    columns = [*labels(source_tokens), *[END] * more[1]]
    axes.set_xticks(range(weights.shape[1]), columns, rotation=90)
    rows = [*labels(target_tokens), *[END] * more[0]]
    axes.set_yticks(range(weights.shape[0]), rows)
    set_fonts(axes)
    save(figure, path)
    return figure


def plot_bleu_by_length(
    curves: Mapping[str, Iterable[_LengthBin]],
    path: str | os.PathLike[str] | None = None,
    *,
    label: str = "Sentence length",
) -> Figure:
    """Draws BLEU against sentence length as in Figure 2, a line per system.

    Args:
        curves: name -> bins of `bahdanau_tf.evaluation.bleu_by_length`. A
            point is drawn at the middle of its bin, the 95 % bootstrap
            intervals as a band.
        path: file to write; its extension sets the format, PNG, PDF or SVG.
        label: what the lengths are, written below.

    Returns:
        The figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure("plot_bleu_by_length", 7.6, 4.0)
    axes = figure.add_subplot()
    for number, bins in enumerate(curves.values()):
        ordered = sorted(bins, key=lambda one: one.shortest)
        middles = [(one.shortest + one.longest) / 2 for one in ordered]
        values = [one.score.score for one in ordered]
        style = _STYLES[number % len(_STYLES)]
        (line,) = axes.plot(middles, values, style, markersize=4)
        bands = [one.score.interval or (np.nan, np.nan) for one in ordered]
        low, high = np.reshape(bands, [-1, 2]).T
        axes.fill_between(
            middles, low, high, color=line.get_color(), alpha=0.15, linewidth=0
        )
    axes.set_xlabel(label)
    axes.set_ylabel("BLEU score")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if curves:
        # Beside the plot: curves may run through any corner. The names are
        # set later, since matplotlib leaves out one that begins with "_".
        numbers = map(str, range(len(curves)))
        legend = axes.legend(
            axes.get_lines(),
            numbers,
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
        )
        for text, name in zip(legend.get_texts(), curves, strict=True):
            text.set_text(name)
    set_fonts(axes)
    save(figure, path)
    return figure
