"""Sentence vectors in a plane, as Figure 2 of Sutskever et al. 2014."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bahdanau_tf.plotting.canvas import new_figure
from bahdanau_tf.plotting.canvas import save
from bahdanau_tf.plotting.canvas import set_fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from numpy.typing import NDArray

_SIGNS = "os^Dv*P"  # differ without colour, too


def plot_vectors(
    points: ArrayLike,
    texts: Sequence[str],
    groups: Sequence[int],
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draws texts as points in a plane, each group with a sign of its own.

    Args:
        points: float `[N, 2]`.
        texts: what is written beside each point.
        groups: the number of each point's group, from 0.
        path: file to write; its extension sets the format, PNG, PDF or SVG.

    Returns:
        The figure.

    Raises:
        ValueError: the numbers of points, texts and groups differ.
        ImportError: matplotlib is not installed.
    """
    points = np.asarray(points, np.float64)
    if points.shape != (len(texts), 2) or len(groups) != len(texts):
        raise ValueError(
            f"plot_vectors: points have shape {points.shape}, with "
            f"{len(texts)} texts and {len(groups)} groups; wanted [N, 2], N, N"
        )
    figure = new_figure("plot_vectors", 8.0, 6.0)
    axes = figure.add_subplot()
    for group in sorted(set(groups)):
        some = points[np.equal(groups, group)]
        axes.scatter(*some.T, marker=_SIGNS[group % len(_SIGNS)])
    for place, text in zip(points, texts, strict=True):
        _write(axes, text, place, points)
    axes.margins(0.1, 0.1)
    axes.grid(alpha=0.3)
    set_fonts(axes)
    save(figure, path)
    return figure


def _write(
    axes: Axes,
    text: str,
    place: NDArray[np.float64],
    points: NDArray[np.float64],
) -> None:
    """Writes a text towards the middle, and away from a point right above."""
    low, high = points.min(0), points.max(0)
    is_left, _ = place <= (low + high) / 2
    above = points[:, 1] - place[1]
    is_free = not np.any((above > 0) & (above < (high - low)[1] / 20))
    axes.annotate(
        text,
        tuple(place),
        (6.0 if is_left else -6.0, 3.0 if is_free else -9.0),
        textcoords="offset points",
        ha="left" if is_left else "right",
        size=8,
    )
