# SPDX-License-Identifier: Apache-2.0
"""Answers of `why` as text, for pandas and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .frames import frame
from .html import _table, _text, _titled
from .tables import counted, format_table

if TYPE_CHECKING:
    import pandas as pd

    from ..admission import Why, WhyKind, WhyRow

HEADS = ("constraint", "first", "alone", "best node")
"""Heads of the columns of a printed table."""
UNIT = " (GPU-seconds: GPUs times the seconds for which their tasks are disturbed)"


def rows(table: Iterable[WhyRow], named: Iterable[str]) -> list[tuple[Any, ...]]:
    """The rows that explain something: those first or alone on some node, and those that the cause names."""
    named = set(named)
    return [
        (row.constraint, row.nodes_first, row.nodes_alone, row.best_node or "")
        for row in table
        if row.nodes_first or row.nodes_alone or row.constraint in named
    ]


def head(kind: WhyKind) -> str:
    """The line above a table."""
    fits = f"{counted(kind.nodes_fit, 'node')} could take it as it is"
    if kind.pods == 1:
        return f"{kind.pod}: {fits}"
    finds = "finds" if kind.places == 1 else "find"
    return f"{kind.pod} and {kind.pods - 1:,} like it: {kind.places:,} {finds} a place as it is; {fits}"


def text(why: Why) -> str:
    lines = [why.cause]
    for kind in why.kinds:
        lines += ["", head(kind)]
        if kind.table:
            lines.append(format_table(HEADS, rows(kind.table, why.constraints)))
    if why.domains:
        lines += ["", format_table(("domain", "places"), [(d.domain, d.places) for d in why.domains])]
    if why.remedies:
        lines += [
            "",
            "what would help, the cheapest first" + (UNIT if any(r.cost for r in why.remedies) else "") + ":",
        ]
        lines += [f"  - {remedy.text}" for remedy in why.remedies]
    return "\n".join(lines)


def to_pandas(why: Why) -> pd.DataFrame:
    kinds = {"pod": "text", "constraint": "text", "nodes_first": "whole", "nodes_alone": "whole"}
    cells = [
        (kind.pod, row.constraint, row.nodes_first, row.nodes_alone, row.best_node)
        for kind in why.kinds
        for row in kind.table
    ]
    return frame({**kinds, "best_node": "text"}, cells)


def html(why: Why) -> str:
    parts = [_titled("Why", why.cause)]
    for kind in why.kinds:
        parts.append(_text(head(kind)))
        if kind.table:
            parts.append(_table(HEADS, rows(kind.table, why.constraints)))
    if why.domains:
        parts.append(_table(("domain", "places"), [(d.domain, d.places) for d in why.domains]))
    if why.remedies:
        remedies = [(remedy.kind, remedy.cost, remedy.text) for remedy in why.remedies]
        parts.append(_table(("remedy", "GPU-seconds", "what to do"), remedies))
    return "".join(parts)
