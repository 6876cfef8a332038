# SPDX-License-Identifier: Apache-2.0
"""Fragmentation metrics against hand computation."""

from __future__ import annotations

import math
import pickle

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from messages import refuses


@pytest.fixture
def mixed() -> gs.Cluster:
    """a: 2.5 idle GPUs, 40 idle cores. b: 8 idle GPUs, 10 idle cores. c (T4): all of 4 GPUs and 96 cores."""
    nodes = [
        make_node("a", network=["c0", "s0"]),
        make_node("b", network=["c0", "s1"]),
        make_node("c", gpu_model="T4", gpu_count=4, cpu_milli=96000, network=["c1", "s2"]),
    ]
    tasks = [
        make_task("big", node="a", gpus=[0, 1, 2, 3, 4], gpu_count=5, cpu_milli=80000),
        make_task("part", node="a", gpus=[5], gpu_share_milli=500),
        make_task("cpu", node="b", gpu_count=0, cpu_milli=118000),
    ]
    return gs.Cluster.from_json(document(nodes, tasks))


def test_causes_by_hand(mixed: gs.Cluster) -> None:
    report = gs.fragmentation.report(mixed, shapes=[(1, 8), (4, 32), (8, 128)])
    assert [
        (r.gpus, r.cpu_cores, r.fractional, r.stranded, r.insufficient_cpu, r.total_idle) for r in report
    ] == [
        (1, 8, 0.5, 0.0, 0.0, 14.5),
        (4, 32, 0.0, 2.0, 4.0, 14.5),  # a: 2 stranded; b lacks cores, 4 GPUs would do
        (8, 128, 0.0, 0.0, 14.5, 14.5),  # no node has 128 idle cores
    ]
    assert report[1].stranded_pct == pytest.approx(100 * 2 / 14.5)
    assert report[2]["insufficient_cpu_pct"] == pytest.approx(100)


def test_groups_and_filters(mixed: gs.Cluster) -> None:
    by_model = gs.fragmentation.report(mixed, [(4, 32)], by="gpu_model")
    assert by_model.columns[0] == "gpu_model"
    assert [(r.gpu_model, r.total_idle) for r in by_model] == [("A100", 10.5), ("T4", 4.0)]
    by_cluster = gs.fragmentation.report(mixed, [(4, 32)], by="cluster")
    assert [(r.cluster, r.total_idle) for r in by_cluster] == [("c0", 10.5), ("c1", 4.0)]
    assert gs.fragmentation.report(mixed, [(4, 32)], max_gpus_per_node=4)[0].total_idle == 4.0


def test_the_default_shapes_are_the_clusters_own(mixed: gs.Cluster) -> None:
    own = gs.fragmentation.own_shapes(mixed)
    assert own and gs.fragmentation.report(mixed) == gs.fragmentation.report(mixed, own)
    asked = {int(n) for n in mixed.tasks.gpu_count if n} | {int(n) for n in mixed.nodes.gpu_count if n}
    assert [gpus for gpus, _ in own] == sorted(asked)


def test_the_nodes_behind_a_figure_are_named(mixed: gs.Cluster) -> None:
    for row in gs.fragmentation.report(mixed, [(1, 8), (4, 32), (8, 128)]):
        found = gs.fragmentation.unusable_nodes(mixed, (row.gpus, row.cpu_cores))
        assert sum(r.gpus for r in found if r.cause == "stranded") == pytest.approx(row.stranded)
        assert sum(r.gpus for r in found if r.cause == "insufficient_cpu") == pytest.approx(
            row.insufficient_cpu
        )
        for r in found:
            assert r.tasks == [task.name for task in mixed.nodes[r.node].tasks]
    with pytest.raises(gs.InvalidInput, match=r"shapes\[0\]"):
        gs.fragmentation.unusable_nodes(mixed, (0, 8))


def test_the_papers_shapes_go_by_name(mixed: gs.Cluster) -> None:
    shapes = [(r.gpus, r.cpu_cores) for r in gs.fragmentation.report(mixed, "asi")]
    assert shapes == [(1, 8), (1, 12), (4, 32), (4, 48), (4, 64), (8, 64), (8, 96), (8, 128)]


def test_cores_may_be_fractions(mixed: gs.Cluster) -> None:
    row = gs.fragmentation.report(mixed, [(1, 0.5)])[0]
    assert row.cpu_cores == 0.5


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        ([(0, 8)], "gpus"),
        ([(1, -1)], "shapes"),
        ([(1,)], "shapes"),
        ("x", "shapes"),
        ([("a", 1)], "shapes"),
        ([], "shape"),
    ],
)
def test_bad_shapes_are_named(mixed: gs.Cluster, shapes: object, what: str) -> None:
    with pytest.raises(gs.InvalidInput, match=what):
        gs.fragmentation.report(mixed, shapes)  # type: ignore[arg-type]


def test_a_report_is_a_table(mixed: gs.Cluster) -> None:
    pandas = pytest.importorskip("pandas")
    report = gs.fragmentation.report(mixed, [(1, 8), (8, 128)])
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns)[:6] == "gpus cpu_cores fractional stranded insufficient_cpu total_idle".split()
    assert list(frame["total_idle"]) == [14.5, 14.5]
    assert pickle.loads(pickle.dumps(report)) == report
    assert report.to_csv().splitlines()[0].startswith("gpus,cpu_cores,fractional")
    assert str(report).splitlines()[2].split()[:2] == ["1", "8"]
    assert "<td>14.5</td>" in report._repr_html_()
    gpus, cores, *_ = report[0]
    assert (gpus, cores) == (1, 8)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = report[0].nonsense
    with pytest.raises(KeyError):
        report[0]["nonsense"]


