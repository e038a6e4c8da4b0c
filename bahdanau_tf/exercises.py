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

import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from reprlib import repr as in_short
from typing import Any, NamedTuple

import numpy as np

from bahdanau_tf.system.language import in_use, said

__all__ = ["Verdict", "check", "names"]

_solved: set[str] = set()  # the exercises whose last verdict was a tick


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
        cases: Arguments to try, one tuple after another; mistakes that differ, differ on these.
    """

    answer: Callable[..., Any]
    cases: Sequence[tuple[Any, ...]]


class _Watched(np.ndarray[Any, Any]):
    """An array whose product names the shapes that do not fit, where NumPy names two sizes."""

    def __array_ufunc__(
        self, ufunc: Any, method: Any, *inputs: Any, out: Any = (), **kwargs: Any
    ) -> Any:
        arrays, kept = ([np.asarray(x) for x in several] for several in (inputs, out))
        try:
            result = getattr(ufunc, method)(*arrays, out=tuple(kept) or None, **kwargs)
        except ValueError as error:
            shapes = " ".join(str(x.shape) for x in arrays)
            raise ValueError(f"shapes {shapes} not aligned") from error
        return result.view(_Watched) if isinstance(result, np.ndarray) else result


def names() -> list[str]:
    """The exercises, in the order in which the notebook has them."""
    return [*_EXERCISES]


def check(name: str, function: Callable[..., Any]) -> Verdict:
    """Tries a function on some arguments and compares it with the paper's equation.

    Args:
        name: The exercise, one of `names()`.
        function: Your function, of NumPy arrays.

    Returns:
        A `Verdict`. Its message names the mistake if it is a common one, and otherwise says how
        the results differ; it counts the exercises that are right.

    Raises:
        ValueError: There is no such exercise, or `function` cannot be called.
    """
    if name not in _EXERCISES:
        raise ValueError(f"check: name is {name!r}, wanted one of {', '.join(_EXERCISES)}")
    if not callable(function):
        raise ValueError(f"check: function is {function!r}, wanted your function")
    exercise = f"{names().index(name) + 1}. {name}"
    if message := _wrong(_EXERCISES[name], function):
        _solved.discard(name)
        return Verdict(False, f"✗ {exercise}: {message}")
    _solved.add(name)
    text = said("✓ {exercise} is right ({solved} of {all}).")
    return Verdict(True, text.format(exercise=exercise, solved=len(_solved), all=len(_EXERCISES)))


def _wrong(exercise: _Exercise, function: Callable[..., Any]) -> str:
    """What is wrong with a function; "" if nothing is."""

    def results(of: Callable[..., Any]) -> list[Any]:
        return [_result(of, case, exercise.answer is _links) for case in exercise.cases]

    mine, answer = results(function), results(exercise.answer)
    first = next((n for n, x in enumerate(mine) if not _equal(x, answer[n])), None)
    if first is None or isinstance(mine[first], str):
        return "" if first is None else mine[first]
    # A mistake is named if it explains all results that are numbers.
    numbers = [n for n, x in enumerate(mine) if not isinstance(x, str)]
    for mistake, hints in _mistakes(exercise):
        theirs = results(mistake)
        if all(_equal(mine[n], theirs[n]) for n in numbers):
            return hints[in_use()]
    if exercise.answer is _links:
        return _set_difference(mine[first], answer[first])
    message = _relation([mine[n] for n in numbers], [answer[n] for n in numbers])
    return message or _place(exercise.cases[first], mine[first], answer[first])


def _mistakes(exercise: _Exercise) -> list[tuple[Callable[..., Any], dict[str, str]]]:
    """Typical wrong functions, each with what a learner should read of it in each language.

    They are the rows of exercises.tsv, whose column `code` has expressions of the arguments.
    """
    table = files("bahdanau_tf").joinpath("exercises.tsv").read_text("utf-8")
    header, *rows = (line.split("\t") for line in table.rstrip("\n").split("\n"))
    texts = [dict(zip(header, row, strict=True)) for row in rows]
    arguments = ", ".join(inspect.getfullargspec(exercise.answer).args)
    return [
        (eval(f"lambda {arguments}: {code}", globals()), row)
        for row in texts
        if exercise is _EXERCISES[row["exercise"]]
        for code in row["code"].split("; ")
    ]


def _result(function: Callable[..., Any], case: tuple[Any, ...], is_set: bool) -> Any:
    """The array that a function returns, in an order of its own for a set; or what went wrong."""
    try:
        with np.errstate(all="ignore"):
            value = function(*_copies(case))
    except Exception as error:  # of any kind, since it is a learner's
        return _raised(error, function, case)
    if value is None:
        return said("the function returned nothing. Does it end with `return`?")
    try:
        items = [*value] if isinstance(value, set | frozenset) else value
        result = np.asarray(items, np.float64)
    except (TypeError, ValueError):
        return said("the function returned {value}, wanted numbers.").format(value=in_short(value))
    if not np.isfinite(result).all():
        return said(
            "the result has NaN or infinity. Did exp overflow, or is there a division by 0 or the "
            "logarithm of 0?"
        )
    return np.unique(result, axis=0) if is_set and result.ndim == 2 else result


def _copies(case: tuple[Any, ...], kind: type[Any] = np.ndarray) -> list[Any]:
    """Arguments that a function may change."""
    return [x.copy().view(kind) if isinstance(x, np.ndarray) else x for x in case]


def _raised(error: Exception, function: Callable[..., Any], case: tuple[Any, ...]) -> str:
    """A sentence about an error, with the shapes if it is NumPy's."""
    message = str(error)
    if message.startswith("matmul: "):
        try:
            function(*_copies(case, _Watched))
        except Exception as again:
            message = str(again)
    for pattern, text in _ERRORS.items():
        if match := re.search(pattern, message):
            shapes = (re.sub(r",(?=\d)", ", ", x).replace(") (", "), (") for x in match.groups())
            return said(text).format(*shapes)
    return said("the function raised {error}").format(error=f"{type(error).__name__}: {error}")


