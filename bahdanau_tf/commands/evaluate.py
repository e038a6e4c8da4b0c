"""Scores a model, or another system's output, against references.

With --model_dir the lines of --source are translated; with --hypotheses they
are read from a file. BLEU and chrF are sacreBLEU's, printed with signatures.
"""

from __future__ import annotations

import sys
import time

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.lines import read_lines
from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import load_translator


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    for name, text in (
        ("source", "text to translate"),
        ("reference", "its translation by hand"),
        ("hypotheses", "translations to score in place of the model's"),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    absl_flags.DEFINE_string(
        "tokenize",
        "13a",
        "sacreBLEU's tokenizer: 13a, none for tokenized text, char, ...",
        flag_values=flags,
    )
    absl_flags.DEFINE_bool(
        "ignore_case", False, "whether case is ignored", flag_values=flags
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Scores."""
    if flags.reference is None:
        raise ValueError("--reference is missing")
    references = list(read_lines(flags.reference))
    if flags.hypotheses is not None:
        hypotheses = list(read_lines(flags.hypotheses))
    elif flags.source is not None:
        hypotheses = _translated(flags, references)
    else:
        raise ValueError(
            "--source (with --model_dir) or --hypotheses is missing"
        )
    print(
        evaluation.bleu(
            hypotheses,
            references,
            tokenize=flags.tokenize,
            lowercase=flags.ignore_case,
        )
    )
    print(evaluation.chrf(hypotheses, references, lowercase=flags.ignore_case))
    return 0


def _translated(
    flags: absl_flags.FlagValues, references: list[str]
) -> list[str]:
    sources = list(read_lines(flags.source))
    if len(sources) != len(references):
        raise ValueError(
            f"--source has {len(sources)} lines and --reference "
            f"{len(references)}, wanted as many"
        )
    translator = load_translator(flags)
    start = time.monotonic()
    translations = translator.translate(sources)
    seconds = time.monotonic() - start
    unfinished = sum(not t.finished for t in translations)
    print(
        f"{len(sources)} sentences in {seconds:.1f} s, {unfinished} cut off "
        "at the length limit",
        file=sys.stderr,
    )
    return [translation.text for translation in translations]
