"""`make_dataset` and `stream_batches`: contents, order, resuming, errors."""

import gzip
import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterable
from itertools import compress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given, strategies as st
from processes import output_of
from refusals import refused

from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.data import ParallelCorpus, dataset, parallel
from bahdanau_tf.data.dataset import (
    Position,
    _Stream,
    coverage,
    cut,
    longer_sides,
    make_dataset,
    measure,
    stream_batches,
)
from bahdanau_tf.data.parallel import TextFile
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.text import WordTokenizer

END = 1
SIDES = ("source", "target")


class Numbers(tf.Module):
    """A tokenizer for lines of numbers: a number is its own id."""

    def tokenize(self, strings: tf.Tensor, sample: bool = False) -> tf.RaggedTensor:
        return numbers(strings)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
def numbers(strings: tf.Tensor) -> tf.RaggedTensor:
    """Traced once for all tests."""
    words = tf.strings.split(strings)
    ids = words.with_values(tf.strings.to_number(words.values, tf.int32))
    ends = tf.fill([tf.size(strings), 1], END)
    return tf.concat([ids, tf.RaggedTensor.from_tensor(ends)], axis=1)


class Repeated(Numbers):
    """A tokenizer that reads each line several times."""

    def __init__(self, times: int, if_sampled: int = 1) -> None:
        super().__init__()
        self.times, self.if_sampled = times, if_sampled

    def tokenize(self, strings: tf.Tensor, sample: bool = False) -> tf.RaggedTensor:
        times = self.times * (self.if_sampled if sample else 1)
        return super().tokenize(tf.strings.join([strings] * times, " "))


class Lines:
    """A corpus in files: pair i consists of the number i + 2, repeated."""

    def __init__(self, folder: Path, lengths: list[tuple[int, int]]) -> None:
        self.pairs = [
            ([i + 2] * source, [i + 2] * target) for i, (source, target) in enumerate(lengths)
        ]
        self.paths = folder / "source", folder / "target"
        for side, path in enumerate(self.paths):
            rows = (" ".join(map(str, pair[side])) for pair in self.pairs)
            path.write_text("".join(f"{row}\n" for row in rows))

    def fitting(self, max_length: int = 50) -> list[int]:
        """First words of the pairs that no filter drops."""
        pairs = self.pairs
        return [x[0] for x, y in pairs if 0 < len(x) <= max_length and 0 < len(y) <= max_length]

    def longest(self, number: int) -> int:
        return max(map(len, self.pairs[number - 2]))


def of_any_length(folder: Path, pairs: int) -> Lines:
    random = np.random.RandomState(5)
    return Lines(folder, random.randint(0, 14, size=[pairs, 2]).tolist())


@pytest.fixture
def lines(tmp_path):
    return of_any_length(tmp_path, 330)


@pytest.fixture
def corpus(lines):
    return ParallelCorpus(*lines.paths)


@pytest.fixture
def few(tmp_path):
    """A corpus that gives each of `BATCHINGS` one to three pools."""
    return of_any_length(tmp_path, 110)


def first_words(batch: Any) -> list[int]:
    return batch[0]["source"][:, 0].numpy().tolist()


def epoch_of(dataset: tf.data.Dataset) -> list[list[int]]:
    return [first_words(batch) for batch in dataset]


