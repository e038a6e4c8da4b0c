"""The text of `--help`."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import required

REPEATED = r";\s+repeat this option to specify a list of values$"
INDENT = " " * 6  # of the text of a flag
_WITHOUT_DOCSTRINGS = "`python -OO` removes parts of this help; leave -OO out to read them."


def usage(commands: Mapping[str, str]) -> str:
    """The help of the whole command; `commands` says what each subcommand does."""
    names = max(map(len, commands))
    lines = ["Attention-based recurrent translation.", ""]
    lines += [*wrapped("", "usage: bahdanau-tf COMMAND [--flag=value ...]", 7), ""]
    for name, what in commands.items():
        lines += wrapped(f"  {name:<{names}}  ", what, names + 4)
    lines += ["", *wrapped("", "bahdanau-tf COMMAND --help lists the flags of a command.")]
    return "\n".join(lines)


def help_of(name: str, what: str, module: ModuleType, flags: absl_flags.FlagValues) -> str:
    """The help of a subcommand: what it does in a few words, its module's docstring, its flags."""
    lines = [*wrapped("", f"bahdanau-tf {name}: {what}"), ""]
    lines += [*_paragraphs(module.__doc__ or _WITHOUT_DOCSTRINGS), ""]
    needed = required(module.GROUPS)
    chosen = getattr(module, "CHOSEN", ())
    for group, members in flags.flags_by_module_dict().items():
        lines.append(f"{group}:")
        for flag in members:
            lines += _usage_of(flag, flag.name in needed, flag.name in chosen)
            text = re.sub(r"^<.*?>: ", "", flag.help)  # absl's list of choices
            lines += wrapped(INDENT, re.sub(REPEATED, "", text), len(INDENT))
        lines.append("")
    return "\n".join(lines)


def _paragraphs(text: str) -> Iterator[str]:
    """Wraps paragraphs again, except indented ones."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith(" "):
            yield from paragraph.split("\n")
        else:
            yield from wrapped("", paragraph)


def _usage_of(flag: absl_flags.Flag[object], is_required: bool, is_chosen: bool) -> Iterator[str]:
    """A flag with its type and default: --units=<int>  [1000]."""
    usage, default = f"--[no]{flag.name}", "yes" if flag.default else "no"
    if not flag.boolean:
        choices = getattr(flag.parser, "enum_values", None)
        value = "|".join(choices) if choices else flag.flag_type().split()[-1]
        words: object = flag.default
        default = ",".join(words) if isinstance(words, list) else str(words)
        usage = f"--{flag.name}=<{value}>"
    if flag.default in (None, []):
        default = ""
    if is_chosen:
        default = "from the text" + (f"; recipe: {default}" if default else "")
    usage = f"  {usage}{'  (required)' * is_required}"
    if not default:
        yield usage
    elif len(usage) + len(default) < _columns() - 4:
        yield f"{usage}  [{default}]"
    else:
        yield usage
        yield from wrapped(INDENT, f"[{default}]", len(INDENT))


def wrapped(start: str, text: str, indent: int = 0, width: int | None = None) -> list[str]:
    """`text` after `start`, in lines no longer than `width`, or the terminal is wide."""
    return textwrap.wrap(
        " ".join(text.split()),  # absl and docstrings break lines themselves
        width or _columns(),
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns() -> int:
    """The width of the terminal, or that of COLUMNS; 80 if there is none."""
    return max(shutil.get_terminal_size().columns, 20)
