# SPDX-License-Identifier: Apache-2.0
"""Prints what `kubectl get nodes,pods,pdb,priorityclasses,... -A -o json` would print of an invented cluster.

    python examples/kubernetes_dump.py > all.json

Twelve nodes of eight H100s in three racks. Services are spread over all of them, as kube-scheduler spreads
pods, so that no node is free: a training job of three pods, each of which takes a whole node, waits.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Object = dict[str, Any]
CREATED = "2026-05-04T08:00:00Z"
NODES, GPUS = 12, 8

# Name, kind of owner, pods, GPUs of each, most that may be down at once.
WORKLOADS = (
    ("serving/chat", "Deployment", 9, 1, 2),
    ("serving/embed", "Deployment", 6, 1, 1),
    ("serving/rerank", "Deployment", 4, 2, 1),
    ("serving/vision", "Deployment", 3, 4, 1),
    ("search/index", "StatefulSet", 4, 2, 1),
    ("research/sweep", "Job", 5, 2, None),
)


def an_object(version: str, kind: str, name: str, space: str | None = None, **more: Any) -> Object:
    place = {"namespace": space} if space else {}
    metadata = {"name": name, **place, "uid": f"{kind}-{space}-{name}".lower(), "creationTimestamp": CREATED}
    labels, owners = more.pop("labels", None), more.pop("owners", None)
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"ownerReferences": owners} if owners else {}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def node(number: int) -> Object:
    labels = {
        "kubernetes.io/hostname": f"gpu-{number:02}",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "network.topology.nvidia.com/leaf": f"rack-{number * 3 // NODES}",
    }
    whole = {"cpu": "128", "memory": "1024Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    spec: Object = {}
    if number == 5:  # a card is broken
        allocatable = whole | {"nvidia.com/gpu": str(GPUS - 1)}
    else:
        allocatable = whole
    if number == 11:
        spec = {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        }
    conditions = [{"type": "Ready", "status": "True"}]
    return an_object(
        "v1",
        "Node",
        f"gpu-{number:02}",
        labels=labels,
        spec=spec,
        status={"capacity": whole, "allocatable": allocatable, "conditions": conditions},
    )


def pod(
    space: str,
    name: str,
    app: str,
    gpus: int,
    on: str | None,
    owners: list[Object] | None = None,
    priority: str = "standard",
) -> Object:
    requests = {"cpu": str(8 * gpus), "memory": f"{48 * gpus}Gi"} | (
        {"nvidia.com/gpu": str(gpus)} if gpus else {}
    )
    spec = {
        "containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}],
        "schedulerName": "default-scheduler",
        "priorityClassName": priority,
    }
    if on:
        spec["nodeName"] = on
        status = {
            "phase": "Running",
            "startTime": CREATED,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    else:
        status = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        }
    return an_object("v1", "Pod", name, space, labels={"app": app}, owners=owners, spec=spec, status=status)


def controller(kind: str, name: str, space: str) -> list[Object]:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "name": name,
            "uid": f"{kind}-{space}-{name}".lower(),
            "controller": True,
        }
    ]


def dump() -> Object:
    """A List."""
    free = {f"gpu-{number:02}": GPUS - (number == 5) for number in range(NODES)}
    items = [node(number) for number in range(NODES)]
    items += [an_object("v1", "Namespace", space) for space in ("serving", "search", "research")]
    items += [
        an_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        for name, value in (("standard", 0), ("training", 1000))
    ]
    for full, kind, count, gpus, down in WORKLOADS:
        space, app = full.split("/")
        selector = {"matchLabels": {"app": app}}
        items.append(
            an_object(
                "batch/v1" if kind == "Job" else "apps/v1",
                kind,
                app,
                space,
                spec={"replicas": count, "selector": selector},
            )
        )
        owner, owner_kind = app, kind
        if kind == "Deployment":
            owner, owner_kind = f"{app}-6d4f8", "ReplicaSet"
            items.append(
                an_object(
                    "apps/v1",
                    "ReplicaSet",
                    owner,
                    space,
                    owners=controller(kind, app, space),
                    spec={"replicas": count, "selector": selector},
                )
            )
        for number in range(count):
            on = max(free, key=lambda name: (free[name], name))  # where most is left: pods are spread
            free[on] -= gpus
            name = f"{app}-{number}" if kind == "StatefulSet" else f"{owner}-{'bcdfghjklm'[number]}"
            items.append(pod(space, name, app, gpus, on, controller(owner_kind, owner, space)))
        if down is not None:
            status = {
                "disruptionsAllowed": down,
                "currentHealthy": count,
                "desiredHealthy": count - down,
                "expectedPods": count,
            }
            items.append(
                an_object(
                    "policy/v1",
                    "PodDisruptionBudget",
                    app,
                    space,
                    spec={"maxUnavailable": down, "selector": selector},
                    status=status,
                )
            )
    items.append(pod("research", "notebook", "notebook", 1, "gpu-03"))  # made by hand: nobody makes it anew
    items.append(
        an_object("batch/v1", "Job", "pretrain", "research", spec={"parallelism": 3, "completions": 3})
    )
    items += [
        pod(
            "research",
            f"pretrain-{i}",
            "pretrain",
            GPUS,
            None,
            controller("Job", "pretrain", "research"),
            "training",
        )
        for i in range(3)
    ]
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


if __name__ == "__main__":
    json.dump(dump(), sys.stdout)
    print()
