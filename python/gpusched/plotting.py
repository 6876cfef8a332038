"""Figures. Every function draws on `ax` (a new one by default) and returns it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import control
from ._optional import require
from .errors import InvalidInput, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._tables import Report
    from .model import Cluster, Plan
    from .serving import ServingPlanResult

__all__ = [
    "plot_assignment",
    "plot_composition",
    "plot_control",
    "plot_fragmentation",
    "plot_makespan",
    "plot_occupancy",
    "plot_waves",
]

# Colour-blind safe (Okabe and Ito).
CAUSES = {
    "fractional": ("#E69F00", "part of a GPU"),
    "stranded": ("#0072B2", "too few GPUs on the node"),
    "insufficient_cpu": ("#D55E00", "too few idle cores"),
}
STATES = {
    "locked": ("#4d4d4d", "held by a locked task"),
    "held": ("#56B4E9", "held"),
    "idle": ("#F0E442", "idle on an occupied node"),
    "free": ("#E4E4E4", "idle on an empty node"),
    "failed": ("#D55E00", "failed"),
}
ACTIONS = {
    "throttle_io": ("#0072B2", "v", "block I/O limited"),
    "set_quota": ("#E69F00", "s", "quota changed"),
    "pin": ("#56B4E9", "d", "pinned"),
    "reconfigure": ("#D55E00", "^", "instance changed"),
}


# Files of wider figures exceed what image formats can hold; bars then get narrower instead.
WIDEST_INCHES = 100.0
MOST_WAVES = 10_000


def _width(least: float, per_bar: float, bars: int) -> float:
    return min(WIDEST_INCHES, max(least, 1.6 + per_bar * bars))


def _require_range(field: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        shown = repr_text(value)
        raise InvalidInput(f"{field}: {shown}; expected an integer from {low} to {high}")


def _axes(ax: Axes | None, **figure: Any) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained", **figure)[1]
    return axes


def _quiet(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def plot_fragmentation(report: Report, ax: Axes | None = None) -> Axes:
    """Idle GPUs that requests cannot use, stacked by cause: one bar per row of the report."""
    if len(report) == 0:
        raise InvalidInput("report: 0 rows; expected at least 1")
    labels = [f"{row.gpus}G{row.cpu_cores:g}C" for row in report]
    group = report.columns[0] if report.columns[0] in ("gpu_model", "cluster") else None
    if group:
        labels = [f"{row[group]} {label}" for row, label in zip(report, labels)]
    ax = _axes(ax, figsize=(_width(5.0, 0.55, len(labels)), 3.6))
    at = np.arange(len(labels))
    bottom = np.zeros(len(labels))
    for cause, (color, text) in CAUSES.items():
        height = np.array([float(v) for v in report.column(cause)])
        ax.bar(at, height, 0.72, bottom=bottom, color=color, label=text, edgecolor="white", linewidth=0.5)
        bottom += height
    idle = np.array([float(v) for v in report.column("total_idle")])
    ax.plot(at, idle, ls="none", marker="_", ms=18, mew=1.6, color="black", label="all idle GPUs")
    top = max(1.0, 1.1 * idle.max())
    many = len(labels) > 10
    for x, (used, total) in enumerate(zip(bottom, idle)):
        inside = total - used < 0.07 * top < used  # between bar and mark there is no room
        if total > 0 and not many:
            ax.annotate(
                f"{100 * used / total:.0f} %",
                (x, used),
                (0, -3 if inside else 3),
                textcoords="offset points",
                ha="center",
                va="top" if inside else "bottom",
                color="white" if inside else "black",
                fontsize=8,
            )
    ax.set_xticks(at, labels, rotation=90 if many else 0, fontsize=8 if many else 9)
    ax.set_xlabel("request (GPUs, cores)")
    ax.set_ylabel("GPUs that it cannot use")
    ax.set_ylim(0, top)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    _quiet(ax)
    return ax


def _cells(cluster: Cluster) -> tuple[np.ndarray, np.ndarray]:
    """State of every GPU, by node and card (-1 = no such card), with the nodes' GPU counts."""
    nodes, tasks = cluster.nodes, cluster.tasks
    names = list(STATES)
    count = nodes.gpu_count.astype(int)
    cards = np.arange(16)
    there = cards < count[:, None]

    def bits(masks: np.ndarray) -> np.ndarray:
        return (masks.astype(int)[:, None] >> cards & 1).astype(bool)

    state = np.full(there.shape, -1)
    state[there] = names.index("idle")
    state[there & (nodes.occupants == 0)[:, None]] = names.index("free")
    place = tasks.node_index
    for flag, name in ((None, "held"), (tasks.locked | tasks.standby, "locked")):
        wanted = place >= 0 if flag is None else (place >= 0) & flag
        held = np.zeros(len(count), dtype=int)
        np.bitwise_or.at(held, place[wanted], tasks.gpus[wanted].astype(int))
        state[there & bits(held)] = names.index(name)
    state[bits(nodes.failed_gpus) & there] = names.index("failed")
    return state, count


