"""Serving of language models: GPU catalogue, possible deployments, throughput estimates, plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core.serving import (
    Deployment,
    GpuType,
    LanguageModel,
    LatencyResult,
    ReplanResult,
    ServingMilp,
    ServingPlan,
    ServingSolution,
    Stage,
    ThroughputEstimate,
    closed_form_bound,
    enumerate_deployments,
    estimate_throughput,
    gpu_catalogue,
    gpu_type,
    greedy_plan,
    language_model,
    layer_seconds,
    paper_gpus,
    paper_gpus_dense,
    plan_serving,
    read_layer_profile,
    replan,
    serving_plan,
    simulate_latency,
    solve_serving_plan,
    sweep_budgets,
)

__all__ = [
    "Deployment",
    "GpuType",
    "LanguageModel",
    "LatencyResult",
    "ReplanResult",
    "ServingMilp",
    "ServingPlan",
    "ServingSolution",
    "Stage",
    "ThroughputEstimate",
    "closed_form_bound",
    "enumerate_deployments",
    "estimate_throughput",
    "gpu_catalogue",
    "gpu_type",
    "greedy_plan",
    "language_model",
    "layer_seconds",
    "paper_gpus",
    "paper_gpus_dense",
    "plan_serving",
    "plan_to_dict",
    "read_layer_profile",
    "replan",
    "serving_plan",
    "simulate_latency",
    "solve_serving_plan",
    "sweep_budgets",
    "sweep_to_dict",
]


def plan_to_dict(plan: ServingPlan, changed: ReplanResult | None = None) -> dict[str, Any]:
    """A plan as the document `gpusched.serving-plan` v1 (docs/schema); with what a replanning changed, if given."""
    document: dict[str, Any] = {"format": "gpusched.serving-plan", "version": 1}
    for name in (
        "status", "makespan", "bound", "optimal", "requests_per_s", "cost", "cost_per_request", "rented",
        "replicas", "deployments", "left_out", "solver", "message",
    ):  # fmt: skip
        document[name] = getattr(plan, name)
    if changed is not None:
        document["starts"] = changed.starts
        document["stops"] = changed.stops
        document["makespan_kept"] = changed.makespan_kept
        document["makespan_free"] = changed.makespan_free
    return document


def sweep_to_dict(plans: Mapping[float, ServingPlan]) -> dict[str, Any]:
    """Plans by budget as the document `gpusched.serving-sweep` v1 (docs/schema)."""
    return {
        "format": "gpusched.serving-sweep",
        "version": 1,
        "plans": [{"budget": budget, "plan": plan_to_dict(plan)} for budget, plan in plans.items()],
    }
