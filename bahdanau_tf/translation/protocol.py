"""What translates strings, with TensorFlow or without it, and the lengths that models count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.system.ranges import OptionError, Refusal
from bahdanau_tf.translation.batches import Sentences, Work
from bahdanau_tf.translation.capitals import names_alone, with_readings
from bahdanau_tf.translation.consensus import check_consensus, with_consensus
from bahdanau_tf.translation.doubts import is_wordless
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.markup import translate_marked
from bahdanau_tf.translation.memory import TranslationMemory, given, in_use, with_known
from bahdanau_tf.translation.result import Translation, Translations
from bahdanau_tf.translation.sentence_splitting import translate_lines
from bahdanau_tf.translation.terms import check_terms, with_terms

if TYPE_CHECKING:  # since both need TensorFlow
    from bahdanau_tf.models.encoder_decoder import ForcedRows
    from bahdanau_tf.search import Constraint


class Text(Protocol):
    """What a tokenizer has in TensorFlow and without it."""

    are_words: bool  # whether its tokens are words, in the order of their frequency
    kind: str  # "word", "bpe", "unigram", "char" or "space"
    reverse: bool
    unk_id: int
    vocabulary_size: int

    @property
    def characters(self) -> frozenset[str]: ...

    def ids(self, lines: Sequence[str]) -> list[list[int]]: ...


T = TypeVar("T", bound=Text)
WORDS = "words between spaces"  # a unit
UNITS = {"word": "words", "char": "characters", "space": "symbols"}  # of the kinds of tokenizers


def token_lengths(text: Text, lines: Sequence[str]) -> list[int]:
    """Tokens of each line, the end symbol not counted, as training counts."""
    return [len(ids) - 1 for ids in text.ids(lines)]


def source_lengths(
    texts: Sequence[Text], sources: Sequence[str], by_words: bool = False
) -> tuple[list[int], str]:
    """The length of each source, and its unit in words.

    Lengths are in tokens of the first tokenizer that has words, so that they are the same for all
    systems; else in sub-words, characters or symbols of the first tokenizer, by which the training
    of its model counted; without a tokenizer, or `by_words`, as some trainings count, in words
    between spaces.
    """
    text = None if by_words else counting_text(texts)
    if text is None:
        return [len(line.split()) for line in sources], WORDS
    return token_lengths(text, sources), "tokens" if text.are_words else unit_of(text)


def unit_of(text: Text) -> str:
    """What the tokens of a tokenizer are."""
    return UNITS.get(text.kind, "sub-words")


def counting_text(texts: Sequence[T]) -> T | None:
    """The first tokenizer that has words, else the first one, if any."""
    return next((text for text in texts if text.are_words), texts[0] if texts else None)


class StringTranslator(ABC):
    """The base of `bahdanau_tf.Translator` and of `bahdanau_tf.runtime.Translator`."""

    decoding: Decoding
    target_text: Any  # a `Text`
    habits: Habits = Habits()
    card: str = ""
    _memory: TranslationMemory

    @property
    def memory(self) -> TranslationMemory:
        """The translations of lines that are not searched.

        They are not used with markup, terms, attention or sampling, nor for more than one of the
        n best. Another dict may be assigned.
        """
        memory: TranslationMemory = vars(self).setdefault("_memory", TranslationMemory())
        return memory

    @memory.setter
    def memory(self, lines: Mapping[str, str]) -> None:
        self._memory = TranslationMemory.of(lines)

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
    def _work(
        self, batch_size: int, constraints: Sequence[Constraint], attention: ForcedRows | None
    ) -> Work:
        """A function that translates, so many sentences at once."""

    @overload
    def translate(
        self,
        sentences: str | bytes,
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: str | None = None,
        constraints: Sequence[Constraint] = (),
        split_sentences: bool | None = None,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        mbr: str | None = None,
        attention: ForcedRows | None = None,
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
        constraints: Sequence[Constraint] = (),
        split_sentences: bool | None = None,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        mbr: str | None = None,
        **options: Any,
    ) -> Translations: ...

    def translate(
        self,
        sentences: str | bytes | Sequence[str | bytes],
        decoding: Decoding | None = None,
        batch_size: int = BATCH_SIZE,
        *,
        prefixes: str | Sequence[str] | None = None,
        constraints: Sequence[Constraint] = (),
        split_sentences: bool | None = None,
        markup: bool = False,
        terms: Mapping[str, str] | None = None,
        mbr: str | None = None,
        attention: ForcedRows | None = None,
        **options: Any,
    ) -> Translation | Translations:
        """Translates sentences, or texts of several sentences.

        Args:
            sentences: The sentences, of any length and in any order; or one. Bytes that are not
                UTF-8 are read as U+FFFD, and a line break as a space. Of a long one ONNX Runtime
                reads the start, see `max_source_length`.
            decoding: How to search; the translator's own if None.
            batch_size: Number of sentences of similar length that are translated at once.
            prefixes: For each sentence, the text that its translation begins with, "" for none. It
                is tokenized by itself: with a `WordTokenizer` its last word must be complete, with
                a `SubwordTokenizer` it may be continued. It is cut at `Decoding.max_length`. The
                translation of a sentence without words is still "".
            constraints: Further functions as in `bahdanau_tf.search.constraints`, for all
                sentences, applied after the prefix; ids are those of `target_text`, and
                `history.rows` counts within a batch, where equal sentences are one row. Each tuple
                of constraints has its own graph, so pass the same objects again. ONNX Runtime has
                none, nor `attention`.
            split_sentences: Whether each string is translated sentence by sentence; line breaks
                between sentences and marks of lists before one, such as "1. ", stay, and the first
                one gets the prefix. If None, it is if nearly all lines that the model learned from
                are single sentences (`Habits.singly`), and no prefixes, constraints or attention
                are given.
            markup: Whether inline tags and placeholders are taken out before the search and put
                back by attention, see `bahdanau_tf.translation.markup`. `source` and `text` have
                them, and offsets count them. Those of a prefix are left out.
            terms: Source terms, each with the term that the translation has where the source has
                it, such as {"newspaper": "quotidien"}; see `bahdanau_tf.translation.terms`. A term
                that a translation lacks is one of its `doubts`.
            mbr: "chrf" or "bleu": of all hypotheses of the beam, or of all draws, the translation
                is the one that agrees most with the others by this score (minimum Bayes risk); see
                `bahdanau_tf.translation.consensus`. Its `score` is the mean agreement.
            attention: For one string, weights to use instead of the model's: float [T_y, T_x] like
                `Translation.weights`, edited or not, or a dict from the number of a step, counted
                from 0, to a row. A row applies to every hypothesis in the beam, so with a
                `beam_size` above 1 even unedited rows may let another one win. Steps without a row,
                or with None, use the model's weights.
            **options: Fields of `Decoding`, which override those of `decoding`; other fields are
                adjusted where they do not fit them.

        Returns:
            A list with a `Translation` for each sentence, in order, which a notebook draws as a
            table; the rest of the n best are its `alternatives`. For one string, the `Translation`
            itself.

        Raises:
            ValueError: `sentences` or `prefixes` is not a sequence of strings; their numbers
                differ; `decoding` is not a `Decoding`; an option is unknown or out of range;
                prefixes, terms or attention are given and the target tokenizer is reversed; markup
                or terms are set and the model has no attention; terms are set with sampling or
                attention; mbr is unknown, or set with terms or for one hypothesis; attention does
                not fit the sentence, or the model; or the model computes NaN.

        Example:

        ```python
        translator.translate("A man sleeps.", beam_size=10, n_best=3)
        ```
        """
        is_one = isinstance(sentences, str | bytes)
        for name, switch in {"split_sentences": split_sentences, "markup": markup}.items():
            if not isinstance(switch, bool | None):
                raise OptionError("Translator.translate", name, switch, "True or False")
        if split_sentences is None:
            has_start = prefixes is not None and any(map(bool, prefixes))
            is_whole = has_start or attention is not None or constraints
            split_sentences = self.habits.singly and not is_whole
        if attention is not None and (split_sentences or terms or not is_one):
            raise Refusal(
                "Translator.translate",
                "attention is set for a list, with split_sentences or with terms, wanted one "
                "string, which is a sentence, without terms",
            )
        for name, value in {"markup": markup, "terms": terms}.items():
            if value and not self.has_alignment:
                raise Refusal(
                    "Translator.translate",
                    f"{name} is set and {self.model_name} has no attention, wanted a model "
                    "with attention",
                )
        decoding = self.decoding if decoding is None else decoding
        others = signature(StringTranslator.translate).parameters if options else ()
        decoding = Decoding.with_options(decoding, options, others)
        work = self._work(batch_size, constraints, attention)
        if mbr is not None:
            check_consensus(mbr, decoding, terms)
            work = with_consensus(work, mbr, self.target_text)

        memory = in_use(self.memory, decoding, markup, terms, attention is not None)
        search = self._read(work, decoding, terms, attention is not None)
        if attention is None and not (constraints or terms):
            search = with_known(search, self._known)
        if memory:
            search = with_known(search, memory.get, self._given)

        def run(sentences: Sentences, prefixes: Sentences | None) -> Translations:
            return Translations(search(decoding, sentences, prefixes))

        def run_lines(sentences: Sentences, prefixes: Sentences | None) -> Iterable[Translation]:
            if not split_sentences:
                return run(sentences, prefixes)
            return translate_lines(
                run,
                sentences,
                prefixes,
                is_mean=is_mean,
                remembered=memory,
                colon=self.habits.target.colon,
            )

        is_mean, translate = mbr is not None, run_lines
        if markup:
            translate = partial(
                translate_marked, run_lines, is_mean=is_mean, by_sentence=split_sentences
            )
        if isinstance(sentences, str | bytes):
            prefixes = [prefixes] if isinstance(prefixes, str) else prefixes
            return Translations(translate([sentences], prefixes))[0]
        return Translations(translate(sentences, prefixes))

    def _given(self, sources: Sequence[str], targets: Sequence[str]) -> Iterable[Translation]:
        """Translations with texts of the memory."""
        return given(sources, targets)

    def _known(self, text: str) -> str | None:
        """The translation of a text without words, or of names alone."""
        copies = self.habits.copies and not self.habits.is_short
        return text if copies and is_wordless(text) else names_alone(text, self.habits)

    def _read(
        self, work: Work, decoding: Decoding, terms: Mapping[str, str] | None, as_written: bool
    ) -> Work:
        """Work with doubts, usual capitals and terms."""

        def judged(
            decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
        ) -> Iterable[Translation]:
            usual = self.source_texts[0].characters
            return (self.habits.judged(x, usual) for x in work(decoding, sentences, prefixes))

        search: Work = judged if as_written else with_readings(judged, self.habits)
        if terms:
            check_terms(terms, decoding, self.target_text.reverse)
            search = with_terms(search, terms)
        return search
