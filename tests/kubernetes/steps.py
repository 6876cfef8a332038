# SPDX-License-Identifier: Apache-2.0
"""The exported script next to `kubectl drain` on a real control plane, from the same filled cluster.

For each seed, once undisturbed and once with a second client that creates pods: how many of the planned nodes are
empty in the end, by how many evictions, and what harm was done. The client starts after the plan is made and 20 s
before the script or `kubectl drain`. Then the script is killed at random moments and started again as a copy, once
after the loss of its Lease, and two copies run at once. It prints a table.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time
from typing import Any

import gpusched as gs
from moves import CONTROLLERS, SPACE, Cluster, node, workload
from plane import CORE, ControlPlane, Kubelet, Object, name_of

GOAL = 8
GOAL_PLAN = f"goal of {GOAL} nodes"
LIMIT_S = 900
LEAD_S = 20  # of the second client
RUNS = ["goal", "stops", "full"]
KILLS = {"script, killed": 20, "script, Lease lost": 1}
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


class Filled:
    """A control plane on a copy of a filled cluster, and a thread that records its pods."""

    def __init__(self, folder: pathlib.Path, base: pathlib.Path | None) -> None:
        folder.mkdir(parents=True)
        if base is not None:
            shutil.copytree(base / "etcd", folder / "etcd")
        self.folder, self.plane = folder, ControlPlane(folder)
        self.config = self.plane.kubeconfig()
        self.plane.controllers(*CONTROLLERS)
        self.plane.scheduler()
        self.kubelet, self.cluster = Kubelet(self.plane), Cluster(self.plane)
        self.ends = threading.Event()
        self.room: dict[str, bool] = {}
        self.threads: list[threading.Thread] = []

    def start(self, work: Any, *arguments: Any) -> None:
        self.threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self.threads[-1].start()

    def close(self) -> None:
        self.ends.set()
        for thread in self.threads:
            thread.join()
        self.kubelet.close()
        self.plane.close()

    def items(self, kind: str) -> list[Object]:
        return self.plane.call("GET", f"{CORE}/{kind}")[1]["items"]

    def record(self) -> None:
        """Notes for each pod that goes whether another open node had room for it just before."""
        last = self.plane.all()
        while not self.ends.wait(0.3):
            now = self.plane.all()
            if gone := bound(last).items() - bound(now).items():
                cluster = gs.io.read_kubernetes([last], moves_by_eviction=True).cluster
                for name, source in gone:
                    moves = [gs.explain_move(cluster, name, at) for at in cluster.nodes.name if at != source]
                    self.room[name] = any(
                        str(move.obstacle) == "none" and str(move.closed_by) not in ("cordoned", "not_ready")
                        for move in moves
                    )
            last = now

    def evicted(self) -> list[str]:
        """What the script or `kubectl drain` says that it evicted."""
        said = (self.folder / "run.log").read_text()
        drained = [f"{SPACE}/{name}" for name in re.findall(r"^pod/(\S+) evicted$", said, re.MULTILINE)]
        return drained + re.findall(r"^evicted (\S+) from", said, re.MULTILINE)

    def disturb(self, plan: gs.Plan, seed: int) -> None:
        """The second client: a ReplicaSet of one pod every 2 s, with the requests of a pod that moves. Half of them
        have a higher priority.
        """
        dice, pods = random.Random(seed), self.cluster.pods()
        like = [
            pods[move.task]["spec"]["containers"][0]["resources"] for move in plan.moves if move.task in pods
        ]
        number = 0
        while not self.ends.wait(2):
            spec: Object = {"containers": [{"name": "c", "image": "i", "resources": dice.choice(like)}]}
            if dice.random() < 0.5:
                spec["priorityClassName"] = "high"
            name = f"other-{number}"
            labels = {"app": name}
            made = {
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }
            self.plane.call("POST", f"/apis/apps/v1/namespaces/{SPACE}/replicasets", made)
            number += 1

    def occupied(self) -> set[str]:
        return {pod["spec"].get("nodeName") for pod in self.items("pods")}

    def pending(self, evicted: list[str]) -> int:
        """Replacements without a node: of the plan, and of pods of the client that were evicted."""
        owners = {name.split("/")[1].rsplit("-", 1)[0] for name in evicted}
        waits = [p["metadata"] for p in self.cluster.pods().values() if not p["spec"].get("nodeName")]
        return sum(
            not one["labels"]["app"].startswith("other") or one["labels"]["app"] in owners for one in waits
        )

    def cordoned(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.items("nodes") if one["spec"].get("unschedulable")}


def bound(objects: Object) -> dict[str, str]:
    """The nodes of pods that are not terminating."""
    pods = [one for one in objects["items"] if one["kind"] == "Pod" and one["spec"].get("nodeName")]
    return {
        name_of(pod): pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    }


def fill(folder: pathlib.Path, seed: int, nodes: int) -> None:
    """Deployments that kube-scheduler spreads; every third is then scaled down, so that holes stay."""
    filled, dice = Filled(folder, None), random.Random(seed)
    try:
        cluster = filled.cluster
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, HIGH)
        for number in range(nodes):
            filled.plane.create(node(f"n{number:02}"))
        shapes: list[tuple[int, int]] = []
        room = nodes * 8 * 9 // 10
        for _ in range(nodes * 3 // 4):
            pods, gpus = dice.randint(2, 6), dice.choice([1, 1, 2, 2, 4])
            if (room := room - pods * gpus) >= 0:
                shapes.append((gpus, pods))
        # Large pods first, so that all find room.
        shapes.sort(reverse=True)
        apps = [workload(f"app-{number}", pods, gpus) for number, (gpus, pods) in enumerate(shapes)]
        cluster.apply(*(thing for app in apps for thing in app))
        count = sum(app[0]["spec"]["replicas"] for app in apps)
        cluster.wait("deployments come up", lambda: len(cluster.pods()) == count and cluster.at_rest(0), 600)
        for deployment, _ in apps[::3]:
            count -= deployment["spec"]["replicas"] - 1
            deployment["spec"]["replicas"] = 1
            cluster.apply(deployment)
        cluster.wait("some scale down", lambda: len(cluster.pods()) == count and cluster.at_rest(0), 600)
    finally:
        filled.close()


def run(filled: Filled, plan: gs.Plan, how: str, seed: int) -> int | str:
    """Carries the plan out. The exit status."""
    environment = os.environ | {
        "KUBECTL": filled.plane.kubectl_command(), "GPUSCHED_YES": "1", "GPUSCHED_POLL_S": "1",
        "GPUSCHED_WAIT_S": "45", "GPUSCHED_LEASE_S": "6" if how in KILLS else "60",
    }  # fmt: skip
    with open(filled.folder / "run.log", "w") as log:

        def start(*command: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

        if how == "drain":
            kubectl = filled.plane.kubectl_command().split()
            start(*kubectl, "cordon", *plan.vacated_nodes).wait(LIMIT_S)
            drains = [
                start(*kubectl, "drain", name, "--ignore-daemonsets", "--timeout=45s").wait(LIMIT_S)
                for name in plan.vacated_nodes
            ]
            return max(drains)
        script = filled.folder / "plan.sh"
        script.write_text(gs.io.plan_to_kubernetes_steps(plan))
        dice = random.Random(seed)
        for number in range(KILLS.get(how, 0)):
            process = start("sh", str(script))
            try:
                process.wait(dice.uniform(1, 12))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if how == "script, Lease lost":
                filled.plane.kubectl("delete", "lease", "gpusched", "--ignore-not-found")
            script = script.rename(script.with_name(f"copy-{number}.sh"))
        both = [start("sh", str(script)) for _ in range(2 if how == "script, two copies" else 1)]
        codes = [process.wait(LIMIT_S) for process in both]
        return min(codes)


def measure(
    folder: pathlib.Path, base: pathlib.Path, plan: gs.Plan, how: str, disturbed: bool, seed: int
) -> Object:
    filled = Filled(folder, base)
    try:
        filled.cluster.wait("the restored cluster is at rest", lambda: filled.cluster.at_rest(0))
        before = filled.cordoned()
        filled.start(filled.record)
        if disturbed:
            filled.start(filled.disturb, plan, seed)
            time.sleep(LEAD_S)
        started = time.monotonic()
        status = run(filled, plan, how, seed)
        seconds = round(time.monotonic() - started)
        empty = len(set(plan.vacated_nodes) - filled.occupied())
        evicted = filled.evicted()
        pending, left = filled.pending(evicted), 0
        if how != "drain":
            script = next(filled.folder.glob("*.sh"))
            environment = os.environ | {"KUBECTL": filled.plane.kubectl_command(), "GPUSCHED_LEASE_S": "6"}
            subprocess.run(["sh", str(script), "undo"], env=environment, check=False, capture_output=True)
            left = len(filled.cordoned() - before)
        false = how != "drain" and status == 0 and (empty < len(plan.vacated_nodes) or pending > 0)
        return {
            "planned": len(plan.vacated_nodes), "empty": empty, "evictions": len(evicted),
            "pending": pending, "no room": sum(not filled.room.get(name, True) for name in evicted),
                "false success": int(false),
            "cordons left": left, "status": status, "seconds": seconds,
        }  # fmt: skip
    finally:
        filled.close()


Rows = dict[tuple[str, str, str], list[Object]]


def plans_of(folder: pathlib.Path, seed: int, nodes: int) -> dict[str, gs.Plan]:
    """Plans for the filled cluster of a seed."""
    base = folder / f"base-{seed}"
    fill(base, seed, nodes)
    reader = Filled(folder / f"read-{seed}", base)
    try:
        objects = gs.kubernetes.snapshot(kubeconfig=reader.config).objects
    finally:
        reader.close()
    read = gs.io.read_kubernetes(objects, moves_by_eviction=True).cluster
    return {GOAL_PLAN: gs.consolidate(read, goal={"empty_nodes": GOAL}), "full": gs.consolidate(read)}


def table(rows: Rows) -> str:
    keys = ("planned", "empty", "evictions", "pending", "no room", "false success", "cordons left")
    lines = ["| plan | client | by | seeds | " + " | ".join(keys) + " | s |", "|" + "---|" * (5 + len(keys))]
    for key, results in rows.items():
        cells = [*key, len(results), *(sum(one[k] for one in results) for k in keys)]
        cells.append(round(statistics.median(one["seconds"] for one in results)))
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def check(folder: pathlib.Path, seeds: int, nodes: int, runs: list[str], minutes: float) -> bool:
    """Begins no further seed after so many minutes, and prints what there is."""
    rows: Rows = collections.defaultdict(list)
    plans: dict[int, dict[str, gs.Plan]] = {}
    drained: dict[tuple[int, str], Object] = {}  # undisturbed
    wrong, end = [], time.monotonic() + 60 * minutes
    kinds = {
        "goal": (GOAL_PLAN, (False, True), ["drain", "script"]),
        "stops": (GOAL_PLAN, (False,), [*KILLS, "script, two copies"]),
        "full": ("full", (False, True), ["drain", "script"]),
    }
    for kind, seed in itertools.product(runs, range(seeds)):
        name, clients, hows = kinds[kind]
        if time.monotonic() > end:
            break
        if seed not in plans:
            plans[seed] = plans_of(folder, seed, nodes)
        plan = plans[seed][name]
        for disturbed in clients:
            for how in hows:
                place = folder / f"{seed}-{kind}-{disturbed}-{how.replace(', ', '-').replace(' ', '-')}"
                one = measure(place, folder / f"base-{seed}", plan, how, disturbed, seed)
                rows[name, "second client" if disturbed else "undisturbed", how].append(one)
                print(f"seed {seed}, {name}, disturbed {disturbed}, {how}: {json.dumps(one)}", flush=True)
                if how == "drain":
                    drained |= {} if disturbed else {(seed, name): one}
                    continue
                harm = [key for key in ("no room", "false success", "cordons left") if one[key]]
                if not disturbed and (drain := drained.get((seed, name))):
                    # A node whose pod `drain` left without a place is not freed without harm.
                    if one["empty"] < drain["empty"] - drain["pending"]:
                        harm.append("fewer nodes than drain")
                    if one["evictions"] > drain["evictions"]:
                        harm.append("more evictions than drain")
                wrong += [f"seed {seed}, {name}, disturbed {disturbed}, {how}: {what}" for what in harm]
        print(table(rows), flush=True)
    for line in wrong:
        print("  " + line)
    return not wrong
