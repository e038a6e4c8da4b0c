"""Scores compared with formulas in this file, and with sacreBLEU itself."""

import csv
import gzip
import io
import itertools
import math
import re
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings, strategies as st
from refusals import refused

from bahdanau_tf import evaluation
from bahdanau_tf.evaluation import scores
from bahdanau_tf.evaluation.alignments import diagonal_links, hard_links, mean_entropy
from bahdanau_tf.evaluation.scores import METRICS, ScoreOptions, make_metric
from bahdanau_tf.evaluation.short_strings import edits
from bahdanau_tf.evaluation.subsets import bin_title
from bahdanau_tf.evaluation.tables import NOT_RUN, as_csv, as_text
from bahdanau_tf.text import Vocabulary, WordTokenizer

WORDS = ["un", "chat", "noir", "dort", "sur", "la", "chaise", "."]


def corpus(size, noise, seed=0, shortest=5, longest=12):
    """References, and hypotheses with some of their words replaced."""
    rng = np.random.default_rng(seed)
    references, hypotheses = [], []
    for _ in range(size):
        words = list(rng.choice(WORDS, rng.integers(shortest, longest + 1)))
        references.append(" ".join(words))
        changed = [w if rng.random() > noise else "chien" for w in words]
        if rng.random() < noise:
            changed.pop()
        hypotheses.append(" ".join(changed))
    return hypotheses, references


def counted(lines, n):
    return [Counter(tuple(line[i : i + n]) for i in range(len(line) - n + 1)) for line in lines]


def matches(hypotheses, references, n):
    pairs = zip(counted(hypotheses, n), counted(references, n), strict=True)
    return sum(sum((ours & theirs).values()) for ours, theirs in pairs)


def total(lines, n):
    return sum(sum(counts.values()) for counts in counted(lines, n))


def plain_bleu(hypotheses, references):
    """Papineni et al. 2002, for text with n-gram matches of every order."""
    ours = [line.split() for line in hypotheses]
    theirs = [line.split() for line in references]
    precisions = [matches(ours, theirs, n) / total(ours, n) for n in range(1, 5)]
    brevity = min(0.0, 1.0 - total(theirs, 1) / total(ours, 1))
    return 100 * math.exp(brevity + np.mean(np.log(precisions)))


def plain_chrf(hypotheses, references):
    """Popović 2015: characters without spaces, orders 1 to 6, β = 2."""
    ours = [line.replace(" ", "") for line in hypotheses]
    theirs = [line.replace(" ", "") for line in references]
    hits = [matches(ours, theirs, n) for n in range(1, 7)]
    precision = np.mean([h / total(ours, n) for n, h in enumerate(hits, 1)])
    recall = np.mean([h / total(theirs, n) for n, h in enumerate(hits, 1)])
    return 100 * 5 * precision * recall / (4 * precision + recall)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_bleu_and_chrf_equal_their_formulas(noise):
    ours, theirs = corpus(40, noise)
    score = evaluation.bleu(ours, theirs, tokenize="none")
    assert score.score == pytest.approx(plain_bleu(ours, theirs), abs=1e-6)
    score = evaluation.chrf(ours, theirs)
    assert score.score == pytest.approx(plain_chrf(ours, theirs), abs=1e-6)
    assert score.mean is score.margin is score.interval is None


PEERS = {
    "bleu": lambda: sacrebleu.BLEU(),
    "chrf": lambda: sacrebleu.CHRF(),
    "chrf++": lambda: sacrebleu.CHRF(word_order=2),
    "ter": lambda: sacrebleu.TER(case_sensitive=True),
}
OWN = {"exact", "cer", "wer"}  # sacreBLEU lacks them: each has a test of its own


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("n_bootstrap", [0, 50])
def test_a_metric_equals_sacrebleus(name, n_bootstrap):
    ours, theirs = corpus(30, 0.2)
    ours[0] = ours[0].upper()
    options = evaluation.ScoreOptions(n_bootstrap=n_bootstrap)
    score = evaluation.score_corpus(name, ours, theirs, options)
    metric = PEERS[name]()
    peer = metric.corpus_score(ours, [theirs], n_bootstrap=n_bootstrap)
    signature = f"{metric.get_signature().format()}|norm:NFC"
    peer.name = METRICS[name].title  # ours may say more
    assert str(score) == peer.format(signature=signature)
    assert peer.score != pytest.approx(100)


