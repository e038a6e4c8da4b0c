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
from dataclasses import asdict, dataclass
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import keras

from bahdanau_tf.data.parallel import SIDES, is_table
from bahdanau_tf.evaluation.scores import SCORES
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.training import (
    KINDS,
    OF_DEV_TEXT,
    RECIPES,
    TEXTS,
    absolute,
    read_options,
    recipe_names,
)
from bahdanau_tf.system.files import check_folder, write_atomically
from bahdanau_tf.system.imports import imported
from bahdanau_tf.system.lines import check_in_order, encoded
from bahdanau_tf.system.ranges import OptionError, did_you_mean
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.training import teachers
from bahdanau_tf.training.ask import Training, recall_texts
from bahdanau_tf.training.folder import Log, is_begun
from bahdanau_tf.training.loop import check_callbacks, run
from bahdanau_tf.training.run import TrainingResult
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
    **{f"val_{name}": f"dev_{name}" for name in SCORES},
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
            "seconds", as in Keras' History, and that of `monitor`, such as "val_ter"; without a dev
            text, its lists are missing, and "val_bleu" if `monitor` is a measure of short strings.
        result: The result of the last run.
        model_dir: The folder of the training; a temporary one is removed with this object.
    """

    history: dict[str, list[float]]
    result: TrainingResult
    model_dir: str


_running = threading.Lock()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Raises a ValueError while another `fit` runs: all threads draw from the same seeds."""
    if not _running.acquire(blocking=False):
        raise ValueError(
            "fit: another fit is running in this process, and each would change the random numbers "
            "of the other; wait for it, or use another process"
        )
    try:
        yield
    finally:
        _running.release()


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
    distil: int = 0,
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
            "paper"; then nothing is chosen.
        minutes: Longest time over all runs, 0 for no limit; 60 unless `epochs` or `updates` is set.
            Ctrl-C ends training early: `fit` returns the best model so far.
        callbacks: As for `train`.
        tensorboard: As for `train`.
        threads: Number of cores to use, if TensorFlow has not run yet; default: all.
        modules: Modules of your own with classes that the training in `model_dir` names; they are
            run, so name only those that you trust.
        init_from: The folder or the name of a trained model to train further.
        distil: Number of teachers, models with other seeds that are trained first, each in a
            process of its own; every second one translates back. The model learns from the text and
            their translations of it. Limits such as `minutes` hold for each training.
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
    for name in options.keys() - KINDS.keys():
        hint = did_you_mean(name, KINDS) or "; help(bahdanau_tf.fit) names them"
        if name.startswith(("dev_", "val")):  # as in Keras' own `fit`
            hint = " (did you mean dev=(source, target)?)"
        raise ValueError(f"fit: there is no option {name!r}{hint}")
    keywords: dict[str, object] = {"source": source, "target": target, "dev": dev}
    keywords |= {"model_dir": model_dir, "recipe": recipe, "tensorboard": tensorboard}
    _check_keywords(keywords | {"threads": threads, "modules": modules, "distil": distil})
    check_callbacks("fit", callbacks)
    own = {"minutes": minutes, "init_from": init_from}
    user_options = {**options, **{name: value for name, value in own.items() if value is not None}}
    for module in modules:
        imported(module, "modules", module)
    kept = ""
    with contextlib.ExitStack() as undo:
        if model_dir is None:
            kept = ", as long as the translator exists"
            temporary = tempfile.mkdtemp(prefix="bahdanau_tf-")
            undo.callback(shutil.rmtree, temporary, ignore_errors=True)
        folder = Path(temporary, "model") if model_dir is None else Path(model_dir)
        check_folder("model_dir", str(folder))
        texts = _texts(folder, source, target, dev)
        others = {"modules": modules, "tensorboard": tensorboard, "threads": threads}
        asked = _asked(texts, folder, recipe, user_options, others)
        asked.check()
        resume = f"fit(model_dir={str(folder)!r}) resumes this training"
        try:
            if distil:
                teachers.check(asked)
                asked = teachers.with_teachers(asked, int(distil))
            result = run(asked, callbacks)
        except BaseException as error:
            is_unknown = model_dir is None or isinstance(error, KeyboardInterrupt)
            if is_unknown and (is_begun(folder) or (folder / teachers.TEACHERS).is_dir()):
                undo.pop_all()
                how = "from its last checkpoint" if is_begun(folder) else "with the same arguments"
                StatusLine().note(f"{resume} {how}")
            raise
        remove_temporary = undo.pop_all().close
    if result.signal == signal.SIGTERM:
        StatusLine().note(resume)
        raise SystemExit(128 + result.signal)
    if result.stopped_by == "signal":
        StatusLine().note(f"{resume}{kept}")
    translator = Translator.load(folder)
    translator.history = History(_lists(folder), result, str(folder))
    weakref.finalize(translator.history, remove_temporary)
    return translator


