"""Decides which model is the best so far."""

from __future__ import annotations

import math

from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.state import State

NOISE = 1e-6  # smaller relative differences of the loss do not count


def is_best(found: Evaluation | None, state: State) -> bool:
    """Updates the state by an evaluation; returns whether it is the best.

    The better BLEU wins; if equal, the lower loss.

    Args:
        found: The evaluation; None without a dev set, then every model is the
            best.
        state: The state of the training, which is changed.
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
    # Folders of earlier versions have no loss.
    is_lower = math.isnan(loss) or found.loss < loss * (1 - NOISE)
    return found.bleu == bleu and is_lower


def forget_best(state: State) -> None:
    """Resets the best model, so that the next evaluated one is the best."""
    state.best_bleu.assign(math.nan)
    state.best_loss.assign(math.nan)
    state.stale.assign(0)
