"""The tables, figures and findings of a report, with toy systems."""

import copy
import json
import math
import random
import re
import sys
from dataclasses import replace
from itertools import compress
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from refusals import fails, refused, says

from bahdanau_tf import report
from bahdanau_tf.commands.main import main
from bahdanau_tf.evaluation import Table, diagonal_links
from bahdanau_tf.models import RNNSearch
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import bahdanau, paper, suites, sutskever, writing
from bahdanau_tf.report.bahdanau import findings
from bahdanau_tf.report.paper import Document, Finding, Picture, Section
from bahdanau_tf.report.results import OUTSIDE, Corpus, Results, Scoring, System
from bahdanau_tf.text import Vocabulary, WordTokenizer, load_text
from bahdanau_tf.training import processes
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.result import Scored, Translation
from bahdanau_tf.translator import Translator

pytestmark = pytest.mark.usefixtures("eager_search")

WORDS = ["red", "green", "blue", "cat", "dog", "sits", "runs", "on", "mat"]
LENGTHS = [4, 9, 14, 19, 29, 44, 50, 58] * 6


def sentences(lengths):
    drawn = random.Random(1409)
    return [" ".join(drawn.choices(WORDS, k=length)) for length in lengths]


REFERENCES = sentences(LENGTHS)
TEST = Corpus(REFERENCES, REFERENCES)


def noisy(share, only=lambda length: True):
    """The references, with a share of the words of some of them replaced."""
    drawn = random.Random(share)
    rows = (line.split() for line in REFERENCES)
    return [
        " ".join("x" if only(len(row)) and drawn.random() < share else word for word in row)
        for row in rows
    ]


def system(name, kind="RNNsearch", texts=REFERENCES, **more):
    return System(name, kind, texts, more.pop("known_texts", texts), **more)


MOSES = system("moses", OUTSIDE)


def results(*systems, is_known=None, test=TEST, lengths=LENGTHS, n_bootstrap=20):
    scoring = Scoring(tokenize="13a", n_bootstrap=n_bootstrap)
    is_known = is_known or [True] * len(lengths)
    return Results(systems, test, lengths, "tokens", is_known, scoring)


def bleu(texts, mask=None):
    """BLEU by sacreBLEU of the sentences selected by a mask."""
    mask = mask or [True] * len(texts)
    wanted = [[*compress(REFERENCES, mask)]]
    return sacrebleu.corpus_bleu([*compress(texts, mask)], wanted).score


def test_table_1_has_the_papers_systems_first_and_says_not_run():
    is_known = [length < 20 for length in LENGTHS]
    stands_for = {"known_texts": noisy(0.1), "counterpart": "RNNsearch-50"}
    ours = system("ours", texts=noisy(0.3), **stands_for)
    table = bahdanau.translation_quality(results(ours, MOSES, is_known=is_known))
    rows = {row[0]: row[1:] for row in table.rows}
    assert [row[5] for row in table.rows] == [*paper.BLEU, ""]
    theirs = ["RNNencdec-30", 13.93, 24.19]
    assert rows["for RNNencdec-30"] == [None] * 4 + theirs
    whole, margin, part, characters, *theirs = rows["ours"]
    assert whole == bleu(noisy(0.3))
    assert 0 < margin < whole
    assert part == bleu(noisy(0.1), is_known)
    chrf = sacrebleu.corpus_chrf(noisy(0.3), [REFERENCES]).score
    assert characters == chrf
    assert theirs == ["RNNsearch-50", 26.75, 34.16]
    assert rows["moses"][0] == pytest.approx(100)
    assert rows["moses"][4:] == ["", "", ""]
    assert f"{sum(is_known)} of them" in table.notes[0]
    assert any("|tok:13a|" in note for note in table.notes)
    # Without known sentences there is no such score.
    nothing = results(ours, is_known=[False] * len(LENGTHS))
    rows = bahdanau.translation_quality(nothing).rows
    assert {row[3] for row in rows} == {None}


