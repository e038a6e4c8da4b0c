"""Sub-words are learned: SentencePiece's trainer, and what it says."""

from __future__ import annotations

import io
import itertools
import os
import re
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from bahdanau_tf.progress import counted
from bahdanau_tf.text.normalization import FULL_WIDTH
from bahdanau_tf.text.normalization import without_rules_path
from bahdanau_tf.text.vocabulary import END
from bahdanau_tf.text.vocabulary import PAD
from bahdanau_tf.text.vocabulary import UNK
from bahdanau_tf.text_files import read_lines


class Options(TypedDict, total=False):
    """What SentencePiece's trainer is told."""

    vocab_size: int
    model_type: str
    byte_fallback: bool
    input_sentence_size: int
    normalization_rule_name: str
    normalization_rule_tsv: str


def learned(files: Iterable[str | os.PathLike[str]], options: Options) -> bytes:
    """Has SentencePiece learn a model; rules are given as text.

    Raises:
        ValueError: A file is no text, or the trainer refuses.
    """
    import sentencepiece

    model = io.BytesIO()
    unread: list[ValueError] = []
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.tsv")
        if "normalization_rule_tsv" in options:
            rules.write_text(options["normalization_rule_tsv"], "utf-8")
            options = options | {"normalization_rule_tsv": str(rules)}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_lines(files, unread),
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
            raise ValueError(
                f"SubwordTokenizer.train: {_why(error, options)}"
            ) from error
    return without_rules_path(model.getvalue())


def _why(error: RuntimeError, options: Options) -> str:
    """What SentencePiece found wrong; it names no argument of ours."""
    if "sentences_.empty()" in str(error):
        return "the text has no line of 1 to 4,192 bytes to learn from"
    found = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
    if found is None:
        return str(error)
    return (
        f"vocabulary_size is {options['vocab_size']}, wanted {found[1]} or "
        "more: so many are the characters of the text, the bytes and the "
        "special symbols"
    )


def has_full_width(files: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether a text has letters or digits of full width."""
    lines = itertools.chain.from_iterable(map(read_lines, files))
    return any(FULL_WIDTH.search(line) for line in lines)


def _lines(
    files: Iterable[str | os.PathLike[str]], unread: list[ValueError]
) -> Iterator[str]:
    """The lines of files; SentencePiece garbles an error, so it is kept."""
    try:
        for path in files:
            yield from counted(read_lines(path), os.fspath(path))
    except ValueError as error:
        unread.append(error)
        raise
