# SPDX-License-Identifier: Apache-2.0
"""The quick start runs. `.ci/run notebooks` runs the notebooks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import gpusched as gs

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_the_quick_start(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    gs.sim.generate_cluster(nodes=1000, seed=4).to_json(cluster)
    command = [sys.executable, str(EXAMPLES / "quickstart.py"), str(cluster)]
    command += ["--output", str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    last = run.stdout.splitlines()[-1]
    numbers = re.fullmatch(
        r"vacated ([\d,]+) nodes / ([\d,]+) GPUs, at least ([\d.]+) % of the proven bound, plan verified",
        last,
    )
    assert numbers, last
    plan = gs.Plan.from_json(tmp_path / "out" / "plan.json")
    assert int(numbers[1].replace(",", "")) == len(plan.vacated_nodes)
    assert gs.verify.plan(gs.Cluster.from_json(cluster), plan).ok
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return
    pictures = {p.stem for p in (tmp_path / "out").glob("*.png")}
    assert pictures == {"fragmentation", "occupancy", "waves"}
