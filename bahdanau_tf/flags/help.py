"""The text of `--help`, as wide as the terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from absl import flags as absl_flags

REPEATED = r";\s+repeat this option to specify a list of values$"
INDENT = " " * 6  # of what follows a flag


def usage(commands: Mapping[str, str]) -> str:
    """The help of the whole command.

    Args:
        commands: What each subcommand does, by name.
    """
    names = max(map(len, commands))
    lines = [
        "Attention-based recurrent translation.",
        "",
        *_wrapped("", "usage: bahdanau-tf COMMAND [--flag=value ...]", 7),
        "",
        *(
            line
            for name, what in commands.items()
            for line in _wrapped(f"  {name:<{names}}  ", what, names + 4)
        ),
        "",
        *_wrapped("", "bahdanau-tf COMMAND --help lists the flags of a command."),
    ]
    return "\n".join(lines)


def help_of(name: str, what: str, module: ModuleType, flags: absl_flags.FlagValues) -> str:
    """The help of a subcommand.

    Args:
        name: The subcommand.
        what: What it does, in a few words.
        module: The one in `bahdanau_tf.flags`.
        flags: Its flags.
    """
    lines = [*_wrapped("", f"bahdanau-tf {name}: {what}"), ""]
    lines += [*_paragraphs(module.__doc__ or ""), ""]
    needed = required(module)
    chosen = getattr(module, "CHOSEN", ())
    for group, members in flags.flags_by_module_dict().items():
        lines.append(f"{group}:")
        for flag in members:
            lines += _usage_of(flag, flag.name in needed, flag.name in chosen)
            text = re.sub(r"^<.*?>: ", "", flag.help)  # absl's list of choices
            lines += _wrapped(INDENT, re.sub(REPEATED, "", text), len(INDENT))
        lines.append("")
    return "\n".join(lines)


def required(module: ModuleType) -> Sequence[str]:
    """Names of the flags that a subcommand needs."""
    return getattr(module, "REQUIRED", ())


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs wrapped anew; what is indented stays as it is."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith(" "):
            yield from paragraph.split("\n")
        else:
            yield from _wrapped("", paragraph)


def _usage_of(flag: absl_flags.Flag[object], is_required: bool, is_chosen: bool) -> Iterator[str]:
    """A flag with its type and default: --units=<int>  [1000]."""
    said, default = f"--[no]{flag.name}", "yes" if flag.default else "no"
    if not flag.boolean:
        choices = getattr(flag.parser, "enum_values", None)
        value = "|".join(choices) if choices else flag.flag_type().split()[-1]
        said, default = f"--{flag.name}=<{value}>", str(flag.default)
    if flag.default in (None, []):
        default = ""
    if is_chosen:
        default = "from the text" + (f"; recipe: {default}" if default else "")
    said = f"  {said}{'  (required)' * is_required}"
    if not default:
        yield said
    elif len(said) + len(default) < _columns() - 4:
        yield f"{said}  [{default}]"
    else:
        yield said
        yield from _wrapped(INDENT, f"[{default}]", len(INDENT))


def _wrapped(begin: str, text: str, indent: int = 0) -> list[str]:
    """`text` after `begin`, in lines no longer than the terminal is wide."""
    return textwrap.wrap(
        " ".join(text.split()),  # absl and docstrings break lines themselves
        _columns(),
        initial_indent=begin,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns() -> int:
    """The width of the terminal, or that of COLUMNS; 80 if there is none."""
    return max(shutil.get_terminal_size().columns, 20)
