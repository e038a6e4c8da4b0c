"""What a user asks of a training: texts, folder and options, checked before any work.

Nothing here imports TensorFlow, so that mistakes are answered at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bahdanau_tf.data.parallel import SIDES, check_is_text, column_paths, is_table
from bahdanau_tf.evaluation.scores import ScoreOptions, bleu_metric, check_monitor
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, training as options
from bahdanau_tf.options.choices import Choice, choose
from bahdanau_tf.options.facts import TYPICAL, Facts
from bahdanau_tf.options.fields import OptionGroup
from bahdanau_tf.options.model import DROPOUT
from bahdanau_tf.options.training import StartOptions
from bahdanau_tf.system.files import check_file, check_folder, check_outside_models, check_regular
from bahdanau_tf.system.ranges import OptionError, Refusal, named


@dataclass(frozen=True)
class Training:
    """What is to be done: a training as a user asks for it, by flags or by keywords.

    Attributes:
        texts: The paths of the texts, by the names `TEXTS`; a table is the source without a target.
        model_dir: The folder of the training.
        user_options: The options that the user gave, by name.
        recipe_name: The name of a recipe of the package, which leaves nothing to choose, or None.
        defaults: Options that the user did not give, those of the recipe.
        modules: The user's modules, which may be imported.
        tensorboard: Whether to write curves and pictures for TensorBoard.
        threads: Number of cores to use; None for all.
        choices: The options that were chosen to fit the text, with reasons.
        recalled: The options of a training that is resumed, which the user does not give now.
    """

    texts: Mapping[str, str]
    model_dir: Path
    user_options: Mapping[str, Any]
    recipe_name: str | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    modules: Sequence[str] = ()
    tensorboard: bool = False
    threads: int | None = None
    choices: Sequence[Choice] = ()
    recalled: Mapping[str, Any] = field(default_factory=dict)

    # Options, each made once; they raise ValueError if one has no effect or is out of range.

    @property
    def text(self) -> TextOptions:
        """The options of the tokenizers."""
        return self._options[0]

    @property
    def model(self) -> ModelOptions:
        """The options of the model."""
        return self._options[1]

    @property
    def recipe(self) -> Recipe:
        """The options of training."""
        return self._options[2]

    @cached_property
    def start(self) -> StartOptions:
        """The model to start with, and the number of pairs to hold out."""
        return StartOptions.of(self._values)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return {**self.defaults, **self.user_options, **self.recalled, **self._chosen}

    @property
    def _chosen(self) -> dict[str, Any]:
        return {name: value for choice in self.choices for name, value in choice.values.items()}

    @cached_property
    def _options(self) -> tuple[TextOptions, ModelOptions, Recipe]:
        init_from, of_dev = named("init_from"), () if self.has_dev else options.OF_DEV_TEXT
        if self.start.init_from is None:
            options.refuse(self.user_options, ["added_words"], f"without {init_from}")
            unused = self._unused(TextOptions, ModelOptions, Recipe)
            if self._values.get("risk_samples"):
                raise Refusal("fit", f"{named('risk_samples')} needs {init_from}, a trained model")
            left_out = {*unused, *of_dev}
        else:
            where = f"with {init_from}, whose model has its own"
            options.refuse(self.user_options, options.OF_TRAINED, where)
            unused = self._unused(Recipe)
            left_out = {*unused, *of_dev, *options.OF_TRAINED}
        for name, where in unused.items():
            options.refuse(self.user_options, [name], f"with {where}")
        # Those without effect, of a recipe, have their defaults.
        values = {name: value for name, value in self._values.items() if name not in left_out}
        text, model, recipe = TextOptions.of(values), ModelOptions.of(values), Recipe.of(values)
        if model.share_embeddings and not text.joint:
            shared = named("share_embeddings")
            raise Refusal("fit", f"{shared} needs {named('joint')}, one vocabulary")
        if not self.has_dev:
            # Chosen or recalled, dev_pairs=0 has a reason of its own.
            if "dev_pairs" not in {**self.recalled, **self._chosen}:
                where = f"without {named('dev_source')} or {named('dev_pairs')}"
                if "dev_pairs" in self.user_options:
                    where = f"with {named('dev_pairs', 0)}, without a dev text"
                options.refuse(self.user_options, options.OF_DEV_TEXT, where)
            if recipe.schedule == "plateau":
                needed = f"{named('dev_source')} or {named('dev_pairs')}"
                raise Refusal("fit", f"{named('schedule', 'plateau')} needs {needed}")
        return text, model, recipe

    def _unused(self, *owners: type[OptionGroup]) -> dict[str, str]:
        return {n: w for owner in owners for n, w in owner.of(self._values).unused().items()}

    def values(self) -> dict[str, Any]:
        """The values of all options that have an effect, by name."""
        values, unused = vars(self.recipe), {*self.recipe.unused()}
        if self.start.init_from is None:
            values = vars(self.text) | vars(self.model) | values
            unused |= self.text.unused().keys() | self.model.unused().keys() | {"added_words"}
        values = values | self.dropout
        if not self.has_dev:
            unused |= {*options.OF_DEV_TEXT}
        values = values | vars(self.start) | {"learning_rate": self.recipe.rate}
        return {n: v for n, v in values.items() if n not in unused and v is not None}

    @property
    def dropout(self) -> dict[str, float]:
        """The rates that are given or chosen; the model of `init_from` has its own ones besides.

        Those of a recipe are for new models.
        """
        values = {**self.user_options, **self.recalled, **self._chosen}
        return {name: values[name] for name in DROPOUT if name in values}

    @property
    def has_dev(self) -> bool:
        """Whether there is a dev text: the user's, or pairs that are held out."""
        return "dev_source" in self.texts or bool(self.start.dev_pairs)

    @cached_property
    def paths(self) -> dict[str, str]:
        """The paths of the text files, as `texts`; the columns of a table are in the folder."""
        paths = dict(self.texts)
        for name in self.tables:
            paths |= column_paths(self.model_dir, name)
        return paths

    @property
    def dev_pairs(self) -> int:
        """The number of pairs to hold out as the dev text."""
        return 0 if "dev_source" in self.texts else self.start.dev_pairs

    def check(self) -> None:
        """Raises a ValueError for mistakes that can be found before any text is read."""
        for owner in options.OWNERS:
            owner.check(self.user_options)
        check_monitor(self.user_options.get("monitor", Recipe.monitor))
        if tokenize := {**self.defaults, **self.user_options}.get("tokenize"):
            bleu_metric(ScoreOptions(tokenize))  # raises if there is none
        check_folder("model_dir", str(self.model_dir))
        check_outside_models("model_dir", str(self.model_dir))
        for name, path in self.texts.items():
            check_is_text(name, path)
        tables = self.tables
        for name in ("train_source", "train_target")[: 1 if "train" in tables else 2]:
            if name not in self.texts:
                hint = f", and {self.model_dir} has no training to resume"
                if alone := self.texts.get("train_source"):
                    hint = f"; if {alone} is a table of both sides, its name must end in .tsv"
                raise Refusal("fit", f"{named(name)} is missing{hint}")
        is_pair = ("dev_source" in self.texts) == ("dev_target" in self.texts)
        if not (is_pair or "dev" in tables):
            raise Refusal("fit", f"{named('dev_source')} and {named('dev_target')} go together")
        for name, path in self.texts.items():
            self._check_text(name, path)
        if self.user_options.get("init_from") == "":
            raise OptionError("fit", "init_from", "", "a folder")
        if init_from := self.user_options.get("init_from"):
            start, folder = Path(init_from).resolve(), self.model_dir.resolve()
            if start in (folder, folder / "best", folder / "start"):
                raise Refusal(
                    "fit",
                    f"{named('init_from')} is {init_from}, the model of {named('model_dir')} "
                    "itself: leave it out to resume that training, or name another "
                    f"{named('model_dir')} to start a new one",
                )
        if "dev_source" in self.texts and self.user_options.get("dev_pairs"):
            options.refuse(self.user_options, ["dev_pairs"], f"with {named('dev_source')}")
        if self.recipe_name is not None or not (self.model_dir / options.FILE).is_file():
            _ = self.chosen(TYPICAL).recipe  # else the options of the folder count

    def _check_text(self, name: str, path: str) -> None:
        """Raises unless there is such a file; if a recipe names it, says so."""
        try:
            check_file(name, path)
        except Refusal as error:
            if self.recipe_name is None:
                raise
            raise Refusal(
                "fit",
                f"{error.what}; {named('recipe', self.recipe_name)} uses its own files, in "
                f"{named('data_dir')}, where you name none",
            ) from error
        check_regular(path)  # it is read several times

    @property
    def tables(self) -> dict[str, str]:
        """The paths of tables, by "train" and "dev"; raises ValueError if one is both sides."""
        tables = {}
        for name in ("train", "dev"):
            source, target = (self.texts.get(f"{name}_{side}") for side in SIDES)
            if source is None or not is_table(source):
                continue
            if source == target:
                of_source, of_target = named(f"{name}_source"), named(f"{name}_target")
                raise Refusal(
                    "fit",
                    f"{of_target} is {target}, the same as {of_source}; leave {of_target} out to "
                    "read both columns of the table",
                )
            if target is None:
                tables[name] = source
        return tables

    def chosen(
        self,
        facts: Facts,
        others: Mapping[str, Any] = options.NOTHING,
        without: Collection[str] = (),
    ) -> Training:
        """The training with the options that the user did not give, chosen to fit a text.

        With a recipe none is chosen. `others` has what else `choose` reads; options `without`
        effect are not chosen. Raises a ValueError for values out of range.
        """
        if self.recipe_name is not None:
            return self
        TextOptions.of(self.user_options)
        Recipe.of(self.user_options)
        choices = choose(facts, {**others, **self.texts, **self.user_options})
        return replace(self, choices=[choice.without(without) for choice in choices])


def recall_texts(model_dir: Path) -> dict[str, str]:
    """The paths of the texts of a training, for a run that names none."""
    file = model_dir / options.TEXTS_FILE
    texts = options.read_options(file, options.TEXTS) if file.is_file() else {}
    # `folder / path` is `path` if that is absolute.
    return {name: str(model_dir.absolute() / path) for name, path in texts.items()}
