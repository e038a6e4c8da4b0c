"""How many updates an epoch has."""

from __future__ import annotations

import math
from dataclasses import replace

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.text.protocol import Tokenizer


def updates_per_epoch(
    corpus: ParallelCorpus,
    source_text: Tokenizer,
    target_text: Tokenizer,
    batching: Batching,
) -> int:
    """Updates in an epoch, by which a schedule and `epochs` count.

    Batches of as many pairs are counted as if no pair were too long. Those
    within a token budget are counted in the first epoch, which is read for
    it; others have nearly as many.
    """
    if batching.token_budget is None:
        return math.ceil(len(corpus) / batching.batch_size)
    # A draw of sub-words would not be the same in a run that goes on.
    batching = replace(batching, sample_subwords=False)
    batches = stream_batches(corpus, source_text, target_text, batching)
    first_epoch = batches.take_while(lambda _, position: position.epoch == 0)
    return int(first_epoch.reduce(0, lambda count, _: count + 1))
