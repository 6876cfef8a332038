# SPDX-License-Identifier: Apache-2.0
"""The cheapest rental of the planner beside the enumeration of all replicas in plain Python: measured
throughputs, and estimates alone.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from gpusched import serving

SHAPES = {"chat": (500, 250), "code": (1500, 30)}
DEGREES = (1, 2, 4, 8)


pytestmark = pytest.mark.usefixtures("solver")


# ---- enumeration: no line of it calls the library
# --------------------------------------------------------------------


def serves(rates: list[float], copies: list[tuple[int, list[float]]]) -> bool:
    """Whether replicas, so many of each with the throughputs of one or two kinds of requests, serve the
    rates.

    With two kinds, those that are best at the first one beside the second serve it until it is served, and
    what is left of all
    serves the second: the optimum of the continuous relaxation, by exchange.
    """
    left, enough = rates[0], [1e-9 * rate for rate in rates]
    if len(rates) == 1:
        return left - sum(n * h[0] for n, h in copies) <= enough[0]
    second = 0.0
    for n, (first, other) in sorted(copies, key=lambda c: -math.inf if c[1][1] == 0 else -c[1][0] / c[1][1]):
        part = 0.0 if left <= 0 or first == 0 else min(1.0, left / (n * first))
        left -= part * n * first
        second += (1 - part) * n * other
    return left <= enough[0] and rates[1] - second <= enough[1]


def rental(gpus: int, offer: dict[str, Any]) -> float:
    """The least $/h for so many GPUs of a type; inf if there are not so many."""
    piece = offer["piece"]
    needed = math.ceil(gpus / piece)
    minimum = math.ceil(offer["minimum"] / piece)
    costs = [
        (usual * offer["price"] + spot * offer["spot_price"]) * piece
        for usual in range(offer["available"] // piece + 1)
        for spot in range(offer["spot_available"] // piece + 1)
        if usual + spot >= needed and (usual + spot == 0 or usual + spot >= minimum)
    ]
    return min(costs, default=math.inf)


def enumerated(
    rates: list[float],
    offers: dict[str, dict[str, Any]],
    configurations: list[tuple[dict[str, int], list[float]]],
    budget: float,
) -> float:
    """The least $/h of all numbers of replicas; inf if none serves the rates within the budget."""
    there = {name: offer["available"] + offer["spot_available"] for name, offer in offers.items()}
    costs = {name: [rental(n, offer) for n in range(there[name] + 1)] for name, offer in offers.items()}
    best = math.inf

    def extend(at: int, copies: list[tuple[int, list[float]]], used: dict[str, int]) -> None:
        nonlocal best
        cost = sum(costs[name][n] for name, n in used.items())
        if cost >= best or cost > budget * (1 + 1e-9):
            return  # further replicas cost no less
        if serves(rates, copies):
            best = cost
            return
        for c in range(at, len(configurations)):
            gpus, per_s = configurations[c]
            for n in itertools.count(1):
                more = {name: used[name] + n * gpus.get(name, 0) for name in used}
                if any(more[name] > there[name] for name in more):
                    break
                extend(c + 1, [*copies, (n, per_s)], more)

    extend(0, [], dict.fromkeys(offers, 0))
    return best


# ---- random requests
# ------------------------------------------------------------------------------------------------


def random_offers(rng: np.random.Generator, machines: bool) -> dict[str, dict[str, Any]]:
    names = rng.choice(["H100", "A100-80GB", "L40S", "A40"], rng.integers(1, 4), replace=False)
    offers = {}
    for name in map(str, names):
        piece = 8 if machines else 1
        offer = {
            "price": round(float(rng.uniform(0.5, 4)), 2),
            "piece": piece,
            "available": int(rng.integers(0, 2 if machines else 6)) * piece,
            "spot_available": 0,
            "spot_price": 0.0,
            "minimum": 0,
        }
        if rng.random() < 0.3:
            offer["spot_available"] = int(rng.integers(1, 2 if machines else 4)) * piece
            offer["spot_price"] = round(float(rng.uniform(0.3, 4)), 2)
        if rng.random() < 0.2:
            offer["minimum"] = int(rng.integers(2, 9 if machines else 4))
        offers[name] = offer
    return offers


def asked(
    offers: dict[str, dict[str, Any]], kinds: dict[str, float], model: str, budget: float
) -> dict[str, Any]:
    gpus = {}
    for name, offer in offers.items():
        gpus[name] = {key: offer[key] for key in ("price", "available", "minimum")}
        if offer["spot_available"]:
            gpus[name] |= {key: offer[key] for key in ("spot_price", "spot_available")}
    workloads = {
        kind: {"input": SHAPES[kind][0], "output": SHAPES[kind][1], "rate": rate}
        for kind, rate in kinds.items()
    }
    return {"gpus": gpus, "models": {model: {"workloads": workloads}}} | (
        {} if math.isinf(budget) else {"budget": budget}
    )


def compare(seeds: range, make: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        machines = bool(rng.random() < 0.3)
        offers = random_offers(rng, machines)
        kinds = ["chat"] if rng.random() < 0.4 else ["chat", "code"]
        utilization = float(rng.choice([1.0, 0.9, 0.5]))
        configurations, more, model, options = make(rng, offers, kinds)
        # A rate of the order of what there is.
        there = [sum(per_s[k] for _, per_s in configurations) for k in range(len(kinds))]
        rates = {kind: float(rng.uniform(0.02, 0.5) * max(t, 0.5)) for kind, t in zip(kinds, there)}
        budget = math.inf if rng.random() < 0.7 else round(float(rng.uniform(0, 40)), 2)
        options |= {"machines": machines, "utilization": utilization, "max_deployments": 0, "mip_gap": 0.0}
        plan = serving.plan_serving(asked(offers, rates, model, budget) | more, **options)
        usable = [(gpus, [utilization * h for h in per_s]) for gpus, per_s in configurations]
        least = enumerated(list(rates.values()), offers, usable, budget)
        if math.isinf(least):
            assert plan.status == "infeasible" and plan.makespan is None and plan.binding, seed
            found["infeasible"] += 1
            continue
        assert plan.status == "optimal" and plan.optimal, (seed, plan)
        assert plan.cost == pytest.approx(least, rel=1e-6, abs=1e-6), (seed, plan.cost, least, plan.replicas)
        assert plan.cost_bound == pytest.approx(least, rel=1e-6, abs=1e-6), seed
        found["feasible"] += 1
        found["machines"] += machines
        found["spot"] += any(rented["spot"] for rented in plan.rentals)
        found["two kinds"] += len(kinds) == 2
        found["several deployments"] += len(plan.replicas) > 1
        found["pipelines"] += any(len(group["stages"]) > 1 for group in plan.replicas)
    print(dict(found))
    return found


def test_plans_of_measurements() -> None:
    def make(rng: np.random.Generator, offers: Any, kinds: list[str]) -> Any:
        rows, configurations = [], []
        for name in offers:
            for shape in rng.choice(["1x1", "1x2", "1x4", "2x1"], rng.integers(1, 4), replace=False):
                stages, degree = map(int, str(shape).split("x"))
                per_s = [
                    round(float(rng.uniform(1, 5) * stages * degree), 3) if rng.random() < 0.9 else 0.0
                    for _ in kinds
                ]
                configurations.append(({name: stages * degree}, per_s))
                rows += [
                    {
                        "model": "Llama-3-8B",
                        "deployment": f"{name} {shape}",
                        "workload": kind,
                        "requests_per_s": h,
                    }
                    for kind, h in zip(kinds, per_s)
                ]
        return configurations, {"measured": rows}, "Llama-3-8B", {"measured_only": True}

    found = compare(range(90), make)
    assert found["feasible"] >= 30 and found["infeasible"] >= 10, found
    assert found["machines"] >= 5 and found["spot"] >= 5 and found["two kinds"] >= 12, found
    assert found["several deployments"] >= 7 and found["pipelines"] >= 1, found


def estimates(
    model: str, offers: dict[str, dict[str, Any]], kinds: list[str], stages: int
) -> list[tuple[dict[str, int], list[float]]]:
    """Pipelines of so many stages of one type and degree that fit in memory, with the estimated throughputs.
    """
    described = serving.language_model(model)
    configurations = []
    for name, offer in offers.items():
        gpu = serving.gpu_type(name)
        there = offer["available"] + offer["spot_available"]
        for deployment in serving.enumerate_deployments(
            described, [gpu], [there], max_stages=stages, max_types=1
        ):
            per_s = [
                serving.estimate_throughput(described, [gpu], deployment, *SHAPES[kind]).requests_per_s
                for kind in kinds
            ]
            configurations.append(({name: sum(stage.degree for stage in deployment.stages)}, per_s))
    return configurations


def test_plans_of_estimates_alone() -> None:
    """By default, a model that fits one group of a machine is not cut into an unmeasured pipeline."""

    def groups(rng: np.random.Generator, offers: Any, kinds: list[str]) -> Any:
        model = str(rng.choice(["Llama-3-8B", "Llama-3-70B"], p=[0.6, 0.4]))
        configurations = estimates(model, offers, kinds, 1)
        assert all(sum(gpus.values()) in DEGREES for gpus, _ in configurations)
        return configurations, {}, model, {}

    def pipelines(rng: np.random.Generator, offers: Any, kinds: list[str]) -> Any:
        model = str(rng.choice(["Llama-3-8B", "Llama-3-70B"], p=[0.3, 0.7]))
        options = {"unmeasured_pipelines": True, "deployments": {"max_types": 1, "max_stages": 3}}
        return estimates(model, offers, kinds, 3), {}, model, options

    found = compare(range(1000, 1050), groups)
    assert found["feasible"] >= 20 and found["infeasible"] >= 8 and found["pipelines"] == 0, found
    found = compare(range(2000, 2040), pipelines)
    assert found["feasible"] >= 10 and found["pipelines"] >= 2, found
