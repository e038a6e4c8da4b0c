"""Flags: which are accepted, and which are refused before any work begins."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from dataclasses import fields, replace
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import refusals
from processes import output_of, run_python
from tensorflow.errors import ResourceExhaustedError

from bahdanau_tf.commands import main as cli
from bahdanau_tf.commands.flags import required
from bahdanau_tf.commands.main import COMMANDS, defined_flags, main
from bahdanau_tf.commands.train import asked
from bahdanau_tf.options import Decoding, ModelOptions, Recipe
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.serving import Limits
from bahdanau_tf.system.ranges import OptionError, Refusal, flags_named, named
from bahdanau_tf.training.schedule import Schedule, make_optimizer

RECIPES = sorted(
    entry.name.removesuffix(".flags")
    for entry in resources.files("bahdanau_tf").joinpath("recipes").iterdir()
)

PAIR = ["--source={text}", "--reference={text}"]
RISK = [
    *("--train_source={text}", "--train_target={text}", "--model_dir={tmp}/m"),
    "--risk_samples=5",
]
TEXT_PAIR = ["--source={text}", "--target={text}"]
NO_TEXT = ["--source=/dev/null", "--reference=/dev/null"]
SAME = ["--reference={text}", "--hypotheses={text}"]
DISTIL = [*RISK[:2], "--out_dir={tmp}/out", "--model_dir=x"]
DEV = [f"--dev_{name}={{text}}" for name in ("source", "input", "reference")]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a b\n")
    return path


@pytest.fixture
def refused(tmp_path: Path, text: Path, monkeypatch, capfd):
    """Runs a command that must be refused and returns the one-line message.

    It must leave no file behind and must not import TensorFlow.
    """
    monkeypatch.setattr(cli, "_import_tensorflow", lambda: pytest.fail("TensorFlow is imported"))

    def run(command: str, *flags: str) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert main([command, *flags]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith(f"bahdanau-tf: {command}: ")
        assert err.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return err

    return run


@pytest.fixture
def train_refused(refused, tmp_path, text):
    files = (
        f"--train_source={text}",
        f"--train_target={text}",
        f"--model_dir={tmp_path / 'model'}",
    )
    return lambda *flags: refused("train", *files, *flags)


WITHOUT_TENSORFLOW = """
import sys
from bahdanau_tf.commands.main import COMMANDS, main
for name in COMMANDS:
    assert main([name, "--help"]) == 0
    assert main([name, "--colour=red"]) == 2
    assert main([name, "--max_line_bytes=0"]) == 2
assert main(["train", "--train_source=x"]) == 2
heavy = {"tensorflow", "keras", "matplotlib", "sacrebleu"} & {*sys.modules}
assert not heavy, heavy
"""


def test_help_and_mistakes_need_no_tensorflow():
    output_of("-c", WITHOUT_TENSORFLOW)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_groups_and_every_flag(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    said = capsys.readouterr().out
    groups = [row for row in said.split("\n") if row and row[-1] == ":"]
    assert "Every command:" in groups
    assert len(groups) >= 2
    for owner, _, without, *_ in import_module(f"bahdanau_tf.commands.{command}").GROUPS:
        names = {field.name for field in fields(owner)} - {*without}
        assert not names - owner.texts().keys(), f"the docstring of {owner}"
    for name in defined_flags(command)._flags():
        assert re.search(rf"--({name}=|\[no\]{name}\s)", said)
    assert max(map(len, said.split("\n"))) <= 80
    assert "Raises:" not in said  # of the docstring that describes the flags
    assert ";  " not in said  # absl's own line break
    assert "repeat this option" not in said  # absl's; some must be given once
    assert "['" not in said  # Python's lists


@pytest.mark.parametrize("command", COMMANDS)
def test_required_flags_are_marked_and_missed(refused, command, capfd):
    needed = required(import_module(f"bahdanau_tf.commands.{command}").GROUPS)
    main([command, "--help"])
    said = capfd.readouterr().out.split("\n")
    marked = [row for row in said if row.endswith("  (required)")]
    assert {row.split("=")[0].strip(" -") for row in marked} == {*needed}
    for missing in needed:
        others = [f"--{name}=1" for name in needed if name != missing]
        message = f"bahdanau-tf: {command}: --{missing} is missing\n"
        assert refused(command, *others) == message


@pytest.mark.parametrize("command", [*COMMANDS, None])
@pytest.mark.parametrize("columns", [40, 120])
def test_help_is_as_wide_as_the_terminal(command, columns, capsys, monkeypatch):
    """Only what is typed as it stands, such as choices, may be longer."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*filter(None, [command]), "--help"]) == 0
    lines = capsys.readouterr().out.split("\n")
    long = [line for line in lines if len(line) > columns]
    as_typed = re.compile(r"  --| {4}\S| {8}--")
    assert [line for line in long if not as_typed.match(line)] == []
    assert columns == 40 or command is None or max(map(len, lines)) > 80


