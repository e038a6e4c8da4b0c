"""The parts of benchmarks/ that need neither another toolkit nor a GPU."""

import datetime
import importlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from absl import flags
from processes import run_python
from refusals import refused

from bahdanau_tf import RNNSearch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    """Imports a module of benchmarks/, or of its parent or peers/, by name."""
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("benchmarks/peers", "benchmarks", ""):
            patch.syspath_prepend(ROOT / folder)
        yield importlib.import_module
    if "table" in flags.FLAGS:
        flags.FLAGS.__delattr__("table")


@pytest.fixture
def peers(module) -> Any:
    return module("benchmarks.peers")


def test_unknown_peers_are_named(peers, tmp_path):
    refused(lambda: peers.check_peers(["marian", "sockeye", "moses"]), "--peers", "sockeye")
    refused(lambda: peers.measure("sockeye", "training", tmp_path), "--peers", "sockeye")
    refused(lambda: peers.measure("marian", "singing", tmp_path), "'singing'", "job")
    assert not list(tmp_path.iterdir())  # nothing was installed
    folder = Path(peers.__file__).parent
    assert all((folder / f"{name}_job.py").exists() for name in peers.PEERS)


def test_what_is_typed_around_a_line_is_taken_off_its_translation(module):
    typed = module("typed")
    line = "I can't see Tom."
    for frame, around in typed.FRAMED.values():
        assert around.sub("", frame.format("Il dort")) == "Il dort"
    changed = [change(line) for change in typed.WAYS.values()][1:]
    wanted = ["i can't see tom.", "i can't see tom", "I CAN'T SEE TOM.", "I Can't See Tom."]
    assert changed == [*wanted, line]
    assert typed.WAYS["one word in CAPITALS"]("a red cat sleeps") == "a red cat SLEEPS"


def test_what_arrives_unchanged_is_counted_by_kind(module):
    """A French translation may write numbers differently; words of the sentence count apart."""
    copying = module("copying")
    sentences, others = ([*copying.probes(seed, 300)] for seed in (1, 2))
    assert sentences == [*copying.probes(1, 300)]
    japanese = [*copying.probes(1, 300, "ja")]
    assert [x.source for x in japanese] == [x.source for x in sentences]
    assert not any("".join(x.words).isascii() for x in japanese)
    first, second = (
        {token for x in probes for _, token in x.tokens} for probes in (sentences, others)
    )
    assert len(first & second) < 0.1 * len(first)
    assert all(token in x.source for x in sentences for _, token in x.tokens)
    copied = copying.shares(sentences, [x.source for x in sentences])
    assert {*copied} == {*copying.KINDS, "all", "words"}
    assert {x.split(" of ")[0] for x in [*copied.values()][:-1]} == {"100.0%"}
    nothing = copying.shares(sentences, [""] * 300)
    assert {x.split(" of ")[0] for x in nothing.values()} == {"0.0%"}
    for kind, token, translation, wanted in (
        ("time", "9:45", "Il est 9 h 45.", True),
        ("price", "$3.50", "Ça coûte 3,50 $.", True),
        ("number", "14000", "14 000 arbres", True),
        ("number", "347", "37 arbres", False),
        ("number", "347", "3475 arbres", False),
        ("version", "2.14.3", "la version 2.14", False),
        ("name", "Zobamuk", "Zobamuka dort.", False),
        ("name", "Zobamuk", "Zobamuk\u306f\u5bdd\u308b\u3002", True),
        ("file", "zobamuk7.csv", "« zobamuk7.csv »", True),
    ):
        assert copying.arrives(kind, token, translation) is wanted


def test_batches_hold_each_pair_once_and_similar_lengths(peers):
    chance = random.Random(3)
    pairs = [
        ([f"a{n}"] * chance.randint(1, 30), [f"b{n}"] * chance.randint(1, 30)) for n in range(403)
    ]
    ordered = peers.in_batches(pairs, 20, 2)
    assert len(ordered) == 2 * 400
    first, second = ([pair[0][0] for pair in part] for part in (ordered[:400], ordered[400:]))
    assert len(set(first)) == len(set(second)) == 400
    assert first != second
    lengths = [len(target) for _, target in ordered]
    batches = [lengths[start : start + 20] for start in range(0, 800, 20)]
    assert max(max(batch) - min(batch) for batch in batches) <= 6  # 29 if drawn at random


def test_training_data_is_read_back_and_repeated(peers, module, tmp_path):
    assert peers.frequent_words([["b", "a", "b"], ["c", "b", "a"]], 2) == ["b", "a"]
    pairs = [(["à", "b"], ["1"]), (["c"], ["2", "3"]), (["d"], ["4"])]
    words = [["b", "à", "c", "d"], ["1", "2", "3", "4"]]
    peers.write_data(tmp_path, pairs, words)
    job = module("job")
    assert job.read_vocabulary(tmp_path, "source") == words[0]
    settings = SimpleNamespace(data=str(tmp_path), batch=3, updates=2)
    source, target = zip(*pairs, strict=True)
    assert list(job.batches(settings)) == [(list(source), list(target))] * 2


