"""Python in a new process, with the modules and the PYTHONPATH of this one."""

import os
import subprocess
import sys

LONGEST = 600  # seconds until a process is killed, on a busy machine


def variables(**more: str) -> dict[str, str]:
    """The environment of a new process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **more}


def run_python(*words: object, cwd: object = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with arguments and more variables, whatever its status is."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=variables(**more),
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )


def output_of(*words: object, **more: str) -> str:
    """The output of a Python program, which must succeed."""
    done = run_python(*words, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
