#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the moves of the paper's algorithm and of a frontier with the fewest that any plan needs.

    python benchmarks/consolidation/fewest_moves.py [--smoke] [--nodes N] [--seeds N] [--time-limit SECONDS]
                                                    [-o ROWS.jsonl]

`ipc` vacates some number of GPUs of a generated cluster. The frontier's cheapest plan with as many GPUs is
compared with it. Both are compared with a mixed-integer program of the final state (`gs.milp.consolidation`,
goal `moves`); its bound holds for every plan. Prints a row per scenario: sums of moves over the seeds,
percent fewer than `ipc`, and the number of programs solved in time. A frontier can end below `ipc`; then it
has no such plan and counts as `none`. -o writes one JSON line per cluster.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

import gpusched as gs

SCENARIOS: dict[str, dict[str, Any]] = {
    "random.80": {"layout": "random", "load": 1.0},
    "spread.80": {"layout": "spread", "load": 1.0},
    "packed.80": {"layout": "packed", "load": 1.0},
    "random.90": {"layout": "random", "load": 1.15},
    "cpu-tight": {"layout": "random", "load": 0.95, "cpu_tight": True},
}


def run(name: str, nodes: int, seed: int, points: int, time_limit: float) -> dict[str, Any]:
    cluster = gs.sim.generate_cluster(nodes=nodes, seed=seed, **SCENARIOS[name])
    paper = gs.consolidate(cluster, preset="ipc", bound_method="none").stats
    gpus, moves = int(paper["vacated_gpus"]), int(paper["relocation_cost"])
    frontier = gs.frontier(cluster, points=points, bound_method="none")
    enough = [int(p.relocation_cost) for p in frontier.points if p.vacated_gpus >= gpus]
    model = gs.milp.consolidation(cluster, form="classes", goal="moves", vacated_gpus_at_least=gpus)
    solution = model.solve(time_limit=time_limit)
    # Moves are whole numbers.
    bound = None if solution.bound is None else math.ceil(solution.bound - 1e-6)
    found = None if solution.objective is None else round(solution.objective)
    return {
        "scenario": name, "nodes": nodes, "seed": seed, "gpus": gpus, "ipc": moves,
        "frontier": min(enough, default=None), "program": found, "at_least": bound, "status": solution.status,
    }  # fmt: skip


def fewer(than: int, now: int) -> str:
    return f"{100 * (than - now) / than:.1f}" if than else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one small cluster")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--points", type=int, default=300, help="of a frontier, at most")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="per program")
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    args = parser.parse_args()
    nodes, seeds = (60, 1) if args.smoke else (args.nodes, args.seeds)
    file = open(args.output, "w", encoding="utf-8") if args.output else None  # noqa: SIM115
    print(
        "| scenario | clusters | `ipc` | frontier | program | at least | frontier fewer, % "
        "| any plan, at most, % | solved | none |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in SCENARIOS:
        rows = []
        for seed in range(1, seeds + 1):
            rows.append(run(name, nodes, seed, args.points, args.time_limit))
            if file:
                print(json.dumps(rows[-1]), file=file, flush=True)
        whole = [r for r in rows if None not in (r["frontier"], r["program"], r["at_least"])]
        ipc, frontier, program, least = (
            sum(r[k] for r in whole) for k in ("ipc", "frontier", "program", "at_least")
        )
        print(
            f"| {name} | {len(whole)} | {ipc} | {frontier} | {program} | {least} "
            f"| {fewer(ipc, frontier)} | {fewer(ipc, least)} | "
            f"{sum(r['status'] == 'optimal' for r in whole)} | {sum(r['frontier'] is None for r in rows)} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
