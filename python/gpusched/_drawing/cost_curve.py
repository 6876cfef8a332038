"""The figure of a curve of costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._views.tables import Table
from .axes import new_axes, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curve(curve: Table, targets: Sequence[str], ax: Axes | None) -> Axes:
    """Cost against the rate, a line per set of targets; see `gpusched.plotting.plot_curve`."""
    ax = new_axes(ax, figsize=(4.4, 3.2))
    differ = [name for name in targets if len({row[name] for row in curve}) > 1]
    along = differ[0] if differ and len({row.rate for row in curve}) == 1 else "rate"
    lines: dict[str, list[Any]] = {}
    for row in curve:
        label = ", ".join(f"{name} {row[name]:g}" for name in differ if name != along and row[name] is not None)
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
    if gap:  # the band says what it is, once
        ax.fill_between([], [], [], color="#4d4d4d", alpha=0.15, linewidth=0, label="no plan costs less than the band")
    if any(lines) or gap:
        ax.legend(frameon=False, fontsize=8)
    quiet(ax)
    return ax
