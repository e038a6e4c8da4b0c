"""Completion of commands, flags and their values in a shell, by argcomplete.

argcomplete needs an argparse parser, so the flags, which are absl's, are added
to one. absl's own `argparse_flags` is not used: it lacks the choices of a flag
and, outside the main module, its help.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence

from absl import flags as absl_flags


def complete_if_asked(
    commands: Mapping[str, str],
    flags_of: Callable[[str], absl_flags.FlagValues],
    arguments_of: Callable[[str], Sequence[Sequence[str]]],
    choices: Mapping[str, Sequence[str]],
) -> None:
    """Answers a shell's request for completion and exits; else does nothing.

    Args:
        commands: The subcommands and their descriptions.
        flags_of: Returns the flags of a subcommand.
        arguments_of: Returns the choices of each of its other arguments.
        choices: The values of flags that are not enumerations.

    Raises:
        ImportError: argcomplete is not installed.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    parser = argparse.ArgumentParser("bahdanau-tf", add_help=False)
    subparsers = parser.add_subparsers()
    for command, text in commands.items():
        subparser = subparsers.add_parser(command, help=text, add_help=False)
        flags = flags_of(command)
        for name in flags:
            _tell(subparser, flags[name], choices.get(name))
        for place, words in enumerate(arguments_of(command)):
            subparser.add_argument(f"argument {place}", choices=words)
    argcomplete.autocomplete(parser, always_complete_options="long")


def _tell(
    parser: argparse.ArgumentParser,
    flag: absl_flags.Flag[object],
    choices: Sequence[str] | None,
) -> None:
    if flag.boolean:
        parser.add_argument(f"--{flag.name}", action="store_true")
        parser.add_argument(f"--no{flag.name}", action="store_true")
        return
    choices = getattr(flag.parser, "enum_values", None) or choices
    parser.add_argument(f"--{flag.name}", choices=choices)
