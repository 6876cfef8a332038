# SPDX-License-Identifier: Apache-2.0
"""Risks of a plan that the plan itself does not say: the queue, and jobs that stop in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.consolidation import _earlier_in_queue
from .._core.model import Plan, apply
from .tables import listed

if TYPE_CHECKING:
    from ..model import Cluster

SERVICES = {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}
"""Kinds of owners with pods that serve independently of each other."""
LAST = 10**12
"""A time after all others."""


def risk_texts(cluster: Cluster, plan: Plan) -> list[str]:
    """The risks of a described plan, one sentence each."""
    texts, task = [], cluster._words["task"]
    if earlier := earlier_in_queue(cluster, plan):
        texts.append(
            f"pending {task}s that come earlier in the queue fit the freed nodes and may take them: "
            + listed(f"{name} ({pods:,})" for name, pods in earlier.items())
        )
    if partly := stopped_in_part(cluster, plan):
        texts.append(
            f"only some {task}s of these jobs stop: "
            + listed(f"{stopped:,} of {pods:,} of {job}" for job, (stopped, pods) in partly.items())
        )
    return texts + refused_evictions(cluster, plan)


def refused_evictions(cluster: Cluster, *plans: Plan) -> list[str]:
    """Budgets that allow no eviction of copied pods, with the nodes that the kubectl script leaves out.

    Of several plans, each is for the cluster after those before it.
    """
    moves = [move for plan in plans for move in plan.moves if move.how == "copy"]
    source = {move.task: move.from_ for move in reversed(moves)}
    groups = {name: set(cluster.tasks[name].groups) for name in source} if cluster.budgets else {}
    freed, texts = {node for plan in plans for node in plan.vacated_nodes}, []
    for budget in cluster.budgets:
        if budget["allowed_down"] > 0 and not budget["broken"]:
            continue
        members, selected = set(budget["tasks"]), set(budget["groups"])
        held = [name for name in sorted(source) if name in members or groups[name] & selected]
        nodes = sorted({source[name] for name in held} & freed)
        them = "it" if len(held) == 1 else "them"
        leaves = f"not free {listed(nodes, 10)}" if nodes else f"not move {them}"
        if held:
            texts.append(
                f"disruption budget {budget['name']} allows no eviction of {listed(held)}: "
                f"kubectl drain would wait for {them}, and the kubectl script would {leaves}"
            )
    return texts


def earlier_in_queue(cluster: Cluster, plan: Plan) -> dict[str, int]:
    """Jobs that the plan does not start, with the number of their pods that a scheduler may start instead.

    They come before the plan's pods in the queue: by descending priority, then by age, then by name.
    """
    starts = [name for name, how in plan._treatments.items() if how == "start"]
    if not starts or not (plan.moves or plan.evictions):
        return {}
    content = plan.to_json()
    for task in content.get("x-brings", {"tasks": []})["tasks"]:
        task["start_time"] = LAST  # of its priority
    return _earlier_in_queue(apply(cluster, Plan.from_json(content)), starts)


def stopped_in_part(cluster: Cluster, plan: Plan) -> dict[str, tuple[int, int]]:
    """Jobs of which the plan stops some running pods, but not all: these pods, and all that run.

    The largest job comes first. Services are left out: their pods do not need each other.
    """
    facts = plan._tasks
    stopped: dict[str, int] = {}
    for name, how in plan._treatments.items():
        kind, _, job, _ = facts.get(name, (None, 0, "", ""))
        if how in ("restart", "evict") and job and kind not in SERVICES:
            stopped[job] = stopped.get(job, 0) + 1
    running, gpus = dict.fromkeys(stopped, 0), dict.fromkeys(stopped, 0)
    tasks = cluster.tasks
    for job, node, count in zip(tasks.job, tasks.node_index.tolist(), tasks.gpu_count.tolist()):
        if node >= 0 and job in running:
            running[job] += 1
            gpus[job] += count
    largest_first = sorted(stopped, key=lambda job: (-gpus[job], job))
    return {job: (stopped[job], running[job]) for job in largest_first if stopped[job] < running[job]}
