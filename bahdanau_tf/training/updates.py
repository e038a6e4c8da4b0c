"""The number of updates in an epoch."""

from __future__ import annotations

import math
from dataclasses import replace

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import Recipe
from bahdanau_tf.text.tokenizer import Tokenizer


def updates_per_epoch(
    corpus: ParallelCorpus,
    source_text: Tokenizer,
    target_text: Tokenizer,
    recipe: Recipe,
) -> float:
    """The number of updates in an epoch, for schedules and `epochs`.

    An epoch may end within an update of several batches.
    """
    batching = recipe.make_batching()
    batches = _batches_per_epoch(corpus, source_text, target_text, batching)
    return batches / recipe.accumulate


def _batches_per_epoch(
    corpus: ParallelCorpus,
    source_text: Tokenizer,
    target_text: Tokenizer,
    batching: Batching,
) -> int:
    """The number of batches in an epoch.

    For batches of a fixed number of pairs it is computed as if no pair were
    too long. With a token budget the first epoch is read and its batches are
    counted; other epochs have nearly as many.
    """
    if batching.token_budget is None:
        return math.ceil(len(corpus) / batching.batch_size)
    # Faster, and as many: sub-words that are drawn move no pair.
    batching = replace(batching, sample_subwords=False)
    batches = stream_batches(corpus, source_text, target_text, batching)
    first_epoch = batches.take_while(lambda _, position: position.epoch == 0)
    return int(first_epoch.reduce(0, lambda count, _: count + 1))
