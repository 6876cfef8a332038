"""Figures: what they show, and that they take and return axes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from gpusched import plotting  # noqa: E402


@pytest.fixture(autouse=True)
def _close() -> object:
    yield None
    plt.close("all")


def test_fragmentation_bars_add_up(small: gs.Cluster, tmp_path: Path) -> None:
    report = gs.fragmentation.report(small)
    ax = report.plot()
    bars = [bar.get_height() for bar in ax.patches]
    expected = [
        value for cause in ("fractional", "stranded", "insufficient_cpu") for value in report.column(cause)
    ]
    assert bars == pytest.approx(expected)
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
    nodes = [
        make_node("a", gpu_count=4, failed_gpus=[3]),
        make_node("b", gpu_count=4),
        make_node("c", gpu_count=2),
    ]
    tasks = [make_task("t", node="a", gpus=[0]), make_task("l", node="a", gpus=[1], locked=True)]
    ax = plotting.plot_occupancy(gs.Cluster.from_json(document(nodes, tasks)))
    shown = ax.collections[0].get_array().reshape(4, 2).T.tolist()  # fullest first, cells sorted
    names = list(plotting.occupancy.STATES)
    assert [[names[int(cell)] for cell in node] for node in shown] == [
        ["locked", "held", "idle", "failed"],
        ["free"] * 4,
    ]


def test_large_clusters_are_sampled(large: gs.Cluster) -> None:
    ax = plotting.plot_occupancy(large, max_nodes=100)
    assert ax.collections[0].get_array().size == 800
    assert ax.get_xlabel() == "14,300 nodes with 8 GPUs, fullest first; 100 of them shown"


def test_waves_show_all_moves(small: gs.Cluster) -> None:
    plan = gs.consolidate(small)
    assert sum(bar.get_height() for bar in plotting.plot_waves(plan).patches) == len(plan.moves)


def test_what_cannot_be_drawn_is_a_value_error(tiny: gs.Cluster) -> None:
    with pytest.raises(ValueError, match="gpus: 5; expected the GPUs of some node"):
        plotting.plot_occupancy(tiny, gpus=5)
    plotting.plot_waves(
        gs.Plan.from_json(
            {"format": "gpusched.plan", "version": 1, "waves": 0, "moves": [], "vacated_nodes": []}
        )
    )


def test_nothing_heavy_is_imported_with_the_package() -> None:
    heavy = ("matplotlib", "pandas", "tqdm", "scipy")
    script = f"import gpusched, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_absurd_sizes_are_refused_and_wide_figures_fit(small: gs.Cluster, tmp_path: Path) -> None:
    for options, text in (
        ({"max_nodes": 0}, "max_nodes: 0; expected an integer from 1 to 20000"),
        ({"max_nodes": 10**9}, "max_nodes: 1000000000; expected an integer from 1 to 20000"),
        ({"gpus": 17}, "gpus: 17; expected an integer from 1 to 16"),
        ({"gpus": 10**5000}, "gpus: a value of type int; expected an integer from 1 to 16"),
        ({"gpus": 7}, r"gpus: 7; expected the GPUs of some node \(.*8"),
    ):
        with pytest.raises(gs.InvalidInput, match=text):
            plotting.plot_occupancy(small, **options)
    head = {"format": "gpusched.plan", "version": 1, "vacated_nodes": []}
    move = {"task": "t", "from": "a", "to": "b", "gpus": [], "wave": 3}
    with pytest.raises(gs.InvalidInput, match="plan.waves: 4000000000; expected an integer from 0 to 10000"):
        plotting.plot_waves(gs.Plan.from_json({**head, "waves": 4 * 10**9, "moves": []}))
    with pytest.raises(gs.InvalidInput, match="plan.moves: task 't': wave: 3; expected less than 2"):
        plotting.plot_waves(gs.Plan.from_json({**head, "waves": 2, "moves": [move]}))
    with pytest.raises(gs.InvalidInput, match="report: 0 rows"):
        plotting.plot_fragmentation(gs.fragmentation.Report(("gpus",), []))
    nodes = [make_node(f"n{i}", gpu_model=f"model {i}") for i in range(700)]
    report = gs.fragmentation.report(gs.Cluster.from_json(document(nodes, [])), [(1, 8)], by="gpu_model")
    report.plot().figure.savefig(tmp_path / "wide.png", dpi=200)
