"""Scores single models and ensembles: Table 1 of Sutskever et al. 2014.

--reversed names models of one kind, with different seeds, that read the source from its last word
to its first (in the paper, deep LSTMs); --forward names a model that reads it from left to right.
Rows that need more models than you name say "not run".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands import flags as common
from bahdanau_tf.commands.files import check_count, check_tokenize_flag, tokenizer_for
from bahdanau_tf.evaluation.tables import NOT_RUN, text_row
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import SAMPLING
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import read_lines

if TYPE_CHECKING:
    from bahdanau_tf.translator import Translator


@dataclass(frozen=True)
class _Models(common.Average, common.Modules):
    forward: tuple[str, ...] = option(
        "folders of models that read the source as it is written, separated by commas", ()
    )
    reversed: tuple[str, ...] = option(
        "folders of models that read the source reversed, separated by commas", ()
    )


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text to translate", required=True)
    reference: str | None = option("its reference translation", required=True)


# Each row sets its own beam size, and only the best translations count.
WITHOUT = ("beam_size", "n_best", *SAMPLING)
DIRECTIONS = ("forward", "reversed")
GROUPS = (
    common.Group(_Models, "Model"),
    common.Group(_Files),
    common.Group(common.Scores, without=("ignore_case",)),
    common.Group(Decoding, "Search", WITHOUT),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    if not flags.forward and not flags.reversed:
        raise ValueError("--forward or --reversed is missing")
    for name in DIRECTIONS:
        common.check_folders(name, getattr(flags, name))
    common.check_files(flags, "source", "reference")
    common.check_search(flags)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    from bahdanau_tf.report import paper
    from bahdanau_tf.report.results import name_of, translate_rows

    check_tokenize_flag(flags)
    sources = list(read_lines(flags.source))
    references = list(read_lines(flags.reference))
    check_count("--source", len(sources), len(references))
    members = {kind: _loaded(kind, getattr(flags, kind)) for kind in DIRECTIONS}
    translators = [*itertools.chain(*members.values())]
    first = translators[0]
    if any(x.target_text.settings() != first.target_text.settings() for x in translators):
        raise ValueError(
            "--forward, --reversed: the target tokenizers differ, wanted one for all models"
        )
    tokenize = tokenizer_for(flags, first, references)
    judge = evaluation.References(references, tokenize, nfc=flags.nfc)
    signature = ""
    widths = [max(len(name_of(*row)) for row in paper.ENSEMBLES), 7]
    decoding = common.from_flags(flags, Decoding)
    for row, lines in translate_rows(paper.ENSEMBLES, members, sources, decoding, flags.average):
        score = None if lines is None else judge.bleu(lines)
        cells = [name_of(*row), NOT_RUN if score is None else score.score]
        print(text_row(cells, widths), flush=True)
        signature = score.signature if score else signature
    if signature:
        print(f"BLEU|{signature}")


def _loaded(direction: str, folders: Sequence[str]) -> list[Translator]:
    """Loads models of one class and of a direction; raises ValueError if one is not."""
    from bahdanau_tf.translator import Translator

    loaded = [Translator.load(folder) for folder in folders]
    for folder, translator in zip(folders, loaded, strict=True):
        kind, first = (type(x.model).__name__ for x in (translator, loaded[0]))
        for text in translator.source_texts:
            actual = DIRECTIONS[bool(text.reverse)]
            if actual != direction:
                raise ValueError(
                    f"--{direction}: the {kind} of {folder} reads the source {actual}, wanted it "
                    f"in --{actual}"
                )
        if kind != first:
            raise ValueError(
                f"--{direction}: {folder} holds a {kind} and {folders[0]} a {first}, wanted "
                "models of one kind"
            )
    return loaded
