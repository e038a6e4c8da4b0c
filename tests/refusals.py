"""What a refusal must say, whatever the sentence around it."""

from collections.abc import Callable

import pytest


def refused(call: Callable[[], object], *parts: str, by: type[Exception] = ValueError) -> str:
    """Calls what must be refused; the message, which has all parts."""
    with pytest.raises(by) as caught:
        call()
    message = str(caught.value)
    for part in parts:
        assert part in message
    return message
