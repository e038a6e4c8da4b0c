"""A trace as plain data, for JSON and for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field


@dataclass(frozen=True)
class Gate:
    """The values of a gate's n units, summarized.

    Attributes:
        mean: Their mean, from 0 (closed) to 1 (open).
        norm: Euclidean norm, at most √n.
    """

    mean: float
    norm: float


@dataclass(frozen=True)
class Candidate:
    """One of the most probable next words.

    Attributes:
        token: The word.
        probability: p(y_i | y_1 .. y_{i-1}, x).
    """

    token: str
    probability: float


@dataclass(frozen=True)
class Contributions:
    """The terms whose sum is a word's logit.

    A maxout unit outputs the larger of its two inputs, so only that input is
    split into terms.

    Attributes:
        state: Term of the decoder's state s; 0 if the readout does not use it.
        previous: Term of the previous word E y_{i-1}.
        context: Term of the context c_i.
        bias: Term of the biases of readout and word.
    """

    state: float = 0.0
    previous: float = 0.0
    context: float = 0.0
    bias: float = 0.0

    @property
    def total(self) -> float:
        """The word's logit."""
        return self.state + self.previous + self.context + self.bias


@dataclass(frozen=True)
class Step:
    """One target word.

    Attributes:
        token: The word y_i, or the end symbol.
        logit: Its logit.
        probability: p(y_i | y_1 .. y_{i-1}, x).
        candidates: The most probable words, best first.
        energies: e_ij of each source token and of the end symbol; None
            without attention, or if the attention has a `call` of its own.
        weights: α_ij of the same; None without attention.
        context_norm: ‖c_i‖; None for a model without a context.
        gates: The gates of the cell's update in this step, by name; for a deep
            cell the name begins with the layer, from the bottom. In the step
            order "original" the update with y_{i-1} comes before attention, and
            the first step has no update. A `ConditionalDecoder` has two
            updates: its names begin with "word" and "context". A plain
            recurrence has no gates.
        contributions: The terms of the logit; None for a readout that is
            neither `MaxoutReadout` nor `LinearReadout` itself.
    """

    token: str
    logit: float
    probability: float
    candidates: list[Candidate]
    energies: list[float] | None
    weights: list[float] | None
    context_norm: float | None
    gates: dict[str, Gate]
    contributions: Contributions | None


@dataclass(frozen=True)
class Trace:
    """All steps of one translation.

    It is plain data: `json.dumps(dataclasses.asdict(trace))`.

    Attributes:
        source: The sentence.
        source_tokens: Its tokens in the order of the text, without the end
            symbol. Energies and weights have one more entry, for that symbol.
        step_order: "original", "appendix" or "main-text", see
            `AttentionDecoder`, or "conditional", see `ConditionalDecoder`.
        gate_convention: The meaning of the gates, as an equation from s to s',
            since gates of the same name differ between cells; "" without gates.
            If the layers of a deep cell differ, a line for each.
        steps: One for each target word and for the end symbol.
    """

    source: str
    source_tokens: list[str]
    step_order: str
    gate_convention: str
    steps: list[Step] = field(default_factory=list)
