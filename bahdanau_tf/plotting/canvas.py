"""Figures without pyplot, with fonts for any text."""

from __future__ import annotations

import functools
import os
import unicodedata
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bahdanau_tf.system.files import full_disk_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

END = "[END]"  # how the end of a sentence is written, as in vocabularies
_BOXES = "Last Resort"  # matplotlib's font of boxes for all characters
# Looked at first, before all others that are installed.
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


def check_matplotlib(function: str) -> None:
    """Checks that there will be pictures.

    Raises:
        ImportError: matplotlib is not installed. The message begins with
            `function`.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{function} needs matplotlib: pip install 'bahdanau_tf[plot]'"
        ) from error


def new_figure(function: str, width: float, height: float) -> Figure:
    """An empty figure, `width` by `height` inches.

    Raises:
        ImportError: As in `check_matplotlib`.
    """
    check_matplotlib(function)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def labels(tokens: Iterable[str]) -> list[str]:
    """Tokens as labels: blanks, as before sub-words, would move them away."""
    return [token.strip() for token in tokens]


def set_fonts(axes: Axes) -> None:
    """Sets fonts for text of any script; "$" is drawn as it is, not as math.

    Warns if no installed font has a character.
    """
    import matplotlib

    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    legend = axes.get_legend()
    names = legend.get_texts() if legend else []
    texts = [*labels, *axes.texts, *names, axes.xaxis.label, axes.yaxis.label]
    written = "".join(text.get_text() for text in texts)
    fonts, missing = _fonts(
        tuple(matplotlib.rcParams["font.family"]), frozenset(written)
    )
    if missing:
        warnings.warn(
            f"plot: no installed font has {missing}, so boxes are drawn: "
            "install one, for Chinese, Japanese and Korean that of the package "
            "fonts-noto-cjk (Colab, Debian, Ubuntu), delete matplotlib's list "
            f"of fonts in {matplotlib.get_cachedir()}, and start Python again",
            stacklevel=3,
        )
    for text in texts:
        text.set(family=fonts, parse_math=False)


@functools.lru_cache
def _fonts(
    own: tuple[str, ...], characters: frozenset[str]
) -> tuple[list[str], str]:
    """Families for some characters, and the characters that no font has.

    The families are `own`, then as few others as are needed.
    """
    from matplotlib import font_manager

    families = [*own]
    properties = font_manager.FontProperties(family=families)
    missing = {one for one in characters if _is_drawn(one)}
    missing -= _glyphs(font_manager.findfont(properties))
    for name, path in _installed():
        if not missing:
            break
        if found := missing & _glyphs(path):
            families.append(name)
            missing -= found
    return families, "".join(sorted(missing))


def _installed() -> Iterator[tuple[str, str]]:
    """Name and file of all installed fonts, those of `_FONTS` first."""
    from matplotlib import font_manager

    fonts = {
        one.name: one.fname
        for one in font_manager.fontManager.ttflist
        if one.style == "normal"
        and one.weight in (400, "normal", "regular")
        and not one.name.startswith(_BOXES)
    }
    preferred = {name: fonts[name] for name in _FONTS if name in fonts}
    yield from (preferred | fonts).items()


def _glyphs(path: str) -> set[str]:
    """The characters that a font file can draw."""
    from matplotlib import font_manager

    return {*map(chr, font_manager.get_font(path).get_charmap())}


def _is_drawn(character: str) -> bool:
    """Whether a character has a picture: blanks and signs of control do not."""
    return unicodedata.category(character)[0] not in "CZ"


def save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Writes the figure, unless `path` is None."""
    if path is None:
        return
    with warnings.catch_warnings():  # `set_fonts` has told it
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        with full_disk_named(path):
            figure.savefig(path, dpi=150, bbox_inches="tight")
