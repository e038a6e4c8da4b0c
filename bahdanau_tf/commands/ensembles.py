"""Scores single models and ensembles: Table 1 of Sutskever et al. 2014.

--reversed names models of one kind, with different seeds (in the paper, deep
LSTMs that read the source reversed); --forward one that reads it as it is.
Rows with more models than there are say "not run".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.commands.lines import check_count
from bahdanau_tf.commands.lines import read_lines
from bahdanau_tf.commands.model import define_average_flag
from bahdanau_tf.commands.model import load_best
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.translator import Translator

# How many models of which kind, at which beam size, as in the paper.
ROWS = (
    ("forward", 1, 12),
    ("reversed", 1, 12),
    ("reversed", 5, 1),
    ("reversed", 2, 12),
    ("reversed", 5, 2),
    ("reversed", 5, 12),
)


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
    define_fields(flags, Decoding)


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
    kinds = {
        kind: [load_best(folder) for folder in getattr(flags, kind)]
        for kind in ("forward", "reversed")
    }
    decoding = from_flags(flags, Decoding)
    signature = ""
    for kind, count, beam_size in ROWS:
        row = f"{_name(kind, count)}, beam size {beam_size}"
        if len(kinds[kind]) < count:
            print(f"{row:<45} not run", flush=True)
            continue
        score = _score(
            kinds[kind][:count],
            dataclasses.replace(decoding, beam_size=beam_size, n_best=1),
            (sources, references),
            flags,
        )
        print(f"{row:<45} {score.score:6.2f}", flush=True)
        signature = score.signature
    if signature:
        print(f"BLEU|{signature}")
    return 0


def _name(kind: str, count: int) -> str:
    return f"Single {kind}" if count == 1 else f"Ensemble of {count} {kind}"


def _score(
    translators: Sequence[Translator],
    decoding: Decoding,
    test: tuple[list[str], list[str]],
    flags: absl_flags.FlagValues,
) -> evaluation.Score:
    translator = translators[0]
    if len(translators) > 1:
        translator = Translator.ensemble(translators, flags.average)
    sources, references = test
    texts = [t.text for t in translator.translate(sources, decoding)]
    return evaluation.bleu(texts, references, tokenize=flags.tokenize)
