"""Writes what a model says of a training text, to train another by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.commands.common.lines import line_pairs, windows
from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import chrf
from bahdanau_tf.flags.distil import OUTPUTS
from bahdanau_tf.system.lines import written_together
from bahdanau_tf.system.terminal import ProgressLine, amount
from bahdanau_tf.translation import Translation

Pair = tuple[str, str]


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    # Checks encoding and numbers of lines before hours of translation.
    total = ParallelCorpus(flags.train_source, flags.train_target).lines
    translator = load_translator(flags)
    if flags.closest:
        translator.decoding = dataclasses.replace(
            translator.decoding, n_best=translator.decoding.beam_size
        )
    folder = Path(flags.out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = line_pairs(flags, "train_source", "train_target")
    line = ProgressLine(total)
    done = kept = 0
    paths = [folder / name for name in OUTPUTS]
    with written_together(paths) as outputs:
        for window in windows(pairs, flags.window):
            real = [pair for pair in window if all(map(str.strip, pair))]
            found = translator.translate(
                [source for source, _ in real], batch_size=flags.batch_size
            )
            for pair in _pairs(real, found, flags.beside, flags.closest):
                for output, text in zip(outputs, pair, strict=True):
                    output.write(f"{text}\n")
                kept += 1
            done += len(window)
            line.update(done, "lines")
    line.note(f"{amount(kept, 'pair')} written to {folder}")
    return 0


def _pairs(
    pairs: Sequence[Pair],
    translations: Sequence[Translation],
    beside: bool,
    closest: bool,
) -> Iterator[Pair]:
    """Yields each pair, if `beside`, and its source with the translation."""
    for (source, reference), best in zip(pairs, translations, strict=True):
        if beside:
            yield source, reference
        hypotheses = [best, *best.alternatives]
        texts = [one.line for one in hypotheses if one.finished and one.text.strip()]
        if texts and closest:
            texts.sort(key=lambda text: -chrf([text], [reference]).score)
        if texts:
            yield source, texts[0]
