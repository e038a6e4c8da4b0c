"""Forced alignment of given translations: `Translator.align`, `align`."""

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from comparisons import lines_of, write_lines
from refusals import fails, refused
from toys import english, french, toy_translator

from bahdanau_tf import (
    Decoding,
    RNNEncDec,
    SubwordTokenizer,
    Translation,
    Translator,
    plot_alignment,
)
from bahdanau_tf.commands import files
from bahdanau_tf.commands.main import main
from bahdanau_tf.evaluation import hard_links, parse_pharaoh, write_pharaoh

# Translators align eagerly here; test_translator.py does it in a graph.
pytestmark = pytest.mark.usefixtures("eager_search")

SOURCES = ["the cat sleeps.", "a red dog sees the cat.", "cat", "an unheard-of dog", "", "the dog"]
TARGETS = ["Le chat dort.", "un chien rouge voit le chat.", "l'inconnu", "", "le chat"]
TARGETS.append("le  chien rouge dort")


def make_translator(source: Any, target: Any, **options: Any) -> Translator:
    decoding = Decoding(beam_size=1, max_length=9, unknown="forbid")
    return toy_translator(source, target, decoding, **options)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator(english(), french())


@pytest.fixture(scope="module")
def reversing() -> Translator:
    """A translator that reads and writes sentences in reverse order."""
    return make_translator(english(reverse=True), french(reverse=True))


def step_by_step(translator: Translator, source: str, target: str) -> tuple[np.ndarray, float]:
    """Reference: α and log p(y | x) of one pair, decoded word by word."""
    model = translator.model
    sources = [text.tokenize(tf.constant([source])).to_tensor() for text in translator.source_texts]
    memory, state = model.encode(sources[0] if len(sources) == 1 else sources)
    state = tf.nest.map_structure(lambda x: x[:, None], state)
    previous, log_prob, rows = model.start_id, 0.0, []
    for word in translator.target_text.tokenize(tf.constant([target]))[0]:
        ids = tf.fill([1, 1], previous)
        logits, state, weights = model.decode_step(ids, state, memory)
        scores = logits[0, 0].numpy().astype(np.float64)
        log_prob += scores[word] - np.logaddexp.reduce(scores)
        rows.append(weights[0, 0].numpy())
        previous = word
    return np.stack(rows), log_prob


def check(translator: Translator, count: int = 4, turned: bool = False) -> None:
    """Compares `align` with `step_by_step`.

    `turned`: both texts are reversed inside the model, so the reference's rows
    and columns are reversed, except the end symbols'.
    """
    pairs = SOURCES[:count], TARGETS[:count]
    aligned = translator.align(*pairs, batch_size=3)
    for pair, source, target in zip(aligned, *pairs, strict=True):
        assert (pair.source, pair.text, pair.finished) == (source, target, True)
        weights, log_prob = step_by_step(translator, source, target)
        if turned:
            weights[:-1] = weights[:-1][::-1]
            weights[:, :-1] = weights[:, :-1][:, ::-1]
        np.testing.assert_allclose(pair.weights, weights, atol=1e-5)
        assert pair.score == pair.log_prob == pytest.approx(log_prob, abs=1e-4)
        for text, tokens, offsets, spans in (
            (source, pair.source_tokens, pair.source_offsets, pair.source_spans),
            (target, pair.tokens, pair.target_offsets, pair.target_spans),
        ):
            assert offsets == sorted(offsets)
            assert [text.encode()[start:end].decode() for start, end in offsets] == tokens
            assert [text[start:end] for start, end in spans] == tokens
        assert pair.weights.shape == (len(pair.tokens) + 1, len(pair.source_tokens) + 1)


def test_weights_and_scores_equal_step_by_step_decoding(translator, reversing):
    """Reversed texts are aligned in reading order."""
    check(translator, len(SOURCES))
    check(reversing, turned=True)


def test_an_ensemble_aligns_by_its_first_source(translator):
    other = make_translator(english(reverse=True), french(), seed=8)
    check(Translator.ensemble([translator, other, translator]), 1)


