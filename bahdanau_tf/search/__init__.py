"""Search for the best target sentence: beam, greedy and sampled.

Everything here sees a step function and a state, never a model:

    step(ids: int32 [B, K], state: nest of [B, K, ...], memory: of [B, ...])
        -> logits float [B, K, V], state, weights float [B, K, T_x] or None

B is the batch, K the beam, V the vocabulary, T_x the source and T the target
length. The memory is what a step reads and never changes (the annotations,
say); it is not tiled over the beam.

One loop serves all three. It normalises the logits, in float32; constraints
then forbid words without renormalising, so `log_probs` are always the model's
own. A *selection* names the continuations that live on. Hypotheses that end
leave the beam for a list of their own, the n best so far. Each one remembers
the beam place that it stood in at every step; soft alignments are looked up
along that path once, at the end.

A row stops when no live hypothesis can still enter its n best. Log-probability
only falls, so whatever grows from a live hypothesis scores at most

    log p(live) / length_penalty(max_length)

which is exact for every length penalty that does not fall with the length,
coverage penalties (at most 0) and constraints that only forbid. Ties go to what
was found first. Rows know nothing of their neighbours.
"""

from __future__ import annotations

from bahdanau_tf.search.beam import beam_search
from bahdanau_tf.search.beam import greedy_search
from bahdanau_tf.search.loop import SearchResult
from bahdanau_tf.search.loop import Step
from bahdanau_tf.search.penalties import gnmt_coverage_penalty
from bahdanau_tf.search.penalties import gnmt_length_penalty
from bahdanau_tf.search.penalties import no_coverage_penalty
from bahdanau_tf.search.sampling import sample
from bahdanau_tf.search.selections import Constraint
from bahdanau_tf.search.selections import Few
from bahdanau_tf.search.selections import History

__all__ = [
    "Constraint",
    "Few",
    "History",
    "SearchResult",
    "Step",
    "beam_search",
    "gnmt_coverage_penalty",
    "gnmt_length_penalty",
    "greedy_search",
    "no_coverage_penalty",
    "sample",
]
