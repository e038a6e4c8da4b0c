"""Exercises: the answers of the notebook are right, and typical mistakes are named."""

import re

import numpy as np
import pytest
from notebooks import FOLDER, read_notebook, source

from bahdanau_tf import exercises
from bahdanau_tf.system.language import in_language

CELLS = {cell["id"]: source(cell) for cell in read_notebook(FOLDER / "10_exercises.ipynb")["cells"]}


def test_every_exercise_has_a_cell_in_order():
    checked = re.findall(r'exercises\.check\("(\w+)"', "\n".join(CELLS.values()))
    assert checked == exercises.names()
    assert len(checked) == 10


# Letters of each language's own; terms and code may be English.
LETTERS = {"ko": "[가-힣]", "ja": "[ぁ-ん]"}


def verdicts(name, function):
    """The verdict in English, and the messages in the other languages."""
    messages = []
    for language, letters in LETTERS.items():
        with in_language("test", language):
            message = exercises.check(name, function).message
        assert message.startswith(name)
        assert re.search(letters, message), f"not in {language}"
        messages.append(message)
    return exercises.check(name, function), messages


@pytest.mark.parametrize("name", exercises.names())
def test_the_answer_of_the_notebook_is_right(name):
    (answer,) = re.findall(r"```python\n(.*?)```", CELLS[f"{name}-answer"], re.DOTALL)
    namespace = {"np": np}
    exec(answer, namespace)
    verdict, others = verdicts(name, namespace[name])
    assert verdict == (True, f"{name} is right.")
    assert others == [f"{name}: 맞았습니다.", f"{name}: 正解です。"]


def softmax(e):
    return np.exp(e) / np.exp(e).sum()


def gated(x, s, w, u, z_is_old=False, seen=None):
    z, r = (1 / (1 + np.exp(-(w[n] @ x + u[n] @ s))) for n in (0, 1))
    new = np.tanh(w[2] @ x + (u[2] @ (r * s) if seen is None else seen(r, s, u[2])))
    return z * s + (1 - z) * new if z_is_old else s + z * (new - s)


def bleu(translation, reference, clip=True, penalty=True, mean="geometric"):
    c, r = translation.split(), reference.split()
    shares = []
    for n in range(1, 5):
        grams = [tuple(c[i : i + n]) for i in range(len(c) - n + 1)]
        there = [tuple(r[i : i + n]) for i in range(len(r) - n + 1)]
        hits = sum(min(grams.count(g), there.count(g)) for g in {*grams})
        hits = hits if clip else sum(g in there for g in grams)
        shares.append(hits / len(grams))
    value = np.mean(shares) if mean == "arithmetic" else np.prod(shares) ** 0.25
    return 100 * value * (min(1, np.exp(1 - len(r) / len(c))) if penalty else 1)


