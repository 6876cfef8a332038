"""The figure of a fragmentation report: idle GPUs that requests cannot use, stacked by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidInput
from .axes import new_axes, plain, quiet, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._views.tables import Table

# Colour-blind safe (Okabe and Ito).
CAUSES = {
    "fractional": ("#E69F00", "part of a GPU"),
    "stranded": ("#0072B2", "too few GPUs on the node"),
    "insufficient_cpu": ("#D55E00", "too few idle cores"),
}


def draw_bars(report: Table, ax: Axes | None) -> Axes:
    """One bar per row of the report."""
    if len(report) == 0:
        raise InvalidInput("report: 0 rows; expected at least 1")
    labels = [f"{row.gpus}G{row.cpu_cores:g}C" for row in report]
    group = report.columns[0] if report.columns[0] in ("gpu_model", "cluster") else None
    if group:
        labels = [f"{plain(row[group])} {label}" for row, label in zip(report, labels)]
    ax = new_axes(ax, figsize=(width(5.0, 0.55, len(labels)), 3.6))
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
    quiet(ax)
    return ax
