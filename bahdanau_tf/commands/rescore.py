"""Re-ranks n-best lists of any system with a model.

Reads lists in Moses' format from --input or standard input,

    sentence number from 0 ||| hypothesis ||| features ||| score

and writes them, best first, to --output or standard output, with the model's log p(y | x) as an
additional feature and (1 - w) score + w log p as the score. The model reads sources and hypotheses
as they are, so they should look like the text it was trained on.

w is --weight; with --dev_source, --dev_input and --dev_reference it is whichever of 0, 0.01, ..., 1
has the best BLEU on them, computed with --tokenize.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import LineCounter, StatusLine

if TYPE_CHECKING:
    from bahdanau_tf.translator import Translator

_DEV = ("dev_source", "dev_input", "dev_reference")


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("the sentences that the lists translate", required=True)
    input: str | None = option("n-best lists; may be .gz")
    output: str | None = option(f"file for the ranked lists; {common.WRITTEN}")
    dev_source: str | None = option("sentences on which the weight is chosen")
    dev_input: str | None = option("their n-best lists")
    dev_reference: str | None = option("their reference translations")


@dataclass(frozen=True)
class _Lists(OptionGroup):
    weight: float | None = option(
        "weight of the model's score; default 0.5, the plain average, or chosen on the dev set",
        within=Range(0, 1),
    )
    format: Literal["moses", "text"] = option(
        "lists in Moses' format, or only the best hypothesis of each sentence", "moses"
    )


GROUPS = (common.MODEL, common.Group(_Files), common.Group(_Lists), common.SCORES)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    dev = [name for name in _DEV if flags[name].value is not None]
    if dev and len(dev) < len(_DEV):
        missing = ", ".join(f"--{name}" for name in _DEV if name not in dev)
        raise ValueError(f"--{dev[0]} is set, but not {missing}")
    if dev and flags.weight is not None:
        raise ValueError(f"--weight and --{dev[0]}: wanted one, not both")
    if not dev:
        common.refuse(flags, ["tokenize", "ignore_case", "nfc"], "without --dev_reference")
    common.check_model(flags)
    read = common.check_files(flags, "source", "input", *_DEV)
    common.check_output("output", flags.output, read)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    from bahdanau_tf.translation.rescoring import combine, score_nbest

    files.check_tokenize_flag(flags)
    translator = files.load_translator(flags)
    weight = _weight(flags, translator)
    feature = type(translator.model).__name__
    lists = files.nbest_lists("--input", flags.input, read_lines(flags.source))
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


def _weight(flags: absl_flags.FlagValues, translator: Translator) -> float:
    """The given weight, the default, or the best one on the dev set."""
    from bahdanau_tf.translation.rescoring import choose_weight, score_nbest

    if flags.dev_source is None:
        return 0.5 if flags.weight is None else flags.weight
    lists = files.nbest_lists("--dev_input", flags.dev_input, read_lines(flags.dev_source))
    references = list(read_lines(flags.dev_reference))
    choice = choose_weight(
        score_nbest(translator, lists),
        references,
        tokenize=files.tokenizer_for(flags, translator, references),
        lowercase=flags.ignore_case,
        nfc=flags.nfc,
    )
    StatusLine().note(f"weight {choice.weight:.2f}, dev {choice.score}")
    return choice.weight
