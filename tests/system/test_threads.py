"""All cores are used, with the results of one."""

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import letters
import numpy as np
import pytest
import tensorflow as tf
import toys
from comparisons import all_close, all_equal
from oracle import randomized
from processes import LONGEST, output_of
from refusals import fails, refused
from worker import mean_model

from bahdanau_tf import Recipe, Translator
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import Adadelta
from bahdanau_tf.options.facts import MOST_PARTS
from bahdanau_tf.system import cores
from bahdanau_tf.system.cores import available_cores
from bahdanau_tf.system.device import operations_at_once, threads
from bahdanau_tf.training import update
from bahdanau_tf.translation import running
from bahdanau_tf.translation.batches import in_batches

VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("align", ["source", "target"]),
        ("backtranslate", ["train_source", "train_target", "target_text"]),
        ("distil", ["train_source", "train_target"]),
        ("evaluate", ["source", "reference"]),
        ("export", []),
        ("lexicon", ["source", "target"]),
        ("rescore", ["source", "input"]),
        ("translate", ["input"]),
    ],
)
def test_every_command_uses_the_threads_given(command, files, tmp_path, monkeypatch, capfd):
    def use_threads(count: int | None = None) -> None:
        raise ValueError(f"asked for {count} threads")

    monkeypatch.setattr("bahdanau_tf.system.device.use_threads", use_threads)
    for name in files:
        (tmp_path / name).write_text("a\n")
    folders = {"export": "export_dir", "distil": "out_dir", "backtranslate": "out_dir"}
    flags = [f"--{name}={tmp_path / name}" for name in files]
    if command in folders:
        flags.append(f"--{folders[command]}={tmp_path / 'out'}")
    flags += [f"--model_dir={tmp_path}", "--threads=3"]
    fails(capfd, [command, *flags], "asked for 3 threads")


def random_batch(random: np.random.Generator, rows: int) -> Any:
    """Sentences of 1 to 6 words, also with words of other weights."""
    sides = []
    for _ in range(2):
        ids = random.integers(2, 20, [rows, 6])
        lengths = random.integers(1, 7, rows)
        ids[np.arange(6) >= lengths[:, None]] = 0
        sides.append(tf.constant(ids, tf.int32))
    source, target = sides
    weights = random.uniform(0.5, 1.5, [rows, 6]) * (target.numpy() != 0)
    inputs = {"source": source, "target": target}
    return inputs, target, tf.constant(weights, tf.float32)


def test_parts_of_batches_train_as_the_whole():
    """Of 7, 12 and 2 rows, which three parts do not divide, or are short of."""
    trainings = []
    for count in (1, 3):
        model = randomized(mean_model(20))
        step = letters.plain_step(model, Adadelta(10.0), TokenCrossentropy(0.1), parts=count)
        random = np.random.default_rng(2)
        losses = [float(step(*random_batch(random, rows))) for rows in (7, 12, 2)]
        trainings.append([losses, *(weight.numpy() for weight in model.trainable_weights)])
    all_close(*trainings, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("of_operation", "at_once", "rows", "wanted"),
    [(1, 1, 80, 1), (1, 2, 80, 2), (2, 2, 80, 1), (1, 64, 80, 10)]
    + [(1, 2, 3, 1), (1, 99, 4096, MOST_PARTS)],
)
def test_parts_are_one_a_core(monkeypatch, of_operation, at_once, rows, wanted):
    """Unless they would be short, or operations are divided already."""
    monkeypatch.setattr(update, "threads", lambda: of_operation)
    monkeypatch.setattr(update, "operations_at_once", lambda: at_once)
    recipe = Recipe(batch_size=rows)
    assert update.parts_at_once(recipe) == wanted
    assert update.threads_of(recipe) == of_operation * wanted


@pytest.mark.parametrize(
    ("name", "asked"), [*zip(VARIABLES, (threads, operations_at_once), strict=True)]
)
def test_threads_are_those_that_tensorflow_takes(monkeypatch, name, asked):
    """As a new process takes them from the environment, or the cores."""
    for get in ("get_intra_op", "get_inter_op"):
        whole = f"{get}_parallelism_threads"
        monkeypatch.setattr(tf.config.threading, whole, lambda: 0)
    for setting, wanted in (("3", 3), ("0", None), ("many", None)):
        monkeypatch.setenv(name, setting)
        assert asked() == (wanted or len(available_cores()))


