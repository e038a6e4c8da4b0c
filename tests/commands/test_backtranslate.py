"""`bahdanau-tf backtranslate`: training text from text of one language."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from comparisons import lines_of, write_lines
from refusals import fails, says

from bahdanau_tf import SubwordTokenizer
from bahdanau_tf.commands import files
from bahdanau_tf.commands.backtranslate import SIGN
from bahdanau_tf.commands.main import main
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.habits import Habits

REAL = [("a cat", "un chat"), ("", "vide"), ("a dog", "un chien"), ("red", "rouge")]
WHOLE = [pair for pair in REAL if all(pair)]
MADE = [("chat", "CHAT"), ("chien", "CHIEN"), ("chat", "CHAT")]
MONO = ["chat", " ", "lost", "chien", "cut", "strange", "chat"]


class Capitals:
    """Writes capitals, a space for "lost", a NUL for "strange", and no end for "cut"."""

    habits = Habits()

    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]:
        others = {"lost": " ", "strange": "a\0"}
        made = (others.get(text, text.upper()) for text in texts)
        return [Translation(t, m, finished=t != "cut") for t, m in zip(texts, made, strict=True)]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Runs the command; the lines of both texts, side by side."""
    monkeypatch.setattr(files, "load_translator", lambda flags: Capitals())
    for side, name in enumerate(("train_source", "train_target")):
        write_lines(tmp_path / name, (pair[side] for pair in REAL))

    def run(*flags: str, side: str = "target", mono: Sequence[str] = MONO) -> list[tuple[str, ...]]:
        write_lines(tmp_path / "mono", mono)
        texts = [f"--{name}={tmp_path / name}" for name in ("train_source", "train_target")]
        flags = (f"--{side}_text={tmp_path / 'mono'}", f"--out_dir={tmp_path / 'out'}", *flags)
        assert main(["backtranslate", "--model_dir=x", *texts, *flags]) == 0
        sides = (lines_of(tmp_path / "out" / name) for name in ("source.txt", "target.txt"))
        return list(zip(*sides, strict=True))

    return run


@pytest.mark.parametrize(
    ("flags", "real"),
    [
        ([], WHOLE),
        (["--share=0.75"], WHOLE),  # each once, though 1 of 4 is asked for
        (["--share=0.3"], [*WHOLE, *WHOLE, WHOLE[0]]),  # 3 of 10
        (["--share=0.25", "--window=1"], WHOLE * 3),
    ],
)
def test_real_pairs_are_repeated_to_their_share(written, capsys, flags, real):
    """Blank lines and translations that are empty or cut are in neither share."""
    assert written(*flags) == [(f"{SIGN} {made}", text) for text, made in MADE] + real
    said = capsys.readouterr().err
    assert f"3 translated back, {len(real)} of the training text" in said
    assert re.search("translations? left out: empty, or cut off", said)


def test_source_text_is_written_without_a_sign(written):
    assert written(side="source") == MADE + WHOLE


def test_a_model_of_the_wrong_direction_is_said(written, capsys, monkeypatch):
    monkeypatch.setattr(Capitals, "habits", Habits(languages=("en", "fr")))
    written(mono=["le chat est dans la maison"] * 50)
    assert "source's language is fr, and the model translates from en" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["bpe", "char"])
def test_the_sign_is_one_token_of_sub_words_learned_from_the_result(written, kind):
    lines = [source for source, _ in written() * 20]
    text = SubwordTokenizer.train([lines], 300, model_type=kind, true_case=True)
    plain, signed = (text.encode(f"{sign}CHAT CHIEN") for sign in ("", f"{SIGN} "))
    assert len(signed) == len(plain) + (1 if kind == "bpe" else 2)  # a space is a character
    assert signed[-len(plain) :] == plain


def test_a_real_source_with_the_sign_is_refused(tmp_path, capsys):
    write_lines(tmp_path / "text", ["a", f" {SIGN} b"])
    names = ("train_source", "train_target", "target_text")
    flags = [f"--{name}={tmp_path / 'text'}" for name in names]
    words = ["backtranslate", "--model_dir=x", f"--out_dir={tmp_path / 'out'}", *flags]
    says(fails(capsys, words), f"--train_source: line 2 {SIGN}")
    assert not (tmp_path / "out").exists()
