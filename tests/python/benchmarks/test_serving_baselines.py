# SPDX-License-Identifier: Apache-2.0
"""HexGen, Helix and Mélange of the serving benchmark against brute force on tiny instances."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("scipy")
FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "serving"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"serving_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


melange, helix, hexgen = load("melange"), load("helix"), load("hexgen")


@pytest.mark.parametrize("seed", range(10))
def test_melange_rents_the_cheapest_instances(seed: int) -> None:
    """Every slice on every type, one by one."""
    rng = np.random.default_rng(seed)
    buckets, types, slices = 2, 2, 3
    rates, served = rng.uniform(0.5, 4, buckets), rng.uniform(0.3, 3, (buckets, types))
    served[0, seed % 2] = 0 if seed % 5 == 0 else served[0, seed % 2]
    prices, limits = rng.uniform(0.5, 3, types), rng.integers(1, 6, types).astype(float)
    best = math.inf
    for places in itertools.product(range(types), repeat=buckets * slices):
        load = [0.0] * types
        for slice_, place in enumerate(places):
            part = served[slice_ // slices, place]
            load[place] += rates[slice_ // slices] / slices / part if part else math.inf
        counts = [math.ceil(x - 1e-9) if x < math.inf else math.inf for x in load]
        if all(count <= limit for count, limit in zip(counts, limits)):
            best = min(best, sum(count * price for count, price in zip(counts, prices)))
    found = melange.cheapest(rates, served, prices, limits, slices)
    if math.isinf(best):
        assert found is None
    else:
        assert float(found @ prices) == pytest.approx(best)


def test_melange_spends_no_more_than_the_budget_and_could_not_serve_a_thousandth_more() -> None:
    shares, served = np.array([0.5, 0.5]), np.array([[2.0, 1.0], [1.0, 3.0]])
    prices, limits = np.array([1.0, 1.5]), np.array([9.0, 9.0])
    rate, counts = melange.most_rate(shares, served, prices, limits, 7.0)
    assert counts @ prices <= 7.0
    assert (melange.cheapest(1.002 * rate * shares, served, prices, limits) @ prices) > 7.0


@pytest.mark.parametrize("seed", range(6))
def test_helix_finds_the_largest_flow_of_all_placements(seed: int) -> None:
    """The graph of the paper, GPU by GPU, and a flow by another algorithm for every placement."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    rng = np.random.default_rng(seed)
    layers, kinds = 3, [0, 0, 1, 1] if seed % 2 else [0, 1, 1]
    capacities = [
        {held: int(rng.integers(2, 30)) for held in range(1, layers + 1) if rng.random() < 0.8}
        for _ in range(2)
    ]
    spans = [(first, end) for first in range(layers) for end in range(first + 1, layers + 1)]

    def flow(placed: tuple[tuple[int, int], ...]) -> int:
        size = 2 * len(placed) + 2
        edges = np.zeros((size, size), np.int32)
        for i, (kind, (first, end)) in enumerate(zip(kinds, placed)):
            edges[2 * i, 2 * i + 1] = capacities[kind].get(end - first, 0)
            edges[size - 2, 2 * i] = 1000 if first == 0 else 0
            edges[2 * i + 1, size - 1] = 1000 if end == layers else 0
            for j, (other, last) in enumerate(placed):
                edges[2 * i + 1, 2 * j] = 1000 if other <= end < last else 0
        return int(maximum_flow(csr_array(edges), size - 2, size - 1).flow_value)

    best = max(flow(placed) for placed in itertools.product(spans, repeat=len(kinds)))
    rate, bound, placed = helix.place_layers(layers, capacities, [kinds.count(0), kinds.count(1)])
    assert rate == pytest.approx(best) and bound >= rate - 1e-6
    for kind in range(2):
        assert sum(count for (of, _, _), count in placed.items() if of == kind) <= kinds.count(kind)


def divisions(gpus: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """All ways to divide GPUs into groups."""
    if not any(gpus):
        yield []
        return
    for group in itertools.product(*(range(count + 1) for count in gpus)):
        if any(group):
            for rest in divisions(tuple(x - y for x, y in zip(gpus, group))):
                if not rest or rest[0] <= group:
                    yield [group, *rest]


@pytest.mark.parametrize("seed", range(4))
def test_hexgen_finds_the_best_division_of_few_gpus(seed: int) -> None:
    rng = np.random.default_rng(seed)
    needs = rng.integers(0, 3, (6, 2))
    needs = needs[needs.sum(axis=1) > 0]
    rates = rng.uniform(1, 5, len(needs)) * needs.sum(axis=1)

    def served(group: tuple[int, ...]) -> float:
        return max((rate for need, rate in zip(needs, rates) if all(need <= group)), default=0.0)

    best = max(sum(map(served, groups)) for groups in divisions((4, 3)))
    found = hexgen.Search(needs, rates, (4, 3), seed).run()
    assert found.rate == pytest.approx(best)
    assert tuple(map(sum, zip(*found.groups))) == (4, 3)
    assert found == hexgen.Search(needs, rates, (4, 3), seed).run()