def test_the_significance_table_has_all_pairs():
    bad = noisy(0.5)
    table = bahdanau.significance(
        results(system("best"), system("bad", texts=bad), system("2", texts=bad))
    )
    assert table.columns == ["", "best", "bad", "2"]
    cells = np.array([row[1:] for row in table.rows])
    assert (cells == cells.T).all()
    assert [*cells.diagonal()] == [""] * 3
    assert float(cells[0, 1]) == pytest.approx(1 / 21, abs=1e-4)
    assert float(cells[1, 2]) == 1


def tried(search, encdec):
    """Findings for sentences of 25 to 40 words, and of over 40."""
    encdecs = (system(x, "RNNencdec", encdec, max_length=n) for x, n in (("other", 20), ("E", 40)))
    return findings(results(system("S", texts=search, max_length=40), *encdecs))


def test_an_rnnsearch_of_shorter_sentences_is_compared_with_an_rnnencdec_of_longer_ones():
    """As the paper compares RNNsearch-30 with RNNencdec-50."""
    bad = noisy(0.5)
    for ours, theirs, is_shown in ((REFERENCES, bad, True), (bad, REFERENCES, False)):
        short = system("S", texts=ours, max_length=30)
        (finding,) = findings(results(short, system("E", "RNNencdec", theirs, max_length=50)))
        assert finding.is_shown is is_shown
        assert f"BLEU {bleu(ours):.2f} and {bleu(theirs):.2f}" in finding.text


def falling(share):
    return noisy(share, lambda length: length > 40)


def test_the_papers_claim_is_confirmed_if_it_holds():
    few, fall = tried(REFERENCES, falling(0.6))
    assert few.is_shown is None  # there are 6 sentences of 25 to 40 words
    assert "has 18 such short and 6 long sentences; the test needs 10" in few.text
    assert fall.is_shown
    assert "RNNsearch stays flat where RNNencdec falls." in fall.text
    short, long, share = re.search(
        r"E has BLEU (\S+) on .* and (\S+) on .* keeps (\d+) ± \d+ %", fall.text
    ).groups()
    wanted = bleu(falling(0.6), [length > 40 for length in LENGTHS])
    assert (float(short), int(share)) == (100, round(wanted))
    assert float(long) == pytest.approx(wanted, abs=0.005)


def test_the_share_that_is_kept_has_a_bootstrap_interval():
    draw = np.random.default_rng(0)
    lengths = [length for length in (4, 5, 6, 11, 12) for _ in range(50)]
    references = sentences(lengths)
    rows = (line.split() for line in references)
    texts = [" ".join("x" if draw.random() < 0.3 else word for word in row) for row in rows]
    kinds = ("S", "RNNsearch"), ("E", "RNNencdec")
    systems = (system(name, kind, texts, max_length=10) for name, kind in kinds)
    test = Corpus(references, references)
    claims = findings(results(*systems, test=test, lengths=lengths, n_bootstrap=300))
    margin = re.search(r"S has .* keeps \d+ ± (\d+) %", claims[1].text)[1]
    short, long = np.array(lengths) <= 6, np.array(lengths) > 10

    def score(mask):
        drawn = draw.choice(mask.nonzero()[0], mask.sum())
        theirs = [[references[n] for n in drawn]]
        return sacrebleu.corpus_bleu([texts[n] for n in drawn], theirs).score

    shares = [score(long) / score(short) for _ in range(200)]
    low, high = np.percentile(shares, [2.5, 97.5])
    assert float(margin) == pytest.approx(50 * (high - low), rel=0.2, abs=0.5)


def test_a_claim_that_the_interval_leaves_open_says_so():
    _, sure = tried(REFERENCES, falling(0.6))
    assert "interval contains" not in sure.text
    _, unsure = tried(REFERENCES, falling(0.25))
    share, margin = re.search(r"E has .* keeps (\d+) ± (\d+) %", unsure.text).groups()
    assert abs(float(share) - 50) < float(margin)  # the bound lies in the interval
    assert "an interval contains the bound" in unsure.text


