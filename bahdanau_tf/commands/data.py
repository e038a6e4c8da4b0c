"""Lists the public corpora, or downloads one of them.

    bahdanau-tf data list
    bahdanau-tf data get NAME

After `get` the folder NAME in --data_dir has a file SPLIT.LANGUAGE for each
side of each split, such as train.en; `train` reads them by name:

    bahdanau-tf train --data_dir=.../NAME --model_dir=model
        --train_source=train.en --train_target=train.fr

A recipe for a corpus names them itself. If a download breaks off, run the command again to continue
it. A file that you downloaded by hand is used if it is in --data_dir.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import Group
from bahdanau_tf.commands.help import wrapped
from bahdanau_tf.commands.train import DATA_VARIABLE
from bahdanau_tf.corpora.public import CORPORA, Corpus, find_corpus
from bahdanau_tf.corpora.public.assembly import get_corpus, missing_files
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.terminal import StatusLine

ARGUMENTS = (("list", "get"), tuple(CORPORA))


@dataclass(frozen=True)
class _Files(OptionGroup):
    data_dir: str | None = option(
        "folder for the folder of the corpus; default: the environment variable "
        f"{DATA_VARIABLE}, else the current folder"
    )


GROUPS = (Group(_Files),)


def needs_tensorflow(*_: object) -> bool:
    """It does not."""
    return False


def check(flags: absl_flags.FlagValues, arguments: Sequence[str]) -> None:
    """Raises unless the arguments are "list", or "get" and a name."""
    del flags
    if list(arguments) != ["list"] and [*arguments[:-1]] != ["get"]:
        command = " ".join(["data", *arguments])
        raise ValueError(f"the command is {command!r}, wanted 'data list' or 'data get NAME'")


def run(flags: absl_flags.FlagValues, arguments: Sequence[str]) -> None:
    """Runs the command."""
    data_dir = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, "."))
    match list(arguments):
        case ["list"]:
            for corpus in CORPORA.values():
                print(_description(corpus, data_dir), end="\n\n")
        case ["get", name]:
            corpus = find_corpus(name)
            StatusLine().note(
                f"{name}: licence: {corpus.licence}. Please cite: {corpus.citation}. "
                f"Addresses: {_tried(corpus)}."
            )
            print(get_corpus(corpus, data_dir))


def _description(corpus: Corpus, data_dir: Path) -> str:
    folder = data_dir / corpus.name
    there = folder.is_dir() and not missing_files(corpus, folder)
    sizes = [download.size for download in corpus.downloads]
    over = "" if all(sizes) else "over "
    paragraphs = [corpus.summary, f"splits: {', '.join(corpus.splits)}"]
    paragraphs += [f"{n}: {getattr(corpus, n)}" for n in ("licence", "citation", "homepage")]
    lines = [
        f"{corpus.name} ({'-'.join(corpus.languages)}"
        + (f", {over}{sum(sizes) / 1e6:,.1f} MB to download" if any(sizes) else "")
        + (f", is in {folder})" if there else ")")
    ]
    for paragraph in paragraphs:
        lines += wrapped("  ", paragraph, 4, 79)
    for download in corpus.downloads:
        algorithm = download.checksum.partition(":")[0] or "no checksum known"
        lines.append(f"  {_tried(corpus)}, {algorithm}: {download.address}")
    return "\n".join(lines)


def _tried(corpus: Corpus) -> str:
    return f"worked on {corpus.tried}" if corpus.tried else "untried"
