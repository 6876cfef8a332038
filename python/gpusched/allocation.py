"""Placing tasks where they fit."""

from ._core.allocation import filter_names, gpu_picker_names, place, placement_names, ranker_names

__all__ = ["filter_names", "gpu_picker_names", "place", "placement_names", "ranker_names"]
