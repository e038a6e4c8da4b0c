"""The text of a training: its facts, what is doubtful, pairs to hold out, and the tokenizers."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.evaluation import has_blanks
from bahdanau_tf.options import TextOptions
from bahdanau_tf.options.choices import UNITS
from bahdanau_tf.options.facts import Facts, Side
from bahdanau_tf.options.model import SUBWORDS
from bahdanau_tf.options.training import TEXTS, pretrained_names
from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.text.script import UNKNOWN, guess_language, is_tokenized, script
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.text.words import true_cased
from bahdanau_tf.training.ask import Training
from bahdanau_tf.training.folder import TEXT, check_settings, read_settings, write_settings

SAMPLE = 20_000  # lines from which script and lengths are measured
LONGEST = 1000  # characters of a line that count for its script
RARE = 1000  # lines, of which one at least must have a symbol by which a side is recognized
MOST = 0.995  # the share of lines that are not longer than the lengths here
FEWEST_SIGNS = 10  # lines without letters, by which one can tell whether they stay
_KEYS = [("source", np.uint64), ("pair", np.uint64), ("longest", np.uint32)]


def measure(corpus: ParallelCorpus) -> tuple[Facts, np.ndarray]:
    """Reads a text once, a part at a time; returns its facts and its keys.

    The keys have a row for each pair: "source" and "pair", uint64, the same for the same source
    line and for the same pair, and "longest", the bytes of the longer side.
    """
    every = max(len(corpus) // SAMPLE, 1)
    samples: tuple[list[str], list[str]] = ([], [])
    characters: tuple[set[str], set[str]] = (set(), set())
    sizes, parts = [0, 0], []
    for chunk in corpus.read_in_chunks(corpus.rows):
        pairs = zip(*chunk, strict=True)
        rows = [(_key(x), _key(x.strip() + b"\n" + y), max(len(x), len(y))) for x, y in pairs]
        parts.append(np.array(rows, _KEYS))
        for side, lines in enumerate(chunk):
            text = _composed(b"\n".join(lines))
            sizes[side] += len(text)
            characters[side].update(text)
            samples[side].extend(map(_composed, lines[::every]))
        sentences = true_cased(chunk[0]).numpy().tolist()
        characters[0].update(_composed(b"\n".join(sentences)))
    sides = zip(samples, reversed(samples), sizes, characters, strict=True)
    source, target = (_side(*x) for x in sides)
    keys = np.concatenate(parts)
    different = len(np.unique(keys["source"]))
    number = len(set.union(*characters))
    return Facts(len(corpus), different, number, source, target, _kept_signs(*samples)), keys


def _kept_signs(sources: list[str], targets: list[str]) -> float:
    pairs = zip(sources, targets, strict=True)
    kept = [x == y for x, y in pairs if x.strip() and not any(map(str.isalpha, x))]
    return sum(kept) / len(kept) if len(kept) >= FEWEST_SIGNS else 0.0


def _key(line: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(line.strip(), digest_size=8).digest(), "big")


def _composed(text: bytes) -> str:
    return unicodedata.normalize("NFC", text.decode())


def _side(lines: list[str], others: list[str], size: int, characters: set[str]) -> Side:
    starts = [line[:LONGEST] for line in lines]
    words = [line.split() for line in lines]
    different = Counter(itertools.chain.from_iterable(words))
    frequent = [x for x, n in different.items() if n * RARE >= len(lines)]  # no comments
    return Side(
        script=script(starts),
        has_blanks=has_blanks(starts),
        is_tokenized=is_tokenized(starts),
        size=size,
        characters=len(characters),
        length=_most([len(line) for line in lines]),
        words=_most([*map(len, words)]),
        single=sum(len(row) < 2 for row in words) / len(lines),
        symbols=len(different),
        symbol_letters=sum(map(_letters, frequent)) / max(len(frequent), 1),
        syllables=sum(len(x) == len(y) for x, y in zip(words, others, strict=True)) / len(lines),
    )


def _letters(word: str) -> int:
    """The number of letters, without signs of length and stress such as ː, or else of signs.

    A number counts as more, since text with numbers is no sequence of phones.
    """
    letters = sum(unicodedata.category(x) in ("Ll", "Lo", "Lt", "Lu") for x in word)
    return letters or len(word) + word.isdecimal()


def _most(lengths: list[int]) -> int:
    """The length that most lines do not exceed."""
    return int(np.quantile(lengths, MOST, method="higher"))


# What is doubtful.

FIRST_PAIRS = 100  # by which a table or a header is recognized
_NAME = re.compile(r"[^\W\d]+")
FEW = UNITS[0][0]  # different pairs: fewer get the smallest model
SHARE = 0.1  # of the dev pairs: so many may be training pairs by chance


def doubts(train: ParallelCorpus, dev: ParallelCorpus | None, keys: np.ndarray) -> Iterator[str]:
    """Yields warnings about a training text and a dev text, if there is one.

    They name what is probably a mistake. `keys` are those of the training text.
    """
    yield from _doubts_of("train", train)
    if dev is not None:
        yield from _doubts_of("dev", dev)
        count = int(np.isin(measure(dev)[1]["pair"], keys["pair"]).sum())
        if count > SHARE * len(dev):
            yield (
                f"{count:,} of {len(dev):,} dev pairs are training pairs, too: dev scores show how "
                "well these are memorized"
            )


def _doubts_of(name: str, corpus: ParallelCorpus) -> Iterator[str]:
    source, target = corpus.names
    if corpus.is_copy:
        yield (
            f"{named(name + '_source')} and {named(name + '_target')} are the same text, "
            f"{source}: a model only learns to copy from it"
        )
    elif name == "train" and not match(corpus):
        yield (
            "the source and target lines of the training text match no better than shuffled "
            f"ones: is each line of {target} the translation of the same line of {source}?"
        )
    elif lag := slip(corpus):
        first, count = lag
        where = f"{amount(abs(count), 'line')} {'below' if count > 0 else 'above'}"
        yield (
            f"from about line {first:,} of the {name} text on, the lines of {target} match those "
            f"of {source} that are {where}: does one side lack a line there, or have one too many?"
        )
    sides = first_lines(corpus, FIRST_PAIRS)
    is_name = [all(map(_NAME.fullmatch, pair)) for pair in zip(*sides, strict=True)]
    if len(is_name) > 1 and is_name[0] and not any(is_name[1:]):
        yield (
            f"the first {name} pair, {sides[0][0]!r} and {sides[1][0]!r}, looks like a header "
            "and is read as a pair; delete it if it is one"
        )
    for side, path, lines in zip(SIDES, corpus.names, sides, strict=True):
        if all("\t" in line for line in lines):
            yield (
                f"{named(f'{name}_{side}')}: the lines of {path} have tabs, like a table of "
                "both sides; if it is one, give it a name that ends in .tsv, and set only "
                f"{named('train_source')} or {named('dev_source')}: both columns are read"
            )


def few_pairs(keys: np.ndarray) -> Iterator[str]:
    """Yields a warning if a text has too few pairs to learn a language from.

    Equal pairs count once, and those with a blank line not at all.
    """
    different = len(np.unique(keys["pair"]))
    if different < FEW:
        yield (
            f"only {amount(different, 'different pair')}, fewer than {FEW:,}: expect "
            "at best fair translations of sentences much like these, and bad ones of others; "
            "everyday language needs tens of thousands"
        )


def known_start(corpus: ParallelCorpus) -> Iterator[str]:
    """Names the translator of the package that knows both languages of a text, or its source's."""
    source, target = map(guess_language, first_lines(corpus, LINES))
    known = {name: name.split("-")[1:] for name in pretrained_names()}
    names = [name for name, languages in known.items() if languages[0] == source]
    best = next((name for name in names if known[name][1] == target), next(iter(names), None))
    if best is not None and source != target:
        what = "both languages" if known[best][1] == target else "the source's language"
        yield f"{named('init_from', best)} starts with a model that knows {what}"


