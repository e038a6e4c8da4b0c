"""What a refusal must say, whatever the sentence around it."""

import re
from collections.abc import Callable

import pytest


def refused(call: Callable[[], object], *parts: str, by: type[Exception] = ValueError) -> str:
    """Calls what must be refused; the message, which has all parts, numbers as whole ones."""
    with pytest.raises(by) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        is_there = re.search(rf"\b{part}\b", message) if part.isdigit() else part in message
        assert is_there, (part, message)
    return message
