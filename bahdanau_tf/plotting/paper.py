"""The paper's figures: a model (Figure 1), BLEU by length (Figure 2) and alignments (Figure 3)."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol
from xml.etree import ElementTree

import numpy as np

from bahdanau_tf.system.language import in_language, said
from bahdanau_tf.system.ranges import OptionError

if TYPE_CHECKING:
    import keras
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

END = "[END]"  # how the end of a sentence is written, as in vocabularies
_BOXES = "Last Resort"  # matplotlib's font of boxes for all characters
# Preferred to all others that are installed.
_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans CJK SC", "NanumGothic", "IPAexGothic"),
    *("WenQuanYi Zen Hei", "Apple SD Gothic Neo", "Hiragino Sans", "PingFang SC"),
    *("Malgun Gothic", "Yu Gothic", "Microsoft YaHei"),
)
_INSTALL = (
    "install one (for Chinese, Japanese and Korean, the package fonts-noto-cjk on Colab, Debian "
    "and Ubuntu) and draw again"
)


def check_matplotlib(user: str) -> None:
    """Raises an ImportError that begins with `user` if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{user} needs matplotlib: pip install matplotlib") from error


def new_figure(function: str, width: float, height: float) -> Figure:
    """An empty figure, `width` by `height` inches."""
    check_matplotlib(function)
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def labels(tokens: Iterable[str]) -> list[str]:
    """Tokens as labels: spaces, as before sub-words, would move them away; marks get a circle.

    A syllable of Hangul that was read as its letters stands at the last: each gets its own.
    """
    stripped = [*map(str.strip, tokens)]
    for last, token in enumerate(stripped):
        letters = unicodedata.normalize("NFD", token)
        first = last + 1 - len(letters)
        if len(token) == 1 and 0 <= first < last and not any(stripped[first:last]):
            stripped[first : last + 1] = letters
    return ["\N{DOTTED CIRCLE}" * begins_with_mark(token) + _alone(token) for token in stripped]


def _alone(token: str) -> str:
    """A letter of Hangul as it is written by itself, not as a part of a syllable."""
    name = unicodedata.name(token, "") if len(token) == 1 else ""
    with suppress(KeyError):
        return unicodedata.lookup(re.sub("(CHO|JUNG|JONG)SEONG", "LETTER", name))
    return token


def write_columns(axes: Axes, columns: Sequence[str]) -> None:
    """Writes labels along the top: letters upright, words turned, since they are longer."""
    axes.set_xticks(range(len(columns)), columns)
    are_letters = all(len(column) < 3 for column in columns if column != END)
    for label in axes.get_xticklabels():
        label.set_rotation(0 if are_letters and label.get_text() != END else 90)


def begins_with_mark(text: str) -> bool:
    """Whether the first character stands on the letter before it, as accents and some vowels do."""
    return unicodedata.category(text[:1] or " ").startswith("M")


