"""What is vacated for what is moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._drawing.axes import new_axes, quiet, require_type
from ..consolidation import Frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Weight that the plans of a frontier vacate over the cost of their moves, and the most that any plan vacates for it."""
    require_type("plot_frontier", "frontier", frontier, Frontier)
    ax = new_axes(ax, figsize=(4.8, 3.2))
    costs = [point.relocation_cost for point in frontier.points]
    ax.plot(costs, [point.vacated_weight for point in frontier.points], "o-", ms=3, color="#0072B2", label="vacated")
    if frontier.bound_method:
        ax.plot(costs, [point.weight_at_most for point in frontier.points], "--", color="#4d4d4d", label=f"bound ({frontier.bound_method})")
    ax.set_xlabel("cost of the moves")
    ax.set_ylabel("vacated")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    quiet(ax)
    return ax
