# SPDX-License-Identifier: Apache-2.0
"""Arguments of functions that are written in Python: numbers of numpy, and messages about wrong types, values
and names.
"""

from __future__ import annotations

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


def plan() -> Any:
    return serving.plan_serving(REQUEST)


TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: sim.compare_hosts("full", [0]), "compare_hosts(): variants: 'full'; expected a list of names"),
    (lambda: sim.compare_hosts(["full"], 3), "compare_hosts(): seeds: 3; expected a list of integers"),
    (lambda: sim.compare_hosts(["full"], np.int64(3)), "compare_hosts(): seeds: expected a list of integers"),
    (lambda: sim.compare_hosts(["full"], overrides=[1]), "compare_hosts(): overrides: [1]; expected a dict"),
    (lambda: serving.deployment_costs(3), "deployment_costs(): request: 3; expected a dict"),
    (
        lambda: serving.deployment_costs(REQUEST, 90),
        "deployment_costs(): percentiles: 90; expected a list of",
    ),
    (
        lambda: serving.deployment_costs(REQUEST, deployments=3),
        "deployment_costs(): deployments: 3; expected a dict",
    ),
    (
        lambda: serving.deployment_costs(REQUEST, estimate=[]),
        "deployment_costs(): estimate: []; expected a dict",
    ),
    (lambda: serving.curve(REQUEST, np.int64(1)), "curve(): rates: expected a list of numbers"),
    (lambda: serving.curve(REQUEST, "12"), "curve(): rates: '12'; expected a list of numbers"),
    (lambda: serving.curve(REQUEST, None), "curve(): rates: None; expected a list of numbers"),
    (
        lambda: serving.curve(REQUEST, [1], {"ttft_p90_s": 1}),
        "curve(): targets: {'ttft_p90_s': 1}; expected a list of dicts",
    ),
    (lambda: serving.curve(REQUEST, [1], ["x"]), "curve(): targets[0]: 'x'; expected a dict"),
    (
        lambda: serving.follow_workload(REQUEST, plan(), 3),
        "follow_workload(): arrivals: 3; expected pairs of a time in seconds and a kind",
    ),
    (
        lambda: serving.follow_workload(REQUEST, plan(), [], monitor=3),
        "follow_workload(): monitor: 3; expected a dict",
    ),
]

VALUES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: sim.compare_hosts(["static", "ful"], **ONE),
        "variants[1]: 'ful'; expected one of 'static', did you mean 'full'",
    ),
    (lambda: sim.compare_hosts([3], **ONE), "variants[0]: 3; expected one of 'static',"),
    (lambda: sim.compare_hosts(["static"], [0, "x"]), "seeds[1]: 'x'; expected an integer from 0 to"),
    (lambda: sim.compare_hosts(["static"], [0, -1]), "seeds[1]: -1; expected 0 to"),
    (lambda: sim.compare_hosts(["static"], [0], duration_s="x"), "duration_s: 'x'; expected a number"),
    (lambda: sim.compare_hosts(["static"], [0], overrides={"dwel": 3}), "overrides: /dwel: unknown field;"),
    (lambda: serving.deployment_costs(REQUEST, [50, 90.5]), "percentiles[1] 90.5 1 100"),
    (lambda: serving.deployment_costs(REQUEST, utilization="x"), "utilization 'x' 0 1"),
    (lambda: serving.deployment_costs(REQUEST, simulated_requests=0), "simulated_requests 0 1 10000000"),
    (lambda: serving.deployment_costs(REQUEST, seed=-1), "seed -1 0"),
    (
        lambda: serving.deployment_costs(REQUEST, deployments={"max_gpu": 1}),
        "deployments: unknown field 'max_gpu'; expected degrees, did you mean 'max_gpus'",
    ),
    (
        lambda: serving.deployment_costs(REQUEST, estimate={"max_bach": 1}),
        "estimate: unknown field 'max_bach'; did you mean 'max_batch'",
    ),
    (
        lambda: serving.deployment_costs(REQUEST).of(deploymnt="x"),
        "deploymnt: unknown column; expected one of model, gpu, did you mean 'deployment'?",
    ),
    (lambda: monitor(persistence=1.5), "persistence 1.5 1 1000000"),
    (lambda: monitor(alpha="x"), "alpha 'x' 1e-300 1"),
    (lambda: monitor().observe("x", "code"), "time_s: 'x'; expected a number"),
    (lambda: monitor().advance(float("nan")), "time_s: nan; expected a number"),
    (
        lambda: monitor().observe(1.0, "cde"),
        "kind: 'cde'; expected one of 'chat', 'code'; did you mean 'code'?",
    ),
    (
        lambda: monitor().observe(1.0, "chat"),
        "kind: 'chat' is a kind of requests of 2 models; expected model, one of 'small' or 'smaller'",
    ),
    (
        lambda: monitor().observe(1.0, "code", "smaler"),
        "model: 'smaler'; expected one of 'small', 'smaller'; did you mean 'smaller' or 'small'?",
    ),
    (lambda: monitor().kind_of(1, "x"), "output 'x' 0"),
    (lambda: monitor().kind_of(1, 1, "smal"), "model: 'smal'; expected one of 'small', 'smaller'"),
    (
        lambda: list(serving.follow_workload(REQUEST, plan(), [(1.0, "code"), 3])),
        "arrivals[1]: 3; expected a time in seconds",
    ),
    (
        lambda: serving.follow_workload(REQUEST, plan(), [], monitor={"window": 3}),
        "monitor: unknown field 'window'; expected window_s,",
    ),
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


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: sim.compare_hosts(["static"], [0], duratin_s=1),
            "compare_hosts() 'duratin_s'; did you mean 'duration_s'",
        ),
        (
            lambda: serving.follow_workload(REQUEST, plan(), [], slak=0.1),
            "follow_workload() 'slak'; did you mean 'slack'",
        ),
    ],
)
def test_unknown_keywords_name_the_function(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(TypeError, match=naming(told)):
        call()


def test_numbers_and_arrays_of_numpy_are_taken() -> None:
    alike = {"seeds": np.arange(1), "duration_s": np.float32(30), "overrides": {"dwell": np.int64(64)}}
    assert sim.compare_hosts(np.array(["static"]), **alike) == sim.compare_hosts(
        ["static"], overrides={"dwell": 64}, **ONE
    )
    options = {"simulated_requests": np.int64(50), "utilization": np.float32(0.5), "seed": np.uint8(1)}
    costs = serving.deployment_costs(REQUEST, np.array([50, 90]), **options)
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
