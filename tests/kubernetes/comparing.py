# SPDX-License-Identifier: Apache-2.0
"""Compares what gpusched calls feasible with what kube-scheduler's own filters say, pod by pod and node by
node.
"""

from __future__ import annotations

import collections
import copy
import gzip
import json
import os
import pathlib
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gpusched as gs

Object = dict[str, Any]
ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = pathlib.Path(os.environ.get("GPUSCHED_KUBERNETES_ORACLE", ROOT / "build/kubernetes/oracle"))


def asked_for(objects: Object) -> list[str]:
    """The pods that kube-scheduler could have to place: neither ended nor on their way out, nor on a node
    that is not there.

    Pods of which a resize is under way only count for others: elsewhere they would ask for what is wished.
    """
    nodes = {item["metadata"]["name"] for item in objects["items"] if item["kind"] == "Node"}
    return [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in objects["items"]
        if pod["kind"] == "Pod"
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"].get("nodeName") in {*nodes, None}
        and not any(
            "allocatedResources" in c or "resources" in c for c in pod["status"].get("containerStatuses", ())
        )
    ]


def ask_oracle(
    cases: Iterable[tuple[Any, Object]],
) -> Iterator[tuple[Object, dict[str, dict[str, dict[str, str]]]]]:
    """For each case (id, List) the List, and by pod and node the plugins that refuse with their reasons."""
    process = subprocess.Popen([str(ORACLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    asked: collections.deque[tuple[Any, Object]] = collections.deque()
    failed: list[BaseException] = []

    def write() -> None:
        assert process.stdin is not None
        try:
            for number, objects in cases:
                asked.append((number, objects))
                process.stdin.write(
                    json.dumps({"id": number, "objects": objects, "pods": asked_for(objects)}) + "\n"
                )
            process.stdin.close()
        except BaseException as error:
            failed.append(error)
            process.kill()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for line in process.stdout:
        answer = json.loads(line)
        number, objects = asked.popleft()
        if "error" in answer or answer["id"] != number:
            raise RuntimeError(f"case {number}: the oracle says {answer.get('error', 'another case')}")
        yield objects, {found["pod"]: found["refused"] for found in answer.get("answers") or ()}
    writer.join()
    if failed:
        raise failed[0]
    if process.wait() != 0:
        raise RuntimeError(f"the oracle ended with status {process.returncode}")


def ask_gpusched(objects: Object) -> dict[str, dict[str, str]]:
    """By pod and node the obstacle, or "none"; a pod that runs is first taken off its node."""
    cluster = gs.io.read_kubernetes(objects, open_unready_nodes=True).cluster
    nodes = cluster.nodes.name
    return {
        task: dict(zip(nodes, gs.allocation.find_obstacles(cluster, task, old_copy="leaves"), strict=True))
        for task in cluster.tasks.name
    }


@dataclass
class Difference:
    """One pair of which the two say different things."""

    case: Any
    pod: str
    node: str
    ours: str
    theirs: dict[str, str]

    def __str__(self) -> str:
        theirs = ", ".join(f"{plugin} ({reason})" for plugin, reason in self.theirs.items()) or "feasible"
        place = f"case {self.case}, pod {self.pod}, node {self.node}"
        return f"{place}: gpusched says {self.ours}, kube-scheduler {theirs}"


@dataclass
class Outcome:
    """What a comparison found."""

    cases: int = 0
    pairs: int = 0
    feasible: int = 0
    sole: collections.Counter[str] = field(
        default_factory=collections.Counter
    )  # cases in which a filter alone refuses a pair
    sole_pairs: collections.Counter[str] = field(default_factory=collections.Counter)
    differences: list[Difference] = field(default_factory=list)
    left_out: collections.Counter[str] = field(
        default_factory=collections.Counter
    )  # pairs of the closed list

    def report(self) -> str:
        lines = [
            f"{self.cases} clusters, {self.pairs} pairs of pod and node, {self.feasible} feasible, "
            f"{len(self.differences)} differences"
        ]
        for plugin, count in sorted(self.sole_pairs.items()):
            lines.append(f"  {plugin} alone refuses {count} pairs in {self.sole[plugin]} clusters")
        lines += [f"  not compared, {why}: {count} pairs" for why, count in sorted(self.left_out.items())]
        return "\n".join(lines + [f"  {difference}" for difference in self.differences[:20]])


def compare(
    cases: Iterable[tuple[Any, Object]],
    ours: Callable[[Object], dict[str, dict[str, str]]] = ask_gpusched,
    excused: Callable[[Object], dict[tuple[str, str], str]] = lambda objects: {},
    until: int | None = None,
) -> Outcome:
    """Compares all pairs of all cases.

    `excused` names pairs that are not compared, and why. Stops at `until` differences.
    """
    out = Outcome()
    numbers: collections.deque[Any] = collections.deque()

    def noted() -> Iterator[tuple[Any, Object]]:
        for number, objects in cases:
            numbers.append(number)
            yield number, objects

    for objects, theirs in ask_oracle(noted()):
        number = numbers.popleft()
        out.cases += 1
        found = ours(objects)
        if missing := set(theirs) - set(found):
            raise AssertionError(f"case {number}: not in our snapshot: {sorted(missing)}")
        excuses, alone = excused(objects), set()
        for pod, refusals in theirs.items():
            for node, obstacle in found[pod].items():
                if why := excuses.get((pod, node)):
                    out.left_out[why] += 1
                    continue
                refused = refusals.get(node, {})
                out.pairs += 1
                out.feasible += not refused
                if len(refused) == 1:
                    out.sole_pairs.update(refused.keys())
                    alone.update(refused)
                if (obstacle == "none") != (not refused):
                    out.differences.append(Difference(number, pod, node, obstacle, refused))
        out.sole.update(alone)
        if until is not None and len(out.differences) >= until:
            break
    return out


def dump() -> Object | None:
    """What kubectl printed for a cluster of 60 nodes, where it is present."""
    folder = os.environ.get("GPUSCHED_DATA")
    path = pathlib.Path(folder or ROOT.parent / "shared/data") / "kubernetes-1.36/all.json.gz"
    if not path.exists():
        return None
    with gzip.open(path) as file:
        return json.load(file)


def changed(objects: Object, change: Callable[[Object], None]) -> Object:
    """A copy of which `change` has altered every object."""
    out = copy.deepcopy(objects)
    for item in out["items"]:
        change(item)
    return out


# Sets of constraints
# -----------------------------------------------------------------------------------------------------------

# The filters of kube-scheduler that stand for a constraint of a table of `why`. Volumes count as node affinity,
# because the snapshot holds the nodes that reach a volume as node affinity or as a resource. A cordoned node mostly
# has a taint, too, that stands for the cordon.
RESOURCES = ("gpu", "gpu_model", "failed_gpus", "gpu_memory", "device", "cpu", "memory", "pods")
AFFINITY = ("node_selector", "node_affinity", "volume")
FILTERS: dict[str, frozenset[str]] = {
    "cordoned": frozenset({"NodeUnschedulable"}),
    "taint": frozenset({"TaintToleration"}),
    "not_ready": frozenset({"TaintToleration"}),
    **dict.fromkeys(AFFINITY, frozenset({"NodeAffinity"})),
    **dict.fromkeys(RESOURCES, frozenset({"NodeResourcesFit"})),
    "port": frozenset({"NodePorts"}),
    "volume_in_use": frozenset({"VolumeRestrictions"}),
    "spread": frozenset({"PodTopologySpread"}),
    "avoid": frozenset({"InterPodAffinity"}),
    "near": frozenset({"InterPodAffinity"}),
}
ALIKE = {"VolumeBinding": "NodeAffinity", "VolumeZone": "NodeAffinity"}


def filters_of(constraint: str) -> frozenset[str]:
    return frozenset({"NodeResourcesFit"}) if constraint.startswith("resource ") else FILTERS[constraint]


def compare_sets(cases: Iterable[tuple[Any, Object]]) -> tuple[int, list[str]]:
    """Compares, for each pending pod and node, the constraints of `why` with the filters that refuse alone.

    Returns the number of pairs, and the differences.
    """
    pairs, differences = 0, []
    for objects, theirs in ask_oracle(cases):
        cluster = gs.io.read_kubernetes(objects, open_unready_nodes=True).cluster
        pending = {task.name for task in cluster.tasks if task.node is None}
        excused = excuses(objects)
        for pod in sorted(pending & set(theirs)):
            whole = gs.why(cluster, pod, time_limit=0)
            for kind in whole.kinds:
                if sum(row.nodes_first for row in kind.table) + kind.nodes_fit != len(cluster.nodes):
                    differences.append(f"{kind.pod}: the first column and the nodes that fit do not add up")
            for node in cluster.nodes.name:
                if (pod, node) in excused:
                    continue
                table = gs.why(cluster, pod, on=node, time_limit=0).kinds[0].table
                ours = frozenset().union(*(filters_of(row.constraint) for row in table))
                refused = frozenset(ALIKE.get(name, name) for name in theirs[pod].get(node, {}))
                if "NodeUnschedulable" in ours and "TaintToleration" not in ours:
                    refused -= {"TaintToleration"}
                pairs += 1
                if ours != refused:
                    names = [row.constraint for row in table]
                    differences.append(f"{pod} on {node}: {names}, but kube-scheduler {sorted(refused)}")
    return pairs, differences


# The closed list
# -----------------------------------------------------------------------------------------------------------


def excuses(objects: Object) -> dict[tuple[str, str], str]:
    """Pairs of pod and node that docs/kubernetes-conformance.md excludes from the comparison, with the
    reason.
    """
    out = {}
    nodes = [item["metadata"]["name"] for item in objects["items"] if item["kind"] == "Node"]
    for pod in objects["items"]:
        if pod["kind"] == "Pod" and any(selects_the_unlabelled(term) for term in terms_of(pod)):
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for node in nodes:
                out[name, node] = "a namespaceSelector of the pod itself that holds without labels"
    return out


def terms_of(pod: Object) -> list[Object]:
    affinity = pod["spec"].get("affinity") or {}
    return [
        term
        for kind in ("podAffinity", "podAntiAffinity")
        for term in (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    ]


def selects_the_unlabelled(term: Object) -> bool:
    """kube-scheduler 1.36 forgets the namespaces that such a selector selected, and takes it for one of all
    namespaces.
    """
    selector = term.get("namespaceSelector") or {}
    conditions = selector.get("matchExpressions") or []
    return (
        bool(conditions)
        and not selector.get("matchLabels")
        and all(c["operator"] in ("NotIn", "DoesNotExist") for c in conditions)
    )
