from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .fragmentation import _Workload
from .model import Cluster, Node, Task

__all__ = ["filter_names", "gpu_picker_names", "place", "placement_names", "ranker_names"]

def ranker_names() -> list[str]: ...
def filter_names() -> list[str]: ...
def gpu_picker_names() -> list[str]: ...
def placement_names() -> list[str]: ...
def place(
    cluster: Cluster,
    task: Mapping[str, Any] | str,
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
