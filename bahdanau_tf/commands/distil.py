"""Writes training text whose targets are translations by a model or ensemble.

A model trained on them learns to do what the ensemble does (sequence-level knowledge distillation,
Kim and Rush 2016, arXiv 1606.07947). The folder --out_dir gets source.txt and target.txt for
`train`: the pairs of the training text and, after each, its source with the translation. --nobeside
writes only the translations. --closest takes the hypothesis in the beam that is closest to the
reference, by chrF, instead of the best one ("interpolation"); --mbr takes the one that agrees most
with the others, which knows nothing of the reference.

--backward_model_dir names a model or ensemble of the other direction, whose translations of the
targets are sources of these targets: a student of both learns from text that is more varied
(Nguyen et al. 2020, arXiv 1911.01986). --closest then looks for the source.

Pairs with an empty side are left out, and so are translations that are empty or were cut off at the
length limit. Unknown words are forbidden unless --unknown says otherwise, since a model would learn
[UNK] as a word. An interrupted run starts over, so translate a large text in parts and join the
results. Text from an earlier run in --out_dir is replaced once the new text is complete.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.data.parallel import OUTPUTS, ParallelCorpus
from bahdanau_tf.evaluation import chrf
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.files import check_folder
from bahdanau_tf.system.lines import written_together
from bahdanau_tf.system.terminal import ProgressLine, StatusLine, amount

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation
    from bahdanau_tf.translator import Translator

Pair = tuple[str, str]


@dataclass(frozen=True)
class Files(OptionGroup):
    """The training text, and the text that is made of it."""

    train_source: str | None = option("training text, source side; may be .gz", required=True)
    train_target: str | None = option("training text, target side; may be .gz", required=True)
    out_dir: str | None = option(
        "folder for source.txt and target.txt, whose names end in .part until they are complete",
        required=True,
    )


@dataclass(frozen=True)
class _Distillation(OptionGroup):
    backward_model_dir: tuple[str, ...] | None = option(
        "folder of a model that translates the targets back; several, separated by commas, are an "
        "ensemble; adds each target with its translation as the source"
    )
    beside: bool = option("whether to write the pairs of the training text as well", True)
    closest: bool = option("whether to take the hypothesis that is closest to the reference", False)


GROUPS = (
    common.MODEL,
    common.Group(common.Search, without=("n_best",), defaults={"unknown": "forbid"}),
    common.Group(Files),
    common.Group(_Distillation),
    common.Group(common.Batches, "Lines"),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags, others=flags.backward_model_dir or ())
    if flags.backward_model_dir is not None:
        common.require(flags, "backward_model_dir")
        common.check_folders("backward_model_dir", flags.backward_model_dir)
    if flags.closest:
        common.refuse(flags, ["mbr"], "with --closest")
    if flags.closest and flags.beam_size == 1 and not flags.sampling:
        raise ValueError("--closest: --beam_size is 1, wanted more to choose from")
    check_text(flags)


def check_text(flags: absl_flags.FlagValues, *others: str) -> None:
    """Checks the files of `Files`, and others that are read; none is replaced."""
    read = common.check_files(flags, "train_source", "train_target", "dictionary", *others)
    check_folder("out_dir", flags.out_dir)
    common.check_apart_from_models("out_dir", flags.out_dir)
    for name in OUTPUTS:
        path = os.path.join(flags.out_dir, name)
        common.check_apart(f"--out_dir: {path}", path, read)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    # Checks encoding and numbers of lines before hours of translation.
    total = ParallelCorpus(flags.train_source, flags.train_target).lines
    teachers = [files.load_translator(flags)]
    if flags.backward_model_dir:
        teachers.append(files.load_translator(flags, flags.backward_model_dir))
        first, second = (teacher.habits.languages for teacher in teachers)
        # Alike if both sides are guessed to be in one language.
        if any(first) and first[0] != first[1] and [*first] == [*second]:
            name, direction = flags.backward_model_dir[0], " to ".join(second)
            raise ValueError(
                f"--backward_model_dir: {name} translates {direction}, as --model_dir does, wanted "
                "the other direction"
            )
    if flags.closest:
        for teacher in teachers:
            decoding = teacher.decoding
            teacher.decoding = dataclasses.replace(decoding, n_best=decoding.beam_size)
    write(flags.out_dir, _parts(flags, total, teachers))


def write(out_dir: str, parts: Iterable[tuple[str, Pair | None]]) -> None:
    """Writes pairs to a folder; each comes with the part of the text that it belongs to.

    None stands for one that is left out, for a translation that is empty or cut off.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    kept, left_out = Counter[str](), 0
    with written_together([folder / name for name in OUTPUTS]) as outputs:
        for part, pair in parts:
            if pair is None:
                left_out += 1
                continue
            for output, text in zip(outputs, pair, strict=True):
                output.write(f"{text}\n")
            kept[part] += 1
    counts = ", ".join(f"{count:,} {part}" for part, count in kept.items())
    StatusLine().note(f"{amount(kept.total(), 'pair')} written to {folder}: {counts}")
    if left_out:
        lines = amount(left_out, "translation")
        StatusLine().note(f"{lines} left out: empty, or cut off at the length limit")


def _parts(
    flags: absl_flags.FlagValues, total: int, teachers: Sequence[Translator]
) -> Iterator[tuple[str, Pair | None]]:
    """Yields pairs of the text, if --beside, each source with its translation, perhaps each target.

    The teachers are the forward and perhaps the backward model.
    """
    lines = files.line_pairs(flags, "train_source", "train_target")
    for pairs in windows(flags, lines, total):
        texts = zip(*pairs, strict=True)
        sides = [translated(flags, *x) for x in zip(teachers, texts, strict=False)]
        for (source, target), *translations in zip(pairs, *sides, strict=True):
            if flags.beside:
                yield "of the training text", (source, target)
            text = chosen(translations[0], target if flags.closest else None)
            yield "translated", (source, text) if text else None
            for back in translations[1:]:
                text = chosen(back, source if flags.closest else None)
                yield "translated back", (text, target) if text else None


def windows(
    flags: absl_flags.FlagValues, lines: Iterable[files.Lines], total: int
) -> Iterator[list[files.Lines]]:
    """Yields `total` lines, --window at a time, without blank ones, and shows how many are done."""
    progress, done = ProgressLine(total), 0
    for window in files.windows(lines, flags.window):
        yield [line for line in window if all(map(str.strip, line))]
        done += len(window)
        progress.update(done, "lines")


def translated(
    flags: absl_flags.FlagValues, translator: Translator, texts: Sequence[str]
) -> Sequence[Translation]:
    """Translations as the flags ask for them."""
    return translator.translate(texts, batch_size=flags.batch_size, mbr=flags.mbr)


def chosen(best: Translation, wanted: str | None = None) -> str:
    """The best text that is whole, or the closest to what is wanted; "" if there is none.

    A NUL, which sampling may draw as any other byte, is refused in a training text.
    """
    whole = [x for x in (best, *best.alternatives) if x.finished and x.text.strip()]
    texts = [x.line for x in whole if "\0" not in x.text]
    if wanted is not None:
        texts.sort(key=lambda text: -chrf([text], [wanted]).score)
    return next(iter(texts), "")
