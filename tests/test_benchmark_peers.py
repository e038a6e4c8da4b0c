"""benchmarks/peers: the parts that need no other toolkit."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.peers")


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks" / "peers")
    return importlib.import_module("job")


def some_pairs(count: int) -> list[tuple[list[str], list[str]]]:
    chance = random.Random(3)
    return [
        ([f"a{n}"] * chance.randint(1, 30), [f"b{n}"] * chance.randint(1, 30)) for n in range(count)
    ]


def test_unknown_peers_are_named(peers: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--peers has sockeye, moses, wanted"):
        peers.check_peers(["marian", "sockeye", "moses"])
    with pytest.raises(ValueError, match="--peers has sockeye, wanted"):
        peers.measure("sockeye", "training", tmp_path)
    with pytest.raises(ValueError, match="job is 'singing', wanted one of"):
        peers.measure("marian", "singing", tmp_path)
    assert not list(tmp_path.iterdir())  # nothing was installed


def test_every_peer_has_a_script(peers: Any) -> None:
    folder = Path(peers.__file__).parent
    for name in peers.PEERS:
        assert (folder / f"{name}_job.py").exists()


def test_batches_hold_each_pair_once_and_similar_lengths(peers: Any) -> None:
    pairs = some_pairs(403)
    ordered = peers.in_batches(pairs, 20, 2)
    assert len(ordered) == 2 * 400
    first = [pair[0][0] for pair in ordered[:400]]
    second = [pair[0][0] for pair in ordered[400:]]
    assert len(set(first)) == len(set(second)) == 400
    assert first != second
    lengths = [len(target) for _, target in ordered]
    spread = [
        max(lengths[start : start + 20]) - min(lengths[start : start + 20])
        for start in range(0, 800, 20)
    ]
    assert max(spread) <= 6  # 29 if batches were drawn at random


def test_frequent_words_come_first_and_are_limited(peers: Any) -> None:
    text = [["b", "a", "b"], ["c", "b", "a"]]
    assert peers.frequent_words(text, 2) == ["b", "a"]


def test_training_data_is_read_back_and_repeated(peers: Any, job: Any, tmp_path: Path) -> None:
    pairs = [(["à", "b"], ["1"]), (["c"], ["2", "3"]), (["d"], ["4"])]
    words = [["b", "à", "c", "d"], ["1", "2", "3", "4"]]
    peers.write_data(tmp_path, pairs, words)
    assert job.read_vocabulary(tmp_path, "source") == words[0]
    settings = SimpleNamespace(data=str(tmp_path), batch=3, updates=2)
    source, target = zip(*pairs, strict=True)
    assert list(job.batches(settings)) == [(list(source), list(target))] * 2


def run_job(
    job: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, Any],
    **functions: Any,
) -> dict[str, float]:
    """The result that a peer's script would print."""
    given = {"train": None, "load": None} | functions
    monkeypatch.setattr(sys, "argv", ["peer_job.py", json.dumps(settings)])
    job.main(given["train"], given["load"])
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_training_excludes_warm_up_updates(
    peers: Any,
    job: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pairs = [(["x"], ["y"] * n) for n in (9, 9, 1, 2, 3, 4)]
    peers.write_data(tmp_path, pairs, [["x"], ["y"]])
    settings = {"job": "training", "data": str(tmp_path), "batch": 2, "updates": 3, "warm_up": 1}

    def train(given: SimpleNamespace) -> Iterator[float]:
        given.peak_gib = 99.0  # as if measured in another process
        yield from (100.0, 101.0, 104.0)

    figures = run_job(job, monkeypatch, capsys, settings, train=train)
    # Two updates in 4 seconds: words 1 + 2 and 3 + 4, and four `</s>`.
    assert figures["words_per_second"] == pytest.approx(14 / 4)
    assert figures["seconds_per_update"] == pytest.approx(2)
    assert figures["peak_gib"] == 99.0


def test_decoding_translates_all_sentences_sorted_by_length(
    job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        seen.append([len(words) for words in sentences])
        return [words * 2 for words in sentences]

    path = tmp_path / "sentences"
    path.write_text("a b c\na\na b c d e\na b\na b c d\n")
    figures = run_job(
        job,
        monkeypatch,
        capsys,
        {"job": "decoding", "sentences": str(path), "batch": 2},
        load=lambda _: translate,
    )
    assert seen == [[1, 2], [1, 2], [3, 4], [5]]  # warm-up first
    assert figures["words_per_sentence"] == pytest.approx(2 * 15 / 5)
    assert figures["startup_seconds"] > 0
    assert 0 < figures["peak_gib"] < 99
