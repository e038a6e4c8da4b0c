"""Writes the paper's tables and figures for any corpus as one HTML page.

--quick trains on the built-in corpus, within 15 minutes on two cores:
RNNencdec and RNNsearch on sentences of up to 15 and of up to 30 words, a
forward and a reversed LSTM. --full trains more and larger systems, with up to
two hours each, on the built-in corpus or on --train_source, --train_target,
--dev_source and --dev_target: RNNencdec and RNNsearch with sentences of up to
30 and 50 words (built-in: 15 and 30), a longer trained RNNsearch, a forward and
five reversed LSTMs, or only --train_systems. A system that is not finished when
its --minutes are over is stopped and reported as it is; running the command
again continues it, and does not train finished systems again.

--system names a trained model and --hypotheses another system's translations;
both may be repeated, and combined with --quick or --full. A system with the
name of one of the paper's, such as RNNsearch-50, is put in its row of the
tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import (
    Group,
    check_file,
    check_folder,
    define_fields,
    define_strings,
    from_flags,
    refuse,
    require,
)
from bahdanau_tf.flags.model import define_modules
from bahdanau_tf.flags.scores import define_scores
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import SAMPLING
from bahdanau_tf.system.ranges import Range

_TEST = ("source", "reference", "alignments")
_TRAINING = ("train_source", "train_target", "dev_source", "dev_target")
_MINUTES = Range(0, 10**6)


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    options: Group = {"flag_values": flags, "module_name": "Report"}
    absl_flags.DEFINE_string("out_dir", "report", "folder for all output", **options)
    for name, text in (
        ("system", "a trained model, as NAME=MODEL_DIR; may be repeated"),
        (
            "hypotheses",
            "another system's translations, as NAME=FILE; may be repeated",
        ),
        (
            "nbest",
            "another system's n-best lists in Moses' format, as NAME=FILE, for "
            "LSTMs to rescore; at most one",
        ),
        (
            "phrases",
            "file of sentences to draw as an LSTM's vectors, a blank line "
            "between groups of similar meaning; may be repeated, with a "
            "picture for each file",
        ),
    ):
        absl_flags.DEFINE_multi_string(name, [], text, **options)
    define_modules(flags, "Report")
    define_strings(
        flags,
        "Files",
        {
            "source": "text to translate",
            "reference": "its reference translation",
            "alignments": "its gold word alignment, in Pharaoh's format",
            "train_source": "training text, source side",
            "train_target": "training text, target side",
            "dev_source": "dev text, source side",
            "dev_target": "dev text, target side",
        },
    )
    _define_training(flags)
    define_scores(flags)
    without = ("n_best", "shortlist", *SAMPLING)
    define_fields(flags, "Search", Decoding, without)


def _define_training(flags: absl_flags.FlagValues) -> None:
    options: Group = {"flag_values": flags, "module_name": "Training"}
    for name, text in (
        ("quick", "whether to train small systems on the built-in corpus"),
        ("full", "whether to train larger systems, on any corpus"),
    ):
        absl_flags.DEFINE_bool(name, False, text, **options)
    absl_flags.DEFINE_list(
        "train_systems",
        [],
        "names of the systems to train, such as RNNsearch-50; all if empty",
        **options,
    )
    absl_flags.DEFINE_multi_string(
        "train_flag",
        [],
        "a flag for every training whose model uses it, such as --units=512; may be repeated",
        **options,
    )
    absl_flags.DEFINE_float(
        "minutes",
        None,
        "longest time to train one system in this run, 0 for any; default 3.2 "
        "with --quick and 120 with --full",
        **options,
    )
    absl_flags.DEFINE_integer(
        "jobs",
        2,
        "number of systems trained at a time; they share the cores",
        lower_bound=1,
        **options,
    )


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that would otherwise be found after the training."""
    require(flags, "out_dir")
    check_folder("out_dir", flags.out_dir)
    if flags.quick and flags.full:
        raise ValueError("--quick and --full: wanted one of them")
    trains = flags.quick or flags.full
    if not (trains or flags.system or flags.hypotheses):
        raise ValueError("--quick, --full, --system or --hypotheses is missing")
    if not trains:
        names = ("train_systems", "train_flag", "minutes", "jobs")
        refuse(flags, names, "without --quick or --full")
    if flags.minutes is not None and flags.minutes not in _MINUTES:
        raise ValueError(f"--minutes is {flags.minutes}, wanted {_MINUTES}")
    systems = dict(named("system", flags.system))
    others = dict(named("hypotheses", flags.hypotheses))
    if both := {*systems} & {*others}:
        raise ValueError(
            f"--system and --hypotheses are both named {min(both)}, wanted different names"
        )
    from_flags(flags, Decoding)
    _check_files(flags)
    for path in others.values():
        check_file("hypotheses", path)
    lists = [*named("nbest", flags.nbest)]
    if len(lists) > 1:
        raise ValueError(f"--nbest is given {len(lists)} times, wanted one")
    for _, path in lists:
        check_file("nbest", path)
    for path in flags.phrases:
        check_file("phrases", path)


def _check_files(flags: absl_flags.FlagValues) -> None:
    """Checks that the right files are given, and that they exist."""
    given = [n for n in (*_TRAINING, *_TEST) if flags[n].value is not None]
    if flags.quick or (flags.full and flags.train_source is None):
        if given:
            raise ValueError(
                f"--{given[0]} is given, but training is on the built-in "
                "corpus; wanted --full with --train_source, --train_target, "
                "--dev_source and --dev_target"
            )
        return
    require(flags, "source", "reference", *_TRAINING * flags.full)
    for side in ("train", "dev"):
        if (f"{side}_source" in given) != (f"{side}_target" in given):
            raise ValueError(f"--{side}_source and --{side}_target go together")
    for name in given:
        check_file(name, flags[name].value)


def named(flag: str, values: list[str]) -> Iterator[tuple[str, str]]:
    """Reads NAME=PATH, each name once.

    Raises:
        ValueError: A value has another form. The message has the flag.
    """
    seen = set()
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path) or name in seen:
            raise ValueError(f"--{flag} is {value!r}, wanted NAME=PATH, each name once")
        seen.add(name)
        yield name, path
