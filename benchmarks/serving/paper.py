#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the experiments of arXiv 2502.00722 with estimated throughputs.

    python benchmarks/serving/paper.py [--smoke] [--only
inputs,ceilings,cells,replanning,two-models,configurations] [--gpus dense|printed] [--kinds
input-major|output-major] [--budgets 15,30,60] [--solver NAME] [-o ROWS.jsonl]

Prints a summary; -o writes one JSON line per case. The ablations (uniform composition, uniform TP, round
robin) are at availability 1. Gains are throughput against the best homogeneous plan with unlimited GPUs
within the budget (App. K): `gain` against the paper's three baselines (H100, A6000, 4090), `gain_of_six`
against all six types. Further values of each cell separate the causes of a gain:

  unlimited   gain of the best plan of all six types with unlimited GPUs: the worth of mixing types at_most
upper bound for every plan with unlimited GPUs: every $ serves every kind of requests at the best rate per $
of all deployments of up to two types, as if replicas could be divided within      gain over the best plan of
one type within its availability; below 0 would be a mistake of the planner

`ceilings` needs no solver. Its baseline can divide replicas, too, so it is about budgets that pay for many
replicas. A small budget can gain more, because whole replicas of one type do not use it up; `at_most` is the
bound there. `configurations` allows replicas with a degree for each stage, and with three GPU types; by
default a replica has one degree for each of two types.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gpusched import serving
from setting import AVAILABLE, NAMES, THREE, TRACES, Setting, add_options, chosen, language_model

KIND = dict.fromkeys(NAMES, "workstation") | {"H100": "datacenter", "A100": "datacenter", "4090": "consumer"}
GAINS = ("gain", "gain_of_six", "unlimited", "at_most", "within")


def gpus_of(deployment: serving.Deployment) -> list[int]:
    out = [0] * len(NAMES)
    for stage in deployment.stages:
        out[stage.gpu] += stage.degree
    return out


def per_dollar(setting: Setting, model: str) -> tuple[float, ...]:
    """The most requests/s per $/h of each kind, over all deployments of up to two types."""
    shape, types = language_model(model), setting.types
    found = serving.enumerate_deployments(shape, types, [16] * len(types))
    cost = [sum(count * gpu.price for count, gpu in zip(gpus_of(d), types)) for d in found]
    return tuple(
        max(
            serving.estimate_throughput(shape, types, d, i, o).requests_per_s / c for d, c in zip(found, cost)
        )
        for i, o in setting.shapes
    )


def percentages(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())


