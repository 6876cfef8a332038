"""Generated clusters, trace replay, high-priority and spot jobs, and the simulated host of the controller."""

from ._core.sim import (
    HostResult,
    ReplayResult,
    SpotReplayResult,
    SpotTrace,
    Spread,
    Timeline,
    Trace,
    generate_cluster,
    generate_spot_trace,
    is_stable,
    kingman_wait,
    record_host,
    replay,
    replay_spot,
    resample,
    simulate_host,
)

__all__ = [
    "HostResult",
    "ReplayResult",
    "SpotReplayResult",
    "SpotTrace",
    "Spread",
    "Timeline",
    "Trace",
    "generate_cluster",
    "generate_spot_trace",
    "is_stable",
    "kingman_wait",
    "record_host",
    "replay",
    "replay_spot",
    "resample",
    "simulate_host",
]
