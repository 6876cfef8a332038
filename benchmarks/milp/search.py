#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares binary search on the makespan (Algorithm 1) with solving the serving plan directly.

    python benchmarks/milp/search.py [--smoke] [--solver highs,cbc] [--methods copies,rates,...] [--seeds N]
                                     [--time-limit SECONDS] [-o ROWS.jsonl]

Every method stops when it has proved to be within 1 % of the best plan, or at the time limit. The methods:

- `copies`: E1, one binary per copy;
- `mccormick`: E3, the product of copies and makespan as linear rows;
- `rates`: E4, the default;
- `search`: Algorithm 1, greedy check first, then E2;
- `search_milp`: Algorithm 1 without the greedy check.

Prints one JSON line per instance and solver. Per size it prints the median time of each method, how often it
proved its plan in time, and how much longer its makespan is than the best known one (mean and largest).

The instances are random and grow: N GPU types with random prices, M models with nine workloads, replicas of
1, 2, 4 or 8 GPUs of one type. Throughputs are proportional to the price times a random factor of 0.4 to 1.4
per workload; the budget pays for half of all GPUs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from gpusched import milp

SIZES = ((2, 1, 16), (3, 1, 48), (6, 2, 96), (12, 4, 240), (12, 8, 500))  # GPU types, models, GPUs
METHODS: dict[str, dict[str, Any]] = {
    "copies": {"form": "copies"},
    "mccormick": {"form": "mccormick"},
    "rates": {"form": "rates"},
    "search": {"method": "binary_search"},
    "search_milp": {"method": "binary_search", "greedy_first": False},
}


def instance(types: int, models: int, gpus: int, seed: int) -> tuple[Any, ...]:
    rng = random.Random(seed)
    prices = {f"g{n}": 0.5 + 4 * rng.random() for n in range(types)}
    workloads = {f"m{m}": {f"w{w}": float(rng.randint(50, 500)) for w in range(9)} for m in range(models)}
    configs = [
        {
            "name": f"m{m}.g{n}x{tp}", "model": f"m{m}", "gpus": {f"g{n}": tp},
            "throughput": {
                f"w{w}": prices[f"g{n}"] * tp * (0.9 - 0.03 * tp) * (0.4 + rng.random()) for w in range(9)
            },
        }
        for m in range(models) for n in range(types) for tp in (1, 2, 4, 8)
    ]  # fmt: skip
    available = dict.fromkeys(prices, gpus // types)
    budget = 0.5 * sum(prices[n] * available[n] for n in prices)
    return configs, workloads, prices, available, budget


def run(
    size: tuple[int, int, int], seed: int, solver: str, methods: Sequence[str], time_limit: float
) -> dict[str, Any]:
    problem = instance(*size, seed)
    row: dict[str, Any] = {
        "types": size[0],
        "models": size[1],
        "gpus": size[2],
        "seed": seed,
        "solver": solver,
    }
    for name in methods:
        start = time.perf_counter()
        plan = milp.solve_serving_plan(
            *problem, **METHODS[name], tolerance=0.01, mip_gap=0.01, time_limit=time_limit, solver=solver
        )
        row[name] = {
            "seconds": time.perf_counter() - start, "makespan": plan.makespan, "bound": plan.bound,
            "status": plan.status, "proved": plan.optimal, "calls": plan.solver_calls,
        }  # fmt: skip
    known = [row[name]["makespan"] for name in methods if row[name]["makespan"]]
    bound = max(row[name]["bound"] or 0.0 for name in methods)
    for name in methods:
        makespan = row[name]["makespan"]
        row[name]["off"] = makespan / min(known) - 1 if makespan else None
    row["best_off_bound"] = min(known) / bound - 1 if known and bound else None
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one small instance")
    parser.add_argument(
        "--solver", default=None, help="comma-separated (default: highspy, and those built in)"
    )
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated (all of them)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="number of sizes, from the smallest")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="per method")
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    args = parser.parse_args()
    installed = ["highs"] if importlib.util.find_spec("highspy") else []
    methods = args.methods.split(",")
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"--methods: {', '.join(unknown)}; expected some of {', '.join(METHODS)}")
    solvers = args.solver.split(",") if args.solver else [*installed, *milp.available_solvers()] or ["auto"]
    sizes, seeds = (SIZES[:1], 1) if args.smoke else (SIZES[: args.sizes], args.seeds)
    file = open(args.output, "w", encoding="utf-8") if args.output else None  # noqa: SIM115
    for solver in solvers:
        for size in sizes:
            rows = []
            for seed in range(seeds):
                rows.append(run(size, seed, solver, methods, args.time_limit))
                if file:
                    print(json.dumps(rows[-1]), file=file, flush=True)
            off_bound = 100 * statistics.mean(r["best_off_bound"] for r in rows)
            print(f"{solver}, {size[0]} types, {size[1]} models, {size[2]} GPUs, {len(rows)} instances; "
                  f"best known {off_bound:.2f} % off the best bound")  # fmt: skip
            for name in methods:
                of = [r[name] for r in rows]
                off = [r["off"] for r in of if r["off"] is not None]
                seconds = [r["seconds"] for r in of]
                proved = sum(r["proved"] for r in of)
                print(f"  {name:<12} median {statistics.median(seconds):7.2f} s  "
                      f"mean {statistics.mean(seconds):7.2f} s  proved {proved:>2}  "
                      f"off the best known: mean {100 * statistics.mean(off):5.2f} %, "
                      f"most {100 * max(off):5.2f} %", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
