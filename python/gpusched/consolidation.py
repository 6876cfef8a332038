"""Vacating nodes by moving tasks."""

from ._core.consolidation import (
    Blocker,
    Explanation,
    ModelValue,
    ValueReport,
    bound,
    consolidate,
    explain,
    make_room,
    policy_names,
    value_report,
)

__all__ = [
    "Blocker",
    "Explanation",
    "ModelValue",
    "ValueReport",
    "bound",
    "consolidate",
    "explain",
    "make_room",
    "policy_names",
    "value_report",
]
