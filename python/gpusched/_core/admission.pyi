# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from .model import Cluster, Node, Placement, Plan, Task

class Admission:
    @property
    def admitted(self) -> bool: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def cost(self) -> float: ...
    @property
    def cost_parts(self) -> dict[str, float]: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def proven(self) -> bool: ...
    @property
    def pods(self) -> list[Placement]: ...
    @property
    def moved(self) -> list[str]: ...
    @property
    def evicted(self) -> list[str]: ...
    @property
    def lost(self) -> list[str]: ...
    @property
    def broken_budgets(self) -> dict[str, int]: ...
    @property
    def obstacle(self) -> Literal["none", "cordoned", "not_eligible", "gpu_model", "node_selector", "node_affinity", "taint", "cpu", "memory", "resource", "device", "gpu", "gpu_memory", "hardware", "anti_affinity", "affinity", "network", "avoid", "near", "spread", "gang", "disruption_budget"]: ...
    @property
    def reason(self) -> str: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def stop_reason(self) -> Literal["completed", "time_limit", "cancelled", "move_budget"]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Admission: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Admission: ...
    def __bool__(self) -> bool: ...

def admit(
    cluster: Cluster,
    job: Mapping[str, Any] | str | Task | Iterable[str | Task],
    *,
    moves: bool = True,
    evictions: bool = True,
    replace: bool = True,
    standby: bool = True,
    max_moves: int | None = None,
    max_evictions: int | None = None,
    max_cost_s: int | None = None,
    time_limit: float | None = None,
    level: int | Literal["node"] | None = None,
    mode: Literal["required", "preferred"] | None = None,
    now: int | None = None,
    exempt: Sequence[str | Node] = [],
    spare: Sequence[str | Task] = [],
    quotas: Sequence[Mapping[str, Any]] = [],
    move_price_s: int = 30,
    restart_s: int = 300,
    loss_s: int = 3600,
    recall_price_s: int = 60,
    task_price_s: int = 0,
    work: bool = True,
    budget_price_s: int | None = None,
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    depth: int = 3,
    search_limit: int = 2000,
    filter: str | Callable[[Cluster, Task, Node], bool] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
    search: Mapping[str, Any] | None = None,
) -> Admission: ...
def make_room(
    cluster: Cluster,
    job: Mapping[str, Any] | str | Task | Iterable[str | Task],
    *,
    moves: bool = True,
    evictions: bool = True,
    replace: bool = True,
    standby: bool = True,
    max_moves: int | None = None,
    max_evictions: int | None = None,
    max_cost_s: int | None = None,
    time_limit: float | None = None,
    level: int | Literal["node"] | None = None,
    mode: Literal["required", "preferred"] | None = None,
    now: int | None = None,
    exempt: Sequence[str | Node] = [],
    spare: Sequence[str | Task] = [],
    quotas: Sequence[Mapping[str, Any]] = [],
    move_price_s: int = 30,
    restart_s: int = 300,
    loss_s: int = 3600,
    recall_price_s: int = 60,
    task_price_s: int = 0,
    work: bool = True,
    budget_price_s: int | None = None,
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    depth: int = 3,
    search_limit: int = 2000,
    filter: str | Callable[[Cluster, Task, Node], bool] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
    search: Mapping[str, Any] | None = None,
) -> Plan | None: ...
