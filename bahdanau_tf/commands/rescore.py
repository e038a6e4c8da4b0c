"""Ranks n-best lists of any system again with a model."""

from __future__ import annotations

from contextlib import closing

from absl import flags as absl_flags

from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.commands.common.nbest import nbest_lists
from bahdanau_tf.commands.common.scoring import check_tokenize_flag, tokenizer_for
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.terminal import LineCounter, StatusLine
from bahdanau_tf.translation.rescoring import choose_weight, combine, score_nbest
from bahdanau_tf.translator import Translator


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    check_tokenize_flag(flags)
    translator = load_translator(flags)
    weight = _weight(flags, translator)
    feature = type(translator.model).__name__
    lists = nbest_lists("--input", flags.input, read_lines(flags.source))
    with written(flags.output) as output, closing(LineCounter()) as counter:
        for nbest, log_probs in score_nbest(translator, lists):
            ranked = combine(nbest.hypotheses, log_probs, weight, feature)
            if flags.format == "text":
                output.write(f"{ranked[0].text if ranked else ''}\n")
            else:
                output.writelines(f"{hypothesis}\n" for hypothesis in ranked)
            if not ranked:
                counter.report("no hypotheses", [0])
            counter.advance(1)
    return 0


def _weight(flags: absl_flags.FlagValues, translator: Translator) -> float:
    """The given weight, the default, or the best one on the dev set."""
    if flags.dev_source is None:
        return 0.5 if flags.weight is None else flags.weight
    lists = nbest_lists("--dev_input", flags.dev_input, read_lines(flags.dev_source))
    references = list(read_lines(flags.dev_reference))
    choice = choose_weight(
        score_nbest(translator, lists),
        references,
        tokenize=tokenizer_for(flags, translator, references),
        lowercase=flags.ignore_case,
        nfc=flags.nfc,
    )
    StatusLine().note(f"weight {choice.weight:.2f}, dev {choice.score}")
    return choice.weight