def test_every_metric_is_compared():
    assert METRICS.keys() == PEERS.keys() | OWN, f"PEERS or OWN of {__file__}"


def test_exact_match_is_the_share_of_equal_lines():
    ours = ["Café", "b ", "c", "D"]
    theirs = ["Cafe\u0301", "b", "x", "d"]
    for options, share in (({}, 50), ({"lowercase": True}, 75), ({"nfc": False}, 25)):
        how = evaluation.ScoreOptions(**options, n_bootstrap=500)
        score = evaluation.score_corpus("exact", ours, theirs, how)
        assert score.score == share
        assert score.mean == pytest.approx(share, abs=3)  # of samples with replacement
        assert score.margin == pytest.approx(1.96 * math.sqrt(share * (100 - share) / 4), rel=0.2)
        assert ("case:lc" in score.signature) == bool(options.get("lowercase"))


def plain_edits(ours, theirs):
    """The recursion of Levenshtein's distance."""
    if not ours or not theirs:
        return len(ours) + len(theirs)
    replaced = plain_edits(ours[1:], theirs[1:]) + (ours[0] != theirs[0])
    return min(replaced, plain_edits(ours[1:], theirs) + 1, plain_edits(ours, theirs[1:]) + 1)


@given(*[st.text("ab \0é\U0001f600", max_size=5)] * 2)
@settings(deadline=None)
def test_edits_equal_their_recursion(ours, theirs):
    assert edits(ours, theirs) == plain_edits(ours, theirs)
    assert edits(ours.split(), theirs.split()) == plain_edits(ours.split(), theirs.split())


@pytest.mark.parametrize(
    ("options", "characters", "words"),
    [({}, 4 / 13, 3 / 5), ({"lowercase": True}, 3 / 13, 2 / 5), ({"nfc": False}, 6 / 14, 4 / 5)],
)
def test_error_rates_count_edits_of_characters_and_of_words(options, characters, words):
    ours = ["Café ", "猫が寝た", "", "a b"]
    theirs = ["Cafe\u0301", "猫が寝る", "no", "A b"]
    how = evaluation.ScoreOptions(**options, n_bootstrap=50)
    for name, share in (("cer", characters), ("wer", words)):
        score = evaluation.score_corpus(name, ours, theirs, how)
        assert score.score == pytest.approx(100 * share)
        assert score.margin > 0
        assert METRICS[name].lower_is_better
        assert evaluation.score_corpus(name, ["a b"], [""]).score > 100


def test_ter_ignores_case_and_counts_characters_without_spaces():
    options = evaluation.ScoreOptions(tokenize="char", lowercase=True)
    score = evaluation.score_corpus("ter", ["猫が寝た A"], ["猫が寝る a"], options)
    assert score.score == pytest.approx(100 / 5)  # one of four characters and a word


@pytest.mark.parametrize("name", METRICS)
def test_systems_are_compared_by_any_metric(name):
    ours, theirs = corpus(60, 0.1)
    worse = corpus(60, 0.5)[0]
    first, same, other = evaluation.compare(
        {"a": ours, "b": ours, "c": worse}, theirs, metric=name, n_bootstrap=200
    )
    assert (first.p_value, same.p_value) == (None, 1.0)
    assert other.p_value < 0.05
    assert other.score.name == METRICS[name].title
    assert other.score.score == evaluation.score_corpus(name, worse, theirs).score


def test_bleu_depends_on_tokenizer_and_case():
    ours, theirs = (["Un Chat dort, la nuit ici."], ["un chat dort , la nuit ici ."])
    assert evaluation.bleu(ours, theirs, lowercase=True).score == pytest.approx(100)
    cased = evaluation.bleu(ours, theirs)
    raw = evaluation.bleu(ours, theirs, tokenize="none", lowercase=True)
    assert cased.score < 99
    assert raw.score < 99
    assert "case:lc|" in raw.signature
    assert "tok:none" in raw.signature
    japanese = ["猫が椅子の上で寝ている。"]
    score = evaluation.bleu(japanese, japanese, tokenize="char")
    assert score.score == pytest.approx(100)
    assert "tok:char" in score.signature


