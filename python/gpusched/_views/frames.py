"""Clusters, plans and explanations as tables for pandas and Arrow, which are imported at their first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .. import consolidation, preemption
    from ..model import Cluster, Plan

Columns = Mapping[str, Any]
"""Values by column name, one entry per row."""


# The type of a column must not depend on its values, because it may be empty. numpy arrays have a type;
# others get a class.


class Texts(list[Any]):
    """A column of texts or None."""


class Categories(Texts):
    """A column with few different texts, or None."""


class Wholes(list[Any]):
    """A column of integers."""


class Numbers(list[Any]):
    """A column of floating-point numbers or None."""


class Gpus(list[Any]):
    """A column of lists of GPUs."""


class TextLists(list[Any]):
    """A column of lists of texts."""


KINDS: dict[str, type[list[Any]]] = {
    "text": Texts,
    "whole": Wholes,
    "number": Numbers,
    "texts": TextLists,
    "any": list,
}
"""Column classes by the kinds of tables.

Pandas and Arrow infer the type of an "any" column from its values.
"""


def to_pandas(columns: Columns) -> pd.DataFrame:
    pd = require("pandas", "io")

    def series(values: Any) -> Any:
        if isinstance(values, Categories):
            names = sorted({value for value in values if value is not None})
            return pd.Categorical(values, categories=pd.Index(names, dtype=object))
        if isinstance(values, Wholes):
            return np.array(values, dtype=np.int64)
        if isinstance(values, Numbers):
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        if isinstance(values, (Texts, Gpus, TextLists)):
            return pd.Series(list(values), dtype=object)
        return values

    return pd.DataFrame({name: series(values) for name, values in columns.items()}, columns=list(columns))


def to_arrow(columns: Columns) -> pa.Table:
    pa = require("pyarrow", "arrow")

    def array(values: Any) -> Any:
        if isinstance(values, Categories):
            return pa.array(values, pa.string()).dictionary_encode()
        if isinstance(values, Texts):
            return pa.array(values, pa.string())
        if isinstance(values, Wholes):
            return pa.array(values, pa.int64())
        if isinstance(values, Numbers):
            return pa.array(values, pa.float64())
        if isinstance(values, Gpus):
            return pa.array(values, pa.list_(pa.int64()))
        if isinstance(values, TextLists):
            return pa.array(values, pa.list_(pa.string()))
        return pa.array(values)

    return pa.table({name: array(values) for name, values in columns.items()})


def node_columns(c: Cluster) -> Columns:
    n = c.nodes
    columns: dict[str, Any] = {
        "name": Texts(n.name),
        "gpu_model": Categories(n.gpu_model),
        "gpu_count": n.gpu_count,
        "cpu_milli": n.cpu_milli,
        "memory_mib": n.memory_mib,
        "schedulable": n.schedulable,
        "occupants": n.occupants,
        "gpu_free_milli": n.gpu_free_milli,
        "cpu_free_milli": n.cpu_free_milli,
        "memory_free_mib": n.memory_free_mib,
        "idle_gpu_count": n.idle_gpu_count,
        "failed_gpu_count": n.failed_gpu_count,
    }
    if n.device_count.any():
        columns["device_count"] = n.device_count
        columns["free_device_count"] = n.free_device_count
    if n.eviction_count.any():
        columns["eviction_count"] = n.eviction_count
    for name in n.resource_names:
        columns[f"resource {name}"] = n.resource(name)
        columns[f"free {name}"] = n.resource_free(name)
    for level in range(c.network_levels):
        columns[f"network_{level}"] = Categories(n.domain(level))
    return columns


def task_columns(c: Cluster) -> Columns:
    t = c.tasks
    names = np.array([*c.nodes.name, None], dtype=object)
    columns: dict[str, Any] = {
        "name": Texts(t.name),
        "job": Texts(t.job),
        "node": Texts(names[t.node_index]),
        "gpu_count": t.gpu_count,
        "gpu_share_milli": t.gpu_share_milli,
        "cpu_milli": t.cpu_milli,
        "memory_mib": t.memory_mib,
        "priority": t.priority,
        "priority_class": Categories(t.priority_class),
        "locked": t.locked,
        "preemptible": t.preemptible,
        "standby": t.standby,
        "daemon": t.daemon,
        "start_time": t.start_time,
        "move_cost": t.move_cost,
        "eviction_count": t.eviction_count,
    }
    if t.device_count.any():
        columns["device_count"] = t.device_count
    return columns


def cluster_to_pandas(c: Cluster) -> tuple[pd.DataFrame, pd.DataFrame]:
    return to_pandas(node_columns(c)), to_pandas(task_columns(c))


def cluster_to_arrow(c: Cluster) -> tuple[pa.Table, pa.Table]:
    return to_arrow(node_columns(c)), to_arrow(task_columns(c))


def by_column(kinds: Mapping[str, type[list[Any]]], rows: list[tuple[Any, ...]]) -> Columns:
    return {name: kind(row[at] for row in rows) for at, (name, kind) in enumerate(kinds.items())}


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
    kinds: dict[str, type[list[Any]]] = {
        "step": Categories,
        "wave": Wholes,
        "task": Texts,
        "from": Texts,
        "to": Texts,
        "gpus": Gpus,
        "how": Categories,
        "chain": Wholes,
        "for": Texts,
        "namespace": Categories,
        "owner_kind": Categories,
        "task_gpus": Numbers,
    }
    return by_column(kinds, rows)


def plan_to_pandas(plan: Plan) -> pd.DataFrame:
    return to_pandas(plan_columns(plan))


def plan_to_arrow(plan: Plan) -> pa.Table:
    return to_arrow(plan_columns(plan))


def explanation_columns(why: consolidation.Explanation) -> Columns:
    """One row per task that keeps the node occupied."""
    rows = [
        (why.node, why.fate, b.task, b.fixed_by, b.obstacle, b.nodes_with_obstacle, b.nodes_looked_at)
        for b in why.blockers
    ]
    texts = dict.fromkeys(("node", "fate", "task", "fixed_by", "obstacle"), Texts)
    return by_column({**texts, "nodes_with_obstacle": Wholes, "nodes_looked_at": Wholes}, rows)


def explanation_to_pandas(why: consolidation.Explanation) -> pd.DataFrame:
    return to_pandas(explanation_columns(why))


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
    columns: dict[str, list[Any]] = {
        name: Wholes(getattr(point, name) for point in frontier.points) for name in FRONTIER_COLUMNS
    }
    columns["vacated_gpus_at_most"] = Numbers(point.vacated_gpus_at_most for point in frontier.points)
    return to_pandas(columns)


def preemption_explanation_to_pandas(why: preemption.Explanation) -> pd.DataFrame:
    row = (why.node, why.obstacle, why.missing, why.text)
    return to_pandas(by_column({"node": Texts, "obstacle": Texts, "missing": Wholes, "text": Texts}, [row]))
