# SPDX-License-Identifier: Apache-2.0
"""Scheduling algorithms for GPU clusters.

A snapshot (`Cluster`) holds the nodes, the tasks and the placement of each task. Algorithms take a snapshot
and return plans with statistics and proved bounds. `verify` checks plans independently.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import (
    admission,
    allocation,
    bundles,
    consolidation,
    control,
    fragmentation,
    host,
    io,
    kubernetes,
    milp,
    model,
    preemption,
    serving,
    sim,
    topology,
    verify,
)
from ._core import __version__
from .admission import admit, make_room, why
from .allocation import allocate, allocate_many, place
from .consolidation import (
    blockers,
    consolidate,
    drain_order,
    explain_move,
    frontier,
    order_into_waves,
    replan,
    what_if,
)
from .errors import BackendError, InvalidInput
from .model import Cluster, Move, Node, Placement, Plan, Task, apply, diff, plan_page
from .preemption import preempt

if TYPE_CHECKING:
    from . import plotting

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
    "admission",
    "admit",
    "allocate",
    "allocate_many",
    "allocation",
    "apply",
    "blockers",
    "bundles",
    "consolidate",
    "consolidation",
    "explain_move",
    "control",
    "diff",
    "drain_order",
    "fragmentation",
    "frontier",
    "host",
    "io",
    "kubernetes",
    "make_room",
    "milp",
    "model",
    "order_into_waves",
    "place",
    "plan_page",
    "plotting",
    "preempt",
    "preemption",
    "replan",
    "serving",
    "sim",
    "topology",
    "verify",
    "what_if",
    "why",
]


def __getattr__(name: str) -> Any:
    if name == "plotting":  # imported at its first use, because few callers draw
        return importlib.import_module(".plotting", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
