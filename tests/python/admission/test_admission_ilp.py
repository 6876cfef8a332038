# SPDX-License-Identifier: Apache-2.0
"""What `gs.admit` decides beside an integer program, which shares no code with its search.

The program knows final places only: who stays, moves, is evicted and placed again, or is lost, at what price.
That the moves can be made
one after the other it does not ask, so what it finds may cost less than any plan, and never less than a lower
bound that is right.
"""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import gpusched as gs
import numpy as np
import pytest

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")

INSTANCES = int(os.environ.get("GPUSCHED_ILP_INSTANCES", "40"))
"""Clusters in which the job does not fit as it is; GPUSCHED_ILP_INSTANCES=400 for the figures of
docs/admission-measurements.md.
"""


def random_case(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A cluster of 4 to 8 nodes with 10 to 30 tasks and a job that waits, and the options."""
    rng = random.Random(seed)
    size = {"gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 64_000}
    nodes = [
        {"name": f"n{n}", "gpu_model": rng.choice(["A", "A", "A", "B"]), **size}
        for n in range(rng.randint(4, 8))
    ]
    tasks: list[dict[str, Any]] = []
    target, count = rng.uniform(0.75, 1.0), rng.randint(10, 30)
    for node in nodes:
        used = 0
        while used < 8 and len(tasks) < count and rng.random() < target:
            gpus = min(rng.choice([1, 1, 2, 2, 4]), 8 - used)
            task: dict[str, Any] = {"name": f"t{len(tasks)}", "node": node["name"]}
            task |= {"gpu_count": gpus, "gpus": list(range(used, used + gpus))}
            task |= {name: rng.randint(1, 8) * 1000 * gpus for name in ("cpu_milli", "memory_mib")}
            task |= {"start_time": rng.randint(0, 9_000), "move_cost": rng.choice([1, 1, 1, 3])}
            task["priority"] = rng.choice([0, 0, 0, 20])
            task |= {"preemptible": rng.random() < 0.8, "locked": rng.random() < 0.1}
            if rng.random() < 0.2:
                task["gpu_models"] = [node["gpu_model"]]
            tasks.append(task)
            used += gpus
    pods = rng.choice([1, 1, 2, 3])
    gpus = rng.choice([4, 8, 8])
    pod = {"gpu_count": gpus, "cpu_milli": 8_000, "memory_mib": 8_000, "priority": 10}
    tasks += [{"name": f"p{p}", "job": "waits", **pod} for p in range(pods)]
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options = {"move_price_s": 0, "restart_s": 0, "loss_s": 0, "task_price_s": 1, "work": False}
    elif rng.random() < 0.3:
        options = {"move_price_s": rng.randint(1, 300), "restart_s": rng.randint(1, 600)}
        options["loss_s"] = rng.randint(600, 5_000)
    options |= {switch: False for switch in ("moves", "evictions", "replace") if rng.random() < 0.15}
    document = {"format": "gpusched.cluster", "version": 1, "now": 10_000, "nodes": nodes, "tasks": tasks}
    return document, options


def cheapest(document: dict[str, Any], options: dict[str, Any]) -> float | None:
    """The least cost of final places, in GPU-seconds; None if there are none."""
    price = {"move_price_s": 30, "restart_s": 300, "loss_s": 3600, "task_price_s": 0}
    price |= {"work": True, "moves": True, "evictions": True, "replace": True, **options}
    nodes, tasks = document["nodes"], document["tasks"]
    at = {node["name"]: n for n, node in enumerate(nodes)}
    occupied = {task["node"] for task in tasks if "node" in task}
    costs: list[float] = []
    columns: list[tuple[int, int | None]] = []  # task, node; None = lost
    for t, task in enumerate(tasks):
        gpus, home = task["gpu_count"], task.get("node")
        models = [node.get("gpu_model") for node in nodes]
        fits = [n for n, model in enumerate(models) if model in task.get("gpu_models", models)]
        if home is None:
            columns += [(t, n) for n in fits]
            costs += [0.0] * len(fits)
            continue
        columns.append((t, at[home]))
        costs.append(0.0)
        disturbed = price["task_price_s"]
        work = gpus * (document["now"] - task["start_time"]) if price["work"] else 0
        move = price["move_price_s"] * gpus * task["move_cost"] + disturbed
        if not price["moves"] or task["locked"]:
            move = np.inf
        evictable = price["evictions"] and task["preemptible"]
        evictable = evictable and not task["locked"] and task["priority"] < 10
        again = work + price["restart_s"] * gpus + disturbed if evictable and price["replace"] else np.inf
        for n in fits:
            least = min(move if nodes[n]["name"] in occupied else np.inf, again)
            if nodes[n]["name"] != home and least < np.inf:
                columns.append((t, n))
                costs.append(least)
        if evictable:
            columns.append((t, None))
            costs.append(work + price["loss_s"] * gpus + disturbed)
    rows = [i for i, (t, _) in enumerate(columns)]
    once = sparse.csr_array(
        (np.ones(len(columns)), ([t for t, _ in columns], rows)), shape=(len(tasks), len(columns))
    )
    constraints = [optimize.LinearConstraint(once, 1, 1)]
    for resource in ("gpu_count", "cpu_milli", "memory_mib"):
        placed = [(n, i, tasks[t][resource]) for i, (t, n) in enumerate(columns) if n is not None]
        used = sparse.csr_array(
            ([v for _, _, v in placed], ([n for n, _, _ in placed], [i for _, i, _ in placed])),
            shape=(len(nodes), len(columns)),
        )
        constraints.append(optimize.LinearConstraint(used, -np.inf, [node[resource] for node in nodes]))
    found = optimize.milp(
        costs,
        integrality=np.ones(len(columns)),
        bounds=optimize.Bounds(0, 1),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    assert found.status in (0, 2), found.message
    return None if found.x is None else float(np.dot(costs, np.round(found.x)))


def test_costs_are_those_of_an_integer_program() -> None:
    admitted = refused = proven = equal = asked = 0
    ratios, bounds = [], []
    for seed in itertools.count():
        document, options = random_case(seed)
        cluster = gs.Cluster.from_json(document)
        if gs.allocate(cluster, "waits").placed:
            continue
        if asked == INSTANCES:
            break
        asked += 1
        made = gs.admit(cluster, "waits", **options)
        optimum = cheapest(document, options)
        where = f"seed {seed}"
        if optimum is None:
            assert not made.admitted, where
            refused += 1
            continue
        assert made.bound is not None, where
        assert made.bound <= optimum + 1e-6, where
        if not made.admitted:
            assert not made.proven, where
            continue
        assert gs.verify.plan(cluster, made.plan).ok, where
        cost = made.cost
        assert cost >= optimum - 1e-6, where
        admitted += 1
        assert optimum > 0, where  # it does not fit as it is
        ratios.append(cost / optimum)
        bounds.append(made.bound / optimum)
        proven += made.proven
        equal += cost <= optimum + 1e-6
    print(
        f"\n{INSTANCES} clusters: {admitted} admitted, {refused} refused by both; "
        f"of those admitted {equal} cost as the program, {proven} proven,"
    )
    print(
        f"cost / optimum {np.mean(ratios):.4f} in the mean, {np.max(ratios):.2f} at most; "
        f"lower bound / optimum {np.mean(bounds):.4f}, {np.min(bounds):.2f} at least"
    )
    assert admitted > INSTANCES // 4 and refused > 0
    assert equal > len(ratios) * 3 // 4
    assert np.mean(ratios) < 1.02


def full_case(seed: int, pods: int) -> dict[str, Any]:
    """Eight nodes whose GPUs are all taken by tasks with work to lose, and pods of higher priority."""
    rng = random.Random(seed)
    size = {"gpu_count": 8, "cpu_milli": 128_000, "memory_mib": 1_048_576}
    nodes = [{"name": f"n{n}", **size} for n in range(8)]
    runs = {"move_cost": 1, "priority": 0, "preemptible": True, "locked": False}
    tasks: list[dict[str, Any]] = []
    for node in nodes:
        used = 0
        while used < 8:
            gpus = min(rng.choice([1, 1, 2, 2, 4]), 8 - used)
            task = {"name": f"t{len(tasks)}", "node": node["name"], "start_time": rng.randrange(90_000)}
            task |= {"gpu_count": gpus, "gpus": list(range(used, used + gpus))}
            tasks.append({**task, "cpu_milli": 8_000 * gpus, "memory_mib": 65_536 * gpus, **runs})
            used += gpus
    pod = {"job": "waits", "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 524_288, "priority": 10}
    tasks += [{"name": f"p{p}", **pod} for p in range(pods)]
    return {"format": "gpusched.cluster", "version": 1, "now": 100_000, "nodes": nodes, "tasks": tasks}


@pytest.mark.parametrize("pods", [1, 3])
def test_full_clusters(pods: int) -> None:
    plans, bounds = [], []
    for seed in range(max(5, INSTANCES // 10)):
        document = full_case(seed, pods)
        made = gs.admit(gs.Cluster.from_json(document), "waits")
        optimum = cheapest(document, {})
        assert made.admitted and made.bound is not None and optimum is not None, f"seed {seed}"
        assert made.bound <= optimum + 1e-6 <= made.cost + 2e-6, f"seed {seed}"
        plans.append(made.cost / optimum)
        bounds.append(made.bound / optimum)
    print(
        f"\n{len(plans)} full clusters, {pods} pods: cost / optimum {np.mean(plans):.3f}, lower bound / "
        f"optimum {np.mean(bounds):.3f}"
    )
    assert np.mean(plans) < 1.15
