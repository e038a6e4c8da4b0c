"""Figures 2 and 3 of Sutskever et al.: sentence vectors, BLEU by rarity."""

import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings, strategies as st
from refusals import refused

from bahdanau_tf import plotting
from bahdanau_tf.commands.main import main
from bahdanau_tf.evaluation import bleu_by_rank
from bahdanau_tf.models import RNNSearch, Seq2SeqLSTM
from bahdanau_tf.options import Decoding
from bahdanau_tf.report.results import OUTSIDE, Corpus, Results, Scoring, System, measure
from bahdanau_tf.report.sutskever import (
    in_a_plane,
    length_figure,
    mean_ranks,
    nearest,
    rarity_figure,
    sentence_vectors,
    vectors_figure,
)
from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.saved import write_translator
from bahdanau_tf.translator import Translator

pytestmark = pytest.mark.usefixtures("eager_search")

WORDS = ["a", "b", "c", "d", "e", "f"]
LINES = [" ".join(random.Random(n).choices(WORDS, k=9)) for n in range(20)]


@pytest.fixture(scope="module")
def text() -> WordTokenizer:
    """Words whose ids are in the order of `WORDS`."""
    return WordTokenizer(Vocabulary(["[PAD]", "[UNK]", "[END]", *WORDS]))


@pytest.fixture(scope="module")
def translator(text) -> Translator:
    model = Seq2SeqLSTM(9, 9, units=4, embedding_dim=3, layers=2)
    return Translator(model, text, text)


def test_a_part_has_the_sentences_with_the_rarest_words():
    """Half of the sentences are wrong, those with the largest ranks."""
    ranks = [random.Random(n).random() for n in range(len(LINES))]
    middle = sorted(ranks)[10]
    texts = [
        line if rank < middle else " ".join(WORDS) for line, rank in zip(LINES, ranks, strict=True)
    ]
    parts = bleu_by_rank(texts, LINES, ranks, count=3, n_bootstrap=0)
    order = np.argsort(ranks)
    assert [(part.shortest, part.sentences) for part in parts] == [(1, 7), (8, 7), (15, 6)]
    for part, some in zip(parts, np.split(order, [7, 14]), strict=True):
        wanted = sacrebleu.corpus_bleu([texts[n] for n in some], [[LINES[n] for n in some]])
        assert part.score.score == wanted.score
    assert parts[0].score.score == pytest.approx(100)
    assert parts[2].score.score < 20


def test_parts_of_few_and_of_no_sentences():
    assert [p.sentences for p in bleu_by_rank(["a"], ["a"], [1.0])] == [1]
    assert bleu_by_rank([], [], []) == []
    few = bleu_by_rank(["a"] * 7, ["a"] * 7, [1.0] * 7, count=6, n_bootstrap=0)
    assert [part.sentences for part in few] == [2, 2, 2, 1]
    refused(lambda: bleu_by_rank(["a"], ["a"], [1.0], count=0), "0", "count")
    refused(lambda: bleu_by_rank(["a"], ["a"], [1.0, 2.0]), "2", "ranks")


def test_a_rank_is_the_place_in_the_vocabulary(text, tmp_path):
    """Unknown words come last; a line without words has rank 0."""
    ranks = mean_ranks(text, ["a", "f a", "", "a zebra", "zebra"])
    assert ranks == [3.0, 5.5, 0.0, 6.0, 9.0]
    assert mean_ranks(text, []) == []
    path = tmp_path / "text"
    path.write_text("red cat sits on mat\nblue dog runs\n" * 9)
    pieces = SubwordTokenizer.train([path], 285)
    row = pieces.tokenize(["blue mat"]).to_list()[0][:-1]
    assert mean_ranks(pieces, ["blue mat"]) == [pytest.approx(np.mean(row))]


def test_sub_words_are_ranked_by_their_counts(tmp_path):
    """Letters, which have the last ids, too; the end counts as a sub-word."""
    path = tmp_path / "text"
    path.write_text("red cat sits on mat\nblue dog runs\n" * 9)
    pieces = SubwordTokenizer.train([path], 285)
    counts = Counter(
        piece for line in pieces.tokenize(["red red x", "red cat"]).to_list() for piece in line
    )
    ordered = sorted(range(pieces.vocabulary_size), key=lambda piece: (-counts[piece], piece))
    wanted = [
        np.mean([ordered.index(piece) for piece in line[:-1]])
        for line in pieces.tokenize(["cat x", "mat"]).to_list()
    ]
    ranks = mean_ranks(pieces, ["cat x", "mat"], ["red red x", "red cat"])
    assert ranks == pytest.approx(wanted)


