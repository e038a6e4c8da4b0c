"""What a refusal must say, whatever the sentence around it."""

import re
from collections.abc import Callable

import pytest

from bahdanau_tf.commands.main import main


def says(message: str, words: str) -> None:
    """Asserts that a message has all words, in any order."""
    missing = [word for word in words.split() if word not in message]
    assert not missing, (missing, message)


def fails(captured: pytest.CaptureFixture[str], words: list[str], *parts: str) -> str:
    """Runs a command that must end with 2; the message, which has all parts."""
    assert main(words) == 2
    message = captured.readouterr().err
    for part in parts:
        assert part in message, (part, message)
    return message


def refused(call: Callable[[], object], *parts: str, by: type[Exception] = ValueError) -> str:
    """Calls what must be refused; the message, which has all parts, numbers as whole ones."""
    with pytest.raises(by) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        is_there = re.search(rf"\b{part}\b", message) if part.isdigit() else part in message
        assert is_there, (part, message)
    return message
