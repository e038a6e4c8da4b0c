"""Writes the paper's tables and figures for any corpus as one page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf import report
from bahdanau_tf.commands.common.lines import check_count, line_pairs
from bahdanau_tf.commands.common.nbest import nbest_lists
from bahdanau_tf.commands.common.scoring import check_tokenize_flag
from bahdanau_tf.corpora import grammar
from bahdanau_tf.data.held_out import TYPICAL
from bahdanau_tf.evaluation import has_blanks, read_pharaoh
from bahdanau_tf.flags.fields import from_flags
from bahdanau_tf.flags.report import named
from bahdanau_tf.flags.train import choose, define, options, values_of
from bahdanau_tf.options import Decoding
from bahdanau_tf.plotting.paper import check_matplotlib
from bahdanau_tf.report import trainings
from bahdanau_tf.report.trainings import Plan, train_all
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.translation.saved import best_folder

NLL_SAMPLE = 5000  # number of training pairs read to compute their likelihood


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    check_matplotlib("report")
    out_dir = Path(flags.out_dir)
    folder = out_dir / "models"
    models: dict[str, str | Path] = dict(named("system", flags.system))
    suite = _suite(flags)
    files = trainings.Files(*(flags[n].value for n in trainings.Files._fields))
    check_tokenize_flag(flags)
    _check_plans(_plans(suite, files, flags), flags)
    for name, model in models.items():
        if not (best_folder(model) / "translator.json").is_file():
            raise ValueError(f"--system={name}={model} holds no translator")
    about, phrases = [], [*map(_groups, flags.phrases)]
    if suite is not None and suite.pairs:
        StatusLine().note("generating the built-in corpus")
        kind = "full" if flags.full else "quick"
        files = suite.write_corpus(out_dir / "data" / kind)
        about.append(suite.about_corpus())
        phrases = phrases or grammar.phrases()
    test = _test(files)
    _check_words(suite, test.sources)
    outside = _outside(flags, test)
    baseline = _baseline(flags, test.sources)
    train, dev = _pairs(files, "train", NLL_SAMPLE), _pairs(files, "dev")
    plans = _plans(suite, files, flags)
    if suite is not None:
        minutes = suite.minutes if flags.minutes is None else flags.minutes
        models = {**train_all(plans, folder, minutes, flags.jobs), **models}
        limit = f"at most {minutes:g} minutes" if minutes else "any time"
        about.append(
            f"Budget: {limit} for a system in one run of the command; its "
            "epochs or updates stand in its command below."
        )
    path = report.write(
        out_dir,
        models,
        test,
        hypotheses=outside,
        train=train,
        dev=dev,
        counterparts={plan.name: plan.counterpart for plan in plans},
        scoring=report.Scoring(
            from_flags(flags, Decoding),
            flags.tokenize,
            flags.ignore_case,
            nfc=flags.nfc,
        ),
        baseline=baseline,
        phrases=phrases,
        about=about,
        commands=[_command(plan, folder) for plan in plans],
    )
    print(path)
    return 0


def _suite(flags: absl_flags.FlagValues) -> trainings.Suite | None:
    if flags.quick:
        return trainings.QUICK
    if not flags.full:
        return None
    return trainings.FULL if flags.train_source else trainings.FULL_GRAMMAR


def _plans(
    suite: trainings.Suite | None,
    files: trainings.Files,
    flags: absl_flags.FlagValues,
) -> list[Plan]:
    """The systems of --train_systems, or all; none without a suite.

    Raises:
        ValueError: There is no such system, or --train_flag would make another
            of each.
    """
    if suite is None:
        return []
    _check_train_flags(suite, flags.train_flag)
    plans = suite.plans(files, flags.train_flag)
    names = [plan.name for plan in plans]
    if unknown := {*flags.train_systems} - {*names}:
        raise ValueError(f"--train_systems is {min(unknown)!r}, wanted some of {names}")
    wanted = flags.train_systems or names
    return [plan for plan in plans if plan.name in wanted]


def _check_train_flags(suite: trainings.Suite, given: Sequence[str]) -> None:
    own = ("model", suite.limit, "reverse_source", "noreverse_source")
    for flag in given:
        if flag.lstrip("-").partition("=")[0] in (*own, "model_dir"):
            raise ValueError(
                f"--train_flag is {flag!r}, wanted flags in which the systems "
                f"do not differ: none of {', '.join(own)}, model_dir"
            )


def _check_plans(plans: list[Plan], given: absl_flags.FlagValues) -> None:
    """Raises early what the trainings, or the report, would raise later."""
    taken = {
        name: flag
        for flag in ("system", "hypotheses")
        for name, _ in named(flag, getattr(given, flag))
    }
    names = [*(plan.name for plan in plans), *taken]
    report.check_names("--system and --hypotheses", names)
    made: dict[str, str] = {}  # systems, by all values of their flags
    for plan in plans:
        if plan.name in taken:
            raise ValueError(
                f"--{taken[plan.name]}={plan.name} is the name of a system to "
                "train, wanted another name"
            )
        flags = absl_flags.FlagValues()
        define(flags)
        try:
            left = flags(["train", *plan.flags])[1:]
            options(flags, values_of(choose(flags, TYPICAL)))
        except (absl_flags.Error, ValueError) as error:
            raise ValueError(f"--train_flag: {plan.name}: {error}") from error
        if left:
            raise ValueError(f"--train_flag is {left[0]!r}, wanted a flag")
        equal = made.setdefault(flags.flags_into_string(), plan.name)
        if equal != plan.name:
            raise ValueError(
                f"--train_flag makes {plan.name} the same as {equal}, wanted "
                "flags in which the systems do not differ"
            )
        if given.beta and flags.model != "rnnsearch":
            raise ValueError(
                f"--beta is {given.beta}, wanted 0: {plan.name} has no attention to penalize"
            )
        if given.unknown == "replace" and flags.model != "rnnsearch":
            raise ValueError(
                f"--unknown is replace, wanted keep or forbid: {plan.name} has "
                "no attention that finds the words"
            )


def _check_words(suite: trainings.Suite | None, sources: Sequence[str]) -> None:
    """Raises if no limit of words would leave any training sentence out."""
    is_limited = suite is not None and suite.limit == "max_words"
    if is_limited and not has_blanks(sources[:1000]):
        raise ValueError(
            "--source has no blanks between words, wanted segmented text: the "
            "systems differ in the number of words of training sentences"
        )


def _lines(path: str | None) -> list[str]:
    return list(read_lines(path)) if path else []


def _outside(flags: absl_flags.FlagValues, test: report.Corpus) -> dict[str, list[str]]:
    """Other systems' translations, as many as there are references."""
    outside = {name: _lines(path) for name, path in named("hypotheses", flags.hypotheses)}
    check_count("--source", test.sources, test.references)
    for name, lines in outside.items():
        check_count(f"--hypotheses={name}", lines, test.references)
    if test.alignments is not None:
        check_count("--alignments", test.alignments, test.references)
    return outside


