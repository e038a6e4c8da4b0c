"""Translations as HTML: pointing at a word shows what it was aligned to; a list is a table.

It uses a style sheet and no script, so it works wherever a notebook is shown, under any content
security policy. Rules apply inside one drawing only (`:has`), so several drawings in a page need
no ids. Colours are those of the page around it, light or dark.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from bahdanau_tf.plotting.paper import END, Drawn, begins_with_mark
from bahdanau_tf.system.language import said

LISTED = 50  # rows of a table
ALIGNED = 3  # of them with an alignment
LEAST_SHARE = 0.05  # smaller shares are not shown
NOTHING = "·"  # a token without characters, such as a sub-word of one space

_ROOT = ".bahdanau-tf-alignment"
_CHOSEN = "[tabindex]:is(:hover, :focus)"
_NEITHER = f"{_ROOT}:not(:has({_CHOSEN}))"  # then the first word of the translation is shown
_TABLE = ".bahdanau-tf-translations"


class Part(NamedTuple):
    """A part of a text that can be pointed at."""

    start: int  # its first character
    end: int  # the character after its last
    tokens: tuple[int, ...]  # the numbers of the tokens in it


class Side(NamedTuple):
    """A text and the characters of its tokens."""

    text: str
    spans: Sequence[tuple[int, int]]

    def words(self, parts: Sequence[Part]) -> list[str]:
        """The escaped text of each part."""
        return [
            escape(self.text[part.start : part.end])
            or (END if part.tokens[0] >= len(self.spans) else NOTHING)
            for part in parts
        ]


class Row(NamedTuple):
    """A row of a table."""

    source: str
    texts: Sequence[str]  # its translations, the best one first
    score: float  # of the best one
    alignment: Callable[[], str] | None  # draws that of the best one
    doubts: Sequence[object] = ()  # reasons why that may be wrong


def alignment_html(
    source: Side, target: Side, weights: np.ndarray | None, doubts: Sequence[object] = ()
) -> Drawn:
    """Draws a translation: pointing at a word highlights the aligned ones.

    `weights` is α, float [T_y, T_x]; `doubts` are reasons why the translation may be wrong. The
    HTML loads nothing from elsewhere, and all text in it is escaped.
    """
    if weights is None:
        note = said("No alignment: this model has no attention.") if target.text else ""
        return _page(escape(source.text), escape(target.text) + _marks(doubts), note, "")
    weights = np.asarray(weights, np.float32)
    rows, columns = weights.shape
    sources = parts_of(*source, columns)
    targets = parts_of(*target, rows)
    shares = shares_of(weights, targets, sources)
    source_words, target_words = source.words(sources), target.words(targets)
    hint = f'<span data-shown="">{said("Point at a word, or move to it with Tab.")}</span>'
    return _page(
        _text(source.text, sources, source_words, shares.T, "st"),
        _text(target.text, targets, target_words, shares, "ts") + _marks(doubts),
        _sentences("t", target_words, source_words, shares)
        + _sentences("s", source_words, target_words, shares.T)
        + hint,
        _rules("ts", len(targets)) + _rules("st", len(sources)),
    )


def table_html(translations: Sequence[Row]) -> Drawn:
    """Draws translations as a table, the first ones with alignments to open."""
    rows = []
    for number, row in enumerate(translations[:LISTED]):
        text, *others = map(escape, row.texts)
        text += _marks(row.doubts) + "".join(f"<br><small>{other}</small>" for other in others)
        rows.append(
            f'<tr><td dir="auto">{escape(row.source)}</td><td dir="auto">{text}</td>'
            f"<td>{row.score:.2f}</td></tr>"
        )
        if number < ALIGNED and row.alignment:
            rows.append(
                '<tr><td colspan="3"><details><summary>'
                f"{said('Alignment')}</summary>{row.alignment()}</details></td></tr>"
            )
    more = len(translations) - LISTED
    note = f"<p>{said('{:,} more').format(more)}</p>" if more > 0 else ""
    heads = "".join(f"<th>{said(head)}</th>" for head in ("Source", "Translation", "Score"))
    return Drawn(
        f'<style>{_style()}</style><table class="{_TABLE[1:]}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{note}"
    )


def _marks(doubts: Sequence[object]) -> str:
    """The reasons to doubt a translation, a line each."""
    return "".join(f"<br><small>⚠ {escape(str(doubt))}</small>" for doubt in doubts)


def parts_of(text: str, spans: Sequence[tuple[int, int]], count: int) -> list[Part]:
    """Divides a text into the parts that can be pointed at, from left to right.

    Tokens are one part if they share characters, as sub-words may, or if one begins with a mark on
    the letter before it; a space alone is joined to what follows. Of `count` rows or columns of the
    weights, those beyond the tokens are end symbols, without characters, after the text.
    """
    ends = [(len(text), len(text))] * (count - len(spans))
    places = [_without_spaces(text, *span) for span in [*spans, *ends]]
    parts: list[Part] = []
    for token in sorted(range(count), key=places.__getitem__):
        start, end = places[token]
        last = parts[-1] if parts else Part(-1, -1, ())
        begins_here = start == last.start and token < len(spans)
        is_mark = start == last.end and begins_with_mark(text[start:])
        if start < last.end or begins_here or is_mark:
            end = max(end, last.end)
            parts[-1] = Part(last.start, end, (*last.tokens, token))
        else:
            parts.append(Part(start, end, (token,)))
    return parts


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Leaves out spaces at both ends, such as that before a sub-word."""
    word = text[start:end]
    start += len(word) - len(word.lstrip())
    return start, max(start, end - len(word) + len(word.rstrip()))


