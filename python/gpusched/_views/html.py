# SPDX-License-Identifier: Apache-2.0
"""HTML of clusters, plans and explanations for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .tables import Table, counted

if TYPE_CHECKING:
    from .. import consolidation, preemption
    from ..model import Cluster, Plan

MAX_ROWS = 20
"""Rows shown of a table; a last line counts the others."""


def cluster(c: Cluster) -> str:
    """One line for the whole cluster, and one row per GPU model."""
    nodes, tasks = c.nodes, c.tasks
    pending = int((tasks.node_index < 0).sum())
    head = [counted(len(nodes), "node"), counted(nodes.gpu_count.sum(), "GPU"), counted(len(tasks), "task")]
    if pending:
        head.append(f"{pending:,} pending")
    models = np.array([model or "" for model in nodes.gpu_model], dtype=object)
    occupied = nodes.occupants > 0
    rows = []
    for model in sorted(set(models)):
        of = models == model
        rows.append(
            (
                model or "(no GPU model)",
                int(of.sum()),
                int((of & occupied).sum()),
                int((of & ~nodes.schedulable).sum()),
                int(nodes.gpu_count[of].sum()),
                int(nodes.idle_gpu_count[of].sum()),
                int(nodes.failed_gpu_count[of].sum()),
            )
        )
    columns = (
        "gpu_model",
        "nodes",
        "occupied",
        c._words["closed"],
        "gpu_count",
        "idle_gpu_count",
        "failed_gpu_count",
    )
    return _titled("Cluster", ", ".join(head)) + _table(columns, rows)


def plan(p: Plan) -> str:
    """One line for the whole plan, and one row per step."""
    from .frames import plan_columns

    head = [
        f"{counted(len(p.moves), 'move')} in {counted(p.waves, 'wave')}",
        f"{counted(len(p.vacated_nodes), 'node')} vacated",
    ]
    if p.evictions:
        head.append(counted(len(p.evictions), "eviction"))
    if p.placements:
        head.append(counted(len(p.placements), "placement"))
    if p.bound["method"]:
        most = counted(p.bound["vacated_gpus_at_most"], "GPU")
        head.append(f"at most {most} can be vacated ({p.bound['method']} bound)")
    if p.stop_reason not in (None, "completed"):
        head.append(f"stopped early: {p.stop_reason}")
    columns = plan_columns(p)
    if columns["wave"][1]:  # people count from 1
        kind, waves = columns["wave"]
        columns["wave"] = kind, [wave if wave < 0 else wave + 1 for wave in waves]
    rows = [
        tuple("" if value is None or value == -1 else _list(value) for value in row)
        for row in zip(*(values for _, values in columns.values()))
    ]
    return _titled("Plan", ", ".join(head)) + _table(list(columns), rows)


def explanation(why: consolidation.Explanation) -> str:
    """The text, and one row per task that keeps the node occupied."""
    columns = ("task", "fixed_by", "obstacle", "nodes_with_obstacle", "nodes_looked_at")
    rows = [tuple(getattr(blocker, name) for name in columns) for blocker in why.blockers]
    return _titled(f"Node {why.node}", why.fate) + _text(why.text) + (_table(columns, rows) if rows else "")


def preemption_explanation(why: preemption.Explanation) -> str:
    head = f"node {why.node} is closest" if why.node else "no node can run the task"
    return _titled("Preemption", head) + _text(why.text)


def _titled(title: str, text: str) -> str:
    return f"<p><b>{escape(title)}</b>: {escape(text)}</p>"


def _text(text: str) -> str:
    return f"<pre>{escape(text.rstrip())}</pre>"


def _table(columns: Sequence[str], rows: Sequence[Iterable[Any]]) -> str:
    html = Table(columns, [tuple(row) for row in rows[:MAX_ROWS]])._repr_html_()
    more = len(rows) - MAX_ROWS
    return html + (f"<p>... and {counted(more, 'more row', 'more rows')}</p>" if more > 0 else "")


def _list(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value
