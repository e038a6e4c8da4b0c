"""The facts of a text by which options are chosen, and how long a training on it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Options = Mapping[str, Any]

# What makes a text one of short strings, such as words and their phones.
FEWEST_SINGLE, MOST_SINGLE = 0.5, 0.1  # lines of one word: in a text of words, in one of phones
LONGEST_WORD = 30  # characters; half as many in Chinese, Japanese and Korean
MOST_SYMBOLS, MOST_LETTERS = 500, 1.9  # different phones, and letters of one
ONE_LETTER = 1.1  # of a symbol, in a text of words with spaces between their characters
SYLLABLES = 0.9  # of the lines of syllables have one for each character


@dataclass(frozen=True)
class Side:
    """One language of a parallel text, in composed characters (NFC)."""

    script: str  # as `evaluation.script` names it
    has_blanks: bool  # whether spaces separate its words
    is_tokenized: bool  # whether spaces separate punctuation as well
    size: int  # number of characters
    # Number of different ones; in the source also as in a line that `true_cased` has changed.
    characters: int
    length: int  # number of characters that 99.5 % of its lines do not exceed
    words: int  # the same in words between spaces
    single: float  # the share of lines without a space
    symbols: int  # number of different words between spaces
    symbol_letters: float  # in one that is not rare, without marks such as stress; their mean
    # The share of lines with as many words between spaces as the other side has characters.
    syllables: float = 0.0

    @property
    def short_kind(self) -> str:
        """The tokenizer for short strings: "char" for single words, "space" for phones, or ""."""
        if self.single >= FEWEST_SINGLE and self.is_brief:
            return "char"
        is_spaced = self.single <= MOST_SINGLE and self.symbols <= MOST_SYMBOLS
        return "space" if is_spaced and self.symbol_letters <= MOST_LETTERS else ""

    @property
    def is_brief(self) -> bool:
        """Whether its lines have no more characters than a word may have."""
        longest = LONGEST_WORD / (2 if self.script in ("kana", "han", "hangul") else 1)
        return self.length <= longest

    @property
    def is_apart(self) -> bool:
        """Whether its lines are words with spaces between their characters."""
        is_word = self.words <= LONGEST_WORD and self.symbol_letters <= ONE_LETTER
        return is_word and self.short_kind == "space"

    @property
    def is_dense(self) -> bool:
        """Whether one or two characters are a word."""
        return self.script in ("kana", "han", "hangul") or not self.has_blanks

    def tokens(self, tokenizer: str) -> float:
        """Number of tokens, for words and sub-words estimated by its characters."""
        if tokenizer == "char":
            return self.size
        if tokenizer == "space":
            return self.size * self.words / max(self.length, 1)
        return self.size / (_SYLLABLES if self.is_dense else _LETTERS)


@dataclass(frozen=True)
class Facts:
    """A parallel text."""

    pairs: int  # number of sentence pairs
    different: int  # number of different source lines
    characters: int  # number of different characters of both sides together
    source: Side
    target: Side
    kept_signs: float = 0.0  # the share of source lines without letters that equal their target

    @property
    def short_kinds(self) -> tuple[str, str]:
        """The tokenizers of both sides for short strings, see `Side.short_kind`.

        What has phones may be several words, as in Vietnamese. What words have may be syllables,
        one for each character, as in Chinese.
        """

        def kind(side: Side, other: Side) -> str:
            if other.short_kind == "char" and side.syllables >= SYLLABLES:
                return "space"
            is_spelled = other.short_kind == "space" and side.is_brief
            return side.short_kind or "char" * is_spelled

        return kind(self.source, self.target), kind(self.target, self.source)

    @property
    def is_short(self) -> bool:
        """Whether both sides are short strings, and one of them words."""
        has_words = "char" in self.short_kinds or self.source.is_apart or self.target.is_apart
        return has_words and "" not in self.short_kinds

    def tokens(self, options: Options) -> tuple[float, float]:
        """The number of tokens of both sides with a tokenizer, that of the options."""
        kinds = tokenizers_of(options)
        source, target = self.source.tokens(kinds["source"]), self.target.tokens(kinds["target"])
        return source * (_HANGUL if self.reads_letters(options) else 1), target

    def reads_letters(self, options: Options) -> bool:
        """Whether a source of Hangul is read as its letters."""
        return bool(options.get("decompose_source")) and self.source.script == "hangul"


# Used instead of the text when flags are checked before a text is read.
_TYPICAL_SIDE = Side("latin", True, False, 2_000_000, 90, 150, 30, 0.0, 15_000, 7.0)
TYPICAL = Facts(30_000, 30_000, 100, _TYPICAL_SIDE, _TYPICAL_SIDE)

MEASURED = 29_000  # lines of the text by which the rules were found


def between(low: float, value: float, high: float) -> float:
    """The value, or the limit that is nearer."""
    return max(low, min(value, high))


def rounded(number: float) -> int:
    """Rounds to two significant digits."""
    unit: int = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return round(number / unit) * unit


def tokenizers_of(options: Options) -> dict[str, str]:
    """The tokenizer of each side; the options may not have one yet."""
    source: str = options.get("tokenizer", "bpe")
    target: str = options.get("target_tokenizer", "same")
    return {"source": source, "target": source if target == "same" else target}


# How long a training takes, and how often it sees each pair.

# Operations per second of a training on one core, and the overhead in
# seconds per 80 pairs: together 3,050 target tokens per second of Multi30k with its recipe
# (2026-11-22, AMD EPYC), on a core that multiplies square float32 matrices with
# PRODUCT_RATE operations per second. On other cores both change with that rate.
CORE = 5.6e10
PRODUCT_RATE = 1.08e11
OUTPUT = 0.5  # relative time of an operation of the large output product
RISK = 1.4  # relative time of a sample of --risk_samples, as measured
GPU = 10  # cores of PRODUCT_RATE that are as fast; an H200: 13 at 256 units
BESIDES = 0.04
SPREAD = 0.85  # exponent of the cores: two take 0.55 of one's time, as measured
PART_ROWS = 8  # of a core's part of a batch; with fewer, each row is slower
MOST_PARTS = 16  # each delays the start of a training by a second or two
BATCH_TOKENS = 1450  # of the target, in a batch
MINUTES = 60  # of a training without another limit
SHORT_EPOCHS, MANY_WORDS = 14, 5_000  # 38 epochs of 8,000 words learned them by heart
ANY = 1e6  # epochs, more than any training has
_LETTERS = 3.9  # of an alphabet, spaces included, in a sub-word or short word
_HANGUL = 2.4  # letters of a syllable
_SYLLABLES = 1.8  # the same of Chinese, Japanese or Korean


def seconds_per_epoch(facts: Facts, options: Options) -> float:
    """Estimates the time of an epoch.

    With n units, n annotations a direction and embeddings as wide, a source token takes 14 n²
    multiplications (a bidirectional gated unit of 12 n², the keys of 2 n²), a target token 21 n² +
    n K (a gated unit that reads word, state and annotations, the query, the readout, the output
    matrix of K rows) and 3 n² more for the conditional decoder's other state; back-propagation
    takes twice as many again. Those of the output are faster. `risk_samples` is the number of
    translations drawn for each pair.

    `options` has "units" and the vocabulary sizes; about the machine the number of "cores" (default
    1), the "product_rate" of a core (default `PRODUCT_RATE`) and "has_gpu" (default false).
    """
    units: int = max(1, min(options["units"], 10**6))  # not checked yet
    rows: int = options.get("target_vocabulary_size") or options["source_vocabulary_size"]
    squares = 24 if options.get("step_order") == "conditional" else 21
    source, target = facts.tokens(options)
    multiplications = source * 14 * units**2
    multiplications += target * (squares * units**2 + OUTPUT * units * rows)
    one_core = 3 * 2 * multiplications / CORE + BESIDES * facts.pairs / 80
    if samples := options.get("risk_samples"):
        one_core *= RISK * samples
    speed: float = options.get("product_rate", PRODUCT_RATE) / PRODUCT_RATE
    cores = cores_of(facts, options)
    if options.get("has_gpu"):
        speed, cores = 1.0, GPU
    return one_core / speed / math.pow(cores, SPREAD)


def cores_of(facts: Facts, options: Options) -> int:
    """The number of cores that a training uses, or can use without a batch size."""
    batch: int = options.get("batch_size") or batch_of(facts, options, BATCH_TOKENS)
    cores: int = options.get("cores", 1)
    return min(cores, parts_of(batch))


def batch_of(facts: Facts, options: Options, tokens: float) -> int:
    """The number of pairs, from 16 to 80, that have so many target tokens."""
    share = tokens / max(facts.tokens(options)[1], 1)
    return int(between(16, 8 * round(share * facts.pairs / 8), 80))


def parts_of(batch_size: int) -> int:
    """The largest number of parts of a batch that are computed at the same time."""
    return max(1, min(batch_size // PART_ROWS, MOST_PARTS))


def limits(facts: Facts, options: Options) -> tuple[float, float]:
    """The largest numbers of epochs, and of minutes, 0 for any.

    Both leave room for the number of updates, if that is set.
    """
    updates = options.get("updates")
    is_free = "epochs" in options or updates or options.get("deterministic")
    fewer = math.sqrt(MEASURED / facts.pairs)
    most = SHORT_EPOCHS if facts.is_short and facts.different >= MANY_WORDS else 100
    epochs = float(round(between(3, 20 * max(fewer, math.sqrt(fewer)), most)))
    minutes = 0.0 if is_free else float(MINUTES)
    return options.get("epochs", ANY if updates else epochs), options.get("minutes", minutes)


def epochs_in_time(facts: Facts, options: Options) -> float:
    """The number of epochs that are wanted, or that fit into the time."""
    epochs, minutes = limits(facts, options)
    if minutes:
        epochs = min(epochs, 60 * minutes / seconds_per_epoch(facts, options))
    return epochs


def seen(facts: Facts, options: Options) -> float:
    """How often each pair is seen within the limits of epochs, time and updates."""
    epochs = epochs_in_time(facts, options)
    if updates := options.get("updates"):
        epochs = min(epochs, updates / updates_per_epoch(facts, options))
    return epochs


def updates_per_epoch(facts: Facts, options: Options) -> float:
    """The number of updates in an epoch; the options have a "batch_size"."""
    pairs: float = options["batch_size"]
    if budget := options.get("token_budget"):
        longest = max(facts.tokens(options))
        pairs = max(budget * facts.pairs / max(longest, 1), 1)
    accumulate: int = options.get("accumulate", 1)
    return math.ceil(facts.pairs / pairs) / accumulate
