"""Writes the best model of --model_dir as a SavedModel, or for ONNX Runtime.

The SavedModel takes strings and returns strings; it includes beam search, with the beam size and
penalties set here. It is reloaded in a new process and compared with the model before it gets its
number, so a server never loads one that differs. The results are written to standard error, the
folder to standard output. If there is a difference, the exit status is 1, and nothing is exported.

--format=onnx writes a folder for `bahdanau_tf.runtime`, which translates in ONNX Runtime without
TensorFlow; `translate` and `evaluate` take it as --model_dir. The model must have the paper's
attention and gated units, and sub-words, characters or symbols. With --int8 it is a quarter of the
size and faster still; translations may differ where two words are nearly equally probable.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from absl import flags as absl_flags

from bahdanau_tf.commands import flags as common
from bahdanau_tf.commands.files import load_translator
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.files import LONGEST_SOURCE, check_folder
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import StatusLine, amount

if TYPE_CHECKING:
    from bahdanau_tf.translator import Translator

_SIZE = Range(2, 10**6)


@dataclass(frozen=True)
class _Exported(OptionGroup):
    export_dir: str | None = option(
        "base folder; each export gets a numbered folder in it", required=True
    )
    format: Literal["savedmodel", "onnx"] = option(
        "for TensorFlow, or for ONNX Runtime", "savedmodel"
    )
    int8: bool = option(
        "whether to round matrices to a byte per weight, with a scale for each column", False
    )
    max_source_length: int = option(
        "number of tokens read from a sentence, end symbol included; the rest is cut off",
        LONGEST_SOURCE,
        _SIZE,
    )
    max_target_length: int = option(
        "number of tokens of the longest translation, end symbol included", 128, _SIZE
    )
    compare: str | None = option(
        "sentences of your own, one a line: reports how many the export for ONNX Runtime "
        "translates as the model does; may be .gz"
    )
    half_weights: bool = option("whether to round weights to float16, which halves the size", False)


GROUPS = (
    common.MODEL,
    common.Group(common.Search, without=("mbr",)),
    common.Group(_Exported, "Export"),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_folder("export_dir", flags.export_dir)
    common.check_model(flags)
    common.check_files(flags, "dictionary", "compare")
    common.check_apart_from_models("export_dir", flags.export_dir)
    unused = ["max_target_length", "half_weights"]
    if flags.format == "onnx":
        common.refuse(flags, unused, "with --format=onnx")
        common.from_flags(flags, Decoding).check_without_tensorflow()
    else:
        common.refuse(flags, ["int8", "compare"], "without --format=onnx")


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns 1 if the export differs from the model."""
    from bahdanau_tf.runtime import export_runtime
    from bahdanau_tf.serving import Limits, examine, publish, workplace, written

    limits = Limits(flags.max_source_length, flags.max_target_length)
    lines = [] if flags.compare is None else [x for x in read_lines(flags.compare) if x.strip()]
    if flags.compare is not None and not lines:
        raise ValueError(f"--compare: {flags.compare} has no line with words, wanted some")
    translator = load_translator(flags)
    if flags.format == "onnx":
        about = translator.card, translator.habits, flags.max_source_length, translator.memory
        with workplace(Path(flags.export_dir)) as place:
            folder = place / "model"
            for fact in export_runtime(translator.graph, folder, flags.int8, *about):
                StatusLine().note(fact)
            if lines:
                StatusLine().note(f"{flags.compare}: {_compared(translator, folder, lines)}")
            print(publish(folder, flags.export_dir))
        return 0
    if flags.half_weights:
        translator.halve_weights()
    with written(translator.graph, flags.export_dir, limits, translator.habits) as folder:
        StatusLine().note("written; comparing it with the model")
        report = examine(translator.graph, folder, limits)
        differences = [f"Differs: {difference}" for difference in report.differences]
        for sentence in (*report.facts, *differences):
            StatusLine().note(sentence)
        if report.differences:
            return 1
        print(publish(folder, flags.export_dir))
    return 0


def _compared(translator: Translator, folder: Path, lines: list[str]) -> str:
    """How many lines an export translates as the model does."""
    from bahdanau_tf import runtime

    exported = runtime.Translator.load(folder)
    pairs = zip(translator.translate(lines), exported.translate(lines), strict=True)
    equal = sum(own.text == other.text for own, other in pairs)
    return f"{equal:,} of {amount(len(lines), 'translation')} equal the model's"
