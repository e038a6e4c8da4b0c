"""Ragged rows: row numbers and masks, in memory proportional to the tokens."""

import tensorflow as tf
from hypothesis import given, settings, strategies as st

from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.rows import count_words, masked, replaced_offsets, row_ids
from bahdanau_tf.text.vocabulary import SPECIAL, Vocabulary

PARTS = st.sampled_from([b"a", b" ", b"\xc3\xa9", b"\xf0\x9d\x84\x9e", b"\xe3", b"\x81", b"\xff"])


@given(st.lists(st.lists(PARTS, max_size=6), min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_offsets_are_those_after_invalid_bytes_are_replaced(rows):
    offsets = [[sum(map(len, row[:n])) for n in range(len(row) + 1)] for row in rows]
    moved = replaced_offsets(
        tf.constant([b"".join(row) for row in rows]), tf.ragged.constant(offsets, tf.int32)
    )
    for row, ends in zip(rows, moved.to_list(), strict=True):
        text = b"".join(row).decode("utf-8", "replace").encode()
        assert ends == sorted(ends)
        assert (ends[0], ends[-1]) == (0, len(text))
        for part, start, end in zip(row, ends, ends[1:], strict=False):
            if part.decode("utf-8", "ignore"):  # it is valid by itself
                assert text[start:end] == part


ROWS = st.lists(st.lists(st.booleans(), max_size=4), max_size=6)


@given(ROWS, st.sampled_from([tf.int32, tf.int64]))
@settings(max_examples=50)
def test_row_ids_and_masked_equal_python_loops(rows, dtype):
    mask = tf.RaggedTensor.from_row_lengths(
        tf.constant([value for row in rows for value in row], tf.bool),
        tf.constant([len(row) for row in rows], dtype),
    )
    assert row_ids(mask).numpy().tolist() == [
        number for number, row in enumerate(rows) for _ in row
    ]
    places = mask.with_values(tf.range(tf.size(mask.values)))
    expected, count = [], 0
    for row in rows:
        expected.append([count + i for i, keep in enumerate(row) if keep])
        count += len(row)
    assert masked(places, mask).to_list() == expected


def test_words_are_counted_as_python_splits_them():
    """Also at blanks beyond ASCII, of which French has some before marks."""
    signs = [chr(code) for code in range(0x3100)]
    lines = [f"{sign}a{sign}b" for sign in signs]
    lines += ["", " ", "oui !", "\N{NO-BREAK SPACE}"]
    assert count_words(tf.constant(lines)).numpy().tolist() == [len(line.split()) for line in lines]


def test_a_long_word_among_many_short_ones_needs_little_memory():
    """A dense table of all words times the longest would need 80 GB."""
    count = 100_000
    text = "x" * count + " a" * count
    words = WordTokenizer(Vocabulary([*SPECIAL, "a"]), reverse=True)

    @tf.function(autograph=False)
    def graph(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        surfaces = words.tokenize_with_offsets(strings)[0]
        return words.detokenize(words.tokenize(strings)), surfaces.values

    back, surfaces = graph(tf.constant([text]))
    assert back.numpy() == [("[UNK]" + " a" * count).encode()]
    assert surfaces.shape == count + 1
    assert surfaces[-1] == b"x" * count
    assert b" ".join(surfaces[::-1].numpy()) == text.encode()