FEWEST_MATCHED, MOST_MATCHED = 500, 1000  # pairs of a sample
SHUFFLES = 20
CLEAR = 8  # standard deviations
KINDS = 509  # of two letters in a row; a prime, as pairs of letters are hashed
SLIPS = (1, -1, 2, -2, 3, -3)  # lines by which a side may be behind the other
NEAR = 100  # lines


def match(corpus: ParallelCorpus) -> bool:
    """Whether the two sides of a text belong together; True if it is too small to know.

    Then sentences with similar letters have translations with similar letters, in any languages:
    the Hilbert-Schmidt independence criterion (Gretton et al. 2005) of the pairs, with counts of
    two letters in a row as features, is clearly above that of the same pairs shuffled.
    """
    places = np.linspace(0, len(corpus) - 1, MOST_MATCHED).astype(int)
    source, target = map(_letter_pairs, corpus.read(corpus.rows[np.unique(places)]))
    if len(source) < FEWEST_MATCHED:
        return True
    return _is_clear(source, target)


def slip(corpus: ParallelCorpus) -> tuple[int, int] | None:
    """From which line on, about, a target is that of a source so many lines below; None if its own.

    If one side lacks a line, all that follow it belong to others, so the last lines tell.
    """

    def moved(start: int) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
        """By how many lines the sources are below, 0 if none, and these sides.

        A line that stands there again, as one with several translations, is left out.
        """
        pairs, seen = [], set[bytes]()
        for pair in zip(*corpus.read(corpus.rows[start:][:MOST_MATCHED]), strict=True):
            pairs += [pair] * seen.isdisjoint(pair)
            seen.update(pair)
        source, target = (_letter_pairs([*side]) for side in zip(*pairs, strict=True))
        if len(pairs) < NEAR:  # too few to tell
            return 0, (source, target)
        sides = {
            n: (source[n:], target[:-n]) if n > 0 else (source[:n], target[-n:]) for n in SLIPS
        }
        best = max(SLIPS, key=lambda n: _dependence(*sides[n]))
        is_own = _dependence(*sides[best]) < 2 * _dependence(source, target)
        return 0 if is_own else best, sides[best]

    start, end = 0, max(len(corpus) - MOST_MATCHED, 0)
    lines, sides = moved(end) if len(corpus) >= FEWEST_MATCHED else (0, ())
    if not lines or not _is_clear(*sides):
        return None
    if moved(start)[0]:
        return 1, lines
    while end - start > NEAR:
        middle = (start + end) // 2
        start, end = (start, middle) if moved(middle)[0] else (middle, end)
    return int(corpus.rows[end]) + FEWEST_MATCHED, lines


