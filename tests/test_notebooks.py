"""The notebooks of colab/: their form, and a run of each."""

import ast
import importlib.util
import re
import shlex
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import pytest
from comparisons import write_lines
from letters import stand_in_step
from notebooks import (
    FOLDER,
    NOTEBOOKS,
    as_python,
    code_cells,
    names_set,
    read_notebook,
    run_notebook,
    source,
)
from refusals import refused
from toys import search_eagerly

from bahdanau_tf import corpora
from bahdanau_tf.corpora import generate, write_corpus
from bahdanau_tf.training import update

# Small sizes, by the names in the cell tagged `parameters`.
QUICK = {"sentences": 100, "epochs": 1.0, "units": 8}
REPORT = ["--train_flag=--epochs=0.02", "--train_flag=--units=8", "--max_length=10"]
SMALL: dict[str, dict[str, Any]] = {
    "01_quick_start": {**QUICK, "held_out": 8},
    "02_attention_step_by_step": {
        **{**QUICK, "dropout": 0.0, "source_length": 7},
        **{"annotation_size": 3, "state_size": 6, "alignment_units": 2},
    },
    "03_the_paper_in_small": {
        **QUICK,
        "test_pairs": 20,
        "report_flags": [*REPORT, "--beam_size=2", "--minutes=30"],
    },
    "04_your_own_corpus": {
        **{"corpus": "", "target_language": "fr", "options": {"units": 8, "updates": 1}},
        **{"pieces": 360, "units": 8, "updates": 1},
    },
    "05_export_and_serve": QUICK,
    "06_keras_developers": {"sentences": 160, "epochs": 1, "units": 8},
    "07_the_whole_model_by_hand": QUICK,
    "08_from_the_tensorflow_tutorial": {"sentences": 100, "units": 8, "epochs": 1, "steps": 5},
    "09_english_to_korean": {"options": {"units": 8, "updates": 1}},
    "10_exercises": {},
    "11_short_strings": {"options": {"units": 8, "updates": 1}},
}
TRANSLATED = [path for path in NOTEBOOKS if path.stem[-3:] in ("_ko", "_ja")]
# The code of the translations is equal, so only the English notebooks run.
ENGLISH = [path for path in NOTEBOOKS if path not in TRANSLATED]


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


every_notebook = each(NOTEBOOKS)


def test_every_notebook_has_small_sizes():
    assert {path.stem for path in ENGLISH} == SMALL.keys(), f"SMALL of {__file__}"


@every_notebook
def test_form_is_nbformat_4_5(path):
    """The rules of nbformat 4.5 for code and Markdown cells; there are no outputs."""
    notebook = read_notebook(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in notebook["cells"]]
    assert len({*names}) == len(names)
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        wanted = {"id", "cell_type", "metadata", "source"}
        if cell["cell_type"] == "code":
            wanted |= {"outputs", "execution_count"}
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            assert not cell["metadata"].keys() - {"tags", "cellView"}
        assert cell["cell_type"] in ("code", "markdown")
        assert cell.keys() == wanted
        assert source(cell).strip()


@every_notebook
def test_first_cell_says_how_long_it_takes_and_the_last_how_it_was_measured(path):
    first, *_, last = map(source, read_notebook(path)["cells"])
    assert first.startswith("# ")
    assert f"/OWNER/REPOSITORY/blob/main/colab/{path.name}) -->" in first  # the badge, hidden
    assert re.search(r"\*\*(Time|걸리는 시간|所要時間):\*\* .*\d+ ?(minute|분|分)", first)
    assert re.search(r"\d{4}-\d\d-\d\d(.|\n)*TensorFlow", last.split("\n\n")[-1])


QUICK_START = FOLDER / "01_quick_start.ipynb"
WHEEL = "bahdanau_tf-0.2.0-py3-none-any.whl"
ADDRESS = f"https://example.com/{WHEEL}"
KEEP = f"tensorflow=={version('tensorflow')}"


