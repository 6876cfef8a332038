"""The tail-latency controller on this machine, which reads its signals and acts on its GPUs. Experimental."""

from ._core.host import LiveController, RunRequests, run

__all__ = ["LiveController", "RunRequests", "run"]
