"""The figures: colours read from pixels, labels, lines, files, errors."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from xml.etree import ElementTree

import keras
import numpy as np
import pytest
from processes import output_of
from refusals import refused

from bahdanau_tf import RNNEncDec, RNNSearch, Seq2SeqLSTM, Translation, plotting, view_architecture
from bahdanau_tf.evaluation import LengthBin, Score
from bahdanau_tf.plotting import paper
from bahdanau_tf.text import vocabulary
from bahdanau_tf.tracing import Candidate, Contributions, Gate, Step, Trace

matplotlib = pytest.importorskip("matplotlib")

WEIGHTS = np.array([[1.0, 0.0, 0.5], [0.0, 0.25, 0.75]])


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def pixel(figure, x, y):
    """The colour drawn at a point in data coordinates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    paper = FigureCanvasAgg(figure)
    paper.draw()
    image = np.asarray(paper.buffer_rgba())
    across, up = figure.axes[0].transData.transform((x, y))
    return image[image.shape[0] - 1 - int(up), int(across), :3]


def test_alignment_is_drawn_in_grey_with_the_source_on_top():
    figure = plotting.plot_alignment(["the", "cat", "."], ["le", "."], WEIGHTS)
    (axes,) = figure.axes
    for row, column in np.ndindex(WEIGHTS.shape):
        red, green, blue = pixel(figure, column, row)
        assert red == green == blue
        assert red == pytest.approx(255 * WEIGHTS[row, column], abs=1.5)
    assert labels(axes.xaxis) == ["the", "cat", "."]
    assert labels(axes.yaxis) == ["le", "."]
    assert axes.xaxis.get_ticks_position() == "top"
    left_to_right = axes.transData.transform([(0, 0), (1, 0)])[:, 0]
    top_to_bottom = axes.transData.transform([(0, 0), (0, 1)])[:, 1]
    assert left_to_right[0] < left_to_right[1]
    assert top_to_bottom[0] > top_to_bottom[1]


def test_blanks_of_sub_words_do_not_move_their_labels(tmp_path):
    pictures = []
    for name, before in (("plain", ""), ("blank", " "), ("wide", "\u3000")):
        source = [f"{before}the", "re", f"{before}is"]
        path = tmp_path / f"{name}.png"
        plotting.plot_alignment(source, [f"{before}là", "."], WEIGHTS, path)
        pictures.append(path.read_bytes())
    assert pictures[1:] == pictures[:1] * 2


def test_a_space_before_a_text_has_no_row():
    figure = plotting.plot_alignment(["a"], ["\u2009", "b", ""], [[0.5], [1.0], [0.0], [0.3]])
    assert labels(figure.axes[0].yaxis) == ["b", "", "[END]"]
    assert figure.axes[0].images[0].get_array().tolist()[0] == [1.0]


def test_weights_of_the_end_symbols_are_labelled():
    assert paper.END == vocabulary.END
    figure = plotting.plot_alignment(["e", "\u0330"], ["le"], WEIGHTS)
    (axes,) = figure.axes
    assert labels(axes.xaxis) == ["e", "\u25cc\u0330", "[END]"]
    assert labels(axes.yaxis) == ["le", "[END]"]
    plotting.plot_alignment([], [], [[1.0]])


@pytest.mark.parametrize(
    ("tokens", "weights", "message"),
    [
        ((["a"], ["b"]), WEIGHTS, "weights"),
        ((["a", "b", "c", "d"], ["e", "f"]), WEIGHTS, "weights"),
        ((["a"], ["b"]), [1.0], "weights"),
        ((["a"], ["b"]), [WEIGHTS] * 3, "weights"),
        (([], []), np.zeros([0, 0]), "weights"),
        ((["a"], ["b"]), None, "None weights"),
        ((Translation("a"),), None, "sentence"),
        (("abc",), None, "source_tokens 'abc' Translation"),
        (([Translation("a")],), None, "source_tokens [<Translation 'a'"),
    ],
)
def test_weights_of_another_shape_and_missing_ones_are_refused(tokens, weights, message):
    refused(
        lambda: plotting.plot_alignment(*tokens, weights=weights),
        "plot_alignment",
        *message.split(),
    )


