"""Writes the best model of --model_dir, one folder, as an HTML page that translates in the browser.

It can be opened from a disk or a server, and searches with the options set here or greedily.
Nothing is sent anywhere: a policy in the page forbids connections. The model must have the paper's
attention and gated units, and sub-words, characters or symbols; each weight takes a byte.

--format=module writes a folder for a page of your own: translator.mjs, its types and model.bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.options.decoding import WITHOUT_TENSORFLOW, Decoding
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.files import check_folder


@dataclass(frozen=True)
class _Page(OptionGroup):
    output: str | None = option(
        "file for the page, such as translator.html, or folder for the module", required=True
    )
    format: Literal["html", "module"] = option("a page, or a JavaScript module", "html")


# Search has one value of some options here; others have no effect with it.
_FIXED = [name for name, values in WITHOUT_TENSORFLOW.items() if len(values) == 1]
GROUPS = (
    common.Group(common.Model, without=("average",)),
    common.Group(Decoding, "Search", without=(*_FIXED, *Decoding().unused())),
    common.Group(_Page),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags)
    if len(flags.model_dir) > 1:
        raise ValueError(f"--model_dir has {len(flags.model_dir)} folders, wanted one per page")
    common.from_flags(flags, Decoding).check_without_tensorflow("a page")
    if flags.format == "module":
        check_folder("output", flags.output)
        common.check_apart_from_models("output", flags.output)
    else:
        common.check_output("output", flags.output, ())


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    module = flags.format == "module"
    print(files.load_translator(flags).page(flags.output, module=module))
