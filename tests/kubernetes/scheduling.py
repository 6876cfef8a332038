# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler does with pending pods on a real control plane agrees with our feasibility.

For every seed an empty cluster is filled with random nodes and pods; then kube-scheduler runs until nothing
moves any more. Snapshots are
read from the API as kubectl prints them. No pod that we call infeasible is bound: every pod is feasible on
its node at the moment
it is bound. No pod that is left unschedulable is called feasible. There are no controllers: pods that are
bound stay as they are.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import time

import comparing
import gpusched as gs
import random_clusters
from plane import PLURALS, ControlPlane, Object, name_of

THEMES = ("taints", "selector", "node_affinity", "ports", "cards", "instances", "shared", "extended",
    "resources", "spread", "affinity",
          "anti_affinity", "namespaces", "cordons", "pod_count", "volumes", "zones")  # fmt: skip


def objects_for(seed: int, nodes: int, pods: int) -> list[Object]:
    maker = random_clusters.Maker(seed)
    maker.themes = set(maker.random.sample(THEMES, 4))
    # The API server refuses values that no label can have, and merges the keys of matchLabelKeys itself.
    items = json.loads(json.dumps(maker.cluster(nodes, pods)["items"]).replace('"-5"', '"5"'))
    out = []
    for item in items:
        for constraint in (
            (*item["spec"].get("topologySpreadConstraints", ()), *comparing.terms_of(item))
            if item["kind"] == "Pod"
            else ()
        ):
            constraint.pop("matchLabelKeys", None)
            constraint.pop("mismatchLabelKeys", None)
        if item["kind"] == "Pod" and (
            item["status"]["phase"] in ("Succeeded", "Failed") or "deletionTimestamp" in item["metadata"]
        ):
            continue
        out.append(item)
    order = ["Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"]
    return sorted(out, key=lambda item: order.index(item["kind"]))


def is_unschedulable(pod: Object) -> bool:
    return any(
        c["type"] == "PodScheduled" and c["status"] == "False" and c.get("reason") == "Unschedulable"
        for c in pod["status"].get("conditions", ())
    )


def settle(plane: ControlPlane, limit_s: float) -> Object:
    """Waits until every pod is bound, gated or unschedulable, and nothing has changed for some seconds."""
    end, before, same = time.monotonic() + limit_s, None, 0
    while time.monotonic() < end:
        now = plane.all()
        pods = [item for item in now["items"] if item["kind"] == "Pod"]
        waiting = [
            p
            for p in pods
            if not p["spec"].get("nodeName")
            and not p["spec"].get("schedulingGates")
            and not is_unschedulable(p)
        ]
        state = {name_of(p): p["spec"].get("nodeName") for p in pods}
        same = same + 1 if state == before and not waiting else 0
        if same >= 6:
            return now
        before = state
        time.sleep(1)
    raise RuntimeError(f"kube-scheduler did not come to rest in {limit_s} s")


def differences(before: Object, after: Object, attempts: dict[str, int]) -> tuple[list[str], dict[str, int]]:
    """Replays the bindings in the order of the decisions, then asks about what was left."""
    wrong = []
    pods = {name_of(item): item for item in after["items"] if item["kind"] == "Pod"}
    excused = {pod for pod, _ in comparing.excuses(after)}
    start = {
        name_of(item)
        for item in before["items"]
        if item["kind"] == "Pod" and not item["spec"].get("nodeName")
    }
    bound = sorted(
        (p for n, p in pods.items() if n in start and p["spec"].get("nodeName")),
        key=lambda p: attempts[name_of(p)],
    )
    placed = {name_of(p): p["spec"]["nodeName"] for p in bound}

    def told(known: set[str]) -> dict[str, dict[str, str]]:
        """Our result after only these bindings."""
        items = json.loads(json.dumps(after["items"]))
        for item in items:
            if item["kind"] == "Pod" and name_of(item) in placed and name_of(item) not in known:
                del item["spec"]["nodeName"]
        cluster = gs.io.read_kubernetes(
            {"apiVersion": "v1", "kind": "List", "items": items}, open_unready_nodes=True
        ).cluster
        nodes = cluster.nodes.name
        return {
            t: dict(zip(nodes, gs.allocation.find_obstacles(cluster, t, old_copy="leaves"), strict=True))
            for t in asked
        }

    known: set[str] = set()
    for pod in bound:
        name = name_of(pod)
        asked = [name]
        if name not in excused and told(known)[name][placed[name]] != "none":
            wrong.append(
                f"{name} was bound to {placed[name]}, which we call infeasible: "
                f"{told(known)[name][placed[name]]}"
            )
        known.add(name)
    left = [
        n
        for n, p in pods.items()
        if not p["spec"].get("nodeName") and is_unschedulable(p) and n not in excused
    ]
    asked = left
    for name, nodes in told(known).items() if left else ():
        if feasible := [node for node, obstacle in nodes.items() if obstacle == "none"]:
            said = [
                c.get("message") for c in pods[name]["status"]["conditions"] if c["type"] == "PodScheduled"
            ]
            wrong.append(
                f"{name} was left unschedulable ({said[0]}), but we call it feasible on {feasible[:3]}"
            )
    return wrong, {"bound": len(bound), "left": len(left)}


def fill(plane: ControlPlane, items: list[Object]) -> list[str]:
    """Creates objects; what the API server says of pods that it refuses."""

    def create(item: Object) -> str | None:
        try:
            plane.create(item)
        except RuntimeError as error:
            if item["kind"] == "Pod":
                return str(error)
            if not (item["kind"] == "Namespace" and "409" in str(error)):
                raise
        return None

    refused = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for kind in PLURALS:
            refused += [said for said in pool.map(create, [i for i in items if i["kind"] == kind]) if said]
    return refused


def check(folder: pathlib.Path, seeds: int, nodes: int, pods: int) -> bool:
    """Whether they agree for all seeds."""
    good, started = True, time.monotonic()
    plane = ControlPlane(folder)
    try:
        print(f"etcd and kube-apiserver are ready after {time.monotonic() - started:.0f} s", flush=True)
        for seed in range(seeds):
            if said := fill(plane, objects_for(seed, nodes, pods)):
                print(f"  the API server refuses {len(said)} of the pods, such as {said[0][:200]}")
            before = plane.all()
            scheduler = plane.scheduler()
            after = settle(plane, 240)
            plane.stop(scheduler)
            wrong, counts = differences(before, after, plane.attempts())
            good = good and not wrong and counts["bound"] > 0
            made = len([i for i in after["items"] if i["kind"] == "Node"])
            print(
                f"seed {seed}: {made} nodes, {counts['bound']} pods bound, {counts['left']} left "
                f"unschedulable, {len(wrong)} differences",
                flush=True,
            )
            for line in wrong[:10]:
                print("  " + line)
            plane.clear()
    finally:
        plane.close()
    return good
