"""Terms: by a translator whose alignment is known, by chance, and by engines."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from comparisons import aligned
from engines import in_onnx_runtime, subwords
from hypothesis import given, strategies as st
from refusals import refused
from toys import english, french, toy_translator, with_alternatives

from bahdanau_tf import Decoding, RNNEncDec, Translator
from bahdanau_tf.translation.result import Doubt
from bahdanau_tf.translation.terms import Glossary, find_terms, with_terms


def shout(decoding, sentences, prefixes):
    """Writes each word in capitals, one for one, after the prefix; "quad" goes on at its end."""
    for source, start in zip(sentences, prefixes or [""] * len(sentences), strict=True):
        read, written = re.findall(r"\w+|\.", source), re.findall(r"\w+|\.", start)
        if written and written[-1] == "quad":
            written[-1] = "quads"
        count = sum(2 if word == "panthère" else 1 for word in written if word != "so")
        tokens = [*written, *(word.upper() for word in read[count:])]
        score, weights = -float(len(start)), np.eye(len(tokens) + 1, len(read) + 1, dtype="float32")
        yield aligned(source, " ".join(tokens), read, tokens, score=score, weights=weights)


TERMS = {"cat": "chat", "black cat": "panthère", "dog": "chien", "bike": "quad", "hot": "so hot"}


@pytest.mark.parametrize(
    ("source", "prefix", "wanted"),
    [
        ("the cat sees a dog .", "", "THE chat SEES A chien ."),
        ("a cat and a cat", "", "A chat AND A chat"),
        ("a black cat is here", "", "A panthère IS HERE"),
        ("Dog eats dog .", "", "Chien EATS chien ."),
        ("a dogged man", "", "A DOGGED MAN"),
        ("a black\u00a0 cat is here", "", "A panthère IS HERE"),
        ("a bike and a cat", "", "A quad AND A chat"),
        ("it is hot .", "", "IT IS so hot ."),
        ("the cat sees a dog", "LE chat", "LE chat SEES A chien"),
        ("the cat sees a dog", "LE lion", "LE lion chat A chien"),
        ("", "", ""),
    ],
)
def test_terms_stand_for_the_words_that_are_aligned_with_theirs(source, prefix, wanted):
    (x,) = with_terms(shout, TERMS)(Decoding(), [source], [prefix])
    assert x.text == wanted
    assert not x.doubts


def test_terms_are_not_swapped():
    sentences, terms = ["the cat sees a dog"], {"cat": "DOG", "dog": "CAT"}
    (x,) = with_terms(shout, terms)(Decoding(), sentences, None)
    assert (x.text, x.doubts) == ("THE DOG SEES A CAT", ())


def test_what_cannot_be_placed_is_a_doubt():
    def stubborn(decoding, sentences, prefixes):
        yield from shout(decoding, sentences, None)

    (x,) = with_terms(stubborn, TERMS)(Decoding(), ["a cat, a dog"], None)
    assert x.doubts == (Doubt("term", "chat"), Doubt("term", "chien"))
    assert str(x.doubts[0]) == "the term chat is missing"


def test_several_terms_are_also_put_in_the_first_translation():
    """A length penalty makes a search go on behind unlikely words."""

    def runs_on(decoding, sentences, prefixes):
        starts = prefixes or [""] * len(sentences)
        for x, start in zip(shout(decoding, sentences, prefixes), starts, strict=True):
            goes_on = start and decoding.alpha
            yield replace(x, text=f"{start} AND SO ON") if goes_on else x

    (x,) = with_terms(runs_on, TERMS)(Decoding(), ["a cat and a cat , a dog"], None)
    assert x.text == "A chat AND A chat A chien"


def test_a_term_makes_no_translation_unlikely():
    """The confidence is that without terms; a word that a term asks for is not doubted."""

    def judged(decoding, sentences, prefixes):
        for x in shout(decoding, sentences, prefixes):
            sure = [Doubt("unlikely")] if "chat" in x.text else []
            own = ("untranslated", "chat"), ("untranslated", "dog"), ("dropped", "cat")
            doubts = (*itertools.starmap(Doubt, own), *sure)
            yield replace(x, confidence=0.5 - len(sure) / 2, doubts=doubts)

    (x,) = with_terms(judged, TERMS)(Decoding(), ["a cat"], None)
    assert (x.text, x.confidence) == ("A chat", 0.5)
    assert x.doubts == (Doubt("untranslated", "dog"),)


@pytest.mark.parametrize(
    ("text", "terms", "wanted"),
    [
        ("New York is new", ["new", "New York", "York"], ["New York", "new"]),
        ("news, l'an-new_new", ["new"], ["new", "new"]),
        ("He said: new. \u201cNew\u201d New", ["new"], ["new", "new"]),
        ("NEW", ["new"], []),
        ("THE NEW SHOP, USA", ["new", "USA", "a"], ["new", "USA"]),
        ("un cafe\u0301 vu", ["caf\u00e9", "vu"], ["caf\u00e9", "vu"]),
        ("caf\u00e9", ["cafe\u0301"], ["cafe\u0301"]),
        ("cafe\u0301", ["cafe"], []),
        ("\u732b\u304c\u5bdd\u308b", ["\u732b"], ["\u732b"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939", "\u0939\u093f\u0928"], []),
    ],
)
def test_terms_are_found(text, terms, wanted):
    assert [match.term for match in find_terms(text, Glossary(terms))] == wanted


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "A", " ", ", "])).map("".join),
    st.sets(st.text("ab ", min_size=1).filter(lambda x: x == x.strip())),
)
def test_terms_are_found_as_whole_words_and_the_longest(text, terms):
    """As a pattern finds them."""
    plain = sorted({re.sub(" +", " ", term) for term in terms}, key=len, reverse=True)
    alternatives = "|".join(plain).replace(" ", " +") or "(?!)"
    lowered = re.sub(r"^\W*\w", lambda x: x[0].lower(), text)
    if text.isupper() and re.search(r"\w\w.*\s.*\w\w", text):
        lowered = text.lower()
    found = [x.span() for x in re.finditer(rf"\b(?:{alternatives})\b", lowered)]
    assert [(x.start, x.end) for x in find_terms(text, Glossary(terms))] == found


SENTENCES = ["the red cat", "", "Cat <b>sees</b>. A dog.", "he sleeps."]
WANTED = {"cat": "lion", "dog": "chat rouge", "red cat": "tigre"}


def test_engines_agree(eager_search, tmp_path):
    """A translation has the terms or a doubt; two equal models are one; others stay as they are."""
    pytest.importorskip("onnxruntime", reason="needs onnx and onnxruntime")
    own = subwords()
    options = {"max_length": 9, "beam_size": 2, "n_best": 2, "split_sentences": True}
    results = own.translate(SENTENCES, terms=WANTED, markup=True, **options)
    others = in_onnx_runtime(own, tmp_path)(SENTENCES, terms=WANTED, markup=True, **options)
    for x, other in zip(results, others, strict=True):
        assert [y.text for y in with_alternatives(x)] == [y.text for y in with_alternatives(other)]
        assert [*map(str, x.doubts)] == [*map(str, other.doubts)]
    for x in itertools.chain(*map(with_alternatives, results)):
        source, text = (re.sub("<.*?>", "", y).lower() for y in (x.source, x.text))
        source = source.replace("red cat", "tiger")
        terms = [t for s, t in {**WANTED, "tiger": "tigre"}.items() if s in source.split(" ")]
        lacks = {term for term in terms if not re.search(rf"\b{term}\b", text)}
        assert lacks <= {doubt.detail for doubt in x.doubts if doubt.kind == "term"}
    joined = Translator.ensemble([own, own])
    assert joined.translate(SENTENCES[0], terms=WANTED, **options).text == results[0].text
    assert results[3].text == own.translate(SENTENCES[3], **options).text


@pytest.mark.parametrize(
    ("terms", "options", "said"),
    [
        ([("cat", "chat")], {}, ["terms is", "dict"]),
        ({"a": "b", "cat": " "}, {}, ["terms has 'cat': ' '", "a target term", "not empty"]),
        ({"": "chat"}, {}, ["terms has '': 'chat'", "a source term", "not empty"]),
        ({"cat": 3}, {}, ["terms has 'cat': 3", "a target term that is a string"]),
        (WANTED, {"sampling": True}, ["terms and sampling=True"]),
        (WANTED, {"attention": {}}, ["attention", "without terms"]),
    ],
)
def test_other_terms_are_refused(terms, options, said):
    own = toy_translator(english(), french())
    refused(lambda: own.translate("a cat", terms=terms, **options), *said)


def test_models_that_cannot_have_terms_are_refused():
    blind = toy_translator(english(), french(), model_class=RNNEncDec)
    refused(lambda: blind.translate("a cat", terms=WANTED), "terms", "attention")
    turned = toy_translator(english(), french(reverse=True))
    refused(lambda: turned.translate("a cat", terms=WANTED), "reversed", "terms")
