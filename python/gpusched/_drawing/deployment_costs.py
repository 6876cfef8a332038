"""The figures of what a dollar buys in each deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require
from .._views.tables import Row, Table
from ..errors import InvalidInput
from .axes import PALETTE, new_axes, plain, quiet, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def series(costs: Table) -> dict[str, dict[str, Row]]:
    """Rows by GPU type, or by deployment where a type has several, then by kind of requests."""
    models = sorted({row.model for row in costs})
    if len(models) != 1:
        raise InvalidInput(f"costs: rows of {len(models)} models; expected those of one, such as costs.of(model=...)")
    types = len({(row.gpu, row.workload) for row in costs}) == len(costs)
    found: dict[str, dict[str, Row]] = {}
    for row in costs:
        found.setdefault(row.gpu if types else row.deployment, {})[row.workload] = row
    return found


def colours(many: int) -> list[Any]:
    if many <= len(PALETTE):
        return list(PALETTE[:many])
    return list(require("matplotlib", "plot").colormaps["viridis"](np.linspace(0, 0.95, many)))


def draw_deployment_costs(costs: Table, ax: Axes | None) -> Axes:
    """See `gpusched.plotting.plot_deployment_costs`."""
    rows = series(costs)
    kinds = list(dict.fromkeys(row.workload for row in costs))
    ax = new_axes(ax, figsize=(width(4.0, 0.16 * len(rows) + 0.3, len(kinds)), 3.2))
    bar = 0.8 / len(rows)
    for at, (colour, (name, by_kind)) in enumerate(zip(colours(len(rows)), rows.items())):
        heights = [by_kind[kind].requests_per_dollar if kind in by_kind else 0.0 for kind in kinds]
        x = np.arange(len(kinds)) + (at - (len(rows) - 1) / 2) * bar
        ax.bar(x, heights, bar, color=colour, label=plain(name))
    ax.set_xticks(range(len(kinds)), [plain(kind) for kind in kinds])
    ax.set_ylabel("requests per $")
    ax.legend(frameon=False, fontsize=8, ncols=max(1, len(rows) // 6))
    quiet(ax)
    return ax


def draw_latency_costs(costs: Table, ax: Axes | None) -> Axes:
    """See `gpusched.plotting.plot_latency_costs`."""
    percents = [int(name.removeprefix("dollars_p")) for name in costs.columns if name.startswith("dollars_p")]
    if not percents:
        raise InvalidInput("costs: no percentiles; expected those of deployment_costs(request, percentiles)")
    kinds = sorted({row.workload for row in costs})
    if len(kinds) != 1:
        raise InvalidInput(f"costs: rows of {len(kinds)} kinds of requests; expected those of one, such as costs.of(workload=...)")
    ax = new_axes(ax, figsize=(4.4, 3.2))
    rows = series(costs)
    for colour, (name, by_kind) in zip(colours(len(rows)), rows.items()):
        row = by_kind[kinds[0]]
        dollars = [row[f"dollars_p{percent}"] for percent in percents]
        ax.plot(percents, dollars, marker="o", markersize=3, color=colour, label=plain(name))
    ax.set_xlabel("percentile of the latency")
    ax.set_ylabel("latency x price, $")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8)
    quiet(ax)
    return ax
