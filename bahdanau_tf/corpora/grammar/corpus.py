"""The built-in English-French corpus: a grammar instead of files.

It has what the paper discusses: adjectives that change sides, elision
(`l'homme`), agreement, negation in two words, chained clauses of any length.
Each sentence has one translation, which its words determine, and the grammar
knows which word translates which.
"""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.corpora.grammar.derivation import Derivation
from bahdanau_tf.corpora.grammar.draft import Choices
from bahdanau_tf.corpora.grammar.draft import TooLong
from bahdanau_tf.corpora.grammar.spelling import capitalised
from bahdanau_tf.corpora.grammar.spelling import contracted
from bahdanau_tf.corpora.grammar.spelling import with_an
from bahdanau_tf.corpora.grammar.spelling import written

# Of a hundred hash values, those below belong to the split.
SPLITS = {"train": range(90), "dev": range(90, 95), "test": range(95, 100)}
# After so many draws without a new sentence, all that is left is listed.
PATIENCE = 20_000


class Example(NamedTuple):
    """A sentence pair with its gold alignment.

    `alignment` holds the links (i, j), in order: English token i and French
    token j translate each other, both counted from 0.
    """

    source: str
    target: str
    source_tokens: list[str]
    target_tokens: list[str]
    alignment: list[tuple[int, int]]


class RandomChoices:
    """Draws; Python keeps `random()` of a seed the same in all versions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def pick(self, count: int) -> int:
        return int(self.random() * count)

    def maybe(self, chance: float) -> bool:
        return self.random() < chance


class AllChoices:
    """Goes through every way to choose, depth first, one per round."""

    def __init__(self) -> None:
        self.path: list[list[int]] = []
        self.depth = 0

    def pick(self, count: int) -> int:
        if self.depth == len(self.path):
            self.path.append([0, count])
        self.depth += 1
        return self.path[self.depth - 1][0]

    def maybe(self, chance: float) -> bool:
        return self.pick(2) == 1

    def next_round(self) -> bool:
        """Turns to the next way; False when there is none."""
        del self.path[self.depth :]
        while self.path and self.path[-1][0] + 1 == self.path[-1][1]:
            self.path.pop()
        if self.path:
            self.path[-1][0] += 1
        self.depth = 0
        return bool(self.path)


def write_corpus(
    directory: str | os.PathLike[str],
    train: int = 20_000,
    dev: int = 500,
    test: int = 500,
    seed: int = 0,
    min_words: int = 3,
    max_words: int = 15,
) -> None:
    """Writes `train`, `dev` and `test`, each .en, .fr and .align.

    A line of .align is the gold alignment in Pharaoh's form: `0-0 1-2`. The
    files are written aside and renamed, so none is ever half a file.

    Args:
        directory: a folder; made if it is not there.
        train: sentence pairs to train on.
        dev: sentence pairs to choose a model by.
        test: sentence pairs to judge it by.
        seed: as for `generate`.
        min_words: as for `generate`.
        max_words: as for `generate`.

    Raises:
        ValueError: as `generate`.
        OSError: the folder cannot be written.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    counts = {"train": train, "dev": dev, "test": test}
    with tempfile.TemporaryDirectory(dir=directory, prefix="new.") as aside:
        for split, count in counts.items():
            examples = generate(count, split, seed, min_words, max_words)
            _write(examples, Path(aside, split))
        for path in sorted(Path(aside).iterdir()):
            os.replace(path, directory / path.name)


def _write(examples: Iterable[Example], stem: Path) -> None:
    with (
        open(f"{stem}.en", "w", encoding="utf-8", newline="\n") as source,
        open(f"{stem}.fr", "w", encoding="utf-8", newline="\n") as target,
        open(f"{stem}.align", "w", encoding="utf-8", newline="\n") as align,
    ):
        for example in examples:
            links = " ".join(f"{i}-{j}" for i, j in example.alignment)
            print(example.source, file=source)
            print(example.target, file=target)
            print(links, file=align)


def derive(choices: Choices, goal: int, limit: int) -> Example | None:
    """One example, or None where it would exceed `limit` English tokens."""
    derivation = Derivation(choices, goal, limit)
    try:
        pieces = contracted(derivation.sentence())
    except TooLong:
        return None
    english = capitalised(with_an(derivation.english))
    french = capitalised([piece.form for piece in pieces])
    links = {(i, j) for j, piece in enumerate(pieces) for i in piece.links}
    return Example(
        written(english, (".", ",", "?", "'s")),
        written(french, (".", ",")),
        english,
        french,
        sorted(links),
    )


def generate(
    count: int,
    split: str = "train",
    seed: int = 0,
    min_words: int = 3,
    max_words: int = 15,
) -> Iterator[Example]:
    """Distinct sentence pairs, the same for the same arguments.

    Args:
        count: how many.
        split: "train", "dev" or "test"; a hash of the English sentence says
            which one it belongs to, so that splits never overlap.
        seed: of the random draws.
        min_words: fewest English tokens, punctuation included.
        max_words: most English tokens, up to 60.

    Returns:
        An iterator over `Example`.

    Raises:
        ValueError: on an argument out of range, and from the iterator when
            there are fewer sentences than asked for.
    """
    if split not in SPLITS:
        raise ValueError(f"generate: split={split!r} is none of {[*SPLITS]}")
    if count < 0:
        raise ValueError(f"generate: count={count} must not be negative")
    if not 1 <= min_words <= max_words <= 60:
        raise ValueError(
            f"generate: min_words={min_words} and max_words={max_words} must "
            "satisfy 1 <= min_words <= max_words <= 60"
        )
    return _checked(count, split, seed, min_words, max_words)


def _checked(
    count: int, split: str, seed: int, min_words: int, max_words: int
) -> Iterator[Example]:
    found = 0
    for example in islice(_distinct(split, seed, min_words, max_words), count):
        found += 1
        yield example
    if found < count:
        raise ValueError(
            f"generate: the {split} split has {found} sentences of "
            f"{min_words} to {max_words} words, fewer than count={count}"
        )


def _distinct(
    split: str, seed: int, min_words: int, max_words: int
) -> Iterator[Example]:
    """All sentences of the split: by chance, at last by listing the rest."""
    seen: set[int] = set()

    def is_new(example: Example | None) -> bool:
        if example is None or len(example.source_tokens) < min_words:
            return False
        digest = _digest(example.source)
        if digest in seen or digest % 100 not in SPLITS[split]:
            return False
        seen.add(digest)
        return True

    misses = 0
    choices = RandomChoices(seed)
    while misses < PATIENCE:
        goal = min_words + choices.pick(max_words - min_words + 1)
        example = derive(choices, goal, max_words)
        misses = 0 if is_new(example) else misses + 1
        if example and not misses:
            yield example
    everything = AllChoices()
    more = True
    while more:
        example = derive(everything, max_words, max_words)
        if example and is_new(example):
            yield example
        more = everything.next_round()


def _digest(sentence: str) -> int:
    digest = hashlib.sha256(sentence.encode()).digest()
    return int.from_bytes(digest[:8], "big")