@pytest.mark.parametrize(
    ("search", "encdec", "reason"),
    [
        # Both fall; neither falls; one is bad everywhere; the wrong one falls.
        (falling(0.6), falling(0.7), "unlike in the paper, S does not stay"),
        (REFERENCES, REFERENCES, "E does not fall, and S is not clearly"),
        (REFERENCES, noisy(0.2), "E does not fall"),
        (falling(0.7), REFERENCES, "S does not stay flat, and E does not fall"),
    ],
)
def test_the_papers_claim_is_denied_if_it_does_not_hold(search, encdec, reason):
    _, claim = tried(search, encdec)
    assert claim.is_shown is False
    assert reason in claim.text


@pytest.mark.parametrize(
    ("systems", "start"),
    [
        ([system("S", max_length=30)], "There RNNsearch RNNencdec"),
        ([system("S"), system("E", "RNNencdec")], "S E longest"),
    ],
)
def test_the_papers_claim_is_not_tested_without_both_models_and_a_limit(systems, start):
    (finding,) = findings(results(*systems))
    assert finding.is_shown is None
    assert all(word in finding.text for word in start.split())


def test_without_matplotlib_nothing_is_begun(tmp_path, monkeypatch, capfd):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "out"
    fails(capfd, ["report", "--quick", f"--out_dir={out}"], "report needs matplotlib: pip install")
    said = "report.write", "matplotlib"
    refused(lambda: report.write(out, {}, Corpus(["a"], ["b"])), *said, by=ImportError)
    assert not out.exists()


def test_sentences_of_figure_3_are_chosen_by_the_papers_rule():
    drawn = random.Random(0)
    lengths = [drawn.randint(1, 60) for _ in range(300)]
    is_known = [drawn.random() < 0.5 for _ in lengths]
    aligned, long = chosen = bahdanau.choose(lengths, is_known)
    assert chosen == bahdanau.choose(lengths, is_known)
    assert len(set(aligned)) == 4
    assert all(is_known[n] and 10 <= lengths[n] <= 20 for n in aligned[1:])
    assert len(set(long)) == 3
    assert all(lengths[n] > 30 for n in long)
    assert bahdanau.choose([3], [False]) == ([0], [])
    assert lengths[aligned[0]] <= 50
    assert bahdanau.choose([70, 90, 50], [True] * 3)[0] == [2]
    assert bahdanau.choose([70], [False]) == ([0], [0])


def test_figure_2_has_bleu_by_length(tmp_path):
    section = bahdanau.figure_2(results(system("ours", texts=noisy(0.2))), tmp_path)
    (table,) = section.tables
    assert table.columns[1:] == ["1-10", "11-20", "21-30", "41-50", "51-60"]
    assert table.rows[0] == ["sentences", 12, 12, 6, 12, 6]
    wanted = bleu(noisy(0.2), [length == 29 for length in LENGTHS])
    assert table.rows[1][3].startswith(f"{wanted:.2f} ± ")
    assert section.data["figure2"]["ours"][2]["bleu"] == wanted
    assert section.pictures[0].path.read_bytes().startswith(b"\x89PNG")


def test_long_sentences_are_listed_with_reference_and_translation():
    ours = results(system("ours", texts=noisy(0.5)))
    table = bahdanau.long_sentences(ours, [5, 7])
    assert [row[1] for row in table.rows] == ["source", "reference", "ours"] * 2
    assert [row[0] for row in table.rows] == [1, "", "", 2, "", ""]
    assert [row[2] for row in table.rows[4:]] == [REFERENCES[7], noisy(0.5)[7]]
    assert "no sentence" in bahdanau.long_sentences(ours, []).notes[0]


@pytest.fixture(scope="module")
def translator():
    """A random model with large weights, so that its alignment is sharp."""
    text = WordTokenizer(Vocabulary.build([WORDS * 3], 40))
    sizes = {"units": 6, "embedding_dim": 5, "attention_units": 4, "maxout_units": 3}
    count = text.vocabulary_size
    model = RNNSearch(count, count, **sizes, kernel_initializer="glorot_uniform")
    for variable in model.trainable_variables:
        variable.assign(3 * variable)
    return Translator(model, text, text, Decoding(1, unknown="forbid"))


