"""Selects the pairs of a large corpus most similar to those of a small one.

Pairs are scored by bilingual cross-entropy difference (Axelrod, He and Gao,
2011): n-gram models of the in-domain text against models of a random sample
of the corpus. The best --pairs are written in the order of the corpus, one
sentence per line. Files may be plain or .gz, UTF-8.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.data.selection import ORDER
from bahdanau_tf.flags.fields import Group, check_files, check_output, define_strings

_READ = {
    "source": "the corpus to select from",
    "target": "its translation",
    "in_domain_source": "text of the wanted kind",
    "in_domain_target": "its translation",
}
_WRITTEN = {
    "output_source": "file for the selected lines of --source",
    "output_target": "file for the selected lines of --target",
}
REQUIRED = (*_READ, *_WRITTEN, "pairs")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    scores = (
        "file for the score of each line of the corpus; lower is better, inf "
        "for lines that are blank on a side"
    )
    define_strings(flags, "Files", {**_READ, **_WRITTEN, "scores": scores})
    options: Group = {"flag_values": flags, "module_name": "Selection"}
    absl_flags.DEFINE_integer("pairs", None, "number of pairs to keep", **options)
    absl_flags.DEFINE_integer("order", ORDER, "length of the longest n-grams", **options)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that would otherwise be found after hours."""
    if not 1 <= flags.order <= 100:
        raise ValueError(f"--order is {flags.order}, wanted 1 to 100")
    taken = check_files(flags, *_READ)
    for name in (*_WRITTEN, "scores"):
        path = flags[name].value
        check_output(name, path, taken)
        if path is not None:
            taken.append((f"--{name}", path))