def test_a_translation_is_drawn_with_its_own_tokens(tmp_path):
    translation = Translation(
        "the cat", source_tokens=["the", "cat"], tokens=["le"], weights=WEIGHTS
    )
    drawn = [tmp_path / "one.png", tmp_path / "other.png"]
    plotting.plot_alignment(translation, path=drawn[0])
    plotting.plot_alignment(["the", "cat"], ["le"], WEIGHTS, drawn[1])
    assert drawn[0].read_bytes() == drawn[1].read_bytes()


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_figures_are_written_as_png_pdf_and_svg(tmp_path, ending, magic):
    path = tmp_path / f"alignment.{ending}"
    plotting.plot_alignment(["the", "cat", "."], ["le", "."], WEIGHTS, path)
    assert path.read_bytes().startswith(magic)


def test_any_text_is_drawn(tmp_path):
    source = ["고양이가", "$x_{$", "猫", "", "a\nb", "\N{CAT FACE}"]
    path = tmp_path / "alignment.png"
    with warnings.catch_warnings():  # some characters may have no font
        warnings.filterwarnings("ignore", "Glyph|plot: no installed font")
        figure = plotting.plot_alignment(source, ["が"], np.full([1, 6], 0.5), str(path))
    assert labels(figure.axes[0].xaxis) == source
    assert path.stat().st_size > 0


def test_characters_that_no_font_has_are_told_in_a_sentence(monkeypatch, tmp_path):
    """In one, without those of matplotlib for each character."""
    monkeypatch.setattr(paper, "_installed", lambda: iter(()))
    path = tmp_path / "alignment.png"
    with pytest.warns(UserWarning, match="has 犬猫, .* fonts-noto-cjk") as warnings:
        plotting.plot_alignment(["a猫", "\t"], ["b 犬"], [[0.5, 0.5]], path)
    assert len(warnings) == 1


def test_a_font_that_has_the_characters_is_found(monkeypatch):
    """Among all that are installed; matplotlib itself brings some."""
    monkeypatch.setitem(matplotlib.rcParams, "font.family", ["STIXSizeOneSym"])
    figure = plotting.plot_alignment(["Ж"], ["a"], [[1.0]])
    (label,) = figure.axes[0].get_xticklabels()
    first, *others = label.get_fontfamily()
    assert first == "STIXSizeOneSym"
    fonts = dict(paper._installed())  # one may have the a, another the Ж
    assert any("Ж" in paper._glyphs(fonts[name]) for name in others)


def test_a_font_that_was_installed_after_matplotlib_made_its_list_is_found(monkeypatch):
    font_manager = pytest.importorskip("matplotlib.font_manager")
    fonts = font_manager.fontManager
    late = next(f.fname for f in fonts.ttflist if f.fname.endswith("STIXGeneral.ttf"))
    monkeypatch.setattr(fonts, "ttflist", [f for f in fonts.ttflist if f.name == "DejaVu Sans"])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [late, __file__])
    assert paper._fonts("a\u1d84") == ([*matplotlib.rcParams["font.family"], "STIXGeneral"], "")


@pytest.fixture
def any_font(monkeypatch):
    """As if a font had all characters: a machine may lack one of Hangul."""
    monkeypatch.setattr(paper, "_fonts", lambda text: (["DejaVu Sans"], ""))


@pytest.mark.usefixtures("any_font")
def test_letters_of_a_syllable_have_labels():
    figure = plotting.plot_alignment(["a", "", "", "각"], ["b"], np.full([1, 4], 0.5))
    assert labels(figure.axes[0].xaxis) == ["a", "ㄱ", "ㅏ", "ㄱ"]


@pytest.mark.usefixtures("any_font")
@pytest.mark.parametrize(("tokens", "turned"), [(["ㅜ", "á"], 0), (["a", "dog"], 90)])
def test_letters_stand_upright_along_the_top(tokens, turned):
    figure = plotting.plot_alignment(tokens, ["b"], np.full([2, 3], 0.5))
    columns = figure.axes[0].get_xticklabels()
    assert [column.get_rotation() for column in columns] == [turned, turned, 90]


@pytest.mark.parametrize(("lacks", "label"), [("", "문장 길이"), ("문", "Sentence length")])
def test_a_heading_is_in_the_language_that_a_font_can_draw(monkeypatch, lacks, label):
    """Without a Korean font, as in Colab, boxes would say less than English; a warning says it."""
    monkeypatch.setattr(paper, "_fonts", lambda text: (["DejaVu Sans"], lacks))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        figure = plotting.plot_bleu_by_length({}, language="ko")
        trace = Trace("", ["a", "b"], "original", "", [step("le", 1)])
        panels = plotting.plot_trace(trace, language="ko").axes
    assert figure.axes[0].get_xlabel() == label
    assert any("headings" in str(each.message) for each in warned) == bool(lacks)
    assert any("확률" in panel.get_title("left") for panel in panels) == (not lacks)


