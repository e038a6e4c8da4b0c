"""Sub-words and their ids, in the graph: SentencePiece and its inverse."""

from __future__ import annotations

import functools
import io
import itertools
import os
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

from bahdanau_tf.system.files import checksum, full_disk_named
from bahdanau_tf.system.lines import Text
from bahdanau_tf.system.ranges import MARK, OptionError, Refusal
from bahdanau_tf.text import tokenizer
from bahdanau_tf.text.rows import as_strings, replaced_offsets, row_ids, spans
from bahdanau_tf.text.script import ALIKE, INVISIBLE, SIGNS, WIDE, assigned
from bahdanau_tf.text.vocabulary import END, PAD, UNK, read_checked
from bahdanau_tf.text.words import tensorflow_text, true_cased

if TYPE_CHECKING:
    from tensorflow_text import SentencepieceTokenizer


FULL_WIDTH = re.compile("[\uff01-\uff5e]")  # ! to ~
# What may end a word, but also stand within one, as in notes.txt
_MARKS = re.compile(r"""[.,:;!?…"'”’»)\]}。、！？」』）]+""")
FEW = 10  # occurrences of a sign
# A space beside a wide letter, or none between one and one of ASCII.
_GAP = re.compile(rf"(?<={WIDE})(?:\s|(?=[A-Za-z0-9]))|\s(?={WIDE})|(?<=[A-Za-z0-9])(?={WIDE})")
_COUNTED = re.compile(rf"[\uff01-\uff5e{re.escape(''.join(SIGNS))}]|\.\.\.")


def is_tight(lines: Iterable[str]) -> bool:
    """Whether a text has wide letters, as a rule without spaces beside them."""
    rows = [_GAP.findall(line) for line in lines if re.search(WIDE, line)]
    gaps = Counter(itertools.chain.from_iterable(rows))
    return bool(rows) and gaps.total() <= 2 * gaps[""]


def _have_one_case(characters: Collection[str]) -> bool:
    """Whether there are no capitals among them, or no small letters."""
    return not (any(map(str.isupper, characters)) and any(map(str.islower, characters)))


def _rare_forms(count: Counter[str]) -> dict[str, str]:
    """Of the characters of `ALIKE`, those that a text has rarely or never, and what it has."""
    rules: dict[str, str] = {}
    for row in ALIKE:
        most = max(row, key=count.__getitem__)
        for sign in {*row}.intersection(SIGNS):
            if count[sign] < count[most] * (0.1 if count[sign] < FEW else 0.01):
                rules[sign] = most
    return rules


@functools.cache
def normalization_rules(form: Literal["NFC", "NFD"], half_width: bool, lowercase: bool) -> str:
    """Replacements of characters in SentencePiece's format: code points, tab, code points.

    It applies the longest that fits. Results are not replaced again. All canonically equal
    sequences of a character become its NFC or NFD form, in whatever order its marks come and
    however many are separate; unlike in NFC, not if other marks stand between them. Spaces become
    U+0020, invisible characters are removed. `half_width` and `lowercase` are as in
    `SubwordTokenizer.train`.
    """
    rules = {}
    for character in assigned():
        written = unicodedata.normalize(form, character)
        if half_width and FULL_WIDTH.match(character):
            written = unicodedata.normalize("NFKC", character)
        if lowercase:
            written = written.lower()
        if character.isspace():
            written = " "
        for sequence in _equals(character):
            if sequence != written:
                rules[sequence] = written
    rules |= dict.fromkeys(INVISIBLE, "")
    return _written(rules)


def _written(rules: dict[str, str]) -> str:
    """Rules in SentencePiece's format."""
    codes = ([" ".join(f"{ord(x):X}" for x in side) for side in rule] for rule in rules.items())
    return "".join(f"{read}\t{written}\n" for read, written in sorted(codes))


def _equals(character: str) -> Iterator[str]:
    """A character, and the sequences that are canonically equal to it."""
    yield character
    if unicodedata.is_normalized("NFD", character):
        return
    apart = unicodedata.normalize("NFD", character)
    composed = unicodedata.normalize("NFC", character)
    for order in itertools.permutations(apart[1:]):
        for joined in range(len(order)):
            head = apart[0] + "".join(order[:joined])
            form = unicodedata.normalize("NFC", head)
            form += "".join(order[joined:])
            if unicodedata.normalize("NFC", form) == composed:
                yield form


