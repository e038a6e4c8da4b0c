"""What a parallel text is like: the facts by which options are chosen, and what is doubtful."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

import numpy as np

from bahdanau_tf.data.held_out import keys_of
from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.options.choices import UNITS, Facts, Side
from bahdanau_tf.system.ranges import named
from bahdanau_tf.system.terminal import amount

SAMPLE = 20_000  # lines from which script and lengths are measured
LONGEST = 1000  # characters of a line that count for its script
MOST = 0.995  # the share of lines that are not longer than the lengths here


def measure(corpus: ParallelCorpus, keys: np.ndarray) -> Facts:
    """Reads a text, a part at a time, and measures it; `keys` are those of `keys_of`."""
    from bahdanau_tf.text.words import true_cased

    every = max(len(corpus) // SAMPLE, 1)
    samples: tuple[list[str], list[str]] = ([], [])
    characters: tuple[set[str], set[str]] = (set(), set())
    sizes = [0, 0]
    for chunk in corpus.read_in_chunks(corpus.rows):
        for side, lines in enumerate(chunk):
            text = _composed(b"\n".join(lines))
            sizes[side] += len(text)
            characters[side].update(text)
            samples[side].extend(map(_composed, lines[::every]))
        sentences = true_cased(chunk[0]).numpy().tolist()
        characters[0].update(_composed(b"\n".join(sentences)))
    source, target = (_side(*parts) for parts in zip(samples, sizes, characters, strict=True))
    return Facts(
        pairs=len(corpus),
        different=len(np.unique(keys["source"])),
        characters=len(set.union(*characters)),
        source=source,
        target=target,
    )


FEWEST_MATCHED, MOST_MATCHED = 500, 1000  # pairs of a sample
SHUFFLES = 20
CLEAR = 8  # standard deviations
KINDS = 509  # of two letters in a row; a prime, as pairs of letters are hashed


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
    random = np.random.RandomState(1)
    criterion, *shuffled = (
        np.square(source.T @ rows).sum()
        for rows in (target, *(random.permutation(target) for _ in range(SHUFFLES)))
    )
    return bool(criterion > np.mean(shuffled) + CLEAR * np.std(shuffled))


def _letter_pairs(lines: list[bytes]) -> np.ndarray:
    """float64 [lines, KINDS]: square roots of how often two letters follow each other, centered."""
    counts = np.zeros([len(lines), KINDS])
    for row, line in zip(counts, lines, strict=True):
        codes = np.frombuffer(f" {line.decode()} "[:LONGEST].encode("utf-32-le"), "<u4")
        row[:] = np.bincount((257 * codes[:-1] + codes[1:]) % KINDS, minlength=KINDS)
    np.sqrt(counts, out=counts)
    counts -= counts.mean(axis=0)
    return counts


def _composed(text: bytes) -> str:
    return unicodedata.normalize("NFC", text.decode())


def _side(lines: list[str], size: int, characters: set[str]) -> Side:
    from bahdanau_tf.text.script import has_blanks, is_tokenized, script

    starts = [line[:LONGEST] for line in lines]
    return Side(
        script=script(starts),
        has_blanks=has_blanks(starts),
        is_tokenized=is_tokenized(starts),
        size=size,
        characters=len(characters),
        length=_most([len(line) for line in lines]),
        words=_most([len(line.split()) for line in lines]),
    )


def _most(lengths: list[int]) -> int:
    """The length that most lines do not exceed."""
    return int(np.quantile(lengths, MOST, method="higher"))


FIRST_PAIRS = 100  # by which a table or a header is recognized
_NAME = re.compile(r"[^\W\d]+")
FEW = UNITS[0][0]  # different pairs: fewer get the smallest model
SHARE = 0.1  # of the dev pairs: so many may be training pairs by chance


def doubts(texts: Mapping[str, ParallelCorpus], keys: np.ndarray) -> Iterator[str]:
    """Yields warnings about a training text "train" and a dev text "dev", which may be missing.

    They name what is probably a mistake. `keys` are those of the training text.
    """
    for name, corpus in texts.items():
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
        sides = [
            [line.decode() for line in side] for side in corpus.read(corpus.rows[:FIRST_PAIRS])
        ]
        is_name = [all(map(_NAME.fullmatch, pair)) for pair in zip(*sides, strict=True)]
        if len(is_name) > 1 and is_name[0] and not any(is_name[1:]):
            yield (
                f"the first {name} pair, {sides[0][0]!r} and {sides[1][0]!r}, looks like a header "
                "and is read as a sentence pair; delete it if it is one"
            )
        for side, path, lines in zip(SIDES, corpus.names, sides, strict=True):
            if all("\t" in line for line in lines):
                yield (
                    f"{named(f'{name}_{side}')}: the lines of {path} have tabs, like a table of "
                    "both sides; if it is one, give it a name that ends in .tsv, and set only "
                    f"{named('train_source')} or {named('dev_source')}: both columns are read"
                )
    if dev := texts.get("dev"):
        count = int(np.isin(keys_of(dev)["pair"], keys["pair"]).sum())
        if count > SHARE * len(dev):
            yield (
                f"{count:,} of {len(dev):,} dev pairs are training pairs, too: dev BLEU shows how "
                "well these are memorized"
            )


def few_pairs(keys: np.ndarray) -> Iterator[str]:
    """Yields a warning if a text has too few pairs to learn a language from.

    Equal pairs count once, and those with a blank line not at all.
    """
    different = len(np.unique(keys["pair"]))
    if different < FEW:
        yield (
            f"only {amount(different, 'different sentence pair')}, fewer than {FEW:,}: expect "
            "at best fair translations of sentences much like these, and bad ones of others; "
            "everyday language needs tens of thousands"
        )
