# SPDX-License-Identifier: Apache-2.0
"""Quantiles of streams of numbers in constant memory.

Numbers are counted in bins with ends in a constant ratio (DDSketch: Masson, Rim, Lee, VLDB 2019). The error
of a quantile is at most 0.1 %.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._views.tables import Kind, Table
from .batch import Reals

ERROR = 0.001
STEP = float(np.log((1 + ERROR) / (1 - ERROR)))
LEAST, MOST = 1e-9, 1e15
"""Smaller numbers count as 0, larger numbers as MOST."""
FIRST = int(np.floor(np.log(LEAST) / STEP))
BINS = int(np.ceil(np.log(MOST) / STEP)) - FIRST + 1


class Quantiles:
    """Quantiles of non-negative numbers; NaN does not count."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS + 1, np.int64)  # the first bin holds the numbers that count as 0
        self.sum = 0.0

    def add(self, numbers: Reals) -> None:
        known = numbers[~np.isnan(numbers)]
        at = np.ceil(np.log(np.clip(known, LEAST, MOST)) / STEP).astype(np.int64) - FIRST + 1
        self.counts += np.bincount(np.where(known < LEAST, 0, at), minlength=BINS + 1)
        self.sum += float(known.sum())

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count else None

    def at(self, percent: int) -> float | None:
        """The smallest number such that `percent` % of all numbers are not above it; None without numbers."""
        if self.count == 0:
            return None
        rank = max(1, -(-self.count * percent // 100))
        bin_ = int(np.searchsorted(np.cumsum(self.counts), rank))
        return 0.0 if bin_ == 0 else float(np.exp(STEP * (bin_ - 1 + FIRST)) * (1 - ERROR))


PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def distribution_table(group: str, found: Mapping[tuple[str, str], Quantiles]) -> Table:
    """A table of distributions, with one row per group and measure."""
    numbers = ("mean", *(f"p{percent}" for percent in PERCENTS))
    columns: dict[str, Kind] = {
        group: "text",
        "measure": "text",
        "count": "whole",
        **dict.fromkeys(numbers, "number"),
    }
    rows = [(*key, q.count, q.mean, *(q.at(percent) for percent in PERCENTS)) for key, q in found.items()]
    return Table(columns, rows)
