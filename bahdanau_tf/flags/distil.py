"""Writes training text whose targets are translations by a model or ensemble.

A model that is trained on them learns what the ensemble does (sequence-level
knowledge distillation, Kim and Rush 2016, arXiv 1606.07947). The folder
--out_dir gets source.txt and target.txt for `train`: the pairs of the training
text and, after each, its source with the translation. --nobeside writes the
translations only. --closest takes the hypothesis of the beam that is closest to
the reference, by chrF, not the best one ("interpolation").

Pairs with a blank side are left out, and translations that are empty or were
cut off at the length limit. Unknown words are forbidden unless --unknown says
otherwise, since a model would learn [UNK] as a word. A run that was broken off
begins anew: give a large text in parts, and join what is written. Text of an
earlier run in --out_dir is replaced when all is written.
"""

from __future__ import annotations

import os

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import (
    Group,
    check_apart,
    check_apart_from_models,
    check_files,
    check_folder,
    define_strings,
)
from bahdanau_tf.flags.lines import define_batches
from bahdanau_tf.flags.model import check_model, define_model, define_search

REQUIRED = ("model_dir", "train_source", "train_target", "out_dir")
OUTPUTS = ("source.txt", "target.txt")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_search(flags, without=("n_best",))
    flags.set_default("unknown", "forbid")
    define_strings(
        flags,
        "Files",
        {
            "train_source": "training text, source side; may be .gz",
            "train_target": "training text, target side; may be .gz",
            "out_dir": "folder for source.txt and target.txt, which have the "
            "ending .part until they are complete",
        },
    )
    options: Group = {"flag_values": flags, "module_name": "Distillation"}
    absl_flags.DEFINE_bool(
        "beside",
        True,
        "whether the pairs of the training text are written, too",
        **options,
    )
    absl_flags.DEFINE_bool(
        "closest",
        False,
        "whether to take the hypothesis that is closest to the reference",
        **options,
    )
    define_batches(flags)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_model(flags)
    if flags.closest and flags.beam_size == 1 and not flags.sampling:
        raise ValueError("--closest: --beam_size is 1, wanted more, of which one is chosen")
    read = check_files(flags, "train_source", "train_target", "dictionary")
    check_folder("out_dir", flags.out_dir)
    check_apart_from_models("out_dir", flags.out_dir)
    for name in OUTPUTS:
        path = os.path.join(flags.out_dir, name)
        check_apart(f"--out_dir: {path}", path, read)
