#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the Python package, and how the time of its main calls grows with the cluster.

    python benchmarks/package/scaling.py [--nodes 1000,4000,10000,40000] [--threads 1,2] [--runs N]
                                         [-o ROWS.jsonl] [--smoke]

First it prints the size of the extension module and the time to import the package, minus that of an
interpreter that imports nothing (median and range). Then it prints a table of milliseconds per call, the
median of N runs (default 5), by nodes and threads; calls without threads have only the first column of each
size. Clusters are `generate_cluster(nodes=N, seed=1)`. -o writes one JSON line per cell, with all runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpusched as gs


def seconds_of(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def show_package(runs: int) -> None:
    module = Path(sys.modules["gpusched._core"].__file__ or "")
    print(f"extension module: {module.stat().st_size / 2**20:.1f} MiB")
    seconds_of("import gpusched")  # warms the file cache
    nothing = statistics.median(seconds_of("pass") for _ in range(runs))
    times = sorted(1e3 * (seconds_of("import gpusched") - nothing) for _ in range(runs))
    print(
        f"import gpusched: {statistics.median(times):.0f} ms ({times[0]:.0f} to {times[-1]:.0f}) "
        f"over the {1e3 * nothing:.0f} ms of an interpreter"
    )


def calls(cluster: gs.Cluster) -> dict[str, tuple[bool, Callable[..., Any]]]:
    """Name -> (whether it takes threads, the call)."""
    shapes = [(1, 8), (4, 48), (8, 128)]
    plan = gs.consolidate(cluster, preset="fast", threads=1)
    document = cluster.to_json()
    job = {
        "name": "new",
        "pods": [{"count": 4, "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 65_536}],
    }
    pod = {"name": "pod", "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 65_536, "priority": 10**9}
    return {
        "Cluster.from_json": (False, lambda: gs.Cluster.from_json(document)),
        "Cluster.to_json": (False, cluster.to_json),
        "fragmentation.report": (False, lambda: gs.fragmentation.report(cluster, shapes=shapes)),
        "consolidate, fast": (True, lambda threads: gs.consolidate(cluster, preset="fast", threads=threads)),
        "consolidate, best": (True, lambda threads: gs.consolidate(cluster, preset="best", threads=threads)),
        "consolidate, ipc": (True, lambda threads: gs.consolidate(cluster, preset="ipc", threads=threads)),
        "verify.plan": (False, lambda: gs.verify.plan(cluster, plan)),
        "apply": (False, lambda: gs.apply(cluster, plan)),
        "place": (False, lambda: gs.place(cluster, pod)),
        "allocate, 4 pods of 8 GPUs": (False, lambda: gs.allocate(cluster, job)),
        "preempt": (False, lambda: gs.preempt(cluster, pod)),
    }


def milliseconds(call: Callable[..., Any], runs: int, *arguments: int) -> list[float]:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call(*arguments)
        times.append(1e3 * (time.perf_counter() - start))
    return times


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=numbers, default=[1000, 4000, 10000, 40000])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.nodes, args.runs = [300], 1
    show_package(args.runs)
    cells: dict[tuple[str, int], dict[int, list[float]]] = {}
    for nodes in args.nodes:
        cluster = gs.sim.generate_cluster(nodes=nodes, seed=1)
        for name, (threaded, call) in calls(cluster).items():
            for threads in args.threads if threaded else args.threads[:1]:
                times = milliseconds(call, args.runs, *([threads] if threaded else []))
                cells.setdefault((name, threads), {})[nodes] = times
                if args.output:
                    row = {"call": name, "nodes": nodes, "threads": threads, "ms": times}
                    with open(args.output, "a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")
    print(f"{'median ms':<30}{'threads':>8}" + "".join(f"{nodes:>10,}" for nodes in args.nodes))
    for (name, threads), by_nodes in cells.items():
        print(
            f"{name:<30}{threads:>8}"
            + "".join(f"{statistics.median(by_nodes[nodes]):>10.3g}" for nodes in args.nodes)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
