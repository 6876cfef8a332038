#!/usr/bin/env python3
"""The setting of arXiv 2502.00722 with estimated throughputs: Table 1 prices, four availabilities, three traces, three budgets.

    python benchmarks/serving/paper.py [--smoke] [--only ceilings,cells,replanning,two-models,configurations] [--solver NAME] [-o ROWS.jsonl]

One JSON line per case, then a summary; the ablations (uniform composition, uniform TP, round robin) at availability 1. Gains are
throughput against the best homogeneous plan, whose GPUs are unlimited within the budget (App. K): `gain` against the paper's
three baselines (H100, A6000, 4090), `gain_of_six` against all six types. To say where a gain comes from, each cell also has

  unlimited   gain of the best plan of all six types with unlimited GPUs: what mixing types is worth under these estimates
  within      gain over the best plan of one type that is there in sufficient number: below 0 would be a mistake of the planner

and `ceilings` bounds `unlimited` without a solver: replicas may be divided, and every workload goes where a $ serves it best.
`configurations` lets replicas have a degree for each stage and three GPU types, where the default is a degree for each of two types.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

from gpusched import serving

NAMES = ("4090", "A40", "A6000", "L40", "A100", "H100")  # Table 4's order
THREE = ("H100", "A6000", "4090")
KIND = {"H100": "datacenter", "A100": "datacenter", "4090": "consumer"}  # all others: workstation
AVAILABLE = ((16, 12, 8, 12, 6, 8), (32, 8, 16, 16, 7, 12), (32, 16, 8, 8, 32, 8), (24, 24, 24, 16, 4, 8))
TRACES = (  # Table 5, per cent; workloads input-major
    (33, 7, 8, 7, 27, 6, 6, 3, 3),
    (22, 5, 5, 21, 5, 5, 19, 6, 12),
    (4, 1, 4, 3, 20, 27, 1, 25, 15),
)
SHAPES = [(i, o) for i in (2455, 824, 496) for o in (18, 253, 510)]
PAPER = {gpu.name: gpu for gpu in serving.paper_gpus_dense()}


def gpu(name: str, available: int) -> dict[str, Any]:
    known = PAPER[name]
    fields = ("tflops", "bandwidth_gb_s", "memory_gb", "link_gb_s", "network_gb_s", "per_machine", "price")
    return {"available": available, **{field: getattr(known, field) for field in fields}}


def workloads(shares: tuple[float, ...], requests: float = 1000) -> dict[str, Any]:
    return {
        "workloads": {
            f"w{w + 1}": {"input": i, "output": o, "requests": requests * share / sum(shares)}
            for w, ((i, o), share) in enumerate(zip(SHAPES, shares))
        }
    }


def request(models: dict[str, Any], available: tuple[int, ...], budget: float, types: tuple[str, ...] = NAMES) -> Any:
    gpus = {name: gpu(name, count) for name, count in zip(NAMES, available) if name in types}
    return {"budget": budget, "gpus": gpus, "models": models}


def affordable(budget: float) -> tuple[int, ...]:
    return tuple(int(budget / PAPER[name].price + 1e-9) for name in NAMES)


class Run:
    def __init__(self, output: str | None, options: dict[str, Any], longer: float, models: list[str]) -> None:
        self.longer = longer
        self.models = models
        self.file = open(output, "w", encoding="utf-8") if output else None  # noqa: SIM115 (open until the end)
        self.options = options
        self.known: dict[Any, Any] = {}

    def plan(self, asked: Any, **options: Any) -> tuple[Any, float]:
        start = time.perf_counter()
        plan = serving.plan_serving(asked, **{**self.options, **options})
        return plan, time.perf_counter() - start

    def row(self, **values: Any) -> dict[str, Any]:
        if self.file:
            print(json.dumps(values), file=self.file, flush=True)
        return values

    def rate(self, key: Any, models: dict[str, Any], budget: float, available: tuple[int, ...], types: Any = NAMES) -> float:
        """Requests/s of the best plan of these types; solved once."""
        counts = tuple(min(a, b) if n in types else 0 for n, a, b in zip(NAMES, available, affordable(budget)))
        full = (*key, budget, counts)
        if full not in self.known:
            # A weak baseline would flatter: it gets more time.
            limit = 2 * self.options["time_limit"]
            asked = request(models, counts, budget, types)
            self.known[full] = self.plan(asked, time_limit=limit)[0].requests_per_s
        return self.known[full]

    def compared(self, key: Any, models: dict[str, Any], available: int, budget: float, ablations: bool) -> dict[str, Any]:
        there = AVAILABLE[available]
        plan, seconds = self.plan(request(models, there, budget))
        if self.longer and plan.makespan and plan.bound < 0.98 * plan.makespan:
            again, more = self.plan(request(models, there, budget), time_limit=self.longer)
            plan, seconds = (again if again.makespan and again.makespan <= plan.makespan else plan), seconds + more
        alone = {name: self.rate(key, models, budget, affordable(budget), (name,)) for name in NAMES}
        within = {name: self.rate(key, models, budget, there, (name,)) for name in NAMES}
        three = max(THREE, key=alone.__getitem__)
        spent = {"datacenter": 0.0, "workstation": 0.0, "consumer": 0.0}
        for name, count in plan.rented.items():
            spent[KIND.get(name, "workstation")] += count * PAPER[name].price / plan.cost
        values = {
            "case": "-".join(map(str, key)), "availability": available + 1, "budget": budget, "status": plan.status,
            "requests_per_s": plan.requests_per_s, "cost": plan.cost, "rented": plan.rented, "spent": spent,
            "gap": 1 - plan.bound / plan.makespan if plan.makespan else None, "seconds": seconds,
            "homogeneous": alone, "homogeneous_within": within, "baseline": three,
            "gain": plan.requests_per_s / alone[three] - 1,
            "gain_of_six": plan.requests_per_s / max(alone.values()) - 1,
            # Whatever there is may also be had without limits: a search that had to stop may miss it.
            "unlimited": max(plan.requests_per_s, self.rate(key, models, budget, affordable(budget))) / alone[three] - 1,
            "within": plan.requests_per_s / max(within.values()) - 1 if max(within.values()) else None,
        }  # fmt: skip
        if ablations:
            for name, option in (
                ("uniform", {"composition": "uniform"}), ("uniform_tp", {"uniform_tp": True}),
                ("round_robin", {"routing": "round_robin"}),
            ):  # fmt: skip
                other = self.plan(request(models, there, budget), **option)[0]
                values[name] = other.requests_per_s / plan.requests_per_s - 1
        return self.row(**values)


def summary(name: str, values: list[Any]) -> None:
    known = [value for value in values if value is not None]
    if known:
        print(
            f"{name:<46} {len(known):>3}  mean {100 * statistics.mean(known):+6.1f} %  "
            f"median {100 * statistics.median(known):+6.1f} %  "
            f"least {100 * min(known):+6.1f} %  most {100 * max(known):+6.1f} %"
        )


def ceilings(run: Run, smoke: bool) -> None:
    """No plan of these types gains more, however many GPUs there are: per $, every workload at its best type against one type
    for all of them, for several engines."""
    engines: dict[str, dict[str, Any]] = {
        "default": {}, "32 requests together": {"max_batch": 32}, "64": {"max_batch": 64}, "128": {"max_batch": 128},
        "2,048": {"max_batch": 2048}, "0.56 ms more a layer": {"efficiency": {"layer_s": 6e-4}},
        "the same, 2,048": {"efficiency": {"layer_s": 6e-4}, "max_batch": 2048},
        "40 % of the peak FLOPS": {"efficiency": {"compute": 0.4}},
    }  # fmt: skip
    print("\nCeilings: gain over the best of H100, A6000, 4090 (which), traces 1 to 3; spread of requests/s per $ over types, w1 to w9")
    for name, options in list(engines.items())[: 2 if smoke else None]:
        for of in ("Llama-3-70B", "Llama-3-8B"):
            model = serving.language_model(of)
            best: dict[tuple[str, int], float] = {}
            for kind in NAMES:
                found = serving.enumerate_deployments(model, [PAPER[kind]], [16])
                cost = [PAPER[kind].price * sum(stage.degree for stage in d.stages) for d in found]
                for w, (i, o) in enumerate(SHAPES):
                    rates = [serving.estimate_throughput(model, [PAPER[kind]], d, i, o, **options) for d in found]
                    best[kind, w] = max(r.requests_per_s / c for r, c in zip(rates, cost))
            spread = [max(best[n, w] for n in NAMES) / min(best[n, w] for n in NAMES) for w in range(9)]
            gains, against = [], []
            for trace in TRACES:
                mixed = sum(f / max(best[n, w] for n in NAMES) for w, f in enumerate(trace))
                one = {n: sum(f / best[n, w] for w, f in enumerate(trace)) for n in NAMES}
                against.append(min(THREE, key=one.__getitem__))
                gains.append(one[against[-1]] / mixed - 1)
            run.row(case=f"ceiling-{of}", engine=name, gains=gains, against=against, spread=spread,
                    per_dollar={n: [best[n, w] for w in range(9)] for n in NAMES})  # fmt: skip
            print(f"  {name:<24} {of:<12}" + "  ".join(f"{100 * g:+5.1f} % ({a})" for g, a in zip(gains, against))
                  + "   " + " ".join(f"{s:.2f}" for s in spread))  # fmt: skip


def cells(run: Run, smoke: bool) -> None:
    for model in run.models:
        rows = []
        for trace in range(1 if smoke else 3):
            models = {model: workloads(TRACES[trace])}
            for available in range(1 if smoke else 4):
                for budget in (15,) if smoke else (15, 30, 60):
                    ablations = available == 0 and not smoke
                    rows.append(run.compared((model, f"trace{trace + 1}"), models, available, budget, ablations))
        print(f"\n{model}: gain over the best of H100, A6000, 4090 in per cent, per trace (rows) and availability 1 to 4 x budget")
        for trace in range(1 if smoke else 3):
            of = [r for r in rows if r["case"].endswith(f"trace{trace + 1}")]
            print(f"  trace {trace + 1}: " + "  ".join(f"{r['availability']}/{r['budget']}: {100 * r['gain']:+.1f}" for r in of))
        for name in ("gain", "gain_of_six", "unlimited", "within", "uniform", "uniform_tp", "round_robin"):
            summary(f"{model}: {name}", [r[name] for r in rows if name in r])
        for budget in sorted({r["budget"] for r in rows}):
            of = [r for r in rows if r["budget"] == budget]
            summary(f"{model}: gain at {budget} $/h", [r["gain"] for r in of])
            print("  spent on " + ", ".join(f"{kind} {100 * statistics.mean(r['spent'][kind] for r in of):.0f} %"
                                           for kind in of[0]["spent"]))  # fmt: skip
        for trace in sorted({r["case"] for r in rows}):
            print(f"  {trace}: best baseline " + ", ".join(sorted({r["baseline"] for r in rows if r["case"] == trace})))
        summary(f"{model}: gap to the bound", [r["gap"] for r in rows])
        print(f"  seconds per plan: median {statistics.median(r['seconds'] for r in rows):.2f}, "
              f"most {max(r['seconds'] for r in rows):.2f}")


def replanning(run: Run, smoke: bool) -> None:
    """Table 7: trace 2 at 30 $/h, 70B; a surge of short outputs (three times as many), and four H100 gone."""
    print("\nReplanning (Table 7), requests/s: before; after without a start; replanned (starts); with 5 % slack (starts); solver")
    print("  the paper: surge 26.89; 23.70; 29.61;  four H100 gone 26.89; 20.80; 22.85")
    surge = tuple(3.0 * s if w % 3 == 0 else float(s) for w, s in enumerate(TRACES[1]))
    for available in range(1 if smoke else 4):
        before_request = request({"Llama-3-70B": workloads(TRACES[1])}, AVAILABLE[available], 30)
        before, _ = run.plan(before_request)
        less = list(AVAILABLE[available])
        less[5] = max(0, before.rented.get("H100", 0) - 4)
        for name, asked in (
            ("surge of short outputs", request({"Llama-3-70B": workloads(surge)}, AVAILABLE[available], 30)),
            ("four H100 gone", request({"Llama-3-70B": workloads(TRACES[1])}, tuple(less), 30)),
        ):
            start = time.perf_counter()
            best = serving.replan(asked, before, **run.options)
            seconds = time.perf_counter() - start
            near = serving.replan(asked, before, slack=0.05, **run.options)
            kept = 1000 / best.makespan_kept if best.makespan_kept else 0.0
            run.row(
                case=name, availability=available + 1, before=before.requests_per_s, kept=kept,
                replanned=best.plan.requests_per_s, starts=best.starts, stops=best.stops,
                near=near.plan.requests_per_s, near_starts=near.starts, before_rented=before.rented,
                rented=best.plan.rented, before_status=before.status, status=best.plan.status, seconds=seconds,
                solver=best.plan.solver,
            )  # fmt: skip
            print(
                f"  availability {available + 1}, {name:<24} {before.requests_per_s:6.2f}; {kept:6.2f}; "
                f"{best.plan.requests_per_s:6.2f} ({best.starts}); {near.plan.requests_per_s:6.2f} ({near.starts}); {best.plan.solver}"
            )


SPACES: dict[str, dict[str, Any]] = {
    "degree per stage": {"mixed_degrees": True},
    "three types": {"max_types": 3},
    "both": {"max_types": 3, "mixed_degrees": True},
}


def configurations(run: Run, smoke: bool) -> None:
    """Section 4.3: a degree for each stage, and more types in a replica, on all cells of 70B (or of the first of --models)."""
    of = run.models[0]
    model = serving.language_model(of)
    print(f"\n{of}: deployments of one replica at availability 1, and seconds to list them")
    for name, options in {"default": {}, **SPACES}.items():
        start = time.perf_counter()
        found = serving.enumerate_deployments(model, [PAPER[n] for n in NAMES], AVAILABLE[0], **options)
        print(f"  {name:<18} {len(found):>8,}  {time.perf_counter() - start:.2f} s")
    gains: dict[str, list[float]] = {name: [] for name in SPACES}
    rows = []
    for trace in range(1 if smoke else 3):
        for available in range(1 if smoke else 4):
            for budget in (15,) if smoke else (15, 30, 60):
                asked = request({of: workloads(TRACES[trace])}, AVAILABLE[available], budget)
                default, seconds = run.plan(asked)
                values: dict[str, Any] = {"default": default.requests_per_s, "default_s": seconds}
                for name, options in SPACES.items():
                    plan, seconds = run.plan(asked, deployments=options)
                    gains[name].append(plan.requests_per_s / default.requests_per_s - 1)
                    values |= {name: plan.requests_per_s, f"{name}_s": seconds, f"{name}_optimal": plan.optimal}
                    values[f"{name}_replicas"] = {r.deployment.name: r.count for r in plan.replicas}
                rows.append(run.row(case=f"configurations-{of}", trace=trace + 1, availability=available + 1, budget=budget, **values))
    for name in SPACES:
        summary(f"{of}: {name} against the default", gains[name])
        used = [d for row in rows for d, n in row[f"{name}_replicas"].items() for _ in range(n)]
        kinds = [[part.rsplit(" ", 1)[0] for part in d.split("+")] for d in used]
        mixed = sum(len(set(k)) < len(k) for k in kinds)
        three = sum(len(set(k)) > 2 for k in kinds)
        print(f"  of {len(used)} replicas {mixed} mix degrees of a type, {three} have three types; "
              f"most seconds per plan {max(row[f'{name}_s'] for row in rows):.1f}")  # fmt: skip


def two_models(run: Run, smoke: bool) -> None:
    print("\nTwo models, 80 % of the requests to 8B and 20 % to 70B, trace 2")
    models = {"Llama-3-8B": workloads(TRACES[1], 800), "Llama-3-70B": workloads(TRACES[1], 200)}
    rows = []
    for available in range(1 if smoke else 4):
        for budget in (30,) if smoke else (15, 30, 60):
            row = run.compared(("two", "trace2"), models, available, budget, False)
            rows.append(row)
            print(f"  availability {available + 1}, {budget} $/h: {row['requests_per_s']:.2f} requests/s, gain {100 * row['gain']:+.1f} %")
    for name in ("gain", "gain_of_six", "unlimited", "within", "gap"):
        summary(f"two models: {name}", [r[name] for r in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one case of each")
    parser.add_argument("--only", default="ceilings,cells,replanning,two-models,configurations")
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    parser.add_argument("--solver", default="auto", help="auto (HiGHS where there is one, else CBC), highs, cbc or scipy")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS", help="per plan (10); baselines get twice as much")
    parser.add_argument("--gap", type=float, default=0.005, help="relative gap at which a search may stop (0.005)")
    parser.add_argument("--longer", type=float, default=0.0, metavar="SECONDS", help="once more for plans more than 2 %% off the bound")
    parser.add_argument("--models", default="Llama-3-70B,Llama-3-8B", help="of the cells")
    args = parser.parse_args()
    limit = min(args.time_limit, 0.5) if args.smoke else args.time_limit
    run = Run(args.output, {"time_limit": limit, "mip_gap": args.gap, "solver": args.solver}, args.longer, args.models.split(","))
    parts = {
        "ceilings": ceilings, "cells": cells, "replanning": replanning, "two-models": two_models, "configurations": configurations,
    }  # fmt: skip
    for name in args.only.split(","):
        if name not in parts:
            parser.error(f"--only: {name!r}; expected {', '.join(parts)}")
        parts[name](run, args.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
