"""The committed stubs are those that the bindings generate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GENERATOR = Path(__file__).resolve().parents[3] / "python" / "bindings" / "generate_stubs.py"


def test_the_committed_stubs_are_the_generated_ones() -> None:
    run = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