def test_tokenized_text_is_scored_without_a_warning(caplog):
    lines = ["un chat dort ."] * 200
    evaluation.bleu(lines, lines, tokenize="none")
    assert not caplog.records


def test_a_score_again_keeps_its_references_once_and_its_own_signature():
    first, again = (make_metric("bleu", ScoreOptions()) for _ in range(2))
    assert first is not again
    assert first.tokenizer is again.tokenizer
    drawn = evaluation.bleu(["a b"], ["a b"], n_bootstrap=20).signature
    assert "bs:20" in drawn
    assert "bs:" not in evaluation.bleu(["a b"], ["a b"]).signature


def test_bootstrap_intervals_contain_the_score_and_shrink_with_more_data():
    ours, theirs = corpus(100, 0.2)
    score = evaluation.bleu(ours, theirs, n_bootstrap=300)
    low, high = score.interval
    assert low < score.score < high
    assert 0.5 < high - low < 20
    wide = evaluation.bleu(ours[:20], theirs[:20], n_bootstrap=300)
    assert wide.margin > score.margin
    nothing = evaluation.bleu(["a b c d"], ["e f g h"], n_bootstrap=10)
    assert nothing.interval == (0.0, 0.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (["a", "b", "c"], ["a", "b"], "3 hypotheses, 2 references"),
        ([], [], "no sentences"),
        ("a b", "a b", "string 'a b', wanted a list"),
        (["a b"], "a b", "string 'a b', wanted a list"),
        ("a b", ["a b"], "string 'a b', wanted a list"),
    ],
)
def test_lines_that_are_none_or_not_parallel_are_refused(ours, theirs, said):
    for function in (evaluation.bleu, evaluation.chrf):
        refused(lambda own=function: own(ours, theirs), said)


def test_an_unknown_metric_or_tokenizer_is_refused():
    refused(lambda: evaluation.score_corpus("meteor", ["a"], ["a"]), "'meteor'")
    refused(lambda: evaluation.bleu(["a"], ["a"], tokenize="14a"), "'14a'")


def test_bins_of_length_have_titles():
    lines = ["a b c d"] * 3
    bins = evaluation.bleu_by_length(lines, lines, [5, 65, 95])
    assert [*map(bin_title, bins)] == ["1-10", "61-70", "91-100"]
    bins = evaluation.length_bins(lines, lines, [5, 65, 95])
    assert [(bin_title(x), x.sentences) for x in bins] == [("1-10", 1), (">60", 2)]


def test_empty_lines_are_scored():
    score = evaluation.bleu(["", "un chat noir dort"], ["un", "un chat noir dort"])
    assert 0 < score.score < 100
    assert evaluation.bleu([""], [""]).score == 0.0


# By length, and without unknown words -----------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 35), min_size=1, max_size=30), st.integers(1, 12))
def test_bleu_by_length_is_bleu_of_each_bin(lengths, width):
    ours, theirs = corpus(len(lengths), 0.2)
    bins = evaluation.bleu_by_length(ours, theirs, lengths, width=width, n_bootstrap=0)
    assert sum(part.sentences for part in bins) == len(lengths)
    assert [part.shortest for part in bins] == sorted({part.shortest for part in bins})
    for part in bins:
        assert part.longest - part.shortest == width - 1
        assert part.shortest % width == 1 % width
        in_bin = (part.shortest <= max(length, 1) <= part.longest for length in lengths)
        inside = [i for i, is_inside in enumerate(in_bin) if is_inside]
        assert len(inside) == part.sentences
        wanted = evaluation.bleu([ours[i] for i in inside], [theirs[i] for i in inside])
        assert part.score == wanted


