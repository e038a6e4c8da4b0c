"""Markup that is put back by an alignment made by hand, by chance, and by engines."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from comparisons import aligned
from engines import in_onnx_runtime, subwords
from hypothesis import given, strategies as st
from refusals import refused
from toys import english, french, toy_translator

from bahdanau_tf import RNNEncDec, Translation
from bahdanau_tf.translation.markup import put_back, split, translate_marked


def translation(source: str, text: str, links: str, weights: np.ndarray | None = None):
    """Of words and signs; links are as in "0-0 1-2", source and target."""
    read, written = (re.findall(r"\w+|[^\w\s]", x) for x in (source, text))
    if weights is None:
        weights = np.zeros([len(written) + 1, len(read) + 1], np.float32)
        for link in links.split():
            column, row = map(int, link.split("-"))
            weights[row, column] = 1
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1)
    return aligned(source, text, read, written, weights=weights)


def cut(text: str, offsets: list[tuple[int, int]]) -> list[str]:
    return [text.encode()[start:end].decode() for start, end in offsets]


def soft(source: str, text: str, seed: int) -> np.ndarray:
    """Weights by chance, of words and signs and the ends."""
    width, height = (len(re.findall(r"\w+|[^\w\s]", x)) + 1 for x in (split(source).plain, text))
    return np.random.default_rng(seed).dirichlet(np.full(width, 0.2), height)


def marked(source: str, text: str, links: str = "", weights: np.ndarray | None = None):
    result = put_back(split(source), translation(split(source).plain, text, links, weights))
    assert cut(result.source, result.source_offsets) == result.source_tokens
    assert cut(result.text, result.target_offsets) == result.tokens
    return result


# Translates "The red car is here."
RED = "La voiture rouge est ici.", "0-0 1-2 2-1 3-3 4-4 5-5"


@pytest.mark.parametrize(
    ("source", "text", "links", "wanted"),
    [
        ("The <b>red</b> <i>car</i> is here.", *RED, "La <i>voiture</i> <b>rouge</b> est ici."),
        ("<p>The red <b>car is</b> here.</p>", *RED, "<p>La <b>voiture rouge est</b> ici.</p>"),
        (
            "The <a x='a>b'><b>red</b> car</a> is here.",
            *RED,
            "La <a x='a>b'>voiture <b>rouge</b></a> est ici.",
        ),
        ("The red car is <b>here</b>.", *RED, "La voiture rouge est <b>ici</b>."),
        ("The red car is <b>here.</b>", *RED, "La voiture rouge est <b>ici.</b>"),
        ("The r<b>e</b>d car is here.", *RED, "La voiture <b>rouge</b> est ici."),
        (" <p> The red car is here. </p>\n", *RED, "<p> La voiture rouge est ici. </p>"),
        ("The %s red car is here.", *RED, "La %s voiture rouge est ici."),
        ("The red<x/> car is here.", *RED, "La voiture rouge<x/> est ici."),
        ("The red car is here<!-- <b> -->.", *RED, "La voiture rouge est ici<!-- <b> -->."),
        (
            "The <b></b>red car <u>is <i>here</u>.</i>",
            *RED,
            "La <b></b>voiture rouge <u>est <i>ici</u>.</i>",
        ),
        # What is read of the source ends before the tag.
        ("Stop <b>here</b>", "Halte", "0-0", "Halte <b></b>"),
        ("I live in %(town)s.", "Je vis à.", "0-0 1-1 2-2 3-3", "Je vis à %(town)s."),
        ("I <b>see <i>%s</i>.</b>", "Je vois.", "0-0 1-1 2-2", "Je <b>vois <i>%s</i>.</b>"),
        ("Tom &copy; Li", "Tom Li", "0-0 1-1", "Tom &copy; Li"),
        ("R&copy;D", "R D", "0-0 1-1", "R&copy;D"),
        # & and quotes are read, and written as in the source.
        ("Tom &amp; <b>Li</b>", "Tom et Li", "0-0 1-1 2-2", "Tom et <b>Li</b>"),
        (
            "R&amp;D <b>&quot;a&quot;</b>",
            'R&D "x"',
            "0-0 1-1 2-2 3-3 4-4 5-5",
            "R&amp;D <b>&quot;x&quot;</b>",
        ),
        ('&amp;lt; "a" & b', '&lt; "a" & b', "0-0", '&amp;lt; "a" &amp; b'),
        ("caf&eacute; <b>don&#39;t</b>", "café pas", "0-0 1-1 2-1 3-1", "café <b>pas</b>"),
        ("One.<br>Two.", "Un. Deux.", "0-0 1-1 2-2 3-3", "Un.<br>Deux."),
        ("<li>One</li><li>Two</li>", "Un Deux", "0-0 1-1", "<li>Un</li><li>Deux</li>"),
        ("Look at {0} books", "本を見る", "2-0", "{0}本を見る"),
        ("%s冊", "books", "0-0", "%s books"),
        ("これは<b>猫</b>", "a cat", "0-1", "a <b>cat</b>"),
        ("%d%% of {{x}} and ${y}", "de et", "0-0 1-1", "%d%% de {{x}} et ${y}"),
        ("<b>%s</b> %s", "", "", "<b>%s</b> %s"),
        # No tag is inside a number or an address, whatever its tokens are aligned with.
        (
            "It costs <b>1,200</b> euros",
            "Il coûte 1,200 euros",
            "0-0 1-1 2-2 3-3 5-4 5-5",
            "Il coûte <b>1,200</b> euros",
        ),
        ("To <b>me@a.org</b>", "À me@a.org", "0-0 1-1 2-2 3-3 0-4 0-5", "À <b>me@a.org</b>"),
        # printf reads bare ones by their order.
        (
            "The <b>red %s</b> <i>car %d</i> is here.",
            *RED,
            "La <i>voiture %s</i> <b>rouge %d</b> est ici.",
        ),
        # A placeholder touches a letter only where it does in the source.
        ("Your name is %s.", "Votre nom est.", "0-0 1-1 3-2 3-3", "Votre nom %s est."),
        # Attention to a final stop tells little.
        ("Your name is %s.", "Votre nom est.", "0-0 1-1 2-2 3-2 3-3", "Votre nom est %s."),
        ("Your name is <b>%s</b>s", "Votre nom est", "0-0 1-1 3-2", "Votre nom <b>%s</b>est"),
        ("100% sure, i <3 u & a < b", "c'est sûr", "", "c'est sûr"),
        (
            "<script>if (a < b) x();</script>Yes",
            "Oui",
            "0-0",
            "<script>if (a < b) x();</script>Oui",
        ),
        ("Run <code>a = max(b)</code>", "Lancez", "0-0", "Lancez <code>a = max(b)</code>"),
        ("<code-x>Go</code-x>", "Va", "0-0", "<code-x>Va</code-x>"),
    ],
)
def test_marks_follow_their_words(source, text, links, wanted):
    assert marked(source, text, links).text == wanted


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<h1>Hi</h1>\n<p>A <b>cat</b>.</p>  <p>A dog", ["", "Hi", "A cat.", "A dog"]),
        ("One<br>two <i>x</i>", ["One", "two x"]),
        ("<ul><!-- x --> <li>x</li></ul>", ["", "", "x", ""]),
        ("a <b>b<br/>c</b>", ["a b c"]),
        ("See: <pre>a\nb</pre> Then <code>x</code> go.", ["See:", "Then go."]),
        ("", [""]),
    ],
)
def test_blocks_are_translated_by_themselves(source, texts):
    """Their tags stay where they are, with the spaces beside them."""

    def translate(sentences, prefixes):
        assert sentences == texts
        first = next((x for x in texts if x), "")
        assert prefixes == ["x" if x is first else "" for x in texts]
        return same(texts)

    (result,) = translate_marked(translate, [source], ["<i>x</i>"])
    assert result.source == result.text == source


def same(sentences: list[str], prefixes: object = None) -> list[Translation]:
    """Translations that are the sentences, with a score of 80 and another of 90."""
    counts = [len(re.findall(r"\w+|[^\w\s]", x)) for x in sentences]
    links = [" ".join(f"{n}-{n}" for n in range(count)) for count in counts]
    rows = map(translation, sentences, sentences, links)
    scores = [(90.0 - 10 * (n % 2)) * bool(count) for n, count in enumerate(counts)]
    return [replace(x, score=score) for x, score in zip(rows, scores, strict=True)]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("The <b>cat</b> sleeps. A dog.", ["The cat sleeps.", "A dog."]),
        ("<b>A cat. <i>A</i> dog.</b> No.", ["", "A cat.", "A dog.", "No."]),
        ("<b>A cat.</b> <i>A dog.</i>", ["A cat.", "A dog."]),
        ("A <b>cat. A</b> dog. No.", ["A cat. A dog.", "No."]),
        ("<p>A cat. A dog.</p> No.", ["", "A cat.", "A dog.", "No."]),
        ("Cats %s. Red %s dog.", ["Cats.", "Red dog."]),
    ],
)
def test_sentences_are_translated_by_themselves_but_not_within_an_element(source, texts):
    read = []
    (result,) = translate_marked(
        lambda x, prefixes: read.extend(x) or same(x), [source], is_mean=True, by_sentence=True
    )
    assert read == texts
    assert result.source == result.text == source
    kept = [(90, 80)[n % 2] for n, text in enumerate(texts) if text]
    assert result.score == pytest.approx(sum(kept) / len(kept))


def test_a_long_text_with_markup_needs_no_large_matrix():
    """A sum of 5,000 sentences takes no time squared, either."""
    source = "I see <b>a</b> cat. " * 5000
    (result,) = translate_marked(same, [source], by_sentence=True)
    assert result.text == source.rstrip() + " " * (result.text[-1:] == " ")
    assert result.weights is None
    assert result.pharaoh == " ".join(f"{n}-{n}" for n in range(len(result.tokens)))


WORDS = st.sampled_from(["a", "bc", "é", "猫", ".", ",", "(", "d'"])
POINTS = st.sampled_from(["%s", "%d", "{0}", "&copy;", "<br/>", "<!-- > -->", "${x}", "<x y='>'/>"])
SPACES = st.sampled_from(["", " ", "  "])
WELL = st.recursive(
    st.tuples(SPACES, WORDS | POINTS, SPACES).map("".join),
    lambda inner: st.tuples(st.sampled_from("bip"), st.lists(inner, max_size=4)).map(
        lambda x: f"<{x[0]}>{''.join(x[1])}</{x[0]}>"
    ),
    max_leaves=12,
)
ILL = st.lists(WORDS | POINTS | SPACES | st.sampled_from(["<b>", "</b>", "<i>", "</i>"])).map(
    "".join
)
MARKS = re.compile(r"<!--.*?-->|<x y='>'/>|<[^>]*>|%[sd]|\{0\}|&copy;|\$\{x\}")
TARGETS = st.lists(st.sampled_from(["x", "y.", "(z", "猫", "猫。", "l'eau"]), max_size=6).map(
    " ".join
)


class Paths(HTMLParser):
    """The elements, each with those around it; fails if a tag is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.paths = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.paths.append("/".join(self.open))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.paths.append("/".join([*self.open, tag]))


