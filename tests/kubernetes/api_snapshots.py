# SPDX-License-Identifier: Apache-2.0
"""`kube snapshot` on a real API server: the same objects as kubectl prints, with the rights that are shipped,
none of which is idle.
"""

from __future__ import annotations

import base64
import json
import pathlib
import time
import urllib.request

import gpusched as gs
import scheduling
import yaml
from gpusched.kubernetes import _api
from gpusched.kubernetes._snapshot import KINDS, Kind, without_private
from plane import ControlPlane, Object

SERVED = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")
POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "a"}}]}}
SPECS = {  # of one object of each kind that the server has by itself
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    "PriorityClass": {"value": 7},
    "Deployment": {"spec": SELECTED},
    "ReplicaSet": {"spec": SELECTED},
    "StatefulSet": {"spec": SELECTED | {"serviceName": "a"}},
    "DaemonSet": {"spec": SELECTED},
    "Job": {"spec": {"template": {"spec": POD | {"restartPolicy": "Never"}}}},
    "ResourceSlice": {
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n0", "devices": [{"name": "gpu-0"}],
            "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
        }
    },  # fmt: skip
    "ResourceClaim": {"spec": DEVICES},
    "ResourceClaimTemplate": {"spec": {"spec": DEVICES}},
    "DeviceClass": {"spec": {}},
}  # fmt: skip


OWN = ("", "policy", "apps", "batch", "scheduling.k8s.io", "resource.k8s.io")
"""Groups that the server has without custom resource definitions."""
SEPARATELY = ("Node", "Pod", "Namespace", "PersistentVolume", "PersistentVolumeClaim")
ABSENT = ("podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io")
"""Listed, but none is made: their fields differ from version to version."""
OF_THE_CLUSTER = ("PriorityClass", "ResourceSlice", "DeviceClass", "Topology")


def definition(kind: Kind, namespaced: bool) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": kind.group, "scope": "Namespaced" if namespaced else "Cluster", "names": names,
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]},
    }  # fmt: skip


def fill(plane: ControlPlane) -> None:
    """At least one object of each kind."""
    scheduling.fill(plane, scheduling.objects_for(3, 20, 150))
    custom = [kind for kind in KINDS if kind.group not in OWN]
    plane.kubectl(
        "apply",
        "-f",
        "-",
        text="\n---\n".join(json.dumps(definition(k, k.kind != "Topology")) for k in custom),
    )
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    made = []
    for kind in KINDS:
        if kind.kind in SEPARATELY or kind.resource in ABSENT:
            continue
        place = {} if kind.kind in OF_THE_CLUSTER else {"namespace": "default"}
        more = SPECS[kind.kind] if kind.group in OWN else {"spec": {}}
        made.append(
            {"apiVersion": f"{kind.group}/v1", "kind": kind.kind, "metadata": {"name": "a", **place}, **more}
        )
    plane.kubectl("create", "-f", "-", text="\n---\n".join(map(json.dumps, made)))


def by_name(objects: Object) -> dict[tuple[str, str, str, str], Object]:
    return {
        (i["apiVersion"], i["kind"], i["metadata"].get("namespace", ""), i["metadata"]["name"]): i
        for i in objects["items"]
    }


def compare(plane: ControlPlane, taken: gs.kubernetes.Snapshot) -> list[str]:
    """Differences between a snapshot and what kubectl prints, but for what containers run."""
    printed = json.loads(
        plane.kubectl("get", ",".join(read.resource for read in taken.lists), "-A", "-o", "json")
    )
    ours, theirs = by_name(taken.objects), by_name(without_private(printed))
    wrong = [
        f"{what}: {sorted(names)[:3]}"
        for what, names in (
            ("only kubectl has", theirs.keys() - ours.keys()),
            ("kubectl lacks", ours.keys() - theirs.keys()),
        )
        if names
    ]
    wrong += [f"differs: {name}" for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]][:5]
    if len(ours) != len(taken.objects["items"]):
        wrong.append("an object is in the snapshot twice")
    if gs.io.read_kubernetes(taken.objects) != gs.io.read_kubernetes(printed):
        wrong.append("the clusters that are read of both differ")
    return wrong