@pytest.fixture
def install(tmp_path, monkeypatch) -> Callable[..., tuple[list[str], int]]:
    """Runs a notebook's cell `install` in an empty folder.

    `wheel` is what the reader writes into it, and `uploads` are the files that the reader chooses
    in Colab's dialog; None outside Colab. Returns what `%pip install` is given besides --quiet, the
    package's extra and the version of TensorFlow; and how often the dialog was opened.
    """
    (tmp_path / "colab").mkdir()
    monkeypatch.chdir(tmp_path / "colab")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def run_cell(
        wheel: str = "", uploads: list[str] | None = None, path: Path = QUICK_START
    ) -> tuple[list[str], int]:
        installed: list[str] = []
        dialogs = []

        def pip(line: str) -> None:
            quiet, package, *others = shlex.split(line)
            assert [quiet, *others] == ["--quiet", "bahdanau_tf[plot]", KEEP]
            installed.append(package)

        def upload() -> None:
            dialogs.append("opened")
            for name in uploads or ():
                Path(name).touch()

        files = SimpleNamespace(upload=upload)
        colab = None if uploads is None else SimpleNamespace(files=files)
        monkeypatch.setitem(sys.modules, "google.colab", colab)
        (cell,) = (cell for cell in code_cells(read_notebook(path)) if cell["id"] == "install")
        text = source(cell).replace('WHEEL = ""', f"WHEEL = {wheel!r}", 1)
        # IPython fills the braces of a `%` line in, as an f-string does.
        text = re.sub(r"%pip install (.*)", r"pip(rf'\1')", text)
        try:
            exec(text, {"pip": pip})
        except SystemExit:
            assert (installed, len(dialogs)) == ([], int(uploads is not None))
            raise
        return installed, len(dialogs)

    return run_cell


@pytest.mark.parametrize("wheel", [ADDRESS, f"/content/my drive/{WHEEL}", "bahdanau_tf"])
def test_install_prefers_what_the_reader_gives(install, wheel):
    Path(WHEEL).touch()
    assert install(wheel, [WHEEL]) == ([wheel], 0)


def test_install_asks_for_a_wheel_in_colab(install):
    assert install(uploads=["notes.txt", WHEEL]) == ([WHEEL], 1)


@pytest.mark.parametrize("uploads", [[], ["notes.txt"]])
def test_install_says_what_to_do_if_no_wheel_was_chosen(install, uploads):
    refused(lambda: install(uploads=uploads), "WHEEL", by=SystemExit)


@every_notebook
def test_install_says_what_to_do_where_there_is_nothing(path, install):
    refused(lambda: install(path=path), "bahdanau_tf", "WHEEL", by=SystemExit)


@every_notebook
def test_cells_that_install_are_equal(path):
    """Except for comments and texts; no other cell installs anything. Colab hides the code."""
    (cell,) = (cell for cell in code_cells(read_notebook(path)) if "%pip" in source(cell))
    assert "%pip install" in source(cell)
    assert source(cell).startswith("# @title ")
    assert cell["metadata"] == {"cellView": "form"}
    first = code_cells(read_notebook(QUICK_START))[0]
    assert without_texts(cell) == without_texts(first)


@every_notebook
def test_no_definition_has_more_than_ten_lines(path):
    for cell in code_cells(read_notebook(path)):
        text = as_python(source(cell))
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                body = lines[node.lineno - 1 : node.end_lineno]
                assert sum(bool(line.strip()) for line in body) <= 10, node.name


@every_notebook
def test_one_cell_sets_the_parameters_and_no_other(path):
    """A cell that is run again would get another value than the reader's."""
    names = {True: [], False: []}
    for cell in code_cells(read_notebook(path)):
        is_tagged = "parameters" in cell["metadata"].get("tags", [])
        names[is_tagged].append(names_set(source(cell)))
    parameters = set().union(*names[True])
    assert len(names[True]) == 1
    assert not parameters & set().union(*names[False])


def without_texts(cell: dict[str, Any]) -> str:
    """The code without comments, docstrings, what it prints, and texts of parameters."""
    text = source(cell)
    if "parameters" in cell["metadata"].get("tags", []):
        text = re.sub('"[^"]*"', '""', text)
    tree = ast.parse(re.sub(r"(?m)^( *)%(.+)$", r"\1magic(r'\2')", text))
    for part in ast.walk(tree):
        is_docstring = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
        if is_docstring or ast.unparse(getattr(part, "func", part)) in ("print", "SystemExit"):
            for node in ast.walk(part):
                if isinstance(getattr(node, "value", None), str):
                    node.value = ""
    return ast.dump(tree)


