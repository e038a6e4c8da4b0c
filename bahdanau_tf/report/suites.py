"""Which systems a report trains, and for how long.

The quick suite takes about 15 minutes on two cores, the full one several hours. Both stop a system
when its time is over, and resume when they are run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bahdanau_tf.options import ModelOptions
from bahdanau_tf.training.processes import Plan


class Files(NamedTuple):
    """The paths of text files; those that `bahdanau-tf train` reads are named like its flags."""

    train_source: str | None = None
    train_target: str | None = None
    dev_source: str | None = None
    dev_target: str | None = None
    source: str | None = None
    reference: str | None = None
    alignments: str | None = None


class Budget(NamedTuple):
    """How long a system is trained."""

    longest: int  # sentence, in the unit of `Suite.limit`; longer ones are left out
    epochs: float = 0.0  # if `updates` is 0
    updates: int = 0

    def flags(self) -> list[str]:
        """The flags of `bahdanau-tf train` that limit a training."""
        if not self.updates:
            return [f"--epochs={self.epochs:g}"]
        return [f"--updates={self.updates}", "--epochs=10000", "--minutes=0"]


@dataclass(frozen=True)
class Suite:
    """Systems to train."""

    # Budgets of RNNsearch and RNNencdec, by the suffix in the names of the paper's systems, the
    # longest first. The paper has no RNNencdec-50*.
    attention: Mapping[str, Budget]
    lstm: Budget  # of each LSTM
    reversed_count: int  # LSTMs with a reversed source; one more reads it forward
    minutes: float  # longest training of a system in one call
    common: str  # flags of every training; each model gets those that it uses
    limit: str = "max_length"  # the flag of the longest sentence: this, in tokens, or "max_words"
    # Sentence pairs of the built-in corpus in "train", "dev" and "test"; empty for a user's corpus.
    pairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def longest(self) -> int:
        """Number of words of the longest training sentence."""
        return max(budget.longest for budget in self.attention.values())

    def plans(self, files: Files, more: Sequence[str] = ()) -> list[Plan]:
        """The systems, the longest trainings first; `more` has flags for all that use them."""
        corpus = [f"--{name}={getattr(files, name)}" for name in Files._fields[:4]]
        plans = []
        for name, counterpart, model, budget, own in self._systems():
            flags = (
                *corpus,
                *self.common.split(),
                f"--model={model}",
                f"--{self.limit}={budget.longest}",
                *budget.flags(),
                *own,
                *more,
            )
            unused = ModelOptions(model=model).unused()  # type: ignore[arg-type]
            refused = {f"--{no}{flag}" for flag in unused for no in ("", "no")}
            flags = tuple(flag for flag in flags if flag.partition("=")[0] not in refused)
            plans.append(Plan(name, flags, counterpart))
        return plans

    def _systems(self) -> Iterator[tuple[str, str, str, Budget, list[str]]]:
        """Name, the paper's system, model, budget and flags of its own."""
        for limit, budget in self.attention.items():
            star = "*" * limit.endswith("*")
            for model in ("RNNsearch", "RNNencdec")[: 1 if star else 2]:
                name = f"{model}-{budget.longest}{star}"
                # All except the longer trained one make the same number of updates.
                own = ["--patience=10000"] * bool(budget.updates and not star)
                yield name, f"{model}-{limit}", model.lower(), budget, own
        for number in range(1 + self.reversed_count):
            name = f"LSTM reversed {number}" if number else "LSTM forward"
            own = [f"--seed={max(number, 1)}"]
            own.append(f"--{'' if number else 'no'}reverse_source")
            yield name, "", "seq2seq-lstm", self.lstm, own


_COMMON = "--recipe=paper --optimizer=adam --schedule=linear --shuffle=each_epoch --shuffle_pool"
_MODELS = "--nofactored_output --initialization=glorot --layers=2"
# Without the rare words of the built-in corpus, so that there are unknown words.
_GRAMMAR = "--source_vocabulary_size=200 --target_vocabulary_size=260"
_LARGE = "--units=256 --embedding_dim=256 --learning_rate=0.002"
_LARGE_MODELS = f"{_MODELS} --attention_units=256 --maxout_units=256"

QUICK = Suite(
    attention={"50": Budget(30, 3.5), "30": Budget(15, 5.0)},
    lstm=Budget(15, 4.0),
    reversed_count=1,
    minutes=3.2,
    common=f"{_COMMON} {_GRAMMAR} --units=128 --embedding_dim=64 --learning_rate=0.004 "
    f"--warmup_steps=50 --batch_size=64 {_MODELS} --attention_units=64 --maxout_units=64",
    pairs={"train": 20_000, "dev": 100, "test": 300},
)
# The paper's, in the step order of its code; `train` chooses the sizes.
_PAPER_FORM = (
    "--tokenizer=word --step_order=original --factored_output --notie_embeddings "
    "--initialization=paper --embedding_dropout=0 --annotation_dropout=0 --readout_dropout=0 "
    "--optimizer=adadelta --learning_rate=1.0 --schedule=constant --product_dtype=float32 "
    "--label_smoothing=0 --batch_size=80 --shuffle=once --noshuffle_pool"
)
# The paper's -50* made 2.3 times as many updates as its -50.
FULL = Suite(
    attention={
        "50*": Budget(50, updates=18_000),
        "50": Budget(50, updates=8_000),
        "30": Budget(30, updates=8_000),
    },
    lstm=Budget(50, updates=8_000),
    reversed_count=5,
    minutes=120.0,
    common=_PAPER_FORM,
    limit="max_words",
)
FULL_GRAMMAR = Suite(
    attention={"50*": Budget(30, 16.0), "50": Budget(30, 8.0), "30": Budget(15, 8.0)},
    lstm=Budget(30, 8.0),
    reversed_count=5,
    minutes=120.0,
    common=f"{_COMMON} {_LARGE} {_GRAMMAR} {_LARGE_MODELS}",
    pairs={"train": 100_000, "dev": 500, "test": 3_000},
)
