# SPDX-License-Identifier: Apache-2.0
"""HexGen: groups GPUs by a genetic search, with a pipeline in each group.

Implements "HexGen: Generative Inference of Large Language Model over Heterogeneous Environment" (arXiv
2311.11514) from the paper.

The GPUs are given. An individual divides them into groups; each group serves with the best of its asymmetric
pipelines (the inner search). Mutations merge two groups, split one, and swap two GPUs of two groups; the
better half of parents and children survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Wholes = npt.NDArray[np.int64]
Group = tuple[int, ...]
"""GPUs of each type."""


class Individual(NamedTuple):
    rate: float
    groups: tuple[Group, ...]


class Search:
    """`needs`: GPUs [deployment, type]. `rates`: requests/s of each deployment. `gpus`: GPUs of each type."""

    def __init__(self, needs: Wholes, rates: npt.NDArray[np.float64], gpus: Sequence[int], seed: int) -> None:
        order = np.argsort(-rates, kind="stable")
        self.needs, self.rates = needs[order], rates[order]
        self.gpus = tuple(gpus)
        self.rng = np.random.default_rng(seed)
        self._best: dict[Group, float] = {}

    def best_of(self, group: Group) -> float:
        """Requests/s of the best pipeline of these GPUs."""
        if group not in self._best:
            fits = (self.needs <= np.array(group)).all(axis=1)
            self._best[group] = float(self.rates[int(np.argmax(fits))]) if fits.any() else 0.0
        return self._best[group]

    def individual(self, groups: Sequence[Group]) -> Individual:
        kept = tuple(sorted(group for group in groups if any(group)))
        return Individual(sum(self.best_of(group) for group in kept), kept)

    def run(self, population: int = 40, generations: int = 300) -> Individual:
        """The best division found."""
        alive = [self.first() for _ in range(population)]
        for _ in range(generations):
            children = [self.mutated(alive[self.rng.integers(len(alive))]) for _ in range(population)]
            alive = sorted({*alive, *children}, key=lambda one: (-one.rate, one.groups))[:population]
        return alive[0]

    def first(self) -> Individual:
        """GPUs of each type cut at random, pieces dealt to some groups."""
        groups = [[0] * len(self.gpus) for _ in range(self.rng.integers(1, max(2, sum(self.gpus))))]
        for kind, count in enumerate(self.gpus):
            for _ in range(count):
                groups[self.rng.integers(len(groups))][kind] += 1
        return self.individual([tuple(group) for group in groups])

    def mutated(self, one: Individual) -> Individual:
        groups = list(one.groups)
        if not groups:
            return one
        way = self.rng.integers(3) if len(groups) > 1 else 1
        a = int(self.rng.integers(len(groups)))
        if way == 1:  # split
            chosen = groups.pop(a)
            part = tuple(int(self.rng.integers(count + 1)) for count in chosen)
            return self.individual([*groups, part, tuple(x - y for x, y in zip(chosen, part))])
        first, second = groups.pop(a), groups.pop(int(self.rng.integers(len(groups))))
        if way == 0:  # merge
            return self.individual([*groups, tuple(x + y for x, y in zip(first, second))])
        return self.individual([*groups, *self.swapped(first, second)])

    def swapped(self, first: Group, second: Group) -> tuple[Group, Group]:
        """Swaps one GPU of each group."""
        a, b = (self.rng.choice(np.repeat(np.arange(len(group)), group)) for group in (first, second))
        left, right = list(first), list(second)
        left[a], right[a] = left[a] - 1, right[a] + 1
        left[b], right[b] = left[b] + 1, right[b] - 1
        return tuple(left), tuple(right)
