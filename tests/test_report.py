"""The report's tables, figures and words, over toy systems that can fail."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu

from bahdanau_tf import report
from bahdanau_tf.evaluation import known_sentences
from bahdanau_tf.models import RNNSearch
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import figures
from bahdanau_tf.report import paper
from bahdanau_tf.report.alignments import align
from bahdanau_tf.report.alignments import alignment_quality
from bahdanau_tf.report.alignments import diagonal_links
from bahdanau_tf.report.alignments import hard_links
from bahdanau_tf.report.alignments import mean_entropy
from bahdanau_tf.report.claim import Finding
from bahdanau_tf.report.claim import findings
from bahdanau_tf.report.contents import Contents
from bahdanau_tf.report.lstm_tables import ensemble_table
from bahdanau_tf.report.lstm_tables import lstm_members
from bahdanau_tf.report.lstm_tables import rescoring_table
from bahdanau_tf.report.page import Picture
from bahdanau_tf.report.page import Section
from bahdanau_tf.report.page import page
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured
from bahdanau_tf.report.systems import source_lengths
from bahdanau_tf.report.tables import Table
from bahdanau_tf.report.tables import alignment_table
from bahdanau_tf.report.tables import long_sentences
from bahdanau_tf.report.tables import significance
from bahdanau_tf.report.tables import translation_quality
from bahdanau_tf.report.training_table import training_table
from bahdanau_tf.text import SubwordTokenizer
from bahdanau_tf.text import Vocabulary
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation import Scored
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator

HOW = {"tokenize": "13a", "lowercase": False}
WORDS = ["red", "green", "blue", "cat", "dog", "sits", "runs", "on", "mat"]


def sentences(lengths: list[int], seed: int = 1409) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=length)) for length in lengths]


def noisy(lines: list[str], share: float, only=lambda _: True) -> list[str]:
    """Replaces a share of the words, in lines of some lengths only."""
    drawn = random.Random(share)
    return [
        " ".join(
            "x" if only(len(line.split())) and drawn.random() < share else word
            for word in line.split()
        )
        for line in lines
    ]


def system(name: str, kind: str, texts: list[str], **more) -> Measured:
    return Measured(name, kind, texts, more.pop("known_texts", texts), **more)


LENGTHS = [4, 9, 14, 19, 29, 44, 50, 58] * 6
REFERENCES = sentences(LENGTHS)
TEST = Corpus(REFERENCES, REFERENCES)
IS_LONG = [length > 40 for length in LENGTHS]


def test_quality_has_the_papers_systems_first_and_says_not_run():
    known = [length < 20 for length in LENGTHS]
    kept = [line for line, k in zip(REFERENCES, known, strict=True) if k]
    texts, better = noisy(REFERENCES, 0.3), noisy(kept, 0.1)
    table = translation_quality(
        [
            system(
                "ours",
                "RNNsearch",
                texts,
                known_texts=better,
                counterpart="RNNsearch-50",
            ),
            system("moses", "outside system", REFERENCES, known_texts=kept),
        ],
        TEST,
        known,
        HOW,
        50,
    )
    rows = {row[0]: row for row in table.rows}
    assert [row[5] for row in table.rows][:6] == [*paper.BLEU]
    assert rows["for RNNencdec-30"][1:5] == [None] * 4
    assert rows["for RNNencdec-30"][6:] == [13.93, 24.19]
    ours = rows["ours"]
    assert ours[1] == sacrebleu.corpus_bleu(texts, [REFERENCES]).score
    assert ours[3] == sacrebleu.corpus_bleu(better, [kept]).score
    assert ours[4] == sacrebleu.corpus_chrf(texts, [REFERENCES]).score
    assert ours[5:] == ["RNNsearch-50", 26.75, 34.16]
    assert rows["moses"][1] == pytest.approx(100)
    assert rows["moses"][5:] == ["", "", ""]
    assert any("|tok:13a|" in note for note in table.notes)
    assert f"{len(kept)} of them" in table.notes[0]
    assert ",not run," in table.as_csv()


def test_without_known_sentences_there_is_no_such_figure():
    table = translation_quality(
        [system("ours", "RNNsearch", REFERENCES, known_texts=[])],
        TEST,
        [False] * len(LENGTHS),
        HOW,
        0,
    )
    assert table.rows[-1][3] is None


def test_significance_of_all_pairs():
    table = significance(
        [
            system("best", "RNNsearch", REFERENCES),
            system("bad", "RNNencdec", noisy(REFERENCES, 0.5)),
            system("the same", "RNNencdec", noisy(REFERENCES, 0.5)),
        ],
        REFERENCES,
        HOW,
        200,
    )
    assert table.columns == ["", "best", "bad", "the same"]
    cells = np.array([row[1:] for row in table.rows])
    assert (cells == cells.T).all()
    assert [*cells.diagonal()] == [""] * 3
    assert float(cells[0, 1]) < 0.01
    assert float(cells[1, 2]) == 1


def tried(search: list[str], encdec: list[str]) -> list[Finding]:
    """On sentences of 21 to 40 words, and over 40, beside those up to 20."""
    return findings(
        [
            system("S", "RNNsearch", search, max_length=40),
            system("other", "RNNencdec", encdec, max_length=20),
            system("E", "RNNencdec", encdec, max_length=40),
        ],
        TEST,
        LENGTHS,
        HOW,
        200,
    )


def falling(share: float) -> list[str]:
    return noisy(REFERENCES, share, lambda length: length > 40)


def test_the_claim_is_seen_where_it_holds():
    few, found = tried(REFERENCES, falling(0.6))
    assert few.is_shown is None  # there are 6 sentences of 21 to 40 words
    assert "too few" in few.text
    assert found.is_shown
    assert "RNNsearch stays flat where RNNencdec falls." in found.text
    short, long, share = re.search(
        r"E has BLEU (\S+) on .* and (\S+) on .* keeps (\d+) %", found.text
    ).groups()
    assert float(short) == 100
    wanted = sacrebleu.corpus_bleu(
        list(itertools.compress(falling(0.6), IS_LONG)),
        [list(itertools.compress(REFERENCES, IS_LONG))],
    ).score
    assert float(long) == pytest.approx(wanted, abs=0.005)
    assert int(share) == round(wanted)


@pytest.mark.parametrize(
    ("search", "encdec", "reason"),
    [
        # Both fall.
        (falling(0.6), falling(0.7), "unlike in the paper, S does not stay"),
        # Neither does.
        (REFERENCES, REFERENCES, "E does not fall, and S is not clearly"),
        # One that is bad everywhere does not fall.
        (REFERENCES, noisy(REFERENCES, 0.2), "E does not fall"),
        # The wrong one falls.
        (falling(0.7), REFERENCES, "S does not stay flat, and E does not fall"),
    ],
)
def test_the_claim_is_denied_where_it_does_not_hold(search, encdec, reason):
    _, found = tried(search, encdec)
    assert found.is_shown is False
    assert reason in found.text


def test_the_claim_is_not_tried_without_a_pair():
    alone = [system("S", "RNNsearch", REFERENCES, max_length=30)]
    (found,) = findings(alone, TEST, LENGTHS, HOW, 10)
    assert found.is_shown is None
    assert found.text.startswith("There is no RNNsearch beside an RNNencdec")


def test_sentences_are_chosen_by_the_papers_rule():
    drawn = random.Random(0)
    lengths = [drawn.randint(1, 60) for _ in range(300)]
    known = [drawn.random() < 0.5 for _ in lengths]
    chosen = figures.choose(lengths, known)
    assert chosen == figures.choose(lengths, known)
    assert len(set(chosen.aligned)) == 4
    assert all(known[n] and 10 <= lengths[n] <= 20 for n in chosen.aligned[1:])
    assert len(chosen.long) == 3
    assert all(lengths[n] > 30 for n in chosen.long)
    assert figures.choose([3], [False]) == ([0], [])


def test_curves_are_bleu_of_each_length_and_are_drawn(tmp_path):
    texts = noisy(REFERENCES, 0.2)
    found = figures.curves(
        [system("ours", "RNNsearch", texts)], TEST, LENGTHS, HOW, 20
    )
    table = figures.curve_table(found, "tokens")
    assert table.columns[1:] == ["1-10", "11-20", "21-30", "41-50", "51-60"]
    assert table.rows[0] == ["sentences", 12, 12, 6, 12, 6]
    mask = [length == 29 for length in LENGTHS]
    wanted = sacrebleu.corpus_bleu(
        list(itertools.compress(texts, mask)),
        [list(itertools.compress(REFERENCES, mask))],
    ).score
    assert table.rows[1][3].startswith(f"{wanted:.2f} ± ")
    drawn = figures.draw_curves(found, tmp_path).read_bytes()
    assert drawn.startswith(b"\x89PNG")


def test_long_sentences_stand_side_by_side():
    table = long_sentences(
        [system("ours", "RNNsearch", noisy(REFERENCES, 0.5))], TEST, [5, 7]
    )
    assert [row[1] for row in table.rows] == ["source", "reference", "ours"] * 2
    assert [row[0] for row in table.rows] == [1, "", "", 2, "", ""]
    assert table.rows[3][2] == REFERENCES[7]
    assert "no sentence" in long_sentences([], TEST, []).notes[0]


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Made of chance, with sharp weights."""
    text = WordTokenizer(Vocabulary.build([WORDS * 3], 40))
    model = RNNSearch(
        text.vocabulary_size,
        text.vocabulary_size,
        units=6,
        embedding_dim=5,
        attention_units=4,
        maxout_units=3,
        kernel_initializer="glorot_uniform",
    )
    for variable in model.trainable_variables:
        variable.assign(3 * variable)
    return Translator(model, text, text, Decoding(1, unknown="forbid"))


