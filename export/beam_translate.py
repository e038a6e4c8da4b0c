r"""Translates text in shards by an export, on any runner of Apache Beam.

    python export/beam_translate.py --model=served/1 --input="text/*.en" \
        --output=translated --direct_num_workers=2

It needs `pip install apache-beam`. Each file of the input is a shard: the output folder
gets a file of the same name, line for line, and a report, reports/NAME.json, with the numbers of
the lines that failed (these are empty) and of those that were cut. Neither file exists before it is
complete. A second run translates the shards that are missing, and those whose text or model has
changed.

All other flags are Beam's. Without --runner, --direct_num_workers processes of this machine
translate; 0 means one per core. The workers of another runner need tensorflow and tensorflow-text,
not bahdanau_tf.

In your own pipeline `RunInference(TranslationHandler("served/1"))` translates strings; in a
`KeyedModelHandler` they keep their keys.
"""

from __future__ import annotations

import argparse
import codecs
import hashlib
import json
import logging
import os
import posixpath
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

try:
    import apache_beam as beam
except ModuleNotFoundError as error:
    needs = "beam_translate needs Apache Beam: pip install apache-beam"
    if __name__ == "__main__":
        sys.exit(needs)
    raise ImportError(needs) from error
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

# DirectRunner would try Prism first, which has no processes.
PROCESSES = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
COUNTED = "translation"  # the namespace of the counters
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-8 never starts like this
REPORTS = "reports"
UNFINISHED = "unfinished"
STARTED = "started"  # this file exists until a run has ended

Translated = dict[str, Any]  # text, whether it was cut, why it failed or ""
# Elements are plain, so that every runner can send them to another process.
Shard = tuple[str, dict[str, str], list[bytes]]  # name, checksums, lines
Done = tuple[str, dict[str, str], list[Translated]]


class Export:
    """A SavedModel of `bahdanau-tf export`, run by one thread of TensorFlow.

    TensorFlow is imported here: the process that starts the workers does not need it, and its
    threads must be limited before it starts any.

    Args:
        path: The numbered folder.
    """

    def __init__(self, path: str) -> None:
        import tensorflow as tf
        import tensorflow_text  # noqa: F401, the ops of the tokenizers

        try:
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        except RuntimeError:
            logging.warning("TensorFlow was used before; it keeps its threads")
        self._loaded = tf.saved_model.load(path)  # holds the weights
        self._signature = self._loaded.signatures["serving_default"]
        self._constant, self._error = tf.constant, tf.errors.OpError
        self._run([b"a"])  # fails here if the export itself cannot run

    def translate(self, lines: Sequence[str | bytes], batch_size: int) -> list[Translated]:
        """Translates lines, those of similar length together.

        Args:
            lines: The lines, of any content and in any order.
            batch_size: The number of lines translated at once.

        Returns:
            For each line its translation `text`, whether it was `cut` at a limit of the export, and
            why it could not be translated, `failure`.
        """
        encoded = [_utf8(line) for line in lines]
        results = [_translated(failure=_why_not_utf8(line)) for line in lines]
        rows = {n: line for n, line in enumerate(encoded) if line is not None}
        order = sorted(rows, key=lambda n: len(rows[n]))
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            batch = self._halved([rows[n] for n in places])
            for n, result in zip(places, batch, strict=True):
                results[n] = result
        return results

    def _halved(self, rows: list[bytes]) -> list[Translated]:
        """Halves a batch that fails until the lines that fail are alone."""
        try:
            return self._run(rows)
        except self._error as error:
            if len(rows) == 1:
                return [_translated(failure=" ".join(error.message.split()))]
        half = len(rows) // 2
        return self._halved(rows[:half]) + self._halved(rows[half:])

    def _run(self, rows: list[bytes]) -> list[Translated]:
        outputs = self._signature(text=self._constant(rows))
        texts, cut = outputs["translation"].numpy(), outputs["truncated"].numpy()
        return [
            _translated(text.decode("utf-8", "replace"), cut=bool(is_cut))
            for text, is_cut in zip(texts, cut, strict=True)
        ]


def _utf8(line: str | bytes) -> bytes | None:
    """The bytes of a line, None if it is not UTF-8."""
    try:
        if isinstance(line, str):
            return line.encode("utf-8")
        line.decode("utf-8")
    except UnicodeError:
        return None
    return line


def _why_not_utf8(line: str | bytes) -> str:
    is_utf16 = isinstance(line, bytes) and line.startswith(UTF_16)
    return "UTF-16, wanted UTF-8" if is_utf16 else "not UTF-8"


def _translated(text: str = "", cut: bool = False, failure: str = "") -> Translated:
    # As `Translation.line`: a vocabulary of bytes can write both.
    text = text.replace("\0", "").replace("\n", " ")
    return {"text": text, "cut": cut, "failure": failure}


