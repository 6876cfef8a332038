"""Type checkers and editors see the package as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def test_the_committed_stubs_are_the_generated_ones() -> None:
    done = run(str(ROOT / "python" / "bindings" / "generate_stubs.py"), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_match() -> None:
    pytest.importorskip("mypy")
    allowed = str(ROOT / "tests" / "python" / "stubtest_allowlist.txt")
    config = str(ROOT / "pyproject.toml")
    done = run("-m", "mypy.stubtest", "gpusched", "--allowlist", allowed, "--mypy-config-file", config)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = tmp_path / "user.py"
    source.write_text(
        "import gpusched as gs\n"
        "cluster = gs.sim.generate_cluster(nodes=10)\n"
        "plan = gs.consolidate(cluster, preset='fast')\n"
        "reveal_type(plan.moves[0].task)\n"
        "gs.consolidate(cluster, preset='nonsense')\n"
    )
    done = run("-m", "mypy", "--strict", str(source))
    assert re.search(r'Revealed type is "(builtins\.)?str"', done.stdout), done.stdout
    assert "\"Literal['nonsense']\"" in done.stdout and "Found 1 error" in done.stdout, done.stdout
