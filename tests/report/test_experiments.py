"""Experiments: which systems are trained, and the lines of a report."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bahdanau_tf.commands.main import defined_flags
from bahdanau_tf.commands.report import write_corpus
from bahdanau_tf.commands.train import asked
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import results, suites
from bahdanau_tf.translation import Translation

FILES = suites.Files(*(f"/somewhere/{name}" for name in suites.Files._fields))


@pytest.mark.parametrize(
    ("suite", "lengths", "count"),
    [(suites.QUICK, {15, 30}, 6), (suites.FULL_GRAMMAR, {15, 30}, 11), (suites.FULL, {30, 50}, 11)],
)
def test_plans_are_valid_flags_of_train(suite, lengths, count):
    plans = suite.plans(FILES, ["--units=7"])
    assert len({plan.folder for plan in plans}) == len(plans) == count
    seeds = set()
    for plan in plans:
        flags = defined_flags("train")
        assert flags(["train", *plan.flags]) == ["train"]
        _ = asked(flags).recipe  # raises if the model does not use a flag
        assert flags.train_source == FILES.train_source
        assert flags.dev_target == FILES.dev_target
        assert flags.units == 7  # given flags override those of the suite
        name = plan.name.lower().replace(" ", "-")
        if plan.counterpart:
            limit = flags[suite.limit].value
            assert name.startswith(f"{flags.model}-{limit}")
            assert limit in lengths
        else:
            assert flags.reverse_source == ("reversed" in name)
            seeds.add((flags.reverse_source, flags.seed))
    counterparts = [plan.counterpart for plan in plans if plan.counterpart]
    assert len(seeds) + len(counterparts) == count
    assert {"RNNsearch-30", "RNNencdec-30"} < {*counterparts}


def test_systems_of_a_users_corpus_make_equal_updates():
    """So that limits are compared; options are those chosen for the text."""
    limits = {}
    for plan in suites.FULL.plans(FILES):
        flags = defined_flags("train")
        flags(["train", *plan.flags])
        assert flags.recipe is None
        assert flags.minutes == 0
        assert flags.epochs * 100 > flags.updates
        limits[plan.name] = (flags.max_words, flags.updates, flags.patience)
    longer = limits.pop("RNNsearch-50*")
    assert {row[1] for row in limits.values()} == {8000}
    assert longer[1] > 2 * 8000
    assert longer[2] == defined_flags("train")["patience"].default
    assert limits["RNNencdec-50"] == limits["RNNsearch-50"] == (50, 8000, 10_000)
    assert limits["RNNencdec-30"] == limits["RNNsearch-30"] == (30, 8000, 10_000)


def test_a_flag_is_passed_only_to_models_that_take_it():
    for plan in suites.QUICK.plans(FILES, ["--annotation_dropout=0.2"]):
        is_taken = "--annotation_dropout=0.2" in plan.flags
        assert is_taken == ("LSTM" not in plan.name)


def test_a_translation_has_one_line_of_the_report():
    """A vocabulary of bytes can write line feeds and NUL."""

    def translate(sources, decoding, split_sentences):
        assert split_sentences is False
        text = f"a\n{decoding.unknown}\0"
        return [Translation(source, text) for source in sources]

    translator = SimpleNamespace(model=None, translate=translate)
    is_known, decoding = [True, False], Decoding()
    system = results._translate("m", translator, "xy", is_known, decoding)
    assert system.texts == ["a keep", "a keep"]
    assert system.known_texts == ["a forbid", "a keep"]


def test_the_built_in_corpus_is_written_once(tmp_path):
    pairs = {"train": 30, "dev": 5, "test": 8}
    suite = replace(suites.QUICK, pairs=pairs)
    files = write_corpus(suite, tmp_path)
    lines = {
        name: Path(path).read_text("utf-8").split("\n")[:-1]
        for name, path in files._asdict().items()
    }
    assert [len(side) for side in lines.values()] == [30, 30, 5, 5, 8, 8, 8]
    assert max(len(line.split()) for line in lines["train_source"]) <= 30
    assert max(len(line.split()) for line in lines["source"]) > 30
    before = Path(files.reference).stat().st_mtime_ns
    assert write_corpus(suite, tmp_path) == files
    assert Path(files.reference).stat().st_mtime_ns == before
