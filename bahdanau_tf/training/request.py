"""What a user asks of a training: texts, folder and options, checked before any work.

Nothing here imports TensorFlow, so that mistakes are answered at once.
"""

from __future__ import annotations

import filecmp
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from bahdanau_tf.data.held_out import match
from bahdanau_tf.data.parallel import SIDES, ParallelCorpus, check_is_text, column_paths, is_table
from bahdanau_tf.options import Recipe, TextOptions, fitted, training
from bahdanau_tf.system.files import check_file, check_folder, check_outside_models, check_regular
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import amount


@dataclass(frozen=True)
class Request:
    """What a user asks of a training.

    Attributes:
        texts: The paths of the texts, by the names `TEXTS`; a table is the source without a target.
        model_dir: The folder of the training.
        user_options: The options that the user gave, by name; "dev_source" if there is a dev text.
        recipe: The name of a recipe of the package, or None.
        defaults: Options that the user did not give, those of the recipe.
        modules: Modules with classes of the user's, which may be imported.
    """

    texts: Mapping[str, str]
    model_dir: Path
    user_options: Mapping[str, Any]
    recipe: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    modules: Sequence[str] = ()

    def check(self) -> None:
        """Raises a ValueError for mistakes that can be found before any text is read."""
        for owner in training.OWNERS:
            owner.check(self.user_options)
        check_folder("model_dir", str(self.model_dir))
        check_outside_models("model_dir", str(self.model_dir))
        for name, path in self.texts.items():
            check_is_text(name, path)
        tables = self.tables
        for name in ("train_source", "train_target"):
            if name not in self.texts and not (name == "train_target" and "train" in tables):
                alone = self.texts.get("train_source")
                table = f"; if {alone} is a table of both sides, its name must end in .tsv"
                raise ValueError(f"--{name} is missing{table if alone else ''}")
        is_pair = ("dev_source" in self.texts) == ("dev_target" in self.texts)
        if not (is_pair or "dev" in tables):
            raise ValueError("--dev_source and --dev_target go together")
        for name, path in self.texts.items():
            self._check_text(name, path)
        if init_from := self.user_options.get("init_from"):
            start, folder = Path(init_from).resolve(), self.model_dir.resolve()
            if start in (folder, folder / "best", folder / "start"):
                raise ValueError(
                    f"--init_from is {init_from}, the model of --model_dir itself: leave it out to "
                    "resume that training, or name another --model_dir to start a new one"
                )
        if "dev_source" in self.texts and self.user_options.get("dev_pairs"):
            training.refuse(self.user_options, ["dev_pairs"], "with --dev_source")
        if self.recipe is not None or not (self.model_dir / training.FILE).is_file():
            self.typical_options()  # else the options of the folder count

    def _check_text(self, name: str, path: str) -> None:
        """Raises if there is no such file; if a recipe names it, says so."""
        try:
            check_file(name, path)
            check_regular(path)  # it is read several times
        except ValueError as error:
            if self.recipe is None:
                raise
            raise ValueError(
                f"{error}; --recipe={self.recipe} uses its own files, in "
                f"--data_dir, where you name none"
            ) from error

    @property
    def paths(self) -> dict[str, str]:
        """The paths of the text files, of the columns of tables, too."""
        paths = dict(self.texts)
        for name in self.tables:
            paths |= column_paths(self.model_dir, name)
        return paths

    @property
    def tables(self) -> dict[str, str]:
        """The paths of tables, by "train" and "dev"; a ValueError if one is both sides."""
        tables = {}
        for name in ("train", "dev"):
            source, target = (self.texts.get(f"{name}_{side}") for side in SIDES)
            if source is not None and is_table(source):
                if source == target:
                    raise ValueError(
                        f"--{name}_target is {target}, the same as --{name}_source; leave "
                        f"--{name}_target out to read both columns of the table"
                    )
                if target is None:
                    tables[name] = source
        return tables

    def choose(
        self,
        facts: fitted.Facts,
        model: Mapping[str, Any] = fitted.TYPICAL_MODEL,
        machine: Mapping[str, Any] = training.NOTHING,
    ) -> list[fitted.Choice]:
        """Chooses the options that the user did not give, for a text; none with a recipe.

        `model` is that of `init_from`, as options; `machine` has "cores", "product_rate", "has_gpu"
        and, if there is a dev text, "dev_lines". Raises ValueError for values out of range.
        """
        if self.recipe is not None:
            return []
        training.make(TextOptions, self.user_options)
        training.make(Recipe, self.user_options)
        options = {**self.user_options, **machine}
        if self.user_options.get("init_from") is not None:
            return fitted.fine_tuned(facts, options, model)
        return fitted.fitted(facts, options)

    def options(self, chosen: Mapping[str, Any] = training.NOTHING) -> training.TrainingOptions:
        """The options, some of which were chosen or read from the folder; see `make_options`."""
        return training.make_options(self.user_options, chosen, self.defaults)

    def typical_options(self) -> training.TrainingOptions:
        """The options for a typical text, before the text is read."""
        return self.options(training.values_of(self.choose(fitted.TYPICAL)))

    def recall_options(self) -> dict[str, Any]:
        """The options in the folder that the user does not give now.

        A module that only they name is an error: a folder from elsewhere must not choose what runs.
        """
        file = self.model_dir / training.FILE
        if self.recipe is not None or not file.is_file():
            return {}
        options = training.read_options(file)
        options = {name: options[name] for name in options if name not in self.user_options}
        for part in ("attention", "cell"):
            module = str(options.get(part, "")).rpartition(".")[0]
            is_ours = module.partition(".")[0] in ("", "bahdanau_tf", "keras")
            if not is_ours and module not in self.modules:
                raise ValueError(
                    f"{file} has --{part}={options[part]}, a class of the module {module}; if you "
                    f"trust that module, set --modules={module}"
                )
        return options


