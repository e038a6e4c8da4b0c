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
from comparisons import all_equal
from letters import log_of, stand_in_evaluate
from processes import LONGEST, variables
from refusals import refused
from worker import run

from bahdanau_tf import Translator
from bahdanau_tf.commands.main import defined_flags
from bahdanau_tf.optimizers import SGD
from bahdanau_tf.training import Training, callbacks, loop
from bahdanau_tf.training.cluster import strategy_of, strategy_of_environment
from bahdanau_tf.training.folder import check_alike
from bahdanau_tf.training.update import rows_of_replica

WORKER = Path(__file__).parents[1] / "worker.py"
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
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return {"worker": [f"127.0.0.1:{taken.getsockname()[1]}" for taken in sockets]}


@contextlib.contextmanager
def started(commands: list[list[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Starts the workers of a cluster; all are killed in the end."""
    cluster = cluster_of(len(commands)) if len(commands) > 1 else {}
    running = []
    try:
        for index, command in enumerate(commands):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": cluster, "task": task})
            running.append(
                subprocess.Popen(
                    command,
                    env=variables(OMP_NUM_THREADS="1", TF_CONFIG=config),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
        yield running
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ended(running: list[subprocess.Popen[str]]) -> list[SimpleNamespace]:
    """Waits for processes: their exit status and what they have written."""
    end = time.monotonic() + LONGEST
    results = []
    for process in running:
        output, errors = process.communicate(timeout=end - time.monotonic())
        results.append(SimpleNamespace(status=process.returncode, output=output, errors=errors))
    return results


def worker(folder: Path, name: str, **options: Any) -> list[str]:
    """The command of a worker; its model_dir has its name unless given."""
    settings = {"folder": str(folder), "name": name, "model_dir": str(folder / name)}
    settings |= {"model": "mean", "recipe": SHORT, **options}
    return [sys.executable, str(WORKER), json.dumps(settings)]


def trained(folder: Path, *commands: list[str]) -> list[SimpleNamespace]:
    """What the workers of a training have written."""
    with started([*commands]) as running:
        workers = ended(running)
    for result, command in zip(workers, commands, strict=True):
        assert result.status == 0, result.errors[-3000:]
        result.saved = saved_by(command)
    return workers


def saved_by(command: list[str]) -> dict[str, np.ndarray]:
    settings = json.loads(command[-1])
    with np.load(f"{settings['folder']}/{settings['name']}.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def alone(folder) -> SimpleNamespace:
    """A training by this process on one device."""
    command = worker(folder, "alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "evaluate", stand_in_evaluate)
        patch.delenv("TF_CONFIG", raising=False)
        run(**json.loads(command[-1]))
    return SimpleNamespace(saved=saved_by(command))


def compare(result: SimpleNamespace, wanted: SimpleNamespace) -> None:
    """To the tolerance of sums in another order."""
    assert result.saved["steps"] == wanted.saved["steps"] == 6
    for name, value in wanted.saved.items():
        if name not in ("stopped_by", "seeds"):
            np.testing.assert_allclose(
                result.saved[name], value, rtol=2e-4, atol=2e-5, err_msg=name
            )


def compare_weights(result: SimpleNamespace, wanted: SimpleNamespace, **tolerance: float) -> None:
    for name, value in result.saved.items():
        if name.startswith("arr_"):
            np.testing.assert_allclose(value, wanted.saved[name], **tolerance, err_msg=name)


def test_two_replicas_train_as_one(folder, alone):
    """Lengths differ, and the last batch is one pair for two replicas."""
    (result,) = trained(folder, worker(folder, "mirrored", devices=2))
    compare(result, alone)


def test_two_processes_train_as_one(folder, alone):
    """The chief alone evaluates and writes; the callbacks of both know it."""
    chief, other = trained(folder, worker(folder, "chief"), worker(folder, "other"))
    for result in (chief, other):
        compare(result, alone)
    for name, value in chief.saved.items():
        np.testing.assert_array_equal(other.saved[name], value, name)
    assert not (folder / "other").exists()
    logs = (log_of(folder / name) for name in ("chief", "alone"))
    for ours, wanted in zip(*logs, strict=True):
        for name in ("step", "train_loss", "dev_loss", "learning_rate"):
            assert ours[name] == pytest.approx(wanted[name], rel=1e-4)
    messages = [line for line in other.errors.splitlines() if "127.0.0.1:" in line]
    assert messages[-1].startswith("worker 1 of 2 (127.0.0.1:")
    assert "updates" not in other.errors


@pytest.mark.slow
def test_three_processes_train_as_one(folder):
    """RNNsearch, with batches of 7, 7 and 3 pairs."""
    options = {"model": "rnnsearch", "recipe": SHORT | {"batch_size": 7}}
    (single,) = trained(folder, worker(folder, "single", **options))
    names = ["first", "second", "third"]
    workers = trained(folder, *(worker(folder, name, **options) for name in names))
    for result in workers:
        compare(result, single)
    seeds = [result.saved["seeds"][:, 0] for result in workers]
    np.testing.assert_array_equal(seeds[0], single.saved["seeds"][:, 0])
    assert len({*np.concatenate(seeds).tolist()}) == 3 * len(seeds[0])


@pytest.mark.slow
@pytest.mark.parametrize(("model", "killed"), [("mean", 2), ("rnnsearch", 0)])
def test_a_killed_worker_ends_all_and_the_same_command_resumes(folder, model, killed):
    """To the weights of a training that was never interrupted."""
    options = {"model": model, "dropout": 0.1}
    names = [f"{model}-{number}" for number in range(3)]
    whole = trained(folder, *(worker(folder, f"whole-{n}", **options) for n in names))
    commands = [worker(folder, n, **options) for n in names]
    dying = [*commands]
    end = {"signal": signal.SIGKILL, "signal_at": 5}
    dying[killed] = worker(folder, names[killed], **options, **end)
    with started(dying) as running:
        workers = ended(running)
    assert workers.pop(killed).status == -signal.SIGKILL
    for result in workers:
        assert result.status == 1
        assert "another worker has ended" in result.errors
    for result, wanted in zip(trained(folder, *commands), whole, strict=True):
        assert len(result.saved["losses"]) == 3  # of the second epoch
        np.testing.assert_array_equal(result.saved["seeds"], wanted.saved["seeds"])
        compare_weights(result, wanted, rtol=0)


@pytest.mark.slow
def test_a_signal_to_one_worker_stops_all_at_the_same_update(folder, alone):
    stop = {"signal": signal.SIGTERM, "signal_at": 2}
    for result in trained(folder, worker(folder, "s0"), worker(folder, "s1", **stop)):
        assert result.saved["stopped_by"] == "signal"
        assert result.saved["steps"] == 2
    for result in trained(folder, worker(folder, "s0"), worker(folder, "s1")):
        assert len(result.saved["losses"]) == 4
        compare_weights(result, alone, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_time_ends_a_training_of_two_at_the_same_update(folder):
    """The rate follows the time, and is the same on both."""
    recipe = SHORT | {"minutes": 0.1, "schedule": "linear", "epochs": 1e5, "patience": 10**9}
    first, second = trained(
        folder, *(worker(folder, name, recipe=recipe) for name in ("timed", "timed-too"))
    )
    assert first.saved["stopped_by"] == "minutes"
    assert first.saved["steps"] > 0
    for name, value in first.saved.items():
        np.testing.assert_array_equal(second.saved[name], value, name)


def train_command(folder: Path, **flags: object) -> list[str]:
    """A training of a small model named `model_dir` on the text of the folder."""
    sides = {"train_source": folder / "train.a", "train_target": folder / "train.b"}
    flags = {**sides, "units": 8, "embedding_dim": 8, **flags}
    flags["model_dir"] = folder / str(flags["model_dir"])
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [sys.executable, "-m", "bahdanau_tf", "train", *words]


@pytest.mark.slow
def test_the_command_trains_on_two_processes(folder):
    """The other reads what the chief has chosen from the text; it is silent."""
    dev = {"dev_source": folder / "dev.a", "dev_target": folder / "dev.b"}
    command = train_command(folder, model_dir="command", **dev, tokenizer="word", updates=3)
    with started([command, command]) as running:
        chief, other = ended(running)
    assert chief.status == 0, chief.errors
    assert other.status == 0, other.errors
    assert "3 updates, update limit reached" in chief.output
    assert "chosen to fit 17 pairs" in chief.errors
    assert other.output == ""
    (message,) = other.errors.splitlines()
    assert message.startswith("worker 1 of 2 (127.0.0.1:")
    assert Translator.load(folder / "command").translate(["a b"])


def test_a_worker_that_waits_for_others_ends_at_an_interrupt():
    script = (
        "from bahdanau_tf.training.cluster import strategy_of_environment\n"
        "strategy_of_environment()\n"
    )
    with started([[sys.executable, "-c", script], ["true"]]) as running:
        # It ends even if it writes something else.
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
    kept: list[int] = []
    for number in range(count):
        replica = SimpleNamespace(num_replicas_in_sync=count, replica_id_in_sync_group=number)
        monkeypatch.setattr(tf.distribute, "get_replica_context", lambda own=replica: own)
        inputs, target, weights = rows_of_replica(batch)
        assert len(target) >= 1
        all_equal(inputs.values(), [target, target])
        kept += target.numpy()[weights.numpy() > 0].tolist()
    assert sorted(kept) == ids.ravel().tolist()


def test_a_scope_around_train_is_refused():
    with (
        tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        pytest.raises(ValueError, match="called in a strat"),
    ):
        strategy_of(SimpleNamespace())


def test_several_batches_of_several_replicas_are_refused(monkeypatch):
    double = SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: double)
    refused(lambda: SGD(gradient_accumulation_steps=3), "gradient_accumulation_steps is 3", "2")
    monkeypatch.setattr(loop, "strategy_of_environment", lambda: double)
    training = Training({}, Path(), {"accumulate": 3})
    refused(lambda: loop.run(training), "accumulate is not used with 2 devices")


def test_other_settings_than_the_chiefs_are_refused():
    chiefs = {"recipe": {"batch_size": 8}, "training_text_checksum": "a"}
    chief = SimpleNamespace(number=1, text_from_chief=lambda _: json.dumps(chiefs))
    check_alike(chief, chiefs)
    for change, complaint in (
        ({"recipe": {"batch_size": 9}}, "batch_size is 9 on worker 1 and 8"),
        ({"training_text_checksum": "b"}, "worker 1 has a different text"),
    ):
        refused(lambda own=chiefs | change: check_alike(chief, own), *complaint.split())


PAGE = Path(__file__).parents[2] / "docs" / "scale_out.md"
# Stand-ins for programs: each writes a line, or does what Slurm would do.
PROGRAMS = {
    "bahdanau-tf": 'echo "$TF_CONFIG|$*" | tr -d "\\n" > call-$RANDOM$RANDOM',
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
def test_the_launches_of_the_page_give_each_worker_its_place(tmp_path, heading, addresses):
    """The scripts run with stand-ins for `bahdanau-tf` and for Slurm."""
    for name, body in PROGRAMS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for number in range(len(addresses)) if heading == "Kubernetes" else [0]:
        subprocess.run(
            ["bash", "-ec", f"{script_of(heading)}\nwait"],
            cwd=tmp_path,
            env={"PATH": path, "JOB_COMPLETION_INDEX": str(number)},
            check=True,
            timeout=LONGEST,
        )
    configs = []
    for call in tmp_path.glob("call-*"):
        config, _, words = call.read_text().partition("|")
        configs.append(json.loads(config))
        flags = defined_flags("train")
        flags([*words.split()])
        assert flags.model_dir
        assert flags.dev_target
    assert sorted(config["task"]["index"] for config in configs) == [*range(len(addresses))]
    for config in configs:
        assert config["task"]["type"] == "worker"
        assert config["cluster"] == {"worker": addresses}


TWO = {"worker": ["a:1", "b:1"]}


def in_two(**task: object) -> dict[str, object]:
    return {"cluster": TWO, "task": {"type": "worker", **task}}


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ("{", "property"),
        ({"cluster": [], "task": {}}, "cluster dictionary"),
        ({"cluster": {"worker": "a:1"}}, "worker list"),
        ({"cluster": TWO | {"ps": ["c:1"]}}, "'ps' cluster"),
        ({"cluster": {"worker": ["a:1", "b"]}}, "'b' address"),
        ({"cluster": {"worker": ["a:1", "a:1"]}}, "a:1 address"),
        (in_two(index=2), "'worker' 2 ('worker'"),
    ],
)
def test_a_wrong_cluster_is_refused(monkeypatch, config, complaint):
    monkeypatch.setenv("TF_CONFIG", config if config == "{" else json.dumps(config))
    refused(strategy_of_environment, "TF_CONFIG", *complaint.split())


@pytest.mark.parametrize(
    "config", ["", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}']
)
def test_one_worker_is_not_a_cluster(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    assert strategy_of_environment() is tf.distribute.get_strategy()
