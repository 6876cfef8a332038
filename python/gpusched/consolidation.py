"""Plans moves that empty nodes."""

from ._core.consolidation import *

__all__ = [
    "Blocker",
    "Explanation",
    "Frontier",
    "FrontierPoint",
    "LeastChange",
    "ModelValue",
    "MoveExplanation",
    "OrderedMoves",
    "ValueReport",
    "bound",
    "consolidate",
    "dropped_moves",
    "explain",
    "explain_clear",
    "explain_move",
    "frontier",
    "goal_nodes",
    "order_into_waves",
    "policy_names",
    "replan",
    "value_report",
]