@pytest.mark.parametrize(("encoding", "command"), [("cp1252", "train"), ("ascii", "evaluate")])
def test_help_is_printed_where_the_output_lacks_letters(encoding, command):
    """With α, β and others."""
    done = subprocess.run(
        [sys.executable, "-m", "bahdanau_tf", command, "--help"],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--[no]traceback" in done.stdout


OUT_OF_RANGE = """
learning_rate=0 learning_rate=1e30 learning_rate=nan epochs=inf epochs=0 units=0 maxout_units=-3
layers=101 evaluate_every=-1 constant_share=2 warmup_steps=-1 max_norm=0 label_smoothing=1 divisor=0
embedding_dropout=1 annotation_dropout=-0.1 state_dropout=nan readout_dropout=2 batch_size=0
max_length=-1 pool_batches=0 token_budget=0 patience=0 seed=-1 minutes=-1 minutes=-inf
source_vocabulary_size=0 target_vocabulary_size=3
source_language=xx target_language=jp target_language=en-GB
"""
TOO_LARGE = [f"{name}={10**400}" for name in ("accumulate", "dev_pairs", "units")]
UNKNOWN = """
model=transformer optimizer=lion tokenizer=letters shuffle=twice initialization=zero
step_order=backwards schedule=lunar units=many units=1e3 épôques=épôques nounits flagfile=/nowhere
recipe=soup
"""


@pytest.mark.parametrize("flag", [*OUT_OF_RANGE.split(), *TOO_LARGE])
def test_a_number_out_of_range_names_the_flag(train_refused, flag):
    said = train_refused(f"--{flag}")
    assert f"--{flag.partition('=')[0]} is " in said
    assert "wanted" in said


def test_a_flag_without_its_value_is_named(train_refused):
    assert "--units has no value, wanted a whole number, 1 to" in train_refused("--units")
    assert "--model has no value, wanted one of rnnsearch, " in train_refused("--model")


@pytest.mark.parametrize("flag", UNKNOWN.split())
def test_an_unknown_value_is_named(train_refused, flag):
    assert flag.partition("=")[2] in train_refused(f"--{flag}")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--layers=3"], "--layers --model=rnnsearch"),
        (["--layers=4"], "--layers"),  # given, though it is the default
        (["--model=seq2seq-lstm", "--tie_embeddings"], "--tie_embeddings"),
        (["--model=seq2seq-lstm", "--initialization=paper"], "seq2seq-lstm"),
        (["--tokenizer=word", "--joint"], "--joint --token"),
        (["--tokenizer=word", "--sample_subwords"], "--sample_subwords"),
        (["--tokenizer=bpe", "--sampled_epochs=3"], "--sampled_epochs --nosample_subwords"),
        (["--tokenizer=word", "--share_embeddings"], "--share_embeddings --joint needs"),
        (
            ["--tokenizer=bpe", "--joint", "--target_vocabulary_size=400"],
            "--target_vocabulary_size --joint",
        ),
        (["--tokenizer=bpe", "--source_language=en"], "--source_language --tokenizer=bpe"),
        (["--recipe=paper", "--tokenize=char"], "--tokenize --dev_source --dev_pairs"),
        (["--dev_pairs=0", "--patience=3"], "--patience --dev_pairs=0"),
        (["--recipe=paper", "--schedule=plateau"], "--schedule=plateau --dev_source"),
        (
            ["--model_dir={text}.new", "--init_from={text}.new"],
            "--init_from {text}.new --model_dir",
        ),
        (["--model_dir={text}.new", "--init_from={text}.new/best"], "training"),
        (["--added_words=9"], "--added_words --init_from"),
        (["--init_from=x", "--units=9"], "--units --init_from"),
        (["--recipe=paper", "--warmup_steps=5"], "--warmup_steps"),
        (["--jit_compile=on", "--token_budget=9"], "--jit_compile --token_budget=9"),
        (
            ["--dev_source={text}", "--dev_target={text}", "--dev_pairs=4"],
            "--dev_pairs --dev_source",
        ),
        (["--schedule=halved", "--constant_share=0.1"], "--constant_share"),
        (["--tie_embeddings", "--maxout_units=7", "--embedding_dim=8"], "tie_embeddings"),
        (["--dev_source=x"], "--dev_source --dev_target together"),
        (["--dev_source=/nowhere.tsv"], "--dev_source file"),
        (["--dev_source=pairs.jsonl"], "pairs.jsonl sides"),
        (["--train_source=x.tmx"], "docs/train.md Python code"),
        (["--train_source=x.csv"], ".tsv --train_source (or"),
        (["--train_source=x.tsv", "--train_target=x.tsv"], "--train_target columns"),
        (["--train_source=/"], "/ folder"),
        (
            ["--recipe=multi30k-en-fr", "--data_dir=/nowhere"],
            "--recipe=multi30k-en-fr --data_dir files",
        ),
        (["--model_dir=/proc/1/x"], "--model_dir"),
        (["--model_dir=/dev/null/x"], "--model_dir /dev/null file"),
        (["--units=1e9"], "--units '1e9' whole"),
        (["--help=beam"], "--help --nohelp"),
        (["--dropout=1"], "--annotation_dropout --embedding_dropout --re"),
    ],
)
def test_flags_that_would_be_ignored_or_fail_are_refused(train_refused, text, flags, said):
    flags = [flag.format(text=text) for flag in flags]
    message = train_refused(*flags)
    refusals.says(message, said.format(text=text))


