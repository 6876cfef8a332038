# SPDX-License-Identifier: Apache-2.0
"""GPUs of tasks on each node, and GPUs of jobs under each switch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._checks import integer
from .._core import did_you_mean
from .._drawing import PALETTE, figure_width, hide_frame, name_nodes, new_axes, plain, require_type
from .._views.tables import counted
from ..errors import InvalidInput, InvalidType, repr_text
from ..fragmentation import entropy
from ..model import Cluster, hardware_preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model import Node

# Colours by the number of GPUs of a task, as in the FlexTopo paper.
SIZES = {1: "#56B4E9", 2: "#009E73", 4: "#0072B2", 8: "#CC79A7"}
OTHER, SHARED, IDLE, CORDONED, FAILED, CROSSING = (
    "#E69F00",
    "#F0E442",
    "#FFFFFF",
    "#BDBDBD",
    "#000000",
    "#D55E00",
)
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": 8, "loc": "upper left", "bbox_to_anchor": (1, 1)}
LEVELS = {"numa": "NUMA nodes", "socket": "sockets"}


def _numbers(mask: int) -> list[int]:
    return [g for g in range(64) if mask >> g & 1]


def _places(node: Node, level: str) -> list[set[int]]:
    """GPUs of each socket (or NUMA node) of the machine; empty if unknown."""
    hardware = node.hardware
    if isinstance(hardware, str):
        hardware = hardware_preset(hardware)
    places: dict[int, set[int]] = {}
    for number, numa in enumerate((hardware or {}).get("numa_nodes", ())):
        places.setdefault(numa["socket"] if level == "socket" else number, set()).update(numa["gpus"])
    return list(places.values())


def _shown(cluster: Cluster, nodes: Sequence[str] | None, max_nodes: int) -> np.ndarray:
    integer("max_nodes", max_nodes, 1, 2000)
    count = cluster.nodes.gpu_count
    if nodes is None:
        chosen = np.flatnonzero(count > 0)
        if len(chosen) > max_nodes:
            chosen = chosen[np.linspace(0, len(chosen) - 1, max_nodes).astype(int)]
    else:
        if isinstance(nodes, str) or not isinstance(nodes, Iterable):
            raise InvalidInput(f"nodes: {repr_text(nodes)}; expected a list of names")
        chosen = np.array([cluster.nodes.index(name) for name in nodes], dtype=int)
        integer("len(nodes)", len(chosen), 0, max_nodes)
    if len(chosen) == 0:
        raise InvalidInput("nodes: none has GPUs" if nodes is None else "nodes: none; expected at least one")
    return chosen


def plot_gpus(
    cluster: Cluster,
    ax: Axes | None = None,
    *,
    nodes: Sequence[str] | None = None,
    max_nodes: int = 60,
    level: Literal["socket", "numa"] = "socket",
    title: str | None = None,
) -> Axes:
    """Draws every GPU by node and index, with lines between the GPUs of a task (after Figure 8 of the
    FlexTopo paper).

    Dotted lines skip other GPUs. Red lines mark tasks on several sockets that one socket of the machine could
    hold; the label below the figure counts them.

    Parameters
    ----------
    nodes
        names in display order; by default all nodes with GPUs, in the snapshot's order
    max_nodes
        larger clusters are shown by an evenly spaced sample of nodes
    level
        the hardware level that tasks should not cross: "socket" or "numa"
    title
        text above the drawing; by default none
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    require_type("plot_gpus", "cluster", cluster, Cluster)
    if not isinstance(level, str) or level not in LEVELS:
        raise InvalidInput(f"level: {repr_text(level)}; expected 'socket' or 'numa'")
    chosen = _shown(cluster, nodes, max_nodes)
    count = cluster.nodes.gpu_count[chosen]
    failed = cluster.nodes.failed_gpu_mask[chosen]
    tasks = cluster.tasks
    at = {int(node): x for x, node in enumerate(chosen)}
    idle = np.where(cluster.nodes.schedulable[chosen], IDLE, CORDONED)
    colour = [[FAILED if failed[x] >> g & 1 else str(idle[x]) for g in range(n)] for x, n in enumerate(count)]
    lines: dict[tuple[str, str], list[Any]] = {}
    several = crossing = 0
    place, masks, share, standby = tasks.node_index, tasks.gpu_mask, tasks.gpu_share_milli, tasks.standby
    shown_tasks = np.flatnonzero(np.isin(place, chosen) & (masks != 0))
    known = {x: _places(cluster.nodes[int(node)], level) for x, node in enumerate(chosen)}
    bends = [0] * len(chosen)  # dotted lines drawn so far on each node; each bends differently
    # Standby tasks come first, so that borrowers are drawn over them.
    for t in sorted(shown_tasks, key=lambda t: not standby[t]):
        x, gpus = at[int(place[t])], _numbers(int(masks[t]))
        for g in gpus:
            if not failed[x] >> g & 1:
                colour[x][g] = SHARED if share[t] < 1000 else SIZES.get(len(gpus), OTHER)
        if len(gpus) < 2:
            continue
        several += 1
        apart = not any(set(gpus) <= p for p in known[x]) and any(len(p) >= len(gpus) for p in known[x])
        crossing += apart
        bend = (0.2, -0.2, 0.38, -0.38)[bends[x] % 4]
        bends[x] += gpus[-1] - gpus[0] >= len(gpus)
        for a, b in zip(gpus, gpus[1:]):
            near = b == a + 1
            way = [(x, a), (x, b)] if near else [(x, a), (x + bend, a + 0.4), (x + bend, b - 0.4), (x, b)]
            lines.setdefault((CROSSING if apart else "#4d4d4d", "-" if near else ":"), []).append(way)
    ax = new_axes(ax, figsize=(figure_width(6.5, 0.19, len(chosen)), 1.5 + 0.2 * int(count.max())))
    for (shade, style), segments in sorted(lines.items()):
        ax.add_collection(LineCollection(segments, colors=shade, linestyles=style, linewidths=1.6, zorder=2))
    xs = np.repeat(np.arange(len(chosen)), count)
    ys = np.concatenate([np.arange(n) for n in count])
    face = [shade for node in colour for shade in node]
    ax.scatter(xs, ys, s=30, c=face, edgecolors="#4d4d4d", linewidths=0.6, zorder=3)
    present = set(face)
    labels = [(shade, f"{size} GPU{'s' if size > 1 else ''}") for size, shade in SIZES.items()]
    labels += [(OTHER, "other number"), (SHARED, "part of a GPU"), (IDLE, "idle")]
    labels += [(CORDONED, f"idle, node {cluster._words['closed']}"), (FAILED, "failed")]
    handles: list[Line2D] = [
        Line2D([], [], ls="", marker="o", ms=5.5, mfc=shade, mec="#4d4d4d", mew=0.6, label=text)
        for shade, text in labels
        if shade in present
    ]
    if crossing:
        handles.append(Line2D([], [], color=CROSSING, lw=1.6, label=f"across {LEVELS[level]}\nwithout need"))
    ax.legend(handles=handles, **LEGEND)
    ax.set_xlim(-0.8, len(chosen) - 0.2)
    ax.set_ylim(-0.6, int(count.max()) - 0.4)
    ax.set_yticks(range(0, int(count.max()), 1 if count.max() <= 8 else 3))
    ax.set_ylabel("GPU")
    name_nodes(ax, np.arange(len(chosen)), [cluster.nodes.name[int(node)] for node in chosen])
    of = int((cluster.nodes.gpu_count > 0).sum())
    sampled = "" if nodes is not None or of == len(chosen) else f" of {of:,}"
    unknown = sum(not places and n > 1 for places, n in zip(known.values(), count))
    shown = counted(len(chosen), "node") if not sampled else f"{len(chosen):,}{sampled} nodes"
    text = f"{shown}; of {counted(several, 'task')} with several GPUs\n"
    text += f"{crossing} {'is' if crossing == 1 else 'are'} across {LEVELS[level]} without need"
    if unknown:
        text += f" ({LEVELS[level]} of {counted(unknown, 'node')} not known)"
    ax.set_xlabel(text)
    hide_frame(ax)
    if title:
        ax.set_title(title, loc="left", fontsize=10)
    return ax


