"""Which model is the best so far, and for how long none was better."""

from __future__ import annotations

import math

from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.state import State

NOISE = 1e-6  # share of a loss that says nothing


def is_best(found: Evaluation | None, state: State) -> bool:
    """Counts an evaluation; tells whether the model is the best so far.

    The better BLEU wins; where it is equal, the lower loss.

    Args:
        found: The evaluation; None where there is no dev set: then every
            model is the best.
        state: What is known so far; changes.
    """
    if found is not None and not _is_better(found, state):
        state.stale.assign_add(1)
        return False
    state.stale.assign(0)
    if found is not None:
        state.best_bleu.assign(found.bleu)
        state.best_loss.assign(found.loss)
    return True


def _is_better(found: Evaluation, state: State) -> bool:
    bleu, loss = float(state.best_bleu), float(state.best_loss)
    if math.isnan(bleu) or found.bleu > bleu:
        return True
    # A folder of an earlier version remembers no loss.
    is_lower = math.isnan(loss) or found.loss < loss * (1 - NOISE)
    return found.bleu == bleu and is_lower


def forget_best(state: State) -> None:
    """Lets the next model evaluated be the best, whatever was before."""
    state.best_bleu.assign(math.nan)
    state.best_loss.assign(math.nan)
    state.stale.assign(0)