def test_given_pairs_are_aligned_as_they_would_be_in_search(translator):
    sources = sentences([3, 12, 7, 1])
    found = [t for t in translator.translate(sources) if t.tokens]
    assert len(found) >= 2
    aligned = align(
        translator, [t.source for t in found], [t.text for t in found], 2
    )
    for weights, one in zip(aligned, found, strict=True):
        words = one.weights[: len(one.tokens), : len(one.source_tokens)]
        np.testing.assert_allclose(weights, words, atol=1e-5)
        assert hard_links(weights) == one.hard_alignment
        # The gold that is the model's own has no errors.
    gold = [one.hard_alignment for one in found]
    corpus = Corpus([t.source for t in found], [t.text for t in found], gold)
    short = [True] + [False] * (len(found) - 1)
    half = corpus._replace(
        alignments=[gold[0], *[frozenset()] * (len(found) - 1)]
    )
    mine, some = (
        alignment_quality(translator, one, short) for one in (corpus, half)
    )
    assert mine.all.model == mine.short.model == 0
    assert some.short.model == 0 < some.all.model < 1
    no_gold = corpus._replace(alignments=None)
    assert alignment_quality(translator, no_gold, short)[:2] == (None, None)
    # It is not known which are short: that is not all of them.
    assert alignment_quality(translator, corpus, None).short is None


