"""`bahdanau-tf distil`: pairs of sources and translations, as training text."""

import dataclasses
from pathlib import Path

import pytest
import sacrebleu
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, Translator
from bahdanau_tf.cli import main

pytestmark = pytest.mark.usefixtures("eager_search")

PAIRS = [
    ("the cat sleeps.", "le chat dort."),
    ("", "un chien"),
    ("a red dog sees the cat.", "un chien rouge voit le chat."),
    ("the dog", " "),
    ("a dog.", "un chien."),
]
REAL = [pair for pair in PAIRS if all(map(str.strip, pair))]
SEARCH = Decoding(beam_size=4, max_length=9, unknown="forbid")
FLAGS = ["--beam_size=4", "--max_length=9"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return toy_translator(english(), french(), SEARCH, seed=28)


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("distil")
    translator.save(folder / "model")
    for side, name in enumerate(("text.en", "text.fr")):
        lines = (f"{pair[side]}\n" for pair in PAIRS)
        (folder / name).write_text("".join(lines), "utf-8")
    return folder


def distilled(folder: Path, *flags: str) -> list[tuple[str, ...]]:
    """The pairs that the command writes."""
    arguments = [
        f"--model_dir={folder / 'model'}",
        f"--train_source={folder / 'text.en'}",
        f"--train_target={folder / 'text.fr'}",
        f"--out_dir={folder / 'out'}",
    ]
    assert main(["distil", *arguments, *FLAGS, *flags]) == 0
    sides = (
        (folder / "out" / name).read_text("utf-8").splitlines()
        for name in ("source.txt", "target.txt")
    )
    return list(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def hypotheses(translator) -> list[list[str]]:
    """For each real pair the texts of its finished hypotheses, best first."""
    wide = Translator(
        translator.model,
        translator.source_text,
        translator.target_text,
        dataclasses.replace(SEARCH, n_best=4),
    )
    found = wide.translate([source for source, _ in REAL])
    return [[x.text for x in (best, *best.alternatives) if x.finished and x.text] for best in found]


def test_translations_stand_beside_the_references(folder, hypotheses):
    wanted = []
    for pair, found in zip(REAL, hypotheses, strict=True):
        wanted += [pair, *((pair[0], text) for text in found[:1])]
    assert distilled(folder) == wanted


def test_the_closest_hypothesis_is_the_best_by_chrf(folder, hypotheses):
    written = distilled(folder, "--nobeside", "--closest")
    wanted = [
        (source, max(found, key=lambda x: chrf_of(x, reference)))
        for (source, reference), found in zip(REAL, hypotheses, strict=True)
    ]
    assert written == wanted
    assert written != [
        (source, found[0]) for (source, _), found in zip(REAL, hypotheses, strict=True)
    ]


def test_unknown_words_are_written_only_if_they_are_kept(folder, translator, monkeypatch):
    text = translator.target_text
    bias = next(
        weight
        for weight in translator.model.trainable_weights
        if weight.shape == [text.vocabulary_size]
    )
    old = bias.numpy()
    likely = old.copy()
    likely[text.unk_id] += 100
    bias.assign(likely)
    translator.save(folder / "model")
    bias.assign(old)
    try:
        for flags, wanted in (([], False), (["--unknown=keep"], True)):
            written = distilled(folder, "--nobeside", *flags)
            assert any("[UNK]" in target for _, target in written) == wanted
    finally:
        translator.save(folder / "model")


def test_the_closest_of_one_is_refused(folder, capsys):
    arguments = [
        f"--model_dir={folder / 'model'}",
        f"--train_source={folder / 'text.en'}",
        f"--train_target={folder / 'text.fr'}",
        f"--out_dir={folder / 'none'}",
    ]
    flags = ["--closest", "--beam_size=1"]
    assert main(["distil", *arguments, *flags]) == 2
    assert "--closest: --beam_size is 1" in capsys.readouterr().err


def chrf_of(text: str, reference: str) -> float:
    return float(sacrebleu.sentence_chrf(text, [reference]).score)


def test_it_refuses_files_of_different_length_before_it_writes(folder, tmp_path, capsys):
    (tmp_path / "short").write_text("un\n", "utf-8")
    status = main(
        [
            "distil",
            f"--model_dir={folder / 'model'}",
            f"--train_source={folder / 'text.en'}",
            f"--train_target={tmp_path / 'short'}",
            f"--out_dir={tmp_path / 'out'}",
        ]
    )
    assert status == 2
    assert "has 5 lines" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
