"""Lines whose translations are known, and need not be searched."""

from __future__ import annotations

import json
import re
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.training import PRETRAINED
from bahdanau_tf.system.files import read_object, write_atomically
from bahdanau_tf.system.ranges import OptionError
from bahdanau_tf.translation.batches import Sentences, Work, columns_of, decoded, strings
from bahdanau_tf.translation.result import Translation

MEMORY = "memory.json"
END = re.compile(r"[ \u00a0\u202f]*[.!?。！？]$")
CURLY = str.maketrans("‘’“”", "''\"\"")
ACRONYM = 3  # letters of a word alone in capitals that is perhaps no common word


class TranslationMemory(UserDict[str, str]):
    """A dict of lines and their translations.

    A line that it lacks is found if it differs in capitals or curly quotes alone, or in the mark at
    its end: without one, it has the translation of a line with . ! or ?, and ! stands for a full
    stop as well. The translation has the capital and the mark of the line that is looked up, the
    latter as in the memory's first translation of such a line. A word alone is not found if it may
    be another one: turkey for Turkey, US for us.
    """

    def __init__(self, lines: Mapping[str, str] | None = None) -> None:
        self._forms: dict[str, str] = {}  # in lower case, and the lines
        self._ends: dict[str, str] = {}  # of lines, and those of their translations
        super().__init__(lines)

    @classmethod
    def of(cls, lines: object) -> TranslationMemory:
        """A memory of a dict; raises ValueError unless it is one of strings."""
        if isinstance(lines, TranslationMemory):
            return lines
        wanted = "a dict of lines and their translations"
        if not isinstance(lines, Mapping):
            raise OptionError("Translator", "memory", lines, wanted)
        for line, translation in lines.items():
            if not (isinstance(line, str) and isinstance(translation, str)):
                raise OptionError("Translator", "memory", {line: translation}, wanted)
        return cls(lines)

    def __setitem__(self, line: str, translation: str) -> None:
        self.data[line] = translation
        self._forms.setdefault(line.translate(CURLY).lower(), line)
        if line[-1:] in ".!?" and (end := END.search(translation)):
            self._ends.setdefault(line[-1:], end[0])

    def __contains__(self, line: object) -> bool:
        return isinstance(line, str) and self._found(line) is not None

    def __getitem__(self, line: str) -> str:
        if (found := self._found(line)) is None:
            raise KeyError(line)
        translation = self.data[found]
        if line[-1:] != found[-1:]:
            translation = self._ended(translation, line, found)
        if line[:1].isupper() and found[:1].islower():
            translation = translation[:1].upper() + translation[1:]
        return translation

    def _found(self, line: str) -> str | None:
        """The line of the memory that is meant by a line."""
        if line in self.data:
            return line
        typed = line.translate(CURLY)
        for form in self._similar(typed.lower()):
            found = self._forms.get(form)
            if found in self.data and _is_same(typed, found):
                return found
        return None

    def _similar(self, line: str) -> Iterator[str]:
        """Forms of a line in lower case, the most similar first."""
        yield line
        body, end = line[:-1], line[-1:]
        if end not in [*".!?。！？…", ""]:
            yield from (line + mark for mark in ".?!")
        elif end == "!" in self._ends and body[-1:] not in [*".!?"]:
            yield body + "."

    def _ended(self, translation: str, line: str, found: str) -> str:
        """A translation with the mark of a line, in place of that of the line that was found."""
        if line.endswith("!"):
            return END.sub("", translation) + self._ends["!"]
        return END.sub("", translation) if found.endswith(".") else translation


def _is_same(line: str, found: str) -> bool:
    """Whether a line means a line of the memory that differs from it in capitals, or in its end."""
    if " " in found or line == found:
        return True
    letters = sum(map(str.isalpha, line))
    if found.isupper() or (line.isupper() and 1 < letters <= ACRONYM):
        return found.isupper() and line.isupper()
    is_name = found[:1].isupper() and found[-1:].isalnum()
    return line[:1].isupper() or not is_name


def in_use(memory: Mapping[str, str], decoding: Decoding, *others: object) -> Mapping[str, str]:
    """The memory, unless a search is asked for, or another option that does not go with it."""
    return {} if any(others) or decoding.n_best > 1 or decoding.sampling else memory


def write_memory(folder: Path, memory: TranslationMemory) -> None:
    """Writes a memory that has lines, in a folder of a translator."""
    if memory:
        lines = json.dumps(memory.data, ensure_ascii=False, indent=0)
        write_atomically(folder / MEMORY, f"{lines}\n".encode())


def read_memory(folder: Path) -> TranslationMemory:
    """What `write_memory` wrote, if anything; raises ValueError for a damaged file."""
    path = folder / MEMORY
    return TranslationMemory.of(read_object(path) if path.is_file() else {})


def phrases(source: str, target: str) -> TranslationMemory:
    """The lines that the translators in the package have read, in two of their languages."""
    sides = (
        Path(str(PRETRAINED), f"phrases.{side}").read_text("utf-8").rstrip("\n").split("\n")
        for side in (source, target)
    )
    return TranslationMemory(dict(zip(*sides, strict=True)))


def given(sources: Sequence[str], targets: Sequence[str]) -> Iterable[Translation]:
    """Translations of which only the text is known."""
    return map(Translation, sources, targets)


def with_known(
    work: Work,
    known: Callable[[str], str | None],
    given: Callable[[Sequence[str], Sequence[str]], Iterable[Translation]] = given,
) -> Work:
    """A function that takes translations that are `known`, and translates other lines by `work`.

    Lines with a prefix are translated. Spaces at the ends of a line do not count. What is known is
    as `given` makes it of lines and texts.
    """

    def translate(
        decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
    ) -> Iterable[Translation]:
        columns = strings("Translator.translate", columns_of(sentences, prefixes))
        lines = columns["sentences"]
        rows = [*zip(lines, columns.get("prefixes", [""] * len(lines)), strict=True)]
        texts = [decoded(line) for line in lines]
        answers = [None if row[1] else known(x.strip()) for x, row in zip(texts, rows, strict=True)]
        new = [row for row, answer in zip(rows, answers, strict=True) if answer is None]
        lines, starts = ([row[side] for row in new] for side in (0, 1))
        searched = iter(work(decoding, lines, starts if any(starts) else None))
        pairs = [
            (x, answer) for x, answer in zip(texts, answers, strict=True) if answer is not None
        ]
        found = iter(given(*map(list, zip(*pairs, strict=True)))) if pairs else iter(())
        return (next(searched if answer is None else found) for answer in answers)

    return translate
