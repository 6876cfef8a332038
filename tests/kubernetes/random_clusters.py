# SPDX-License-Identifier: Apache-2.0
"""Random small clusters as kubectl prints them, with what the filters of kube-scheduler look at.

Each cluster has a theme, a few kinds of constraints out of all, and otherwise roomy nodes, so that every
filter is often the
only one that refuses. Objects are as the API server stores them: defaults are filled in, keys of
`matchLabelKeys` are merged.
"""

from __future__ import annotations

import random
from typing import Any

Object = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
SPACES = {"a": {"team": "x"}, "b": {"team": "y", "prod": "yes"}, "c": {}}
APPS, TIERS = ("web", "db", "job"), ("front", "back")

THEMES = (
    "taints", "cordons", "selector", "node_affinity", "ports", "resources", "pod_requests", "pod_count",
    "extended", "cards",
    "instances", "shared", "spread", "spread_policies", "affinity", "anti_affinity", "namespaces", "volumes",
    "zones", "claims",
    "parts", "replicas", "resizes",
)  # fmt: skip


def gib(number: float) -> str:
    return f"{int(number * 1024)}Mi"


class Maker:
    """Makes one cluster from a seed."""

    def __init__(self, seed: int, themes: tuple[str, ...] | None = None) -> None:
        self.random = random.Random(seed)
        if themes is None:
            count = self.random.choice((1, 1, 1, 2, 2, 3, 5))
            themes = tuple(self.random.sample(THEMES, count))
            if self.random.random() < 0.04:
                themes += ("claims",)  # two pods of one claim are rare
        self.themes = set(themes)
        self.free: dict[str, dict[str, float]] = {}
        self.volumes: list[Object] = []

    def has(self, *themes: str) -> bool:
        return any(theme in self.themes for theme in themes)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, values: Any) -> Any:
        return self.random.choice(tuple(values))

    def cluster(self, node_count: int = 0, pod_count: int = 0) -> Object:
        """With so many nodes and pods; 0 = a few."""
        nodes = [self.node(f"n{i}") for i in range(node_count or self.random.randint(2, 6))]
        pods = [self.pod(f"p{i}", nodes) for i in range(pod_count or self.random.randint(3, 12))]
        spaces = [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}},
            }
            for name, labels in SPACES.items()
        ]
        return {"apiVersion": "v1", "kind": "List", "items": nodes + pods + spaces + self.volumes}

    # Nodes
    # -------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Object:
        labels = {HOSTNAME: name}
        if self.has("spread", "spread_policies", "affinity", "anti_affinity", "namespaces") and self.chance(
            0.05
        ):
            labels[HOSTNAME] = self.pick(("n0", "n1"))  # not a value of its own
            if self.chance(0.3):
                del labels[HOSTNAME]
        if self.chance(0.85):
            labels[ZONE] = self.pick("stu")
        if self.chance(0.7):
            labels[RACK] = self.pick(("r0", "r1", "r2", "r3"))
        if self.chance(0.7):
            labels["disk"] = self.pick(("ssd", "hdd", ""))
        if self.chance(0.7):
            labels["cores"] = self.pick(("4", "16", "many", "07"))
        taints: list[Object] = []
        if self.has("taints", "spread_policies"):
            for _ in range(self.pick((0, 0, 1, 1, 2))):
                effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
                taint = {"key": self.pick(("dedicated", "gpu", "spot")), "effect": self.pick(effects)}
                if self.chance(0.6):
                    taint["value"] = self.pick(("yes", "team-a"))
                if all((t["key"], t["effect"]) != (taint["key"], taint["effect"]) for t in taints):
                    taints.append(taint)
        spec: Object = {}
        if self.has("cordons", "spread_policies") and self.chance(0.4):
            spec["unschedulable"] = True
            # The node controller adds the taint a moment later.
            if self.has("spread_policies") or self.chance(0.5):
                taints.append(dict(CORDON))
        if taints:
            spec["taints"] = taints
        allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "900Gi"}
        capacity = {}
        if self.has("resources", "pod_requests", "resizes"):
            allocatable |= {
                "cpu": self.pick(("2", "4", "3500m", "0")),
                "memory": self.pick(("4Gi", "8388608Ki", "6Gi")),
            }
            if self.chance(0.5):
                allocatable["ephemeral-storage"] = self.pick(("1Gi", "4Gi", "0"))
            if self.chance(0.5):
                allocatable["hugepages-2Mi"] = self.pick(("0", "64Mi", "128Mi"))
        if self.has("pod_count"):
            allocatable["pods"] = self.pick(("0", "1", "2", "3", "4"))
            if self.chance(0.1):
                del allocatable["pods"]
        if self.has("extended") and self.chance(0.8):
            allocatable["example.com/fpga"] = self.pick(("0", "1", "2", "4"))
            allocatable["rdma/hca"] = self.pick(("0", "1", "8"))
        if self.has("cards") and self.chance(0.8):
            if self.chance(0.8):
                count = self.pick((1, 4, 8))
                allocatable["nvidia.com/gpu"] = str(count - (1 if self.chance(0.3) else 0))
                capacity["nvidia.com/gpu"] = str(count)
                labels["nvidia.com/gpu.product"] = self.pick(("NVIDIA-H100-80GB-HBM3", "Tesla-T4"))
            else:
                allocatable["amd.com/gpu"] = self.pick(("2", "8"))
        if self.has("instances") and self.chance(0.8):
            for profile, counts in (("1g.10gb", "147"), ("3g.40gb", "12"), ("2g.20gb", "03")):
                if self.chance(0.6):
                    allocatable[f"nvidia.com/mig-{profile}"] = self.pick(counts)
        if self.has("shared") and self.chance(0.8):
            allocatable["nvidia.com/gpu.shared"] = self.pick(("4", "8", "8", "128"))
            labels["nvidia.com/gpu.replicas"] = self.pick("24")
        if (
            self.has("parts") and not self.has("cards", "replicas") and self.chance(0.8)
        ):  # instances under the name of cards
            allocatable["nvidia.com/gpu"] = self.pick("27")
            labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
        if (
            self.has("replicas") and not self.has("cards", "shared") and self.chance(0.8)
        ):  # replicas under the name of cards
            allocatable["nvidia.com/gpu"] = self.pick("48")
            labels |= {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
        self.free[name] = {key: quantity(value) for key, value in allocatable.items()}
        conditions = [{"type": "Ready", "status": "True"}]
        return {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
            "status": {"allocatable": allocatable, "capacity": allocatable | capacity,
                "conditions": conditions},
        }  # fmt: skip

    # Pods
    # --------------------------------------------------------------------------------------------------------

    def pod(self, name: str, nodes: list[Object]) -> Object:
        labels = {}
        if self.chance(0.9):
            labels["app"] = self.pick(APPS)
        if self.chance(0.6):
            labels["tier"] = self.pick(TIERS)
        if self.chance(0.3):
            labels["rev"] = self.pick("12")
        space = self.pick("aaab" if self.has("spread", "spread_policies") else "aabc")
        spec: Object = {"containers": [self.container("main")], "schedulerName": "default-scheduler"}
        meta: Object = {"name": name, "namespace": space, "labels": labels}
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": "Pending"},
        }
        if self.has("pod_requests"):
            self.further_containers(spec)
        if self.has("ports"):
            self.ports(spec)
        if self.has("taints", "cordons", "spread_policies"):
            spec["tolerations"] = [self.toleration() for _ in range(self.pick((0, 1, 1, 2)))]
        if self.has("selector", "spread_policies") and self.chance(0.4):
            spec["nodeSelector"] = {self.pick(("disk", ZONE)): self.pick(("ssd", "hdd", "s", "t"))}
        affinity: Object = {}
        if self.has("node_affinity", "spread_policies") and self.chance(0.6):
            terms = [self.node_term(nodes) for _ in range(self.pick((1, 1, 2)))]
            affinity["nodeAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        if self.has("affinity", "namespaces") and self.chance(0.5):
            affinity["podAffinity"] = self.required(labels)
        if self.has("anti_affinity", "namespaces") and self.chance(0.5):
            affinity["podAntiAffinity"] = self.required(labels)
        if affinity:
            spec["affinity"] = affinity
        if self.has("spread", "spread_policies") and self.chance(0.6):
            keys = self.random.sample((HOSTNAME, ZONE, RACK), self.pick((1, 1, 2)))
            spec["topologySpreadConstraints"] = [self.spread(key, labels) for key in keys]
        if self.has("volumes", "zones", "claims") and self.chance(0.6):
            self.claim(pod)
        self.place(pod, nodes)
        return pod

    def container(self, name: str) -> Object:
        requests, limits = {}, {}
        if self.has("resources", "pod_requests", "resizes"):
            if self.chance(0.8):
                requests["cpu"] = self.pick(("100m", "500m", "1", "1500m", "2", "0.25", "1e0", "0"))
            if self.chance(0.8):
                requests["memory"] = self.pick(("256Mi", "1Gi", "2048Mi", "3Gi"))
            if self.chance(0.3):
                requests["ephemeral-storage"] = self.pick(("100Mi", "1Gi", "2Gi"))
            if self.chance(0.2):
                requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = self.pick(("32Mi", "64Mi"))
            if self.chance(0.2):
                requests.pop("cpu", None)
                limits["cpu"] = self.pick(("1", "2"))  # stands for the request
        elif self.chance(0.5):
            requests = {"cpu": "100m", "memory": "64Mi"}
        devices: list[tuple[str, Any]] = []
        if self.has("extended"):
            devices += [("example.com/fpga", ("1", "2")), ("rdma/hca", ("1", "2"))]
        if self.has("cards"):
            devices += [("nvidia.com/gpu", ("1", "2", "4", "8"))] * 3 + [("amd.com/gpu", ("1", "2"))]
        if self.has("instances"):
            devices += [(f"nvidia.com/mig-{profile}", "12") for profile in ("1g.10gb", "3g.40gb", "2g.20gb")]
        if self.has("shared"):
            devices += [("nvidia.com/gpu.shared", "12")]
        if self.has("parts", "replicas"):
            devices += [("nvidia.com/gpu", "124")]
        if devices and name == "main" and self.chance(0.7):
            for _ in range(self.pick((1, 1, 1, 1, 1, 1, 1, 2))):
                resource, counts = self.pick(devices)
                requests[resource] = limits[resource] = (
                    self.pick((*counts, "0")) if self.chance(0.1) else self.pick(counts)
                )
        return {"name": name, "image": "x", "resources": {"requests": requests, "limits": limits}}

    def further_containers(self, spec: Object) -> None:
        if self.chance(0.3):
            spec["containers"].append(self.container("second"))
        if self.chance(0.5):
            spec["initContainers"] = []
            for i in range(self.pick((1, 1, 2, 3))):
                container = self.container(f"init{i}")
                if self.chance(0.5):
                    container["restartPolicy"] = "Always"
                spec["initContainers"].append(container)
        if self.chance(0.2):
            spec["overhead"] = {"cpu": self.pick(("250m", "1")), "memory": self.pick(("128Mi", "1Gi"))}
        if self.chance(0.2):
            total = {"cpu": self.pick(("2", "5")), "memory": self.pick(("4Gi", "9Gi"))}
            if self.chance(0.3):
                del total[self.pick(total)]
            spec["resources"] = {"requests": total}

    def ports(self, spec: Object) -> None:
        spec["hostNetwork"] = self.chance(0.2)
        containers = [*spec["containers"]]
        if self.chance(0.3):
            extra = {"name": "early", "image": "x", "resources": {}}
            if self.chance(0.6):
                extra["restartPolicy"] = "Always"
            spec.setdefault("initContainers", []).append(extra)
            containers.append(extra)
        used = set()
        for container in containers:
            for _ in range(self.pick((0, 1, 1, 2))):
                number = self.pick((80, 80, 443))
                port: Object = {"containerPort": number, "protocol": self.pick(("TCP", "TCP", "UDP"))}
                if spec["hostNetwork"] or self.chance(0.7):
                    port["hostPort"] = number
                    if self.chance(0.5):
                        port["hostIP"] = self.pick(("10.0.0.1", "10.0.0.2", "0.0.0.0", ""))
                key = tuple(sorted(port.items()))
                if key not in used:
                    used.add(key)
                    container.setdefault("ports", []).append(port)

    def toleration(self) -> Object:
        if self.has("cordons") and self.chance(0.4):
            out: Object = {"key": CORDON["key"], "operator": "Exists"}
        else:
            out = {
                "key": self.pick(("dedicated", "gpu", "spot", CORDON["key"])),
                "operator": self.pick(("Exists", "Equal", "")),
            }
            if not out["operator"]:
                del out["operator"]
            if out.get("operator") != "Exists" and self.chance(0.8):
                out["value"] = self.pick(("yes", "team-a"))
        if self.chance(0.1):
            out = {"operator": "Exists"}
        if self.chance(0.03):  # tolerates nothing, as long as its feature gate is off
            return {
                "key": "dedicated",
                "operator": self.pick(("Gt", "Lt")),
                "value": "3",
                "effect": "NoSchedule",
            }
        if self.chance(0.5):
            out["effect"] = self.pick(("NoSchedule", "NoExecute"))
            if out["effect"] == "NoExecute" and self.chance(0.5):
                out["tolerationSeconds"] = 300
        return out

    def node_term(self, nodes: list[Object]) -> Object:
        term: Object = {}
        if self.chance(0.9):
            term["matchExpressions"] = [self.expression() for _ in range(self.pick((1, 1, 2)))]
        if self.chance(0.25):
            operator = self.pick(("In", "NotIn"))
            term["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": operator,
                    "values": [self.pick(nodes)["metadata"]["name"]],
                }
            ]
        return term

    def expression(self) -> Object:
        key = self.pick(("disk", "cores", ZONE, RACK, "nothing"))
        operator = self.pick(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {
                "key": self.pick(("cores", "cores", "disk")),
                "operator": operator,
                "values": [self.pick(("3", "8", "-5"))],
            }
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        values = ["ssd", "hdd", "s", "t", "r0", "r1", "4", ""]
        return {"key": key, "operator": operator, "values": self.random.sample(values, self.pick((1, 2, 3)))}

    def selector(self) -> Object | None:
        if self.chance(0.05):
            return None
        out: Object = {}
        if self.chance(0.6):
            out["matchLabels"] = {"app": self.pick(APPS)}
        if self.chance(0.4):
            operator = self.pick(("In", "NotIn", "Exists", "DoesNotExist"))
            expression: Object = {"key": self.pick(("tier", "app", "rev")), "operator": operator}
            if operator in ("In", "NotIn"):
                expression["values"] = self.random.sample(
                    ("front", "back", "web", "db", "1"), self.pick((1, 2))
                )
            out["matchExpressions"] = [expression]
        return out

    def with_selector(
        self, labels: dict[str, str], constraint: Object, lists: tuple[tuple[str, str], ...]
    ) -> Object:
        selector = self.selector()
        if selector is not None:
            for name, operator in lists:
                if not self.chance(0.12):
                    continue
                key = self.pick(("rev", "tier"))
                if key in str(selector) or any(key in constraint.get(other, ()) for other, _ in lists):
                    continue
                constraint[name] = [key]
                if key in labels:  # as the API server merges it
                    selector.setdefault("matchExpressions", []).append(
                        {"key": key, "operator": operator, "values": [labels[key]]}
                    )
            constraint["labelSelector"] = selector
        return constraint

    def required(self, labels: dict[str, str]) -> Object:
        terms = []
        for _ in range(self.pick((1, 1, 1, 2))):
            term: Object = {"topologyKey": self.pick((HOSTNAME, ZONE, ZONE, RACK))}
            self.with_selector(labels, term, (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
            if self.has("namespaces") and self.chance(0.7):
                if self.chance(0.5):
                    term["namespaces"] = self.random.sample(("a", "b", "c", "gone"), self.pick((1, 2)))
                if self.chance(0.6):
                    term["namespaceSelector"] = self.pick(
                        (
                            {},
                            {"matchLabels": {"team": "x"}},
                            {"matchLabels": {"kubernetes.io/metadata.name": "b"}},
                            {"matchExpressions": [{"key": "team", "operator": "In", "values": ["x", "y"]}]},
                            {
                                "matchExpressions": [
                                    {"key": "prod", "operator": "Exists"},
                                    {"key": "team", "operator": "NotIn", "values": ["x"]},
                                ]
                            },
                            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
                        )
                    )
            terms.append(term)
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def spread(self, key: str, labels: dict[str, str]) -> Object:
        out: Object = {
            "topologyKey": key, "maxSkew": self.pick((1, 1, 2, 3)),
            "whenUnsatisfiable": "DoNotSchedule" if self.chance(0.85) else "ScheduleAnyway",
        }  # fmt: skip
        if "app" in labels and self.chance(0.5):
            out["labelSelector"] = {"matchLabels": {"app": labels["app"]}}
        else:
            self.with_selector(labels, out, (("matchLabelKeys", "In"),))
        if out["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.3):
            out["minDomains"] = self.pick((1, 2, 3, 4))
        if self.has("spread_policies"):
            if self.chance(0.6):
                out["nodeAffinityPolicy"] = self.pick(("Honor", "Ignore"))
            if self.chance(0.6):
                out["nodeTaintsPolicy"] = self.pick(("Honor", "Ignore"))
        return out

    def claim(self, pod: Object) -> None:
        """A claim bound to a volume, sometimes one that another pod has already."""
        space, spec = pod["metadata"]["namespace"], pod["spec"]
        claims = [v["metadata"] for v in self.volumes if v["kind"] == "PersistentVolumeClaim"]
        shared = [claim["name"] for claim in claims if claim["namespace"] == space]
        if shared and self.chance(0.7 if self.has("claims") else 0.4):
            name = self.pick(shared)
        else:
            name = f"claim{len(self.volumes)}"
            modes = ["ReadWriteOncePod"] if self.has("claims") and self.chance(0.6) else ["ReadWriteMany"]
            volume: Object = {
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": "volume-" + name, "labels": {}},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": modes, "storageClassName": "",
                         "csi": {"driver": "example.com", "volumeHandle": name},
                         "claimRef": {"kind": "PersistentVolumeClaim", "namespace": space, "name": name}},
                "status": {"phase": "Bound"},
            }  # fmt: skip
            if self.has("volumes") and self.chance(0.8):
                terms = [{"matchExpressions": [self.expression()]} for _ in range(self.pick((1, 1, 2)))]
                volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
            if self.has("zones") and self.chance(0.8):
                volume["metadata"]["labels"][ZONE] = self.pick(("s", "t", "s__u"))
            claim = {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": space,
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"accessModes": modes, "storageClassName": "", "volumeName": "volume-" + name,
                         "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"phase": "Bound"},
            }  # fmt: skip
            self.volumes += [volume, claim]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]

    def place(self, pod: Object, nodes: list[Object]) -> None:
        """Binds the pod to some node that has room for it, or leaves it pending; whether it may be there does
        not matter.
        """
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        asked = requests_of(spec) | {"pods": 1.0}
        # A pod with a spread constraint runs on a node that its volumes reach.
        reached = "volumes" not in spec or "topologySpreadConstraints" not in spec
        if self.chance(0.62) and reached:
            node = self.pick(nodes)["metadata"]["name"]
            if self.chance(0.02):
                spec["nodeName"], status["phase"] = "gone", "Running"  # its node is not there any more
                return
            free = self.free[node]
            if all(amount <= free.get(key, 0) for key, amount in asked.items() if amount > 0):
                spec["nodeName"] = node
                status["phase"] = self.pick(("Running", "Running", "Running", "Pending"))
                if self.chance(0.08):
                    status["phase"] = self.pick(("Succeeded", "Failed"))
                    return
                if self.chance(0.1):
                    meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                for key, amount in asked.items():
                    free[key] = free.get(key, 0) - amount
                if self.has("resizes") and self.chance(0.4):
                    self.resize(pod, free)
        elif self.chance(0.05):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]

    def resize(self, pod: Object, free: dict[str, float]) -> None:
        """What is in effect is more than what is wished, if the node has room for that."""
        if free["cpu"] < 1 or free["memory"] < 2**30:
            return
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        actual = {"cpu": f"{round(1000 * quantity(requests.get('cpu', '0'))) + 500}m"}
        if "memory" in requests:
            actual["memory"] = f"{round(quantity(requests['memory']) / 2**20) + 512}Mi"
        which = self.pick(("both", "actual", "allocated"))
        said: Object = {"name": "main"}
        if which != "allocated":
            said["resources"] = {"requests": actual}
        else:
            said |= {"resources": {"requests": requests}, "allocatedResources": actual}
        if which == "both":
            said["allocatedResources"] = actual
        pod["status"]["containerStatuses"] = [said]
        if self.chance(0.3):
            pod["status"]["conditions"] = [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": self.pick(("Infeasible", "Deferred")),
                }
            ]
        free["cpu"] -= 1
        free["memory"] -= 2**30


def quantity(text: str) -> float:
    units = {"m": 1e-3, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
    for unit, factor in units.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return float(text)


def requests_of(spec: Object) -> dict[str, float]:
    """At least what a pod asks for, so that nodes are not over-committed."""
    out: dict[str, float] = {}
    all_containers = (*spec["containers"], *spec.get("initContainers", ()))
    sets = [c["resources"].get("limits", {}) | c["resources"].get("requests", {}) for c in all_containers]
    for requests in (*sets, spec.get("overhead", {}), spec.get("resources", {}).get("requests", {})):
        for key, value in requests.items():
            out[key] = out.get(key, 0) + quantity(value)
    return out


def random_cluster(seed: int, themes: tuple[str, ...] | None = None) -> Object:
    """The cluster of a seed; with `themes`, of these kinds of constraints only."""
    return Maker(seed, themes).cluster()