@given(WELL | st.lists(WELL).map("".join) | ILL, TARGETS, st.integers(0, 99))
def test_nothing_is_lost_or_doubled(source, text, seed):
    """By any soft alignment; the rest is the translation, up to spaces."""
    weights = soft(source, text, seed)
    result = marked(source, text, weights=weights)
    assert result.source == source
    assert sorted(MARKS.findall(result.text)) == sorted(MARKS.findall(source))
    assert re.findall("%[sd]", result.text) == re.findall("%[sd]", source)
    assert "".join(MARKS.sub("", result.text).split()) == "".join(text.split())
    if not MARKS.search(source):
        assert result == translation(source, text, "", weights)


@given(st.lists(WELL).map("".join), TARGETS, st.integers(0, 99))
def test_well_formed_markup_stays_so_with_its_nesting(source, text, seed):
    result = marked(source, text, weights=soft(source, text, seed))
    assert sorted(Paths(result.text).paths) == sorted(Paths(source).paths)


@given(st.lists(WELL, max_size=5))
def test_markup_between_sentences_stays_well_formed(parts):
    source = "".join(f"{x}. A " for x in parts)
    (result,) = translate_marked(same, [source], by_sentence=True)
    assert result.source == source
    assert sorted(MARKS.findall(result.text)) == sorted(MARKS.findall(source))
    assert sorted(Paths(result.text).paths) == sorted(Paths(source).paths)


