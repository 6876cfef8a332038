#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the planner with HexGen, Helix and Mélange on the inputs of arXiv 2502.00722.

    python benchmarks/serving/baselines.py [--smoke] [--model NAME] [--budget 15] [--first 0] [--seeds 10]
                                           [--availability 1] [--gpus dense|printed]
                                           [--kinds input-major|output-major] [-o ROWS.jsonl]
    python benchmarks/serving/baselines.py --rows ROWS.jsonl

All methods have the same model, prices, availability, budget and estimates. A seed draws 1,000 requests with
the shares of a trace, and starts HexGen's search.

HexGen and Helix plan for given GPUs and for requests of one mixed kind, as published. As in the paper they
get either as many of each of the six types as the budget pays for (`uniform`), or the GPUs that our plan
rents (`ours`). Mélange chooses GPUs; an instance is the tensor-parallel group of its type that serves most
per $.

Throughputs are the planner's estimates for all methods, in requests/s with 95 % intervals over seeds;
differences are paired. -o adds a row to the file after each seed, so that seeds can run in several parts.
`--rows` prints the tables of such a file; for Helix's placements it uses the seeds with the longest time
limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import helix
import hexgen
import melange
import numpy as np
from gpusched import serving
from scipy.stats import t as student
from setting import AVAILABLE, NAMES, TRACES, Setting, add_options, chosen, language_model

METHODS = (
    "ours",
    "melange",
    "melange, all available",
    "hexgen, uniform",
    "hexgen, ours",
    "helix, uniform",
    "helix, ours",
)


class Case:
    """A model and the shares of its nine kinds of requests."""

    def __init__(self, setting: Setting, model: str, shares: Sequence[float]) -> None:
        self.setting = setting
        self.types = setting.types
        self.prices = np.array([gpu.price for gpu in self.types])
        self.model = language_model(model)
        self.shares = np.array(shares, float) / sum(shares)
        self._served: dict[str, list[float]] = {}

    def served(self, deployment: serving.Deployment) -> list[float]:
        """Requests/s of each kind."""
        if deployment.name not in self._served:
            self._served[deployment.name] = [
                serving.estimate_throughput(self.model, self.types, deployment, i, o).requests_per_s
                for i, o in self.setting.shapes
            ]
        return self._served[deployment.name]

    def mixed(self, deployment: serving.Deployment) -> float:
        """Requests/s of all kinds in their shares."""
        served = np.array(self.served(deployment))
        asked = self.shares > 0
        return float(1 / (self.shares[asked] / served[asked]).sum()) if (served[asked] > 0).all() else 0.0

    def possible(self, available: Sequence[int], **options: Any) -> list[serving.Deployment]:
        return serving.enumerate_deployments(self.model, self.types, list(available), **options)


def needs(deployment: serving.Deployment) -> list[int]:
    out = [0] * len(NAMES)
    for stage in deployment.stages:
        out[stage.gpu] += stage.degree
    return out


