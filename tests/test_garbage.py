"""Python's garbage collector rests where it is told to, and only there."""

import gc
import weakref

import pytest

from bahdanau_tf.system.terminal import uncollected


class Loop:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def test_nothing_is_collected_inside_and_all_afterwards():
    with uncollected():
        loop = weakref.ref(Loop())
        for _ in range(5):
            _ = [[] for _ in range(100_000)]
        assert loop() is not None
    gc.collect()
    assert loop() is None


def test_the_collector_is_as_before():
    with pytest.raises(ValueError, match="no"), uncollected():
        raise ValueError("no")
    assert gc.isenabled()
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
