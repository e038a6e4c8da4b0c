"""All that a report says: tables, figures and words, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bahdanau_tf import __version__
from bahdanau_tf.device import describe_device
from bahdanau_tf.evaluation import LengthBin
from bahdanau_tf.evaluation import bleu_tokenizer
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import figures
from bahdanau_tf.report.alignments import alignment_quality
from bahdanau_tf.report.claim import Finding
from bahdanau_tf.report.claim import findings
from bahdanau_tf.report.lstm_tables import ensemble_table
from bahdanau_tf.report.lstm_tables import lstm_members
from bahdanau_tf.report.lstm_tables import rescoring_table
from bahdanau_tf.report.page import Picture
from bahdanau_tf.report.page import Section
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured
from bahdanau_tf.report.systems import source_lengths
from bahdanau_tf.report.tables import Table
from bahdanau_tf.report.tables import alignment_table
from bahdanau_tf.report.tables import long_sentences
from bahdanau_tf.report.tables import significance
from bahdanau_tf.report.tables import translation_quality
from bahdanau_tf.report.training_table import training_table

SAMPLES = 1000  # of the bootstraps
FITTING = ", which fits the script of the references."
_PACKAGES = ("tensorflow", "keras", "sacrebleu", "numpy")


@dataclass(frozen=True)
class Scoring:
    """How translations are made and scored.

    Attributes:
        decoding: How to search.
        tokenize: sacreBLEU's tokenizer, as in `bleu`; None for the one that
            fits the references.
        lowercase: Whether case is ignored.
        n_bootstrap: Samples for intervals and tests.
    """

    decoding: Decoding = field(default_factory=Decoding)
    tokenize: str | None = None
    lowercase: bool = False
    n_bootstrap: int = SAMPLES

    def how(
        self, systems: Sequence[Measured], references: Sequence[str]
    ) -> dict[str, Any]:
        """What `bleu` is told; the language is that of the first model."""
        known = (one.translator for one in systems if one.translator)
        text = getattr(next(known, None), "target_text", None)
        language = getattr(text, "language", "")
        return {
            "tokenize": self.tokenize or bleu_tokenizer(language, references),
            "lowercase": self.lowercase,
        }


class Contents:
    """What a report says.

    Args:
        out_dir: Where figures are drawn.
        systems: What was measured.
        known: Which sentences have no unknown words.
        test: The test set.
        scoring: How it was translated and is scored.
    """

    def __init__(
        self,
        out_dir: Path,
        systems: list[Measured],
        known: list[bool],
        test: Corpus,
        scoring: Scoring,
    ) -> None:
        self.out_dir, self.systems, self.known = out_dir, systems, known
        self.test, self.scoring = test, scoring
        self.lengths, self.unit = source_lengths(
            [one.translator for one in systems if one.translator], test.sources
        )
        self.chosen = figures.choose(self.lengths, known)
        self.how = how = scoring.how(systems, test.references)
        samples = scoring.n_bootstrap
        self.findings: list[Finding] = findings(
            systems, test, self.lengths, how, samples
        )
        self.curves: dict[str, list[LengthBin]] = figures.curves(
            systems, test, self.lengths, how, samples
        )

    def sections(
        self, train: Corpus | None, dev: Corpus | None
    ) -> list[Section]:
        """Tables and figures in the order of the paper."""
        how, samples = self.how, self.scoring.n_bootstrap
        quality = translation_quality(
            self.systems, self.test, self.known, how, samples
        )
        chance = significance(self.systems, self.test.references, how, samples)
        return [
            Section(tables=[quality, chance]),
            self._figure_2(),
            self._figure_3(),
            Section(tables=[self._alignments()]),
            Section(tables=[training_table(self.systems, train, dev)]),
            Section(
                tables=[
                    long_sentences(self.systems, self.test, self.chosen.long)
                ]
            ),
            Section(tables=self.lstm_tables()),
        ]

    def _figure_2(self) -> Section:
        path = figures.draw_curves(self.curves, self.out_dir)
        title = (
            f"BLEU by source length in {self.unit}; bands are 95 % bootstrap "
            "intervals, points stand in the middle of their ten lengths"
        )
        return Section(
            "Figure 2. BLEU by sentence length",
            [Picture(path, title)],
            [figures.curve_table(self.curves, self.unit)],
        )

    def _figure_3(self) -> Section:
        title = "Figure 3. Alignments"
        system = figures.aligner(self.systems)
        if system is None:
            return Section(title, paragraphs=["Not run: no model has any."])
        drawn = figures.draw_alignments(
            system, self.chosen.aligned, self.out_dir
        )
        if not drawn:
            silent = f"Not drawn: {system.name} wrote nothing for those chosen."
            return Section(title, paragraphs=[silent])
        rule = (
            f"Soft alignments of {system.name}, 0 black and 1 white, source on "
            "top, output at the side. By the paper's rule (a) is any sentence, "
            "and the others are drawn at random, with a fixed seed, among "
            "those of 10 to 20 words without unknown words."
        )
        return Section(
            title,
            [
                Picture(path, f"({path.stem[-1]}) {text}")
                for path, text in drawn
            ],
            paragraphs=[rule],
        )

    def _alignments(self) -> Table:
        qualities = {
            one.name: alignment_quality(
                one.translator, self.test, self._as_in_training(one)
            )
            for one in self.systems
            if one.translator and one.has_alignment
        }
        return alignment_table(qualities, self.systems)

    def lstm_tables(self) -> list[Table]:
        """Ensembles and rescoring, after Sutskever et al."""
        members = lstm_members(self.systems)
        lstms = [one for one in self.systems if one.kind.startswith("LSTM")]
        short = self._as_in_training(*lstms)
        how, decoding = self.how, self.scoring.decoding
        encdecs = [one for one in self.systems if one.kind == "RNNencdec"]
        baseline = max(
            encdecs, key=lambda one: one.max_length or 0, default=None
        )
        return [
            ensemble_table(members, self.test, short, decoding, how),
            rescoring_table(baseline, members, self.test, decoding, how),
        ]

    def _as_in_training(self, *systems: Measured) -> list[bool] | None:
        """Which sentences are no longer than what all were trained on.

        None if there are no systems, or it is not known of one of them.
        """
        known = [one.max_length for one in systems if one.max_length]
        if not known or len(known) < len(systems):
            return None
        return [length <= min(known) for length in self.lengths]

    def about(self) -> list[str]:
        """Sentences about the test and how it was done."""
        search = ", ".join(
            f"{name} {value}"
            for name, value in vars(self.scoring.decoding).items()
            if name != "n_best"
        )
        return [
            f"Test set: {len(self.lengths)} sentences of {min(self.lengths)} "
            f"to {max(self.lengths)} {self.unit}, which are meant wherever "
            "this page counts the words of a sentence.",
            f"Search: {search}.",
            "BLEU counts words as sacreBLEU's tokenizer "
            f"{self.how['tokenize']} makes them"
            + ("." if self.scoring.tokenize else FITTING),
            f"Measured on {describe_device()}, with bahdanau_tf {__version__}"
            + "".join(f", {name} {version(name)}" for name in _PACKAGES)
            + ".",
        ]

    def as_json(self, sections: Sequence[Section]) -> dict[str, Any]:
        """All data of the report."""
        aligned = figures.aligner(self.systems)
        drawn = (
            [aligned.translations[place] for place in self.chosen.aligned]
            if aligned
            else []
        )
        return {
            "findings": [one._asdict() for one in self.findings],
            "tables": {
                table.name: table.as_json()
                for section in sections
                for table in section.tables
            },
            "figure2": {
                name: [
                    {
                        "shortest": one.shortest,
                        "longest": one.longest,
                        "sentences": one.sentences,
                        "bleu": one.score.score,
                        "interval": one.score.interval,
                        "signature": one.score.signature,
                    }
                    for one in points
                ]
                for name, points in self.curves.items()
            },
            "figure3": [_matrix(shown) for shown in drawn],
        }


def _matrix(translation: Any) -> dict[str, Any]:
    weights = translation.weights
    return {
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "weights": [] if weights is None else weights.round(4).tolist(),
    }
