"""Writes the paper's tables and figures for any corpus as one HTML page.

--quick trains on the built-in corpus, within 15 minutes on two cores: RNNencdec and RNNsearch on
sentences of up to 15 and of up to 30 words, a forward and a reversed LSTM. --full trains more and
larger systems, for up to two hours each, on the built-in corpus or on --train_source,
--train_target, --dev_source and --dev_target: RNNencdec and RNNsearch with sentences of up to 30
and 50 words (built-in: 15 and 30), an RNNsearch trained for longer, a forward and five reversed
LSTMs, or only --train_systems; on your text all in the paper's form, with words and Adadelta. A
system that is not finished after its --minutes is stopped and reported as it is; running the
command again resumes it, and leaves finished systems alone.

--system names a trained model and --hypotheses another system's translations; both may be repeated
and combined with --quick or --full. A system with the name of one of the paper's, such as
RNNsearch-50, goes into that row of the tables.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from bahdanau_tf.commands import train
from bahdanau_tf.commands.files import check_count, check_tokenize_flag, line_pairs, nbest_lists
from bahdanau_tf.commands.flags import SCORES, Group, Modules, from_flags, parse, refuse, require
from bahdanau_tf.corpora import grammar
from bahdanau_tf.evaluation import has_blanks, read_pharaoh
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import SAMPLING
from bahdanau_tf.options.facts import TYPICAL
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.training import TEXTS
from bahdanau_tf.system.files import check_file, check_folder
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import StatusLine

if TYPE_CHECKING:
    from bahdanau_tf import report
    from bahdanau_tf.report import suites
    from bahdanau_tf.training.processes import Plan

NLL_SAMPLE = 5000  # number of training pairs read to compute their likelihood
TEST_LENGTH = 60  # longest test sentence of the built-in corpus, in words
_TEST = ("source", "reference", "alignments")


@dataclass(frozen=True)
class _Systems(Modules):
    out_dir: str = option("folder for all output", "report")
    system: tuple[str, ...] = option(
        "a trained model, as NAME=MODEL_DIR; may be repeated", (), repeated=True
    )
    hypotheses: tuple[str, ...] = option(
        "another system's translations, as NAME=FILE; may be repeated", (), repeated=True
    )
    nbest: tuple[str, ...] = option(
        "another system's n-best lists in Moses' format, as NAME=FILE, for LSTMs to rescore; "
        "at most one",
        (),
        repeated=True,
    )
    phrases: tuple[str, ...] = option(
        "file of sentences to draw as an LSTM's vectors, with a blank line between groups of "
        "similar meaning; may be repeated, for a picture of each file",
        (),
        repeated=True,
    )


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text to translate")
    reference: str | None = option("its reference translation")
    alignments: str | None = option("its gold word alignment, in Pharaoh's format")
    train_source: str | None = option("training text, source side")
    train_target: str | None = option("training text, target side")
    dev_source: str | None = option("dev text, source side")
    dev_target: str | None = option("dev text, target side")


@dataclass(frozen=True)
class _Training(OptionGroup):
    quick: bool = option("whether to train small systems on the built-in corpus", False)
    full: bool = option("whether to train larger systems, on any corpus", False)
    train_systems: tuple[str, ...] = option(
        "names of the systems to train, such as RNNsearch-50; all if empty", ()
    )
    train_flag: tuple[str, ...] = option(
        "a flag for every training whose model uses it, such as --units=512; may be repeated",
        (),
        repeated=True,
    )
    minutes: float | None = option(
        "longest time to train one system in this run, 0 for no limit; default 3.2 with --quick "
        "and 120 with --full",
        within=Range(0, 10**6),
    )
    jobs: int = option(
        "number of systems trained at a time; they share the cores", 2, Range(1, 10**4)
    )


GROUPS = (
    Group(_Systems, "Report"),
    Group(_Files),
    Group(_Training),
    SCORES,
    Group(Decoding, "Search", ("n_best", "shortlist", *SAMPLING)),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that would otherwise be found after the training."""
    require(flags, "out_dir")
    check_folder("out_dir", flags.out_dir)
    if flags.quick and flags.full:
        raise ValueError("--quick and --full: wanted one, not both")
    trains = flags.quick or flags.full
    if not (trains or flags.system or flags.hypotheses):
        raise ValueError("--quick, --full, --system or --hypotheses is missing")
    if not trains:
        names = ("train_systems", "train_flag", "minutes", "jobs")
        refuse(flags, names, "without --quick or --full")
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
        raise ValueError(f"--nbest is set {len(lists)} times, wanted once")
    for _, path in lists:
        check_file("nbest", path)
    for path in flags.phrases:
        check_file("phrases", path)


