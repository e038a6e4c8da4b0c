"""The arithmetic of docs/wmt14.md."""

import importlib
from pathlib import Path

import pytest

from bahdanau_tf import RNNSearch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def wmt14(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("wmt14")


def test_counted_weights_are_those_of_the_model(wmt14):
    size = wmt14.Size(5, 7, 6, 8, 40, 1, 1, "adam")
    model = RNNSearch(40, 40, 7, 5, 6, 8)
    assert wmt14.weight_count(size) == model.count_params()


def test_two_devices_send_a_gradient_each(wmt14):
    """A ring of n: each sends (n - 1) / n of it twice."""
    sent = [wmt14.reduced_bytes(1000, n) for n in (1, 2, 4)]
    assert sent == pytest.approx([0, 4000, 6000])


def test_the_page_has_what_the_program_prints(wmt14, capsys):
    wmt14.FLAGS(["wmt14.py", "--output=unused"], known_only=True)  # of lower_step, if imported
    wmt14.main([])
    page = (ROOT / "docs" / "wmt14.md").read_text(encoding="utf-8")
    rows = [line for line in capsys.readouterr().out.split("\n") if line.startswith("|")]
    assert rows
    for row in rows:
        assert f"\n{row}\n" in page
