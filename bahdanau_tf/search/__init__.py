"""Search for the best target sentence: beam, greedy and sampled.

Search calls a step function with a state; it does not know the model:

    step(ids: int32 [B, K], state: nest of [B, K, ...], memory: of [B, ...])
        -> logits float [B, K, V], state, weights float [B, K, T_x] or None

B is the batch, K the beam, V the vocabulary, T_x the source and T the target length. The memory is
what a step reads and does not change (the annotations, for example); it is not repeated over the
beam. In place of logits a step may give `Features`, from which search computes the logits that it
needs.

One loop serves all three kinds of search. It normalises the logits in float32; constraints then
forbid words without renormalising, so `log_probs` are always those of the model. A *selection*
chooses the continuations that are kept. A hypothesis that ends leaves the beam; the n best finished
ones are kept apart. Each hypothesis records its place in the beam at every step, and soft
alignments are looked up along these places once, at the end.

A live hypothesis is dropped when it can no longer enter the n best of its row, and a row stops when
none is left. Since log-probability never rises, a continuation of a live hypothesis scores at most

    log p(live) / length_penalty(max_length)

This bound holds for every length penalty that does not fall with the length, for coverage penalties
(at most 0) and for constraints that only forbid. Among equal scores the hypothesis found first
wins. The result of a row does not depend on the other rows of the batch.
"""

from bahdanau_tf.search.beam import (
    beam_search as beam_search,
    greedy_search as greedy_search,
    sample as sample,
)
from bahdanau_tf.search.loop import (
    SearchResult as SearchResult,
    Step as Step,
    gnmt_coverage_penalty as gnmt_coverage_penalty,
    gnmt_length_penalty as gnmt_length_penalty,
    no_coverage_penalty as no_coverage_penalty,
)
from bahdanau_tf.search.selections import (
    Constraint as Constraint,
    Features as Features,
    Few as Few,
    History as History,
)
