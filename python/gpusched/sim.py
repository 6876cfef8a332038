"""Generated clusters, trace replay, high-priority and spot jobs, and the simulated host of the controller."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._compare_hosts import HOST_COLUMNS, compare_hosts
from ._core.sim import (
    HarvestResult,
    HostResult,
    ReplayResult,
    SpotReplayResult,
    SpotTimeline,
    SpotTrace,
    Spread,
    Timeline,
    Trace,
    generate_cluster,
    generate_spot_trace,
    is_stable,
    kingman_wait,
    read_llm_trace,
    read_spot_trace,
    record_host,
    replay,
    replay_spot,
    resample,
    simulate_harvest,
    simulate_host,
)

if TYPE_CHECKING:
    from ._asi.generate import generate_asi_tables

__all__ = [
    "HOST_COLUMNS",
    "HarvestResult",
    "HostResult",
    "ReplayResult",
    "SpotReplayResult",
    "SpotTimeline",
    "SpotTrace",
    "Spread",
    "Timeline",
    "Trace",
    "compare_hosts",
    "generate_asi_tables",
    "generate_cluster",
    "generate_spot_trace",
    "is_stable",
    "kingman_wait",
    "read_llm_trace",
    "read_spot_trace",
    "record_host",
    "replay",
    "replay_spot",
    "resample",
    "simulate_harvest",
    "simulate_host",
]


def __getattr__(name: str) -> Any:
    if name == "generate_asi_tables":  # at the first use
        return import_module("._asi.generate", __package__).generate_asi_tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
