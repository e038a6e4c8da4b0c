"""The text of `--help`, and completion in a shell.

argcomplete needs an argparse parser, so the flags, which are absl's, are added to one. absl's own
`argparse_flags` is not used: it lacks the choices of a flag and, outside the main module, its help.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import required

REPEATED = r";\s+repeat this option to specify a list of values$"
INDENT = " " * 6  # of the text of a flag
_WITHOUT_DOCSTRINGS = "`python -OO` removes parts of this help; leave -OO out to read them."


def usage(commands: Mapping[str, str]) -> str:
    """The help of the whole command; `commands` says what each subcommand does."""
    names = max(map(len, commands))
    lines = [
        "Attention-based recurrent translation.",
        "",
        *wrapped("", "usage: bahdanau-tf COMMAND [--flag=value ...]", 7),
        "",
        *(
            line
            for name, what in commands.items()
            for line in wrapped(f"  {name:<{names}}  ", what, names + 4)
        ),
        "",
        *wrapped("", "bahdanau-tf COMMAND --help lists the flags of a command."),
    ]
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


def complete_if_asked(
    commands: Mapping[str, str],
    flags_of: Callable[[str], absl_flags.FlagValues],
    arguments_of: Callable[[str], Sequence[Sequence[str]]],
    choices: Mapping[str, Sequence[str]],
    models: Sequence[str],
) -> None:
    """Answers a shell's request for completion and exits; else does nothing.

    `arguments_of` returns the choices of each argument of a subcommand that is not a
    flag; `choices` has the values of flags that are not enumerations. `models` are the
    names that a command takes in place of the folder of a trained model.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete
    from argcomplete.completers import DirectoriesCompleter

    folders = DirectoriesCompleter()

    def trained(prefix: str, **_: object) -> list[str]:
        return [*(name for name in models if name.startswith(prefix)), *folders(prefix)]

    parser = argparse.ArgumentParser("bahdanau-tf", add_help=False)
    subparsers = parser.add_subparsers()
    for command, text in commands.items():
        subparser = subparsers.add_parser(command, help=text, add_help=False)
        flags = flags_of(command)
        for name in flags:
            names = [f"--{name}", f"--no{name}"] if flags[name].boolean else [f"--{name}"]
            words = getattr(flags[name].parser, "enum_values", None) or choices.get(name)
            takes: Any = {"action": "store_true"} if flags[name].boolean else {"choices": words}
            # Where there is --init_from, --model_dir is written.
            is_read = name == "init_from" or (name == "model_dir" and "init_from" not in flags)
            for flag in names:
                argument: Any = subparser.add_argument(flag, **takes)
                if is_read:
                    argument.completer = trained
        for place, words in enumerate(arguments_of(command)):
            subparser.add_argument(f"argument {place}", choices=words)
    argcomplete.autocomplete(parser, always_complete_options="long")
