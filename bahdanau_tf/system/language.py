"""The language of drawings, exercises and the progress of training: English, Korean or Japanese."""

from __future__ import annotations

import functools
import locale
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files

_used = "en"  # by `set_language`
_PLACE = re.compile(r"\\\{(\w*)\\\}")  # {} or {name}, escaped
_here: ContextVar[str | None] = ContextVar("language", default=None)  # by `in_language`


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    """For each language its texts by the English ones: the columns of texts.tsv."""
    table = files("bahdanau_tf.system").joinpath("texts.tsv").read_text("utf-8")
    languages, *rows = (line.split("\t") for line in table.rstrip("\n").split("\n"))
    rows = [[cell.replace("\\n", "\n") for cell in row] for row in rows]
    return {name: {row[0]: row[i] for row in rows} for i, name in enumerate(languages)}


def set_language(language: str | None = None) -> None:
    """Sets the language of all drawings (views, tables, traces, trees, figures) and `exercises`.

    The tables and the progress of a training also follow it; reasons for options, advice and errors
    stay in English. A drawing's own `language` takes precedence. It is English until this is
    called, whatever the locale, so that a notebook draws the same everywhere.

    Args:
        language: "en", "ko" or "ja"; None for the locale's, or English if that is another one.

    Raises:
        ValueError: There are no texts in this language.
    """
    global _used
    if language is None:
        of_locale = (locale.getlocale()[0] or "")[:2].lower()  # of ko_KR or Korean_Korea
        language = of_locale if of_locale in _texts() else "en"
    with in_language("set_language", language):
        _used = language


@contextmanager
def in_language(user: str, language: str | None) -> Iterator[None]:
    """Within it, texts are in this language; None changes nothing.

    A ValueError that begins with `user` says that there are no texts in this language.
    """
    if language not in (None, *_texts()):
        raise ValueError(f"{user}: language is {language!r}, wanted one of {', '.join(_texts())}")
    token = _here.set(language or _here.get())
    try:
        yield
    finally:
        _here.reset(token)


def in_use() -> str:
    """The language of texts here: "en", "ko" or "ja"."""
    return _here.get() or _used


def said(english: str) -> str:
    """The text in the language in use; itself if there is none."""
    return _texts()[in_use()].get(english, english)


def in_all_languages(english: Iterable[str]) -> dict[str, dict[str, str]]:
    """Some texts in each language, by the English ones."""
    return {name: {text: texts[text] for text in english} for name, texts in _texts().items()}


def localized(message: str) -> str:
    """A finished message in the language in use; itself if no text with places is like it."""
    for pattern, text in _messages(in_use()):
        if match := pattern.fullmatch(message):
            return text.format(*match.groups(), **match.groupdict())
    return message


@functools.cache
def _messages(language: str) -> list[tuple[re.Pattern[str], str]]:
    """The English texts as patterns, whose places are filled by words without spaces."""
    texts = _texts()[language].items() if language != "en" else ()

    def word(place: re.Match[str]) -> str:
        return rf"(?P<{place[1]}>\S+)" if place[1] else r"(\S+)"

    return [
        (re.compile(_PLACE.sub(word, re.escape(english))), text)
        for english, text in texts
        if "{:" not in english  # of a number, not of its digits
    ]