# What is read of SentencePiece's ModelProto: the name, number, type and default of each field.
_FIELDS: dict[str, list[tuple[Any, ...]]] = {
    "Piece": [("piece", 1, "STRING", ""), ("score", 2, "FLOAT", "0"), ("type", 3, "INT32", "1")],
    "TrainerSpec": [
        ("model_type", 3, "INT32", "1"),
        ("treat_whitespace_as_suffix", 24, "BOOL", "false"),
        ("byte_fallback", 35, "BOOL", "false"),
    ],
    "NormalizerSpec": [
        ("precompiled_charsmap", 2, "BYTES", ""),
        ("add_dummy_prefix", 3, "BOOL", "true"),
        ("remove_extra_whitespaces", 4, "BOOL", "true"),
        ("escape_whitespaces", 5, "BOOL", "true"),
        ("normalization_rule_tsv", 6, "STRING", ""),
    ],
    "ModelProto": [
        ("pieces", 1, "Piece", ""),
        ("trainer_spec", 2, "TrainerSpec", ""),
        ("normalizer_spec", 3, "NormalizerSpec", ""),
    ],
}


@functools.cache
def model_class() -> Any:
    """SentencePiece's ModelProto with some of its fields declared; others are kept.

    The class that comes with SentencePiece may need a newer protobuf than TensorFlow does.
    """
    package = "bahdanau_tf"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}/model.proto", package=package)
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in _FIELDS.items():
        declared = file.message_type.add(name=message)
        for name, number, kind, default in fields:
            label = kinds.LABEL_REPEATED if name == "pieces" else kinds.LABEL_OPTIONAL
            field = declared.field.add(name=name, number=number, label=label)
            if kind in _FIELDS:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                field.type, field.default_value = getattr(kinds, f"TYPE_{kind}"), default
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.ModelProto"))


def learned(files: list[Text], true_cased_files: list[Text], options: dict[str, Any]) -> bytes:
    """Lets SentencePiece learn a model and returns its bytes.

    The lines of some files are learned as `true_cased` writes them. The option
    "normalization_rule_tsv" is the text of the rules, not a path.

    Raises:
        ValueError: A file is not UTF-8 text, or the trainer refuses.
    """
    import sentencepiece

    written = io.BytesIO()
    unread: list[ValueError] = []
    # A file without a name, so that a killed process leaves nothing.
    with tempfile.TemporaryFile() as rules:
        if "normalization_rule_tsv" in options:
            with full_disk_named(tempfile.gettempdir()):
                rules.write(options["normalization_rule_tsv"].encode())
                rules.seek(0)
            path = f"/dev/fd/{rules.fileno()}"
            options = options | {"normalization_rule_tsv": path}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_lines(files, true_cased_files, unread),
                model_writer=written,
                character_coverage=1.0,
                split_digits=True,  # so that a number can be copied digit by digit
                hard_vocab_limit=False,  # a small text has fewer pieces
                pad_id=0,
                unk_id=1,
                eos_id=2,
                bos_id=-1,
                pad_piece=PAD,
                unk_piece=UNK,
                eos_piece=END,
                unk_surface=UNK,
                minloglevel=2,
                **options,
            )
        except RuntimeError as error:
            if unread:
                raise unread[0] from None
            raise _as_ours(error, [*true_cased_files, *files], options) from error
    model = model_class().FromString(written.getvalue())
    model.normalizer_spec.ClearField("normalization_rule_tsv")  # the path of the rules
    return bytes(model.SerializeToString())


def _as_ours(error: RuntimeError, files: list[Text], options: dict[str, Any]) -> ValueError:
    """SentencePiece's error in terms of our arguments."""
    if "sentences_.empty()" in str(error):
        names = " and ".join(
            os.fspath(x) if isinstance(x, str | os.PathLike) else "a list" for x in files
        )
        why = f"no line of 1 to 4,192 bytes to learn from in {names}"
        return Refusal("SubwordTokenizer.train", why)
    least = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
    if least is None:
        return Refusal("SubwordTokenizer.train", f"{error}")
    wanted = f"{least[1]} or more: the number of characters of the text, bytes and special symbols"
    return OptionError("SubwordTokenizer.train", "vocabulary_size", options["vocab_size"], wanted)


