"""The flags for how much is processed at once: lines, sentences, threads."""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import Group
from bahdanau_tf.options.decoding import BATCH_SIZE, WINDOW

LINES = "Lines"


def define_batches(flags: absl_flags.FlagValues) -> None:
    """Defines --window, --batch_size and --threads."""
    options: Group = {"flag_values": flags, "module_name": LINES}
    absl_flags.DEFINE_integer(
        "window",
        WINDOW,
        "number of lines read at once, to batch similar lengths; with 1 each "
        "line is answered before the next is read, as on a terminal",
        lower_bound=1,
        upper_bound=10**9,
        **options,
    )
    absl_flags.DEFINE_integer(
        "batch_size",
        BATCH_SIZE,
        "number of sentences processed at once; fewer need less memory",
        lower_bound=1,
        upper_bound=10**6,
        **options,
    )
