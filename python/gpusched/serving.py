# SPDX-License-Identifier: Apache-2.0
"""Serving of language models: GPU catalogue, deployments, throughput estimates and rental plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core import serving as _core
from ._core.serving import *
from ._core.serving import ServingPlan
from ._deployment_costs import DeploymentCosts, deployment_costs
from ._serving_curve import Curve, curve, curve_to_dict, rent_in_words
from ._serving_deploy import command_lines, manifests
from ._workload_monitor import (
    Shift,
    WorkloadMonitor,
    follow_workload,
    rate_differs_by_chance,
    shares_differ_by_chance,
)

__all__ = [
    "Arrival",
    "Autoscaler",
    "AutoscalingResult",
    "Curve",
    "Deployment",
    "DeploymentCosts",
    "ErrorBand",
    "GpuType",
    "KindLatency",
    "LanguageModel",
    "LatencyResult",
    "PoolSizes",
    "PoolWindow",
    "Prediction",
    "PredictionErrors",
    "ReplanResult",
    "ReplicaTimes",
    "ServingMilp",
    "ServingPlan",
    "ServingSolution",
    "Shift",
    "Stage",
    "ThroughputEstimate",
    "WorkloadMonitor",
    "calibrate",
    "closed_form_bound",
    "command_lines",
    "curve",
    "curve_to_dict",
    "daily_arrivals",
    "deployment_costs",
    "enumerate_deployments",
    "estimate_throughput",
    "expected_rate",
    "fewest_fixed",
    "follow_workload",
    "gpu_catalogue",
    "gpu_type",
    "greedy_plan",
    "language_model",
    "layer_seconds",
    "manifests",
    "most_intervals",
    "paper_gpus",
    "paper_gpus_dense",
    "plan_serving",
    "plan_to_dict",
    "pool_sizes",
    "predict",
    "predict_disaggregated",
    "rate_differs_by_chance",
    "read_layer_profile",
    "rent_in_words",
    "replan",
    "replica_times",
    "request_to_dict",
    "serving_milp",
    "shares_differ_by_chance",
    "simulate_autoscaling",
    "simulate_latency",
    "solve_serving_plan",
    "sweep_budgets",
    "sweep_to_dict",
]


def sweep_to_dict(plans: Mapping[float, ServingPlan]) -> dict[str, Any]:
    """Plans by budget as a document of the format `gpusched.serving-sweep` v2 (docs/schema)."""
    return _core._sweep_to_dict(list(plans), list(plans.values()))