def test_the_diagonal_is_a_baseline():
    """Each target word at the middle of its share of the source."""
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 4) == {(1, 0), (3, 1)}
    assert diagonal_links(4, 2) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(2, 0) == diagonal_links(0, 2) == frozenset()
    for target, source in itertools.product(range(1, 30), repeat=2):
        links = diagonal_links(target, source)
        assert len(links) == target
        for j, i in links:
            assert j / source <= (i + 0.5) / target < (j + 1) / source + 1e-9


def test_the_diagonal_stands_beside_the_model(translator):
    """Gold that is the diagonal itself: it has no errors, the model some."""
    lines = sentences([6, 9, 12])
    lengths = [len(line.split()) for line in lines]
    gold = [diagonal_links(length, length) for length in lengths]
    quality = alignment_quality(
        translator, Corpus(lines, lines, gold), [True, False, False]
    )
    assert quality.all.diagonal == quality.short.diagonal == 0
    assert quality.all.model > 0
    table = alignment_table({"S": quality}, [system("S", "RNNsearch", [])])
    assert len(table.rows[0]) == len(table.columns)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["the diagonal's, all"] == 0
    assert cells["alignment error rate, all"] == quality.all.model


def test_entropy():
    uniform, sharp = np.full([2, 8], 1 / 8), np.eye(4)
    assert mean_entropy([uniform]) == pytest.approx(math.log(8))
    assert mean_entropy([sharp]) == 0
    assert mean_entropy([uniform, sharp]) == pytest.approx(math.log(8) / 3)
    assert mean_entropy([]) == 0
    # What lies on the end symbol, which is left out, is not counted.
    assert mean_entropy([uniform / 2]) == pytest.approx(math.log(8))
    assert hard_links(np.zeros([0, 3])) == frozenset()