def flat(batches: list[list[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(batches))


# The elements of a dataset.


def test_batches_contain_padded_ids_and_weights_as_keras_expects(few):
    """Of lists of sentences as of files; `measure` counts them."""
    texts = (path.read_text().split("\n")[:-1] for path in few.paths)
    dataset = make_dataset((*texts,), Numbers(), Numbers(), batch_size=7)
    features, target, weights = dataset.element_spec
    for spec in (*features.values(), target, weights):
        assert spec.shape.as_list() == [None, None]
    batches = [*dataset]
    for features, target, weights in batches:
        assert set(features) == {"source", "target"}
        np.testing.assert_array_equal(features["target"], target)
        assert weights.dtype == tf.float32
        assert weights.shape == target.shape
        for side, name in enumerate(SIDES):
            assert features[name].dtype == tf.int32
            rows = features[name].numpy()
            for row in rows.tolist():
                ids = few.pairs[row[0] - 2][side] + [END]
                assert row == ids + [0] * (len(row) - len(ids))
            assert (rows[:, -1] != 0).any()
        np.testing.assert_array_equal(weights, (target != 0).numpy() * 1.0)
    statistics = measure(batches)
    fitting = few.fitting()
    assert statistics.pairs == len(fitting)
    assert statistics.batches == -(-len(fitting) // 7)
    tokens = sum(len(side) + 1 for n in fitting for side in few.pairs[n - 2])
    cells = sum(tf.size(rows).numpy() for batch in batches for rows in batch[0].values())
    assert statistics.tokens == tokens
    assert statistics.padding_share == pytest.approx(1 - tokens / cells)


# Which pairs come in which order.

BATCHINGS = [
    Batching(batch_size=8, max_length=11, pool_batches=4, shuffle="none"),
    Batching(7, None, 5, shuffle_pool=True, shuffle="each_epoch", seed=1),
    Batching(1000, 10, 20, shuffle_pool=True, token_budget=33, shuffle="once"),
]


@pytest.fixture(scope="module", params=BATCHINGS)
def streamed(request, tmp_path_factory) -> SimpleNamespace:
    """Three epochs of a stream and what they were made of."""
    lines = of_any_length(tmp_path_factory.mktemp("few"), 110)
    corpus = ParallelCorpus(*lines.paths)
    stream = _Stream(corpus, [Numbers(), Numbers()], request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "CHUNK", 27)  # so that pools span several chunks
        elements = [*itertools.takewhile(lambda e: e[1].epoch < 3, stream.epochs(Position()))]
    return SimpleNamespace(lines=lines, batching=request.param, stream=stream, elements=elements)


def test_every_fitting_pair_comes_once_per_epoch(streamed):
    epochs: dict[int, list[int]] = {0: [], 1: [], 2: []}
    budget = streamed.batching.token_budget
    for batch, position, numbers in streamed.elements:
        words = first_words(batch)
        longer = max(ids.shape[1] for ids in batch[0].values())
        assert budget is None or len(words) * longer <= budget
        assert [number + 2 for number in numbers.numpy()] == words
        epochs[int(position.epoch)] += words
        assert int(position.pairs) == len(epochs[int(position.epoch)])
    longest = streamed.batching.max_length or 99
    expected = sorted(streamed.lines.fitting(longest))
    for pairs in epochs.values():
        assert sorted(pairs) == expected


@pytest.mark.parametrize("streamed", BATCHINGS[:1], indirect=True)
def test_each_pool_is_sorted_by_length_as_in_the_paper(streamed):
    lines = streamed.lines
    fitting = lines.fitting(11)
    expected = []
    for start in range(0, len(fitting), 32):
        pool = sorted(fitting[start : start + 32], key=lines.longest)
        expected += [pool[i : i + 8] for i in range(0, len(pool), 8)]
    assert [first_words(batch) for batch, *_ in streamed.elements] == expected * 3


def test_shuffle_is_a_permutation_of_the_whole_corpus(lines, corpus):
    def orders(shuffle: str, seed: int = 0) -> list[list[int]]:
        batching = Batching(shuffle=shuffle, seed=seed)
        stream = _Stream(corpus, [Numbers(), Numbers()], batching)
        return [stream.order(epoch).tolist() for epoch in range(3)]

    pairs = [i for i, pair in enumerate(lines.pairs) if all(pair)]
    assert orders("none") == [pairs] * 3
    once = orders("once")
    assert once == [once[0]] * 3
    each = orders("each_epoch")
    assert each == orders("each_epoch")
    assert len({tuple(order) for order in each}) == 3
    assert once[0] != orders("once", seed=1)[0]
    assert all(sorted(order) == pairs for order in each + once)
    # Not a sliding window: the first tenth comes from the whole corpus.
    first = once[0][: len(pairs) // 10]
    assert max(first) - min(first) > len(lines.pairs) * 0.8


def test_a_shuffled_pool_has_the_batches_of_a_sorted_one():
    lengths = np.random.RandomState(1).randint(1, 14, 110)
    ascending, shuffled = (
        [rows.tolist() for rows in cut(lengths, batching, np.random.RandomState(0))]
        for batching in (Batching(8), Batching(8, shuffle_pool=True))
    )
    assert shuffled != ascending
    assert sorted(shuffled) == sorted(ascending)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=80),
    size=st.integers(1, 90),
    budget=st.none() | st.integers(1, 300),
    shuffle_pool=st.booleans(),
)
def test_cut_sorts_by_length_and_respects_size_and_budget(lengths, size, budget, shuffle_pool):
    batching = Batching(size, token_budget=budget, shuffle_pool=shuffle_pool)
    random = np.random.RandomState(0)
    batches = [b.tolist() for b in cut(np.array(lengths), batching, random)]
    assert sorted(flat(batches)) == list(range(len(lengths)))
    if shuffle_pool:
        batches.sort(key=lambda rows: (lengths[rows[0]], lengths[rows[-1]]))
        batches.sort(key=lambda rows: [(lengths[r], r) for r in rows])
    in_order = [lengths[row] for row in flat(batches)]
    assert in_order == sorted(lengths)
    for rows, after in itertools.pairwise([*batches, []]):
        if budget is None:
            assert len(rows) == size or (len(rows) < size and not after)
        else:
            assert len(rows) * lengths[rows[-1]] <= budget or len(rows) == 1
            # One more row would exceed the budget.
            assert not after or (len(rows) + 1) * lengths[after[0]] > budget


# Resuming.


def test_many_streams_of_a_process_are_no_reason_for_a_warning(tmp_path, monkeypatch):
    """TensorFlow's, of functions that are traced often; and no stream has a thread of autotuning.

    That thread waits by the time of day, so it would not end after the clock was set back.
    """
    warnings: list[str] = []
    monkeypatch.setattr(tf.get_logger(), "warning", lambda text, *_: warnings.append(text))
    corpus = ParallelCorpus(*Lines(tmp_path, [(1, 1)] * 4).paths)
    streams = [stream_batches(corpus, Numbers(), Numbers()) for _ in range(5)]
    assert warnings == []
    assert not streams[0].options().autotune.enabled


def targets_and_positions(stream: Iterable[tuple[Any, Position]]) -> list[tuple]:
    return [
        (batch[1].numpy().tolist(), Position(*map(int, position))) for batch, position, *_ in stream
    ]


def test_resuming_at_any_position_continues_the_stream(streamed):
    """Also after the last batch of an epoch, where the next one begins."""
    stream = targets_and_positions(streamed.elements)
    # From many positions at once, in one graph.
    starts = tf.data.Dataset.from_tensor_slices(
        Position(*np.transpose([position for _, position in stream[:-2]]))
    )
    epochs = streamed.stream.epochs
    again = targets_and_positions(starts.flat_map(lambda start: epochs(start).take(2)))
    for step, (_, position) in enumerate(stream[:-2]):
        after = stream[step + 1 : step + 3]
        assert again[2 * step : 2 * step + 2] == after, position
    assert {0, 1, 2} == {position.epoch for _, position in stream}


def test_resuming_continues_to_the_next_epoch_and_reads_no_line_before(few, monkeypatch):
    corpus = ParallelCorpus(*few.paths)
    batching = Batching(4, pool_batches=2, shuffle="each_epoch", shuffle_pool=True, seed=1)
    stream = targets_and_positions(stream_batches(corpus, Numbers(), Numbers(), batching).take(35))
    start = stream[19][1]
    again = stream_batches(corpus, Numbers(), Numbers(), batching, start)
    read: list[int] = []

    def watched(rows: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        read.extend(rows.tolist())
        return ParallelCorpus.read(corpus, rows)

    monkeypatch.setattr(corpus, "read", watched)
    assert targets_and_positions(again.take(15)) == stream[20:]
    assert {0, 1} == {position.epoch for _, position in stream[20:]}
    rows = corpus.rows.copy()
    np.random.RandomState([1, 0]).shuffle(rows)
    assert start.line > 50
    assert read[: len(rows) - start.line] == rows[start.line :].tolist()


# Text in memory.


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["1", "2"], "1 2 source"),
        ([3], "target[0] 3 string"),
        (["1\n2"], "target[0] '1\\n2' line"),
        (["1", "\ud800"], "target[1] '\\ud800' UTF-8"),
        ([" "], "sentence"),
    ],
)
def test_bad_lists_of_sentences_are_refused(target, message):
    refused(lambda: ParallelCorpus(["1"], target), "ParallelCorpus", *message.split())