def test_alignments_are_compared_with_gold_and_diagonal(translator, monkeypatch):
    """n words and n words; weights on the end symbols give no links."""
    lengths = [6, 9, 12]
    sources = sentences(lengths)
    aligned = [
        Translation(
            "",
            tokens=["y"] * n,
            source_tokens=["x"] * n,
            weights=np.random.default_rng(n).random([n + 1, n + 1]),
        )
        for n in lengths
    ]
    monkeypatch.setattr(translator, "align", lambda *_: aligned)
    own = [translation.hard_alignment for translation in aligned]
    diagonal = [diagonal_links(n, n) for n in lengths]

    def row(gold, max_length=9):
        model = system("S", translator=translator, max_length=max_length)
        test = Corpus(sources, sources, gold)
        own_results = results(model, test=test, lengths=lengths)
        return bahdanau.alignment_table(own_results).rows[0][1:]

    # The model has no errors against its own alignment as gold; the diagonal has some.
    whole, theirs, short, short_theirs, nats, equal, words = row(own)
    assert whole == short == 0 < min(theirs, short_theirs)
    assert words == pytest.approx(math.exp(nats))
    # log n for each of n words, which is the most.
    most = sum(n * math.log(n) for n in lengths) / sum(lengths)
    assert equal == pytest.approx(most)
    assert nats < equal
    whole, theirs, *_ = row(diagonal)
    assert theirs == 0 < whole
    # Errors in a long sentence do not count for the short ones.
    whole, _, short, *_ = row([*own[:2], diagonal[2]])
    assert short == 0 < whole
    # Without `max_length`, which sentences are short is unknown.
    assert row(own, None)[2:4] == ["", ""]
    assert row(None)[:4] == ["no gold"] * 4


def test_the_alignment_table_says_which_systems_have_none(translator):
    systems = system("S", translator=translator), system("L", "LSTM forward"), MOSES
    table = bahdanau.alignment_table(results(*systems, test=Corpus(["red"], ["blue cat"])))
    one_word_has_all = [*["no gold"] * 4, 0.0, 0.0, 1.0]
    assert table.rows == [["S", *one_word_has_all], ["L", "no attention", *[""] * 6]]


class Adder:
    """Each source word that a target repeats adds its length to log p; α is at fixed places."""

    weights = np.array([[0.5, 0.2, 0.3, 0], [0.5, 0.1, 0.4, 0], [1, 1, 1, 1]])

    def align(self, sources, targets):
        ends = [[(2 * n, 2 * n + 1) for n in range(3)] for _ in sources]
        rows = zip(sources, targets, self.score(sources, targets), ends, strict=True)
        return [
            Translation(
                x,
                y,
                [*y.replace(" ", "")],
                log_prob=scored.log_prob,
                source_tokens=[*x.replace(" ", "")],
                source_offsets=end[: len(x.split())],
                target_offsets=end[:2],
                weights=self.weights,
            )
            for x, y, scored, end in rows
        ]

    def score(self, sources, targets):
        points = {"b": 3.0, "c": 1.0}
        return [SimpleNamespace(log_prob=sum(points.get(w, 0) for w in x.split())) for x in sources]


def test_erasure_compares_attention_with_what_a_word_changes():
    """Attention 1.0, 0.3, 0.7 on a, b, c; without them log p falls by 0, 3, 1: ranks opposed."""
    estimates = bahdanau.erasure(Adder(), ["a b c"] * 4, ["x y"] * 4)
    assert [each.value for each in estimates] == pytest.approx([0, 4 / 3, 3, -1])
    assert [each.margin for each in estimates] == pytest.approx([0] * 4)
    refused(lambda: bahdanau.erasure(Adder(), ["a"], ["x y"]), "sentences")
    translator = SimpleNamespace(model=SimpleNamespace(has_alignment=True))
    empty = system("untrained", texts=[""] * len(REFERENCES), translator=translator)
    assert bahdanau.erasure_table(results(empty)).rows == []
    one_word = Corpus(["red"], ["x y"])
    short = results(system("S", texts=["x y"], translator=translator), test=one_word)
    assert bahdanau.erasure_table(short).rows == []
    # Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4.
    assert bahdanau.rank_correlation(np.array([1, 2, 2, 5]), np.array([0, 7, 2, 9])) == (
        pytest.approx(4.5 / math.sqrt(4.5 * 5))
    )
    assert bahdanau.rank_correlation(np.ones(3), np.arange(3)) == 0