GIVEN = "given_texts"  # in the folder: sentences that were not in files


def recall_texts(model_dir: Path) -> dict[str, str]:
    """The paths of the texts of a training, for a run that names none."""
    file = model_dir / training.TEXTS_FILE
    texts = training.read_options(file, training.TEXTS) if file.is_file() else {}
    for name, path in texts.items():
        if Path(path).parent.name == GIVEN:  # the folder may have been moved
            texts[name] = str(model_dir / GIVEN / Path(path).name)
    return texts


FIRST_LINES = 100  # by which a table or a header is recognized
_NAME = re.compile(r"[^\W\d]+")
FEW = fitted.UNITS[0][0]  # different pairs: fewer get the smallest model
SHARE = 0.1  # of the dev pairs: so many may be training pairs by chance


def doubts(files: Mapping[str, str], corpus: ParallelCorpus | None = None) -> Iterator[str]:
    """Yields warnings about training files, paths by flag, that are probably a mistake.

    `corpus` is the training text.
    """
    if corpus is not None and not match(corpus):
        yield (
            "the source and target lines of the training text match no better than shuffled ones: "
            f"is each line of {files['train_target']} the translation of the same line of "
            f"{files['train_source']}?"
        )
    # An empty file raises elsewhere.
    files = {name: path for name, path in files.items() if Path(path).stat().st_size}
    pairs = {}
    for name in ("train", "dev"):
        source, target = (files.get(f"{name}_{side}") for side in SIDES)
        if source and target:
            pairs[name] = source, target
            if filecmp.cmp(source, target, shallow=False):
                yield (
                    f"--{name}_source and --{name}_target are the same text, "
                    f"{source}: a model only learns to copy from it"
                )
    for name, paths in pairs.items():
        if header := _header([*islice(zip(*map(read_lines, paths), strict=False), FIRST_LINES)]):
            yield (
                f"the first {name} pair, {header[0]!r} and {header[1]!r}, looks like a header and "
                "is read as a sentence pair; delete it if it is one"
            )
    for name, path in files.items():
        lines = [*islice(read_lines(path), FIRST_LINES)]
        if lines and all("\t" in line for line in lines):
            yield (
                f"--{name}: the lines of {path} have tabs, like a table of both sides; if it is "
                "one, give it a name that ends in .tsv, and set only --train_source or "
                "--dev_source: both columns are read"
            )
    if len(pairs) == 2:
        dev_pairs = [*zip(*map(read_lines, pairs["dev"]), strict=False)]
        common = {*dev_pairs}
        common.intersection_update(zip(*map(read_lines, pairs["train"]), strict=False))
        count = sum(pair in common for pair in dev_pairs)
        if count > SHARE * len(dev_pairs):
            yield (
                f"{count:,} of {len(dev_pairs):,} dev pairs are training pairs, too: "
                "dev BLEU shows how well these are memorized"
            )


def _header(pairs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The first pair if it is the only one of two names, such as english and french; else ()."""
    are_names = [all(map(_NAME.fullmatch, pair)) for pair in pairs]
    return pairs[0] if len(pairs) > 1 and are_names[0] and not any(are_names[1:]) else ()


def few_pairs(source: str, target: str) -> Iterator[str]:
    """A sentence if a text has too few pairs to learn a language from.

    Equal pairs count once, and those with a blank line not at all. Sides of unequal length, or
    without any pair, raise elsewhere.
    """
    different: set[tuple[str, ...]] = set()
    for sides in zip_longest(read_lines(source), read_lines(target)):
        if None in sides:
            return
        pair = tuple(map(str.strip, sides))
        if all(pair):
            different.add(pair)
        if len(different) >= FEW:
            return
    if different:
        yield (
            f"only {amount(len(different), 'different sentence pair')}, fewer than {FEW:,}: expect "
            "at best fair translations of sentences much like these, and bad ones of others; "
            "everyday language needs tens of thousands"
        )
