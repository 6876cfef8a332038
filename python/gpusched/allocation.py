"""Placing tasks where they fit."""

from ._core.allocation import place, placement_names, ranker_names

__all__ = ["place", "placement_names", "ranker_names"]
