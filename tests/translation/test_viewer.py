"""The HTML view of an alignment, checked by a parser and in a browser."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from browser import Page
from comparisons import aligned
from hypothesis import strategies
from refusals import refused

from bahdanau_tf import BeamTree, Trace, Translation, set_language, view_traces
from bahdanau_tf.system.language import _texts, in_language, said
from bahdanau_tf.tracing import Candidate, Continuation, Gate, Step
from bahdanau_tf.translation import Translations
from bahdanau_tf.translation.result import REASONS, Doubt
from bahdanau_tf.translation.view import parts_of, shares_of

HOSTILE = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "</div></section><h1>out</h1>",
    "</style><script>window.hit=1</script>",
    "' onmouseover='window.hit=1' x='",
    "&lt;b&gt; &amp;amp; &#60;",
    "*/}} body{display:none}",
)
DOUBTS = tuple(Doubt(kind, "<7>") for kind in REASONS)
SCRIPTS = (
    ("the red cat", "le chat rouge", ["le", "chat", "rouge"]),
    ("고양이가 매트 위에서", "猫がマットで", ["猫", "が", "マット", "で"]),
    ("猫が寝る", "cat sleeps", ["cat", "sleeps"]),
    ("the cat sleeps", "القطة تنام", ["القطة", "تنام"]),
    ("😀 e\u0301 𝒳", "a\u0301 👩\u200d🚀", ["a\u0301", "👩\u200d🚀"]),
)


def translation(source: str, text: str, tokens: list[str], weights: Any = None) -> Translation:
    """A translation of words separated by spaces."""
    words = source.split()
    if weights is None:
        random = np.random.default_rng(4)
        weights = random.dirichlet(np.full(len(words) + 1, 0.5), len(tokens) + 1)
    return aligned(source, text, words, tokens, weights=weights)


CAT = translation(
    "the cat", "le chat", ["le", "chat"], [[0.8, 0.2, 0.0], [0.02, 0.9, 0.08], [0.0, 0.0, 1.0]]
)


class Seen(HTMLParser):
    """The contents of the HTML, as read by a parser.

    Attributes:
        tags: All tags, with their attributes.
        texts: The text of each <div>: the translation, then the source.
        words: For each word of the two texts, by (side, number), its text and its shares of the
            other text.
        descriptions: The sentence about each word.
        cells: The text of each <td>.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.words: dict[tuple[str, int], list[Any]] = {}
        self.descriptions: dict[str, str] = {}
        self.cells: list[str] = []
        self._in_text = False
        self._word: list[Any] | None = None
        self._key = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "div":
            self.texts.append("")
            self._in_text = True
        if tag == "td":
            self.cells.append("")
        for side in "ts":
            if f"data-{side}" in attributes:
                shares = dict(re.findall(r"--([ts]\d+):([\d.]+)", attributes["style"] or ""))
                self._word = ["", {k: float(v) for k, v in shares.items()}]
                self.words[side, int(attributes[f"data-{side}"])] = self._word
        self._key = attributes.get("data-shown") or (tag == "bdi" and self._key)

    def handle_endtag(self, tag: str) -> None:
        self._in_text &= tag != "div"
        if tag in ("span", "small"):
            self._word = None

    def handle_data(self, data: str) -> None:
        if self._word is not None:
            self._word[0] += data
        if self._in_text:
            self.texts[-1] += data
        if self.cells:
            self.cells[-1] += data
        if self._key:
            self.descriptions[self._key] = self.descriptions.get(self._key, "") + data