def _dependence(source: np.ndarray, target: np.ndarray) -> float:
    """The criterion above that of pairs drawn by chance."""
    chance = np.square(source).sum() * np.square(target).sum() / (len(source) - 1)
    return float(np.square(source.T @ target).sum() - chance) / len(source) ** 2


def _is_clear(source: np.ndarray, target: np.ndarray) -> bool:
    random = np.random.RandomState(1)
    chance = [_dependence(source, random.permutation(target)) for _ in range(SHUFFLES)]
    return _dependence(source, target) > float(np.mean(chance) + CLEAR * np.std(chance))


def _letter_pairs(lines: list[bytes]) -> np.ndarray:
    """float64 [lines, KINDS]: square roots of how often two letters follow each other, centered."""
    counts = np.zeros([len(lines), KINDS])
    for row, line in zip(counts, lines, strict=True):
        codes = np.frombuffer(f" {line.decode()} "[:LONGEST].encode("utf-32-le"), "<u4")
        row[:] = np.bincount((257 * codes[:-1] + codes[1:]) % KINDS, minlength=KINDS)
    np.sqrt(counts, out=counts)
    counts -= counts.mean(axis=0)
    return counts


# Pairs that are held out as the dev text.

LARGEST = 20  # a line of more than one in so many pairs is not held out