def test_the_figure_of_a_long_sentence_has_a_limited_size(tmp_path):
    """Of less than 2^14 dots in each direction, as it is written."""
    words = [f"w{i}" for i in range(400)]
    path = tmp_path / "alignment.png"
    plotting.plot_alignment(words, words[:2], np.ones([2, 400]) / 400, path)
    assert max(np.frombuffer(path.read_bytes()[16:24], ">u4")) < 2**14


def curve(*scores, margin=None):
    results = [Score("BLEU", score, "tok:13a", margin and score, margin) for score in scores]
    return [LengthBin(10 * i + 1, 10 * i + 10, 5, result) for i, result in enumerate(results)]


def test_bleu_by_length_draws_a_line_and_a_band_for_each_system(tmp_path):
    path = tmp_path / "length.png"
    curves = {
        "RNNsearch": curve(30.0, 31.0, 29.0, margin=2.0),
        "RNNencdec": curve(25.0, 10.0)[::-1],
    }
    figure = plotting.plot_bleu_by_length(curves, path)
    (axes,) = figure.axes
    first, second = axes.get_lines()
    np.testing.assert_allclose(first.get_xydata(), [[5.5, 30], [15.5, 31], [25.5, 29]])
    np.testing.assert_allclose(second.get_xydata(), [[5.5, 25], [15.5, 10]])
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == ["RNNsearch", "RNNencdec"]
    assert first.get_linestyle() != second.get_linestyle()
    corners = axes.collections[0].get_paths()[0].vertices
    for corner in ([5.5, 28], [5.5, 32], [25.5, 27], [25.5, 31]):
        assert np.abs(corners - corner).sum(1).min() < 1e-6
    assert path.read_bytes().startswith(b"\x89PNG")


