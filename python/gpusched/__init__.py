"""Scheduling algorithms for GPU clusters.

A snapshot (`Cluster`) says which nodes there are, which tasks, and who runs where. Algorithms take one and
return plans, with statistics and what was proved about them; `verify` checks plans independently.
"""

from . import (
    allocation,
    consolidation,
    control,
    fragmentation,
    io,
    milp,
    model,
    preemption,
    serving,
    sim,
    topology,
    verify,
)
from ._core import __version__
from .allocation import allocate, allocate_many, place
from .consolidation import consolidate, make_room
from .errors import BackendError, InvalidInput
from .model import Cluster, Move, Node, Placement, Plan, Task, apply
from .preemption import preempt

__all__ = [
    "BackendError",
    "Cluster",
    "InvalidInput",
    "Move",
    "Node",
    "Placement",
    "Plan",
    "Task",
    "__version__",
    "allocate",
    "allocate_many",
    "allocation",
    "apply",
    "consolidate",
    "consolidation",
    "control",
    "fragmentation",
    "io",
    "make_room",
    "milp",
    "model",
    "place",
    "preempt",
    "preemption",
    "serving",
    "sim",
    "topology",
    "verify",
]
