"""Scores do not depend on the normal form in which a text happens to come."""

import itertools
import unicodedata
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu
from comparisons import write_lines

from bahdanau_tf import evaluation
from bahdanau_tf.commands.distil import chosen
from bahdanau_tf.commands.main import main
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.report.results import Corpus, Results, Scoring
from bahdanau_tf.training.callbacks import evaluate
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.rescoring import Hypothesis, NBest, choose_weight

WORDS = {
    "vietnamese": ["một", "người", "đàn", "ông", "đứng", "ở", "giữa", "phố"],
    "korean": ["한", "남자가", "거리", "한가운데", "서", "있는", "것을", "봤다"],
    "hindi": ["एक", "बड़ा", "लड़का", "सड़क", "पर", "ज़ोर", "से", "पढ़ता"],
}
# Letters with a nukta, which NFC takes apart, as most keyboards write them.
NUKTA = {"ड\u093c": "\u095c", "ढ\u093c": "\u095d", "ज\u093c": "\u095b"}


def as_it_comes(text: str) -> str:
    """The same text, but not in NFC."""
    text = unicodedata.normalize("NFD", text)
    for apart, joined in NUKTA.items():
        text = text.replace(apart, joined)
    return text


@pytest.fixture(params=WORDS)
def texts(request) -> tuple[list[str], list[str], list[str]]:
    """Translations with some errors, references in NFC, and those as they come."""
    words = WORDS[request.param]
    orders = [*itertools.islice(itertools.permutations(words), 0, 40000, 1009)]
    references = [unicodedata.normalize("NFC", " ".join(order)) for order in orders]
    word = unicodedata.normalize("NFC", words[1])
    ours = [line.replace(word, "?", n % 3 == 0) for n, line in enumerate(references)]
    return ours, references, [*map(as_it_comes, references)]


def test_each_score_is_that_of_composed_text(texts):
    ours, references, come = texts
    assert not {*come} & {*references}
    wanted = sacrebleu.corpus_bleu(ours, [references]).score
    characters = sacrebleu.corpus_chrf(ours, [references]).score
    assert 50 < wanted < 100
    assert sacrebleu.corpus_bleu(ours, [come]).score < wanted - 10
    test = evaluation.References(come)
    assert test.bleu(ours).score == pytest.approx(wanted)
    assert test.chrf(ours).score == pytest.approx(characters)
    assert test.compare({"a": ours})[0].score.score == pytest.approx(wanted)
    sizes = [1] * len(ours)
    for bins in (test.by_length(ours, sizes), test.by_rank(ours, sizes)):
        mean = np.mean([row.score.score for row in bins])
        assert mean == pytest.approx(wanted, abs=10)
    backwards = evaluation.References(references).bleu([*map(as_it_comes, ours)])
    assert backwards.score == pytest.approx(wanted)
    lists = [[line, "?"] for line in references]
    assert test.oracle([some[::-1] for some in lists]) == references


def test_the_signature_is_sacrebleus_with_the_form_behind_it(texts):
    ours, _, come = texts
    for nfc, behind in ((True, "|norm:NFC"), (False, "")):
        test = evaluation.References(come, nfc=nfc)
        for metric, compute in ((sacrebleu.BLEU(), test.bleu), (sacrebleu.CHRF(), test.chrf)):
            raw, score = metric.corpus_score(ours, [come]).score, compute(ours)
            assert score.signature == metric.get_signature().format() + behind
            assert (score.score == raw) is not nfc
        (row,) = test.compare({"a": ours})
        assert row.score.signature.endswith(f"|version:{sacrebleu.__version__}{behind}")
        assert (row.score.score == sacrebleu.corpus_bleu(ours, [come]).score) is not nfc


@pytest.mark.parametrize("flags", [[], ["--nonfc"]], ids=str)
def test_evaluate_says_how_it_compares(texts, tmp_path, capsys, flags):
    ours, references, come = texts
    reference = write_lines(tmp_path / "r", come)
    hypotheses = write_lines(tmp_path / "h", ours)
    files = [f"--reference={reference}", f"--hypotheses={hypotheses}"]
    assert main(["evaluate", *files, *flags]) == 0
    first, second = capsys.readouterr().out.split("\n")[:2]
    wanted = sacrebleu.corpus_bleu(ours, [references]).score
    for row in (first, second):
        assert ("|norm:NFC = " in row) == (not flags)
    assert (f" = {wanted:.2f} " in first) == (not flags)


def test_the_dev_bleu_of_a_training_is_that_of_composed_text(texts, tmp_path):
    ours, references, come = texts
    source = write_lines(tmp_path / "s", references)
    target = write_lines(tmp_path / "t", come)
    dev = ParallelCorpus(source, target)

    def score(sources: list[str], targets: list[str]) -> list[Any]:
        return [SimpleNamespace(log_prob=-1.0, token_log_probs=np.zeros(1))]

    translations = [SimpleNamespace(text=line) for line in ours]
    translator = SimpleNamespace(translate=lambda *_, **__: translations, score=score)
    wanted = sacrebleu.corpus_bleu(ours, [references]).score
    scores, _ = evaluate(translator, dev, "13a", ["bleu"])
    assert scores["bleu"] == pytest.approx(wanted)


def test_a_weight_and_the_closest_hypothesis_are_chosen_by_composed_text(texts):
    _, (right, *_), (come, *_) = texts
    hypotheses = [Hypothesis(0, "?", "", 0.0), Hypothesis(0, right, "", -1.0)]
    nbest = NBest("s", hypotheses)
    choice = choose_weight([(nbest, [-2.0, -1.5])], [come])
    assert choice.score.score == pytest.approx(100)
    other = Translation("s", right)
    best = Translation("s", f"{come[:3]}?", alternatives=[other])
    assert chosen(best, come) == right


@pytest.mark.parametrize("nfc", [True, False])
def test_the_report_scores_as_its_scoring_says(nfc):
    results = Results([], Corpus([], []), [], "tokens", [], Scoring(nfc=nfc))
    assert results.references.nfc is nfc
