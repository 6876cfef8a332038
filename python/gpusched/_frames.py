"""Tables as pandas frames. pandas is imported when the first one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._optional import require

if TYPE_CHECKING:
    import pandas as pd

    from .model import Cluster


def cluster(c: Cluster) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes and tasks of a cluster."""
    pd = require("pandas", "io")

    n, t = c.nodes, c.tasks
    nodes = pd.DataFrame(
        {
            "name": n.name,
            "gpu_model": pd.Categorical(n.gpu_model),
            "gpu_count": n.gpu_count,
            "cpu_milli": n.cpu_milli,
            "memory_mib": n.memory_mib,
            "schedulable": n.schedulable,
            "occupants": n.occupants,
            "gpu_free_milli": n.gpu_free_milli,
            "cpu_free_milli": n.cpu_free_milli,
            "memory_free_mib": n.memory_free_mib,
            "idle_gpus": _popcount(n.idle_gpus),
            "failed_gpus": _popcount(n.failed_gpus),
        }
    )
    for level in range(c.network_levels):
        nodes[f"network_{level}"] = pd.Categorical(n.domain(level))
    names = np.array([*n.name, None], dtype=object)
    tasks = pd.DataFrame(
        {
            "name": t.name,
            "job": t.job,
            "node": names[t.node_index],
            "gpu_count": t.gpu_count,
            "gpu_share_milli": t.gpu_share_milli,
            "cpu_milli": t.cpu_milli,
            "memory_mib": t.memory_mib,
            "priority": t.priority,
            "priority_class": pd.Categorical(t.priority_class),
            "locked": t.locked,
            "preemptible": t.preemptible,
            "standby": t.standby,
            "daemon": t.daemon,
            "start_time": t.start_time,
            "move_cost": t.move_cost,
            "eviction_count": t.eviction_count,
        }
    )
    return nodes, tasks


def _popcount(masks: np.ndarray) -> np.ndarray:
    """How many bits of each 16-bit mask are set."""
    return np.unpackbits(masks.astype("<u2").view(np.uint8).reshape(-1, 2), axis=1).sum(
        axis=1, dtype=np.uint8
    )