class TranslationHandler(ModelHandler[str, PredictionResult, Export]):
    """Translates strings in `RunInference`.

    The inference of a string is as in `Export.translate`; a string that fails does not fail its
    batch. Beam's batches are cut into smaller ones by length.

    Args:
        model: The numbered folder of an export, which all workers can read.
        batch_size: The number of strings translated at once.
        **kwargs: As for `ModelHandler`.
    """

    def __init__(self, model: str, batch_size: int = 64, **kwargs: Any) -> None:
        super().__init__(**{"max_batch_size": 16 * batch_size} | kwargs)
        self._model = model
        self._batch_size = batch_size

    def load_model(self) -> Export:
        return Export(self._model)

    def run_inference(
        self, batch: Sequence[str], model: Export, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionResult]:
        return map(PredictionResult, batch, model.translate(batch, self._batch_size))


class _ShardHandler(TranslationHandler):
    """Translates whole shards, one after the other."""

    def __init__(self, model: str, batch_size: int) -> None:
        super().__init__(model, batch_size, max_batch_size=1)

    def run_inference(
        self, batch: Sequence[Shard], model: Export, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Done]:
        for name, checksums, lines in batch:
            yield name, checksums, model.translate(lines, self._batch_size)

    def get_num_bytes(self, batch: Sequence[Shard]) -> int:
        return sum(len(line) for _, _, lines in batch for line in lines)


class _Unfinished(beam.DoFn):
    """Reads a shard, unless its translation is there."""

    def __init__(self, output: str, model: str) -> None:
        self._output = output
        self._model = model  # its checksum

    def process(self, path: str) -> Iterator[Shard]:
        with FileSystems.open(path) as file:
            data = file.read()
        name = posixpath.basename(path)
        checksums = {"model": self._model, "input": _checksum(data)}
        report = _report_file(self._output, name)
        if FileSystems.exists(report):
            translated = FileSystems.exists(FileSystems.join(self._output, name))
            if translated and _read_json(report).items() >= checksums.items():
                _count("kept")
                return
            # It goes first, so that it never stands beside the translation of another text or by
            # another model.
            FileSystems.delete([report])
        yield name, checksums, _lines(data)


class _Write(beam.DoFn):
    """Writes the translation of a shard, then its report."""

    def __init__(self, output: str) -> None:
        self._output = output

    def process(self, done: Done) -> None:
        name, checksums, lines = done
        text = "".join(f"{line['text']}\n" for line in lines)
        numbered = [*enumerate(lines, 1)]
        report = {
            **checksums,
            "lines": len(lines),
            "failed": [
                {"line": n, "reason": line["failure"]} for n, line in numbered if line["failure"]
            ],
            "cut": [n for n, line in numbered if line["cut"]],
        }
        self._place(FileSystems.join(self._output, name), text)
        self._place(_report_file(self._output, name), json.dumps(report, indent=1))
        logging.info("%s: %d lines translated", name, len(lines))
        _count("translated")
        for what in ("failed", "cut"):
            _count(what, len(report[what]))

    def _place(self, path: str, text: str) -> None:
        """Writes a file under another name, then renames it."""
        name = f"{uuid.uuid4().hex}-{posixpath.basename(path)}"
        aside = FileSystems.join(self._output, UNFINISHED, name)
        with FileSystems.create(aside) as file:
            file.write(text.encode("utf-8"))
        FileSystems.rename([aside], [path])


def _count(what: str, number: int = 1) -> None:
    Metrics.counter(COUNTED, what).inc(number)


def _report_file(output: str, name: str) -> str:
    return FileSystems.join(output, REPORTS, f"{name}.json")


def _started_file(output: str) -> str:
    return FileSystems.join(output, UNFINISHED, STARTED)


def _read_json(path: str) -> dict[str, Any]:
    with FileSystems.open(path) as file:
        return json.loads(file.read())


def _lines(data: bytes) -> list[bytes]:
    """The lines of a text, as `bahdanau-tf translate` reads them.

    Each line of a text in UTF-16 keeps the byte order mark: without it most lines would pass as
    UTF-8 with NULs.
    """
    mark = data[:2] if data.startswith(UTF_16) else b""
    lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1] or (mark and lines[-1] == b"\0"):  # half a line feed
        lines.pop()
    return [mark + line.rstrip(b"\r") for line in lines]


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _files(pattern: str) -> list[str]:
    (match,) = FileSystems.match([pattern])
    return sorted(file.path for file in match.metadata_list)


def _names(folder: str) -> set[str]:
    return {*map(posixpath.basename, _files(FileSystems.join(folder, "*")))}