class Lister:
    """A translator with given n-best lists, log p and text settings."""

    def __init__(self, lists=None, log_probs=None, settings="own"):
        self.lists, self.log_probs = lists, log_probs or {}
        self.target_text = SimpleNamespace(settings=lambda: settings)
        self.beams = []

    def translate(self, sources, decoding, split_sentences):
        assert split_sentences is False  # as in the papers
        self.beams.append(decoding.beam_size)
        for source, texts in zip(sources, self.lists, strict=True):
            ranked = enumerate(texts[: decoding.n_best])
            best, *others = (Translation(source, x, log_prob=-1.0 - n) for n, x in ranked)
            yield replace(best, alternatives=others)

    def score(self, sources, targets):
        logs = (self.log_probs.get(text, -99.0) for text in targets)
        return [Scored(log_prob, [], np.full(2, log_prob / 2)) for log_prob in logs]


def test_ensembles_without_enough_members_are_not_run():
    forward = Lister([[line] for line in noisy(0.4)])
    other = Lister(settings="other")
    ours = results(
        system("f", "LSTM forward", translator=forward, max_length=20),
        system("o", "LSTM reversed", translator=other, max_length=50),
        system("s", translator=Lister()),
    )
    members = sutskever.lstm_members(ours)
    assert members == {"forward": [forward], "reversed": [], "mixed": []}
    table = sutskever.ensemble_table(ours, members)
    short = [length <= 20 for length in LENGTHS]
    scores = [bleu(noisy(0.4)), bleu(noisy(0.4), short)]
    perplexity = pytest.approx(math.exp(99 / 2))
    assert table.rows[0][1:] == [*scores, perplexity, 26.17, 5.8]
    assert table.rows[1][1:] == [None, None, None, 30.59, 4.7]
    assert forward.beams == [12]
    assert all(row[1:4] == [None, None, ""] for row in table.rows[2:])
    assert [row[4] for row in table.rows] == [*paper.ENSEMBLES.values(), ""]


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([], "No LSTM was run."),
        ([None], "The longest length of the LSTMs' training sentences is unknown"),
        ([14, None], "The longest length of the LSTMs' training sentences is unknown"),
        ([14], "18 of 48 sentences are no longer than the LSTMs"),
        # All LSTMs were trained on sentences of that length.
        ([50, 14], "18 of 48 sentences are no longer than the LSTMs"),
    ],
)
def test_notes_say_on_which_lengths_lstms_were_trained(lengths, said):
    lister = Lister([[line] for line in REFERENCES])
    ours = results(
        system("S", max_length=50),
        *(system("L", "LSTM forward", max_length=n, translator=lister) for n in lengths),
    )
    members = sutskever.lstm_members(ours)
    table = sutskever.ensemble_table(ours, members)
    assert table.notes[0].startswith(said)
    assert ({row[1] for row in table.rows} == {None}) == (not lengths)
    rescoring = sutskever.rescoring_table(ours, members)
    assert "No RNNencdec was run" in rescoring.notes[0]
    assert {row[1] for row in rescoring.rows} == {None}


def test_rescoring_ranks_by_the_models_scores():
    good, bad = "red cat sits on mat", "dog dog dog dog"
    lists = Lister([[bad, "red cat sits"], [bad, good, "red"]])
    likes_good = Lister(log_probs={good: -1.0, "red cat sits": -2.0})
    members = {"forward": [likes_good], "reversed": [Lister(log_probs={bad: 0})]}
    short = system("short", "RNNencdec", translator=Lister(), max_length=9)
    base = system("base", "RNNencdec", translator=lists, max_length=10)
    ours = results(short, base, test=Corpus(["a", "b"], [good, good]))
    table = sutskever.rescoring_table(ours, members)
    best = sacrebleu.corpus_bleu(["red cat sits", good], [[good, good]]).score
    assert [row[:2] for row in table.rows] == [
        ["Baseline: base, beam size 12", 0],
        ["Rescored: single forward", pytest.approx(best)],
        ["Rescored: single reversed", 0],
        ["Rescored: ensemble of 5 reversed", None],
        ["Rescored: ensemble of 2 mixed", None],
        ["Oracle", pytest.approx(best)],
    ]


