"""Learns a lexicon from the attention of a trained model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from absl import flags as absl_flags

from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.data.dataset import Batch, make_dataset
from bahdanau_tf.flags.fields import check_folder
from bahdanau_tf.system.device import use_threads
from bahdanau_tf.system.terminal import ProgressLine, StatusLine, amount
from bahdanau_tf.text.subwords import BYTE
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation import Lexicon, learn_lexicon
from bahdanau_tf.translation.saved import best_folder
from bahdanau_tf.translator import LEXICON, Translator


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    use_threads(flags.threads)
    folder = best_folder(flags.model_dir)
    check_folder("model_dir", str(folder))
    corpus = ParallelCorpus(flags.source, flags.target)
    translator = Translator.load(folder)
    text = translator.target_text
    first = first_ids(text, flags.frequent)
    Lexicon(np.full([1, 1], -1), first).check(1, text)
    if first == text.vocabulary_size:
        StatusLine().note(
            f"--frequent={flags.frequent} is the whole target vocabulary of "
            f"{first} words: the lexicon will be empty, and --shortlist makes "
            "nothing faster; wanted fewer"
        )
    batches = make_dataset(corpus, translator.source_text, translator.target_text, shuffle="none")
    lexicon = learn_lexicon(
        translator.model,
        _with_progress(batches, len(corpus)),
        flags.words,
        first,
    )
    lexicon.save(folder / LEXICON)
    print(
        f"{folder / LEXICON}: {(lexicon.words >= 0).sum()} target words for "
        f"{(lexicon.words >= 0).any(axis=1).sum()} source words, besides the "
        f"first {lexicon.first} of the vocabulary"
    )
    return 0


def first_ids(text: Tokenizer, words: int) -> int:
    """The number of first ids of which `words` are no bytes, or all ids.

    In a sub-word vocabulary the ids of 256 bytes precede those of words.
    """
    tokens = text.ids_to_tokens(tf.range(text.vocabulary_size)).numpy()
    others = [i for i, token in enumerate(tokens) if not BYTE.fullmatch(token)]
    return others[min(words, len(others)) - 1] + 1


def _with_progress(batches: tf.data.Dataset, pairs: int) -> Iterator[Batch]:
    progress = ProgressLine(pairs)
    done = 0
    for batch in batches:
        yield batch
        done += len(batch[1])
        progress.update(done, "pairs read")
    progress.note(
        f"learned from {done:,} of {amount(pairs, 'pair')}; the others are too long"
        if done < pairs
        else f"learned from {amount(pairs, 'pair')}"
    )
