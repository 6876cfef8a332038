# SPDX-License-Identifier: Apache-2.0
"""Figures of consolidation plans: the frontier and the waves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._checks import integer
from .._drawing import figure_width, hide_frame, new_axes, require_type
from ..consolidation import Frontier
from ..errors import InvalidInput
from ..model import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_WAVES = 10_000


def plot_frontier(frontier: Frontier, ax: Axes | None = None) -> Axes:
    """Draws the vacated weight of each plan of a frontier over the cost of its moves, and its upper bound."""
    require_type("plot_frontier", "frontier", frontier, Frontier)
    ax = new_axes(ax, figsize=(4.8, 3.2))
    costs = [point.relocation_cost for point in frontier.points]
    ax.plot(
        costs,
        [point.vacated_weight for point in frontier.points],
        "o-",
        ms=3,
        color="#0072B2",
        label="vacated",
    )
    if frontier.bound_method:
        bounds = [point.weight_at_most for point in frontier.points]
        ax.plot(costs, bounds, "--", color="#4d4d4d", label=f"bound ({frontier.bound_method})")
    ax.set_xlabel("cost of the moves")
    ax.set_ylabel("vacated")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    hide_frame(ax)
    return ax


def plot_waves(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draws the number of moves in every wave of a plan, and the share of all moves done by its end."""
    require_type("plot_waves", "plan", plan, Plan)
    integer("plan.waves", plan.waves, 0, MAX_WAVES)
    for move in plan.moves:
        if not 0 <= move.wave < plan.waves:
            raise InvalidInput(
                f"plan.moves: task {move.task!r}: wave: {move.wave}; expected less than {plan.waves}"
            )
    waves = max(1, plan.waves)
    moves = np.bincount([move.wave for move in plan.moves], minlength=waves)
    ax = new_axes(ax, figsize=(figure_width(3.6, 0.42, waves), 3.0))
    at = np.arange(1, waves + 1)
    ax.bar(at, moves, 0.72, color="#0072B2")
    done = 100 * np.cumsum(moves) / max(1, moves.sum())
    for x, (height, share) in enumerate(zip(moves, done)):
        text = f"{height:,}\n{math.floor(share)} %"
        ax.annotate(text, (x, height), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    ax.set_xticks(at)
    ax.set_xlabel("wave")
    ax.set_ylabel("moves (and share done by then)")
    ax.set_ylim(0, max(1.0, 1.22 * moves.max(initial=1)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    hide_frame(ax)
    return ax
