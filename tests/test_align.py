"""Forced alignment of given translations: `Translator.align`, `align`."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from toys import english, french, toy_translator

from bahdanau_tf import Decoding, RNNEncDec, SubwordTokenizer, Translator, plot_alignment
from bahdanau_tf.cli import main
from bahdanau_tf.commands import align
from bahdanau_tf.evaluation import parse_pharaoh

SOURCES = ["the cat sleeps.", "a red dog sees the cat.", "cat", "an unheard-of dog", "", "the dog"]
TARGETS = [
    "Le chat dort.",
    "un chien rouge voit le chat.",
    "l'inconnu",
    "",
    "le chat",
    "le  chien rouge dort",
]


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
    found = translator.align(*pairs, batch_size=3)
    for one, source, target in zip(found, *pairs, strict=True):
        assert (one.source, one.text, one.finished) == (source, target, True)
        weights, log_prob = step_by_step(translator, source, target)
        if turned:
            weights[:-1] = weights[:-1][::-1]
            weights[:, :-1] = weights[:, :-1][:, ::-1]
        np.testing.assert_allclose(one.weights, weights, atol=1e-5)
        assert one.score == one.log_prob == pytest.approx(log_prob, abs=1e-4)
        for text, tokens, offsets in (
            (source, one.source_tokens, one.source_offsets),
            (target, one.tokens, one.target_offsets),
        ):
            data = text.encode()
            assert offsets == sorted(offsets)
            cut = [data[start:end].decode() for start, end in offsets]
            assert cut == tokens
        shape = (len(one.tokens) + 1, len(one.source_tokens) + 1)
        assert one.weights.shape == shape


def test_weights_and_scores_equal_step_by_step_decoding(translator):
    check(translator, len(SOURCES))


def test_reversed_texts_are_aligned_in_reading_order(reversing):
    check(reversing, turned=True)


def test_an_ensemble_aligns_by_its_first_source(translator):
    other = make_translator(english(reverse=True), french(), seed=8)
    check(Translator.ensemble([translator, other, translator]), 1)


def test_subwords_are_aligned(tmp_path):
    path = tmp_path / "text"
    lines = [*SOURCES, *TARGETS, "caf\u00e9 \u732b \U0001f600"]
    path.write_text("\n".join(lines * 4) + "\n", "utf-8")
    text = SubwordTokenizer.train([path], 300)
    model = make_translator(text, text)
    check(model)
    (one,) = model.align(["caf\u00e9 \u732b"], ["\U0001f600 caf\u00e9"])
    rows, columns = one.weights.shape
    assert len(one.tokens) == rows - 1 > 2 < columns - 1
    np.testing.assert_allclose(one.weights.sum(1), 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["translator", "reversing"])
def test_align_reproduces_the_alignment_of_search(name, request):
    """Also if search finds the last word of the translation first."""
    translator = request.getfixturevalue(name)
    found = [one for one in translator.translate(SOURCES) if one.tokens]
    assert len(found) == len(SOURCES) - 1
    pairs = [[one.source for one in found], [one.text for one in found]]
    for one, other in zip(found, translator.align(*pairs), strict=True):
        rows = len(one.tokens)
        assert one.tokens == other.tokens
        assert one.source_offsets == other.source_offsets
        assert one.target_offsets == other.target_offsets
        assert one.hard_alignment == other.hard_alignment
        # In float64 the worst weights are 4e-6 and 1.4e-5 away from these.
        np.testing.assert_allclose(one.weights[:rows], other.weights[:rows], atol=3e-5)


def test_an_empty_sentence_has_no_links(translator):
    """Empty source, empty target, both empty: no links, but it can be drawn."""
    found = translator.align(["", "the cat", " "], ["le chat", "", "\u3000"])
    assert [one.weights.shape for one in found] == [(3, 1), (1, 3), (1, 1)]
    assert [one.tokens for one in found] == [["le", "chat"], [], []]
    for one in found:
        assert one.hard_alignment == frozenset()
        assert one.pharaoh == ""
        assert "[END]" in one._repr_html_()
        assert plot_alignment(one.source_tokens, one.tokens, one.weights)
    assert translator.align([], []) == []


def test_bad_input_and_models_without_attention_are_refused(translator):
    pairs = ["the cat"], ["le chat"]
    blind = make_translator(english(), french(), model_class=RNNEncDec)
    with pytest.raises(ValueError, match="align: RNNEncDec has no attention"):
        blind.align(*pairs)
    for sources, targets in (("the", ["le"]), (["the"], "le")):
        with pytest.raises(ValueError, match="is one string, wanted a seq"):
            translator.align(sources, targets)
    with pytest.raises(ValueError, match="1 sources, 2 targets"):
        translator.align(["the"], ["le", "chat"])
    with pytest.raises(ValueError, match="batch_size is 0, wanted 1 or more"):
        translator.align(*pairs, batch_size=0)


@pytest.fixture
def run(tmp_path, translator, monkeypatch) -> Callable[..., int]:
    """Runs the command on all pairs, two lines at a time."""
    monkeypatch.setattr(align, "load_translator", lambda _: translator)
    files = []
    for name, lines in (("source", SOURCES), ("target", TARGETS)):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        files.append(f"--{name}={path}")
    return lambda *flags: main(["align", "--model_dir=x", "--window=2", *files, *flags])


def test_the_command_writes_links(run, translator, capfd):
    assert run() == 0
    out, err = capfd.readouterr()
    wanted = translator.align(SOURCES, TARGETS)
    links = [parse_pharaoh(line) for line in out.split("\n")[:-1]]
    assert links == [one.hard_alignment for one in wanted]
    assert out.split("\n")[3:5] == ["", ""]
    assert err.endswith("lines 4-5: words on one side only\n")


def test_the_command_writes_weights(run, tmp_path, translator):
    output = tmp_path / "found"
    flags = ("--format=json", f"--output={output}", "--batch_size=1")
    assert run(*flags) == 0
    objects = [json.loads(line) for line in output.read_text().split("\n")[:-1]]
    wanted = translator.align(SOURCES, TARGETS)
    for found, one in zip(objects, wanted, strict=True):
        assert (found["source"], found["text"]) == (one.source, one.text)
        assert found["tokens"] == one.tokens
        assert {tuple(pair) for pair in found["alignment"]} == (one.hard_alignment)
        np.testing.assert_allclose(found["weights"], one.weights, atol=1e-4)


def test_the_command_tells_where_the_alignments_before_an_error_are(
    tmp_path, translator, capfd, monkeypatch
):
    monkeypatch.setattr(align, "load_translator", lambda _: translator)
    for name, text in (("source", SOURCES), ("target", TARGETS)):
        (tmp_path / name).write_text("".join(f"{x}\n" for x in text), "utf-8")
    with (tmp_path / "target").open("ab") as file:
        file.write(b"\xff\n")
    with (tmp_path / "source").open("a") as file:
        file.write("the cat\n")
    output = tmp_path / "found"
    words = [f"--{x}={tmp_path / x}" for x in ("source", "target")]
    words += ["--model_dir=x", f"--output={output}"]
    assert main(["align", *words]) == 2
    told = capfd.readouterr().err
    assert f"{output}.part has {len(SOURCES)} alignments\n" in told
    assert "is not UTF-8" in told
    kept = (tmp_path / "found.part").read_text().split("\n")[:-1]
    wanted = translator.align(SOURCES, TARGETS)
    assert kept == [one.pharaoh for one in wanted]


def test_the_command_needs_a_target_for_each_line(tmp_path, translator, capfd):
    text = tmp_path / "text"
    text.write_text("the cat\n")
    command = ["align", f"--model_dir={tmp_path / 'model'}", f"--source={text}"]
    assert main([*command, f"--target={tmp_path / 'nowhere'}"]) == 2
    assert "--target: there is no file" in capfd.readouterr().err
    more = tmp_path / "more"
    more.write_text("le chat\nle chien\n")
    translator.save(tmp_path / "model")
    assert main([*command, f"--target={more}"]) == 2
    _, err = capfd.readouterr()
    assert "--source has no line 2, but --target has one" in err
    assert "Traceback" not in err
