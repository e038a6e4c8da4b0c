"""Exercises on the paper's equations that check themselves.

```python
from bahdanau_tf import exercises


def my_context(alpha, h):
    return h.mean(0)


exercises.check("context", my_context)  # says which mistake this is
```

The notebook `10_exercises` states what each function is to compute, and has an answer to each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bahdanau_tf.system.language import said

__all__ = ["Verdict", "check", "names"]


class Verdict(NamedTuple):
    """What `check` found; a notebook shows the message, in the language of `set_language`."""

    is_right: bool
    message: str

    def __bool__(self) -> bool:  # a tuple would always be true
        return self.is_right

    def __repr__(self) -> str:
        return self.message


class _Exercise(NamedTuple):
    """A function to write.

    Attributes:
        answer: Computes it as the paper does.
        cases: Arguments to try, one tuple after another.
        mistakes: Typical wrong functions, by what a learner should read of them.
    """

    answer: Callable[..., Any]
    cases: Sequence[tuple[Any, ...]]
    mistakes: dict[str, Callable[..., Any]]


def names() -> list[str]:
    """The exercises, in the order in which the notebook has them."""
    return [*_EXERCISES]


def check(name: str, function: Callable[..., Any]) -> Verdict:
    """Tries a function on some arguments and compares it with the paper's equation.

    Args:
        name: The exercise, one of `names()`.
        function: Your function, of NumPy arrays.

    Returns:
        A `Verdict`, whose message names the mistake if it is a common one.

    Raises:
        ValueError: There is no such exercise, or `function` cannot be called.
    """
    if name not in _EXERCISES:
        raise ValueError(f"check: name is {name!r}, wanted one of {', '.join(_EXERCISES)}")
    if not callable(function):
        raise ValueError(f"check: function is {function!r}, wanted your function")
    for case in _EXERCISES[name].cases:
        if message := _wrong(_EXERCISES[name], case, function):
            return Verdict(False, f"{name}: {message}")
    return Verdict(True, said("{name} is right.").format(name=name))


def _array(result: Any) -> Any:
    """What a function returned: numbers, or pairs in an order of their own if they are a set."""
    pairs = sorted(result) if isinstance(result, set | frozenset) else result
    return np.asarray(pairs, np.float64)


def _wrong(exercise: _Exercise, case: tuple[Any, ...], function: Callable[..., Any]) -> str:
    """What is wrong with a function, by its result for a case; "" if nothing is."""
    # Copies, so that a function that changes its arguments changes nothing here.
    arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in case]
    try:
        with np.errstate(all="ignore"):
            value = function(*arguments)
    except Exception as error:  # of any kind, since it is a learner's
        return said("the function raised {error}").format(error=f"{type(error).__name__}: {error}")
    if value is None:
        return said("the function returned nothing. Does it end with `return`?")
    try:
        result = _array(value)
    except (TypeError, ValueError):
        return said("the function returned {value}, wanted numbers.").format(value=repr(value))
    return _difference(exercise, case, result)


def _difference(exercise: _Exercise, case: tuple[Any, ...], result: Any) -> str:
    """How a result differs from the answer's; "" if it does not."""
    if np.isnan(result).any():
        return said("the result has NaN, not a number: did exp overflow, or is 0 divided by 0?")
    wanted = _array(exercise.answer(*case))
    if _equal(result, wanted):
        return ""
    for hint, mistake in exercise.mistakes.items():
        with np.errstate(all="ignore"):
            if _equal(result, _array(mistake(*case))):
                return said(hint)
    if result.shape != wanted.shape:
        text = said("the result has shape {shape}, wanted {wanted}.")
        return text.format(shape=result.shape, wanted=wanted.shape)
    place = np.unravel_index(np.argmax(~np.isclose(result, wanted, 1e-4, 1e-6)), result.shape)
    numbers = {"value": f"{result[place]:.4f}", "wanted": f"{wanted[place]:.4f}"}
    if not place:
        return said("you have {value}, wanted {wanted}.").format(**numbers)
    text = said("you have {value} at {place}, wanted {wanted}.")
    return text.format(place=[int(x) for x in place], **numbers)


def _equal(first: Any, second: Any) -> bool:
    """Whether both have the same shape, and the same numbers within float32's rounding."""
    return first.shape == second.shape and np.allclose(first, second, 1e-4, 1e-6)


def _score(s: Any, h: Any, w: Any, u: Any, v: Any) -> Any:
    """e_j = v_a^T tanh(W_a s + U_a h_j), appendix A.1.2."""
    return np.tanh(w @ s + h @ u.T) @ v


