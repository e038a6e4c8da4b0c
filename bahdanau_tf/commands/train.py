"""Trains a model on parallel text files."""

from __future__ import annotations

from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.commands.common.scoring import check_tokenize_flag
from bahdanau_tf.flags.fields import refuse
from bahdanau_tf.flags.train import options
from bahdanau_tf.flags.train import paths
from bahdanau_tf.training import TrainingFiles
from bahdanau_tf.training import TrainingPlan
from bahdanau_tf.training import locked
from bahdanau_tf.training import train


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    check_tokenize_flag(flags)
    found = options(flags)
    for name, where in found.model.unused_by_parts().items():
        refuse(flags, [name], f"with {where}")
    plan = TrainingPlan(
        *found, TrainingFiles(**paths(flags)), Path(flags.model_dir)
    )
    with locked(plan.model_dir):
        result = train(
            plan.prepare(),
            plan.files,
            plan.recipe,
            plan.model_dir,
            flags.tensorboard,
        )
    print(result)
    return 130 if result.stopped_by == "signal" else 0
