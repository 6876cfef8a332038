"""Generated clusters and trace replay."""

from ._core.sim import ReplayResult, Timeline, Trace, generate_cluster, replay, resample

__all__ = ["ReplayResult", "Timeline", "Trace", "generate_cluster", "replay", "resample"]