RANGES: dict[Any, list[tuple[str, Any, str]]] = {
    Decoding: [
        *(("beam_size", x, "10,000") for x in (0, 2.5, True)),
        *(("n_best", 6, "5"), ("n_best", None, "whole")),
        *(("sampling", "no", "True"), ("alpha", "1", "number"), ("alpha", -1.0, "0")),
        *(("seed", -1, "2,147"), ("max_length_ratio", 0.0, "more"), ("max_length", 0, "1")),
        *(("min_length_ratio", 3.5, ""), ("beta", -0.1, "0"), ("no_repeated_ngrams", -1, "0")),
        ("unknown", "drop", "forbid"),
    ],
    Recipe: [
        *(("epochs", x, "more") for x in (0, None)),
        *(("optimizer", "lion", "adam"), ("schedule", "lunar", "linear"), ("patience", 0, "1")),
        *(("deterministic", 1, "True"), ("tokenize", 13, "string"), ("batch_size", 8.5, "whole")),
    ],
    Batching: [
        *((name, 0, "1") for name in ("batch_size", "max_length", "max_words", "token_budget")),
        *(("pool_batches", -1, ""), ("shuffle", "twice", "once"), ("seed", 2**32, "")),
    ],
    Limits: [("max_source_length", 1, ""), ("max_target_length", 0, ""), ("n_best", -1, "")],
    ModelOptions: [("units", "8", "whole")],
}


