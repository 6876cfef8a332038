#!/usr/bin/env python3
"""The setting of arXiv 2502.00722 with estimated throughputs: Table 1 prices, four availabilities, three traces, three budgets.

    python benchmarks/serving/paper.py [--smoke] [--only cells,replanning,two-models] [-o ROWS.jsonl]

One JSON line per cell, then a summary; the ablations (uniform composition, uniform TP, round robin) at availability 1. Gains are throughput against the best homogeneous plan, whose GPUs are unlimited within the budget (App. K);
`gain` is against the paper's three baselines (H100, A6000, 4090), `gain_of_six` against all six types.
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


class Run:
    def __init__(self, output: str | None, options: dict[str, Any]) -> None:
        self.file = open(output, "w", encoding="utf-8") if output else None
        self.options = options
        self.homogeneous: dict[Any, float] = {}

    def plan(self, asked: Any, **options: Any) -> tuple[Any, float]:
        start = time.perf_counter()
        plan = serving.plan_serving(asked, **self.options, **options)
        return plan, time.perf_counter() - start

    def row(self, **values: Any) -> dict[str, Any]:
        if self.file:
            print(json.dumps(values), file=self.file, flush=True)
        return values

    def baseline(self, key: Any, models: dict[str, Any], budget: float, types: tuple[str, ...]) -> float:
        """Requests/s of the best homogeneous plan."""
        full = (*key, budget, types)
        if full not in self.homogeneous:
            asked = request(models, (0,) * 6, budget, types)
            # A weak baseline would flatter: it gets more time.
            options = {**self.options, "time_limit": 4 * self.options["time_limit"]}
            self.homogeneous[full] = serving.plan_serving(asked, composition="homogeneous", **options).requests_per_s
        return self.homogeneous[full]

    def compared(self, key: Any, models: dict[str, Any], available: int, budget: float, ablations: bool) -> dict[str, Any]:
        asked = request(models, AVAILABLE[available], budget)
        plan, seconds = self.plan(asked)
        three = self.baseline(key, models, budget, ("H100", "A6000", "4090"))
        six = self.baseline(key, models, budget, NAMES)
        values = {
            "case": "-".join(map(str, key)), "availability": available + 1, "budget": budget, "status": plan.status,
            "requests_per_s": plan.requests_per_s, "cost": plan.cost, "rented": plan.rented,
            "gap": 1 - plan.bound / plan.makespan if plan.makespan else None, "seconds": seconds,
            "gain": plan.requests_per_s / three - 1, "gain_of_six": plan.requests_per_s / six - 1,
        }  # fmt: skip
        if ablations:
            for name, option in (
                ("uniform", {"composition": "uniform"}), ("uniform_tp", {"uniform_tp": True}),
                ("round_robin", {"routing": "round_robin"}),
            ):  # fmt: skip
                other = self.plan(asked, **option)[0]
                values[name] = other.requests_per_s / plan.requests_per_s - 1
        return self.row(**values)


def summary(name: str, values: list[float]) -> None:
    print(
        f"{name:<46} {len(values):>3}  mean {100 * statistics.mean(values):+6.1f} %  "
        f"least {100 * min(values):+6.1f} %  most {100 * max(values):+6.1f} %"
    )


def cells(run: Run, smoke: bool) -> None:
    for model in ("Llama-3-70B", "Llama-3-8B"):
        rows = []
        for trace in range(1 if smoke else 3):
            models = {model: workloads(TRACES[trace])}
            for available in range(1 if smoke else 4):
                for budget in (15,) if smoke else (15, 30, 60):
                    ablations = available == 0
                    rows.append(run.compared((model, f"trace{trace + 1}"), models, available, budget, ablations))
        print(f"\n{model}: gain over the best of H100, A6000, 4090 in per cent, per trace (rows) and availability 1 to 4 x budget")
        for trace in range(1 if smoke else 3):
            of = [r for r in rows if r["case"].endswith(f"trace{trace + 1}")]
            print(f"  trace {trace + 1}: " + "  ".join(f"{r['availability']}/{r['budget']}: {100 * r['gain']:+.1f}" for r in of))
        for name in ("gain", "gain_of_six", "uniform", "uniform_tp", "round_robin"):
            summary(f"{model}: {name}", [r[name] for r in rows if name in r])
        for budget in sorted({r["budget"] for r in rows}):
            summary(f"{model}: gain at {budget} $/h", [r["gain"] for r in rows if r["budget"] == budget])
        summary(f"{model}: gap to the bound", [r["gap"] for r in rows])
        print(f"  seconds per plan: median {statistics.median(r['seconds'] for r in rows):.2f}, "
              f"most {max(r['seconds'] for r in rows):.2f}")


def replanning(run: Run, smoke: bool) -> None:
    """Table 7: trace 2 at 30 $/h, 70B; a surge of short outputs, and four H100 gone."""
    print("\nReplanning (Table 7), requests/s: before; after without a start; replanned (starts); with 5 % slack (starts)")
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
            best = serving.replan(asked, before, **run.options)
            near = serving.replan(asked, before, slack=0.05, **run.options)
            kept = 1000 / best.makespan_kept if best.makespan_kept else 0.0
            run.row(
                case=name, availability=available + 1, before=before.requests_per_s, kept=kept,
                replanned=best.plan.requests_per_s, starts=best.starts, stops=best.stops,
                near=near.plan.requests_per_s, near_starts=near.starts, before_rented=before.rented,
                rented=best.plan.rented,
            )  # fmt: skip
            print(
                f"  availability {available + 1}, {name:<24} {before.requests_per_s:6.2f}; {kept:6.2f}; "
                f"{best.plan.requests_per_s:6.2f} ({best.starts}); {near.plan.requests_per_s:6.2f} ({near.starts})"
            )


def two_models(run: Run, smoke: bool) -> None:
    print("\nTwo models, 80 % of the requests to 8B and 20 % to 70B, trace 2")
    models = {"Llama-3-8B": workloads(TRACES[1], 800), "Llama-3-70B": workloads(TRACES[1], 200)}
    rows = []
    for available in range(1 if smoke else 4):
        for budget in (30,) if smoke else (15, 30, 60):
            row = run.compared(("two", "trace2"), models, available, budget, False)
            rows.append(row)
            print(f"  availability {available + 1}, {budget} $/h: {row['requests_per_s']:.2f} requests/s, gain {100 * row['gain']:+.1f} %")
    summary("two models: gain", [r["gain"] for r in rows])
    summary("two models: gap to the bound", [r["gap"] for r in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one cell of each")
    parser.add_argument("--only", default="cells,replanning,two-models")
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    parser.add_argument("--time-limit", type=float, default=30.0, metavar="SECONDS", help="per plan")
    args = parser.parse_args()
    run = Run(args.output, {"time_limit": args.time_limit})
    parts = {"cells": cells, "replanning": replanning, "two-models": two_models}
    for name in args.only.split(","):
        parts[name](run, args.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