def role_without(left_out: Kind | None) -> Object:
    role = next(item for item in yaml.safe_load_all(gs.kubernetes.rbac()) if item["kind"] == "ClusterRole")
    rules = [
        {"apiGroups": [g], "resources": [r], "verbs": rule["verbs"]}
        for rule in role["rules"]
        for g in rule["apiGroups"]
        for r in rule["resources"]
    ]
    role["rules"] = [
        rule
        for rule in rules
        if left_out is None or (rule["apiGroups"], rule["resources"]) != ([left_out.group], [left_out.plural])
    ]
    return role


def missed(config: pathlib.Path) -> tuple[str, ...]:
    """The resources that the snapshot may not list."""
    try:
        return gs.kubernetes.snapshot(kubeconfig=config, allow_missing=True).forbidden
    except gs.BackendError as error:
        said = str(error)
        assert "lack the verb list on " in said, said
        return tuple(said.split("lack the verb list on ")[1].split(", in all namespaces")[0].split(", "))


def idle_rights(plane: ControlPlane, config: pathlib.Path) -> list[str]:
    """Rights of the role without which nothing is missed."""
    wrong = []
    for kind in KINDS:
        plane.kubectl("apply", "-f", "-", text=json.dumps(role_without(kind)))
        found: tuple[str, ...] = ()
        for _ in range(50):  # the authorizer learns of it a moment later
            found = missed(config)
            if found == (kind.resource,):
                break
            time.sleep(0.2)
        else:
            wrong.append(f"without {kind.resource} the snapshot misses {found}")
    plane.kubectl("apply", "-f", "-", text=json.dumps(role_without(None)))
    return wrong


def expired(plane: ControlPlane, config: pathlib.Path) -> gs.kubernetes.Snapshot:
    """A snapshot whose second page of pods asks for a moment that etcd has forgotten."""
    revision = int(plane.call("GET", "/api/v1/nodes?limit=1")[1]["metadata"]["resourceVersion"])
    body = json.dumps({"revision": str(revision), "physical": True}).encode()
    urllib.request.urlopen(f"http://127.0.0.1:{plane.etcd}/v3/kv/compaction", body).read()
    get = _api.Api.get

    def older(
        self: _api.Api, path: str, query: dict[str, str] | None = None, accept: str = "application/json"
    ) -> _api.Answer:
        token = (query or {}).get("continue")
        if token and path == "/api/v1/pods" and query:
            said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            said["rv"] = 2
            query = query | {
                "continue": base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
            }
        return get(self, path, query, accept)

    _api.Api.get = older  # type: ignore[method-assign]
    try:
        return gs.kubernetes.snapshot(kubeconfig=config, page_size=50)
    finally:
        _api.Api.get = get  # type: ignore[method-assign]


def check(folder: pathlib.Path) -> bool:
    plane = ControlPlane(folder, *SERVED)
    wrong: list[str] = []
    try:
        fill(plane)
        plane.kubectl("apply", "-f", "-", text=gs.kubernetes.rbac())
        token = plane.kubectl("create", "token", "-n", "gpusched", "gpusched-snapshot").strip()
        config = plane.kubeconfig("snapshot", token)
        taken = gs.kubernetes.snapshot(kubeconfig=config, page_size=7)
        wrong += [f"not on the server: {name}" for name in taken.absent]
        wrong += [
            f"empty: {read.resource}"
            for read in taken.lists
            if read.count == 0 and read.resource not in ABSENT
        ]
        wrong += [] if taken.changes == 0 else ["something changed, where nobody changed anything"]
        wrong += compare(plane, taken)
        print(
            f"{len(taken.objects['items'])} objects of {len(taken.lists)} kinds in "
            f"{sum(read.pages for read in taken.lists)} pages",
            flush=True,
        )
        again = expired(plane, config)
        if [read.resource for read in again.lists if read.expired] != ["pods"]:
            wrong.append("no list was read again after its moment was forgotten")
        wrong += compare(plane, again)
        wrong += idle_rights(plane, config)
        print(
            f"{len(KINDS)} rights, each of them needed" if not wrong else f"{len(wrong)} differences",
            flush=True,
        )
    finally:
        plane.close()
    for line in wrong[:20]:
        print("  " + line)
    return not wrong