# Lines that are skipped.


def test_blank_and_long_lines_are_skipped_and_counted(tmp_path):
    lengths = [(3, 3), (0, 3), (3, 0), (0, 0), (50, 50), (51, 3), (3, 51)]
    lines = Lines(tmp_path, [*lengths, (10_000, 10_000), (2, 1)])
    corpus = ParallelCorpus(*lines.paths)
    assert (corpus.lines, corpus.blank, len(corpus)) == (9, 3, 6)
    statistics = measure(make_dataset(corpus, Numbers(), Numbers()))
    assert len(corpus) - statistics.pairs == 3


def test_pairs_with_many_source_words_are_left_out(tmp_path):
    """Words are those between blanks, whatever the tokenizer makes of them."""
    lengths = [(3, 9), (4, 1), (5, 1), (9, 3), (1, 1), (0, 2)]
    lines = Lines(tmp_path, lengths)

    options = {"max_length": None, "max_words": 4, "shuffle": "none"}
    batches = make_dataset(lines.paths, Repeated(2), Numbers(), **options)
    assert sorted(flat(epoch_of(batches))) == [2, 3, 6]
    paths = Lines(tmp_path, [(5, 5)]).paths
    said = "max_words=4", "source"
    refused(lambda: make_dataset(paths, Numbers(), Numbers(), **options), *said)