def results(*systems: System) -> Results:
    is_known, lengths = [True] * len(LINES), [9] * len(LINES)
    scoring = Scoring(tokenize="13a", n_bootstrap=20)
    return Results(systems, Corpus(LINES, LINES), lengths, "tokens", is_known, scoring)


def test_the_figure_by_rarity_needs_a_vocabulary(translator, tmp_path):
    moses = System("moses", OUTSIDE, LINES, LINES)
    assert "Not run" in rarity_figure(results(moses), None, tmp_path).paragraphs[0]
    ours = System("ours", "LSTM", LINES, LINES, translator=translator)
    section = rarity_figure(results(ours, moses), None, tmp_path)
    (table,) = section.tables
    ranks = sorted(mean_ranks(translator.source_text, LINES))
    assert table.columns[1] == f"{ranks[0]:.1f}-{ranks[3]:.1f}"
    assert table.columns[-1] == f"{ranks[16]:.1f}-{ranks[19]:.1f}"
    assert [row[0] for row in table.rows] == ["sentences", "ours", "moses"]
    assert table.rows[0][1:] == [4] * 5
    assert section.pictures[0].path.read_bytes().startswith(b"\x89PNG")


def test_the_figure_by_position_sorts_sentences_by_length(tmp_path):
    moses = System("moses", OUTSIDE, LINES, LINES)
    lengths = [1 + 7 * n % len(LINES) for n in range(len(LINES))]
    section = length_figure(replace(results(moses), lengths=lengths), tmp_path)
    (table,) = section.tables
    assert table.columns == ["length in tokens", "1-4", "5-8", "9-12", "13-16", "17-20"]
    assert table.rows[0] == ["sentences", *[4] * 5]
    assert section.pictures[0].path.read_bytes().startswith(b"\x89PNG")


def test_sub_words_without_counts_are_not_ranked(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in LINES))
    pieces = SubwordTokenizer.train([path], 300, "bpe")
    reader = SimpleNamespace(source_text=pieces)
    ours = System("ours", "LSTM", LINES, LINES, translator=reader)
    section = rarity_figure(results(ours), None, tmp_path)
    assert not section.pictures
    assert "Not run" in section.paragraphs[0]
    counted = rarity_figure(results(ours), Corpus(LINES, LINES), tmp_path)
    assert counted.pictures


def test_a_vector_is_all_that_the_decoder_gets(translator, text):
    """The states of both layers: outputs and memory cells; and E y_0."""
    lines = ["a b", "b a", "a b", "a b c d e f a b c"]
    vectors = sentence_vectors(translator, lines)
    assert vectors.shape == (4, 2 * 2 * 4 + 3)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4
    (alone,) = sentence_vectors(translator, lines[:1])
    np.testing.assert_allclose(alone, vectors[0], atol=1e-6)
    h, _ = translator.model.encoder.stack[0][0](
        translator.model.source_embedding(text.tokenize(["a b"]).to_tensor())
    )
    assert np.abs(vectors[0][:, None] - h[0, -1]).min(0).max() < 1e-6
    search = Translator(RNNSearch(9, 9, units=4, embedding_dim=3), text, text)
    refused(lambda: sentence_vectors(search, lines), "RNNSearch", "attention")


VECTORS = st.integers(0, 1000).map(
    lambda seed: np.random.default_rng(seed).normal(size=[2 + seed % 7, 5])
)


@given(VECTORS)
@settings(max_examples=30, deadline=None)
def test_the_plane_is_that_of_the_largest_variance(vectors):
    """By the eigenvectors of the covariance, a point may be mirrored."""
    points, share = in_a_plane(vectors)
    variances, axes = np.linalg.eigh(np.cov(vectors.T, bias=True))
    wanted = (vectors - vectors.mean(0)) @ axes[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(points), np.abs(wanted), atol=1e-7)
    assert share == pytest.approx(variances[-2:].sum() / variances.sum())


def test_equal_vectors_are_one_point():
    points, share = in_a_plane(np.ones([3, 4], np.float32))
    np.testing.assert_array_equal(points, np.zeros([3, 2]))
    assert share == 1
    points, _ = in_a_plane(np.array([[1.0], [3.0]]))
    np.testing.assert_allclose(np.abs(points), [[1, 0], [1, 0]])