def _lists(folder: Path) -> dict[str, list[float]]:
    """Those of a `History`, from the log of a training."""
    log = Log(folder / "log.jsonl").records()
    records = [x for x in log if {"train_loss", "dev_loss"} & x.keys()]  # not of an interrupt
    columns = {name: [x[key] for x in records if key in x] for name, key in _HISTORY.items()}
    return {name: column for name, column in columns.items() if column}


# The classes of the keywords of `fit` that are not options, and how messages call them.
_KEYWORDS: dict[str, tuple[Any, str]] = {
    "source": (str | os.PathLike | Iterable | None, "a file, sentences, or pairs"),
    "target": (str | os.PathLike | Iterable | None, "a file or sentences"),
    "dev": (str | os.PathLike | Iterable | None, "(source, target), a table, or pairs"),
    "model_dir": (str | os.PathLike | None, "a folder"),
    "recipe": (str | Recipe | None, "a Recipe, or the name of one of the package"),
    "tensorboard": (bool, "True or False"),
    "threads": (Integral | None, "a whole number"),
    "distil": (Integral, "a whole number, 0 for no teachers"),
    "modules": (list | tuple, "a list of names"),
}


def _check_keywords(keywords: Mapping[str, object]) -> None:
    for name, value in keywords.items():
        kind, wanted = _KEYWORDS[name]
        if not isinstance(value, kind):
            raise OptionError("fit", name, value, wanted)
    recipe, names = keywords["recipe"], recipe_names()
    if isinstance(recipe, str) and recipe not in names:
        wanted = f"one of {names}{did_you_mean(recipe, names)}"
        raise OptionError("fit", "recipe", recipe, wanted)
    if keywords["model_dir"] == "":
        raise OptionError("fit", "model_dir", "", "a folder")
    for name, least in {"threads": 1, "distil": 0}.items():
        if isinstance(value := keywords[name], Integral) and value < least:
            raise OptionError("fit", name, value, f"{least} or more")


def _asked(
    texts: Mapping[str, str],
    folder: Path,
    recipe: str | Recipe | None,
    options: Mapping[str, Any],
    others: Mapping[str, Any],
) -> Training:
    """The training of `fit`: options by keyword, those of a recipe, and texts."""
    user_options, defaults, name = dict(options), {}, None
    if isinstance(recipe, Recipe):
        unused = {*recipe.unused()}
        if "dev_source" not in texts and options.get("dev_pairs") == 0:
            unused |= {x for x in OF_DEV_TEXT if getattr(recipe, x) == getattr(Recipe(), x)}
        values = {n: v for n, v in asdict(recipe).items() if n not in unused and v is not None}
        user_options = values | user_options
    elif recipe is not None:
        with resources.as_file(RECIPES.joinpath(f"{recipe}.flags")) as file:
            of_recipe = read_options(file, (*TEXTS, "corpus"))
        name, defaults = recipe, {n: v for n, v in of_recipe.items() if n in KINDS}
    if isinstance(init_from := user_options.get("init_from"), str | os.PathLike) and init_from:
        user_options["init_from"] = absolute(init_from)
    return Training(texts, folder, user_options, name, defaults, **others)


def _texts(
    folder: Path, source: Text | Pairs | None, target: Text | None, dev: Any
) -> dict[str, str]:
    """The paths of the texts; sentences are written to files first."""
    if source is None and target is None and dev is None:
        return recall_texts(folder)
    both = dev if isinstance(dev, tuple) and len(dev) == 2 else (dev, None)
    is_one_side = isinstance(dev, str | os.PathLike) and not is_table(dev)
    is_unclear = all(isinstance(side, tuple) and len(side) == 2 for side in both)
    if is_one_side or is_unclear or not all(isinstance(x, _KEYWORDS["target"][0]) for x in both):
        wanted = "two lists, or a list of pairs" if is_unclear else _KEYWORDS["dev"][1]
        raise OptionError("fit", "dev", dev, wanted)
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
            pairs = amount(counts[0], "pair")
            raise ValueError(f"fit: {owner}: none of {pairs} has words on both sides")
        for side, sentences in lists.items():
            path = folder / "given_texts" / f"{name}.{side}"
            _write_sentences(path, sentences)
            texts[f"{name}_{side}"] = str(path)
    return texts


def _columns(owner: str, pairs: Sequence[Any]) -> dict[str, list[Any]]:
    """The sides of pairs of sentences."""
    rows = []
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
        rows.append(row)
    return {side: [row[place] for row in rows] for place, side in enumerate(SIDES)}


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
