"""The systems of a report: trained models, and others' translations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.evaluation import Links
from bahdanau_tf.evaluation import known_sentences
from bahdanau_tf.options import Decoding
from bahdanau_tf.progress import ProgressLine
from bahdanau_tf.report import paper
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator
from bahdanau_tf.translator import load_best

KINDS = {
    "RNNSearch": "RNNsearch",
    "RNNEncDec": "RNNencdec",
    "Seq2SeqLSTM": "LSTM",
}
OUTSIDE = "outside system"


class Corpus(NamedTuple):
    """Sentence pairs, with gold word alignments where they are known.

    Attributes:
        sources: The sentences.
        references: Their translations.
        alignments: Links between the tokens of each pair, or None.
    """

    sources: Sequence[str]
    references: Sequence[str]
    alignments: Sequence[Links] | None = None


@dataclass(frozen=True)
class Measured:
    """A system and its translations of the test set.

    Attributes:
        name: What the report calls it.
        kind: One of `KINDS`, an LSTM with "forward" or "reversed" behind it,
            or `OUTSIDE`.
        texts: Its translation of every sentence.
        known_texts: Its translation of those without unknown words, where
            [UNK] was forbidden.
        counterpart: The paper's system that it stands for, or "".
        max_length: Longest sentence that it was trained on; None if that is
            not known, or none was left out for its length.
        translator: The model, or None.
        model_dir: Its folder, or None.
        translations: As `texts`, with tokens and weights; none of an outside
            system.
    """

    name: str
    kind: str
    texts: list[str]
    known_texts: list[str]
    counterpart: str = ""
    max_length: int | None = None
    translator: Translator | None = None
    model_dir: Path | None = None
    translations: list[Translation] = field(default_factory=list)

    @property
    def has_alignment(self) -> bool:
        """Whether its model gives attention weights."""
        return bool(self.translator and self.translator.model.has_alignment)


def kind_of(translator: Translator) -> str:
    """What a model is called in the tables."""
    name = type(translator.model).__name__
    kind = KINDS.get(name, name)
    if kind != "LSTM":
        return kind
    turned = translator.source_text.reverse
    return f"{kind} {'reversed' if turned else 'forward'}"


def source_lengths(
    translators: Sequence[Translator], sources: Sequence[str]
) -> tuple[list[int], str]:
    """Words of each source, and what counts as a word.

    They are tokens of the first model that has words, the same for all
    systems; else sub-words of the first model, by which its training counted;
    without a model, what stands between blanks.
    """
    texts = [translator.source_text for translator in translators]
    by_word = [text for text in texts if isinstance(text, WordTokenizer)]
    if by_word:
        return token_lengths(by_word[0], sources), "tokens"
    if texts:
        return token_lengths(texts[0], sources), "sub-words"
    return [len(source.split()) for source in sources], "words between blanks"


def token_lengths(text: Any, lines: Sequence[str]) -> list[int]:
    """Tokens of each line, the end symbol not counted, as training counts.

    Args:
        text: A tokenizer.
        lines: The lines.
    """
    rows = text.tokenize(tf.constant(lines, tf.string))
    return (rows.row_lengths() - 1).numpy().tolist()


def measure(
    model_dirs: Mapping[str, str | Path],
    outside: Mapping[str, Sequence[str]],
    test: Corpus,
    decoding: Decoding,
    counterparts: Mapping[str, str],
) -> tuple[list[Measured], list[bool]]:
    """Lets every model translate the test set, and puts others beside them.

    Args:
        model_dirs: Folders of trained models by the systems' names.
        outside: Translations by the names of other systems.
        test: What to translate.
        decoding: How to search.
        counterparts: The paper's systems that some of them stand for.

    Returns:
        The systems, those that stand for the paper's first; and which
        sentences have no unknown words.
    """
    loaded = {name: load_best(folder) for name, folder in model_dirs.items()}
    sources, references = test.sources, test.references
    known = known_sentences([*loaded.values()], sources, references)
    systems = []
    line = ProgressLine(len(loaded))
    for name, translator in loaded.items():
        found = _translated(name, translator, test, known, decoding)
        folder = Path(model_dirs[name])
        systems.append(
            replace(found, model_dir=folder, max_length=_trained_length(folder))
        )
        line.update(len(systems), f"translated by {name}")
    for name, lines in outside.items():
        chosen = _under(known, lines)
        systems.append(Measured(name, OUTSIDE, list(lines), chosen))
    systems = [
        replace(one, counterpart=_counterpart(one.name, counterparts))
        for one in systems
    ]
    order = [*paper.BLEU, ""]
    systems.sort(key=lambda one: order.index(one.counterpart))
    return systems, known


def _translated(
    name: str,
    translator: Translator,
    test: Corpus,
    known: Sequence[bool],
    decoding: Decoding,
) -> Measured:
    decoding = replace(decoding, n_best=1)
    found = translator.translate(test.sources, decoding)
    forbidden = translator.translate(
        _under(known, test.sources), replace(decoding, unknown="forbid")
    )
    return Measured(
        name,
        kind_of(translator),
        [translation.text for translation in found],
        [translation.text for translation in forbidden],
        translator=translator,
        translations=found,
    )


def _under(mask: Sequence[bool], lines: Sequence[str]) -> list[str]:
    return [line for line, kept in zip(lines, mask, strict=True) if kept]


def _counterpart(name: str, counterparts: Mapping[str, str]) -> str:
    return counterparts.get(name, name if name in paper.BLEU else "")


def _trained_length(model_dir: Path) -> int | None:
    """The longest sentence in training, where there is a limit on record."""
    path = model_dir / "training.json"
    if not path.is_file():
        return None
    return json.loads(path.read_text("utf-8"))["recipe"]["max_length"] or None
