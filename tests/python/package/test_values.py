# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are written in Python: numbers of numpy, and messages about wrong types, values
and names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from gpusched import serving, sim
from gpusched.errors import InvalidType
from messages import naming

CHAT = {"input": 496, "output": 510, "requests": 10}
REQUEST: dict[str, Any] = {
    "budget": 10,
    "gpus": {"H100": {"available": 1, "price": 3.0}},
    "models": {
        "small": {
            "type": "Llama-3-8B",
            "workloads": {"chat": CHAT, "code": {"input": 9, "output": 9, "requests": 1}},
        },
        "smaller": {"type": "Llama-3-8B", "workloads": {"chat": CHAT}},
    },
}
ONE = {"seeds": [0], "duration_s": 30}


def monitor(**options: Any) -> serving.WorkloadMonitor:
    return serving.WorkloadMonitor(REQUEST, **options)


def plan() -> Any:
    return serving.plan_serving(REQUEST)


TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: sim.compare_hosts("full", [0]), "compare_hosts() variants 'full'"),  # type: ignore[arg-type]
    (lambda: sim.compare_hosts(["full"], 3), "compare_hosts() seeds 3"),  # type: ignore[arg-type]
    (lambda: sim.compare_hosts(["full"], np.int64(3)), "compare_hosts() seeds"),  # type: ignore[arg-type]
    (lambda: sim.compare_hosts(["full"], overrides=[1]), "compare_hosts() overrides [1]"),
    (lambda: serving.deployment_costs(3), "deployment_costs() request 3"),  # type: ignore[arg-type]
    (lambda: serving.deployment_costs(REQUEST, 90), "deployment_costs() percentiles 90"),  # type: ignore[arg-type]
    (lambda: serving.deployment_costs(REQUEST, deployments=3), "deployment_costs() deployments 3"),  # type: ignore[arg-type]
    (lambda: serving.deployment_costs(REQUEST, estimate=[]), "deployment_costs() estimate []"),  # type: ignore[arg-type]
    (lambda: serving.curve(REQUEST, np.int64(1)), "curve() rates"),  # type: ignore[arg-type]
    (lambda: serving.curve(REQUEST, "12"), "curve() rates '12'"),  # type: ignore[arg-type]
    (lambda: serving.curve(REQUEST, None), "curve() rates None"),  # type: ignore[arg-type]
    (lambda: serving.curve(REQUEST, [1], {"ttft_p90_s": 1}), "curve() targets {'ttft_p90_s' 1}"),  # type: ignore[arg-type]
    (lambda: serving.curve(REQUEST, [1], ["x"]), "curve() targets[0] 'x'"),  # type: ignore[list-item]
    (lambda: serving.follow_workload(REQUEST, plan(), 3), "follow_workload() arrivals 3"),  # type: ignore[arg-type]
    (lambda: serving.follow_workload(REQUEST, plan(), [], monitor=3), "follow_workload() monitor 3"),  # type: ignore[arg-type]
]