def _domains(cluster: Cluster, level: int | Literal["node"] | None) -> tuple[list[str], np.ndarray, str]:
    """Names of domains with GPUs, the domain index of every node (-1: no GPUs), and the level's plural."""
    if level is None:
        level = cluster.network_levels - 1 if cluster.network_levels > 0 else "node"
    if level != "node":
        integer("level", level, 0, cluster.network_levels - 1)
    nodes = cluster.nodes
    of: list[tuple[bool, str]] = []
    for name, domain in zip(nodes.name, nodes.domain(level)):
        of.append(
            (True, domain) if domain is not None else (False, name)
        )  # a node of unknown position is its own domain
    gpus = nodes.gpu_count > 0
    numbers = {key: n for n, key in enumerate(dict.fromkeys(key for key, has in zip(of, gpus) if has))}
    index = np.array([numbers[key] if has else -1 for key, has in zip(of, gpus)], dtype=int)
    plural = "nodes" if level == "node" else "switches" if level == cluster.network_levels - 1 else "domains"
    return [name for _, name in numbers], index, plural


def plot_switches(
    cluster: Cluster,
    ax: Axes | None = None,
    *,
    level: int | Literal["node"] | None = None,
    jobs: Sequence[str] | None = None,
    max_domains: int = 60,
    title: str | None = None,
) -> Axes:
    """Draws the GPUs of every switch (or other domain), stacked by jobs.

    Jobs in several domains have colours; the legend shows their entropy over domains. GPUs of single tasks
    and of jobs within one domain are dark grey, idle GPUs light grey, idle GPUs of cordoned nodes pink,
    failed GPUs black.

    Parameters
    ----------
    level
        level of the domains: an index into the nodes' network, or "node"; by default the deepest level
    jobs
        names of the jobs to colour; by default the eight largest jobs in several domains
    max_domains
        if there are more domains, shows the domains with the most GPUs of coloured jobs
    title
        text above the drawing; by default none
    """
    require_type("plot_switches", "cluster", cluster, Cluster)
    integer("max_domains", max_domains, 1, 2000)
    names, domain_of, plural = _domains(cluster, level)
    if not names:
        raise InvalidInput("cluster: no node has GPUs")
    if isinstance(jobs, str) or not (jobs is None or isinstance(jobs, Iterable)):
        raise InvalidType(f"jobs: {repr_text(jobs)}; expected a list of names")
    nodes, tasks = cluster.nodes, cluster.tasks
    has = domain_of >= 0
    capacity = np.bincount(domain_of[has], nodes.gpu_count[has].astype(float), len(names))
    free = np.bincount(domain_of[has], nodes.gpu_free_milli[has] / 1000.0, len(names))
    failed_count = nodes.failed_gpu_count.astype(float)
    failed = np.bincount(domain_of[has], failed_count[has], len(names))
    amount = tasks.gpu_count.astype(float) * tasks.gpu_share_milli / 1000.0 * ~tasks.standby
    held: dict[str, np.ndarray] = {}
    for job, node, gpus in zip(tasks.job, tasks.node_index, amount):
        if job is not None and node >= 0 and gpus > 0:
            held.setdefault(job, np.zeros(len(names)))[domain_of[node]] += gpus
    if jobs is None:
        spread = [job for job, parts in held.items() if np.count_nonzero(parts) > 1]
        spread.sort(key=lambda job: (-held[job].sum(), job))
        shown_jobs = spread[: len(PALETTE)]
        more = len(spread) - len(shown_jobs)
    else:
        known = set(tasks.job)
        for job in jobs:
            if job not in known:
                near = did_you_mean(str(job), sorted(name for name in known if name is not None))
                raise InvalidInput(f"jobs: {repr_text(job)}; expected jobs of the cluster{near}")
        shown_jobs, more = list(dict.fromkeys(jobs)), 0
        integer("len(jobs)", len(shown_jobs), 1, 2 * len(PALETTE))
    coloured = sum((held.get(job, np.zeros(len(names))) for job in shown_jobs), np.zeros(len(names)))
    order = np.lexsort((np.arange(len(names)), -capacity, -coloured))[:max_domains]
    ax = new_axes(ax, figsize=(figure_width(8.0, 0.22, len(order)), 3.2))
    at = np.arange(len(order))
    below = np.zeros(len(order))

    def stack(parts: np.ndarray, **style: Any) -> None:
        nonlocal below
        if parts[order].any():
            ax.bar(at, parts[order], 0.8, bottom=below, **style)
            below = below + parts[order]

    for n, job in enumerate(shown_jobs):
        parts = held.get(job, np.zeros(len(names)))
        used = int(np.count_nonzero(parts))
        h = entropy([round(1000 * part) for part in parts if part > 0])
        text = (
            f"{plain(job)}: {parts.sum():g} GPU{'' if parts.sum() == 1 else 's'} over {used}, entropy {h:.2f}"
        )
        hatch = "//" if n >= len(PALETTE) else None
        stack(
            parts, color=PALETTE[n % len(PALETTE)], hatch=hatch, edgecolor="white", linewidth=0.5, label=text
        )
    rest = np.maximum(0.0, capacity - failed - free - coloured)
    label = "other tasks" if jobs is not None or more else "jobs within one, single tasks"
    label += f"; {counted(more, 'more job', 'more jobs')} over several" if more > 0 else ""
    stack(rest, color="#9a9a9a", label=label)
    stack(np.minimum(failed, np.maximum(0.0, capacity - rest - coloured)), color="#000000", label="failed")
    on_cordoned = has & ~nodes.schedulable
    cordoned = np.bincount(domain_of[on_cordoned], nodes.gpu_free_milli[on_cordoned] / 1000.0, len(names))
    stack(np.minimum(cordoned, free), color="#CC79A7", label=f"idle, node {cluster._words['closed']}")
    ax.bar(at, np.maximum(0.0, capacity[order] - below), 0.8, bottom=below, color="#E4E4E4", label="idle")
    ax.set_ylabel("GPUs")
    name_nodes(ax, at, [names[n] for n in order])
    sampled = "" if len(order) == len(names) else f" of {len(names):,}"
    singular = plural.removesuffix("es" if plural == "switches" else "s")
    ax.set_xlabel(f"{len(order):,}{sampled} {plural if sampled or len(order) != 1 else singular}")
    ax.set_xlim(-0.6, len(order) - 0.4)
    ax.legend(**LEGEND)
    hide_frame(ax)
    if title:
        ax.set_title(title, loc="left", fontsize=10)
    return ax
