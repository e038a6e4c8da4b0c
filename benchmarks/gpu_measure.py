"""Measures training and translation on a GPU; each figure is a line of JSON.

    python benchmarks/gpu_measure.py steps --cases=small:80:float32,paper:512:bfloat16:xla
    python benchmarks/gpu_measure.py train --data_dir=data --flags="--jit_compile=on"
    python benchmarks/gpu_measure.py translate --model_dir=model --text=test.en

`steps` times updates of one batch, `train` a training by the command, and `translate` compares the
translations of an export with those of a processor. `--output` gets the lines, too. A case is a
size, a number of sentences, the dtype of products (`tf32` is float32 with TF32) and, for a compiled
step, `xla`.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_list("cases", ["tiny:8:float32"], "Cases of `steps`.")
flags.DEFINE_string("data_dir", None, "Folder of multi30k for `train`.")
flags.DEFINE_string("model_dir", "gpu_model", "Folder of the model.")
flags.DEFINE_string("flags", "", "More flags of `bahdanau-tf train`.")
flags.DEFINE_float("time_limit", None, "Seconds after which `train` is killed.")
flags.DEFINE_string("text", None, "Source sentences for `translate`.")
flags.DEFINE_integer("batch", 32, "Sentences of a request of `translate`.")
flags.DEFINE_bool("speeds", False, "Whether `translate_exports` times other batches, too.")
flags.DEFINE_string("output", None, "File to which the lines are added.")
flags.DEFINE_float("seconds", 3.0, "Longest time of the measured updates of a case.")

ROOT = Path(__file__).resolve().parents[1]
SIGNATURES = {"greedy": "greedy", "beam 5": "serving_default", "beam 12": "serving_default"}


def report(**figures: Any) -> None:
    """Prints a line of JSON and adds it to `--output`."""
    line = json.dumps({k: round(v, 9) if isinstance(v, float) else v for k, v in figures.items()})
    print(line, flush=True)
    if FLAGS.output:
        with open(FLAGS.output, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def time_case(case: str) -> dict[str, Any]:
    """Seconds of an update, its share of a matrix product's rate, and memory."""
    import tensorflow as tf
    import training
    from sizes import SIZES

    name, rows, kind, *compiler = case.split(":")
    size = SIZES[name]._replace(batch=int(rows))
    dtype = "float32" if kind == "tf32" else kind
    tf.config.experimental.enable_tensor_float_32_execution(kind == "tf32")
    gpus = tf.config.list_physical_devices("GPU")
    rate = matrix_rate(dtype, 8192 if gpus else 512)
    step, *_ = training.new_step(size, dtype, is_compiled=bool(compiler))
    batch, source, target = training.make_batch(size)
    if gpus:
        tf.config.experimental.reset_memory_stats("GPU:0")
    started = time.perf_counter()
    loss = float(step(*batch))
    first = time.perf_counter() - started
    seconds, started = [], time.perf_counter()
    while len(seconds) < 2 or (len(seconds) < 40 and time.perf_counter() - started < FLAGS.seconds):
        before = time.perf_counter()
        float(step(*batch))
        seconds.append(time.perf_counter() - before)
    median = statistics.median(seconds)
    flops = training.step_flops(size, source, target) / median
    memory = tf.config.experimental.get_memory_info("GPU:0")["peak"] if gpus else 0
    return {
        "first_loss": loss,
        "first_seconds": first,
        "seconds": median,
        "words_per_second": float(target.sum()) / median,
        "tflops": flops / 1e12,
        "matrix_tflops": rate / 1e12,
        "share": flops / rate,
        "peak_gib": memory / 2**30,
    }


def matrix_rate(dtype: str, side: int) -> float:
    """Operations a second of a square matrix product; the best of six."""
    import tensorflow as tf

    a, b = (tf.cast(tf.random.normal([side, side]), dtype) for _ in range(2))
    corner = tf.function(lambda a, b: tf.matmul(a, b)[0, 0])
    seconds = []
    for _ in range(7):
        started = time.perf_counter()
        float(corner(a, b))
        seconds.append(time.perf_counter() - started)
    return 2 * side**3 / min(seconds[1:])


def measure_steps() -> None:
    """Times the update of each case; a case that fails is reported."""
    import training  # noqa: F401 - its flags

    FLAGS([sys.argv[0]], known_only=True)
    for case in FLAGS.cases:
        try:
            xla_flags = os.environ.get("XLA_FLAGS", "")
            report(what="update", case=case, xla_flags=xla_flags, **time_case(case))
        except Exception as error:
            report(what="update", case=case, error=f"{type(error).__name__}: {error}"[:600])


