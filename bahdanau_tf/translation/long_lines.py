"""Translates lines; those too long for a model are reported or split into sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.system.files import RUNTIME, read_object
from bahdanau_tf.text.languages import LANGUAGES
from bahdanau_tf.translation.result import Translation


class Lines(Protocol):
    """What this module needs of a `Translator`."""

    def translate(
        self, lines: Sequence[str], /, *, batch_size: int, prefixes: Sequence[str] | None
    ) -> list[Translation]:
        """Translates sentences."""

    def translate_up_to(
        self, longest: int, lines: Sequence[str], /, batch_size: int, prefixes: Sequence[str] | None
    ) -> list[Translation | None]:
        """Translates sentences of at most so many tokens; None for longer ones."""


class LinesTranslated(NamedTuple):
    """Translations of some lines, and which of the lines were too long."""

    translations: list[Translation]
    split: list[int]  # indices of the lines that were translated in parts
    long: list[int]  # indices of the lines that, or a part of which, are too long


def trained_limit(folders: Sequence[str]) -> int | None:
    """The length in tokens of the longest sentences all models have seen; None if unknown."""
    if len(folders) == 1 and (path := Path(folders[0], RUNTIME)).is_file():
        length = read_object(path).get("max_length")
        return length if type(length) is int and length > 0 else None
    from bahdanau_tf.translation.saved import trained_length  # with TensorFlow

    return min(filter(None, map(trained_length, folders)), default=None)


def translate_lines(
    translator: Lines,
    lines: Sequence[str],
    max_length: int | None,
    split: bool,
    batch_size: int = BATCH_SIZE,
    prefixes: Sequence[str] = (),
) -> LinesTranslated:
    """Translates lines, and reports or splits those that are too long.

    `max_length` is that of a source in tokens, without the end symbol; None for no limit. With
    `split` longer lines are translated sentence by sentence. The translation of each line starts
    with its text in `prefixes`; () for none.
    """
    starts = [*prefixes] if any(prefixes) else None
    if max_length is None or not split:
        whole = translator.translate(lines, batch_size=batch_size, prefixes=starts)
        limit = math.inf if max_length is None else max_length
        return LinesTranslated(whole, [], [n for n, x in enumerate(whole) if _length(x) > limit])
    translations = translator.translate_up_to(max_length, lines, batch_size, starts)
    parts = {n: split_sentences(lines[n]) for n, x in enumerate(translations) if x is None}
    flat = [part for some in parts.values() for part in some]
    if starts is not None:
        starts = [x for n, some in parts.items() for x in [starts[n]] + [""] * (len(some) - 1)]
    done = iter(translator.translate(flat, batch_size=batch_size, prefixes=starts) if flat else ())
    result = LinesTranslated([x for x in translations if x is not None], [], [])
    for n, some in parts.items():
        own = [*islice(done, len(some))]
        if len(some) > 1:
            result.split.append(n)
        if max(map(_length, own)) > max_length:
            result.long.append(n)
        result.translations.insert(n, own[0] if len(own) == 1 else _joined(lines[n], some, own))
    return result


def _length(translation: Translation) -> int:
    return len(translation.source_tokens)


def _joined(line: str, parts: Sequence[str], translations: Sequence[Translation]) -> Translation:
    """Joins the translations of a line's parts, with their alternatives.

    The n best of the line are those with the largest sums of scores, the finished ones first, as in
    search.
    """

    def rank(pair: tuple[Translation, Translation]) -> tuple[bool, float]:
        return not all(x.finished for x in pair), -sum(x.score for x in pair)

    n_best = [Translation(line)]
    start = 0
    for part, best in zip(parts, translations, strict=True):
        own = [best, *best.alternatives]
        pairs = sorted(product(n_best, own), key=rank)
        count = max(len(n_best), len(own))
        n_best = [_appended(*pair, start) for pair in pairs[:count]]
        start += len(part.encode())
    return replace(n_best[0], alternatives=n_best[1:])


def _appended(first: Translation, second: Translation, start: int) -> Translation:
    """`first` followed by `second`, whose source starts at byte `start`."""
    before = first.text
    if before and second.text and not before.endswith(tuple(_WIDE_MARKS)):
        before += " "
    tokens = first.tokens + second.tokens
    finished = first.finished and second.finished
    weights = _stacked(first, second)
    if weights is not None and not finished:
        weights = weights[: len(tokens)]  # without a row of the end symbol

    def shifted(offsets: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
        return [(start + by, end + by) for start, end in offsets]

    return replace(
        first,
        text=before + second.text,
        tokens=tokens,
        score=first.score + second.score,
        log_prob=first.log_prob + second.log_prob,
        finished=finished,
        source_tokens=first.source_tokens + second.source_tokens,
        source_offsets=first.source_offsets + shifted(second.source_offsets, start),
        target_offsets=first.target_offsets + shifted(second.target_offsets, len(before.encode())),
        weights=weights,
    )


def _stacked(first: Translation, second: Translation) -> np.ndarray | None:
    """Joins two soft alignments as blocks of one matrix.

    The weights at the first part's end symbol move to that of the line.
    """
    if first.weights is None or second.weights is None:
        return second.weights if first.weights is None else first.weights
    upper = first.weights[: len(first.tokens)]
    rows, columns = len(upper), len(first.source_tokens)
    lower = second.weights
    weights = np.zeros((rows + lower.shape[0], columns + lower.shape[1]), np.float32)
    weights[:rows, :columns] = upper[:, :-1]
    weights[:rows, -1] = upper[:, -1]
    weights[rows:, columns:] = lower
    return weights


# A missed end does less harm than a wrong one, so the abbreviations of all languages count in
# every language.
ABBREVIATIONS = frozenset(" ".join(rules.abbreviations for rules in LANGUAGES.values()).split())
NUMBERING = frozenset(" ".join(rules.numbering for rules in LANGUAGES.values()).split())
_MARKS = ".!?…‥؟।"  # they end a sentence only before a space
_WIDE_MARKS = "。！？｡"  # they end a sentence before anything
CANDIDATE = re.compile(
    # Marks within these brackets do not end a sentence of the line.
    "「[^「」]{0,200}」|『[^『』]{0,200}』|（[^（）]{0,200}）|"
    # From the first of several marks; else a long row takes time squared.
    rf"(?<![{re.escape(_MARKS)}])(?P<mark>[{re.escape(_MARKS)}]+)"
    r"[\"'”’»›)\]}]*(?:[ \u00a0\u202f][»”])?(?=\s)\s+|"
    rf"(?P<wide>[{_WIDE_MARKS}]+)\s*"
)
_LOOK_BACK = 40  # characters before a mark that are examined


def split_sentences(text: str) -> list[str]:
    """Splits a text after each sentence.

    A sentence ends with a mark such as . ! ? … before a space, or with 。！？. It does not end
    before a lower-case letter, after an abbreviation or an initial, or within 「」. Joined, the
    sentences are `text`.

    Example:
        >>> split_sentences("Mr. Li left. Did he?")
        ['Mr. Li left. ', 'Did he?']
    """
    sentences = []
    start = 0
    for match in CANDIDATE.finditer(text):
        before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
        after = text[match.end() : match.end() + 1]
        if match["wide"] or (match["mark"] and _is_end(before, match["mark"], after)):
            sentences.append(text[start : match.end()])
            start = match.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def _is_end(before: str, mark: str, after: str) -> bool:
    """Whether a mark ends a sentence, given the text before and after it."""
    has_words = any(character.isalnum() for character in before)
    if not has_words or after.islower() or (after and after in _MARKS):
        return False
    if mark != ".":
        return True
    word = re.split(r"[\s(\[{\"'“‘«’]", before)[-1]
    initial = len(word) == 1 and word.isupper()
    acronym = "." in word and not word[-1].isdecimal()
    item = before.strip().isdecimal()  # "1. Introduction"
    numbered = word in NUMBERING and after.isdecimal()
    return not (initial or acronym or item or numbered or word in ABBREVIATIONS)
