"""From parallel text files to batches of ids, with tf.data.

An epoch is a list of line numbers, shuffled or not. Its lines are read and tokenised in chunks;
pairs that are too long are dropped; the others are collected in pools, which are sorted by length
and cut into batches (the paper's appendix B.2).
"""

from __future__ import annotations

import atexit
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import tensorflow as tf

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.synthetic import CARELESS, SyntheticPairs, careless
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.system.lines import Text
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.text.rows import count_words
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.words import WordTokenizer

MEASURED = 20_000  # pairs that are looked at; all of a text that has no more
MOST_PAIRS = 0.9  # the share of the pairs for which a limit is advised


def longer_sides(corpus: ParallelCorpus, *texts: Tokenizer) -> np.ndarray:
    """int64 [pairs]: the tokens of the longer side, 0 if a side has none.

    Of a large text it is a sample, evenly spread. The end symbol does not count.
    """
    lengths = []
    for sides in corpus.read_in_chunks(corpus.spread(MEASURED)):
        source, target = (
            text.tokenize(tf.constant(lines)).row_lengths().numpy() - 1
            for text, lines in zip(texts, sides, strict=True)
        )
        longer = np.maximum(source, target)
        lengths.append(np.where(np.minimum(source, target) > 0, longer, 0))
    return np.concatenate(lengths)


def coverage(lengths: np.ndarray, pairs: int, max_length: int) -> str:
    """Says how many of the text's pairs fit, and what to do if many do not.

    `lengths` are those of `longer_sides`.
    """
    fit = int(np.count_nonzero((lengths > 0) & (lengths <= max_length)))
    count = f"{fit:,}"
    if len(lengths) < pairs:
        count = f"about {100 * fit / len(lengths):.1f} %"
    verb = "has" if count == "1" else "have"
    return (
        f"{count} of {amount(pairs, 'pair')} {verb} 1 to "
        f"{max_length} tokens on both sides{advice(lengths, max_length)}"
    )


def advice(lengths: np.ndarray, max_length: int) -> str:
    """What helps if many pairs are too long, after "; "; "" if few are."""
    most = int(np.quantile(lengths, MOST_PAIRS, method="higher"))
    if most <= max_length:
        return ""
    return (
        f"; {named('max_length')}={-(-most // 10) * 10} keeps {100 * MOST_PAIRS:.0f} % of the "
        "pairs but takes more memory and time; one sentence per line is better than a paragraph"
    )


QUIET = 0.05  # seconds without a step after which we assume there are no more
PATIENCE = 10.0  # seconds to wait for that at most

P = ParamSpec("P")
T = TypeVar("T")


class _Steps:
    """Counts the steps of all generators, and stops them at exit.

    If a thread of tf.data calls Python while the interpreter shuts down, it waits for ever, and
    the shutdown waits for that thread: a script that ends with a dataset half read would sometimes
    hang. So all generators are ended before, and the threads that prefetch from them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._running = 0
        self._over = False

    def take(self, items: Iterator[T]) -> T:
        """The next item; raises StopIteration after the last one and after `end`."""
        with self._lock:
            self._begun += 1
            if self._over:
                raise StopIteration
            self._running += 1
        try:
            return next(items)
        finally:
            with self._lock:
                self._running -= 1

    def end(self) -> None:
        """Ends all generators; returns when no thread asks for a step."""
        with self._lock:
            self._over = True
        give_up = time.monotonic() + PATIENCE
        seen = 0
        while (self._running or self._begun != seen) and time.monotonic() < give_up:
            seen = self._begun
            time.sleep(QUIET)


_STEPS = _Steps()
atexit.register(_STEPS.end)


def until_exit(generator: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Makes a generator fit for `tf.data.Dataset.from_generator`."""

    @functools.wraps(generator)
    def steps(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = iter(generator(*args, **kwargs))
        with suppress(StopIteration):
            while True:
                yield _STEPS.take(items)

    return steps


CHUNK = 1000  # lines tokenised together
PAIRS = tf.TensorSpec([None], tf.int64)
LINES = tf.TensorSpec([None], tf.string)
CHUNK_SIGNATURE = (PAIRS, PAIRS, LINES, LINES)

# As Keras takes it: {"source", "target"}, the target again, token weights.
Batch = tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]


