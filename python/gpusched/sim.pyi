from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from .model import Cluster, Node, Task

__all__ = [
    "HostResult",
    "ReplayResult",
    "Timeline",
    "Trace",
    "generate_cluster",
    "is_stable",
    "kingman_wait",
    "record_host",
    "replay",
    "resample",
    "simulate_host",
]

_Floats = npt.NDArray[np.float64]
_Variant = Literal["static", "guards", "placement", "mig", "full"]
_Ints = npt.NDArray[np.int64]
_Answer = None | str | Node | tuple[str | Node, Sequence[int]]
_Progress = bool | Callable[[str, int, int], object] | None

class Trace:
    @property
    def node_count(self) -> int: ...
    @property
    def task_count(self) -> int: ...
    @property
    def gpu_count(self) -> int: ...
    def to_pandas(self) -> tuple[pd.DataFrame, pd.DataFrame]: ...
    def __copy__(self) -> Trace: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Trace: ...
    def __eq__(self, other: object, /) -> bool: ...

class Timeline:
    def __len__(self) -> int: ...
    @property
    def time(self) -> _Ints: ...
    @property
    def requested_gpu_milli(self) -> _Ints: ...
    @property
    def allocated_gpu_milli(self) -> _Ints: ...
    @property
    def running(self) -> _Ints: ...
    @property
    def unplaced(self) -> _Ints: ...
    @property
    def fragmented_gpus(self) -> npt.NDArray[np.float64]: ...
    def to_pandas(self) -> pd.DataFrame: ...
    def __eq__(self, other: object, /) -> bool: ...

class ReplayResult:
    @property
    def cluster(self) -> Cluster: ...
    @property
    def unplaced(self) -> list[str]: ...
    @property
    def timeline(self) -> Timeline: ...
    @property
    def stop_reason(self) -> str: ...

class HostResult:
    def __len__(self) -> int: ...
    @property
    def arrived(self) -> _Ints: ...
    @property
    def completed(self) -> _Ints: ...
    @property
    def missed(self) -> _Ints: ...
    @property
    def shed(self) -> _Ints: ...
    @property
    def miss_rate(self) -> _Floats: ...
    @property
    def miss_rate_completed(self) -> _Floats: ...
    @property
    def p50_ms(self) -> _Floats: ...
    @property
    def p95_ms(self) -> _Floats: ...
    @property
    def p99_ms(self) -> _Floats: ...
    @property
    def p999_ms(self) -> _Floats: ...
    @property
    def structural_actions(self) -> npt.NDArray[np.int32]: ...
    @property
    def structural_actions_per_hour(self) -> _Floats: ...
    @property
    def throttles(self) -> npt.NDArray[np.int32]: ...
    @property
    def quota_changes(self) -> npt.NDArray[np.int32]: ...
    @property
    def rollbacks(self) -> npt.NDArray[np.int32]: ...
    @property
    def throughput(self) -> _Floats: ...
    @property
    def system_throughput(self) -> _Floats: ...

def generate_cluster(
    *,
    preset: str = "asi",
    nodes: int | None = None,
    seed: int = 0,
    layout: Literal["random", "spread", "packed"] = "random",
    load: float = 1.0,
    cpu_tight: bool = False,
    locked_fraction: float | None = None,
    aligned_gpus: bool = True,
    progress: _Progress = None,
) -> Cluster: ...
def replay(
    trace: Trace,
    *,
    placement: str | Callable[[Cluster, Task], _Answer] = "least_allocated",
    until: int | None = None,
    ignore_departures: bool = False,
    resample_to: float | None = None,
    shuffle: bool = False,
    seed: int = 0,
    progress: _Progress = None,
) -> ReplayResult: ...
def resample(trace: Trace, ratio: float, *, seed: int = 0) -> Trace: ...
def simulate_host(
    *,
    variant: _Variant = "full",
    seeds: Iterable[int] = (0, 1, 2, 3, 4, 5, 6),
    duration_s: float = 3600.0,
    scenario: str = "table3",
    overrides: Mapping[str, Any] | None = None,
) -> HostResult: ...
def record_host(
    seed: int = 0,
    *,
    variant: _Variant = "full",
    duration_s: float = 3600.0,
    scenario: str = "table3",
    overrides: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]: ...
def kingman_wait(rho: float, ca2: float, cs2: float, mean_service: float) -> float: ...
def is_stable(
    demand: Sequence[float],
    throttle: Sequence[float],
    capacity: float,
    arrival_rate: float,
    service_rate: float,
) -> bool: ...
