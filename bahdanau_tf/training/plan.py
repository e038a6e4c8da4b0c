"""The parts of a training, and the preparation of its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import keras

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus
from bahdanau_tf.models.named import make_model
from bahdanau_tf.models.scoring import with_added_rows
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import WordTokenizer, load_text
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.words import with_added_words
from bahdanau_tf.training import folder
from bahdanau_tf.training.texts import (
    TrainingFiles,
    check_held_out,
    check_words,
    divided,
    held_out,
    learn,
    with_languages,
)
from bahdanau_tf.translator import Translator, load_best

START = "start"  # in a training folder: the model with which it started


@dataclass(frozen=True)
class Start:
    """The trained model with which a training starts.

    Attributes:
        init_from: The folder of an earlier training, or of a saved translator.
        added_words: Number of words of the new text that are added to each side: the most frequent
            ones that are unknown.
    """

    init_from: str
    added_words: int = 0

    @cached_property
    def translator(self) -> Translator:
        """The translator of the folder; a ValueError if there is none that `train` can train."""
        try:
            translator = load_best(self.init_from)
        except ValueError as error:
            message = str(error).removeprefix("Translator.load: ")
            raise ValueError(f"--init_from: {message}") from error
        is_single = isinstance(translator.model, keras.Model)
        if not is_single or len(translator.source_texts) != 1:
            raise ValueError(
                f"--init_from: {self.init_from} holds an ensemble, wanted a single model"
            )
        return translator

    @property
    def options(self) -> dict[str, object]:
        """Its sizes and tokenizer, as options on which others depend."""
        texts = self.translator.source_text, self.translator.target_text
        is_word = isinstance(texts[0], WordTokenizer)
        model: keras.Model = self.translator.model
        units = model.get_config().get("units")
        return {
            "tokenizer": "word" if is_word else "bpe",
            "source_vocabulary_size": texts[0].vocabulary_size,
            "target_vocabulary_size": texts[1].vocabulary_size,
            **({"units": units} if isinstance(units, int) else {}),
        }

    def prepared(self, files: Sequence[str]) -> Translator:
        """The translator, with `added_words` of the training text, source and target.

        It has no lexicon, which describes how another model translates words. It is a ValueError
        if the tokenizers are sub-words, or the model takes no more.
        """
        old = self.translator
        texts = old.source_text, old.target_text
        if old.lexicon is not None:
            StatusLine().note(
                f"{self.init_from}'s lexicon is not used; `lexicon` makes one for the new model"
            )
        if not self.added_words:
            return Translator(old.model, *texts, old.decoding, old.dictionary)
        grown = []
        for text, path in zip(texts, files, strict=True):
            if not isinstance(text, WordTokenizer):
                raise ValueError(
                    f"--added_words: {self.init_from} has sub-words, which can "
                    "write any word; leave it out"
                )
            grown.append(with_added_words(text, [path], self.added_words))
        source, target = grown
        model = with_added_rows(
            old.model,
            source.vocabulary_size - old.source_text.vocabulary_size,
            target.vocabulary_size - old.target_text.vocabulary_size,
            (source.unk_id, target.unk_id),
        )
        return Translator(model, source, target, old.decoding, old.dictionary)


def check_start(settings: Path, start: Start | None) -> None:
    """Raises a ValueError unless a training to resume started with the same model, or with none."""
    before = folder.read_settings(settings)
    for name in ("init_from", "added_words"):
        old, new = before.get(name), getattr(start, name, None)
        if name == "init_from" and old and new:  # however the path is written
            is_same = os.path.realpath(str(old)) == os.path.realpath(new)
        else:
            is_same = old == new
        if not is_same:
            raise folder.Change(name, old, new).refusal(settings.parent)


def is_begun(model_dir: Path) -> bool:
    """Whether a folder has a model or a checkpoint; else it is new.

    A run that ended before its first checkpoint may have left settings and tokenizers, which are
    written again.
    """
    models = ("best/*", "checkpoints/*.index")
    return any(any(model_dir.glob(path)) for path in models)


@dataclass(frozen=True)
class TrainingPlan:
    """The parts of a training.

    Attributes:
        text: The options of the tokenizers.
        model: The options of the model.
        recipe: The options of training.
        files: The training and dev sets.
        model_dir: The folder of the training.
        dev_pairs: Number of training pairs to hold out as dev set, if `files` has none.
        start: The trained model to start with, in place of `text` and `model`; a copy is in the
            folder `start` of `model_dir`.
    """

    text: TextOptions
    model: ModelOptions
    recipe: Recipe
    files: TrainingFiles
    model_dir: Path
    dev_pairs: int = 0
    start: Start | None = None

    @property
    def texts(self) -> TrainingFiles:
        """The training and dev sets after `prepare`, for `train`."""
        return divided(self.model_dir) if self._held_out else self.files

    @property
    def _held_out(self) -> int:
        return self.dev_pairs if self.files.dev_source is None else 0

    @property
    def _settings(self) -> Path:
        return self.model_dir / "text.json"

    def prepare(self) -> Translator:
        """Makes a translator to train, with the tokenizers of `model_dir`.

        For a new folder the tokenizers are learned, or those of `start`. They are written after the
        files were checked and the model was made. It is a ValueError if that fails, `model_dir`
        has a model with other settings, or another process trains in it.
        """
        if (self.model_dir / "translator.json").exists():
            raise ValueError(
                f"TrainingPlan: model_dir is {str(self.model_dir)!r}, which "
                "holds a translator, wanted a folder to train in"
            )
        keras.utils.set_random_seed(self.recipe.seed)
        if is_begun(self.model_dir):
            check_start(self._settings, self.start)
            if self.start is None:
                text = with_languages(self.text, self.files, folder.read_settings(self._settings))
                folder.check_settings(self._settings, asdict(text))
            check_held_out(self.model_dir, self.files, self._held_out)
            return self._load()
        if self.files.dev_source is not None and self.files.dev_target:
            ParallelCorpus(self.files.dev_source, self.files.dev_target)  # checks the files
        corpus = ParallelCorpus(self.files.train_source, self.files.train_target)
        if self.start is None:
            return self._learn(corpus)
        return self._copy(self.start, corpus)

    def load(self) -> Translator:
        """Makes the translator of `prepare` again, even in other processes.

        In the scope of a `tf.distribute` strategy its model is trained by it. If `model_dir` was
        not prepared, it raises a ValueError.
        """
        if not self._settings.is_file():
            raise ValueError(
                f"model_dir: {self.model_dir} lacks the files that the chief has "
                "written, wanted a folder that all machines share"
            )
        keras.utils.set_random_seed(self.recipe.seed)
        return self._load()

    def _load(self) -> Translator:
        if self.start is not None:
            return Translator.load(self.model_dir / START)
        source, target = (load_text(self.model_dir / side) for side in SIDES)
        model = make_model(self.model, source.vocabulary_size, target.vocabulary_size)
        return Translator(model, source, target)

    def _learn(self, corpus: ParallelCorpus) -> Translator:
        """Learns the tokenizers, makes a model for them and fills the folder."""
        text = with_languages(self.text, self.files, {})
        check_words(text, self.files)
        with self._fill_folder(corpus) as pairs:
            StatusLine().note(f"learning the tokenizers from {amount(pairs, 'sentence pair')}")
            texts = learn(text, self.texts.train_source, self.texts.train_target)
            model = make_model(self.model, *(text.vocabulary_size for text in texts))
            for text_of_side, side in zip(texts, SIDES, strict=True):
                text_of_side.save(self.model_dir / side)
            folder.write_settings(self._settings, asdict(text))
        self._report_sizes(texts)
        return Translator(model, *(load_text(self.model_dir / side) for side in SIDES))

    def _copy(self, start: Start, corpus: ParallelCorpus) -> Translator:
        """Copies a trained translator into the folder, with added words."""
        source = start.translator.source_text
        if self.recipe.sample_subwords and isinstance(source, WordTokenizer):
            raise ValueError(
                f"--sample_subwords: {start.init_from} has words, not sub-words; leave it out"
            )
        with self._fill_folder(corpus):
            translator = start.prepared((self.texts.train_source, self.texts.train_target))
            translator.save(self.model_dir / START)
            folder.write_settings(self._settings, asdict(start))
        self._report_sizes((translator.source_text, translator.target_text))
        return self._load()

    @contextmanager
    def _fill_folder(self, corpus: ParallelCorpus) -> Iterator[int]:
        """Locks the folder and holds pairs out; yields the number of the others."""
        pairs = held_out(self.model_dir, corpus, self._held_out, self.recipe.max_length)
        with folder.locked(self.model_dir), pairs as count:
            yield count

    def _report_sizes(self, texts: tuple[Tokenizer, Tokenizer]) -> None:
        """Reports the number of ids, and the covered share of words."""
        for side, text in zip(SIDES, texts, strict=True):
            line = f"{side} vocabulary: {amount(text.vocabulary_size, 'id')}"
            if isinstance(text, WordTokenizer):
                path = getattr(self.texts, f"train_{side}")
                line += f", {text.coverage([path])}"
            elif not self.start and text.vocabulary_size < (wanted := self.text.size_of(side)):
                line += f", not {wanted:,}: the text has no more sub-words"
            StatusLine().note(line)
