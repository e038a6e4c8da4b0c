"""The tokenizer of BLEU: that of --tokenize, or one that fits the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.evaluation.measure import fitting_tokenizer
from bahdanau_tf.evaluation.scores import bleu_metric
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.translator import Translator


def check_tokenize_flag(flags: absl_flags.FlagValues) -> None:
    """Checks --tokenize before long work begins.

    Raises:
        ValueError: There is no such tokenizer, or its package is missing.
    """
    if flags.tokenize is not None:
        bleu_metric(flags.tokenize, lowercase=False)


def tokenizer_for(
    flags: absl_flags.FlagValues,
    translator: Translator | None,
    references: Sequence[str],
) -> str:
    """--tokenize, or the tokenizer that fits; prints it on standard error.

    Args:
        flags: The flags.
        translator: The model, whose target tokenizer may know the language; or
            None.
        references: The reference translations.
    """
    if flags.tokenize is not None:
        return str(flags.tokenize)
    text = None if translator is None else translator.target_text
    chosen = fitting_tokenizer(text, references)
    StatusLine().note(f"--tokenize={chosen}, which fits the script of the references")
    return chosen


def tell_untokenized(systems: Mapping[str, Sequence[str]]) -> None:
    """Warns of systems that are not tokenized, although the references are."""
    for name, lines in systems.items():
        if evaluation.bleu_tokenizer("", lines) in ("char", "ja-mecab"):
            StatusLine().note(
                f"{name} is not tokenized as the references are: --tokenize=char compares them"
            )