def _lines(
    files: Iterable[Text], true_cased_files: Iterable[Text], unread: list[ValueError]
) -> Iterator[str]:
    """The lines to learn from; a ValueError is also added to `unread`.

    SentencePiece replaces an exception of the iterator by its own.
    """
    try:
        for strings in tokenizer.line_batches(true_cased_files):
            yield from (x.decode() for x in true_cased(strings).numpy())
        for path in files:
            yield from tokenizer.counted_lines(path)
    except ValueError as error:
        unread.append(error)
        raise


KINDS = {1: "unigram", 2: "bpe", 3: "space", 4: "char"}  # by SentencePiece's number
SPACE = "\N{LOWER ONE EIGHTH BLOCK}".encode()  # as SentencePiece writes it


class SubwordTokenizer(tokenizer.Tokenizer):
    """Splits text into the pieces of a SentencePiece model.

    The model contains all settings, its normalization included (see `train`). With any
    normalization, several spaces (U+0020) become one, those at both ends are dropped, and U+2581
    becomes a space. With byte fallback, a character that the model does not know is written as its
    bytes, so that nothing is unknown.

    In a `Reading`, a piece that adds a space, or is not the last byte or letter of a character, is
    an empty word. `detokenize` writes U+FFFD for bytes that are not valid UTF-8 together; it is of
    the first of their pieces, the others are empty.

    Args:
        model_proto: The bytes of a SentencePiece model with padding, unknown and end symbol; the
            id of padding must be 0.
        reverse: Whether the last piece comes first (Sutskever et al. 2014, section 3.3). The end
            symbol stays last.
        true_case: Whether a line in all capitals is read as an ordinary sentence, see `true_cased`.
        tight: Whether `detokenize` writes no space beside a Chinese or Japanese letter or sign.

    Raises:
        ValueError: The model lacks one of the three symbols, or padding is not 0.
        ImportError: tensorflow_text is not installed.

    Reference:
        Kudo and Richardson 2018, SentencePiece; Sennrich et al. 2016, Neural Machine Translation
        of Rare Words with Subword Units.
    """

    FILE = "sentencepiece.model"
    OPTIONS = ("reverse", "true_case", "tight")

    def __init__(
        self,
        model_proto: bytes,
        reverse: bool = False,
        true_case: bool = False,
        tight: bool = False,
    ) -> None:
        super().__init__()
        self.model_proto = model_proto
        self._checksum = checksum(model_proto)
        self.reverse = reverse
        self.true_case = true_case
        self.tight = tight
        self.kind = KINDS[self.parsed().trainer_spec.model_type]
        model = self._model()
        self.vocabulary_size = int(model.vocab_size())
        self._tokens = model.id_to_string(tf.range(self.vocabulary_size))
        self._surfaces = tf.constant([*map(_surface, self._tokens.numpy().tolist())])
        self.pad_id = self._id_of(PAD, "<pad>")
        self.unk_id = self._id_of(UNK, "<unk>")
        self.eos_id = self._id_of(END, "</s>")
        if self.pad_id:
            raise Refusal("SubwordTokenizer", f"padding is id {self.pad_id}, wanted 0.")

    @classmethod
    def train(
        cls,
        files: Iterable[Text],
        vocabulary_size: int,
        model_type: str = "bpe",
        normalization: str = "nfc",
        byte_fallback: bool = True,
        max_sentences: int = 2_000_000,
        reverse: bool = False,
        true_case: bool = False,
        lowercase: bool | None = False,
        half_width: bool | None = None,
        tight: bool | None = None,
        files_as_written: Iterable[Text] = (),
    ) -> SubwordTokenizer:
        """Learns the pieces from text files, from lines as they will be read.

        For a joint vocabulary, give the files of both languages.

        Args:
            files: UTF-8 text, one sentence per line; streamed.
            vocabulary_size: Number of ids, including the three special symbols and, with
                `byte_fallback`, the 256 bytes. A small text yields fewer.
            model_type: "bpe" or "unigram"; "char" for characters, "space" for what stands between
                spaces, such as phones.
            normalization: "nfc": composed characters, plain spaces, no invisible characters;
                quotes, dashes and an ellipsis that the text rarely has become those that it has
                (but not with "char" and "space"). "nfd": the same with decomposed characters, so
                that Hangul is its letters; those are not composed again by `detokenize`. Or one of
                SentencePiece's own: "identity", "nfkc", "nfkc_cf" (lower case), "nmt_nfkc",
                "nmt_nfkc_cf".
            byte_fallback: Whether an unknown character becomes its bytes; if not, and with "space",
                it becomes [UNK].
            max_sentences: If there are more lines, this many are sampled.
            reverse, true_case: As in the constructor.
            lowercase: With "nfc" or "nfd", whether capitals become lower case; with None, they do
                if the text has letters of one case only.
            half_width: With these, whether the full-width forms of ASCII become ASCII; with None,
                they do if the text has none of them.
            tight: As in the constructor; None: as in most such places of the text.
            files_as_written: More such files, for which `true_case` does not hold: of a joint
                vocabulary, those of the target.

        Raises:
            ValueError: A file is not UTF-8 text, `lowercase` or `half_width` is given without
                "nfc" or "nfd", or SentencePiece refuses, for example because the text has more
                characters than `vocabulary_size`.
        """
        owner = "SubwordTokenizer.train"
        texts, as_written = (tokenizer.as_texts(owner, x) for x in (files, files_as_written))
        rule = {"normalization_rule_name": normalization}
        if normalization in ("nfc", "nfd"):
            count, characters = Counter[str](), set[str]()
            for line in itertools.chain.from_iterable(map(tokenizer.lines_of, texts + as_written)):
                count.update(_COUNTED.findall(line))
                characters.update(line)
            if half_width is None:
                half_width = not any(map(FULL_WIDTH.match, count))
            if lowercase is None:
                lowercase = _have_one_case(characters)
            form: Literal["NFC", "NFD"] = "NFC" if normalization == "nfc" else "NFD"
            rules = normalization_rules(form, half_width, lowercase)
            if model_type not in ("char", "space"):
                rules += _written(_rare_forms(count))
            rule = {"normalization_rule_tsv": rules}
        elif lowercase or half_width:
            needed = "lowercase and half_width need normalization='nfc' or 'nfd'"
            raise Refusal(owner, f"{needed}, but it is {normalization!r}.")
        if tight is None:
            tight = is_tight(
                itertools.chain.from_iterable(map(tokenizer.lines_of, texts + as_written))
            )
        options = {
            "vocab_size": vocabulary_size,
            "model_type": {"space": "word"}.get(model_type, model_type),
            "add_dummy_prefix": model_type != "char",  # a space before the text would be a piece
            # Symbols are separated by spaces, which byte fallback would also write as bytes.
            "byte_fallback": byte_fallback and model_type != "space",
            "input_sentence_size": max_sentences,
        }
        if not true_case:
            texts, as_written = [], texts + as_written
        model_proto = learned(as_written, texts, rule | options)
        return cls(model_proto, reverse, true_case, tight)

    def tokenize(
        self, strings: tf.Tensor, sample: bool = False, alpha: float = 0.1, nbest: int = -1
    ) -> tf.RaggedTensor:
        """Turns strings into ids.

        Args:
            strings: string [B].
            sample: Whether to draw one of the ways to split each string (Kudo 2018, Subword
                Regularization; Provilkov et al. 2020, BPE-Dropout). For training only, and for
                "bpe" and "unigram"; no seed makes it repeatable.
            alpha: Unigram: exponent of the probabilities; the smaller, the more even they are.
                BPE: the share of merges left out.
            nbest: Unigram: draw from the n best ways; -1 for all.

        Returns:
            Ragged int32 [B, (T)]; each row ends with `eos_id`.
        """
        strings = as_strings(strings)
        if sample and self.kind not in ("bpe", "unigram"):
            raise OptionError("SubwordTokenizer", "sample", sample, f"False for {self.kind!r}")
        options = {"nbest_size": nbest, "alpha": alpha} if sample else {}
        return self._finished(self._model(**options).tokenize(self._read(strings)))

    def _located(self, strings: tf.Tensor) -> tokenizer.Located:
        ids, starts, ends = self._model().tokenize_with_offsets(self._read(strings))
        return ids, tf.cast(starts, tf.int32), tf.cast(ends, tf.int32)

    def _entries(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._surfaces, self._known(ids))

    def _joined(self, pieces: tf.RaggedTensor) -> tokenizer.Written:
        plain = tf.strings.regex_replace(pieces.values, "^ ", "", replace_global=False)
        lengths = pieces.with_values(tf.strings.length(plain))
        space = tf.strings.length(pieces.values) - lengths.values  # 1 or 0
        starts, _ = spans(lengths, tf.zeros_like(lengths))
        space = tf.where(starts.values == 0, 0, space)
        if self.tight:
            space = tf.where(_beside_wide(pieces.with_values(plain)), 0, space)
        texts = tf.strings.unsorted_segment_join(
            tf.where(space == 1, " ", "") + plain, row_ids(pieces), pieces.nrows()
        )
        # A JSON reply cannot hold bytes that are not valid UTF-8.
        valid = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", "replace")
        starts, ends = spans(lengths, pieces.with_values(space))
        return valid, replaced_offsets(texts, starts), replaced_offsets(texts, ends)

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the pieces of ids of any shape, as strings."""
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(self.ids_to_tokens(ids.flat_values))
        return tf.gather(self._tokens, self._known(ids))

    def parsed(self) -> Any:
        """`model_proto` as a message, see `model_class`."""
        return model_class().FromString(self.model_proto)

    def _contents(self) -> bytes:
        return self.model_proto

    @classmethod
    def load(
        cls, directory: str | os.PathLike[str], checksum: str, config: dict[str, Any]
    ) -> SubwordTokenizer:
        """Reads what `save` wrote; `load_text` calls this."""
        return cls(read_checked(Path(directory, cls.FILE), checksum), **config)

    def _model(self, **options: float) -> SentencepieceTokenizer:
        """Creates the SentencePiece op in the current graph.

        TF Text frees a model together with the kernel that has read it, and `tf.random.set_seed`
        destroys all eager kernels: a model that is read once and kept is lost ("Resource ... does
        not exist") when training sets the seed. In a loaded SavedModel TF Text finds a model by
        the name of its node, so each model has its own name scope.
        """
        text = tensorflow_text("SubwordTokenizer")
        with tf.name_scope(f"sentencepiece_{self._checksum[:16]}"):
            return text.SentencepieceTokenizer(self.model_proto, tf.int32, **options)

    def _read(self, strings: tf.Tensor) -> tf.Tensor:
        return true_cased(strings) if self.true_case else strings

    def _known(self, ids: tf.Tensor) -> tf.Tensor:
        """Replaces numbers that are not ids by `unk_id`."""
        is_id = (ids >= 0) & (ids < self.vocabulary_size)
        return tf.where(is_id, ids, self.unk_id)

    def _id_of(self, *names: str) -> int:
        tokens: list[bytes] = self._tokens.numpy().tolist()
        for name in names:
            if name.encode() in tokens:
                return tokens.index(name.encode())
        raise Refusal("SubwordTokenizer", f"the model has no piece {' or '.join(names)}.")


def _beside_wide(pieces: tf.RaggedTensor) -> tf.Tensor:
    """Whether a wide letter is beside the space before each piece, bool [N]."""
    values, rows = pieces.values, row_ids(pieces)
    first, last = (
        tf.strings.regex_full_match(values, x) for x in (f"(?s){WIDE}.*", f"(?s).*{WIDE}")
    )
    is_next = tf.concat([rows[1:] == rows[:-1], [False]], 0)[: tf.size(rows)]
    first |= (values == "") & is_next & tf.roll(first, -1, 0)  # a space is a piece by itself
    return first | tf.roll(last, 1, 0)  # no space is before the first piece of a row


def _surface(token: bytes) -> bytes:
    """The bytes that a piece stands for; U+2581 becomes a space."""
    if byte := tokenizer.BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return token.replace(SPACE, b" ")


def copies(source: tokenizer.Tokenizer, target: tokenizer.Tokenizer) -> np.ndarray:
    """The target id that is spelled as each source id, for `Copying`: int32 [K_x].

    It is negative for a sub-word that continues a word, with `MARK` added to the id of one
    that is a mark, and 0 if there is none, and for unknown words.
    """
    spellings = [
        text.ids_to_tokens(tf.range(text.vocabulary_size)).numpy().tolist()
        for text in (source, target)
    ]
    ids = {token: number for number, token in enumerate(spellings[1])}
    table = np.array([ids.get(token, 0) for token in spellings[0]], np.int32)
    if isinstance(source, SubwordTokenizer):
        is_mark = [_MARKS.fullmatch(token.decode()) is not None for token in spellings[0]]
        table += MARK * (table > 0) * is_mark
        table *= [1 if token.startswith(SPACE) else -1 for token in spellings[0]]
        table[source.eos_id] *= -1
    table[[source.pad_id, source.unk_id]] = 0
    return table