def _groups(path: str) -> list[list[str]]:
    """The groups of lines between blank ones.

    Raises:
        ValueError: The file has fewer than two lines.
    """
    lines = (line.strip() for line in read_lines(path))
    groups = [[*some] for is_text, some in groupby(lines, bool) if is_text]
    if sum(map(len, groups)) < 2:
        raise ValueError(f"--phrases={path} has fewer than two sentences")
    return groups


def _baseline(flags: absl_flags.FlagValues, sources: Sequence[str]) -> report.Baseline | None:
    for name, path in named("nbest", flags.nbest):
        flag = f"--nbest={name}={path}"
        lists = [*nbest_lists(flag, path, sources)]
        empty = [n for n, one in enumerate(lists) if not one.hypotheses]
        if empty:
            raise ValueError(
                f"{flag} has nothing for {len(empty)} of "
                f"{len(lists)} sentences, first for number {empty[0]}; wanted "
                "a hypothesis or more for each"
            )
        return report.Baseline(name, lists)
    return None


def _test(files: trainings.Files) -> report.Corpus:
    links = read_pharaoh(files.alignments) if files.alignments else None
    return report.Corpus(_lines(files.source), _lines(files.reference), links)


def _pairs(files: trainings.Files, side: str, most: int | None = None) -> report.Corpus | None:
    """The first training or dev pairs; None if there are no files of them.

    Raises:
        ValueError: One file ends before the other.
    """
    source, target = f"{side}_source", f"{side}_target"
    if getattr(files, source) is None:
        return None
    pairs = [*line_pairs(files, source, target, stop=most)]
    return report.Corpus([one for one, _ in pairs], [two for _, two in pairs])


def _command(plan: Plan, folder: Path) -> str:
    flags = [*plan.flags, f"--model_dir={folder / plan.folder}"]
    return shlex.join(["bahdanau-tf", "train", *flags])
