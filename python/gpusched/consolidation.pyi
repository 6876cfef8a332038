from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import pandas as pd

from .model import Cluster, Plan, _Bound

__all__ = [
    "Blocker",
    "Explanation",
    "ModelValue",
    "ValueReport",
    "bound",
    "consolidate",
    "explain",
    "make_room",
    "value_report",
]

_Progress = bool | Callable[[str, int, int], object] | None
_Plan = Plan | Mapping[str, Any] | str | PathLike[str]

class Blocker:
    @property
    def task(self) -> str: ...
    @property
    def fixed_by(self) -> str: ...
    @property
    def obstacle(self) -> str: ...
    @property
    def nodes_with_obstacle(self) -> int: ...
    @property
    def nodes_looked_at(self) -> int: ...
    def __copy__(self) -> Blocker: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Blocker: ...
    def __eq__(self, other: object, /) -> bool: ...

class Explanation:
    @property
    def node(self) -> str: ...
    @property
    def fate(self) -> str: ...
    @property
    def blockers(self) -> list[Blocker]: ...
    @property
    def received(self) -> list[str]: ...
    @property
    def text(self) -> str: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def _repr_html_(self) -> str: ...
    def __copy__(self) -> Explanation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Explanation: ...
    def __eq__(self, other: object, /) -> bool: ...

class ModelValue:
    @property
    def gpu_model(self) -> str: ...
    @property
    def vacated_nodes(self) -> int: ...
    @property
    def vacated_gpus(self) -> int: ...
    @property
    def moved_tasks(self) -> int: ...
    def __copy__(self) -> ModelValue: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ModelValue: ...
    def __eq__(self, other: object, /) -> bool: ...

class ValueReport:
    @property
    def moves(self) -> int: ...
    @property
    def moved_tasks(self) -> int: ...
    @property
    def move_cost(self) -> int: ...
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
    def vacated_domains(self) -> int: ...
    @property
    def not_fully_occupied_before(self) -> int: ...
    @property
    def not_fully_occupied_after(self) -> int: ...
    @property
    def vacated_gpus_per_move(self) -> float: ...
    @property
    def vacated_nodes_per_move(self) -> float: ...
    @property
    def models(self) -> list[ModelValue]: ...
    def __copy__(self) -> ValueReport: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ValueReport: ...
    def __eq__(self, other: object, /) -> bool: ...

def consolidate(
    cluster: Cluster,
    *,
    preset: Literal["ipc", "fast", "best"] = "best",
    partition_size: int = 500,
    depth: int = 3,
    rounds: int = 5,
    seed: int = 0,
    threads: int = 0,
    time_limit: float | None = None,
    polish_time: float | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    max_others: int | None = None,
    max_price_ratio: float | None = None,
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    protect_core_members: bool = False,
    objective: Literal["gpus", "nodes"] = "gpus",
    bound_method: Literal["none", "counting", "lp"] = "counting",
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
    progress: _Progress = None,
) -> Plan: ...
def make_room(
    cluster: Cluster,
    job: Mapping[str, Any] | str,
    *,
    level: int | Literal["node"] | None = None,
    mode: Literal["required", "preferred"] | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    protect_core_members: bool = False,
    exempt: Sequence[str] = [],
    depth: int = 3,
    seed: int = 0,
    time_limit: float | None = None,
    progress: _Progress = None,
) -> Plan | None: ...
def bound(
    cluster: Cluster,
    method: Literal["counting", "lp"] = "counting",
    *,
    protect_core_members: bool = False,
    max_disrupted: int | None = None,
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
    time_limit: float | None = None,
    progress: _Progress = None,
) -> _Bound: ...
def explain(
    cluster: Cluster,
    plan: _Plan,
    node: str,
    *,
    protect_core_members: bool = False,
    max_disrupted: int | None = None,
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
) -> Explanation: ...
def value_report(cluster: Cluster, plan: _Plan) -> ValueReport: ...
