# SPDX-License-Identifier: Apache-2.0
"""The state of a cluster in a few tables: idle GPUs by node, jobs that could start, pending jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .tables import Table, counted, rounded

if TYPE_CHECKING:
    from .. import fragmentation
    from ..model import Cluster

ALL = "all"
"""The last row of tables by GPU model, if there are several models."""


def by_model(cluster: Cluster) -> list[tuple[str, Any]]:
    """The GPU models of nodes with GPUs, each with a mask over the nodes; several models end with all."""
    has_gpus = cluster.nodes.gpu_count > 0
    models = np.array([model or "(no model)" for model in cluster.nodes.gpu_model], dtype=object)
    rows = [(model, has_gpus & (models == model)) for model in sorted(set(models[has_gpus]))]
    return rows if len(rows) < 2 else [*rows, (ALL, has_gpus)]


NOT_READY = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
"""Taints of nodes that are not ready."""


TIER_BITS = 32
"""The reader of Slurm adds 2^32 to a priority for each tier of its partition above the lowest."""


def is_not_ready(cluster: Cluster) -> Any:
    """A mask over the nodes: those that are closed because they are not ready."""
    closed = [NOT_READY & {t["key"] for t in node.taints} for node in cluster.nodes if not node.schedulable]
    mask = ~cluster.nodes.schedulable
    mask[mask] = [bool(taints) for taints in closed]
    return mask


def idle_gpus(cluster: Cluster) -> Table:
    """Nodes by the number of their idle GPUs, per GPU model, with the allocated share.

    The column of empty nodes comes first, because these nodes are counted by their idle GPUs as well.
    Cordoned nodes are in a column of their own, and so are nodes that are not ready, if there are any. Idle
    GPUs are those of the fragmentation report.
    """
    nodes, tasks = cluster.nodes, cluster.tasks
    allocated = np.zeros(len(nodes))
    placed = tasks.node_index >= 0
    used = tasks.gpu_count[placed] * tasks.gpu_share_milli[placed] / 1000
    np.add.at(allocated, tasks.node_index[placed], used)
    open_nodes, idle = nodes.schedulable, nodes.idle_gpu_count
    seen = sorted({0, *idle[open_nodes & (nodes.gpu_count > 0)].tolist()})
    not_ready = is_not_ready(cluster)
    closed = {cluster._words["closed"]: ~open_nodes & ~not_ready}
    if not_ready.any():
        closed["not ready"] = not_ready
    rows = []
    for model, of in by_model(cluster):
        here, gpus = of & open_nodes, nodes.gpu_count[of].sum()
        counts = [int((idle[here] == number).sum()) for number in seen]
        share = f"{100 * allocated[of].sum() / gpus:.1f} %"
        empty = int((here & (nodes.occupants == 0)).sum())
        last = (int((of & mask).sum()) for mask in closed.values())
        rows.append((model, int(gpus), share, int(idle[here].sum()), empty, *counts, *last))
    columns = ["GPU model", "GPUs", "allocated", "idle", "empty nodes"]
    columns += [*(f"{number} idle" for number in seen), *closed]
    return Table(columns, rows)


def largest_jobs(cluster: Cluster, requests: fragmentation.Report) -> Table:
    """The GPUs of the largest job that fits, per GPU model, by the request of each pod.

    Idle GPUs and cores of nodes without a cordon count, other constraints do not.
    """
    nodes = cluster.nodes
    pods = list(dict.fromkeys((row.gpus, row.cpu_cores) for row in requests if row.gpus > 0))
    is_open = nodes.schedulable

    def gpus_for(request: tuple[int, float], of: Any) -> int:
        gpus, cores = request
        fit = nodes.idle_gpu_count[of & is_open] // gpus
        if cores > 0:
            fit = np.minimum(fit, nodes.cpu_free_milli[of & is_open] // round(cores * 1000))
        return gpus * int(np.maximum(fit, 0).sum())

    models = [(model, of) for model, of in by_model(cluster) if model != ALL]
    rows = [(model, *(gpus_for(request, of) for request in pods)) for model, of in models]
    return Table(
        ["GPU model", *(f"{counted(gpus, 'GPU')}, {counted(cores, 'core')}" for gpus, cores in pods)], rows
    )


def pending_jobs(cluster: Cluster) -> Table:
    """Pending jobs by descending priority, then by name, with the requests of their pods, the largest first.

    Pods without a job are jobs of their own. A job with different pods has one row per kind of pod.
    """
    kinds: dict[tuple[Any, ...], int] = {}
    tasks, word = cluster.tasks, cluster._words["task"]
    for at in np.flatnonzero(tasks.node_index < 0).tolist():
        task = tasks[at]
        places = [*task.gpu_models, *(f"{key}={value}" for key, value in task.node_selector.items())]
        places += ["node affinity"] * bool(task.node_affinity)
        gpus = task.gpu_milli / 1000
        row = (
            task.job or task.name,
            int(gpus) if gpus.is_integer() else gpus,
            task.cpu_milli / 1000,
            task.memory_mib / 1024,
            -task.priority,
            ", ".join(places) or "any node",
        )
        kinds[row] = kinds.get(row, 0) + 1
    rows = sorted(kinds.items(), key=lambda item: (item[0][4], item[0][0], -item[0][1]))
    tiers = {-row[4] >> TIER_BITS for row in kinds if -row[4] >= 0}

    def own(priority: int) -> int | str:
        """For Slurm as it says it, without the tier of its partition."""
        if word != "task" or priority < 0:
            return priority
        tier, number = divmod(priority, 2**TIER_BITS)
        return number if len(tiers) < 2 else f"{number:,} in tier +{tier}"

    return Table(
        ["job", f"{word}s", f"GPUs per {word}", "cores", "GiB", "priority", "on"],
        [
            (job, pods, gpus, cores, rounded(memory), own(-priority), where)
            for (job, gpus, cores, memory, priority, where), pods in rows
        ],
    )
