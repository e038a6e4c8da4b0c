"""Records of the registry: a public corpus, its downloads and parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field


@dataclass(frozen=True)
class Download:
    """A file to download.

    Attributes:
        address: Its URL.
        checksum: "sha256:" or "md5:" and hexadecimal digits; "" if unknown.
        size: Size in bytes; 0 if unknown.
    """

    address: str
    checksum: str = ""
    size: int = 0

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.address.rpartition("/")[2]


@dataclass(frozen=True)
class Text:
    """One side of a parallel text, within a download.

    Attributes:
        download: The file.
        member: The file's name in the archive; "" if it is not an archive.
        column: The column, from 0, of a tab-separated file; None if each line
            is a sentence.
    """

    download: Download
    member: str = ""
    column: int | None = None


@dataclass(frozen=True)
class Part:
    """A parallel text.

    Attributes:
        split: The split it belongs to, such as "train"; the parts of a split
            are joined in their order.
        source: The text in the first language.
        target: The text in the second language.
    """

    split: str
    source: Text
    target: Text


@dataclass(frozen=True)
class Corpus:
    """A public parallel corpus.

    Attributes:
        name: Its name, and that of its folder.
        languages: Codes of the two languages, also the files' extensions.
        summary: A short description.
        licence: Its licence, or that none is stated.
        citation: The reference to cite.
        homepage: The URL of its web page.
        parts: The texts it is made of.
        held_out: Number of sentences of each of a dev and a test set that are
            taken out of "train"; 0 if the corpus has its own.
        checksums: SHA-256 of its files when it is complete, if known.
        tried: The day on which its addresses last worked; "" if they were
            never tried.
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
        """Names of the files of the complete corpus."""
        return tuple(
            f"{split}.{language}"
            for split in self.splits
            for language in self.languages
        )