def model_checksum(model: str) -> str:
    """A checksum of all files of an export.

    Raises:
        ValueError: The folder has no SavedModel.
    """
    if not FileSystems.exists(FileSystems.join(model, "saved_model.pb")):
        raise ValueError(
            f"--model: {model} has no saved_model.pb, wanted the numbered "
            "folder that `bahdanau-tf export` printed"
        )
    checksum = hashlib.sha256()
    for path in _files(FileSystems.join(model, "**")):
        with FileSystems.open(path) as file:
            checksum.update(hashlib.sha256(file.read()).digest())
    return checksum.hexdigest()


def shards(pattern: str, output: str) -> list[str]:
    """The files of a pattern.

    Raises:
        ValueError: No file matches, two have the same name, or the output would overwrite one of
            them or another file of its folder.
    """
    files = _files(pattern)
    if not files:
        raise ValueError(f"--input: no file matches {pattern}")
    names = Counter(map(posixpath.basename, files))
    name, times = names.most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"--input has {times} files {name}, wanted different names: each "
            "is also the name of a translation"
        )
    if taken := names.keys() & {REPORTS, UNFINISHED}:
        raise ValueError(
            f"--input has a file {min(taken)}, wanted another name: --output "
            "has a folder of this name"
        )
    for path in files:
        translation = FileSystems.join(output, posixpath.basename(path))
        if os.path.realpath(path) == os.path.realpath(translation):
            raise ValueError(f"--output would overwrite {path} of --input")
    # A killed run may have written a translation without its report.
    if not FileSystems.exists(_started_file(output)):
        reported = _names(FileSystems.join(output, REPORTS))
        others = {n for n in _names(output) if f"{n}.json" not in reported}
        if taken := names.keys() & others:
            raise ValueError(
                f"--output would overwrite {FileSystems.join(output, min(taken))}, which has no "
                "report; wanted a folder for translations"
            )
    return files


def make_folders(output: str) -> None:
    """Makes the missing folders, and the file that marks a started run."""
    for folder in (REPORTS, UNFINISHED):
        path = FileSystems.join(output, folder)
        if not FileSystems.exists(path):
            FileSystems.mkdirs(path)
    FileSystems.create(_started_file(output)).close()


def remove_unfinished(output: str) -> None:
    """Removes the unfinished files of this run and of killed ones."""
    folder = FileSystems.join(output, UNFINISHED)
    if files := _files(FileSystems.join(folder, "*")):
        FileSystems.delete(files)
    if FileSystems.exists(folder):  # an object store has no folders
        FileSystems.delete([folder])


def beam_options(arguments: Sequence[str]) -> PipelineOptions:
    """Beam's flags; without --runner processes of this machine.

    Raises:
        ValueError: A flag is unknown.
    """
    options = PipelineOptions(arguments)
    unknown = {*options.get_all_options(retain_unknown_options=True)}
    if unknown := unknown - {*options.get_all_options()}:
        name = min(unknown)
        raise ValueError(f"--{name} is not a flag of this program or of Beam")
    if options.view_as(StandardOptions).runner is None:
        options.view_as(StandardOptions).runner = PROCESSES
        options.view_as(DirectOptions).direct_running_mode = "multi_processing"
    return options


def counts(result: PipelineResult) -> Counter[str]:
    """The sums of the workers' counters."""
    metrics = result.metrics().query(MetricsFilter().with_namespace(COUNTED))
    return Counter({c.key.metric.name: c.committed for c in metrics["counters"]})


def main() -> int:
    """Reads the flags, translates, prints; returns 1 if Beam gave up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    add = parser.add_argument
    add("--model", required=True, help="numbered folder of an export")
    add("--input", required=True, help="pattern of files; .gz are unpacked")
    add("--output", required=True, help="folder for files of the same names")
    add("--batch_size", type=int, default=64, help="lines translated at once")
    flags, arguments = parser.parse_known_args()
    # For the worker processes: few messages from TensorFlow.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if flags.batch_size < 1:
        parser.error(f"--batch_size is {flags.batch_size}, wanted 1 or more")
    try:
        pipeline = beam.Pipeline(options=beam_options(arguments))
        model = model_checksum(flags.model)
        files = shards(flags.input, flags.output)
        make_folders(flags.output)
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    _ = (
        pipeline
        | "Files" >> beam.Create(files)
        | "Spread over the workers" >> beam.Reshuffle()
        | "Read" >> beam.ParDo(_Unfinished(flags.output, model))
        | "Translate" >> RunInference(_ShardHandler(flags.model, flags.batch_size))
        | "Write" >> beam.ParDo(_Write(flags.output))
    )
    result = pipeline.run()
    if result.wait_until_finish() != PipelineState.DONE:
        return 1
    remove_unfinished(flags.output)
    total = counts(result)
    print(
        f"{total['translated']} shards translated, {total['kept']} already were; {total['failed']} "
        f"lines failed, {total['cut']} were cut: see {FileSystems.join(flags.output, REPORTS)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
