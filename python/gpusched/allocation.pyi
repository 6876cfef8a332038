from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .fragmentation import _Workload
from .model import Cluster, Node, Plan, Task
from .topology import HardwareGraph

__all__ = [
    "Allocation",
    "ByLinks",
    "JointAllocation",
    "allocate",
    "allocate_many",
    "entropy_greedy",
    "feasible_nodes",
    "filter_names",
    "gpu_picker_names",
    "least_entropy",
    "pending_pods",
    "place",
    "placement_names",
    "ranker_names",
    "to_plan",
    "with_job",
    "with_task",
]

_Job = Mapping[str, Any] | str

def ranker_names() -> list[str]: ...
def filter_names() -> list[str]: ...
def gpu_picker_names() -> list[str]: ...
def placement_names() -> list[str]: ...
class ByLinks:
    def __init__(
        self,
        cluster: Cluster,
        *,
        by_gpu_model: Mapping[str, HardwareGraph] = {},
        by_node: Mapping[str, HardwareGraph] = {},
    ) -> None: ...
    def __copy__(self) -> ByLinks: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ByLinks: ...

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
    gpu_picker: str | ByLinks | Callable[[Cluster, Task, Node], Sequence[int]] = "by_wish",
    seed: int = 0,
    workload: _Workload | None = None,
) -> tuple[str, list[int]] | None: ...

class Allocation:
    @property
    def job(self) -> str: ...
    @property
    def placed(self) -> bool: ...
    @property
    def pods(self) -> list[tuple[str, str, list[int]]]: ...
    @property
    def level(self) -> int | str: ...
    @property
    def per_domain(self) -> dict[str, int | float]: ...
    @property
    def entropy(self) -> float: ...
    @property
    def cross_traffic(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def obstacle(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def stop_reason(self) -> str: ...
    def __copy__(self) -> Allocation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Allocation: ...
    def __eq__(self, other: object, /) -> bool: ...

class JointAllocation:
    @property
    def jobs(self) -> list[Allocation]: ...
    @property
    def placed(self) -> int: ...
    @property
    def entropy(self) -> float: ...
    @property
    def cross_traffic(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    @property
    def trials(self) -> int: ...
    @property
    def stop_reason(self) -> str: ...
    def __copy__(self) -> JointAllocation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> JointAllocation: ...
    def __eq__(self, other: object, /) -> bool: ...

def allocate(
    cluster: Cluster,
    job: _Job,
    *,
    policy: Literal["entropy", "exact"] = "exact",
    level: int | Literal["node"] | None = None,
    mode: Literal["required", "preferred"] | None = None,
    further: Sequence[Mapping[str, Any]] | None = None,
    traffic: Sequence[Sequence[float]] | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Allocation: ...
def allocate_many(
    cluster: Cluster,
    jobs: Iterable[_Job],
    *,
    policy: Literal["size_sorted", "joint"] = "joint",
    time_limit: float | None = None,
    seed: int = 0,
    iterations: int = 3000,
    node_visits: int = 30000000,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> JointAllocation: ...
def entropy_greedy(capacity: Iterable[int], pods: int) -> list[int] | None: ...
def least_entropy(
    capacity: Iterable[int], pods: int, groups: Iterable[Iterable[int]] = []
) -> list[int] | None: ...
def pending_pods(cluster: Cluster, job: str) -> list[str]: ...
def with_task(cluster: Cluster, *tasks: Mapping[str, Any]) -> Cluster: ...
def with_job(cluster: Cluster, *jobs: _Job) -> Cluster: ...
def to_plan(*allocations: Allocation) -> Plan: ...
