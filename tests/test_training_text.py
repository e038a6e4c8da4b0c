"""`train` learns the same tokenizers from packed and from plain text."""

import codecs
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from bahdanau_tf.cli import main
from bahdanau_tf.corpora import write_corpus

SMALL = [
    "--recipe=paper",
    "--source_vocabulary_size=340",
    "--units=8",
    "--embedding_dim=8",
    "--attention_units=8",
    "--maxout_units=8",
    "--epochs=1",
]


def train(folder: Path, ending: str, *flags: str) -> int:
    return main(
        [
            "train",
            f"--train_source={folder / 'train.en'}{ending}",
            f"--train_target={folder / 'train.fr'}{ending}",
            f"--model_dir={folder / 'model'}{ending}",
            *SMALL,
            *flags,
        ]
    )


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
    learned = [
        {
            path.relative_to(model): path.read_bytes()
            for side in ("source", "target")
            for path in (model / side).iterdir()
        }
        for model in (tmp_path / "model", tmp_path / "model.gz")
    ]
    assert learned[0] == learned[1]
    assert len(learned[0]) >= 4


def test_a_truncated_gz_is_reported_in_one_line(tmp_path, capsys):
    write_corpus(tmp_path, train=40, dev=1, test=1)
    pack(tmp_path, lambda text: packed(text)[:-9])
    assert train(tmp_path, ".gz") == 2
    *_, last = capsys.readouterr().err.rstrip("\n").split("\n")
    assert last.startswith("bahdanau-tf: ")
    assert "is not a whole gzip file" in last
    assert not list((tmp_path / "model.gz").rglob("vocabulary.txt"))
