# SPDX-License-Identifier: Apache-2.0
"""The first tables of `report`: nodes by idle GPUs, the largest jobs, pending jobs."""

from __future__ import annotations

from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from gpusched._views.summary import idle_gpus, largest_jobs, pending_jobs


@pytest.fixture
def cluster() -> gs.Cluster:
    nodes = [
        make_node("a0"),
        make_node("a1"),
        make_node("a2", schedulable=False),
        make_node("h0", gpu_model="H100", gpu_count=4, failed_gpus=[3]),
        make_node("cpu", gpu_model=None, gpu_count=0),
    ]
    tasks = [
        make_task("t0", node="a0", gpus=[0, 1, 2], gpu_count=3, cpu_milli=120_000),
        make_task("t1", node="a2", gpus=[0], gpu_count=1),
        make_task("t2", node="h0", gpus=[0], gpu_count=1, gpu_share_milli=500),
        make_task("alone", gpu_count=2, priority=7),
        *(make_task(f"j-{i}", gpu_count=4, job="j", gpu_models=["H100"], priority=9) for i in range(3)),
        make_task("j-leader", gpu_count=0, job="j", priority=9, node_selector={"zone": "x"}),
    ]
    return gs.Cluster.from_json(document(nodes, tasks))


def test_nodes_by_idle_gpus(cluster: gs.Cluster) -> None:
    table = idle_gpus(cluster)
    assert table.columns == (
        "GPU model",
        "GPUs",
        "allocated",
        "idle",
        "empty nodes",
        *(f"{n} idle" for n in (0, 2, 5, 8)),
        "cordoned",
    )
    assert [tuple(row) for row in table] == [
        ("A100", 24, "16.7 %", 13, 1, 0, 0, 1, 1, 1),  # 4 of 24 GPUs; the cordoned node has 7 more
        ("H100", 4, "12.5 %", 2, 0, 0, 1, 0, 0, 0),
        ("all", 28, "16.1 %", 15, 1, 0, 1, 1, 1, 1),
    ]


def test_nodes_that_are_not_ready_are_not_called_cordoned(
    cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = cluster.to_json()
    taint = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
    data["nodes"][1] |= {"schedulable": False, "taints": [taint]}
    table = idle_gpus(gs.Cluster.from_json(data))
    assert table.columns[-2:] == ("cordoned", "not ready")
    assert [tuple(row)[-2:] for row in table] == [(1, 1), (0, 0), (1, 1)]
    path = str(tmp_path / "cluster.json")
    gs.Cluster.from_json(data).to_json(path)
    assert cli.main(["report", path]) == 0
    said = capsys.readouterr().out
    assert "1 cordoned node, 1 node that is not ready" in said
    assert "15 idle GPUs on 2 nodes cordoned or not ready: a1, a2" in said
    assert cli.main(["what-if", path, "--uncordon", "a1"]) == 2
    assert "not ready" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(3))
def test_the_sums_are_those_of_the_library(seed: int) -> None:
    cluster = gs.sim.generate_cluster(preset="constrained", nodes=60, seed=seed)
    table = idle_gpus(cluster)
    last = table[-1]
    assert last.GPUs == cluster.nodes.gpu_count.sum()
    assert float(last.allocated.split()[0]) == pytest.approx(
        100 * gs.fragmentation.allocation_ratio(cluster).total, abs=0.1
    )
    for at, column in enumerate(table.columns[1:], 1):
        if column != "allocated":
            assert sum(row[at] for row in table[:-1]) == last[at]
    counts = sum(
        last[at]
        for at, column in enumerate(table.columns)
        if column.endswith(" idle") or column == "cordoned"
    )
    assert counts == (cluster.nodes.gpu_count > 0).sum()


def test_the_largest_job_that_could_start(cluster: gs.Cluster) -> None:
    requests = gs.fragmentation.report(cluster, shapes=[(1, 8), (2, 16), (8, 64)])
    table = largest_jobs(cluster, requests)
    # a0 has 8 cores left: one pod of 1 GPU, none of 2 GPUs. a1 is empty. h0 has two whole GPUs.
    assert [tuple(row) for row in table] == [("A100", 9, 8, 8), ("H100", 2, 2, 0)]


def test_pending_jobs_by_priority(cluster: gs.Cluster) -> None:
    rows = [tuple(row) for row in pending_jobs(cluster)]
    assert rows == [
        ("j", 3, 4, 8.0, 0.977, 9, "H100"),
        ("j", 1, 0, 8.0, 0.977, 9, "zone=x"),
        ("alone", 1, 2, 8.0, 0.977, 7, "any node"),
    ]


def test_pending_jobs_name_all_that_limits_their_nodes() -> None:
    affinity = [{"match_expressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}]
    tasks = [
        make_task("a", gpu_models=["A100"], node_selector={"zone": "x"}, memory_mib=100_000),
        make_task("b", node_affinity=affinity, memory_mib=1024 * 1024),
    ]
    content = {**document([make_node("n")], tasks), "version": 2}
    rows = pending_jobs(gs.Cluster.from_json(content))
    assert rows.column("on") == ["A100, zone=x", "node affinity"]
    assert rows.column("GiB") == [97.7, 1024]


def test_on_the_console(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    cluster.to_json(path)
    assert cli.main(["report", path]) == 0
    out = capsys.readouterr().out
    titles = [
        "Nodes by idle GPUs",
        "Largest job that could start now",
        "2 pending jobs with 5 pods",
        "Idle GPUs that a request of this size cannot use, by cause",
    ]
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    assert "128" not in out  # a size that is not asked for, and no such job could start
    assert "fractional" not in out and "stranded" not in out and "HP" not in out
    assert cli.main(["report", path, "--job-gpus", "2"]) == 0
    assert "anywhere and each under one switch" in capsys.readouterr().out
    assert cli.main(["report", path, "--include-cordoned"]) == 0
    largest = ("Largest job", "(by GPUs and cores alone")  # which never starts on a cordoned node
    with_cordoned = capsys.readouterr().out
    assert len({text.split(largest[0])[1].split(largest[1])[0] for text in (out, with_cordoned)}) == 1
    assert cli.main(["report", path, "--csv"]) == 0
    assert capsys.readouterr().out.startswith(
        "gpus,cpu_cores,fractional,stranded,"
    )  # as the library has them


@pytest.mark.parametrize(("gpus", "starts"), [(16, True), (24, False)])
def test_no_job_spans_gpu_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: int, starts: bool
) -> None:
    models = ["A100", "A100", "H100"]
    nodes = [make_node(f"n{i}", gpu_model=model, network=["c", "s"]) for i, model in enumerate(models)]
    path = str(tmp_path / "c.json")
    gs.Cluster.from_json(document(nodes, [])).to_json(path)
    assert cli.main(["report", path, "--job-gpus", str(gpus)]) == 0
    out = capsys.readouterr().out
    assert ("No job of" not in out) == starts
    assert not starts or "all " not in out[out.index("could start, anywhere") :]


def test_clusters_without_gpus_or_pending_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    gs.Cluster.from_json(document([make_node("n", gpu_model=None, gpu_count=0)], [])).to_json(path)
    assert cli.main(["report", path]) == 0
    out = capsys.readouterr().out
    assert "No pod is pending" in out and "Nodes by idle GPUs" not in out


def test_priorities_are_those_of_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "c.json")
    gs.Cluster.from_json(document([make_node("n")], [make_task("high", priority=5_000_000_000)])).to_json(
        path
    )
    assert cli.main(["report", path]) == 0
    assert "5,000,000,000" in capsys.readouterr().out
