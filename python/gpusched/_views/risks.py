"""Risks of a plan that the plan itself does not say: the queue, and jobs that stop in part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import allocation
from .._core.model import Plan, apply
from .tables import listed

if TYPE_CHECKING:
    from ..model import Cluster

SERVICES = {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}
"""Kinds of owners with pods that serve independently of each other."""


def risk_texts(cluster: Cluster, plan: Plan) -> list[str]:
    """The risks of a described plan, one sentence each."""
    texts = []
    if earlier := earlier_in_queue(cluster, plan):
        texts.append(
            "pending pods that come earlier in the queue fit the freed nodes and may take them: "
            + listed(f"{name} ({pods:,})" for name, pods in earlier.items())
        )
    if partly := stopped_in_part(cluster, plan):
        texts.append(
            "only some pods of these jobs stop: "
            + listed(f"{stopped:,} of {pods:,} of {job}" for job, (stopped, pods) in partly.items())
        )
    return texts + refused_evictions(cluster, plan)


def refused_evictions(cluster: Cluster, plan: Plan) -> list[str]:
    """Disruption budgets that allow no eviction of copied pods, with the nodes that the kubectl script leaves out."""
    source = {move.task: move.from_ for move in reversed(plan.moves) if move.how == "copy"}
    groups = {name: set(cluster.tasks[name].groups) for name in source} if cluster.budgets else {}
    freed, texts = set(plan.vacated_nodes), []
    for budget in cluster.budgets:
        if budget["allowed_down"] > 0 and not budget["broken"]:
            continue
        members, selected = set(budget["tasks"]), set(budget["groups"])
        held = [name for name in sorted(source) if name in members or groups[name] & selected]
        nodes = sorted({source[name] for name in held} & freed)
        leaves = f"not free {listed(nodes, 10)}" if nodes else "not move it" if len(held) == 1 else "not move them"
        if held:
            texts.append(
                f"disruption budget {budget['name']} allows no eviction of {listed(held)}: "
                f"the kubectl script would {leaves}"
            )
    return texts


def earlier_in_queue(cluster: Cluster, plan: Plan) -> dict[str, int]:
    """Jobs that the plan does not start, with the number of their pods that a scheduler may start instead.

    They come before the plan's pods in the queue: by descending priority, then by age, then by name. Each of
    these pods fits, if none of the others starts, on a node where the plan starts a pod.
    """
    starts = {name for name, how in plan._treatments.items() if how == "start"}
    if not starts or not (plan.moves or plan.evictions):
        return {}
    content = plan.to_json()
    content["placements"] = [step for step in content["placements"] if step["task"] not in starts]
    new = content.pop("x-brings", {"tasks": []})["tasks"]
    freed = apply(cluster, Plan.from_json(content))
    places = {step.node for step in plan.placements if step.task in starts}
    is_target = np.array([node in places for node in freed.nodes.name], dtype=bool)

    tasks = freed.tasks
    rows = zip(tasks.name, tasks.job, tasks.priority.tolist(), tasks.start_time.tolist())
    pending = [row for row, node in zip(rows, tasks.node_index.tolist()) if node < 0]
    pending += [(task["name"], task["job"], task["priority"], math.inf) for task in new]
    order: dict[str, tuple[int, float, str]] = {}
    pods: dict[str, list[str]] = {}
    for name, of_job, priority, created in pending:
        job = of_job or name
        first = order.get(job, (-priority, created, job))
        order[job] = min(first[0], -priority), min(first[1], created), job
        pods.setdefault(job, []).append(name)
    ours = {job for job, names in pods.items() if not starts.isdisjoint(names)}
    last = max(order[job] for job in ours)
    gangs = {job["name"] for job in freed.to_json()["jobs"] if job.get("min_members", 0) > 1}
    found = {}
    for job in sorted(pods, key=order.__getitem__):
        if job in ours or order[job] > last:
            continue
        fit = [name for name in pods[job] if is_target[allocation.feasible_nodes(freed, name)].any()]
        fit = [name for name in fit if allocation.allocate(freed, name).obstacle != "waiting"]
        # A gang that cannot start takes nothing.
        if fit and (job not in gangs or allocation.allocate(freed, job).placed):
            found[job] = len(fit)
    return found


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
