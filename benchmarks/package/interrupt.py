#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast Ctrl-C ends a long call: milliseconds from the signal to the KeyboardInterrupt.

    python benchmarks/package/interrupt.py [--tries N] [-o ROWS.jsonl] [--smoke]

Every try is a new process, interrupted at a random moment of its call. Prints median and largest of N tries
(default 20) per call.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import statistics
import subprocess
import sys
import time

PACKED = "c = gs.sim.generate_cluster(layout='packed', seed=1)"
# Two pools: most of the time one thread searches and the calling thread waits for it.
TWO_POOLS = """
nodes = [{"name": f"a{i}", "gpu_model": "A", "gpu_count": 1, "cpu_milli": 1000, "memory_mib": 10}
         for i in range(40)]
nodes += [{"name": f"b{i}", "gpu_model": "B", "gpu_count": 2, "cpu_milli": 10**7, "memory_mib": 10**7}
          for i in range(400)]
tasks = [{"name": f"t{i}-{j}", "gpu_models": ["B"], "cpu_milli": 2 * i + j, "memory_mib": 10**6 - 2 * i - j,
          "gpu_count": 1, "node": f"b{i}", "gpus": [j]} for i in range(400) for j in range(2)]
tasks += [{"name": f"s{i}", "gpu_models": ["A"], "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1,
           "node": f"a{i}", "gpus": [0]} for i in range(40)]
c = gs.Cluster.from_json({"format": "gpusched.cluster", "version": 1, "nodes": nodes, "tasks": tasks})
"""
# 48 victims of different sizes on each node, so that the search for the best set takes 0.2 s per node.
MANY_VICTIMS = """
import random
r = random.Random(1)
numa = [{"socket": s, "cores": 100, "gpus": [4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3]} for s in (0, 1)]
nodes = [{"name": f"n{k}", "gpu_model": "A", "gpu_count": 8, "cpu_milli": 200000, "memory_mib": 10**6,
          "hardware": {"numa_nodes": numa}} for k in range(100)]
tasks = [{"name": f"t{k}-{i}", "gpu_count": 1, "gpu_share_milli": r.randint(90, 124),
          "cpu_milli": r.randint(1500, 3000), "memory_mib": r.randint(5000, 15000),
          "priority": r.randint(1, 90), "priority_class": "LP",
          "node": f"n{k}", "gpus": [i % 8]} for k in range(100) for i in range(48)]
tasks.append({"name": "p", "gpu_count": 4, "cpu_milli": 90000, "memory_mib": 400000, "priority": 100})
c = gs.Cluster.from_json({"format": "gpusched.cluster", "version": 1, "now": 1000,
                          "nodes": nodes, "tasks": tasks})
"""
# Name: (preparation, call).
CALLS = {
    "consolidate, 1 thread": (
        PACKED,
        "gs.consolidate(c, preset='best', depth=16, polish_time=60, threads=1)",
    ),
    "consolidate, 2 threads": (
        PACKED,
        "gs.consolidate(c, preset='best', depth=16, polish_time=60, threads=2)",
    ),
    "consolidate, two pools": (
        TWO_POOLS,
        "gs.consolidate(c, preset='best', depth=16, polish_time=60, threads=2)",
    ),
    "bound by LP": (PACKED, "[gs.consolidation.bound(c, 'lp') for _ in range(100)]"),
    "preempt": (MANY_VICTIMS, "gs.preempt(c, 'p', policy='imp')"),
    "generate_cluster": ("", "[gs.sim.generate_cluster(nodes=200_000) for _ in range(100)]"),
}
SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import gpusched as gs
{setup}
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
else:
    sys.exit("the call ended by itself")
"""


def milliseconds(setup: str, call: str, delay: float) -> float:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(setup=setup, call=call)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            sys.exit("the process did not start")
        time.sleep(delay)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        interrupted = process.stdout.readline()
    if not interrupted:
        sys.exit(f"{call}: ended by itself within {delay:.1f} s, or was not told of Ctrl-C")
    return 1e3 * (float(interrupted) - sent)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    rng = random.Random(1)
    print(f"{'ms from Ctrl-C to KeyboardInterrupt':<36}{'median':>8}{'largest':>9}")
    for name, (setup, call) in CALLS.items():
        tries = [
            milliseconds(setup, call, rng.uniform(0.1, 0.6)) for _ in range(1 if args.smoke else args.tries)
        ]
        print(f"{name:<36}{statistics.median(tries):>8.0f}{max(tries):>9.0f}", flush=True)
        if args.output:
            with open(args.output, "a", encoding="utf-8") as out:
                out.write(json.dumps({"call": name, "ms": tries}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
