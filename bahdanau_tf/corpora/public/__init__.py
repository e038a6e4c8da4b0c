"""Public parallel corpora: address, checksum, licence and citation of each, of corpora.json.

GitHub addresses name a commit, from which their checksums were computed. Checksums of the WMT
archives are those of TensorFlow Datasets (url_checksums) and, for the test set, of sacreBLEU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Download:
    """A file to download."""

    address: str
    checksum: str = ""  # "sha256:" or "md5:" and hexadecimal digits; "" if unknown
    size: int = 0  # in bytes; 0 if unknown

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Text:
    """One side of a parallel text, within a download."""

    download: Download
    member: str = ""  # its name in the archive; "" if the file is not an archive
    column: int | None = None  # from 0, of a tab-separated file; None if each line is a sentence


@dataclass(frozen=True)
class Part:
    """A parallel text of a split such as "train"; the parts of a split are concatenated."""

    split: str
    source: Text
    target: Text


@dataclass(frozen=True)
class Corpus:
    """A public parallel corpus; its folder has its name."""

    name: str
    languages: tuple[str, str]  # codes, which are also the files' extensions
    summary: str
    licence: str  # or "none stated"
    citation: str
    homepage: str
    parts: tuple[Part, ...]
    held_out: int = 0  # size of dev and of test, taken out of "train"; 0 if it has its own
    checksums: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of its files, if known
    tried: str = ""  # the day on which its addresses last worked; "" if they were never tried

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The files to fetch, each once."""
        texts = [t for part in self.parts for t in (part.source, part.target)]
        return tuple(dict.fromkeys(text.download for text in texts))

    @property
    def splits(self) -> tuple[str, ...]:
        splits = ("train", "dev", "test") if self.held_out else (x.split for x in self.parts)
        return tuple(dict.fromkeys(splits))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{split}.{language}" for split in self.splits for language in self.languages)


def _corpus(entry: dict[str, Any]) -> Corpus:
    """The corpus of an entry of corpora.json, whose texts name their downloads."""
    downloads = {file.name: file for file in (Download(**x) for x in entry.pop("downloads"))}

    def text(download: str, **place: Any) -> Text:
        return Text(downloads[download], **place)

    languages = tuple(entry.pop("languages"))
    parts = (Part(x["split"], text(**x["source"]), text(**x["target"])) for x in entry.pop("parts"))
    return Corpus(languages=languages, parts=tuple(parts), **entry)


_TABLE = json.loads(files("bahdanau_tf.corpora.public").joinpath("corpora.json").read_text("utf-8"))
CORPORA = {corpus.name: corpus for corpus in map(_corpus, _TABLE)}


def find_corpus(name: str) -> Corpus:
    """The corpus with this name; the ValueError for another one lists all names."""
    if name not in CORPORA:
        raise ValueError(f"no corpus {name!r}, wanted one of {', '.join(CORPORA)}")
    return CORPORA[name]
