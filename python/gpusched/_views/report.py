"""The table of a fragmentation report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._drawing.fragmentation_bars import draw_bars
from .tables import PUBLIC, Kind, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: dict[str, Kind] = {"gpu_model": "text", "cluster": "text", "gpus": "whole"}
"""Of the columns of a report that are no number in floating point."""


class Report(Table):
    """Idle GPUs that requests cannot use, by cause; percentages are of all idle GPUs of the row's group."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        super().__init__({name: KINDS.get(name, "number") for name in columns}, rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Stacked bars of the causes, one bar per row; see `gpusched.plotting.plot_fragmentation`."""
        return draw_bars(self, ax)


Report.__module__ = PUBLIC