def test_alignment_table_says_who_has_none(translator):
    table = alignment_table(
        {
            "S": alignment_quality(
                translator, Corpus(["red"], ["blue cat"]), [True]
            )
        },
        [
            system("S", "RNNsearch", []),
            system("L", "LSTM forward", []),
            system("moses", "outside system", []),
        ],
    )
    assert [row[0] for row in table.rows] == ["S", "L"]
    # One word has all.
    assert table.rows[0][1:] == [*["no gold"] * 4, 0.0, 1.0]
    assert table.rows[1][1] == "no attention"


def test_known_sentences_and_lengths(translator):
    sources = ["red cat", "red whale", "dog"]
    references = ["blue", "blue", "whale"]
    known = known_sentences([translator], sources, references)
    assert known == [True, False, False]
    assert known_sentences([], sources, references) == [True] * 3
    assert source_lengths([translator], ["a, b"]) == ([3], "tokens")
    assert source_lengths([], ["a, b"]) == ([2], "words between blanks")


def test_lengths_are_sub_words_where_training_counted_them(
    translator, tmp_path
):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in REFERENCES))
    text = SubwordTokenizer.train([path], 290)
    by_pieces = SimpleNamespace(source_text=text)
    ids = text.tokenize(["red catdog"]).to_list()[0]
    assert source_lengths([by_pieces], ["red catdog"]) == (
        [len(ids) - 1],
        "sub-words",
    )
    assert len(ids) > 3  # more pieces than words
    assert source_lengths([by_pieces, translator], ["red cat"])[1] == "tokens"


class Lister:
    """Has given n-best lists, log p and text settings; notes beam sizes."""

    def __init__(self, lists=None, log_probs=None, settings="own") -> None:
        self.lists, self.log_probs = lists, log_probs or {}
        self.target_text = SimpleNamespace(settings=lambda: settings)
        self.beams: list[int] = []

    def translate(self, sources, decoding):
        self.beams.append(decoding.beam_size)
        return [
            Translation(
                source,
                texts[0],
                log_prob=-1.0,
                alternatives=[
                    Translation(source, text, log_prob=-1.0 - n)
                    for n, text in enumerate(texts[1 : decoding.n_best], 1)
                ],
            )
            for source, texts in zip(sources, self.lists, strict=True)
        ]

    def score(self, sources, targets):
        return [
            Scored(self.log_probs.get(text, -99.0), [], np.zeros(0))
            for text in targets
        ]


