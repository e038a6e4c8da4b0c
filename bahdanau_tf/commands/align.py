"""Aligns sentences with their translations, word by word: a line of links for each pair.

The model reads each line of --source with its translation in --target, and
links each target token to the source token with the largest weight. Links are
written to --output or standard output as source-target token numbers from 0,
as in 0-0 1-2 (Pharaoh's format); a pair with an empty side gets an empty line.

Tokens are those of the model: words and punctuation, or sub-words. --format=json writes one object
per line, with the tokens, where they begin and end, and the soft alignment, like `translate
--format=json --alignments`.

--gold=FILE judges links instead: it prints error rate (AER), precision and recall against links
made by hand, with the margins of 95 % bootstrap intervals. Here words are what stands between
spaces, and the weights of a word's tokens are summed; each target word is linked to the source word
with the largest weight. IBM model 1 links by the same rule; it is trained on --source and --target,
plus --train_source and --train_target, if set. A straight diagonal is the third aligner.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.evaluation.tables import as_text
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import written
from bahdanau_tf.system.terminal import LineCounter, amount


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text that the model translates; may be .gz", required=True)
    target: str | None = option("its translation; may be .gz", required=True)
    output: str | None = option(f"file for the links; {common.WRITTEN}")
    gold: str | None = option(
        "links made by hand, in Pharaoh's format, with ? or p for possible ones (0-0 1?2), or in "
        "NAACL's (1 1 1 S)"
    )
    train_source: str | None = option("more text to train IBM model 1 on, source side")
    train_target: str | None = option("its translation")


@dataclass(frozen=True)
class _Lines(common.Batches):
    format: Literal["text", "json"] = option("links, or one JSON object per line", "text")


_TRAINING = ("train_source", "train_target")
GROUPS = (common.MODEL, common.Group(_Files), common.Group(_Lines))


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags)
    read = common.check_files(flags, "source", "target", "gold", *_TRAINING)
    if flags.gold is None:
        common.refuse(flags, _TRAINING, "without --gold")
    else:
        common.refuse(flags, ["output", "format", "window"], "with --gold")
        if (flags.train_source is None) != (flags.train_target is None):
            raise ValueError("--train_source and --train_target go together")
    common.check_output("output", flags.output, read)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    pairs = files.line_pairs(flags, "source", "target")
    if flags.gold is not None:
        _judge(flags, [*pairs])
        return
    translator = files.load_translator(flags)
    translator.align([], [])  # refuses a model without attention
    with (
        closing(LineCounter()) as counter,
        files.kept_lines_named(flags.output, lambda: counter.done, "alignment"),
        written(flags.output) as output,
    ):
        for window in files.windows(pairs, flags.window):
            sources, targets = map(list, zip(*window, strict=True))
            aligned = translator.align(sources, targets, flags.batch_size)
            for pair in aligned:
                is_json = flags.format == "json"
                output.write(files.json_line(pair, True) if is_json else f"{pair.pharaoh}\n")
            output.flush()
            alone = [n for n, x in enumerate(aligned) if bool(x.tokens) != bool(x.source_tokens)]
            counter.report("words on one side only", alone)
            counter.advance(len(window))


def _judge(flags: absl_flags.FlagValues, pairs: Sequence[tuple[str, str]]) -> None:
    """Prints how well the links of the model and of two simple aligners agree with --gold."""
    words = [(source.split(), target.split()) for source, target in pairs]
    sure, possible = evaluation.read_gold(flags.gold, [(len(x), len(y)) for x, y in words])
    more = files.line_pairs(flags, *_TRAINING) if flags.train_source is not None else ()
    learned = [*words, *((source.split(), target.split()) for source, target in more)]
    sources, targets = map(list, zip(*pairs, strict=True))
    aligned = files.load_translator(flags).align(sources, targets, flags.batch_size)
    by_ibm = evaluation.ibm_model_1([x for x, _ in learned], [y for _, y in learned])
    aligners = {
        "model": [evaluation.hard_links(pair.word_weights) for pair in aligned],
        f"IBM model 1, {len(learned):,} pairs": [*map(evaluation.hard_links, by_ibm[: len(words)])],
        "diagonal": [evaluation.diagonal_links(len(y), len(x)) for x, y in words],
    }
    scores = (evaluation.score_alignments(links, sure, possible) for links in aligners.values())
    rows = [[name, *map(str, score)] for name, score in zip(aligners, scores, strict=True)]
    certain, others = (sum(map(len, links)) for links in (sure, possible))
    empty = sum(not (own or maybe) for own, maybe in zip(sure, possible, strict=True))
    print(
        f"{amount(len(words), 'pair')}, {empty:,} of them without links, "
        f"{certain:,} sure and {others:,} possible links made by hand"
    )
    heads = ["links of", "AER", "precision", "recall"]
    print(as_text(evaluation.Table("", "", heads, rows)), end="")