@pytest.mark.parametrize("owner", RANGES)
def test_python_values_of_another_kind_or_out_of_range_are_refused(owner):
    for name, value, wanted in RANGES[owner]:
        said = (owner.__name__, name, repr(value), wanted)
        refusals.refused(lambda own=owner, options={name: value}: own(**options), *said)


def test_numbers_of_numpy_are_numbers():
    assert Decoding(beam_size=np.int64(3), alpha=np.float32(0.5)).beam_size == 3
    assert Recipe(epochs=2, token_budget=None, max_norm=np.float64(1)).epochs
    assert ModelOptions(units=np.int32(8)).units == 8
    of_numpy = Decoding(beam_size=np.int64(3), alpha=np.float64(0.5))
    assert json.dumps(vars(of_numpy)) == json.dumps(vars(Decoding(beam_size=3, alpha=0.5)))


def test_flags_in_a_flagfile_count_as_given(train_refused, tmp_path):
    path = tmp_path / "own.flags"
    path.write_text("# own\n--layers=3\n")
    assert "--layers is not used" in train_refused(f"--flagfile={path}")
    path.write_text("--recipe=rnnsearch-30\n--layers=3\n")
    assert "--layers is not used" in train_refused(f"--flagfile={path}")
    path.write_bytes(b"--corpus=caf\xe9\n")
    said = "the file, or one that it names, is not UTF-8"
    assert f"--flagfile={path}: {said}" in train_refused(f"--flagfile={path}")
    assert f"--flagfile: {said}" in train_refused("--flagfile", str(path))
    assert "--flagfile is empty" in train_refused("--flagfile=")
    path.write_text("--recipe=soup\n")
    assert "--recipe is 'soup'" in train_refused("--flagfile", str(path))


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_have_only_flags_that_are_used(name):
    flags = defined_flags("train")
    assert not cli.parse_with_recipe("train", ["--epochs=3", f"--recipe={name}"], flags)
    assert asked(flags).recipe.epochs == 3  # the user's flags override those of a recipe
    assert flags.recipe == name


@pytest.mark.parametrize(
    "own", ["--step_order=appendix", "--maxout_units=9", "--nofactored_output"]
)
def test_flags_of_a_recipe_may_be_unused(train_refused, own):
    """Only flags given by the user are refused, not those of a recipe."""
    said = train_refused("--recipe=rnnsearch-30", "--model=seq2seq-lstm", own)
    name = own.split("=")[0].replace("--no", "--")
    assert f"{name} is not used with --model=seq2seq-lstm" in said