def test_every_character_of_white_space_alone_is_a_blank_line(tmp_path):
    spaces = [c for c in map(chr, range(0x110000 - 2048)) if c.isspace()]
    words = ["\u0120", "\u3002", "\u2042", "\u16a9", "\u3000\u3042", "\u200b"]
    lines = [c for c in [*spaces, "\u3000 \u00a0", *words] if c != "\n"]
    (tmp_path / "text").write_text("\n".join(lines), "utf-8", newline="")
    file = TextFile(tmp_path / "text")
    assert [*compress(lines, ~file.is_blank)] == words


def test_a_pair_without_tokens_is_skipped(tmp_path):
    class Nothing(Numbers):
        def tokenize(self, strings: tf.Tensor, sample: bool = False) -> tf.RaggedTensor:
            kept = tf.where(strings == "9", "", strings)
            return super().tokenize(kept)

    for name in ("source", "target"):
        (tmp_path / name).write_text("8\n9\n7\n")
    paths = tmp_path / "source", tmp_path / "target"
    dataset = make_dataset(paths, Nothing(), Numbers(), shuffle="none")
    assert epoch_of(dataset) == [[8, 7]]


def test_subwords_are_sampled_only_in_the_first_epochs_and_move_no_pair(few):
    """Limit and budget are of sub-words as they are without sampling."""
    options = {"max_length": 9, "token_budget": 20, "shuffle": "none"}
    options |= {"sample_subwords": True, "sampled_epochs": 2}
    batches = make_dataset(few.paths, Numbers(), Repeated(1, if_sampled=2), **options)
    first, second, third = ([*batches] for _ in range(3))
    assert len(first) == len(second) == len(third) > 1
    for drawn, again, usual in zip(first, second, third, strict=True):
        assert first_words(drawn) == first_words(again) == first_words(usual)
        lengths = [np.count_nonzero(batch[1], axis=1) - 1 for batch in (drawn, again, usual)]
        np.testing.assert_array_equal(lengths[0], lengths[1])
        np.testing.assert_array_equal(lengths[0], 2 * lengths[2])
    assert sorted(flat(map(first_words, third))) == few.fitting(9)


