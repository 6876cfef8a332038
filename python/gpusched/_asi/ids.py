"""Positions of texts."""

from __future__ import annotations

import numpy as np

from .batch import Coded, Wholes


class Ids(dict[str, int]):
    """Texts by position, in the order in which they were first met."""

    def of(self, column: Coded) -> Wholes:
        """The position of each row's text, a new one where it was not met before; -1 for none."""
        found = np.full(len(column.texts) + 1, -1)
        present = np.bincount(column.codes + 1, minlength=len(found))[1:]  # batches share texts that only some of them hold
        for code in np.flatnonzero(present).tolist():
            found[code] = self.setdefault(column.texts[code], len(self))
        return found[column.codes]
