"""Figures. Every function draws on `ax` (a new one by default) and returns it."""

from .allocation import plot_gpus, plot_switches
from .asi import plot_asi_figure
from .control import plot_control
from .fragmentation import plot_fragmentation
from .frontier import plot_frontier
from .occupancy import plot_occupancy
from .serving import (
    plot_assignment,
    plot_composition,
    plot_curve,
    plot_deployment_costs,
    plot_latency_costs,
    plot_makespan,
)
from .waves import plot_waves

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
