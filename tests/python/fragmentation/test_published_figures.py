# SPDX-License-Identifier: Apache-2.0
"""Figures 9, 13, 14 and 16 of the ASI paper on snapshots (accounting "hp"), against a computation with numpy
on the documents alone.
"""

from __future__ import annotations

from typing import Any

import clusters
import gpusched as gs
import numpy as np
import numpy.typing as npt
import pytest
from clusters import make_node, make_task
from gpusched import cli
from messages import refuses

ASI_SHAPES = [(1, 8), (1, 12), (4, 32), (4, 48), (4, 64), (8, 64), (8, 96), (8, 128)]
MODELS = ("A", "B", "C")
Doubles = npt.NDArray[np.float64]


def random_document(seed: int) -> dict[str, Any]:
    """Nodes of 1 to 16 GPUs, some of unknown position, some without HP tasks; Standby tasks whose GPUs LP
    tasks use, or do not.
    """
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    for n in range(60):
        gpus, cores = int(rng.choice([1, 4, 8, 8, 8, 16])), int(rng.choice([32, 64, 128, 192]))
        model = str(rng.choice(MODELS))
        node = make_node(f"n{n}", gpu_model=model, gpu_count=gpus, cpu_milli=1000 * cores)
        if rng.random() < 0.8:
            node["network"] = [f"c{n % 2}", f"s{n % 6}"]
        nodes.append(node)
        order = [int(g) for g in rng.permutation(gpus)]
        idle, lent = order[:], []
        hp_cpu, lp_cpu = 1000 * cores, 0

        def add(kind: str, held: list[int], cpu: int, share: int = 1000, *, on: str = f"n{n}") -> None:
            task = {
                "name": f"t{len(tasks)}", "node": on, "gpus": held, "gpu_count": len(held), "cpu_milli": cpu,
                "memory_mib": 0,
                "priority_class": "LP" if kind == "LP" else kind.split()[0], "standby": "Standby" in kind,
            }  # fmt: skip
            tasks.append(task | ({"gpu_share_milli": share} if share < 1000 else {}))

        for kind in rng.choice(
            ["HP", "HP Standby", "HP without GPUs", "other"], size=int(rng.integers(0, 4))
        ):
            cpu = int(rng.integers(0, hp_cpu + 1)) if kind != "other" else 0
            hp_cpu -= cpu
            held = (
                []
                if kind == "HP without GPUs"
                else [idle.pop() for _ in range(min(len(idle), int(rng.integers(1, 5))))]
            )
            if kind == "HP Standby":
                lent += held
                lp_cpu += cpu  # it lends its cores as well
            if held or kind == "HP without GPUs":
                add("HP" if kind == "HP without GPUs" else str(kind), held, cpu)
            elif kind == "HP Standby":
                lp_cpu -= cpu
        lp_cpu += hp_cpu
        for _ in range(int(rng.integers(0, 4))):
            free = lent + idle
            if not free:
                break
            if rng.random() < 0.3:
                gpu, share = free[0], int(rng.choice([250, 500, 600]))
                add("LP", [gpu], 0, share)
                (lent if lent else idle).remove(gpu)
            else:
                held = free[: int(rng.integers(1, 5))]
                cpu = int(rng.integers(0, lp_cpu // 4 + 1))
                lp_cpu -= cpu
                add("LP", held, cpu)
                lent, idle = [g for g in lent if g not in held], [g for g in idle if g not in held]
    return {"format": "gpusched.cluster", "version": 1, "nodes": nodes, "tasks": tasks}


def sums(document: dict[str, Any]) -> dict[str, Doubles]:
    """By node: G, C, A, S, L, cores of HP tasks, and whether there is one."""
    names = {node["name"]: i for i, node in enumerate(document["nodes"])}
    out = {key: np.zeros(len(names)) for key in ("A", "S", "L", "hp_cores", "hp_pods")}
    out["G"] = np.array([float(node["gpu_count"]) for node in document["nodes"]])
    out["C"] = np.array([node["cpu_milli"] / 1000 for node in document["nodes"]])
    for task in document["tasks"]:
        at, gpus = names[task["node"]], task["gpu_count"] * task.get("gpu_share_milli", 1000) / 1000
        if task["priority_class"] == "LP":
            out["L"][at] += gpus
        elif task["priority_class"] == "HP":
            out["S" if task["standby"] else "A"][at] += gpus
            out["hp_cores"][at] += task["cpu_milli"] / 1000
            out["hp_pods"][at] += 1
    return out


@pytest.fixture(params=range(5), ids=lambda seed: f"seed{seed}")
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    return random_document(request.param)


def test_figure_13(document: dict[str, Any]) -> None:
    s, model = sums(document), np.array([node["gpu_model"] for node in document["nodes"]])
    idle = np.maximum(s["G"] - (s["A"] + np.maximum(s["S"] - s["L"], 0)), 0)
    cores = np.maximum(s["C"] - s["hp_cores"], 0)
    whole = np.floor(idle + 1e-9)
    table = gs.fragmentation.report(
        gs.Cluster.from_json(document), "asi", by="gpu_model", max_gpus_per_node=8, accounting="hp"
    )
    found = {(row.gpu_model, row.gpus, row.cpu_cores): row for row in table}
    assert len(found) == len(table) == 3 * 8
    for name in MODELS:
        counted = (model == name) & (s["G"] <= 8)
        for g, c in ASI_SHAPES:
            enough = counted & (cores >= c)
            row = found[name, g, c]
            assert row.fractional == pytest.approx((idle - whole)[enough & (whole >= g)].sum())
            assert row.stranded == pytest.approx(whole[enough & (whole < g)].sum())
            assert row.insufficient_cpu == pytest.approx(np.minimum(idle, g)[counted & (cores < c)].sum())
            assert row.total_idle == pytest.approx(idle[counted].sum())


@pytest.mark.parametrize(("gpus", "cores"), [(8, 12), (16, 12), (4, 0)])
def test_figure_14(document: dict[str, Any], gpus: int, cores: int) -> None:
    s = sums(document)
    network = [node.get("network") for node in document["nodes"]]
    slots = np.maximum(s["G"] - np.floor(s["A"] + s["S"] + 1e-9), 0)
    if cores:
        slots = np.minimum(slots, np.maximum(np.floor((s["C"] - s["hp_cores"]) / cores + 1e-9), 0))
    counted = (s["hp_pods"] > 0) & np.array([path is not None for path in network])
    table = gs.fragmentation.switch_slots(
        gs.Cluster.from_json(document), gpus=gpus, cores_per_gpu=cores, accounting="hp"
    )
    for row in table:
        of_model = np.array([row.gpu_model in ("*", node["gpu_model"]) for node in document["nodes"]])
        for column, level in (("across", 0), ("within", 1)):
            domains = {path[level] for path in network if path}
            jobs = 0
            for domain in domains:
                here = np.array([path is not None and path[level] == domain for path in network])
                jobs += int(slots[here & counted & of_model].sum() // gpus)
            assert row[column] == jobs, (row, column)
    assert any(row.across > 0 for row in table)


def test_figures_9_and_16(document: dict[str, Any]) -> None:
    s = sums(document)
    rest = np.maximum(s["S"] - s["L"], 0)
    hp, both = (s["A"] + rest) / s["G"], (np.minimum(s["A"] + s["L"], s["G"]) + rest) / s["G"]
    rows = {row.gpu_model: row for row in gs.fragmentation.server_ratios(gs.Cluster.from_json(document))}
    assert set(rows) == {*MODELS, "*"}
    for name, row in rows.items():
        of_model = np.array([name in ("*", node["gpu_model"]) for node in document["nodes"]])
        standby = of_model & (s["S"] > 0)
        assert (row.servers, row.standby_servers) == (of_model.sum(), standby.sum())
        assert row.hp == pytest.approx(hp[of_model].mean())
        assert row.hp_and_lp == pytest.approx(both[of_model].mean())
        used = (s["L"][standby] / s["S"][standby]).mean() if standby.any() else 0
        assert row.standby_used == pytest.approx(used)


def test_the_two_accountings_differ_if_spot_tasks_run(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One node of 8 GPUs, all of them held by an LP task: none is idle, and all are in the figure."""
    held = {"gpus": list(range(8)), "gpu_count": 8, "cpu_milli": 0}
    lp = make_task("lp", node="n", priority_class="LP", **held)
    cluster = gs.Cluster.from_json(clusters.document([make_node("n", network=["c", "s"])], [lp]))
    for accounting, idle in (("all", 0), ("hp", 8)):
        assert gs.fragmentation.report(cluster, "asi", accounting=accounting)[0].total_idle == idle
    assert gs.fragmentation.unusable_nodes(cluster, (8, 129), accounting="hp")[0].gpus == 8
    assert len(gs.fragmentation.unusable_nodes(cluster, (8, 129))) == 0
    with refuses("gpus_per_pod cannot be combined with accounting 'hp'"):
        gs.fragmentation.switch_slots(cluster, gpus_per_pod=8, accounting="hp")
    with pytest.raises(gs.InvalidInput, match="accounting: 'lp'"):
        gs.fragmentation.report(cluster, accounting="lp")  # type: ignore[arg-type]
    cluster.to_json(tmp_path / "c.json")
    for accounting, idle in (("all", 0.0), ("hp", 8.0)):
        command = f"report {tmp_path / 'c.json'} --shapes 8x129 --accounting {accounting} --csv"
        assert cli.main(command.split()) == 0
        header, row = capsys.readouterr().out.splitlines()
        assert float(dict(zip(header.split(","), row.split(",")))["total_idle"]) == idle
