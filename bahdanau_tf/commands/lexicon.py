"""Learns a lexicon from the attention of a trained model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from absl import flags as absl_flags

from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.data.dataset import make_dataset
from bahdanau_tf.progress import ProgressLine
from bahdanau_tf.translation import Lexicon
from bahdanau_tf.translation import learn_lexicon
from bahdanau_tf.translation.saved import best_folder
from bahdanau_tf.translator import LEXICON
from bahdanau_tf.translator import Translator


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    corpus = ParallelCorpus(flags.source, flags.target)
    folder = best_folder(flags.model_dir)
    translator = Translator.load(folder)
    _check_frequent(translator, flags.frequent)
    batches = make_dataset(
        corpus, translator.source_text, translator.target_text, shuffle="none"
    )
    lexicon = learn_lexicon(
        translator.model,
        _with_progress(batches, len(corpus)),
        flags.words,
        flags.frequent,
    )
    lexicon.save(folder / LEXICON)
    print(
        f"{folder / LEXICON}: {(lexicon.words >= 0).sum()} target words for "
        f"{(lexicon.words >= 0).any(axis=1).sum()} source words, besides the "
        f"first {lexicon.first}"
    )
    return 0


def _check_frequent(translator: Translator, first: int) -> None:
    """Raises ValueError if --frequent is too small for the vocabulary."""
    first = min(first, translator.target_text.vocabulary_size)
    Lexicon(np.full([1, 1], -1), first).check(1, translator.target_text)


def _with_progress(batches: tf.data.Dataset, pairs: int) -> Iterator[Batch]:
    progress = ProgressLine(pairs)
    done = 0
    for batch in batches:
        yield batch
        done += len(batch[1])
        progress.update(done, "pairs read")
    progress.note(f"{done} of {pairs} pairs were short enough")