@each(TRANSLATED)
def test_a_translation_has_the_english_code_and_takes_as_long(path):
    """The last paragraphs of the first and of the last cell have the same numbers."""
    codes, numbers = [], []
    for notebook in map(read_notebook, (path, FOLDER / f"{path.stem[:-3]}.ipynb")):
        codes.append([without_texts(cell) for cell in code_cells(notebook)])
        ends = [source(notebook["cells"][n]).split("\n\n")[-1] for n in (0, -1)]
        numbers.append([sorted(re.findall(r"\d+", end)) for end in ends])
    assert codes[0] == codes[1]
    assert numbers[0] == numbers[1]


@each(TRANSLATED)
def test_a_translation_shows_training_and_verdicts_in_its_language(path):
    code = "\n".join(map(source, code_cells(read_notebook(path))))
    if re.search(r"\bimport .*\btrain\b|bt\.fit|exercises", code):
        name = re.search(r"set_language\((\w+)\)", code)[1]
        assert f'\n{name} = "{path.stem[-2:]}"  # ' in f"\n{code}"


def stand_in_for_download(corpus: Path, folder: Path) -> None:
    """Makes the folder of a public corpus as if it had been downloaded."""
    folder.mkdir()
    for language in ("en", "ko"):
        train, dev = (
            (corpus / f"{split}.{language}").read_text("utf-8").split("\n")
            for split in ("train", "dev")
        )
        for split, lines in (("train", train[:400]), ("dev", dev[:10]), ("test", dev[10:60])):
            write_lines(folder / f"{split}.{language}", lines)


def run(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a notebook in its small sizes."""
    monkeypatch.chdir(folder)
    if "corpus" in SMALL[path.stem]:
        write_corpus(folder, train=100, dev=1, test=1)
    policy = keras.config.dtype_policy()
    try:
        run_notebook(path, SMALL[path.stem])
    finally:
        keras.config.set_dtype_policy(policy)


@each(ENGLISH[:2])
def test_every_cell_runs_with_a_stand_in_for_the_update(path, tmp_path, monkeypatch):
    monkeypatch.setattr(update, "train_step", stand_in_step)
    monkeypatch.setattr(corpora, "generate", lambda _, *x, **more: generate(20, *x, **more))
    # The other notebook compares its own search, of the usual length, with the translator's.
    search_eagerly(monkeypatch, max_length=3 if path == QUICK_START else None)
    run(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:plot. no installed font has")
@each(ENGLISH)
def test_every_cell_runs(path, tmp_path, monkeypatch, shared):
    if path.stem == "09_english_to_korean":
        corpus = shared("data/tatoeba-en-ko")
        stand_in_for_download(corpus, tmp_path / corpus.name)
    if path.stem == "11_short_strings":
        lines = (shared("data/g2p-ko") / "train.tsv").read_text("utf-8").split("\n")
        write_lines(tmp_path / "train.tsv", lines[:600])
    run(path, tmp_path, monkeypatch)


@pytest.mark.slow
def test_quick_start_shows_what_it_says(tmp_path, monkeypatch):
    """In full size; the truth is that of the grammar."""
    monkeypatch.chdir(tmp_path)
    values = run_notebook(QUICK_START, {})
    assert values["attention"] <= values["diagonal"] / 2
    assert values["entropy"] <= values["equal"] / 2
    shown = values["translation"]
    assert shown.text == "Le cheval blanc de la reine ne voit pas l'homme intelligent."
    aligned = {(shown.source_tokens[i], shown.tokens[j]) for i, j in shown.hard_alignment}
    pairs = "horse cheval, white blanc, queen reine, see voit, man homme, clever intelligent"
    assert aligned >= {tuple(pair.split()) for pair in pairs.split(", ")}


@pytest.mark.slow
def test_keras_developers_end_with_translations(tmp_path, monkeypatch):
    """In full size; the truth is the grammar's own translations."""
    monkeypatch.chdir(tmp_path)
    values = run_notebook(FOLDER / "06_keras_developers.ipynb", {})
    assert len(values["references"]) == 100
    assert values["right"] >= 70