class Position(NamedTuple):
    """A position between two batches, from which a stream can start.

    An epoch dropped the length of the corpus minus its last `pairs`.
    """

    epoch: int = 0  # complete passes over the corpus before it
    line: int = 0  # where the current pool begins in the epoch's order of lines
    batch: int = 0  # batches of the pool before it
    pairs: int = 0  # sentence pairs of the epoch before it


class Pool(NamedTuple):
    """Sentence pairs that fit.

    `lengths` are the tokens of the longer side, end symbol included, without sampling: so draws
    move no pair to another batch.
    """

    places: tf.Tensor  # int64 [P], in the order of the epoch
    lines: tf.Tensor  # int64 [P], in the files, from 0
    source: tf.RaggedTensor  # int32 [P, (T_x)]
    target: tf.RaggedTensor  # int32 [P, (T_y)]
    lengths: tf.Tensor  # int64 [P]


def make_dataset(
    corpus: ParallelCorpus | tuple[Text, Text],
    source_text: Tokenizer,
    target_text: Tokenizer,
    **options: Any,
) -> tf.data.Dataset:
    """One epoch of batches for `fit`; each iteration is the next epoch.

    The number of batches is unknown until the first epoch ends, so Keras then warns that the data
    ran out. To set it in advance, `apply`
    `tf.data.experimental.assert_cardinality(measure(dataset).batches)`; but with `token_budget` and
    shuffle "each_epoch" it differs between epochs.

    Args:
        corpus: the corpus; or its source and target, each a path or a list of sentences.
        source_text: tokenizer of the source.
        target_text: tokenizer of the target.
        **options: those of `Batching`, such as `batch_size`.

    Returns:
        Dataset of ({"source": int32 [B, T_x], "target": int32 [B, T_y]}, target, token_weights
        float32 [B, T_y]). Both sides end with their end symbol and are padded with 0; weights are
        1 on tokens, 0 on padding.

    Raises:
        OSError: a file cannot be read.
        ValueError: the files do not match (see `ParallelCorpus`), or an option is unknown or out
            of range.
    """
    if unknown := options.keys() - {field.name for field in fields(Batching)}:
        raise Refusal("make_dataset", f"{min(unknown)} is not an option of Batching")
    batching = Batching(**options)
    if not isinstance(corpus, ParallelCorpus):
        corpus = ParallelCorpus(*corpus)
    stream = _Stream(corpus, [source_text, target_text], batching)
    epochs = itertools.count()
    epoch = tf.data.Dataset.from_generator(
        until_exit(lambda: iter([next(epochs)])), output_signature=tf.TensorSpec([], tf.int64)
    )
    batches = epoch.flat_map(stream.epoch)
    return batches.map(lambda batch, *_: batch).prefetch(tf.data.AUTOTUNE)


def stream_batches(
    corpus: ParallelCorpus,
    source_text: Tokenizer,
    target_text: Tokenizer,
    batching: Batching = Batching(),
    start: Position = Position(),
) -> tf.data.Dataset:
    """(batch, the `Position` after it, its lines) of epoch after epoch, without end.

    From a position that came with a batch, the stream continues after that batch as if it had
    never stopped. Batches are those of `make_dataset`; a position is four int64 []; lines are
    numbered from 0, int64 [B]. A corpus without a pair of an allowed length raises a ValueError.
    """
    stream = _Stream(corpus, [source_text, target_text], batching)
    # Autotuning has a thread that waits by the time of day: if the clock is set back, the iterator
    # would wait for it as long when it ends.
    options = tf.data.Options()
    options.autotune.enabled = False
    return stream.epochs(start).prefetch(tf.data.AUTOTUNE).with_options(options)


