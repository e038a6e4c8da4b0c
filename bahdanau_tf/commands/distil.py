"""Writes training text whose targets are translations by a model or ensemble.

A model trained on them learns to do what the ensemble does (sequence-level knowledge distillation,
Kim and Rush 2016, arXiv 1606.07947). The folder --out_dir gets source.txt and target.txt for
`train`: the pairs of the training text and, after each, its source with the translation. --nobeside
writes only the translations. --closest takes the hypothesis in the beam that is closest to the
reference, by chrF, instead of the best one ("interpolation"); --mbr takes the one that agrees most
with the others, which knows nothing of the reference.

Pairs with an empty side are left out, and so are translations that are empty or were cut off at the
length limit. Unknown words are forbidden unless --unknown says otherwise, since a model would learn
[UNK] as a word. An interrupted run starts over, so translate a large text in parts and join the
results. Text from an earlier run in --out_dir is replaced once the new text is complete.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import chrf
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.files import check_folder
from bahdanau_tf.system.lines import written_together
from bahdanau_tf.system.terminal import ProgressLine, amount

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation

OUTPUTS = ("source.txt", "target.txt")


@dataclass(frozen=True)
class _Files(OptionGroup):
    train_source: str | None = option("training text, source side; may be .gz", required=True)
    train_target: str | None = option("training text, target side; may be .gz", required=True)
    out_dir: str | None = option(
        "folder for source.txt and target.txt, whose names end in .part until they are complete",
        required=True,
    )


@dataclass(frozen=True)
class _Distillation(OptionGroup):
    beside: bool = option("whether to write the pairs of the training text as well", True)
    closest: bool = option("whether to take the hypothesis that is closest to the reference", False)


GROUPS = (
    common.MODEL,
    common.Group(common.Search, without=("n_best",), defaults={"unknown": "forbid"}),
    common.Group(_Files),
    common.Group(_Distillation),
    common.Group(common.Batches, "Lines"),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags)
    if flags.closest:
        common.refuse(flags, ["mbr"], "with --closest")
    if flags.closest and flags.beam_size == 1 and not flags.sampling:
        raise ValueError("--closest: --beam_size is 1, wanted more to choose from")
    read = common.check_files(flags, "train_source", "train_target", "dictionary")
    check_folder("out_dir", flags.out_dir)
    common.check_apart_from_models("out_dir", flags.out_dir)
    for name in OUTPUTS:
        path = os.path.join(flags.out_dir, name)
        common.check_apart(f"--out_dir: {path}", path, read)


Pair = tuple[str, str]


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    # Checks encoding and numbers of lines before hours of translation.
    total = ParallelCorpus(flags.train_source, flags.train_target).lines
    translator = files.load_translator(flags)
    if flags.closest:
        decoding = translator.decoding
        translator.decoding = dataclasses.replace(decoding, n_best=decoding.beam_size)
    folder = Path(flags.out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    lines = files.line_pairs(flags, "train_source", "train_target")
    line = ProgressLine(total)
    done = kept = 0
    with written_together([folder / name for name in OUTPUTS]) as outputs:
        for window in files.windows(lines, flags.window):
            pairs = [pair for pair in window if all(map(str.strip, pair))]
            sources = [source for source, _ in pairs]
            translations = translator.translate(sources, batch_size=flags.batch_size, mbr=flags.mbr)
            for pair in _pairs(pairs, translations, flags.beside, flags.closest):
                for output, text in zip(outputs, pair, strict=True):
                    output.write(f"{text}\n")
                kept += 1
            done += len(window)
            line.update(done, "lines")
    line.note(f"{amount(kept, 'pair')} written to {folder}")


def _pairs(
    pairs: Sequence[Pair], translations: Sequence[Translation], beside: bool, closest: bool
) -> Iterator[Pair]:
    """Yields each pair, if `beside`, and its source with the translation."""
    for (source, reference), best in zip(pairs, translations, strict=True):
        if beside:
            yield source, reference
        hypotheses = [best, *best.alternatives]
        texts = [x.line for x in hypotheses if x.finished and x.text.strip()]
        if texts and closest:
            texts.sort(key=lambda text: -chrf([text], [reference]).score)
        if texts:
            yield source, texts[0]