def test_subwords_are_aligned(tmp_path):
    path = tmp_path / "text"
    write_lines(path, [*SOURCES, *TARGETS, "caf\u00e9 \u732b \U0001f600"] * 4)
    text = SubwordTokenizer.train([path], 300)
    model = make_translator(text, text)
    check(model)
    (alignment,) = model.align(["caf\u00e9 \u732b"], ["\U0001f600 caf\u00e9"])
    rows, columns = alignment.weights.shape
    assert len(alignment.tokens) == rows - 1 > 2 < columns - 1
    np.testing.assert_allclose(alignment.weights.sum(1), 1.0, atol=1e-5)
    # The last word's letters come last; weights on a word are those on all its pieces.
    sides = alignment.source_tokens, alignment.tokens
    words = [["caf\u00e9", "\u732b"], ["\U0001f600", "caf\u00e9"]]
    assert ["".join(side).split() for side in sides] == words
    parts = ([*itertools.accumulate(side)] for side in sides)
    x, y = (next(n for n, part in enumerate(side) if part.split()[1:]) for side in parts)
    parts = alignment.weights[:-1, :-1]
    rows = np.stack([parts[:y].mean(0), parts[y:].mean(0)])
    wanted = np.stack([rows[:, :x].sum(1), rows[:, x:].sum(1)], 1)
    np.testing.assert_allclose(alignment.word_weights, wanted, atol=1e-6)


def test_tokens_inside_a_character_belong_to_its_word():
    """As byte sub-words: here the space before a character of three bytes, and its first one."""
    pair = Translation(
        "a \u732b",
        "\u00e9",
        ["\u00e9"],
        source_tokens=["a", " \ufffd", "\ufffd\ufffd"],
        source_offsets=[(0, 1), (1, 3), (3, 5)],
        target_offsets=[(0, 2)],
        weights=np.array([[0.5, 0.25, 0.125, 0.125]]),
    )
    assert (pair.source_spans, pair.target_spans) == ([(0, 1), (1, 3), (2, 3)], [(0, 1)])
    assert pair.word_weights.tolist() == [[0.5, 0.375]]


@pytest.mark.parametrize("name", ["translator", "reversing"])
def test_align_reproduces_the_alignment_of_search(name, request):
    """Even if search finds the last word of the translation first."""
    translator = request.getfixturevalue(name)
    best = [translation for translation in translator.translate(SOURCES) if translation.tokens]
    assert len(best) == len(SOURCES) - 1
    aligned = translator.align([x.source for x in best], [x.text for x in best])
    for searched, pair in zip(best, aligned, strict=True):
        for name in ("tokens", "source_offsets", "target_offsets", "hard_alignment"):
            assert getattr(searched, name) == getattr(pair, name)
        # In float64 the worst weights are 4e-6 and 1.4e-5 away from these.
        rows = len(searched.tokens)
        np.testing.assert_allclose(searched.weights[:rows], pair.weights[:rows], atol=3e-5)


def test_an_empty_sentence_has_no_links(translator):
    """Empty source, empty target, both empty: no links, but it can be drawn."""
    aligned = translator.align(["", "the cat", " "], ["le chat", "", "\u3000"])
    assert [pair.weights.shape for pair in aligned] == [(3, 1), (1, 3), (1, 1)]
    assert [pair.tokens for pair in aligned] == [["le", "chat"], [], []]
    for pair in aligned:
        assert pair.hard_alignment == frozenset()
        assert pair.pharaoh == ""
        assert "[END]" in pair._repr_html_()
        assert plot_alignment(pair.source_tokens, pair.tokens, pair.weights)
    assert translator.align([], []) == []


def test_bad_input_and_models_without_attention_are_refused(translator):
    pairs = ["the cat"], ["le chat"]
    blind = make_translator(english(), french(), model_class=RNNEncDec)
    refused(lambda: blind.align(*pairs), "align: RNNEncDec has no attention")
    for sources, targets in (("the", ["le"]), (["the"], "le")):
        with pytest.raises(ValueError, match="is one string, wanted a seq"):
            translator.align(sources, targets)
    refused(lambda: translator.align(["the"], ["le", "chat"]), "1 sources, 2 targets")
    refused(lambda: translator.align(*pairs, batch_size=0), "batch_size is 0")


