"""The command that `train_all` starts: a training that never outlives it.

Its standard input is a pipe that `train_all` holds open. If that process is
killed, the pipe is closed, and the training saves and stops as after SIGTERM.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def _stop_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    runpy.run_module("bahdanau_tf", run_name="__main__", alter_sys=True)
