# SPDX-License-Identifier: Apache-2.0
"""Types of dicts that the extension returns, for type checkers."""

from __future__ import annotations

from typing import TypedDict


class _AlwaysBound(TypedDict):
    occupied_nodes_at_least: int
    vacated_nodes_at_most: int
    vacated_gpus_at_most: int
    method: str


class Bound(_AlwaysBound, total=False):
    """Proved limits of every final placement that satisfies the constraints of a call."""

    value_at_most: int
    """At the price of the call, if moves have a price; in thousandths, as `stats["value_milli"]`."""