def test_switch_slots_by_hand() -> None:
    """Two switches with 12 and 12 free GPUs: three jobs of 8 across, two within."""
    nodes = [make_node(f"n{i}", gpu_count=4, network=["c", f"s{i // 3}"]) for i in range(6)]
    rows = gs.fragmentation.switch_slots(gs.Cluster.from_json(document(nodes, [])), gpus=8, cores_per_gpu=12)
    assert [(r.gpu_model, r.across, r.within, r.loss) for r in rows] == [("A100", 3, 2, 1), ("*", 3, 2, 1)]
    assert rows[1]["across"] == 3
    assert list(rows.to_pandas().columns) == ["gpu_model", "across", "within", "loss"]


def test_largest_job(mixed: gs.Cluster) -> None:
    rows = {r.gpu_model: r for r in gs.fragmentation.largest_job(mixed, cores_per_gpu=1)}
    assert (rows["A100"].across, rows["A100"].within) == (10, 8)
    assert rows["T4"].domain == "s2"


def test_fgd_by_hand(mixed: gs.Cluster) -> None:
    """Tasks of 4 GPUs and 32 cores. a: 2.5 idle GPUs are too few; b: 8 idle, but no cores; c: satisfied."""
    shape = {"gpu_count": 4, "cpu_milli": 32000, "weight": 3}
    assert gs.fragmentation.fgd(mixed, [shape]) == pytest.approx(10.5)
    # Half of the tasks want 1 GPU and 8 cores: a loses its half GPU, b nothing.
    half = [{**shape, "weight": 0.5}, {"gpu_count": 1, "cpu_milli": 8000, "weight": 0.5}]
    assert gs.fragmentation.fgd(mixed, half) == pytest.approx((10.5 + 0.5) / 2)
    breakdown = gs.fragmentation.fgd_breakdown(mixed, [shape])
    assert breakdown["satisfied"] == pytest.approx(4)
    assert sum(breakdown.values()) == pytest.approx(14.5)


def test_workloads(small: gs.Cluster) -> None:
    workload = gs.fragmentation.typical_workload(small, coverage_percent=50)
    assert len(workload) < len(gs.fragmentation.typical_workload(small))
    assert workload.shapes[0].weight >= workload.shapes[-1].weight
    assert workload.total_weight == sum(shape.weight for shape in workload.shapes)
    assert gs.fragmentation.fgd(small, small) == gs.fragmentation.fgd(
        small, gs.fragmentation.typical_workload(small)
    )
    assert pickle.loads(pickle.dumps(workload)) == workload


def test_counts(mixed: gs.Cluster) -> None:
    counts = gs.fragmentation.occupancy(mixed)
    assert (counts.empty, counts.not_fully_occupied, counts.fully_occupied, counts.nodes) == (1, 2, 0, 3)
    ratio = gs.fragmentation.allocation_ratio(mixed)
    assert (ratio.capacity_milli, ratio.held_milli) == (20000, 5500)
    assert ratio.total == pytest.approx(0.275)
    assert gs.fragmentation.fragment_rate(mixed, gpus=4) == pytest.approx(2.5 / 14.5)


def test_entropies_of_one_job_and_of_parts() -> None:
    nodes = [make_node(f"n{i}", network=["c", f"s{i // 2}"]) for i in range(4)]
    tasks = [make_task(f"t{i}", job="j", node=f"n{i}", gpus=[0]) for i in range(4)]
    cluster = gs.Cluster.from_json(document(nodes, tasks))
    f = gs.fragmentation
    assert f.job_entropy(cluster, "j") == pytest.approx(math.log(2)) == f.entropy([3, 3])
    assert f.job_entropy(cluster, "j", level="node") == pytest.approx(math.log(4))
    assert f.job_entropy(cluster, "j", level=0) == 0 == f.entropy([]) == f.entropy([5, 0])
    assert f.job_entropies(cluster, level="node") == {"j": f.job_entropy(cluster, "j", level="node")}
    with pytest.raises(gs.InvalidInput, match="nobody"):
        f.job_entropy(cluster, "nobody")
    for parts in ([-1], [0.5], 3):
        with pytest.raises(gs.InvalidInput, match="parts"):
            f.entropy(parts)  # type: ignore[arg-type]


def test_a_level_is_node_or_an_index() -> None:
    nodes = [make_node(f"n{i}", network=["c", "s"]) for i in range(2)]
    cluster = gs.Cluster.from_json(document(nodes, []))
    f = gs.fragmentation
    assert f.switch_slots(cluster, gpus=16, level="node")[0].within == 0
    assert f.switch_slots(cluster, gpus=16, level=1)[0].within == 1
    assert f.largest_job(cluster, level="node", cores_per_gpu=1)[0].within == 8
    assert cluster.nodes.domain("node") == ["n0", "n1"] and cluster.nodes.domain(1) == ["s", "s"]
    for level in (-1, "rack", 1.5, True):
        for call in (f.switch_slots, f.largest_job, f.job_entropies):
            with pytest.raises(gs.InvalidInput, match="level"):
                call(cluster, level=level)  # type: ignore[operator]
    with refuses("level: 2; expected"):
        f.switch_slots(cluster, level=2)
