#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the workload monitor and replanning of arXiv 2502.00722, App. M: false alarms, delays and gains.

    python benchmarks/serving/workload_shift.py [--smoke] [--seeds 10] [--rate 5] [--budget 30] [--time-limit
20] [--gpus dense|printed] [--kinds input-major|output-major]

Poisson arrivals of Llama-3-70B have the shares of trace 2 for a day and a part of a window. Then another
workload follows for two hours: the surge of short outputs of Table 7 (three times as many), trace 1 or trace
3. Windows have five minutes, persistence 3, dwell 6, alpha 0.001. `kept` is the old plan with the best routes
for the new workload; `knowing all` is a plan for the true shares. Intervals are 95 % over seeds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from baselines import Case
from gpusched import serving
from scipy.optimize import linprog
from scipy.stats import t as student
from setting import AVAILABLE, TRACES, Setting, add_options, chosen

MODEL = "Llama-3-70B"
DAY = 86_400.0
AFTER = 7_200.0


def arrivals(
    rng: np.random.Generator, shares: Sequence[float], rate: float, begin: float, seconds: float
) -> Iterator[tuple[float, str]]:
    times = np.sort(rng.uniform(begin, begin + seconds, rng.poisson(rate * seconds)))
    kinds = rng.choice(len(shares), len(times), p=np.array(shares) / sum(shares))
    return ((time, f"w{kind + 1}") for time, kind in zip(times.tolist(), kinds.tolist()))


def makespan_of(setting: Setting, plan: serving.ServingPlan, shares: Sequence[float]) -> float:
    """Seconds of 1,000 requests of these shares on the replicas of a plan by the best routes (a linear
    program).
    """
    case = Case(setting, MODEL, shares)
    known = {deployment.name: deployment for deployment in case.possible(AVAILABLE[0])}
    rows = [(replicas["count"], case.served(known[replicas["deployment"]])) for replicas in plan.replicas]
    kinds = len(shares)
    columns = len(rows) * kinds + 1  # shares of each kind on each deployment, then the makespan
    busy, whole = np.zeros((len(rows), columns)), np.zeros((kinds, columns))
    for at, (count, served) in enumerate(rows):
        for kind in range(kinds):
            busy[at, at * kinds + kind] = 1000 * case.shares[kind] / served[kind]
            whole[kind, at * kinds + kind] = 1
        busy[at, -1] = -count
    cost = np.zeros(columns)
    cost[-1] = 1
    return float(linprog(cost, busy, np.zeros(len(rows)), whole, np.ones(kinds)).fun)


def interval(values: Sequence[float]) -> str:
    half = (
        student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
        if len(values) > 1
        else 0.0
    )
    return f"{statistics.mean(values):.1f} +- {half:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one seed, an hour before the shift")
    add_options(parser)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=5.0, metavar="REQUESTS/S")
    parser.add_argument("--budget", type=float, default=30.0, metavar="$/h")
    parser.add_argument("--time-limit", type=float, default=20.0, metavar="SECONDS", help="of each plan")
    args = parser.parse_args()
    before = DAY
    if args.smoke:
        args.seeds, args.time_limit, before = 1, 1.0, 3600.0
    options = {"time_limit": args.time_limit, "mip_gap": 0.005}
    setting = chosen(args)
    usual = TRACES[1]
    shifts = {"surge of short outputs": setting.surge(usual), "trace 1": TRACES[0], "trace 3": TRACES[2]}
    asked = setting.request(setting.model(MODEL, usual), AVAILABLE[0], args.budget)
    plan = serving.plan_serving(asked, **options)
    print(
        f"{args.seeds} seeds, {args.rate:g} requests/s, {args.budget:g} $/h, availability 1, "
        f"{before / 3600:g} h before the shift"
    )
    print(f"  {'to':<24} {'false alarms':>12} {'missed':>6}   {'delay, minutes':>15}   "
          f"{'replanned against kept, %':>26}   {'against knowing all, %':>23}   starts")  # fmt: skip
    for name, shares in shifts.items():
        known = setting.request(setting.model(MODEL, shares), AVAILABLE[0], args.budget)
        best = makespan_of(setting, serving.plan_serving(known, **options), shares)
        kept = makespan_of(setting, plan, shares)
        early, missed = 0, 0
        delays, gains, short, starts = [], [], [], []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            monitor = serving.WorkloadMonitor(asked)
            begin = before + rng.uniform(0, monitor.window_s)
            early += sum(
                monitor.observe(*one) is not None for one in arrivals(rng, usual, args.rate, 0.0, begin)
            )
            found = None
            for one in arrivals(rng, shares, args.rate, begin, AFTER):
                found = found or monitor.observe(*one)
            if found is None:
                missed += 1
                continue
            delays.append((found.time_s - begin) / 60)
            changed = serving.replan(found.request, plan, **options)
            # The new plan is judged on the true workload, not on the counted one.
            truth = makespan_of(setting, changed.plan, shares)
            gains.append(100 * (kept / truth - 1))
            short.append(100 * (best / truth - 1))
            starts.append(changed.starts)
        if not delays:
            print(f"  {name:<24} {early:>12} {missed:>6}")
            continue
        print(f"  {name:<24} {early:>12} {missed:>6}   {interval(delays):>15}   {interval(gains):>26}   "
              f"{interval(short):>23}   {statistics.mean(starts):6.1f}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
