"""Tells of texts with which a training is seldom meant."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from pathlib import Path

from bahdanau_tf.options.cost import UNITS
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import amount

LOOKED_AT = 100  # first lines that tell a table
FEW = UNITS[0][0]  # different pairs: fewer get the smallest model
SHARE = 0.1  # of the dev pairs: so many may be training pairs by chance


def doubts(files: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence for each doubt.

    Args:
        files: The paths of the texts, by flag.

    Raises:
        ValueError: A line is not UTF-8.
    """
    real = {
        name: path for name, path in files.items() if Path(path).stat().st_size
    }  # an empty one is an error told elsewhere
    yield from _copies(real)
    yield from _tables(real)
    yield from _known_pairs(real)


def few_pairs(source: str, target: str) -> Iterator[str]:
    """A sentence if a text has too few pairs to learn a language from.

    Equal pairs count once, and those with a blank line not at all. Sides of
    unequal length, or without any pair, are an error told elsewhere.

    Raises:
        ValueError: A line is not UTF-8.
    """
    different: set[tuple[str, ...]] = set()
    for sides in zip_longest(read_lines(source), read_lines(target)):
        if None in sides:
            return
        pair = tuple(map(str.strip, sides))
        if all(pair):
            different.add(pair)
        if len(different) >= FEW:
            return
    if different:
        yield (
            f"only {amount(len(different), 'different sentence pair')}, fewer "
            f"than {FEW:,}: expect fair translations of sentences much like "
            "these at best and bad ones of others; everyday language needs "
            "tens of thousands"
        )


def _copies(files: Mapping[str, str]) -> Iterator[str]:
    """Both sides are the same text."""
    for name in ("train", "dev"):
        pair = _pair(files, name)
        if pair and filecmp.cmp(*pair, shallow=False):
            yield (
                f"--{name}_source and --{name}_target are the same text, "
                f"{pair[0]}: a model learns to copy from it"
            )


def _tables(files: Mapping[str, str]) -> Iterator[str]:
    """A file has both sides, as corpora are often distributed."""
    for name, path in files.items():
        lines = [*islice(read_lines(path), LOOKED_AT)]
        if lines and all("\t" in line for line in lines):
            yield (
                f"--{name}: the lines of {path} have tabs, as a table of both "
                "sides has; if it is one, give it a name that ends with .tsv, "
                "and as --train_source or --dev_source alone: both columns "
                "are read"
            )


def _known_pairs(files: Mapping[str, str]) -> Iterator[str]:
    """The dev text is part of the training text."""
    dev, train = _pair(files, "dev"), _pair(files, "train")
    if not (dev and train):
        return
    wanted = [*zip(*map(read_lines, dev), strict=False)]
    known = {*wanted}
    known.intersection_update(zip(*map(read_lines, train), strict=False))
    count = sum(pair in known for pair in wanted)
    if count > SHARE * len(wanted):
        yield (
            f"{count:,} of {len(wanted):,} dev pairs are training pairs, too: "
            "dev BLEU tells how well these are known by heart"
        )


def _pair(files: Mapping[str, str], name: str) -> tuple[str, str] | None:
    """The source and target of "train" or "dev", if both are there."""
    source, target = (files.get(f"{name}_{side}") for side in ("source", "target"))
    return (source, target) if source and target else None
