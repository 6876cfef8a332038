from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from .model import Cluster, Node, Task

__all__ = ["ReplayResult", "Timeline", "Trace", "generate_cluster", "replay", "resample"]

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