def test_bleu_by_length_has_intervals_and_refuses_bad_input():
    ours, theirs = corpus(60, 0.2, longest=25)
    lengths = [len(line.split()) for line in theirs]
    bins = evaluation.bleu_by_length(ours, theirs, lengths, n_bootstrap=50)
    assert [part.longest for part in bins] == [10, 20, 30]
    assert all(part.score.margin > 0 for part in bins)
    said = "60 hypotheses, 60 references, 59"
    refused(lambda: evaluation.bleu_by_length(ours, theirs, lengths[1:]), said)
    refused(lambda: evaluation.bleu_by_length(ours, theirs, lengths, width=0), "width is 0")


def test_sentences_with_unknown_words_are_left_out():
    sources = [["the", "cat"], ["the", "axolotl"], [], ["the"]]
    targets = [["le", "chat"], ["le", "chat"], [], ["la", "quenouille"]]
    mask = evaluation.without_unknown_words(
        (sources, {"the", "cat"}.__contains__), (targets, {"le", "la", "chat"}.__contains__)
    )
    assert mask == [True, False, True, False]
    lines = ["one", "two", "three", "four"]
    assert evaluation.select(mask, lines, lines[::-1]) == [["one", "three"], ["four", "two"]]
    refused(lambda: evaluation.select(mask, lines, lines[1:]), "4 mask, 4 column 1, 3 column 2")
    sides = (sources, bool), (targets[1:], bool)
    refused(lambda: evaluation.without_unknown_words(*sides), "4 side 1, 3 side 2")


# Significance -----------------------------------------------------------------


def test_compare_tells_different_from_similar_systems():
    worse, references = corpus(150, 0.4)
    better, _ = corpus(150, 0.1)
    alike = [*worse[:-3], *better[-3:]]
    # Other texts of the same n-grams: no difference is as likely as can be.
    blanks = [f"{line} " for line in worse]
    systems = {"worse": worse, "better": better, "alike": alike, "same": worse, "blanks": blanks}
    options = {"tokenize": "none", "n_bootstrap": 300}
    first, second, third, fourth, fifth = evaluation.compare(systems, references, **options)
    assert (first.system, first.p_value) == ("worse", None)
    assert second.p_value < 0.05
    assert third.p_value > 0.05
    assert fourth.p_value == fifth.p_value == 1.0
    for row, lines in ((first, worse), (second, better), (third, alike)):
        wanted = plain_bleu(lines, references)
        assert row.score.score == pytest.approx(wanted, abs=1e-6)
        assert row.score.interval[0] < wanted < row.score.interval[1]
        assert "bs:300" in str(row.score)


def test_compare_refuses_bad_systems():
    systems = {"function": ["a", "b"], "references": ["a"]}
    said = "1 lines of 'references', 2 refer"
    refused(lambda: evaluation.compare(systems, ["a", "b"]), said)
    refused(lambda: evaluation.compare({}, ["a"]), "0 systems")
    refused(lambda: evaluation.compare({"first": ["a"]}, ["a"], n_bootstrap=0), "n_bootstrap 0")


# Alignments -------------------------------------------------------------------

links = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)))


def test_alignment_error_rate_equals_values_by_hand():
    """Sure 0-0 and 1-1, possible 1-2; found 0-0, 1-2 and the wrong 2-2."""
    alignments = [frozenset({(0, 0), (1, 2), (2, 2)})]
    sure = [frozenset({(0, 0), (1, 1)})]
    possible = [frozenset({(1, 2)})]
    rate = evaluation.alignment_error_rate(alignments, sure, possible)
    assert rate == pytest.approx(1 - (1 + 2) / (3 + 2))
    rate = evaluation.alignment_error_rate(alignments, sure)
    assert rate == pytest.approx(1 - (1 + 1) / (3 + 2))
    of_one = evaluation.score_alignments(alignments, sure, possible)
    assert [*map(str, of_one)] == ["0.400 ± 0.000", "0.667 ± 0.000", "0.500 ± 0.000"]
    # Counts are summed over sentences; rates are not averaged.
    rate = evaluation.alignment_error_rate(alignments * 2, [*sure, alignments[0]])
    assert rate == pytest.approx(1 - (2 + 6) / (5 + 6))


