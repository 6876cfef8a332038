# SPDX-License-Identifier: Apache-2.0
"""Mélange: packs slices of requests into GPU instances as bins.

Implements "Mélange: Cost Efficient Large Language Model Serving by Exploiting GPU Heterogeneity" (arXiv
2404.14527) from the paper.

Requests fall into buckets by size; the rate of a bucket is cut into slices. The load of a slice of bucket i
on an instance of type j is its rate divided by the most requests/s of this bucket that the instance serves.
With n_ij slices of bucket i on type j and B_j instances,

    minimise sum_j price_j B_j,  sum_j n_ij = slices,  sum_i load_ij n_ij <= B_j,  B_j <= limit_j,  n and B
whole.

The paper has a binary for each slice. Slices of a bucket are alike, so counts are equivalent.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp

Reals = npt.NDArray[np.float64]


def cheapest(
    rates: Reals, served: Reals, prices: Reals, limits: Reals, slices: int = 8
) -> npt.NDArray[np.int64] | None:
    """Instances of each type that serve these rates for least, or None.

    `rates`: requests/s by bucket. `served`: requests/s [bucket, type] of an instance, 0 if it cannot serve
    the bucket. `limits`: most instances of each type.
    """
    buckets, types = served.shape
    columns = buckets * types + types  # slices, instances
    with np.errstate(divide="ignore"):
        loads = np.where(served > 0, (rates / slices)[:, None] / served, 0.0)
    cut = np.zeros((buckets, columns))
    for i in range(buckets):
        cut[i, i * types : (i + 1) * types] = 1
    held = np.zeros((types, columns))
    for j in range(types):
        held[j, j : buckets * types : types] = loads[:, j]
        held[j, buckets * types + j] = -1
    most = np.append(np.where(served > 0, slices, 0).ravel(), limits)
    found = milp(
        np.append(np.zeros(buckets * types), prices),
        integrality=np.ones(columns),
        bounds=Bounds(0, most),
        constraints=[LinearConstraint(cut, slices, slices), LinearConstraint(held, -np.inf, 0)],
    )
    return np.rint(found.x[buckets * types :]).astype(np.int64) if found.success else None


def most_rate(
    shares: Reals, served: Reals, prices: Reals, limits: Reals, budget: float, slices: int = 8
) -> tuple[float, list[int]]:
    """The highest rate within the budget, accurate to 0.1 %, and its cheapest instances.

    Mélange minimises the cost of a given rate, so this searches the rate by bisection.
    """
    counts = [0] * len(prices)
    low = 0.0
    high = budget * float(np.max(served / prices))  # as if all requests were of the cheapest kind
    while high - low > 1e-3 * high:
        rate = (low + high) / 2
        found = cheapest(rate * shares, served, prices, limits, slices)
        if found is not None and float(found @ prices) <= budget * (1 + 1e-9):
            low, counts = rate, found.tolist()
        else:
            high = rate
    return low, counts
