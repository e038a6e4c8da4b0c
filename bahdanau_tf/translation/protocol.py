"""What translates strings, with TensorFlow or without it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, overload

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation.batches import Sentences, Work
from bahdanau_tf.translation.doubts import Habits
from bahdanau_tf.translation.markup import translate_marked
from bahdanau_tf.translation.result import Translation, Translations
from bahdanau_tf.translation.sentence_splitting import translate_lines
from bahdanau_tf.translation.terms import check_terms, with_terms


class Text(Protocol):
    """What a tokenizer has in TensorFlow and without it."""

    are_words: bool  # whether its tokens are words, in the order of their frequency
    reverse: bool
    unk_id: int
    vocabulary_size: int

    @property
    def characters(self) -> frozenset[str]: ...

    def ids(self, lines: Sequence[str]) -> list[list[int]]: ...


class StringTranslator(ABC):
    """The base of `bahdanau_tf.Translator` and of `bahdanau_tf.runtime.Translator`."""

    decoding: Decoding
    target_text: Any  # a `Text`
    habits: Habits = Habits()
    card: str = ""

    @property
    @abstractmethod
    def model_name(self) -> str:
        """The class of the model."""

    @property
    @abstractmethod
    def has_alignment(self) -> bool:
        """Whether translations have an alignment."""

    @property
    @abstractmethod
    def source_texts(self) -> tuple[Any, ...]:
        """The tokenizers of the source, each a `Text`."""

    @abstractmethod
    def _work(self, batch_size: int) -> Work:
        """A function that translates, so many sentences at once."""

    @overload
    def translate(
        self,
        sentences: str | bytes,
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: str | None = None,
        split_sentences: bool = False,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        sentences: Sequence[str | bytes],
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: Sequence[str] | None = None,
        split_sentences: bool = False,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Translations: ...

    def translate(
        self,
        sentences: str | bytes | Sequence[str | bytes],
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: str | Sequence[str] | None = None,
        split_sentences: bool = False,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Translation | Translations:
        """Translates sentences.

        Args:
            sentences: The sentences, in any order; or one. Bytes that are not UTF-8 are read as
                U+FFFD. Of a long one only the start is read, see `max_source_length`.
            decoding: How to search; the translator's own if None.
            batch_size: Number of sentences of similar length that are translated at once.
            prefixes: For each sentence, the text that its translation begins with.
            split_sentences: Whether each string is translated sentence by sentence.
            markup: Whether tags and placeholders are put back by attention.
            terms: What terms of the source are in the translation.
            **options: Fields of `Decoding`, which override those of `decoding`; other fields are
                adjusted where they do not fit them.

        Returns:
            A `Translation` for each sentence, in order; for one string, a single `Translation`.

        Raises:
            ValueError: `sentences` or `prefixes` is not a sequence of strings, their numbers
                differ, or an option cannot be used here; or the model computes NaN.
        """
        work = self._work(batch_size)
        return self._translated(
            work, sentences, decoding, prefixes, split_sentences, markup, terms, options
        )

    def _translated(
        self,
        work: Work,
        sentences: str | bytes | Sentences,
        decoding: Decoding | None,
        prefixes: str | Sequence[str] | None,
        split_sentences: bool,
        markup: bool,
        terms: Mapping[str, str] | None,
        options: Mapping[str, Any],
    ) -> Translation | Translations:
        """The translations that `work` computes, judged by the habits."""
        if is_one := isinstance(sentences, str | bytes):
            sentences = [sentences]
            prefixes = [prefixes] if isinstance(prefixes, str) else prefixes
        decoding = Decoding.with_options(self.decoding if decoding is None else decoding, options)
        search = work
        if terms:
            check_terms(terms, decoding, self.target_text.reverse)
            search = with_terms(work, terms)

        def run(sentences: Sentences, prefixes: Sentences | None) -> Translations:
            rows, usual = search(decoding, sentences, prefixes), self.source_texts[0].characters
            return Translations(self.habits.judged(row, usual) for row in rows)

        def run_lines(sentences: Sentences, prefixes: Sentences | None) -> Iterable[Translation]:
            if split_sentences:
                return translate_lines(run, sentences, prefixes)
            return run(sentences, prefixes)

        for name, value in {"markup": markup, "terms": terms}.items():
            if value and not self.has_alignment:
                raise Refusal(
                    "Translator.translate",
                    f"{name} is set and {self.model_name} has no attention, wanted a model "
                    "with attention",
                )
        translate = partial(translate_marked, run_lines) if markup else run_lines
        translations = Translations(translate(sentences, prefixes))
        return translations[0] if is_one else translations
