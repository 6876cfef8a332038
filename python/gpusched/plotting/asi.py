# SPDX-License-Identifier: Apache-2.0
"""Figures of the ASI trace, from the tables of `gpusched.io.read_asi_figures`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._drawing import PALETTE, figure_width, hide_frame, new_axes, plain, require_type
from .._views.tables import Report, Table
from ..errors import InvalidInput, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = {
    "fig2": ("share_pct", "hp_pct", "lp_pct"),
    "fig4_left": ("share_pct",),
    "fig4_right": ("hp_pct", "lp_pct"),
    "fig9": ("hp_pct", "hp_and_lp_pct"),
    "fig10_left": ("pods_pct", "gpus_pct"),
}
"""Grouped bars: the columns drawn for each row."""

LINES = {
    "fig5": ("job_type", "gpus"),
    "fig6": ("gpu_model", "hp_gpu_hours"),
    "fig16": (None, "standby_gpu_hours"),
}
"""Lines over time: the column that names a line, and the column that is drawn."""

POINTS = {
    "fig5": ("sm_utilisation", "SM utilisation, % (points)"),
    "fig16": ("standby_used", "Standby GPU-hours used, % (points)"),
}
"""Points on a second axis: a column of fractions, drawn as at most 1, and its label."""

DISTRIBUTIONS = ("fig7_left", "fig7_right", "fig8", "fig10_right", "fig11", "fig12")


def colour(at: int) -> str:
    return PALETTE[at % len(PALETTE)]


def draw_bars(table: Table, columns: tuple[str, ...], ax: Axes) -> None:
    names = [str(row[0]) if isinstance(row[0], str) else "all" for row in table]
    for at, column in enumerate(columns):
        x = np.arange(len(names)) + (at - (len(columns) - 1) / 2) * 0.8 / len(columns)
        label = column.removesuffix("_pct").replace("_", " ")
        ax.bar(x, table.column(column), 0.8 / len(columns), color=colour(at), label=label)
    ax.set_xticks(range(len(names)), [plain(name) for name in names], rotation=45, ha="right")
    ax.set_ylabel("%")


def draw_stacks(table: Table, ax: Axes) -> None:
    """Shares of model types in each group."""
    groups = list(dict.fromkeys(table.column(table.columns[0])))
    models = list(dict.fromkeys(table.column("model_type")))
    shares = np.array(table.column("share_pct"), float).reshape(len(groups), len(models))
    below = np.zeros(len(groups))
    for at, name in enumerate(models):
        ax.bar(range(len(groups)), shares[:, at], 0.8, bottom=below, color=colour(at), label=plain(name))
        below += shares[:, at]
    ax.set_xticks(range(len(groups)), [plain(name) for name in groups], rotation=45, ha="right")
    ax.set_ylabel("GPU-hours, %")


def draw_slots(table: Table, ax: Axes) -> None:
    """Means over the days."""
    groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in table:
        groups.setdefault((row.gpu_model, row.gpus), []).append((row.across, row.within))
    means = np.array([np.mean(jobs, axis=0) for jobs in groups.values()])
    for at, label in enumerate(("across switches", "within switches")):
        ax.bar(np.arange(len(groups)) + 0.4 * at - 0.2, means[:, at], 0.4, color=colour(at), label=label)
    ax.set_xticks(
        range(len(groups)), [f"{plain(model)} {gpus}" for model, gpus in groups], rotation=45, ha="right"
    )
    ax.set_ylabel("jobs that could start")


def over_time(table: Table, by: str | None, column: str) -> dict[str, list[tuple[float, float]]]:
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in table:
        at = row.day + row.hour / 24 if "hour" in table.columns else row.day
        line = lines.setdefault(row[by] if by else column.replace("_", " "), [])
        if row[column] is not None:
            line.append((at, row[column]))
    return lines


def draw_lines(table: Table, name: str, ax: Axes) -> None:
    by, column = LINES[name]
    lines = over_time(table, by, column)
    for at, (line, points) in enumerate(lines.items()):
        ax.plot(
            *zip(*points),
            color=colour(at),
            marker=None if "hour" in table.columns else ".",
            label=plain(line),
        )
    ax.set_xlabel("day")
    ax.set_ylabel(column.replace("_", " "))
    if name in POINTS:
        column, label = POINTS[name]
        right = ax.twinx()
        for at, points in enumerate(over_time(table, by, column).values()):
            x, y = [time for time, _ in points], [100 * min(value, 1) for _, value in points]
            right.plot(x, y, ".", color=colour(at if by else len(lines)))
        right.set_ylabel(label)


def draw_distributions(table: Table, ax: Axes) -> None:
    percents = [column for column in table.columns if column[0] == "p" and column[1:].isdigit()]
    groups = list(dict.fromkeys(row[0] for row in table))
    measures = list(dict.fromkeys(table.column("measure")))
    for row in table:
        if row["count"]:
            style = ("-", "--", ":", "-.")[measures.index(row.measure) % 4]
            label = plain(f"{row[0]}, {row.measure}" if len(measures) > 1 else row[0])
            numbers = [row[column] for column in percents]
            at = [int(column[1:]) for column in percents]
            ax.plot(numbers, at, style, color=colour(groups.index(row[0])), label=label)
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_xlabel(", ".join(measure.replace("_", " ") for measure in measures))
    ax.set_ylabel("% at or below")


def plot_asi_figure(tables: Mapping[str, Table], name: str, ax: Axes | None = None) -> Axes:
    """Draws one figure of the ASI trace as bars, lines or distributions.

    `tables`: the result of `gpusched.io.read_asi_figures`; `name`: the name of one of them, except `table1`.
    """
    require_type("plot_asi_figure", "tables", tables, Mapping)
    known = [known for known in tables if known.startswith("fig")]
    if name not in known:
        raise InvalidInput(f"name: {repr_text(name)}; expected one of {', '.join(known)}")
    table = tables[name]
    if len(table) == 0:
        raise InvalidInput(f"name: {name}; this table has no rows; expected a figure with data for its days")
    if isinstance(table, Report):
        return table.plot(ax)
    ax = new_axes(ax, figsize=(figure_width(5.0, 0.5, min(len(table), 16)), 3.6))
    if name in BARS:
        draw_bars(table, BARS[name], ax)
    elif name in LINES:
        draw_lines(table, name, ax)
    elif name in DISTRIBUTIONS:
        draw_distributions(table, ax)
    else:
        draw: Callable[[Table, Any], None] = draw_slots if name == "fig14" else draw_stacks
        draw(table, ax)
    ax.legend(frameon=False, fontsize=7, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    hide_frame(ax)
    return ax