def measure_training() -> None:
    """Trains on multi30k by its recipe; reports evaluations and the last messages."""
    command = [sys.executable, "-m", "bahdanau_tf", "train", "--recipe=multi30k-en-fr"]
    command += [f"--data_dir={FLAGS.data_dir}", f"--model_dir={FLAGS.model_dir}"]
    started = time.perf_counter()
    # A session of its own: all its processes end together, and its messages are kept.
    process = subprocess.Popen(
        [*command, *FLAGS.flags.split()],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, messages = process.communicate(timeout=FLAGS.time_limit)
    except BaseException as error:  # its session hears no Ctrl-C
        os.killpg(process.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        _, messages = process.communicate()
    seconds = time.perf_counter() - started
    log = Path(FLAGS.model_dir) / "log.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    report(
        what="training",
        flags=FLAGS.flags,
        status=process.returncode,
        seconds=seconds,
        evaluations=[json.loads(line) for line in lines],
        output=messages.replace("\r", "\n").splitlines()[-12:],
    )


def translate_all(export: str, signature: str, lines: list[str], batch: int) -> tuple[Any, float]:
    """Translations of lines by an export, and the seconds they took.

    The first batch is translated once more before.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - operations of the tokenizers

    translate = tf.saved_model.load(export).signatures[signature]
    starts = range(0, len(lines), batch)
    batches = [tf.constant(lines[start : start + batch]) for start in starts]
    translate(text=batches[0])
    started = time.perf_counter()
    outputs = [translate(text=batch)["translation"].numpy() for batch in batches]
    seconds = time.perf_counter() - started
    return [text.decode("utf-8") for output in outputs for text in output], seconds


def measure_translation() -> None:
    """Translates a text by three searches, here and on the processor at once."""
    export_all()
    here, there = (f"{FLAGS.model_dir}/translations_{where}.json" for where in ("gpu", "cpu"))
    child = [sys.executable, __file__, "translate_exports", f"--model_dir={FLAGS.model_dir}"]
    child += [f"--text={FLAGS.text}", f"--batch={FLAGS.batch}"]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_NUM_INTRAOP_THREADS": "10"}
    other = subprocess.Popen([*child, f"--output={there}"], env=hidden)
    speeds = ["--speeds"] * (FLAGS.batch > 1)
    subprocess.run([*child, *speeds, f"--output={here}"], check=True)
    other.wait()
    results = [json.loads(Path(path).read_text("utf-8")) for path in (here, there)]
    for search in SIGNATURES:
        (ours, seconds), (wanted, slower) = (result[search] for result in results)
        different = [pair for pair in zip(ours, wanted, strict=True) if pair[0] != pair[1]]
        report(
            what="translations",
            search=search,
            batch=FLAGS.batch,
            sentences=len(ours),
            different=len(different),
            examples=different[:3],
            sentences_per_second=len(ours) / seconds,
            processor_sentences_per_second=len(ours) / slower,
        )


def export_all() -> None:
    """Exports the model for each beam."""
    from dataclasses import replace

    from bahdanau_tf import Translator

    translator = Translator.load(FLAGS.model_dir)
    for beam in (5, 12):
        translator.decoding = replace(translator.decoding, beam_size=beam)
        translator.export(f"{FLAGS.model_dir}/exports/beam{beam}")


def translate_exports() -> None:
    """Translates by all exports; `--output` gets translations and seconds."""
    lines = Path(FLAGS.text).read_text("utf-8").splitlines()
    results, exports = {}, {}
    for search, signature in SIGNATURES.items():
        folder = Path(FLAGS.model_dir, "exports", "beam12" if "12" in search else "beam5")
        exports[search] = str(next(folder.glob("[0-9]*"))), signature
        results[search] = translate_all(*exports[search], lines, FLAGS.batch)
    Path(FLAGS.output).write_text(json.dumps(results), "utf-8")
    FLAGS.output = None
    for batch in (1, 256) if FLAGS.speeds else ():
        some = lines[:: max(len(lines) // 32, 1)] if batch == 1 else lines
        for search in SIGNATURES:
            _, seconds = translate_all(*exports[search], some, batch)
            report(what="speed", search=search, batch=batch, rate=len(some) / seconds)


PARTS = {
    "steps": measure_steps,
    "train": measure_training,
    "translate": measure_translation,
    "translate_exports": translate_exports,
}


def main(arguments: Sequence[str]) -> None:
    """Runs one part."""
    if len(arguments) != 2 or arguments[1] not in PARTS:
        raise app.UsageError(f"got {arguments[1:]}, wanted one of {', '.join(PARTS)}")
    PARTS[arguments[1]]()


if __name__ == "__main__":
    app.run(main)
