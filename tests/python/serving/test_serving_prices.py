# SPDX-License-Identifier: Apache-2.0
"""Price ranges: within which prices a plan stays the cheapest."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from gpusched import serving
from rate_requests import request, row
from schemas import validator

pytestmark = pytest.mark.usefixtures("solver")


def test_price_ranges_end_at_changes_of_the_plan() -> None:
    asked = request(gpus={"H100": {"available": 32, "price": 3.0}, "A100-80GB": {"available": 32,
        "price": 1.8}},
                    measured=[row("H100 1x4", "chat", 10.0), row("A100-80GB 1x4", "chat", 5.0)])  # fmt: skip
    options: dict[str, Any] = {"rate": {"chat": 40.0}, "measured_only": True, "utilization": 1.0}
    plan = serving.plan_serving(asked, **options)
    # By hand: 4 x 4 H100 for 48 $/h, against 8 x 4 A100 for 57.6 $/h; they meet at 3.6 and at 1.5 $/h.
    assert plan.rented == {"H100": 16}
    ranges = {r["gpu"]: (r["low"], r["high"]) for r in plan.price_ranges}
    assert ranges["H100"] == pytest.approx((0, 3.6)) and ranges["A100-80GB"] == pytest.approx(
        (1.5, float("inf"))
    )
    # Found when asked for, and again by a copy; the same whatever the budget, at which dearer deployments
    # were not looked at.
    again = pickle.loads(pickle.dumps(serving.plan_serving(asked, **options)))
    assert again == plan and again.price_ranges == plan.price_ranges
    assert serving.plan_serving({**asked, "budget": 48.0}, **options).price_ranges == plan.price_ranges
    document = serving.plan_to_dict(plan, price_ranges=True)
    validator("serving-plan.v2").validate(document)
    assert document["price_ranges"][1]["high"] is None and "price_ranges" not in serving.plan_to_dict(plan)
    for price, rented in ((3.59, {"H100": 16}), (3.61, {"A100-80GB": 32})):
        asked["gpus"]["H100"]["price"] = price
        assert serving.plan_serving(asked, **options).rented == rented


def test_price_ranges_of_spot_prices() -> None:
    gpus = {
        "H100": {"available": 16, "price": 3.0, "spot_price": 1.4, "spot_available": 8},
        "A100-80GB": {"available": 32, "price": 1.8},
    }
    rows = [row("H100 1x4", "chat", 10.0), row("A100-80GB 1x4", "chat", 5.0)]
    options: dict[str, Any] = {"rate": {"chat": 20.0}, "measured_only": True, "utilization": 1.0}
    plan = serving.plan_serving(request(gpus=gpus, measured=rows), **options)
    assert (plan.cost, plan.rentals[0]["spot"]) == (pytest.approx(11.2), 8)
    # By hand: two groups of spot H100 for 8 times their price, against the same at the usual price (24 $/h),
    # or A100 (28.8 $/h).
    ranges = {(r["gpu"], r["spot"]): (r["low"], r["high"]) for r in plan.price_ranges}
    assert ranges[("H100", True)] == pytest.approx((0, 3.0)) and ranges[("H100", False)] == pytest.approx(
        (1.4, float("inf"))
    )
    assert ranges[("A100-80GB", False)] == pytest.approx((0.7, float("inf"))) and len(ranges) == 3
    for price, spot in ((2.99, 8), (3.01, 0)):
        gpus["H100"]["spot_price"] = price
        assert serving.plan_serving(request(gpus=gpus, measured=rows), **options).rentals[0]["spot"] == spot


def test_price_ranges_that_were_not_found_are_not_claimed() -> None:
    calls: list[int] = []

    def tired(model: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Solves the two programs of the plan, and no more."""
        calls.append(1)
        if len(calls) > 2:
            return {"status": "time_limit"}
        found = model.solve()
        return {"status": found.status, "x": found.x, "bound": found.bound}

    asked = request(gpus={"H100": {"available": 32, "price": 3.0}}, measured=[row("H100 1x4", "chat", 10.0)])
    plan = serving.plan_serving(asked, rate={"chat": 40.0}, measured_only=True, utilization=1.0, solver=tired)
    assert plan.rented == {"H100": 16}
    assert plan.price_ranges == [
        {"gpu": "H100", "spot": False, "price": 3.0, "low": 3.0, "high": 3.0, "proven": False}
    ]
