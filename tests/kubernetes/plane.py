# SPDX-License-Identifier: Apache-2.0
"""A real control plane in a temporary folder: etcd, kube-apiserver, and on request kube-scheduler,
kube-controller-manager and readiness.

There are no kubelets: `Kubelet` says of pods that are bound that they are ready, and lets those go that are
deleted.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import secrets
import socket
import ssl
import subprocess
import threading
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
Object = dict[str, Any]
PROGRAM = pathlib.Path(os.environ.get("GPUSCHED_CONTROL_PLANE", ROOT / "build/kubernetes/control_plane"))
CORE, SPACED = "/api/v1", ("Pod", "PersistentVolumeClaim")
PLURALS = {
    kind: kind.lower() + "s"
    for kind in ("Namespace", "Node", "Pod", "PersistentVolume", "PersistentVolumeClaim")
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ControlPlane:
    """etcd and kube-apiserver in a temporary folder, on 127.0.0.1; the other programs on request."""

    def __init__(self, folder: pathlib.Path, *arguments: str) -> None:
        """`arguments` are further ones of kube-apiserver."""
        self.folder = folder
        self.token = secrets.token_hex(16)
        self.running: list[subprocess.Popen[bytes]] = []
        self.local = threading.local()
        self.etcd, peer, self.port = free_port(), free_port(), free_port()
        etcd = self.etcd
        key = folder / "accounts.key"
        subprocess.run(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)],
            check=True,
            capture_output=True,
        )
        (folder / "tokens.csv").write_text(f"{self.token},tester,tester,system:masters\n")
        self.start(
            "etcd", f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
        )  # fmt: skip
        self.start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}", "--endpoint-reconciler-type=none",
            f"--cert-dir={folder}/pki", f"--token-auth-file={folder}/tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--authorization-mode=RBAC",
            "--service-cluster-ip-range=198.18.0.0/16",
            # No controller makes service accounts or clears the taint of new nodes here.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--enable-priority-and-fairness=false",
            *arguments,
        )  # fmt: skip
        self.wait_for(lambda: self.call("GET", "/readyz")[0] == 200, 180)
        self.wait_for(lambda: self.call("GET", f"{CORE}/namespaces/default")[0] == 200, 60)

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{program}.log", "wb") as log:
            process = subprocess.Popen(
                [str(PROGRAM), program, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
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

    def kubeconfig(self, name: str = "tester", token: str | None = None) -> pathlib.Path:
        """A file with credentials: of the group system:masters, or of the owner of the token."""
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": f"https://127.0.0.1:{self.port}",
                "certificate-authority": f"{self.folder}/pki/apiserver.crt",
            }}],
            "users": [{"name": "u", "user": {"token": token or self.token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(document))
        return path

    def kubectl_command(self) -> str:
        return f"{PROGRAM} kubectl --kubeconfig {self.kubeconfig()}"

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """The output of kubectl. Raises RuntimeError if it fails."""
        command = [*self.kubectl_command().split(), *arguments]
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {run.stderr}")
        return run.stdout

    def scheduler(self) -> subprocess.Popen[bytes]:
        path = self.kubeconfig()
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(path), "qps": 1000, "burst": 2000},
            "percentageOfNodesToScore": 100,
        }  # fmt: skip
        (self.folder / "scheduler.json").write_text(json.dumps(configuration))
        return self.start(
            "kube-scheduler", "--v=3", f"--config={self.folder}/scheduler.json", "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.folder}/scheduler-pki", f"--authentication-kubeconfig={path}",
            f"--authorization-kubeconfig={path}",
        )  # fmt: skip

    def controllers(self, *names: str) -> subprocess.Popen[bytes]:
        """Only these of kube-controller-manager; the nodes are never looked after, and stay as they were
        made.
        """
        path = self.kubeconfig()
        return self.start(
            "kube-controller-manager", f"--kubeconfig={path}", f"--controllers={','.join(names)}",
            "--leader-elect=false",
            "--kube-api-qps=1000", "--kube-api-burst=2000", "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self.folder}/controllers-pki", f"--authentication-kubeconfig={path}",
            f"--authorization-kubeconfig={path}",
        )  # fmt: skip

    def attempts(self) -> dict[str, int]:
        """By pod when kube-scheduler looked at it for the last time: it decides one by one, and binds side by
        side.
        """
        found = re.findall(
            r'"Attempting to schedule pod" pod="([^"]+)"',
            (self.folder / "kube-scheduler.log").read_text(errors="replace"),
        )
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
                logs = [
                    f"{log.name}: {log.read_text(errors='replace')[-1500:]}"
                    for log in sorted(self.folder.glob("*.log"))
                ]
                raise RuntimeError("the control plane does not come up:\n" + "\n".join(logs))
            time.sleep(0.2)

    def call(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> tuple[int, Object]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": kind,
            "Accept": "application/json",
        }
        for attempt in (0, 1):
            try:
                if getattr(self.local, "connection", None) is None:
                    context = ssl._create_unverified_context()  # its own certificate, on 127.0.0.1
                    self.local.connection = http.client.HTTPSConnection(
                        "127.0.0.1", self.port, context=context, timeout=60
                    )
                self.local.connection.request(
                    method, path, None if body is None else json.dumps(body), headers
                )
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
        base = (
            f"{CORE}/namespaces/{meta['namespace']}/{PLURALS[kind]}"
            if kind in SPACED
            else f"{CORE}/{PLURALS[kind]}"
        )
        status, made = self.call("POST", base, item)
        if status not in (200, 201):
            raise RuntimeError(f"{kind} {meta['name']}: {status} {made.get('message')}")
        if "status" in item and kind != "Pod":
            status, made = self.call(
                "PATCH",
                f"{base}/{meta['name']}/status",
                {"status": item["status"]},
                "application/merge-patch+json",
            )
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
            base = (
                f"{CORE}/namespaces/{meta['namespace']}/{PLURALS[kind]}"
                if kind in SPACED
                else f"{CORE}/{PLURALS[kind]}"
            )
            if meta.get("finalizers"):
                self.call(
                    "PATCH",
                    f"{base}/{meta['name']}",
                    {"metadata": {"finalizers": None}},
                    "application/merge-patch+json",
                )
            self.call("DELETE", f"{base}/{meta['name']}", {"gracePeriodSeconds": 0})


class Kubelet:
    """Says of bound pods that they run and are ready, and lets those go that are deleted."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.ends = plane, threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while not self.ends.wait(0.3):
            for pod in self.plane.call("GET", f"{CORE}/pods")[1].get("items", ()):
                self.look_after(pod)

    def look_after(self, pod: Object) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        path = f"{CORE}/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if "deletionTimestamp" in meta:
            self.plane.call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
        elif pod["spec"].get("nodeName") and not is_ready(pod):
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            true = [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ]
            changed = status | {"phase": "Running", "startTime": now, "conditions": true}
            self.plane.call(
                "PATCH",
                f"{path}/status",
                {"metadata": {"uid": meta["uid"]}, "status": changed},
                "application/merge-patch+json",
            )

    def close(self) -> None:
        self.ends.set()
        self.thread.join()


def is_ready(pod: Object) -> bool:
    return any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", ())
    )


def name_of(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
