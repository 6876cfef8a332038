# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are written in Python: numbers of numpy, and messages about wrong types, values
and names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpusched import serving, sim
from gpusched.errors import InvalidType
from messages import naming, refuses

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


def costs(*arguments: Any, request: Any = REQUEST, **options: Any) -> Any:
    return serving.deployment_costs(request, *arguments, **options)


@functools.cache
def plan() -> Any:
    return serving.plan_serving(REQUEST)


def follow(arrivals: Any, **options: Any) -> Any:
    return serving.follow_workload(REQUEST, plan(), arrivals, **options)


TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: sim.compare_hosts("full", [0]), "compare_hosts(): variants: 'full'; expected a list of names"),
    (lambda: sim.compare_hosts(["full"], 3), "compare_hosts(): seeds: 3; expected a list of integers"),
    (lambda: sim.compare_hosts(["full"], np.int64(3)), "compare_hosts(): seeds: expected a list of integers"),
    (lambda: sim.compare_hosts(["full"], overrides=[1]), "compare_hosts(): overrides: [1]; expected a dict"),
    (lambda: costs(request=3), "deployment_costs(): request: 3; expected a dict"),
    (lambda: costs(90), "deployment_costs(): percentiles: 90; expected a list of"),
    (lambda: costs(deployments=3), "deployment_costs(): deployments: 3; expected a dict"),
    (lambda: serving.curve(REQUEST, "12"), "curve(): rates: '12'; expected a list of numbers"),
    (lambda: serving.curve(REQUEST, [1], {"a": 1}), "curve(): targets: {'a': 1}; a list of dicts"),
    (lambda: serving.curve(REQUEST, [1], ["x"]), "curve(): targets[0]: 'x'; expected a dict"),
    (lambda: follow(3), "follow_workload(): arrivals: 3; pairs of a time in seconds and a kind"),
    (lambda: follow([], monitor=3), "follow_workload(): monitor: 3; expected a dict"),
]

VALUES: list[tuple[Callable[[], Any], str]] = [
    (lambda: sim.compare_hosts(["static", "ful"], **ONE), "variants[1]: 'ful'; mean 'full'"),
    (lambda: sim.compare_hosts([3], **ONE), "variants[0]: 3; expected one of 'static',"),
    (lambda: sim.compare_hosts(["static"], [0, -1]), "seeds[1]: -1; expected 0 to"),
    (lambda: costs([50, 90.5]), "percentiles[1] 90.5 1 100"),
    (lambda: costs(utilization="x"), "utilization 'x' 0 1"),
    (lambda: costs(simulated_requests=0), "simulated_requests 0 1 10000000"),
    (lambda: costs(estimate={"max_bach": 1}), "estimate: unknown 'max_bach'; mean 'max_batch'"),
    (lambda: costs().of(deploymnt="x"), "deploymnt: unknown column; did you mean 'deployment'?"),
    (lambda: monitor(persistence=1.5), "persistence 1.5 1 1000000"),
    (lambda: monitor(alpha="x"), "alpha 'x' 1e-300 1"),
    (lambda: monitor().advance(float("nan")), "time_s: nan; expected a number"),
    (lambda: monitor().observe(1.0, "chat"), "kind: 'chat' 2 models; one of 'small' or 'smaller'"),
    (lambda: monitor().observe(1.0, "code", "smaler"), "model: 'smaler'; 'smaller' or 'small'?"),
    (lambda: monitor().kind_of(1, "x"), "output 'x' 0"),
    (lambda: list(follow([(1.0, "code"), 3])), "arrivals[1]: 3; expected a time in seconds"),
    (lambda: follow([], monitor={"window": 3}), "monitor: unknown field 'window'; window_s,"),
    (lambda: serving.shares_differ_by_chance("x", 2, 0.1), "count: 'x'; expected an integer"),
    (lambda: serving.rate_differs_by_chance(-4, 2), "count -4 0"),
]


@pytest.mark.parametrize(("call", "told"), TYPES)
def test_arguments_of_other_types_name_the_function(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(InvalidType, match=naming(told)):
        call()


@pytest.mark.parametrize(("call", "told"), VALUES)
def test_values_are_named_with_the_expectation(call: Callable[[], Any], told: str) -> None:
    with refuses(told):
        call()


def test_unknown_keywords_name_the_function() -> None:
    with pytest.raises(TypeError, match=naming("compare_hosts() 'duratin_s'; mean 'duration_s'")):
        sim.compare_hosts(["static"], [0], duratin_s=1)
    with pytest.raises(TypeError, match=naming("follow_workload() 'slak'; did you mean 'slack'")):
        follow([], slak=0.1)


def test_numbers_and_arrays_of_numpy_are_taken() -> None:
    alike = {"seeds": np.arange(1), "duration_s": np.float32(30), "overrides": {"dwell": np.int64(64)}}
    assert sim.compare_hosts(np.array(["static"]), **alike) == sim.compare_hosts(
        ["static"], overrides={"dwell": 64}, **ONE
    )
    options = {"simulated_requests": np.int64(50), "utilization": np.float32(0.5), "seed": np.uint8(1)}
    plain = {"simulated_requests": 50, "utilization": 0.5, "seed": 1}
    assert costs(np.array([50, 90]), **options) == costs((50, 90), **plain)
    assert costs((50, 50), simulated_requests=50).columns[-1:] == ("dollars_p50",)
    assert monitor(persistence=np.int64(2), window_s=np.float32(10)).persistence == 2
    assert monitor().kind_of(np.int64(496), np.int32(510), "small") == ("small", "chat")
    assert monitor().observe(np.float64(1), "code") is None
    half = {"memory_fraction": 0.5}
    assert costs(estimate=half) != costs()
    curve = serving.curve(REQUEST, np.array([1.0, 2.0]))
    assert curve.column("rate") == [1.0, 2.0]
