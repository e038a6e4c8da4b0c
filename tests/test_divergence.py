"""Updates whose loss or gradient is not finite."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import letters
import numpy as np
import pytest
import tensorflow as tf
from letters import RECIPE, restarted, weights

from bahdanau_tf.training import loop, train
from bahdanau_tf.training.dev import Evaluation

files = letters.files  # the fixture
RARE = replace(RECIPE, max_skipped=3, evaluate_every=10)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    same = Evaluation(1.0, 1.0, [])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: same)


@pytest.fixture
def skipping(monkeypatch) -> Callable[..., list[tuple[list, list]]]:
    """Lets updates fail: by their gradient if even, by their loss if odd.

    Returns the ids of all batches.
    """

    def skip(*numbers: int) -> list[tuple[list, list]]:
        batches: list[tuple[list, list]] = []

        def make_step(model: Any, optimizer: Any, *_: Any) -> Any:
            update = letters.stand_in_step(model, optimizer)

            def step(inputs: Any, target: tf.Tensor, *others: Any) -> Any:
                batches.append(tuple(ids.numpy().tolist() for ids in (inputs["source"], target)))
                number = len(batches)
                if number not in numbers:
                    return update(inputs, target, *others)
                if number % 2:
                    return tf.constant(np.inf)
                optimizer.skipped_updates.assign_add(1)
                return tf.constant(1.0)

            return step

        monkeypatch.setattr(loop, "train_step", make_step)
        return batches

    return skip


def skipped(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "skipped.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_pairs_of_skipped_updates_are_written(files, tmp_path, skipping, capsys):
    """Their text has the ids of the batch, and stands in the line named."""
    batches = skipping(2, 13)
    translator = restarted()
    result = train(translator, files, RARE, tmp_path)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    pairs = skipped(tmp_path)
    assert [pair["step"] for pair in pairs] == [2] * 8 + [13] * 8
    for side, name in enumerate(("source", "target")):
        lines = Path(getattr(files, f"train_{name}")).read_text().split("\n")
        assert all(lines[pair["line"] - 1] == pair[name] for pair in pairs)
        rows = [row for number in (2, 13) for row in batches[number - 1][side]]
        ids = getattr(translator, f"{name}_text").tokenize([pair[name] for pair in pairs])
        assert ids.to_list() == [[word for word in row if word] for row in rows]
    err = capsys.readouterr().err
    assert err.count("was skipped, its loss or gradient is not finite") == 2
    assert "\nupdate 13 was skipped" in err


def test_training_stops_after_a_number_in_a_row_and_resumes(files, tmp_path, skipping):
    """Two of three are not enough; each skipped pair is written once."""
    skipping(3, 4, 6, 13, 14, 15)
    with pytest.raises(ValueError, match=r"max_skipped is 3, and loss .*skipped\.jsonl\. The"):
        train(restarted(), files, RARE, tmp_path)
    assert [pair["step"] for pair in skipped(tmp_path)][::8] == [3, 4, 6, 13, 14, 15]
    # The last checkpoint is that of update 10.
    skipping(3)  # update 13 once more, and no other
    resumed = restarted()
    result = train(resumed, files, RARE, tmp_path)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    assert [pair["step"] for pair in skipped(tmp_path)][::8] == [3, 4, 6, 13]
    assert all(np.isfinite(weight).all() for weight in weights(resumed))


GUESSED = math.log(11)  # of the letters and the special symbols


@pytest.mark.parametrize(
    ("losses", "after_first", "at_the_end"),
    [
        ([50.0, 50.0], "above that of guessing among the 11 ids", "50.00, abo"),
        ([50.0, 1.0], "above that of guessing among the 11 ids", ""),
        ([2.0, 50.0], "", "after update 20 is 50.00, above that of guessing"),
        ([1.0, 2.0], "", "20 is 2.00, not below the 1.00 of the first"),
        ([1.0, 1.0], "", "20 is 1.00, not below the 1.00 of the first"),
        ([2.0, 1.0], "", ""),
        ([GUESSED + 0.1], "2.50, above that of guessing", ""),
        ([GUESSED - 0.1], "", ""),
    ],
)
def test_a_training_that_learns_nothing_says_so(
    files, tmp_path, monkeypatch, capsys, losses, after_first, at_the_end
):
    """Though all its losses are finite."""
    of_words = itertools.chain(*([loss] * 10 for loss in losses))

    def make_step(model: Any, optimizer: Any, *_: Any) -> Any:
        optimizer.build(model.trainable_variables)

        def step(inputs: Any, target: tf.Tensor, weights: Any, *others: Any) -> Any:
            optimizer.iterations.assign_add(1)
            return next(of_words) * tf.reduce_sum(weights)

        return step

    of_dev = iter(losses)
    monkeypatch.setattr(loop, "train_step", make_step)
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: Evaluation(1.0, next(of_dev), []))
    result = train(restarted(), files, replace(RECIPE, epochs=len(losses)), tmp_path)
    assert result.stopped_by == "epochs"
    first, end = capsys.readouterr().err.split("update 10, ")[1], ""
    if len(losses) > 1:
        first, end = first.split("update 20, ")
    for wanted, err in ((after_first, first), (at_the_end, end)):
        assert wanted in err
        assert ("above that" in err) == ("abo" in wanted)
        assert ("not below" in err) == ("not below" in wanted)


def test_without_such_updates_there_is_no_file(files, tmp_path, skipping):
    skipping()
    train(restarted(), files, replace(RARE, epochs=1), tmp_path)
    assert not (tmp_path / "skipped.jsonl").exists()
