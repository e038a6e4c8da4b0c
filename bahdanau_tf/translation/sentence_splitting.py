"""Lines of several sentences: splits them, and joins the translations of their sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from bahdanau_tf.text.languages import LANGUAGES
from bahdanau_tf.text.script import gap_behind
from bahdanau_tf.translation.batches import Sentences, columns_of, decoded, strings
from bahdanau_tf.translation.result import Offsets, Translation


def translate_lines(
    translate: Callable[..., Sequence[Translation]],
    lines: Sentences,
    prefixes: Sentences | None = None,
    with_weights: bool = True,
    is_mean: bool = False,
    remembered: Container[str] = (),
    colon: str = ":",
) -> Iterator[Translation]:
    """Translates lines sentence by sentence, by `translate` of a translator.

    The translation of each line starts with its text in `prefixes`. Without weights, which are a
    matrix for each line, lines of many sentences take less memory. The score of a line is the sum
    of its sentences' scores, or their mean. A string may have several lines. Marks around a line or
    a sentence, see `unframed`, stay as they are, but a label has the target's `colon`. Lines of a
    memory are `remembered` as a whole.
    """
    columns = strings("Translator.translate", columns_of(lines, prefixes))
    texts = [decoded(line) for line in columns["sentences"]]
    starts = columns.get("prefixes", [""] * len(texts))
    rows = [
        (text.strip() not in remembered and pieces_of(text, bool(start), remembered))
        or [("", text, "")]
        for text, start in zip(texts, starts, strict=True)
    ]
    pairs = [*zip(starts, rows, strict=True)]
    begun = [start for first, row in pairs for start in (first, *[""] * (len(row) - 1))]
    inside = [sentence for row in rows for _, sentence, _ in row]
    rest = iter(translate(inside, prefixes=None if prefixes is None else begun))
    for row in rows:
        done = [_framed(before, next(rest), after, colon) for before, _, after in row]
        yield joined(done, with_weights, is_mean=is_mean)


def pieces_of(
    text: str, is_begun: bool = False, remembered: Container[str] = ()
) -> list[tuple[str, str, str]]:
    """The sentences of a text, each with what stands before and after it; none if it is blank.

    If the translation is begun by a prefix, which has the marks, nothing stands around the first.
    """
    pieces: list[tuple[str, str, str]] = []
    for line in _lines(text):
        is_whole = line.strip() in remembered
        before, inside, after = ("", line, "") if is_begun or is_whole else unframed(line)
        own: list[tuple[str, str, str]] = []
        for sentence in [line] if is_whole else split_sentences(inside):
            if (is_begun and not (pieces or own)) or sentence.strip() in remembered:
                own.append(("", sentence, ""))
            elif label := LABEL.match(f"{sentence}A"):
                own.append((label[1], label[2], label[3]))
            else:
                own.append(unframed(sentence))
        own[0] = (before + own[0][0], *own[0][1:])
        own[-1] = (*own[-1][:2], own[-1][2] + after)
        pieces += own
    return pieces


def _framed(before: str, x: Translation, after: str, colon: str) -> Translation:
    """A translation with what stands before and after its source."""
    if not before + after:
        return x
    end = after.replace(":", colon, 1) if after.startswith(":") else after
    if MARKS.search(x.text):  # "(I know)." has one mark, and so has its translation
        end = MARKS.sub("", end)
    first, last = _stays(before, before, x), _stays(after, end.rstrip(), x)
    return joined([part for part in (first, x, last) if part.source], gap="")


def _stays(source: str, text: str, beside: Translation) -> Translation:
    """Marks that stay, as a token on each side, aligned if the translation beside them is."""
    if not (source.strip() and text.strip()):
        return Translation(source, text)
    offsets = []
    for side in (source, text):
        start = len(side[: len(side) - len(side.lstrip())].encode())
        offsets.append([(start, start + len(side.strip().encode()))])
    return Translation(
        source,
        text,
        [text.strip()],
        source_tokens=[source.strip()],
        source_offsets=offsets[0],
        target_offsets=offsets[1],
        weights=None if beside.tokens and beside.weights is None else np.eye(2, dtype=np.float32),
    )


def joined(
    sentences: Sequence[Translation],
    with_weights: bool = True,
    gap: str = " ",
    is_mean: bool = False,
) -> Translation:
    """Joins the translations of a line's sentences, with their alternatives and gaps between them.

    The n best of the line are those with the largest sums of scores, which are their scores unless
    these are means, the finished ones first, as in search.
    """
    if len(sentences) == 1:
        return sentences[0]
    n_best: list[tuple[bool, float, _Chain]] = [(True, 0.0, ())]
    for best in sentences:
        own = [best, *best.alternatives]
        pairs: list[tuple[bool, float, _Chain]] = [
            (finished and x.finished, score + x.score, (before, x))
            for finished, score, before in n_best
            for x in own
        ]
        pairs.sort(key=lambda pair: pair[:2], reverse=True)
        n_best = pairs[: max(len(n_best), len(own))]
    rows = [(score, _in_a_row(_links(end), with_weights, gap)) for _, score, end in n_best]
    share = 1 / max(sum(bool(x.tokens) for x in sentences), 1) if is_mean else 1
    first, *others = (replace(row, score=share * score) for score, row in rows)
    return replace(first, alternatives=others)


_Chain: TypeAlias = "tuple[()] | tuple[_Chain, Translation]"  # of many, each with those before it


def _links(chain: _Chain) -> list[Translation]:
    """The translations of a chain, from its start."""
    links = []
    while chain:
        chain, link = chain
        links.append(link)
    return links[::-1]


def _in_a_row(parts: Sequence[Translation], with_weights: bool, gap: str) -> Translation:
    """One translation of several sentences, made of those of each."""
    texts, last = list[str](), ""  # the last one that is not empty
    read, written, breaks = 0, 0, 0  # bytes; line breaks at the end of the last part
    source_offsets: Offsets = []
    target_offsets: Offsets = []
    for part in parts:
        if last and part.text:
            texts.append("\n" * breaks or (gap and gap_behind(last)))
            written += len(texts[-1])
        source_offsets += [(read + start, read + end) for start, end in part.source_offsets]
        target_offsets += [(written + start, written + end) for start, end in part.target_offsets]
        texts.append(part.text)
        last = part.text or last
        breaks = part.source[len(part.source.rstrip()) :].count("\n") if gap else 0
        read += len(part.source.encode())
        written += len(part.text.encode())
    finished = all(part.finished for part in parts)
    return Translation(
        source="".join(part.source for part in parts),
        text="".join(texts),
        tokens=[x for part in parts for x in part.tokens],
        log_prob=sum(part.log_prob for part in parts),
        finished=finished,
        source_tokens=[x for part in parts for x in part.source_tokens],
        source_offsets=source_offsets,
        target_offsets=target_offsets,
        weights=_stacked(parts, finished) if with_weights else None,
        cut=any(part.cut for part in parts),
        confidence=min((x.confidence for x in parts if x.confidence is not None), default=None),
        doubts=(*dict.fromkeys(doubt for part in parts for doubt in part.doubts),),
        parts=parts,
    )


def _stacked(parts: Sequence[Translation], finished: bool) -> np.ndarray | None:
    """Joins soft alignments as blocks of one matrix.

    The weights at each sentence's end symbol move to that of the line, which has a row if all are
    finished. There are at most `MOST` weights, or none.
    """
    blocks = [(x.weights[: len(x.tokens)], x.weights[-1]) for x in parts if x.weights is not None]
    if not blocks or any(x.tokens and x.weights is None for x in parts):
        return None
    heights, widths = zip(*((len(rows), len(end) - 1) for rows, end in blocks), strict=True)
    shape = sum(heights) + finished, sum(widths) + 1
    if shape[0] * shape[1] > MOST:
        return None
    weights = np.zeros(shape, np.float32)
    row = column = 0
    for rows, end in blocks:
        until, last = row + len(rows), column + len(end) - 1
        weights[row:until, column:last] = rows[:, :-1]
        weights[row:until, -1] = rows[:, -1]
        row, column = until, last
    if finished:
        weights[-1, -len(end) :] = end
    return weights


def _lines(text: str) -> list[str]:
    """The lines of a text that have words, each with the empty ones behind it."""
    starts = [match.start() for match in _LINE.finditer(text)]
    return [text[a:b] for a, b in pairwise([*(0 for _ in starts[:1]), *starts[1:], len(text)])]


_LINE = re.compile(r"^[^\S\n]*\S", re.MULTILINE)
MOST = 1 << 20  # weights of a text of several sentences: some 1,000 tokens on each side
# A missed end does less harm than a wrong one, so the abbreviations of all languages count in
# every language. "Mt" in those of English would change tokenizers of words.
ABBREVIATIONS = frozenset(" ".join(["Mt", *(x.abbreviations for x in LANGUAGES.values())]).split())
NUMBERING = frozenset(" ".join(rules.numbering for rules in LANGUAGES.values()).split())
_MARKS = ".!?…‥؟।"  # they end a sentence only before a space
_WIDE_MARKS = "。！？｡"  # they end a sentence before anything
CANDIDATE = re.compile(
    # Marks within these brackets do not end a sentence of the line.
    "「[^「」]{0,200}」|『[^『』]{0,200}』|（[^（）]{0,200}）|"
    # From the first of several marks; else a long row takes time squared.
    rf"(?<![{re.escape(_MARKS)}])(?P<mark>[{re.escape(_MARKS)}]+)"
    r"[\"'”’»›)\]}]*(?:[ \u00a0\u202f][»”])?(?=\s)\s+|"
    rf"(?P<wide>[{_WIDE_MARKS}]+)\s*|"
    # Typed without the space, as in "I know.Let's go.", but not in an address.
    r"(?P<tight>(?<=[a-zà-ÿ]{3})\.|(?<=[a-zà-ÿ])[!?])(?=[A-ZÀ-Þ][a-zà-ÿ'’ ])"
    r"(?![A-Za-z0-9'./@_-]*[./@_][A-Za-z0-9])"
)
_ADDRESS = re.compile("[./@_][A-Za-z0-9'-]*$")
# What a sentence of a list, a dialogue or Markdown begins with; "- 5 km" may be less than nothing.
LISTED = re.compile(
    r"\s*(?:[-–—](?:\s+(?!\d+(?![\d.)]))|(?=[A-ZÀ-Þ]))|(?:[*•‣◦▪●○■□☐☑✓✔✗→]|#{1,6}|>+|\[[ xX]?\]|"
    r"\(?[0-9]{1,2}[.)]|\(?[A-Za-z]\)|[A-Z]:)\s+|[・※①-⑳]\s*(?![・※①-⑳]))+(?=\S)"
)
# What a text may stand between, a half on each side; of two that begin alike the longer is first.
FRAMES = (
    *('""', "''", "“”", "„“", "‘’", "«»", "「」", "『』", "()", "（）", "[]", "【】"),
    *("****", "**", "____", "__", "~~~~"),
)
_HALVES = [(re.escape(x[: len(x) // 2]), re.escape(x[len(x) // 2 :])) for x in FRAMES]
_FRAMED = [
    re.compile(
        rf"(?s)(\s*{first}\s*)((?:(?!{first}|{last}).|(?<=[^\W_])['’](?=[^\W_]))+)"
        rf"({last}[.!?,;:…]?\s*)"
    )
    for first, last in _HALVES
]
# Who speaks, or what a line is about, as in "Tom: Hello."; "Step 2: " is better read with its line.
LABEL = re.compile(
    r"(\s*(?:\*\*|__)?)([A-ZÀ-Þ][^\s:,!?\d*_]+(?: [^\s:,!?\d*_]+){0,2})"
    r"(:(?:\*\*|__)?[^\S\n]+)(?=[\"'“«(*_]*[A-ZÀ-Þ])"
)
MARKS = re.compile(r"[.!?…。！？]+\s*$")
_LOOK_BACK = 40  # characters before a mark that are examined


def split_sentences(text: str) -> list[str]:
    """Splits a text after each sentence, and after a label of up to three words, such as "Tom: ".

    A sentence ends with a mark such as . ! ? … before a space, or with 。！？. It does not end
    before a lower-case letter, after an abbreviation or an initial, or within 「」. Between a word
    and a capital the space may be missing. Joined, the sentences are `text`.

    Example:
        >>> split_sentences("Mr. Li left. Did he?")
        ['Mr. Li left. ', 'Did he?']
    """
    return [
        part
        for sentence in _sentences(text)
        for label in [LABEL.match(sentence)]
        for part in ([label[0], sentence[label.end() :]] if label else [sentence])
    ]


def _sentences(text: str) -> list[str]:
    """Those of `split_sentences`, with the labels before them."""
    sentences = []
    start = 0
    for match in CANDIDATE.finditer(text):
        before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
        after = text[match.end() : match.end() + 1]
        is_tight = match["tight"] and not _ADDRESS.search(before)
        if match["wide"] or is_tight or (match["mark"] and _is_end(before, match["mark"], after)):
            sentences.append(text[start : match.end()])
            start = match.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def has_several(line: str) -> bool:
    """Whether more than one sentence has a letter or a digit; a label is none."""
    return sum(any(map(str.isalnum, x)) for x in _sentences(line)) > 1


def unframed(text: str) -> tuple[str, str, str]:
    """The marks before a text, the text, and those after it.

    They are marks of lists, and pairs around all of it, such as quotation marks or brackets.

    Example:
        >>> unframed('- "Hello."')
        ('- "', 'Hello.', '"')
    """
    before = after = ""
    while True:
        if mark := LISTED.match(text):
            before, text = before + mark[0], text[mark.end() :]
        frames = (pattern.fullmatch(text) for pattern in _FRAMED)
        if not (frame := next((x for x in frames if x and _has_words(x[2])), None)):
            return before, text, after
        text = frame[2].rstrip()
        before, after = before + frame[1], frame[2][len(text) :] + frame[3] + after


def _has_words(text: str) -> bool:
    return sum(map(str.isalnum, text)) > 1


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
