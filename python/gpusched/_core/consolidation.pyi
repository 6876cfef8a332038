# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy.typing as npt
import pandas as pd

from .._types import Bound
from .model import Cluster, Plan

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
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Blocker: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Blocker: ...

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
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Explanation: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Explanation: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def _repr_html_(self) -> str: ...

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
    def models(self) -> list[ModelValue]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ValueReport: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ValueReport: ...
    @property
    def vacated_gpus_per_move(self) -> float: ...
    @property
    def vacated_nodes_per_move(self) -> float: ...

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
    record_chains: bool = False,
    objective: Literal["gpus", "nodes"] = "gpus",
    bound_method: Literal["none", "counting", "lp"] = "counting",
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
    policies: Mapping[str, str | Callable[[Cluster], npt.ArrayLike]] | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Plan: ...
def policy_names() -> dict[str, list[str]]: ...
def bound(
    cluster: Cluster,
    method: Literal["none", "counting", "lp"] = "counting",
    *,
    max_disrupted: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
    time_limit: float | None = None,
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Bound: ...
def explain(
    cluster: Cluster,
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    node: str,
    *,
    max_disrupted: int | None = None,
    protect_core_members: bool = False,
    clear: Sequence[str] | None = None,
    exempt: Sequence[str] = [],
) -> Explanation: ...
def value_report(cluster: Cluster, plan: Plan | Mapping[str, Any] | str | PathLike[str]) -> ValueReport: ...
def make_room(
    cluster: Cluster,
    job: Mapping[str, Any] | str,
    *,
    level: int | Literal["node"] | None = None,
    mode: Literal["required", "preferred"] | None = None,
    depth: int = 3,
    seed: int = 0,
    time_limit: float | None = None,
    max_moves: int | None = None,
    max_move_cost: int | None = None,
    max_disrupted: int | None = None,
    max_moves_per_wave: int | None = None,
    max_moves_per_node: int | None = None,
    protect_core_members: bool = False,
    exempt: Sequence[str] = [],
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> Plan | None: ...