def test_ensembles_that_cannot_be_are_not_run():
    short = [length <= 20 for length in LENGTHS]
    forward = Lister([[line] for line in noisy(REFERENCES, 0.4)])
    members = lstm_members(
        [
            system("f", "LSTM forward", [], translator=forward),
            system(
                "other words",
                "LSTM reversed",
                [],
                translator=Lister(settings="other"),
            ),
            system("s", "RNNsearch", [], translator=Lister()),
        ]
    )
    assert members == {"forward": [forward], "reversed": [], "mixed": []}
    table = ensemble_table(members, TEST, short, Decoding(), HOW)
    wanted = sacrebleu.corpus_bleu(
        list(itertools.compress(noisy(REFERENCES, 0.4), short)),
        [list(itertools.compress(REFERENCES, short))],
    ).score
    assert table.rows[0][2:] == [wanted, 26.17]
    assert forward.beams == [12]
    assert all(row[1:3] == [None, None] for row in table.rows[1:])
    assert [row[3] for row in table.rows] == [*paper.ENSEMBLES.values(), ""]


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([], "No LSTM was run."),
        ([None], "It is not known how long the LSTMs' training"),
        ([14, None], "It is not known how long the LSTMs' training"),
        ([14], "18 of 48 sentences are no longer than those that"),
        # All have learned from those.
        ([50, 14], "18 of 48 sentences are no longer than those that"),
    ],
)
def test_what_lstms_have_learned_from_is_not_made_up(tmp_path, lengths, said):
    lines = [[line] for line in REFERENCES]
    systems = [
        system("S", "RNNsearch", REFERENCES, max_length=50),
        *(
            system(
                f"L{n}",
                "LSTM forward",
                REFERENCES,
                max_length=length,
                translator=Lister(lines),
            )
            for n, length in enumerate(lengths)
        ),
    ]
    # Lengths are words between blanks, as no system has a tokenizer.
    contents = Contents(
        tmp_path,
        [replace(one, translator=None) for one in systems],
        [True] * len(LENGTHS),
        TEST,
        report.Scoring(n_bootstrap=0),
    )
    contents.systems = systems
    ensembles, rescoring = contents.lstm_tables()
    assert ensembles.notes[0].startswith(said)
    assert "No RNNencdec was run" in rescoring.notes[0]
    if not lengths:
        assert {row[1] for row in ensembles.rows} == {None}


def test_rescoring_finds_what_the_model_likes():
    good, bad = "red cat sits on mat", "dog dog dog dog"
    test = Corpus(["a", "b"], [good, good])
    baseline = system(
        "base",
        "RNNencdec",
        [],
        translator=Lister([[bad, "red cat sits"], [bad, good, "red"]]),
    )
    likes_good = Lister(log_probs={good: -1.0, "red cat sits": -2.0})
    likes_bad = Lister(log_probs={bad: -1.0})
    table = rescoring_table(
        baseline,
        {"forward": [likes_good], "reversed": [likes_bad]},
        test,
        Decoding(),
        HOW,
    )
    figures = {row[0]: row[1] for row in table.rows}
    assert figures["Baseline: base, beam size 12"] == 0
    best = sacrebleu.corpus_bleu(["red cat sits", good], [[good, good]]).score
    assert figures["Rescored: single forward"] == pytest.approx(best)
    assert figures["Rescored: single reversed"] == 0
    assert figures["Rescored: ensemble of 5 reversed"] is None
    assert figures["Oracle"] == pytest.approx(best)
    empty = rescoring_table(None, {}, test, Decoding(), HOW)
    assert {row[1] for row in empty.rows} == {None}


