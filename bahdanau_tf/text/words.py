"""Words and their ids, in the graph: the Moses tokenizer and its inverse."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow as tf

from bahdanau_tf.system.lines import Text
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text import splitting
from bahdanau_tf.text.languages import RULES, language as rules_of
from bahdanau_tf.text.rows import as_strings, row_ids, spans
from bahdanau_tf.text.splitting import NormalForm
from bahdanau_tf.text.tokenizer import Located, Tokenizer, Written, as_texts, line_batches
from bahdanau_tf.text.vocabulary import SPECIAL, Coverage, Vocabulary

_NO_SMALL = r"[^\p{Ll}\p{Lt}]*"
_WORD = r"\p{Lu}\p{M}*\p{Lu}"
_CAPITALS = _NO_SMALL.join(["", _WORD, r"[\s\p{Z}]", _WORD, ""])


def true_cased(strings: tf.Tensor) -> tf.Tensor:
    """Writes strings, string [B], all in capitals as sentences: A BIG DOG. A big dog.

    Such a string has two words of two or more capitals and no lower-case letter. All others stay as
    they are, and so does a string with a letter whose small form has another number of bytes, such
    as the Turkish U+0130: offsets in the result are offsets in the original. Names lose their
    capital, since nothing distinguishes them from other words.
    """
    start = tf.strings.regex_replace(
        strings, r"(?s)^([^\pL\pN]*\pL?).*$", r"\1", replace_global=False
    )
    length = tf.strings.length(strings)
    rest = tf.strings.substr(strings, tf.strings.length(start), length)
    result = start + tf.strings.lower(rest, "utf-8")
    capitals = tf.strings.regex_full_match(strings, _CAPITALS)
    capitals &= tf.strings.regex_full_match(strings, _even())
    # The pattern follows Python's Unicode tables, `lower` TensorFlow's.
    capitals &= tf.strings.length(result) == length
    return tf.where(capitals, result, strings)


@functools.cache
def _even() -> str:
    """Pattern of text that has as many bytes in lower case."""
    uneven = "".join(
        character
        for character in map(chr, range(0x10000))  # beyond, all have four
        if character.isupper() and len(character.lower().encode()) != len(character.encode())
    )
    return rf"[^\x00{uneven}]*"  # `lower` drops U+0000


@tf.autograph.experimental.do_not_convert
def tensorflow_text(user: str) -> ModuleType:
    """Imports TensorFlow Text for a user, whose name starts the error message.

    Raises ImportError, with what to do, if it is not installed, was built for another TensorFlow,
    or lacks its docstrings.
    """
    try:
        version = metadata.version("tensorflow-text")
    except metadata.PackageNotFoundError:
        version = None  # a custom build may have no metadata
    wanted = ".".join(tf.__version__.split(".")[:2])
    if version is not None and version.split(".")[:2] != wanted.split("."):
        raise ImportError(
            f"{user} needs tensorflow-text {wanted} with TensorFlow {tf.__version__}, but "
            f"tensorflow-text {version} is installed: pip install 'tensorflow-text=={wanted}.*'."
        )
    try:
        return importlib.import_module("tensorflow_text")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{user} needs tensorflow-text, which is not installed: "
            f"pip install 'tensorflow-text=={wanted}.*'."
        ) from error
    except TypeError as error:  # it formats its docstrings
        raise ImportError(
            f"{user} needs tensorflow-text, whose import failed: {error}. If you run `python -OO`, "
            "which removes docstrings that tensorflow-text needs, leave -OO out."
        ) from error


_NORMAL_FORMS = (None, "NFC", "NFKC")
_STRINGS = [tf.TensorSpec([None], tf.string)]


class WordTokenizer(Tokenizer):
    """Splits text into words as Moses does, and joins words into text again.

    `split` returns the words of the Moses tokenizer (without aggressive hyphens and escapes). In
    Japanese and Korean a word also ends where Han, kana, Hangul or digits start. Each word is
    normalized after splitting, so that offsets are those of the original text.

    The inverse needs only the ids. A rule of the language says where spaces go; where the rule is
    wrong for a word, its vocabulary entry carries a sign: U+FFED for no space before it, U+2423 for
    a space before it. A signed word that the vocabulary lacks counts as the word without the sign.

    Args:
        vocabulary: The words that have ids.
        language: ISO 639-1 code; languages that are not in `languages.py` use the general rules.
        lowercase: Whether to write words in lower case.
        normalization: "NFC", "NFKC" (both need tensorflow_text) or None.
        reverse: Whether the last word comes first (Sutskever et al. 2014, section 3.3). The end
            symbol stays last.
        no_break: Whether `detokenize` writes no-break spaces (U+00A0) where the language has them,
            in French before ! ? : ; and inside « »; if not, plain spaces.
        true_case: Whether a line in all capitals is read as an ordinary sentence, see `true_cased`.
        rules: Version of the languages' rules, 2.

    Raises:
        ValueError: `normalization` or `rules` has another value.
        ImportError: tensorflow_text is needed and is not installed.

    Example:
        >>> tokenizer = WordTokenizer(vocabulary, "fr")
        >>> tokenizer.split(tf.constant(["L'eau est froide."])).to_list()
        [[b"L'", b'eau', b'est', b'froide', b'.']]

    Reference:
        Koehn et al. 2007, Moses: Open Source Toolkit for Statistical Machine Translation.
    """

    are_words = True
    FILE = "vocabulary.txt"
    OPTIONS = (
        *("language", "lowercase", "normalization"),
        *("reverse", "no_break", "true_case", "rules"),
    )

    def __init__(
        self,
        vocabulary: Vocabulary,
        language: str = "en",
        lowercase: bool = False,
        normalization: NormalForm = "NFC",
        reverse: bool = False,
        no_break: bool = False,
        true_case: bool = False,
        rules: int = RULES,
    ) -> None:
        super().__init__()
        if normalization not in _NORMAL_FORMS:
            raise Refusal(
                "WordTokenizer", f"normalization={normalization!r}, wanted one of {_NORMAL_FORMS}"
            )
        if rules != RULES:
            raise Refusal(
                "WordTokenizer",
                f"rules={rules!r}, wanted {RULES}; others may be those of a newer bahdanau_tf",
            )
        if normalization:
            tensorflow_text("WordTokenizer with a normal form")
        self.vocabulary = vocabulary
        self.language = language
        self.lowercase = lowercase
        self.normalization = normalization
        self.reverse = reverse
        self.no_break = no_break
        self.true_case = true_case
        self.rules = rules
        self.vocabulary_size = vocabulary.size
        self.pad_id = vocabulary.pad_id
        self.unk_id = vocabulary.unk_id
        self.eos_id = vocabulary.eos_id
        self._rules = rules_of(language)
        self._split = splitting.splitter(normalization, self._rules)

    @classmethod
    def train(
        cls,
        files: Iterable[Text],
        vocabulary_size: int,
        language: str = "en",
        lowercase: bool = False,
        normalization: NormalForm = "NFC",
        reverse: bool = False,
        no_break: bool = False,
        true_case: bool = False,
    ) -> WordTokenizer:
        """Builds the vocabulary from the most frequent words of text files.

        The files are streamed; only the word counts are kept in memory. Progress is written to
        standard error.

        Args:
            files: UTF-8 text, one sentence per line.
            vocabulary_size: Number of ids, special symbols included.
            language, lowercase, normalization, reverse, no_break, true_case: As in the constructor.
        """
        options = (*(language, lowercase, normalization), *(reverse, no_break, true_case))
        empty = cls(Vocabulary(SPECIAL), *options)
        sentences = empty.sentences(as_texts("WordTokenizer.train", files))
        return cls(Vocabulary.build(sentences, vocabulary_size), *options)

    def sentences(self, files: Iterable[Text]) -> Iterator[list[str]]:
        """Yields the signed words of each line of files.

        They are what `Vocabulary.build` and `Vocabulary.coverage` count.
        """
        signed = tf.function(self.split_signed, input_signature=_STRINGS, autograph=False)
        for strings in line_batches(as_texts("WordTokenizer.sentences", files)):
            for sentence in signed(strings).to_list():
                yield [word.decode() for word in sentence]

    def coverage(self, files: Iterable[Text]) -> Coverage:
        """Counts the running words of files, and those with their own id."""
        tokenize = tf.function(
            lambda strings: self.tokenize(strings).values, input_signature=_STRINGS, autograph=False
        )
        running = known_words = 0
        for strings in line_batches(as_texts("WordTokenizer.coverage", files)):
            ids = tokenize(strings).numpy()
            ends = (ids == self.eos_id).sum()
            running += int(ids.size - ends)
            known_words += int((ids != self.unk_id).sum() - ends)
        return Coverage(running, known_words)

    def split(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Splits strings, string [B], into normalized words, ragged string [B, (T)]."""
        words = self._words(as_strings(strings))
        return words.in_rows(self._text(words))

    def split_signed(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`split` into words with the signs that the inverse needs, as in a vocabulary."""
        words = self._words(as_strings(strings))
        return words.in_rows(self._signed(words))

    def _located(self, strings: tf.Tensor) -> Located:
        words = self._words(strings)
        ids = self._ids(words.in_rows(self._signed(words)))
        return ids, words.in_rows(words.starts), words.in_rows(words.ends)

    def _joined(self, words: tf.RaggedTensor) -> Written:
        rows = tf.cast(row_ids(words), tf.int32)
        gaps = splitting.between(words.values, rows, self._rules, self.no_break)
        plain = splitting.unsign(words.values)
        count = tf.cast(words.nrows(), tf.int32)
        texts = tf.strings.unsorted_segment_join(gaps + plain, rows, count)
        lengths = (words.with_values(tf.strings.length(x)) for x in (plain, gaps))
        starts, ends = spans(*lengths)
        return texts, starts, ends

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the vocabulary entries of ids of any shape, as strings."""
        return self.vocabulary.words(ids)

    def _contents(self) -> bytes:
        return self.vocabulary.contents()

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], checksum: str, config: dict[str, Any]
    ) -> WordTokenizer:
        """Reads what `save` wrote; `load_text` calls this."""
        return cls(Vocabulary.load(Path(directory, cls.FILE), checksum), **config)

    def _words(self, strings: tf.Tensor) -> splitting.Words:
        if self.true_case:
            strings = true_cased(strings)
        return self._split(strings)

    def _text(self, words: splitting.Words) -> tf.Tensor:
        """Encodes words and normalises each: string [N]."""
        text = tf.strings.unicode_encode(words.codes, "UTF-8")
        if self.normalization:
            text = tensorflow_text("WordTokenizer").normalize_utf8(text, self.normalization)
        if self.lowercase:
            lower = tf.strings.lower(text, "utf-8")
            text = tf.where(lower == "", text, lower)  # lower drops U+0000
        return text

    def _signed(self, words: splitting.Words) -> tf.Tensor:
        text = self._text(words)
        ruled = splitting.by_rule(text, words.spaces, words.rows, self._rules)
        return splitting.sign(text, words.spaces, ruled)

    def _ids(self, signed: tf.RaggedTensor) -> tf.RaggedTensor:
        ids = self.vocabulary.ids(signed.values)
        plain = self.vocabulary.ids(splitting.unsign(signed.values))
        return signed.with_values(tf.where(ids == self.unk_id, plain, ids))


def with_added_words(tokenizer: WordTokenizer, files: Iterable[Text], most: int) -> WordTokenizer:
    """A tokenizer that also has the most frequent unknown words of text files, at most `most`.

    All other words keep their ids.
    """
    counts = Counter(itertools.chain.from_iterable(tokenizer.sentences(files)))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    signed = tf.constant(order, tf.string)
    listed = {*tokenizer.vocabulary.tokens}
    plain = [word.decode() for word in splitting.unsign(signed).numpy()]
    unknown = [
        word
        for word, bare in zip(order, plain, strict=True)
        if not listed & {word, bare} and word not in SPECIAL
    ]
    vocabulary = Vocabulary([*tokenizer.vocabulary.tokens, *unknown[:most]])
    options: Any = tokenizer.settings()["config"]
    return WordTokenizer(vocabulary, **options)
