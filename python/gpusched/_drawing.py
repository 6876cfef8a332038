# SPDX-License-Identifier: Apache-2.0
"""Figures that results draw of themselves, and helpers that all figures share.

`gpusched.plotting` is the public part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._optional import require
from .errors import InvalidInput, InvalidType, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._views.tables import Row, Table

# Colours that colour-blind readers can tell apart (Okabe and Ito).
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#4d4d4d")
WIDEST_INCHES = 100.0
"""Image formats cannot store wider figures; bars get narrower instead."""
MAX_NODE_NAMES = 24


# Helpers.


def require_type(function: str, field: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InvalidType(f"{function}(): {field}: {repr_text(value)}; expected {article} {kind.__name__}")


def figure_width(least: float, per_bar: float, bars: int) -> float:
    return min(WIDEST_INCHES, max(least, 1.6 + per_bar * bars))


def plain(name: object) -> str:
    """A name with its dollar signs escaped, because matplotlib reads text between them as a formula."""
    return str(name).replace("$", r"\$")


def new_axes(ax: Axes | None, **figure: Any) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained", **figure)[1]
    return axes


def name_nodes(ax: Axes, at: np.ndarray, names: Sequence[str]) -> None:
    """Writes node names below the columns of a figure, if there are few enough."""
    if len(names) > MAX_NODE_NAMES:
        ax.set_xticks([])
    else:
        labels = [plain(name) for name in names]
        ax.set_xticks(at, labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=8)


def hide_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


# Fragmentation reports.

CAUSES = {
    "fractional": ("#E69F00", "part of a GPU"),
    "stranded": ("#0072B2", "too few GPUs on the node"),
    "insufficient_cpu": ("#D55E00", "too few idle cores"),
}


def draw_fragmentation_bars(report: Table, ax: Axes | None) -> Axes:
    """Idle GPUs that requests cannot use, stacked by cause: one bar per row of the report."""
    if len(report) == 0:
        raise InvalidInput("report: 0 rows; expected at least 1")
    labels = [f"{row.gpus}G{row.cpu_cores:g}C" for row in report]
    group = report.columns[0] if report.columns[0] in ("gpu_model", "cluster") else None
    if group:
        labels = [f"{plain(row[group])} {label}" for row, label in zip(report, labels)]
    ax = new_axes(ax, figsize=(figure_width(5.0, 0.55, len(labels)), 3.6))
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
        inside = total - used < 0.07 * top < used  # no space between the bar and the mark
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
    hide_frame(ax)
    return ax


# Serving: curves of costs, and costs of deployments.


def draw_curve(curve: Table, targets: Sequence[str], ax: Axes | None) -> Axes:
    """Cost against the rate, one line per set of targets; see `gpusched.plotting.plot_curve`."""
    ax = new_axes(ax, figsize=(4.4, 3.2))
    differ = [name for name in targets if len({row[name] for row in curve}) > 1]
    along = differ[0] if differ and len({row.rate for row in curve}) == 1 else "rate"
    lines: dict[str, list[Any]] = {}
    for row in curve:
        label = ", ".join(
            f"{name} {row[name]:g}" for name in differ if name != along and row[name] is not None
        )
        lines.setdefault(label, [])
        if row.cost is not None and row[along] is not None:
            lines[label].append((row[along], row.cost, row.cost_bound))
    gap = False
    for label, points in lines.items():
        at = [point[0] for point in sorted(points)]
        cost = [point[1] for point in sorted(points)]
        line = ax.plot(at, cost, marker="o", label=label or None)[0]
        bound = [point[2] for point in sorted(points)]
        ax.fill_between(at, bound, cost, color=line.get_color(), alpha=0.15, linewidth=0)
        gap = gap or any(low < high * (1 - 1e-6) for low, high in zip(bound, cost))
    ax.set_xlabel("requests/s" if along == "rate" else along.replace("_s", ", s"))
    ax.set_ylabel("cost, $/h")
    ax.set_ylim(bottom=0)
    if gap:  # one entry in the legend explains all bands
        ax.fill_between(
            [], [], [], color="#4d4d4d", alpha=0.15, linewidth=0, label="no plan costs less than the band"
        )
    if any(lines) or gap:
        ax.legend(frameon=False, fontsize=8)
    hide_frame(ax)
    return ax


def deployment_series(costs: Table) -> dict[str, dict[str, Row]]:
    """Rows by GPU type and kind of requests; by deployment instead if a GPU type has several deployments."""
    models = sorted({row.model for row in costs})
    if len(models) != 1:
        raise InvalidInput(
            f"costs: rows of {len(models)} models; expected one model, such as costs.of(model=...)"
        )
    types = len({(row.gpu, row.workload) for row in costs}) == len(costs)
    found: dict[str, dict[str, Row]] = {}
    for row in costs:
        found.setdefault(row.gpu if types else row.deployment, {})[row.workload] = row
    return found


def colours(count: int) -> list[Any]:
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    return list(require("matplotlib", "plot").colormaps["viridis"](np.linspace(0, 0.95, count)))


def draw_deployment_costs(costs: Table, ax: Axes | None) -> Axes:
    """See `gpusched.plotting.plot_deployment_costs`."""
    rows = deployment_series(costs)
    kinds = list(dict.fromkeys(row.workload for row in costs))
    ax = new_axes(ax, figsize=(figure_width(4.0, 0.16 * len(rows) + 0.3, len(kinds)), 3.2))
    bar = 0.8 / len(rows)
    for at, (colour, (name, by_kind)) in enumerate(zip(colours(len(rows)), rows.items())):
        heights = [by_kind[kind].requests_per_dollar if kind in by_kind else 0.0 for kind in kinds]
        x = np.arange(len(kinds)) + (at - (len(rows) - 1) / 2) * bar
        ax.bar(x, heights, bar, color=colour, label=plain(name))
    ax.set_xticks(range(len(kinds)), [plain(kind) for kind in kinds])
    ax.set_ylabel("requests per $")
    ax.legend(frameon=False, fontsize=8, ncols=max(1, len(rows) // 6))
    hide_frame(ax)
    return ax


def draw_latency_costs(costs: Table, ax: Axes | None) -> Axes:
    """See `gpusched.plotting.plot_latency_costs`."""
    percents = [int(name.removeprefix("dollars_p")) for name in costs.columns if name.startswith("dollars_p")]
    if not percents:
        raise InvalidInput(
            "costs: no percentiles; expected the result of deployment_costs(request, percentiles)"
        )
    kinds = sorted({row.workload for row in costs})
    if len(kinds) != 1:
        raise InvalidInput(
            f"costs: rows of {len(kinds)} kinds of requests; expected one kind, such as "
            "costs.of(workload=...)"
        )
    ax = new_axes(ax, figsize=(4.4, 3.2))
    rows = deployment_series(costs)
    for colour, (name, by_kind) in zip(colours(len(rows)), rows.items()):
        row = by_kind[kinds[0]]
        dollars = [row[f"dollars_p{percent}"] for percent in percents]
        ax.plot(percents, dollars, marker="o", markersize=3, color=colour, label=plain(name))
    ax.set_xlabel("percentile of the latency")
    ax.set_ylabel("latency x price, $")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8)
    hide_frame(ax)
    return ax