def plot_occupancy(
    cluster: Cluster,
    ax: Axes | None = None,
    *,
    max_nodes: int = 240,
    gpus: int | None = None,
    title: str | None = None,
) -> Axes:
    """GPUs as cells, one column per node: held, held by locked tasks, idle on occupied nodes, on empty nodes.

    Parameters
    ----------
    max_nodes
        of larger clusters, an evenly spaced sample of the sorted nodes is shown
    gpus
        only nodes with that many GPUs; by default the most common number of GPUs that is at least 2
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    state, count = _cells(cluster)
    _require_range("max_nodes", max_nodes, 1, 20_000)
    if gpus is not None:
        _require_range("gpus", gpus, 1, 16)
    if gpus is None:
        sizes = Counter({int(k): int(k) * int((count == k).sum()) for k in np.unique(count) if k >= 2})
        gpus = sizes.most_common(1)[0][0] if sizes else int(count.max(initial=1))
    chosen = np.flatnonzero(count == gpus)
    if len(chosen) == 0:
        counts = ", ".join(str(n) for n in np.unique(count))
        raise InvalidInput(f"gpus: {gpus}; expected the GPUs of some node ({counts or 'there is none'})")
    totals = [(state[chosen, :gpus] == n).sum(axis=1) for n in range(len(STATES))]
    locked, _, idle, free, failed = totals
    chosen = chosen[np.lexsort((-locked, -failed, idle, free))]
    shown = (
        chosen if len(chosen) <= max_nodes else chosen[np.linspace(0, len(chosen) - 1, max_nodes).astype(int)]
    )
    cells = np.sort(state[shown, :gpus], axis=1).T
    ax = _axes(ax, figsize=(7.2, 2.2))
    colors = ListedColormap([color for color, _ in STATES.values()])
    ax.pcolormesh(
        np.arange(len(shown) + 1),
        np.arange(gpus + 1),
        cells,
        cmap=colors,
        norm=BoundaryNorm(np.arange(len(STATES) + 1) - 0.5, len(STATES)),
        edgecolors="white",
        linewidth=0.3 if len(shown) <= 400 else 0,
        rasterized=True,
    )
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    ax.set_yticks([0, gpus])
    ax.set_ylabel("GPUs of a node")
    sampled = "" if len(shown) == len(chosen) else f"; {len(shown)} of them shown"
    ax.set_xlabel(f"{len(chosen):,} nodes with {gpus} GPUs, fullest first{sampled}")
    ax.set_xticks([])
    present = set(np.unique(cells))
    handles = [
        Patch(facecolor=color, label=text) for n, (color, text) in enumerate(STATES.values()) if n in present
    ]
    ax.legend(
        handles=handles,
        frameon=False,
        fontsize=8,
        ncols=len(handles),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        handlelength=1,
        columnspacing=1.2,
    )
    if title:
        ax.set_title(title, loc="left", fontsize=10, pad=20)
    return ax


def plot_waves(plan: Plan, ax: Axes | None = None) -> Axes:
    """Moves of every wave of a plan, with the share of all moves done by the end of each."""
    _require_range("plan.waves", plan.waves, 0, MOST_WAVES)
    for move in plan.moves:
        if not 0 <= move.wave < plan.waves:
            raise InvalidInput(
                f"plan.moves: task {move.task!r}: wave: {move.wave}; expected less than {plan.waves}"
            )
    waves = max(1, plan.waves)
    moves = np.bincount([move.wave for move in plan.moves], minlength=waves)
    ax = _axes(ax, figsize=(_width(3.6, 0.42, waves), 3.0))
    at = np.arange(waves)
    ax.bar(at, moves, 0.72, color="#0072B2")
    done = 100 * np.cumsum(moves) / max(1, moves.sum())
    for x, (height, share) in enumerate(zip(moves, done)):
        ax.annotate(
            f"{height:,}\n{math.floor(share)} %",
            (x, height),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    ax.set_xticks(at)
    ax.set_xlabel("wave")
    ax.set_ylabel("moves (and share done by then)")
    ax.set_ylim(0, max(1.0, 1.22 * moves.max(initial=1)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _quiet(ax)
    return ax


PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#4d4d4d")


def _budgets(plans: Mapping[float, ServingPlanResult]) -> list[float]:
    if not isinstance(plans, Mapping) or not plans:
        raise InvalidInput(f"plans: {repr_text(plans)}; expected a dict of one plan or more by budget")
    return sorted(plans)


def plot_composition(plans: Mapping[float, ServingPlanResult], ax: Axes | None = None) -> Axes:
    """What is spent on each GPU type, by budget.

    `plans` holds serving plans by budget in $/h. Bars are the rented GPUs' parts of the plan's cost; the numbers in them
    say how many GPUs there are. Budgets without a plan have no bar.
    """
    budgets = _budgets(plans)
    ax = _axes(ax, figsize=(_width(4.0, 0.7, len(budgets)), 3.2))
    spent: dict[str, list[float]] = {}
    counts: dict[str, list[int]] = {}
    for at, budget in enumerate(budgets):
        for replicas in plans[budget].replicas:
            total = sum(replicas["gpus"].values())
            for name, count in replicas["gpus"].items():
                # Replicas of several types: their cost goes by GPUs.
                spent.setdefault(name, [0.0] * len(budgets))[at] += replicas["cost"] * count / total
                counts.setdefault(name, [0] * len(budgets))[at] += replicas["count"] * count
    below = np.zeros(len(budgets))
    for i, name in enumerate(sorted(spent)):
        bars = ax.bar(range(len(budgets)), spent[name], bottom=below, color=PALETTE[i % len(PALETTE)], label=name)
        ax.bar_label(bars, [str(n) if n else "" for n in counts[name]], label_type="center", fontsize=8)
        below += spent[name]
    ax.set_xticks(range(len(budgets)), [f"{budget:g}" for budget in budgets])
    ax.set_xlabel("budget, $/h")
    ax.set_ylabel("spent, $/h")
    if spent:
        ax.legend(frameon=False, fontsize=8)
    _quiet(ax)
    return ax


def plot_assignment(plan: ServingPlanResult, ax: Axes | None = None) -> Axes:
    """Heat map of where requests go: a row per deployment, a column per kind of requests, the share in per cent."""
    rows = plan.replicas
    if not rows:
        raise InvalidInput("plan: has no replicas; expected a plan that serves something")
    several = len({replicas["model"] for replicas in rows}) > 1
    columns = list(dict.fromkeys((r["model"], name) for r in rows for name in r["requests_per_s"]))
    shares = np.array(
        [[r["share"].get(name, 0.0) if r["model"] == model else np.nan for model, name in columns] for r in rows]
    )
    ax = _axes(ax, figsize=(_width(4.0, 0.6, len(columns)), 1.4 + 0.35 * len(rows)))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i in range(len(rows)):
        for j in range(len(columns)):
            if shares[i, j] > 0.0005:
                colour = "white" if shares[i, j] > 0.6 else "black"
                ax.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set_xticks(
        range(len(columns)),
        [f"{model}: {name}" if several else name for model, name in columns],
        rotation=45,
        ha="right",
        rotation_mode="anchor",
    )
    labels = [f"{r['count']} x {r['deployment']}" + (f" ({r['model']})" if several else "") for r in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_title("share of requests, %", fontsize=9)
    return ax


def plot_makespan(
    plans: Mapping[float, ServingPlanResult], ax: Axes | None = None, label: str | None = None
) -> Axes:
    """Makespan against budget, and the bound below it. Call it again with the same `ax` and a `label` to compare."""
    budgets = [budget for budget in _budgets(plans) if plans[budget].makespan is not None]
    ax = _axes(ax, figsize=(4.0, 3.2))
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


def plot_control(log: str, config: Mapping[str, Any], tenant: str | None = None, ax: Axes | None = None) -> Axes:
    """Timeline of an audit log: a tenant's p99 and target, actions, and below its instance over time.

    `config` is the controller's configuration; `tenant` a protected one, by default the first.
    """
    host = control.Controller(dict(config)).config["host"]
    names = [t["name"] for t in host["tenants"]]
    protected = [t["name"] for t in host["tenants"] if t["protected"]]
    if tenant is None and protected:
        tenant = protected[0]
    if tenant not in protected:
        raise InvalidInput(f"tenant: {repr_text(tenant)}; expected one of {', '.join(protected) or 'none'}")
    at = names.index(tenant)
    keys = [[p.key for p in control.mig_layout(gpu["device"]).profiles] for gpu in host["gpus"]]
    lines = [json.loads(line) for line in log.splitlines()]
    if not lines:
        raise InvalidInput("log: no window in it")
    minutes = np.array([x["observation"]["time_s"] for x in lines], dtype=float) / 60
    p99 = np.array([x["observation"]["tenants"][at][3] for x in lines], dtype=float)
    ax = _axes(ax, figsize=(9.0, 3.4))
    tau = host["tenants"][at]["tau_ms"]
    ax.plot(minutes, p99, color="#4d4d4d", linewidth=0.8)
    ax.axhline(tau, color="#4d4d4d", linestyle="--", linewidth=0.8)
    ax.annotate("target", (minutes[-1], tau), (4, 0), textcoords="offset points", va="center", fontsize=8)
    top = float(np.nanmax(np.append(p99, tau))) * 1.15
    for kind, (color, marker, label) in ACTIONS.items():
        taken = [
            m
            for m, line in zip(minutes, lines)
            if any(a["kind"] == kind and a["tenant"] == at for a in line["actions"])
        ]
        if taken:
            ax.plot(taken, [0.97 * top] * len(taken), marker, color=color, label=label, markersize=6, clip_on=False)
    # The instance as a strip below: one piece per stay.
    stays: list[tuple[float, str]] = []
    for m, line in zip(minutes, lines):
        gpu, profile, start = line["states"][at][4][:3]
        text = f"GPU {gpu} {keys[gpu][profile]}@{start}"
        if not stays or stays[-1][1] != text:
            stays.append((m, text))
    ends = [m for m, _ in stays[1:]] + [float(minutes[-1])]
    shades = ("#E4E4E4", "#C8DDEA")
    height = 0.09 * top
    for k, ((begin, text), end) in enumerate(zip(stays, ends)):
        ax.barh(-height / 2, end - begin, height, begin, color=shades[k % 2])
        ax.annotate(text, ((begin + end) / 2, -height / 2), ha="center", va="center", fontsize=7)
    ax.set_ylim(-height, top)
    ax.set_xlim(minutes[0], max(minutes[-1], minutes[0] + 1e-9))
    ax.set_xlabel("minutes")
    ax.set_ylabel(f"p99 of {tenant}, ms")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    _quiet(ax)
    return ax
