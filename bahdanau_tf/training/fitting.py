"""`fit`: trains a model for two texts, with options that fit them, or resumes it."""

from __future__ import annotations

import contextlib
import os
import reprlib
import shutil
import signal
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import keras
import tensorflow as tf

from bahdanau_tf.data.held_out import measure
from bahdanau_tf.data.parallel import SIDES, ParallelCorpus, check_columns, is_table, write_columns
from bahdanau_tf.evaluation.scores import ScoreOptions, bleu_metric
from bahdanau_tf.models.named import try_parts, unused_by_parts
from bahdanau_tf.options import Recipe, training
from bahdanau_tf.options.fitted import TYPICAL_MODEL, Choice
from bahdanau_tf.system.device import has_gpu, product_rate, use_threads
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.imports import imported
from bahdanau_tf.system.lines import check_in_order, count_lines, encoded
from bahdanau_tf.system.ranges import did_you_mean
from bahdanau_tf.system.terminal import StatusLine, amount, worded
from bahdanau_tf.training.cluster import Cluster, several_workers, strategy_of_environment
from bahdanau_tf.training.folder import FREE, Log, locked
from bahdanau_tf.training.loop import check_callbacks, train
from bahdanau_tf.training.plan import Start, TrainingPlan, is_begun
from bahdanau_tf.training.request import GIVEN, Request, doubts, few_pairs, recall_texts
from bahdanau_tf.training.run import TrainingResult
from bahdanau_tf.training.step import cores_at_once
from bahdanau_tf.training.texts import TrainingFiles
from bahdanau_tf.translator import Translator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from bahdanau_tf.options.keywords import FitOptions

