"""Whom to evict, and where, so that a task that finds no room can run."""

from ._core.preemption import (
    Decision,
    Explanation,
    HarvestResult,
    PreemptionIndex,
    explain,
    minimal_victim_sets,
    preempt,
    simulate_harvest,
    to_plan,
)

__all__ = [
    "Decision",
    "Explanation",
    "HarvestResult",
    "PreemptionIndex",
    "explain",
    "minimal_victim_sets",
    "preempt",
    "simulate_harvest",
    "to_plan",
]
