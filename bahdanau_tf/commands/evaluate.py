"""Scores a model, and other systems' output, against references.

With --model_dir the lines of --source are translated. Each
--hypotheses=NAME=FILE, of which there may be several, is another system's
output. BLEU and chrF are sacreBLEU's, printed with signatures.

Several systems make a table: BLEU with the margin of its 95 % bootstrap
interval, chrF2, and p, how likely a distance to the first row as large as
this is by chance (paired bootstrap). With --source there is BLEU by source
length, in tokens of the model or, without one, words between blanks; with
a model also BLEU of the sentences that have no word unknown to it, in source
or reference. The paper forbids unknown words there: --unknown=forbid.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.comparison import TestSet
from bahdanau_tf.commands.comparison import by_subset
from bahdanau_tf.commands.comparison import compared
from bahdanau_tf.commands.comparison import print_table
from bahdanau_tf.commands.lines import check_count
from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import define_search_flags
from bahdanau_tf.commands.model import load_translator
from bahdanau_tf.text_files import read_lines
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    define_search_flags(flags, without=("n_best",))
    for name, text in (
        ("source", "text to translate"),
        ("reference", "its translation by hand"),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    absl_flags.DEFINE_multi_string(
        "hypotheses",
        None,
        "another system's translations, as FILE or NAME=FILE; may be repeated",
        flag_values=flags,
    )
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
    if flags.source is None and not flags.hypotheses:
        raise ValueError(
            "--source (with --model_dir) or --hypotheses is missing"
        )
    test = _test(flags)
    how = {"tokenize": flags.tokenize, "lowercase": flags.ignore_case}
    if len(test.systems) == 1:
        (hypotheses,) = test.systems.values()
        print(evaluation.bleu(hypotheses, test.references, **how))
        print(
            evaluation.chrf(
                hypotheses, test.references, lowercase=flags.ignore_case
            )
        )
        columns = by_subset(test, how)
    else:
        columns = compared(test, how) + by_subset(test, how)
    if test.lengths:
        print(f"BLEU by source length in {test.unit}")
    if columns:
        print()
        print_table([*test.systems], columns)
    return 0


def _test(flags: absl_flags.FlagValues) -> TestSet:
    """Reads the files, and translates where there is a model."""
    references = list(read_lines(flags.reference))
    systems: dict[str, list[str]] = {}
    lengths, unit = [], "words"
    known: list[bool] = []
    if flags.source is not None:
        sources = list(read_lines(flags.source))
        check_count("--source", sources, references)
        lengths = [len(source.split()) for source in sources]
    if flags.source is not None and (flags.model_dir or not flags.hypotheses):
        translator = load_translator(flags)
        translations = _translated(translator, sources)
        systems["model"] = [translation.text for translation in translations]
        lengths = [len(found.source_tokens) for found in translations]
        unit = "tokens"
        known = evaluation.known_sentences([translator], sources, references)
    elif flags.model_dir:
        raise ValueError("--source is missing, which --model_dir translates")
    for given in flags.hypotheses or []:
        name, path = _name_and_path(given)
        if name in systems:
            raise ValueError(
                f"--hypotheses: {name!r} is there already, wanted another "
                "name, as in NAME=FILE"
            )
        systems[name] = list(read_lines(path))
        check_count(f"--hypotheses={given}", systems[name], references)
    return TestSet(systems, references, lengths, unit, known)


def _name_and_path(given: str) -> tuple[str, str]:
    """Reads NAME=FILE; a file whose own name has a = is a FILE."""
    name, equals, path = given.partition("=")
    if equals and name and not os.path.exists(given):
        return name, path
    return os.path.basename(given), given


def _translated(
    translator: Translator, sources: Sequence[str]
) -> list[Translation]:
    start = time.monotonic()
    translations = translator.translate(sources)
    seconds = time.monotonic() - start
    unfinished = sum(not t.finished for t in translations)
    print(
        f"{len(sources)} sentences in {seconds:.1f} s, {unfinished} cut off "
        "at the length limit",
        file=sys.stderr,
    )
    return translations
