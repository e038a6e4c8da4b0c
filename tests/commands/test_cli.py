"""The command line as a user runs it."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pytest
from comparisons import lines_of, write_lines
from letters import stand_in_for_learning
from refusals import says
from toys import english, french, toy_translator

from bahdanau_tf.commands import demo
from bahdanau_tf.commands.files import MOST_CHARACTERS, windows
from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora import grammar
from bahdanau_tf.options import Decoding
from bahdanau_tf.text import load_text
from bahdanau_tf.translation import Translation

pytestmark = pytest.mark.usefixtures("eager_search")

WORDS = ["--source_vocabulary_size=300", "--target_vocabulary_size=300"]
SMALL = ["--units=16", "--embedding_dim=12", "--batch_size=16", "--epochs=1"]
SMALL += ["--optimizer=adam", "--learning_rate=0.01"]
RNNSEARCH = ["--attention_units=10", "--maxout_units=8", "--initialization=glorot"]


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        stand_in_for_learning(patch)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    grammar.write_corpus(folder, train=160, dev=12, test=12, max_words=8)
    return folder


def train_flags(corpus: Path, model_dir: Path) -> list[str]:
    texts = ["--train_source=train.en", "--train_target=train.fr"]
    texts += ["--dev_source=dev.en", "--dev_target=dev.fr", f"--data_dir={corpus}"]
    sizes = [*SMALL, *WORDS, *RNNSEARCH]
    return ["train", "--recipe=paper", *texts, f"--model_dir={model_dir}", *sizes]


@pytest.fixture(scope="module")
def model_dir(corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "model"
    assert main(train_flags(corpus, folder)) == 0
    return folder


# A user's environment, without what conftest.py sets for the tests.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("CUDA_VISIBLE_DEVICES", "PYTHONUNBUFFERED", "TF_CPP_MIN_LOG_LEVEL")
}


def shell(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bahdanau_tf", *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def one_sentence(capfd) -> str:
    """What was written to standard error: one line, no traceback."""
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("bahdanau-tf: ")
    assert err.count("\n") == 1
    return err


def test_a_window_of_long_lines_ends_earlier() -> None:
    long = ("a" * MOST_CHARACTERS, "")
    lines = [("a", "b"), long, ("c", ""), ("d", ""), ("e", "")]
    assert [*map(len, windows(lines, 2))] == [2, 2, 1]
    assert [*map(len, windows([long] * 3, 2))] == [1, 1, 1]


def test_translate_keeps_lines_in_order(model_dir, corpus, tmp_path):
    lines = lines_of(corpus / "test.en")
    source = write_lines(tmp_path / "source", [lines[0], "", *lines[1:], lines[0]])
    output = tmp_path / "output"
    flags = [f"--model_dir={model_dir}", f"--output={output}"]
    assert main(["translate", *flags, f"--input={source}"]) == 0
    translations = lines_of(output)
    assert len(translations) == len(lines) + 2
    assert translations[1] == ""
    assert translations[0] == translations[-1] != ""


@pytest.mark.parametrize(
    ("arguments", "alpha"), [([], 0.5), (["--beam_size=2"], 0.5), (["--alpha=2"], 2.0)]
)
def test_a_command_ranks_by_the_length_penalty_of_the_model(tmp_path, capsys, arguments, alpha):
    own = Decoding(beam_size=7, alpha=0.5)
    toy_translator(english(), french(), own).save(tmp_path / "model")
    (tmp_path / "in.txt").write_text("the cat sleeps.\n")
    command = ["translate", f"--model_dir={tmp_path / 'model'}", f"--input={tmp_path / 'in.txt'}"]
    assert main([*command, "--format=json", "--alignments", *arguments]) == 0
    x = json.loads(capsys.readouterr().out)
    words = len(x["tokens"]) + x["finished"]
    assert x["score"] == pytest.approx(x["log_prob"] / ((5 + words) / 6) ** alpha, rel=1e-5)


def test_translate_reads_and_writes_pipes(model_dir):
    text = "The cat sleeps.\n\nThe man reads.\n"
    done = shell("translate", f"--model_dir={model_dir}", "--beam_size=2", input=text)
    assert done.returncode == 0
    # No messages of TensorFlow; progress, if it takes 30 seconds.
    ends = "lines/s", "cut off at the length limit", "the doubts of each"
    assert all(note.endswith(ends) for note in done.stderr.splitlines())
    lines = done.stdout.split("\n")
    assert (len(lines), lines[1]) == (4, "")


class Trained(NamedTuple):
    flags: list[str]
    model_dir: Path
    messages: str


@pytest.fixture(scope="module")
def awkward(corpus, tmp_path_factory) -> Trained:
    """RNNencdec trained on .gz files with blank lines and a very long line."""
    folder = tmp_path_factory.mktemp("awkward")
    lines = {side: lines_of(corpus / f"train.{side}") for side in ("en", "fr")}
    lines["en"][3] = ""
    lines["fr"][5] = " "
    lines["en"][7] = "long " * 10_000
    for side, text in lines.items():
        with gzip.open(folder / f"train.{side}.gz", "wt") as stream:
            stream.write("\n".join(text) + "\n")
    texts = [f"--train_source={folder}/train.en.gz", f"--train_target={folder}/train.fr.gz"]
    model = [f"--model_dir={folder / 'model'}", "--model=rnnencdec", "--maxout_units=8"]
    flags = ["train", "--recipe=paper", *texts, *model, *WORDS, *SMALL]
    with redirect_stderr(io.StringIO()) as messages:
        assert main(flags) == 0
    return Trained(flags, folder / "model", messages.getvalue())


def test_rnnencdec_is_trained_and_true_cases_its_source(awkward, tmp_path, capsys):
    """Text in capitals is read as a normal sentence, in the source only."""
    source = tmp_path / "capitals"
    source.write_text("The cat sleeps.\nTHE CAT SLEEPS.\n")
    assert main(["translate", f"--model_dir={awkward.model_dir}", f"--input={source}"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    texts = [load_text(awkward.model_dir / side) for side in ("source", "target")]
    assert [text.true_case for text in texts] == [True, False]


def test_the_same_command_resumes_training(awkward, capsys):
    assert main([*awkward.flags, "--epochs=2"]) == 0
    err = capsys.readouterr().err
    assert "resuming from update 10" in err
    assert "1 pair left out: more than " in err
    assert "158 pairs, not counting 2 pairs with a blank line" in err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--train_source=absent.en"], "absent.en"),  # in the folder of --data_dir
        (["--train_target=dev.fr"], "160 lines"),
        (["extra"], "'extra' flag"),
    ],
)
def test_a_bad_flag_is_reported_in_one_line(corpus, tmp_path, capfd, change, sentence):
    assert main([*train_flags(corpus, tmp_path / "model"), *change]) == 2
    says(one_sentence(capfd), sentence)


def test_a_missing_text_folder_or_command_is_reported_in_one_line(tmp_path, capfd):
    nowhere = tmp_path / "nowhere"
    for words, said in (
        (["train", f"--model_dir={tmp_path / 'new'}"], "--train_source is missing"),
        (["translate", f"--model_dir={tmp_path}"], "holds no translator"),
        (["translate", f"--model_dir={nowhere}"], f"there is no folder {nowhere}; tatoeba-en-fr"),
        (["translate", "--model_dir=x", "I am."], "'I am.' is not a flag; text comes from --input"),
        (["sing"], "no command 'sing'"),
    ):
        assert main(words) == 2
        assert said in one_sentence(capfd)


IMPORTS = """
import gc, sys
from bahdanau_tf.commands import main as cli
cli._import_tensorflow()
assert "keras" in sys.modules
assert gc.isenabled() and gc.get_freeze_count() > 100_000
frozen = gc.get_freeze_count()
cli._import_tensorflow()
assert gc.get_freeze_count() <= frozen
# Keras would import it; afterwards it can be imported.
assert "matplotlib.pyplot" not in sys.modules
import matplotlib.pyplot
"""


def test_a_command_imports_no_pyplot_and_collects_only_what_is_made_later():
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)


@pytest.mark.filterwarnings("default")
def test_a_warning_is_a_sentence_without_the_line_of_code(monkeypatch, capsys):
    def warned(*_: object) -> None:
        warnings.warn("no font", stacklevel=1)

    monkeypatch.setattr("bahdanau_tf.commands.data.run", warned)
    assert main(["data", "list"]) == 0
    assert capsys.readouterr().err == "bahdanau-tf: data: no font\n"


@pytest.mark.parametrize(("lengths", "wanted"), [([2, 9, 12], 9), ([0, 3, 1], 3), ([0], 0)])
def test_demo_draws_the_longest_translation_up_to_ten_words(monkeypatch, tmp_path, lengths, wanted):
    drawn: list[list[str]] = []
    monkeypatch.setattr(Translation, "plot", lambda shown, _: drawn.append(shown.tokens))
    translations = [Translation("", tokens=["a"] * length) for length in lengths]
    demo._draw(translations, tmp_path / "alignment.png")
    assert drawn == [["a"] * wanted]


@pytest.mark.slow
def test_demo_trains_a_good_translator(tmp_path):
    """The whole demo: BLEU of at least 90; AER half the diagonal's."""
    done = shell("demo", f"--output_dir={tmp_path / 'demo'}")
    assert done.returncode == 0, done.stderr
    score = float(done.stdout.split("version:")[1].split(" = ")[1].split()[0])
    assert score >= 90
    rates = re.search(r"error rate ([\d.]+), .* ([\d.]+)\n", done.stdout)
    assert 2 * float(rates[1]) <= float(rates[2])
    assert "the same translations" in done.stdout
    picture = (tmp_path / "demo" / "alignment.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    settings = json.loads((tmp_path / "demo" / "model" / "training.json").read_text())
    assert settings["format_version"] == 1
