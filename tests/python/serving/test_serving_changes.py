# SPDX-License-Identifier: Apache-2.0
"""Replanning for rates: as few replicas as possible start, for the least cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gpusched import serving
from messages import mention, mentions, problems_in
from rate_requests import request, row

pytestmark = pytest.mark.usefixtures("solver")


def diff(old: serving.ServingPlan, new: serving.ServingPlan) -> int:
    """Starts of a plan that is put in the place of another one."""
    before = {r["deployment"]: r["count"] for r in old.replicas}
    return sum(max(0, r["count"] - before.get(r["deployment"], 0)) for r in new.replicas)


@pytest.mark.parametrize("change", ["sold out", "price up", "rate doubled", "nothing"])
def test_replanning_starts_few_replicas_for_the_least_cost(change: str) -> None:
    asked = request()
    options: dict[str, Any] = {"ttft_p90_s": 1.5, "deployments": {"max_types": 1}}
    before = serving.plan_serving(asked, rate=15.0, **options)
    used = next(iter(before.rented))
    rate = 15.0
    if change == "sold out":
        asked["gpus"][used] = {**asked["gpus"][used], "machines": 0}
    elif change == "price up":
        asked["gpus"][used]["price"] *= 2
    elif change == "rate doubled":
        rate = 30.0
    anew = serving.plan_serving(asked, rate=rate, **options)
    changed = serving.replan(asked, before, rate=rate, **options)
    assert changed.cost_free <= anew.cost * (1 + 1e-6)
    assert changed.plan.cost <= changed.cost_free * (1 + 1e-6)
    assert changed.starts <= diff(before, anew) and changed.starts == diff(before, changed.plan)
    assert all(kind["met"] for kind in changed.plan.latencies)
    loose = serving.replan(asked, before, rate=rate, slack=1.0, **options)
    assert loose.starts <= changed.starts and loose.plan.cost <= 2 * changed.cost_free * (1 + 1e-6)
    if change == "nothing":
        assert changed.starts == 0
    if change == "price up":
        assert loose.starts == 0


def test_of_the_fewest_starts_the_cheapest() -> None:
    gpus = {"H100": {"available": 40, "price": 3.0}, "A100-80GB": {"available": 40, "price": 1.8}}
    asked = request(gpus=gpus, measured=[row("H100 1x4", "chat", 10.0), row("A100-80GB 1x4", "chat", 4.0)])
    options: dict[str, Any] = {"measured_only": True, "utilization": 1.0}
    before = serving.plan_serving(asked, rate={"chat": 20.0}, **options)
    assert [(r["deployment"], r["count"]) for r in before.replicas] == [("H100 1x4", 2)]
    # 23 requests/s: a third group of H100 for 12 $/h or one of A100 for 7.2 $/h; whoever may spend twice as
    # much need not.
    changed = serving.replan(asked, before, rate={"chat": 23.0}, slack=1.0, **options)
    assert (changed.starts, changed.stops) == (1, 0)
    assert changed.plan.cost == pytest.approx(24 + 7.2) == changed.cost_free
    # H100 at twice the price: the cheapest plan leaves them, and without starts they stay at their price.
    gpus["H100"]["price"] = 6.0
    kept = serving.replan(asked, before, rate={"chat": 20.0}, slack=1.0, **options)
    assert (kept.starts, kept.plan.cost, kept.cost_free) == (0, pytest.approx(48), pytest.approx(36))
    assert mentions(kept.plan.message, "fewest starts within slack")


def test_a_plan_is_replanned_from_its_document() -> None:
    options: dict[str, Any] = {"rate": 15.0, "deployments": {"max_types": 1}}
    before = serving.plan_serving(request(), **options)
    document = json.loads(json.dumps(serving.plan_to_dict(before)))
    changed = serving.replan(request(), document, **options)
    assert (changed.starts, changed.stops) == (0, 0) and changed.plan.replicas == serving.replan(
        request(), before, **options
    ).plan.replicas
    # What a replanning wrote is a plan as well.
    assert serving.replan(request(), serving.plan_to_dict(changed.plan, changed), **options).starts == 0
    for wrong, told in (
        ({**document, "version": 3}, "running: /version: from 1 to 2, found 3"),
        ("H100", 'running: expected a serving plan or a list of replicas, found "H100"'),
    ):
        assert mention(problems_in(serving.replan, request(), wrong, **options), [told])


def test_a_plan_is_replanned_with_other_types_or_another_order() -> None:
    asked = request()
    before = serving.plan_serving(asked, rate=15.0)
    turned = {**asked, "gpus": dict(reversed(asked["gpus"].items()))}
    assert serving.replan(turned, before, rate=15.0).starts == 0
    used = next(gpu for gpu, count in before.rented.items() if count)
    left = {**asked, "gpus": {name: gpu for name, gpu in asked["gpus"].items() if name != used}}
    changed = serving.replan(left, before, rate=15.0)
    assert left["gpus"] and changed.plan.status in ("optimal", "feasible", "infeasible")
