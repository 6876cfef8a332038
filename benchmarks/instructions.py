#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts instructions and allocations of the benchmarks' inner work with valgrind, undisturbed by other load.

    benchmarks/instructions.py [BUILD]                           (default: build/release)
    benchmarks/instructions.py --only preempt --json after.json
    benchmarks/instructions.py --against before.json             exit status 1 if anything takes 3 % more

Each row is one function in one short, fixed run of a benchmark program. It has the executed instructions and
the calls of operator new between entering and leaving that function, summed over all its calls. BUILD must
hold the benchmark programs, built as Release. GPUSCHED_DATA names the folder of data sets; without it,
placement is skipped.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MICRO = "bench_micro_inner_loops --benchmark_filter=^{}(/|$)"
PREEMPTION = "bench_preemption_flextopo --seeds 1 --nodes 200 --decisions 200"
CONSOLIDATION = (
    "bench_consolidation_quality --nodes 1500 --seeds 1 --scenarios {} --algorithms {} --threads 1 --no-lp"
)
ALLOCATION = "bench_allocation_switches --smoke"
MATRIX = "bench_milp_matrix --repeat 1"
PLACEMENT = "bench_placement_openb --seeds 1 --list default --placement {}"

# name: (program and arguments, function as valgrind spells it, with wildcards, functions in it that do not
# count)
ROWS = {
    "feasibility": (MICRO, "*::feasibility(benchmark::State&)"),
    "move_and_undo": (MICRO, "*::move_and_undo(benchmark::State&)"),
    "fgd_of_a_placement": (MICRO, "*::fgd_of_a_placement(benchmark::State&)"),
    "best_gpus/4": (MICRO, "*::best_gpus(benchmark::State&)"),
    "pick_gpus": (MICRO, "*::pick_gpus(benchmark::State&)"),
    "hardware_graph": (MICRO, "*::hardware_graph(benchmark::State&)"),
    "network_tree": (MICRO, "*::network_tree(benchmark::State&)"),
    "tail_model": (MICRO, "*::tail_model(benchmark::State&)"),
    "preempt_many": (MICRO, "*::preempt_many(benchmark::State&)"),
    "pack_gang": (MICRO, "*::pack_gang(benchmark::State&)"),
    "build_cluster": (CONSOLIDATION.format("random.80", "fast"), "*::Cluster::build(*"),
    "preempt": (PREEMPTION, "*::preemption::preempt(*"),
    "preempt_by_index": (
        PREEMPTION,
        "*::preemption::PreemptionIndex::decide(*",
        "*::catch_up<gpusched::*::PreemptionIndex::State>(*",
    ),
    "preempt_catch_up": (PREEMPTION, "*::catch_up<gpusched::*::PreemptionIndex::State>(*"),
    "consolidate_fast": (CONSOLIDATION.format("random.80", "fast"), "*::consolidation::consolidate(*"),
    "consolidate_best": (CONSOLIDATION.format("random.80", "best"), "*::consolidation::consolidate(*"),
    "consolidate_spread": (CONSOLIDATION.format("spread.80", "fast"), "*::consolidation::consolidate(*"),
    "allocate": (ALLOCATION, "*::allocation::detail::Gang::place() const"),
    "allocate_many": (ALLOCATION, "*::allocation::allocate_many(*"),
    "replay_fgd": (PLACEMENT.format("fgd"), "*::sim::detail::Replay::run(*"),
    "replay_expected_fill": (PLACEMENT.format("expected_fill"), "*::sim::detail::Replay::run(*"),
    "milp_activity": (MATRIX, "*::activity_by_eigen(*"),
    "milp_activity_by_hand": (MATRIX, "*::activity_by_hand(*"),
    "milp_rows": (MATRIX, "*::rows_by_eigen(*"),
    "milp_rows_by_hand": (MATRIX, "*::rows_by_hand(*"),
    "milp_evaluate": (MATRIX, "*::milp::evaluate(*"),
    "milp_to_lp": (MATRIX, "*::milp::to_lp*"),
    "milp_finish": (MATRIX, "*::milp::ModelBuilder::finish()"),
}

# Iterations of the micro benchmarks; the others have the usual number.
ITERATIONS = {"hardware_graph": 100, "network_tree": 20, "preempt_many": 100, "pack_gang": 100}
USUAL_ITERATIONS = 10_000


def count_allocations(path):
    """Calls of operator new in a file of callgrind."""
    names, total, callee = {}, 0, ""
    for line in path.read_text().splitlines():
        if found := re.match(r"cfn=\((\d+)\)(?: (.*))?", line):
            names.setdefault(found[1], found[2])
            callee = names[found[1]]
        elif found := re.match(r"fn=\((\d+)\) (.*)", line):
            names.setdefault(found[1], found[2])
        elif line.startswith("calls=") and callee.startswith("operator new(unsigned long"):
            total += int(line[6:].split()[0])
    return total


def measure(build, name):
    program, *functions = ROWS[name]
    words = program.format(name).split()
    environment = dict(os.environ, GPUSCHED_ITERATIONS=str(ITERATIONS.get(name, USUAL_ITERATIONS)))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
             *(f"--toggle-collect={function}" for function in functions),  # inner functions stop the count
             str(build / "benchmarks" / words[0]), *words[1:]],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if run.returncode == 3:
            return None  # no data
        found = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or not found or int(found[1]) == 0:
            sys.exit(f"{program}: nothing was counted in {functions[0]}\n{run.stderr}")
        return {"instructions": int(found[1]), "allocations": count_allocations(out)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="this row; may be repeated")
    parser.add_argument("--json", type=Path, help="write the counts here")
    parser.add_argument("--against", type=Path, help="counts of an earlier --json to compare with")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    counts, slower = {}, []
    print(
        f"{'':22} {'instructions':>14} {'allocations':>12}"
        + (f" {'change':>8} {'before':>12}" if before else "")
    )
    for name in arguments.only or ROWS:
        row = measure(arguments.build, name)
        if row is None:
            print(f"{name:22} skipped: no data")
            continue
        counts[name] = row
        text = f"{name:22} {row['instructions']:14,} {row['allocations']:12,}"
        if name in before:
            change = row["instructions"] / before[name]["instructions"] - 1
            text += f" {100 * change:+7.1f}% {before[name]['allocations']:12,}"
            if change > 0.03:
                slower.append(name)
        print(text, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(counts, indent=1) + "\n")
    if slower:
        sys.exit("more than 3 % slower: " + ", ".join(slower))


if __name__ == "__main__":
    main()