class Run:
    def __init__(
        self, setting: Setting, output: str | None, options: dict[str, Any], longer: float = 0.0,
        models: Sequence[str] = ("Llama-3-70B", "Llama-3-8B"), budgets: Sequence[float] = (15.0, 30.0, 60.0),
    ) -> None:  # fmt: skip
        self.setting = setting
        self.longer = longer
        self.models = models
        self.budgets = budgets
        self.file = open(output, "w", encoding="utf-8") if output else None  # noqa: SIM115
        self.options = options
        self.known: dict[Any, Any] = {}
        self.best: dict[str, tuple[float, ...]] = {}

    def plan(self, asked: Any, **options: Any) -> tuple[Any, float]:
        start = time.perf_counter()
        plan = serving.plan_serving(asked, **{**self.options, **options})
        return plan, time.perf_counter() - start

    def row(self, **values: Any) -> dict[str, Any]:
        if self.file:
            print(json.dumps(values), file=self.file, flush=True)
        return values

    def rate(
        self, key: Any, models: dict[str, Any], budget: float, available: tuple[int, ...], types: Any = NAMES
    ) -> float:
        """Requests/s of the best plan of these types; solved once."""
        counts = tuple(
            min(a, b) if n in types else 0
            for n, a, b in zip(NAMES, available, self.setting.affordable(budget))
        )
        full = (*key, budget, counts)
        if full not in self.known:
            # Baselines get more time, because a weak baseline would make gains too large.
            limit = 2 * self.options["time_limit"]
            asked = self.setting.request(models, counts, budget, types)
            self.known[full] = self.plan(asked, time_limit=limit)[0].requests_per_s
        return self.known[full]

    def at_most(self, models: dict[str, Any], budget: float) -> float:
        """Upper bound on the requests/s of every plan within this budget."""
        work, requests = 0.0, 0.0
        for name, asked in models.items():
            if name not in self.best:
                self.best[name] = per_dollar(self.setting, name)
            for kind, best in zip(asked["workloads"].values(), self.best[name]):
                work += kind["requests"] / best
                requests += kind["requests"]
        return budget * requests / work

    def spent(self, rented: Mapping[str, int]) -> dict[str, float]:
        """Shares of the money by kind of GPU."""
        cost = {name: count * self.setting.gpus[name].price for name, count in rented.items()}
        return {kind: sum(c for name, c in cost.items() if KIND[name] == kind) / sum(cost.values())
                for kind in ("datacenter", "workstation", "consumer")}  # fmt: skip

    def cost_shares(self, plan: Any, models: dict[str, Any]) -> dict[str, float]:
        """Shares of the money by model."""
        cost = {model: sum(r["cost"] for r in plan.replicas if r["model"] == model) for model in models}
        return {model: c / plan.cost for model, c in cost.items()}

    def compared(
        self, key: Any, models: dict[str, Any], available: int, budget: float, ablations: bool
    ) -> dict[str, Any]:
        there, affordable = AVAILABLE[available], self.setting.affordable(budget)
        asked = self.setting.request(models, there, budget)
        plan, seconds = self.plan(asked)
        if self.longer and plan.makespan and plan.bound < 0.98 * plan.makespan:
            again, more = self.plan(asked, time_limit=self.longer)
            seconds += more
            if again.makespan and again.makespan <= plan.makespan:
                plan = again
        alone = {name: self.rate(key, models, budget, affordable, (name,)) for name in NAMES}
        within = {name: self.rate(key, models, budget, there, (name,)) for name in NAMES}
        three = max(THREE, key=alone.__getitem__)
        rate = plan.requests_per_s or None  # None if no GPU can be rented
        # The plan is also possible without limits; a search that stopped early may miss it.
        unlimited = max(plan.requests_per_s, self.rate(key, models, budget, affordable))
        values = {
            "case": "-".join(map(str, key)), "availability": available + 1, "budget": budget,
            "status": plan.status,
            "requests_per_s": plan.requests_per_s, "cost": plan.cost, "rented": plan.rented,
            "spent": self.spent(plan.rented) if rate else None,
            "models": self.cost_shares(plan, models) if rate else None,
            "gap": 1 - plan.bound / plan.makespan if plan.makespan else None, "seconds": seconds,
            "homogeneous": alone, "homogeneous_within": within, "baseline": three,
            "gain": gain(rate, alone[three]),
            "gain_of_six": gain(rate, max(alone.values())),
            "unlimited": gain(unlimited, alone[three]),
            "at_most": gain(self.at_most(models, budget), alone[three]),
            "within": gain(rate, max(within.values())),
        }  # fmt: skip
        if ablations:
            for name, option in (
                ("uniform", {"composition": "uniform"}), ("uniform_tp", {"uniform_tp": True}),
                ("round_robin", {"routing": "round_robin"}),
            ):  # fmt: skip
                other = self.plan(asked, **option)[0]
                values[name] = gain(other.requests_per_s or None, plan.requests_per_s)
        return self.row(**values)


def gain(rate: float | None, of: float) -> float | None:
    """The relative gain; None if one of the two has no plan."""
    return rate / of - 1 if rate and of else None


def in_percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:+.1f}"


def summary(name: str, values: list[Any]) -> None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        print(f"{name:<46} {len(values) - len(known):>3}  without a plan of one of the two sides")
    if known:
        print(
            f"{name:<46} {len(known):>3}  mean {100 * statistics.mean(known):+6.1f} %  "
            f"median {100 * statistics.median(known):+6.1f} %  "
            f"least {100 * min(known):+6.1f} %  most {100 * max(known):+6.1f} %"
        )


def against_data_centre(setting: Setting, kind: str, field: str) -> float:
    """Mean of a field per $/h over the GPU types of a kind, divided by that of data-centre GPUs."""
    mean = {
        of: statistics.mean(
            getattr(gpu, field) / gpu.price for name, gpu in setting.gpus.items() if KIND[name] == of
        )
        for of in (kind, "datacenter")
    }
    return mean[kind] / mean["datacenter"]


