"""What a training keeps of each update."""

import ctypes
import gc
import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from bahdanau_tf.data.dataset import Position
from bahdanau_tf.options import Recipe
from bahdanau_tf.training.callbacks import LearningRate
from bahdanau_tf.training.checkpoints import State
from bahdanau_tf.training.schedule import Schedule, make_optimizer

CALLS = 400
# TensorFlow kept some 700 bytes for a number, and grows its table in steps.
MOST = 100  # bytes a call


class Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@pytest.fixture
def allocated() -> Callable[[], int]:
    """The bytes that are allocated, also outside of Python."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("the C library has no mallinfo2 (glibc 2.33)")
    library.mallinfo2.restype = Mallinfo

    def read() -> int:
        gc.collect()
        heap = library.mallinfo2()
        return int(heap.uordblks + heap.hblkhd)

    return read


def grown(allocated: Callable[[], int], call: Callable[[], object]) -> float:
    """Bytes that a call leaves, on average of many."""
    for _ in range(100):
        call()
    before = allocated()
    for _ in range(CALLS):
        call()
    return (allocated() - before) / CALLS


def test_the_state_keeps_nothing_of_an_update(allocated):
    state, costs = State(), itertools.count(0.25)

    def advance() -> None:
        cost = next(costs)
        state.advance(Position(0, 0, 0, 0), cost, 2 * cost)

    assert grown(allocated, advance) < MOST


def test_a_rate_that_follows_the_time_leaves_nothing(allocated):
    recipe = Recipe(learning_rate=1.0, schedule="linear", warmup_steps=1, minutes=1)
    schedule, steps = Schedule(recipe, 100), itertools.count(1)
    schedule.share = lambda step: step / (step + 1)  # type: ignore[method-assign]
    optimizer = make_optimizer(recipe, schedule)
    run = SimpleNamespace(schedule=schedule, step=1)
    callback = LearningRate(run)

    def follow() -> None:
        run.step = next(steps)
        callback.on_train_batch_begin(0)

    assert grown(allocated, follow) < MOST
    optimizer.iterations.assign(run.step)
    share = run.step / (run.step + 1)
    assert float(optimizer.learning_rate) == pytest.approx(1 - 0.98 * (2 * share - 1), rel=1e-3)