@settings(deadline=None)
@given(st.lists(links, max_size=4))
def test_alignment_error_rate_is_0_for_the_same_and_1_for_others(alignments):
    assert evaluation.alignment_error_rate(alignments, alignments) == 0.0
    moved = [frozenset((i + 50, j) for i, j in row) for row in alignments]
    worst = float(any(alignments))
    assert evaluation.alignment_error_rate(alignments, moved) == worst


def test_alignment_scores_refuse_different_numbers_of_sentences_and_none():
    for function in (evaluation.alignment_error_rate, evaluation.score_alignments):
        with pytest.raises(ValueError, match="1 alignments, 2 sure"):
            function([frozenset()], [frozenset()] * 2)
    refused(lambda: evaluation.score_alignments([], []), "there are no sentences")


def test_the_interval_of_independent_links_is_that_of_a_proportion():
    right, wrong = frozenset({(0, 0)}), frozenset({(1, 0)})
    links = [right if n % 5 else wrong for n in range(1000)]
    error_rate, precision, recall = evaluation.score_alignments(links, [right] * 1000)
    assert (error_rate.value, precision.value, recall.value) == pytest.approx((0.2, 0.8, 0.8))
    for estimate in (error_rate, precision, recall):
        assert estimate.margin == pytest.approx(1.96 * math.sqrt(0.8 * 0.2 / 1000), rel=0.1)


def em(sources, targets, iterations):
    """IBM model 1 word by word."""
    sources = [["", *words] for words in sources]
    t = defaultdict(lambda: 1.0)
    for _ in range(iterations + 1):
        pairs = zip(sources, targets, strict=True)
        alpha = [[[t[x, y] / sum(t[k, y] for k in xs) for x in xs] for y in ys] for xs, ys in pairs]
        counts, totals = defaultdict(float), defaultdict(float)
        for xs, ys, rows in zip(sources, targets, alpha, strict=True):
            for (i, y), (j, x) in itertools.product(enumerate(ys), enumerate(xs)):
                counts[x, y] += rows[i][j]
                totals[x] += rows[i][j]
        t = {(x, y): count / totals[x] for (x, y), count in counts.items()}
    every = zip(alpha, sources, strict=True)
    return [np.reshape(rows, [-1, len(xs)])[:, 1:] for rows, xs in every]


def test_ibm_model_1_is_em_and_finds_the_words_of_the_textbook():
    sources = ["das Haus", "das Buch", "", "ein Buch das Buch", "ein"]
    targets = ["the house", "the book", "no source", "a book the book", ""]
    words = [line.split() for line in sources], [line.split() for line in targets]
    for iterations in (0, 1, 5):
        ours = evaluation.ibm_model_1(*words, iterations)
        for own, wanted in zip(ours, em(*words, iterations), strict=True):
            np.testing.assert_allclose(own, wanted, atol=1e-12)
    # In the limit each word has one translation (Koehn 2010, figure 4.4, with an empty word).
    first, second = evaluation.ibm_model_1(words[0][:2], words[1][:2], 300)
    for alpha in (first, second):
        np.testing.assert_allclose(alpha, [[0.5, 0], [0, 1]], atol=0.01)
    assert evaluation.ibm_model_1([], []) == []


def test_diagonal_links_follow_the_diagonal():
    """Each target word is linked to the middle of its share of the source."""
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 4) == {(1, 0), (3, 1)}
    assert diagonal_links(4, 2) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(2, 0) == diagonal_links(0, 2) == frozenset()
    for target, source in itertools.product(range(1, 30), repeat=2):
        links = diagonal_links(target, source)
        assert len(links) == target
        for j, i in links:
            assert j / source <= (i + 0.5) / target < (j + 1) / source + 1e-9


def test_mean_entropy_equals_values_by_hand():
    uniform, sharp = np.full([2, 8], 1 / 8), np.eye(4)
    assert mean_entropy([uniform]) == pytest.approx(math.log(8))
    assert mean_entropy([sharp]) == 0
    assert mean_entropy([uniform, sharp]) == pytest.approx(math.log(8) / 3)
    assert mean_entropy([]) == 0
    # Weight on the end symbol, which is left out, is not counted.
    assert mean_entropy([uniform / 2]) == pytest.approx(math.log(8))
    assert hard_links(np.zeros([0, 3])) == frozenset()