@given(WELL, TARGETS, st.integers(0, 99))
def test_what_is_around_the_whole_text_stays_around_it(inner, text, seed):
    """Even if a sub-word is a space alone."""
    whole = split(f"<p>a {inner}</p>")
    x = translation(whole.plain, text, "")
    x.source_tokens.insert(0, "")
    x.source_offsets.insert(0, (0, 0))
    shape = len(x.tokens) + 1, len(x.source_tokens) + 1
    x = replace(x, weights=np.random.default_rng(seed).dirichlet(np.full(shape[1], 0.2), shape[0]))
    assert re.fullmatch("<p>.*</p>", put_back(whole, x).text)


SENTENCES = ["<p>the <b>red</b> cat sleeps.</p>", "the red cat sleeps.", "", "%s <i>a</i> dog"]


def test_engines_agree(eager_search, tmp_path):
    """The texts without markup are plain translations, with their alternatives and prefixes."""
    pytest.importorskip("onnxruntime", reason="needs onnx and onnxruntime")
    own = subwords()
    options = {"n_best": 2, "prefixes": ["", "", "", "<b>le</b>"], "split_sentences": True}
    results = own.translate(SENTENCES, markup=True, **options)
    others = in_onnx_runtime(own, tmp_path)(SENTENCES, markup=True, **options)
    options["prefixes"][3] = "le"
    plains = own.translate([MARKS.sub("", x).strip() for x in SENTENCES], **options)
    for x, other, plain in zip(results, others, plains, strict=True):
        for a, b, c in zip(*([y, *y.alternatives] for y in (x, other, plain)), strict=True):
            assert (a.text, a.tokens, a.source) == (b.text, b.tokens, b.source)
            assert "".join(MARKS.sub("", a.text).split()) == "".join(c.text.split())
    assert [x.source for x in results] == SENTENCES
    assert results[0].text.startswith("<p>")
    assert results[1] == plains[1]
    text = "<p>\nthe red <b>cat</b></p><br>\na dog"
    assert own.translate(text, markup=True, split_sentences=True).text.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("大阪に", "<b>大阪</b>に"), ("カナ。", "<b>カナ</b>。"), ("大さに", "<b>大</b>さに")],
)
def test_no_tag_splits_chinese_characters_or_katakana(text, wanted):
    weights = np.array([[0, 1, 0], [0.6, 0.4, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    x = aligned("to Osaka", text, ["to", "Osaka"], [*text], weights=weights)
    assert put_back(split("to <b>Osaka</b>"), x).text == wanted


def test_a_model_without_attention_is_refused():
    own = toy_translator(english(), french(), model_class=RNNEncDec)
    refused(lambda: own.translate("<b>a</b>", markup=True), "markup", "RNNEncDec")
    refused(lambda: own.translate("a", markup="no"), "markup is 'no'", "True or False")
    refused(lambda: own.translate("a", split_sentences=1), "split_sentences is 1")
    bare = Translation("a", "b", ["b"], target_offsets=[(0, 1)])
    refused(lambda: put_back(split("<b>a</b>"), bare), "markup", "alignment")
