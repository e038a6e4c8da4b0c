"""The command `bahdanau-tf`, also as `python -m bahdanau_tf`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command; Ctrl-C ends it quietly also while it is imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a job may ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bahdanau_tf import cli

    signal.signal(signal.SIGINT, before)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
