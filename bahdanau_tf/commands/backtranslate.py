"""Writes training text from text of one language, which a model or ensemble translates.

--target_text has the target language, and --model_dir a model of the other direction. Its
translations are synthetic sources: a model that is trained on them learns to write what people have
written ("back-translation", Sennrich et al. 2016, arXiv 1511.06709). The folder --out_dir gets
source.txt and target.txt for `train`: the synthetic pairs, then those of the training text. A
synthetic source begins with the sign ↩, which tells it from a real one (Caswell et al. 2019, arXiv
1906.06442); a text to translate has none.

--source_text has the source language, and --model_dir a model of this direction: a new model learns
from its translations ("self-training", He et al. 2020, arXiv 1909.13788).

The pairs of the training text are repeated until synthetic pairs have their --share, and each is
written at least once. Blank lines are left out, and so are translations that are empty or were cut
off at the length limit. Unknown words are forbidden unless --unknown says otherwise, since a model
would learn [UNK] as a word. An interrupted run starts over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.commands import distil, files, flags as common
from bahdanau_tf.data.parallel import ParallelCorpus, TextFile
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.ranges import Range

if TYPE_CHECKING:
    from bahdanau_tf.translator import Translator

SAMPLE = 256  # lines whose language is guessed
# Words and BPE read it as one token; they would split a tag such as <BT>.
SIGN = "\N{LEFTWARDS ARROW WITH HOOK}"


@dataclass(frozen=True)
class _Text(OptionGroup):
    target_text: str | None = option(
        "text of the target language, for a model of the other direction; may be .gz"
    )
    source_text: str | None = option(
        "instead, text of the source language, for a model of this direction; may be .gz"
    )
    share: float = option(
        "share of synthetic pairs in the result", 0.5, Range(0, 1, above_low=True, below_high=True)
    )


GROUPS = (
    common.MODEL,
    common.Group(common.Search, without=("n_best",), defaults={"unknown": "forbid"}),
    common.Group(distil.Files),
    common.Group(_Text),
    common.Group(common.Batches, "Lines"),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    if flags.target_text is None and flags.source_text is None:
        raise ValueError("--target_text or --source_text is missing")
    if flags.target_text is not None and flags.source_text is not None:
        raise ValueError("--target_text and --source_text: wanted one, not both")
    common.check_model(flags)
    distil.check_text(flags, "target_text", "source_text")


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    corpus = ParallelCorpus(flags.train_source, flags.train_target)
    for row, (source, _) in zip(corpus.rows, corpus.pairs(corpus.rows), strict=True):
        if source.lstrip().startswith(SIGN):
            raise ValueError(
                f"--train_source: line {row + 1} begins with {SIGN}, the sign of synthetic ones, "
                "wanted real sources"
            )
    path = flags.target_text or flags.source_text
    total = len(TextFile(path))  # checks its encoding, too
    translator = files.load_translator(flags)
    files.warn_of_sides([*read_lines(path, 0, SAMPLE)], translator.habits.languages)
    distil.write(flags.out_dir, _parts(flags, total, translator, corpus))


def _parts(
    flags: absl_flags.FlagValues, total: int, translator: Translator, corpus: ParallelCorpus
) -> Iterator[tuple[str, distil.Pair | None]]:
    """Yields the synthetic pairs, then those of the training text."""
    made, path, is_back = 0, flags.target_text or flags.source_text, bool(flags.target_text)
    part = "translated back" if is_back else "translated"
    for window in distil.windows(flags, ((line,) for line in read_lines(path)), total):
        texts = [text for (text,) in window]
        for text, best in zip(texts, distil.translated(flags, translator, texts), strict=True):
            other = distil.chosen(best)
            pair = (f"{SIGN} {other}", text) if is_back else (text, other)
            yield part, pair if other else None
            made += bool(other)
    real = max(len(corpus), round(made * (1 - flags.share) / flags.share))
    for pair in corpus.pairs(np.resize(corpus.rows, real)):
        yield "of the training text", pair