@pytest.mark.parametrize(
    ("group", "files", "wanted"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "250000 100000\n"}, 3),
        ("0::/of the host\n", {"cpu.max": "50000 100000\n"}, 1),
        (
            "4:memory:/\n3:cpu,cpuacct:/a\n0::/\n",
            {"cpu/a/cpu.cfs_quota_us": "400000\n", "cpu/a/cpu.cfs_period_us": "200000\n"},
            2,
        ),
        ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ("", {}, 4),
    ],
)
def test_the_quota_of_a_container_limits_the_cores(tmp_path, monkeypatch, group, files, wanted):
    for name, contents in {"own": group, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(contents)
    monkeypatch.setattr(cores, "CGROUPS", tmp_path)
    monkeypatch.setattr(cores, "OWN", tmp_path / "own")
    monkeypatch.setattr(cores, "available_cores", lambda: [0, 1, 4, 5])
    assert cores.core_count() == wanted


# Each case is a process of its own, by a fork before TensorFlow has run.
CASES = f"""
import os, sys
[os.environ.pop(name, None) for name in {VARIABLES}]
from bahdanau_tf.system import device
import tensorflow as tf

for case in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    exec(case)
    tf.zeros([]).numpy()
    try:
        device.use_threads(2 if "use_threads(3)" in case else None)
    except ValueError as error:
        print(error)
    print(device.threads(), device.operations_at_once(), flush=True)
    os._exit(0)
"""


def test_threads_are_those_asked_for_then_of_the_environment_then_the_cores():
    """Until TensorFlow runs; later calls that ask for none do nothing."""
    environment = f"os.environ.update({dict.fromkeys(VARIABLES, '5')}); "
    cases = {
        "device.use_threads(3)": "1 3",
        f"{environment}device.use_threads()": "5 5",
        f"{environment}device.use_threads(2)": "1 2",
    }
    if hasattr(os, "sched_setaffinity"):
        core = available_cores()[0]
        cases[f"os.sched_setaffinity(0, [{core}]); device.use_threads()"] = "1 1"
    error, *used = output_of("-c", CASES, *cases).splitlines()
    assert error.startswith("use_threads: threads is 2, but TensorFlow is al")
    assert used == [*cases.values()]


LINES = ["c" * 9, "b", "a" * 3, "d" * 12]


def test_batches_meet_and_results_are_in_order():
    """Two at a time, which wait for each other."""
    meeting = threading.Barrier(2, timeout=LONGEST)

    def work(lines: list[str]) -> Iterator[str]:
        meeting.wait()
        yield from (line.upper() for line in lines)

    upper = in_batches("test", {"lines": LINES}, work, 1, 2)
    assert upper == [line.upper() for line in LINES]


def test_an_error_in_a_batch_is_raised():
    def work(lines: list[str]) -> Iterator[str]:
        if lines == ["d" * 12]:
            raise ValueError("no more")
        yield from lines

    refused(lambda: in_batches("test", {"lines": LINES}, work, 1, 2))


def test_translations_do_not_depend_on_the_threads(monkeypatch):
    translator = toys.toy_translator(toys.english(), toys.french())
    random = np.random.default_rng(5)
    lines = [" ".join(random.choice(toys.ENGLISH, random.integers(1, 9))) for _ in range(40)]
    translations = []
    for count in (1, 4):
        monkeypatch.setattr(running, "operations_at_once", lambda n=count: n)
        translations.append(translator.translate(lines, batch_size=3))
    for single, several in zip(*translations, strict=True):
        assert single.text == several.text
        assert single.score == pytest.approx(several.score, rel=1e-5)
        np.testing.assert_allclose(single.weights, several.weights, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(
    len(available_cores()) < 2 or not hasattr(os, "sched_setaffinity"),
    reason="two cores are needed",
)
def test_a_deterministic_training_by_two_threads_repeats(tmp_path):
    """Bit for bit, also if both are on one core; one thread is refused."""
    random = np.random.default_rng(3)
    for side in ("a", "b"):
        rows = [
            " ".join(random.choice(list(letters.LETTERS), n)) for n in random.integers(1, 7, 60)
        ]
        text = "".join(f"{row}\n" for row in rows)
        (tmp_path / f"train.{side}").write_text(text, encoding="utf-8")

    def run(model_dir: str, cores: list[int], count: int) -> str:
        flags = {
            "train_source": tmp_path / "train.a",
            "train_target": tmp_path / "train.b",
            "model_dir": tmp_path / model_dir,
            **{"recipe": "paper", "units": 8, "embedding_dim": 8},
            **{"embedding_dropout": 0.1, "batch_size": 20, "epochs": 2},
            "threads": count,
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        words = ["train", *words, "--deterministic"]
        program = f"import os; os.sched_setaffinity(0, {cores})\n"
        program += f"from bahdanau_tf.commands.main import main; print(main({words}))"
        return output_of("-c", program)

    cores = available_cores()
    for name, ours in (("both", cores[:2]), ("one", cores[:1])):
        assert run(name, ours, 2).endswith("0\n")
    models = [Translator.load(tmp_path / name).model for name in ("both", "one")]
    all_equal(*(m.trainable_weights for m in models))
    settings = json.loads((tmp_path / "both" / "training.json").read_text())
    assert settings["threads"] == 2
    assert run("both", cores, 1).endswith("2\n")
