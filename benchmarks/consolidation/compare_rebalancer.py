#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Meta's Rebalancer with `consolidate` on the same clusters: nodes, GPUs, moves and processor time.

    python benchmarks/consolidation/compare_rebalancer.py [--smoke] [--nodes N]... [--seeds N] [--time-limit
S] [--presets fast,best] [--clear N] [--peer PYTHON] [--formulations stages,free] [-o ROWS.jsonl] python
benchmarks/consolidation/compare_rebalancer.py --summary ROWS.jsonl

Rebalancer (facebook/rebalancer, OSDI '24) is a wheel for Python 3.12 and later: `pip install rebalancer`.
PYTHON is an interpreter that has it (default: $GPUSCHED_REBALANCER_PYTHON, else this one); it does not need
gpusched. Without Rebalancer the script says so and exits with 0.

Clusters come from `sim.generate_cluster` with the preset "asi", without fractions, jobs, affinities and
Standby. So both sides know every rule: a task stays among nodes of its GPU model; GPUs, cores and memory
suffice; locked tasks and daemons stay; no task moves to a node that was empty.

Formulations, each solved separately for every GPU model, with a part of the time limit in proportion to its
nodes:

- `containers`: minimise the GPUs of occupied nodes (MinimizeContainers), then movements; local search by
  single moves, ends of chains and swaps.
- `squares`: the same, with negative squares of utilisation in between. They give the search a slope when no
  single move empties a node.
- `stages`: as `squares`, but first by single moves until none helps, then by all three; each stage has the
  time limit.
- `free`: names the nodes that `consolidate` vacates (ToFree), so that Rebalancer only finds places for their
  tasks.
- `optimal` (with --clear only): as `containers`, as a mixed-integer program for the HiGHS in the wheel; a
  move costs a thousandth of a GPU.

With --clear, N nodes are drawn from those with tasks that can all leave. Both sides must empty these nodes,
and only these count; `squares` and `stages` are skipped. --summary prints means with 95 % intervals, and how
often the preset `best` vacates more GPUs (needs scipy). The rows of several calls can be joined for one
summary.

Rebalancer's assignments are not checked for an order of the moves. The plans of `consolidate` are verified.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import time
from typing import Any

NAMES = ("single", "endchain", "swap")
MOVES = {
    "single": {"singleMoveTypeSpec": {}},
    "endchain": {"singleEndChainMoveTypeSpec": {}},
    "swap": {"swapMoveTypeSpec": {}},
}
RESOURCES = ("gpu", "cpu", "memory")
FORMULATIONS = ("containers", "squares", "stages", "free")
CLEARING = ("containers", "free", "optimal")


def solve_pool(pool: dict[str, Any], formulation: str, time_limit: float) -> tuple[dict[str, str], bool]:
    """The assignment of movable tasks to nodes that Rebalancer finds, and whether the time limit ended it.

    `pool`: nodes with the capacity that fixed tasks leave, and tasks.
    """
    from rebalancer import ProblemSolver

    nodes, tasks = pool["nodes"], pool["tasks"]
    on: dict[str, list[str]] = {node: [] for node in nodes}
    for name, task in tasks.items():
        on[task["node"]].append(name)
    solver = ProblemSolver(service_name="rebalancer", service_scope="gpusched")
    solver.set_log_level("ERR")
    solver.set_object_name("task").set_container_name("node").set_assignment(on)
    for resource in RESOURCES:
        solver.add_object_dimension(resource, {name: float(task[resource]) for name, task in tasks.items()})
        # Rebalancer refuses capacities of 0. No task fits into half a unit.
        solver.add_container_dimension(
            resource, {name: max(0.5, node[resource]) for name, node in nodes.items()}
        )
        solver.add_constraint({"capacitySpec": {"name": resource, "scope": "node", "dimension": resource}})
    solver.add_object_dimension("one", dict.fromkeys(tasks, 1.0))
    solver.add_container_dimension("one", {}, default_value=1e6)
    vacatable = [name for name, node in nodes.items() if node["vacatable"]]
    if formulation == "free":
        solver.add_goal(
            {"toFreeSpec": {"name": "free", "containers": pool["to_free"], "dimension": "one"}}, tuple_pos=0
        )
    else:
        costs = {name: float(nodes[name]["weight"]) for name in vacatable}
        goal = {
            "name": "containers", "scope": "node", "dimension": "one", "containerCosts": costs,
            "filter": {"itemsWhitelist": vacatable},
        }  # fmt: skip
        solver.add_goal({"minimizeContainersSpec": goal}, tuple_pos=0)
    if formulation in ("squares", "stages"):
        solver.add_goal(
            {"minimizeSquaresSpec": {"name": "squares", "scope": "node", "dimension": "gpu"}},
            weight=-1.0,
            tuple_pos=1,
        )
    moves: dict[str, Any] = {"name": "moves", "scope": "node", "dimension": "one"}
    if formulation == "optimal":  # it minimises only the first of several objectives
        moves |= {"doNotNormalize": True, "magicScaling": False}
        solver.add_goal({"minimizeMovementSpec": moves}, weight=0.001, tuple_pos=0)
    else:
        solver.add_goal({"minimizeMovementSpec": moves}, tuple_pos=2)
    seconds = max(1, round(time_limit))
    if formulation == "optimal":
        highs = 2  # Rebalancer accepts names only for types of moves
        solver.add_solver(
            {"optimalSolverSpec": {"solverPackage": highs, "solveTime": seconds, "suppressLogs": True}}
        )
    else:
        for names in (NAMES[:1], NAMES) if formulation == "stages" else (NAMES,):
            moves_tried = [MOVES[name] for name in names]
            search = {"solveTime": seconds, "moveTypeList": moves_tried}
            solver.add_solver({"localSearchSolverSpec": search})
    found = solver.solve()
    hit_time_limit = 2
    return dict(found["assignment"]), found["solverSummaries"][-1]["endReason"] == hit_time_limit


def work() -> None:
    """The peer's side: problems on standard input, assignments on standard output."""
    request = json.load(sys.stdin)
    start = time.process_time()
    where: dict[str, str] = {}
    cut_off = 0
    for pool in request["pools"]:
        found, limited = solve_pool(pool, request["formulation"], pool["time_limit"])
        where |= found
        cut_off += limited
    json.dump({"where": where, "cut_off": cut_off, "cpu_s": time.process_time() - start}, sys.stdout)


def has_rebalancer(python: str) -> bool:
    command = [python, "-c", "import rebalancer"]
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def ask_peer(python: str, pools: list[dict[str, Any]], formulation: str) -> dict[str, Any]:
    request = json.dumps({"pools": pools, "formulation": formulation})
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, __file__, "--worker"], input=request, capture_output=True, text=True, env=environment
    )
    if done.returncode != 0:
        raise RuntimeError(f"Rebalancer failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout[done.stdout.index("{") :])


def simple_cluster(nodes: int, seed: int) -> Any:
    """A generated cluster with the rules that both sides know."""
    import gpusched as gs

    document = gs.sim.generate_cluster(preset="asi", nodes=nodes, seed=seed).to_json()
    models = {node["name"]: node.get("gpu_model", "") for node in document["nodes"]}
    tasks = []
    for task in document["tasks"]:
        if task.get("gpu_share_milli", 1000) != 1000 or task.get("node") is None:
            continue
        kept = {
            name: task[name]
            for name in ("name", "gpu_count", "cpu_milli", "memory_mib", "node", "gpus")
            if name in task
        }
        kept |= {name: True for name in ("locked", "daemon") if task.get(name)}
        if models[task["node"]]:
            kept["gpu_models"] = [models[task["node"]]]
        tasks.append(kept)
    document.pop("budgets", None)
    return gs.Cluster.from_json({**document, "tasks": tasks, "jobs": []})


def pools_of(
    cluster: Any, time_limit: float, to_free: set[str], clear: list[str] | None
) -> list[dict[str, Any]]:
    document = cluster.to_json()
    nodes = {node["name"]: node for node in document["nodes"]}
    pools: dict[str, dict[str, Any]] = {}
    occupied = {task["node"] for task in document["tasks"] if task.get("node") and not task.get("daemon")}
    for name, node in nodes.items():
        if name is None or name not in occupied:
            continue
        pool = pools.setdefault(node.get("gpu_model", ""), {"nodes": {}, "tasks": {}, "to_free": []})
        healthy = node.get("gpu_count", 0) - len(node.get("failed_gpus", []))
        pool["nodes"][name] = {
            "gpu": healthy, "cpu": node["cpu_milli"], "memory": node["memory_mib"], "weight": healthy,
            "vacatable": clear is None or name in clear,
        }  # fmt: skip
        if name in to_free:
            pool["to_free"].append(name)
    for task in document["tasks"]:
        name = task.get("node")
        if name is None or name not in occupied:
            continue
        pool = pools[nodes[name].get("gpu_model", "")]
        asks = {
            "gpu": task.get("gpu_count", 0),
            "cpu": task.get("cpu_milli", 0),
            "memory": task.get("memory_mib", 0),
        }
        if task.get("locked") or task.get("daemon"):
            for resource in RESOURCES:
                pool["nodes"][name][resource] -= asks[resource]
            pool["nodes"][name]["vacatable"] &= bool(task.get("daemon"))
        else:
            pool["tasks"][task["name"]] = {"node": name, **asks}
    # Cordoned nodes keep their tasks and take no others.
    for pool in pools.values():
        for name, node in pool["nodes"].items():
            if not nodes[name].get("schedulable", True):
                for resource in RESOURCES:
                    node[resource] = sum(t[resource] for t in pool["tasks"].values() if t["node"] == name)
    wanted = [pool for pool in pools.values() if pool["tasks"] and (clear is None or pool["to_free"])]
    total = sum(len(pool["nodes"]) for pool in wanted)
    for pool in wanted:
        pool["time_limit"] = time_limit * len(pool["nodes"]) / total
    return wanted


def count(pools: list[dict[str, Any]], where: dict[str, str]) -> dict[str, int]:
    """Counts vacated nodes, vacated GPUs and moves of an assignment. Raises if a node is over capacity."""
    found = {"nodes": 0, "gpus": 0, "moves": 0}
    for pool in pools:
        left = {name: [node[resource] for resource in RESOURCES] for name, node in pool["nodes"].items()}
        used = set()
        for name, task in pool["tasks"].items():
            to = where[name]
            used.add(to)
            found["moves"] += to != task["node"]
            for i, resource in enumerate(RESOURCES):
                left[to][i] -= task[resource]
        for name, rest in left.items():
            if min(rest) < -1e-6:
                raise RuntimeError(f"Rebalancer's assignment overfills node {name}: {rest}")
        empty = [node for name, node in pool["nodes"].items() if node["vacatable"] and name not in used]
        found["nodes"] += len(empty)
        found["gpus"] += sum(node["weight"] for node in empty)
    return found


def draw(cluster: Any, count: int, seed: int) -> list[str]:
    """Nodes to clear, from those with tasks that can all leave."""
    tasks = [task for task in cluster.to_json()["tasks"] if task.get("node") and not task.get("daemon")]
    locked = {task["node"] for task in tasks if task.get("locked")}
    nodes = sorted({task["node"] for task in tasks} - locked)
    return sorted(random.Random(seed).sample(nodes, min(count, len(nodes))))


def formulations(arguments: argparse.Namespace) -> list[str]:
    return (
        arguments.formulations.split(",")
        if arguments.formulations
        else list(CLEARING if arguments.clear else FORMULATIONS)
    )


def measure(nodes: int, seed: int, python: str, arguments: argparse.Namespace) -> dict[str, Any]:
    import gpusched as gs

    cluster = simple_cluster(nodes, seed)
    clear = draw(cluster, arguments.clear, seed) if arguments.clear else None
    row: dict[str, Any] = {"nodes": nodes, "seed": seed, "clear": len(clear) if clear else 0}
    vacated: set[str] = set()
    for preset in arguments.presets.split(","):
        start = time.process_time()
        plan = gs.consolidate(cluster, preset=preset, threads=1, bound_method="counting", clear=clear)
        cpu_s = time.process_time() - start
        report = gs.verify.plan(cluster, plan)
        if not report.ok:
            raise RuntimeError(f"the plan of {preset} does not verify: {report.violations[0]}")
        vacated = set(plan.vacated_nodes)
        row[preset] = {
            "nodes": len(vacated),
            "gpus": plan.stats["vacated_gpus"],
            "moves": len(plan.moves),
            "cpu_s": cpu_s,
        }
    row["gpus_at_most"] = gs.consolidation.bound(cluster, method="lp", clear=clear)["vacated_gpus_at_most"]
    pools = pools_of(cluster, arguments.time_limit, set(clear or vacated), clear)
    for formulation in formulations(arguments):
        start = time.monotonic()
        answer = ask_peer(python, pools, formulation)
        row[formulation] = {
            **count(pools, answer["where"]), "cpu_s": answer["cpu_s"], "s": time.monotonic() - start,
            "pools": len(pools), "cut_off": answer["cut_off"],
        }  # fmt: skip
    return row


def summarise(path: str) -> None:
    from scipy.stats import t as student

    def mean(values: list[float], digits: int) -> str:
        text = f"{statistics.fmean(values):.{digits}f}"
        if len(values) < 2:
            return text
        half = student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
        return f"{text} +- {half:.{digits}f}"

    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    columns = (
        "nodes", "to clear", "seeds", "GPUs at most", "side", "nodes vacated", "GPUs", "moves",
        "processor time, s", "pools ended by the time limit", "`best` has more GPUs", "as many", "fewer",
    )  # fmt: skip
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for nodes, clear in sorted({(row["nodes"], row["clear"]) for row in rows}):
        cluster = [row for row in rows if (row["nodes"], row["clear"]) == (nodes, clear)]
        for side in dict.fromkeys(
            name for row in cluster for name, value in row.items() if isinstance(value, dict)
        ):
            # Rows of several calls may repeat a seed for other formulations.
            group = list({row["seed"]: row for row in cluster if side in row}.values())
            at_most = statistics.fmean(row["gpus_at_most"] for row in group)
            more = [row["best"]["gpus"] - row[side]["gpus"] for row in group]
            digits = {"nodes": 1, "gpus": 1, "moves": 1, "cpu_s": 3}
            found = [mean([row[side][key] for row in group], digits[key]) for key in digits]
            cut_off, pools = (sum(row[side].get(key, 0) for row in group) for key in ("cut_off", "pools"))
            wins = [sum(x > 0 for x in more), more.count(0), sum(x < 0 for x in more)]
            cells = [nodes, clear, len(group), f"{at_most:.1f}", side, *found, f"{cut_off} of {pools}", *wins]
            print("| " + " | ".join(map(str, cells)) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--presets", default="fast,best")
    parser.add_argument(
        "--clear", type=int, default=0, help="how many nodes to clear; 0 = as many GPUs as possible"
    )
    parser.add_argument("--formulations", help="between commas; all unless given")
    parser.add_argument("--summary", metavar="ROWS.jsonl")
    parser.add_argument("--peer", default=os.environ.get("GPUSCHED_REBALANCER_PYTHON", sys.executable))
    parser.add_argument("-o", "--output")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work()
        return 0
    if arguments.summary:
        summarise(arguments.summary)
        return 0
    if not has_rebalancer(arguments.peer):
        print(
            f"SKIPPED: {arguments.peer} cannot import rebalancer, a wheel for Python 3.12 and later "
            "(pip install rebalancer); name an interpreter that has it with --peer or "
            "GPUSCHED_REBALANCER_PYTHON",
            file=sys.stderr,
        )
        return 0
    if importlib.util.find_spec("gpusched") is None:
        print("gpusched cannot be imported by this Python", file=sys.stderr)
        return 1
    sizes = arguments.nodes or ([100] if arguments.smoke else [500, 2000])
    if arguments.smoke:
        arguments.seeds, arguments.time_limit = 1, 5
    columns = (*arguments.presets.split(","), *formulations(arguments))
    print(
        "| nodes | seed | GPUs at most | "
        + " | ".join(f"{name}: nodes / GPUs / moves, s" for name in columns)
        + " |"
    )
    print("|---" * (3 + len(columns)) + "|")
    rows = []
    for nodes in sizes:
        for seed in range(arguments.seeds):
            row = measure(nodes, seed, arguments.peer, arguments)
            rows.append(row)
            cells = (row[name] for name in columns)
            text = " | ".join(f"{c['nodes']} / {c['gpus']:g} / {c['moves']}, {c['cpu_s']:.2f}" for c in cells)
            print(f"| {nodes} | {seed} | {row['gpus_at_most']:g} | {text} |", flush=True)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
