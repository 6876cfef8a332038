"""Whom to evict, and where, so that a task that finds no room can run."""

from ._core.preemption import (
    Borrower,
    Decision,
    EvictionModel,
    EvictionTimeline,
    Explanation,
    GangDecision,
    HarvestResult,
    PreemptionIndex,
    StandbyLease,
    explain,
    explain_gang,
    minimal_victim_sets,
    preempt,
    preempt_gang,
    simulate_harvest,
    to_plan,
)

__all__ = [
    "Borrower",
    "Decision",
    "EvictionModel",
    "EvictionTimeline",
    "Explanation",
    "GangDecision",
    "HarvestResult",
    "PreemptionIndex",
    "StandbyLease",
    "explain",
    "explain_gang",
    "minimal_victim_sets",
    "preempt",
    "preempt_gang",
    "simulate_harvest",
    "to_plan",
]