class _Stream:
    """The steps from line numbers to batches."""

    def __init__(self, corpus: ParallelCorpus, texts: list[Tokenizer], batching: Batching) -> None:
        self.corpus, self.texts, self.batching = corpus, texts, batching
        words = any(isinstance(text, WordTokenizer) for text in texts)
        for name, usual in (("sample_subwords", False), ("synthetic_pairs", 0)):
            if words and (value := getattr(batching, name)):
                wanted = f"{usual} with a WordTokenizer, or tokenizers of sub-words"
                raise OptionError("Batching", name, value, wanted)
        self.synthetic = (
            SyntheticPairs(corpus, texts, batching) if batching.synthetic_pairs else None
        )
        self.order = lru_cache(maxsize=1)(self._order)
        self.ways = lru_cache(maxsize=1)(self._ways)
        self.tokenized = tf.function(
            self._tokenized,
            input_signature=(*CHUNK_SIGNATURE, tf.TensorSpec([], tf.int64)),
            autograph=False,
        ).get_concrete_function()  # its tracing does not count for TensorFlow's warnings
        self._check_that_a_pair_fits()

    def epochs(self, start: Position) -> tf.data.Dataset:
        """(batch, position after it, lines) of all epochs from `start` on."""
        # Not `tf.data.Dataset.counter`, which would go on at exit.
        count = until_exit(lambda first: itertools.count(int(first)))
        numbers = tf.data.Dataset.from_generator(
            count, args=(start.epoch,), output_signature=tf.TensorSpec([], tf.int64)
        )
        return numbers.flat_map(lambda epoch: self.epoch(epoch, start))

    def epoch(self, epoch: tf.Tensor, start: Position = Position()) -> tf.data.Dataset:
        """(batch, position after it, lines) of one epoch."""
        resumes = tf.cast(epoch == start.epoch, tf.int64)
        line, batch, pairs = (resumes * part for part in start[1:])
        chunks = tf.data.Dataset.from_generator(
            self.chunks, args=(epoch, line), output_signature=CHUNK_SIGNATURE
        )
        return (
            chunks.map(lambda *chunk: self.tokenized(*chunk, epoch), tf.data.AUTOTUNE)
            .rebatch(self.batching.batch_size * self.batching.pool_batches)
            .enumerate()
            .flat_map(
                lambda number, pool: self.batches(pool, epoch, tf.where(number == 0, batch, 0))
            )
            .scan(pairs, _count_pairs)
        )

    @until_exit
    def chunks(
        self, epoch: int, line: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, list[bytes], list[bytes]]]:
        """Lines of an epoch: places in it, numbers, source and target text."""
        order = self.order(int(epoch))
        for first in range(line, len(order), CHUNK):
            rows = order[first : first + CHUNK]
            places = first + np.arange(len(rows))
            if self.synthetic is None:
                x, y = self.corpus.read(rows)
            else:
                rows, x, y = self.synthetic.read(int(epoch), places, rows)
            if self.batching.careless_sources:
                ways = self.ways(int(epoch))[places]
                for i in np.flatnonzero(ways).tolist():
                    x[i] = careless(x[i], y[i], int(ways[i]))
            yield places, rows.astype(np.int64), x, y

    def _ways(self, epoch: int) -> np.ndarray:
        """int [pairs]: how careless the source at each place of an epoch is, see `careless`."""
        count, share = len(self.corpus), self.batching.careless_sources
        random = np.random.RandomState([self.batching.seed, epoch, 1])
        ways = np.array(CARELESS)[random.randint(len(CARELESS), size=count)]
        return np.where(random.random_sample(count) < share, ways, 0)

    def _order(self, epoch: int) -> np.ndarray:
        """uint32 [pairs]: the line numbers of an epoch, in its order.

        NumPy guarantees that the draws of a seeded `RandomState` never change.
        """
        if self.batching.shuffle == "none":
            return self.corpus.rows
        draw = epoch if self.batching.shuffle == "each_epoch" else 0
        return np.random.RandomState([self.batching.seed, draw]).permutation(self.corpus.rows)

    def _tokenized(
        self, places: tf.Tensor, lines: tf.Tensor, x: tf.Tensor, y: tf.Tensor, epoch: tf.Tensor
    ) -> Pool:
        """Tokenises a chunk and keeps the pairs of an allowed length."""
        sides = list(zip(self.texts, (x, y), strict=True))
        usual = [text.tokenize(strings) for text, strings in sides]
        both = tf.stack([rows.row_lengths() for rows in usual])
        fits = tf.reduce_all(both > 1, 0)
        lengths = tf.reduce_max(both, 0)
        if self.batching.max_length is not None:
            fits &= lengths - 1 <= self.batching.max_length
        if self.batching.max_words is not None:
            fits &= count_words(x) <= self.batching.max_words
        kept = tf.where(fits)[:, 0]
        ids = usual
        if self.batching.sample_subwords:
            sample = {"sample": True}  # an option of sub-word tokenizers alone, not of all

            def drawn() -> list[tf.RaggedTensor]:
                return [text.tokenize(strings, **sample) for text, strings in sides]

            until = self.batching.sampled_epochs
            ids = drawn() if until is None else tf.cond(epoch < until, drawn, lambda: usual)
        parts = (places, lines, *ids, lengths)
        return Pool(*(tf.gather(part, kept) for part in parts))

    def batches(self, pool: Pool, epoch: tf.Tensor, first: tf.Tensor) -> tf.data.Dataset:
        """Cuts a pool into batches, without those before number `first`."""
        line = pool.places[0]
        numbered_rows = tf.data.Dataset.from_generator(
            self.cut, args=(pool.lengths, epoch, line), output_signature=PAIRS
        ).enumerate(1)
        return numbered_rows.skip(first).map(
            lambda number, rows: (
                _padded(pool, rows),
                Position(epoch, line, number, tf.size(rows, tf.int64)),
                tf.gather(pool.lines, rows),
            )
        )

    @until_exit
    def cut(self, lengths: np.ndarray, epoch: int, line: int) -> Iterator[np.ndarray]:
        """The pairs of each batch of the pool that begins at `line`, int64 [B]."""
        seed = [self.batching.seed, epoch, line]
        return iter(cut(lengths, self.batching, np.random.RandomState(seed)))

    def _check_that_a_pair_fits(self) -> None:
        for chunk in self.chunks(0, 0):
            first = tf.constant(0, tf.int64)
            if len(self.tokenized(*map(tf.constant, chunk), first).places):
                return
        longest, words = self.batching.max_length, self.batching.max_words
        other = f", and at most max_words={words} source words" if words else ""
        if longest is not None:
            other += advice(longer_sides(self.corpus, *self.texts), longest)
        raise ValueError(
            f"Batching: none of the {len(self.corpus):,} pairs has "
            f"1 to max_length={longest} tokens on both sides{other}"
        )


