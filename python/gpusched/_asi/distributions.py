"""Tables of distributions: a row for each group and measure."""

from __future__ import annotations

from collections.abc import Mapping

from .._views.tables import Kind, Table
from .quantiles import Quantiles

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def distribution_table(group: str, found: Mapping[tuple[str, str], Quantiles]) -> Table:
    """Of quantiles by group and measure."""
    numbers = ("mean", *(f"p{percent}" for percent in PERCENTS))
    columns: dict[str, Kind] = {group: "text", "measure": "text", "count": "whole", **dict.fromkeys(numbers, "number")}
    rows = [(*key, q.count, q.mean, *(q.at(percent) for percent in PERCENTS)) for key, q in found.items()]
    return Table(columns, rows)
