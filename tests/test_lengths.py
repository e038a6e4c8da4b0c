"""The unit in which lengths of source sentences are counted."""

import pytest

from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.translation.lengths import source_lengths


@pytest.fixture(scope="module")
def pieces(tmp_path_factory) -> SubwordTokenizer:
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("red cat sits on mat\nblue dog runs\n" * 9)
    return SubwordTokenizer.train([path], 285)


def test_lengths_are_counted_as_in_training(pieces):
    """In the tokens of a model; in words if several models differ."""
    lines = ["red catdog", "a, b"]
    counted = [len(row) - 1 for row in pieces.tokenize(lines).to_list()]
    assert counted[0] > 2
    assert source_lengths([pieces], lines) == (counted, "sub-words")
    words = WordTokenizer(Vocabulary(["[PAD]", "[UNK]", "[END]"]))
    assert source_lengths([pieces, words], lines) == ([2, 3], "tokens")
    assert source_lengths([], lines) == ([2, 2], "words between spaces")
    by_words = source_lengths([pieces, words], lines, by_words=True)
    assert by_words == ([2, 2], "words between spaces")
