"""Generated clusters and trace replay."""

from ._core.sim import Trace, generate_cluster

__all__ = ["Trace", "generate_cluster"]
