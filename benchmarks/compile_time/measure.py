#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of including a header: its compile time minus that of an empty translation unit.

    benchmarks/compile_time/measure.py                          every umbrella header and every algorithm
header benchmarks/compile_time/measure.py model/model.hpp          only this one
benchmarks/compile_time/measure.py --runs 11 --json out.json benchmarks/compile_time/measure.py --standard
the standard headers of the model's interface, too

Prints minimum, median and maximum over the runs, in seconds, after subtracting the median of the empty file.
The runs of all headers are interleaved, so that a slow moment of the machine affects all of them alike. With
--check the exit status is 1 if a median is above its budget.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"

# Seconds over an empty file. The first pattern that matches a header counts.
BUDGETS = [
    ("gpusched/core/*.hpp", 1.5),  # context.hpp needs std::stop_token and std::function; the model does not
    ("gpusched/model/*.hpp", 0.8),
    ("gpusched/topology/boost_graph.hpp", None),  # Boost.Graph itself: opt-in, in no umbrella
    ("gpusched/gpusched.hpp", None),  # everything at once: reported, without a budget
    ("gpusched/*/*.hpp", 1.5),
]


# Standard headers that the interface of the model needs; every includer pays for them.
STANDARD = ["string", "vector", "optional", "map", "span", "stdexcept"]


def budget_of(header):
    for pattern, seconds in BUDGETS:
        if Path(header).match(pattern):
            return seconds
    return None


def public_headers():
    """All headers that a user may include."""
    headers = []
    for path in sorted((INCLUDE / "gpusched").rglob("*.hpp")):
        name = path.relative_to(INCLUDE).as_posix()
        if not {"impl", "detail"} & set(name.split("/")):
            headers.append(name)
    return headers


def dependency_flags():
    """Include folders of the dependencies, from pkg-config and the usual places."""
    flags = []
    if shutil.which("pkg-config"):
        done = subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True)
        flags += done.stdout.split()
    for folder in ("/usr/include/libfccp", "/usr/local/include/libfccp"):
        if os.path.isdir(folder):
            flags.append(f"-I{folder}")
    return flags


def compile_once(compiler, flags, source):
    command = [compiler, "-std=c++20", *flags, "-c", str(source), "-o", os.devnull]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return seconds


def measure(headers, compiler, flags, runs):
    """{header: [seconds, ...]}, and the same for the empty file under the key None."""
    with tempfile.TemporaryDirectory() as folder:
        sources = {}
        for index, header in enumerate([None, *headers]):
            sources[header] = Path(folder) / f"tu{index}.cpp"
            includes = (header or "").split()
            sources[header].write_text(
                "\n".join(f"#include <{name}>" for name in includes) + "\n", encoding="utf-8"
            )
        for source in sources.values():  # warms the file cache
            compile_once(compiler, flags, source)
        times = {header: [] for header in sources}
        for _ in range(runs):
            for header, source in sources.items():
                times[header].append(compile_once(compiler, flags, source))
    return times


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "headers", nargs="*", help="headers under include/gpusched (default: all public ones)"
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--flags", default="-O0", help="compiler flags (default: -O0)")
    parser.add_argument("--json", metavar="FILE", help="append one JSON line per header")
    parser.add_argument("--standard", action="store_true", help="measure the model's standard headers, too")
    parser.add_argument("--check", action="store_true", help="fail if a median is above its budget")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")

    given = [h if h.startswith("gpusched/") else f"gpusched/{h}" for h in options.headers]
    headers = given or public_headers()
    flags = options.flags.split() + [f"-I{INCLUDE}"] + dependency_flags()
    if options.standard:
        headers.append(" ".join(STANDARD))

    times = measure(headers, options.compiler, flags, options.runs)
    empty = statistics.median(times.pop(None))
    command = [options.compiler, "--version"]
    version = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    print(
        f"{version}; flags {options.flags}; {options.runs} runs; "
        f"empty file {empty:.3f} s (already subtracted)"
    )
    print(f"{'header':<56}{'min':>8}{'median':>8}{'max':>8}{'budget':>8}")
    over = []
    for header in sorted(times, key=lambda h: -statistics.median(times[h])):
        seconds = [t - empty for t in times[header]]
        median = statistics.median(seconds)
        budget = budget_of(header)
        late = budget is not None and median > budget
        if late:
            over.append(header)
        print(
            f"{header:<56}{min(seconds):>8.3f}{median:>8.3f}{max(seconds):>8.3f}"
            f"{'' if budget is None else format(budget, '.1f'):>8}{'  OVER' if late else ''}"
        )
        if options.json:
            line = {
                "benchmark": "compile_time",
                "header": header,
                "seconds": [round(s, 4) for s in seconds],
                "empty_s": round(empty, 4),
                "budget_s": budget,
                "flags": options.flags,
                "compiler": version,
            }
            with open(options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
    if over:
        print(f"{len(over)} headers above their budget")
    return 1 if over and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
