# SPDX-License-Identifier: Apache-2.0
"""What our side is not told, one rule at a time: each of these must make the comparison fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def without(kind: str, *path: str) -> Callable[[Object], None]:
    """Takes away a field of every object of a kind; the containers of a pod are `containers` and
    `initContainers`.
    """

    def change(item: Object) -> None:
        if item["kind"] != kind:
            return
        places = [item]
        for key in path[:-1]:
            below: list[Object] = []
            for place in places:
                value = place.get(key)
                below += value if isinstance(value, list) else [value] if value else []
            places = below
        for place in places:
            place.pop(path[-1], None)

    return change


def every(*changes: Callable[[Object], None]) -> Callable[[Object], None]:
    def change(item: Object) -> None:
        for one in changes:
            one(item)

    return change


def requests_without(*names: str) -> Callable[[Object], None]:
    """Pods that do not ask for resources of which the name begins so."""

    def change(item: Object) -> None:
        if item["kind"] != "Pod":
            return
        spec = item["spec"]
        for holder in (*spec["containers"], *spec.get("initContainers", ()), spec):
            for amounts in holder.get("resources", {}).values():
                for name in [name for name in amounts if name.startswith(names)]:
                    del amounts[name]

    return change


def limits_count_nothing(item: Object) -> None:
    without("Pod", "spec", "containers", "resources", "limits")(item)


def plenty_of_pods(item: Object) -> None:
    if item["kind"] == "Node":
        item["status"]["allocatable"]["pods"] = "1000"


def no_sidecars(item: Object) -> None:
    for container in item.get("spec", {}).get("initContainers", ()):
        container.pop("restartPolicy", None)


def spread_over_terminating(item: Object) -> None:
    if item["kind"] == "Pod" and "nodeName" in item["spec"]:
        item["metadata"].pop("deletionTimestamp", None)


def any_address(item: Object) -> None:
    without("Pod", "spec", "containers", "ports", "hostIP")(item)


def one_protocol(item: Object) -> None:
    without("Pod", "spec", "containers", "ports", "protocol")(item)


def no_host_ports(item: Object) -> None:
    if item["kind"] == "Pod":
        item["spec"].pop("hostNetwork", None)
        for list_name in ("containers", "initContainers"):
            without("Pod", "spec", list_name, "ports")(item)


def all_allocatable(item: Object) -> None:
    if item["kind"] == "Node":
        item["status"]["allocatable"] = item["status"]["allocatable"] | item["status"]["capacity"]


AFFINITY, ANTI = ("Pod", "spec", "affinity", "podAffinity"), ("Pod", "spec", "affinity", "podAntiAffinity")
SPREAD = ("Pod", "spec", "topologySpreadConstraints")

# By the rule that is left out: how, and the themes of clusters in which it matters.
MUTATIONS: dict[str, tuple[Callable[[Object], None], tuple[str, ...]]] = {
    "taints": (without("Node", "spec", "taints"), ("taints",)),
    "cordons": (every(without("Node", "spec", "unschedulable"), without("Node", "spec", "taints")),
        ("cordons",)),
    "tolerations": (without("Pod", "spec", "tolerations"), ("taints",)),
    "effects of tolerations": (without("Pod", "spec", "tolerations", "effect"), ("taints",)),
    "nodeSelector": (without("Pod", "spec", "nodeSelector"), ("selector",)),
    "node affinity": (without("Pod", "spec", "affinity", "nodeAffinity"), ("node_affinity",)),
    "matchFields": (
        without("Pod", "spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", "matchFields"),
        ("node_affinity",)),
    "host ports": (no_host_ports, ("ports",)),
    "addresses of host ports": (any_address, ("ports",)),
    "protocols of host ports": (one_protocol, ("ports",)),
    "host ports of sidecars": (without("Pod", "spec", "initContainers", "ports"), ("ports",)),
    "cpu": (requests_without("cpu"), ("resources",)),
    "memory": (requests_without("memory"), ("resources",)),
    "ephemeral-storage": (requests_without("ephemeral-storage"), ("resources",)),
    "huge pages": (requests_without("hugepages-"), ("resources",)),
    "extended resources": (requests_without("example.com/", "rdma/"), ("extended",)),
    "whole cards": (requests_without("nvidia.com/gpu", "amd.com/gpu"), ("cards",)),
    "failed cards": (all_allocatable, ("cards",)),
    "MIG instances": (requests_without("nvidia.com/mig-"), ("instances",)),
    "shared cards": (requests_without("nvidia.com/gpu.shared"), ("shared",)),
    "number of pods": (plenty_of_pods, ("pod_count",)),
    "init containers": (without("Pod", "spec", "initContainers"), ("pod_requests",)),
    "sidecars": (no_sidecars, ("pod_requests",)),
    "overhead": (without("Pod", "spec", "overhead"), ("pod_requests",)),
    "resources of the whole pod": (without("Pod", "spec", "resources"), ("pod_requests",)),
    "limits for requests": (limits_count_nothing, ("resources",)),
    "resizes": (without("Pod", "status", "containerStatuses"), ("resizes",)),
    "instances under the name of cards": (requests_without("nvidia.com/gpu"), ("parts",)),
    "replicas under the name of cards": (requests_without("nvidia.com/gpu"), ("replicas",)),
    "pod affinity": (without(*AFFINITY), ("affinity",)),
    "pod anti-affinity": (without(*ANTI), ("anti_affinity",)),
    "selectors of pod affinity": (without(*AFFINITY, REQUIRED, "labelSelector", "matchExpressions"),
        ("affinity",)),
    "namespaces of terms": (
        every(without(*AFFINITY, REQUIRED, "namespaces"), without(*ANTI, REQUIRED, "namespaces")),
        ("namespaces",)),
    "namespaceSelector": (
        every(without(*AFFINITY, REQUIRED, "namespaceSelector"), without(*ANTI, REQUIRED,
            "namespaceSelector")), ("namespaces",)),
    "labels of namespaces": (without("Namespace", "metadata", "labels", "team"), ("namespaces",)),
    "topology spread": (without(*SPREAD), ("spread",)),
    "maxSkew": (without(*SPREAD, "maxSkew"), ("spread",)),
    "minDomains": (without(*SPREAD, "minDomains"), ("spread",)),
    "nodeAffinityPolicy": (without(*SPREAD, "nodeAffinityPolicy"), ("spread_policies",)),
    "nodeTaintsPolicy": (without(*SPREAD, "nodeTaintsPolicy"), ("spread_policies",)),
    "whenUnsatisfiable": (without(*SPREAD, "whenUnsatisfiable"), ("spread",)),
    "terminating pods": (spread_over_terminating, ("spread",)),
    "volumes": (without("Pod", "spec", "volumes"), ("volumes",)),
    "zones of volumes": (without("PersistentVolume", "metadata", "labels"), ("zones",)),
    "ReadWriteOncePod": (
        every(without("PersistentVolume", "spec", "accessModes"), without("PersistentVolumeClaim", "spec",
            "accessModes")), ("claims",)),
}  # fmt: skip
