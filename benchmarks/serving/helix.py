# SPDX-License-Identifier: Apache-2.0
"""Helix: places layers on GPUs so that the largest flow of requests passes all layers.

Implements "Helix: Serving Large Language Models over Heterogeneous GPUs and Network via Max-Flow" (arXiv
2406.01566) from the paper.

A GPU that holds layers [s, e) has a capacity for requests that depends on the number of its layers. A request
passes from a GPU that ends with layer p to one that holds p, and goes through the remaining layers of that
GPU (partial inference). The most requests/s are the largest flow from layer 0 to the last:

    maximise sum of flows out of position 0,  flow into p = flow out of p,
    sum_p flow_ksep <= capacity_k(e - s) n_kse,  sum_se n_kse <= GPUs of type k,  n whole.

The paper has variables for each GPU and each pair of GPUs. Here GPUs of one type with the same layers are
counted together. Flows between GPUs are summed by the position at which they change over; this is equivalent
as long as no single link is full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

Span = tuple[int, int, int]
"""Type of GPU, first layer, end of the layers."""


def place_layers(
    layers: int,
    capacities: Sequence[Mapping[int, float]],
    gpus: Sequence[int],
    step: int = 1,
    time_limit: float = 10.0,
) -> tuple[float, float, dict[Span, int]]:
    """Requests/s, an upper bound for every placement, and the number of GPUs by span of layers.

    `capacities`: requests/s of each type by number of layers, multiples of `step`. `gpus`: GPUs of each type.
    """
    spans: list[Span] = [
        (kind, first, first + held)
        for kind, served in enumerate(capacities)
        for held in served
        for first in range(0, layers - held + 1, step)
        if gpus[kind]
    ]
    flows = [(at, p) for at, (_, first, end) in enumerate(spans) for p in range(first, end, step)]
    many = len(spans)
    size = many + len(flows)
    if not spans:
        return 0.0, 0.0, {}
    entries: list[tuple[int, int, float]] = []
    upper: list[float] = []
    for at, (kind, first, end) in enumerate(spans):  # flows through a span
        entries.append((at, at, -capacities[kind][end - first]))
        upper.append(0.0)
    for column, (at, _) in enumerate(flows, many):
        entries.append((at, column, 1.0))
    for at, (kind, _, _) in enumerate(spans):  # GPUs of a type
        entries.append((many + kind, at, 1.0))
    upper += [float(count) for count in gpus]
    rows = many + len(gpus)
    inner = {p: at for at, p in enumerate(range(step, layers, step))}
    for column, (at, p) in enumerate(flows, many):  # flow into and out of a position
        if p in inner:
            entries.append((rows + inner[p], column, -1.0))
        if spans[at][2] in inner:
            entries.append((rows + inner[spans[at][2]], column, 1.0))
    at_row, at_column, value = zip(*entries)
    matrix = coo_array((value, (at_row, at_column)), shape=(rows + len(inner), size)).tocsr()
    most = np.append([float(gpus[kind]) for kind, _, _ in spans], np.full(len(flows), np.inf))
    found = milp(
        np.append(np.zeros(many), [-1.0 if p == 0 else 0.0 for _, p in flows]),
        integrality=np.append(np.ones(many), np.zeros(len(flows))),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(
            matrix,
            np.append(np.full(rows, -np.inf), np.zeros(len(inner))),
            np.append(upper, np.zeros(len(inner))),
        ),
        options={"time_limit": time_limit},
    )
    if found.x is None:
        return 0.0, float("inf"), {}
    counts = np.rint(found.x[:many]).astype(int)
    placed = {span: int(count) for span, count in zip(spans, counts) if count}
    return -float(found.fun), -float(found.mip_dual_bound), placed
