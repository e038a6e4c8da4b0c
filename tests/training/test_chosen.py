"""`train` without a recipe: it chooses, says what and why, and keeps to it."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import pytest
from letters import stand_in_for_learning
from refusals import fails

from bahdanau_tf.commands import main as cli, train as command
from bahdanau_tf.commands.main import main
from bahdanau_tf.commands.train import asked, check
from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.facts import TYPICAL
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.training import Training, TrainingResult
from bahdanau_tf.training.keywords import _asked
from bahdanau_tf.training.text import doubts, few_pairs, known_start, measure
from bahdanau_tf.translator import Translator

pytestmark = pytest.mark.usefixtures("eager_search")

SMALL = ["--units=8", "--batch_size=64", "--epochs=1", "--label_smoothing=0"]


class Trained(NamedTuple):
    corpus: Path
    folder: Path
    messages: str

    @property
    def texts(self) -> list[str]:
        """The flags that any command on this folder needs."""
        return [
            "train",
            f"--train_source={self.corpus / 'train.en'}",
            f"--train_target={self.corpus / 'train.fr'}",
            f"--model_dir={self.folder}",
        ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    corpus = tmp_path_factory.mktemp("corpus")
    write_corpus(corpus, train=440, dev=1, test=1, max_words=6)
    made = Trained(corpus, tmp_path_factory.mktemp("model") / "model", "")
    with pytest.MonkeyPatch.context() as patched:
        notes: list[str] = []
        patched.setattr(command.StatusLine, "note", lambda self, text: notes.append(text))
        stand_in_for_learning(patched)
        assert main([*made.texts, *SMALL]) == 0
    return made._replace(messages="\n".join(notes))


class Call(NamedTuple):
    """What `train` gets from the command, and the lines of the texts."""

    translator: Translator
    dev: ParallelCorpus | None
    recipe: Recipe
    lines: list[list[str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The calls of `train`, whose stand-in begins a training and ends it at once."""
    calls = []

    def train(translator, corpus, recipe, model_dir, dev, tensorboard, callbacks):
        callbacks[0].on_train_begin({})
        (model_dir / "best").mkdir(exist_ok=True)
        (model_dir / "best" / "model").touch()
        paths = (path for text in (corpus, dev) if text for path in text.names)
        lines = [[*read_lines(path)] for path in paths]
        calls.append(Call(translator, dev, recipe, lines))
        return TrainingResult({}, 0, "epochs", 1.0, 1.0)

    monkeypatch.setattr("bahdanau_tf.training.loop.train", train)
    return calls


