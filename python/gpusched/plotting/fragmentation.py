"""Idle GPUs by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._drawing.axes import require_type
from .._views.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_fragmentation(report: Report, ax: Axes | None = None) -> Axes:
    """Idle GPUs that requests cannot use, stacked by cause: one bar per row of the report."""
    require_type("plot_fragmentation", "report", report, Report)
    return report.plot(ax)
