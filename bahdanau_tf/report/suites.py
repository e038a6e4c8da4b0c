"""Which systems a report trains, on what, and for how long.

The quick suite is sized for 15 minutes on two cores in all, the full one for
several hours. Both stop a system at the end of its time and go on from there
when they are run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.corpora.grammar import corpus as grammar
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.report.trainings import Plan

TRAINING_FILES = ("train_source", "train_target", "dev_source", "dev_target")


class Files(NamedTuple):
    """Text files; those that are missing are None.

    Attributes:
        train_source: Training text, source side.
        train_target: Training text, target side.
        dev_source: Dev text, source side.
        dev_target: Dev text, target side.
        source: Test text.
        reference: Its translation.
        alignments: Its gold alignments in Pharaoh's form.
    """

    train_source: str | None = None
    train_target: str | None = None
    dev_source: str | None = None
    dev_target: str | None = None
    source: str | None = None
    reference: str | None = None
    alignments: str | None = None


@dataclass(frozen=True)
class Suite:
    """Systems to train, and their budgets.

    An epoch is a pass over the whole corpus, of which a system leaves out the
    sentences that are longer than its own limit.

    Attributes:
        lengths: Longest training sentences, in tokens, of the systems that
            stand for the paper's "-30" and "-50".
        epochs: Budgets of these two.
        longest_epochs: Budget of the one for RNNsearch-50*; 0 for none.
        lstm_length: Longest training sentence of the LSTMs.
        lstm_epochs: Budget of an LSTM.
        reversed_count: LSTMs that read the source reversed.
        minutes: Longest time of a system in one call.
        common: Flags of every training.
        attention: Further flags of RNNsearch and RNNencdec.
        lstm: Further flags of the LSTMs.
    """

    lengths: tuple[int, int]
    epochs: tuple[float, float]
    longest_epochs: float
    lstm_length: int
    lstm_epochs: float
    reversed_count: int
    minutes: float
    common: tuple[str, ...]
    attention: tuple[str, ...]
    lstm: tuple[str, ...]

    def plans(self, files: Files, more: Sequence[str] = ()) -> list[Plan]:
        """The systems, those that take longest first.

        Args:
            files: What to train on.
            more: Further flags of `bahdanau-tf train`, for every system whose
                model takes them.
        """
        corpus = [f"--{name}={getattr(files, name)}" for name in TRAINING_FILES]
        common = (*corpus, *self.common)
        plans = []
        for model, counterpart, length, epochs in self._attention_systems():
            own = (
                f"--model={model.lower()}",
                f"--max_length={length}",
                f"--epochs={epochs:g}",
            )
            flags = _taken(
                model.lower(), (*common, *self.attention, *own, *more)
            )
            star = "*" * counterpart.endswith("*")
            plans.append(Plan(f"{model}-{length}{star}", flags, counterpart))
        for number in range(1 + self.reversed_count):
            seeded = (
                "--model=seq2seq-lstm",
                f"--max_length={self.lstm_length}",
                f"--epochs={self.lstm_epochs:g}",
                f"--seed={max(number, 1)}",
                *["--reverse_source"] * bool(number),
            )
            name = f"LSTM reversed {number}" if number else "LSTM forward"
            flags = (*common, *self.lstm, *seeded, *more)
            plans.append(Plan(name, _taken("seq2seq-lstm", flags)))
        return plans

    def budget(self, minutes: float) -> str:
        """What is spent on a training, in words."""
        longest = self.longest_epochs or max(self.epochs)
        return (
            f"Budget: {longest:g} epochs at most and {minutes:g} minutes for "
            "a system in one run of the command."
        )

    def _attention_systems(self) -> list[tuple[str, str, int, float]]:
        systems = [
            (model, f"{model}-{paper}", length, epochs)
            for paper, length, epochs in reversed(
                [*zip((30, 50), self.lengths, self.epochs, strict=True)]
            )
            for model in ("RNNsearch", "RNNencdec")
        ]
        if self.longest_epochs:
            length, epochs = self.lengths[1], self.longest_epochs
            systems.insert(0, ("RNNsearch", "RNNsearch-50*", length, epochs))
        return systems


def _taken(model: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Those of some flags that a model takes."""
    unused = ModelOptions(model=model).unused()  # type: ignore[arg-type]
    refused = {f"--{no}{name}" for name in unused for no in ("", "no")}
    return tuple(f for f in flags if f.partition("=")[0] not in refused)


_COMMON = (
    "--optimizer=adam",
    "--schedule=linear",
    "--shuffle=each_epoch",
    "--shuffle_pool",
)
_ATTENTION = ("--nofactored_output", "--initialization=glorot")
# Rare words of the built-in corpus are left out, so that there are unknown
# words at all.
_GRAMMAR = ("--source_vocabulary_size=200", "--target_vocabulary_size=260")

QUICK = Suite(
    lengths=(15, 30),
    epochs=(5.0, 3.5),
    longest_epochs=0.0,
    lstm_length=15,
    lstm_epochs=4.0,
    reversed_count=1,
    minutes=3.2,
    common=(
        *_COMMON,
        *_GRAMMAR,
        "--units=128",
        "--embedding_dim=64",
        "--learning_rate=0.004",
        "--warmup_steps=50",
        "--batch_size=64",
    ),
    attention=(*_ATTENTION, "--attention_units=64", "--maxout_units=64"),
    lstm=("--layers=2",),
)
_FULL = {
    "epochs": (8.0, 8.0),
    "longest_epochs": 16.0,
    "lstm_epochs": 8.0,
    "reversed_count": 5,
    "minutes": 120.0,
    "attention": (*_ATTENTION, "--attention_units=256", "--maxout_units=256"),
    "lstm": ("--layers=2",),
}
_FULL_COMMON = (
    *_COMMON,
    "--units=256",
    "--embedding_dim=256",
    "--learning_rate=0.002",
)
FULL_GRAMMAR = Suite(
    lengths=(15, 30),
    lstm_length=30,
    common=(*_FULL_COMMON, *_GRAMMAR),
    **_FULL,  # type: ignore[arg-type]
)
FULL = Suite(
    lengths=(30, 50),
    lstm_length=50,
    common=_FULL_COMMON,
    **_FULL,  # type: ignore[arg-type]
)
# Sentence pairs of the built-in corpus.
QUICK_PAIRS = {"train": 20_000, "dev": 100, "test": 300}
FULL_PAIRS = {"train": 100_000, "dev": 500, "test": 3_000}


def write_grammar(folder: Path, pairs: dict[str, int], longest: int) -> Files:
    """Writes the built-in corpus: longer sentences in the test set.

    Args:
        folder: A folder; nothing is written again that is there.
        pairs: Sentence pairs to train on, choose by ("dev") and test on.
        longest: Words of the longest sentence but for the test's, 60.

    Returns:
        The files.
    """
    learned, tested = folder / f"up-to-{longest}", folder / "up-to-60"
    for where, words, counts in (
        (learned, longest, {**pairs, "test": 0}),
        (tested, 60, {"train": 0, "dev": 0, "test": pairs["test"]}),
    ):
        if not (where / "train.fr").is_file():
            grammar.write_corpus(where, **counts, max_words=words)
    return Files(
        *(
            str(learned / f"{split}.{language}")
            for split in ("train", "dev")
            for language in ("en", "fr")
        ),
        *(str(tested / f"test.{ending}") for ending in ("en", "fr", "align")),
    )
