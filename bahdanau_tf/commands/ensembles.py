"""Scores single models and ensembles: Table 1 of Sutskever et al. 2014.

--reversed names models of one kind, with different seeds (in the paper, deep
LSTMs that read the source reversed); --forward one that reads it as it is.
Rows with more models than there are say "not run".
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.commands.lines import check_count
from bahdanau_tf.commands.model import define_average_flag
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.report.ensembles import PAPER_ROWS
from bahdanau_tf.report.ensembles import translate_rows
from bahdanau_tf.text_files import read_lines
from bahdanau_tf.translator import load_best


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    for name, text in (
        ("forward", "folder of a model that reads the source as it is"),
        ("reversed", "folders of models, with commas between"),
    ):
        absl_flags.DEFINE_list(name, [], text, flag_values=flags)
    for name, text in (
        ("source", "text to translate"),
        ("reference", "its translation by hand"),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    define_average_flag(flags)
    absl_flags.DEFINE_string(
        "tokenize",
        "13a",
        "sacreBLEU's tokenizer: 13a, none for tokenized text, char, ...",
        flag_values=flags,
    )
    # Each row has its beam, and is scored by its best translations.
    define_fields(flags, Decoding, without=("beam_size", "n_best"))


def run(flags: absl_flags.FlagValues) -> int:
    """Scores every row."""
    for name in ("source", "reference"):
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
    if not flags.forward and not flags.reversed:
        raise ValueError("--forward or --reversed is missing")
    sources = list(read_lines(flags.source))
    references = list(read_lines(flags.reference))
    check_count("--source", sources, references)
    members = {
        kind: [load_best(folder) for folder in getattr(flags, kind)]
        for kind in ("forward", "reversed")
    }
    signature = ""
    for row, lines in translate_rows(
        PAPER_ROWS,
        members,
        sources,
        from_flags(flags, Decoding),
        flags.average,
    ):
        text = "not run"
        if lines is not None:
            score = evaluation.bleu(lines, references, tokenize=flags.tokenize)
            text, signature = f"{score.score:6.2f}", score.signature
        print(f"{row.name:<45} {text}", flush=True)
    if signature:
        print(f"BLEU|{signature}")
    return 0
