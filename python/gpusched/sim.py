"""Generated clusters, trace replay, and the simulated host of the controller."""

from ._core.sim import (
    HostResult,
    ReplayResult,
    Timeline,
    Trace,
    generate_cluster,
    is_stable,
    kingman_wait,
    record_host,
    replay,
    resample,
    simulate_host,
)

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
