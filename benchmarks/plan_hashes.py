#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that consolidation makes the same plans as before, by the hashes in plan_hashes.csv.

    benchmarks/plan_hashes.py [BUILD]             names each plan that differs; then the exit status is 1
    benchmarks/plan_hashes.py [BUILD] --quick     only clusters of 2,000 nodes, one seed of each case
    benchmarks/plan_hashes.py [BUILD] --write     writes plan_hashes.csv after an intended change of the plans

BUILD (default: build/release) must hold bench_consolidation_quality and bench_consolidation_clear. Each row
of the file is one plan. It has the scenario, nodes and seed of the cluster, the algorithm, the number of
nodes to clear (empty if none were given), and the hash. Plans do not depend on the compiler or the number of
threads, so one file serves all builds. All cases take about 8 minutes of one processor, the quick ones some
seconds.
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "benchmarks" / "plan_hashes.csv"
COLUMNS = ("scenario", "nodes", "seed", "algorithm", "clear", "plan_hash")
QUICK_NODES = 2000

BASIC = ("random.80", "spread.80", "spread.68", "packed.80", "random.90", "cpu-tight")
PRESETS = ("ipc", "fast", "best")
BASELINES = ("first_fit", "random_eviction", "highest_utilisation")
VARIANTS = ("ipc_without_memory",)

# Program, nodes, seeds, scenarios, algorithms, and how many nodes to clear.
CASES = (
    ("quality", 2000, range(1, 6), (*BASIC, "constrained.80"), (*BASELINES, *PRESETS, *VARIANTS), ()),
    ("quality", 37707, range(1, 21), BASIC, PRESETS, ()),
    ("clear", 2000, range(301, 321), (*BASIC, "constrained.80"), PRESETS, (50, 100, 150, 200)),
    ("clear", 10000, (301,), ("random.80", "spread.80", "packed.80"), PRESETS, (50, 200, 500, 1000)),
    ("clear", 37707, (301,), ("random.80", "spread.80", "packed.80"), PRESETS, (50, 200, 500, 1000)),
)


def separated(values):
    return ",".join(map(str, values))


def run_case(build, program, nodes, seeds, scenarios, algorithms, clear):
    """Hashes of the plans of one case, by all other columns."""
    command = [build / "benchmarks" / f"bench_consolidation_{program}", "--no-lp", "--threads", "1"]
    command += ["--nodes", str(nodes), "--seeds", separated(seeds), "--scenarios", separated(scenarios)]
    if program == "quality":
        command += ["--algorithms", separated(algorithms)]
    else:
        command += ["--presets", separated(algorithms), "--clear", separated(clear), "--repeats", "1"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    hashes = {}
    for row in map(json.loads, lines):
        algorithm = row.get("algorithm", row.get("preset"))
        key = (row["scenario"], str(nodes), str(row["seed"]), algorithm, str(row.get("clear", "")))
        hashes[key] = row["plan_hash"]
    return hashes


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {
            tuple(row[column] for column in COLUMNS[:-1]): row["plan_hash"] for row in csv.DictReader(file)
        }


def write(path, hashes):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*key, value) for key, value in hashes.items())


def differences(expected, found, is_complete):
    """One line for each plan that differs. An expected plan may be missing unless the run is complete."""
    lines = []
    for key in {**expected, **found}:
        name = ", ".join(f"{column} {value}" for column, value in zip(COLUMNS, key) if value)
        if key not in expected:
            lines.append(f"not in {FILE.name}: {name}")
        elif key not in found:
            if is_complete:
                lines.append(f"no such run: {name}")
        elif expected[key] != found[key]:
            lines.append(f"differs: {name}: {found[key]}, expected {expected[key]}")
    return lines


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build" / "release")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_true", help="only small clusters, one seed of each case")
    mode.add_argument("--write", action="store_true", help=f"write {FILE.name} instead of comparing with it")
    args = parser.parse_args(arguments)
    found = {}
    for program, nodes, seeds, scenarios, algorithms, clear in CASES:
        if args.quick:
            if nodes > QUICK_NODES:
                continue
            seeds = seeds[:1]
        found |= run_case(args.build, program, nodes, seeds, scenarios, algorithms, clear)
    if args.write:
        write(FILE, found)
        print(f"{len(found)} plans written to {FILE.relative_to(ROOT)}")
        return 0
    lines = differences(read(FILE), found, is_complete=not args.quick)
    for line in lines:
        print(line)
    print(f"{len(found)} plans compared, {len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