def test_hours_are_those_of_all_sessions(translator, tmp_path):
    """The report's record lacks a session that was killed; the log has it."""
    line = '{"step": 5, "epoch": 1.0, "seconds": 7200.0}\n'
    (tmp_path / "log.jsonl").write_text(line + '{"step": 9, "ep')
    record = {"seconds": 360.0, "device": "a CPU", "is_over": True}
    (tmp_path / "trained.json").write_text(json.dumps(record))
    ours = system("ours", translator=translator, model_dir=tmp_path)
    table = bahdanau.training_table(results(ours), None, None)
    assert {row[0]: row[1:4] for row in table.rows}["ours"] == [5, 1.0, 2.0]


def test_the_training_table_is_read_from_the_model_folder(translator, tmp_path):
    (tmp_path / "log.jsonl").write_text(
        '{"step": 5, "epoch": 1.0, "seconds": 90.0}\n'
        '{"step": 12, "epoch": 2.5, "seconds": 1800.0, "device": "a GPU"}\n'
    )
    dev = Corpus(["red cat", "dog"], ["blue", "mat sits"])
    translator = copy.copy(translator)  # whose habits change
    translator.habits = Habits(1)
    trained = {"translator": translator, "model_dir": tmp_path}
    ours = system("ours", counterpart="RNNsearch-30", **trained)
    unwritten = replace(ours, counterpart="", name="x", model_dir=tmp_path / "x")
    table = bahdanau.training_table(results(ours, unwritten, MOSES), dev, dev)
    rows = {row[0]: row[1:] for row in table.rows}
    assert [*rows][2::3] == ["ours", "x"]
    assert rows["x"][:4] == ["not recorded"] * 4
    (tmp_path / "train.flags").write_text("--tokenizer=word\n--step_order=original\n")
    *_, note = bahdanau.translation_quality(results(ours, unwritten)).notes
    assert note == "Trained with --step_order=original --tokenizer=word: ours."
    scores = translator.score(dev.sources, dev.references)
    nll = pytest.approx(-np.mean([s.log_prob for s in scores]))
    # No training pair is as short as `max_length`.
    assert rows["ours"][:6] == [12, 2.5, 0.5, "a GPU", None, nll]
    assert rows["ours"][6:9] == ["RNNsearch-30", 471_000, 3.6]
    assert rows["for RNNsearch-50*"][:6] == [None] * 6
    translator.habits = Habits(longest_words=1)  # of the source alone: "dog"
    table = bahdanau.training_table(results(ours), dev, None)
    learned = -translator.score(["dog"], ["mat sits"])[0].log_prob
    assert {row[0]: row[5:7] for row in table.rows}["ours"] == [pytest.approx(learned), None]
    nothing = Corpus([], [])
    table = bahdanau.training_table(results(ours), nothing, nothing)
    assert {row[0]: row[5:7] for row in table.rows}["ours"] == [None, None]


def cells(html):
    """Attributes and text of the cells of a page; elements must be nested."""
    opened = []
    for closes, name in re.findall(r"<(/?)([a-z][a-z0-9]*)", html):
        if closes:
            assert opened.pop() == name
        elif name not in ("meta", "img"):
            opened.append(name)
    assert not opened
    return re.findall(r"<t[dh]((?: [^>]*)?)>(.*?)</t[dh]>", html)