@pytest.fixture
def run(tmp_path, translator, monkeypatch) -> Callable[..., int]:
    """Runs the command on all pairs, and on more lines, two at a time."""
    monkeypatch.setattr(files, "load_translator", lambda _: translator)

    def call(*flags: str, more: tuple[str, str] | None = None) -> int:
        files = []
        for side, name in enumerate(("source", "target")):
            lines = [*(SOURCES, TARGETS)[side], *(more or ())[side : side + 1]]
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
            files.append(f"--{name}={tmp_path / name}")
        window = ["--window=2"] * ("--gold" not in str(flags))
        return main(["align", "--model_dir=x", *window, *files, *flags])

    return call


def test_the_command_writes_links(run, translator, capfd):
    assert run() == 0
    out, err = capfd.readouterr()
    links = [parse_pharaoh(line) for line in out.split("\n")[:-1]]
    assert links == [pair.hard_alignment for pair in translator.align(SOURCES, TARGETS)]
    assert out.split("\n")[3:5] == ["", ""]
    assert err.endswith("lines 4-5: words on one side only\n")


def test_the_command_writes_weights(run, tmp_path, translator):
    output = tmp_path / "output"
    assert run("--format=json", f"--output={output}", "--batch_size=1") == 0
    objects = map(json.loads, lines_of(output))
    for written, pair in zip(objects, translator.align(SOURCES, TARGETS), strict=True):
        assert (written["source"], written["text"]) == (pair.source, pair.text)
        assert written["tokens"] == pair.tokens
        assert {*map(tuple, written["alignment"])} == pair.hard_alignment
        np.testing.assert_allclose(written["weights"], pair.weights, atol=1e-4)


def test_the_command_judges_links_by_hand(run, tmp_path, translator, capfd):
    """Words between spaces: the final period belongs to the word before it."""
    gold, more = tmp_path / "gold", tmp_path / "more"
    aligned = translator.align(SOURCES, TARGETS)
    links = [hard_links(pair.word_weights) for pair in aligned]
    write_pharaoh(gold, links)
    assert {x.shape for x in (aligned[0].word_weights, aligned[3].word_weights)} == {(3, 3), (0, 3)}
    more.write_text("dog\n" * 9)
    assert run(f"--gold={gold}", f"--train_source={more}", f"--train_target={more}") == 0
    out = capfd.readouterr().out
    count, empty = sum(map(len, links)), sum(not x for x in links)
    said = f"{empty} of them without links, {count} sure and 0 possible links made by hand"
    assert f"6 pairs, {said}" in out
    assert re.search(r"model +0\.000 ± 0\.000 +1\.000 ± 0\.000 +1\.000 ± 0\.000\n", out)
    assert "IBM model 1, 15 pairs" in out
    gold.write_text("7-0\n" * 6)
    assert run(f"--gold={gold}") == 2
    assert "line 1: '7-0' is not within the pair's 3 source" in capfd.readouterr().err


def test_the_command_says_where_the_links_before_an_error_are(run, tmp_path, translator, capfd):
    output = tmp_path / "output"
    assert run(f"--output={output}", "--window=3", more=("the cat", "\udcff")) == 2
    err = capfd.readouterr().err
    assert f"{output}.part has {len(SOURCES)} alignments\n" in err
    assert "is not UTF-8" in err
    wanted = [pair.pharaoh for pair in translator.align(SOURCES, TARGETS)]
    assert lines_of(tmp_path / "output.part") == wanted


def test_the_command_needs_a_target_for_each_line(tmp_path, translator, capfd):
    text, more = tmp_path / "text", tmp_path / "more"
    write_lines(text, ["the cat"])
    write_lines(more, ["le chat", "le chien"])
    command = ["align", f"--model_dir={tmp_path / 'model'}", f"--source={text}"]
    fails(capfd, [*command, f"--target={tmp_path / 'nowhere'}"], "--target: there is no file")
    translator.save(tmp_path / "model")
    said = "--source has no line 2, but --target has one"
    assert "Traceback" not in fails(capfd, [*command, f"--target={more}"], said)
