# SPDX-License-Identifier: Apache-2.0
"""GPUs of nodes as cells, and idle GPUs by cause."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .._checks import integer
from .._drawing import name_nodes, new_axes, require_type
from .._views.tables import Report, counted
from ..errors import InvalidInput
from ..model import Cluster

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATES = {
    "locked": ("#4d4d4d", "held by a locked task"),
    "held": ("#56B4E9", "held"),
    "idle": ("#F0E442", "idle on an occupied node"),
    "free": ("#E4E4E4", "idle on an empty node"),
    "cordoned": ("#CC79A7", "idle on a {closed} node"),
    "failed": ("#D55E00", "failed"),
}


def _cells(cluster: Cluster) -> tuple[np.ndarray, np.ndarray]:
    """The state of every GPU by node and card (-1: no such card), and the number of GPUs of every node."""
    nodes, tasks = cluster.nodes, cluster.tasks
    names = list(STATES)
    count = nodes.gpu_count
    cards = np.arange(count.max(initial=0))
    present = cards < count[:, None]

    def bits(masks: np.ndarray) -> np.ndarray:
        return (masks[:, None] >> cards & 1).astype(bool)

    state = np.full(present.shape, -1)
    state[present] = names.index("idle")
    state[present & (nodes.occupants == 0)[:, None]] = names.index("free")
    state[present & ~nodes.schedulable[:, None]] = names.index("cordoned")
    place = tasks.node_index
    for flag, name in ((None, "held"), (tasks.locked | tasks.standby, "locked")):
        chosen = place >= 0 if flag is None else (place >= 0) & flag
        held = np.zeros(len(count), dtype=int)
        np.bitwise_or.at(held, place[chosen], tasks.gpu_mask[chosen])
        state[present & bits(held)] = names.index(name)
    state[bits(nodes.failed_gpu_mask) & present] = names.index("failed")
    return state, count


def plot_fragmentation(report: Report, ax: Axes | None = None) -> Axes:
    """Draws idle GPUs that requests cannot use, stacked by cause: one bar per row of the report."""
    require_type("plot_fragmentation", "report", report, Report)
    return report.plot(ax)


def plot_occupancy(
    cluster: Cluster,
    ax: Axes | None = None,
    *,
    max_nodes: int = 240,
    gpus: int | None = None,
    title: str | None = None,
) -> Axes:
    """Draws GPUs as cells, one column per node, with a colour per state.

    States: held, held by a locked task, idle on an occupied, empty or cordoned node, failed. Up to 24 nodes
    are named.

    Parameters
    ----------
    max_nodes
        larger clusters are shown by an evenly spaced sample of the sorted nodes
    gpus
        shows only nodes with this number of GPUs; by default the most common number that is at least 2
    title
        text above the drawing; by default none
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    require_type("plot_occupancy", "cluster", cluster, Cluster)
    state, count = _cells(cluster)
    integer("max_nodes", max_nodes, 1, 20_000)
    if gpus is not None:
        integer("gpus", gpus, 1, 64)
    else:
        sizes = Counter({int(k): int(k) * int((count == k).sum()) for k in np.unique(count) if k >= 2})
        gpus = sizes.most_common(1)[0][0] if sizes else int(count.max(initial=1))
    chosen = np.flatnonzero(count == gpus)
    if len(chosen) == 0:
        counts = ", ".join(str(n) for n in np.unique(count))
        raise InvalidInput(
            f"gpus: {gpus}; expected the number of GPUs of a node ({counts or 'there are no nodes'})"
        )
    totals = [(state[chosen, :gpus] == n).sum(axis=1) for n in range(len(STATES))]
    locked, _, idle, free, cordoned, failed = totals
    chosen = chosen[np.lexsort((-locked, -failed, idle, free + cordoned))]
    shown = (
        chosen if len(chosen) <= max_nodes else chosen[np.linspace(0, len(chosen) - 1, max_nodes).astype(int)]
    )
    cells = np.sort(state[shown, :gpus], axis=1).T
    ax = new_axes(ax, figsize=(7.2, 2.2))
    colors = ListedColormap([color for color, _ in STATES.values()])
    ax.pcolormesh(
        np.arange(len(shown) + 1),
        np.arange(gpus + 1),
        cells,
        cmap=colors,
        norm=BoundaryNorm(np.arange(len(STATES) + 1) - 0.5, len(STATES)),
        edgecolors="white",
        linewidth=0.3 if len(shown) <= 400 else 0,
        rasterized=True,
    )
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    ax.set_yticks([0, gpus])
    ax.set_ylabel("GPUs of a node")
    sampled = "" if len(shown) == len(chosen) else f"; {len(shown)} of them shown"
    ax.set_xlabel(f"{counted(len(chosen), 'node')} with {counted(gpus, 'GPU')}, fullest first{sampled}")
    name_nodes(ax, np.arange(len(shown)) + 0.5, [cluster.nodes.name[int(node)] for node in shown])
    present = set(np.unique(cells))
    handles = [
        Patch(facecolor=color, label=text.format(**cluster._words))
        for n, (color, text) in enumerate(STATES.values())
        if n in present
    ]
    ax.legend(
        handles=handles,
        frameon=False,
        fontsize=8,
        ncols=min(4, len(handles)),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        handlelength=1,
        columnspacing=1.2,
    )
    if title:
        ax.set_title(title, loc="left", fontsize=10, pad=20 if len(handles) <= 4 else 34)
    return ax
