# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from .._types import Bound
from .model import Cluster, Move, Node, Plan, Task

class LeastChange:
    @property
    def node(self) -> str: ...
    @property
    def gpu_milli(self) -> int: ...
    @property
    def cpu_milli(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def obstacle(self) -> Literal["none", "cordoned", "not_eligible", "gpu_model", "node_selector", "node_affinity", "taint", "cpu", "memory", "resource", "device", "gpu", "gpu_memory", "hardware", "anti_affinity", "affinity", "network", "avoid", "near", "spread", "gang", "disruption_budget"]: ...
    @property
    def closed_node(self) -> str: ...
    @property
    def closed_by(self) -> Literal["none", "emptied", "empty", "exempt", "to_clear", "cordoned"]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> LeastChange: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> LeastChange: ...

class Blocker:
    @property
    def task(self) -> str: ...
    @property
    def fixed_by(self) -> Literal["none", "daemon", "locked", "standby", "cpu_local", "never_moves", "exempt_node", "no_disruption", "budget", "core_member"]: ...
    @property
    def obstacle(self) -> Literal["none", "cordoned", "not_eligible", "gpu_model", "node_selector", "node_affinity", "taint", "cpu", "memory", "resource", "device", "gpu", "gpu_memory", "hardware", "anti_affinity", "affinity", "network", "avoid", "near", "spread", "gang", "disruption_budget"]: ...
    @property
    def nodes_with_obstacle(self) -> int: ...
    @property
    def nodes_looked_at(self) -> int: ...
    @property
    def nodes_refused(self) -> int: ...
    @property
    def change(self) -> LeastChange: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Blocker: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Blocker: ...

class Explanation:
    @property
    def node(self) -> str: ...
    @property
    def fate(self) -> Literal["vacated", "empty", "has_fixed", "has_stuck", "receives", "too_costly", "crowded", "not_worthwhile"]: ...
    @property
    def blockers(self) -> list[Blocker]: ...
    @property
    def received(self) -> list[str]: ...
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Explanation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Explanation: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def _repr_html_(self) -> str: ...

class MoveExplanation:
    @property
    def task(self) -> str: ...
    @property
    def from_node(self) -> str: ...
    @property
    def to_node(self) -> str: ...
    @property
    def fate(self) -> Literal["possible", "is_there", "not_placed", "task_stays", "node_closed", "obstacle", "refused", "no_turn"]: ...
    @property
    def fixed_by(self) -> Literal["none", "daemon", "locked", "standby", "cpu_local", "never_moves", "exempt_node", "no_disruption", "budget", "core_member"]: ...
    @property
    def closed_by(self) -> Literal["none", "emptied", "empty", "exempt", "to_clear", "cordoned"]: ...
    @property
    def obstacle(self) -> Literal["none", "cordoned", "not_eligible", "gpu_model", "node_selector", "node_affinity", "taint", "cpu", "memory", "resource", "device", "gpu", "gpu_memory", "hardware", "anti_affinity", "affinity", "network", "avoid", "near", "spread", "gang", "disruption_budget"]: ...
    @property
    def victims(self) -> list[str]: ...
    @property
    def cost(self) -> int: ...
    @property
    def weight(self) -> int: ...
    @property
    def value_milli(self) -> int: ...
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> MoveExplanation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> MoveExplanation: ...

class OrderedMoves:
    @property
    def plan(self) -> Plan: ...
    @property
    def dropped(self) -> list[MoveExplanation]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> OrderedMoves: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> OrderedMoves: ...

class ModelValue:
    @property
    def gpu_model(self) -> str: ...
    @property
    def vacated_nodes(self) -> int: ...
    @property
    def vacated_gpus(self) -> int: ...
    @property
    def moved_tasks(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ModelValue: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ModelValue: ...

class ValueReport:
    @property
    def moves(self) -> int: ...
    @property
    def moved_tasks(self) -> int: ...
    @property
    def move_cost(self) -> int: ...
    @property
    def relocation_cost(self) -> int: ...
    @property
    def disturbed_jobs(self) -> int: ...
    @property
    def waves(self) -> int: ...
    @property
    def first_wave_moves(self) -> int: ...
    @property
    def most_moves_at_once(self) -> int: ...
    @property
    def vacated_nodes(self) -> int: ...
    @property
    def vacated_gpus(self) -> int: ...
    @property
    def opened_nodes(self) -> int: ...
    @property
    def opened_gpus(self) -> int: ...
    @property
    def vacated_domains(self) -> int: ...
    @property
    def not_fully_occupied_before(self) -> int: ...
    @property
    def not_fully_occupied_after(self) -> int: ...
    @property
    def models(self) -> list[ModelValue]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ValueReport: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ValueReport: ...
    @property
    def vacated_gpus_per_move(self) -> float: ...
    @property
    def vacated_nodes_per_move(self) -> float: ...

class FrontierPoint:
    @property
    def price(self) -> int: ...
    @property
    def moves(self) -> int: ...
    @property
    def relocation_cost(self) -> int: ...
    @property
    def vacated_nodes(self) -> int: ...
    @property
    def vacated_gpus(self) -> int: ...
    @property
    def vacated_weight(self) -> int: ...
    @property
    def weight_at_most(self) -> int: ...
    @property
    def vacated_gpus_at_most(self) -> int | None: ...
    @property
    def value_milli(self) -> int: ...
    @property
    def value_at_most_milli(self) -> int: ...
    @property
    def plan(self) -> Plan: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> FrontierPoint: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> FrontierPoint: ...

class Frontier:
    @property
    def points(self) -> list[FrontierPoint]: ...
    @property
    def bound_method(self) -> str: ...
    @property
    def stop_reason(self) -> Literal["completed", "time_limit", "cancelled", "move_budget"]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Frontier: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Frontier: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> FrontierPoint: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def plot(self, ax: Axes | None = None) -> Axes: ...

def consolidate(
    cluster: Cluster,
    *,
    preset: Literal["ipc", "fast", "best"] = "best",
    seed: int = 0,
    threads: int = 0,
    time_limit: float | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    price: int = 0,
    open_price: int | None = None,
    protect_core_members: bool = False,
    goal: Mapping[str, Any] | None = None,
    objective: Literal["gpus", "nodes"] = "gpus",
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    partition_size: int = 500,
    depth: int = 3,
    rounds: int = 5,
    max_others: int | None = None,
    polish_time: float | None = None,
    bound_method: Literal["none", "counting", "lp"] = "counting",
    record_chains: bool = False,
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
    search: Mapping[str, Any] | None = None,
    policies: Mapping[str, str | Callable[[Cluster], npt.ArrayLike]] | None = None,
) -> Plan: ...
def replan(
    cluster: Cluster,
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    *,
    preset: Literal["ipc", "fast", "best"] = "best",
    seed: int = 0,
    threads: int = 0,
    time_limit: float | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    price: int = 0,
    open_price: int | None = None,
    protect_core_members: bool = False,
    goal: Mapping[str, Any] | None = None,
    objective: Literal["gpus", "nodes"] = "gpus",
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    partition_size: int = 500,
    depth: int = 3,
    rounds: int = 5,
    max_others: int | None = None,
    polish_time: float | None = None,
    bound_method: Literal["none", "counting", "lp"] = "counting",
    record_chains: bool = False,
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
    search: Mapping[str, Any] | None = None,
) -> Plan: ...
def dropped_moves(
    cluster: Cluster,
    last: Plan | Mapping[str, Any] | str | PathLike[str],
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    *,
    open_price: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    price: int = 0,
    objective: Literal["gpus", "nodes"] = "gpus",
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
) -> list[tuple[Move, str]]: ...
def policy_names() -> dict[str, list[str]]: ...
def bound(
    cluster: Cluster,
    method: Literal["none", "counting", "lp"] = "counting",
    *,
    open_price: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    time_limit: float | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Bound: ...
def goal_nodes(cluster: Cluster, goal: object) -> list[str]: ...
def explain(
    cluster: Cluster,
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    node: str | Node,
    *,
    open_price: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    price: int = 0,
    objective: Literal["gpus", "nodes"] = "gpus",
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
) -> Explanation: ...
def explain_clear(
    cluster: Cluster,
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    *,
    open_price: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    price: int = 0,
    objective: Literal["gpus", "nodes"] = "gpus",
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
) -> list[Explanation]: ...
def explain_move(
    cluster: Cluster,
    task: str | Task,
    node: str | Node,
    *,
    price: int = 0,
    open_price: int | None = None,
    protect_core_members: bool = False,
    objective: Literal["gpus", "nodes"] = "gpus",
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    plan: Plan | Mapping[str, Any] | str | PathLike[str] | None = None,
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
) -> MoveExplanation: ...
def order_into_waves(
    cluster: Cluster,
    moves: Iterable[Sequence[Any] | Move],
    *,
    price: int = 0,
    open_price: int | None = None,
    protect_core_members: bool = False,
    objective: Literal["gpus", "nodes"] = "gpus",
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    record_chains: bool = False,
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
) -> OrderedMoves: ...
def value_report(cluster: Cluster, plan: Plan | Mapping[str, Any] | str | PathLike[str]) -> ValueReport: ...
def frontier(
    cluster: Cluster,
    *,
    preset: Literal["ipc", "fast", "best"] = "best",
    seed: int = 0,
    threads: int = 0,
    time_limit: float | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    price: int = 0,
    open_price: int | None = None,
    protect_core_members: bool = False,
    objective: Literal["gpus", "nodes"] = "gpus",
    clear: Sequence[str | Node] | None = None,
    exempt: Sequence[str | Node] = [],
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    partition_size: int = 500,
    depth: int = 3,
    rounds: int = 5,
    max_others: int | None = None,
    bound_method: Literal["none", "counting", "lp"] = "counting",
    record_chains: bool = False,
    points: int = 20,
    rule: Callable[[Cluster], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Frontier: ...
