"""The systems' translations of a test set, and their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf import evaluation
from bahdanau_tf.evaluation.scores import default_tokenizer
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import paper
from bahdanau_tf.system.terminal import ProgressLine
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.protocol import source_lengths
from bahdanau_tf.translator import Translator

KINDS = {"RNNSearch": "RNNsearch", "RNNEncDec": "RNNencdec", "Seq2SeqLSTM": "LSTM"}
OUTSIDE = "outside system"


class Corpus(NamedTuple):
    """Sentences, their translations, and the gold links of each pair, None if there are none."""

    sources: Sequence[str]
    references: Sequence[str]
    alignments: Sequence[evaluation.Links] | None = None


@dataclass(frozen=True)
class System:
    """A system and its translations of the test set."""

    name: str
    kind: str  # a value of `KINDS`, for an LSTM followed by its direction; or `OUTSIDE`
    texts: Sequence[str]  # its translation of every sentence, each of one line
    known_texts: Sequence[str]  # with [UNK] forbidden; valid only for sentences of known words
    counterpart: str = ""  # the paper's system that it corresponds to
    max_length: int | None = None  # of its training sentences, in the unit of `Results`, if known
    translator: Translator | None = None  # None for an outside system
    model_dir: Path | None = None  # the translator's folder
    translations: Sequence[Translation] = ()  # the translator's: `texts` with tokens and weights

    @property
    def aligner(self) -> Translator | None:
        """Its model, if that returns attention weights."""
        has_alignment = self.translator and self.translator.model.has_alignment
        return self.translator if has_alignment else None


@dataclass(frozen=True)
class Scoring:
    """How translations are made and scored.

    Attributes:
        decoding: How to search.
        tokenize: sacreBLEU's tokenizer, as in `bleu`; None for the one that fits the references.
        lowercase: Whether case is ignored.
        n_bootstrap: Number of samples for intervals and tests.
        nfc: Whether text is composed first, as in `bleu`.
    """

    decoding: Decoding = field(default_factory=Decoding)
    tokenize: str | None = None
    lowercase: bool = False
    n_bootstrap: int = 1000
    nfc: bool = True


@dataclass(frozen=True)
class Results:
    """Translations of a test set by some systems."""

    systems: Sequence[System]  # first those that correspond to the paper's
    test: Corpus
    lengths: Sequence[int]  # of the source sentences
    unit: str  # of `lengths`, such as "tokens"
    is_known: Sequence[bool]  # whether all words of a sentence are known
    scoring: Scoring  # its `tokenize` is not None

    @property
    def references(self) -> evaluation.References:
        """The reference translations, with the options for `bleu`."""
        how = self.scoring
        options = how.tokenize or "13a", how.lowercase, how.nfc
        return evaluation.References(self.test.references, *options)

    def p_values(
        self, systems: Sequence[System], mask: Sequence[bool] | None = None
    ) -> list[float]:
        """p of each system's difference in BLEU from the first one's."""
        texts = {system.name: system.texts for system in systems}
        rows = self.references.compare(texts, mask, self.scoring.n_bootstrap)
        return [1.0 if row.p_value is None else row.p_value for row in rows]

    def of_kind(self, kind: str) -> list[System]:
        """The systems of a kind, LSTMs of both directions together."""
        return [system for system in self.systems if system.kind.split()[0] == kind]

    def as_in_training(self, *systems: System) -> list[bool] | None:
        """Whether each sentence is no longer than the systems' training limits.

        None if there are no systems, or the limit of one is unknown.
        """
        limits = [system.max_length for system in systems if system.max_length]
        if not limits or len(limits) < len(systems):
            return None
        return [length <= min(limits) for length in self.lengths]


def measure(
    model_dirs: Mapping[str, str | Path],
    outside: Mapping[str, Sequence[str]],
    test: Corpus,
    scoring: Scoring,
    counterparts: Mapping[str, str],
) -> Results:
    """Translates a test set with every model, and adds outside systems' translations.

    `counterparts` has for some systems the corresponding one of the paper; one with the name of a
    system of the paper always corresponds to it. The paper's order is kept.
    """
    folders = {name: Path(folder) for name, folder in model_dirs.items()}
    models = {name: Translator.load(folder) for name, folder in folders.items()}
    is_known = evaluation.known_sentences([*models.values()], *test[:2])
    by_words = any(model.habits.longest_words for model in models.values())
    limit = "longest_words" if by_words else "longest"
    papers = {name: name for name in paper.BLEU} | {**counterparts}
    systems = []
    line = ProgressLine(len(models))
    for name, folder in folders.items():
        system = _translate(name, models[name], test.sources, is_known, scoring.decoding)
        system = replace(system, model_dir=folder, max_length=getattr(models[name].habits, limit))
        systems.append(replace(system, counterpart=papers.get(name, "")))
        line.update(len(systems), f"translated by {name}")
    for name, lines in outside.items():
        systems.append(System(name, OUTSIDE, lines, lines, papers.get(name, "")))
    order = [*paper.BLEU, ""]
    systems.sort(key=lambda system: order.index(system.counterpart))
    translators = [system.translator for system in systems if system.translator]
    if scoring.tokenize is None:
        text = translators[0].target_text if translators else None
        scoring = replace(scoring, tokenize=default_tokenizer(text, test.references))
    lengths, unit = source_lengths([x.source_text for x in translators], test.sources, by_words)
    return Results(systems, test, lengths, unit, is_known, scoring)


def _translate(
    name: str,
    translator: Translator,
    sources: Sequence[str],
    is_known: Sequence[bool],
    decoding: Decoding,
) -> System:
    kind = type(translator.model).__name__
    kind = KINDS.get(kind, kind)
    if kind == "LSTM":
        kind += " reversed" if translator.source_text.reverse else " forward"
    decoding = replace(decoding, n_best=1)
    translations = translator.translate(sources, decoding, split_sentences=False)
    texts = [translation.line for translation in translations]
    decoding = replace(decoding, unknown="forbid")
    forbidden = iter(
        translator.translate([*compress(sources, is_known)], decoding, split_sentences=False)
    )
    known_texts = [
        next(forbidden).line if each_is_known else text
        for text, each_is_known in zip(texts, is_known, strict=True)
    ]
    return System(name, kind, texts, known_texts, translator=translator, translations=translations)


Members = Mapping[str, Sequence[Translator]]  # the models of each kind
Row = tuple[str, int, int]  # kind, number of models, beam size
MIXED = "mixed"  # a forward and a reversed model together


def name_of(kind: str, size: int, beam_size: int = 0) -> str:
    """The paper's name of some models: "Ensemble of 5 reversed, ..."."""
    name = f"Single {kind}" if size == 1 else f"Ensemble of {size} {kind}"
    return f"{name}, beam size {beam_size}" if beam_size else name


def as_one(
    members: Members, kind: str, size: int, average: str = "probability"
) -> Translator | None:
    """The first `size` models of a kind as one; None if there are too few."""
    chosen = members.get(kind, ())[:size]
    if len(chosen) < size:
        return None
    return chosen[0] if size == 1 else Translator.ensemble(chosen, average)


def translate_rows(
    rows: Iterable[Row],
    members: Members,
    sources: Sequence[str],
    decoding: Decoding,
    average: str = "probability",
) -> Iterator[tuple[Row, list[str] | None]]:
    """Translates with the models of each row, such as `paper.ENSEMBLES`.

    Beam sizes are those of the rows; `average` is as in `Ensemble`. Yields each row with its
    translations, or with None if there are not enough models.
    """
    for row in rows:
        kind, size, beam_size = row
        lines = None
        if translator := as_one(members, kind, size, average):
            how = replace(decoding, beam_size=beam_size, n_best=1)
            translations = translator.translate(sources, how, split_sentences=False)
            lines = [translation.text for translation in translations]
        yield row, lines
