"""Exercises: the answers of the notebook are right, and typical mistakes are named."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from notebooks import FOLDER, read_notebook, source
from refusals import refused

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
        assert re.match(rf"[✓✗] \d+\. {name}[:：]", message)
        assert re.search(letters, message), f"not in {language}"
        messages.append(message)
    return exercises.check(name, function), messages


def test_the_answers_of_the_notebook_are_right_and_counted(monkeypatch):
    monkeypatch.setattr(exercises, "_solved", set())
    for number, name in enumerate(exercises.names(), 1):
        (answer,) = re.findall(r"```python\n(.*?)```", CELLS[f"{name}-answer"], re.DOTALL)
        namespace = {"np": np}
        exec(answer, namespace)
        verdict, others = verdicts(name, namespace[name])
        assert verdict == (True, f"✓ {number}. {name} is right ({number} of 10).")
        assert others == [
            f"✓ {number}. {name}: 맞았습니다. (10문제 중 {number}문제)",
            f"✓ {number}. {name}：正解です（10 問中 {number} 問）。",
        ]
    assert not exercises.check("maxout", len)  # no longer right
    assert exercises.check(name, namespace[name]).message.endswith("(9 of 10).")


def softmax(e):
    return np.exp(e) / np.exp(e).sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated(x, s, w, u, gate=sigmoid, bend=np.tanh, seen="u[2] @ (r * s)", mixed="s + z * (new - s)"):
    z, r = gate(w[0] @ x + u[0] @ s), gate(w[1] @ x + u[1] @ s)
    new = bend(w[2] @ x + eval(seen, {"u": u, "r": r, "s": s, "np": np}))
    return eval(mixed, {"s": s, "z": z, "new": new})


def bleu(
    c,
    r,
    share="hits / len(grams)",
    penalty="min(1, np.exp(1 - ratio))",
    root="np.prod(p) ** 0.25",
    n=4,
):
    c, r = c.split(), r.split()
    ratio, p = len(r) / len(c), []
    for i in range(1, n + 1):
        grams, there = ([tuple(x[j : j + i]) for j in range(len(x) - i + 1)] for x in (c, r))
        hits = sum(min(grams.count(g), there.count(g)) for g in {*grams})
        p.append(eval(share, globals(), locals()))
    return 100 * eval(root) * eval(penalty)


# Each as a learner would write it: exercise | what the verdict says | what the function returns.
# A verdict has no words of any other row of its exercise.
MISTAKES = r"""
score | tanh is missing | np.array([v @ (w @ s + u @ x) for x in h])
score | that is σ | sigmoid(w @ s + h @ u.T) @ v
score | before the product | np.tanh(h @ u.T @ v + w @ s @ v)
score | state s is missing | [v @ np.tanh(u @ x) for x in h]
score | annotations h are missing | [v @ np.tanh(w @ s)] * len(h)
score | not multiplied | [v @ np.tanh((w @ s) * (u @ x)) for x in h]
score | product with v is missing | [np.tanh(w @ s + u @ x) for x in h]
score | products with the numbers of v | [v * np.tanh(w @ s + u @ x) for x in h]
score | weights already | softmax(np.tanh(w @ s + h @ u.T) @ v)
score | each number is -1 times | -np.tanh(w @ s + h @ u.T) @ v
score | but not their shape: it is (5, 1), wanted (5,) | np.tanh(w @ s + h @ u.T) @ v[:, None]
score | `@` does not fit the shapes (5, 6) and (3, 6): | np.tanh(w @ s + h @ u) @ v
score | `@` does not fit the shapes (3, 6) and (5, 6): | np.tanh(w @ s + u @ h) @ v
score | the shapes (3,), (3, 5) do not fit elementwise | np.tanh(w @ s + u @ h.T) @ v
score | takes arrays, `math.exp` does not | [math.tanh(w @ s + u @ x) for x in h]
score | the result has shape () (a single number), wanted shape (5,) | v @ np.tanh(w @ s + u @ h[0])
weights | padding has weight | softmax(e)
weights | mask before you | np.where(mask, softmax(e), 0)
weights | exp(0) = 1 | softmax(np.where(mask, e, 0))
weights | NaN or infinity | np.where(mask, softmax(e), -np.inf)
weights | wrong way round | softmax(np.where(mask, -np.inf, e))
weights | keeps its places | np.exp(e[mask] - e.max()) / np.exp(e[mask] - e.max()).sum()
weights | 1: divide | np.where(mask, np.exp(e), 0)
weights | exp is missing | np.where(mask, e, 0) / np.where(mask, e, 0).sum()
weights | 3 of 5 wrong. The first, at index 0, is 0.333333, wanted | mask / mask.sum()
weights | take single numbers; for arrays | softmax(e if mask else -np.inf)
context | mean of the annotations | sum(h) / len(h)
context | sum of the annotations | sum(h)
context | largest weight | h[list(alpha).index(max(alpha))]
context | still have to be added up | np.array([a * x for a, x in zip(alpha, h)])
context | axis 0 | [a * x.sum() for a, x in zip(alpha, h)]
context | do not divide | (alpha[:, None] * h).mean(0)
context | do not apply it again | softmax(alpha) @ h
context | `@` does not fit the shapes (5, 6) and (5,): | h @ alpha
context | the shapes (5,), (5, 6) do not fit elementwise | (alpha * h).sum(0)
context | there is no axis 1: the number of axes is 1 | (alpha @ h).sum(axis=1)
context | each number is 0.5 times | alpha @ h / 2
gated_unit | 1 - z are exchanged | gated(x, s, w, u, mixed="z * s + (1 - z) * new")
gated_unit | z and r are exchanged | gated(x, s, w[[1, 0, 2]], u[[1, 0, 2]])
gated_unit | before the product | gated(x, s, w, u, seen="r * (u[2] @ s)")
gated_unit | in parentheses | gated(x, s, w, u, seen="u[2] @ r * s")
gated_unit | r is not used | gated(x, s, w, u, seen="u[2] @ s")
gated_unit | s~ alone | gated(x, s, w, u, mixed="new")
gated_unit | has the share 1 - z | gated(x, s, w, u, mixed="s + z * new")
gated_unit | one number, a sum | gated(x, s, w, u, mixed="(1 - z) @ s + z @ new")
gated_unit | () is that of a single number | gated(x, s, w, u, seen="u[2] @ (r @ s)")
gated_unit | σ is missing | gated(x, s, w, u, gate=np.array)
gated_unit | minus in σ | gated(x, s, w, u, gate=lambda y: 1 / (1 + np.exp(y)))
gated_unit | have tanh, wanted σ | gated(x, s, w, u, gate=np.tanh)
gated_unit | tanh is missing in s~ | gated(x, s, w, u, bend=np.array)
gated_unit | s~ has σ | gated(x, s, w, u, bend=sigmoid)
gated_unit | the transposed matrix | gated(x, s, w, [each.T for each in u])
gated_unit | 4 of 4 wrong | gated(x, s, w, u, seen="0")
gated_unit | `@` does not fit the shapes (3,) and (4, 3): | x @ w[0]
maxout | neighbours | [max(t[j], t[j + len(t) // 2]) for j in range(len(t) // 2)]
maxout | overlap | [max(t[j], t[j + 1]) for j in range(len(t) - 1)]
maxout | counts from 1 | [max(t[2 * j - 1], t[2 * j]) for j in range(len(t) // 2)]
maxout | sum of each pair | t[::2] + t[1::2]
maxout | mean of each pair | (t[::2] + t[1::2]) / 2
maxout | smaller one | np.minimum(t[::2], t[1::2])
maxout | place of the larger one | [int(b > a) for a, b in zip(t[::2], t[1::2])]
maxout | with 0 | [max(x, 0) for x in t]
maxout | largest of all | max(t)
maxout | there is no index 8: the size is 8, | [max(t[j], t[j + 1]) for j in range(1, len(t), 2)]
maxout | not in the right order | np.maximum(t[::2], t[1::2])[::-1]
maxout | the result has shape (2,), wanted shape (4,) | t.reshape(2, -1).max(1)
maxout | take single numbers; for arrays | max(t[::2], t[1::2])
beam_step | so far | best(log_p, k)
beam_step | that is a product | best(so_far[:, None] * log_p, k)
beam_step | of each hypothesis | [(n, np.argmax(log_p[n])) for n in range(len(so_far))]
beam_step | best hypothesis alone | [x for x in best(total, 99) if x[0] == so_far.argmax()][:k]
beam_step | from the largest | best(-so_far[:, None] - log_p, k)
beam_step | the other way round | [(w, n) for n, w in best(total, k)]
beam_step | flattened | total.ravel().argsort()[::-1][:k]
beam_step | log_p.shape[1] | [divmod(n, len(total)) for n in total.ravel().argsort()[::-1][:k]]
beam_step | from 0, not from 1 | [(n + 1, w + 1) for n, w in best(total, k)]
beam_step | not in the right order | best(total, k)[::-1]
beam_step | it is (2, 5), wanted (5, 2) | [*zip(*best(total, k))]
beam_step | shape (5, 3), wanted shape (5, 2) | [(0.0, n, w) for n, w in best(total, k)]
beam_step | shapes (3, 4), (3,) do not fit | log_p + so_far
beam_step | wrong. The first, at index | best(np.exp(so_far)[:, None] + np.exp(log_p), k)
bleu | from 0 to 100 | bleu(c, r) / 100
bleu | clip | bleu(c, r, share="sum(map(there.__contains__, grams)) / len(grams)")
bleu | different n-gram once | bleu(c, r, share="len({*grams} & {*there}) / len({*grams})")
bleu | n = 1, 2, 3 and 4 | bleu(c, r, n=2, root="np.prod(p) ** 0.5")
bleu | recall | bleu(c, r, share="hits / len(there)")
bleu | are exchanged | bleu(r, c)
bleu | c - n + 1 | bleu(c, r, share="hits / len(c)")
bleu | not of letters | bleu(" ".join(c.replace(" ", "_")), " ".join(r.replace(" ", "_")))
bleu | penalty is missing | bleu(c, r, penalty="1")
bleu | too short | bleu(c, r, penalty="min(1, np.exp(1 - 1 / ratio))")
bleu | at most 1 | bleu(c, r, penalty="np.exp(1 - ratio)")
bleu | not c/r | bleu(c, r, penalty="min(1, 1 / ratio)")
bleu | arithmetic | bleu(c, r, root="np.mean(p)")
bleu | wanted its fourth root | bleu(c, r, root="np.prod(p)")
bleu | a fourth of the product | bleu(c, r, root="np.prod(p) ** 1 / 4")
bleu | , for 'the cat sat on the mat today', 'the cat sat on the mat'. | 50
alignment | other way round | [(i, j) for j, i in links(alpha)]
alignment | not of each column | {*enumerate(alpha[:-1, :-1].argmax(0))}
alignment | do not count as words | {*zip(alpha.argmax(1), range(len(alpha)))}
alignment | last row is the end symbol | {*zip(alpha[:, :-1].argmax(1), range(len(alpha)))}
alignment | before argmax | {*zip(alpha[:-1].argmax(1), range(len(alpha) - 1))}
alignment | from 0, not from 1 | {(j + 1, i + 1) for j, i in links(alpha)}
alignment | missing: (0, 0). Too many: none. | links(alpha) - {(0, 0)}
alignment | shape (2,), wanted | alpha[:-1, :-1].argmax(1)
reversing | without reversing | np.full(length, length)
reversing | one step too few | np.arange(length) * 2
reversing | read last | np.arange(2 * length - 1, 0, -2)
reversing | written; wanted | [length - 1 - j for j in range(length)]
reversing | one number for all | length
reversing | differs from the one wanted by 1. | [2 * j + 2 for j in range(length)]
reversing | differs from the one wanted by 2. | [2 * j + 1 for j in range(1, length + 1)]
no_mask | weight of the words | softmax(e)[:length].sum()
no_mask | how much of the row | (len(e) - length) / len(e)
no_mask | the words alone | softmax(e)[length:].sum() / softmax(e)[:length].sum()
no_mask | weights sum to 1 | sum(np.exp(e)[length:])
no_mask | always sum to 1 | softmax(e[length:]).sum()
no_mask | still have to be added up | softmax(e)[length:]
no_mask | mean weight | np.mean(softmax(e)[length:])
no_mask | exp is missing | sum(e[length:]) / sum(e)
no_mask | as with a mask | softmax(np.where(np.arange(len(e)) < length, e, -np.inf))[length:].sum()
no_mask | each number is 100 times | 100 * softmax(e)[length:].sum()
"""
ROWS = [row.split(" | ", 2) for row in MISTAKES.strip().split("\n")]


def best(total, k):
    places = [(n, w) for n in range(len(total)) for w in range(len(total[n]))]
    return sorted(places, key=lambda place: total[place], reverse=True)[:k]


def links(alpha):
    return {(int(np.argmax(row[:-1])), i) for i, row in enumerate(alpha[:-1])}


@pytest.mark.parametrize(("name", "hint", "code"), ROWS)
def test_a_typical_mistake_is_named(name, hint, code):
    (arguments,) = re.findall(rf"def {name}\((.*)\)", CELLS[name])
    arguments = arguments.replace("translation, reference", "c, r")
    code = code.replace("total", "(so_far[:, None] + log_p)")
    function = eval(f"lambda {arguments}: {code}", {**globals(), "math": math})
    (is_right, message), others = verdicts(name, function)
    assert not is_right
    assert {said for exercise, said, _ in ROWS if exercise == name and said in message} == {hint}
    english = {*re.findall("[A-Za-z_]{3,}", " ".join(others))}
    english -= {*re.findall("[A-Za-z_]+", message)}
    assert english <= {name, "inf", "clipping", "precision", "brevity", "penalty", "shape", "gram"}


# Right, but written in other ways than the answers.
RIGHT = {
    "score": lambda s, h, w, u, v: [float(v @ np.tanh(w @ s + u @ x)) for x in h],
    "weights": lambda e, mask: softmax(np.where(mask, e - e.max(), -1e9)).astype("float32"),
    "context": lambda alpha, h: (alpha[:, None] * h).sum(0),
    "gated_unit": lambda x, s, w, u: gated(x, s, w, u, seen="r * u[2] @ s"),
    "maxout": lambda t: np.maximum(t[::2], t[1::2]),
    "beam_step": lambda so_far, log_p, k: np.array(best(so_far[:, None] + log_p, k)),
    "bleu": bleu,
    "alignment": lambda alpha: sorted(links(alpha), key=lambda pair: pair[1]),
    "reversing": lambda length: range(1, 2 * length, 2),
    "no_mask": lambda e, length: 1 - softmax(e)[:length].sum(),
}


@pytest.mark.parametrize("name", exercises.names())
def test_other_right_functions_are_right(name):
    assert exercises.check(name, RIGHT[name]).is_right


def test_every_mistake_of_the_table_has_a_row():
    table = (Path(exercises.__file__).parent / "exercises.tsv").read_text("utf-8")
    for line in table.rstrip("\n").split("\n")[1:]:
        name, _, hint, *_ = line.split("\t")
        assert [row for row in ROWS if row[0] == name and row[1] in hint], hint


def test_other_mistakes_are_shown_without_a_traceback():
    def spoils(alpha, h):
        h *= h  # its own copy
        return alpha @ h

    for function, wanted in (
        (lambda alpha, h: None, "returned nothing"),
        (lambda alpha, h: "x", "returned 'x', wanted numbers"),
        (lambda alpha, h: alpha / 0 if 1 // 0 else h, "raised ZeroDivisionError"),
        (lambda alpha, h: alpha @ h / 0, "NaN or infinity"),
        (spoils, r"6 of 6 wrong. The first, at index 0, is \S+, wanted"),
    ):
        verdict, others = verdicts("context", function)
        assert re.search(wanted, verdict.message)
        assert not verdict
        for value in re.findall(r"\d[\d.]*\d|Zero\w+", verdict.message):
            assert all(value in message for message in others)
    for bad in (("conetxt", len), ("context", 3)):
        refused(lambda own=bad: exercises.check(*own), "check")
