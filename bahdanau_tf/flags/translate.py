"""Translates lines in order; blank lines stay blank.

Reads --input or standard input, writes --output or standard output; memory does
not grow with the number of lines. Lines whose translation was cut off at the
length limit are reported on standard error.

--format=text writes one line for each line. With --n_best, or --format=moses,
each hypothesis has a line in Moses' format: sentence number from 0 |||
translation ||| log-probability ||| score. --format=json writes for each line an
object with source, text, score, log_prob, finished and, with --n_best,
alternatives.

--alignments adds ||| and the hard alignment to each line, as source-target
token numbers from 0 as in 0-0 1-2; in JSON also the tokens, their byte offsets,
and the soft alignment: a row for each target token and a column for each source
token, both including the end symbol.

Where ||| separates fields, one in a translation is &#124;&#124;&#124;, as in
Moses; rescore reads it so.

--prefixes names a file with a line for each line of the input: the text with
which its translation must begin, or nothing. With a model of words the last
word of a prefix is complete; with one of sub-words it may be continued.

--shard=i/n translates the i-th of n parts of --input, for jobs on several
processes or machines. Of --output=out it writes out-i-of-n; joined in the order
of their names, the n files are the translation of the whole. A file is there
only when it is complete, and then the command leaves it as it is: a job that
was killed is started again by the same command. A file that was made of other
lines, by another model or with other flags is refused.
"""

from __future__ import annotations

import os
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import Group, check_files, check_output, define_strings, require
from bahdanau_tf.flags.lines import LINES, define_batches
from bahdanau_tf.flags.model import check_model, define_model, define_search
from bahdanau_tf.flags.shards import Shard
from bahdanau_tf.system.files import checksum, found_directory

REQUIRED = ("model_dir",)
CHANGE_NO_LINE = (
    *("output", "shard", "threads", "batch_size", "window"),
    *("flagfile", "help", "traceback"),
)


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_search(flags)
    define_strings(
        flags,
        "Files",
        {
            "input": "text to translate; may be .gz",
            "prefixes": "the first words of each translation, a line each, which may be empty; "
            "may be .gz",
            "output": "file for the translations; may be .gz; it has the "
            "ending .part until it is complete",
            "shard": "i/n: the i-th of n parts of --input, from 1; --output has the ending -i-of-n",
        },
    )
    options: Group = {"flag_values": flags, "module_name": LINES}
    absl_flags.DEFINE_enum(
        "format",
        "text",
        ["text", "moses", "json"],
        "text, Moses' n-best list, or one JSON object per line",
        **options,
    )
    absl_flags.DEFINE_bool(
        "alignments",
        False,
        "whether to write the alignment of each translation",
        **options,
    )
    define_batches(flags)
    absl_flags.DEFINE_integer(
        "max_source_length",
        None,
        "longer lines, in tokens of the model, are reported on standard "
        "error; default: the length limit of its training, if known",
        lower_bound=1,
        **options,
    )
    absl_flags.DEFINE_bool(
        "split_long",
        False,
        "whether lines longer than --max_source_length are translated sentence by sentence",
        **options,
    )


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_model(flags)
    read = check_files(flags, "input", "prefixes", "dictionary")
    if flags.shard is None:
        check_output("output", flags.output, read)
        return
    shard = Shard.of(flags.shard)
    require(flags, "input", "output")
    if not os.path.isfile(flags.input):
        raise ValueError(
            f"--input is {flags.input}, wanted a file: with --shard it is read more than once"
        )
    check_output("output", shard.file(flags.output), read)


def already_done(flags: absl_flags.FlagValues) -> str | None:
    """A sentence if an earlier run has written the part of --shard.

    Raises:
        ValueError: It was made of other lines, by another model, or with other
            flags.
    """
    if flags.shard is None:
        return None
    shard = Shard.of(flags.shard)
    if not shard.is_there(flags.output):
        return None
    shard.check(flags.output, made_of(flags))
    part = shard.file(flags.output)
    return f"{part} is complete; remove it to translate this part again"


def made_of(flags: absl_flags.FlagValues) -> dict[str, object]:
    """What decides the contents of the part of --shard, by flag.

    Raises:
        ValueError: A line is not UTF-8.
    """
    shard = Shard.of(flags.shard)
    values = {n: flags[n].value for n in flags if n not in CHANGE_NO_LINE}
    for name in ("input", "prefixes"):
        if (path := flags[name].value) is not None:
            values[name] = shard.checksum(path)
    if flags.dictionary:
        values["dictionary"] = checksum(Path(flags.dictionary).read_bytes())
    values["model_dir"] = [*map(_model_checksum, flags.model_dir)]
    return values


def _model_checksum(folder: str) -> str:
    """The SHA-256 of the files of the model that is loaded from a folder."""
    best = found_directory(Path(folder, "best"))
    model = best if best.is_dir() else found_directory(folder)
    files = sorted(path for path in model.rglob("*") if path.is_file())
    parts = [f"{path.relative_to(model)} {checksum(path.read_bytes())}\n" for path in files]
    return checksum("".join(parts).encode())
