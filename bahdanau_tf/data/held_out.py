"""Holds pairs of a training text out, to choose the best model by them."""

from __future__ import annotations

import hashlib
import os
import unicodedata

import numpy as np

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.options.fitted import Facts, Side
from bahdanau_tf.system.files import replaced_directory

LARGEST = 20  # a line of more than one in so many pairs is not held out


def source_keys(corpus: ParallelCorpus) -> np.ndarray:
    """uint64 [pairs]: the same number for the same source line."""
    keys = (
        int.from_bytes(hashlib.blake2b(line.strip(), digest_size=8).digest(), "big")
        for source, _ in corpus.read_in_chunks(corpus.rows)
        for line in source
    )
    return np.fromiter(keys, np.uint64, len(corpus))


def held_out_rows(corpus: ParallelCorpus, pairs: int, longest: int | None = None) -> np.ndarray:
    """Chooses pairs to hold out, by a hash of their source lines: uint32 [rows], ascending.

    Pairs with the same source line are held out together, so that none of them is trained on;
    there may be a few more than `pairs`. A line that occurs in more than 5 % of the pairs is not
    held out, nor one of more than `longest` bytes on either side. Too few pairs raise a ValueError.
    """
    keys = source_keys(corpus)
    lines, counts = np.unique(keys, return_counts=True)
    is_rare = counts <= max(len(keys) // LARGEST, 1)
    if longest is not None:
        is_long = [
            max(map(len, pair)) > longest
            for sides in corpus.read_in_chunks(corpus.rows)
            for pair in zip(*sides, strict=True)
        ]
        is_rare &= ~np.isin(lines, keys[is_long])
    lines, counts = lines[is_rare], counts[is_rare]
    # np.unique sorts, so the lines come in the order of their hashes.
    needed = int(np.searchsorted(np.cumsum(counts), pairs)) + 1
    rows = corpus.rows[np.isin(keys, lines[:needed])]
    if len(rows) < pairs or 2 * len(rows) > len(keys):
        raise ValueError(
            f"hold_out: dev_pairs is {pairs}, which is too many for "
            f"{len(keys)} sentence pairs with {len(lines)} source lines to "
            "choose from; wanted fewer, or a dev text of your own"
        )
    return rows


def hold_out(
    corpus: ParallelCorpus, pairs: int, folder: str | os.PathLike[str], longest: int | None = None
) -> int:
    """Divides a text into a smaller training text and a dev text of `held_out_rows`.

    The folder gets train.source, train.target, dev.source and dev.target, or none of them; too few
    pairs raise a ValueError. Returns the number of pairs held out.
    """
    dev = held_out_rows(corpus, pairs, longest)
    rest = np.setdiff1d(np.arange(corpus.lines, dtype=np.uint32), dev)
    with replaced_directory(folder) as new:
        for name, rows in (("train", rest), ("dev", dev)):
            source, target = (new / f"{name}.{side}" for side in SIDES)
            with open(source, "wb") as sources, open(target, "wb") as targets:
                for sides in corpus.read_in_chunks(rows):
                    for file, lines in zip((sources, targets), sides, strict=True):
                        file.writelines(line + b"\n" for line in lines)
    return len(dev)


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
        different=len(np.unique(source_keys(corpus))),
        characters=len(set.union(*characters)),
        source=source,
        target=target,
    )


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