def _check_files(flags: absl_flags.FlagValues) -> None:
    """Checks that the right files are given, and that they exist."""
    names = [n for n in (*TEXTS, *_TEST) if flags[n].value is not None]
    if flags.quick or (flags.full and flags.train_source is None):
        if names:
            raise ValueError(
                f"--{names[0]} is set, but training is on the built-in corpus; wanted --full "
                "with --train_source, --train_target, --dev_source and --dev_target"
            )
        return
    require(flags, "source", "reference", *TEXTS * flags.full)
    for side in ("train", "dev"):
        if (f"{side}_source" in names) != (f"{side}_target" in names):
            raise ValueError(f"--{side}_source and --{side}_target go together")
    for name in names:
        check_file(name, flags[name].value)


def named(flag: str, values: list[str]) -> Iterator[tuple[str, str]]:
    """Reads NAME=PATH, each name once; a ValueError for another form."""
    seen = set()
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path) or name in seen:
            raise ValueError(f"--{flag} is {value!r}, wanted NAME=PATH, each name once")
        seen.add(name)
        yield name, path


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    from bahdanau_tf import report
    from bahdanau_tf.report import suites
    from bahdanau_tf.training import processes
    from bahdanau_tf.translation.saved import best_folder

    report.check_matplotlib("report")
    out_dir = Path(flags.out_dir)
    folder = out_dir / "models"
    models: dict[str, str | Path] = dict(named("system", flags.system))
    suite = suites.QUICK if flags.quick else None
    if flags.full:
        suite = suites.FULL if flags.train_source else suites.FULL_GRAMMAR
    files = suites.Files(*(flags[n].value for n in suites.Files._fields))
    check_tokenize_flag(flags)
    _check_plans(_plans(suite, files, flags), flags)
    for name, model in models.items():
        if not (best_folder(model) / "translator.json").is_file():
            raise ValueError(f"--system={name}={model} holds no translator")
    about, phrases = [], [*map(_groups, flags.phrases)]
    if suite is not None and suite.pairs:
        StatusLine().note("generating the built-in corpus")
        kind = "full" if flags.full else "quick"
        files = write_corpus(suite, out_dir / "data" / kind)
        about.append(
            f"Data: the built-in English-French grammar, {suite.pairs['train']:,} pairs of up to "
            f"{suite.longest} words for training, test sentences of up to {TEST_LENGTH}."
        )
        phrases = phrases or grammar.phrases()
    links = read_pharaoh(files.alignments) if files.alignments else None
    test = report.Corpus([*read_lines(files.source)], [*read_lines(files.reference)], links)
    _check_words(suite, test.sources)
    outside = _outside(flags, test)
    baseline = _baseline(flags, test.sources)
    train, dev = _pairs(files, "train", NLL_SAMPLE), _pairs(files, "dev")
    plans = _plans(suite, files, flags)
    if suite is not None:
        minutes = suite.minutes if flags.minutes is None else flags.minutes
        models = {**processes.train_all(plans, folder, minutes, flags.jobs), **models}
        limit = f"at most {minutes:g} minutes" if minutes else "any time"
        about.append(
            f"Budget: {limit} for each system in one run of the command; the commands below have "
            "its epochs or updates."
        )
    decoding = from_flags(flags, Decoding)
    path = report.write(
        out_dir,
        models,
        test,
        hypotheses=outside,
        train=train,
        dev=dev,
        counterparts={plan.name: plan.counterpart for plan in plans},
        scoring=report.Scoring(decoding, flags.tokenize, flags.ignore_case, nfc=flags.nfc),
        baseline=baseline,
        phrases=phrases,
        about=about,
        commands=[_command(plan, folder) for plan in plans],
    )
    print(path)


def write_corpus(suite: suites.Suite, folder: Path) -> suites.Files:
    """Writes the built-in corpus, with longer sentences in the test set.

    Files that exist in `folder` are not written again.
    """
    from bahdanau_tf.report import suites

    train, test = (folder / f"up-to-{words}" for words in (suite.longest, TEST_LENGTH))
    for path, words, absent in (
        (train, suite.longest, {"test": 0}),
        (test, TEST_LENGTH, {"train": 0, "dev": 0}),
    ):
        if not (path / "train.fr").is_file():
            pairs = {**suite.pairs, **absent}
            grammar.write_corpus(path, pairs["train"], pairs["dev"], pairs["test"], max_words=words)
    return suites.Files(
        *(str(train / name) for name in ("train.en", "train.fr", "dev.en", "dev.fr")),
        *(str(test / f"test.{end}") for end in ("en", "fr", "align")),
    )


