"""What a trace tells: plain data, for JSON and for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field


@dataclass(frozen=True)
class Gate:
    """How far a gate is open, over its n units.

    Attributes:
        mean: From 0, shut, to 1, open.
        norm: Euclidean norm, at most √n.
    """

    mean: float
    norm: float


@dataclass(frozen=True)
class Candidate:
    """A word that might come next.

    Attributes:
        token: The word.
        probability: p(y_i | y_1 .. y_{i-1}, x).
    """

    token: str
    probability: float


@dataclass(frozen=True)
class Contributions:
    """What a word's score is the sum of.

    A maxout unit passes on the larger of its two inputs; each term's share of
    that input counts, the other's does not.

    Attributes:
        state: What the decoder's state s adds, 0 where it is not read.
        previous: What the previous word E y_{i-1} adds.
        context: What the context c_i adds.
        bias: What the biases of readout and word add.
    """

    state: float = 0.0
    previous: float = 0.0
    context: float = 0.0
    bias: float = 0.0

    @property
    def total(self) -> float:
        """The word's score."""
        return self.state + self.previous + self.context + self.bias


@dataclass(frozen=True)
class Step:
    """One target word.

    Attributes:
        token: The word y_i, or the end symbol.
        logit: Its score.
        probability: p(y_i | y_1 .. y_{i-1}, x).
        candidates: The most probable words, the first first.
        energies: e_ij of each source token and of the end symbol; None
            without attention.
        weights: α_ij, likewise.
        context_norm: ‖c_i‖; None for a model without a context.
        gates: By name, of the cell's update in this step; for a deep cell the
            name begins with the layer, from the bottom. In the step order
            "original" the update brings y_{i-1} in before attention looks,
            and the first step has none. A plain recurrence has no gates.
        contributions: Of what the score is made; None for a readout that is
            neither maxout nor linear.
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
            symbol, whose energies and weights come last.
        step_order: "original", "appendix" or "main-text"; see
            `AttentionDecoder`.
        gate_convention: What the gates do, as an equation from s to s', for
            gates are named alike and meant differently; "" without gates.
        steps: One for each target word and the end symbol.
    """

    source: str
    source_tokens: list[str]
    step_order: str
    gate_convention: str
    steps: list[Step] = field(default_factory=list)