# Reading files.

LINE_CHARACTERS = st.text(st.sampled_from("ab \t\r\n\x01é한\u2028\u0085\u00a0\ufeff"), max_size=60)


@given(text=LINE_CHARACTERS, block=st.integers(1, 9), end=st.booleans())
def test_lines_end_only_at_line_feeds(tmp_path_factory, text, block, end):
    path = tmp_path_factory.getbasetemp() / "lines"
    assume(end or "\n" in text or "\r" not in text.rstrip("\r"))  # else CR alone ends its lines
    path.write_bytes((text + "\n" * end).encode())
    expected = text.removeprefix("\ufeff").split("\n")
    if not end and expected[-1] == "":
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "BLOCK", block)
        file = TextFile(path)
    assert len(file) == len(expected)
    got = file.read(range(len(expected)))
    assert got == [line.rstrip("\r").encode() for line in expected]
    backwards = file.read(reversed(range(len(expected))))
    assert backwards == got[::-1]
    blank = [all(c <= " " or c.isspace() for c in line) for line in expected]
    assert file.is_blank.tolist() == blank


@pytest.mark.parametrize("packed", [1, 2])
def test_gzip_files_are_read_like_plain_ones(lines, corpus, packed, tmp_path):
    paths = list(lines.paths)
    for side in range(packed):
        paths[side] = tmp_path / f"{side}.gz"
        paths[side].write_bytes(gzip.compress(lines.paths[side].read_bytes()))
    unpacked = ParallelCorpus(*paths)
    assert unpacked.rows.tolist() == corpus.rows.tolist()
    rows = corpus.rows[::-1]
    assert unpacked.read(rows) == corpus.read(rows)
    assert unpacked.checksum == corpus.checksum


def test_the_checksum_depends_on_order_and_contents(lines):
    sums = {ParallelCorpus(*lines.paths).checksum}
    sums.add(ParallelCorpus(*lines.paths[::-1]).checksum)
    lines.paths[1].write_text(lines.paths[1].read_text().replace("7", "8", 1))
    sums.add(ParallelCorpus(*lines.paths).checksum)
    assert len(sums) == 3


# Errors.


def corpus_of(folder: Path, source: bytes, target: bytes) -> ParallelCorpus:
    (folder / "s.en").write_bytes(source)
    (folder / "t.fr").write_bytes(target)
    return ParallelCorpus(folder / "s.en", folder / "t.fr")


@pytest.mark.parametrize("text", [b"", b"\n", b"\n \n\t\r\n"])
def test_an_empty_corpus_is_refused(tmp_path, text):
    refused(lambda: corpus_of(tmp_path, text, text), "s.en", "t.fr", "pair")


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_invalid_utf8_is_reported_with_its_line(tmp_path, block, monkeypatch):
    monkeypatch.setattr(parallel, "BLOCK", block)
    text = "é\nb\n\n".encode() + b"ab\xe9\nc\xff\n"
    refused(lambda: corpus_of(tmp_path, b"a\n" * 5, text), "t.fr", "line 4", "UTF-8")


