"""The translator: from strings to translations; can be saved and exported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from bahdanau_tf.models import Ensemble, TranslationModel
from bahdanau_tf.models.encoder_decoder import ForcedRows
from bahdanau_tf.models.stored import round_to_half
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.options.training import PRETRAINED, pretrained_names
from bahdanau_tf.runtime.page import write_module, write_page
from bahdanau_tf.serving import Limits, export
from bahdanau_tf.text import Dictionary, Tokenizer
from bahdanau_tf.translation import Constraint, Lexicon, saved
from bahdanau_tf.translation.batches import Sentences, Work
from bahdanau_tf.translation.graph import TranslationGraph, joined_texts, part
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.protocol import StringTranslator
from bahdanau_tf.translation.result import Scored, Translation, Translations
from bahdanau_tf.translation.running import align, score, translate


class Translator(StringTranslator):
    """A model with the tokenizers of both sides: from strings to strings.

    Tokenization, search and detokenization run in one graph, as in the exported SavedModel.

    Args:
        model: A translation model of this package, or another `TranslationModel`.
        source_text: Tokenizer of the source language; for an `Ensemble` that reads several sources,
            a sequence with one for each source.
        target_text: Tokenizer of the target language.
        decoding: How to search, unless a call specifies it.
        dictionary: Translations of source words for `Decoding.unknown` "replace"; other words are
            copied.
        lexicon: For `Decoding.shortlist`.

    Attributes:
        graph: The `TranslationGraph` in use.
        history: For a translator that `fit` returned, what it did; for others None. `log.jsonl` in
            a training folder has the same.
        habits: What the model is used to, for `Translation.confidence` and `Translation.doubts`; a
            training measures it on the dev text.
        card: What the translator was trained on and how well it translates, as Markdown, which a
            training writes; it is saved with the translator. "" if unknown.

    All arguments are also attributes and may be set, except that the source tokenizers are the
    tuple `source_texts`.

    Raises:
        ValueError: The model is not a `TranslationModel`, a vocabulary and the model's embedding
            differ in size, or the lexicon does not fit the model.
        RuntimeError: The process was forked from one that had a translator; it would wait for
            TensorFlow's threads without end. Use `multiprocessing.get_context("spawn")`.

    Example:

    ```python
    translator = Translator.load("model/best")
    (translation,) = translator.translate(["A man sleeps."])
    print(translation.text, translation.score)
    ```
    """

    model: TranslationModel = part("model", "The translation model.")
    source_texts: tuple[Tokenizer, ...] = part("source_texts", "The tokenizers of the source.")
    target_text: Tokenizer = part("target_text", "The tokenizer of the target.")
    decoding: Decoding = part("decoding", "How to search, if a call does not specify it.")
    dictionary: Dictionary = part("dictionary", 'For `Decoding.unknown` "replace".')
    lexicon: Lexicon | None = part("lexicon", "For `Decoding.shortlist`, or None.")
    history: Any = None

    def __init__(
        self,
        model: TranslationModel,
        source_text: Tokenizer | Sequence[Tokenizer],
        target_text: Tokenizer,
        decoding: Decoding = Decoding(),
        dictionary: Dictionary | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.graph = TranslationGraph(
            model, source_text, target_text, decoding, dictionary, lexicon
        )

    def __repr__(self) -> str:
        model = self.model_name
        if isinstance(self.model, keras.Model):
            model += f" of {self.model.count_params():,} weights"
        *sources, target = (
            f"{type(text).__name__} of {text.vocabulary_size:,} ids"
            for text in (*self.source_texts, self.target_text)
        )
        return f"<Translator: {model}; source {' and '.join(sources)}; target {target}>"

    def __reduce__(self) -> tuple[Callable[..., Translator], tuple[object, ...]]:
        """A translator is pickled and copied the way `save` writes it."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.save(folder)
            files = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file()
            }
        return _unpacked, (type(self), files)

    @property
    def model_name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    @property
    def has_alignment(self) -> bool:
        """Whether translations have an alignment."""
        return self.model.has_alignment

    @property
    def source_text(self) -> Tokenizer:
        """The tokenizer of source 0, which alignments refer to."""
        return self.source_texts[0]

    @classmethod
    def ensemble(
        cls, translators: Sequence[Translator], average: str = "probability"
    ) -> Translator:
        """Joins translators into one whose model is an `Ensemble`.

        Args:
            translators: One or more, with the same target vocabulary; decoding, dictionary and
                lexicon are those of the first.
            average: As in `Ensemble`.

        Raises:
            ValueError: There are no translators, or their target vocabularies differ.
        """
        texts, sources = joined_texts([member.graph for member in translators])
        first = translators[0]
        joined = cls(
            Ensemble([member.model for member in translators], average, sources),
            texts,
            first.target_text,
            first.decoding,
            first.dictionary,
            first.lexicon,
        )
        joined.habits = Habits.joined([member.habits for member in translators])
        return joined

    def _work(
        self, batch_size: int, constraints: Sequence[Constraint], attention: ForcedRows | None
    ) -> Work:
        def work(
            decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
        ) -> Translations:
            options = decoding, batch_size, prefixes, constraints, attention
            return translate(self.graph, sentences, *options)

        return work

    def score(
        self,
        sources: Sequence[str | bytes],
        targets: Sequence[str | bytes],
        batch_size: int = BATCH_SIZE,
    ) -> list[Scored]:
        """Scores a given translation of each sentence: log p(y | x), in total and for each token.

        `batch_size` is the number of pairs of similar length that are scored at once.

        Raises:
            ValueError: `sources` or `targets` is one string, not a sequence of strings, or their
                numbers differ.
        """
        return score(self.graph, sources, targets, batch_size)

    def align(
        self,
        sources: Sequence[str | bytes],
        targets: Sequence[str | bytes],
        batch_size: int = BATCH_SIZE,
    ) -> Translations:
        """Aligns a given translation of each sentence, word by word.

        Each target word is passed to the model as the next previous word, as in training.
        `batch_size` is the number of pairs of similar length that are aligned at once.

        Returns:
            A `Translation` for each pair, in order. Its text is the target; its score and log_prob
            are log p(y | x). The tokens of both sides are in the order of the texts. If a side has
            no words, there are only the weights of its end symbol, and no links.

        Raises:
            ValueError: The model has no attention; otherwise as in `score`.
        """
        return align(self.graph, sources, targets, batch_size)

    def _given(self, sources: Sequence[str], targets: Sequence[str]) -> Iterable[Translation]:
        """As the base class, but aligned if the model has attention."""
        return (self.align if self.has_alignment else super()._given)(sources, targets)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        max_source_length: int = Limits.max_source_length,
        max_target_length: int = Limits.max_target_length,
        n_best: int = Limits.n_best,
    ) -> Path:
        """Writes a SavedModel that translates strings.

        Its signatures are described in `bahdanau_tf.serving.signatures`; they search with
        `decoding`.

        Args:
            path: Base folder; the model is written to `path/<version>`, where the version is one
                more than the largest one there.
            max_source_length: S, see `bahdanau_tf.serving.Limits`.
            max_target_length: T.
            n_best: N.

        Returns:
            The version's folder.

        Raises:
            ValueError: A limit is out of range, or the graph has ops that a stock TensorFlow
                Serving lacks.
            OSError: The folder cannot be written to.
        """
        limits = Limits(max_source_length, max_target_length, n_best)
        return export(self.graph, path, limits, self.habits)

    def page(self, path: str | os.PathLike[str], *, module: bool = False) -> Path:
        """Writes one HTML page that translates in a browser, without a network.

        It searches with `decoding` or greedily, and shows alignments and `card`.

        Args:
            path: The file.
            module: Whether to write a folder instead, with a JavaScript module for a page of one's
                own.

        Returns:
            The file or folder.

        Raises:
            ValueError: The model, a tokenizer or `decoding` has something that a page does not
                support.
            OSError: The file cannot be written.
        """
        write = write_module if module else write_page
        write(self.graph, path, self.card, self.habits)
        return Path(path)

    def halve_weights(self) -> None:
        """Rounds the model's weights to float16 precision, in place.

        An export then stores them as float16 and is half the size; it still computes in float32.

        Raises:
            ValueError: A weight is beyond the largest float16, 65,504.
        """
        round_to_half(self.model)

    def save(self, directory: str | os.PathLike[str], *, int8: bool = False) -> None:
        """Writes everything that `load` needs.

        Args:
            directory: A new or empty folder, or one that `save` wrote: it is replaced as a whole,
                so that it is never incomplete.
            int8: Whether matrices are rounded to a byte for each weight, with a scale for each row.
                The file is a quarter of the size, and the translator loaded from it may choose
                other words where two are nearly equally probable. This model is not changed.

        Raises:
            ValueError: The folder holds something else, such as a training or its best model.
            OSError: The folder cannot be written to.
        """
        saved.check_not_best(directory)
        parts = self.graph, self.habits, self.card, self.memory
        saved.write_translator(directory, *parts, int8=int8)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Translator:
        """Reads what `save` wrote; load only what you trust.

        Your own classes are found if their modules have been imported. If a training replaces the
        folder at the same time, the new one is read.

        Args:
            directory: The folder; that of a training, whose best model is in its folder `best`; or
                the name of a pretrained translator.

        Raises:
            ValueError: The folder holds no translator, or none yet, or that of a newer version of
                this package, or a file is missing or damaged.
            OSError: A file cannot be read.
        """
        arguments, habits, card, memory = saved.read_translator(directory)
        translator = cls(*arguments)
        translator.habits, translator.card, translator.memory = habits, card, memory
        return translator

    @classmethod
    def from_preset(cls, name: str) -> Translator:
        """A trained translator that comes with the package; `card` describes it.

        `fit(init_from=name)` trains it further, and commands take its name as `--model_dir`.

        Args:
            name: "tatoeba-en-fr" or "tatoeba-en-ja", for short English sentences in French or
                Japanese.

        Raises:
            ValueError: There is no such translator.

        Example:

        ```python
        Translator.from_preset("tatoeba-en-fr").translate("The cat sleeps.")
        ```
        """
        if name not in (names := pretrained_names()):
            raise ValueError(
                f"Translator.from_preset: name is {name!r}, wanted one of {names}; "
                "Translator.load reads a folder"
            )
        return cls.load(Path(str(PRETRAINED), name))


def _unpacked(translator_class: type[Translator], files: Mapping[str, bytes]) -> Translator:
    """Loads a translator from the contents of its files, for pickle and copy."""
    with tempfile.TemporaryDirectory() as folder:
        for name, contents in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(contents)
        return translator_class.load(folder)
