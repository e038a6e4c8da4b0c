"""`fit`: what the command `train` does, from Python."""

from __future__ import annotations

import gc
import tempfile
import threading
from pathlib import Path

import keras
import pytest
from letters import stand_in_for_learning
from refusals import refused

import bahdanau_tf
from bahdanau_tf import Recipe, Translator
from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.data.parallel import SIDES

pytestmark = pytest.mark.usefixtures("eager_search")


class Frame(list):  # stands for a table of pandas
    columns = ("en", "le fr")


SMALL = {"units": 8, "batch_size": 64, "updates": 4, "label_smoothing": 0.0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, train=440, dev=20, test=1, max_words=6)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_learning(monkeypatch)
    # Measured, on a busy machine, it would choose other options in another run.
    monkeypatch.setattr("bahdanau_tf.training.prepare.product_rate", lambda: 5e9)


def test_three_lines_train_and_translate(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(corpus / "train.en"), corpus / "train.fr"
    translator = bahdanau_tf.fit(source, target, updates=2, units=8)
    (translation,) = translator.translate(["The cat sleeps."])
    assert translation.source_tokens
    history = translator.history.history
    assert history["updates"][-1] == 2
    assert {len(column) for column in history.values()} == {len(history["updates"])}
    assert {*history} >= {"loss", "val_loss", "val_bleu", "learning_rate", "seconds"}
    assert translator.history.result.stopped_by == "updates"
    messages = capsys.readouterr().err
    assert "units=8" in messages or "chosen to fit" in messages
    assert "--" not in messages  # no flags in Python


@pytest.mark.usefixtures("quick")
def test_it_does_what_the_command_does(corpus: Path, tmp_path: Path) -> None:
    """The same options and texts are in both folders; the folder resumes either."""
    texts = [str(corpus / f"train.{code}") for code in ("en", "fr")]
    flags = [f"--{name}={value}" for name, value in SMALL.items()]
    flags += [f"--train_{side}={path}" for side, path in zip(SIDES, texts, strict=True)]
    assert main(["train", *flags, f"--model_dir={tmp_path / 'command'}"]) == 0
    bahdanau_tf.fit(*texts, model_dir=tmp_path / "python", **SMALL)
    for name in ("train.flags", "texts.flags", "text.json"):
        by_command, by_python = (
            (tmp_path / folder / name).read_text() for folder in ("command", "python")
        )
        assert by_command == by_python
    resumed = bahdanau_tf.fit(model_dir=tmp_path / "command", updates=6)
    assert resumed.history.result.steps == 6
    assert main(["train", f"--model_dir={tmp_path / 'python'}", "--updates=7"]) == 0
    again = bahdanau_tf.fit(*texts, model_dir=tmp_path / "python", updates=7)
    assert again.history.history["updates"][-1] == 7


@pytest.mark.usefixtures("quick")
def test_sentences_are_written_into_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [(f"a b {n % 90}", f"A B {n % 90}") for n in range(100)]
    dev = [[side[:5] for side in column] for column in zip(*pairs[:5], strict=True)]
    kept = bahdanau_tf.fit(iter(pairs), dev=(dev[0], dev[1]), model_dir=tmp_path / "model", **SMALL)
    written = tmp_path / "model" / "given_texts" / "train.target"
    assert written.read_text() == "".join(f"{target}\n" for _, target in pairs)
    sources, targets = zip(*pairs, strict=True)
    again = bahdanau_tf.fit(sources, targets, dev=(dev[0], dev[1]), model_dir=tmp_path / "model")
    assert again.history.result.steps == kept.history.result.steps == 4
    refused(
        lambda: bahdanau_tf.fit(sources[1:], targets[1:], model_dir=tmp_path / "model"),
        "train.source",
        "different",
    )
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    assert bahdanau_tf.fit(model_dir=moved).history.result.steps == 4
    refused(lambda: bahdanau_tf.fit(pairs, model_dir=moved / "log.jsonl"), "model_dir", "folder")
    assert not (tmp_path / "model").exists()
    monkeypatch.chdir(tmp_path)  # the texts in a folder are not those of --data_dir
    assert main(["train", "--model_dir=moved", f"--data_dir={tmp_path / 'corpus'}"]) == 0


@pytest.mark.usefixtures("quick")
def test_a_temporary_folder_lives_as_long_as_the_translator(corpus: Path) -> None:
    translator = bahdanau_tf.fit(corpus / "train.en", corpus / "train.fr", **SMALL)
    folder = Path(translator.history.model_dir)
    assert (folder / "best").is_dir()
    del translator
    gc.collect()
    assert not folder.parent.exists()


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ((["a"], ["b"]), {"dev": (["a"], ["b"]), "dev_pairs": 3}, "fit: dev_pairs"),
        ((["a"], ["b"]), {"tokenize": "soup", "dev_pairs": 1}, "'soup' tokenize"),
        ((["a", ""], ["", "b"]), {}, "fit target 2"),
        (([], []), {}, "fit target 0"),
        (([],), {}, "fit source 0"),
        ((["a", "b"], ["c"]), {}, "fit 2 1"),
        ((["ab", "cd"],), {}, "fit 'ab' source"),
    ],
)
def test_a_refusal_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple, options: dict, message: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refused(lambda: bahdanau_tf.fit(*texts, **options), *message.split())
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("quick")
def test_a_training_that_fails_can_be_resumed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failing = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: {}["absent"])
    with pytest.raises(KeyError):
        bahdanau_tf.fit(corpus / "train.en", corpus / "train.fr", callbacks=[failing], **SMALL)
    (folder,) = tmp_path.glob("bahdanau_tf-*/model")
    assert f"fit(model_dir={str(folder)!r}) resumes this training" in capsys.readouterr().err
    assert bahdanau_tf.fit(model_dir=folder).history.result.steps == 4
    bahdanau_tf.fit(model_dir=folder, updates=3)
    assert "limit reached, 4 of updates=3; a larger number resumes" in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_process_fits_one_model_at_a_time(corpus: Path, tmp_path: Path) -> None:
    """The random seeds of Python, NumPy and TensorFlow are those of all threads."""
    texts, answers = (corpus / "train.en", corpus / "train.fr"), []

    def fit_another() -> None:
        with pytest.raises(ValueError, match="fit: another fit is running in this process") as it:
            bahdanau_tf.fit(["a"], ["b"], model_dir=tmp_path / "other")
        answers.append(it)

    def start(*_: object) -> None:
        thread = threading.Thread(target=fit_another)
        thread.start()
        thread.join()

    starting = keras.callbacks.LambdaCallback(on_train_begin=start)
    bahdanau_tf.fit(*texts, model_dir=tmp_path / "one", callbacks=[starting], **SMALL)
    assert answers
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("quick")
def test_recipes_and_callbacks(corpus: Path, tmp_path: Path) -> None:
    texts = corpus / "train.en", corpus / "train.fr"
    recipe = Recipe(optimizer="sgd", learning_rate=0.3, updates=2, batch_size=16)
    steps: list[int] = []
    counting = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs=None: steps.append(batch)
    )
    translator = bahdanau_tf.fit(
        *texts, recipe=recipe, units=8, model_dir=tmp_path / "one", callbacks=[counting]
    )
    assert steps == [0, 1]
    alone = bahdanau_tf.fit(*texts, recipe=recipe, units=8, dev_pairs=0)  # which has a `monitor`
    assert "val_loss" not in alone.history.history
    assert translator.history.history["learning_rate"][-1] == pytest.approx(0.3)
    named = bahdanau_tf.fit(
        *texts, recipe="paper", units=4, updates=1, model_dir=tmp_path / "paper"
    )
    assert named.model.get_config()["embedding_dim"] == 620  # nothing was chosen
    assert isinstance(named, Translator)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": 8}, "fit 'unit' units"),
        ({"dev": 0.1}, "fit 0.1 table"),
        ({"callbacks": [print]}, "fit callbacks"),
        ({"threads": "2"}, "fit '2' threads"),
        ({"threads": -1}, "fit -1 threads"),
        ({"init_from": ""}, "fit init_from ''"),
        ({"dev": (("a b", "c d"), ("e f", "g h"))}, "fit dev list of pairs"),
        ({"tokenizer": "word", "synthetic_pairs": 0.1}, 'fit synthetic_pairs "word"'),
        ({"modules": ["absent"]}, "'absent' modules"),
        ({"schedule": "NoSuchDecay"}, "NoSuchDecay class"),
        ({"dev": ("dev.en", "dev.fr")}, "fit: dev dev.en file"),
        ({"risk_samples": 5}, "fit: risk_samples init_from"),
        ({"share_embeddings": True, "joint": False}, "fit: share_embeddings joint"),
        ({"schedule": "plateau", "dev_pairs": 0}, 'fit: schedule="plateau" dev_pairs'),
        ({"init_from": "absent"}, "fit: init_from absent"),
        ({"recipe": "papers"}, "fit: recipe 'papers' paper"),
        ({"dev_source": "dev.en"}, "'dev_source' dev="),
        ({"validation_data": 1}, "'validation_data' dev="),
        ({"model_dir": ""}, "fit model_dir folder"),
        ({"dev": []}, "fit dev 0"),
        ({"dev": [("a",)]}, "fit 'a' pairs"),
        ({"dev": (["a"] * 2, ["b"])}, "dev 2 1"),
        ({"dev": (["a\nb"], ["c"])}, "fit 0 dev.source"),
        ({"dev": {"a", "b"}}, "fit sentences"),
        ({"dev": Frame()}, "fit Frame df.en"),
        (
            {"dev": [{"id": "1", "translation": {"en": "a", "fr": "b"}}]},
            "[(row['translation']['en'] row['translation']['fr']) row",
        ),
        ({"dev": (["a"] * 9, ["c"] * 7 + ["\ud83d", "\0"])}, "7 dev.target ud83d"),
    ],
)
def test_refusals(corpus: Path, tmp_path: Path, options: dict, message: str) -> None:
    refused(
        lambda: bahdanau_tf.fit(
            corpus / "train.en", corpus / "train.fr", **{"model_dir": tmp_path / "model", **options}
        ),
        *message.split(),
    )
    assert not (tmp_path / "model" / "training.json").exists()