def test_the_page_has_no_external_parts_and_marks_the_papers_numbers(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    rows = [["<script>alert(1)</script>", 26.75], [None, ""], ["$x$ & y", 3000]]
    table = Table("t", "T & t", ["system", f"{paper.MARK}BLEU"], rows)
    picture = Picture(tmp_path / "a.png", 'a "quoted" title')
    found = [Finding(True, "a"), Finding(False, "b"), Finding(None, "c")]
    section = Section("Figure", ["Said"], [picture], [table])
    commands = ["bahdanau-tf train --a='<b>'"]
    html = writing.as_html(Document("A <title>", ["About"], found, [section], commands))
    assert cells(html) == [
        (' colspan="1"', ""),
        (' scope="colgroup" colspan="1" class="paper"', "the paper&#x27;s own"),
        (' scope="col"', "system"),
        (' scope="col" class="number paper"', "BLEU"),
        ("", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        (' class="number paper"', "26.75"),
        (' class="missing"', "not run"),
        (' class="number paper"', ""),
        ("", "$x$ &amp; y"),
        (' class="number paper"', "3,000"),
    ]
    assert re.findall(r'(?:src|href)="(.{22})', html) == ["data:image/png;base64,"]
    for absent in ("http", "url(", "<script", "<link", "<iframe"):
        assert absent not in html
    assert "prefers-color-scheme: dark" in html
    for answer in ("Yes.", "No.", "Not run."):
        assert f"<strong>{answer}</strong>" in html


ONE = Corpus(["a"], ["b"])
UNEQUAL = Corpus(["a", "b"], ["c"])


@pytest.mark.parametrize(
    ("models", "test", "options", "sentence"),
    [
        ({}, ONE, {}, "systems"),
        ({"m": "d"}, Corpus([], []), {}, "sentences"),
        ({"m": "d"}, Corpus(["a"], []), {}, "1 0 references"),
        ({"m": "d"}, Corpus(["a"], ["b"], []), {}, "1 0 references"),
        ({"a/b": "d", "a-b": "e"}, ONE, {}, "a/b a-b would"),
        ({"m": "d"}, ONE, {"counterparts": {"m": "RNNsearch"}}, "'RNNsearch' counterpart"),
        ({"m": "d"}, ONE, {"scoring": Scoring(tokenize="14a")}, "'14a'"),
        ({"m": "d"}, ONE, {"scoring": Scoring(n_bootstrap=0)}, "n_bootstrap 0"),
        ({"m": "d"}, ONE, {"train": UNEQUAL}, "train 2 1"),
        ({"m": "d"}, ONE, {"dev": UNEQUAL}, "dev 2 1"),
    ],
)
def test_bad_input_is_refused_before_translating(tmp_path, models, test, options, sentence):
    refused(lambda: report.write(tmp_path, models, test, **options), *sentence.split())


def test_a_report_may_have_only_external_systems(tmp_path):
    options = {"hypotheses": {"Moses": noisy(0.1), "a/b": noisy(0.3)}}
    options["scoring"] = report.Scoring(n_bootstrap=20)
    path = report.write(tmp_path / "report", {}, TEST, **options)
    table_cells = cells(path.read_text("utf-8"))
    marked = (' class="number paper"', "33.30")  # the paper's score
    assert [cell for cell in table_cells if cell[1] == "33.30"] == [marked] * 2
    written = (path.parent / "translations" / "a-b.txt").read_text()
    assert written.count("\n") == len(REFERENCES)
    assert (path.parent / "table1.csv").read_text().count("not run") >= 5
    assert (path.parent / "figure2.png").is_file()
    data = json.loads((path.parent / "report.json").read_text("utf-8"))
    assert data["figure3"] == []
    moses = data["tables"]["table1"]["rows"][5]
    assert moses[:2] == ["Moses", bleu(noisy(0.1))]


TRANSLATED = "--source={0} --reference={0} --hypotheses=moses={0} "


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (f"{TRANSLATED}--nbest=a={{0}} --nbest=b={{0}}", "--nbest 2 times"),
        (f"{TRANSLATED}--nbest=a={{0}}", "1 'a b'"),
        (f"{TRANSLATED}--nbest=a=/dev/null", "1 hypothesis"),
        (f"{TRANSLATED}--phrases={{0}}", "sentences"),
        ("--quick --full", "both"),
        ("--full --train_source=a", "--source missing"),
        ("--system=model", "NAME=PATH"),
        ("--quick --train_flag=units=5", "'units=5' flag"),
        ("--quick --train_flag=--units=0", "0 units"),
        ("--quick --train_flag=--model=rnnencdec", "--model=rnnencdec wanted"),
        ("--quick --train_flag=--model_dir=a", "'--model_dir=a'"),
        ("--full --train_flag=--seed=3", "LSTM 2"),
        ("--quick --train_systems=a,b", "--train_systems 'a'"),
        ("--quick --train_flag=--joint", "--tokenizer=word"),
        ("--quick --unknown=replace", "attention"),
        ("--quick --hypotheses=RNNsearch-15={}", "system"),
        ("--quick --system=a=/nowhere", "translator"),
        ("--quick --system=RNNsearch/15=a", "RNNsearch-15 RNNsearch/15"),
        ("--quick --system=a/b=a --hypotheses=a-b={}", "translations/a both"),
        (
            "--full --train_source={0} --train_target={0} --source={0} "
            "--reference={0} --dev_source={0} --dev_target={1}",
            "--dev_target 1 --dev_source",
        ),
        (
            "--full --train_source={2} --train_target={2} --source={2} "
            "--reference={2} --dev_source={2} --dev_target={2}",
            "--source segmented",
        ),
    ],
)
def test_bad_flags_are_refused_before_training(capfd, tmp_path, monkeypatch, flags, sentence):
    monkeypatch.setattr(processes, "train_all", lambda *_: pytest.fail("training was started"))
    pairs = {"train": 20, "dev": 2, "test": 3}
    monkeypatch.setattr(suites, "QUICK", replace(suites.QUICK, pairs=pairs))
    files = text, empty, joined = [tmp_path / name for name in ("text", "empty", "joined")]
    text.write_text("a b\n")
    empty.touch()
    joined.write_text("猫が座っている\n" * 20, "utf-8")
    out = tmp_path / "out"
    err = fails(capfd, ["report", f"--out_dir={out}", *flags.format(*files).split()])
    says(err, sentence)
    assert "Traceback" not in err
    # At most the built-in corpus was written.
    assert [path.name for path in out.glob("*")] in ([], ["data"])


