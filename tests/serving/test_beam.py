"""export/beam_translate.py: bulk translation on a runner of Apache Beam."""

import gzip
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import tensorflow as tf
from comparisons import write_lines
from processes import run_python
from refusals import refused
from test_c_runtime import with_words

beam = pytest.importorskip("apache_beam", reason="needs Apache Beam; `make check-beam` installs it")
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference  # noqa: E402
from apache_beam.testing.util import assert_that, equal_to  # noqa: E402

KIT = Path(__file__).resolve().parents[2] / "export"


@pytest.fixture(scope="module")
def kit() -> Iterator[ModuleType]:
    sys.path.insert(0, str(KIT))
    yield importlib.import_module("beam_translate")
    sys.path.remove(str(KIT))


class Toy(tf.Module):
    """Writes a line in capitals; a line with "poison" fails its whole batch.

    One with "wait" is never done, one with "long" is cut.
    """

    def __init__(self) -> None:
        super().__init__()
        self.batches = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        def has(word: str) -> tf.Tensor:
            return tf.strings.regex_full_match(text, f".*{word}.*")

        self.batches.assign_add(1)
        healthy = tf.debugging.Assert(~tf.reduce_any(has("poison")), ["bad"])
        waits = tf.reduce_any(has("wait"))
        turns = tf.while_loop(lambda _: waits, lambda n: [1 - n], [0])
        with tf.control_dependencies([healthy, *turns]):
            translation = tf.strings.upper(text, "utf-8")
        return {"translation": translation, "truncated": has("long")}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "1"
    toy = Toy()
    signatures = {"serving_default": toy.translate}
    tf.saved_model.save(toy, str(folder), signatures)
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder of shards of several lengths."""
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(12):
        lines = [f"{'é' * (n * 7 % 5)}{number} {n}" for n in range(number)]
        write_lines(folder / f"{number:02}.en", lines)
    return folder


def command(model: Path, text: Path, *flags: str) -> list[str]:
    files = [f"--model={model}", f"--input={text}/*"]
    files += [f"--output={text.parent / 'out'}", *flags]
    return [sys.executable, str(KIT / "beam_translate.py"), *files]


def translate(model: Path, text: Path, *flags: str) -> str:
    """Runs the script; returns its last line."""
    done = subprocess.run(command(model, text, *flags), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(text: Path, name: str) -> dict:
    path = text.parent / "out" / "reports" / f"{name}.json"
    return json.loads(path.read_text())


def test_each_string_gets_a_result_whatever_the_others_are(kit, model):
    """A line that fails costs itself only, wherever it is in its batch."""
    export = kit.Export(str(model))
    lines = [
        *("b", b"caf\xe9", "poison", "", "a long line", "c\ud800", "é"),
        *("poison 2", b"bytes", "d\ne\0"),
    ]
    wanted = ["B", "", "", "", "A LONG LINE", "", "É", "", "BYTES", "D E"]
    for batch_size in (1, 2, 3, 64):
        translations = export.translate(lines, batch_size)
        assert [translation["text"] for translation in translations] == wanted
        assert [n for n, translation in enumerate(translations) if translation["cut"]] == [4]
        failures = [translation["failure"] for translation in translations]
        assert [failures[n] for n in (1, 5)] == ["not UTF-8"] * 2
        assert all("assertion failed" in failures[n] for n in (2, 7))
        assert [n for n, why in enumerate(failures) if why] == [1, 2, 5, 7]
    assert export.translate([], 64) == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_no_line_of_a_text_in_utf16_is_translated(kit, model, encoding):
    lines = kit._lines("\ufeffa cat\na dog\n".encode(encoding))
    translations = kit.Export(str(model)).translate(lines, 64)
    assert [translation["failure"] for translation in translations] == ["UTF-16, wanted UTF-8"] * 2


def test_lines_of_similar_length_are_translated_together(kit, model, monkeypatch):
    export = kit.Export(str(model))
    run, batches = export._run, []

    def recorded(rows: list[bytes]) -> list[dict]:
        batches.append(rows)
        return run(rows)

    monkeypatch.setattr(export, "_run", recorded)
    lines = ["x" * (n * 7 % 20) for n in range(20)]
    translations = export.translate(lines, 6)
    assert [translation["text"] for translation in translations] == [line.upper() for line in lines]
    assert [len(rows) for rows in batches] == [6, 6, 6, 2]
    lengths = [len(row) for rows in batches for row in rows]
    assert lengths == sorted(lengths)


WORKER = """
import sys
import beam_translate
assert "tensorflow" not in sys.modules
beam_translate.Export(sys.argv[1])
from tensorflow.config import threading
print(threading.get_intra_op_parallelism_threads())
print(threading.get_inter_op_parallelism_threads())
"""


@pytest.mark.slow
def test_a_worker_has_one_thread_of_tensorflow(model):
    done = run_python("-c", WORKER, model, PYTHONPATH=str(KIT))
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_strings_keep_their_keys_in_a_pipeline_of_ones_own(kit, model):
    lines = {n: "x" * (n % 7) + f" {n}" for n in range(20)}
    handler = kit.TranslationHandler(str(model), batch_size=4)
    with beam.Pipeline(kit.PROCESSES) as pipeline:
        results = (
            pipeline
            | beam.Create(lines.items())
            | RunInference(KeyedModelHandler(handler))
            | beam.MapTuple(lambda n, prediction: (n, prediction.example, prediction.inference))
        )
        wanted = {"cut": False, "failure": ""}
        assert_that(
            results,
            equal_to([(n, line, wanted | {"text": line.upper()}) for n, line in lines.items()]),
        )


@pytest.mark.slow
def test_a_killed_run_leaves_whole_shards_and_goes_on(model, text):
    """Two processes; a shard with the line "wait" is never done."""
    out, reports = text.parent / "out", text.parent / "out" / "reports"
    write_lines(text / "06.en", ["a", "wait", "c"])
    running = subprocess.Popen(
        command(model, text, "--direct_num_workers=2"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = iter(running.stderr)
    while not (reports.is_dir() and any(reports.iterdir())):
        assert next(said, None) is not None, "it ended without a shard"
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    done = {
        path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(reports.iterdir())
    }
    kept = [path.stem for path in done]
    assert kept
    write_lines(out / "06.en", ["written before the run was killed"])
    for name in kept:
        assert (out / name).read_text() == (text / name).read_text().upper()
    (out / "unfinished" / "left").touch()

    write_lines(text / "06.en", ["a", "poison", "c"])
    last = translate(model, text, "--direct_num_workers=2")
    translated = 12 - len(kept)
    said = f"{translated} shards translated, {len(kept)} already were; 1 lines"
    assert last.startswith(said)
    assert sorted(path.name for path in out.iterdir()) == [
        *sorted(path.name for path in text.iterdir()),
        "reports",
    ]
    for path in text.iterdir():
        wanted = path.read_text().upper().replace("POISON", "")
        assert (out / path.name).read_text() == wanted
    for path, identity in done.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == identity
    (failed,) = report(text, "06.en")["failed"]
    assert failed["line"] == 2


@pytest.mark.slow
def test_only_what_has_changed_is_translated_again(model, text, tmp_path):
    (text / "gz.en.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfa\r\n\nlong"))
    assert translate(model, text).startswith("13 shards translated, 0 already were")
    written = gzip.decompress((tmp_path / "out" / "gz.en.gz").read_bytes())
    assert written == b"A\n\nLONG\n"
    assert report(text, "gz.en.gz")["cut"] == [3]
    assert (tmp_path / "out" / "00.en").read_bytes() == b""

    write_lines(text / "03.en", ["another"])
    (tmp_path / "out" / "02.en").unlink()
    assert translate(model, text).startswith("2 shards translated, 11 already were")
    assert (tmp_path / "out" / "03.en").read_text() == "ANOTHER\n"
    assert (tmp_path / "out" / "02.en").exists()

    other = tmp_path / "other"
    toy = Toy()
    toy.batches.assign(7)
    signatures = {"serving_default": toy.translate}
    tf.saved_model.save(toy, str(other), signatures)
    assert translate(other, text).startswith("13 shards translated, 0 already were")


@pytest.mark.slow
def test_an_export_translates_as_its_translator(text, tmp_path):
    translator = with_words()
    model = translator.export(tmp_path / "served")
    lines = ["the cat sleeps .", "", "nothing known, 猫 😀", "the dog " * 9]
    write_lines(text / "12.en", lines)
    translate(model, text)
    output = (tmp_path / "out" / "12.en").read_text()
    wanted = [translation.line for translation in translator.translate(lines)]
    assert output == "".join(f"{line}\n" for line in wanted)


def test_mistakes_are_said_in_one_sentence(kit, model, text, monkeypatch, capsys):
    (text / "more").mkdir()
    write_lines(text / "more" / "03.en", ["a"])
    write_lines(text / "more" / "reports", ["a"])
    for wanted, flags in {
        "saved_model.pb, wanted the numbered": {"model": model.parent},
        "--input: no file matches": {"input": text / "*.fr"},
        "2 files 03.en, wanted different names": {"input": text / "**"},
        "--output would overwrite": {"output": text},
        "--batch_size is 0, wanted 1 or more": {"batch_size": 0},
        "Unable to get filesystem": {"output": "none://where"},
        "--beam_size is not a flag": {"beam_size": 3},
        "--input has a file reports": {"input": text / "more" / "reports"},
    }.items():
        defaults = {"model": model, "input": text / "*", "output": text / "out"}
        words = [f"--{name}={value}" for name, value in (defaults | flags).items()]
        monkeypatch.setattr(sys, "argv", ["beam_translate.py", *words])
        refused(kit.main, "2", by=SystemExit)
        assert wanted in capsys.readouterr().err.split("\n")[-2]
        assert not (text / "out").exists()


def test_no_file_that_is_no_translation_is_overwritten(kit, text, tmp_path, monkeypatch):
    """The input by another name, and files without a report."""
    monkeypatch.chdir(tmp_path)
    for folder in ("out", "other"):
        Path(folder).mkdir()
    Path("link").symlink_to("text")
    for pattern, output in (
        ("./text/*.en", "text"),
        (f"{text}/*.en", "text"),
        ("text/*.en", f"{text}"),
        ("text/*.en", "out/../text"),
        ("text/*.en", "link"),
        ("link/*.en", "text"),
    ):
        with pytest.raises(ValueError, match=r"overwrite .*00\.en of --input"):
            kit.shards(pattern, output)
    write_lines(Path("out/07.en"), ["a reference"])
    with pytest.raises(ValueError, match=r"07\.en, which has no report"):
        kit.shards("text/*.en", "out")
    assert len(kit.shards("text/*.en", "other")) == 12
    kit.make_folders("out")  # as a run that is killed
    assert len(kit.shards("text/*.en", "out")) == 12
    kit.remove_unfinished("out")
    with pytest.raises(ValueError, match="which has no report"):
        kit.shards("text/*.en", "out")
    write_lines(Path("out/reports/07.en.json"), ["{}"])
    assert len(kit.shards("text/*.en", "out")) == 12
