"""Which of two evaluations is better."""

from __future__ import annotations

import math

from bahdanau_tf.training.dev import LOW
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.state import State

NOISE = 1e-6  # smaller relative differences of the loss do not count


def is_best(
    found: Evaluation | None, state: State, monitor: str = "bleu"
) -> bool:
    """Updates the state by an evaluation; returns whether it is the best.

    Args:
        found: The evaluation; None without a dev set, then every model is the
            best.
        state: The state of the training, which is changed.
        monitor: As in `Recipe`: what decides.
    """
    if found is not None and not _is_better(found, state, monitor):
        state.stale.assign_add(1)
        return False
    state.stale.assign(0)
    if found is not None:
        state.best_bleu.assign(found.bleu)
        state.best_loss.assign(found.loss)
    return True


def _is_better(found: Evaluation, state: State, monitor: str) -> bool:
    bleu, loss = _counted(float(state.best_bleu)), float(state.best_loss)
    # Folders of earlier versions have no loss.
    is_lower = math.isnan(loss) or found.loss < loss * (1 - NOISE)
    if monitor == "loss" or _counted(found.bleu) == bleu:
        return is_lower
    return math.isnan(bleu) or _counted(found.bleu) > bleu


def _counted(bleu: float) -> float:
    return 0.0 if bleu < LOW else bleu