@pytest.mark.parametrize(("optimizer", "rate"), [("adadelta", 1.0), ("adam", 0.001), ("sgd", 0.7)])
def test_the_default_learning_rate_depends_on_the_optimizer(optimizer, rate):
    assert replace(Recipe(), optimizer=optimizer).rate == rate
    assert Recipe(optimizer=optimizer, learning_rate=0.5).rate == 0.5
    recipe = Recipe(optimizer=optimizer)
    made = make_optimizer(recipe, Schedule(recipe, 10))
    assert float(made.learning_rate) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("command", "flags", "said"),
    [
        ("translate", ["--model_dir=a,"], "--model_dir empty"),
        ("translate", ["--model_dir=a", "--average=foo"], "--average 'foo'"),
        ("translate", ["--model_dir=a", "--average=log_probability"], "--average model"),
        ("translate", ["--model_dir=a,b,./a"], "--model_dir a,b,./a folder"),
        ("evaluate", PAIR, "--reference --source"),
        ("translate", ["--max_length_ratio=1e30"], "--max_length_ratio"),
        ("translate", ["--beam_size=0"], "--beam_size 0 1"),
        ("translate", ["--beam_size=2", "--n_best=3"], "--n_best 3"),
        ("train", [*RISK], "--risk_samples --init_from needs"),
        (
            "train",
            [*RISK, "--init_from=a", "--label_smoothing=.1"],
            "--label_smoothing --risk_samples",
        ),
        ("train", [*RISK[:3], "--distil=2", "--init_from=a"], "--init_from --distil"),
        ("train", [*RISK[:3], "--distil=101"], "--distil 101 100"),
        ("translate", ["--no_repeated_ngrams=1000000"], "--no_repeated_ngrams"),
        ("translate", [f"--window={10**20}"], "--window 1"),
        ("ensembles", ["--forward=m,", *PAIR], "--forward empty"),
        ("translate", ["--dictionary={text}"], "--dictionary"),
        ("translate", ["--input=/nowhere"], "--input file"),
        ("translate", ["--output=/nowhere/x"], "--output folder"),
        ("translate", ["--output={tmp}"], "--output"),
        ("translate", ["--shard=0/3"], "--shard '0/3' i/n"),
        ("translate", ["--shard=1/2"], "--input missing"),
        ("translate", ["--shard=1/2", "--input={text}"], "--output missing"),
        ("export", ["--export_dir=/dev/null/x"], "--export_dir /dev/null"),
        (
            "export",
            ["--export_dir=x", "--unknown=replace", "--dictionary=/nowhere"],
            "--dictionary /nowhere file",
        ),
        ("lexicon", ["--words=1000000000"], "--words 1000000000"),
        ("lexicon", ["--words=0"], "--words 0 1"),
        ("lexicon", ["--frequent=-1"], "--frequent -1 1"),
        ("lexicon", [*TEXT_PAIR, "--model_dir=tatoeba-en-fr"], "tatoeba-en-fr package from_preset"),
        ("rescore", ["--source={text}", "--weight=nan"], "--weight nan"),
        ("rescore", ["--source={text}", "--weight=1.5"], "--weight 1.5"),
        ("rescore", ["--source={text}", DEV[0]], "--dev_input, --dev_reference"),
        ("rescore", ["--source={text}", "--weight=.1", *DEV], "--weight --dev_source"),
        ("evaluate", ["--reference=/nowhere"], "--reference file"),
        ("align", ["--train_source={text}"], "--train_source --gold"),
        ("align", ["--gold={text}", "--format=json"], "--format --gold"),
        ("align", ["--gold={text}", "--train_target={text}"], "_target together"),
        ("report", ["--system=a=b", "--minutes=3"], "--quick"),
        ("report", ["--quick", "--out_dir=/dev/null/x"], "--out_dir /dev/nul"),
        ("select", ["--order=1000"], "--order 1000"),
        ("demo", ["--epochs=inf"], "--epochs inf"),
        ("demo", ["--language=de"], "fr ko ja"),
        ("backtranslate", DISTIL, "--target_text --source_text missing"),
        (
            "backtranslate",
            [*DISTIL, "--target_text={text}", "--source_text={text}"],
            "--target_text --source_text not both",
        ),
        ("backtranslate", ["--share=1", *DISTIL], "--share 1.0 more than 0"),
        ("distil", ["--closest", "--beam_size=1", *DISTIL], "--closest --beam_size 1"),
        ("distil", ["--closest", "--mbr=chrf", *DISTIL], "--mbr --closest"),
        ("translate", ["--mbr=chrf", "--beam_size=1"], "--mbr one --beam_size=16"),
        ("translate", ["--mbr=ter"], "--mbr ter chrf bleu"),
        ("ensembles", [*NO_TEXT], "--forward --reversed"),
        ("ensembles", [*NO_TEXT, "--forward=m", "--reversed=m,./m"], "m,./m once"),
        ("ensembles", ["--beam_size=3"], "beam_size"),  # each row has its own
        ("evaluate", [*SAME, "--metrics=ter,ter"], "--metrics ter,ter once"),
        ("evaluate", [*SAME, "--metrics=bleu,meteor"], "--metrics bleu,meteor chrf++"),
        ("data", ["give"], "'data list'"),
    ],
)
def test_other_commands_refuse_bad_flags(refused, tmp_path, text, command, flags, said):
    flags = [flag.format(tmp=tmp_path, text=text) for flag in flags]
    if command in ("translate", "export") and "model_dir" not in flags[0]:
        flags.append("--model_dir=x")
    if command == "align":
        flags += [f"--source={text}", f"--target={text}"]
    if command in ("rescore", "align"):
        flags.append("--model_dir=x")
    message = refused(command, *flags)
    refusals.says(message, said)


