"""Markup: tags and placeholders leave a text before its translation, and attention puts them back.

`split` takes them out. `put_back` needs only a `Translation` of what is left, with its soft
alignment, so it works with every engine. An element encloses the run of words that are aligned with
its own rather than with others; inner elements stay within outer ones. What encloses nothing (a
placeholder, an empty tag, a comment, a tag without its partner) stands where most of the source
words before it are before it, and most of those after it after it; near words count more.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import accumulate, chain, pairwise
from typing import Literal, NamedTuple

import numpy as np

from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text.copied import CODE, PATTERNS, PLACEHOLDER
from bahdanau_tf.text.script import HAN, KATAKANA, gap_behind, unspaced_script
from bahdanau_tf.translation.batches import Sentences, columns_of, decoded, strings
from bahdanau_tf.translation.result import Offsets, Translation, without_spaces
from bahdanau_tf.translation.sentence_splitting import joined, split_sentences

# Elements whose content is no text; <code-x> is another one.
_KEPT = r"(?:script|style|code|pre)(?![\w:.-])"
_MARK = re.compile(
    rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?P<hidden>(?i:{_KEPT})).*?</(?P=hidden)\s*>|<[!?][^<>]*>|"
    r"<(?P<slash>/?)(?P<name>[A-Za-z_][\w:.-]*)(?:[\s/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*)?>|"
    f"(?P<placeholder>{PLACEHOLDER.pattern})",
    re.DOTALL,
)
# An element without text to translate, or the start of one.
_HIDDEN = re.compile(
    rf"<!--.*?-->|<({_KEPT}).*?</\1\s*>|(?P<open><!--|<(?P<name>{_KEPT}))", re.IGNORECASE
)
# These separate two words even without a space, and sentences.
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|br|button|caption|d[dlt]|details|dialog|div|"
    "fig(caption|ure)|footer|form|h[1-6r]|head(er)?|html|legend|li|main|menu|nav|[ou]l|option|p|"
    "pre|section|select|summary|t[dhr]|table|tbody|textarea|tfoot|thead|title"
)
_CLOSING = re.compile(r"(?:</[^<>]*>\s*)*")
_UNIT = re.compile(f"{CODE.pattern}|{PATTERNS['numbers'].pattern}")  # one word, with its signs
_BARE = re.compile(r"(?!%%)%[^(%$]*[A-Za-z@]|\{(?::.*)?\}")  # these are read by their order
_RUN = re.compile(f"[{HAN}]{{2}}|[{KATAKANA}]{{2}}")
UNSURE = 0.1  # what a word's attention to punctuation counts
_DEEPEST = 100  # elements within each other; tags of deeper ones stand by themselves


class Mark(NamedTuple):
    """A tag, a placeholder or a comment."""

    text: str
    kind: Literal["open", "close", "point"]
    name: str
    start: int  # in the source
    place: int  # in the plain text
    before: bool  # whether a space, or the end of the text, is before it
    after: bool
    loose: tuple[bool, bool]  # whether no letter is before it, and after it
    apart: bool  # whether a space of the plain text stands for it


@dataclass
class Node:
    """An element with what is in it, or a mark by itself, which has no `closing`."""

    opening: Mark
    closing: Mark | None = None
    children: list[Node] = field(default_factory=list)


class Marked(NamedTuple):
    """A text without its markup, and the markup."""

    source: str
    plain: str
    origin: Offsets  # where each character of `plain` is in `source`
    nodes: list[Node]
    entities: dict[str, str]  # of the source, by the characters & and " that they are read as


class MarkedLines:
    """Translates lines with markup; a comment, a script or a style may be on several of them.

    Args:
        earlier: The lines before those that are translated.
        is_mean, by_sentence: As of `translate_marked`.
    """

    def __init__(
        self, earlier: Iterable[str] = (), is_mean: bool = False, by_sentence: bool = False
    ) -> None:
        self._end = ""  # of what an earlier line began, a pattern
        self._joined = partial(joined, gap="", is_mean=is_mean)
        self._translated = partial(translate_marked, is_mean=is_mean, by_sentence=by_sentence)
        for line in earlier:
            self._parts(line)

    def __call__(
        self,
        translate: Callable[..., Iterable[Translation]],
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
    ) -> Iterator[Translation]:
        """Translates the next lines; arguments as of `translate_marked`."""
        rows = [self._parts(line) for line in lines]
        translations = self._translated(translate, [text for _, text, _ in rows], prefixes)
        for (before, _, after), x in zip(rows, translations, strict=True):
            parts = [Translation(before, before), x, Translation(after, after)]
            yield self._joined(parts) if before or after else x

    def _parts(self, line: str) -> tuple[str, str, str]:
        """The end of what an earlier line began, text, and the start of what a later one ends."""
        end = re.search(self._end, line, re.IGNORECASE)
        if end is None:
            return line, "", ""
        before, line, self._end = line[: end.end()], line[end.end() :], ""
        for match in _HIDDEN.finditer(line):
            if match["open"]:
                self._end = (rf"</{match['name']}\s*>" if match["name"] else "-->") + r"\s*"
                text = line[: match.start()].rstrip()
                return before, text, line[len(text) :]
        return before, line, ""


def translate_marked(
    translate: Callable[[list[str], list[str] | None], Iterable[Translation]],
    sentences: Sentences,
    prefixes: Sentences | None = None,
    is_mean: bool = False,
    by_sentence: bool = False,
) -> Iterator[Translation]:
    """Translates texts with markup by a function for plain ones; prefixes lose theirs.

    Between two tags of blocks a text is translated by itself, perhaps `by_sentence`; these tags
    stay between. A score is the sum of those of the parts, or their mean.
    """
    columns = strings("Translator.translate", columns_of(sentences, prefixes))
    rows = [_pieces(source, by_sentence) for source in map(decoded, columns["sentences"])]
    marked = [[split(piece) for piece in row[::2]] for row in rows]
    starts = None
    if prefixes is not None:
        starts = []
        for prefix, texts in zip(map(decoded, columns["prefixes"]), marked, strict=True):
            first = min((i for i, x in enumerate(texts) if x.plain.strip()), default=0)
            starts += [split(prefix).plain if i == first else "" for i in range(len(texts))]
    flat = [*chain(*marked)]
    done = map(put_back, flat, translate([x.plain for x in flat], starts))
    for row in rows:
        parts: list[Translation] = []
        for place, piece in enumerate(row):
            # Languages have other spaces between sentences.
            is_space = not piece.strip() and "\n" not in piece and place + 1 < len(row)
            between = gap_behind(parts[-1].text) if place % 2 and is_space else piece
            parts.append(Translation(piece, between) if place % 2 else next(done))
        yield joined(parts, gap="", is_mean=is_mean)


def _pieces(source: str, by_sentence: bool) -> list[str]:
    """Texts, and between two of them the tags there, with the spaces beside them, or only these.

    Texts end at the tags of blocks that are not within other elements, and `by_sentence` after
    each sentence and at the tags of what are whole sentences, but not within other elements.
    """
    marked = split(source)
    ends = [*accumulate(map(len, split_sentences(marked.plain)))] if by_sentence else []
    borders = [*_borders(marked.nodes, marked.plain, ends)]
    spans = [(mark.start, mark.start + len(mark.text)) for mark in borders]
    behind = (_CLOSING.match(source, marked.origin[x - 1][1]) for x in ends[:-1])
    spans += [(tags.end(),) * 2 for tags in behind if tags]  # there may be none: it matches ""
    pieces: list[str] = []
    end = 0
    for start, stop in sorted(spans):
        text = source[end:start].rstrip()
        rest = source[stop:].lstrip()
        gap = source[end + len(text) : len(source) - len(rest)]
        if text or not pieces:
            pieces += [text, gap]
        else:
            pieces[-1] += gap
        end = len(source) - len(rest)
    return [*pieces, source[end:]]


def _borders(nodes: Iterable[Node], plain: str, ends: list[int]) -> Iterator[Mark]:
    """The tags that texts end at, in their order; takes the ends of sentences within others out."""
    for node in nodes:
        start, stop = node.opening.place, (node.closing or node.opening).place
        first, last = bisect_right(ends, start), bisect_left(ends, stop)
        is_border = _BLOCK.fullmatch(node.opening.name) is not None
        if first < last and not is_border:  # it has the end of a sentence; has it whole ones?
            before = plain[ends[first - 1] if first else 0 : start]
            is_border = not (before + plain[stop : ends[last]]).strip()
        if is_border:
            yield node.opening
            yield from _borders(node.children, plain, ends)
            if node.closing is not None:
                yield node.closing
        else:
            del ends[first:last]


def split(source: str) -> Marked:
    """Takes the markup out of a text.

    Of two spaces around a placeholder one is left, and none before punctuation. Entities of
    letters, quotes and & are read as characters.
    """
    plain: list[str] = []
    origin: Offsets = []
    marks: list[Mark] = []
    entities: dict[str, str] = {}
    end = 0

    def add(characters: str, spans: Iterable[tuple[int, int]]) -> None:
        plain.extend(characters)
        origin.extend(spans)

    for match, follow in _with_next(source):
        start = match.start()
        add(source[end:start], ((x, x + 1) for x in range(end, start)))
        end = match.end()
        if character := _character(match):
            add(character, [match.span()])
            if character in '&"':
                entities.setdefault(character, match[0])
            continue
        mark = _mark(source, match)
        is_tight = not follow or follow.isspace() or _closes(follow)
        if mark.kind == "point" and plain and plain[-1].isspace() and is_tight:
            plain.pop()
            origin.pop()
            place = len(marks)
            while place and marks[place - 1].place > len(plain):  # those between
                place -= 1
                marks[place] = marks[place]._replace(place=len(plain))
        place, last = len(plain), plain[-1] if plain else " "
        parts = _BLOCK.fullmatch(mark.name) or match["placeholder"]
        apart = bool(parts and _is_spaced(last) and not _opens(last) and in_word(follow))
        if apart:
            add(" ", [(start, end)])
        marks.append(mark._replace(place=place + (apart and mark.kind == "open"), apart=apart))
    add(source[end:], ((x, x + 1) for x in range(end, len(source))))
    return Marked(source, "".join(plain), origin, _nodes(marks), entities)


def _with_next(source: str) -> Iterator[tuple[re.Match[str], str]]:
    """The marks of a text, each with the next character of the plain text, or "" at its end."""
    rows: list[tuple[re.Match[str], str]] = []
    follow, start = "", len(source) + 1
    for match in [*_MARK.finditer(source)][::-1]:
        if match.end() < start:
            follow = source[match.end() : match.end() + 1]
        rows.append((match, follow))
        follow, start = _character(match) or follow, match.start()
    return reversed(rows)


def _character(match: re.Match[str]) -> str:
    """The letter, the quote or the & that an entity means, else ""."""
    text = html.unescape(match[0]) if match[0].startswith("&") else ""
    return text if len(text) == 1 and (text.isalnum() or text in "'’&\"") else ""


def _mark(source: str, match: re.Match[str]) -> Mark:
    (start, end), name = match.span(), match["name"] or match["hidden"] or ""
    kind: Literal["open", "close", "point"] = "close" if match["slash"] else "open"
    if match["name"] is None or match[0].endswith("/>"):
        kind = "point"
    beside = source[max(start - 1, 0) : start], source[end : end + 1]
    before, after = (
        not x or x.isspace() or (kind == "point" and not _is_spaced(x)) for x in beside
    )
    loose = not in_word(beside[0]), not in_word(beside[1])
    return Mark(match[0], kind, name.lower(), start, 0, before, after, loose, apart=False)


def _nodes(marks: Sequence[Mark]) -> list[Node]:
    """The tree of marks; a tag without its partner in the same element is a point."""
    roots: list[Node] = []
    opened: list[Node] = []

    def add(node: Node) -> None:
        (opened[-1].children if opened else roots).append(node)

    def leave(count: int) -> None:
        while len(opened) > count:
            node = opened.pop()
            for other in (Node(node.opening._replace(kind="point")), *node.children):
                add(other)

    for mark in marks:
        names = [node.opening.name for node in opened]
        if mark.kind == "open" and len(opened) < _DEEPEST:
            opened.append(Node(mark))
        elif mark.kind == "close" and mark.name in names:
            leave(len(names) - names[::-1].index(mark.name))
            node = opened.pop()
            add(replace(node, closing=mark))
        else:
            add(Node(mark._replace(kind="point")))
    leave(0)
    return roots


def put_back(marked: Marked, translation: Translation) -> Translation:
    """A translation of `marked.plain` with the markup, as its alternatives.

    Raises:
        ValueError: It has no alignment.
    """
    if marked.plain == marked.source:
        return translation
    if not translation.tokens and translation.text == marked.plain.strip():  # as it was
        return replace(translation, source=marked.source, text=marked.source.strip())
    source_spans = without_spaces(translation.source, translation.source_spans)
    target_spans = without_spaces(translation.text, translation.target_spans)
    words = _words(translation.text, target_spans)
    view = _View.of(marked, translation, source_spans, words)
    whole = np.array([float(start < end) for start, end in source_spans])  # a space is not inside
    items = _in_order(marked.source, _ordered(view, marked.nodes, 0, len(words), whole))
    text, origin = _written(translation.text, [word[0] for word in words], items, marked.entities)
    source_tokens, source_offsets = _moved(source_spans, marked.origin, marked.source)
    tokens, target_offsets = _moved(target_spans, origin, text)
    return replace(
        translation,
        source=marked.source,
        text=text,
        tokens=tokens,
        source_tokens=source_tokens,
        source_offsets=source_offsets,
        target_offsets=target_offsets,
        alternatives=[put_back(marked, x) for x in translation.alternatives],
    )


def _in_order(source: str, items: Iterable[int | Mark]) -> list[int | Mark]:
    """The items, with the placeholders that are read by their order in that of the source."""
    texts = iter([x[0] for x in _MARK.finditer(source) if _BARE.fullmatch(x[0])])
    return [
        x._replace(text=next(texts)) if isinstance(x, Mark) and _BARE.fullmatch(x.text) else x
        for x in items
    ]


def _moved(spans: Offsets, origin: Offsets, result: str) -> tuple[list[str], Offsets]:
    """Tokens and their byte offsets in a result, from their spans before."""
    edges = [0, *accumulate(len(x.encode()) for x in result)]
    places = [*origin, (len(result),) * 2]
    moved = [(places[a][0], places[b - 1][1] if a < b else places[a][0]) for a, b in spans]
    return [result[a:b] for a, b in moved], [(edges[a], edges[b]) for a, b in moved]


def _words(text: str, spans: Offsets) -> list[tuple[int, list[int]]]:
    """The words of a text, which no tag splits: where each begins, and its tokens."""
    words: list[tuple[int, list[int]]] = []
    units = {x for match in _UNIT.finditer(text) for x in range(match.start() + 1, match.end())}
    last = 0
    for place, (start, end) in enumerate(spans):
        if start < end:
            inside = start == last and goes_on(text, start)
            if words and (start < last or inside or start in units):
                words[-1][1].append(place)
            else:
                words.append((start if words else len(text) - len(text.lstrip()), [place]))
            last = max(last, end)
    return words


class _View(NamedTuple):
    """What decides where marks stand."""

    spans: np.ndarray  # start and end of each source token, int [T_x, 2]
    shares: np.ndarray  # α of each word of the translation, which sum to 1, float [words, T_x]

    @classmethod
    def of(
        cls, marked: Marked, x: Translation, spans: Offsets, words: list[tuple[int, list[int]]]
    ) -> _View:
        if x.weights is None and words and marked.nodes:
            raise Refusal("markup", "there is no alignment, wanted one of a model with attention")
        alpha = np.zeros([len(x.tokens), len(spans)]) if x.weights is None else x.weights
        rows = np.zeros([len(words), len(spans)])
        edges = [*(start for start, _ in words), len(x.text)]
        texts = [x.text[a:b].strip() for a, b in pairwise(edges)]
        read = [marked.plain[a:b] for a, b in spans]
        faith = np.array([1.0 if any(map(_is_letter, token)) else UNSURE for token in read])
        for row, (_, tokens) in enumerate(words):
            rows[row] = alpha[tokens, : len(spans)].mean(axis=0)
            if any(map(_is_letter, texts[row])):
                rows[row] *= faith
            else:  # attention is rarely sure of punctuation
                same = np.array([token == texts[row] for token in read], bool)
                if row == len(words) - 1 and read and not any(map(_is_letter, read[-1])):
                    same[-1] = True
                rows[row] = (rows[row] + 1e-3) * same if same.any() else rows[row]
        sums = np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
        return cls(np.array(spans, int).reshape(-1, 2), rows / sums)

    def inside(self, node: Node) -> np.ndarray:
        """The share of each source token that an element encloses, float [T_x]."""
        if node.closing is None:
            return np.zeros(len(self.spans))
        starts, ends = self.spans.T
        common = np.minimum(ends, node.closing.place) - np.maximum(starts, node.opening.place)
        shares: np.ndarray = np.maximum(common, 0) / np.maximum(ends - starts, 1)
        return shares

    def boundary(self, node: Node, low: int, high: int, blocked: np.ndarray) -> int:
        """The place of a node without words, among those from low to high."""
        mark = node.opening
        left = int((self.spans.mean(axis=1) < mark.place).sum())
        steps = left - np.arange(len(self.spans))
        near = 1.0 / np.where(steps > 0, steps, steps - 1)
        if mark.before != mark.after:  # it clings to a word
            near[left : left + 1] *= 1 + mark.before
            near[max(left - 1, 0) : left] *= 1 + mark.after
        sums = np.append(0.0, np.cumsum(self.shares[low:high] @ near)).round(6)
        return low + int(np.where(blocked[low : high + 1], -np.inf, sums).argmax())


def _ordered(
    view: _View, nodes: Sequence[Node], low: int, high: int, outer: np.ndarray
) -> Iterator[int | Mark]:
    """The words from low to high, by number, with the marks of nodes among them.

    `outer` is the share of each source token that the element around the nodes encloses.
    """
    inner = [view.inside(node) for node in nodes]
    gains = [view.shares @ x - 0.5 for x in inner]  # how much more a word belongs inside
    spans: dict[int, tuple[int, int]] = {}
    blocked = np.zeros(len(view.shares) + 1, bool)  # places within an element
    taken = np.zeros(len(view.shares), bool)
    # The element that is surest of a word has it.
    for place in sorted(range(len(nodes)), key=lambda x: -gains[x][low:high].max(initial=-1)):
        values = np.where(taken, -np.inf, gains[place])[low:high]
        if inner[place].any() and (inner[place] >= outer).all():
            start, end = 0, high - low
        else:
            start, end = _best_run(values)
        if start < end:
            spans[place] = low + start, low + end
            taken[low + start : low + end] = True
            blocked[low + start + 1 : low + end] = True
    for place, node in enumerate(nodes):
        if place not in spans:
            spans[place] = (view.boundary(node, low, high, blocked),) * 2
    for place in sorted(spans, key=lambda x: (*spans[x], x)):
        (start, end), node = spans[place], nodes[place]
        yield from range(low, start)
        tags = [tag for tag in (node.opening, node.closing) if tag is not None]
        if start == end:
            tags = [tag._replace(kind="point") for tag in tags]
        yield tags[0]
        yield from _ordered(view, node.children, start, end, inner[place])
        yield from tags[1:]
        low = end
    yield from range(low, high)


def _best_run(gains: np.ndarray) -> tuple[int, int]:
    """The run of words with the largest sum of gains; the longest of equal ones.

    Without a positive gain it is one word, or (0, 0) if nothing is aligned with the element.
    """
    best, start, total = (-0.5, 0, 0), 0, 0.0
    for place, gain in enumerate(gains):
        if total < 0:
            start, total = place, 0.0
        total += gain
        if total > -0.5:
            best = max(best, (round(float(total), 6), place + 1 - start, -start))
    _, length, start = best
    return -start, length - start


def _written(
    text: str, starts: Sequence[int], items: Iterable[int | Mark], entities: Mapping[str, str]
) -> tuple[str, Offsets]:
    """Writes words, with entities, and marks, and where each character of the text then is."""
    edges, written, origin = [*starts, len(text), len(text)], "", Offsets()
    marks: list[Mark] = []
    end = 0  # of the words that are written
    for item in [*items, len(starts)]:
        if isinstance(item, Mark):
            marks.append(item)
            continue
        start = edges[item]
        word = text[start : edges[item + 1]].rstrip()
        gaps = _gaps(marks, text[end:start], text[end - 1 : end], word[:1])
        origin += [(len(written),) * 2] * (start - end)
        for gap, mark in zip(gaps, [*(x.text for x in marks), ""], strict=True):
            written += gap + mark
        characters = [entities.get(x, x) for x in word]
        origin += pairwise(accumulate(map(len, characters), initial=len(written)))
        written, end, marks = written + "".join(characters), start + len(word), []
    return written, origin


def _gaps(marks: Sequence[Mark], gap: str, last: str, following: str) -> list[str]:
    """The spaces before, between and after marks which stand between two characters, or in a gap.

    They are where the source has spaces beside the marks.
    """
    count = len(marks)
    near = [marks[max(place - 1, 0) : place + 1] for place in range(count + 1)]
    wishes = [
        [*(x.before if x is mark else x.after for x in near[place])]
        for place, mark in enumerate([*marks, None])
    ]
    if any(PLACEHOLDER.fullmatch(mark.text) for mark in marks):  # it is like a word
        if marks[0].loose[0] and in_word(last):
            wishes[0] = [True]
        if marks[-1].loose[1] and in_word(following):
            wishes[-1] = [True]
    places = [place for place, wish in enumerate(wishes) if all(wish)]
    if gap:
        places = places or [place for place, wish in enumerate(wishes) if any(wish)][:1]
        if not places and not any(mark.apart for mark in marks):
            kinds = [*(mark.kind for mark in marks), "open"]
            places = [next(x for x, kind in enumerate(kinds) if kind != "close")]
        return [gap if x in places[:1] else " " * (x in places) for x in range(count + 1)]
    at_edge = not (last and following)
    spaces = [""] * (count + 1)
    for place in places:
        left = place > 0 or (_is_spaced(last) and not _opens(last))
        right = place < count or (_is_spaced(following) and not _closes(following))
        if left and right and (at_edge or any(mark.kind == "point" for mark in near[place])):
            spaces[place] = " "
    return spaces


def _is_letter(character: str) -> bool:
    """Whether it is a letter, a digit, or a part of one."""
    return unicodedata.category(character)[0] in "LMN"


def _is_spaced(character: str) -> bool:
    """Whether it is not a space, and of a script with spaces between words."""
    if not character or character.isspace() or unspaced_script([character]):
        return False
    return _is_letter(character) or unicodedata.east_asian_width(character) not in "WF"


@lru_cache(maxsize=1 << 12)
def in_word(character: str) -> bool:
    """Whether a character is part of a word of a script with spaces; "" is not."""
    return bool(character) and _is_letter(character) and _is_spaced(character)


def goes_on(text: str, place: int) -> bool:
    """Whether a word goes on at a place, or a run of Chinese characters or Katakana."""
    pair = text[max(place - 1, 0) : place + 1]
    return len(pair) == 2 and (all(map(in_word, pair)) or _RUN.fullmatch(pair) is not None)


def _opens(character: str) -> bool:
    return unicodedata.category(character) in ("Ps", "Pi")


def _closes(character: str) -> bool:
    return unicodedata.category(character) in ("Po", "Pe", "Pf")
