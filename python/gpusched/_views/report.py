"""The table of a fragmentation report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._drawing.fragmentation_bars import draw_bars
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Report(Table):
    """Idle GPUs that requests cannot use, by cause; percentages are of all idle GPUs of the row's group."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Stacked bars of the causes, one bar per row; see `gpusched.plotting.plot_fragmentation`."""
        return draw_bars(self, ax)
