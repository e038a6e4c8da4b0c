"""Models that copy words of the source, in everything that a translator does."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import tensorflow as tf
from oracle import randomized
from reference import log_softmax
from test_models import K_Y, SOURCE, copying, reference_forward
from toys import with_alternatives

from bahdanau_tf import RNNSearch, SubwordTokenizer, Translator, trace
from bahdanau_tf.models import Ensemble
from bahdanau_tf.search import beam_search, gnmt_length_penalty
from bahdanau_tf.search.constraints import forbid
from bahdanau_tf.text.subwords import copies
from bahdanau_tf.translation.shortlist import full_step, shortlist_step, word_ids

pytestmark = pytest.mark.usefixtures("eager_search")

LINES = ["Anna sees 347 cats.", "Otto meets Barbara at 9:45.", "Barbara is in Chicago."] * 9
TEXT = SubwordTokenizer.train([LINES], 290)
M = 2**24
SENTENCES = ["Barbaranna meets 45:37 cats.", "Otto", "Anna sees Anna."]


def follower(**options: Any) -> Any:
    model = RNNSearch(290, 290, 6, 4, 5, 4, copying="hint", **options)
    randomized(model, scale=0.7).copying.copies.assign(copies(TEXT, TEXT))
    model.copying.bias.assign([1.0, 2.0])
    return model


TRANSLATOR = Translator(follower(), TEXT, TEXT)
OPTIONS: dict[str, Any] = {"beam_size": 4, "n_best": 3, "max_length": 9}


def test_pieces_of_equal_spelling_are_found() -> None:
    """The sign says whether they continue a word; padding and unknown words are not copied."""
    other = SubwordTokenizer.train([["347 Katzen", "12 Hunde"] * 9], 280)
    tokens, others = (
        [token.decode() for token in text.ids_to_tokens(tf.range(text.vocabulary_size)).numpy()]
        for text in (TEXT, other)
    )
    for number, (token, code) in enumerate(zip(tokens, copies(TEXT, TEXT), strict=True)):
        starts = token == "[END]" or token.startswith("▁")
        inner = -number - 2**24 * (token in ".,?!:'")
        assert code == (0 if token in ("[PAD]", "[UNK]") else number if starts else inner)
    for token, code in zip(tokens, copies(TEXT, other), strict=True):
        same = others[abs(code) % 2**24] == token
        assert same if code else token in ("[PAD]", "[UNK]") or token not in others


@pytest.mark.parametrize(
    ("codes", "wanted"),
    [
        ([3, -4, -M - 5, -6, 0], [3, -4, -5, -6, 0]),  # notes.txt
        ([3, -4, -M - 5, 0], [3, -4, 5, 0]),  # notes.
        ([-M - 5, -4, -M - 5, -M - 6, 3, -4], [-5, -4, 5, 6, 3, -4]),  # no. "?" in it
        ([3, -M - 5, -M - 5, -M - 5, -4, -M - 5], [3, -5, -5, -5, -4, 5]),  # http://a.
    ],
)
def test_a_mark_continues_a_word_only_if_letters_follow(codes, wanted) -> None:
    assert reference.words_of_codes(np.array(codes)) == wanted
    layer = follower().copying
    layer.copies.assign([*codes, *[0] * (290 - len(codes))])
    memory = layer.memory(tf.range(len(codes))[None])
    words, fates = memory.spelled.numpy()[0, 0], memory.fates.numpy()[0, 0]
    assert [*words] == [abs(x) if x else -1 for x in wanted]
    assert [*fates[:-1, 0]] == [float(x < 0) for x in wanted[1:]]


MODELS = [randomized(copying(copying="hint"), seed, 0.6) for seed in range(2)]


@pytest.mark.parametrize("kind", ["one", "ensemble", "shortlist"])
def test_search_finds_the_best_of_all_translations(kind: str) -> None:
    """Of up to three words, compared with all of them by the reference."""
    end, source = 2, SOURCE[:1]
    models = MODELS if kind == "ensemble" else MODELS[1:]
    model: Any = Ensemble(models) if kind == "ensemble" else models[0]
    words = [word for word in range(1, K_Y) if word != end]
    every = [(*x, end) for length in range(3) for x in itertools.product(words, repeat=length)]
    target = np.array([[*x, *[0] * (3 - len(x))] for x in every], np.int32)
    many = np.repeat(source, len(every), 0)
    log_probs = [log_softmax(reference_forward(x, many, target).logits) for x in models]
    mean = np.logaddexp.reduce(log_probs) - math.log(len(models))
    totals = (np.take_along_axis(mean, target[..., None], -1)[..., 0] * (target > 0)).sum(1)
    best = np.argsort(-totals)[:5]
    memory, state = model.encode(tf.constant(source))
    step, own = full_step(model, model.output_weights()), tf.constant([[*range(5, K_Y)]])
    if kind == "shortlist":
        step, memory = shortlist_step(model, memory, 5, own)
    found = beam_search(
        step,
        state,
        memory,
        start_id=0,
        eos_id=end,
        max_length=3,
        beam_size=len(every) * K_Y,  # all
        n_best=5,
        length_penalty=gnmt_length_penalty(0.0),
        constraints=[forbid([0])],
    )
    tokens = word_ids(found.tokens, 5, own) if kind == "shortlist" else found.tokens
    np.testing.assert_array_equal(tokens[0], target[best])
    np.testing.assert_allclose(found.log_probs[0], totals[best], atol=2e-5)


def traced(*texts: str, **options: Any) -> Any:
    """The sum of the log-probabilities of a trace."""
    steps = trace(TRANSLATOR, *texts, **options).steps
    return pytest.approx(sum(math.log(step.probability) for step in steps), abs=1e-4)


@pytest.mark.parametrize("prefixes", [None, ["Barb", "O", ""]])
def test_hypotheses_have_the_probabilities_of_scores_and_traces(prefixes: Any) -> None:
    for best in TRANSLATOR.translate(SENTENCES, prefixes=prefixes, **OPTIONS):
        for x in (y for y in with_alternatives(best) if y.finished):
            (scored,) = TRANSLATOR.score([best.source], [x.text])
            assert x.log_prob == pytest.approx(scored.log_prob, abs=1e-4)
            assert x.log_prob == traced(best.source, x.text)


def test_forced_attention_is_where_words_are_copied_from() -> None:
    source = TEXT.tokenize(["Otto"])[0].shape[0]
    rows = {step: np.eye(source)[place] for step, place in ((0, 1), (1, 0))}
    best = TRANSLATOR.translate("Otto", attention=rows)
    assert best.log_prob == traced("Otto", attention=rows)  # of the same translation


@pytest.mark.parametrize("int8", [False, True])
def test_what_is_copied_is_saved(int8: bool, tmp_path: Path) -> None:
    TRANSLATOR.save(tmp_path / "saved", int8=int8)
    loaded = Translator.load(tmp_path / "saved").model.copying.copies
    assert loaded.dtype == "int32"
    np.testing.assert_array_equal(loaded, copies(TEXT, TEXT))
