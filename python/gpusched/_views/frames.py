# SPDX-License-Identifier: Apache-2.0
"""Clusters, plans and explanations as tables for pandas and Arrow, which are imported at their first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .. import consolidation, preemption
    from ..model import Cluster, Plan

Columns = Mapping[str, tuple[str, Any]]
"""Kind and values by column name.

The kind decides the type, because a column may be empty. An "any" column has the type of its array or values.
"""


def to_pandas(columns: Columns) -> pd.DataFrame:
    pd = require("pandas", "io")

    def series(kind: str, values: Any) -> Any:
        if kind == "any":
            return values
        if kind == "category":
            names = sorted({value for value in values if value is not None})
            return pd.Categorical(values, categories=pd.Index(names, dtype=object))
        if kind == "whole":
            return np.array(values, dtype=np.int64)
        if kind == "number":
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return pd.Series(values, dtype=object)

    return pd.DataFrame({name: series(*column) for name, column in columns.items()}, columns=list(columns))


def to_arrow(columns: Columns) -> pa.Table:
    pa = require("pyarrow", "arrow")
    text, whole = pa.string(), pa.int64()
    types = {"text": text, "category": text, "whole": whole, "number": pa.float64()}
    types |= {"wholes": pa.list_(whole), "texts": pa.list_(text)}

    def array(kind: str, values: Any) -> Any:
        made = pa.array(values, types.get(kind))
        return made.dictionary_encode() if kind == "category" else made

    return pa.table({name: array(*column) for name, column in columns.items()})


def by_column(kinds: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> Columns:
    cells = list(rows)
    return {name: (kind, [row[at] for row in cells]) for at, (name, kind) in enumerate(kinds.items())}


def frame(kinds: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> pd.DataFrame:
    return to_pandas(by_column(kinds, rows))


NODE_KINDS = {"name": "text", "gpu_model": "category"}
TASK_KINDS = {"name": "text", "job": "text", "priority_class": "category"}


def node_columns(c: Cluster) -> Columns:
    n = c.nodes
    shown = "name gpu_model gpu_count cpu_milli memory_mib schedulable occupants gpu_free_milli "
    shown += "cpu_free_milli memory_free_mib idle_gpu_count failed_gpu_count"
    if n.device_count.any():
        shown += " device_count free_device_count"
    if n.eviction_count.any():
        shown += " eviction_count"
    columns = {name: (NODE_KINDS.get(name, "any"), getattr(n, name)) for name in shown.split()}
    for name in n.resource_names:
        columns[f"resource {name}"] = ("any", n.resource(name))
        columns[f"free {name}"] = ("any", n.resource_free(name))
    for level in range(c.network_levels):
        columns[f"network_{level}"] = ("category", n.domain(level))
    return columns


def task_columns(c: Cluster) -> Columns:
    t = c.tasks
    names = np.array([*c.nodes.name, None], dtype=object)
    shown = "name job node gpu_count gpu_share_milli cpu_milli memory_mib priority priority_class locked "
    shown += "preemptible standby daemon start_time move_cost eviction_count"
    if t.device_count.any():
        shown += " device_count"
    return {
        name: ("text", names[t.node_index])
        if name == "node"
        else (TASK_KINDS.get(name, "any"), getattr(t, name))
        for name in shown.split()
    }


def cluster_to_pandas(c: Cluster) -> tuple[pd.DataFrame, pd.DataFrame]:
    return to_pandas(node_columns(c)), to_pandas(task_columns(c))


def cluster_to_arrow(c: Cluster) -> tuple[pa.Table, pa.Table]:
    return to_arrow(node_columns(c)), to_arrow(task_columns(c))


def plan_columns(plan: Plan) -> Columns:
    """The steps in execution order. -1 stands for "no wave" and for an unknown chain."""
    facts, how = plan._tasks, plan._treatments

    def row(step: str, wave: int, task: str, *rest: Any) -> tuple[Any, ...]:
        kind, gpus, _, space = facts.get(task, (None, None, None, None))
        return (step, wave, task, *rest, space or None, kind or None, gpus)

    rows = [row("evict", -1, task, None, None, [], how[task], -1, None) for task in plan.evictions]
    rows += [
        row("move", m.wave, m.task, m.from_, m.to, m.gpus, m.how, -1 if m.chain is None else m.chain, m.for_)
        for m in sorted(plan.moves, key=lambda m: m.wave)
    ]
    rows += [
        row("place", -1, place.task, None, place.node, place.gpus, None, -1, None)
        for place in plan.placements
    ]
    kinds = {"step": "category", "wave": "whole", "task": "text", "from": "text", "to": "text"}
    kinds |= {"gpus": "wholes", "how": "category", "chain": "whole", "for": "text"}
    kinds |= {"namespace": "category", "owner_kind": "category", "task_gpus": "number"}
    return by_column(kinds, rows)


def plan_to_pandas(plan: Plan) -> pd.DataFrame:
    return to_pandas(plan_columns(plan))


def plan_to_arrow(plan: Plan) -> pa.Table:
    return to_arrow(plan_columns(plan))


def explanation_to_pandas(why: consolidation.Explanation) -> pd.DataFrame:
    """One row per task that keeps the node occupied."""
    kinds = dict.fromkeys(("node", "fate", "task", "fixed_by", "obstacle"), "text")
    return frame(
        {**kinds, "nodes_with_obstacle": "whole", "nodes_looked_at": "whole"},
        [
            (why.node, why.fate, b.task, b.fixed_by, b.obstacle, b.nodes_with_obstacle, b.nodes_looked_at)
            for b in why.blockers
        ],
    )


FRONTIER_COLUMNS = (
    "price",
    "moves",
    "relocation_cost",
    "vacated_nodes",
    "vacated_gpus",
    "vacated_weight",
    "weight_at_most",
    "value_milli",
    "value_at_most_milli",
)


def frontier_to_pandas(frontier: consolidation.Frontier) -> pd.DataFrame:
    kinds = {**dict.fromkeys(FRONTIER_COLUMNS, "whole"), "vacated_gpus_at_most": "number"}
    return frame(kinds, [tuple(getattr(point, name) for name in kinds) for point in frontier.points])


def preemption_explanation_to_pandas(why: preemption.Explanation) -> pd.DataFrame:
    kinds = {"node": "text", "obstacle": "text", "missing": "whole", "text": "text"}
    return frame(kinds, [(why.node, why.obstacle, why.missing, why.text)])
