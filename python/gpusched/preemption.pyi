from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .model import Cluster, Plan, Task

__all__ = [
    "Decision",
    "Explanation",
    "HarvestResult",
    "PreemptionIndex",
    "explain",
    "minimal_victim_sets",
    "preempt",
    "simulate_harvest",
    "to_plan",
]

_Policy = Literal["spot", "spot_exact", "imp", "exhaustive", "reprieve", "first_fit"]
_Engine = Literal["masks", "plain"]
_Qos = Literal["guaranteed", "best_effort", "none"]
_Task = Mapping[str, Any] | str | Task

class Decision:
    @property
    def task(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def victims(self) -> list[str]: ...
    @property
    def gpus(self) -> list[int]: ...
    @property
    def topology(self) -> Literal["numa", "socket", "cross"]: ...
    @property
    def score(self) -> float | None: ...
    @property
    def priority_sum(self) -> int: ...
    @property
    def cost(self) -> float: ...
    @property
    def proven(self) -> bool: ...
    def __copy__(self) -> Decision: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Decision: ...
    def __eq__(self, other: object, /) -> bool: ...

class Explanation:
    @property
    def node(self) -> str | None: ...
    @property
    def obstacle(self) -> str: ...
    @property
    def missing(self) -> int: ...
    @property
    def text(self) -> str: ...
    def __copy__(self) -> Explanation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Explanation: ...
    def __eq__(self, other: object, /) -> bool: ...

class HarvestResult:
    @property
    def standby_gpu_h(self) -> float: ...
    @property
    def borrowed_gpu_h(self) -> float: ...
    @property
    def useful_gpu_h(self) -> float: ...
    @property
    def lost_gpu_h(self) -> float: ...
    @property
    def evictions(self) -> int: ...
    @property
    def killed(self) -> int: ...
    @property
    def completed(self) -> int: ...
    @property
    def eviction_mean_s(self) -> float: ...
    @property
    def eviction_p95_s(self) -> float: ...
    @property
    def eviction_max_s(self) -> float: ...
    @property
    def standby_by_hour(self) -> list[float]: ...
    @property
    def borrowed_by_hour(self) -> list[float]: ...
    @property
    def harvested(self) -> float: ...
    def __copy__(self) -> HarvestResult: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> HarvestResult: ...
    def __eq__(self, other: object, /) -> bool: ...

class PreemptionIndex:
    def __init__(
        self,
        cluster: Cluster,
        *,
        policy: _Policy = "imp",
        engine: _Engine = "masks",
        qos: _Qos | None = None,
        alpha: float = 0.5,
        numa_score: float = 1.0,
        socket_score: float = 0.5,
        cross_score: float = 0.0,
        now: int | None = None,
        search_limit: int = 1000000,
    ) -> None: ...
    def place(self, task: str, node: str, gpus: Sequence[int]) -> None: ...
    def remove(self, task: str) -> None: ...
    def fail_gpu(self, node: str, gpu: int, failed: bool = True) -> None: ...
    def fail_node(self, node: str, failed: bool = True) -> None: ...
    def set_now(self, now: int) -> None: ...
    def decide(self, task: str) -> Decision | None: ...
    def apply(self, decision: Decision) -> None: ...

def preempt(
    cluster: Cluster,
    task: _Task,
    *,
    policy: _Policy = "imp",
    engine: _Engine = "masks",
    qos: _Qos | None = None,
    alpha: float = 0.5,
    numa_score: float = 1.0,
    socket_score: float = 0.5,
    cross_score: float = 0.0,
    now: int | None = None,
    search_limit: int = 1000000,
) -> Decision | None: ...
def minimal_victim_sets(
    cluster: Cluster,
    task: _Task,
    node: str,
    *,
    policy: _Policy = "imp",
    engine: _Engine = "masks",
    qos: _Qos | None = None,
    alpha: float = 0.5,
    numa_score: float = 1.0,
    socket_score: float = 0.5,
    cross_score: float = 0.0,
    now: int | None = None,
    search_limit: int = 1000000,
) -> list[list[str]]: ...
def explain(
    cluster: Cluster,
    task: _Task,
    *,
    policy: _Policy = "imp",
    engine: _Engine = "masks",
    qos: _Qos | None = None,
    alpha: float = 0.5,
    numa_score: float = 1.0,
    socket_score: float = 0.5,
    cross_score: float = 0.0,
    now: int | None = None,
    search_limit: int = 1000000,
) -> Explanation: ...
def to_plan(decision: Decision) -> Plan: ...
def simulate_harvest(
    *,
    owners: int = 500,
    days: int = 7,
    sleep_hour: float = 22.0,
    wake_hour: float = 32.0,
    demand: float = 1.0,
    task_minutes: int = 120,
    checkpoint_minutes: int = 30,
    start_delay_s: int = 120,
    seed: int = 0,
) -> HarvestResult: ...
