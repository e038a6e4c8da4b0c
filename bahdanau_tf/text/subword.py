"""Sub-words and their ids, in the graph: SentencePiece and its inverse."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from bahdanau_tf.system.files import checksum
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.text._tensorflow_text import tensorflow_text
from bahdanau_tf.text.normalization import rules_text
from bahdanau_tf.text.rows import append_end
from bahdanau_tf.text.rows import as_rows
from bahdanau_tf.text.rows import as_strings
from bahdanau_tf.text.rows import detokenized
from bahdanau_tf.text.rows import replaced_offsets
from bahdanau_tf.text.rows import row_ids
from bahdanau_tf.text.rows import spans
from bahdanau_tf.text.rows import surfaces
from bahdanau_tf.text.rows import turned
from bahdanau_tf.text.settings import settings_of
from bahdanau_tf.text.settings import write_settings
from bahdanau_tf.text.subword_learning import Options
from bahdanau_tf.text.subword_learning import has_full_width
from bahdanau_tf.text.subword_learning import learned
from bahdanau_tf.text.true_case import true_cased
from bahdanau_tf.text.vocabulary import END
from bahdanau_tf.text.vocabulary import PAD
from bahdanau_tf.text.vocabulary import UNK
from bahdanau_tf.text.vocabulary import read_checked

if TYPE_CHECKING:
    from tensorflow_text import SentencepieceTokenizer

BLANK = "\N{LOWER ONE EIGHTH BLOCK}".encode()  # as SentencePiece writes it
BYTE = re.compile(rb"<0x([0-9A-F]{2})>")  # and the bytes of byte fallback


class SubwordTokenizer(tf.Module):
    """Splits text into the pieces of a SentencePiece model.

    The model contains all settings, its normalisation included (see `train`).
    With any normalisation, several blanks (U+0020) become one, those at both
    ends are dropped, and U+2581 becomes a blank. With byte fallback, a
    character that the model does not know is written as its bytes, so that
    nothing is unknown.

    Args:
        model_proto: The bytes of a SentencePiece model with padding, unknown
            and end symbol; the id of padding must be 0.
        reverse: Whether the last piece comes first (Sutskever et al. 2014,
            section 3.3). The end symbol stays last.
        true_case: Whether a line all in capitals is read as an ordinary
            sentence, see `true_cased`.

    Raises:
        ValueError: The model lacks one of the three symbols, or padding is not
            0.
        ImportError: tensorflow_text is not installed.

    Reference:
        Kudo and Richardson 2018, SentencePiece; Sennrich et al. 2016, Neural
        Machine Translation of Rare Words with Subword Units.
    """

    def __init__(
        self,
        model_proto: bytes,
        reverse: bool = False,
        true_case: bool = False,
    ) -> None:
        super().__init__()
        self.model_proto = model_proto
        self._checksum = checksum(model_proto)
        self.reverse = reverse
        self.true_case = true_case
        model = self._model()
        self.vocabulary_size = int(model.vocab_size())
        self._tokens = model.id_to_string(tf.range(self.vocabulary_size))
        self._surfaces = tf.constant(_surfaces(self._tokens.numpy().tolist()))
        self.pad_id = self._id_of(PAD, "<pad>")
        self.unk_id = self._id_of(UNK, "<unk>")
        self.eos_id = self._id_of(END, "</s>")
        if self.pad_id:
            raise ValueError(
                f"SubwordTokenizer: padding is id {self.pad_id}, wanted 0."
            )

    @classmethod
    def train(
        cls,
        files: Iterable[str | os.PathLike[str]],
        vocabulary_size: int,
        model_type: str = "bpe",
        normalization: str = "nfc",
        byte_fallback: bool = True,
        max_sentences: int = 2_000_000,
        reverse: bool = False,
        true_case: bool = False,
        lowercase: bool = False,
        half_width: bool | None = None,
        files_as_written: Iterable[str | os.PathLike[str]] = (),
    ) -> SubwordTokenizer:
        """Learns the pieces from text files, from lines as they will be read.

        For a joint vocabulary, give the files of both languages.

        Args:
            files: UTF-8 text, one sentence per line; streamed.
            vocabulary_size: Number of ids, including the three special symbols
                and, with `byte_fallback`, the 256 bytes. A small text gives
                fewer.
            model_type: "bpe" or "unigram".
            normalization: "nfc": composed characters, plain blanks, no
                invisible characters. Or one of SentencePiece's own:
                "identity", "nfkc", "nfkc_cf" (lower case), "nmt_nfkc",
                "nmt_nfkc_cf".
            byte_fallback: Whether an unknown character becomes its bytes; if
                not, it becomes [UNK].
            max_sentences: If there are more lines, so many are sampled.
            reverse: As in the constructor.
            true_case: As in the constructor.
            lowercase: With "nfc", whether capitals become small letters.
            half_width: With "nfc", whether the full-width forms of ASCII become
                ASCII; with None, they do if the text has none of them.
            files_as_written: More such files, for which `true_case` does not
                hold: of a joint vocabulary, those of the target.

        Returns:
            The tokenizer.

        Raises:
            ValueError: A file is not UTF-8 text, `lowercase` or `half_width` is
                given without "nfc", or SentencePiece refuses, for example
                because the text has more characters than `vocabulary_size`.
        """
        files, as_written = [*files], [*files_as_written]
        rule: Options = {"normalization_rule_name": normalization}
        if normalization == "nfc":
            if half_width is None:
                half_width = not has_full_width([*files, *as_written])
            rule = {"normalization_rule_tsv": rules_text(half_width, lowercase)}
        elif lowercase or half_width:
            raise ValueError(
                "SubwordTokenizer.train: lowercase and half_width need "
                f"normalization='nfc', it is {normalization!r}."
            )
        options: Options = {
            "vocab_size": vocabulary_size,
            "model_type": model_type,
            "byte_fallback": byte_fallback,
            "input_sentence_size": max_sentences,
        }
        if not true_case:
            files, as_written = [], files + as_written
        model_proto = learned(as_written, files, rule | options)
        return cls(model_proto, reverse, true_case)

    def tokenize(
        self,
        strings: tf.Tensor,
        sample: bool = False,
        alpha: float = 0.1,
        nbest: int = -1,
    ) -> tf.RaggedTensor:
        """Turns strings into ids.

        Args:
            strings: string [B].
            sample: Whether to draw one of the ways to split each string (Kudo
                2018, Subword Regularization; Provilkov et al. 2020,
                BPE-Dropout). For training only; no seed makes it repeatable.
            alpha: Unigram: exponent of the probabilities; the smaller, the
                more even they are. BPE: the share of merges left out.
            nbest: Unigram: draw from the n best ways; -1 for all.

        Returns:
            Ragged int32 [B, (T)]; each row ends with `eos_id`.
        """
        strings = as_strings(strings)
        options = {"nbest_size": nbest, "alpha": alpha} if sample else {}
        ids = self._model(**options).tokenize(self._read(strings))
        return append_end(turned(ids) if self.reverse else ids, self.eos_id)

    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Splits like `tokenize`, and returns where each piece is.

        Args:
            strings: string [B].

        Returns:
            Ragged string [B, (T)], the pieces as they are in the strings, one
            for each id but the end symbol (a piece that adds a blank, or is
            not the last byte of a character, is empty); ragged int32 [B, (T)],
            the offsets of their first bytes; ragged int32 [B, (T)], those of
            the bytes after their last.
        """
        strings = as_strings(strings)
        _, starts, ends = self._model().tokenize_with_offsets(
            self._read(strings)
        )
        starts = starts.with_values(tf.cast(starts.values, tf.int32))
        ends = ends.with_values(tf.cast(ends.values, tf.int32))
        if self.reverse:
            starts, ends = turned(starts), turned(ends)
        return surfaces(strings, starts, ends), starts, ends

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Turns ids back into strings.

        Args:
            ids: int32 [B, T] or ragged [B, (T)]. A row is read up to its first
                end symbol; padding is skipped.

        Returns:
            string [B].
        """
        return self.detokenize_with_offsets(ids)[0]

    def detokenize_with_offsets(
        self,
        ids: tf.Tensor | tf.RaggedTensor,
        replacements: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> tuple[tf.Tensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Turns ids back into strings, and returns where each piece is.

        Args:
            ids: int32 [B, T] or ragged [B, (T)]. A row is read up to its first
                end symbol; padding is skipped.
            replacements: string, shape of `ids`: what to write for an unknown
                piece; [UNK] where it is empty, and everywhere if None.

        Returns:
            string [B]; ragged int32 [B, (T)], the offset of the first byte of
            each piece, in the order of the ids, without the blank before it;
            ragged int32 [B, (T)], that of the byte after its last. For bytes
            that are not valid UTF-8 together U+FFFD is written; it is of the
            first of their pieces, the others are empty.
        """
        rows = as_rows(ids)
        return detokenized(
            self,
            rows.with_values(self._known(rows.values)),
            replacements,
            lambda known: tf.gather(self._surfaces, known),
            _written,
        )

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the pieces of ids of any shape, as strings."""
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(self.ids_to_tokens(ids.flat_values))
        return tf.gather(self._tokens, self._known(ids))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes tokenizer.json and sentencepiece.model into a folder."""
        path = Path(directory, "sentencepiece.model")
        write_atomically(path, self.model_proto)
        write_settings(directory, self.settings())

    @classmethod
    def load(
        cls,
        directory: str | os.PathLike[str],
        checksum: str,
        config: dict[str, Any],
    ) -> SubwordTokenizer:
        """Reads what `save` wrote; `load_text` calls this."""
        path = Path(directory, "sentencepiece.model")
        return cls(read_checked(path, checksum), **config)

    def settings(self) -> dict[str, object]:
        """Class, options and SHA-256; they are equal for equal tokenizers."""
        config = {"reverse": self.reverse, "true_case": self.true_case}
        return settings_of(self, self._checksum, config)

    def _model(self, **options: float) -> SentencepieceTokenizer:
        """Creates the SentencePiece op in the current graph.

        TF Text frees a model together with the kernel that has read it, and
        `tf.random.set_seed` destroys all eager kernels: a model that is read
        once and kept is lost ("Resource ... does not exist") when training
        sets the seed. In a loaded SavedModel TF Text finds a model by the name
        of its node, so each model has its own name scope.
        """
        text = tensorflow_text("SubwordTokenizer")
        with tf.name_scope(f"sentencepiece_{self._checksum[:16]}"):
            return text.SentencepieceTokenizer(
                self.model_proto, tf.int32, **options
            )

    def _read(self, strings: tf.Tensor) -> tf.Tensor:
        return true_cased(strings) if self.true_case else strings

    def _known(self, ids: tf.Tensor) -> tf.Tensor:
        """Replaces numbers that are not ids by `unk_id`."""
        known = (ids >= 0) & (ids < self.vocabulary_size)
        return tf.where(known, ids, self.unk_id)

    def _id_of(self, *names: str) -> int:
        tokens: list[bytes] = self._tokens.numpy().tolist()
        for name in names:
            if name.encode() in tokens:
                return tokens.index(name.encode())
        raise ValueError(
            f"SubwordTokenizer: the model has no piece {' or '.join(names)}."
        )