def shares_of(weights: np.ndarray, targets: Sequence[Part], sources: Sequence[Part]) -> np.ndarray:
    """How much each target part was aligned to each source part, float [targets, sources].

    It is the mean over the target's tokens of the sum over the source's, of α [T_y, T_x].
    """
    summed = [weights[:, list(part.tokens)].sum(1) for part in sources]
    columns = np.stack(summed, axis=1)
    return np.stack([columns[list(part.tokens)].mean(0) for part in targets])


def _text(
    text: str, parts: Sequence[Part], words: Sequence[str], shares: np.ndarray, sides: str
) -> str:
    """A text with its parts as words to point at.

    `shares` is float [parts, parts of the other text]; `sides` is the letter of this text and
    that of the other: "ts" for the target, "st" for the source.
    """
    html, position = [], 0
    own, other = sides[0], sides[1]
    for number, (part, word, row) in enumerate(zip(parts, words, shares, strict=True)):
        html.append(escape(text[position : part.start]))
        style = ";".join(f"--{other}{i}:{row[i]:.2f}" for i in np.flatnonzero(row >= LEAST_SHARE))
        tag = "span" if part.end > part.start else "small"
        html.append(f'<{tag} tabindex="0" data-{own}="{number}" style="{style}">{word}</{tag}>')
        position = part.end
    return "".join([*html, escape(text[position:])])


def _sentences(side: str, chosen: Sequence[str], others: Sequence[str], shares: np.ndarray) -> str:
    """A sentence for each word with its shares, shown when it is chosen."""
    aligned, attended_to = "{word} was aligned to {others}", "{word} was attended to for {others}"
    sentence = said(aligned if side == "t" else attended_to)
    html = []
    for number, (word, row) in enumerate(zip(chosen, shares, strict=True)):
        order = [i for i in np.argsort(-row) if row[i] >= LEAST_SHARE]
        shown = said(", ").join(
            f"{said('“{}”').format(f'<bdi>{others[i]}</bdi>')} {row[i]:.0%}" for i in order
        )
        quoted = said("“{}”").format(f"<bdi>{word}</bdi>")
        text = sentence.format(word=quoted, others=shown or said("no word in particular"))
        html.append(f'<span data-shown="{side}{number}" hidden>{text}</span>')
    return "".join(html)


def _rules(sides: str, count: int) -> str:
    """Style rules for the word under the pointer, else the one in focus, else the first."""
    own, other = sides[0], sides[1]
    return "".join(
        f'{_ROOT}:is(:has([data-{own}="{i}"]:hover),'
        f':not(:has([tabindex]:hover)):has([data-{own}="{i}"]:focus)'
        f"{f', {_NEITHER}' if (own, i) == ('t', 0) else ''}){{"
        f"& [data-{other}]{{--share:var(--{own}{i})}}"
        f"& [data-shown={own}{i}]{{display:block!important}}}}\n"
        for i in range(count)
    )


@functools.cache
def _style() -> str:
    return files("bahdanau_tf.translation").joinpath("view.css").read_text("utf-8")


def _page(source: str, target: str, note: str, rules: str) -> Drawn:
    return Drawn(
        f'<section class="{_ROOT[1:]}"><style>{_style()}{rules}</style>'
        f'<h4>{said("Translation")}</h4><div dir="auto">{target}</div>'
        f'<h4>{said("Original text")}</h4><div dir="auto">{source}</div>'
        f'<p aria-live="polite">{note}</p></section>'
    )