Text: TypeAlias = "str | os.PathLike[str] | Iterable[str]"
Pairs: TypeAlias = "Iterable[tuple[str, str]]"
# The numbers of a record of the log, by the names that Keras' History has.
_HISTORY = {
    "updates": "step",
    "epochs": "epoch",
    "loss": "train_loss",
    "val_loss": "dev_loss",
    "val_bleu": "dev_bleu",
    "learning_rate": "learning_rate",
    "words_per_second": "words_per_second",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class History:
    """What `fit` did.

    Attributes:
        history: A number for each evaluation, over all runs, in each of the lists "updates",
            "epochs", "loss", "val_loss", "val_bleu", "learning_rate", "words_per_second" and
            "seconds", as in Keras' History; without a dev text, its lists are missing.
        result: The result of the last run.
        model_dir: The folder of the training; a temporary one is removed with this object.
    """

    history: dict[str, list[float]]
    result: TrainingResult
    model_dir: str


_fitting = threading.Lock()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Raises a ValueError while another `fit` runs: all threads draw from the same seeds."""
    if not _fitting.acquire(blocking=False):
        raise ValueError(
            "fit: another fit is running in this process, and each would change the random numbers "
            "of the other; wait for it, or use another process"
        )
    try:
        yield
    finally:
        _fitting.release()


@worded(training.with_keywords)
@_alone()
def fit(
    source: Text | Pairs | None = None,
    target: Text | None = None,
    *,
    dev: tuple[Text, Text] | Text | Pairs | None = None,
    model_dir: str | os.PathLike[str] | None = None,
    recipe: str | Recipe | None = None,
    minutes: float | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    tensorboard: bool = False,
    threads: int | None = None,
    modules: Sequence[str] = (),
    init_from: str | os.PathLike[str] | None = None,
    **options: Unpack[FitOptions],
) -> Translator:
    """Trains a model that translates, as the command `bahdanau-tf train` does.

    Options that you leave out are chosen to fit the text; the choices are reported with reasons,
    and written to `train.flags` in the folder. With the same `model_dir` training is resumed, even
    without texts and options.

    Args:
        source: The text to translate: the path of a file with one sentence per line, plain or .gz,
            or sentences. Without `target`, the path of a table, .tsv, or pairs of a sentence and
            its translation.
        target: Its translation, likewise.
        dev: A dev text to select the best model on: source and target as a tuple, a table, or
            pairs; by default some pairs of the training text are held out.
        model_dir: The folder of the training. By default a temporary one, which exists as long as
            the translator, or for good if training begins but then fails.
        recipe: Options of training as one value; or the name of a recipe in the package, such as
            "paper", with which nothing is chosen.
        minutes: Longest time over all runs, 0 for no limit; 60 unless `epochs` or `updates` is set.
            Ctrl-C ends training early: `fit` returns the best model so far.
        callbacks: As for `train`.
        tensorboard: As for `train`.
        threads: Number of cores to use, if TensorFlow has not run yet; default: all.
        modules: Modules of your own with classes that the training in `model_dir` names; they are
            run, so name only those that you trust.
        init_from: The folder or the name of a trained model to train further.
        **options: Any field of `TextOptions`, `ModelOptions` and `Recipe`, such as `units`;
            `dev_pairs`, the number of pairs to hold out; `added_words`, the number of words to add
            to the model of `init_from`.

    Returns:
        The translator with the best model. Its `history` is a `History`.

    Raises:
        ValueError: An option does not exist, cannot have this value or contradicts another, a text
            is missing or cannot be used, the folder holds another training, or another `fit` is
            running in this process.
        OSError: A file cannot be read or written.
        SystemExit: SIGTERM has ended the training, after it was saved.

    Example:

    ```python
    translator = bahdanau_tf.fit("train.en", "train.fr", minutes=5)
    ```
    """
    for name in options.keys() - training.KINDS.keys():
        names = ["dev=(source, target)"] if name.startswith("dev_") else sorted(training.KINDS)
        hint = did_you_mean(name, names)
        raise ValueError(f"fit: there is no option {name!r}{hint}, wanted {sorted(training.KINDS)}")
    keywords: dict[str, object] = {"source": source, "target": target, "dev": dev}
    keywords |= {"model_dir": model_dir, "recipe": recipe, "tensorboard": tensorboard}
    _check_keywords(keywords | {"threads": threads, "modules": modules})
    check_callbacks("fit", callbacks)
    own = {"minutes": minutes, "init_from": init_from}
    user_options = {**options, **{name: value for name, value in own.items() if value is not None}}
    for module in modules:
        imported(module, f"modules is {module!r}")
    kept = ""
    with contextlib.ExitStack() as undo:
        if model_dir is None:
            kept = ", as long as the translator exists"
            temporary = tempfile.mkdtemp(prefix="bahdanau_tf-")
            undo.callback(shutil.rmtree, temporary, ignore_errors=True)
        folder = Path(temporary, "model") if model_dir is None else Path(model_dir)
        texts = _texts(folder, source, target, dev)
        request = _request(texts, folder, recipe, user_options, modules)
        request.check()
        resume = f"fit(model_dir={str(folder)!r}) resumes this training"
        try:
            result = run(request, tensorboard, threads, callbacks)
        except BaseException as error:
            is_unknown = model_dir is None or isinstance(error, KeyboardInterrupt)
            if is_unknown and is_begun(folder):
                undo.pop_all()
                StatusLine().note(f"{resume} from its last checkpoint")
            raise
        remove_temporary = undo.pop_all().close
    if result.signal == signal.SIGTERM:
        StatusLine().note(resume)
        raise SystemExit(128 + result.signal)
    if result.stopped_by == "signal":
        StatusLine().note(f"{resume}{kept}")
    translator = Translator.load(folder)
    records = Log(folder / "log.jsonl").records()
    columns = {name: [x[key] for x in records if key in x] for name, key in _HISTORY.items()}
    columns = {name: column for name, column in columns.items() if column}
    translator.history = History(columns, result, str(folder))
    weakref.finalize(translator.history, remove_temporary)
    return translator


# The classes of the keywords of `fit` that are not options, and how messages call them.
_KEYWORDS: dict[str, tuple[Any, str]] = {
    "source": (str | os.PathLike | Iterable | None, "a file, sentences, or pairs"),
    "target": (str | os.PathLike | Iterable | None, "a file or sentences"),
    "dev": (str | os.PathLike | Iterable | None, "(source, target), a table, or pairs"),
    "model_dir": (str | os.PathLike | None, "a folder"),
    "recipe": (str | Recipe | None, "a Recipe, or the name of one of the package"),
    "tensorboard": (bool, "True or False"),
    "threads": (Integral | None, "a whole number"),
    "modules": (list | tuple, "a list of names"),
}


def _check_keywords(keywords: Mapping[str, object]) -> None:
    """Raises a ValueError unless the keywords of `fit` have allowed values."""
    for name, value in keywords.items():
        kind, wanted = _KEYWORDS[name]
        if not isinstance(value, kind):
            raise ValueError(f"fit: {name} is {value!r}, wanted {wanted}")
    recipe, names = keywords["recipe"], training.recipe_names()
    if isinstance(recipe, str) and recipe not in names:
        raise ValueError(
            f"fit: recipe is {recipe!r}{did_you_mean(recipe, names)}, wanted one of {names}"
        )
    if keywords["model_dir"] == "":
        raise ValueError("fit: model_dir is empty, wanted a folder")


def _request(
    texts: Mapping[str, str],
    folder: Path,
    recipe: str | Recipe | None,
    options: Mapping[str, Any],
    modules: Sequence[str],
) -> Request:
    """The request of `fit`: options by keyword, those of a recipe, and texts."""
    user_options, defaults, name = dict(options), {}, None
    if isinstance(recipe, Recipe):
        unused = recipe.unused()
        values = {n: v for n, v in asdict(recipe).items() if n not in unused and v is not None}
        user_options = values | user_options
    elif recipe is not None:
        with resources.as_file(training.RECIPES.joinpath(f"{recipe}.flags")) as file:
            of_recipe = training.read_options(file, (*training.TEXTS, "corpus"))
        name, defaults = recipe, {n: v for n, v in of_recipe.items() if n in training.KINDS}
    if isinstance(init_from := user_options.get("init_from"), str | os.PathLike) and init_from:
        user_options["init_from"] = training.absolute(init_from)
    if "dev_source" in texts:
        user_options["dev_source"] = texts["dev_source"]
    return Request(texts, folder, user_options, name, defaults, modules)


def _texts(
    folder: Path, source: Text | Pairs | None, target: Text | None, dev: Any
) -> dict[str, str]:
    """The paths of the texts; sentences are written to files first."""
    if source is None and target is None and dev is None:
        return recall_texts(folder)
    both = dev if isinstance(dev, tuple) and len(dev) == 2 else (dev, None)
    is_one_side = isinstance(dev, str | os.PathLike) and not is_table(dev)
    if is_one_side or not all(isinstance(side, _KEYWORDS["target"][0]) for side in both):
        raise ValueError(f"fit: dev is {dev!r}, wanted {_KEYWORDS['dev'][1]}")
    texts: dict[str, str] = {}
    for name, (first, second) in (("train", (source, target)), ("dev", both)):
        both_sides: dict[str, Any] = {"source": first, "target": second}
        sides = {side: text for side, text in both_sides.items() if text is not None}
        owner = "dev" if name == "dev" else " and ".join(sides)
        paths = {side: x for side, x in sides.items() if isinstance(x, str | os.PathLike)}
        texts |= {f"{name}_{side}": os.fspath(path) for side, path in paths.items()}
        for side, text in sides.items():
            check_in_order(text, f"fit: {'dev' if name == 'dev' else side}")
        lists = {side: [*text] for side, text in sides.items() if side not in paths}
        if [*lists] == [*sides] == ["source"]:
            lists = _columns(owner, lists["source"])
        counts = [len(sentences) for sentences in lists.values()]
        if len({*counts}) > 1:
            raise ValueError(
                f"fit: {'dev: ' * (name == 'dev')}source has {amount(counts[0], 'sentence')} and "
                f"target {counts[1]:,}, wanted equal numbers"
            )
        rows = zip(*lists.values(), strict=True)
        if lists and not any(all(map(str.strip, map(str, row))) for row in rows):
            pairs = amount(counts[0], "sentence pair")
            raise ValueError(f"fit: {owner}: none of {pairs} has words on both sides")
        for side, sentences in lists.items():
            path = folder / GIVEN / f"{name}.{side}"
            _write_sentences(path, sentences)
            texts[f"{name}_{side}"] = str(path)
    return texts


def _columns(owner: str, pairs: Sequence[Any]) -> dict[str, list[Any]]:
    """The sides of pairs of sentences."""
    sides: dict[str, list[Any]] = {side: [] for side in SIDES}
    for pair in pairs:
        is_row = isinstance(pair, Iterable) and not isinstance(pair, str | Mapping)
        row = tuple(pair) if is_row else ()
        if len(row) != 2:
            other = "(source, target)" if owner == "dev" else "source and target"
            if isinstance(pair, Mapping):
                other = f"[{_of_row(pair)} for row in rows]"
            raise ValueError(
                f"fit: {owner} has {reprlib.repr(row or pair)}, wanted pairs of a sentence and "
                f"its translation, or {other}"
            )
        for sentences, sentence in zip(sides.values(), row, strict=True):
            sentences.append(sentence)
    return sides


def _of_row(row: Mapping[str, Any]) -> str:
    """Python that takes a pair from a row of named values, perhaps with others inside."""
    inner = [name for name, value in row.items() if isinstance(value, Mapping)][:1]
    names = [*(row[inner[0]] if inner else row)][-2:]
    values = ("".join(f"[{name!r}]" for name in (*inner, last)) for last in names)
    return f"({', '.join(f'row{value}' for value in values)})"


def _write_sentences(path: Path, sentences: Sequence[object]) -> None:
    """Writes sentences, unless a training of the folder has others."""
    data = b"".join(
        encoded(sentence, f"fit: sentence {number} of {path.name}", "\r\n\0")
        for number, sentence in enumerate(sentences)
    )
    if path.is_file() and path.read_bytes() == data:
        return
    if is_begun(path.parents[1]):
        raise ValueError(
            f"fit: {path.name} has different sentences than when the training in "
            f"{path.parents[1]} began; use the earlier ones, or name another model_dir"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def run(
    request: Request,
    tensorboard: bool = False,
    threads: int | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingResult:
    """Trains by a checked request, alone or with the other workers of a cluster; see `fit`."""
    if several_workers():
        training.refuse(request.user_options, ["accumulate"], "with several workers in TF_CONFIG")
    use_threads(threads)  # before any operation of TensorFlow
    strategy = strategy_of_environment()
    cluster = Cluster(strategy)
    tokenize = {**request.defaults, **request.user_options}.get("tokenize")
    if tokenize is not None:
        bleu_metric(ScoreOptions(tokenize))  # raises if there is none
    if cluster.is_chief:
        return _train_as_chief(request, strategy, cluster, tensorboard, callbacks)
    cluster.wait()  # until the chief has prepared the folder
    files = TrainingFiles(**request.paths)
    plan = _plan(request.options(request.recall_options()), files, request.model_dir)
    with strategy.scope():
        translator = plan.load()
    return train(translator, plan.texts, plan.recipe, request.model_dir, callbacks=callbacks)


def _train_as_chief(
    request: Request,
    strategy: tf.distribute.Strategy,
    cluster: Cluster,
    tensorboard: bool,
    callbacks: Sequence[keras.callbacks.Callback],
) -> TrainingResult:
    """Prepares the folder and trains in it."""
    files, model_dir = TrainingFiles(**request.paths), request.model_dir
    is_new = not is_begun(model_dir)
    for name, table in request.tables.items():
        with locked(model_dir):
            (write_columns if is_new else check_columns)(table, model_dir, name)
    # Classes of the user's own are tried before the text is read.
    options = request.typical_options() if is_new else request.options(request.recall_options())
    unused = unused_by_parts(options.model)
    for name, where in unused.items():
        training.refuse(request.user_options, [name], f"with {where}")
    try_parts(options.model)
    plan = _plan(options, files, model_dir)
    choices: list[Choice] = []
    if is_new:
        dev_lines = _dev_lines(files)  # raises before the warnings
        corpus = ParallelCorpus(files.train_source, files.train_target)
        for doubt in doubts(request.paths, corpus):
            StatusLine().note(doubt)
        choices = [choice.without(unused) for choice in _choose(request, plan, corpus, dev_lines)]
        options = request.options(training.values_of(choices))
        plan = replace(_plan(options, files, model_dir), start=plan.start)  # it may be loaded
    of_dev_text = training.OF_DEV_TEXT if plan.texts.dev_source is None else ()
    values = options.values(without=[*unused, *of_dev_text])
    with locked(model_dir):
        translator = plan.prepare()
        if is_new:
            training.write_options(model_dir / training.FILE, choices, request.user_options, values)
            StatusLine().note(f"all flags of this training: {model_dir / training.FILE}")
            if plan.start is None:
                for doubt in few_pairs(files.train_source, files.train_target):
                    StatusLine().note(doubt)
        cluster.wait()
        if strategy.num_replicas_in_sync > 1:
            with strategy.scope():
                translator = plan.load()
        remember = keras.callbacks.LambdaCallback(
            on_train_begin=lambda _: _remember(model_dir, files, values)
        )
        every = [remember, *callbacks]
        return train(translator, plan.texts, plan.recipe, model_dir, tensorboard, every)


def _dev_lines(files: TrainingFiles) -> int | None:
    """The number of lines of the dev text, if any; a ValueError if its sides differ in it."""
    if files.dev_source is None or files.dev_target is None:
        return None
    source, target = map(count_lines, (files.dev_source, files.dev_target))
    if source != target:
        raise ValueError(
            f"--dev_source: {files.dev_source} has {amount(source, 'line')} and "
            f"{files.dev_target} has {target:,}, wanted equal numbers"
        )
    return source


def _choose(
    request: Request, plan: TrainingPlan, corpus: ParallelCorpus, dev_lines: int | None
) -> list[Choice]:
    """Chooses the options that the user did not give, and reports them."""
    if request.recipe is not None:
        return []
    facts = measure(corpus)
    machine: dict[str, Any] = {"cores": cores_at_once(), "has_gpu": has_gpu()}
    if not machine["has_gpu"]:
        machine["product_rate"] = product_rate()
    if dev_lines is not None:
        machine["dev_lines"] = dev_lines
    choices = request.choose(facts, plan.start.options if plan.start else TYPICAL_MODEL, machine)
    if choices:
        StatusLine().note(f"chosen to fit {amount(facts.pairs, 'sentence pair')}:")
        for choice in choices:
            StatusLine().note(f"  {choice.reason}")
    return choices


def _plan(options: training.TrainingOptions, files: TrainingFiles, model_dir: Path) -> TrainingPlan:
    text, model, recipe, start = options
    trained = None if start.init_from is None else Start(start.init_from, start.added_words)
    return TrainingPlan(text, model, recipe, files, model_dir, start.dev_pairs, trained)


def _remember(model_dir: Path, files: TrainingFiles, values: Mapping[str, object]) -> None:
    """Writes texts and options for runs that resume without naming them."""
    texts = {name: path for name, path in vars(files).items() if path}
    training.write_texts(model_dir / training.TEXTS_FILE, texts)
    file = model_dir / training.FILE
    if not file.is_file():
        return  # `train` in Python made the folder
    before = training.read_options(file)
    changed = {n: values[n] for n in FREE if n in values and values[n] != before.get(n)}
    if changed:
        training.change_options(file, changed)
