"""Learns sub-words with SentencePiece's trainer."""

from __future__ import annotations

import io
import itertools
import os
import re
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from typing import TypedDict

from bahdanau_tf.system.files import full_disk_named
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import counted
from bahdanau_tf.text.normalization import FULL_WIDTH
from bahdanau_tf.text.normalization import without_rules_path
from bahdanau_tf.text.tokenizer import line_batches
from bahdanau_tf.text.true_case import true_cased
from bahdanau_tf.text.vocabulary import END
from bahdanau_tf.text.vocabulary import PAD
from bahdanau_tf.text.vocabulary import UNK


class Options(TypedDict, total=False):
    """Options of SentencePiece's trainer."""

    vocab_size: int
    model_type: str
    byte_fallback: bool
    input_sentence_size: int
    normalization_rule_name: str
    normalization_rule_tsv: str


def learned(
    files: Iterable[str | os.PathLike[str]],
    true_cased_files: Iterable[str | os.PathLike[str]],
    options: Options,
) -> bytes:
    """Lets SentencePiece learn a model and returns its bytes.

    Args:
        files: UTF-8 text, one sentence per line.
        true_cased_files: The same; their lines are learned as `true_cased`
            writes them.
        options: Options of the trainer; "normalization_rule_tsv" is the text
            of the rules, not a path.

    Raises:
        ValueError: A file is not UTF-8 text, or the trainer refuses.
    """
    import sentencepiece

    files, true_cased_files = [*files], [*true_cased_files]
    model = io.BytesIO()
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
                model_writer=model,
                character_coverage=1.0,
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
            why = _why(error, [*true_cased_files, *files], options)
            raise ValueError(f"SubwordTokenizer.train: {why}") from error
    return without_rules_path(model.getvalue())


def _why(
    error: RuntimeError,
    files: list[str | os.PathLike[str]],
    options: Options,
) -> str:
    """SentencePiece's error in terms of our arguments."""
    if "sentences_.empty()" in str(error):
        names = " and ".join(os.fspath(file) for file in files)
        return f"no line of 1 to 4,192 bytes to learn from in {names}"
    found = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
    if found is None:
        return str(error)
    return (
        f"vocabulary_size is {options['vocab_size']}, wanted {found[1]} or "
        "more: the number of characters of the text, bytes and special symbols"
    )


def has_full_width(files: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether a text has full-width forms of ASCII."""
    lines = itertools.chain.from_iterable(map(read_lines, files))
    return any(FULL_WIDTH.search(line) for line in lines)


def _lines(
    files: Iterable[str | os.PathLike[str]],
    true_cased_files: Iterable[str | os.PathLike[str]],
    unread: list[ValueError],
) -> Iterator[str]:
    """The lines to learn from; a ValueError is also added to `unread`.

    SentencePiece replaces an exception of the iterator by its own.
    """
    try:
        for strings in line_batches(true_cased_files):
            yield from (x.decode() for x in true_cased(strings).numpy())
        for path in files:
            yield from counted(read_lines(path), os.fspath(path))
    except ValueError as error:
        unread.append(error)
        raise
