"""Figures without pyplot, with fonts for any text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FONTS = (
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "NanumGothic",
    "IPAexGothic",
    "WenQuanYi Zen Hei",
    "Apple SD Gothic Neo",
    "Hiragino Sans",
    "PingFang SC",
    "Malgun Gothic",
    "Yu Gothic",
    "Microsoft YaHei",
)


def new_figure(function: str, width: float, height: float) -> Figure:
    """An empty figure, `width` by `height` inches.

    Raises:
        ImportError: matplotlib is not installed. The message begins with
            `function`.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{function} needs matplotlib: pip install 'bahdanau_tf[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def set_fonts(axes: Axes) -> None:
    """Sets fonts for text of any script; "$" is drawn as it is, not as math."""
    fonts = _fonts()
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    for text in [*labels, *axes.texts]:
        text.set(family=fonts, parse_math=False)


def _fonts() -> list[str]:
    """Matplotlib's default family, then the installed ones of `_FONTS`."""
    from matplotlib import font_manager
    from matplotlib import rcParams

    installed = set(font_manager.get_font_names())
    own = rcParams["font.family"]
    return [*own, *(name for name in _FONTS if name in installed)]


def save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Writes the figure, unless `path` is None."""
    if path is not None:
        figure.savefig(path, dpi=150, bbox_inches="tight")