def contents(folder: Path) -> dict[Path, bytes]:
    """All files but the one that has the name that Keras gave the model."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "training.json"
    }


def test_what_is_chosen_is_said_and_written(trained):
    written = (trained.folder / "train.flags").read_text()
    for said in (
        "sub-words, joint: both sides have Latin letters",
        "conditional rnnsearch, 8 units",
        "at most 1 epoch;",
        "about 22 pairs held out to choose the best model",
    ):
        assert f"  {said}" in trained.messages
        assert f"# {said}" in written
    assert "\n--joint\n" in written
    assert "\n# given\n--units=8\n" in written
    assert str(trained.folder / "train.flags") in trained.messages


def test_the_dev_text_is_in_the_folder(trained):
    text = trained.folder / "text"
    dev = ParallelCorpus(text / "dev.source", text / "dev.target")
    rest = ParallelCorpus(text / "train.source", text / "train.target")
    assert len(dev) >= 22
    assert len(dev) + len(rest) == 440
    named = f"dev text: {text / 'dev.source'} and dev.target, {len(dev)} pairs"
    assert named in trained.messages


def test_the_file_of_flags_means_the_same(trained):
    """Given as --flagfile, it leaves nothing to be chosen."""
    path = trained.folder / "train.flags"
    flags = cli.defined_flags("train")
    flags(["train", *cli._expanded([f"--flagfile={path}"], flags)])
    again = asked(flags)
    assert again.chosen(TYPICAL).choices == []
    assert (again.text.joint, again.model.units, again.start.dev_pairs) == (True, 8, 22)
    assert (again.model.maxout_units, again.model.tie_embeddings) == (8, True)
    settings = (trained.folder / "training.json").read_text()
    for name, value in asdict(again.recipe).items():
        assert f'"{name}": ' in settings, value


def test_flags_that_only_the_folders_own_model_uses_are_accepted(tmp_path):
    """They are not those that would be chosen for a new folder."""
    (tmp_path / "train.flags").write_text("--model=seq2seq-lstm\n--layers=2\n--init_from=/gone\n")
    (tmp_path / "text").write_text("a b\n")
    flags = cli.defined_flags("train")
    texts = [f"--train_{n}={tmp_path / 'text'}" for n in ("source", "target")]
    own = ["--layers=2", "--risk_samples=5", "--added_words=5"]
    flags(["train", f"--model_dir={tmp_path}", *texts, *own])
    check(flags)


@pytest.mark.parametrize(
    "own", [{"tokenizer": "word"}, {"schedule": "constant"}, {"monitor": "loss"}]
)
def test_what_has_no_effect_in_a_recipe_has_its_default(tmp_path, own):
    """So that a later run, to which `train.flags` says nothing of it, means the same."""
    texts = {"train_source": "x", "dev_source": "y"}
    training = _asked(texts, tmp_path, "multi30k-en-fr", own, {})
    again = Training(texts, tmp_path, {}, recalled=training.values())
    assert (again.text, again.model, again.recipe) == (
        training.text,
        training.model,
        training.recipe,
    )
    assert training.text.joint is ("tokenizer" not in own)


@pytest.mark.parametrize("own", [[], SMALL])
def test_it_goes_on_with_what_was_chosen(trained, capsys, own):
    """By the same command, or by one that names the texts alone."""
    before = contents(trained.folder)
    assert main([*trained.texts, *own]) == 0
    out, err = capsys.readouterr()
    assert "chosen" not in err
    assert "resuming from update 7" in err
    assert out.startswith("7 updates, epoch limit reached; best model: dev BLEU")
    assert contents(trained.folder) == before


def test_the_last_value_given_stays(trained, tmp_path, capsys):
    """Until another one is given; a change is reported."""
    folder = tmp_path / "model"
    shutil.copytree(trained.folder, folder)
    words = [*trained.texts[:-1], f"--model_dir={folder}"]
    changed = "--learning_rate is {} from now on; it was {}\n"
    for own, rate, said in (
        (["--learning_rate=0.5"], 0.5, changed.format(0.5, 0.002)),
        ([], 0.5, ""),
        (["--learning_rate=0.25", "--keep=3"], 0.25, changed.format(0.25, 0.5)),
        (["--learning_rate=0.25"], 0.25, ""),
        ([], 0.25, ""),
    ):
        assert main([*words, *own]) == 0
        messages = capsys.readouterr().err
        assert said in messages
        assert ("--learning_rate is" in messages) == bool(said)
        settings = json.loads((folder / "training.json").read_text())
        assert settings["recipe"]["learning_rate"] == rate
        flags = (folder / "train.flags").read_text()
        assert flags.count(f"\n--learning_rate={rate}\n") == 1
        assert flags.count("--learning_rate=") == 1
    assert settings["recipe"]["keep"] == 3
    assert flags.count("# changed later") == 1
    (reason,) = [x for x in flags.split("\n") if "learning rate 0.002" in x]
    assert reason.startswith("# adam")  # what was chosen at first stays


@pytest.mark.parametrize("with_flags", [False, True])
def test_it_goes_on_without_naming_the_texts(trained, tmp_path, monkeypatch, capsys, with_flags):
    """With the folder alone, from another one, or with its file of flags."""
    before = contents(trained.folder)
    words = [f"--flagfile={trained.folder / 'train.flags'}"] * with_flags
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words, f"--model_dir={trained.folder}"]) == 0
    out, err = capsys.readouterr()
    assert "resuming from update 7" in err
    assert "7 updates, epoch limit reached" in out
    assert contents(trained.folder) == before
    new = tmp_path / "new"
    fails(capsys, ["train", *words, f"--model_dir={new}"], "--train_source is missing")
    fails(
        capsys,
        ["train", "--train_source=x.txt", f"--model_dir={new}"],
        "target is missing; if x.txt is a table of",
    )


def test_a_dev_text_is_remembered_with_the_texts(calls, trained, tmp_path, monkeypatch):
    """Its paths hold for other current folders, too."""
    monkeypatch.chdir(trained.corpus)
    names = ["train.en", "train.fr", "dev.en", "dev.fr"]
    flags = ("train_source", "train_target", "dev_source", "dev_target")
    texts = [f"--{flag}={name}" for flag, name in zip(flags, names, strict=True)]
    folder = f"--model_dir={tmp_path / 'model'}"
    assert main(["train", *texts, *SMALL, folder]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["train", folder]) == 0
    wanted = [[*read_lines(trained.corpus / name)] for name in names]
    assert [call.lines for call in calls] == [wanted, wanted]


def test_another_choice_in_the_same_folder_is_refused(trained, tmp_path, capsys):
    before = contents(trained.folder)
    for words, said in (
        (["--units=9"], "--units is 8 there and 9 now"),
        (["--label_smoothing=0.2"], "--label_smoothing is 0.2, but 0.0 in"),
        (["--dev_pairs=30"], "--dev_pairs is 22 there and 30 now"),
        (["--lowercase"], "--lowercase is False there and True now"),
    ):
        assert main([*trained.texts, *words]) == 2, said
        assert said in capsys.readouterr().err
    more = tmp_path / "more.en"
    more.write_text((trained.corpus / "train.en").read_text() + "One more.\n")
    texts = [f"--train_source={more}", f"--train_target={more}"]
    fails(capsys, [*trained.texts, *texts], "the training text has changed since")
    dev = [f"--dev_source={more}", f"--dev_target={more}"]
    assert main([*trained.texts, *dev]) == 2
    said = f"--dev_source is {more}, but the dev text of {trained.folder} was"
    assert said in capsys.readouterr().err
    assert contents(trained.folder) == before


def test_a_mistake_in_the_edited_file_is_a_sentence(trained, capsys):
    path = trained.folder / "train.flags"
    good = path.read_text()
    path.write_text(good + "--layer=5\n")
    try:
        assert main(trained.texts) == 2
        (said,) = capsys.readouterr().err.rstrip("\n").split("\n")
    finally:
        path.write_text(good)
    assert str(path) in said
    assert "layer" in said


LONG = "A very long line of words. " * 400


def packed(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


def left(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("source", "target", "pack", "said"),
    [
        (["The cat."] * 12, ["Le chat."] * 12, left, "no dev text"),
        (["Same."] * 900, ["Même."] * 900, left, "no dev text"),
        (
            [f"犬が{n}匹走っている。" for n in range(450)],
            [f"{n} dogs are running." for n in range(450)],
            left,
            "the source has Japanese characters, the target Latin letters",
        ),
        (
            [f"개 {n}마리가 달린다." for n in range(60)],
            [f"الكلب {n} يركض." for n in range(60)],
            left,
            "the source has Hangul, the target Arabic letters",
        ),
        (
            [f"the {n} dogs run ." for n in range(60)],
            [f"les {n} chiens courent ." for n in range(60)],
            packed,
            "both are tokenized, so translations will be",
        ),
        (
            [LONG, *(f"Line {n}." for n in range(60))],
            [LONG, *(f"Zeile {n}." for n in range(60))],
            left,
            "joint",
        ),
    ],
    ids=["twelve", "same", "japanese", "korean", "tokenized", "long"],
)
def test_any_text_gets_tokenizers_and_a_model(calls, tmp_path, capsys, source, target, pack, said):
    """All is prepared as it would be for a training."""
    for name, lines in (("source", source), ("target", target)):
        (tmp_path / name).write_text("".join(f"{x}\n" for x in lines), "utf-8")
        pack(tmp_path / name)
    words = [
        f"--train_source={tmp_path / 'source'}",
        f"--train_target={tmp_path / 'target'}",
        f"--model_dir={tmp_path / 'model'}",
    ]
    assert main(["train", *words, "--units=4"]) == 0
    assert said in capsys.readouterr().err
    ((translator, dev, recipe, _),) = calls
    assert translator.model.count_params() > 0
    is_held_out = dev is not None
    assert is_held_out == (len({*source}) >= 400)
    assert recipe.minutes == 60


def test_pairs_may_be_held_out_with_a_recipe(calls, tmp_path, capsys):
    """Nothing is chosen."""
    path = tmp_path / "text"
    path.write_text("".join(f"line {n}\n" for n in range(40)))
    words = [f"--train_source={path}", f"--train_target={path}", "--units=4"]
    words += [f"--model_dir={tmp_path / 'model'}", "--dev_pairs=7"]
    assert main(["train", "--recipe=paper", *words]) == 0
    (call,) = calls
    assert [*map(len, call.lines)] == [33, 33, 7, 7]
    assert "from 33 pairs" in capsys.readouterr().err
    assert "chosen" not in (tmp_path / "model" / "train.flags").read_text()


@pytest.mark.parametrize(
    "own",
    [
        ["--recipe=paper", "--units=8", "--batch_size=40", "--epochs=0.2"],
        ["--recipe=sutskever-2014", "--units=4", "--updates=1"],
        ["--recipe=multi30k-en-fr", "--updates=1", "--keep=3"],
        ["--units=8", "--updates=1", "--monitor=loss"],
    ],
)
def test_the_flags_of_any_training_make_the_same_one(calls, tmp_path, capsys, own):
    """In another folder, and when it resumes without the recipe."""
    corpus, first_folder, second_folder = (tmp_path / name for name in ("text", "one", "other"))
    write_corpus(corpus, train=100, dev=1, test=1, max_words=6)
    texts = [
        f"--{split}_{side}={corpus / split}.{code}"
        for split in ("train", "dev")
        for side, code in (("source", "en"), ("target", "fr"))
    ]
    assert main(["train", *own, *texts, f"--model_dir={first_folder}"]) == 0
    assert main(["train", *texts, f"--model_dir={first_folder}"]) == 0
    written = f"--flagfile={first_folder / 'train.flags'}"
    capsys.readouterr()
    assert main(["train", *texts, written, f"--model_dir={second_folder}"]) == 0
    assert "chosen" not in capsys.readouterr().err
    for name in ("text.json", "source/tokenizer.json"):
        assert (first_folder / name).read_bytes() == (second_folder / name).read_bytes()
    recipes = [replace(call.recipe, learning_rate=call.recipe.rate) for call in calls]
    units = [call.translator.model.get_config()["units"] for call in calls]
    first, *others = zip(recipes, units, strict=True)
    assert others == [first, first]


@pytest.mark.usefixtures("calls")
def test_the_same_text_on_both_sides_is_told(tmp_path, capsys):
    texts = {"text": "line", "copy": "line", "translation": "Zeile"}
    text, copy, translation = (tmp_path / name for name in texts)
    for name, word in texts.items():
        (tmp_path / name).write_text("".join(f"{word} {n}\n" for n in range(40)))
    said = f"--train_source and --train_target are the same text, {text}"
    for target, is_same in ((text, True), (copy, True), (translation, False)):
        words = [f"--train_source={text}", f"--train_target={target}", "--units=4"]
        words += [f"--model_dir={tmp_path / 'model' / target.name}"]
        assert main(["train", *words]) == 0
        assert (said in capsys.readouterr().err) == is_same


@pytest.mark.parametrize(
    ("source", "dev", "said"),
    [
        ("ab", "de", None),
        ("ab", "abcd", "2 of 4 dev pairs are training pairs, too"),
        ("ab" * 19 + "c", "abc", "3 of 3 dev pairs"),
        ("abcdefghijklmnopqrs", "a" + "z" * 10, None),  # 9 %, by chance
        (["en", "a b", "c d"], "de", "the first train pair, 'en' and 'zen', looks like a header"),
        (["en", "ab", "cd"], "de", None),  # a list of words
        (["a\tx", "b\tx"], "de", "source: the lines of"),
        (["a\tx", "b"], "de", None),
    ],
)
def test_doubtful_texts_are_told(tmp_path, source, dev, said):
    sides = {
        "train_source": source,
        "train_target": [f"z{x}" for x in source],
        "dev_source": dev,
        "dev_target": [f"z{x}" for x in dev],
    }
    files = {name: str(tmp_path / name) for name in sides}
    for name, lines in sides.items():
        Path(files[name]).write_text("".join(f"{line}\n" for line in lines))
    train, dev = (
        ParallelCorpus(files[f"{x}_source"], files[f"{x}_target"]) for x in ("train", "dev")
    )
    said_all = doubts(train, dev, measure(train)[1])
    warnings = [warning for warning in said_all if "train_target" not in warning]
    assert len(warnings) == (said is not None)
    assert all(warning.startswith(said) for warning in warnings)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["the same"] * 6000, "1 different pair,"),
        ([f"{n}" for n in range(4999)], "4,999 different pairs,"),
        ([f"{n}" for n in range(5000)], None),
    ],
)
def test_few_pairs_are_called_few(tmp_path, lines, count):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in lines))
    said = [*few_pairs(measure(ParallelCorpus(path, path))[1])]
    assert len(said) == (count is not None)
    assert all(line.startswith(f"only {count}") for line in said)


ENGLISH, FRENCH = (
    "The cat is in the house and they see it.",
    "Le chat est dans la maison, et il dort.",
)


@pytest.mark.parametrize(
    ("source", "target", "name", "what"),
    [
        (ENGLISH, FRENCH, "tatoeba-en-fr", "both languages"),
        (ENGLISH, "猫は家の中にいる。", "tatoeba-en-ja", "both languages"),
        (ENGLISH, "나는 집에 있다.", "tatoeba-en-fr", "the source's language"),
        (FRENCH, ENGLISH, None, None),
        (ENGLISH, ENGLISH, None, None),
    ],
)
def test_a_translator_of_the_package_knows_some_languages(tmp_path, source, target, name, what):
    paths = tmp_path / "source", tmp_path / "target"
    for path, line in zip(paths, (source, target), strict=True):
        path.write_text(f"{line}\n" * 9, "utf-8")
    said = [f'init_from="{name}" starts with a model that knows {what}'] if name else []
    assert [*known_start(ParallelCorpus(*map(str, paths)))] == said


PAIRS = [(f"line {n}", f"Zeile {n} é") for n in range(40)]


def table(path: Path, pairs: list[tuple[str, ...]]) -> Path:
    text = "".join("\t".join(pair) + "\n" for pair in pairs).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("ending", ["tsv.gz", "TSV"])
def test_a_table_is_read_as_two_texts(calls, tmp_path, ending, capsys):
    train = table(tmp_path / f"pairs.{ending}", [*PAIRS, ("", "")])
    dev = table(tmp_path / f"dev.{ending}", PAIRS[:7])
    words = [f"--train_source={train}", f"--dev_source={dev}"]
    words += ["--units=4", f"--model_dir={tmp_path / 'model'}"]
    assert main(["train", *words]) == 0
    (call,) = calls
    train_source, train_target, *dev = call.lines
    assert [*zip(train_source, train_target, strict=True)] == [*PAIRS, ("", "")]
    assert [*zip(*dev, strict=True)] == PAIRS[:7]
    said = capsys.readouterr().err
    assert "only 40 different pairs" in said
    assert "have tabs" not in said


IDS = [f"{n}\teng\tthe {w} dog\t{n}\tle chien {w}" for n, w in enumerate(("big", "old", "red"))]
SOURCES = [f"a {w} cat.\tun chat {w}.\tCC-BY 2.0 (France) #{w}" for w in ("big", "old")]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([*PAIRS[:2], ("alone",), *PAIRS], "line 3 has no tab, wanted two columns"),
        ([*PAIRS[:2], ("a\tb\tc",)], "line 3 has 3 columns, wanted two"),
        ([*PAIRS[:2], ("a", '"b ""c"" d"')], "line 3 has quotes of CSV"),
        ([(row,) for row in IDS], "columns 3 and 5 look like text, and `cut -f3,5` keeps"),
        ([(row,) for row in SOURCES], "columns 1 and 2 look like text, and `cut -f1,2` keeps"),
        ([("1\t2\t3",)], "`cut -f1,2` keeps the first two"),  # no text
        ([(";;; 1",), ("WE  W IY1",)], "docs/short_strings.md makes a table of it"),
        (
            [(f"{x}ake\t{x}aken\tV;{tag}",) for x in "bcfhjlmrtw" for tag in ("PST", "PRS")],
            "join lemma and tags: 'bake+V;PST' and, after a tab, 'baken' (docs/short_strings.md",
        ),
    ],
)
def test_a_table_has_two_columns(tmp_path, capsys, rows, said):
    path = table(tmp_path / "pairs.tsv", rows)
    folder = tmp_path / "model"
    words = [f"--train_source={path}", f"--model_dir={folder}"]
    assert main(["train", *words]) == 2
    err = capsys.readouterr().err
    assert f"--train_source: {path}, line " in err
    assert said in err
    assert not folder.exists()


def test_a_training_of_a_table_goes_on(tmp_path, monkeypatch, capsys):
    """Also without it; another table changes nothing."""
    stand_in_for_learning(monkeypatch)
    path, folder = table(tmp_path / "pairs.tsv", PAIRS), tmp_path / "model"
    named = f"--train_source={path}"
    model = ["train", f"--model_dir={folder}"]
    assert main([*model, named, *SMALL, "--updates=1"]) == 0
    assert main([*model, named, "--updates=2"]) == 0
    table(path, [*PAIRS, ("other", "anderer")])
    before = contents(folder)
    fails(capsys, [*model, named, "--updates=3"], "has different pairs than when")
    assert contents(folder) == before
    table(path, PAIRS)
    fails(capsys, [*model, named, f"--dev_source={path}"], "began without this table")
    path.unlink()
    assert main([*model, "--updates=3"]) == 0


@pytest.mark.usefixtures("calls")
def test_a_size_that_a_named_part_does_not_take_is_not_chosen(tmp_path, monkeypatch):
    """The file of flags would be refused otherwise."""
    monkeypatch.setattr("bahdanau_tf.models.named._failure", lambda _: None)
    path = tmp_path / "text"
    path.write_text("".join(f"line {n}\n" for n in range(40)))
    texts = [f"--train_source={path}", f"--train_target={path}"]
    own = ["--units=4", "--attention=GeneralAttention"]
    first, second = tmp_path / "one", tmp_path / "other"
    assert main(["train", *texts, *own, f"--model_dir={first}"]) == 0
    written = f"--flagfile={first / 'train.flags'}"
    assert "attention_units" not in (first / "train.flags").read_text()
    assert main(["train", *texts, written, f"--model_dir={second}"]) == 0
    names = ("text.json", "source/tokenizer.json")
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


@pytest.mark.parametrize("has_gpu", [False, True])
def test_what_is_measured_reaches_the_rules(has_gpu, trained, tmp_path, monkeypatch, capsys):
    """The lines of a dev text, and the machine."""
    dev = [tmp_path / "dev.en.gz", tmp_path / "dev.fr.gz"]
    for path in dev:
        path.write_bytes(gzip.compress(b"A line.\n" * 7))
    seen = []

    def chosen(asked, facts, *measured):
        if measured:
            seen.append(measured[0])
            raise ValueError("that is enough")
        return real(asked, facts)

    real = Training.chosen
    monkeypatch.setattr(Training, "chosen", chosen)
    monkeypatch.setattr("bahdanau_tf.training.prepare.has_gpu", lambda: has_gpu)
    monkeypatch.setattr("bahdanau_tf.training.prepare.product_rate", lambda: 5e9)
    monkeypatch.setattr("bahdanau_tf.training.prepare.cores_at_once", lambda: 3)
    texts = [f"--dev_source={dev[0]}", f"--dev_target={dev[1]}"]
    new = trained._replace(folder=tmp_path / "new")
    fails(capsys, [*new.texts, *texts], "that is enough")
    rate = {} if has_gpu else {"product_rate": 5e9}
    wanted = {"cores": 3, "has_gpu": has_gpu, "dev_lines": 7}
    assert seen == [wanted | rate]
