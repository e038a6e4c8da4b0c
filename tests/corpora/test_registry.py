"""The registry of public corpora, and the folders made from them."""

import gzip
import hashlib
import re
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from refusals import refused, says
from test_download import tar_of, zip_of

from bahdanau_tf.commands.main import main
from bahdanau_tf.corpora.public import CORPORA, Corpus, Download, Part, Text, download as downloads
from bahdanau_tf.corpora.public.assembly import ArchiveError, get_corpus, held_out_pairs
from bahdanau_tf.corpora.public.download import DownloadError


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: corpus.name)
def test_entries_are_complete(corpus):
    for text in (corpus.summary, corpus.licence, corpus.citation):
        assert len(text) >= 8
    assert re.search(r"\bCC BY|none stated", corpus.licence)
    assert corpus.homepage.startswith("https://")
    source, target = corpus.languages
    assert source != target
    assert {"train", "test"} <= {name.partition("_")[0] for name in corpus.splits}
    assert "en" in corpus.languages
    assert len(corpus.files) == 2 * len(corpus.splits) >= 6
    assert set(corpus.checksums) <= set(corpus.files)
    assert re.fullmatch(r"[\w.-]+", corpus.name)
    assert not corpus.tried
    assert bool(corpus.held_out) == ("tatoeba" in corpus.name)
    names = [download.name for download in corpus.downloads]
    assert len(names) == len(set(names))
    for download in corpus.downloads:
        assert re.fullmatch(r"https://[a-z.]+/[\w./-]+", download.address)
        digits = {"": 0, "md5": 32, "sha256": 64}
        algorithm, _, digest = download.checksum.partition(":")
        assert re.fullmatch(f"[0-9a-f]{{{digits[algorithm]}}}", digest)
        # The checksum in a tar file is not reached when one member is read.
        assert digest or download.name.endswith(".zip")
        if "github" in download.address:
            assert re.search(r"/[0-9a-f]{40}/", download.address)
            assert algorithm == "sha256"


def test_wmt14_has_the_corpora_of_the_paper():
    """Section 4.1 of the paper: five corpora, two dev sets, one test set."""
    parts = CORPORA["wmt14-en-fr"].parts
    train = [p.source.member for p in parts if p.split == "train"]
    words = ("europarl-v7", "news-commentary-v9", "undoc", "crawl", "giga")
    assert len(train) == len(words)
    for member, word in zip(train, words, strict=True):
        assert word in member
    dev = [p.source.member for p in parts if p.split == "dev"]
    assert dev == ["dev/newstest2012.en", "dev/newstest2013.en"]
    (test,) = (p for p in parts if p.split == "test")
    assert "newstest2014" in test.source.member
    for part in parts:
        source, target = part.source.member, part.target.member
        changed = source.replace(".en", ".fr").replace("-src", "-ref")
        assert changed == target


@pytest.mark.parametrize("name", ["multi30k", "small_parallel_enja"])
def test_checksums_equal_those_of_the_shared_files(shared, name):
    folder = shared(f"data/{name}")
    checked = 0
    for file, sha256 in CORPORA[name].checksums.items():
        if (folder / file).exists():
            data = (folder / file).read_bytes()
            assert hashlib.sha256(data).hexdigest() == sha256
            checked += 1
    assert checked >= 4


LINES = {
    f"{split}.{side}": b"".join(f"{split} {side} {row}\n".encode() for row in range(rows))
    for split, rows in (("train", 5), ("dev", 3), ("test", 2))
    for side in ("en", "fr")
}


def corpus_of(parts, **options) -> Corpus:
    about = {"summary": "a corpus for tests", "licence": "none stated", "citation": "nobody"}
    about |= {"name": "made", "languages": ("en", "fr"), "homepage": "https://nowhere/"}
    return Corpus(**about, parts=parts, **options)


def local(path: Path, data: bytes) -> Text:
    """A text where a file downloaded by hand would be."""
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return Text(Download(f"http://127.0.0.1:9/{path.name}", f"sha256:{digest}"))


def plain_corpus(folder: Path) -> Corpus:
    """One compressed file per side and split, as in multi30k."""
    texts = [local(folder / f"{name}.gz", gzip.compress(data)) for name, data in LINES.items()]
    parts = map(Part, ("train", "dev", "test"), texts[::2], texts[1::2])
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in LINES.items()}
    return corpus_of((*parts,), checksums=sums)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(downloads, "PAUSE", 0.0)