def inputs(run: Run, smoke: bool) -> None:
    """Prints tables 1, 4 and 5, the inputs of the other parts."""
    print("\nTable 1: TFLOPS, GB/s, GB, $/h; link and network GB/s")
    for gpu in run.setting.types:
        print(f"  {gpu.name:<6} {gpu.tflops:7.1f} {gpu.bandwidth_gb_s:7.0f} {gpu.memory_gb:5.0f} "
              f"{gpu.price:6.2f}  {gpu.link_gb_s:5.0f} {gpu.network_gb_s:6.3f}")  # fmt: skip
    for kind in ("workstation", "consumer"):
        bandwidth, memory = (
            against_data_centre(run.setting, kind, field) for field in ("bandwidth_gb_s", "memory_gb")
        )
        print(f"  {kind} GPUs over data-centre GPUs, mean per $/h: GB/s {bandwidth:.2f}, GB {memory:.2f}")
    print("\nTable 4: available GPUs\n  " + " ".join(f"{name:>6}" for name in NAMES))
    for counts in AVAILABLE:
        print("  " + " ".join(f"{count:>6}" for count in counts))
    print(
        "\nTable 5: percent of the requests, by tokens in and out\n  "
        + " ".join(f"{f'{i}/{o}':>8}" for i, o in run.setting.shapes)
    )
    for shares in TRACES:
        print("  " + " ".join(f"{share:>8}" for share in shares))
    run.row(case="inputs", available=AVAILABLE, traces=TRACES, shapes=run.setting.shapes)


def mean_of(rows: Sequence[dict[str, Any]], field: str) -> dict[str, float]:
    return {name: statistics.mean(row[field][name] for row in rows) for name in rows[0][field]}


def print_spent(words: str, rows: Sequence[dict[str, Any]]) -> None:
    planned = [row for row in rows if row["spent"]]
    if planned:
        print(words + percentages(mean_of(planned, "spent")))


def ceilings(run: Run, smoke: bool) -> None:
    """Compares, per $, the best type of each kind of requests with one type for all. Replicas are divided."""
    engines: dict[str, dict[str, Any]] = {
        "default": {}, "32 requests together": {"max_batch": 32}, "64": {"max_batch": 64},
        "128": {"max_batch": 128}, "2,048": {"max_batch": 2048},
        "high end of the errors": {"error": "p90"}, "SGLang": {"engine": "sglang"},
    }  # fmt: skip
    shapes = run.setting.shapes
    print("\nCeilings of large budgets: gain over the best of H100, A6000, 4090 (which), traces 1 to 3; "
          "spread of requests/s per $ over types, kinds 1 to 9")  # fmt: skip
    for name, options in list(engines.items())[: 2 if smoke else None]:
        for of in run.models:
            model = language_model(of)
            best: dict[tuple[str, int], float] = {}
            for kind, gpu in run.setting.gpus.items():
                found = serving.enumerate_deployments(model, [gpu], [16])
                cost = [gpu.price * sum(stage.degree for stage in d.stages) for d in found]
                for w, (i, o) in enumerate(shapes):
                    rates = [serving.estimate_throughput(model, [gpu], d, i, o, **options) for d in found]
                    best[kind, w] = max(r.requests_per_s / c for r, c in zip(rates, cost))
            top = [max(NAMES, key=lambda n: best[n, w]) for w in range(len(shapes))]
            spread = [best[top[w], w] / min(best[n, w] for n in NAMES) for w in range(len(shapes))]
            gains, against, behind = [], [], []
            for trace in TRACES:
                mixed = sum(f / best[top[w], w] for w, f in enumerate(trace))
                one = {n: sum(f / best[n, w] for w, f in enumerate(trace)) for n in NAMES}
                against.append(min(THREE, key=one.__getitem__))
                gains.append(one[against[-1]] / mixed - 1)
                behind.append(one["H100"] / one["A6000"] - 1)
            run.row(
                case=f"ceiling-{of}", engine=name, gains=gains, against=against, spread=spread,
                best_types=top, a6000_against_h100=behind,
                per_dollar={n: [best[n, w] for w in range(len(shapes))] for n in NAMES},
            )  # fmt: skip
            print(f"  {name:<24} {of:<12}"
                  + "  ".join(f"{100 * g:+5.1f} % ({a})" for g, a in zip(gains, against))
                  + "   " + " ".join(f"{s:.2f}" for s in spread))  # fmt: skip
            if name == "default":
                counts = ", ".join(f"{n} {top.count(n)}" for n in NAMES if n in top)
                print(f"    kinds for which a type is best: {counts}; "
                      "A6000 against H100 per $, traces 1 to 3: "
                      + " ".join(f"{100 * b:+.1f} %" for b in behind))  # fmt: skip


