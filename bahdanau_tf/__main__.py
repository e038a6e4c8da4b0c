"""The command `bahdanau-tf`, also as `python -m bahdanau_tf`."""

from __future__ import annotations

import atexit
import os
import signal
import sys


def main() -> int:
    """Runs the command; Ctrl-C ends it quietly, even during imports."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # One that was closed, as by `2>&-`, is None; the next file would get its descriptor.
        setattr(sys, name, getattr(sys, name) or open(os.devnull, mode))  # noqa: SIM115
    # If the output is not UTF-8, characters that it lacks become "?".
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    status: list[int] = []  # none if the process ends in another way
    atexit.register(_end_at_once, status)  # as the first, so it is called last
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a job may ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bahdanau_tf.commands import main as command

    signal.signal(signal.SIGINT, before)
    status.append(command.main())
    return status[0]


def _end_at_once(status: list[int]) -> None:
    """Ends the process after all that is registered for its end, if it has a status.

    Nothing is left to do then, but Python would take apart all of TensorFlow's
    modules, which takes most of a second.
    """
    if status:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status[0])


if __name__ == "__main__":
    # `python -m` looks for modules in the current folder first, where those of
    # strangers may lie; `bahdanau-tf` does not.
    is_safe = getattr(sys.flags, "safe_path", False)  # new in Python 3.11
    if not is_safe and sys.path[0] == os.getcwd():
        del sys.path[0]
    sys.exit(main())
