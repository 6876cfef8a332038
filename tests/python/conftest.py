# SPDX-License-Identifier: Apache-2.0
"""Small clusters that can be checked by hand, and a generated one."""

from __future__ import annotations

import os
from pathlib import Path

import gpusched as gs
import pytest
from clusters import tiny_document
from solvers import needs_solver


@pytest.fixture
def solver() -> None:
    needs_solver()


@pytest.fixture
def tiny() -> gs.Cluster:
    return gs.Cluster.from_json(tiny_document())


@pytest.fixture(scope="session")
def small() -> gs.Cluster:
    return gs.sim.generate_cluster(nodes=400, seed=3)


@pytest.fixture(scope="session")
def large() -> gs.Cluster:
    return gs.sim.generate_cluster(seed=0)


@pytest.fixture(scope="session")
def openb() -> Path:
    """Alibaba's openb lists, which are not part of the repository."""
    root = os.environ.get("GPUSCHED_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(root) / "alibaba-gpu-v2023"
    if not (folder / "openb_node_list_all_node.csv").exists():
        pytest.skip(
            f"no openb lists in {folder}: set GPUSCHED_DATA to the folder that holds alibaba-gpu-v2023"
        )
    return folder


@pytest.fixture
def cluster_file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    gs.sim.generate_cluster(nodes=200, seed=2).to_json(path)
    return str(path)