def _surfaces(tokens: list[bytes]) -> list[bytes]:
    """The bytes that each piece stands for; U+2581 becomes a blank."""
    surfaces = []
    for token in tokens:
        byte = BYTE.fullmatch(token)
        if byte:
            surfaces.append(bytes([int(byte[1], 16)]))
        else:
            surfaces.append(token.replace(BLANK, b" "))
    return surfaces


def _written(
    pieces: tf.RaggedTensor,
) -> tuple[tf.Tensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Joins pieces, without blanks at the begin; returns their offsets, too."""
    plain = tf.strings.regex_replace(
        pieces.values, "^ ", "", replace_global=False
    )
    lengths = pieces.with_values(tf.strings.length(plain))
    blank = tf.strings.length(pieces.values) - lengths.values  # 1 or 0
    starts, _ = spans(lengths, tf.zeros_like(lengths))
    blank = tf.where(starts.values == 0, 0, blank)
    texts = tf.strings.unsorted_segment_join(
        tf.where(blank == 1, " ", "") + plain,
        row_ids(pieces),
        pieces.nrows(),
    )
    # A JSON reply cannot hold bytes that are not valid UTF-8.
    valid = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", "replace")
    starts, ends = spans(lengths, pieces.with_values(blank))
    return valid, replaced_offsets(texts, starts), replaced_offsets(texts, ends)
