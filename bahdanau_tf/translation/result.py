"""Results: a translation, and the score of a given translation."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

import numpy as np

from bahdanau_tf import evaluation
from bahdanau_tf.plotting import plot_alignment
from bahdanau_tf.system.language import in_language, said
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation.view import Row, Side, alignment_html, table_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Offsets = list[tuple[int, int]]
_SHOWN = 60  # characters of a text in a repr

# Why a translation may be wrong, by kind: of one, and of several lines.
REASONS: dict[str, tuple[str, str]] = {
    "characters": ("characters that the model does not know: {}", "unknown characters"),
    "words": ("words that the model hardly knows: {}", "words that the model hardly knows"),
    "number": ("the number {} is missing", "a number is missing"),
    "added": (
        "the source lacks the number {}, or has it less often",
        "a number is not in the source",
    ),
    "name": ("the name {} is missing", "a name is missing"),
    "dropped": ("{} is not translated", "a word is not translated"),
    "untranslated": ("{} is left as in the source", "a word is left as in the source"),
    "code": ("{} is missing or was added", "an address or a code is missing or was added"),
    "term": ("the term {} is missing", "a term is missing"),
    "marks": ("unmatched quotation mark or bracket",) * 2,
    "fragment": (
        "no sentence of the training ends with {}",
        "ends as no sentence of the training does",
    ),
    "end": ("the mark at the end is missing",) * 2,
    "sentences": ("fewer sentences than in the source ({})", "fewer sentences than in the source"),
    "cut": ("only a part is translated",) * 2,
    "repeated": ("{} is repeated", "a phrase is repeated"),
    "long": ("longer than in training ({} tokens)", "longer than in training"),
    "unlikely": (
        "less likely than {} of the dev text's translations",
        "less likely than nearly all translations of the dev text",
    ),
}


class Doubt(NamedTuple):
    """A reason why a translation may be wrong; `str` says it in the language of `set_language`.

    Attributes:
        kind: One of `REASONS`.
        detail: What is meant, such as the number that is missing.
    """

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return said(REASONS[self.kind][0]).format(self.detail)


@dataclass(frozen=True, eq=False, repr=False)
class Translation:
    """A translation, as `Translator.translate` and `align` return it.

    The defaults are those of a sentence without words.

    Attributes:
        source: The source sentence.
        text: Its translation, detokenized.
        tokens: Target tokens as they are in `text`, in its order, without the end symbol.
        score: The score that search ranks by: log p(y | x) with penalties.
        log_prob: log p(y | x), in nats, the end symbol included.
        finished: Whether the end symbol was reached within the length limit.
        source_tokens: Source tokens as they are in `source`, in its order, without the end symbol.
        source_offsets: For each source token (start, end), byte offsets in `source` encoded as
            UTF-8, as in exports; `source_spans` has those in characters.
        target_offsets: For each target token (start, end), byte offsets in `text` encoded as UTF-8;
            `target_spans` has those in characters.
        weights: Soft alignment α, float32 [T_y, T_x]; the last column, and the last row of a
            finished translation, belong to the end symbols. None for a model without attention, and
            for a text of several sentences with more than 2^20 weights, whose `parts` have theirs.
        alternatives: The other translations of an n-best list, best first.
        cut: Whether only the start of the source was read, because it is longer than the translator
            reads.
        confidence: The share of the dev text's translations, of similar lengths, that are less
            likely per token, from 0 to 1; None if the translator was trained without a dev text.
        doubts: Reasons why it may be wrong, none as a rule; see `bahdanau_tf.translation.doubts`.
        parts: The translations of the sentences of a text of several, else none.
    """

    source: str
    text: str = ""
    tokens: list[str] = field(default_factory=list)
    score: float = 0.0
    log_prob: float = 0.0
    finished: bool = True
    source_tokens: list[str] = field(default_factory=list)
    source_offsets: Offsets = field(default_factory=list)
    target_offsets: Offsets = field(default_factory=list)
    weights: np.ndarray | None = None
    alternatives: list[Translation] = field(default_factory=list)
    cut: bool = False
    confidence: float | None = None
    doubts: tuple[Doubt, ...] = ()
    parts: Sequence[Translation] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        others = f", {len(self.alternatives)} more" if self.alternatives else ""
        source, text = (
            repr(x if len(x) <= _SHOWN else f"{x[: _SHOWN - 3]}...")
            for x in (self.source, self.text)
        )
        return f"<Translation {source} -> {text}, score {self.score:.2f}{others}>"

    def __eq__(self, other: object) -> bool:
        return _equal(vars(self), vars(other)) if isinstance(other, Translation) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.source, self.text, self.score))

    @property
    def source_spans(self) -> Offsets:
        """The (start, end) of each source token in `source`, end excluded.

        They count characters, as Python's strings do. If a token is a part of a character, as
        sub-words of bytes may be, its span is the whole character.
        """
        return _in_characters(self.source, self.source_offsets)

    @property
    def target_spans(self) -> Offsets:
        """The (start, end) of each target token in `text`, end excluded."""
        return _in_characters(self.text, self.target_offsets)

    @property
    def line(self) -> str:
        """`text` without line feeds and NUL, for files of one a line.

        A vocabulary of bytes can write them.
        """
        return " ".join(self.text.replace("\0", "").split("\n"))

    @property
    def truncated(self) -> bool:
        """Whether not all was translated, as in a SavedModel: it was cut, or is not finished."""
        return self.cut or not self.finished

    def view(self, language: str | None = None) -> str:
        """The translation with its alignment, as HTML that a notebook draws.

        Args:
            language: Language of the headings and hints, "en", "ko" or "ja"; None for that of
                `bahdanau_tf.set_language`.

        Returns:
            HTML for any page; it loads nothing from elsewhere.

        Raises:
            ValueError: There are no texts in this language.
        """
        if self.parts and self.weights is None:
            return Translations(self.parts).view(language)
        with in_language("Translation.view", language):
            source = Side(self.source, self.source_spans)
            target = Side(self.text, self.target_spans)
            return alignment_html(source, target, self.weights, self.doubts)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The alignment as matplotlib's figure, see `bahdanau_tf.plot_alignment`.

        Args:
            path: A file to write.

        Raises:
            ValueError: The model has no attention.
            ImportError: matplotlib is not installed.
        """
        return plot_alignment(self, path=path)

    _repr_html_ = view

    @property
    def hard_alignment(self) -> evaluation.Links:
        """The link (source token, target token) of each target token.

        It is that of `bahdanau_tf.evaluation.hard_links`; end symbols have no links.

        Raises:
            ValueError: The model has no attention.
        """
        if not self.parts:
            return evaluation.hard_links(self._alpha()) if self.tokens else frozenset()
        links, column, row = set[tuple[int, int]](), 0, 0
        for part in self.parts:
            links.update((column + i, row + j) for i, j in part.hard_alignment)
            column, row = column + len(part.source_tokens), row + len(part.tokens)
        return frozenset(links)

    @property
    def word_weights(self) -> np.ndarray:
        """α between words, split at spaces, float [words of `text`, words of `source`].

        The weights of a word's tokens are summed on the source side and averaged on the target
        side; end symbols are left out.

        Raises:
            ValueError: The model has no attention.
        """
        rows = _token_words(self.text, self.target_spans)
        columns = _token_words(self.source, self.source_spans)
        means = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
        words: np.ndarray = means @ self._alpha() @ columns.T
        return words

    def _alpha(self) -> np.ndarray:
        """α without the end symbols, float32 [tokens, source tokens]."""
        if self.weights is None:
            wanted = "one of a model with attention, or of a shorter text"
            raise Refusal("Translation", f"no alignment, wanted {wanted}")
        return self.weights[: len(self.tokens), : len(self.source_tokens)]

    @property
    def diagonal_alignment(self) -> evaluation.Links:
        """A baseline for `hard_alignment`: the links of a straight diagonal.

        It is that of `bahdanau_tf.evaluation.diagonal_links`.
        """
        return evaluation.diagonal_links(len(self.tokens), len(self.source_tokens))

    @property
    def pharaoh(self) -> str:
        """The hard alignment as in "0-0 1-2": source-target, from 0."""
        return evaluation.format_pharaoh(self.hard_alignment)

    def alignment_error_rate(
        self, sure: evaluation.Links, possible: evaluation.Links = frozenset()
    ) -> float:
        """Compares the hard alignment with gold links.

        Args:
            sure: Links that must be present; they refer to `source_tokens` and `tokens`.
            possible: Further links that may be present.

        Returns:
            AER, from 0, the best, to 1; see `bahdanau_tf.evaluation.alignment_error_rate`.
        """
        return evaluation.alignment_error_rate([self.hard_alignment], [sure], [possible])