def cut(lengths: np.ndarray, batching: Batching, random: np.random.RandomState) -> list[np.ndarray]:
    """Sorts a pool by its lengths, int64 [P]; returns the indices of each batch, int64 [B]."""
    order = np.argsort(lengths, kind="stable")
    size, budget = batching.batch_size, batching.token_budget
    cuts = [*range(size, len(order), size)]
    if budget is not None:  # rows times longest stay in it
        cuts, first = [], 0
        for place, length in enumerate(lengths[order].tolist()):
            if place > first and (place - first + 1) * length > budget:
                cuts.append(place)
                first = place
    batches = np.split(order, cuts)
    if batching.shuffle_pool:
        return [batches[i] for i in random.permutation(len(batches))]
    return batches


def _padded(pool: Pool, rows: tf.Tensor) -> Batch:
    """The pairs of a pool with these indices, as a batch for Keras."""
    source = tf.gather(pool.source, rows).to_tensor()
    target = tf.gather(pool.target, rows).to_tensor()
    features = {"source": source, "target": target}
    return features, target, tf.cast(target != 0, tf.float32)


def _count_pairs(
    before: tf.Tensor, element: tuple[Batch, Position, tf.Tensor]
) -> tuple[tf.Tensor, tuple[Batch, Position, tf.Tensor]]:
    """Adds up `pairs`: from those of a batch to those of the epoch so far."""
    batch, position, lines = element
    pairs = before + position.pairs
    return pairs, (batch, position._replace(pairs=pairs), lines)


@dataclass
class Statistics:
    """The contents of batches.

    Attributes:
        batches: number of batches.
        pairs: number of sentence pairs.
        tokens: number of tokens of both sides, end symbols included.
        cells: number of ids of both sides, padding included.
    """

    batches: int = 0
    pairs: int = 0
    tokens: int = 0
    cells: int = 0

    def add(self, batch: Batch) -> None:
        """Counts a batch of `make_dataset`."""
        sides = [np.asarray(ids) for ids in batch[0].values()]
        self.batches += 1
        self.pairs += len(sides[0])
        self.tokens += sum(int(np.count_nonzero(ids)) for ids in sides)
        self.cells += sum(ids.size for ids in sides)

    @property
    def padding_share(self) -> float:
        """The share of all ids that is padding."""
        return 1 - self.tokens / self.cells if self.cells else 0.0


def measure(dataset: tf.data.Dataset) -> Statistics:
    """Iterates over a dataset once and counts its contents.

    Args:
        dataset: a finite dataset as from `make_dataset`.

    Returns:
        `Statistics`; the length of the corpus minus its `pairs` is the number of pairs that were
        dropped for their length.
    """
    statistics = Statistics()
    for batch in dataset:
        statistics.add(batch)
    return statistics
