"""A real control plane: what kube-scheduler does with pending pods agrees with our feasibility.

    control_plane.py [--seeds 10] [--nodes 60] [--pods 300]

Starts etcd and kube-apiserver, and for every seed an empty cluster that is filled with random nodes and pods; then kube-scheduler, until
nothing moves any more. Snapshots are read from the API as kubectl prints them. No pod that we call infeasible is bound: every pod is
feasible on its node at the moment it is bound. No pod that is left unschedulable is called feasible. There are no kubelets and
no controllers: pods that are bound stay as they are.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import comparing
import gpusched as gs
import random_clusters

Object = dict[str, Any]
PROGRAM = pathlib.Path(os.environ.get("GPUSCHED_CONTROL_PLANE", comparing.ROOT / "build/kubernetes/control_plane"))
CORE, SPACED = "/api/v1", ("Pod", "PersistentVolumeClaim")
PLURALS = {kind: kind.lower() + "s" for kind in ("Namespace", "Node", "Pod", "PersistentVolume", "PersistentVolumeClaim")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ControlPlane:
    """etcd and kube-apiserver in a temporary folder, on 127.0.0.1; kube-scheduler on request."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.running: list[subprocess.Popen[bytes]] = []
        self.local = threading.local()
        etcd, peer, self.port = free_port(), free_port(), free_port()
        key = folder / "accounts.key"
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)], check=True, capture_output=True)
        (folder / "tokens.csv").write_text(f"{self.token},tester,tester,system:masters\n")
        self.start(
            "etcd", f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
        )  # fmt: skip
        self.start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}", "--endpoint-reconciler-type=none", f"--cert-dir={folder}/pki", f"--token-auth-file={folder}/tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--authorization-mode=RBAC", "--service-cluster-ip-range=198.18.0.0/16",
            # Nobody makes service accounts or clears the taint of new nodes here.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--enable-priority-and-fairness=false",
        )  # fmt: skip
        self.wait_for(lambda: self.call("GET", "/readyz")[0] == 200, 180)
        self.wait_for(lambda: self.call("GET", f"{CORE}/namespaces/default")[0] == 200, 60)

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{program}.log", "wb") as log:
            process = subprocess.Popen([str(PROGRAM), program, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.running.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.running.remove(process)

    def close(self) -> None:
        for process in reversed(list(self.running)):
            self.stop(process)

    def scheduler(self) -> subprocess.Popen[bytes]:
        kubeconfig = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        path = self.folder / "scheduler.kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(path), "qps": 1000, "burst": 2000}, "percentageOfNodesToScore": 100,
        }  # fmt: skip
        (self.folder / "scheduler.json").write_text(json.dumps(configuration))
        return self.start(
            "kube-scheduler", "--v=3", f"--config={self.folder}/scheduler.json", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            f"--cert-dir={self.folder}/scheduler-pki", f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}",
        )  # fmt: skip

    def attempts(self) -> dict[str, int]:
        """By pod when kube-scheduler looked at it for the last time: it decides one by one, and binds side by side."""
        found = re.findall(r'"Attempting to schedule pod" pod="([^"]+)"', (self.folder / "kube-scheduler.log").read_text(errors="replace"))
        return {pod: at for at, pod in enumerate(found)}

    def wait_for(self, done: Any, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        while True:
            try:
                if done():
                    return
            except OSError:
                pass
            if any(process.poll() is not None for process in self.running) or time.monotonic() > end:
                logs = [f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in sorted(self.folder.glob("*.log"))]
                raise RuntimeError("the control plane does not come up:\n" + "\n".join(logs))
            time.sleep(0.2)

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> tuple[int, Object]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": "application/json"}
        for attempt in (0, 1):
            try:
                if getattr(self.local, "connection", None) is None:
                    context = ssl._create_unverified_context()  # its own certificate, on 127.0.0.1
                    self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=60)
                self.local.connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = self.local.connection.getresponse()
                text = answer.read()
                return answer.status, json.loads(text) if text.startswith(b"{") else {}
            except (http.client.HTTPException, ConnectionError):
                self.local.connection = None
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def create(self, item: Object) -> Object:
        """Creates an object with its status. @raises RuntimeError with what the API server says"""
        kind, meta = item["kind"], item["metadata"]
        base = f"{CORE}/namespaces/{meta['namespace']}/{PLURALS[kind]}" if kind in SPACED else f"{CORE}/{PLURALS[kind]}"
        status, made = self.call("POST", base, item)
        if status not in (200, 201):
            raise RuntimeError(f"{kind} {meta['name']}: {status} {made.get('message')}")
        if "status" in item and kind != "Pod":
            status, made = self.call("PATCH", f"{base}/{meta['name']}/status", {"status": item["status"]}, "application/merge-patch+json")
            if status != 200:
                raise RuntimeError(f"status of {kind} {meta['name']}: {status} {made.get('message')}")
        return made

    def all(self) -> Object:
        """One List of all that bears on placement, as kubectl prints it."""
        items = []
        for kind, plural in PLURALS.items():
            for item in self.call("GET", f"{CORE}/{plural}")[1]["items"]:
                items.append({"apiVersion": "v1", "kind": kind, **item})
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def clear(self) -> None:
        """Deletes pods, nodes, claims and volumes of the seed before."""
        for item in self.all()["items"]:
            kind, meta = item["kind"], item["metadata"]
            if kind == "Namespace":
                continue
            base = f"{CORE}/namespaces/{meta['namespace']}/{PLURALS[kind]}" if kind in SPACED else f"{CORE}/{PLURALS[kind]}"
            if meta.get("finalizers"):
                self.call("PATCH", f"{base}/{meta['name']}", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            self.call("DELETE", f"{base}/{meta['name']}", {"gracePeriodSeconds": 0})


THEMES = ("taints", "selector", "node_affinity", "ports", "cards", "instances", "shared", "extended", "resources", "spread", "affinity",
          "anti_affinity", "namespaces", "cordons", "pod_count", "volumes", "zones")  # fmt: skip


def objects_for(seed: int, nodes: int, pods: int) -> list[Object]:
    maker = random_clusters.Maker(seed)
    maker.themes = set(maker.random.sample(THEMES, 4))
    # The API server refuses values that no label can have, and merges the keys of matchLabelKeys itself.
    items = json.loads(json.dumps(maker.cluster(nodes, pods)["items"]).replace('"-5"', '"5"'))
    out = []
    for item in items:
        for constraint in (*item["spec"].get("topologySpreadConstraints", ()), *comparing.terms_of(item)) if item["kind"] == "Pod" else ():
            constraint.pop("matchLabelKeys", None)
            constraint.pop("mismatchLabelKeys", None)
        if item["kind"] == "Pod" and (item["status"]["phase"] in ("Succeeded", "Failed") or "deletionTimestamp" in item["metadata"]):
            continue
        out.append(item)
    order = ["Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"]
    return sorted(out, key=lambda item: order.index(item["kind"]))


def is_unschedulable(pod: Object) -> bool:
    return any(c["type"] == "PodScheduled" and c["status"] == "False" and c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", ()))


def name_of(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def settle(plane: ControlPlane, limit_s: float) -> Object:
    """Waits until every pod is bound, gated or unschedulable, and nothing has changed for some seconds."""
    end, before, same = time.monotonic() + limit_s, None, 0
    while time.monotonic() < end:
        now = plane.all()
        pods = [item for item in now["items"] if item["kind"] == "Pod"]
        waiting = [p for p in pods if not p["spec"].get("nodeName") and not p["spec"].get("schedulingGates") and not is_unschedulable(p)]
        state = {name_of(p): p["spec"].get("nodeName") for p in pods}
        same = same + 1 if state == before and not waiting else 0
        if same >= 6:
            return now
        before = state
        time.sleep(1)
    raise RuntimeError(f"kube-scheduler did not come to rest in {limit_s} s")


def check(before: Object, after: Object, attempts: dict[str, int]) -> tuple[list[str], dict[str, int]]:
    """Replays the bindings in the order of the decisions, then asks about what was left."""
    wrong = []
    pods = {name_of(item): item for item in after["items"] if item["kind"] == "Pod"}
    excused = {pod for pod, _ in comparing.excuses(after)}
    start = {name_of(item) for item in before["items"] if item["kind"] == "Pod" and not item["spec"].get("nodeName")}
    bound = sorted((p for n, p in pods.items() if n in start and p["spec"].get("nodeName")), key=lambda p: attempts[name_of(p)])
    placed = {name_of(p): p["spec"]["nodeName"] for p in bound}

    def told(known: set[str]) -> dict[str, dict[str, str]]:
        """What we say where only these of the bindings have happened."""
        items = json.loads(json.dumps(after["items"]))
        for item in items:
            if item["kind"] == "Pod" and name_of(item) in placed and name_of(item) not in known:
                del item["spec"]["nodeName"]
        cluster = gs.io.read_kubernetes({"apiVersion": "v1", "kind": "List", "items": items}).cluster
        nodes = cluster.nodes.name
        return {t: dict(zip(nodes, gs.allocation.find_obstacles(cluster, t, old_copy="leaves"), strict=True)) for t in asked}

    known: set[str] = set()
    for pod in bound:
        name = name_of(pod)
        asked = [name]
        if name not in excused and told(known)[name][placed[name]] != "none":
            wrong.append(f"{name} was bound to {placed[name]}, which we call infeasible: {told(known)[name][placed[name]]}")
        known.add(name)
    left = [n for n, p in pods.items() if not p["spec"].get("nodeName") and is_unschedulable(p) and n not in excused]
    asked = left
    for name, nodes in told(known).items() if left else ():
        if feasible := [node for node, obstacle in nodes.items() if obstacle == "none"]:
            said = [c.get("message") for c in pods[name]["status"]["conditions"] if c["type"] == "PodScheduled"]
            wrong.append(f"{name} was left unschedulable ({said[0]}), but we call it feasible on {feasible[:3]}")
    return wrong, {"bound": len(bound), "left": len(left)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--pods", type=int, default=300)
    args = parser.parse_args()
    good, started = True, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpusched-control-plane-") as folder:
        plane = ControlPlane(pathlib.Path(folder))
        try:
            print(f"etcd and kube-apiserver are ready after {time.monotonic() - started:.0f} s", flush=True)
            for seed in range(args.seeds):
                refused = 0
                items = objects_for(seed, args.nodes, args.pods)

                def create(item: Object) -> str | None:
                    try:
                        plane.create(item)
                    except RuntimeError as error:
                        if item["kind"] == "Pod":
                            return str(error)
                        if not (item["kind"] == "Namespace" and "409" in str(error)):
                            raise
                    return None

                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    for kind in PLURALS:
                        said = [e for e in pool.map(create, [i for i in items if i["kind"] == kind]) if e]
                        refused += len(said)
                        if said:
                            print(f"  the API server refuses {len(said)} of the pods, such as {said[0][:200]}")
                before = plane.all()
                scheduler = plane.scheduler()
                after = settle(plane, 240)
                plane.stop(scheduler)
                wrong, counts = check(before, after, plane.attempts())
                good = good and not wrong and counts["bound"] > 0
                themes = len([i for i in after["items"] if i["kind"] == "Node"])
                print(f"seed {seed}: {themes} nodes, {counts['bound']} pods bound, {counts['left']} left unschedulable, {len(wrong)} differences",
                      flush=True)  # fmt: skip
                for line in wrong[:10]:
                    print("  " + line)
                plane.clear()
        finally:
            plane.close()
    print(f"{'kube-scheduler and gpusched agree' if good else 'they do not agree'} ({time.monotonic() - started:.0f} s)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