def test_a_corpus_without_fitting_pairs_is_refused(lines):
    said = "Batching", "length=3", "max_length="
    refused(lambda: make_dataset(lines.paths, Repeated(9), Numbers(), max_length=3), *said)


def test_pairs_that_fit_are_counted_and_a_limit_that_holds_most_is_advised(tmp_path):
    sizes = [(1 + n % 94, 1) for n in range(100)]
    text = Lines(tmp_path, sizes)
    corpus = ParallelCorpus(*text.paths)
    lengths = longer_sides(corpus, Numbers(), Numbers())
    assert lengths.tolist() == [source for source, _ in sizes]
    said = coverage(lengths, len(corpus), 7)
    assert said.startswith("13 of 100 pairs have 1 to 7 tokens")
    (limit,) = re.findall(r"max_length=(\d+)", said)
    assert 90 <= np.count_nonzero(lengths <= int(limit)) < 100
    assert coverage(lengths, len(corpus), int(limit)).endswith("both sides")


def test_of_a_large_text_a_sample_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "MEASURED", 20)
    text = Lines(tmp_path, [(1 + (n >= 50), 1) for n in range(100)])
    corpus = ParallelCorpus(*text.paths)
    lengths = longer_sides(corpus, Numbers(), Numbers())
    assert len(lengths) == 20
    assert coverage(lengths, len(corpus), 1).startswith("about 50.0 % of 100 ")


# With the package's tokenizers.


def test_ids_of_an_epoch_detokenize_to_the_corpus(tmp_path):
    write_corpus(tmp_path, train=100, dev=1, test=1)
    paths = tmp_path / "train.en", tmp_path / "train.fr"
    text = WordTokenizer.train(paths, 800)
    pairs: Counter[tuple[str, ...]] = Counter()
    for features, _, _ in make_dataset(paths, text, text, batch_size=40):
        sides = (text.detokenize(features[side]).numpy() for side in SIDES)
        pairs.update(tuple(map(bytes.decode, pair)) for pair in zip(*sides, strict=True))
    corpora = (path.read_text("utf-8").splitlines() for path in paths)
    assert pairs == Counter(zip(*corpora, strict=True))


HALF_READ = """
import sys, time
import tensorflow as tf
from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.data.dataset import stream_batches

class Letters:
    def tokenize(self, strings):
        return tf.strings.unicode_decode(strings, "UTF-8")

read = ParallelCorpus.read

def slowly(self, rows):
    time.sleep(0.02)  # so that tf.data is reading whenever the script ends
    return read(self, rows)

ParallelCorpus.read = slowly
corpus = ParallelCorpus(*sys.argv[1:])
batches = iter(stream_batches(corpus, Letters(), Letters()))
next(batches)
print("read", flush=True)
"""


def test_a_script_can_end_in_the_middle_of_an_epoch(tmp_path):
    for side in ("source", "target"):
        (tmp_path / side).write_text("a b c\n" * 30_000)
    assert output_of("-c", HALF_READ, tmp_path / "source", tmp_path / "target") == "read\n"


def test_the_end_waits_for_running_steps(monkeypatch):
    """And no longer: the fake clock counts the calls of `sleep`."""
    steps = dataset._Steps()
    running, may_end = threading.Event(), threading.Event()
    taken, naps = [], []

    def items():
        running.set()
        may_end.wait()
        yield "item"

    def sleep(_):
        naps.append("nap")
        may_end.set()
        thread.join()

    clock = SimpleNamespace(monotonic=itertools.count().__next__, sleep=sleep)
    monkeypatch.setattr(dataset, "time", clock)
    thread = threading.Thread(target=lambda: taken.append(steps.take(items())), daemon=True)
    thread.start()
    running.wait()
    steps.end()
    assert taken == ["item"]
    assert naps == ["nap"]
    with pytest.raises(StopIteration):
        steps.take(iter(["late"]))