@pytest.mark.parametrize(("source", "text", "tokens"), SCRIPTS)
def test_words_and_weights_equal_those_of_the_translation(source, text, tokens):
    shown = translation(source, text, tokens)
    seen = Seen(shown._repr_html_())
    assert seen.texts == [f"{text}[END]", f"{source}[END]"]
    for side, words in (("t", tokens), ("s", source.split())):
        assert [seen.words[side, i][0] for i in range(len(words) + 1)] == [*words, "[END]"]
    for (row, column), weight in np.ndenumerate(shown.weights):
        on_target = seen.words["t", row][1].get(f"s{column}", 0.0)
        on_source = seen.words["s", column][1].get(f"t{row}", 0.0)
        shown_weight = pytest.approx(weight, abs=0.0051) if weight >= 0.05 else 0
        assert on_target == on_source == shown_weight


def test_weights_are_described_in_words_largest_first():
    weights = [[0.2, 0.7, 0.1], [0.96, 0.04, 0.0], [0.04, 0.04, 0.92]]
    shown = translation("the cat", "le chat", ["le", "chat"], weights)
    descriptions = Seen(shown._repr_html_()).descriptions
    assert descriptions["t0"] == "“le” was aligned to “cat” 70%, “the” 20%, “[END]” 10%"
    assert descriptions["s1"] == "“cat” was attended to for “le” 70%"
    flat = translation("a", "b", ["b"], np.full([2, 2], 0.01))
    descriptions = Seen(flat._repr_html_()).descriptions
    assert descriptions["t1"] == "“[END]” was aligned to no word in particular"


