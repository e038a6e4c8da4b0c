"""Trains a model on parallel text files, plain or .gz, one sentence a line.

The folder --model_dir gets the tokenizers, checkpoints, a log and, in "best",
the model with the best BLEU on the dev set. The same command run again goes on
from the last checkpoint.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import fields
from pathlib import Path
from typing import Any

import keras
from absl import flags as absl_flags

from bahdanau_tf import models
from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.commands.languages import with_languages
from bahdanau_tf.corpora.parallel import ParallelCorpus
from bahdanau_tf.text import SubwordTokenizer
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text import load_text
from bahdanau_tf.text.guess import UNKNOWN
from bahdanau_tf.training import Recipe
from bahdanau_tf.training import TrainingFiles
from bahdanau_tf.training import remember
from bahdanau_tf.training import train
from bahdanau_tf.translator import Translator

MODELS = {
    "rnnsearch": models.RNNSearch,
    "rnnencdec": models.RNNEncDec,
    "seq2seq-lstm": models.Seq2SeqLSTM,
}
# What each model does not have.
WITHOUT = {
    "rnnsearch": ("layers",),
    "rnnencdec": ("layers", "attention_units"),
    "seq2seq-lstm": (
        "attention_units",
        "maxout_units",
        "step_order",
        "factored_output",
        "tie_embeddings",
        "annotation_dropout",
    ),
}
DATA_VARIABLE = "BAHDANAU_TF_DATA"


@dataclass(frozen=True)
class TextFlags:
    """How text becomes ids.

    Attributes:
        tokenizer: "word", or the sub-words "bpe" or "unigram".
        joint: Whether sub-words are learned from both languages together.
        source_vocabulary_size: Ids of the source side, special symbols
            included.
        target_vocabulary_size: Ids of the target side; with --joint those of
            the source side count.
        source_language: Code of the source language, such as en; guessed from
            the training text if not given.
        target_language: Code of the target language, such as fr; guessed, too.
        lowercase: Whether words lose their capitals.
        reverse_source: Whether the source is read from its last word to its
            first, as by Sutskever et al.
        true_case: Whether a source line that is all in capitals is read as a
            sentence in ordinary writing; no other line is touched.
    """

    tokenizer: str = "word"
    joint: bool = False
    source_vocabulary_size: int = 30_001
    target_vocabulary_size: int = 30_001
    source_language: str | None = None
    target_language: str | None = None
    lowercase: bool = False
    reverse_source: bool = False
    true_case: bool = True

    def __post_init__(self) -> None:
        if self.tokenizer not in ("word", "bpe", "unigram"):
            raise ValueError(
                f"--tokenizer is {self.tokenizer!r}, wanted word, bpe or "
                "unigram"
            )


@dataclass(frozen=True)
class ModelFlags:
    """What model to train.

    Attributes:
        model: "rnnsearch", "rnnencdec" or "seq2seq-lstm".
        units: n, hidden units.
        embedding_dim: m, width of the embeddings.
        attention_units: n', size of the alignment model (rnnsearch).
        maxout_units: l, width of the readout.
        layers: LSTM layers of each side (seq2seq-lstm).
        step_order: "original", "appendix" or "main-text".
        factored_output: Whether the output matrix is factored, as coded.
        tie_embeddings: Whether it shares the target embeddings.
        embedding_dropout: Share of the embeddings dropped.
        annotation_dropout: Share of the annotations dropped.
        state_dropout: Share of the recurrent states dropped.
        readout_dropout: Share of the readout dropped.
        initialization: "paper", or "glorot" for kernels that start larger and
            learn faster (not for seq2seq-lstm).
    """

    model: str = "rnnsearch"
    units: int = 1000
    embedding_dim: int = 620
    attention_units: int = 1000
    maxout_units: int = 500
    layers: int = 4
    step_order: str = "original"
    factored_output: bool = True
    tie_embeddings: bool = False
    embedding_dropout: float = 0.0
    annotation_dropout: float = 0.0
    state_dropout: float = 0.0
    readout_dropout: float = 0.0
    initialization: str = "paper"


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    for name, text in (
        ("train_source", "training text, source side"),
        ("train_target", "training text, target side"),
        ("dev_source", "dev text, source side, to choose the best model"),
        ("dev_target", "dev text, target side"),
        ("model_dir", "folder of the model; made if it is not there"),
        (
            "data_dir",
            "folder in which text files are looked for; the environment "
            f"variable {DATA_VARIABLE} says the same",
        ),
        (
            "corpus",
            "folder of the text files where --data_dir holds several corpora; "
            "passed over if it is not there",
        ),
        (
            "recipe",
            "name of a file of flags in the package, such as "
            "multi30k-en-fr; flags after it change it",
        ),
    ):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    absl_flags.DEFINE_bool(
        "tensorboard",
        False,
        "whether the folder tensorboard in --model_dir gets curves and "
        "alignments for TensorBoard",
        flag_values=flags,
    )
    define_fields(flags, TextFlags)
    define_fields(flags, ModelFlags)
    define_fields(flags, Recipe)


def run(flags: absl_flags.FlagValues) -> int:
    """Trains."""
    for name in ("train_source", "train_target", "model_dir"):
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
    if (flags.dev_source is None) != (flags.dev_target is None):
        raise ValueError("--dev_source and --dev_target go together")
    files = TrainingFiles(
        **{
            field.name: _located(getattr(flags, field.name), flags)
            for field in fields(TrainingFiles)
        }
    )
    recipe = from_flags(flags, Recipe)
    translator = prepared(
        from_flags(flags, TextFlags),
        from_flags(flags, ModelFlags),
        files,
        recipe,
        Path(flags.model_dir),
    )
    result = train(
        translator, files, recipe, flags.model_dir, flags.tensorboard
    )
    print(
        f"{result.steps} updates, stopped by {result.stopped_by}; best dev "
        f"BLEU {result.best_bleu:.2f} (greedy); {result.seconds / 60:.1f} "
        f"minutes, {result.words_per_second:.0f} target words a second"
    )
    return 130 if result.stopped_by == "signal" else 0


def prepared(
    text: TextFlags,
    model: ModelFlags,
    files: TrainingFiles,
    recipe: Recipe,
    model_dir: Path,
) -> Translator:
    """A translator ready to train, its tokenizers those of `model_dir`.

    The first time the tokenizers are learned and kept there.

    Raises:
        ValueError: `model_dir` has tokenizers made with other settings.
    """
    keras.utils.set_random_seed(recipe.seed)
    model_dir.mkdir(parents=True, exist_ok=True)
    text = with_languages(text, files, model_dir)
    remember(model_dir / "text.json", asdict(text))
    folders = (model_dir / "source", model_dir / "target")
    is_new = not all(folder.is_dir() for folder in folders)
    if is_new:
        # What is wrong with the files is said before a vocabulary is learned.
        ParallelCorpus(files.train_source, files.train_target)
        for side, folder in zip(_make_texts(text, files), folders, strict=True):
            side.save(folder)
    source, target = (load_text(folder) for folder in folders)
    sizes = (source.vocabulary_size, target.vocabulary_size)
    translator = Translator(_make_model(model, *sizes), source, target)
    if is_new and text.tokenizer == "word":
        _report_coverage((source, target), files)
    return translator


def _located(path: str | None, flags: absl_flags.FlagValues) -> Any:
    if path is None:
        return None
    folder = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, ""))
    if flags.corpus and (folder / flags.corpus).is_dir():
        folder /= flags.corpus
    return str(folder / path)  # an absolute path stays as it is


def _make_texts(text: TextFlags, files: TrainingFiles) -> tuple[Any, Any]:
    """Learns the tokenizers of both sides from the training files."""
    sides = (files.train_source, files.train_target)
    if text.tokenizer == "word":
        source = WordTokenizer.train(
            [sides[0]],
            text.source_vocabulary_size,
            language=text.source_language or UNKNOWN,
            lowercase=text.lowercase,
            reverse=text.reverse_source,
            true_case=text.true_case,
        )
        target = WordTokenizer.train(
            [sides[1]],
            text.target_vocabulary_size,
            language=text.target_language or UNKNOWN,
            lowercase=text.lowercase,
        )
        return source, target
    learn = functools.partial(
        SubwordTokenizer.train,
        model_type=text.tokenizer,
        lowercase=text.lowercase,
    )
    if text.joint:
        target = learn(sides, text.source_vocabulary_size)
    else:
        target = learn([sides[1]], text.target_vocabulary_size)
    source = (
        target if text.joint else learn([sides[0]], text.source_vocabulary_size)
    )
    source = SubwordTokenizer(
        source.model_proto, text.reverse_source, text.true_case
    )
    return source, target


def _report_coverage(texts: tuple[Any, Any], files: TrainingFiles) -> None:
    """Says how much of the training text has ids of its own."""
    for side, text, path in zip(
        ("source", "target"),
        texts,
        (files.train_source, files.train_target),
        strict=True,
    ):
        print(
            f"{side}: {text.vocabulary_size} ids, {text.coverage([path])}",
            file=sys.stderr,
        )


def _make_model(options: ModelFlags, source_size: int, target_size: int) -> Any:
    arguments = asdict(options)
    name = arguments.pop("model")
    if name not in MODELS:
        raise ValueError(f"--model is {name!r}, wanted one of {list(MODELS)}")
    for argument in WITHOUT[name]:
        del arguments[argument]
    initialization = arguments.pop("initialization")
    if initialization not in ("paper", "glorot"):
        raise ValueError(
            f"--initialization is {initialization!r}, wanted paper or glorot"
        )
    if initialization == "glorot" and name != "seq2seq-lstm":
        deviation = options.embedding_dim**-0.5
        arguments["kernel_initializer"] = "glorot_uniform"
        arguments["embeddings_initializer"] = keras.initializers.RandomNormal(
            stddev=deviation
        )
    return MODELS[name](source_size, target_size, **arguments)
