"""Trains and decodes for hours, with random kills, and watches the memory.

    python benchmarks/soak.py --out_dir=soak --minutes=120

Two processes live as long as this one: a training, and one that loads a model and translates
through the Python API, in each turn `--batches` batches of mixed sizes and lengths. Beside them
each turn runs a command: a training of its own, which is resumed again and again, `translate`,
`evaluate` or `export`. Two out of three are killed at a random moment by SIGKILL, SIGTERM or
SIGINT. All models are tiny; one core is enough, even with `nice`.

After each turn the program records the resident memory of both processes, without mapped files such
as libraries. The warm-up is `--warm_up` batches before the first turn, then the first quarter of
the time: until then oneDNN and TensorFlow fill their caches, which have an entry for each new
shape, up to some limit. BLEU splits words at spaces (`--tokenize=none`), since sacreBLEU's other
tokenizers keep the last 65,536 lines. The exit status is 1 if the memory was later more than 5 %
above that at the end of the warm-up, if a command failed that was not killed, if one printed a
traceback, if translations changed, or if a process or a temporary file is left at the end. Ctrl-C
ends the program with the table so far.
"""

from __future__ import annotations

import collections
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import app, flags
from tiny import environment, left_over, start, training, write_texts

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "a new folder", required=True)
flags.DEFINE_float("minutes", 120, "how long, without the preparation")
flags.DEFINE_integer("batches", 50, "batches decoded in a turn")
flags.DEFINE_integer("warm_up", 4000, "batches decoded before the first turn")
flags.DEFINE_integer("seed", 1, "seed of the moments")

KILLED_AFTER = 0.3, 30.0  # seconds; Python itself has started by then
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WARM_UP = 0.25  # share of the time
GROWTH = 0.05  # of memory after it
STOPPED = 128 + signal.SIGTERM  # status of a training after SIGTERM
ROWS = 24  # of the table
DECODER = """
import json, sys
from bahdanau_tf import Translator
translator = Translator.load(sys.argv[1])
for line in sys.stdin:
    translations = translator.translate(json.loads(line))
    print(json.dumps([translation.text for translation in translations]), flush=True)
"""


class Row(NamedTuple):
    """The state after a turn.

    Attributes:
        minutes: Since the first turn.
        updates: Of the long training.
        training: Its resident memory in MB.
        batches: That the long decoder has translated.
        decoding: Its resident memory in MB.
        command: That of the turn, and how it ended.
    """

    minutes: float
    updates: int
    training: float
    batches: int
    decoding: float
    command: str