VALUES: list[tuple[Callable[[], Any], str]] = [
    (lambda: sim.compare_hosts(["static", "ful"], **ONE), "variants[1] 'ful' 'static' 'full'"),  # type: ignore[list-item]
    (lambda: sim.compare_hosts([3], **ONE), "variants[0] 3 'static'"),  # type: ignore[list-item]
    (lambda: sim.compare_hosts(["static"], [0, "x"]), "seeds[1] 'x' 0"),  # type: ignore[list-item]
    (lambda: sim.compare_hosts(["static"], [0, -1]), "seeds[1] -1 0"),
    (lambda: sim.compare_hosts(["static"], [0], duration_s="x"), "duration_s 'x'"),
    (lambda: sim.compare_hosts(["static"], [0], overrides={"dwel": 3}), "overrides /dwel unknown"),
    (lambda: serving.deployment_costs(REQUEST, [50, 90.5]), "percentiles[1] 90.5 1 100"),  # type: ignore[list-item]
    (lambda: serving.deployment_costs(REQUEST, utilization="x"), "utilization 'x' 0 1"),  # type: ignore[arg-type]
    (lambda: serving.deployment_costs(REQUEST, simulated_requests=0), "simulated_requests 0 1 10000000"),
    (lambda: serving.deployment_costs(REQUEST, seed=-1), "seed -1 0"),
    (lambda: serving.deployment_costs(REQUEST, deployments={"max_gpu": 1}), "deployments unknown 'max_gpu' 'max_gpus'"),
    (lambda: serving.deployment_costs(REQUEST, estimate={"max_bach": 1}), "'max_batch'"),
    (lambda: serving.deployment_costs(REQUEST).of(deploymnt="x"), "deploymnt model gpu 'deployment'"),
    (lambda: monitor(persistence=1.5), "persistence 1.5 1 1000000"),
    (lambda: monitor(alpha="x"), "alpha 'x' 1e-300 1"),
    (lambda: monitor().observe("x", "code"), "time_s 'x'"),  # type: ignore[arg-type]
    (lambda: monitor().advance(float("nan")), "time_s nan"),
    (lambda: monitor().observe(1.0, "cde"), "kind 'cde' 'chat' 'code'"),
    (lambda: monitor().observe(1.0, "chat"), "kind 'chat' 2 requests 'small'"),
    (lambda: monitor().observe(1.0, "code", "smaler"), "'small' 'smaller'"),
    (lambda: monitor().kind_of(1, "x"), "output 'x' 0"),  # type: ignore[arg-type]
    (lambda: monitor().kind_of(1, 1, "smal"), "model 'smal' 'small' 'smaller'"),
    (lambda: list(serving.follow_workload(REQUEST, plan(), [(1.0, "code"), 3])), "arrivals[1] 3"),  # type: ignore[list-item]
    (lambda: serving.follow_workload(REQUEST, plan(), [], monitor={"window": 3}), "monitor unknown 'window' window_s"),
    (lambda: serving.shares_differ_by_chance("x", 2, 0.1), "count 'x'"),  # type: ignore[arg-type]
    (lambda: serving.rate_differs_by_chance(-4, 2), "count -4 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "told"), TYPES)
def test_arguments_of_other_types_name_the_function(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InvalidType, match=naming(told)):
        call()


@pytest.mark.parametrize(("call", "told"), VALUES)
def test_values_are_named_with_the_expectation(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(gs.InvalidInput, match=naming(told)):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: sim.compare_hosts(["static"], [0], duratin_s=1), "compare_hosts() 'duratin_s' 'duration_s'"),
        (lambda: serving.follow_workload(REQUEST, plan(), [], slak=0.1), "follow_workload() 'slak' 'slack'"),
    ],
)
def test_unknown_keywords_name_the_function(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(TypeError, match=naming(told)):
        call()


def test_numbers_and_arrays_of_numpy_are_taken() -> None:
    alike = {"seeds": np.arange(1), "duration_s": np.float32(30), "overrides": {"dwell": np.int64(64)}}
    assert sim.compare_hosts(np.array(["static"]), **alike) == sim.compare_hosts(
        ["static"], overrides={"dwell": 64}, **ONE
    )  # type: ignore[arg-type]
    options = {"simulated_requests": np.int64(50), "utilization": np.float32(0.5), "seed": np.uint8(1)}
    costs = serving.deployment_costs(REQUEST, np.array([50, 90]), **options)  # type: ignore[arg-type]
    assert costs == serving.deployment_costs(
        REQUEST, (50, 90), simulated_requests=50, utilization=0.5, seed=1
    )
    assert serving.deployment_costs(REQUEST, (50, 50), simulated_requests=50).columns[-1:] == ("dollars_p50",)
    assert monitor(persistence=np.int64(2), window_s=np.float32(10)).persistence == 2
    assert monitor().kind_of(np.int64(496), np.int32(510), "small") == ("small", "chat")
    assert monitor().observe(np.float64(1), "code") is None
    half = {"memory_fraction": 0.5}
    assert serving.deployment_costs(REQUEST, estimate=half) != serving.deployment_costs(REQUEST)
    curve = serving.curve(REQUEST, np.array([1.0, 2.0]))
    assert curve.column("rate") == [1.0, 2.0]
