from collections.abc import Mapping, Sequence
from typing import Any

from .model import Cluster

__all__ = ["place", "placement_names", "ranker_names"]

def ranker_names() -> list[str]: ...
def placement_names() -> list[str]: ...
def place(
    cluster: Cluster,
    task: Mapping[str, Any] | str,
    *,
    rankers: Sequence[str] = ["packing", "homogeneous", "eviction_history"],
    gpu_picker: str = "fewest_crossings",
    seed: int = 0,
) -> tuple[str, list[int]] | None: ...