def _weights(e: Any, mask: Any) -> Any:
    """α_j = exp(e_j) / Σ_k exp(e_k) over the words, eq. 6; 0 at padding."""
    powers = np.exp(e - e[mask].max()) * mask
    return powers / powers.sum()


def _context(alpha: Any, h: Any) -> Any:
    """c = Σ_j α_j h_j, eq. 5."""
    return alpha @ h


def _gated_unit(
    x: Any, s: Any, w: Any, u: Any, *, swap: bool = False, reset: str = "before"
) -> Any:
    """s_i = (1 - z) s_{i-1} + z tanh(W x + U (r s_{i-1})), appendix A.1.1.

    `w` and `u` hold the matrices of z, r and the candidate.
    """
    z, r = (1 / (1 + np.exp(-(w[n] @ x + u[n] @ s))) for n in (0, 1))
    seen = {"before": u[2] @ (r * s), "after": r * (u[2] @ s), "never": u[2] @ s}[reset]
    candidate = np.tanh(w[2] @ x + seen)
    return z * s + (1 - z) * candidate if swap else (1 - z) * s + z * candidate


def _maxout(t: Any) -> Any:
    """t_j = max(t~_{2j-1}, t~_{2j}), appendix A.2.2."""
    return t.reshape(-1, 2).max(1)


def _beam_step(so_far: Any, log_p: Any, k: int) -> Any:
    """(hypothesis, word) of the k best continuations, best first."""
    order = np.argsort(-(so_far[:, None] + log_p), axis=None)
    return [divmod(int(n), log_p.shape[1]) for n in order[:k]]


def _bleu(
    hypothesis: str,
    reference: str,
    *,
    clip: bool = True,
    mean: Callable[[Any], Any] = lambda p: np.exp(np.log(p).mean()),
    brevity: Callable[[int, int], float] = lambda c, r: min(1.0, math.exp(1 - r / c)),
) -> float:
    """100 min(1, exp(1 - r/c)) (p_1 p_2 p_3 p_4)^(1/4), Papineni et al. 2002."""
    words, wanted = hypothesis.split(), reference.split()
    precisions = []
    for n in range(1, 5):
        of_both = (Counter(zip(*(x[i:] for i in range(n)))) for x in (words, wanted))  # noqa: B905
        counts, allowed = of_both
        hits = (min(c, allowed[g]) if clip else c * (g in allowed) for g, c in counts.items())
        precisions.append(sum(hits) / counts.total())
    return float(100 * brevity(len(words), len(wanted)) * mean(np.array(precisions)))


def _links(alpha: Any) -> Any:
    """(source word, target word) for each target word; the last row and column are end symbols."""
    return {(int(row[:-1].argmax()), i) for i, row in enumerate(alpha[:-1])}


def _distances(length: int) -> Any:
    """Steps from reading source word j to writing target word j, the source being reversed."""
    return [(length + j) - (length - 1 - j) for j in range(length)]


def _leak(e: Any, length: int) -> float:
    """Σ_j α_j over the padding, if the softmax has no mask."""
    powers = np.exp(e - e.max())
    return float(powers[length:].sum() / powers.sum())


