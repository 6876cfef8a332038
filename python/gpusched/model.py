# SPDX-License-Identifier: Apache-2.0
"""Snapshots of clusters, and plans that change them."""

from ._core.model import (
    Cluster,
    Disturbance,
    Move,
    Node,
    Nodes,
    Placement,
    Plan,
    Task,
    Tasks,
    apply,
    hardware_preset,
)
from ._views.compare import Diff, diff
from ._views.page import plan_page

__all__ = [
    "Cluster",
    "Diff",
    "Disturbance",
    "Move",
    "Node",
    "Nodes",
    "Placement",
    "Plan",
    "Task",
    "Tasks",
    "apply",
    "diff",
    "hardware_preset",
    "plan_page",
]
