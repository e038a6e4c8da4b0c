"""The systems that are trained for comparison, their data and budgets.

The quick suite takes about 15 minutes on two cores, the full one several hours.
Both stop a system when its time is up, and continue when they are run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.corpora.grammar import corpus as grammar
from bahdanau_tf.experiments.trainings import Plan
from bahdanau_tf.options import ModelOptions

TEST_LENGTH = 60  # longest test sentence of the built-in corpus, in words


class Files(NamedTuple):
    """The paths of text files; None if there is no such file.

    Files of the training and dev sets are named like the flags of
    `bahdanau-tf train`; the others are of the test set.
    """

    train_source: str | None = None
    train_target: str | None = None
    dev_source: str | None = None
    dev_target: str | None = None
    source: str | None = None
    reference: str | None = None
    alignments: str | None = None


class Budget(NamedTuple):
    """How much a system is trained.

    Attributes:
        longest: Longest training sentence, as `Suite.limit` counts; longer ones
            are left out.
        epochs: Number of passes over the corpus, if `updates` is 0.
        updates: Number of updates.
    """

    longest: int
    epochs: float = 0.0
    updates: int = 0

    def flags(self) -> list[str]:
        """The flags of `bahdanau-tf train` for its end."""
        if not self.updates:
            return [f"--epochs={self.epochs:g}"]
        return [f"--updates={self.updates}", "--epochs=10000", "--minutes=0"]


@dataclass(frozen=True)
class Suite:
    """Systems to train.

    Attributes:
        attention: Budgets of RNNsearch and RNNencdec, by the suffix in the
            names of the paper's systems, those that take longest first. There
            is no RNNencdec-50*.
        lstm: Budget of each LSTM.
        reversed_count: Number of LSTMs with a reversed source; one more reads
            it forward.
        minutes: Longest time of a system in one call.
        limit: The flag of the longest training sentence: "max_length", which
            counts tokens, or "max_words".
        common: Flags of every training; each model gets those it uses.
        pairs: Number of sentence pairs of the built-in corpus in "train", "dev"
            and "test"; empty for a user's corpus.
    """

    attention: Mapping[str, Budget]
    lstm: Budget
    reversed_count: int
    minutes: float
    common: str
    limit: str = "max_length"
    pairs: Mapping[str, int] = field(default_factory=dict)

    def plans(self, files: Files, more: Sequence[str] = ()) -> list[Plan]:
        """The systems, those that take longest first.

        Args:
            files: The text files.
            more: Further flags of `bahdanau-tf train`, for every system whose
                model uses them.
        """
        corpus = [f"--{name}={getattr(files, name)}" for name in Files._fields]
        plans = []
        for name, counterpart, model, budget, own in self._systems():
            flags = (
                *corpus[:4],
                *self.common.split(),
                f"--model={model}",
                f"--{self.limit}={budget.longest}",
                *budget.flags(),
                *own,
                *more,
            )
            plans.append(Plan(name, _taken(model, flags), counterpart))
        return plans

    def about_corpus(self) -> str:
        """A sentence on the built-in corpus."""
        pairs = f"{self.pairs['train']:,} pairs of up to {self._longest} words"
        return (
            f"Data: the built-in English-French grammar, {pairs} to train on, "
            f"tested on sentences of up to {TEST_LENGTH}."
        )

    def write_corpus(self, folder: Path) -> Files:
        """Writes the built-in corpus, with longer sentences in the test set.

        Args:
            folder: A folder; existing files are not written again.

        Returns:
            The files.
        """
        lengths = (self._longest, TEST_LENGTH)
        learned, tested = (folder / f"up-to-{words}" for words in lengths)
        for where, words, absent in (
            (learned, self._longest, {"test": 0}),
            (tested, TEST_LENGTH, {"train": 0, "dev": 0}),
        ):
            if not (where / "train.fr").is_file():
                counts = {**self.pairs, **absent}
                grammar.write_corpus(where, **counts, max_words=words)
        names = ("train.en", "train.fr", "dev.en", "dev.fr")
        return Files(
            *(str(learned / name) for name in names),
            *(str(tested / f"test.{end}") for end in ("en", "fr", "align")),
        )

    @property
    def _longest(self) -> int:
        """Number of words of the longest training sentence."""
        return max(budget.longest for budget in self.attention.values())

    def _systems(self) -> Iterator[tuple[str, str, str, Budget, list[str]]]:
        """Name, the paper's system, model, budget and flags of its own."""
        for limit, budget in self.attention.items():
            star = "*" * limit.endswith("*")
            for model in ("RNNsearch", "RNNencdec")[: 1 if star else 2]:
                name = f"{model}-{budget.longest}{star}"
                # All but the longer trained one make as many updates.
                own = ["--patience=10000"] * bool(budget.updates and not star)
                yield name, f"{model}-{limit}", model.lower(), budget, own
        for number in range(1 + self.reversed_count):
            name = f"LSTM reversed {number}" if number else "LSTM forward"
            own = [f"--seed={max(number, 1)}"]
            own.append(f"--{'' if number else 'no'}reverse_source")
            yield name, "", "seq2seq-lstm", self.lstm, own


def _taken(model: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Those of some flags that a model takes."""
    unused = ModelOptions(model=model).unused()  # type: ignore[arg-type]
    refused = {f"--{no}{name}" for name in unused for no in ("", "no")}
    return tuple(f for f in flags if f.partition("=")[0] not in refused)


_COMMON = (
    "--recipe=paper "
    "--optimizer=adam --schedule=linear --shuffle=each_epoch --shuffle_pool"
)
_MODELS = "--nofactored_output --initialization=glorot --layers=2"
# Rare words of the built-in corpus are left out, so that there are unknown
# words at all.
_GRAMMAR = "--source_vocabulary_size=200 --target_vocabulary_size=260"
_LARGE = "--units=256 --embedding_dim=256 --learning_rate=0.002"
_LARGE_MODELS = f"{_MODELS} --attention_units=256 --maxout_units=256"

QUICK = Suite(
    attention={"50": Budget(30, 3.5), "30": Budget(15, 5.0)},
    lstm=Budget(15, 4.0),
    reversed_count=1,
    minutes=3.2,
    common=f"{_COMMON} {_GRAMMAR} --units=128 --embedding_dim=64 "
    "--learning_rate=0.004 --warmup_steps=50 --batch_size=64 "
    f"{_MODELS} --attention_units=64 --maxout_units=64",
    pairs={"train": 20_000, "dev": 100, "test": 300},
)
# The options are those that `train` chooses for the text. The paper's -50* made
# 2.3 times as many updates as its -50.
FULL = Suite(
    attention={
        "50*": Budget(50, updates=18_000),
        "50": Budget(50, updates=8_000),
        "30": Budget(30, updates=8_000),
    },
    lstm=Budget(50, updates=8_000),
    reversed_count=5,
    minutes=120.0,
    common="",
    limit="max_words",
)
FULL_GRAMMAR = Suite(
    attention={
        "50*": Budget(30, 16.0),
        "50": Budget(30, 8.0),
        "30": Budget(15, 8.0),
    },
    lstm=Budget(30, 8.0),
    reversed_count=5,
    minutes=120.0,
    common=f"{_COMMON} {_LARGE} {_GRAMMAR} {_LARGE_MODELS}",
    pairs={"train": 100_000, "dev": 500, "test": 3_000},
)