class Tokens(NamedTuple):
    """The tokens of a text, in its order."""

    text: str
    tokens: list[str]  # as they stand in the text
    offsets: Offsets  # (start, end) of each, in bytes of `text` in UTF-8
    places: list[int]  # of each among the ids, and that of the end symbol

    @classmethod
    def cut(cls, text: str, spans: Offsets, reverse: bool) -> Tokens:
        """Cuts them out of a text; the spans are in the order of the ids."""
        data, places = text.encode(), [*range(len(spans))][:: -1 if reverse else 1]
        offsets = [spans[place] for place in places]
        tokens = [data[start:end].decode("utf-8", "replace") for start, end in offsets]
        return cls(text, tokens, offsets, [*places, len(places)])

    def translated(self, target: Tokens, weights: np.ndarray | None, **values: Any) -> Translation:
        """A translation of this source; α is in the order of the ids."""
        if weights is not None:
            rows = [*target.places[:-1], *range(len(target.tokens), len(weights))]
            weights = weights[rows][:, self.places]
        return Translation(
            source=self.text,
            text=target.text,
            tokens=target.tokens,
            source_tokens=self.tokens,
            source_offsets=self.offsets,
            target_offsets=target.offsets,
            weights=weights,
            **values,
        )


class Translations(list[Translation]):
    """A list of translations, which a notebook draws as a table, as it does a slice."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> Translation: ...

    @overload
    def __getitem__(self, place: slice) -> Translations: ...

    def __getitem__(self, place: SupportsIndex | slice) -> Translation | Translations:
        items = super().__getitem__(place)
        return Translations(items) if isinstance(items, list) else items

    def view(self, language: str | None = None) -> str:
        """The table, as HTML; arguments, result and errors as for `Translation.view`."""
        with in_language("Translations.view", language):
            rows = []
            for x in self:
                texts = [y.text for y in (x, *x.alternatives)]
                alignment = None if x.weights is None else x.view
                rows.append(Row(x.source, texts, x.score, alignment, x.doubts))
            return table_html(rows)

    _repr_html_ = view


class Scored(NamedTuple):
    """The score of a given translation, as `Translator.score` returns it.

    Attributes:
        log_prob: log p(y | x), in nats, the end symbol included.
        tokens: Target tokens as in the vocabulary, in the order in which the model predicts them,
            without the end symbol.
        token_log_probs: float32 [T_y], log p(y_i | y_1 .. y_{i-1}, x) of each token and of the end
            symbol.
    """

    log_prob: float
    tokens: list[str]
    token_log_probs: np.ndarray

    def __eq__(self, other: object) -> bool:
        return _equal(self._asdict(), other._asdict()) if isinstance(other, Scored) else False

    def __ne__(self, other: object) -> bool:  # that of tuples compares arrays
        return not self == other

    def __hash__(self) -> int:
        return hash((self.log_prob, *self.tokens))


def _in_characters(text: str, offsets: Offsets) -> Offsets:
    """Offsets in bytes of UTF-8 as offsets in characters; one inside a character moves outwards."""
    starts = [0, *accumulate(len(x.encode("utf-8", "replace")) for x in text)]
    return [(bisect_right(starts, a) - 1, bisect_left(starts, b)) for a, b in offsets]


def without_spaces(text: str, spans: Offsets) -> Offsets:
    """Spans without the space that a sub-word may begin with."""
    return [(end - len(text[start:end].lstrip()), end) for start, end in spans]


def _token_words(text: str, spans: Offsets) -> np.ndarray:
    """Which tokens a word between spaces consists of, 1 or 0, float [words, tokens]."""
    starts = [word.start() for word in re.finditer(r"\S+", text)]
    places = [start for start, _ in without_spaces(text, spans)]
    words = np.searchsorted(starts, places, side="right") - 1
    return np.equal.outer(np.arange(len(starts)), words).astype(float)


def _equal(values: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two results have the same values; arrays are compared as a whole."""
    return all(
        np.array_equal(value, other)
        if isinstance(value, np.ndarray) or isinstance(other, np.ndarray)
        else value == other
        for value, other in zip(values.values(), others.values(), strict=True)
    )