# Three of each, written as a learner would.
MISTAKES = [
    ("score", "tanh is missing", lambda s, h, w, u, v: np.array([v @ (w @ s + u @ x) for x in h])),
    ("score", "before the product", lambda s, h, w, u, v: np.tanh(h @ u.T @ v + w @ s @ v)),
    ("score", "state s is missing", lambda s, h, w, u, v: [v @ np.tanh(u @ x) for x in h]),
    ("weights", "use the mask", lambda e, mask: softmax(e)),
    ("weights", "before you divide", lambda e, mask: np.where(mask, softmax(e), 0)),
    ("weights", "exp(0) = 1", lambda e, mask: softmax(np.where(mask, e, 0))),
    ("weights", "did exp overflow", lambda e, mask: softmax(np.where(mask, e, -np.inf))),
    ("context", "mean of the annotations", lambda alpha, h: sum(h) / len(h)),
    ("context", "largest weight", lambda alpha, h: h[list(alpha).index(max(alpha))]),
    (
        "context",
        "added up",
        lambda alpha, h: np.array([a * x for a, x in zip(alpha, h, strict=True)]),
    ),
    ("gated_unit", "exchanged", lambda *case: gated(*case, z_is_old=True)),
    (
        "gated_unit",
        "before the product",
        lambda *case: gated(*case, seen=lambda r, s, u: r * (u @ s)),
    ),
    ("gated_unit", "r is not used", lambda *case: gated(*case, seen=lambda r, s, u: u @ s)),
    ("maxout", "neighbours", lambda t: [max(t[j], t[j + len(t) // 2]) for j in range(len(t) // 2)]),
    ("maxout", "overlap", lambda t: [max(t[j], t[j + 1]) for j in range(len(t) - 1)]),
    ("maxout", "sum of each pair", lambda t: t[::2] + t[1::2]),
    ("beam_step", "so far", lambda so_far, log_p, k: [(1, 0), (0, 0), (2, 0)]),
    ("beam_step", "of each hypothesis", lambda so_far, log_p, k: [(n, 0) for n in range(k)]),
    ("beam_step", "from the largest", lambda so_far, log_p, k: [(2, 3), (2, 2), (2, 1)]),
    ("bleu", "clip", lambda c, r: bleu(c, r, clip=False)),
    ("bleu", "penalty is missing", lambda c, r: bleu(c, r, penalty=False)),
    ("bleu", "arithmetic", lambda c, r: bleu(c, r, mean="arithmetic")),
    ("alignment", "other way round", lambda alpha: [(0, 1), (1, 2)]),
    ("alignment", "not of each column", lambda alpha: {(0, 0), (1, 0), (2, 1)}),
    (
        "alignment",
        "do not count as words",
        lambda alpha: {*zip(alpha.argmax(1).tolist(), range(len(alpha)), strict=True)},
    ),
    ("reversing", "without reversing", lambda n: np.full(n, n)),
    ("reversing", "one step too few", lambda n: np.arange(n) * 2),
    ("reversing", "read last", lambda n: np.arange(2 * n - 1, 0, -2)),
    ("no_mask", "weight of the words", lambda e, n: softmax(e)[:n].sum()),
    ("no_mask", "how much of the row", lambda e, n: (len(e) - n) / len(e)),
    ("no_mask", "over all", lambda e, n: softmax(e)[n:].sum() / softmax(e)[:n].sum()),
]


@pytest.mark.parametrize(("name", "hint", "mistake"), MISTAKES)
def test_a_typical_mistake_is_named(name, hint, mistake):
    (is_right, message), others = verdicts(name, mistake)
    assert not is_right
    assert message.startswith(f"{name}: ")
    assert hint in message
    english = {*re.findall("[A-Za-z_]{3,}", " ".join(others))} - {
        *re.findall("[A-Za-z_]+", message)
    }
    assert english <= {name, "inf", "clipping", "precision", "brevity", "penalty"}


def test_other_mistakes_are_shown_without_a_traceback():
    def spoils(alpha, h):
        h += 1  # its own copy
        return alpha @ h

    for function, wanted in (
        (lambda alpha, h: None, "returned nothing"),
        (lambda alpha, h: "x", "returned 'x', wanted numbers"),
        (lambda alpha, h: alpha / 0 if 1 // 0 else h, "raised ZeroDivisionError"),
        (lambda alpha, h: alpha, r"shape \(5,\), wanted \(6,\)"),
        (lambda alpha, h: -(alpha @ h), r"you have \S+ at \[\d\], wanted"),
        (spoils, "you have"),
    ):
        verdict, others = verdicts("context", function)
        assert re.search(wanted, verdict.message)
        assert not verdict
        for value in re.findall(r"\d[\d.]*\d|Zero\w+", verdict.message):
            assert all(value in message for message in others)
    assert exercises.check("context", lambda alpha, h: (alpha[:, None] * h).sum(0)).is_right
    for bad in (("conetxt", len), ("context", 3)):
        with pytest.raises(ValueError, match="check: "):
            exercises.check(*bad)