class Soak:
    """Both long processes, and the turns beside them; all files are in the folder `out`.

    Attributes:
        rows: A row for each turn.
        wrong: A sentence for each thing that went wrong.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.chance = out, random.Random(FLAGS.seed)
        self.rows: list[Row] = []
        self.wrong: list[str] = []
        self.batches = 0
        self.translations: dict[str, str] = {}
        self.long: list[subprocess.Popen] = []
        self.started: list[subprocess.Popen] = []
        write_texts(out / "data")
        self.sentences = (out / "data" / "test.en").read_text().split("\n")[:-1]
        self.words = sorted({w for line in self.sentences for w in line.split()})

    def prepare(self) -> None:
        """Trains a model to decode with, and starts both long processes."""
        self.long = [self._start(training(self.out / "data", self.out, 50))]
        self.long[0].wait()
        shutil.copytree(self.out / "model" / "best", self.out / "fixed")
        long = training(self.out / "data", self.out / "long")
        long += ["--tokenize=none", "--evaluate_every=100"]
        self.long = [self._start(long, "long"), self._decoder()]
        for _ in range(1 + FLAGS.warm_up):
            self._decode(self._batch())
        self.start = time.monotonic()

    @property
    def minutes_left(self) -> float:
        """The time until the end."""
        return FLAGS.minutes - (time.monotonic() - self.start) / 60

    def _decoder(self) -> subprocess.Popen:
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-c", DECODER, self.out / "fixed"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(self.out),
                start_new_session=True,  # it does not hear Ctrl-C
                text=True,
            )
        )
        return self.started[-1]

    def _start(self, words: list[str], name: str = "turn") -> subprocess.Popen:
        """Starts a command, whose output goes to a file."""
        output = (self.out / name).with_suffix(".output")
        self.started.append(start(["-m", "bahdanau_tf", *words], self.out, output))
        return self.started[-1]

    def turn(self) -> None:
        """Decodes some batches, runs a command, writes a row."""
        for _ in range(FLAGS.batches):
            self._decode(self._batch())
        ended = self._command()
        if self.long[0].poll() is not None:
            self.wrong.append("the long training has ended")
        self.rows.append(
            Row(
                (time.monotonic() - self.start) / 60,
                updates(self.out / "long" / "model" / "log.jsonl"),
                resident(self.long[0].pid),
                self.batches,
                resident(self.long[1].pid),
                ended,
            )
        )

    def _batch(self) -> list[str]:
        """1 to 16 sentences of 1 to 30 words, the first from a fixed set."""
        chance = self.chance
        lengths = [chance.randint(1, 30) for _ in range(chance.randint(0, 15))]
        drawn = [" ".join(chance.choices(self.words, k=n)) for n in lengths]
        return [chance.choice(self.sentences), *drawn]

    def _decode(self, sentences: list[str]) -> None:
        """Translates; a sentence has the same translation each time."""
        decoder = self.long[1]
        print(json.dumps(sentences), file=decoder.stdin, flush=True)
        sentence, text = sentences[0], json.loads(decoder.stdout.readline())[0]
        self.batches += 1
        if self.translations.setdefault(sentence, text) != text:
            self.wrong.append(f"{sentence!r} was translated in another way")

    def _command(self) -> str:
        """Runs a command, maybe killed; says which, and how it ended."""
        name = self.chance.choice(COMMANDS)
        process = self._start(command(name, self.out))
        limit = self.chance.uniform(*KILLED_AFTER)
        killed_by = self.chance.choice([*SIGNALS, None])
        if killed_by is None and name != "train":
            limit = 600.0
        ended, good = name, {0}
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            killed_by = killed_by or signal.SIGTERM
            process.send_signal(killed_by)
            process.wait()
            ended = f"{name}, {killed_by.name}"
            good |= {128 + killed_by, -killed_by}
        finally:  # even after Ctrl-C
            process.kill()
            process.wait()
        output = (self.out / "turn.output").read_text(errors="replace")
        if process.returncode not in good or "Traceback" in output:
            self.wrong.append(f"{ended}, status {process.returncode}: {output[-1500:]}")
        return ended

    def end(self) -> None:
        """Runs each command once more, then ends both long processes."""
        for name in COMMANDS:
            process = self._start(command(name, self.out))
            if name == "train":
                output = self.out / "turn.output"
                while process.poll() is None and " loss " not in output.read_text():
                    time.sleep(0.1)
                process.terminate()
            if process.wait() not in (0, STOPPED):
                self.wrong.append(f"the last {name}: {process.returncode}")
        for process in self.long:
            process.terminate()
            process.wait(600)
        if self.long[0].returncode != STOPPED:
            self.wrong.append(f"long training: {self.long[0].returncode}")
        self.wrong += left_over(self.out)


COMMANDS = ("train", "translate", "evaluate", "export")


def command(name: str, out: Path) -> list[str]:
    """A command of `COMMANDS` with its flags."""
    if name == "train":
        return training(out / "data", out)
    source = out / "data" / "test.en"
    flags_of = {
        "translate": {"model_dir": "fixed", "input": source, "output": "translations"},
        "evaluate": {"model_dir": "model", "source": source, "reference": "data/test.fr"},
        "export": {"model_dir": "model", "export_dir": "export"},
    }
    return [name, *(f"--{flag}={out / path}" for flag, path in flags_of[name].items())]


def resident(process: int) -> float:
    """Resident memory of a process in MB, without files such as libraries."""
    lines = Path(f"/proc/{process}/status").read_text().split("\n")
    (memory,) = [line for line in lines if line.startswith("RssAnon")]
    return int(memory.split()[1]) / 1024


def updates(log: Path) -> int:
    """Updates until the last evaluation."""
    lines = log.read_text().split("\n")[:-1] if log.is_file() else []
    return int(json.loads(lines[-1])["step"]) if lines else 0


def growth(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """The growth of the memory after the warm-up, as a share of that at its end."""
    until = WARM_UP * FLAGS.minutes
    warm = [row for row in rows if row.minutes <= until] or [*rows[:1]]
    for name in ("training", "decoding"):
        values = [getattr(row, name) for row in rows[len(warm) - 1 :]]
        if values:
            yield name, max(values) / values[0] - 1


def show(rows: Sequence[Row]) -> None:
    """Prints the table."""
    print("| minutes | updates | training MB | batches | decoding MB |")
    print("|---|---|---|---|---|")
    for row in rows[:: -(-len(rows) // ROWS) or 1]:
        print(
            f"| {row.minutes:.1f} | {row.updates} | {row.training:.0f} "
            f"| {row.batches} | {row.decoding:.0f} |"
        )
    ends = collections.Counter(row.command for row in rows)
    print("; ".join(f"{what}: {n}" for what, n in sorted(ends.items())))


def main(_: Sequence[str]) -> int:
    """Soaks; ends all processes whatever happens."""
    out = Path(FLAGS.out_dir).absolute()
    out.mkdir(parents=True)
    soak = Soak(out)
    for number in (signal.SIGTERM, signal.SIGINT):
        # A shell's background jobs ignore SIGINT, and processes would inherit that.
        signal.signal(number, signal.default_int_handler)
    try:
        return run(soak)
    finally:
        for process in soak.started:
            process.kill()


def run(soak: Soak) -> int:
    """Takes turns until the time is over, then checks what is left."""
    print("training a model to decode with", flush=True)
    try:
        soak.prepare()
        while (left := soak.minutes_left) > 0:
            soak.turn()
            row = soak.rows[-1]
            print(
                f"{left:.1f} minutes left; training {row.training:.0f} MB, "
                f"decoding {row.decoding:.0f} MB; {row.command}",
                flush=True,
            )
    except KeyboardInterrupt:
        print("interrupted; cleaning up", flush=True)
    if not soak.rows:
        return 128 + signal.SIGINT
    soak.end()
    for name, share in growth(soak.rows):
        print(f"{name}: memory {share:+.1%} after the warm-up")
        if share > GROWTH:
            soak.wrong.append(f"the memory of {name} grew by {share:.1%}")
    show(soak.rows)
    print("\n".join(soak.wrong) or "flat memory, nothing left")
    return bool(soak.wrong)


if __name__ == "__main__":
    app.run(main)