def _equal(first: Any, second: Any) -> bool:
    """Whether both are numbers, of the same shape, the same within float32's rounding."""
    if isinstance(first, str) or isinstance(second, str) or first.shape != second.shape:
        return False
    return np.allclose(first, second, 1e-4, 1e-6)


def _relation(mine: Sequence[Any], answer: Sequence[Any]) -> str:
    """How all results differ from the answers in the same way; "" if they do not."""
    pairs = [*zip(mine, answer, strict=True)]
    if all(x.size == y.size and _equal(x.ravel(), y.ravel()) for x, y in pairs) or all(
        _equal(x.T, y) for x, y in pairs
    ):
        shape, wanted = next((x.shape, y.shape) for x, y in pairs if x.shape != y.shape)
        text = said("the numbers are right, but not their shape: it is {shape}, wanted {wanted}.")
        return text.format(shape=shape, wanted=wanted)
    if any(x.shape != y.shape for x, y in pairs):
        return ""
    if all(x.ndim and _equal(*(np.array(sorted(z.tolist())) for z in (x, y))) for x, y in pairs):
        return said("everything is there, but not in the right order.")
    first, second = (np.concatenate([np.ravel(x) for x in several]) for several in (mine, answer))
    with np.errstate(all="ignore"):
        for text, same in (
            ("each number is {value} times the one wanted.", first / second),
            ("each number differs from the one wanted by {value}.", first - second),
        ):
            if same.size > 2 and same[0] and np.allclose(same, same[0], 1e-4, 1e-6):
                return said(text).format(value=f"{same[0]:.4g}")
    return ""


def _place(case: tuple[Any, ...], mine: Any, answer: Any) -> str:
    """Where a result differs from the answer."""
    if mine.shape != answer.shape:
        shapes = (str(x.shape) if x.ndim else said("() (a single number)") for x in (mine, answer))
        text = said("the result has shape {shape}, wanted shape {wanted}.")
        return text.format(**dict(zip(("shape", "wanted"), shapes, strict=True)))
    if not mine.ndim:
        arguments = ", ".join(np.array2string(np.asarray(x), precision=3) for x in case)
        text = said("you have {value}, wanted {wanted}, for {arguments}.")
        return text.format(value=f"{mine:.6g}", wanted=f"{answer:.6g}", arguments=arguments)
    wrong = [n for n, pair in enumerate(zip(mine, answer, strict=True)) if not _equal(*pair)]
    value, wanted = (_shown(x[wrong[0]]) for x in (mine, answer))
    text = said("{wrong} of {all} wrong. The first, at index {place}, is {value}, wanted {wanted}.")
    return text.format(wrong=len(wrong), all=len(mine), place=wrong[0], value=value, wanted=wanted)


