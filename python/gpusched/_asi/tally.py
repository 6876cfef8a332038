"""The reading report of a reader in Python: how often each thing was met, with some names."""

from __future__ import annotations

from typing import Literal

from .._core.io import ReadingReport, ReadingRow

Fidelity = Literal["exact", "approximated", "ignored", "left_out"]
Errs = Literal["neither", "too_strict", "too_lax", "either"]

EXAMPLES = 3


class Tally:
    """Rows in the order in which they were first met."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, Fidelity, Errs, str], tuple[list[int], list[str]]] = {}

    def met(self, kind: str, what: str, name: str, fidelity: Fidelity = "exact", errs: Errs = "neither", how: str = "") -> None:
        count, examples = self._rows.setdefault((kind, what, fidelity, errs, how), ([0], []))
        count[0] += 1
        if len(examples) < EXAMPLES:
            examples.append(name)

    def report(self) -> ReadingReport:
        return ReadingReport(
            [
                ReadingRow(kind=kind, what=what, fidelity=fidelity, errs=errs, count=count[0], how=how, examples=examples)
                for (kind, what, fidelity, errs, how), (count, examples) in self._rows.items()
            ]
        )