def test_known_sentences_have_no_unknown_word_on_either_side():
    text = WordTokenizer(Vocabulary.build([["red", "cat", "blue"]], 40))
    model = SimpleNamespace(source_texts=[text], target_text=text)
    sources = ["red cat", "red whale", "cat"]
    references = ["blue", "blue", "whale"]
    mask = evaluation.known_sentences([model], sources, references)
    assert mask == [True, False, False]
    assert evaluation.known_sentences([], sources, references) == [True] * 3


def test_known_words_are_known_to_all_models_and_sources():
    def of(*words):
        return WordTokenizer(Vocabulary.build([words], 40))

    lines = ["red", "cat", "mat", "dog", "owl"]
    targets = ["a", "a", "a", "b", "c"]
    first = SimpleNamespace(
        source_texts=[of("red", "cat", "dog", "owl"), of(*lines)], target_text=of("a", "b")
    )
    second = SimpleNamespace(
        source_texts=[of(*lines), of("red", "mat", "dog", "owl")], target_text=of("a", "c")
    )
    # Unknown: cat to the last source, mat to the first, b and c to a target.
    mask = evaluation.known_sentences([first, second], lines, targets)
    assert mask == [True, False, False, False, False]


@settings(deadline=None)
@given(alignments=st.lists(links, max_size=5))
def test_pharaoh_files_are_written_and_read_back(tmp_path_factory, alignments):
    path = tmp_path_factory.mktemp("pharaoh") / "links"
    evaluation.write_pharaoh(path, alignments)
    assert evaluation.read_pharaoh(path) == alignments
    assert path.read_text().count("\n") == len(alignments)


def test_pharaoh_format_of_other_programs_is_read(tmp_path):
    assert evaluation.format_pharaoh([(10, 1), (2, 3), (2, 3)]) == "2-3 10-1"
    assert evaluation.parse_pharaoh(" 0-0\t1-2 \n") == {(0, 0), (1, 2)}
    assert evaluation.parse_pharaoh("") == frozenset()
    path = tmp_path / "links"
    path.write_bytes(b"0-0 1-1\r\n\r\n2-0")
    assert evaluation.read_pharaoh(path) == [{(0, 0), (1, 1)}, set(), {(2, 0)}]
    path = tmp_path / "links.gz"  # packed by its name
    evaluation.write_pharaoh(path, [frozenset({(0, 1)}), frozenset()])
    assert gzip.decompress(path.read_bytes()) == b"0-1\n\n"


@pytest.mark.parametrize("item", ["0", "0-", "-1", "0-1-2", "a-b", "²-1", "0:1"])
def test_a_bad_pharaoh_link_is_named_with_its_line(tmp_path, item):
    refused(lambda: evaluation.parse_pharaoh(f"0-0 {item}"), "not a link")
    path = tmp_path / "links"
    path.write_text(f"0-0\n1-1 {item}\n", encoding="utf-8")
    refused(lambda: evaluation.read_pharaoh(path), "line 2")


GOLD = {
    "Pharaoh, ?": "0-0 1?2\n\n2-0",
    "Pharaoh, p": "1p2 0-0\r\n \n 2-0\n",
    "Pharaoh, a suffix": "0-0 1-2?\n\n2-0",
    "NAACL": "\n3 3 1\n1 1 1 S\n0001 2 3 P\n",
    "NAACL, confidence": "1 1 1 S 1\n1\t2\t3 P 0.5\n\n3 3 1 S 1",
}