def held_out_rows(
    corpus: ParallelCorpus, keys: np.ndarray, pairs: int, longest: int | None = None
) -> dict[str, np.ndarray]:
    """Chooses different pairs to hold out, by a hash of their source lines.

    Pairs with the same source line are held out together, so that none of them is trained on;
    there may be a few more than `pairs`. Equal pairs are held out once. A line that occurs in more
    than 5 % of the different pairs is not held out, nor one of more than `longest` bytes on either
    side. Too few pairs raise a ValueError.

    Returns the line numbers, uint32, ascending: "dev", different pairs, each once; "train", all
    lines without the source line of one of them.
    """
    _, first = np.unique(keys["pair"], return_index=True)
    lines, counts = np.unique(keys["source"][first], return_counts=True)
    is_rare = counts <= max(len(first) // LARGEST, 1)
    if longest is not None:
        is_rare &= ~np.isin(lines, keys["source"][keys["longest"] > longest])
    lines, counts = lines[is_rare], counts[is_rare]
    # np.unique sorts, so the lines come in the order of their hashes.
    needed = int(np.searchsorted(np.cumsum(counts), pairs)) + 1
    is_out = np.isin(keys["source"], lines[:needed])
    dev = np.sort(first[is_out[first]])
    if len(dev) < pairs or 2 * np.count_nonzero(is_out) > len(keys):
        there = f"{len(first)} different pairs with {len(lines)} source lines to choose from"
        wanted = "fewer, or a dev text of your own"
        raise OptionError("hold_out", "dev_pairs", pairs, wanted, f"which is too many for {there}")
    others = np.arange(corpus.lines, dtype=np.uint32)
    return {"dev": corpus.rows[dev], "train": np.setdiff1d(others, corpus.rows[is_out])}


TOKEN_BYTES = 32  # of a token and the space after it; on average they have fewer


def divided(folder: Path) -> dict[str, str]:
    """The paths of the texts that `hold_out` writes to a folder."""
    return {name: str(folder / name.replace("_", ".")) for name in TEXTS}


def hold_out(
    corpus: ParallelCorpus, keys: np.ndarray, folder: Path, pairs: int, max_length: int = 0
) -> int:
    """Divides a text into a smaller training text and a dev text of `held_out_rows`.

    The folder gets the files `divided`, or none of them; too few pairs raise a ValueError, and so
    do other files in the folder. Returns the number of dev pairs.
    """
    names = {Path(path).name for path in divided(folder).values()}
    if folder.exists() and not (folder.is_dir() and {x.name for x in folder.iterdir()} <= names):
        raise Refusal(
            "fit",
            f"{named('model_dir')}: {folder}, for the dev and training text, exists already; name "
            f"another folder, or set {named('dev_source')} and {named('dev_target')}",
        )
    # A few lines that surely have more tokens than `max_length` would decide the score.
    parts = held_out_rows(corpus, keys, pairs, TOKEN_BYTES * max_length or None)
    with replaced_directory(folder) as new:
        for name, rows in parts.items():
            source, target = (new / f"{name}.{side}" for side in SIDES)
            with open(source, "wb") as sources, open(target, "wb") as targets:
                for sides in corpus.read_in_chunks(rows):
                    for file, lines in zip((sources, targets), sides, strict=True):
                        file.writelines(line + b"\n" for line in lines)
    return len(parts["dev"])


# The languages and tokenizers of the text.


def write_tokenizers(training: Training, corpus: ParallelCorpus) -> None:
    """Learns the tokenizers of both sides from a text, and writes them and their settings."""
    text, folder = with_languages(training.text, corpus), training.model_dir
    check_words(text, corpus)
    StatusLine().note(f"learning the tokenizers from {amount(len(corpus), 'pair')}")
    tokenizers = learn(text, *corpus.names)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(folder / side)
    write_settings(folder / TEXT, asdict(text))
    note_sizes(tokenizers, corpus, text)


def check_tokenizers(training: Training) -> None:
    """Raises a ValueError unless the tokenizers of a folder were learned with the same options."""
    file, text = training.model_dir / TEXT, asdict(training.text)
    before = read_settings(file)
    guessed = ("source_language", "target_language", "true_case")
    check_settings(file, text | {n: before.get(n) for n in guessed if text[n] is None})


LINES = 5000  # the first lines of a text, from which its language is guessed


def with_languages(text: TextOptions, corpus: ParallelCorpus) -> TextOptions:
    """Fills in source_language, target_language and true_case where None.

    Languages are guessed, if the tokenizer has rules for languages, and printed on standard error;
    true_case is the default for the source language.
    """
    sides = first_lines(corpus, LINES)
    for side, lines in zip(SIDES, sides, strict=True):
        name = f"{side}_language"
        if getattr(text, name) is not None or name in text.unused():
            continue
        language = guess_language(lines)
        note = f"guessed from the text; {named(name)} overrides"
        if language == UNKNOWN:
            note = f"unknown: text is split by general rules; {named(name)}=CODE sets it"
        StatusLine().note(f"{side} language: {language} ({note})")
        chosen: dict[str, Any] = {name: language}
        text = replace(text, **chosen)
    if text.true_case is None:
        language = text.source_language or guess_language(sides[0])
        text = replace(text, true_case=text.true_cases(language))
    return text


def first_lines(corpus: ParallelCorpus, count: int) -> list[list[str]]:
    """So many lines of each side."""
    return [[line.decode() for line in side] for side in corpus.read(corpus.rows[:count])]


CHECKED_LINES = 1000  # the first lines of a text, which are checked


def check_words(text: TextOptions, corpus: ParallelCorpus) -> None:
    """Raises a ValueError if the words of a text would be whole sentences.

    The word tokenizer cannot split text without spaces between words, such as Chinese or Thai,
    unless it has rules for the language, as for Japanese.
    """
    sides = zip(SIDES, corpus.names, first_lines(corpus, CHECKED_LINES), strict=True)
    for side, path, lines in sides:
        starts = [line[:LONGEST] for line in lines]
        if text.tokenizer_of(side) != "word" or has_blanks(starts):
            continue
        language = getattr(text, f"{side}_language")
        tokenizer = WordTokenizer(Vocabulary(SPECIAL), language or UNKNOWN)
        rows = [[word.decode() for word in row] for row in tokenizer.split(starts).to_list()]
        # Without punctuation: Tibetan has a mark after each syllable.
        if not has_blanks([" ".join(x for x in row if any(map(str.isalpha, x))) for row in rows]):
            wanted = "unigram or bpe, or spaces between the words"
            why = f"and {path} has no spaces between words, so whole sentences would be words"
            raise OptionError("TextOptions", "tokenizer", "word", wanted, why)


def learn(
    text: TextOptions, source_path: str, target_path: str
) -> tuple[WordTokenizer | SubwordTokenizer, WordTokenizer | SubwordTokenizer]:
    """Learns the tokenizers of both sides from the training text."""
    of_source: dict[str, Any] = {
        "reverse": text.reverse_source,
        "true_case": text.true_cases(text.source_language),
    }
    if text.decompose_source:
        of_source["normalization"] = "nfd"
    if not text.joint:
        if of_source["true_case"] and text.tokenizer != "word":
            of_source["lowercase"] = text.lowercase or None
        target = learn_side(text, "target", target_path)
        return learn_side(text, "source", source_path, **of_source), target
    sizes = text.source_vocabulary_size, text.tokenizer
    of_source |= {"lowercase": text.lowercase, "files_as_written": [target_path]}
    with _size_named("source"):
        source = SubwordTokenizer.train([source_path], *sizes, **of_source)
    return source, SubwordTokenizer(source.model_proto, tight=source.tight)


def learn_side(
    text: TextOptions, side: str, path: str, **options: Any
) -> WordTokenizer | SubwordTokenizer:
    """Learns the tokenizer of one side, with further options of it."""
    kind, size = text.tokenizer_of(side), text.size_of(side)
    options.setdefault("lowercase", text.lowercase)
    if kind == "word":
        language = getattr(text, f"{side}_language") or UNKNOWN
        return WordTokenizer.train([path], size, language=language, **options)
    with _size_named(side):
        return SubwordTokenizer.train([path], size, kind, **options)


@contextlib.contextmanager
def _size_named(side: str) -> Iterator[None]:
    """Puts the name of the option into a tokenizer's error about its size."""
    try:
        yield
    except OptionError as error:
        name = f"{side}_vocabulary_size"
        raise OptionError("TextOptions", name, error.value, error.wanted) from error


def note_sizes(
    tokenizers: Sequence[Tokenizer], corpus: ParallelCorpus, text: TextOptions | None = None
) -> None:
    """Reports the size of each vocabulary; `text` if it was learned by these options."""
    for side, path, tokenizer in zip(SIDES, corpus.names, tokenizers, strict=True):
        note = f"{side} vocabulary: {amount(tokenizer.vocabulary_size, 'id')}"
        if isinstance(tokenizer, WordTokenizer):
            note += f", {tokenizer.coverage([path])}"
        elif text and tokenizer.kind in SUBWORDS and tokenizer.vocabulary_size < text.size_of(side):
            note += f", not {text.size_of(side):,}: the text has no more sub-words"
        StatusLine().note(note)
