"""Placing tasks where they fit."""

from ._core.allocation import (
    feasible_nodes,
    filter_names,
    gpu_picker_names,
    place,
    placement_names,
    ranker_names,
)

__all__ = [
    "feasible_nodes",
    "filter_names",
    "gpu_picker_names",
    "place",
    "placement_names",
    "ranker_names",
]
