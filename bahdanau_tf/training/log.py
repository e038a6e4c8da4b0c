"""The log of a training, with a line of JSON for each evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import keras

from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.training.checkpoints import told_by_path
from bahdanau_tf.training.dev import LOW, DevSet
from bahdanau_tf.training.run import Run


class Speed(keras.callbacks.Callback):
    """Counts the words of a run, and the time of its updates alone.

    Attributes:
        words: Number of target words, end symbols included.
        seconds: The time that reading and updates took; evaluations and
            checkpoints do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = self.seconds = 0.0

    @property
    def words_per_second(self) -> float:
        """Target words per second."""
        return self.words / max(self.seconds, 1e-9)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self.words += logs["words"]
        self.seconds += logs["seconds"]


# How the parts of a record are told.
TOLD = {
    "step": "update {}",
    "epoch": "epoch {}",
    "words_per_second": "{} words/s",
    "skipped_updates": "skipped updates: {}",
    "learning_rate": "learning rate {}",
    "train_loss": "train loss {}",
    "dev_loss": "dev loss {}",
    "dev_bleu": "dev BLEU {}",
}


class Log:
    """Lines of JSON, each written once, such as `log.jsonl`.

    Args:
        path: The file; made with the first line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, record: Mapping[str, object]) -> None:
        """Adds a line; `record` has a "step".

        Raises:
            OSError: The file cannot be written.
        """
        with (
            told_by_path(self._path),
            open(self._path, "a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def records(self) -> list[dict[str, float]]:
        """The lines; none if there is no file yet."""
        if not self._path.is_file():
            return []
        lines = self._path.read_text("utf-8", "replace").split("\n")[:-1]
        return [found for found in map(_record, lines) if found is not None]

    def forget_after(self, step: int) -> None:
        """Removes lines after an update, which will be written again.

        A killed run may have written lines after its last checkpoint, or half
        a line.
        """
        if not self._path.is_file():
            return
        text = self._path.read_text("utf-8", "replace")
        lines = text.split("\n")[:-1]
        kept = "".join(
            f"{line}\n"
            for line in lines
            if (found := _record(line)) is not None and found["step"] <= step
        )
        if kept != text:
            write_atomically(self._path, kept.encode())


def _record(line: str) -> dict[str, float] | None:
    """What a line has; None if it is not one that `Log.add` wrote."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_whole = isinstance(found, dict) and isinstance(found.get("step"), int)
    return found if is_whole else None


class Logger(keras.callbacks.Callback):
    """Tells the results of each evaluation, and adds them to the log.

    Args:
        run: The run.
        speed: Its speed.
        log: The log.
        dev: The dev set, or None.
    """

    def __init__(self, run: Run, speed: Speed, log: Log, dev: DevSet | None) -> None:
        super().__init__()
        self._run = run
        self._speed = speed
        self._log = log
        self._dev = dev

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        record = self._record(logs)
        self._run.line.note(
            ", ".join(
                TOLD[name].format(_short(value))
                for name, value in record.items()
                if value or name != "skipped_updates"
            )
        )
        self._advise()
        record["seconds"] = self._run.pace.seconds
        record["device"] = describe_device()
        record["date"] = datetime.now(timezone.utc).isoformat(" ", "seconds")
        self._log.add(record)

    def _record(self, logs: Mapping[str, float]) -> dict[str, object]:
        run = self._run
        record: dict[str, object] = {
            "step": run.step,
            "epoch": run.step / run.steps_per_epoch,
            "words_per_second": self._speed.words_per_second,
            "skipped_updates": int(run.of_optimizer("skipped_updates")),
            "learning_rate": run.of_optimizer("learning_rate"),
        }
        names = {"train_loss": "loss", "dev_loss": "val_loss"}
        names["dev_bleu"] = "val_bleu"
        return record | {ours: logs[name] for ours, name in names.items() if name in logs}

    def _advise(self) -> None:
        """Tells if BLEU cannot choose the best model."""
        run = self._run
        is_third = run.step >= 3 * run.evaluate_every
        if self._dev is None or run.recipe.monitor != "bleu":
            return
        if is_third and run.state.best_bleu < LOW:
            run.line.note(
                f"dev BLEU ({self._dev.tokenize}) is still below {LOW:g}: the "
                "best model is chosen by dev loss; if it stays so, --tokenize "
                "sets another tokenizer for BLEU"
            )


def _short(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if abs(value) < 1e-12 or abs(value) >= 1:  # BLEU may be 1e-48
        return f"{value:.2f}"
    return f"{value:.3g}"