def cells(run: Run, smoke: bool) -> None:
    for model in run.models:
        rows = []
        for trace in range(1 if smoke else 3):
            models = run.setting.model(model, TRACES[trace])
            for available in range(1 if smoke else 4):
                for budget in run.budgets[: 1 if smoke else None]:
                    ablations = available == 0 and not smoke
                    rows.append(
                        run.compared((model, f"trace{trace + 1}"), models, available, budget, ablations)
                    )
        print(
            f"\n{model}: gain over the best of H100, A6000, 4090 in percent, "
            "per trace (rows) and availability 1 to 4 x budget"
        )
        for trace in range(1 if smoke else 3):
            of = [r for r in rows if r["case"].endswith(f"trace{trace + 1}")]
            print(
                f"  trace {trace + 1}: "
                + "  ".join(f"{r['availability']}/{r['budget']:g}: {in_percent(r['gain'])}" for r in of)
            )
        for name in (*GAINS, "uniform", "uniform_tp", "round_robin"):
            summary(f"{model}: {name}", [r[name] for r in rows if name in r])
        for budget in sorted({r["budget"] for r in rows}):
            of = [r for r in rows if r["budget"] == budget]
            summary(f"{model}: gain at {budget:g} $/h", [r["gain"] for r in of])
            summary(f"{model}: at most at {budget:g} $/h", [r["at_most"] for r in of])
            print_spent("  spent on ", of)
        for trace in sorted({r["case"] for r in rows}):
            of = [r for r in rows if r["case"] == trace]
            print_spent(
                f"  {trace}: best baseline {', '.join(sorted({r['baseline'] for r in of}))}; spent on ", of
            )
        summary(f"{model}: gap to the bound", [r["gap"] for r in rows])
        print(
            f"  seconds per plan: median {statistics.median(r['seconds'] for r in rows):.2f}, "
            f"most {max(r['seconds'] for r in rows):.2f}"
        )


def replanning(run: Run, smoke: bool) -> None:
    """Table 7: trace 2 at 30 $/h, 70B; a surge of short outputs (three times as many), and four H100 gone."""
    print(
        "\nReplanning (Table 7), requests/s: before; after without a start; replanned (starts); "
        "with 5 % slack (starts); solver"
    )
    print("  the paper: surge 26.89; 23.70; 29.61;  four H100 gone 26.89; 20.80; 22.85")
    usual, surge = (
        run.setting.model("Llama-3-70B", shares) for shares in (TRACES[1], run.setting.surge(TRACES[1]))
    )
    for available in range(1 if smoke else 4):
        before, _ = run.plan(run.setting.request(usual, AVAILABLE[available], 30))
        less = list(AVAILABLE[available])
        less[5] = max(0, before.rented.get("H100", 0) - 4)
        for name, asked in (
            ("surge of short outputs", run.setting.request(surge, AVAILABLE[available], 30)),
            ("four H100 gone", run.setting.request(usual, less, 30)),
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
                rented=best.plan.rented, before_status=before.status, status=best.plan.status,
                seconds=seconds, solver=best.plan.solver,
            )  # fmt: skip
            print(
                f"  availability {available + 1}, {name:<24} {before.requests_per_s:6.2f}; {kept:6.2f}; "
                f"{best.plan.requests_per_s:6.2f} ({best.starts}); "
                f"{near.plan.requests_per_s:6.2f} ({near.starts}); {best.plan.solver}\n"
                f"    spent before on {percentages(run.spent(before.rented))}; "
                f"replanned {percentages(run.spent(best.plan.rented))}"
            )


SPACES: dict[str, dict[str, Any]] = {
    "degree per stage": {"mixed_degrees": True},
    "three types": {"max_types": 3},
    "both": {"max_types": 3, "mixed_degrees": True},
}


