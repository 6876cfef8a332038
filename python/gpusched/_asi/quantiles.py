"""Quantiles of any many numbers in memory that does not grow with them.

Counts numbers in bins whose ends are in a constant ratio (DDSketch: Masson, Rim, Lee, VLDB 2019): a quantile is within 0.1 % of the
number with that rank.
"""

from __future__ import annotations

import numpy as np

from .batch import Reals

ERROR = 0.001
STEP = float(np.log((1 + ERROR) / (1 - ERROR)))
LEAST, MOST = 1e-9, 1e15
"""Smaller numbers count as 0, larger ones as this."""
FIRST = int(np.floor(np.log(LEAST) / STEP))
BINS = int(np.ceil(np.log(MOST) / STEP)) - FIRST + 1


class Quantiles:
    """Of numbers from 0 on; what is no number (NaN) does not count."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS + 1, np.int64)  # the first of those that count as 0
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
        """The number below or at which so many per cent are; None of no numbers."""
        if self.count == 0:
            return None
        rank = max(1, -(-self.count * percent // 100))
        bin_ = int(np.searchsorted(np.cumsum(self.counts), rank))
        return 0.0 if bin_ == 0 else float(np.exp(STEP * (bin_ - 1 + FIRST)) * (1 - ERROR))