@pytest.mark.parametrize("text", GOLD.values(), ids=GOLD)
def test_links_by_hand_are_read_from_either_format(tmp_path, text):
    path = tmp_path / "gold"
    path.write_text(text)
    sure, possible = evaluation.read_gold(path, [(2, 3), (0, 4), (3, 1)])
    assert sure == [{(0, 0)}, set(), {(2, 0)}]
    assert possible == [{(1, 2)}, set(), set()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", ("has no links",)),
        ("0-0", ("has 1 lines",)),
        ("0-0\n0-1 0-x", ("line 2: '0-x' is not a link",)),
        ("1 1 1\n1-1", ("line 2: '1-1' is not a link",)),
        # counted from 1
        ("0-0\n1-2", ("line 2: '1-2'", "1 source and 2 target words, counted from 0")),
        ("1 1 1\n2 0 1", ("line 2: '2 0 1' is not within the pair's", "from 1")),
        ("0 0 0", ("line 1:", "within the 2 pairs, counted from 1")),
        ("1 1 1\n3 1 1", ("line 2:", "within the 2 pairs")),
        ("\nthe cat\n0-x", ("line 2: 'the cat'", "or NAACL's 1 1 2 S")),
        ("1 1 1 X\n1 1 1 S", ("line 1: '1 1 1 X' is not a link",)),
        ("0-0 0-x\n0-1", ("line 1: '0-x' is not a link",)),
    ],
)
def test_a_bad_link_by_hand_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "gold"
    path.write_text(text)
    refused(lambda: evaluation.read_gold(path, [(2, 2), (1, 2)]), *message)


@pytest.mark.parametrize(
    ("line", "sides"), [("1-1 2?2", ["source", "target"]), ("1-0", ["source"]), ("1-0 0?1", [])]
)
def test_links_that_seem_to_be_counted_from_1_are_reported(tmp_path, recwarn, line, sides):
    path = tmp_path / "gold"
    path.write_text(f"{line}\n" * 20)
    evaluation.read_gold(path, [(3, 3)] * 20)
    assert [re.search("first ([a-z]+) word has", str(x.message))[1] for x in recwarn] == sides
    for pairs, count in ((3, 2 * (len(sides) == 2)), (2, 0)):  # few pairs, too few to say
        recwarn.clear()
        path.write_text(f"{line}\n" * pairs)
        evaluation.read_gold(path, [(3, 3)] * pairs)
        assert len(recwarn.list) == count


# The tokenizer of BLEU, against sacreBLEU --------------------------------------

JAPANESE = ["今日は天気がとても良いです。", "犬が公園を走っている。"]
TOKENIZED = ["今日 は 天気 が とても 良い です 。", "犬 が 公園 を 走 っ て いる 。"]
CHINESE = ["今天天气非常好。", "那只狗在公园里跑。"]
THAI = ["วันนี้อากาศดีมาก", "สุนัขกำลังวิ่งอยู่ในสวน"]


@pytest.fixture(autouse=True)
def no_mecab(monkeypatch):
    """Simulates a machine without MeCab."""
    monkeypatch.setattr(scores, "find_spec", lambda name: None)


def sacrebleus(ours: list[str], theirs: list[str], tokenize: str) -> float:
    return sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize, force=True).score


@pytest.mark.parametrize(
    ("references", "almost"),
    [
        (JAPANESE, ["今日は天気が良いです。", "犬は公園を走っている。"]),
        (CHINESE, ["今天天气好。", "那只狗在公园里走。"]),
        (THAI, ["วันนี้อากาศดี", "สุนัขวิ่งอยู่ในสวน"]),
    ],
)
def test_similar_translations_have_a_high_bleu_with_the_chosen_tokenizer(references, almost):
    chosen = evaluation.bleu_tokenizer("", references)
    assert sacrebleus(almost, references, "13a") < 1e-9
    assert sacrebleus(almost, references, chosen) > 50
    assert sacrebleus(references, references, chosen) == pytest.approx(100)


