"""The shapes of dicts that the extension returns, for type checkers."""

from __future__ import annotations

from typing import TypedDict


class Bound(TypedDict):
    """What was proved about every final placement that satisfies the rules of a call."""

    occupied_nodes_at_least: int
    vacated_nodes_at_most: int
    vacated_gpus_at_most: int
    method: str
