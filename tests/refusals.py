"""What a refusal must say, whatever the sentence around it."""

import re
from collections.abc import Callable

import pytest


def says(message: str, words: str) -> None:
    """Asserts that a message has all words, in any order."""
    missing = [word for word in words.split() if word not in message]
    assert not missing, (missing, message)


def refused(call: Callable[[], object], *parts: str, by: type[Exception] = ValueError) -> str:
    """Calls what must be refused; the message, which has all parts, numbers as whole ones."""
    with pytest.raises(by) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        is_there = re.search(rf"\b{part}\b", message) if part.isdigit() else part in message
        assert is_there, (part, message)
    return message
