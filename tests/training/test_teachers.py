"""The option `distil`: teachers, their translations, and a model that learns from both."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from comparisons import write_lines
from letters import stand_in_for_learning
from processes import run_python
from refusals import fails, refused

import bahdanau_tf
from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora import grammar
from bahdanau_tf.options.training import TEXTS, read_options, write_texts
from bahdanau_tf.system.lines import longest_line
from bahdanau_tf.system.ranges import as_flag
from bahdanau_tf.training import processes, teachers
from bahdanau_tf.training.ask import Training, recall_texts

SMALL = [
    *("--recipe=paper", "--units=8", "--embedding_dim=8", "--attention_units=8"),
    *("--maxout_units=4", "--epochs=1", "--batch_size=40", "--optimizer=adam", "--seed=5"),
    *("--source_vocabulary_size=90", "--target_vocabulary_size=80", "--dev_pairs=5"),
]


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


@pytest.fixture
def table(tmp_path: Path) -> str:
    grammar.write_corpus(tmp_path, train=60, dev=0, test=0, max_words=8)
    rows = zip(lines(tmp_path / "train.en"), lines(tmp_path / "train.fr"), strict=True)
    return write_lines(tmp_path / "pairs.tsv", map("\t".join, rows))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, eager_search: None) -> list[str]:
    """What is made, in this process; Ctrl-C comes after the first teacher."""
    stand_in_for_learning(monkeypatch)
    made: list[str] = []

    def train_all(plans: list[processes.Plan], folder: Path, *_: object) -> None:
        for plan in plans:
            if (folder / plan.folder / "best").is_dir():
                continue
            made.append(plan.name)
            assert main(["train", *plan.flags, f"--model_dir={folder / plan.folder}"]) == 0
            record = json.dumps({"is_over": True})
            (folder / plan.folder / "trained.json").write_text(record)
            if len(made) == 1:
                raise KeyboardInterrupt

    class InProcess:
        def __init__(self, command: list[str], **_: object) -> None:
            made.append("translations")
            self.words = command[len(processes.COMMAND) :]

        def __enter__(self) -> SimpleNamespace:
            return SimpleNamespace(wait=lambda: main([*self.words, "--beam_size=1"]))

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(processes, "train_all", train_all)
    monkeypatch.setattr(teachers.subprocess, "Popen", InProcess)
    return made


def test_a_model_learns_from_teachers_and_continues_after_an_interrupt(
    table, tmp_path, made, capsys
):
    """Nothing that is complete is made again."""
    model = tmp_path / "model"
    command = ["train", "--distil=2", f"--train_source={table}", f"--model_dir={model}", *SMALL]
    assert main(command) == 130
    said, _, ending = capsys.readouterr().err.partition("2 teachers, ")
    assert "only 60 different pairs" in said  # before hours are spent
    assert "run the same command again to continue" in ending
    for _ in range(2):
        assert main(command) == 0
    assert made == ["forward 1", "backward 2", "translations"]
    moved = model.rename(tmp_path / "moved")
    assert main(["train", "--distil=2", f"--model_dir={moved}"]) == 0  # texts are recalled
    moved.rename(model)

    text, distilled = model / "teachers" / "text", model / "distilled"
    folders = [model / "teachers" / "forward-1", model / "teachers" / "backward-2", model]
    options = [read_options(folder / "train.flags") for folder in folders]
    assert [x["seed"] for x in options] == [6, 7, 5]
    assert [x["source_vocabulary_size"] for x in options] == [90, 80, 90]
    texts = [recall_texts(folder) for folder in folders]
    sides = "source", "target"
    assert [[texts[n][f"dev_{side}"] for side in sides] for n in (0, 2, 1)] == [
        *[[str(text / f"dev.{side}") for side in sides]] * 2,
        [str(text / f"dev.{side}") for side in reversed(sides)],
    ]
    pairs = {*zip(*(lines(text / f"train.{side}") for side in sides), strict=True)}
    learned = [lines(distilled / f"{side}.txt") for side in sides]
    assert texts[2]["train_source"] == str(distilled / "source.txt")
    assert pairs <= {*zip(*learned, strict=True)}
    assert not {*lines(text / "dev.source")} & {*learned[0]}

    write_lines(Path(table), lines(Path(table))[1:])
    fails(capsys, command, "the training text has changed")


def test_fit_has_teachers_and_continues_after_an_interrupt(table, tmp_path, made, capsys):
    flags = tmp_path / "small.flags"
    flags.write_text("\n".join(SMALL[1:]))
    options = read_options(flags) | {"recipe": "paper", "distil": 2}
    options["model_dir"] = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        bahdanau_tf.fit(table, **options)
    assert "resumes this training with the same arguments" in capsys.readouterr().err
    translator = bahdanau_tf.fit(table, **options)
    assert made == ["forward 1", "backward 2", "translations"]
    assert recall_texts(tmp_path / "model")["train_source"].endswith("distilled/source.txt")
    again = bahdanau_tf.fit(model_dir=tmp_path / "model", distil=2)
    assert again.history.result.steps == translator.history.result.steps > 0
    refused(lambda: bahdanau_tf.fit(table, distil=-1), "fit", "distil is -1", "0 or more")
    refused(lambda: bahdanau_tf.fit(table, distil=1, init_from="x"), "init_from", "with distil")


def test_a_model_without_teachers_gets_none(table, tmp_path, capsys):
    (tmp_path / "training.json").touch()
    assert main(["train", "--distil=2", f"--train_source={table}", f"--model_dir={tmp_path}"]) == 2
    assert "--distil: " in (said := capsys.readouterr().err)
    assert "without teachers" in said


FORWARD = {
    "target_language": "en",
    "source_vocabulary_size": 90,
    "target_vocabulary_size": 80,
    "tokenizer": "bpe",
    "target_tokenizer": "word",
    "units": 8,
}
BACKWARD = {
    "source_language": "en",
    "source_vocabulary_size": 80,
    "target_vocabulary_size": 90,
    "tokenizer": "word",
    "target_tokenizer": "bpe",
    "units": 8,
}


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ({**FORWARD, "decompose_source": True}, BACKWARD),
        # Of the source alone: the language is that of this side, the others are of both sides.
        (
            {"source_language": "ko", "tokenizer": "bpe"},
            {"target_language": "ko", "tokenizer": "bpe"},
        ),
        (
            {"tokenizer": "bpe", "target_tokenizer": "same"},
            {"tokenizer": "bpe", "target_tokenizer": "same"},
        ),
        ({"source_vocabulary_size": 90}, {"source_vocabulary_size": 90}),
    ],
)
def test_a_model_that_translates_back_has_the_sides_changed(forward, backward, tmp_path):
    assert teachers._options_back(Training({}, tmp_path, forward)) == backward


def test_teachers_are_planned_for_both_directions_and_share_the_threads(tmp_path, monkeypatch):
    """Of 7 threads each of 3 trainings at a time has 2."""
    plans: list[processes.Plan] = []
    monkeypatch.setattr(processes, "train_all", lambda planned, *_: plans.extend(planned))
    texts = {name: name.upper() for name in TEXTS}
    asked = Training(texts, tmp_path, {"seed": 5, **FORWARD, "decompose_source": True}, threads=7)
    refused(lambda: teachers._trained(asked, texts, 3), "the same again continues")
    assert [plan.name for plan in plans] == ["forward 1", "backward 2", "forward 3"]
    turned = ("TRAIN_TARGET", "TRAIN_SOURCE", "DEV_TARGET", "DEV_SOURCE")
    for number, plan in enumerate(plans):
        options = BACKWARD if number == 1 else {**FORWARD, "decompose_source": True}
        named = zip(TEXTS, turned if number == 1 else texts.values(), strict=True)
        own = {"seed": 6 + number, "threads": 2, "max_line_bytes": longest_line}
        wanted = {**options, **dict(named), **own}
        assert {*plan.flags} == {as_flag(*flag) for flag in wanted.items()}


def test_texts_in_a_folder_that_is_moved_are_found_in_it(tmp_path):
    model, outside = tmp_path / "model", str(tmp_path / "dev")
    inside = {"train_source": "distilled/source.txt", "train_target": "teachers/text/train.target"}
    model.mkdir()
    given = {name: str(model / path) for name, path in inside.items()} | {"dev_source": outside}
    write_texts(model / "texts.flags", given)
    assert recall_texts(model) == given
    moved = model.rename(tmp_path / "moved")
    found = {name: str(moved / path) for name, path in inside.items()} | {"dev_source": outside}
    assert recall_texts(moved) == found


@pytest.mark.slow
def test_teachers_are_trained_in_processes_of_their_own(table, tmp_path):
    model = tmp_path / "model"
    files = [f"--train_source={table}", f"--model_dir={model}"]
    said = run_python("-m", "bahdanau_tf", "train", "--distil=2", *files, *SMALL).stderr
    for part in ("2 teachers, ", "backward 2: trained, dev BLEU", " of the training text"):
        assert part in said
    assert "1/2 loss" in (model / "teachers" / "backward-2" / "train.log").read_text()
    assert (model / "best").is_dir()


def test_without_a_dev_text_its_options_are_left_out(tmp_path):
    """Which a text too small for one takes, too."""
    asked = Training({}, tmp_path, {"patience": 5, "dev_pairs": 3, "units": 4})
    assert teachers._without_dev(asked, {}) == {"units": 4, "dev_pairs": 0}
    assert teachers._without_dev(asked, {"dev_source": "a"}) == {"units": 4, "patience": 5}
