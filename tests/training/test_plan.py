"""`prepare`: everything is checked before a file is written."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from letters import TextFiles, asked, prepared
from refusals import refused

from bahdanau_tf.corpora import write_corpus
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import TextOptions
from bahdanau_tf.text import SubwordTokenizer, WordTokenizer
from bahdanau_tf.training import Training
from bahdanau_tf.training.folder import is_begun, locked
from bahdanau_tf.training.text import check_words


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> TextFiles:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, train=60, dev=4, test=1, max_words=8)
    return TextFiles(
        *(
            str(folder / f"{split}.{language}")
            for split in ("train", "dev")
            for language in ("en", "fr")
        )
    )


@pytest.fixture
def plan(files, tmp_path) -> Training:
    sizes = dict.fromkeys(("units", "embedding_dim", "attention_units", "maxout_units"), 4)
    languages = {"source_language": "en", "target_language": "fr"}
    return asked(files, tmp_path / "model", **sizes, **languages)


def changed(plan: Training, files: TextFiles | None = None, **user_options: object) -> Training:
    """A training with other texts, or other options."""
    options = {**plan.user_options, **user_options}
    if options.get("tokenizer", "word") != "word":
        options = {n: v for n, v in options.items() if not n.endswith("_language")}
    return asked(files or TextFiles(**plan.paths), plan.model_dir, **options)


@pytest.mark.parametrize("tokenizer", ["bpe", "unigram"])
def test_the_default_vocabulary_size_is_reduced_for_small_texts(plan, capsys, tokenizer):
    plan = changed(plan, tokenizer=tokenizer)
    translator = prepared(plan)
    size = translator.target_text.vocabulary_size
    assert 256 < size < 2000
    assert translator.model.target_embedding.embeddings.shape[0] == size
    said = f"target vocabulary: {size:,} ids, not 30,001: the text has no more sub-words"
    assert said in capsys.readouterr().err.split("\n")
    # The requested size is stored, so that the same command resumes.
    settings = json.loads((plan.model_dir / "text.json").read_text())
    assert settings["target_vocabulary_size"] == 30_001


@pytest.mark.parametrize("side", ["source", "target"])
def test_too_small_a_vocabulary_size_is_refused_with_the_least_size(plan, side):
    """The size named in the message is accepted, in the same folder."""
    field = f"{side}_vocabulary_size"
    with pytest.raises(ValueError, match=f"TextOptions: {field} is 10") as said:
        prepared(changed(plan, tokenizer="bpe", **{field: 10}))
    assert not plan.model_dir.exists()
    least = int(str(said.value).split("wanted ")[1].split()[0])
    translator = prepared(changed(plan, tokenizer="bpe", **{field: least}))
    assert getattr(translator, f"{side}_text").vocabulary_size == least


def test_a_text_with_only_long_lines_is_refused(plan, tmp_path):
    long = tmp_path / "long"
    long.write_text("word " * 1000 + "\n")
    files = TextFiles(str(long), str(long))
    refused(lambda: prepared(changed(plan, files, tokenizer="bpe")), "1", "4,192", "bytes")


def test_the_folder_of_a_saved_translator_is_refused(plan):
    prepared(plan).save(plan.model_dir / "best")
    best = replace(plan, model_dir=plan.model_dir / "best")
    before = {p: p.read_bytes() for p in best.model_dir.rglob("*") if p.is_file()}
    refused(lambda: prepared(best), "translator")
    for path, data in before.items():
        assert path.read_bytes() == data


def test_nothing_is_written_if_line_counts_differ(plan, tmp_path):
    for change in (
        {"train_target": plan.paths["dev_target"]},
        {"dev_target": plan.paths["train_target"]},
    ):
        broken = changed(plan, TextFiles(**plan.paths | change))
        refused(lambda own=broken: prepared(own), "numbers")
        assert not plan.model_dir.exists()


@pytest.mark.parametrize("kind", [WordTokenizer, SubwordTokenizer])
def test_after_a_full_disk_the_folder_counts_as_new(plan, monkeypatch, kind):
    """Whichever file is incomplete, another command may use the folder."""
    name = "word" if kind is WordTokenizer else "bpe"
    plan = changed(plan, tokenizer=name)
    folders: list[Path] = []
    save = kind.save

    def fills(self, folder):
        folders.append(Path(folder))
        save(self, folder)
        if len(folders) == 2:
            (folders[1] / "tokenizer.json").unlink()
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(kind, "save", fills)
    refused(lambda: prepared(plan), "No", "space", by=OSError)
    monkeypatch.undo()
    assert not is_begun(plan.model_dir)
    translator = prepared(changed(plan, lowercase=True, target_vocabulary_size=500))
    assert translator.target_text.vocabulary_size <= 500
    settings = json.loads((plan.model_dir / "text.json").read_text())
    assert settings["lowercase"] is True


@pytest.mark.parametrize("there", ["text/train.en", "text"])
def test_text_of_a_users_own_in_the_folder_is_kept(plan, there):
    """Where dev text that is held out would be written."""
    path = plan.model_dir / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("kept")
    refused(
        lambda: prepared(changed(plan, TextFiles(*[*plan.paths.values()][:2]), dev_pairs=2)),
        "training",
    )
    assert path.read_text() == "kept"


def test_a_folder_with_a_model_keeps_its_settings(plan):
    first = prepared(plan)
    half = plan.model_dir / "checkpoints" / "ckpt-1_temp"  # left by a killed process
    half.mkdir(parents=True)
    assert not is_begun(plan.model_dir)
    half.with_name("ckpt-1.index").touch()
    assert is_begun(plan.model_dir)
    before = sorted(plan.model_dir.rglob("*"))
    refused(lambda: prepared(changed(plan, lowercase=True)), "False", "lowercase")
    again = prepared(plan)
    assert sorted(plan.model_dir.rglob("*")) == before
    settings = plan.model_dir / "text.json"
    settings.rename(plan.model_dir / "other.json")
    refused(lambda: prepared(plan), "text.json", "missing")
    for weight, same_weight in zip(first.model.weights, again.model.weights, strict=True):
        assert (weight.numpy() == same_weight.numpy()).all()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_disk_that_has_no_room_for_the_lock_is_named(tmp_path, monkeypatch, is_new):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "model"
    if not is_new:
        folder.mkdir()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as said, locked(folder):
        pass
    assert said.value.filename == str(folder / "training.lock")
    assert folder.exists() != is_new  # what was made here is removed again


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "line",
    [
        "今天天气非常好，那只狗在公园里跑。",
        "ถ้าพรุ่งนี้อากาศดีมาก เราจะไปเดินเล่นในสวนสาธารณะ",
        "ຂ້ອຍຮັກເຈົ້າ",
        "ខ្ញុំស្រលាញ់អ្នក",
        "ငါမင်းကိုချစ်တယ်",
    ],
)
def test_text_without_words_is_refused_before_learning(plan, files, tmp_path, capsys, side, line):
    path = tmp_path / "text"
    path.write_text(f"{line}\n" * 60)
    files = replace(files, dev_source=None, dev_target=None, **{f"train_{side}": str(path)})
    with pytest.raises(ValueError, match="wanted unigram") as said:
        prepared(changed(plan, files))
    assert str(path) in str(said.value)
    assert "learning" not in capsys.readouterr().err
    assert not plan.model_dir.exists()


@pytest.mark.parametrize(
    ("tokenizer", "language", "line"),
    [
        ("bpe", "zh", "今天天气非常好。"),
        ("word", "zh", "今天 天气 非常 好 。"),
        ("word", "th", "ฉัน รัก คุณ มาก"),
        ("word", "ja", "今日は天気がとても良いので犬が公園を走る。"),
        ("word", "bo", "བཀྲ་ཤིས་བདེ་ལེགས། ཁྱེད་རང་།"),
        ("word", "ko", "개가 공원에서 달린다."),
        ("word", "und", "1 + 1 = 2"),
    ],
)
def test_text_that_can_be_split_is_accepted(tmp_path, tokenizer, language, line):
    path = tmp_path / "text"
    path.write_text(f"{line}\n")
    text = TextOptions(tokenizer, source_language=language, target_language=language)
    check_words(text, ParallelCorpus(path, path))