def run_melange(case: Case, available: Sequence[int], budget: float) -> float:
    best: list[serving.Deployment | None] = [None] * len(NAMES)
    for deployment in case.possible(available, max_stages=1, max_types=1):
        kind = deployment.stages[0].gpu
        known = best[kind]
        if (
            known is None
            or case.mixed(deployment) / deployment.stages[0].degree
            > case.mixed(known) / known.stages[0].degree
        ):
            best[kind] = deployment
    instances = [deployment for deployment in best if deployment is not None]
    if not instances:
        return 0.0
    gpus = np.array([needs(deployment) for deployment in instances])
    limits = np.array(
        [min(available[k] // g for k, g in enumerate(row) if g) for row in gpus.tolist()], float
    )
    served = np.array([case.served(deployment) for deployment in instances]).T
    return melange.most_rate(case.shares, served, gpus @ case.prices, limits, budget)[0]


def run_hexgen(case: Case, gpus: Sequence[int], seed: int, generations: int) -> float:
    deployments = case.possible(gpus, max_types=3)
    if not deployments:
        return 0.0
    rates = np.array([case.mixed(deployment) for deployment in deployments])
    search = hexgen.Search(np.array([needs(d) for d in deployments]), rates, gpus, seed)
    return search.run(generations=generations).rate


def run_helix(case: Case, gpus: Sequence[int], time_limit: float) -> tuple[float, float]:
    """Requests/s, and an upper bound for every placement.

    A GPU with j of L layers serves as many requests as a pipeline of L / j such GPUs, because each of them
    serves every request. If it does not have all layers, its network limits it: two bytes for each value of a
    token.
    """
    layers = case.model.layers
    step = layers // 16
    tokens = float(case.shares @ [sum(shape) for shape in case.setting.shapes])
    capacities: list[dict[int, float]] = []
    for kind, gpu in enumerate(case.types):
        carried = 1e9 * gpu.network_gb_s / (2 * case.model.hidden * tokens)
        alone = [layers if k == kind else 0 for k in range(len(NAMES))]
        found = case.possible(alone, degrees=[1], max_stages=64, max_gpus=layers, min_tokens=1)
        even = [d for d in found if layers % len(d.stages) == 0 and (layers // len(d.stages)) % step == 0]
        capacities.append(
            {
                layers // len(d.stages): min(case.mixed(d), carried if len(d.stages) > 1 else np.inf)
                for d in even
            }
        )
    return helix.place_layers(layers, capacities, gpus, step, time_limit)[:2]


def compared(args: argparse.Namespace, trace: int, seed: int) -> dict[str, Any]:
    """Requests/s by method, and seconds."""
    setting = chosen(args)
    drawn = (
        np.random.default_rng(seed).multinomial(1000, np.array(TRACES[trace]) / sum(TRACES[trace])).tolist()
    )
    case = Case(setting, args.model, drawn)
    there = AVAILABLE[args.availability - 1]
    asked = setting.request(setting.model(args.model, drawn), there, args.budget)
    each = int(args.budget / case.prices.sum() + 1e-9)
    uniform = [min(each, count) for count in there]
    rates: dict[str, float] = {}
    seconds: dict[str, float] = {}

    def timed(name: str, run: Callable[[], float]) -> None:
        start = time.perf_counter()
        rates[name] = run()
        seconds[name] = time.perf_counter() - start

    plans: list[serving.ServingPlan] = []

    def ours() -> float:
        plans.append(serving.plan_serving(asked, time_limit=args.time_limit, mip_gap=0.005))
        return plans[0].requests_per_s

    bounds: dict[str, float] = {}

    def placed(name: str, gpus: Sequence[int]) -> float:
        rate, bounds[name] = run_helix(case, gpus, args.time_limit)
        return rate

    timed("ours", ours)
    rented = [plans[0].rented.get(name, 0) for name in NAMES]
    timed("melange", lambda: run_melange(case, there, args.budget))
    timed("melange, all available", lambda: run_melange(case, setting.affordable(args.budget), args.budget))
    for name, gpus in (("uniform", uniform), ("ours", rented)):
        timed(f"hexgen, {name}", partial(run_hexgen, case, gpus, seed, args.generations))
        timed(f"helix, {name}", partial(placed, name, gpus))
    return {
        "model": args.model, "trace": trace + 1, "availability": args.availability, "budget": args.budget,
        "seed": seed, "time_limit_s": args.time_limit, "requests_per_s": rates, "seconds": seconds,
        "helix_at_most": bounds, "rented": plans[0].rented,
    }  # fmt: skip


def interval(values: Sequence[float]) -> str:
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.2f}"
    half = student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean:.2f} +- {half:.2f}"


def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["model"], row["trace"], row["availability"], row["budget"]


def searched_longest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows with the longest time limit. Helix's placements depend on the limit, its bounds hardly."""
    longest = max(row["time_limit_s"] for row in rows)
    return [row for row in rows if row["time_limit_s"] == longest]


def print_table(of: Sequence[Mapping[str, Any]]) -> None:
    """The methods on the seeds of one case."""
    model, trace, availability, budget = key(of[0])
    print(f"\n{model}, trace {trace}, availability {availability}, {budget:g} $/h, {len(of)} seeds")
    print(f"  {'':<24} {'requests/s':>16}   {'ours against it, %':>20}   seconds")
    for name in METHODS:
        seen = searched_longest(of) if name.startswith("helix") else of
        rates = [row["requests_per_s"][name] for row in seen]
        if min(rates) > 0:
            gain = interval(
                [100 * (row["requests_per_s"]["ours"] / rate - 1) for row, rate in zip(seen, rates)]
            )
        else:
            gain = f"{sum(rate == 0 for rate in rates)} without a plan"
        seconds = statistics.median(row["seconds"][name] for row in seen)
        fewer = "" if len(seen) == len(of) else f"   {len(seen)} seeds, {seen[0]['time_limit_s']:g} s"
        print(
            f"  {name:<24} {interval(rates):>16}   {gain if name != 'ours' else '':>20}"
            f"   {seconds:7.2f}{fewer}"
        )
    for name in of[0]["helix_at_most"]:
        bounds = [row["helix_at_most"][name] for row in of]
        gain = interval([100 * (row["requests_per_s"]["ours"] / bound - 1) for row, bound in zip(of, bounds)])
        print(f"  {f'helix, {name}, at most':<24} {interval(bounds):>16}   {gain:>20}", flush=True)


def print_bounds(rows: Sequence[Mapping[str, Any]]) -> None:
    searched = searched_longest(rows)
    pairs = [
        (bound, row["requests_per_s"][f"helix, {name}"])
        for row in searched
        for name, bound in row["helix_at_most"].items()
    ]
    off = [bound / rate - 1 for bound, rate in pairs if rate > 0]
    if off:
        print(
            f"\nHelix's bounds are above its placements by {100 * statistics.median(off):.1f} % (median), "
            f"{100 * max(off):.1f} % (most)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one trace, one seed, short limits")
    parser.add_argument("--model", default="Llama-3-70B")
    add_options(parser)
    parser.add_argument("--budget", type=float, default=15.0, metavar="$/h")
    parser.add_argument("--availability", type=int, default=1, choices=(1, 2, 3, 4), help="of Table 4")
    parser.add_argument("--traces", default="1,2,3", help="of Table 5")
    parser.add_argument("--first", type=int, default=0, help="first seed (0)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="of our search and of Helix's"
    )
    parser.add_argument("--generations", type=int, default=300, help="of HexGen's search")
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl", help="add a row for each seed to this file")
    parser.add_argument("--rows", metavar="ROWS.jsonl", help="print the tables of this file, and run nothing")
    args = parser.parse_args()
    if args.smoke:
        args.traces, args.seeds, args.time_limit, args.generations = "2", 1, 1.0, 20
    if args.rows:
        with open(args.rows, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        for case in dict.fromkeys(map(key, rows)):
            print_table([row for row in rows if key(row) == case])
        print_bounds(rows)
        return 0
    rows = []
    for trace in [int(word) - 1 for word in args.traces.split(",")]:
        of = []
        for seed in range(args.first, args.first + args.seeds):
            of.append(compared(args, trace, seed))
            if args.output:
                with open(args.output, "a", encoding="utf-8") as file:
                    file.write(json.dumps(of[-1]) + "\n")
        print_table(of)
        rows += of
    print_bounds(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
