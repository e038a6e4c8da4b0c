"""n-best lists: format, reranking, choice of the weight, the command."""

import gzip
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import sacrebleu
from comparisons import write_lines
from hypothesis import given, strategies as st
from refusals import refused

from bahdanau_tf.commands import files, rescore
from bahdanau_tf.commands.flags import parse, require, required
from bahdanau_tf.commands.main import defined_flags
from bahdanau_tf.commands.rescore import GROUPS, check
from bahdanau_tf.translation.rescoring import (
    Hypothesis,
    NBest,
    choose_weight,
    combine,
    read_nbest,
    score_nbest,
)

# As the Moses decoder writes lists: two spaces after a hypothesis, several
# values with one name, further fields after the score.
MOSES = """\
0 ||| a b  ||| LM0= -5.5 TM0= -1 -2 -0.5 3 ||| -4.25 ||| 0-0 1-1
0 ||| b a  ||| LM0= -6 TM0= -1 -2 -0.5 3 ||| -4.5 ||| 0-1 1-0
2 |||  ||| d: 0 lm: -1 ||| -1e-05
"""


class Scored(NamedTuple):
    log_prob: float


class Wordy:
    """A translator: log p is -1 per target letter, and -10 for z."""

    def __init__(self) -> None:
        self.model = SimpleNamespace()
        self.target_text = SimpleNamespace()
        self.calls: list[list[tuple[str, str]]] = []

    def score(self, sources, targets):
        self.calls.append(list(zip(sources, targets, strict=True)))
        return [Scored(-len(t) - 9.0 * t.count("z")) for t in targets]


def lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def test_lists_of_moses_are_read_and_written_as_they_were():
    lists = first, _, third, _ = [*read_nbest(lines(MOSES), "pqrs")]
    assert [len(x.hypotheses) for x in lists] == [2, 0, 1, 0]
    assert [x.source for x in lists] == [*"pqrs"]
    features = "LM0= -6 TM0= -1 -2 -0.5 3"
    assert first.hypotheses[1] == Hypothesis(0, "b a", features, -4.5, ("0-1 1-0",))
    assert third.hypotheses[0] == Hypothesis(2, "", "d: 0 lm: -1", -1e-5)
    written = [str(hypothesis) for hypothesis in first.hypotheses]
    assert written == [line.replace("  ", " ") for line in lines(MOSES)[:2]]


texts = st.text(st.sampled_from("a|b é\u2028"), max_size=8)


@given(st.integers(0, 10**6), texts, st.floats(-1e6, 1e6))
def test_a_hypothesis_is_written_and_read_back(number, text, score):
    given_one = Hypothesis(number, text.strip(" "), "F0= 1", score, ("x",))
    line = str(given_one)
    assert "\n" not in line
    assert line.count("|||") == 4
    read_back = Hypothesis.parse(line)
    assert math.isclose(read_back.score, score, rel_tol=1e-6)
    assert replace(read_back, score=score) == given_one


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x ||| a ||| f ||| 1\n", "line 1 is 'x"),
        ("0 ||| a ||| f ||| 1\n0 ||| a ||| f\n", "line 2 is '0"),
        ("0 ||| a ||| f ||| best\n", "line 1 is '0"),
        ("0 ||| a ||| f ||| nan\n", "line 1 is '0"),
        ("\n", "line 1 is ''"),
        ("1 ||| a ||| f ||| 1\n0 ||| a ||| f ||| 1\n", "line 2 is for"),
        ("2 ||| a ||| f ||| 1\n", "line 1 is for sentence 2"),
        ("-1 ||| a ||| f ||| 1\n", "line 1 is for sentence -1"),
    ],
)
def test_malformed_lists_are_refused(text, said):
    refused(lambda: list(read_nbest(lines(text), "pq")), said)


def test_lists_out_of_order_are_refused_at_once():
    """At sentence 3 a list of number 1 can no longer be matched."""
    lists = read_nbest(lines(f"{MOSES}1 ||| a ||| f ||| 1\n"), "pqr" * 1000)
    assert [len(next(lists).hypotheses) for _ in range(3)] == [2, 0, 1]
    refused(lambda: next(lists), "line 4 is for sentence 1")


def test_ranking_by_the_mean_equals_values_by_hand():
    """Mean of s and log p as in Sutskever et al., and the resulting order."""
    ranked = combine(
        [
            Hypothesis(7, "x", "LM0= -1", -1.0),
            Hypothesis(7, "y", "LM0= -2", -2.0, ("0-0",)),
            Hypothesis(7, "z", "LM0= -3", -9.0),
        ],
        [-8.0, -3.0, -0.0],
    )
    assert [str(hypothesis) for hypothesis in ranked] == [
        "7 ||| y ||| LM0= -2 LogProb0= -3.0000 ||| -2.5 ||| 0-0",
        "7 ||| x ||| LM0= -1 LogProb0= -8.0000 ||| -4.5",
        "7 ||| z ||| LM0= -3 LogProb0= -0.0000 ||| -4.5",
    ]