@pytest.fixture
def run_job(module, monkeypatch, capsys) -> Any:
    """Runs a peer's script with functions in place of the peer; returns what it prints."""

    def run(settings: dict[str, Any], train: Any = None, load: Any = None) -> dict[str, float]:
        monkeypatch.setattr(sys, "argv", ["peer_job.py", json.dumps(settings)])
        module("job").main(train, load)
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_training_excludes_warm_up_updates(peers, run_job, tmp_path):
    pairs = [(["x"], ["y"] * n) for n in (9, 9, 1, 2, 3, 4)]
    peers.write_data(tmp_path, pairs, [["x"], ["y"]])

    def train(job: SimpleNamespace) -> Iterator[float]:
        job.peak_gib = 99.0  # as if measured in another process
        yield from (100.0, 101.0, 104.0)

    settings = {"job": "training", "data": str(tmp_path), "batch": 2, "updates": 3, "warm_up": 1}
    figures = run_job(settings, train=train)
    # Two updates in 4 seconds: words 1 + 2 and 3 + 4, and four `</s>`.
    assert figures["words_per_second"] == pytest.approx(14 / 4)
    assert figures["seconds_per_update"] == pytest.approx(2)
    assert figures["peak_gib"] == 99.0


def test_decoding_translates_all_sentences_sorted_by_length(run_job, tmp_path):
    seen = []

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        seen.append([len(words) for words in sentences])
        return [words * 2 for words in sentences]

    path = tmp_path / "sentences"
    path.write_text("a b c\na\na b c d e\na b\na b c d\n")
    settings = {"job": "decoding", "sentences": str(path), "batch": 2}
    figures = run_job(settings, load=lambda _: translate)
    assert seen == [[1, 2], [1, 2], [3, 4], [5]]  # warm-up first
    assert figures["words_per_sentence"] == pytest.approx(2 * 15 / 5)
    assert figures["startup_seconds"] > 0
    assert 0 < figures["peak_gib"] < 99


def test_rows_with_goals_are_added_to_one_table(module, tmp_path, monkeypatch):
    table, path = module("table"), tmp_path / "bench.md"
    monkeypatch.setattr(table, "FLAGS", SimpleNamespace(table=path))
    rows = {
        "| speed | 2 | at least 2 | no |": ("speed", 1.999, "", 2.0),
        "| speed | 2 | at least 2 | yes |": ("speed", 2.0, "", 2.0),
        "| load | 0.5 s | at most 1 | yes |": ("load", 0.5, "s", None, 1.0),
        "| load | 1.04 s | at most 1 | no |": ("load", 1.04, "s", None, 1.0),
        "| rate | 12,346 words/s |  |  |": ("rate", 12345.6, "words/s"),
    }
    first, *others = (table.Figure(*figure) for figure in rows.values())
    table.add([first])
    table.add(others)
    head, *lines = path.read_text("utf-8").split("\n")
    assert head.startswith(f"{datetime.date.today()}, ")
    assert "tensorflow 2." in head
    assert lines == ["", "| figure | measured | goal | met |", "|---|---|---|---|", *rows, ""]


@pytest.mark.slow
def test_updates_are_measured_plain_and_compiled(tmp_path):
    """The same update of the same model has the same loss both ways."""
    path = tmp_path / "results.jsonl"
    cases = ["tiny:8:float32", "tiny:8:float32:xla", "tiny:8:no_dtype"]
    words = ["steps", "--seconds=0", f"--cases={','.join(cases)}", f"--output={path}"]
    done = run_python(ROOT / "benchmarks/gpu_measure.py", *words, CUDA_VISIBLE_DEVICES="-1")
    assert done.returncode == 0, done.stderr[-3000:]
    plain, compiled, failed = map(json.loads, path.read_text("utf-8").splitlines())
    assert [plain["case"], compiled["case"], failed["case"]] == cases
    assert compiled["first_loss"] == pytest.approx(plain["first_loss"], rel=1e-5)
    for figures in (plain, compiled):
        assert figures["words_per_second"] == pytest.approx(8 * 15 / figures["seconds"], rel=1e-3)
        assert 0 < figures["share"] < 1
    assert "no_dtype" in failed["error"]


def test_all_that_is_watched_for_a_kill_exists(module):
    for owner, attribute in module("watched").PARTS.values():
        assert callable(getattr(owner, attribute))


@pytest.fixture
def wmt14(module) -> Any:
    """The arithmetic of docs/wmt14.md."""
    return module("wmt14")


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
