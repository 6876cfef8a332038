from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .fragmentation import _Workload
from .model import Cluster, Node, Task

__all__ = ["feasible_nodes", "filter_names", "gpu_picker_names", "place", "placement_names", "ranker_names"]

def ranker_names() -> list[str]: ...
def filter_names() -> list[str]: ...
def gpu_picker_names() -> list[str]: ...
def placement_names() -> list[str]: ...
def feasible_nodes(cluster: Cluster, task: Mapping[str, Any] | str | Task) -> npt.NDArray[np.int64]: ...
def place(
    cluster: Cluster,
    task: Mapping[str, Any] | str | Task,
    *,
    rankers: Sequence[str | Callable[[Cluster, Task, Node], int]] = [
        "packing",
        "homogeneous",
        "eviction_history",
    ],
    filters: Sequence[str | Callable[[Cluster, Task, Node], bool]] = [],
    gpu_picker: str | Callable[[Cluster, Task, Node], Sequence[int]] = "by_wish",
    seed: int = 0,
    workload: _Workload | None = None,
) -> tuple[str, list[int]] | None: ...
