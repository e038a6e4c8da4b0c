"""The notebooks of colab/: their form, and a run of each."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import keras
import pytest
from letters import stand_in_step
from notebooks import FOLDER
from notebooks import NOTEBOOKS
from notebooks import as_python
from notebooks import code_cells
from notebooks import read_notebook
from notebooks import run_notebook
from notebooks import source
from toys import search_eagerly

from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.training import loop

# Small sizes, by the names in the cell tagged `parameters`.
SMALL: dict[str, dict[str, Any]] = {
    "01_quick_start": {
        "sentences": 100,
        "held_out": 8,
        "epochs": 1.0,
        "units": 8,
    },
    "02_attention_step_by_step": {
        "sentences": 100,
        "epochs": 1.0,
        "units": 8,
    },
    "03_the_paper_in_small": {
        "sentences": 100,
        "epochs": 1.0,
        "units": 8,
        "test_pairs": 20,
        "report_flags": [
            "--train_flag=--epochs=0.02",
            "--train_flag=--units=8",
            "--max_length=10",
            "--beam_size=2",
            "--minutes=30",
        ],
    },
    "04_your_own_corpus": {
        "corpus": "",
        "target_language": "fr",
        "pairs": 60,
        "epochs": 1.0,
        "units": 8,
        "pieces": 360,
    },
    "05_export_and_serve": {"sentences": 100, "epochs": 1.0, "units": 8},
    "06_keras_developers": {"sentences": 160, "epochs": 1, "units": 8},
}
TRANSLATED = ("01_quick_start", "02_attention_step_by_step")
SMALL |= {f"{name}_ko": SMALL[name] for name in TRANSLATED}
# `make test-all` runs the others, too.
QUICK = TRANSLATED

every_notebook = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=lambda path: path.stem
)


def test_every_notebook_has_small_sizes() -> None:
    assert {path.stem for path in NOTEBOOKS} == SMALL.keys()


@every_notebook
def test_form_is_nbformat_4_5(path: Path) -> None:
    """The rules of nbformat 4.5 for code and Markdown cells."""
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
        assert cell["cell_type"] in ("code", "markdown")
        assert cell.keys() == wanted
        assert source(cell).strip()


@every_notebook
def test_stored_without_outputs(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert not cell["metadata"].keys() - {"tags"}


@every_notebook
def test_first_cell_says_how_long_it_takes(path: Path) -> None:
    first = source(read_notebook(path)["cells"][0])
    assert first.startswith("# ")
    assert re.search(r"\*\*(Time|걸리는 시간):\*\* .*\d+ ?(minute|분)", first)
    assert re.search(r"\d{4}-\d\d-\d\d", first)
    assert "TensorFlow" in first


@every_notebook
def test_installs_keep_the_installed_tensorflow(path: Path) -> None:
    """Each `pip install` names the installed version of TensorFlow."""
    text = "\n".join(source(c) for c in code_cells(read_notebook(path)))
    assert "keep = f\"tensorflow=={version('tensorflow')}\"" in text
    installs = [line for line in text.split("\n") if "pip install" in line]
    assert installs
    assert all('"{keep}"' in line for line in installs)


@every_notebook
def test_no_definition_has_more_than_ten_lines(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        text = as_python(source(cell))
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                body = lines[node.lineno - 1 : node.end_lineno]
                assert sum(bool(line.strip()) for line in body) <= 10, node.name


@every_notebook
def test_one_cell_is_tagged_parameters(path: Path) -> None:
    tagged = [
        cell
        for cell in code_cells(read_notebook(path))
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    assert len(tagged) == 1


@pytest.mark.parametrize("name", TRANSLATED)
def test_korean_code_equals_the_english_code(name: str) -> None:
    """The code is equal except for comments and printed strings."""

    def code(stem: str) -> list[str]:
        cells = code_cells(read_notebook(FOLDER / f"{stem}.ipynb"))
        trees = [ast.parse(as_python(source(cell))) for cell in cells]
        for call in (node for tree in trees for node in ast.walk(tree)):
            if ast.unparse(getattr(call, "func", call)) == "print":
                for node in ast.walk(call):
                    if isinstance(getattr(node, "value", None), str):
                        node.value = ""
        return [ast.dump(tree) for tree in trees]

    assert code(f"{name}_ko") == code(name)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.stem,
            marks=[] if path.stem in QUICK else [pytest.mark.slow],
        )
        for path in NOTEBOOKS
    ],
)
def test_every_cell_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if path.stem in QUICK:  # the same code in Korean runs without stand-ins
        monkeypatch.setattr(loop, "train_step", stand_in_step)
        search_eagerly(monkeypatch)
    if "corpus" in SMALL[path.stem]:
        write_corpus(tmp_path, train=100, dev=1, test=1)
    policy = keras.config.dtype_policy()
    try:
        run_notebook(path, SMALL[path.stem])
    finally:
        keras.config.set_dtype_policy(policy)
