# SPDX-License-Identifier: Apache-2.0
"""Small models and instances, the solvers that are there, and files of data."""

import os
from pathlib import Path

import gpusched as gs
import pytest

CONFIGS = [
    {"name": "t1", "gpus": {"t1": 1}, "throughput": {"w1": 1.0, "w2": 1.2}},
    {"name": "t2", "gpus": {"t2": 1}, "throughput": {"w1": 0.9, "w2": 0.9}},
    {"name": "t3", "gpus": {"t3": 1}, "throughput": {"w1": 0.3, "w2": 0.5}},
    {"name": "TP(2xt2)", "gpus": {"t2": 2}, "throughput": {"w1": 2.4, "w2": 1.5}},
]
EXAMPLE = (CONFIGS, {"w1": 80, "w2": 20}, {"t1": 4.0, "t2": 2.0, "t3": 2.0}, {"t1": 2, "t2": 2, "t3": 2}, 8)
BEST = 1450 / 51


def solvers():
    found = ["scipy"]
    try:
        import highspy  # noqa: F401

        found.append("highs")
    except ImportError:
        pass
    return found + [name for name in gs.milp.available_solvers() if name not in found]


def data(*path):
    here = Path(os.environ.get("GPUSCHED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    file = here.joinpath(*path)
    if not file.exists():
        pytest.skip(f"{file} is not here (set GPUSCHED_DATA)")
    return file


def spot_example():
    return [
        {"arrival": 0, "pods": 1, "gpus": 2, "hp": False, "checkpoints": [2, 5]},
        {"arrival": 2, "pods": 1, "gpus": 2, "hp": True, "checkpoints": [2], "max_delay": 0},
        {"arrival": 0, "pods": 1, "gpus": 1, "hp": False, "checkpoints": [1, 2]},
    ]


def cluster(tasks):
    nodes = [
        {"name": f"n{i}", "gpu_model": "A", "gpu_count": 4, "cpu_milli": 8000, "memory_mib": 100}
        for i in range(3)
    ]
    return gs.Cluster.from_json({"format": "gpusched.cluster", "version": 1, "nodes": nodes, "tasks": tasks})