_normal = np.random.default_rng(2015).standard_normal
_BLEU = [
    ("the cat sat on the mat today", "the cat sat on the mat"),
    ("the cat sat on the the mat", "the cat sat on the mat here"),
    ("the cat sat on the mat", "the cat sat on the mat of the queen"),
]
_BEAM = np.log([[0.5, 0.3, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]])
_ALPHA = np.array([[0.2, 0.7, 0.0, 0.1], [0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.1, 0.8]])
_EXERCISES: dict[str, _Exercise] = {
    "score": _Exercise(
        _score,
        [(_normal(4), _normal((5, 6)), _normal((3, 4)), _normal((3, 6)), _normal(3))],
        {
            "tanh is missing.": lambda s, h, w, u, v: (w @ s + h @ u.T) @ v,
            "tanh comes before the product with v, not after it.": (
                lambda s, h, w, u, v: np.tanh((w @ s + h @ u.T) @ v)
            ),
            "the state s is missing, so every step would have the same scores.": (
                lambda s, h, w, u, v: _score(0 * s, h, w, u, v)
            ),
        },
    ),
    "weights": _Exercise(
        _weights,
        [
            (_normal(5), np.array([True, True, True, False, False])),
            (np.array([1000.0, 999.0, 1001.0]), np.array([True, True, False])),
        ],
        {
            "padding has weight, too: use the mask.": lambda e, mask: _weights(e, mask | True),
            "the weights do not sum to 1: use the mask before you divide by the sum.": (
                lambda e, mask: _weights(e, mask | True) * mask
            ),
            "an energy of 0 still has a share, since exp(0) = 1; wanted -inf at padding.": (
                lambda e, mask: _weights(e * mask, mask | True)
            ),
        },
    ),
    "context": _Exercise(
        _context,
        [(np.array([0.1, 0.2, 0.4, 0.2, 0.1]), _normal((5, 6)))],
        {
            "that is the mean of the annotations: weight each with its α.": lambda _, h: h.mean(0),
            "that is the annotation with the largest weight; the sum is over all.": (
                lambda alpha, h: h[alpha.argmax()]
            ),
            "the weighted annotations still have to be added up, over the words.": (
                lambda alpha, h: alpha[:, None] * h
            ),
        },
    ),
    "gated_unit": _Exercise(
        _gated_unit,
        [(_normal(3), _normal(4), _normal((3, 4, 3)), _normal((3, 4, 4)))],
        {
            "z and 1 - z are exchanged: that is Keras' convention. In the paper z is the share of "
            "the new state.": lambda *case: _gated_unit(*case, swap=True),
            "r must reset s before the product with U: r ∘ (U s) is another unit, cuDNN's.": (
                lambda *case: _gated_unit(*case, reset="after")
            ),
            "the reset gate r is not used.": lambda *case: _gated_unit(*case, reset="never"),
        },
    ),
    "maxout": _Exercise(
        _maxout,
        [(_normal(8),)],
        {
            "pairs are neighbours, t~_1 and t~_2, not one of each half.": (
                lambda t: np.maximum(*np.split(t, 2))
            ),
            "pairs must not overlap: there are half as many results as numbers.": (
                lambda t: np.maximum(t[:-1], t[1:])
            ),
            "that is the sum of each pair, wanted the larger one.": (
                lambda t: t.reshape(-1, 2).sum(1)
            ),
        },
    ),
    "beam_step": _Exercise(
        _beam_step,
        [(np.array([-0.1, -1.0, -2.5]), _BEAM, 3)],
        {
            "add the log-probability of the hypothesis so far to that of its next word.": (
                lambda so_far, log_p, k: _beam_step(0 * so_far, log_p, k)
            ),
            "that is the best word of each hypothesis; the k best of all may share one.": (
                lambda so_far, log_p, k: [(n, log_p[n].argmax()) for n in range(len(so_far))][:k]
            ),
            "those are the k worst: sort from the largest down.": (
                lambda so_far, log_p, k: _beam_step(-so_far, -log_p, k)
            ),
        },
    ),
    "bleu": _Exercise(
        _bleu,
        _BLEU,
        {
            "an n-gram counts at most as often as the reference has it: clip the counts.": (
                lambda *case: _bleu(*case, clip=False)
            ),
            "the brevity penalty is missing.": lambda *case: _bleu(*case, brevity=lambda c, r: 1),
            "the brevity penalty is the wrong way round: it is for translations that are too "
            "short.": lambda *case: _bleu(*case, brevity=lambda c, r: min(1, math.exp(1 - c / r))),
            "that is the arithmetic mean of the precisions, wanted the geometric one.": (
                lambda *case: _bleu(*case, mean=np.mean)
            ),
        },
    ),
    "alignment": _Exercise(
        _links,
        [(_ALPHA,)],
        {
            "each pair is (source word, target word), not the other way round.": (
                lambda alpha: {(i, j) for j, i in _links(alpha)}
            ),
            "rows are target words: choose the largest weight of each row, not of each column.": (
                lambda alpha: {(j, column.argmax()) for j, column in enumerate(alpha[:-1, :-1].T)}
            ),
            "the end symbols, in the last row and column, do not count as words.": (
                lambda alpha: {(row.argmax(), i) for i, row in enumerate(alpha)}
            ),
        },
    ),
    "reversing": _Exercise(
        _distances,
        [(5,), (8,)],
        {
            "that is without reversing, where every word waits equally long.": lambda n: [n] * n,
            "one step too few: the first target word is written one step after the source is "
            "read.": lambda n: [2 * j for j in range(n)],
            "the source is reversed: its first word is read last, so it waits shortest.": (
                lambda n: _distances(n)[::-1]
            ),
        },
    ),
    "no_mask": _Exercise(
        _leak,
        [(_normal(7), 4), (np.array([4.0, 3.0, 0.0, 0.0, 0.0, 0.0]), 2)],
        {
            "that is the weight of the words, wanted that of the padding.": (
                lambda e, n: 1 - _leak(e, n)
            ),
            "that is how much of the row is padding; weights depend on the energies.": (
                lambda e, n: 1 - n / len(e)
            ),
            "divide by the sum over all, not over the words alone.": (
                lambda e, n: np.exp(e[n:]).sum() / np.exp(e[:n]).sum()
            ),
        },
    ),
}