@pytest.mark.parametrize(
    ("language", "sentences", "wanted"),
    [
        ("en", ["a dog runs"], "13a"),
        ("", ["a dog runs"], "13a"),
        ("ko", ["개가 공원에서 달린다."], "13a"),
        ("ja", JAPANESE, "char"),
        ("en", JAPANESE, "char"),  # the script is trusted
        ("ja", ["inu ga hashiru"], "13a"),
        ("ja", ["ﾊﾝｶｸｶﾅ"], "char"),
        ("zh-TW", ["今天"], "zh"),
        ("", ["今天 天气 好 。", "好"], "zh"),
        ("ja", ["東京都"], "char"),  # Japanese without kana
        ("", ["東京都"], "zh"),
        ("", ["我们使用 TensorFlow 来训练。"], "zh"),
        ("", ["これは TensorFlow で訓練された翻訳の模型です。"], "char"),
        ("", ["A dog (犬) is running through the park."], "13a"),
        ("", ["はい。", "いいえ。"], "char"),  # short, but not tokenized
        ("", ["ฉัน รัก คุณ มาก", "วันนี้ อากาศ ดี มาก"], "none"),
        # Thai puts spaces between clauses.
        ("", ["ถ้าพรุ่งนี้อากาศดีมาก เราจะไปเดินเล่นในสวนสาธารณะ"], "char"),
        ("", ["ຂ້ອຍຮັກເຈົ້າ"], "char"),
        ("", ["ខ្ញុំស្រលាញ់អ្នក"], "char"),
        ("", ["ငါမင်းကိုချစ်တယ်"], "char"),
        ("", ["བཀྲ་ཤིས་བདེ་ལེགས། ཁྱེད་རང་།"], "char"),
        ("th", [], "char"),  # only the language is known
        ("zh", ["..."], "zh"),
        ("", ["", "123"], "13a"),
    ],
)
def test_the_tokenizer_follows_the_script_then_the_language(language, sentences, wanted):
    assert evaluation.bleu_tokenizer(language, sentences) == wanted


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        ({"MeCab", "ipadic"}, "ja-mecab"),
        ({"MeCab"}, "char"),  # sacreBLEU also needs the dictionary
        ({"ipadic"}, "char"),
    ],
)
def test_mecab_is_used_for_japanese_if_installed(installed, wanted, monkeypatch):
    monkeypatch.setattr(scores, "find_spec", lambda name: name in installed)
    assert evaluation.bleu_tokenizer("ja", JAPANESE) == wanted
    assert evaluation.bleu_tokenizer("ja", TOKENIZED) == "none"
    assert evaluation.bleu_tokenizer("zh", CHINESE) == "zh"


def test_has_blanks_is_true_if_spaces_separate_words():
    for blanks in (["a dog runs"], ["개가 공원에서 달린다."], [], TOKENIZED, ["今天 天气 好 。"]):
        assert evaluation.has_blanks(blanks) is True, blanks
    for joined in (JAPANESE, CHINESE, THAI):
        assert evaluation.has_blanks(joined) is False, joined


# Tables -----------------------------------------------------------------------


def test_as_csv_quotes_and_rounds():
    table = evaluation.Table("t", "T", ["a", "b"], [["x, y", 1.239], [NOT_RUN, "é\n"]])
    rows = [*csv.reader(io.StringIO(as_csv(table)))]
    assert rows == [["a", "b"], ["x, y", "1.24"], ["not run", "é\n"]]


def test_as_text_aligns_columns():
    rows = [["sentences", 1000, ""], ["a", 7.251, NOT_RUN]]
    assert as_text(evaluation.Table("t", "T", ["", "BLEU", "p"], rows)) == (
        "           BLEU        p\nsentences  1000\na          7.25  not run\n"
    )


def test_a_metric_may_have_a_title_of_its_own(monkeypatch):
    """sacreBLEU's comparison files the results under its own name, here BLEU."""
    kind = scores.Kind("BLEU-1", lambda options: sacrebleu.BLEU(max_ngram_order=1, force=True))
    monkeypatch.setitem(scores.METRICS, "bleu1", kind)
    ours, theirs = corpus(30, 0.2)
    systems = {"same": theirs, "ours": ours}
    best, other = evaluation.compare(systems, theirs, metric="bleu1", n_bootstrap=20)
    assert (best.score.name, round(best.score.score)) == ("BLEU-1", 100)
    peer = sacrebleu.BLEU(max_ngram_order=1, force=True).corpus_score(ours, [theirs])
    assert other.score.score == pytest.approx(peer.score)