@pytest.mark.slow
def test_the_quick_report_is_written_twice_with_one_training(tmp_path, monkeypatch, capsys):
    """Trains for seconds and writes a report; then again without training."""
    quick, pairs = suites.QUICK, {"train": 120, "dev": 4, "test": 40}
    quick = replace(quick, attention={"50": quick.attention["50"]}, reversed_count=0, pairs=pairs)
    monkeypatch.setattr(suites, "QUICK", quick)
    words = "report --quick --train_flag=--epochs=1 --train_flag=--units=12"
    words += f" --max_length=10 --beam_size=2 --minutes=30 --out_dir={tmp_path}"
    assert main(words.split()) == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == 9
    assert "http" not in page
    data = json.loads((tmp_path / "report.json").read_text("utf-8"))
    rows = {row[0]: row for row in data["tables"]["table1"]["rows"]}
    assert rows["for RNNsearch-50*"][1] is None
    assert rows["RNNsearch-30"][5] == "RNNsearch-50"
    training = {row[0]: row for row in data["tables"]["table2"]["rows"]}
    assert training["LSTM forward"][1] == 2  # updates of 64 pairs
    aligned = {row[0]: row for row in data["tables"]["alignments"]["rows"]}
    assert 0 < aligned["RNNsearch-30"][1] <= 1
    text = load_text(tmp_path / "models" / "RNNsearch-30" / "target")
    assert text.vocabulary_size <= 260
    checkpoints = [*tmp_path.glob("models/*/checkpoints/checkpoint")]
    assert len(checkpoints) == 3
    before = {path: path.stat().st_mtime_ns for path in checkpoints}
    capsys.readouterr()
    assert main(words.split()) == 0
    assert before == {path: path.stat().st_mtime_ns for path in checkpoints}
    again = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert again["tables"]["table1"] == data["tables"]["table1"]