def test_systems_of_any_name_are_in_the_legend():
    names = ["_mine", "costs $1", "$x^", "é"]
    curves = {name: curve(20.0, 30.0) for name in names}
    figure = plotting.plot_bleu_by_length(curves, label="$ y $")
    figure.canvas.draw()
    legend = figure.axes[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == names


def step(token, number, **others):
    fields = {
        "energies": [float(number), 0.0, -1.0],
        "weights": [0.5, 0.25, 0.25 * number],
        "context_norm": 2.0 + number,
        "gates": {"update": Gate(0.1 * number, 1.0)} if number else {},
        "contributions": Contributions(1.0, -2.0, 3.0 + number, 0.5),
    }
    candidates = [Candidate(token, 0.75), Candidate("antidisestablish", 0.25)]
    return Step(token, 2.5 + number, 0.75, candidates, **(fields | others))


def test_a_trace_has_a_row_for_each_word_and_the_source_on_top(tmp_path):
    path = tmp_path / "trace.png"
    steps = [step("le", 0), step("$x_{$", 1), step("[END]", 2)]
    trace = Trace("a b", ["a", "b"], "original", "s' = s", steps)
    figure = plotting.plot_trace(trace, path)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    weights, energies, words, terms, gates, norm = panels.values()
    assert labels(weights.yaxis) == ["le", "$x_{$", "[END]"]
    assert labels(weights.xaxis) == ["a", "b", "[END]"]
    assert weights.xaxis.get_ticks_position() == "top"
    first, last = weights.transData.transform([(0, 0), (0, 2)])[:, 1]
    assert first > last
    np.testing.assert_allclose(
        weights.images[0].get_array(), [[0.5, 0.25, 0.0], [0.5, 0.25, 0.25], [0.5, 0.25, 0.5]]
    )
    np.testing.assert_allclose(
        energies.images[0].get_array(), [[0, 0, -1], [0, -1, -2], [0, -2, -3]]
    )
    assert energies.get_title(loc="left").endswith("(black -3.0, white 0)")
    widths = [[bar.get_width() for bar in container] for container in terms.containers]
    assert widths == [[1] * 3, [-2] * 3, [3, 4, 5], [0.5] * 3]
    (sums, _) = terms.lines
    np.testing.assert_allclose(sums.get_xdata(), [2.5, 3.5, 4.5])
    (gate,) = gates.lines
    np.testing.assert_allclose(gate.get_xdata(), [np.nan, 0.1, 0.2])
    np.testing.assert_allclose(gate.get_ydata(), [0, 1, 2])
    assert gates.get_legend().get_title().get_text() == "s' = s"
    (line,) = norm.lines
    np.testing.assert_allclose(line.get_xdata(), [2, 3, 4])
    texts = words.texts
    assert texts[0].get_text() == "le\n75.0%"
    assert texts[1].get_text() == "antidises…\n25.0%"
    assert [text.get_fontweight() for text in texts[:2]] == ["bold", "normal"]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_trace_without_attention_and_gates_has_one_panel():
    bare = {"energies": None, "weights": None, "context_norm": None}
    bare |= {"gates": {}, "contributions": None}
    trace = Trace("a", ["a"], "main-text", "", [step("le", 0, **bare)])
    (axes,) = plotting.plot_trace(trace).axes
    assert labels(axes.yaxis) == ["le"]
    refused(lambda: plotting.plot_trace(Trace("", [], "original", "")), "plot_trace", "trace")


def test_missing_matplotlib_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for plot in (
        partial(plotting.plot_alignment, ["a"], ["b"], [[1.0]]),
        partial(plotting.plot_bleu_by_length, {}),
    ):
        refused(plot, f"{plot.func.__name__} needs matplotlib", by=ImportError)


SCRIPT = """
import sys
from bahdanau_tf import plotting
assert "matplotlib" not in sys.modules
plotting.plot_alignment(["a"], ["b"], [[1.0]])
assert "matplotlib.figure" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""


def test_matplotlib_is_imported_only_when_called_and_pyplot_never():
    output_of("-c", SCRIPT)


# The nodes of a step of RNNsearch: what y_i, s_i and attention read, by hand from the equations.
STEPS = {
    "main-text": "y_{i−1}>s_i s_{i−1}>s_i s_i>y_i s_{i−1}>c_i",
    "appendix": "y_{i−1}>s_i s_{i−1}>s_i s_{i−1}>y_i s_{i−1}>c_i",
    "original": "y_i>s_i s_{i−1}>s_i s_{i−1}>y_i s_{i−1}>c_i",
    "conditional": "y_{i−1}>s'_i s_{i−1}>s'_i s'_i>s_i s_i>y_i s'_i>c_i",
}


def arrows(drawing):
    """Of each arrow whether it is dashed, by its title without spaces."""
    return {
        path[0].text.replace(" → ", ">"): path.get("stroke-dasharray") is not None
        for path in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}path")
        if len(path)
    }


@pytest.mark.parametrize("order", STEPS)
def test_a_model_is_drawn_in_the_order_of_its_step(order):
    model = RNNSearch(9, 8, 7, 6, 5, 4, step_order=order)
    drawn = arrows(view_architecture(model))
    source = {f"h←_{j}>c_i" for j in ("1", "2", "3", "Tx")} | {"h←_1>s_0"}
    source |= {f"x_{j}>{row}_{j}" for j in ("1", "2", "3", "Tx") for row in ("h→", "h←")}
    source |= {"h→_1>h→_2", "h→_2>h→_3", "h←_2>h←_1", "h←_3>h←_2"}
    always = {"c_i>s_i", "y_{i−1}>y_i", "c_i>y_i"}
    assert {*drawn} == source | always | {*STEPS[order].split()}
    (query,) = (name for name, is_dashed in drawn.items() if is_dashed)
    assert query == STEPS[order].split()[-1]


def test_a_drawing_has_sizes_and_the_names_of_three_languages():
    model = RNNSearch(9, 8, 7, 6, 5, 4)
    for language, name in (("en", "Decoder"), ("ko", "디코더"), ("ja", "デコーダー")):
        drawing = view_architecture(model, language)
        text = "".join(ElementTree.fromstring(drawing).itertext())
        for said in (name, "K_x = 9", "K_y = 8", "n = 7", "m = 6", "n' = 5", "l = 4", "αi1"):
            assert said in text
        assert drawing._repr_html_() == drawing
    context = arrows(view_architecture(RNNEncDec(9, 8, 7, 6, 4)))
    assert {"h→_Tx>c", "h→_Tx>s_0", "c>s_i"} < {*context}
    lstm = arrows(view_architecture(Seq2SeqLSTM(9, 8, 7, 6, 2)))
    assert not [arrow for arrow in lstm if "c" in arrow]
    refused(lambda: view_architecture(keras.Sequential()), "view_architecture", "made of parts")
    refused(lambda: view_architecture(model, "xx"), "view_architecture: language is 'xx'")
