"""Minimum Bayes risk: the scores of sacreBLEU, and the hypothesis of the largest mean."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from toys import english, french, toy_translator, with_alternatives

from bahdanau_tf.translation.consensus import bleu, chrf

METRICS = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
SPLIT = BLEU().tokenizer
SENTENCES = ["the cat sees a red dog.", "", "a dog"]


def by_sacrebleu(metric, texts):
    pairs = itertools.product(texts, repeat=2)
    scores = [METRICS[metric].sentence_score(x, [y]).score for x, y in pairs]
    return np.reshape(scores, [len(texts)] * 2)


words = st.lists(st.sampled_from(["a", "b", "aa", "ab.", "é", "猫", "1,5"]), max_size=9)
some = st.lists(words.map(" ".join), min_size=1, max_size=5)


@given(some)
def test_scores_are_those_of_sacrebleu(texts):
    np.testing.assert_allclose(chrf(texts), by_sacrebleu("chrf", texts), atol=1e-6)
    np.testing.assert_allclose(bleu(texts, SPLIT), by_sacrebleu("bleu", texts), atol=1e-6)


@pytest.fixture(scope="module")
def translator():
    return toy_translator(english(), french())


@pytest.mark.usefixtures("eager_search")
def test_the_score_of_a_line_is_the_mean_of_its_sentences(translator):
    options = {"beam_size": 6, "max_length": 6, "n_best": 2, "mbr": "chrf"}
    sentences = ["The cat sees. ", "The dog sleeps. ", "A cat."]
    line = translator.translate("\n".join(sentences), split_sentences=True, **options)
    rows = translator.translate(sentences, **options)
    assert line.score == pytest.approx(np.mean([x.score for x in rows]))
    assert line.score >= line.alternatives[0].score > np.mean([x.score for x in rows]) / 2


@pytest.mark.usefixtures("eager_search")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", [{"beam_size": 6}, {"sampling": True, "n_best": 6}])
def test_the_best_has_the_largest_mean_score(translator, metric, options):
    options = {"n_best": 2, "max_length": 6, **options}
    rows = translator.translate(SENTENCES, **options | {"n_best": 6})
    chosen = translator.translate(SENTENCES, mbr=metric, **options)
    for row, actual in zip(rows, chosen, strict=True):
        every = with_alternatives(row)
        shares = np.exp([0.0 if "sampling" in options else 0.7 * x.log_prob for x in every])
        means = by_sacrebleu(metric, [x.text for x in every]) @ (shares / shares.sum())
        ranks = sorted(zip([not x.finished for x in every], -means, range(6), strict=False))
        if not row.tokens:
            assert actual == row
            continue
        best = with_alternatives(actual)
        wanted = [(every[n].text, every[n].log_prob) for *_, n in ranks[: options["n_best"]]]
        assert [(x.text, x.log_prob) for x in best] == wanted
        np.testing.assert_allclose([x.score for x in best], [-x[1] for x in ranks[: len(best)]])


def test_what_leaves_no_choice_is_refused(translator):
    for options, reason in (
        ({"mbr": "ter"}, "mbr is 'ter'"),
        ({"mbr": "chrf", "beam_size": 1}, "one hypothesis, wanted several, such as with beam"),
        ({"mbr": "chrf", "sampling": True}, "one hypothesis, wanted several, such as with n_best"),
        ({"batchsize": 1}, "did you mean batch_size or beam_size?"),
        ({"mbr": "chrf", "terms": {"cat": "chat"}}, "terms are set"),
    ):
        refused(lambda options=options: translator.translate("a", **options), reason)
