"""The curves and images written for TensorBoard, read from event files."""

import io
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import letters
import numpy as np
import pytest
import tensorflow as tf
from comparisons import lines_of
from letters import RECIPE, TextFiles, make_translator, train

from bahdanau_tf import Seq2SeqLSTM, Translator, plot_alignment, token_log_probs
from bahdanau_tf.training import update
from bahdanau_tf.training.callbacks import GREEDY

pytestmark = pytest.mark.usefixtures("eager_search")
files = letters.files  # the fixture


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    letters.stand_in(monkeypatch)


SHORT = replace(RECIPE, epochs=2, schedule="linear", warmup_steps=5)


def events(folder: Path) -> dict[str, dict[int, np.ndarray]]:
    """Values by name and update."""
    values: dict[str, dict[int, np.ndarray]] = defaultdict(dict)
    for path in sorted((folder / "tensorboard").iterdir()):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                values[value.tag][event.step] = tf.make_ndarray(value.tensor)
    return values


@pytest.fixture
def watched(monkeypatch) -> list[tuple[float, float, float]]:
    """Collects loss, number of words and gradient norm of each update."""
    seen: list[tuple[float, float, float]] = []

    def see(optimizer: Any, loss: float, words: int) -> None:
        seen.append((loss, words, float(optimizer.gradient_norm)))

    monkeypatch.setattr(update, "train_step", letters.watched(letters.applying_step, see))
    return seen


def test_curves_and_alignments_are_written(files, tmp_path, watched):
    pytest.importorskip("matplotlib")
    translator = make_translator()
    result = train(translator, files, SHORT, tmp_path, tensorboard=True)
    assert (result.steps, len(watched)) == (20, 20)
    curves = events(tmp_path)
    for name in ("loss", "gradient_norm", "learning_rate", "words_per_second"):
        assert list(curves[f"train/{name}"]) == [10, 20]
    for step in (10, 20):
        cost, words, norm = watched[step - 1]
        assert curves["train/loss"][step] == pytest.approx(cost / words)
        assert curves["train/gradient_norm"][step] == pytest.approx(norm)
        assert norm > 0
    rates = curves["train/learning_rate"]
    assert rates[10] == pytest.approx(0.02)
    assert rates[20] == pytest.approx(0.02 * 0.02)
    # The mean speed of the run agrees with those of its two halves.
    speeds = curves["train/words_per_second"]
    words = [sum(update[1] for update in half) for half in (watched[:10], watched[10:])]
    seconds = sum(w / speeds[s] for w, s in zip(words, speeds, strict=True))
    assert result.words_per_second == pytest.approx(sum(words) / seconds, rel=1e-3)
    assert curves["dev/bleu"][20] >= 0
    assert max(curves["dev/bleu"].values()) == pytest.approx(result.best_bleu)
    assert curves["dev/loss"][20] == pytest.approx(dev_loss(translator, files), rel=1e-4)
    check_pictures(translator, files, curves)


def lines(path: str | None) -> list[str]:
    return lines_of(Path(str(path)))


def dev_loss(translator: Translator, files: TextFiles) -> float:
    source = translator.source_text.tokenize(lines(files.dev_source)).to_list()
    target = translator.target_text.tokenize(lines(files.dev_target)).to_list()
    return -np.concatenate(token_log_probs(translator.model, source, target)).mean()


def check_pictures(translator: Translator, files: TextFiles, values: dict) -> None:
    names = {name for name in values if name.startswith("alignment")}
    assert names == {f"alignment/{number}" for number in range(1, 5)}
    sentences = lines(files.dev_source)[:4]
    for number, best in enumerate(translator.translate(sentences, GREEDY), 1):
        assert set(values[f"alignment/{number}"]) == {10, 20}
        width, height, png = values[f"alignment/{number}"][20]
        figure = plot_alignment(best.source_tokens, best.tokens, best.weights)
        wanted = io.BytesIO()
        figure.savefig(wanted, format="png", dpi=100, bbox_inches="tight")
        pixels = [tf.io.decode_png(data, 3).numpy() for data in (png, wanted.getvalue())]
        assert pixels[0].shape == (int(height), int(width), 3)
        # In a batch a weight may be rounded to the next grey value.
        np.testing.assert_allclose(*map(np.float32, pixels), atol=2)


@pytest.mark.slow
def test_curves_are_written_without_attention_and_without_dev_set(files, tmp_path):
    alone = replace(files, dev_source=None, dev_target=None)
    train(make_translator(), alone, SHORT, tmp_path / "a", True)
    assert {name.split("/")[0] for name in events(tmp_path / "a")} == {"train"}
    texts = make_translator().source_text, make_translator().target_text
    model = Seq2SeqLSTM(*(t.vocabulary_size for t in texts), units=4, embedding_dim=4, layers=1)
    train(Translator(model, *texts), files, SHORT, tmp_path / "b", True)
    assert {name.split("/")[0] for name in events(tmp_path / "b")} == {"train", "dev"}


@pytest.mark.slow
def test_without_matplotlib_alignments_are_left_out_with_a_message(
    files, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    recipe = replace(RECIPE, epochs=1)
    train(make_translator(), files, recipe, tmp_path, tensorboard=True)
    assert "no alignment pictures: plot_alignment needs" in (capsys.readouterr().err)
    assert "dev/bleu" in events(tmp_path)
