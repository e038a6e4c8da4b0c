"""Writes the paper's tables and figures, from any corpus, as one HTML page.

--quick trains on the built-in corpus, within 15 minutes on two cores:
RNNencdec and RNNsearch on sentences of up to 15 and of up to 30 words, a
forward and a reversed LSTM. --full trains more and larger systems, with up to
two hours each, on the built-in corpus or on --train_source and its kin:
RNNencdec and RNNsearch with sentences of up to 30 and 50 words (built-in: 15
and 30), a longer trained RNNsearch, a forward and five reversed LSTMs. A
system that is not ready when its --minutes are over is stopped and reported as
it is; the same command run again goes on with it, and trains nothing that is
ready.

--system names a trained model and --hypotheses another system's translations;
each may be repeated and stand beside what is trained. A system called like
one of the paper's, such as RNNsearch-50, stands in its row of the tables.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf import report
from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.commands.scoring import check_tokenize_flag
from bahdanau_tf.commands.scoring import define_tokenize_flag
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.evaluation import read_pharaoh
from bahdanau_tf.report import suites
from bahdanau_tf.report.trainings import Plan
from bahdanau_tf.report.trainings import train_all
from bahdanau_tf.text_files import read_lines

NLL_SAMPLE = 5000  # training pairs read for their likelihood


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    absl_flags.DEFINE_string(
        "out_dir", "report", "folder for all that is made", flag_values=flags
    )
    for name, text in (
        ("quick", "whether to train small systems on the built-in corpus"),
        ("full", "whether to train larger systems, on any corpus"),
        ("ignore_case", "whether BLEU ignores case"),
    ):
        absl_flags.DEFINE_bool(name, False, text, flag_values=flags)
    for name, text in (
        ("system", "a trained model, as NAME=MODEL_DIR; may be repeated"),
        ("hypotheses", "others' translations, as NAME=FILE; may be repeated"),
        (
            "train_flag",
            "a flag for every training, such as --units=512; may be repeated",
        ),
    ):
        absl_flags.DEFINE_multi_string(name, [], text, flag_values=flags)
    for name, text in (
        ("source", "text to translate"),
        ("reference", "its translation by hand"),
        ("alignments", "its gold word alignment, in Pharaoh's form"),
        ("train_source", "training text, source side"),
        ("train_target", "training text, target side"),
        ("dev_source", "dev text, source side"),
        ("dev_target", "dev text, target side"),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    define_tokenize_flag(flags)
    absl_flags.DEFINE_float(
        "minutes",
        None,
        "longest time to train one system in this run; 3.2 with --quick and "
        "120 with --full unless given",
        lower_bound=0,
        flag_values=flags,
    )
    absl_flags.DEFINE_integer(
        "jobs",
        2,
        "systems trained at a time; they share the cores",
        lower_bound=1,
        flag_values=flags,
    )
    define_fields(flags, Decoding, without=("n_best", "shortlist"))


def run(flags: absl_flags.FlagValues) -> int:
    """Trains what is to be trained, and writes the report."""
    out_dir = Path(flags.out_dir)
    models: dict[str, str | Path] = dict(_named("system", flags.system))
    outside = dict(_named("hypotheses", flags.hypotheses))
    suite = _suite(flags)
    files = _files(flags)
    check_tokenize_flag(flags)
    if suite is None and not models and not outside:
        raise ValueError("--quick, --full, --system or --hypotheses is missing")
    about = []
    if suite is not None and files.train_source is None:
        pairs = suites.FULL_PAIRS if flags.full else suites.QUICK_PAIRS
        kind = "full" if flags.full else "quick"
        folder = out_dir / "data" / kind
        print("generating the built-in corpus", file=sys.stderr)
        files = suites.write_grammar(folder, pairs, suite.lengths[1])
        about.append(
            f"Data: the built-in English-French grammar, {pairs['train']:,} "
            f"pairs of up to {suite.lengths[1]} words to train on, tested on "
            "sentences of up to 60."
        )
    test = _test(files)
    plans: list[Plan] = []
    if suite is not None:
        plans = suite.plans(files, flags.train_flag)
        minutes = suite.minutes if flags.minutes is None else flags.minutes
        folder = out_dir / "models"
        trained = train_all(plans, folder, minutes, flags.jobs)
        models = {**trained, **models}
        about.append(suite.budget(minutes))
    path = report.write(
        out_dir,
        models,
        test,
        hypotheses={name: _lines(path) for name, path in outside.items()},
        train=_pairs(files.train_source, files.train_target, NLL_SAMPLE),
        dev=_pairs(files.dev_source, files.dev_target),
        counterparts={plan.name: plan.counterpart for plan in plans},
        scoring=report.Scoring(
            from_flags(flags, Decoding), flags.tokenize, flags.ignore_case
        ),
        about=about,
        commands=[_command(plan, folder) for plan in plans],
    )
    print(path)
    return 0


def _suite(flags: absl_flags.FlagValues) -> suites.Suite | None:
    if flags.quick and flags.full:
        raise ValueError("--quick and --full: wanted one of them")
    if flags.quick:
        return suites.QUICK
    if not flags.full:
        return None
    return suites.FULL if flags.train_source else suites.FULL_GRAMMAR


def _files(flags: absl_flags.FlagValues) -> suites.Files:
    """The files given, if they are enough for what is asked."""
    files = suites.Files(*(flags[n].value for n in suites.Files._fields))
    given = [name for name, path in files._asdict().items() if path]
    if flags.quick or (flags.full and not files.train_source):
        if given:
            raise ValueError(
                f"--{given[0]} is given, and the built-in corpus is to be "
                "trained on; wanted --full with --train_source and its kin"
            )
        return files
    wanted = ["source", "reference"]
    if flags.full:
        wanted += suites.TRAINING_FILES
    for name in wanted:
        if name not in given:
            raise ValueError(f"--{name} is missing")
    for side in ("train", "dev"):
        if (f"{side}_source" in given) != (f"{side}_target" in given):
            raise ValueError(f"--{side}_source and --{side}_target go together")
    return files


def _named(flag: str, values: list[str]) -> Iterator[tuple[str, str]]:
    """Reads NAME=PATH, each name once."""
    seen = set()
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path) or name in seen:
            raise ValueError(
                f"--{flag} is {value!r}, wanted NAME=PATH, each name once"
            )
        seen.add(name)
        yield name, path


def _lines(path: str | None, most: int | None = None) -> list[str]:
    return list(islice(read_lines(path), most)) if path else []


def _test(files: suites.Files) -> report.Corpus:
    links = read_pharaoh(files.alignments) if files.alignments else None
    return report.Corpus(_lines(files.source), _lines(files.reference), links)


def _pairs(
    source: str | None, target: str | None, most: int | None = None
) -> report.Corpus | None:
    if source is None:
        return None
    return report.Corpus(_lines(source, most), _lines(target, most))


def _command(plan: Plan, folder: Path) -> str:
    flags = [*plan.flags, f"--model_dir={folder / plan.folder}"]
    return shlex.join(["bahdanau-tf", "train", *flags])
