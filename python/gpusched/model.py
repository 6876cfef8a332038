"""Snapshots of clusters, and plans that change them."""

from ._core.model import Cluster, Move, Node, Nodes, Placement, Plan, Task, Tasks, apply, hardware_preset

__all__ = [
    "Cluster",
    "Move",
    "Node",
    "Nodes",
    "Placement",
    "Plan",
    "Task",
    "Tasks",
    "apply",
    "hardware_preset",
]
