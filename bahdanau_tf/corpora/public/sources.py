"""What the registry says of a public corpus: its downloads and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field


@dataclass(frozen=True)
class Download:
    """A file to fetch.

    Attributes:
        address: Where it lies.
        checksum: "sha256:" or "md5:" and hexadecimal digits; "" if not known.
        size: Bytes; 0 if not known.
    """

    address: str
    checksum: str = ""
    size: int = 0

    @property
    def name(self) -> str:
        """What the file is called."""
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Text:
    """One side of a parallel text, within a download.

    Attributes:
        download: The file.
        member: The file's name in an archive; "" if there is no archive.
        column: The column, from 0, of a tab-separated file; None if a line is
            a sentence.
    """

    download: Download
    member: str = ""
    column: int | None = None


@dataclass(frozen=True)
class Part:
    """A parallel text.

    Attributes:
        split: What it belongs to, such as "train"; parts of one split follow
            one another.
        source: The first language.
        target: The second language.
    """

    split: str
    source: Text
    target: Text


@dataclass(frozen=True)
class Corpus:
    """A public parallel corpus.

    Attributes:
        name: Its name, and that of its folder.
        languages: Codes of the two languages, the ends of the files' names.
        summary: What it is.
        licence: Its licence, or that none is stated.
        citation: What to cite.
        homepage: Where to read about it.
        parts: What it is made of.
        held_out: Sentences of a dev and of a test set that are taken out of
            "train", for a corpus that is not divided.
        checksums: SHA-256 of the files it has when it is whole, where known.
        tried: The day on which its addresses were last seen to work; "" if
            they were never tried.
    """

    name: str
    languages: tuple[str, str]
    summary: str
    licence: str
    citation: str
    homepage: str
    parts: tuple[Part, ...]
    held_out: int = 0
    checksums: Mapping[str, str] = field(default_factory=dict)
    tried: str = ""

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The files to fetch, each once."""
        texts = [t for part in self.parts for t in (part.source, part.target)]
        return tuple(dict.fromkeys(text.download for text in texts))

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        if self.held_out:
            return ("train", "dev", "test")
        return tuple(dict.fromkeys(part.split for part in self.parts))

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files the corpus has when it is whole."""
        return tuple(
            f"{split}.{language}"
            for split in self.splits
            for language in self.languages
        )
