# SPDX-License-Identifier: Apache-2.0
"""Plans carried out on a real control plane: pending pods run where they could not before, and nobody else is
disturbed.

First by hand: for each move all nodes but the destination are cordoned, the pod is evicted through the
Eviction API, and its replacement is
waited for. Then by the script that `gpusched export --to kubernetes` writes, with kubectl, a budget that
refuses for a while (429)
and a script that is killed.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
from typing import Any

import gpusched as gs
from plane import CORE, ControlPlane, Kubelet, Object, is_ready, name_of

SPACE = "demo"
CONTROLLERS = ("deployment-controller", "replicaset-controller", "job-controller", "disruption-controller")
MERGE = "application/merge-patch+json"


def node(name: str) -> Object:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "H100"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": ready},
    }


def template(app: str, gpus: int) -> Object:
    asked = {"cpu": str(2 * gpus), "memory": "8Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}]
        },
    }


def workload(app: str, replicas: int, gpus: int) -> list[Object]:
    meta = {"name": app, "namespace": SPACE}
    select = {"matchLabels": {"app": app}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": replicas, "selector": select, "template": template(app, gpus)},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"maxUnavailable": 1, "selector": select},
        },
    ]


def gang(name: str, pods: int) -> Object:
    """A job whose pods take whole nodes."""
    of = template(name, 8)
    of["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"parallelism": pods, "completions": pods, "template": of},
    }


class Cluster:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def apply(self, *objects: Object) -> None:
        self.plane.kubectl("apply", "-f", "-", text="\n---\n".join(map(json.dumps, objects)))

    def pods(self) -> dict[str, Object]:
        return {
            name_of(pod): pod for pod in self.plane.call("GET", f"{CORE}/namespaces/{SPACE}/pods")[1]["items"]
        }

    def cordon(self, name: str, value: bool) -> None:
        status, said = self.plane.call(
            "PATCH", f"{CORE}/nodes/{name}", {"spec": {"unschedulable": value or None}}, MERGE
        )
        assert status == 200, said

    def evict(self, pod: str) -> tuple[int, str]:
        space, name = pod.split("/")
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": space, "name": name}}
        status, said = self.plane.call("POST", f"{CORE}/namespaces/{space}/pods/{name}/eviction", body)
        return status, str(said.get("message"))

    def budget(self, app: str, most: int) -> None:
        path = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets/{app}"
        status, said = self.plane.call("PATCH", path, {"spec": {"maxUnavailable": most}}, MERGE)
        assert status == 200, said

    def wait(self, what: str, done: Any, limit_s: float = 120) -> None:
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(
                    f"after {limit_s} s: {what}: "
                    f"{[(n, p['spec'].get('nodeName'), is_ready(p)) for n, p in self.pods().items()]}"
                )
            time.sleep(0.3)

    def at_rest(self, pending: int) -> bool:
        """So many pods wait, which kube-scheduler has looked at; all others are ready, and budgets know it.
        """
        pods = list(self.pods().values())
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        looked = all(
            any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", ())) for pod in waiting
        )
        budgets = self.plane.call("GET", f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets")[1][
            "items"
        ]
        healthy = all(
            b["status"].get("currentHealthy", -1) == b["status"].get("expectedPods", 0) > 0 for b in budgets
        )
        return (
            looked
            and healthy
            and len(waiting) == pending
            and all(is_ready(p) for p in pods if p not in waiting)
            and not any("deletionTimestamp" in p["metadata"] for p in pods)
        )


def fragmented(plane: ControlPlane, seed: int) -> Cluster:
    """Small pods on every node, as kube-scheduler spreads them, and a gang of two whole nodes that waits."""
    cluster, dice = Cluster(plane), random.Random(seed)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
    for number in range(8):
        plane.create(node(f"n{number}"))
    apps = [workload(f"app-{number}", dice.randint(2, 3), dice.choice([1, 2])) for number in range(6)]
    cluster.apply(*(thing for app in apps for thing in app))
    count = sum(app[0]["spec"]["replicas"] for app in apps)
    cluster.wait("deployments come up", lambda: len(cluster.pods()) == count and cluster.at_rest(0))
    cluster.apply(gang("big", 2))
    cluster.wait("the gang is looked at", lambda: len(cluster.pods()) == count + 2 and cluster.at_rest(2))
    return cluster


def by_hand(cluster: Cluster, plan: gs.Plan, nodes: list[str]) -> list[str]:
    """Carries the moves out, one after the other. What went wrong."""
    wrong = []
    for move in plan.moves:
        for name in nodes:
            cluster.cordon(name, name != move.to)
        if (at := replaced(cluster, move.task)) != move.to:
            wrong.append(f"the replacement of {move.task} is on {at}, not on {move.to}")
    for name in nodes:
        cluster.cordon(name, False)
    return wrong


def replaced(cluster: Cluster, name: str) -> str:
    """Evicts the pod and waits for its replacement. The node that this is on."""
    before = cluster.pods()
    owner = before[name]["metadata"]["ownerReferences"][0]["uid"]

    def replacements() -> list[Object]:
        now = cluster.pods().items()
        return [
            p
            for n, p in now
            if n not in before and p["metadata"]["ownerReferences"][0]["uid"] == owner and is_ready(p)
        ]

    cluster.wait(f"eviction of {name}", lambda: cluster.evict(name)[0] in (200, 201))
    cluster.wait(f"replacement of {name}", lambda: name not in cluster.pods() and replacements())
    return str(replacements()[0]["spec"]["nodeName"])


def check_by_hand(plane: ControlPlane, config: pathlib.Path, seed: int) -> list[str]:
    cluster = fragmented(plane, seed)
    read = gs.io.read_kubernetes(gs.kubernetes.snapshot(kubeconfig=config).objects).cluster
    if gs.allocate(read, f"{SPACE}/big").placed:
        return ["the gang has room, yet kube-scheduler leaves it pending"]
    answer = gs.admit(read, f"{SPACE}/big", evictions=False)
    if not answer.admitted or not answer.plan.moves:
        return [f"no plan of moves lets the gang in: {answer.reason}"]
    plan, before = answer.plan, cluster.pods()
    wrong = by_hand(cluster, plan, list(read.nodes.name))
    placed = [placement.task for placement in plan.placements]
    if sorted(placed) != sorted(n for n, p in before.items() if not p["spec"].get("nodeName")):
        wrong.append(f"the plan places {placed}")
    cluster.wait(
        "the gang is bound", lambda: all(cluster.pods()[task]["spec"].get("nodeName") for task in placed)
    )
    after, moved = cluster.pods(), {move.task for move in plan.moves}
    wrong += [
        f"{name} was disturbed, and is not in the plan" for name in before.keys() - after.keys() - moved
    ]
    print(
        f"seed {seed}: {len(plan.moves)} moves by hand, then {len(placed)} pods bound that had no room; "
        f"{len(wrong)} differences",
        flush=True,
    )
    return wrong


def check_script(plane: ControlPlane, folder: pathlib.Path, config: pathlib.Path) -> list[str]:
    """The exported script vacates a node, in spite of a budget that refuses, and of being killed."""
    cluster, wrong = Cluster(plane), []
    plane.kubectl("delete", "job", "big", "-n", SPACE, "--cascade=foreground", "--wait=false")
    for name, pod in cluster.pods().items():
        if pod["metadata"]["labels"]["app"] == "big":
            plane.call(
                "DELETE", f"{CORE}/namespaces/{SPACE}/pods/{name.split('/')[1]}", {"gracePeriodSeconds": 0}
            )
    cluster.wait(
        "the gang is gone",
        lambda: (
            not any(p["metadata"]["labels"]["app"] == "big" for p in cluster.pods().values())
            and cluster.at_rest(0)
        ),
    )
    read = gs.io.read_kubernetes(gs.kubernetes.snapshot(kubeconfig=config).objects).cluster
    plan = gs.consolidate(read)
    if not plan.moves or not plan.vacated_nodes:
        return ["nothing to consolidate"]
    before = cluster.pods()
    first = before[plan.moves[0].task]["metadata"]["labels"]["app"]
    cluster.budget(first, 0)
    script = folder / "plan.sh"
    script.write_text(gs.io.plan_to_kubernetes_steps(plan))
    environment = os.environ | {
        "KUBECTL": plane.kubectl_command(),
        "GPUSCHED_POLL_S": "1",
        "GPUSCHED_WAIT_S": "120",
        "GPUSCHED_YES": "1",
        "GPUSCHED_LEASE_S": "3",
    }

    def run(*arguments: str, limit_s: float | None = None) -> tuple[int, str]:
        with open(folder / "script.log", "w+") as log:
            process = subprocess.Popen(
                ["sh", str(script), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.seek(0)
            return process.returncode, log.read()

    code, said = run("check")
    if (
        code != 3
        or "Disruption budgets allow no eviction now" not in said
        or cluster.pods().keys() != before.keys()
    ):
        wrong.append(f"check does not tell of the budget, or evicts: {code} {said[-500:]}")
    code, said = run(limit_s=8)
    if code != -9 or "set aside" not in said:
        wrong.append(f"the budget does not refuse: {code} {said[-500:]}")
    threading.Timer(3, cluster.budget, (first, 1)).start()
    refused = 0
    for limit_s in (8, 9, 10, None):  # killed wherever it is, and started again
        code, said = run(limit_s=limit_s)
        refused += said.count("violate the pod's disruption budget")
        if code != -9:
            break
    if code != 0:
        wrong.append(f"the script ends with {code}: {said[-1000:]}")
    cluster.wait("the deployments are whole", lambda: cluster.at_rest(0))
    after = cluster.pods()
    moved = {move.task for move in plan.moves}
    wrong += [
        f"{name} was disturbed, and is not in the plan" for name in before.keys() - after.keys() - moved
    ]
    wrong += [
        f"{move.task} was to move"
        for move in plan.moves
        if move.from_ in plan.vacated_nodes and move.task in after
    ]
    on = collections.Counter(pod["spec"]["nodeName"] for pod in after.values())
    wrong += [f"{name} still has pods" for name in plan.vacated_nodes if on[name]]
    cordoned = {
        n["metadata"]["name"]
        for n in plane.call("GET", f"{CORE}/nodes")[1]["items"]
        if n["spec"].get("unschedulable")
    }
    if cordoned != set(plan.vacated_nodes):
        wrong.append(f"cordoned are {sorted(cordoned)}, not {plan.vacated_nodes}")
    code, said = run("undo")
    if code != 0 or any(
        n["spec"].get("unschedulable") for n in plane.call("GET", f"{CORE}/nodes")[1]["items"]
    ):
        wrong.append(f"undo leaves cordons: {said}")
    # An eviction for another UID, as after an interruption, leaves the pod alone.
    name = next(iter(after)).split("/")[1]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": SPACE, "name": name},
        "deleteOptions": {"preconditions": {"uid": "another"}},
    }
    status, said_of_it = plane.call("POST", f"{CORE}/namespaces/{SPACE}/pods/{name}/eviction", body)
    if status != 409:
        wrong.append(f"an eviction for another UID is answered {status}: {said_of_it}")
    print(
        f"script: {len(plan.moves)} moves vacate {len(plan.vacated_nodes)} nodes; {refused} refusals waited "
        f"for; {len(wrong)} differences",
        flush=True,
    )
    return wrong


def check(folder: pathlib.Path) -> bool:
    wrong: list[str] = []
    for seed in range(3):
        home = folder / str(seed)
        home.mkdir()
        plane = ControlPlane(home)
        kubelet = None
        try:
            config = plane.kubeconfig()
            plane.controllers(*CONTROLLERS)
            plane.scheduler()
            kubelet = Kubelet(plane)
            wrong += check_by_hand(plane, config, seed)
            if seed == 0 and not wrong:
                wrong += check_script(plane, home, config)
        finally:
            if kubelet:
                kubelet.close()
            plane.close()
    for line in wrong[:20]:
        print("  " + line)
    return not wrong
