"""What `plot_trace` reads of a trace, as `bahdanau_tf.tracing.Trace` has it."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol


class Gate(Protocol):
    """As `bahdanau_tf.tracing.Gate`."""

    @property
    def mean(self) -> float: ...


class Candidate(Protocol):
    """As `bahdanau_tf.tracing.Candidate`."""

    @property
    def token(self) -> str: ...

    @property
    def probability(self) -> float: ...


class Step(Protocol):
    """As `bahdanau_tf.tracing.Step`."""

    @property
    def token(self) -> str: ...

    @property
    def logit(self) -> float: ...

    @property
    def candidates(self) -> Sequence[Candidate]: ...

    @property
    def energies(self) -> Sequence[float] | None: ...

    @property
    def weights(self) -> Sequence[float] | None: ...

    @property
    def context_norm(self) -> float | None: ...

    @property
    def gates(self) -> Mapping[str, Gate]: ...

    @property
    def contributions(self) -> object | None: ...


class Trace(Protocol):
    """As `bahdanau_tf.tracing.Trace`."""

    @property
    def source_tokens(self) -> Sequence[str]: ...

    @property
    def gate_convention(self) -> str: ...

    @property
    def steps(self) -> Sequence[Step]: ...
