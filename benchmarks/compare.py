#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two result sets of one benchmark, run by run.

    benchmarks/compare.py before.jsonl after.jsonl
    benchmarks/compare.py rows.jsonl rows.jsonl --where-a algorithm=ipc --where-b algorithm=best

Each line of a set is one run, a JSON object. Some fields name the run: scenario, algorithm, threads and
time_limit_ms, as far as they are present. `seed` pairs the runs of both sets; the other numbers are
measurements. For every measured field it prints both means and the mean paired difference b - a with its 95 %
confidence interval (Student's t over the seeds). It counts and names runs without a partner.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

NAMES = ("scenario", "algorithm", "threads", "time_limit_ms")

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom. Above 30 the normal quantile is within 2 %.
T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def half_width(differences):
    """Half the width of the 95 % confidence interval of the mean; infinite for a single difference."""
    n = len(differences)
    if n < 2:
        return math.inf
    t = T[n - 2] if n - 2 < len(T) else 1.960
    return t * statistics.stdev(differences) / math.sqrt(n)


def read(path, where):
    """{(names, seed): row} of the rows for which all of `where` holds."""
    runs = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise SystemExit(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict) or any(str(row.get(k)) != v for k, v in where.items()):
            continue
        names = tuple((k, row[k]) for k in NAMES if k in row and k not in where)
        key = (names, row.get("seed"))
        if key in runs:
            raise SystemExit(
                f"{path}, line {number}: a second run of {dict(names)} with seed {row.get('seed')}"
            )
        runs[key] = row
    return runs


def compare(a, b):
    """Rows of (names, field, runs, mean a, mean b, mean difference, half width), and the unpaired keys."""
    alone = sorted(map(str, a.keys() ^ b.keys()))
    pairs = {}
    for key in a.keys() & b.keys():
        pairs.setdefault(key[0], []).append((a[key], b[key]))
    rows = []
    for names, runs in sorted(pairs.items(), key=str):
        first = runs[0][0]
        for field, value in first.items():
            if (
                field in NAMES
                or field == "seed"
                or isinstance(value, bool)
                or not isinstance(value, (int, float))
            ):
                continue
            both = [(x[field], y[field]) for x, y in runs if field in x and field in y]
            differences = [y - x for x, y in both]
            rows.append((
                names, field, len(both),
                statistics.fmean(x for x, _ in both), statistics.fmean(y for _, y in both),
                statistics.fmean(differences), half_width(differences),
            ))  # fmt: skip
    return rows, alone


def condition(text):
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}; expected NAME=VALUE")
    return name, value


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", help="result set a, JSON lines")
    parser.add_argument("b", help="result set b")
    parser.add_argument("--where-a", action="append", default=[], type=condition, metavar="NAME=VALUE")
    parser.add_argument("--where-b", action="append", default=[], type=condition, metavar="NAME=VALUE")
    args = parser.parse_args(arguments)
    rows, alone = compare(read(args.a, dict(args.where_a)), read(args.b, dict(args.where_b)))
    if not rows:
        print("no run of a has a partner in b", file=sys.stderr)
        return 1
    print("| run | field | runs | a | b | b - a (95 %) |\n|---|---|---|---|---|---|")
    for names, field, count, mean_a, mean_b, difference, width in rows:
        run = ", ".join(str(value) for _, value in names) or "all"
        sign = "" if abs(difference) <= width else " *"
        print(
            f"| {run} | {field} | {count} | {mean_a:.4g} | {mean_b:.4g} "
            f"| {difference:+.4g} ± {width:.2g}{sign} |"
        )
    print("\n* the interval excludes zero")
    for key in alone:
        print(f"without a partner: {key}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
