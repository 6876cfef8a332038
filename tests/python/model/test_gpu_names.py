# SPDX-License-Identifier: Apache-2.0
"""GPU models by short names, everywhere a caller names one."""

from __future__ import annotations

from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node
from gpusched import cli
from messages import mentions, refuses

H100, SXM, PCIE = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB"
PODS = {"count": 1, "gpu_count": 8, "cpu_milli": 1, "memory_mib": 1}
JOB = {"name": "j", "pods": [{**PODS, "gpu_models": ["h100"]}]}


@pytest.fixture(scope="module")
def cluster() -> gs.Cluster:
    models = {"h": H100, "s": SXM, "p": PCIE}
    return gs.Cluster.from_json(
        document([make_node(name, gpu_model=model) for name, model in models.items()], [])
    )


@pytest.mark.parametrize("name", [H100, "H100", "h100", "nvidia h100", "H100-80GB", "h100_80gb_hbm3"])
def test_a_goal_takes_short_names(cluster: gs.Cluster, name: str) -> None:
    goal = {"empty_nodes": 1, "gpu_model": name}
    assert gs.consolidation.goal_nodes(cluster, goal) == ["h"]
    plan = gs.consolidate(cluster, goal=goal)
    assert plan.goal == {"empty_nodes": 1, "gpu_model": H100} and plan.goal_reached
    assert gs.verify.plan(cluster, plan).ok


def test_jobs_and_tasks_take_short_names(cluster: gs.Cluster) -> None:
    assert gs.allocate(cluster, JOB).pods[0].node == "h"
    assert gs.admit(cluster, JOB).pods[0].node == "h"
    assert gs.allocate_many(cluster, [JOB]).jobs[0].pods[0].node == "h"
    assert gs.make_room(cluster, JOB) is not None
    task = {"name": "t", "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1, "gpu_models": ["a100 sxm4"]}
    assert gs.place(cluster, task)[0] == "s"
    assert gs.preempt(cluster, task).node == "s"
    added = gs.allocation.with_task(cluster, task)
    assert added.tasks["t"].gpu_models == [SXM]  # the name of the cluster


def test_ambiguous_names_list_the_models(cluster: gs.Cluster) -> None:
    for call in (
        lambda: gs.consolidate(cluster, goal={"empty_nodes": 1, "gpu_model": "a100"}),
        lambda: gs.replan(cluster, gs.consolidate(cluster), goal={"empty_nodes": 1, "gpu_model": "a100"}),
        lambda: gs.allocate(cluster, {**JOB, "pods": [{**PODS, "gpu_models": ["A100"]}]}),
        lambda: gs.preempt(
            cluster, {"name": "t", "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1, "gpu_models": ["a100"]}
        ),
    ):
        with refuses(f"one GPU model: '{PCIE}' or '{SXM}'"):
            call()


def test_unknown_names(cluster: gs.Cluster) -> None:
    with refuses(f"gpu_model 'B200' a GPU model of the cluster '{H100}'"):
        gs.consolidate(cluster, goal={"empty_nodes": 1, "gpu_model": "B200"})
    # A task may accept models of other clusters.
    job = {"name": "j", "pods": [{**PODS, "gpu_models": ["B200", "h100"]}]}
    assert gs.allocate(cluster, job).pods[0].node == "h"
    job["pods"][0]["gpu_models"] = ["B200"]
    assert mentions(gs.allocate(cluster, job).reason, "GPU model: no node takes no node has the GPU model")


def test_on_the_console(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    cluster.to_json(path)
    assert cli.main(["consolidate", path, "--goal", "empty_nodes=1,gpu_model=h100"]) == 0
    assert cli.main(["consolidate", path, "--goal", "empty_nodes=1,gpu_model=a100"]) == 2
    assert mentions(capsys.readouterr().err, f"--goal 'a100' '{PCIE}' or '{SXM}'")


def test_documents_keep_their_names(cluster: gs.Cluster) -> None:
    content = cluster.to_json()
    task = {"name": "t", "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1, "gpu_models": ["h100"]}
    read = gs.Cluster.from_json({**content, "tasks": [task]})
    assert read.to_json()["tasks"][0]["gpu_models"] == ["h100"]
    assert gs.place(read, "t") is None  # a document says exactly what it means