def _set_difference(mine: Any, answer: Any) -> str:
    """Which pairs of a set are missing, and which are too many."""
    if mine.size and mine.shape[1:] != answer.shape[1:]:
        return _place((), mine, answer)
    first, second = ({_shown(x) for x in several} for several in (mine, answer))
    missing, extra = (
        ", ".join(sorted(x)) or said("none") for x in (second - first, first - second)
    )
    return said("missing: {missing}. Too many: {extra}.").format(missing=missing, extra=extra)


def _shown(x: Any) -> str:
    """A number, or a pair of them."""
    return f"({', '.join(map(_shown, x))})" if x.ndim else f"{x:.6g}"


_Function = Callable[[Any], Any]


def _sigmoid(x: Any) -> Any:
    """σ(x) = 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def _softmax(e: Any) -> Any:
    """exp(e_j) / Σ_k exp(e_k)."""
    powers = np.exp(e - e.max())
    return powers / powers.sum()


def _score(s: Any, h: Any, w: Any, u: Any, v: Any, *, bend: _Function = np.tanh) -> Any:
    """e_j = v_a^T tanh(W_a s + U_a h_j), appendix A.1.2."""
    return bend(w @ s + h @ u.T) @ v


def _weights(e: Any, mask: Any) -> Any:
    """α_j = exp(e_j) / Σ_k exp(e_k) over the words, eq. 6; 0 at padding."""
    return _softmax(np.where(mask, e, -np.inf))


def _context(alpha: Any, h: Any) -> Any:
    """c = Σ_j α_j h_j, eq. 5."""
    return alpha @ h


def _gated_unit(
    x: Any,
    s: Any,
    w: Any,
    u: Any,
    *,
    gate: _Function = _sigmoid,
    bend: _Function = np.tanh,
    seen: Callable[..., Any] = lambda u, r, s: u @ (r * s),
    mix: Callable[..., Any] = lambda z, s, new: (1 - z) * s + z * new,
) -> Any:
    """s_i = (1 - z) s_{i-1} + z tanh(W x + U (r s_{i-1})), appendix A.1.1.

    `w` and `u` hold the matrices of z, r and the candidate.
    """
    z, r = (gate(w[n] @ x + u[n] @ s) for n in (0, 1))
    return mix(z, s, bend(w[2] @ x + seen(u[2], r, s)))


def _maxout(t: Any) -> Any:
    """t_j = max(t~_{2j-1}, t~_{2j}), appendix A.2.2."""
    return t.reshape(-1, 2).max(1)


def _beam_step(so_far: Any, log_p: Any, k: int) -> Any:
    """(hypothesis, word) of the k best continuations, best first."""
    return _best(so_far[:, None] + log_p, k)


def _best(total: Any, k: int, words: int = 0) -> Any:
    """(row, column) of the k largest numbers, of rows of so many."""
    return [divmod(int(n), words or total.shape[1]) for n in np.argsort(-total, axis=None)[:k]]


def _bleu(
    c: str,
    r: str,
    *,
    longest: int = 4,
    split: Callable[[str], Sequence[str]] = str.split,
    hits: Callable[..., Any] = lambda ours, theirs: (ours & theirs).total(),
    of: Callable[..., Any] = lambda ours, theirs, words: ours.total(),
    mean: _Function = lambda p: p.prod() ** (1 / len(p)),
    brevity: _Function = lambda ratio: min(1.0, np.exp(1 - ratio)),
) -> float:
    """100 min(1, exp(1 - r/c)) (p_1 p_2 p_3 p_4)^(1/4), Papineni et al. 2002."""
    words, wanted = split(c), split(r)
    precisions = []
    for n in range(1, longest + 1):
        grams = [Counter(zip(*(x[i:] for i in range(n)))) for x in (words, wanted)]  # noqa: B905
        precisions.append(hits(*grams) / of(*grams, len(words)))
    return float(100 * brevity(len(wanted) / len(words)) * mean(np.array(precisions)))


def _links(alpha: Any) -> Any:
    """(source word, target word) for each target word; the last row and column are end symbols."""
    return {(int(row[:-1].argmax()), i) for i, row in enumerate(alpha[:-1])}


def _distances(length: int) -> Any:
    """Steps from reading source word j to writing target word j, the source being reversed."""
    return [(length + j) - (length - 1 - j) for j in range(length)]


def _leak(e: Any, length: int) -> Any:
    """Σ_j α_j over the padding, if the softmax has no mask."""
    return _softmax(e)[length:].sum()


# What a learner should read of an error, by a pattern of its message and what the groups matched.
_ERRORS = {
    r"shapes (.*\(\).*) not aligned": "`@` multiplies matrices and vectors, but of the shapes {}, "
    "() is that of a single number. `*` multiplies elementwise.",
    r"shapes (\(.*?\)) (?:and )?(\(.*?\)) not aligned": "`@` does not fit the shapes {} and {}: "
    "the last size on the left must be the first on the right. Transpose a matrix (`.T`) or change "
    "the order.",
    r"broadcast together with shapes (.*\S)": "the shapes {} do not fit elementwise: from the "
    "right, sizes must be equal or 1. `x[:, None]` makes a column of `x`.",
    r"index (\S+) is out of bounds for axis \d+ with size (\d+)": "there is no index {}: the size "
    "is {}, and indices count from 0.",
    r"axis (\S+) is out of bounds for array of dimension (\d+)": "there is no axis {}: the number "
    "of axes is {}, and they count from 0.",
    r"only (?:length-1|0-dim\S+) arrays": "an array stands where Python takes a single number: "
    "`np.exp` takes arrays, `math.exp` does not.",
    r"truth value of an array": "`if`, `and` and `max(a, b)` take single numbers; for arrays there "
    "are `np.where`, `&` and `np.maximum`.",
}
_random = np.random.default_rng(2015)
_normal = _random.standard_normal
_BLEU = [
    ("the cat sat on the mat today", "the cat sat on the mat"),
    ("the cat sat on the the mat", "the cat sat on the mat here"),
    ("the cat sat on the mat", "the cat sat on the mat of the queen"),
]
_UNIT = [
    (_normal(n), _normal(m), _normal((3, m, n)), _normal((3, m, m))) for n, m in ((3, 4), (2, 5))
]
_SCORE = [
    (_normal(n), _normal((words, 6)), _normal((3, n)), _normal((3, 6)), _normal(3))
    for n, words in ((4, 5), (5, 2))
]
_MASKED = [
    (_normal(5), np.array([True, True, True, False, False])),
    (_normal(4), np.array([True, True, False, False])),
    (np.array([1000.0, 999.0, 1001.0]), np.array([True, True, False])),
]
_BEAMS = [
    (np.array(so_far), np.log(_random.dirichlet([1] * words, len(so_far))), k)
    for so_far, words, k in (
        ([-0.1, -0.5, -1.1], 4, 5),
        ([-1.3, -0.2], 5, 4),
        ([-0.9, -0.1, -0.3, -0.6], 6, 8),
    )
]
_EXERCISES = {
    "score": _Exercise(_score, _SCORE),
    "weights": _Exercise(_weights, _MASKED),
    "context": _Exercise(_context, [(_random.dirichlet([1] * n), _normal((n, 6))) for n in (5, 2)]),
    "gated_unit": _Exercise(_gated_unit, _UNIT),
    "maxout": _Exercise(_maxout, [(_normal(8),), (_normal(10),)]),
    "beam_step": _Exercise(_beam_step, _BEAMS),
    "bleu": _Exercise(_bleu, _BLEU),
    "alignment": _Exercise(
        _links, [(_random.dirichlet([1] * n, rows),) for n, rows in ((4, 3), (5, 7), (6, 6))]
    ),
    "reversing": _Exercise(_distances, [(5,), (8,)]),
    "no_mask": _Exercise(
        _leak, [(_normal(7), 4), (_normal(5), 2), (np.array([4.0, 3.0, 0.0, 0.0, 0.0, 0.0]), 2)]
    ),
}