LANGUAGES = {
    "en": """Translation|Original text
        “le” was aligned to “cat” 70%, “the” 30%
        “cat” was attended to for “le” 70%
        “[END]” was aligned to no word in particular""",
    "ko": """번역문|원문
        ‘le’에 정렬된 원문 단어: ‘cat’ 70%, ‘the’ 30%
        ‘cat’에 주목한 번역문 단어: ‘le’ 70%
        ‘[END]’에 정렬된 원문 단어: 뚜렷한 단어 없음""",
    "ja": """訳文|原文
        「le」に対応する原文の単語：「cat」 70%、「the」 30%
        「cat」に注目した訳文の単語：「le」 70%
        「[END]」に対応する原文の単語：特になし""",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_view_speaks_the_language_of_its_reader(language):
    headings, about_le, about_cat, about_end = map(str.strip, LANGUAGES[language].split("\n"))
    weights = [[0.3, 0.7, 0.0], [0.01, 0.01, 0.01]]
    view = translation("the cat", "le", ["le"], weights).view(language)
    assert view._repr_html_() == view  # so that a notebook draws it
    assert "|".join(re.findall("<h4>(.*?)</h4>", view)) == headings
    seen = check_harmless(view)
    assert seen.texts == ["le[END]", "the cat[END]"]
    said = [seen.descriptions[word] for word in ("t0", "s1", "t1")]
    assert said == [about_le, about_cat, about_end]


@pytest.fixture
def language(request) -> Iterator[str]:
    """The language that is set."""
    set_language(request.param)
    yield request.param
    set_language("en")


@pytest.mark.parametrize("language", ["ko", "ja"], indirect=True)
def test_no_english_word_is_left_in_another_language(language):
    shown = translation("1", "2", ["2"])
    bare = Translation("1", "2")
    drawn = [shown, bare, Translations([bare, shown] * 30), traced("1", "2"), tree("1")]
    pages = [each._repr_html_() for each in drawn]
    for html in pages:
        text = re.sub("<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
        assert {*re.findall("[A-Za-z]+", text)} <= {"END", "Tab", "log", "p", "update"}
    assert "Translation" in bare.view("en")
    set_language("en")
    assert [each.view(language)._repr_html_() for each in drawn] == pages  # its own language
    assert said("Source") == "Source"
    for view in (bare.view, drawn[2].view, drawn[3].view, drawn[4].view):
        with pytest.raises(ValueError, match=r"^\w+(\.view)?: language is 'xx', wanted one of en"):
            view("xx")


def test_every_text_has_the_same_places_in_each_language():
    for english, *others in zip(*(texts.values() for texts in _texts().values()), strict=True):
        for other in others:
            assert sorted(re.findall("{.*?}", other)) == sorted(re.findall("{.*?}", english))


@pytest.mark.parametrize("language", ["en"], indirect=True)
def test_the_language_is_english_until_one_is_set_or_that_of_the_locale(language, monkeypatch):
    for name, heading in (("ko_KR", "원문"), ("Japanese_Japan", "原文"), ("fr_FR", "Source")):
        monkeypatch.setattr("locale.getlocale", lambda name=name: (name, "UTF-8"))
        assert said("Source") != heading or name == "fr_FR"
        set_language()
        assert said("Source") == heading
    refused(lambda: set_language("xx"), "set_language: language is 'xx'")


def traced(source: str, target: str) -> Trace:
    """A trace of words separated by spaces."""
    random = np.random.default_rng(5)
    sources, targets = source.split(), [*target.split(), "[END]"]
    weights = random.dirichlet(np.full(len(sources) + 1, 0.5), len(targets)).tolist()
    steps = [
        Step(
            token=token,
            logit=0.0,
            probability=0.7,
            candidates=[Candidate(token, 0.7), Candidate(source, 0.123)],
            energies=None,
            weights=row,
            context_norm=None,
            gates={"update": Gate(0.25, 1.0)},
            contributions=None,
        )
        for token, row in zip(targets, weights, strict=True)
    ]
    return Trace(source, sources, "original", "", steps)


def tree(token: str) -> BeamTree:
    best = Continuation(token, -1, -1.0, None, "", is_best=True)
    reasons = ("not among the best", "could not win any more")
    cut = [Continuation(token, 0, -3.0, None, reason) for reason in reasons]
    return BeamTree(token, 2, [[best], [replace(best, parent=0, score=-0.5), *cut]])


@pytest.mark.parametrize("text", ["the cat", *HOSTILE])
def test_a_player_shows_the_numbers_of_the_trace(text):
    trace = traced(text, text)
    html = trace.view()
    seen = check_harmless(html)
    inputs = [attributes for tag, attributes in seen.tags if tag == "input"]
    assert [each["value"] for each in inputs] == [str(i) for i in range(len(trace.steps))]
    assert ["checked" in each for each in inputs] == [True] + [False] * (len(inputs) - 1)
    shares = re.findall('--p0:.*?(?=")', html)
    for j, style in enumerate(shares):
        percents = [int(x) for x in re.findall(r"--p\d+:(\d+)", style)]
        wanted = [100 * step.weights[j] for step in trace.steps]
        np.testing.assert_allclose(percents, wanted, atol=0.51)
    assert len(shares) == len(trace.source_tokens) + 1
    for number, step in enumerate(trace.steps):
        (panel,) = re.findall(f'<div data-step="{number}">(.*?)</div>', html)
        for word, shown in ((step.token, "70.0%"), (text, "12.3%"), ("update", "0.25")):
            assert f"<bdi>{escape(word)}</bdi>{shown}</li>" in panel
        lines = re.findall(f'<line data-step="{number}".*?--w:([0-9.]+)', html)
        drawn = [float(f"{weight:.2f}") for weight in step.weights if weight >= 0.05]
        assert [float(x) for x in lines] == drawn
    check_harmless(tree(text).view())


def test_traces_side_by_side_share_the_steps_of_the_longest():
    short = traced("a b", "x")
    bare = replace(short, steps=[replace(step, weights=None) for step in short.steps])
    html = view_traces({"<old>": bare, "new": traced("a b", "x y z")})
    seen = check_harmless(html)
    assert [tag for tag, _ in seen.tags].count("input") == 4
    assert re.findall("<h4>(.*?)</h4>", html) == ["&lt;old&gt;", "new"]
    old, new = html.split("</section>")[:2]
    assert ("<line" in old, "data-weights" in old.split("</style>")[1]) == (False, False)
    assert "<line" in new


def check_harmless(html: str) -> Seen:
    seen = Seen(html)
    names = {tag for tag, _ in seen.tags}
    assert names <= {
        *("section", "style", "h4", "div", "p", "span", "small", "bdi", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *("form", "fieldset", "legend", "label", "input", "button", "ol", "li", "h5", "br"),
        *("svg", "line"),
    }
    for _, attributes in seen.tags:
        assert set(attributes) <= {
            *("class", "dir", "aria-live", "tabindex", "style", "hidden"),
            *("data-t", "data-s", "data-shown", "colspan", "aria-hidden"),
            *("data-step", "data-side", "data-weights", "data-best", "data-cut"),
            *("type", "name", "value", "checked", "disabled"),
            *("viewbox", "preserveaspectratio", "x1", "y1", "x2", "y2"),
        }
    assert not {*re.findall(r"url\(|@import", html)}
    return seen


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped(text):
    shown = translation(text, text, text.split())
    seen = check_harmless(shown._repr_html_())
    assert seen.texts == [f"{text}[END]"] * 2
    bare = Translation(text, text, text.split())
    assert check_harmless(bare._repr_html_()).texts == [text, text]
    listed = check_harmless(Translations([bare, shown])._repr_html_())
    assert listed.cells[:6] == [text, text, "0.00"] * 2
    assert listed.texts == [f"{text}[END]"] * 2


def test_a_list_is_drawn_as_a_table_and_stays_a_list():
    listed = Translations(CAT for _ in range(1_060))
    again = pickle.loads(pickle.dumps(listed))
    assert type(again) is type(listed[1:]) is Translations
    assert again == listed == [CAT] * 1_060
    assert (listed[2], listed[1:]) == (CAT, [CAT] * 1_059)
    html = listed._repr_html_()
    assert html.count("<details>") == html.count("<section ") == 3
    assert [html.count(part) for part in ("<td dir", "1,010 more")] == [100, 1]
    assert "more" not in Translations([])._repr_html_()


@hypothesis.given(strategies.text(max_size=12), strategies.text(min_size=1, max_size=12))
def test_any_text_is_shown_completely(source, text):
    """Also offsets inside a character, and white space."""
    size = len(text.encode())
    cuts = [0, size // 3, size // 2, size]
    offsets = {"source_offsets": [(0, len(source.encode()))]}
    offsets["target_offsets"] = [*itertools.pairwise(cuts)]
    whole = Translation(source, text, ["x"] * 3, **offsets, weights=np.full([4, 2], 0.5))
    seen = check_harmless(whole._repr_html_())
    # A token without characters is shown as a dot at its place.
    wanted = [f"{text}[END]", f"{source}[END]"]
    assert [x.replace("·", "") for x in seen.texts] == [x.replace("·", "") for x in wanted]


@pytest.mark.parametrize(
    ("text", "spans", "end", "parts"),
    [
        ("ﬁ x", [(0, 1), (0, 1), (2, 3)], 4, [(0, 1, (0, 1)), (2, 3, (2,)), (3, 3, (3,))]),
        # A character that byte subwords split.
        ("猫a", [(0, 1), (0, 1), (1, 2)], 3, [(0, 1, (0, 1)), (1, 2, (2,))]),
        # Spaces are not part of a subword; one at the end is not the end symbol.
        ("a cat ", [(0, 1), (1, 6)], 2, [(0, 1, (0,)), (2, 5, (1,))]),
        ("a  b", [(0, 1), (1, 3), (3, 4)], 3, [(0, 1, (0,)), (3, 4, (1, 2))]),
        ("a ", [(0, 1), (1, 2)], 3, [(0, 1, (0,)), (2, 2, (1,)), (2, 2, (2,))]),
        ("e\u0330b", [(0, 1), (1, 2), (2, 3)], 3, [(0, 2, (0, 1)), (2, 3, (2,))]),
        # They are in the order of the text.
        ("a b", [(2, 3), (0, 1)], 2, [(0, 1, (1,)), (2, 3, (0,))]),
    ],
)
def test_parts_are_tokens_with_characters_of_their_own(text, spans, end, parts):
    assert parts_of(text, spans, end) == parts


def test_shares_of_joined_tokens_are_their_mean():
    parts = parts_of("ﬁ x", [(0, 1), (0, 1), (2, 3)], 4)
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    both = parts_of("ab", [(0, 2), (1, 2)], 2)
    np.testing.assert_allclose(shares_of(weights, both, parts), [[0.5, 0.25, 0.25]])


def test_without_attention_both_texts_and_a_note_are_shown():
    html = Translation("the cat", "le chat", ["le", "chat"])._repr_html_()
    seen = Seen(html)
    assert seen.texts == ["le chat", "the cat"]
    assert not seen.words
    assert "No alignment" in html
    assert "No alignment" not in Translation("  ")._repr_html_()


def test_the_html_of_a_long_sentence_is_small():
    words = [f"w{i}" for i in range(300)]
    text = " ".join(words)
    html = translation(text, text, words)._repr_html_()
    assert len(html) < 1_000_000


# In a browser.


@pytest.fixture
def shown(page, tmp_path) -> Iterator[Callable[..., Page]]:
    """A page with some translations: `shown(*translations)`."""
    page.problems.clear()
    page.requests.clear()

    def show(*translations: Translation | Translations | Trace | BeamTree) -> Page:
        path: Path = tmp_path / "page.html"
        drawn = "".join(translation._repr_html_() for translation in translations)
        path.write_text(
            # A notebook style that forces [hidden], with dark colours.
            "<!doctype html><meta charset=utf-8><style>[hidden]{display:none "
            "!important}body{background:#111;color:#eee}</style>" + drawn,
            "utf-8",
        )
        page.open(path.as_uri())
        return page

    yield show
    assert page.problems == []
    assert [url for url in page.requests if url[:5] not in ("file:", "about")] == []


def marks(page: Page, section: int, side: str) -> list[tuple[float, float]]:
    """For each word, the width of its underline and the opacity of its tint."""
    words = f"document.querySelectorAll('section')[{section}].querySelectorAll('[data-{side}]')"
    styles = page.evaluate(
        f"[...{words}].map((x) => getComputedStyle(x)).map((x) => [x.boxShadow, x.backgroundColor])"
    )
    return [
        (float(re.findall(r"(-?[\d.]+)px", shadow)[1]), float(re.findall(r"[\d.]+", colour)[-1]))
        for shadow, colour in styles
    ]


def hints(page: Page) -> list[str]:
    """The sentence shown below each translation."""
    return page.evaluate(
        "[...document.querySelectorAll('[aria-live]')].map((one) => one.innerText)"
    )


@pytest.mark.slow
def test_pointing_marks_aligned_words_only_in_the_same_view(shown):
    page = shown(CAT, CAT)
    hint = "Point at a word, or move to it with Tab."
    first = "“le” was aligned to “the” 80%, “cat” 20%"  # before anyone points
    assert hints(page) == [f"{first}\n{hint}"] * 2
    assert marks(page, 0, "s") == marks(page, 1, "s") != [(0, 0)] * 3
    page.point_at('[data-t="0"]')
    lines, tints = zip(*marks(page, 0, "s"), strict=True)
    assert lines == pytest.approx((5 * 0.8, 5 * 0.2, 0))
    assert tints == pytest.approx((0.45 * 0.8, 0.45 * 0.2, 0), abs=0.01)
    assert hints(page) == [first, f"{first}\n{hint}"]
    page.point_at('section:nth-of-type(2) [data-s="1"]')
    lines, _ = zip(*marks(page, 1, "t"), strict=True)
    assert lines == pytest.approx((5 * 0.2, 5 * 0.9, 0))
    assert hints(page) == [f"{first}\n{hint}", "“cat” was attended to for “chat” 90%, “le” 20%"]
    assert marks(page, 0, "t") == marks(page, 1, "s") == [(0, 0)] * 3


@pytest.mark.slow
def test_it_works_with_the_keyboard_and_the_mouse_takes_precedence(shown):
    page = shown(CAT)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=890, y=890)
    for _ in range(2):
        page.press("Tab", 9)
    assert hints(page) == ["“chat” was aligned to “cat” 90%, “[END]” 8%"]
    page.point_at('[data-t="0"]')
    assert hints(page) == ["“le” was aligned to “the” 80%, “cat” 20%"]
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=890, y=890)
    assert hints(page) == ["“chat” was aligned to “cat” 90%, “[END]” 8%"]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "text", "tokens"), SCRIPTS)
