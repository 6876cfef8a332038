"""Whom to evict, and where, so that a task that finds no room can run."""

from ._core.preemption import (
    Borrower,
    Decision,
    EvictionModel,
    EvictionTimeline,
    Explanation,
    GangDecision,
    PreemptionIndex,
    StandbyLease,
    explain,
    explain_gang,
    lost_work,
    minimal_victim_sets,
    preempt,
    preempt_gang,
    score,
    to_plan,
)

__all__ = [
    "Borrower",
    "Decision",
    "EvictionModel",
    "EvictionTimeline",
    "Explanation",
    "GangDecision",
    "PreemptionIndex",
    "StandbyLease",
    "explain",
    "explain_gang",
    "lost_work",
    "minimal_victim_sets",
    "preempt",
    "preempt_gang",
    "score",
    "to_plan",
]