def test_the_demo_overwrites_no_text_of_the_user(refused, tmp_path):
    mine = tmp_path / "data" / "train.en"
    mine.parent.mkdir()
    mine.write_text("mine\n")
    said = refused("demo", f"--output_dir={tmp_path}")
    assert "has train.en, which is not from an earlier demo with" in said
    assert mine.read_text() == "mine\n"


SELECT = [
    *("--source={text}", "--target={text}", "--pairs=1"),
    *("--in_domain_source={text}", "--in_domain_target={text}"),
]


@pytest.mark.parametrize(
    ("command", "flags", "said"),
    [
        ("translate", ["--input={text}", "--output={text}"], "input"),
        ("translate", ["--input={text}", "--output={link}"], "input"),
        ("translate", ["--input={text}", "--output={hard}"], "input"),
        ("translate", ["--input={tmp}/o.part", "--output={tmp}/o"], "input"),
        ("translate", ["--prefixes={text}", "--output={text}"], "prefixes"),
        ("align", ["--source={text}", "--target={z}", "--output={z}"], "targ"),
        ("rescore", ["--source={z}", "--output={z}"], "source"),
        ("rescore", ["--source={z}", "--output={text}", *DEV], "dev_source"),
        (
            "evaluate",
            ["--reference={z}", "--source={z}", "--output={text}"] + ["--hypotheses=other={text}"],
            "hypotheses",
        ),
        (
            "distil",
            ["--train_source={text}", "--train_target={tmp}/source.txt"] + ["--out_dir={tmp}"],
            "train_target",
        ),
        (
            "backtranslate",
            ["--train_source={text}", "--train_target={text}", "--out_dir={tmp}"]
            + ["--model_dir=x", "--target_text={tmp}/source.txt"],
            "target_text",
        ),
        ("select", [*SELECT, "--output_source={text}", "--output_target=x"], "source"),
        (
            "select",
            [*SELECT, "--output_source={tmp}/n", "--output_target={tmp}/m"] + ["--scores={tmp}/m"],
            "output_target",
        ),
    ],
)
def test_an_output_that_is_another_file_of_the_command_is_refused(
    refused, tmp_path, text, command, flags, said
):
    """Also by another name, and where only its first ending is the same."""
    (tmp_path / "link").symlink_to(text)
    (tmp_path / "hard").hardlink_to(text)
    (tmp_path / "o.part").write_text("a\n")
    (tmp_path / "source.txt").write_text("a\n")
    (tmp_path / "z.gz").write_text("a\n")
    names = {
        "text": text,
        "tmp": tmp_path,
        "link": tmp_path / "link",
        "hard": tmp_path / "hard",
        "z": tmp_path / "z.gz",
    }
    words = [flag.format(**names) for flag in flags]
    if command != "select":
        words.append("--model_dir=x")
    assert f"also --{said}" in refused(command, *words)
    assert text.read_text() == "a b\n"


def test_an_output_that_is_standard_input_is_refused(refused, text):
    kept = os.dup(0)
    with text.open() as stream:
        os.dup2(stream.fileno(), 0)
    try:
        said = refused("translate", "--model_dir=x", f"--output={text}")
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert "--output is also standard input" in said


def test_the_standard_streams_may_be_closed():
    command = f'"{sys.executable}" -m bahdanau_tf data list <&- >&- 2>&-'
    assert subprocess.run(command, shell=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left", "tiny/o.json"), "tiny/o.json: No space"),
        (OSError(28, "No space left"), "standard output: No space left"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (OSError("The site is closed."), "The site is closed."),
        (MemoryError(), "out of memory or disk"),
        (ResourceExhaustedError(None, None, "{{x}} OOM of [9]\nat x"), "out of memory or disk"),
    ],
)
def test_an_error_of_the_system_is_a_sentence(text, monkeypatch, capfd, error, said):
    def load(_):
        raise error

    monkeypatch.setattr("bahdanau_tf.commands.files.load_translator", load)
    assert main(["translate", "--model_dir=x", f"--input={text}"]) == 2
    message = capfd.readouterr().err
    assert message.startswith(f"bahdanau-tf: translate: {said}")
    assert message.count("\n") == 1
    assert "Errno" not in message
    assert "{{" not in message


