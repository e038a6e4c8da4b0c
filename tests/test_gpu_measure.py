"""benchmarks/gpu_measure.py in its small form, on the processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_updates_are_measured_plain_and_compiled(tmp_path: Path) -> None:
    """The same update of the same model has the same loss both ways."""
    lines = tmp_path / "results.jsonl"
    cases = ["tiny:8:float32", "tiny:8:float32:xla", "tiny:8:no_dtype"]
    command = [sys.executable, "benchmarks/gpu_measure.py", "steps", "--seconds=0"]
    subprocess.run(
        [*command, f"--cases={','.join(cases)}", f"--output={lines}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
        check=True,
        capture_output=True,
    )
    plain, compiled, failed = map(json.loads, lines.read_text("utf-8").splitlines())
    assert [plain["case"], compiled["case"], failed["case"]] == cases
    assert compiled["first_loss"] == pytest.approx(plain["first_loss"], rel=1e-5)
    for figures in (plain, compiled):
        assert figures["words_per_second"] == pytest.approx(8 * 15 / figures["seconds"], rel=1e-3)
        assert 0 < figures["share"] < 1
    assert "no_dtype" in failed["error"]
