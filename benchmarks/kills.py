"""Kills a training and its exports at random moments, and compares the end.

    python benchmarks/kills.py --out_dir=kills --kills=20

A tiny model is trained on a generated corpus, once without interruption, and once with `kill -9`
again and again, each time resumed by the same command. The moments are aimed in turn at each of
`AIMS` and drawn within it; the file of the process shows afterwards what was hit. If the training
ends before all kills are used, another one starts. Then exports of the model are killed in the same
way.

The exit status is 1 unless all that training saves (weights, optimizer, seeds of dropout, position
in the text, best scores), the best model and the log are equal bit for bit, exports are whole, and
no temporary file or process is left.
"""

from __future__ import annotations

import collections
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from absl import app, flags
from tiny import differences, left_over, start, temporary, training, write_texts
from watched import Moment

from bahdanau_tf import Translator
from bahdanau_tf.serving import Request, answers

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "a new folder", required=True)
flags.DEFINE_integer("kills", 20, "number of kills", lower_bound=1)
flags.DEFINE_integer("updates", 150, "updates of the training")
flags.DEFINE_integer("seed", 1, "seed of the moments")

# What a kill is aimed at, and the longest time after its start, in seconds.
AIMS = {
    **{"save": 0.05, "evaluation": 0.5, "update": 0.05, "best": 0.1},
    **{"export": 1.0, "start": 15.0, "reload": 8.0, "slim": 1.0, "trace": 5.0},
}
OF_EXPORTS = ("export", "slim", "trace", "reload")
WATCHED = Path(__file__).with_name("watched.py")


class Watched:
    """A command of bahdanau_tf that can be killed at a chosen moment.

    The folder gets its output, and the file of its moments.
    """

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self._file, self.output = folder / "moment", folder / "output"
        self._file.unlink(missing_ok=True)
        self._process = start([WATCHED, self._file, "1", *words], folder, self.output, True)

    def wait(self) -> None:
        """Waits for its end; RuntimeError if it fails."""
        if self._process.wait():
            output = self.output.read_text(errors="replace").strip()
            raise RuntimeError(f"a command failed: {output[-2000:]}")

    def kill(self, aim: str, chance: random.Random) -> str:
        """Kills it at a moment; returns at which, "" if it ended before."""
        if aim not in ("start", *OF_EXPORTS):
            # So that all kills together are spread over the training.
            first = chance.uniform(1, 1.5 * FLAGS.updates / FLAGS.kills)
            self._wait_until(lambda now: now.updates >= first)
        self._wait_until(lambda now: now.name == aim)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(chance.uniform(0, AIMS[aim]))
        if self._process.poll() is not None:
            self.wait()
            return ""
        self._process.kill()
        self._process.wait()
        return Moment.read(self._file).name

    def _wait_until(self, is_reached: Callable[[Moment], bool]) -> None:
        while self._process.poll() is None and not is_reached(Moment.read(self._file)):
            time.sleep(0.0005)


def killed_training(
    data: Path, folder: Path, aims: list[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Trains with a kill for each aim, which is taken from the list.

    Yields what was hit, and what the run left: its message of a resume, temporary files.
    """
    folder.mkdir()
    while aims:
        run = Watched(training(data, folder, FLAGS.updates), folder)
        if not (hit := run.kill(aims[0], chance)):
            return  # it is over
        aims.pop(0)
        resumed = re.findall(r"resuming from update \d+", run.output.read_text())
        yield hit, ", ".join([*resumed[:1], *temporary(folder / "model")])
    Watched(training(data, folder, FLAGS.updates), folder).wait()


def killed_exports(
    folder: Path, aims: Sequence[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Exports with a kill for each aim, then once without."""
    base = folder / "export"
    words = ["export", f"--model_dir={folder / 'model'}", f"--export_dir={base}"]
    for aim in aims:
        hit = Watched(words, folder).kill(aim, chance)
        yield hit or "nothing", ", ".join(temporary(base))
    Watched(words, folder).wait()


def broken_exports(folder: Path) -> Iterator[str]:
    """Versions that do not translate as the model does."""
    sentences = ["the cat sleeps .", "a dog sees the house ."]
    translations = Translator.load(folder / "model").translate(sentences)
    texts = [translation.text.encode() for translation in translations]
    rows = {"text": [sentence.encode() for sentence in sentences]}
    for version in sorted((folder / "export").iterdir()):
        (output,) = answers(version, [Request("serving_default", rows)]).outputs
        if output["translation"].tolist() != texts:
            yield f"{version} translates in another way"


def main(_: Sequence[str]) -> int:
    """Trains, kills, compares."""
    out, chance = Path(FLAGS.out_dir).absolute(), random.Random(FLAGS.seed)
    out.mkdir(parents=True)
    write_texts(out / "data")
    aims = [[*AIMS][n % len(AIMS)] for n in range(FLAGS.kills)]
    chance.shuffle(aims)
    of_exports = [aim for aim in aims if aim in OF_EXPORTS]
    aims = [aim for aim in aims if aim not in OF_EXPORTS]
    print(f"training without interruption: {out / 'whole'}", flush=True)
    (out / "whole").mkdir()
    Watched(training(out / "data", out / "whole", FLAGS.updates), out / "whole").wait()
    hits: collections.Counter[str] = collections.Counter()
    wrong, number = [], 0

    def report(kills: Iterator[tuple[str, str]]) -> None:
        for hit, left in kills:
            hits[hit] += 1
            done = f"kill {hits.total()} of {FLAGS.kills}"
            print(f"{done}: {hit}; {left or 'nothing'} left", flush=True)

    while aims or not number:
        number += 1
        folder = out / f"killed-{number}"
        report(killed_training(out / "data", folder, aims, chance))
        wrong += differences(folder / "model", out / "whole" / "model")
        wrong += left_over(folder)
    if of_exports:
        report(killed_exports(folder, of_exports, chance))
        wrong += [*broken_exports(folder), *left_over(folder)]
    counts = ", ".join(f"{hit} {count}" for hit, count in hits.most_common())
    print(f"trainings: {number}; kills hit: {counts}")
    print("\n".join(wrong) or "equal bit for bit, nothing left")
    return bool(wrong)


if __name__ == "__main__":
    app.run(main)