@pytest.mark.parametrize(("command", "unbuffered"), [("data list", ""), ("--version", "1")])
def test_a_full_disk_of_standard_output_is_a_sentence(command, unbuffered):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bahdanau_tf", *command.split()],
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.endswith(": standard output: No space left on device\n")
    assert done.stderr.count("\n") == 1


INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "tensorflow":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
# A shell starts background jobs with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from bahdanau_tf.commands.main import main
sys.exit(main(["translate", "--model_dir=x"]))
"""


def test_an_interrupt_while_tensorflow_is_imported_is_reported_in_one_line():
    done = run_python("-c", INTERRUPTED)
    assert (done.returncode, done.stderr) == (130, "bahdanau-tf: translate: interrupted\n")


BUSY = """
import hashlib, signal
from bahdanau_tf.commands import main as cli

def compute(argv):
    signal.signal(signal.SIGINT, lambda *_: None)  # a training catches it, too
    print("begins", flush=True)
    # For hours; signals are handled by Python when it returns.
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

signal.signal(signal.SIGINT, signal.default_int_handler)  # as above
cli._main = compute
cli.main()
"""


def test_interrupts_are_heard_while_a_library_computes():
    """The first is answered, and the second ends the process."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begins\n"
        watch = threading.Timer(60, process.kill)
        watch.start()
        process.send_signal(signal.SIGINT)
        assert any(line.startswith("bahdanau-tf: stopping") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        watch.cancel()
    assert process.returncode == 130
    assert said.endswith("\nbahdanau-tf: interrupted\n")


IMPORTED = """
import os, signal, time

os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""


def test_ctrl_c_ends_the_command_quietly_while_it_is_imported(tmp_path):
    """A library that is imported first sends the signal; no traceback."""
    (tmp_path / "absl.py").write_text(IMPORTED)
    root = Path(__file__).parents[2]
    program = (
        "import signal, sys; from bahdanau_tf.__main__ import main; "
        # As in a terminal; a job in the background ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
        capture_output=True,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


ENDING = """
import atexit, sys, tempfile
from bahdanau_tf import __main__
from bahdanau_tf.commands import main as cli

class Module:
    def __del__(self):
        print("taken apart")

def run():
    global kept, folder
    kept, folder = Module(), tempfile.TemporaryDirectory(dir=sys.argv[1])
    atexit.register(print, "registered")
    print("result", end="")
    return 3

cli.main = run
sys.exit(__main__.main())
"""


def test_a_command_ends_after_what_is_registered_for_its_end(tmp_path):
    """All is written, and temporary folders are removed."""
    done = run_python("-c", ENDING, tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "resultregistered\n"
    assert not [*tmp_path.iterdir()]


def test_an_error_that_nobody_foresaw_is_told(tmp_path):
    program = ENDING.replace("return 3", "raise RuntimeError('a bug')")
    done = run_python("-c", program, tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: a bug\n")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("bahdanau-tf tr", {"train ", "translate "}),
        ("bahdanau-tf train --source_l", {"--source_language "}),
        ("bahdanau-tf train --optimizer a", {"adadelta ", "adam "}),
        ("bahdanau-tf train --recipe rnnenc", {"rnnencdec-30", "rnnencdec-50"}),
        ("bahdanau-tf translate --model_dir tat", {"tatoeba-en-fr", "tatoeba-en-ja"}),
        ("bahdanau-tf translate --model_dir /us", {"/usr/"}),
        ("bahdanau-tf train --model_dir tat", {""}),  # it is written
        ("bahdanau-tf data get mult", {"multi30k "}),
    ],
)
def test_a_shell_completes_commands_flags_and_values(tmp_path, line, wanted):
    """Asks as argcomplete's bash function does."""
    pytest.importorskip("argcomplete")
    answer = tmp_path / "answer"
    shell = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_TYPE": "9"}
    shell |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    output_of("-m", "bahdanau_tf", _ARGCOMPLETE_STDOUT_FILENAME=str(answer), **shell)
    answers = {word.rstrip() for word in answer.read_text().split("\n")}
    assert answers == {word.rstrip() for word in wanted}


def test_what_is_written_is_apart_from_saved_models(tmp_path, text, capsys):
    """It would be lost when that training replaces its best model."""
    model, best = tmp_path / "model", tmp_path / "model" / "best"
    best.mkdir(parents=True)
    (model / "training.json").touch()
    (best / "translator.json").touch()
    texts = [f"--train_source={text}", f"--train_target={text}"]

    def said(command: str, flag: str, place: Path, *others: str) -> str:
        assert main([command, f"--{flag}={place}", *others]) == 2
        return capsys.readouterr().err.removeprefix(f"bahdanau-tf: {command}: ")

    def exported(place: Path) -> str:
        return said("export", "export_dir", place, f"--model_dir={model}")

    folder = f"{model} is the folder of a training"
    for place in (model, best / ".."):
        assert exported(place).startswith(f"--export_dir: {folder}")
    for place in (best, best / "served" / "here"):
        assert exported(place).startswith(f"--export_dir: {best} holds a saved model")
    assert "--export_dir" not in exported(model / "served")
    distilled = said("distil", "out_dir", model, f"--model_dir={model}", *texts)
    assert distilled.startswith(f"--out_dir: {folder}")
    for place in (best, best / "fine"):
        trained = said("train", "model_dir", place, f"--init_from={best}", *texts)
        assert trained.startswith(f"--model_dir: {best} holds a saved model")


def test_messages_name_flags_in_the_command_and_keywords_in_python():
    """An error still knows its option after it was pickled."""
    error = OptionError("Recipe", "epochs", 0, "more", "which is none")
    error = pickle.loads(pickle.dumps(error))
    parts = error.owner, error.option, error.value, error.wanted
    assert parts == ("Recipe", "epochs", 0, "more")
    options = [("units", 8), ("joint", False), ("dev_source",), ("modules", ["a"])]
    keywords = ["units=8", "joint=False", "dev", "modules=['a']", 'tokenizer="bpe"']
    options.append(("tokenizer", "bpe"))
    assert [named(*option) for option in options] == keywords
    assert str(error) == "Recipe: epochs is 0, which is none, wanted more"
    with flags_named():
        said = " ".join(named(*option) for option in options)
        assert said == "--units=8 --nojoint --dev_source --modules=a --tokenizer=bpe"
        assert cli._said(error) == "--epochs is 0, which is none, wanted more"
        assert cli._said(Refusal("Translator.load", "no folder x")) == "no folder x"
        assert cli._said(ValueError("fit: is a file")) == "fit: is a file"


def test_names_do_not_reach_a_terminal_raw(tmp_path, capsys):
    """Neither as a file's name nor from a file, also in a traceback."""
    name = "\x1b]0;title\x07"
    path = tmp_path / name
    words = ["evaluate", f"--hypotheses={path}", f"--reference={path}"]
    assert main(words) == 2
    first, second = tmp_path / f"{name}1", tmp_path / f"{name}2"
    for text in (first, second):
        text.write_text("a b c d e\n" * 3)
    systems = [f"--hypotheses={name}{text.name}={text}" for text in (first, second)]
    assert main(["evaluate", *systems, f"--reference={first}"]) == 0
    (tmp_path / "translator.json").write_text(f'{{"{name}": 1}}')
    words = ["translate", f"--model_dir={tmp_path}", "--traceback"]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"\x1b]0;title\x07" in out
    assert r"\x1b]0;title\x07" in err
    assert "Traceback" in err
