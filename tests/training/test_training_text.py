"""`train` learns the same tokenizers from packed and from plain text."""

import codecs
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora import write_corpus

SIZES = ("units", "embedding_dim", "attention_units", "maxout_units")
SMALL = ["--recipe=paper", "--source_vocabulary_size=340", "--epochs=1"]
SMALL += [f"--{name}=8" for name in SIZES]


def train(folder: Path, ending: str, *flags: str) -> int:
    files = {"train_source": "train.en", "train_target": "train.fr", "model_dir": "model"}
    words = [f"--{name}={folder / file}{ending}" for name, file in files.items()]
    return main(["train", *words, *SMALL, *flags])


def packed(text: bytes) -> bytes:
    return gzip.compress(codecs.BOM_UTF8 + text)


def pack(folder: Path, how: Callable[[bytes], bytes]) -> None:
    for side in ("en", "fr"):
        text = (folder / f"train.{side}").read_bytes()
        (folder / f"train.{side}.gz").write_bytes(how(text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--tokenizer=word", "--target_vocabulary_size=340"],
        ["--tokenizer=unigram", "--target_vocabulary_size=340"],
        ["--tokenizer=bpe", "--joint"],
    ],
    ids=lambda flags: flags[0],
)
def test_tokenizers_of_packed_text_equal_those_of_plain_text(tmp_path, flags):
    write_corpus(tmp_path, train=160, dev=1, test=1, max_words=8)
    pack(tmp_path, packed)
    for ending in ("", ".gz"):
        assert train(tmp_path, ending, *flags) == 0
    plain, other = (
        {
            path.relative_to(model): path.read_bytes()
            for side in ("source", "target")
            for path in (model / side).iterdir()
        }
        for model in (tmp_path / "model", tmp_path / "model.gz")
    )
    assert plain == other
    assert len(plain) >= 4


def test_a_truncated_gz_is_reported_in_one_line(tmp_path, capsys):
    write_corpus(tmp_path, train=40, dev=1, test=1)
    pack(tmp_path, lambda text: packed(text)[:-9])
    assert train(tmp_path, ".gz") == 2
    *_, last = capsys.readouterr().err.rstrip("\n").split("\n")
    assert last.startswith("bahdanau-tf: ")
    assert "is not a whole gzip file" in last
    assert not list((tmp_path / "model.gz").rglob("vocabulary.txt"))