def test_words_of_any_script_can_be_pointed_at(shown, source, text, tokens):
    weights = np.eye(len(tokens) + 1, len(source.split()) + 1)
    page = shown(translation(source, text, tokens, weights))
    for number, token in enumerate(tokens):
        page.point_at(f'[data-t="{number}"]')
        assert hints(page)[0].startswith(f"“{token}” was aligned to")
    is_rtl = "\u0600" < text[0] < "\u0700"
    left = page.evaluate(
        "[...document.querySelectorAll('[data-t]')].map((one) => one.getClientRects()[0].left)"
    )
    assert left == sorted(left, reverse=is_rtl)


@pytest.mark.slow
def test_hostile_text_is_not_run_in_a_browser(shown):
    page = shown(*(translation(text, text, text.split()) for text in HOSTILE))
    for number in range(len(HOSTILE)):
        page.evaluate(f"document.querySelectorAll('section')[{number}].scrollIntoView()")
        page.point_at('[data-t="0"]', number)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('h1, img').length") == 0
    assert page.evaluate("getComputedStyle(document.body).display") == "block"


def as_on_a_phone(page: Page) -> None:
    size = {"width": 360, "height": 640}
    page.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)


@pytest.mark.slow
def test_a_table_fits_a_phone_and_opens_its_alignments(shown):
    right = translation(*SCRIPTS[3])
    page = shown(Translations([CAT, right, translation("w" * 300, "v" * 300, ["v" * 300])]))
    as_on_a_phone(page)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert hints(page)[0].startswith("“le” was aligned to “the” 80%, “cat” 20%")
    directions = "[...document.querySelectorAll('td[dir]')].map((each) => getComputedStyle(each))"
    assert page.evaluate(f"{directions}.map((style) => style.direction)").index("rtl") == 3
    page.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.slow
