"""Where TensorFlow places a training step and a search on a machine with a GPU.

Libraries of ../shared/gpu stand in for those of a GPU: TensorFlow places and
copies as with a GPU, and nothing is computed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = ROOT.parent / "shared" / "gpu" / "fake_gpu.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "place", "most"),
    [("update", "", 8), ("greedy", "while/while/", 2), ("beam", "while/while/", 2)],
)
@pytest.mark.skipif(not LIBRARIES.exists(), reason=f"needs {LIBRARIES.name}")
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_step_is_on_the_gpu_and_copies_little_to_the_host(job, place, most, tmp_path):
    """`place` is in the names of the copies that are counted."""
    subprocess.run(
        [sys.executable, str(LIBRARIES), f"--out={tmp_path}"], check=True, capture_output=True
    )
    finished = subprocess.run(
        [sys.executable, "benchmarks/placement.py", "--size=small", f"--job={job}"],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(tmp_path),
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "PYTHONPATH": str(ROOT),
            # One after another: some operations abort on what was not computed.
            "TF_NUM_INTEROP_THREADS": "1",
        },
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    devices = re.findall(r"^(\S+): \d+ operations$", finished.stdout, re.M)
    assert devices == ["GPU:0"]
    copies = re.findall(rf"^  (\S*{place}\S*)$", finished.stdout, re.M)
    assert 0 < len(copies) <= most, finished.stdout
