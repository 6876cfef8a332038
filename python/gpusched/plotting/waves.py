"""The waves of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._drawing.axes import new_axes, quiet, require_range, require_type, width
from ..errors import InvalidInput
from ..model import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_WAVES = 10_000


def plot_waves(plan: Plan, ax: Axes | None = None) -> Axes:
    """Moves of every wave of a plan, with the share of all moves done by the end of each."""
    require_type("plot_waves", "plan", plan, Plan)
    require_range("plan.waves", plan.waves, 0, MOST_WAVES)
    for move in plan.moves:
        if not 0 <= move.wave < plan.waves:
            raise InvalidInput(
                f"plan.moves: task {move.task!r}: wave: {move.wave}; expected less than {plan.waves}"
            )
    waves = max(1, plan.waves)
    moves = np.bincount([move.wave for move in plan.moves], minlength=waves)
    ax = new_axes(ax, figsize=(width(3.6, 0.42, waves), 3.0))
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
    quiet(ax)
    return ax
