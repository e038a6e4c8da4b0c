"""Pairs in one file: a table of two columns, and formats that are refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import amount

SIDES = ("source", "target")
_JSON = (
    "`jq -r .en FILE` writes the field en of each line, if it is called so, "
    "and likewise the other side; or make a .tsv file as in docs/train.md"
)
_XML = "docs/train.md has the lines of Python that make a .tsv file of it"
_TABLE = "save its two columns as a .tsv file, which --train_source (or --dev_source) alone reads"
OTHERS = {
    **dict.fromkeys((".jsonl", ".ndjson"), _JSON),
    **dict.fromkeys((".tmx", ".xlf", ".xliff"), _XML),
    **dict.fromkeys((".csv", ".xlsx", ".parquet"), _TABLE),
}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of tab-separated values, plain or .gz."""
    return _ending(path) == ".tsv"


def check_is_text(flag: str, path: str) -> None:
    """Raises if a file is named after a format that holds both sides.

    Args:
        flag: "train_source" and the like.
        path: The file.

    Raises:
        ValueError: The message says how to make two text files of it.
    """
    if how := OTHERS.get(_ending(path)):
        raise ValueError(
            f"--{flag}: {path} is no plain text, wanted a sentence of one side in each line; {how}"
        )


def _ending(path: str | os.PathLike[str]) -> str:
    return Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def column_paths(model_dir: Path, name: str) -> dict[str, str]:
    """Where `write_columns` writes the two columns, by flag."""
    folder = _folder(model_dir, name)
    return {f"{name}_{side}": str(folder / side) for side in SIDES}


def _folder(model_dir: Path, name: str) -> Path:
    return model_dir / f"{name}_columns"


def write_columns(table: str, model_dir: Path, name: str) -> None:
    """Writes the columns of a table as two text files.

    Args:
        table: The file.
        model_dir: The folder of the training.
        name: "train" or "dev".

    Raises:
        ValueError: A line has not two columns, or is not UTF-8.
        OSError: A file cannot be read or written.
    """
    with replaced_directory(_folder(model_dir, name)) as new:
        source, target = (new / side for side in SIDES)
        with (
            open(source, "w", encoding="utf-8", newline="\n") as sources,
            open(target, "w", encoding="utf-8", newline="\n") as targets,
        ):
            for pair in _rows(table, name):
                sources.write(f"{pair[0]}\n")
                targets.write(f"{pair[1]}\n")


def check_columns(table: str, model_dir: Path, name: str) -> None:
    """Checks that `write_columns` has written the columns of this table.

    Raises:
        ValueError: They are of another one, or there are none.
        OSError: A file cannot be read.
    """
    written = column_paths(model_dir, name).values()
    if not all(map(os.path.exists, written)):
        raise ValueError(
            f"--{name}_source is {table}, but the training in {model_dir} "
            "began without this table; leave it out to go on, or name another "
            "folder"
        )
    pairs = zip(*map(read_lines, written), strict=True)
    if any(a != b for a, b in zip_longest(_rows(table, name), pairs)):
        raise ValueError(
            f"--{name}_source: {table} has other pairs than when the training "
            f"in {model_dir} began; give those, or name another folder"
        )


def _rows(table: str, name: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(table), 1):
        cells = line.split("\t") if line.strip() else ["", ""]
        if len(cells) != len(SIDES):
            raise ValueError(
                f"--{name}_source: {table}, line {number} has "
                f"{amount(len(cells), 'column')}, wanted two, a sentence and "
                "its translation with a tab between them; `cut -f1,2` makes a "
                "file of the first two columns"
            )
        yield cells[0].rstrip("\r"), cells[1]
