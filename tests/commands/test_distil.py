"""`bahdanau-tf distil`: pairs of sources and translations, as training text."""

from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from comparisons import lines_of, write_lines
from toys import english, french, toy_translator, with_alternatives

from bahdanau_tf import Decoding, Translator
from bahdanau_tf.commands import distil as command
from bahdanau_tf.commands.main import main
from bahdanau_tf.translation.habits import Habits

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
        write_lines(folder / name, (pair[side] for pair in PAIRS))
    return folder


def distil(folder: Path, *flags: str, target: Path | None = None, out: str = "out") -> int:
    text = [f"--train_source={folder}/text.en", f"--train_target={target or folder / 'text.fr'}"]
    folders = [f"--model_dir={folder / 'model'}", f"--out_dir={folder / out}"]
    return main(["distil", *text, *folders, *FLAGS, *flags])


def distilled(folder: Path, *flags: str) -> list[tuple[str, ...]]:
    """The pairs that the command writes."""
    assert distil(folder, *flags) == 0
    names = ("source.txt", "target.txt")
    sides = (lines_of(folder / "out" / name) for name in names)
    return list(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def hypotheses(translator) -> list[list[str]]:
    """For each real pair the texts of its finished hypotheses, best first."""
    best = translator.translate([source for source, _ in REAL], n_best=4)
    return [[y.text for y in with_alternatives(x) if y.finished and y.text] for x in best]


def test_translations_stand_beside_the_references(folder, hypotheses):
    wanted = []
    for pair, texts in zip(REAL, hypotheses, strict=True):
        wanted += [pair, *((pair[0], text) for text in texts[:1])]
    assert distilled(folder) == wanted


def test_a_backward_model_adds_sources_of_the_targets(folder, hypotheses, capsys):
    backward = toy_translator(french(), english(), SEARCH, seed=28)
    backward.save(folder / "backward")
    sources = backward.translate([target for _, target in REAL])
    wanted = []
    for pair, texts, source in zip(REAL, hypotheses, sources, strict=True):
        wanted += [pair, *((pair[0], text) for text in texts[:1])]
        if source.finished and source.text:
            wanted.append((source.text, pair[1]))
    assert distilled(folder, f"--backward_model_dir={folder / 'backward'}") == wanted
    back = len(wanted) - len(distilled(folder))
    assert back > 0
    said = f"3 of the training text, 3 translated, {back} translated back"
    assert said in capsys.readouterr().err


def test_the_closest_hypothesis_is_the_best_by_chrf(folder, hypotheses):
    first, closest = [], []
    for (source, reference), texts in zip(REAL, hypotheses, strict=True):
        scores = [sacrebleu.sentence_chrf(text, [reference]).score for text in texts]
        first.append((source, texts[0]))
        closest.append((source, texts[scores.index(max(scores))]))
    assert distilled(folder, "--nobeside", "--closest") == closest != first


def test_unknown_words_are_written_only_if_they_are_kept(folder, translator, monkeypatch):
    text = translator.target_text
    weights = translator.model.trainable_weights
    bias = next(weight for weight in weights if weight.shape == [text.vocabulary_size])
    old = bias.numpy()
    bias.assign(old + 100 * np.eye(len(old))[text.unk_id])
    translator.save(folder / "model")
    bias.assign(old)
    try:
        for flags, wanted in (([], False), (["--unknown=keep"], True)):
            written = distilled(folder, "--nobeside", *flags)
            assert any("[UNK]" in target for _, target in written) == wanted
    finally:
        translator.save(folder / "model")


def save_both(folder: Path, translator: Translator, name: str, *languages: str) -> None:
    """Saves the model and another of the same direction between languages."""
    habits, translator.habits = translator.habits, Habits(languages=languages)
    translator.save(folder / "model")
    translator.save(folder / name)
    translator.habits = habits


def test_a_backward_model_of_the_same_direction_is_refused(folder, translator, capsys):
    save_both(folder, translator, "same", "en", "fr")
    assert distil(folder, f"--backward_model_dir={folder / 'same'}", out="none") == 2
    assert "same translates en to fr, as --model_dir does" in capsys.readouterr().err


def test_backward_models_are_averaged_beside_one_model(folder, capsys):
    for seed, name in enumerate(("b", "c")):
        toy_translator(french(), english(), SEARCH, seed=seed).save(folder / name)
    models = f"--backward_model_dir={folder / 'b'},{folder / 'c'}"
    assert distil(folder, models, "--average=log_probability", out="averaged") == 0
    assert distil(folder, "--average=log_probability", out="none") == 2
    assert "--average" in capsys.readouterr().err


def test_a_dictionary_is_that_of_the_forward_models(folder, monkeypatch):
    (folder / "words").write_text("cat\tchat\n")
    toy_translator(french(), english(), SEARCH).save(folder / "back")
    words = []
    monkeypatch.setattr(
        command, "translated", lambda _, x, texts: words.append(x.dictionary) or texts
    )
    monkeypatch.setattr(command, "chosen", lambda *_: "")
    flags = f"--backward_model_dir={folder / 'back'}", f"--dictionary={folder / 'words'}"
    assert distil(folder, *flags, "--unknown=replace", out="unwritten") == 0
    assert [bool(x.entries) for x in words] == [True, False]


def test_languages_that_are_guessed_alike_say_nothing_of_the_direction(folder, translator):
    """As Hindi and Marathi are, or English and simplified English."""
    save_both(folder, translator, "back", "hi", "hi")
    assert distil(folder, f"--backward_model_dir={folder / 'back'}", out="alike") == 0


def test_it_refuses_files_of_different_length_before_it_writes(folder, tmp_path, capsys):
    (tmp_path / "short").write_text("un\n", "utf-8")
    assert distil(folder, target=tmp_path / "short", out="none") == 2
    assert "has 5 lines" in capsys.readouterr().err
    assert not (folder / "none").exists()
