"""The tail-latency controller on this machine, which reads its signals and acts on its GPUs. Experimental."""

from ._core.host import LiveController

__all__ = ["LiveController"]
