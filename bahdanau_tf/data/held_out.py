"""Holds pairs of a training text out, to choose the best model by them."""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

import numpy as np

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.system.ranges import OptionError

LARGEST = 20  # a line of more than one in so many pairs is not held out


def keys_of(corpus: ParallelCorpus) -> np.ndarray:
    """Reads a text: the same number for the same source line, and for the same pair.

    There is a row for each pair. The fields are "source" and "pair", uint64, and "longest", the
    bytes of the longer side.
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


def held_out_rows(
    corpus: ParallelCorpus, pairs: int, longest: int | None = None, keys: np.ndarray | None = None
) -> HeldOut:
    """Chooses different pairs to hold out, by a hash of their source lines.

    Pairs with the same source line are held out together, so that none of them is trained on;
    there may be a few more than `pairs`. Equal pairs are held out once. A line that occurs in more
    than 5 % of the different pairs is not held out, nor one of more than `longest` bytes on either
    side. Too few pairs raise a ValueError. `keys` are those of `keys_of`, if they
    are at hand.
    """
    keys = keys_of(corpus) if keys is None else keys
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
        raise OptionError(
            "hold_out",
            "dev_pairs",
            pairs,
            "fewer, or a dev text of your own",
            f"which is too many for {len(first)} different sentence pairs with {len(lines)} source "
            "lines to choose from",
        )
    others = np.arange(corpus.lines, dtype=np.uint32)
    return HeldOut(corpus.rows[dev], np.setdiff1d(others, corpus.rows[is_out]))


def hold_out(
    corpus: ParallelCorpus,
    pairs: int,
    folder: str | os.PathLike[str],
    longest: int | None = None,
    keys: np.ndarray | None = None,
) -> tuple[int, int]:
    """Divides a text into a smaller training text and a dev text of `held_out_rows`.

    The folder gets train.source, train.target, dev.source and dev.target, or none of them; too few
    pairs raise a ValueError. Returns the numbers of dev pairs, and of pairs left to train on.
    """
    parts = held_out_rows(corpus, pairs, longest, keys)
    with replaced_directory(folder) as new:
        for name, rows in parts._asdict().items():
            source, target = (new / f"{name}.{side}" for side in SIDES)
            with open(source, "wb") as sources, open(target, "wb") as targets:
                for sides in corpus.read_in_chunks(rows):
                    for file, lines in zip((sources, targets), sides, strict=True):
                        file.writelines(line + b"\n" for line in lines)
    return len(parts.dev), np.isin(parts.train, corpus.rows).sum().item()