def _plans(
    suite: suites.Suite | None, files: suites.Files, flags: absl_flags.FlagValues
) -> list[Plan]:
    """The systems of --train_systems, or all, if --train_flag does not change them."""
    if suite is None:
        return []
    own = ("model", suite.limit, "reverse_source", "noreverse_source", "model_dir")
    for flag in flags.train_flag:
        if flag.lstrip("-").partition("=")[0] in own:
            raise ValueError(
                f"--train_flag is {flag!r}, wanted flags in which the systems do not differ: none "
                f"of {', '.join(own)}"
            )
    plans = suite.plans(files, flags.train_flag)
    names = [plan.name for plan in plans]
    if unknown := {*flags.train_systems} - {*names}:
        raise ValueError(f"--train_systems is {min(unknown)!r}, wanted some of {names}")
    wanted = flags.train_systems or names
    return [plan for plan in plans if plan.name in wanted]


def _check_plans(plans: list[Plan], own: absl_flags.FlagValues) -> None:
    """Raises what the trainings or the report would raise later."""
    from bahdanau_tf import report

    others = {"system": own.system, "hypotheses": own.hypotheses}
    taken = {name: flag for flag, values in others.items() for name, _ in named(flag, values)}
    names = [*(plan.name for plan in plans), *taken]
    report.check_names("--system and --hypotheses", names)
    systems: dict[str, str] = {}  # by all values of their flags
    for plan in plans:
        if plan.name in taken:
            raise ValueError(
                f"--{taken[plan.name]}={plan.name} is the name of a system to train, wanted "
                "another name"
            )
        flags = absl_flags.FlagValues()
        for group in train.GROUPS:
            group.define(flags)
        try:
            rest = parse(flags, plan.flags)
            _ = train.asked(flags).chosen(TYPICAL).recipe
        except ValueError as error:
            raise ValueError(f"--train_flag: {plan.name}: {error}") from error
        if rest:
            raise ValueError(f"--train_flag is {rest[0]!r}, wanted a flag")
        equal = systems.setdefault(flags.flags_into_string(), plan.name)
        if equal != plan.name:
            raise ValueError(
                f"--train_flag makes {plan.name} the same as {equal}, wanted "
                "flags in which the systems do not differ"
            )
        if own.beta and flags.model != "rnnsearch":
            raise ValueError(
                f"--beta is {own.beta}, wanted 0: {plan.name} has no attention to penalize"
            )
        if own.unknown == "replace" and flags.model != "rnnsearch":
            raise ValueError(
                f"--unknown is replace, wanted keep or forbid: {plan.name} has "
                "no attention that finds the words"
            )


def _check_words(suite: suites.Suite | None, sources: Sequence[str]) -> None:
    """Raises if no limit of words would leave any training sentence out."""
    is_limited = suite is not None and suite.limit == "max_words"
    if is_limited and not has_blanks(sources[:1000]):
        raise ValueError(
            "--source has no spaces between words, wanted segmented text: the "
            "systems differ in the number of words of training sentences"
        )


def _outside(flags: absl_flags.FlagValues, test: report.Corpus) -> dict[str, list[str]]:
    """Other systems' translations, as many as there are references."""
    outside = {name: list(read_lines(path)) for name, path in named("hypotheses", flags.hypotheses)}
    files = {"--source": test.sources, "--alignments": test.alignments}
    files |= {f"--hypotheses={name}": lines for name, lines in outside.items()}
    for flag, lines in files.items():
        if lines is not None:
            check_count(flag, len(lines), len(test.references))
    return outside


def _groups(path: str) -> list[list[str]]:
    """Groups of lines between empty lines; raises ValueError if there are fewer than two."""
    lines = (line.strip() for line in read_lines(path))
    groups = [[*group] for is_text, group in groupby(lines, bool) if is_text]
    if sum(map(len, groups)) < 2:
        raise ValueError(f"--phrases={path} has fewer than two sentences")
    return groups


def _baseline(flags: absl_flags.FlagValues, sources: Sequence[str]) -> report.Baseline | None:
    from bahdanau_tf import report

    for name, path in named("nbest", flags.nbest):
        flag = f"--nbest={name}={path}"
        lists = [*nbest_lists(flag, path, sources)]
        empty = [number for number, nbest in enumerate(lists) if not nbest.hypotheses]
        if empty:
            raise ValueError(
                f"{flag} has no hypothesis for {len(empty)} of {len(lists)} sentences (the first "
                f"is number {empty[0]}), wanted one or more for each"
            )
        return report.Baseline(name, lists)
    return None


def _pairs(files: suites.Files, side: str, most: int | None = None) -> report.Corpus | None:
    """The first training or dev pairs; None if there are no files of them."""
    from bahdanau_tf import report

    if getattr(files, f"{side}_source") is None:
        return None
    pairs = [*line_pairs(files, f"{side}_source", f"{side}_target", stop=most)]
    return report.Corpus([source for source, _ in pairs], [target for _, target in pairs])


def _command(plan: Plan, folder: Path) -> str:
    flags = [*plan.flags, f"--model_dir={folder / plan.folder}"]
    return shlex.join(["bahdanau-tf", "train", *flags])
