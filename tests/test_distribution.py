"""Training by several replicas and processes equals training by one."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from letters import log_of
from worker import evaluate, run

from bahdanau_tf import Recipe, Translator
from bahdanau_tf.cli import defined_flags
from bahdanau_tf.training.cluster import strategy_of_environment
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.folder import check_alike
from bahdanau_tf.training.step import check_accumulates, rows_of_replica, strategy_of

WORKER = Path(__file__).with_name("worker.py")
LONGEST = 600  # seconds until a process is killed, on a busy machine
SHORT = {
    "optimizer": "adam",
    "learning_rate": 0.02,
    "batch_size": 8,
    "shuffle": "each_epoch",
    "max_norm": 0.5,  # gradients are clipped
    "average": 0.5,
    "epochs": 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """17 pairs of 1 to 6 words: batches of 8, 8 and 1."""
    folder = Path(tmp_path_factory.mktemp("text"))
    chance = np.random.default_rng(3)
    lines = [" ".join(chance.choice([*"abcdefgh"], chance.integers(1, 7))) for _ in range(17)]
    for name, part in (("train", lines), ("dev", lines[:5])):
        for side, change in (("a", str), ("b", str.upper)):
            text = "".join(f"{change(line)}\n" for line in part)
            (folder / f"{name}.{side}").write_text(text)
    return folder


def cluster_of(count: int) -> dict[str, list[str]]:
    """Addresses on this machine that are free now."""
    with contextlib.ExitStack() as until_known:
        taken = [until_known.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in taken]
    return {"worker": [f"127.0.0.1:{port}" for port in ports]}


@contextlib.contextmanager
def started(commands: list[list[str]], **options: Any) -> Iterator[list[subprocess.Popen[str]]]:
    """Starts the workers of a cluster; all are killed in the end."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "OMP_NUM_THREADS": "1",
    }
    cluster = cluster_of(len(commands)) if len(commands) > 1 else {}
    running = []
    try:
        for index, command in enumerate(commands):
            task = {"type": "worker", "index": index}
            told = json.dumps({"cluster": cluster, "task": task})
            running.append(
                subprocess.Popen(
                    command,
                    env={**environment, "TF_CONFIG": told},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                    **options,
                )
            )
        yield running
    finally:
        for one in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def ended(running: list[subprocess.Popen[str]]) -> list[SimpleNamespace]:
    """Waits for processes: their exit status and what they have said."""
    end = time.monotonic() + LONGEST
    found = []
    for one in running:
        output, errors = one.communicate(timeout=end - time.monotonic())
        found.append(SimpleNamespace(status=one.returncode, output=output, errors=errors))
    return found


def worker(folder: Path, name: str, **options: Any) -> list[str]:
    """The command of a worker; its model_dir has its name unless given."""
    given = {
        "folder": str(folder),
        "name": name,
        "model_dir": str(folder / name),
        "model": "mean",
        "recipe": SHORT,
        **options,
    }
    return [sys.executable, str(WORKER), json.dumps(given)]


def trained(folder: Path, *commands: list[str]) -> list[SimpleNamespace]:
    """What the workers of a training have said and written."""
    with started([*commands]) as running:
        found = ended(running)
    for one, command in zip(found, commands, strict=True):
        assert one.status == 0, one.errors[-3000:]
        name = json.loads(command[-1])["name"]
        with np.load(folder / f"{name}.npz") as file:
            one.saved = dict(file)
    return found


