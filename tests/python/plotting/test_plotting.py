# SPDX-License-Identifier: Apache-2.0
"""Figures: what they show, and that they take and return axes."""

from __future__ import annotations

from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from gpusched import plotting  # noqa: E402
from messages import mentions, naming, refuses  # noqa: E402

HEAD = {"format": "gpusched.plan", "version": 1, "vacated_nodes": []}


@pytest.fixture(autouse=True)
def _close() -> object:
    yield None
    plt.close("all")


def test_fragmentation_bars_add_up(small: gs.Cluster, tmp_path: Path) -> None:
    report = gs.fragmentation.report(small, "asi")
    ax = report.plot()
    bars = [bar.get_height() for bar in ax.patches]
    causes = ("fractional", "stranded", "insufficient_cpu")
    assert bars == pytest.approx([value for cause in causes for value in report.column(cause)])
    assert [label.get_text() for label in ax.get_xticklabels()][0] == "1G8C"
    ax.figure.savefig(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 5000


def test_axes_are_used_and_returned(small: gs.Cluster) -> None:
    _, axes = plt.subplots(1, 4)
    assert gs.fragmentation.report(small).plot(ax=axes[0]) is axes[0]
    assert plotting.plot_fragmentation(gs.fragmentation.report(small, by="gpu_model"), axes[1]) is axes[1]
    assert plotting.plot_occupancy(small, axes[2]) is axes[2]
    assert plotting.plot_waves(gs.consolidate(small), axes[3]) is axes[3]


def test_every_gpu_has_its_state() -> None:
    nodes = [make_node(name, gpu_count=gpus) for name, gpus in (("a", 4), ("b", 4), ("c", 2))]
    nodes[0]["failed_gpus"] = [3]
    tasks = [make_task("t", node="a", gpus=[0]), make_task("l", node="a", gpus=[1], locked=True)]
    ax = plotting.plot_occupancy(gs.Cluster.from_json(document(nodes, tasks)))
    shown = ax.collections[0].get_array().reshape(4, 2).T.tolist()  # fullest first, cells sorted
    names = list(plotting.occupancy.STATES)
    assert [[names[int(cell)] for cell in node] for node in shown] == [
        ["locked", "held", "idle", "failed"],
        ["free"] * 4,
    ]


def test_large_clusters_are_sampled(small: gs.Cluster) -> None:
    ax = plotting.plot_occupancy(small, max_nodes=100)
    assert ax.collections[0].get_array().size == 800
    eights = sum(node.gpu_count == 8 for node in small.nodes)
    assert ax.get_xlabel() == f"{eights} nodes with 8 GPUs, fullest first; 100 of them shown"


def test_waves_show_all_moves(small: gs.Cluster) -> None:
    plan = gs.consolidate(small)
    assert sum(bar.get_height() for bar in plotting.plot_waves(plan).patches) == len(plan.moves)


def test_data_that_cannot_be_drawn_is_a_value_error(tiny: gs.Cluster) -> None:
    with pytest.raises(ValueError, match=naming("gpus: 5; expected the GPUs of")):
        plotting.plot_occupancy(tiny, gpus=5)
    plotting.plot_waves(gs.Plan.from_json({**HEAD, "waves": 0, "moves": []}))


def test_absurd_sizes_are_refused_and_wide_figures_fit(small: gs.Cluster) -> None:
    for options, text in (
        ({"max_nodes": 10**9}, "max_nodes 1000000000 1 20000"),
        ({"gpus": 10**5000}, "gpus: a value of type int; expected an integer from 1 to 64"),
        ({"gpus": 7}, "gpus: 7; expected the number of GPUs of a node (1, 2, 4, 8)"),
    ):
        with refuses(text):
            plotting.plot_occupancy(small, **options)
    move = {"task": "t", "from": "a", "to": "b", "gpus": [], "wave": 3}
    with refuses("plan.waves 4000000000 0 10000"):
        plotting.plot_waves(gs.Plan.from_json({**HEAD, "waves": 4 * 10**9, "moves": []}))
    with refuses("plan.moves: task 't': wave: 3; expected less than 2"):
        plotting.plot_waves(gs.Plan.from_json({**HEAD, "waves": 2, "moves": [move]}))
    with refuses("report: 0 rows"):
        plotting.plot_fragmentation(gs.fragmentation.Report(("gpus",), []))
    nodes = [make_node(f"n{i}", gpu_model=f"model {i}") for i in range(700)]
    report = gs.fragmentation.report(gs.Cluster.from_json(document(nodes, [])), [(1, 8)], by="gpu_model")
    figure = report.plot().figure
    assert max(figure.get_size_inches()) * 200 < 2**16  # as many pixels as a picture may have


def on_two_sockets() -> gs.Cluster:
    """One machine of two sockets with four GPUs each, and one of unknown hardware."""
    nodes = [
        make_node("m", hardware="a100x8", failed_gpus=[7], network=["c", "s0"]),
        make_node("u", gpu_count=4, network=["c", "s1"]),
    ]
    tasks = [
        make_task("near", node="m", gpus=[0, 1], gpu_count=2, job="one"),
        make_task("gap", node="m", gpus=[2, 4], gpu_count=2, job="two"),
        make_task("part", node="m", gpus=[5], gpu_share_milli=500),
        make_task("all", node="u", gpus=[0, 1, 3], gpu_count=3, job="two"),
        make_task("waits", gpu_count=8),
    ]
    return gs.Cluster.from_json(document(nodes, tasks))


def test_gpus_of_a_task_are_linked() -> None:
    ax = plotting.plot_gpus(on_two_sockets())
    *lines, points = ax.collections
    drawn = {
        (tuple(line.get_colors()[0]), line.get_linestyle()[0][1] is None): sorted(
            (tuple(way[0]), tuple(way[-1])) for way in line.get_segments()
        )
        for line in lines
    }
    grey, red = (matplotlib.colors.to_rgba(c) for c in ("#4d4d4d", plotting.allocation.CROSSING))
    assert drawn == {
        (grey, True): [((0, 0), (0, 1)), ((1, 0), (1, 1))],
        (grey, False): [((1, 1), (1, 3))],
        (red, False): [((0, 2), (0, 4))],
    }
    shown = {
        tuple(at): matplotlib.colors.to_hex(c) for at, c in zip(points.get_offsets(), points.get_facecolors())
    }
    sizes = plotting.allocation.SIZES
    two, part = sizes[2].lower(), plotting.allocation.SHARED.lower()
    assert [shown[0, g] for g in (0, 4, 5, 6, 7)] == [two, two, part, "#ffffff", "#000000"]
    assert len(shown) == 12 and shown[1, 3] == plotting.allocation.OTHER.lower()
    assert mentions(ax.get_xlabel(), "2 nodes; of 3 tasks with several GPUs")
    # Dotted lines of one node take different ways.
    nodes = [make_node("m")]
    tasks = [make_task(f"t{g}", node="m", gpus=[g, g + 4], gpu_count=2) for g in range(4)]
    ways = plotting.plot_gpus(gs.Cluster.from_json(document(nodes, tasks))).collections[0].get_segments()
    assert len({way[1][0] for way in ways}) == 4


def test_nodes_of_gpus_are_chosen_and_sampled(small: gs.Cluster) -> None:
    cluster = on_two_sockets()
    ax = plotting.plot_gpus(cluster, nodes=["u", "m"], level="numa", title="x")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["u", "m"]
    assert plotting.plot_gpus(small, max_nodes=10).get_xlabel().startswith("10 of ")
    for options, text in (
        ({"nodes": []}, "nodes: none; expected at least one"),
        ({"nodes": "u"}, "nodes: 'u'; expected a list of names"),
        ({"level": "rack"}, "level 'rack' 'socket' 'numa'"),
        ({"max_nodes": 0}, "max_nodes 0 1 2000"),
    ):
        with refuses(text):
            plotting.plot_gpus(cluster, **options)
    with refuses("nodes: none has GPUs"):
        plotting.plot_gpus(gs.Cluster.from_json(document([make_node("c", gpu_count=0, gpu_model=None)], [])))


def test_jobs_over_switches_add_up(small: gs.Cluster) -> None:
    cluster = on_two_sockets()
    ax = plotting.plot_switches(cluster)
    bars = {
        box.get_label(): [(round(bar.get_x() + 0.4), bar.get_y(), bar.get_height()) for bar in box]
        for box in ax.containers
    }
    # The switch with most of the coloured job comes first.
    assert [label.get_text() for label in ax.get_xticklabels()] == ["s1", "s0"]
    assert bars == {
        "two: 5 GPUs over 2, entropy 0.67": [(0, 0, 3), (1, 0, 2)],
        "jobs within one, single tasks": [(0, 3, 0), (1, 2, 2.5)],
        "failed": [(0, 3, 0), (1, 4.5, 1)],
        "idle": [(0, 3, 1), (1, 5.5, 2.5)],
    }
    assert ax.get_xlabel() == "2 switches"
    assert round(gs.fragmentation.job_entropy(cluster, "two"), 2) == 0.67
    ax = plotting.plot_switches(cluster, level="node", jobs=["one"])
    assert ax.get_xlabel() == "2 nodes" and ax.containers[0].get_label() == "one: 2 GPUs over 1, entropy 0.00"
    boxes = plotting.plot_switches(small, max_domains=2000).containers
    assert sum(bar.get_height() for box in boxes for bar in box) == small.nodes.gpu_count.sum()
    for options, text in (
        ({"jobs": ["no such"]}, "jobs: 'no such'; expected jobs of the cluster"),
        ({"jobs": "one"}, "jobs: 'one'; expected a list of names"),
        ({"jobs": []}, "len(jobs) 0 1 16"),
        ({"level": 2}, "level 2 0 1"),
    ):
        with refuses(text):
            plotting.plot_switches(cluster, **options)


def test_dollars_in_names_are_no_formulas(tmp_path: Path) -> None:
    name = "$\\foo$"
    nodes = [make_node(f"{name}{i}", gpu_model=name, network=["c", f"{name}{i}"]) for i in range(2)]
    tasks = [make_task(f"t{i}", node=f"{name}{i}", gpus=[0], job=name) for i in range(2)]
    cluster = gs.Cluster.from_json(document(nodes, tasks, jobs=[{"name": name}]))
    report = gs.fragmentation.report(cluster, [(1, 8)], by="gpu_model")
    for draw in (
        lambda: plotting.plot_occupancy(cluster),
        lambda: plotting.plot_gpus(cluster),
        lambda: plotting.plot_switches(cluster),
        lambda: plotting.plot_fragmentation(report),
    ):
        draw().figure.savefig(tmp_path / "figure.png")
        plt.close("all")


def test_wrong_types_and_names_are_reported(tiny: gs.Cluster) -> None:
    for call, told in (
        (lambda: plotting.plot_gpus(3), "plot_gpus() cluster 3 Cluster"),
        (lambda: plotting.plot_waves(3), "plot_waves() plan 3 Plan"),
        (lambda: plotting.plot_fragmentation(3), "plot_fragmentation() report 3 Report"),
        (lambda: plotting.plot_assignment(3), "plot_assignment() plan 3 ServingPlan"),
        (lambda: plotting.plot_switches(tiny, level="node", jobs=3), "jobs: 3; expected a list of names"),
        (lambda: plotting.plot_control(None, {}), "log: None; expected the text of an audit log"),
    ):
        with pytest.raises(gs.errors.InvalidType) as raised:
            call()
        assert mentions(str(raised.value), told)
    with refuses("no node is named 'node-1'"):
        plotting.plot_gpus(tiny, nodes=["node-1"])
    for log in ("audit.jsonl", "3", '{"observation": {}}'):
        with refuses("log: expected the text of an audit log"):
            plotting.plot_control(log, {})
