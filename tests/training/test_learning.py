"""Sub-words and words are learned from lines as they are read later."""

import itertools
import unicodedata
from pathlib import Path

import pytest
from comparisons import write_lines

from bahdanau_tf.options import TextOptions
from bahdanau_tf.training.text import learn

WORDS = ["Eine", "sieht", "fünf", "große", "Hunde", "über", "Bücher", "vor", "Straßen"]
LINES = [" ".join(words) for words in itertools.permutations(WORDS, 2)]
CHANGES = {
    "plain": str,
    "capitals": lambda line: line.replace("ß", "ss").upper(),
    "decomposed": lambda line: unicodedata.normalize("NFD", line),
    "decomposed capitals": lambda line: unicodedata.normalize(
        "NFD", line.replace("ß", "ss").upper()
    ),
    "full width and blanks": lambda line: "".join(
        chr(ord(x) + 0xFEE0) if "!" <= x <= "~" else "\u3000" for x in line
    ),
    "soft hyphens": "\xad".join,
}


@pytest.fixture(params=CHANGES)
def paths(request, tmp_path) -> list[str]:
    """A text that is changed before it is split, and one that is not."""
    change = CHANGES[request.param]
    texts = {"source": map(change, LINES), "target": reversed(LINES)}
    return [write_lines(tmp_path / name, lines) for name, lines in texts.items()]


@pytest.mark.parametrize(
    "options", [{}, {"lowercase": True, "reverse_source": True, "true_case": True}], ids=str
)
@pytest.mark.parametrize("kind", ["word", "bpe", "unigram", "joint", "char", "space"])
def test_the_training_text_has_no_bytes_and_no_unknown_words(paths, kind, options):
    if kind == "joint":
        options = {**options, "joint": True}
        kind = "bpe"
    sizes = {"source_vocabulary_size": 340, "target_vocabulary_size": 340}
    text = TextOptions(kind, **sizes, **options)
    for learned, path in zip(learn(text, *paths), paths, strict=True):
        lines = Path(path).read_text("utf-8").split("\n")[:-1]
        ids = learned.tokenize(lines).flat_values
        pieces = {*learned.ids_to_tokens(ids).numpy().tolist()}
        assert b"[UNK]" not in pieces
        assert not [piece for piece in pieces if piece.startswith(b"<0x")]


def test_a_joint_vocabulary_keeps_the_capitals_of_the_target(tmp_path):
    """Only the source is read in lower case."""
    path = write_lines(tmp_path / "text", map(str.upper, LINES))
    source, target = learn(TextOptions("bpe", joint=True, source_vocabulary_size=340), path, path)
    line = LINES[0].upper()
    counts = [len(text.tokenize([line])[0]) for text in (source, target)]
    assert max(counts) < len(line)
    (back,) = target.detokenize(target.tokenize([line])).numpy()
    assert back.decode() == line