def test_the_nearest_is_another_vector():
    assert nearest(np.array([[0.0], [1.0], [3.0], [3.5]])) == [1, 0, 3, 2]


def test_sentences_are_drawn_with_signs_for_groups(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "vectors.png"
    points = [[0, 0], [1, 1], [2, 0]]
    figure = plotting.plot_vectors(points, ["x y", "y", "$z"], [0, 1, 0], path)
    (axes,) = figure.axes
    drawn = [collection.get_offsets().tolist() for collection in axes.collections]
    assert drawn == [[[0, 0], [2, 0]], [[1, 1]]]
    assert [collection.get_text() for collection in axes.texts] == ["x y", "y", "$z"]
    assert path.read_bytes().startswith(b"\x89PNG")
    refused(lambda: plotting.plot_vectors(points, ["x"], [0]), "plot_vectors", "points")


def test_the_report_draws_the_first_lstm(translator, tmp_path):
    phrases = [[["a b", "a b c"], ["b a", "c b a"]], [["d e"], ["e d"]]]
    lstm = System("L", "LSTM forward", LINES, LINES, translator=translator)
    section = vectors_figure(results(lstm), phrases, tmp_path)
    assert "decoder of L gets" in section.paragraphs[0]
    assert [picture.path.name for picture in section.pictures] == ["vectors1.png", "vectors2.png"]
    assert "0 of 2 sentences" in section.pictures[1].title
    first, second = section.data["vectors"]
    assert [point["group"] for point in first] == [0, 0, 1, 1]
    assert [point["text"] for point in second] == ["d e", "e d"]
    said = vectors_figure(results(lstm), [], tmp_path).paragraphs[0]
    assert said.startswith("Not run: no sentences")
    moses = System("moses", OUTSIDE, LINES, LINES)
    said = vectors_figure(results(moses), phrases, tmp_path).paragraphs[0]
    assert said.startswith("Not run: no system")


def test_a_report_counts_words_if_a_training_did(tmp_path, translator):
    """Sentences of another length than the tokenizer's."""
    folders = {}
    for name, habits in (("a", Habits(longest_words=7)), ("b", Habits(9))):
        folders[name] = tmp_path / name
        write_translator(folders[name], translator.graph, habits)
    test = Corpus(["a, b, c."], ["a"])
    scoring = Scoring(Decoding(beam_size=1, max_length=3), "13a")
    measurements = measure(folders, {}, test, scoring, {})
    assert [system.max_length for system in measurements.systems] == [7, None]
    assert (measurements.lengths, measurements.unit) == ([3], "words between spaces")
    del folders["a"]
    measurements = measure(folders, {}, test, scoring, {})
    assert [system.max_length for system in measurements.systems] == [9]
    assert (measurements.lengths, measurements.unit) == ([6], "tokens")


def test_other_systems_lists_and_sentences_reach_the_page(tmp_path, translator):
    translator.save(tmp_path / "model")
    source, nbest = tmp_path / "source", tmp_path / "nbest"
    phrases = tmp_path / "phrases"
    source.write_text("".join(f"{line}\n" for line in LINES[:3]))
    nbest.write_text(
        f"0 ||| b ||| ||| -1\n0 ||| {LINES[0]} ||| ||| -2\n"
        f"1 ||| b ||| ||| -1\n2 ||| {LINES[2]} ||| ||| -1\n"
    )
    phrases.write_text("a b\na b c\n\n\n b a\nc b a\n")
    flags = [f"--out_dir={tmp_path / 'out'}", f"--system=L={tmp_path / 'model'}"]
    flags += [f"--source={source}", f"--reference={source}"]
    flags += [f"--nbest=phrases={nbest}", f"--phrases={phrases}"]
    assert main(["report", *flags, "--max_length=5"]) == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Baseline: phrases" in page
    assert (tmp_path / "out" / "vectors1.png").is_file()
    assert page.count("data:image/png;base64,") == 4
    rows = (tmp_path / "out" / "rescoring.csv").read_text().splitlines()
    oracle = sacrebleu.corpus_bleu([LINES[0], "b", LINES[2]], [LINES[:3]]).score
    assert float(rows[-1].split(",")[1]) == pytest.approx(oracle, abs=0.01)