def test_files_fetched_by_hand_are_used_and_kept(tmp_path):
    corpus = plain_corpus(tmp_path)
    before = set(contents(tmp_path))
    folder = get_corpus(corpus, tmp_path)
    assert contents(folder) == LINES
    shutil.rmtree(folder)
    assert set(contents(tmp_path)) == before


def test_another_file_of_the_same_name_is_not_used(tmp_path):
    corpus = plain_corpus(tmp_path)
    (tmp_path / "dev.fr.gz").write_bytes(b"another")
    refused(lambda: get_corpus(corpus, tmp_path), "dev.fr.gz", "reached", by=DownloadError)
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "dev.fr.gz").read_bytes() == b"another"


def test_an_existing_folder_is_checked_and_kept(tmp_path):
    corpus = plain_corpus(tmp_path)
    folder = get_corpus(corpus, tmp_path)
    for path in tmp_path.glob("*.gz"):
        path.unlink()
    assert get_corpus(corpus, tmp_path) == folder
    (folder / "train.en").write_bytes(b"changed\n")
    refused(lambda: get_corpus(corpus, tmp_path), "train.en", "another")
    (folder / "dev.fr").unlink()
    refused(lambda: get_corpus(corpus, tmp_path), "dev.fr", "move")
    assert (folder / "train.en").read_bytes() == b"changed\n"


def test_parts_of_a_split_are_concatenated(tmp_path):
    """An archive of several texts, and segments, as in wmt14-en-fr."""
    files = {"a.en": b"a1\na2", "a.fr": b"A1\nA2\n"}  # the last line of a.en has no line feed
    files |= {"b.en.gz": gzip.compress(b"b1\n"), "b.fr.gz": gzip.compress(b"B1\n")}
    for side in ("en", "fr"):
        files[f"t.{side}.sgm"] = f'<p>\n<seg id="1">{side}</seg>\n</p>\n'.encode()
    text = local(tmp_path / "all.tgz", tar_of(tmp_path / "all.tgz", files).read_bytes())

    def part(split: str, source: str) -> Part:
        target = source.replace(".en", ".fr")
        sides = (replace(text, member=member) for member in (source, target))
        return Part(split, *sides)

    parts = (part("train", "a.en"), part("train", "b.en.gz"), part("test", "t.en.sgm"))
    folder = get_corpus(corpus_of(parts), tmp_path)
    assert contents(folder) == {
        "train.en": b"a1\na2\nb1\n",
        "train.fr": b"A1\nA2\nB1\n",
        "test.en": b"en\n",
        "test.fr": b"fr\n",
    }


def test_texts_that_are_not_parallel_are_refused(tmp_path):
    source = local(tmp_path / "one", b"a\nb\n")
    target = local(tmp_path / "other", b"a\n")
    corpus = corpus_of((Part("train", source, target),))
    refused(lambda: get_corpus(corpus, tmp_path), "2", "train.en", "1", by=ArchiveError)
    assert set(contents(tmp_path)) == {"one", "other"}


def test_a_downloaded_file_that_is_no_archive_is_removed(tmp_path):
    """Otherwise the next run would use it as a complete download."""
    fetched = tmp_path / "made.download"
    fetched.mkdir()
    (fetched / "pair.zip").write_bytes(b"<html>Sorry</html>")
    download = Download("http://127.0.0.1:9/pair.zip")
    part = Part("train", Text(download, "a.en"), Text(download, "a.fr"))
    refused(lambda: get_corpus(corpus_of((part,)), tmp_path), "a.en", "complete", by=ArchiveError)
    assert list(fetched.iterdir()) == []
    assert not (tmp_path / "made").exists()
    (tmp_path / "pair.zip").write_bytes(b"mine")
    with pytest.raises(ArchiveError):
        get_corpus(corpus_of((part,)), tmp_path)
    assert (tmp_path / "pair.zip").read_bytes() == b"mine"


