"""The translator: strings in, translations out; saved, loaded, exported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bahdanau_tf.files import replaced_directory
from bahdanau_tf.models import Ensemble
from bahdanau_tf.models import TranslationModel
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.search import Constraint
from bahdanau_tf.serving import Limits
from bahdanau_tf.serving import export
from bahdanau_tf.serving import round_to_half
from bahdanau_tf.text import Dictionary
from bahdanau_tf.text import load_text
from bahdanau_tf.text.protocol import SavableTokenizer
from bahdanau_tf.translation import Lexicon
from bahdanau_tf.translation import Scored
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.parts import part
from bahdanau_tf.translation.saved import best_folder
from bahdanau_tf.translation.saved import identity
from bahdanau_tf.translation.saved import read_description
from bahdanau_tf.translation.saved import read_model
from bahdanau_tf.translation.saved import write_description
from bahdanau_tf.translation.saved import write_model
from bahdanau_tf.translation.sentences import align
from bahdanau_tf.translation.sentences import score
from bahdanau_tf.translation.sentences import translate

MODEL = "model.keras"
DICTIONARY = "dictionary.tsv"
LEXICON = "lexicon.npz"
ATTEMPTS = 3  # to load what is replaced meanwhile


class Translator:
    """A model with the text of its two sides: strings to strings.

    Tokenisation, search and detokenisation run in one graph, the same here
    and in the exported SavedModel.

    Args:
        model: A translation model of this package, or another
            `TranslationModel`.
        source_text: Tokenizer of the source language; for an `Ensemble` that
            reads several sources a sequence of them, one for each source.
        target_text: Tokenizer of the target language.
        decoding: How to search unless a call says otherwise.
        dictionary: What `Decoding.unknown` "replace" writes for a source word;
            the word itself where it has nothing.
        lexicon: For `Decoding.shortlist`.

    Attributes:
        graph: The `TranslationGraph` that all of it works with.

    All arguments are attributes, too, which may be set; the texts of the
    source are `source_texts`, a tuple.

    Raises:
        ValueError: The model is no `TranslationModel`; a vocabulary and the
            model's embedding differ in size, or the lexicon is another
            model's.

    Example:

    ```python
    translator = Translator.load("model/best")
    (translation,) = translator.translate(["A man sleeps."])
    print(translation.text, translation.score)
    ```
    """

    model: TranslationModel = part("model", "The translation model.")
    source_texts: tuple[SavableTokenizer, ...] = part(
        "source_texts", "The tokenizers of the source."
    )
    target_text: SavableTokenizer = part(
        "target_text", "The tokenizer of the target."
    )
    decoding: Decoding = part(
        "decoding", "How to search unless a call says otherwise."
    )
    dictionary: Dictionary = part(
        "dictionary", 'For `Decoding.unknown` "replace".'
    )
    lexicon: Lexicon | None = part(
        "lexicon", "For `Decoding.shortlist`, or None."
    )

    def __init__(
        self,
        model: TranslationModel,
        source_text: SavableTokenizer | Sequence[SavableTokenizer],
        target_text: SavableTokenizer,
        decoding: Decoding = Decoding(),
        dictionary: Dictionary | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.graph = TranslationGraph(
            model, source_text, target_text, decoding, dictionary, lexicon
        )

    @property
    def source_text(self) -> SavableTokenizer:
        """The tokenizer of the source whose tokens alignments show."""
        return self.source_texts[0]

    @classmethod
    def ensemble(
        cls, translators: Sequence[Translator], average: str = "probability"
    ) -> Translator:
        """Joins translators whose models predict the next word together.

        Args:
            translators: One or more, with the same target vocabulary; how to
                search, dictionary and lexicon are those of the first.
            average: As for `Ensemble`.

        Raises:
            ValueError: Target vocabularies differ.
        """
        first = translators[0]
        texts: list[SavableTokenizer] = []
        sources = []
        for translator in translators:
            if (
                translator.target_text.settings()
                != first.target_text.settings()
            ):
                raise ValueError(
                    "Translator.ensemble: the target vocabularies or "
                    "tokenizers differ, wanted one for all"
                )
            text = translator.source_text
            known = [one.settings() for one in texts]
            if text.settings() not in known:
                texts.append(text)
                known.append(text.settings())
            sources.append(known.index(text.settings()))
        return cls(
            Ensemble([one.model for one in translators], average, sources),
            texts,
            first.target_text,
            first.decoding,
            first.dictionary,
            first.lexicon,
        )

    def translate(
        self,
        sentences: Sequence[str],
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> list[Translation]:
        """Translates sentences.

        Args:
            sentences: The sentences, of any length and in any order.
            decoding: How to search; the translator's own if None.
            batch_size: Sentences translated at once, like lengths together.
            prefixes: For each sentence the text that its translation begins
                with, "" for none. It is read as a sentence of its own: the
                last word of a `WordTokenizer` is a whole word, that of a
                `SubwordTokenizer` may go on. Beyond `Decoding.max_length` it
                is cut. A sentence without words has no translation.
            constraints: More functions as in `bahdanau_tf.search.constraints`,
                for all sentences, behind the prefix, of ids of `target_text`;
                `history.rows` are of a batch. A graph is made for each.

        Returns:
            A `Translation` for each sentence, in order; the other n best are
            its `alternatives`.

        Raises:
            ValueError: `sentences` or `prefixes` is one string, not a sequence
                of them; they differ in number; or the target text is reversed,
                so that the end of a translation comes first.
        """
        return translate(
            self.graph,
            sentences,
            decoding or self.decoding,
            batch_size,
            prefixes,
            constraints,
        )

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = BATCH_SIZE,
    ) -> list[Scored]:
        """Scores given translations.

        Args:
            sources: The sentences.
            targets: A translation of each.
            batch_size: Pairs scored at once, like lengths together.

        Returns:
            For each pair log p(y | x), in all and token by token.

        Raises:
            ValueError: `sources` or `targets` is one string, not a sequence of
                them, or they differ in number.
        """
        return score(self.graph, sources, targets, batch_size)

    def align(
        self,
        sources: Sequence[str | bytes],
        targets: Sequence[str | bytes],
        batch_size: int = BATCH_SIZE,
    ) -> list[Translation]:
        """Aligns given translations, word by word.

        The model is given each target from left to right, as in training.

        Args:
            sources: The sentences.
            targets: A translation of each.
            batch_size: Pairs aligned at once, like lengths together.

        Returns:
            A `Translation` for each pair, in order, whose text is the target;
            score and log_prob are log p(y | x). The tokens of both sides come
            in the order of the texts. Where a side has no words there are the
            weights of its end symbol and no links.

        Raises:
            ValueError: The model has no attention; otherwise as `score`.
        """
        return align(self.graph, sources, targets, batch_size)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        max_source_length: int = Limits.max_source_length,
        max_target_length: int = Limits.max_target_length,
        n_best: int = Limits.n_best,
    ) -> Path:
        """Writes a SavedModel that translates strings.

        Its signatures are in `bahdanau_tf.serving.signatures`; they search as
        `decoding` says.

        Args:
            path: Base folder; the model goes to `path/<version>`, one more
                than the largest version there.
            max_source_length: As in `bahdanau_tf.serving.Limits`, and so are
                the others.
            max_target_length: T.
            n_best: N.

        Returns:
            The version's folder.

        Raises:
            ValueError: A limit is out of range, or the graph holds what a
                stock TensorFlow Serving does not know.
        """
        return export(
            self.graph,
            path,
            Limits(max_source_length, max_target_length, n_best),
        )

    def halve_weights(self) -> None:
        """Rounds the model's weights to numbers that float16 has, in place.

        An export then stores them as float16 and takes half the room; it
        computes in float32 as before.

        Raises:
            ValueError: A weight is beyond the largest of these, 65,504.
        """
        round_to_half(self.model)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes everything `load` needs, in place of `directory`.

        Args:
            directory: A folder; replaced as a whole, so that it is never half
                written.
        """
        with replaced_directory(directory) as aside:
            write_model(aside / MODEL, self.model)
            for number, text in enumerate(self.source_texts):
                text.save(aside / _source_folder(number))
            self.target_text.save(aside / "target")
            self.dictionary.save(aside / DICTIONARY)
            if self.lexicon is not None:
                self.lexicon.save(aside / LEXICON)
            write_description(aside, len(self.source_texts), self.decoding)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Translator:
        """Reads what `save` wrote.

        Raises:
            ValueError: The folder holds no translator, or one written by a
                newer version of this package; or a file is damaged.
            OSError: A file is missing.
        """
        folder = Path(directory)
        sources, decoding = read_description(folder)
        lexicon = folder / LEXICON
        return cls(
            read_model(folder / MODEL),
            [load_text(folder / _source_folder(n)) for n in range(sources)],
            load_text(folder / "target"),
            decoding,
            Dictionary.load(folder / DICTIONARY),
            Lexicon.load(lexicon) if lexicon.is_file() else None,
        )


def _source_folder(number: int) -> str:
    return f"source-{number + 1}" if number else "source"


def load_best(folder: str | os.PathLike[str]) -> Translator:
    """Loads the best model that training has left in a folder.

    If training replaces it meanwhile, the new one is loaded.

    Raises:
        ValueError: The folder holds no translator, or none yet.
    """
    for _ in range(ATTEMPTS):
        best = best_folder(folder)
        before = identity(best)
        try:
            translator = Translator.load(best)
        except (OSError, ValueError):
            if identity(best) == before:
                raise
        else:
            if identity(best) == before:
                return translator
    return Translator.load(best_folder(folder))
