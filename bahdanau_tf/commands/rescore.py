"""Ranks the n-best lists of any system again, with a model.

Reads lists in Moses' format from --input or standard input,

    sentence number from 0 ||| hypothesis ||| features ||| score

and writes them, best first, to --output or standard output: the model's
log p(y | x) is one feature more, and the score is (1 - w) score + w log p.
The model reads sources and hypotheses as they stand: they should look like
the text it was trained on.

w is --weight, and with --dev_source, --dev_input and --dev_reference the one
of 0, 0.01, ..., 1 that gives the best BLEU there, by --tokenize.
"""

from __future__ import annotations

import sys

from absl import flags as absl_flags

from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import load_translator
from bahdanau_tf.commands.scoring import check_tokenize_flag
from bahdanau_tf.commands.scoring import define_tokenize_flag
from bahdanau_tf.commands.scoring import tokenizer_for
from bahdanau_tf.progress import LineCounter
from bahdanau_tf.rescoring import Scorer
from bahdanau_tf.rescoring import choose_weight
from bahdanau_tf.rescoring import combine
from bahdanau_tf.rescoring import read_nbest
from bahdanau_tf.rescoring import score_nbest
from bahdanau_tf.text_files import read_lines
from bahdanau_tf.text_files import written

_DEV = ("dev_source", "dev_input", "dev_reference")


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    for name, text in (
        ("source", "the sentences that the lists translate"),
        ("input", "n-best lists; a .gz too"),
        ("output", "where the lists go; a .gz too"),
        ("dev_source", "sentences to choose the weight on"),
        ("dev_input", "their n-best lists"),
        ("dev_reference", "their translation by hand"),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    absl_flags.DEFINE_float(
        "weight",
        None,
        "share of the model's score; 0.5, the plain average, unless it is "
        "chosen",
        lower_bound=0,
        upper_bound=1,
        flag_values=flags,
    )
    absl_flags.DEFINE_enum(
        "format",
        "moses",
        ["moses", "text"],
        "lists as they came, or the best hypothesis of each sentence alone",
        flag_values=flags,
    )
    define_tokenize_flag(flags)
    absl_flags.DEFINE_bool(
        "ignore_case",
        False,
        "whether case is ignored in choosing the weight",
        flag_values=flags,
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Ranks."""
    _check(flags)
    translator = load_translator(flags)
    weight = _weight(flags, translator)
    feature = type(translator.model).__name__
    lists = read_nbest(read_lines(flags.input), read_lines(flags.source))
    counter = LineCounter()
    with written(flags.output) as output:
        for nbest, log_probs in score_nbest(translator, lists):
            ranked = combine(nbest.hypotheses, log_probs, weight, feature)
            if flags.format == "text":
                output.write(f"{ranked[0].text if ranked else ''}\n")
            else:
                output.writelines(f"{hypothesis}\n" for hypothesis in ranked)
            if not ranked:
                counter.report("no hypotheses", [0])
            counter.advance(1)
    counter.close()
    return 0


def _check(flags: absl_flags.FlagValues) -> None:
    if flags.source is None:
        raise ValueError("--source is missing")
    given = [name for name in _DEV if flags[name].value is not None]
    if given and len(given) < len(_DEV):
        missing = ", ".join(f"--{name}" for name in _DEV if name not in given)
        raise ValueError(f"--{given[0]} is given and {missing} missing")
    check_tokenize_flag(flags)
    if given and flags.weight is not None:
        raise ValueError(f"--weight and --{given[0]}: wanted one of them")


def _weight(flags: absl_flags.FlagValues, translator: Scorer) -> float:
    """The weight given, the default, or the one that is best on --dev_..."""
    if flags.dev_source is None:
        return 0.5 if flags.weight is None else flags.weight
    lists = read_nbest(
        read_lines(flags.dev_input), read_lines(flags.dev_source)
    )
    references = list(read_lines(flags.dev_reference))
    choice = choose_weight(
        score_nbest(translator, lists),
        references,
        tokenize=tokenizer_for(flags, translator, references),
        lowercase=flags.ignore_case,
    )
    print(f"weight {choice.weight:.2f}, dev {choice.score}", file=sys.stderr)
    return choice.weight