def configurations(run: Run, smoke: bool) -> None:
    """Section 4.3: a degree for each stage, and more types in a replica, for the first of --models."""
    of = run.models[0]
    model = language_model(of)
    print(
        f"\n{of}: deployments of one replica at availability 1, seconds to list them, "
        "and peak MiB of the process"
    )
    for name, options in {"default": {}, **SPACES}.items():
        start = time.perf_counter()
        found = serving.enumerate_deployments(model, run.setting.types, AVAILABLE[0], **options)
        seconds = time.perf_counter() - start
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name:<18} {len(found):>8,}  {seconds:.2f} s  {peak_mib:.0f} MiB")
        del found
    # The estimates of "both" alone take minutes.
    planned = {name: options for name, options in SPACES.items() if name != "both"}
    rows = []
    for trace in range(1 if smoke else 3):
        models = run.setting.model(of, TRACES[trace])
        for available in range(1 if smoke else 4):
            for budget in run.budgets[: 1 if smoke else None]:
                asked = run.setting.request(models, AVAILABLE[available], budget)
                values: dict[str, Any] = {}
                for name, options in {"default": {}, **planned}.items():
                    plan, seconds = run.plan(asked, deployments=options)
                    replicas = {r["deployment"]: r["count"] for r in plan.replicas}
                    values[name] = {
                        "requests_per_s": plan.requests_per_s, "bound": 1000 / plan.bound,
                        "seconds": seconds, "optimal": plan.optimal, "replicas": replicas,
                    }  # fmt: skip
                case = {"trace": trace + 1, "availability": available + 1, "budget": budget}
                rows.append(run.row(case=f"configurations-{of}", **case, **values))
    print(f"\n{of}: requests/s against the default space")
    for name in planned:
        summary(
            f"{of}: {name}",
            [row[name]["requests_per_s"] / row["default"]["requests_per_s"] - 1 for row in rows],
        )
        summary(
            f"{of}: {name}, bound against bound",
            [row[name]["bound"] / row["default"]["bound"] - 1 for row in rows],
        )
    for name in ("default", *planned):
        used = [d for row in rows for d, n in row[name]["replicas"].items() for _ in range(n)]
        kinds = [[part.rsplit(" ", 1)[0] for part in d.split("+")] for d in used]
        proved = sum(row[name]["optimal"] for row in rows)
        mixed = sum(len(set(k)) < len(k) for k in kinds)
        three = sum(len(set(k)) > 2 for k in kinds)
        seconds = [row[name]["seconds"] for row in rows]
        print(f"  {name}: {proved} of {len(rows)} plans proved; of {len(used)} replicas "
              f"{mixed} mix degrees of a type, {three} have three types; "
              f"seconds per plan: median {statistics.median(seconds):.1f}, "
              f"most {max(seconds):.1f}")  # fmt: skip


def two_models(run: Run, smoke: bool) -> None:
    print("\nTwo models, 80 % of the requests to 8B and 20 % to 70B, trace 2")
    models = {
        **run.setting.model("Llama-3-8B", TRACES[1], 800),
        **run.setting.model("Llama-3-70B", TRACES[1], 200),
    }
    rows = []
    for available in range(1 if smoke else 4):
        for budget in run.budgets[: 1 if smoke else None]:
            row = run.compared(("two", "trace2"), models, available, budget, False)
            rows.append(row)
            rate, more = row["requests_per_s"], in_percent(row["gain"])
            print(f"  availability {available + 1}, {budget:g} $/h: {rate:.2f} requests/s, gain {more} %; "
                  "spent on " + (percentages(row["models"]) if row["models"] else "nothing"))  # fmt: skip
    for name in (*GAINS, "gap"):
        summary(f"two models: {name}", [r[name] for r in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one case of each")
    parser.add_argument("--only", default="inputs,ceilings,cells,replanning,two-models,configurations")
    add_options(parser)
    parser.add_argument("-o", "--output", metavar="ROWS.jsonl")
    parser.add_argument(
        "--solver", default="auto", help="auto (HiGHS if available, else CBC), highs, cbc or scipy"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="per plan (10); baselines get twice as much",
    )
    parser.add_argument(
        "--gap", type=float, default=0.005, help="relative gap at which a search may stop (0.005)"
    )
    parser.add_argument(
        "--longer",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="limit of a second search for plans more than 2 %% off the bound",
    )
    parser.add_argument(
        "--budgets", default="15,30,60", metavar="$/h", help="of cells, two-models and configurations"
    )
    parser.add_argument(
        "--models",
        default="Llama-3-70B,Llama-3-8B",
        help="of ceilings and cells; configurations has the first",
    )
    args = parser.parse_args()
    limit = min(args.time_limit, 0.5) if args.smoke else args.time_limit
    options = {"time_limit": limit, "mip_gap": args.gap, "solver": args.solver}
    budgets = [float(word) for word in args.budgets.split(",")]
    run = Run(chosen(args), args.output, options, args.longer, args.models.split(","), budgets)
    parts = {
        "inputs": inputs, "ceilings": ceilings, "cells": cells, "replanning": replanning,
        "two-models": two_models, "configurations": configurations,
    }  # fmt: skip
    for name in args.only.split(","):
        if name not in parts:
            parser.error(f"--only: {name!r}; expected {', '.join(parts)}")
        parts[name](run, args.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