def test_weights_0_and_1_use_one_score():
    pair = [Hypothesis(0, "x", "", -1.0), Hypothesis(0, "y", "", -2.0)]
    assert [h.text for h in combine(pair, [-5.0, -4.0], 0.0)] == ["x", "y"]
    ranked = combine(pair, [-5.0, -4.0], 1.0, "Name")
    assert [h.text for h in ranked] == ["y", "x"]
    assert [h.score for h in ranked] == [-4.0, -5.0]
    assert ranked[0].features == "Name0= -4.0000"
    # The feature of a second model gets another name.
    (again, _) = combine(ranked, [-1.0, -2.0], 0.5, "Name")
    assert again.features == "Name0= -4.0000 Name1= -1.0000"
    refused(lambda: combine(pair, [0.0, 0.0], 1.5), "weight is 1.5")
    assert combine([], []) == []


def test_a_score_of_minus_infinity_does_not_matter_at_weight_0():
    """0 times it is not a number."""
    pair = [Hypothesis(0, "x", "", -math.inf), Hypothesis(0, "y", "", -2.0)]
    ranked = combine(pair, [-3.0, -4.0], 1.0)
    assert [h.score for h in ranked] == [-3.0, -4.0]
    ranked = combine(pair[1:], [-math.inf], 0.0)
    assert [h.score for h in ranked] == [-2.0]
    assert [h.text for h in combine(pair, [-3.0, -4.0], 0.5)] == ["y", "x"]


def test_lists_are_scored_in_windows_and_in_order():
    lists = [
        NBest(f"s{n}", [Hypothesis(n, "w" * (n + k), "", 0) for k in range(n)])
        for n in (3, 0, 2, 4, 0)
    ]
    model = Wordy()
    pairs = list(score_nbest(model, lists, window=4))
    wanted = [[-3, -4, -5], [], [-2, -3], [-4, -5, -6, -7], []]
    assert pairs == [*zip(lists, wanted, strict=True)]
    assert [len(call) for call in model.calls] == [5, 4]
    assert model.calls[0][0] == ("s3", "www")


def test_scoring_reads_only_a_window():
    """Only a window of an endless list is read at once."""
    taken = []

    def endless():
        for n in range(10**9):
            taken.append(n)
            yield NBest("s", [Hypothesis(n, "t", "", 0.0)] * 10)

    stream = score_nbest(Wordy(), endless(), window=50)
    for _ in range(7):
        next(stream)
    assert len(taken) == 10


def corpus() -> tuple[list[tuple[NBest, list[float]]], list[str]]:
    """Lists for which both scores together rank better than either alone."""
    texts = "the small cat sat on the mat today", "a small cat stood by a mat", "dogs run"
    scores = [
        ([-1.0, -3.0, -9.0], [-5.0, -4.0, -9.0]),
        ([-2.0, -1.0, -9.0], [-2.0, -9.0, -9.0]),
        ([-4.0, -9.0, -1.0], [-3.0, -5.0, -8.0]),
    ]
    scored = []
    for n, (old, new) in enumerate(scores):
        hypotheses = [Hypothesis(n, *x) for x in zip(texts, ["", "", ""], old, strict=True)]
        scored.append((NBest("s", hypotheses), new))
    return scored, [texts[0]] * 3


def test_the_chosen_weight_is_that_of_an_exhaustive_search():
    scored, references = corpus()
    choice = choose_weight(scored, references)

    def judged(weight: float) -> float:
        best = [
            max(
                zip(nbest.hypotheses, ours, strict=True),
                key=lambda pair: (1 - weight) * pair[0].score + weight * pair[1],
            )[0].text
            for nbest, ours in scored
        ]
        return sacrebleu.corpus_bleu(best, [references]).score

    scores = {n / 100: judged(n / 100) for n in range(101)}
    assert choice.score.score == max(scores.values())
    assert scores[choice.weight] == choice.score.score
    assert min(scores[0.0], scores[1.0]) < choice.score.score
    as_good = [weight for weight, score in scores.items() if score == choice.score.score]
    assert abs(choice.weight - 0.5) == min(abs(weight - 0.5) for weight in as_good)


