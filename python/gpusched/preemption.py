# SPDX-License-Identifier: Apache-2.0
"""Chooses tasks to evict so that a pending task or gang can run."""

from ._core.preemption import *

__all__ = [
    "Borrower",
    "Decision",
    "EvictionModel",
    "EvictionTimeline",
    "Explanation",
    "GangDecision",
    "OnlinePreemption",
    "StandbyLease",
    "explain",
    "explain_gang",
    "gang_lost_work",
    "lost_work",
    "minimal_victim_sets",
    "paper_score",
    "preempt",
    "preempt_gang",
    "priority_weight",
    "score",
    "to_plan",
]