def finished(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """Sets fonts for text of any script, writes the figure, unless `path` is None, and returns it.

    "$" is drawn as it is, not as math. Warns if no installed font has a character.
    """
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    fonts, missing = _fonts("".join(text.get_text() for text in texts))
    if missing:
        warnings.warn(
            f"plot: no installed font has {missing}, so boxes are drawn: {_INSTALL}", stacklevel=3
        )
    for text in texts:
        text.set(family=fonts, parse_math=False)
    if path is None:
        return figure
    with warnings.catch_warnings():  # the warning above is enough
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        try:
            figure.savefig(path, dpi=150, bbox_inches="tight")
        except OSError as error:  # a full disk is reported without a name
            if error.errno and error.filename is None:
                error.filename = os.fspath(path)
            raise
    return figure


def heading(english: str) -> str:
    """The text in the language in use; in English, with a warning, if no font can draw it."""
    text = said(english)
    if not _fonts(text)[1]:
        return text
    message = "plot: no installed font has the headings' letters, so they are in English"
    warnings.warn(f"{message}: {_INSTALL}", stacklevel=1)  # once for all of them
    return english


def _fonts(text: str) -> tuple[list[str], str]:
    """matplotlib's families and as few others as are needed, and characters that no font has."""
    import matplotlib
    from matplotlib import font_manager

    families = [*matplotlib.rcParams["font.family"]]
    properties = font_manager.FontProperties(family=families)
    missing = {x for x in text if unicodedata.category(x)[0] not in "CZ"}
    missing -= _glyphs(font_manager.findfont(properties))
    for name, path in _installed():
        if not missing:
            break
        if missing & _glyphs(path):
            families.append(name)
            missing -= _glyphs(path)
    return families, "".join(sorted(missing))


def _installed() -> Iterator[tuple[str, str]]:
    """Name and file of all installed fonts, those of `_FONTS` first.

    Those that matplotlib knows come before those that were installed since it made its list.
    """
    from matplotlib import font_manager

    yield from _listed()
    listed = font_manager.fontManager
    for path in {*font_manager.findSystemFonts()} - {font.fname for font in listed.ttflist}:
        with suppress(OSError, RuntimeError):  # not a font
            listed.addfont(path)
    yield from _listed()


def _listed() -> Iterator[tuple[str, str]]:
    from matplotlib import font_manager

    fonts = {
        font.name: font.fname
        for font in font_manager.fontManager.ttflist
        if font.style == "normal"
        and font.weight in (400, "normal", "regular")
        and not font.name.startswith(_BOXES)
    }
    preferred = {name: fonts[name] for name in _FONTS if name in fonts}
    yield from (preferred | fonts).items()


@functools.lru_cache
def _glyphs(path: str) -> set[str]:
    """The characters that a font file can draw."""
    from matplotlib import font_manager

    return {*map(chr, font_manager.get_font(path).get_charmap())}


STYLES = ("o-", "s--", "^:", "D-.", "v-", "x--")  # differ in black and white


class _Aligned(Protocol):
    """As `bahdanau_tf.Translation`."""

    @property
    def source_tokens(self) -> Sequence[str]: ...

    @property
    def tokens(self) -> Sequence[str]: ...

    @property
    def weights(self) -> np.ndarray | None: ...


def plot_alignment(
    source_tokens: Sequence[str] | _Aligned,
    target_tokens: Sequence[str] = (),
    weights: ArrayLike | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draws a soft alignment αᵢⱼ as in Figure 3: 0 is black, 1 is white.

    Args:
        source_tokens: the columns, written along the top; or a `Translation`, which has the tokens
            of both sides and the weights.
        target_tokens: the rows, written down the side.
        weights: float `[T_y, T_x]`. One more row or column than tokens is that of the end symbol.
        path: file to write; its extension sets the format, PNG, PDF or SVG.

    Returns:
        The figure.

    Raises:
        ValueError: there are no weights, or they do not fit the tokens.
        ImportError: matplotlib is not installed.

    Example:

    ```python
    plot_alignment(translator.translate(["The cat sleeps."])[0])
    ```
    """
    if weights is None and not (target_tokens or hasattr(source_tokens, "weights")):
        raise ValueError(
            f"plot_alignment: source_tokens is {source_tokens!r}, wanted a Translation, or the "
            "tokens of both sides and the weights"
        )
    if not isinstance(source_tokens, Sequence | np.ndarray):
        translation = source_tokens
        source_tokens, target_tokens = translation.source_tokens, translation.tokens
        weights = translation.weights
        if not source_tokens:
            raise ValueError("plot_alignment: the sentence has no words, wanted one or more")
    if weights is None:
        raise ValueError(
            "plot_alignment: weights is None, as with a model without attention; "
            "wanted float [T_y, T_x]"
        )
    weights = np.asarray(weights, np.float32)
    shape = (len(target_tokens), len(source_tokens))
    is_matrix = weights.ndim == 2 and weights.size
    more = np.subtract(weights.shape, shape).tolist() if is_matrix else [-1]
    if not {*more} <= {0, 1}:
        raise ValueError(
            f"plot_alignment: weights have shape {weights.shape}, wanted "
            f"{shape} like the tokens, or 1 more for end symbols"
        )
    rows = labels(target_tokens)
    if rows[:1] == [""] and len(weights) > 1:  # a space before Japanese text, which is not written
        rows, weights = rows[1:], weights[1:]
    inches = np.clip(0.3 * np.array(weights.shape[::-1]) + 1.5, 2.0, 60.0)
    figure = new_figure("plot_alignment", *inches)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="gray", vmin=0.0, vmax=1.0)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    columns = [*labels(source_tokens), *[END] * more[1]]
    write_columns(axes, columns)
    axes.set_yticks(range(weights.shape[0]), [*rows, *[END] * more[0]])
    return finished(figure, path)


def plot_bleu_by_length(
    curves: Mapping[str, Iterable[Any]],
    path: str | os.PathLike[str] | None = None,
    *,
    label: str = "Sentence length",
    language: str | None = None,
) -> Figure:
    """Draws BLEU against sentence length as in Figure 2, a line per system.

    Args:
        curves: name -> bins of `bahdanau_tf.evaluation.bleu_by_length`. A point is drawn at the
            middle of its bin, the 95 % bootstrap intervals as a band.
        path: file to write; its extension sets the format, PNG, PDF or SVG.
        label: what the lengths are, written below.
        language: of the labels, as for `view_traces`.

    Returns:
        The figure.

    Raises:
        ValueError: there are no texts in this language.
        ImportError: matplotlib is not installed.
    """
    figure = new_figure("plot_bleu_by_length", 7.6, 4.0)
    axes = figure.add_subplot()
    for number, bins in enumerate(curves.values()):
        ordered = sorted(bins, key=lambda length_bin: length_bin.shortest)
        middles = [(x.shortest + x.longest) / 2 for x in ordered]
        values = [x.score.score for x in ordered]
        style = STYLES[number % len(STYLES)]
        (line,) = axes.plot(middles, values, style, markersize=4)
        bands = [x.score.interval or (np.nan, np.nan) for x in ordered]
        low, high = np.reshape(bands, [-1, 2]).T
        axes.fill_between(middles, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    with in_language("plot_bleu_by_length", language):
        axes.set_xlabel(heading(label))
        axes.set_ylabel(heading("BLEU score"))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if curves:
        # Beside the plot: curves may run through any corner. The names are set later, since
        # matplotlib leaves out one that begins with "_".
        keys = map(str, range(len(curves)))
        legend = axes.legend(axes.get_lines(), keys, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for text, name in zip(legend.get_texts(), curves, strict=True):
            text.set_text(name)
    return finished(figure, path)


_MARKERS = "os^Dv*P"  # differ in black and white


def plot_vectors(
    points: ArrayLike,
    texts: Sequence[str],
    groups: Sequence[int],
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draws texts as points in a plane, each group with its own marker.

    Args:
        points: float `[N, 2]`.
        texts: what is written next to each point.
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
        axes.scatter(*some.T, marker=_MARKERS[group % len(_MARKERS)])
    for place, text in zip(points, texts, strict=True):  # towards the middle
        low, high = points.min(0), points.max(0)
        is_left = place[0] <= (low + high)[0] / 2
        above = points[:, 1] - place[1]  # away from a point right above
        is_free = not np.any((above > 0) & (above < (high - low)[1] / 20))
        axes.annotate(
            text,
            tuple(place),
            (6.0 if is_left else -6.0, 3.0 if is_free else -9.0),
            textcoords="offset points",
            ha="left" if is_left else "right",
            size=8,
        )
    axes.margins(0.1, 0.1)
    axes.grid(alpha=0.3)
    return finished(figure, path)


class Drawn(str):
    """HTML or SVG that a notebook draws where a cell ends with it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def view_architecture(model: keras.Model, language: str | None = None) -> Drawn:
    """Draws a model made of parts, in the letters of the paper's Figure 1.

    An arrow leads to what reads its start: x_j, h_j, c_i with its weights α_ij, and a step from
    s_{i-1} to s_i in the model's order. The dashed one starts at the state that attention compares
    with the annotations.

    Args:
        model: Such as `RNNSearch(1000, 1000, units=64, step_order="main-text")`.
        language: "en", "ko" or "ja"; None for that of `bahdanau_tf.set_language`.

    Returns:
        SVG that a notebook draws; as a string it is that of a file.

    Raises:
        ValueError: The model is not made of parts, or there are no texts in this language.
    """
    if not hasattr(model, "readout"):
        wanted = "a model made of parts, such as RNNSearch"
        raise OptionError("view_architecture", "model", model, wanted)
    # The template has what any model may have; an element with `data-if` stays if all words of this
    # attribute hold for the model, see `_facts`.
    template = files("bahdanau_tf.plotting").joinpath("architecture.svg").read_text("utf-8")
    # Without a namespace, which ElementTree would write as a prefix of each name.
    root = ElementTree.fromstring(template.replace(" xmlns=", " data-xmlns=", 1))
    root.set("xmlns", root.attrib.pop("data-xmlns"))
    facts, sizes = _facts(model), _sizes(model)
    for parent in [*root.iter()]:
        for child in [*parent]:
            if not {*child.attrib.pop("data-if", "").split()} <= facts:
                parent.remove(child)
    with in_language("view_architecture", language):
        for text in root[-1]:
            text.text = said(text.text or "").format_map(sizes)
    return Drawn(ElementTree.tostring(root, "unicode"))


def _facts(model: keras.Model) -> set[str]:
    """The words of `data-if` that hold for a model."""
    order, attention = model.decoder.step_order, model.decoder.attention
    bridge = type(model.bridge).__name__
    facts = {order, bridge, *getattr(model.readout, "terms", ("state", "previous", "context"))}
    facts.add("both" if len(getattr(model.encoder, "directions", ())) > 1 else "one")
    if attention is not None:
        facts.add("weights" if attention.has_alignment else "fixed")
    if order != "conditional":
        facts.add("plain")
    if bridge not in ("BackwardBridge", "ZeroBridge"):
        facts.add("last")
    return facts


def _sizes(model: keras.Model) -> dict[str, object]:
    """The classes of the parts with their sizes, and the sizes of words."""
    sizes: dict[str, object] = {
        "K_x": model.source_vocabulary_size,
        "K_y": model.target_vocabulary_size,
        "m": model.target_embedding.embedding_dim,
    }
    for name, part, letter in (
        *[("encoder", model.encoder, "n"), ("cell", model.decoder.cell, "n")],
        *[("attention", model.decoder.attention, "n'"), ("readout", model.readout, "l")],
    ):
        size = getattr(part, "units", None)
        sizes[name] = type(part).__name__ + (f", {letter} = {size}" if size else "")
    return sizes
