"""Holds pairs of a training text out, to choose the best model by them."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from typing import NamedTuple

import numpy as np

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.options.fitted import Facts, Side
from bahdanau_tf.system.files import replaced_directory

LARGEST = 20  # a line of more than one in so many pairs is not held out


def keys(corpus: ParallelCorpus) -> np.ndarray:
    """A row for each pair: the same number for the same source line, and for the same pair.

    The fields are "source" and "pair", uint64, and "longest", the bytes of the longer side.
    """
    rows = (
        (_key(source), _key(source.strip() + b"\n" + target), max(len(source), len(target)))
        for sides in corpus.read_in_chunks(corpus.rows)
        for source, target in zip(*sides, strict=True)
    )
    fields = [("source", np.uint64), ("pair", np.uint64), ("longest", np.uint32)]
    return np.fromiter(rows, fields, len(corpus))


def _key(line: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(line.strip(), digest_size=8).digest(), "big")


class HeldOut(NamedTuple):
    """The line numbers of a text that was divided, uint32 [rows], ascending."""

    dev: np.ndarray  # different pairs, each once
    train: np.ndarray  # all lines without the source line of one of them


def held_out_rows(corpus: ParallelCorpus, pairs: int, longest: int | None = None) -> HeldOut:
    """Chooses different pairs to hold out, by a hash of their source lines.

    Pairs with the same source line are held out together, so that none of them is trained on;
    there may be a few more than `pairs`. Equal pairs are held out once. A line that occurs in more
    than 5 % of the different pairs is not held out, nor one of more than `longest` bytes on either
    side. Too few pairs raise a ValueError.
    """
    every = keys(corpus)
    _, first = np.unique(every["pair"], return_index=True)
    lines, counts = np.unique(every["source"][first], return_counts=True)
    is_rare = counts <= max(len(first) // LARGEST, 1)
    if longest is not None:
        is_rare &= ~np.isin(lines, every["source"][every["longest"] > longest])
    lines, counts = lines[is_rare], counts[is_rare]
    # np.unique sorts, so the lines come in the order of their hashes.
    needed = int(np.searchsorted(np.cumsum(counts), pairs)) + 1
    is_out = np.isin(every["source"], lines[:needed])
    dev = np.sort(first[is_out[first]])
    if len(dev) < pairs or 2 * np.count_nonzero(is_out) > len(every):
        raise ValueError(
            f"hold_out: dev_pairs is {pairs}, which is too many for "
            f"{len(first)} different sentence pairs with {len(lines)} source lines to "
            "choose from; wanted fewer, or a dev text of your own"
        )
    others = np.arange(corpus.lines, dtype=np.uint32)
    return HeldOut(corpus.rows[dev], np.setdiff1d(others, corpus.rows[is_out]))


def hold_out(
    corpus: ParallelCorpus, pairs: int, folder: str | os.PathLike[str], longest: int | None = None
) -> tuple[int, int]:
    """Divides a text into a smaller training text and a dev text of `held_out_rows`.

    The folder gets train.source, train.target, dev.source and dev.target, or none of them; too few
    pairs raise a ValueError. Returns the numbers of dev pairs, and of pairs left to train on.
    """
    parts = held_out_rows(corpus, pairs, longest)
    with replaced_directory(folder) as new:
        for name, rows in parts._asdict().items():
            source, target = (new / f"{name}.{side}" for side in SIDES)
            with open(source, "wb") as sources, open(target, "wb") as targets:
                for sides in corpus.read_in_chunks(rows):
                    for file, lines in zip((sources, targets), sides, strict=True):
                        file.writelines(line + b"\n" for line in lines)
    return len(parts.dev), np.isin(parts.train, corpus.rows).sum().item()


SAMPLE = 20_000  # lines from which script and lengths are measured
LONGEST = 1000  # characters of a line that count for its script
MOST = 0.995  # the share of lines that are not longer than the lengths here


def measure(corpus: ParallelCorpus) -> Facts:
    """Reads a text, a part at a time, and measures it."""
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
        different=len(np.unique(keys(corpus)["source"])),
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
