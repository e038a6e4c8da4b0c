"""The package as installed: its wheel, its imports, its command."""

import gc
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from processes import output_of, run_python

import bahdanau_tf
from bahdanau_tf.system.imports import on_first_use

REPOSITORY = Path(__file__).resolve().parents[1]
# Slow to import or not available everywhere; Keras may import them itself.
LAZY = ("tensorflow_text", "matplotlib", "sentencepiece", "sacrebleu")


@pytest.fixture(scope="module")
def wheel() -> metadata.Distribution:
    """The installed wheel; skips the test if there is none."""
    try:
        distribution = metadata.distribution("bahdanau_tf")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the installed wheel: make test")
    if distribution.read_text("WHEEL") is None or not any(
        file.name == "py.typed" for file in distribution.files
    ):
        pytest.skip("needs the wheel, and not an editable install: make test")
    return distribution


def test_the_installed_wheel_is_tested(wheel):
    installed = wheel.locate_file("bahdanau_tf/__init__.py")
    assert Path(bahdanau_tf.__file__).samefile(installed), "these are the sources: make test"


def test_every_source_file_is_in_the_wheel(wheel):
    kinds = "py pyi css html js mts c wasm svg flags tsv typed"
    sources = {
        path.relative_to(REPOSITORY).as_posix()
        for kind in kinds.split()
        for path in (REPOSITORY / "bahdanau_tf").rglob(f"*.{kind}")
    }
    packed = {file.as_posix() for file in wheel.files}
    assert "bahdanau_tf/py.typed" in sources
    assert sources <= packed
    assert {file.split("/")[0] for file in packed if ".py" in file} == {"bahdanau_tf"}


def test_version_is_the_newest_of_the_changelog(wheel):
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, flags=re.MULTILINE)
    assert newest
    assert newest[1] == wheel.version == bahdanau_tf.__version__


def test_the_wheel_contains_the_licence(wheel):
    assert wheel.metadata["License"] == "Apache-2.0"
    assert any(file.name == "LICENSE" for file in wheel.files)


@pytest.mark.parametrize(
    ("platform", "machine", "wanted"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("linux", "armv7l", False),
        ("darwin", "arm64", True),
        ("darwin", "x86_64", False),
        ("win32", "AMD64", False),
        ("win32", "ARM64", False),
    ],
)
def test_tensorflow_text_is_required_where_it_has_a_wheel(wheel, platform, machine, wanted):
    (text,) = (r for r in map(Requirement, wheel.requires) if r.name == "tensorflow-text")
    environment = {"sys_platform": platform, "platform_machine": machine}
    assert text.marker.evaluate(environment) == wanted


NEW_PROCESS = """
import sys, tensorflow, keras
before = set(sys.modules)
import numpy as np
from bahdanau_tf import RNNSearch, Vocabulary, WordTokenizer
print(sorted(set(sys.argv[1:]) & (set(sys.modules) - before)))
sys.modules["tensorflow_text"] = None
model = RNNSearch(7, 9, units=4, embedding_dim=3,
                  attention_units=5, maxout_units=2)
ids = np.array([[2, 3, 1, 0]], "int32")
print(model({"source": ids, "target": ids}).shape)
vocabulary = Vocabulary(["[PAD]", "[UNK]", "[END]", "a"])
try:
    WordTokenizer(vocabulary).tokenize(["a"])
except ImportError as error:
    print(error)
"""


def test_a_new_process_imports_little_and_needs_no_tensorflow_text():
    """A tokenizer without TensorFlow Text names the package that is missing."""
    imported, shape, refusal, *rest = output_of("-c", NEW_PROCESS, *LAZY).split("\n")
    assert (imported, shape, rest) == ("[]", "(1, 4, 9)", [""])
    assert "tensorflow-text" in refusal


@pytest.mark.parametrize(("level", "said"), [("1", ""), ("0", "I0000 a message\n")])
def test_the_first_import_of_tensorflow_is_quiet(tmp_path, monkeypatch, capfd, level, said):
    """Its libraries write messages that no log level keeps back. No garbage is collected."""
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "__init__.py").touch()
    (tmp_path / "loud" / "__init__.pyi").write_text("from loud.part import NAME as NAME\n")
    text = "import gc, os\nNAME = os.write(2, b'I0000 a message\\n'), gc.isenabled()\n"
    (tmp_path / "loud" / "part.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    for name in ("tensorflow", "loud", "loud.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    _, first_use = on_first_use("loud", "__init__.pyi")
    assert first_use("NAME") == (16, False)
    assert gc.isenabled()
    assert capfd.readouterr().err == said


def test_help_without_docstrings_says_why_it_is_short():
    help_text = output_of("-OO", "-m", "bahdanau_tf", "translate", "--help")
    assert "`python -OO` removes parts of this help" in help_text


def test_an_unknown_command_is_refused_without_a_traceback():
    result = run_python("-m", "bahdanau_tf", "dance")
    assert result.returncode != 0
    assert "dance" in result.stderr
    assert "Traceback" not in result.stderr
