"""Placing tasks and jobs where they fit."""

from ._core.allocation import (
    Allocation,
    JointAllocation,
    allocate,
    allocate_many,
    feasible_nodes,
    filter_names,
    gpu_picker_names,
    place,
    placement_names,
    ranker_names,
    to_plan,
    with_job,
    with_task,
)

__all__ = [
    "Allocation",
    "JointAllocation",
    "allocate",
    "allocate_many",
    "feasible_nodes",
    "filter_names",
    "gpu_picker_names",
    "place",
    "placement_names",
    "ranker_names",
    "to_plan",
    "with_job",
    "with_task",
]