def test_a_corpus_without_splits_is_split(tmp_path):
    """A zip with one file per side, as in opus-tatoeba-en-fr."""
    lines = {side: "".join(f"{side}{row}\n" for row in range(40)).encode() for side in ("en", "fr")}
    path = zip_of(tmp_path / "pair.zip", {f"T.{side}": data for side, data in lines.items()})
    text = local(path, path.read_bytes())
    sides = (replace(text, member=f"T.{side}") for side in ("en", "fr"))
    corpus = corpus_of((Part("train", *sides),), held_out=4)
    made = contents(get_corpus(corpus, tmp_path))
    assert sorted(made) == sorted(corpus.files)
    for side, data in lines.items():
        texts = {name: text for name, text in made.items() if side in name}
        rows = [text.split(b"\n")[:-1] for text in texts.values()]
        assert sorted(map(len, rows)) == [4, 4, 32]
        assert sorted(chain(*rows)) == sorted(data.split(b"\n")[:-1])
    for split in corpus.splits:
        source, target = (made[f"{split}.{side}"] for side in ("en", "fr"))
        assert source.replace(b"en", b"fr") == target


words = st.text(st.sampled_from("abcAB .!?"), max_size=3).map(str.encode)


@given(st.lists(st.tuples(words, words), max_size=60), st.integers(0, 6))
def test_held_out_pairs_share_no_side_with_earlier_splits(pairs, count):
    def fold(line: bytes) -> bytes:
        text = line.decode().lower()
        return re.sub("[^a-z]", "", text).encode() or text.encode()

    splits: dict[str, list] = {"train": [], "dev": [], "test": []}
    for name, pair in held_out_pairs(pairs, count):
        splits[name].append(pair)
    every = list(chain(*splits.values()))
    assert len(every) == len(set(every))
    assert set(every) <= set(pairs)
    assert all(side.strip() for pair in every for side in pair)
    for earlier, later in (("train", "dev"), ("train", "test"), ("dev", "test")):
        for side in (0, 1):
            sides = [{fold(pair[side]) for pair in splits[name]} for name in (earlier, later)]
            assert not sides[0] & sides[1]
    sources = {fold(s) for s, t in pairs if s.strip() and t.strip()}
    assert len(splits["test"]) == min(count, len(sources))
    assert len(splits["dev"]) <= count
    if count == 0:
        whole = {(s, t) for s, t in pairs if s.strip() and t.strip()}
        assert set(splits["train"]) == whole


def said(capfd) -> str:
    err = capfd.readouterr().err
    assert "Traceback" not in err
    return err.rstrip("\n").rpartition("\n")[2]


def test_data_list_prints_every_corpus(tmp_path, monkeypatch, capsys):
    made = plain_corpus(tmp_path)
    monkeypatch.setitem(CORPORA, "made", made)
    assert main(["data", "list", f"--data_dir={tmp_path}"]) == 0
    out = capsys.readouterr().out
    entries = out.split("\n\n")
    for corpus, entry in zip(CORPORA.values(), entries, strict=False):
        assert entry.startswith(f"{corpus.name} (")
        assert entry.count("untried, ") == len(corpus.downloads)
        assert "worked" not in entry
        for download in corpus.downloads:
            assert download.address in entry
    assert "is in" not in out
    get_corpus(made, tmp_path)
    monkeypatch.setenv("BAHDANAU_TF_DATA", str(tmp_path))
    assert main(["data", "list"]) == 0
    assert f"made (en-fr, is in {tmp_path / 'made'})" in capsys.readouterr().out


def test_data_get_makes_the_folder(tmp_path, monkeypatch, capfd):
    corpus = plain_corpus(tmp_path)
    monkeypatch.setitem(CORPORA, "made", corpus)
    flag = f"--data_dir={tmp_path}"
    assert main(["data", "get", "made", flag]) == 0
    out, err = capfd.readouterr()
    assert out == f"{tmp_path / 'made'}\n"
    assert "licence: none stated" in err
    assert "Addresses: untried" in err
    assert contents(tmp_path / "made") == LINES
    shutil.rmtree(tmp_path / "made")
    (tmp_path / "dev.en.gz").unlink()
    assert main(["data", flag, "get", "made"]) == 2
    assert "dev.en.gz cannot be reached" in said(capfd)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "'data' 'data list'"),
        (["get"], "'data get'"),
        (["get", "a", "b"], "'data b' command"),
        (["fetch", "multi30k"], "'data multi30k' fetch"),
        (["get", "multi31k"], "'multi31k' multi30k corpus"),
        (["list", "--colour=red"], "colour"),
    ],
)
def test_a_bad_flag_is_reported_in_one_line(capfd, arguments, sentence):
    assert main(["data", *arguments]) == 2
    says(said(capfd), sentence)