class Reader(HTMLParser):
    """Checks nesting; keeps tags, attributes, and the text of cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.cells: list[tuple[str | None, str]] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append((dict(attrs).get("class"), ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            kind, text = self.cells.pop()
            self.cells.append((kind, text + data))


def test_the_page_needs_nothing_else_and_marks_the_papers(tmp_path):
    path = tmp_path / "a.png"
    figures.draw_curves({}, tmp_path).rename(path)
    table = Table(
        "t",
        "T & t",
        ["system", f"{paper.MARK}BLEU"],
        [["<script>alert(1)</script>", 26.75], [None, ""], ["$x$ & y", 3000]],
    )
    html = page(
        "A <title>",
        ["About"],
        [Finding(True, "a"), Finding(False, "b"), Finding(None, "c")],
        [Section("Figure", [Picture(path, 'a "quoted" title')], [table])],
        ["bahdanau-tf train --a='<b>'"],
    )
    read = Reader(html)
    names = {name for name, _ in read.tags}
    assert not names & {"script", "link", "iframe"}
    for _, attributes in read.tags:
        address = attributes.get("src") or attributes.get("href")
        assert address is None or address.startswith("data:image/png;base64,")
    assert "http" not in html
    assert "url(" not in html
    assert [text for _, text in read.cells] == [
        "",
        "the paper's own",
        "system",
        "BLEU",
        "<script>alert(1)</script>",
        "26.75",
        "not run",
        "",
        "$x$ & y",
        "3,000",
    ]
    marked = [text for kind, text in read.cells if kind and "paper" in kind]
    assert marked == ["the paper's own", "BLEU", "26.75", "", "3,000"]
    aligned = [text for kind, text in read.cells if kind and "number" in kind]
    assert aligned == ["BLEU", "26.75", "", "3,000"]
    assert "prefers-color-scheme: dark" in html
    for answer in ("Yes.", "No.", "Not run."):
        assert f"<strong>{answer}</strong>" in html


def test_a_table_as_csv():
    table = Table("t", "T", ["a", "b"], [["x, y", 1.239], [None, "é\n"]])
    rows = [*csv.reader(io.StringIO(table.as_csv()))]
    assert rows == [["a", "b"], ["x, y", "1.24"], ["not run", "é\n"]]


def test_training_is_told_from_the_model_folder(translator, tmp_path):
    (tmp_path / "log.jsonl").write_text(
        '{"step": 5, "epoch": 1.0, "seconds": 90.0}\n'
        '{"step": 12, "epoch": 2.5, "seconds": 1800.0, "device": "a GPU"}\n'
    )
    dev = Corpus(["red cat", "dog"], ["blue", "mat sits"])
    one = system(
        "ours",
        "RNNsearch",
        [],
        counterpart="RNNsearch-30",
        translator=translator,
        model_dir=tmp_path,
        max_length=1,
    )
    unwritten = replace(one, counterpart="", name="x", model_dir=tmp_path / "x")
    table = training_table([one, unwritten], dev, dev)
    rows = {row[0]: row for row in table.rows}
    assert rows["x"][1:5] == ["not recorded"] * 4
    ours = rows["ours"]
    assert ours[1:5] == [12, 2.5, 0.5, "a GPU"]
    scores = translator.score(dev.sources, dev.references)
    assert ours[6] == pytest.approx(-np.mean([s.log_prob for s in scores]))
    assert ours[5] is None  # no training pair is that short
    assert ours[7:10] == ["RNNsearch-30", 471_000, 3.6]
    assert rows["for RNNsearch-50*"][1:7] == [None] * 6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (({}, Corpus(["a"], ["b"])), "no systems"),
        (({"m": "d"}, Corpus([], [])), "no sentences"),
        (
            ({"m": "d"}, Corpus(["a"], [])),
            "1 sources and 0 lines of references",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        report.write(tmp_path, *arguments)


def test_outside_systems_alone_make_a_report(tmp_path):
    path = report.write(
        tmp_path / "report",
        {},
        TEST,
        hypotheses={
            "Moses": noisy(REFERENCES, 0.1),
            "a/b": noisy(REFERENCES, 0.3),
        },
        scoring=report.Scoring(n_bootstrap=20),
    )
    read = Reader(path.read_text("utf-8"))
    assert ("number", "33.30") not in read.cells  # it is marked as the paper's
    assert ("number paper", "33.30") in read.cells
    written = (path.parent / "translations" / "a-b.txt").read_text()
    assert written.count("\n") == len(REFERENCES)
    assert (path.parent / "table1.csv").read_text().count("not run") >= 5
    assert (path.parent / "figure2.png").is_file()
    data = json.loads((path.parent / "report.json").read_text("utf-8"))
    assert data["figure3"] == []
    moses = data["tables"]["table1"]["rows"][5]
    wanted = sacrebleu.corpus_bleu(noisy(REFERENCES, 0.1), [REFERENCES]).score
    assert moses[:2] == ["Moses", wanted]
