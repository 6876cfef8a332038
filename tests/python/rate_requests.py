# SPDX-License-Identifier: Apache-2.0
"""Requests with rates, for the tests of the planner and of its documents."""

from __future__ import annotations

from typing import Any

SHAPES = {"chat": (500, 250), "code": (1500, 30)}


def request(**more: Any) -> dict[str, Any]:
    kinds = {
        name: {"input": SHAPES[name][0], "output": SHAPES[name][1], "rate": rate}
        for name, rate in (("chat", 20.0), ("code", 6.0))
    }
    return {
        "format": "gpusched.serving-request",
        "version": 2,
        "gpus": {
            "H100": {"machines": 4, "price": 3.0},
            "A100-80GB": {"machines": 4, "price": 1.8},
            "L40S": {"machines": 4, "price": 1.1},
        },
        "models": {"Llama-3-70B": {"workloads": kinds}},
        **more,
    }


def row(deployment: str, workload: str, per_s: float, **more: Any) -> dict[str, Any]:
    return {
        "model": "Llama-3-70B",
        "deployment": deployment,
        "workload": workload,
        "requests_per_s": per_s,
        **more,
    }
