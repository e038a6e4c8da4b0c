"""Vocabulary: ids, files, the most frequent words, coverage."""

import collections
import errno
import hashlib
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tensorflow as tf
from hypothesis import given, strategies as st
from refusals import refused

from bahdanau_tf.text import Vocabulary

# Characters that Python takes for line ends or white space, and others.
WORDS = st.text(st.sampled_from("ab\u2028\u0085\x0c é한"), min_size=1)


def test_special_symbols_are_found_by_name():
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "the", "cat", "[END]"])
    ids = vocabulary.pad_id, vocabulary.unk_id, vocabulary.eos_id
    assert ids == (0, 1, 4)
    assert len(vocabulary) == vocabulary.size == 5
    words = tf.constant([["cat", "dog"], ["[END]", "[PAD]"]])
    assert vocabulary.ids(words).numpy().tolist() == [[3, 1], [1, 1]]


def test_words_invert_ids_in_any_shape():
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[END]", "a", "é"])
    ids = tf.constant([[[4], [-1]], [[5], [2]]], tf.int64)
    words = vocabulary.words(ids)
    assert words.shape == ids.shape
    assert words.numpy().reshape(-1).tolist() == ["é".encode(), b"[UNK]", b"[UNK]", b"[END]"]
    ragged = tf.ragged.constant([[3, 4], [], [3]])
    assert vocabulary.words(ragged).to_list() == [[b"a", "é".encode()], [], [b"a"]]
    assert vocabulary.ids(vocabulary.words(ragged)).to_list() == [[3, 4], [], [3]]


def test_vocabularies_do_not_share_a_table(tmp_path):
    path, words = tmp_path / "vocabulary.txt", ["old", "new"]
    loaded = []
    for word in words:
        Vocabulary(["[PAD]", "[UNK]", "[END]", word]).save(path)
        loaded.append(Vocabulary.load(path))
    ids = [tf.function(own.ids)(tf.constant(words)).numpy().tolist() for own in loaded]
    assert ids == [[3, 1], [1, 3]]


@given(st.lists(st.lists(WORDS)), st.integers(3, 9))
def test_build_keeps_the_most_frequent_words(sentences, size):
    tokens = Vocabulary.build(iter(sentences), size).tokens
    assert tokens[:3] == ["[PAD]", "[UNK]", "[END]"]
    counts = collections.Counter(w for words in sentences for w in words)
    kept = tokens[3:]
    assert len(kept) == min(size - 3, len(counts))
    # Frequent words first; equally frequent ones in the order of code points.
    order = [(-counts[word], word) for word in kept]
    assert order == sorted(order)
    left_out = [(-n, word) for word, n in counts.items() if word not in kept]
    assert not kept or all(order[-1] < other for other in left_out)


def test_build_reads_lines_and_leaves_out_special_symbols():
    lines = ["b a [UNK] b", "", " [END]  c [PAD] [UNK] [UNK]"]
    tokens = Vocabulary.build(lines, 100).tokens
    assert tokens == ["[PAD]", "[UNK]", "[END]", "b", "a", "c"]
    refused(lambda: Vocabulary.build(lines, 2), "Vocabulary.build: size=2")


def test_build_does_not_keep_the_sentences_in_memory():
    def sentences() -> Iterator[list[str]]:
        for number in range(20_000):
            yield [f"{number % 50}"] * 50

    tracemalloc.start()
    Vocabulary.build(sentences(), 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000  # the sentences have a million words


@given(st.lists(WORDS, unique=True))
def test_a_vocabulary_is_saved_and_loaded(words):
    vocabulary = Vocabulary(["[PAD]", *words, "[END]", "[UNK]"])
    with TemporaryDirectory() as folder:
        path = Path(folder, "new", "vocabulary.txt")
        vocabulary.save(path)
        data = path.read_bytes()
        assert data.decode().split("\n") == [*vocabulary.tokens, ""]
        assert vocabulary.checksum == hashlib.sha256(data).hexdigest()
        again = Vocabulary.load(path, vocabulary.checksum)
    assert again.tokens == vocabulary.tokens == ["[PAD]", *words, *again.tokens[-2:]]
    assert again.eos_id == len(words) + 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[PAD] [UNK] [END] a b a", "the word 'a' is repeated"),
        ("[PAD] [UNK] [END] [UNK]", r"the word '\[UNK\]' is repeated"),
        ("[PAD] [UNK] [END] a  b", "id 4 is ''"),
        ("[PAD] [UNK] a", r"no special symbol \[END\]"),
        ("a [PAD] [UNK] [END]", r"id 0 is 'a', wanted \[PAD\]"),
        ("", r"no special symbol \[PAD\]"),
        ("\ufeff[PAD] [UNK] [END] a", ".*byte order mark or with"),
        ("[PAD] [UNK] [END] a\r", ".*byte order mark or with"),
    ],
)
def test_bad_vocabularies_are_refused(tmp_path, text, complaint):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes((text.replace(" ", "\n") + "\n").encode())
    with pytest.raises(ValueError, match=r"^Vocabulary(\.load)?: " + complaint):
        Vocabulary.load(path)


def test_a_line_break_in_a_word_is_refused():
    refused(lambda: Vocabulary(["[PAD]", "[UNK]", "[END]", "a\nb"]), "no line break")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "vocabulary.txt"
    Vocabulary(["[PAD]", "[UNK]", "[END]", "old"]).save(path)
    before = path.read_bytes()

    def full_disk(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    refused(
        lambda: Vocabulary(["[PAD]", "[UNK]", "[END]", "new"]).save(path), "no space", by=OSError
    )
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["vocabulary.txt"]