@pytest.fixture(scope="module")
def alone(folder) -> SimpleNamespace:
    """A training by this process on one device."""
    command = worker(folder, "alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DevSet, "evaluate", evaluate)
        patch.delenv("TF_CONFIG", raising=False)
        run(**json.loads(command[-1]))
    with np.load(folder / "alone.npz") as file:
        return SimpleNamespace(saved=dict(file))


def compare(found: SimpleNamespace, wanted: SimpleNamespace) -> None:
    """To the tolerance of sums in another order."""
    assert found.saved["steps"] == wanted.saved["steps"] == 6
    for name, value in wanted.saved.items():
        if name not in ("stopped_by", "seeds"):
            np.testing.assert_allclose(found.saved[name], value, rtol=2e-4, atol=2e-5, err_msg=name)


def test_two_replicas_train_as_one(folder, alone):
    """Lengths differ, and the last batch is one pair for two replicas."""
    (found,) = trained(folder, worker(folder, "mirrored", devices=2))
    compare(found, alone)


def test_two_processes_train_as_one(folder, alone):
    """The chief alone evaluates and writes; the callbacks of both know it."""
    names = ["chief", "other"]
    found = trained(folder, *(worker(folder, name) for name in names))
    for one in found:
        compare(one, alone)
    for name, value in found[0].saved.items():
        np.testing.assert_array_equal(found[1].saved[name], value, name)
    assert not (folder / "other").exists()
    logs = (log_of(folder / name) for name in ("chief", "alone"))
    for ours, wanted in zip(*logs, strict=True):
        for name in ("step", "train_loss", "dev_loss", "learning_rate"):
            assert ours[name] == pytest.approx(wanted[name], rel=1e-4)
    said = [x for x in found[1].errors.splitlines() if "127.0.0.1:" in x]
    assert said[-1].startswith("worker 1 of 2 (127.0.0.1:")
    assert "updates" not in found[1].errors


@pytest.mark.slow
def test_three_processes_train_as_one(folder):
    """RNNsearch, with batches of 7, 7 and 3 pairs."""
    options = {"model": "rnnsearch", "recipe": SHORT | {"batch_size": 7}}
    (one,) = trained(folder, worker(folder, "single", **options))
    names = ["first", "second", "third"]
    found = trained(folder, *(worker(folder, n, **options) for n in names))
    for other in found:
        compare(other, one)
    seeds = [other.saved["seeds"][:, 0] for other in found]
    np.testing.assert_array_equal(seeds[0], one.saved["seeds"][:, 0])
    assert len({*np.concatenate(seeds).tolist()}) == 3 * len(seeds[0])


@pytest.mark.slow
@pytest.mark.parametrize(("model", "killed"), [("mean", 2), ("rnnsearch", 0)])
def test_a_killed_worker_ends_all_and_the_same_command_goes_on(folder, model, killed):
    """To the weights of a training that was never interrupted."""
    options = {"model": model, "dropout": 0.1}
    names = [f"{model}-{number}" for number in range(3)]
    whole = trained(folder, *(worker(folder, f"whole-{n}", **options) for n in names))
    commands = [worker(folder, n, **options) for n in names]
    dying = [*commands]
    end = {"signal": signal.SIGKILL, "signal_at": 5}
    dying[killed] = worker(folder, names[killed], **options, **end)
    with started(dying) as running:
        found = ended(running)
    assert found.pop(killed).status == -signal.SIGKILL
    for one in found:
        assert one.status == 1
        assert "another worker has ended" in one.errors
    again = trained(folder, *commands)
    for one, wanted in zip(again, whole, strict=True):
        assert len(one.saved["losses"]) == 3  # of the second epoch
        np.testing.assert_array_equal(one.saved["seeds"], wanted.saved["seeds"])
        for name in one.saved:
            if name.startswith("arr_"):
                np.testing.assert_array_equal(one.saved[name], wanted.saved[name], name)


@pytest.mark.slow
def test_a_signal_to_one_worker_stops_all_at_the_same_update(folder, alone):
    names = ["s0", "s1"]
    told = {"signal": signal.SIGTERM, "signal_at": 2}
    found = trained(folder, worker(folder, "s0"), worker(folder, "s1", **told))
    for one in found:
        assert one.saved["stopped_by"] == "signal"
        assert one.saved["steps"] == 2
    for one in trained(folder, *(worker(folder, name) for name in names)):
        assert len(one.saved["losses"]) == 4
        for name in one.saved:
            if name.startswith("arr_"):
                np.testing.assert_allclose(one.saved[name], alone.saved[name], rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_time_ends_a_training_of_two_at_the_same_update(folder):
    """The rate follows the time, and is the same on both."""
    limit = {"minutes": 0.1, "schedule": "linear", "epochs": 1e5}
    options = {"recipe": SHORT | limit}
    one, other = trained(
        folder, worker(folder, "timed", **options), worker(folder, "timed-too", **options)
    )
    assert one.saved["stopped_by"] == "minutes"
    assert one.saved["steps"] > 0
    for name, value in one.saved.items():
        np.testing.assert_array_equal(other.saved[name], value, name)


def train_command(given: dict[str, object]) -> list[str]:
    flags = [f"--{name}={value}" for name, value in given.items()]
    return [sys.executable, "-m", "bahdanau_tf", "train", *flags]


@pytest.mark.slow
def test_a_worker_with_other_flags_is_refused(folder):
    """And the chief ends, too, with a sentence."""
    given = {
        "train_source": folder / "train.a",
        "train_target": folder / "train.b",
        "model_dir": folder / "refused",
        **{"recipe": "paper", "units": 8, "embedding_dim": 8},
    }
    command = train_command(given)
    with started([command, [*command, "--batch_size=9"]]) as running:
        chief, other = ended(running)
    assert other.status == 2
    said = "--batch_size is 9 at worker 1 and 80 at the chief, wanted"
    assert f"bahdanau-tf: train: {said}" in other.errors
    assert chief.status == 2
    assert "another worker has ended or cannot be" in chief.errors
    assert "Traceback" not in chief.errors + other.errors


@pytest.mark.slow
def test_the_command_trains_on_two_processes(folder):
    """The other reads what the chief has chosen from the text; it is silent."""
    given = {
        "train_source": folder / "train.a",
        "train_target": folder / "train.b",
        "dev_source": folder / "dev.a",
        "dev_target": folder / "dev.b",
        "model_dir": folder / "command",
        **{"tokenizer": "word", "units": 8, "embedding_dim": 8, "updates": 3},
    }
    command = train_command(given)
    with started([command, command]) as running:
        chief, other = ended(running)
    assert chief.status == 0, chief.errors
    assert other.status == 0, other.errors
    assert "3 updates, update limit reached" in chief.output
    assert "chosen to fit 17 sentence pairs" in chief.errors
    assert other.output == ""
    (said,) = other.errors.splitlines()
    assert said.startswith("worker 1 of 2 (127.0.0.1:")
    assert Translator.load(folder / "command").translate(["a b"])


def test_a_worker_that_waits_for_others_ends_at_an_interrupt():
    script = (
        "from bahdanau_tf.training.cluster import strategy_of_environment\n"
        "strategy_of_environment()\n"
    )
    waiting = [sys.executable, "-c", script]
    with started([waiting, ["true"]]) as running:
        # It ends also if it says something else.
        late = threading.Timer(LONGEST, running[0].kill)
        late.start()
        for line in running[0].stderr:
            if "waiting for 127.0.0.1:" in line:
                break
        time.sleep(1)
        running[0].send_signal(signal.SIGINT)
        assert ended(running)[0].status == -signal.SIGINT
        late.cancel()


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_each_row_belongs_to_one_replica(monkeypatch, rows, count):
    """A replica without a row of its own has one whose weights are 0."""
    ids = np.arange(rows * 2, dtype=np.int32).reshape(rows, 2) + 1
    batch = {"source": ids, "target": ids}, ids, np.ones_like(ids, np.float32)
    found: list[int] = []
    for number in range(count):
        replica = SimpleNamespace(num_replicas_in_sync=count, replica_id_in_sync_group=number)
        monkeypatch.setattr(tf.distribute, "get_replica_context", lambda one=replica: one)
        inputs, target, weights = rows_of_replica(batch)
        assert len(target) >= 1
        np.testing.assert_array_equal(inputs["source"], target)
        np.testing.assert_array_equal(inputs["target"], target)
        found += target.numpy()[weights.numpy() > 0].tolist()
    assert sorted(found) == ids.ravel().tolist()


def test_a_scope_around_train_is_refused():
    with (
        tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        pytest.raises(ValueError, match="it was called in a strat"),
    ):
        strategy_of(SimpleNamespace())


def test_several_batches_of_several_replicas_are_refused():
    one, two = (SimpleNamespace(num_replicas_in_sync=n) for n in (1, 2))
    check_accumulates(Recipe(accumulate=3), one)
    check_accumulates(Recipe(), two)
    with pytest.raises(ValueError, match="accumulate is 3 with 2 devices"):
        check_accumulates(Recipe(accumulate=3), two)


def test_other_settings_than_the_chiefs_are_refused():
    chiefs = {"recipe": {"batch_size": 8}, "training_text_checksum": "a"}
    chief = SimpleNamespace(number=1, text_from_chief=lambda _: json.dumps(chiefs))
    check_alike(chief, chiefs)  # type: ignore[arg-type]
    for change, said in (
        ({"recipe": {"batch_size": 9}}, "--batch_size is 9 at worker 1 and 8"),
        ({"training_text_checksum": "b"}, "worker 1 has another text"),
    ):
        with pytest.raises(ValueError, match=said):
            check_alike(chief, chiefs | change)  # type: ignore[arg-type]


PAGE = Path(__file__).parents[1] / "docs" / "scale_out.md"
# Stand-ins for programs: each writes a line, or does what Slurm would do.
PROGRAMS = {
    "bahdanau-tf": 'echo "$TF_CONFIG|$*" | tr -d "\\n" > told-$RANDOM$RANDOM',
    "scontrol": r"printf 'node-1\nnode-2\nnode-7\n'",
    "srun": 'shift; for n in 0 1 2; do SLURM_PROCID=$n "$@"; done',
}


def script_of(heading: str) -> str:
    """The shell script of a section of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"### {heading}\n")[1]
    start, end = "```shell\n", "```"
    if heading == "Kubernetes":
        start, end = "- |\n", "            volumes:"
    return textwrap.dedent(section.split(start)[1].split(end)[0])


@pytest.mark.parametrize(
    ("heading", "addresses"),
    [
        ("Several machines", ["localhost:2222", "localhost:2223"]),
        ("Slurm", ["node-1:2222", "node-2:2222", "node-7:2222"]),
        ("Kubernetes", [f"train-worker-0-{n}.train:2222" for n in range(3)]),
    ],
)
def test_the_launches_of_the_page_tell_each_worker_who_it_is(tmp_path, heading, addresses):
    """The scripts run with stand-ins for `bahdanau-tf` and for Slurm."""
    for name, body in PROGRAMS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = script_of(heading)
    runs = range(len(addresses)) if heading == "Kubernetes" else [0]
    for number in runs:
        subprocess.run(
            ["bash", "-ec", f"{script}\nwait"],
            cwd=tmp_path,
            env={**path, "JOB_COMPLETION_INDEX": str(number)},
            check=True,
            timeout=LONGEST,
        )
    found = []
    for told in tmp_path.glob("told-*"):
        config, _, words = told.read_text().partition("|")
        found.append(json.loads(config))
        flags = defined_flags("train")
        flags([*words.split()])
        assert flags.model_dir
        assert flags.dev_target
    assert sorted(one["task"]["index"] for one in found) == [*range(len(addresses))]
    for one in found:
        assert one["task"]["type"] == "worker"
        assert one["cluster"] == {"worker": addresses}


TWO = {"worker": ["a:1", "b:1"]}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("{", "it is not JSON"),
        ("[1]", "cluster is None, wanted a JSON object"),
        ({"cluster": [], "task": {}}, r"cluster is \[\], wanted"),
        ({"cluster": {"worker": "a:1"}}, "cluster.worker is 'a:1', wanted a l"),
        ({"cluster": TWO | {"ps": ["c:1"]}}, "the cluster has the job 'ps', w"),
        ({"cluster": TWO}, "task is None, wanted a JSON object"),
        ({"cluster": {"worker": ["a:1", "b"]}}, "an address is 'b', wanted h"),
        ({"cluster": {"worker": ["a:1", "a:1"]}}, "a:1 is there twice, want"),
        ({"cluster": TWO, "task": {"index": 1}}, "the task is None 1, wanted"),
        (
            {"cluster": TWO, "task": {"type": "worker", "index": 2}},
            r"the task is 'worker' 2, wanted one of the cluster, \('worker', 0",
        ),
        (
            {"cluster": TWO, "task": {"type": "worker", "index": "0"}},
            "the task is 'worker' '0', wanted",
        ),
    ],
)
def test_a_wrong_cluster_is_refused_in_a_sentence(monkeypatch, told, said):
    text = told if isinstance(told, str) else json.dumps(told)
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=f"^TF_CONFIG: {said}"):
        strategy_of_environment()


@pytest.mark.parametrize("told", ["", {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}])
def test_one_worker_is_no_cluster(monkeypatch, told):
    text = told if isinstance(told, str) else json.dumps(told)
    monkeypatch.setenv("TF_CONFIG", text)
    assert strategy_of_environment() is tf.distribute.get_strategy()