def test_arrow_keys_move_through_the_steps_of_one_player_and_all_fits_a_phone(shown):
    page = shown(traced("the cat", "le chat"), traced("the cat", "le chat"), tree("chat"))
    as_on_a_phone(page)
    page.press("Tab", 9)
    page.press("ArrowRight", 39)
    page.press("Enter", 13)  # does not send the form
    visible = "[...document.querySelectorAll('div[data-step]')].map((x) => x.offsetHeight > 0)"
    assert page.evaluate(visible) == [False, True, False, True, False, False]
    lines = "[...document.querySelectorAll('form:first-of-type line')]"
    strong = page.evaluate(f"{lines}.map((x) => [x.dataset.step, getComputedStyle(x).opacity])")
    assert {step for step, opacity in strong if opacity == "1"} == {"1"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("language", ["en", "ko", "ja"])
def test_doubts_stand_below_the_translation(language):
    doubtful = replace(translation("x", "y", ["y"], np.ones([2, 2])), doubts=DOUBTS)
    for drawn in (doubtful, replace(doubtful, weights=None), Translations([doubtful])):
        with in_language("test", language):
            reasons = [escape(said(x).format("<7>")) for x, _ in REASONS.values()]
        assert all(f"<small>⚠ {reason}</small>" in drawn.view(language) for reason in reasons)
    assert language == "en" or not set(reasons) & {*map(str, DOUBTS)}
