"""Does RNNsearch stay flat where RNNencdec falls? In words, from figures."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from bahdanau_tf.evaluation import bleu
from bahdanau_tf.evaluation import compare
from bahdanau_tf.evaluation import select
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured

FLAT = 0.8  # share of its BLEU that a flat curve keeps
ENOUGH = 10  # sentences of each kind
UNKNOWN_LENGTH = 30  # taken where it is not known what was trained on
RULE = (
    "A pair that learned from sentences of up to L words is tried on long "
    "sentences twice: of more than L / 2 and up to L words, and of more than "
    "L, such as neither has seen; short ones have up to L / 2. “Yes” means "
    f"that RNNsearch keeps at least {100 * FLAT:.0f} % of its BLEU on long "
    "sentences, that RNNencdec does not, and that RNNsearch is better there by "
    "a distance that is hardly chance (paired bootstrap, p below 0.05)."
)


class Finding(NamedTuple):
    """What the report says of a pair of systems.

    Attributes:
        is_shown: Whether the paper's claim is to be seen; None if it could not
            be tried.
        text: What was found, in words.
    """

    is_shown: bool | None
    text: str


class Part(NamedTuple):
    """Sentences that are long for a system.

    Attributes:
        title: What they are called.
        shortest: Their fewest words.
        longest: Their most words.
    """

    title: str
    shortest: int
    longest: float


class Kept(NamedTuple):
    """What a system keeps of its BLEU on long sentences.

    Attributes:
        name: The system.
        short: BLEU of short sentences.
        long: That of long ones.
    """

    name: str
    short: float
    long: float

    @property
    def share(self) -> float:
        """The share of its BLEU that it keeps."""
        return self.long / self.short if self.short else 0.0

    def __str__(self) -> str:
        return (
            f"{self.name} has BLEU {self.short:.2f} on short sentences and "
            f"{self.long:.2f} on long ones, and so keeps "
            f"{100 * self.share:.0f} %"
        )


def findings(
    systems: Sequence[Measured],
    test: Corpus,
    lengths: Sequence[int],
    how: Mapping[str, Any],
    n_bootstrap: int,
) -> list[Finding]:
    """Tries the claim on each RNNsearch with the RNNencdec trained alike.

    `RULE` says how.

    Args:
        systems: What was measured.
        test: The test set.
        lengths: Words of its sources.
        how: `tokenize` and `lowercase` of `bleu`.
        n_bootstrap: Samples of the paired bootstrap.

    Returns:
        Two findings for each pair; one that says so where there is no pair.
    """
    found = []
    for search in (one for one in systems if one.kind == "RNNsearch"):
        for encdec in (one for one in systems if one.kind == "RNNencdec"):
            if search.max_length != encdec.max_length:
                continue
            limit = search.max_length or UNKNOWN_LENGTH
            half = limit // 2
            for part in (
                Part(f"{half + 1} to {limit} words", half + 1, limit),
                Part(f"more than {limit} words", limit + 1, float("inf")),
            ):
                trial = _Trial(search, encdec, half, part, lengths)
                found.append(trial.finding(test.references, how, n_bootstrap))
    return found or [
        Finding(
            None,
            "There is no RNNsearch beside an RNNencdec that was trained on "
            "sentences of the same length.",
        )
    ]


class _Trial:
    """The claim for a pair of systems and some long sentences."""

    def __init__(
        self,
        search: Measured,
        encdec: Measured,
        half: int,
        part: Part,
        lengths: Sequence[int],
    ) -> None:
        self.search, self.encdec = search, encdec
        self.title = (
            f"{search.name} and {encdec.name}, sentences of {part.title} "
            f"beside those of up to {half}: "
        )
        self.short = [length <= half for length in lengths]
        self.long = [part.shortest <= n <= part.longest for n in lengths]

    def finding(
        self,
        references: Sequence[str],
        how: Mapping[str, Any],
        n_bootstrap: int,
    ) -> Finding:
        """Scores both and says how it went."""
        if min(sum(self.short), sum(self.long)) < ENOUGH:
            return Finding(
                None, f"{self.title}the test set has too few such sentences."
            )
        search, encdec = (
            self._kept(one, references, how)
            for one in (self.search, self.encdec)
        )
        p = self._chance(references, how, n_bootstrap)
        against = [
            reason
            for reason, holds in (
                (f"{search.name} does not stay flat", search.share < FLAT),
                (f"{encdec.name} does not fall", encdec.share >= FLAT),
                (
                    f"{search.name} is not clearly better on long sentences",
                    search.long <= encdec.long or p >= 0.05,
                ),
            )
            if holds
        ]
        verdict = "RNNsearch stays flat where RNNencdec falls"
        if against:
            verdict = "unlike in the paper, " + ", and ".join(against)
        return Finding(
            not against,
            f"{self.title}{verdict}. {search}; {encdec}. The difference on "
            f"long sentences has p = {p:.4f}.",
        )

    def _kept(
        self,
        system: Measured,
        references: Sequence[str],
        how: Mapping[str, Any],
    ) -> Kept:
        scores = (
            bleu(*select(mask, system.texts, references), **how).score
            for mask in (self.short, self.long)
        )
        return Kept(system.name, *scores)

    def _chance(
        self,
        references: Sequence[str],
        how: Mapping[str, Any],
        n_bootstrap: int,
    ) -> float:
        """p of the paired bootstrap on the long sentences."""
        ours, theirs, wanted = select(
            self.long, self.search.texts, self.encdec.texts, references
        )
        (_, other) = compare(
            {"search": ours, "encdec": theirs},
            wanted,
            n_bootstrap=n_bootstrap,
            **how,
        )
        return 1.0 if other.p_value is None else other.p_value
