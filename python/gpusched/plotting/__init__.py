# SPDX-License-Identifier: Apache-2.0
"""Figures. Every function draws on `ax` (a new one by default) and returns it."""

from .allocation import plot_gpus, plot_switches
from .asi import plot_asi_figure
from .control import plot_control
from .occupancy import plot_fragmentation, plot_occupancy
from .plans import plot_frontier, plot_waves
from .serving import (
    plot_assignment,
    plot_composition,
    plot_curve,
    plot_deployment_costs,
    plot_latency_costs,
    plot_makespan,
)

__all__ = [
    "plot_asi_figure",
    "plot_assignment",
    "plot_composition",
    "plot_control",
    "plot_curve",
    "plot_deployment_costs",
    "plot_fragmentation",
    "plot_frontier",
    "plot_gpus",
    "plot_latency_costs",
    "plot_makespan",
    "plot_occupancy",
    "plot_switches",
    "plot_waves",
]