def test_choosing_a_weight_needs_sentences():
    refused(lambda: choose_weight([], []), "no sentences")
    refused(lambda: choose_weight([(NBest("s", []), [])], ["a", "b"]), "equal numbers")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the command on files and returns its output."""

    def call(*flags: str) -> str:
        monkeypatch.setattr(files, "load_translator", lambda _: Wordy())
        values = defined_flags("rescore")
        output = tmp_path / "output"
        parse(values, [f"--output={output}", "--model_dir=x", *flags])
        require(values, *required(GROUPS))
        check(values)
        rescore.run(values)
        return output.read_text("utf-8")

    return call


def write(path, *rows: str) -> str:
    return write_lines(path, rows)


def test_the_command_reranks(run, tmp_path, capsys):
    source = write(tmp_path / "source", "s", "t", "u")
    nbest = tmp_path / "nbest.gz"
    text = (
        b"0 ||| bz ||| LM0= -1 ||| -1\n0 ||| abc ||| LM0= -2 ||| -2\n2 ||| d ||| LM0= -3 ||| -3\n"
    )
    nbest.write_bytes(gzip.compress(text))
    flags = [f"--source={source}", f"--input={nbest}"]
    assert run(*flags) == (
        "0 ||| abc ||| LM0= -2 SimpleNamespace0= -3.0000 ||| -2.5\n"
        "0 ||| bz ||| LM0= -1 SimpleNamespace0= -11.0000 ||| -6\n"
        "2 ||| d ||| LM0= -3 SimpleNamespace0= -1.0000 ||| -2\n"
    )
    assert capsys.readouterr().err == "line 2: no hypotheses\n"
    assert run(*flags, "--weight=0", "--format=text") == "bz\n\nd\n"


def test_malformed_lists_are_named_by_their_flag(run, tmp_path):
    source = write(tmp_path / "source", "s", "t")
    good = write(tmp_path / "good", "0 ||| d ||| LM0= -3 ||| -3")
    bad = write(tmp_path / "bad", "7 ||| d ||| LM0= -3 ||| -3")
    flags = [f"--source={source}", f"--input={good}"]
    refused(lambda: run(*flags, f"--input={bad}"), "--input: line 1 is for sentence 7")
    dev = [f"--dev_source={source}", f"--dev_reference={source}"]
    refused(lambda: run(*flags, *dev, f"--dev_input={bad}"), "--dev_input: line 1 is for")


def test_a_source_that_is_not_utf8_is_not_blamed_on_the_list(run, tmp_path):
    source = tmp_path / "latin-1"
    source.write_bytes("été\n".encode("latin-1"))
    nbest = write(tmp_path / "nbest", "0 ||| d ||| LM0= -3 ||| -3")
    refused(lambda: run(f"--source={source}", f"--input={nbest}"), "latin-1: line 1 is not UTF-8")


def test_sentences_without_hypotheses_are_named_together(run, tmp_path, capsys):
    source = write(tmp_path / "source", *"abcdefgh")
    nbest = write(tmp_path / "nbest", "3 ||| d ||| LM0= -3 ||| -3")
    run(f"--source={source}", f"--input={nbest}")
    assert capsys.readouterr().err == "lines 1-3, 5-8: no hypotheses\n"


def weighed(tmp_path, first: str, second: str) -> list[str]:
    """Flags to choose the weight on a list of two, and to use it on the same.

    The second hypothesis is right, and the list ranks it second.
    """
    rows = f"0 ||| {first} ||| F0= 0 ||| -1", f"0 ||| {second} ||| F0= 0 ||| -2"
    source, nbest = write(tmp_path / "source", "s"), write(tmp_path / "nbest", *rows)
    reference = write(tmp_path / "reference", "the cat sat on the mat")
    flags = [f"--{name}source={source} --{name}input={nbest}" for name in ("", "dev_")]
    return f"{' '.join(flags)} --dev_reference={reference} --format=text".split()


def test_the_command_chooses_a_weight(run, tmp_path, capsys):
    right = "the cat sat on the mat"
    assert run(*weighed(tmp_path, "the cat z sat on the mat", right)) == f"{right}\n"
    chosen, weight, _ = capsys.readouterr().err.split("\n")
    assert chosen.startswith("--tokenize=13a, which fits")
    assert weight.startswith("weight 0.50, dev BLEU|")
    assert "= 100.00" in weight


def test_the_weight_may_be_chosen_without_regard_to_case(run, tmp_path, capsys):
    right = "THE CAT SAT ON THE MAT"
    files = weighed(tmp_path, "the cat z sat on the mat", right)
    for flags, best in (([], "the cat z"), (["--ignore_case"], "THE CAT SAT")):
        assert run(*files, *flags).startswith(best)
        assert ("= 100.00" in capsys.readouterr().err) == bool(flags)
