# SPDX-License-Identifier: Apache-2.0
"""Figures of serving plans, cost curves and deployment costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._drawing import PALETTE, figure_width, hide_frame, new_axes, plain, require_type
from ..errors import InvalidInput, repr_text
from ..serving import Curve, DeploymentCosts, ServingPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _budgets(plans: Mapping[float, ServingPlan]) -> list[float]:
    if not isinstance(plans, Mapping) or not plans:
        raise InvalidInput(f"plans: {repr_text(plans)}; expected a dict of plans by budget, at least one")
    return sorted(plans)


def plot_composition(plans: Mapping[float, ServingPlan], ax: Axes | None = None) -> Axes:
    """Draws the spending on each GPU type, by budget.

    `plans`: serving plans by budget in $/h. Each bar shows the share of a GPU type in the cost, and its
    number of GPUs. Budgets without a plan have no bar.
    """
    budgets = _budgets(plans)
    ax = new_axes(ax, figsize=(figure_width(4.0, 0.7, len(budgets)), 3.2))
    spent: dict[str, list[float]] = {}
    counts: dict[str, list[int]] = {}
    for at, budget in enumerate(budgets):
        for replicas in plans[budget].replicas:
            total = sum(replicas["gpus"].values())
            for name, count in replicas["gpus"].items():
                # The cost of a replica with several GPU types is shared in proportion to its GPUs.
                spent.setdefault(name, [0.0] * len(budgets))[at] += replicas["cost"] * count / total
                counts.setdefault(name, [0] * len(budgets))[at] += replicas["count"] * count
    below = np.zeros(len(budgets))
    for i, name in enumerate(sorted(spent)):
        color = PALETTE[i % len(PALETTE)]
        bars = ax.bar(range(len(budgets)), spent[name], bottom=below, color=color, label=plain(name))
        ax.bar_label(bars, [str(n) if n else "" for n in counts[name]], label_type="center", fontsize=8)
        below += spent[name]
    ax.set_xticks(range(len(budgets)), [f"{budget:g}" for budget in budgets])
    ax.set_xlabel("budget, $/h")
    ax.set_ylabel("spent, $/h")
    if spent:
        ax.legend(frameon=False, fontsize=8)
    hide_frame(ax)
    return ax


def plot_assignment(plan: ServingPlan, ax: Axes | None = None) -> Axes:
    """Draws shares of requests in % as a heat map: a row per deployment, a column per kind of requests."""
    require_type("plot_assignment", "plan", plan, ServingPlan)
    rows = plan.replicas
    if not rows:
        raise InvalidInput("plan: no replicas; expected a plan with replicas")
    several = len({replicas["model"] for replicas in rows}) > 1
    columns = list(dict.fromkeys((r["model"], name) for r in rows for name in r["requests_per_s"]))
    shares = np.array(
        [
            [r["share"].get(name, 0.0) if r["model"] == model else np.nan for model, name in columns]
            for r in rows
        ]
    )
    ax = new_axes(ax, figsize=(figure_width(4.0, 0.6, len(columns)), 1.4 + 0.35 * len(rows)))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i in range(len(rows)):
        for j in range(len(columns)):
            if shares[i, j] > 0.0005:
                colour = "white" if shares[i, j] > 0.6 else "black"
                ax.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set_xticks(
        range(len(columns)),
        [plain(f"{model}: {name}" if several else name) for model, name in columns],
        rotation=45,
        ha="right",
        rotation_mode="anchor",
    )
    labels = [
        plain(f"{r['count']} x {r['deployment']}" + (f" ({r['model']})" if several else "")) for r in rows
    ]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_title("share of requests, %", fontsize=9)
    return ax


def plot_makespan(
    plans: Mapping[float, ServingPlan], ax: Axes | None = None, label: str | None = None
) -> Axes:
    """Draws makespan and its lower bound against budget.

    Call it again with the same `ax` and a `label` to compare.
    """
    budgets = [budget for budget in _budgets(plans) if plans[budget].makespan is not None]
    ax = new_axes(ax, figsize=(4.0, 3.2))
    makespans: list[Any] = [plans[budget].makespan for budget in budgets]
    line = ax.plot(budgets, makespans, marker="o", label=label)[0]
    bounds = [plans[budget].bound or 0.0 for budget in budgets]
    if any(bounds):
        ax.fill_between(budgets, bounds, makespans, color=line.get_color(), alpha=0.15, linewidth=0)
    ax.set_xlabel("budget, $/h")
    ax.set_ylabel("makespan, s")
    ax.set_ylim(bottom=0)
    if label is not None:
        ax.legend(frameon=False)
    return ax


def plot_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """Draws cost against rate, one line per set of targets. With a single rate, draws cost against the target
    that differs.

    The band below a line reaches down to the proved lower bound of the cost. Points without a plan are
    omitted.
    """
    require_type("plot_curve", "curve", curve, Curve)
    return curve.plot(ax)


def plot_deployment_costs(costs: DeploymentCosts, ax: Axes | None = None) -> Axes:
    """Draws requests per $ by kind of requests, one bar per GPU type, or per deployment if a type has
    several.

    `costs` has rows of one model. `costs.best()` gives Figures 3 and 11 of arXiv 2502.00722,
    `costs.of(gpu=...)` Figures 4 and 12.
    """
    require_type("plot_deployment_costs", "costs", costs, DeploymentCosts)
    return costs.plot(ax)


def plot_latency_costs(costs: DeploymentCosts, ax: Axes | None = None) -> Axes:
    """Draws latency times price by percentile, one line per GPU type, or per deployment if a type has
    several.

    `costs` has percentiles, and rows of one model and one kind of requests. See Figures 3, 4 and 11 to 13 of
    arXiv 2502.00722.
    """
    require_type("plot_latency_costs", "costs", costs, DeploymentCosts)
    return costs.plot_latencies(ax)
