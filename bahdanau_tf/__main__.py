"""The command `bahdanau-tf`, also as `python -m bahdanau_tf`."""

from __future__ import annotations

import atexit
import os
import signal
import sys


def main() -> int:
    """Runs the command; Ctrl-C ends it quietly, even during imports."""
    open_standard_streams()
    # If the output is not UTF-8, characters that it lacks become "?".
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    ending = _Ending()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a job may ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bahdanau_tf.commands import main as command

    signal.signal(signal.SIGINT, before)
    ending.status = command.main()
    return ending.status


def open_standard_streams() -> None:
    """Replaces those that were closed, as by `2>&-`, which Python has as None.

    Otherwise the next file would get their descriptor. A stream that was
    replaced has the name of the null device, by which `check_open` knows it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            # It gets the lowest free descriptor, that of the closed stream.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


class _Ending:
    """Ends the process at once after all that is registered for its end.

    Nothing is left to do then, but Python would take apart all of TensorFlow's
    modules, which takes most of a second.

    Attributes:
        status: The exit status; None if the process ends in another way.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self._end)  # as the first, so it is called last

    def _end(self) -> None:
        if self.status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)


if __name__ == "__main__":
    # `python -m` looks for modules in the current folder first, where those of
    # strangers may lie; `bahdanau-tf` does not.
    is_safe = getattr(sys.flags, "safe_path", False)  # new in Python 3.11
    if not is_safe and sys.path[0] == os.getcwd():
        del sys.path[0]
    sys.exit(main())
