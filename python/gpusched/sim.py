"""Generated clusters and trace replay."""

from ._core.sim import ReplayResult, Timeline, Trace, generate_cluster, replay

__all__ = ["ReplayResult", "Timeline", "Trace", "generate_cluster", "replay"]
