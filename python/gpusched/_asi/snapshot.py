# SPDX-License-Identifier: Apache-2.0
"""Reads one hour of the release as a snapshot."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from typing import Any, Literal, NamedTuple

from .._checks import integer
from .._core.io import ClusterReading, ReadingReport, ReadingRow
from ..errors import InvalidInput
from ..model import Cluster
from .batch import MICRO, Batch, Wholes
from .release import LAST_DAY, Hour, Release
from .schema import POD, SERVER
from .server_hour import SERVER_COLUMNS, gpus_of_servers

Fidelity = Literal["exact", "approximated", "ignored", "left_out"]
Errs = Literal["neither", "too_strict", "too_lax", "either"]

EXAMPLES = 3


class Tally:
    """Collects the reading report: counts each kind of observation, with some example names."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, Fidelity, Errs, str], tuple[list[int], list[str]]] = {}

    def add(
        self,
        kind: str,
        subject: str,
        name: str,
        fidelity: Fidelity = "exact",
        errs: Errs = "neither",
        how: str = "",
    ) -> None:
        count, examples = self._rows.setdefault((kind, subject, fidelity, errs, how), ([0], []))
        count[0] += 1
        if len(examples) < EXAMPLES:
            examples.append(name)

    def report(self) -> ReadingReport:
        return ReadingReport(
            [
                ReadingRow(
                    kind=kind,
                    what=subject,
                    fidelity=fidelity,
                    errs=errs,
                    count=count[0],
                    how=how,
                    examples=examples,
                )
                for (kind, subject, fidelity, errs, how), (count, examples) in self._rows.items()
            ]
        )


WHOLE = 1000
"""A whole GPU or core in thousandths."""


class FreeCapacity:
    """Free capacity of each GPU and of the cores of a server, with the capacity that Standby pods lend
    (docs/model.md).

    `firm` is not claimed, `lendable` is not consumed.
    """

    def __init__(self, gpus: int, cpu_milli: int) -> None:
        self.firm, self.lendable = [WHOLE] * gpus, [WHOLE] * gpus
        self.firm_cpu, self.lendable_cpu = cpu_milli, cpu_milli

    def take(
        self, gpus: int, share_milli: int, cpu_milli: int, *, spot: bool, standby: bool
    ) -> list[int] | None:
        """Takes GPUs for a pod; None if it does not fit.

        A spot pod needs capacity that is not consumed, and takes lent GPUs first. Other pods need capacity
        that is also not claimed. A request for a part of a GPU takes the GPU with the least free capacity.
        """
        free = self.lendable if spot else [min(pair) for pair in zip(self.firm, self.lendable)]
        if cpu_milli > (self.lendable_cpu if spot else min(self.firm_cpu, self.lendable_cpu)):
            return None
        fit = [at for at, left in enumerate(free) if left >= share_milli]
        if len(fit) < gpus:
            return None
        fit.sort(key=lambda at: (free[at], self.firm[at] if spot else 0, at))
        chosen = sorted(fit[:gpus])
        for at in chosen:
            self.firm[at] -= 0 if spot else share_milli
            self.lendable[at] -= 0 if standby else share_milli
        self.firm_cpu -= 0 if spot else cpu_milli
        self.lendable_cpu -= 0 if standby else cpu_milli
        return chosen


PRIORITIES = {"HP": 1000, "Other": 500, "LP": 200}
CLASSES = {"HP": "HP", "LP": "LP", "Other": "other"}
MOST_GPUS = 64
"""Most GPUs of a node, and therefore of a pod."""


class Pod(NamedTuple):
    """A row of the table of pods."""

    name: str | None
    workload: str | None
    server: str | None
    state: str | None
    class_: str
    gpu_micro: int
    cpu_milli: int
    part: float  # part of the hour in which it held its GPUs


def gpus_on_a_node(batch: Batch, name: str) -> Wholes:
    """A column of GPUs in millionths: capacities of servers or requests of pods."""
    gpus = gpus_of_servers(batch) if name == "gpu_count" else batch.micro(name)
    if len(gpus) and gpus.max() > MOST_GPUS * MICRO:
        found = f"{batch.source}: {name}: {gpus.max() / MICRO:g}"
        raise InvalidInput(f"{found}; expected at most {MOST_GPUS}, the limit of a node")
    return gpus


def request_of(gpu_micro: int) -> tuple[int, int]:
    """The number of GPUs, and thousandths of each."""
    gpus = -(-gpu_micro // MICRO)
    return gpus, max(1, round(gpu_micro / 1000)) if 0 < gpu_micro < MICRO else WHOLE


def texts(batch: Batch, name: str) -> list[str | None]:
    column = batch.text(name)
    known: list[str | None] = [*column.texts, None]
    return [known[code] for code in column.codes.tolist()]


def pods_of(batch: Batch) -> Iterator[Pod]:
    asked, used = gpus_on_a_node(batch, "gpu_request"), batch.micro("used_gpu_hours")
    part = used / (asked + (asked == 0))
    columns = (
        texts(batch, name)
        for name in ("pod_id", "workload_id", "server_id", "state_public", "priority_class")
    )
    cpu = batch.micro("cpu_request_cores") // (MICRO // WHOLE)
    for name, workload, server, state, class_, *rest in zip(
        *columns, asked.tolist(), cpu.tolist(), part.tolist()
    ):
        yield Pod(name, workload, server, state, class_ or "Other", *rest)


def read_asi_hour(folder: str | PathLike[str], day: int, hour: int) -> ClusterReading:
    """Reads one hour of the ASI trace's public release as a snapshot, with a report on each part.

    The snapshot has the servers with GPUs, cores, cluster and access switch, and the pods with requests,
    class, workload (as job), server and Standby state. Spot pods run on GPUs that Standby pods lend. A row
    covers an hour, so all pods of a server may not fit at once; docs/asi.md says which of them are left out.
    The tables lack GPU indices, memory and times; the report says how they are replaced. With
    `accounting="hp"`, `gpusched.fragmentation` computes Figures 9, 13, 14 and 16. Needs pyarrow.

    `folder`: as for `read_asi_figures`. `day`: since the trace began. `hour`: hour of the day.

    Raises InvalidInput for missing hours or columns, wrong types and values out of range; BackendError for
    unreadable files.
    """
    integer("day", day, 0, LAST_DAY)
    integer("hour", hour, 0, 23)
    release, at, tally = Release(folder), (day, hour), Tally()
    release.require([at], (POD, SERVER))
    nodes = read_nodes(release, at, tally)
    columns = ("pod_id", "workload_id", "server_id", "state_public", "priority_class")
    batches = release.batches(POD, (*columns, "gpu_request", "cpu_request_cores", "used_gpu_hours"), at)
    pods = [pod for batch in batches for pod in pods_of(batch) if keeps(pod, nodes, tally)]
    unknown_cores(nodes, pods, tally)
    document = {
        "format": "gpusched.cluster",
        "version": 2,
        "now": 3600 * (24 * day + hour),
        "nodes": list(nodes.values()),
        "tasks": list(place(pods, nodes, tally)),
    }
    return ClusterReading(Cluster.from_json(document), tally.report())


def read_nodes(release: Release, at: Hour, tally: Tally) -> dict[str, dict[str, Any]]:
    """Nodes by name; the cores are None if the table does not contain them."""
    nodes: dict[str, dict[str, Any]] = {}
    switches: dict[str, str | None] = {}
    for batch in release.batches(SERVER, SERVER_COLUMNS, at):
        gpus, cores = gpus_on_a_node(batch, "gpu_count").tolist(), batch.number("cpu_capacity_cores").tolist()
        columns = (texts(batch, name) for name in ("server_id", "cluster_id", "asw_id", "gpu_spec_public"))
        for name, cluster, switch, model, count, core in zip(*columns, gpus, cores):
            if name is None or name in nodes:
                tally.add("Server", "row", str(name), "left_out", how="the name is null or a duplicate")
                continue
            tally.add("Server", "GPUs, cores, model, cluster", name)
            if switch is None:
                tally.add(
                    "Server",
                    "access switch",
                    name,
                    "approximated",
                    how="unknown: a separate switch is assumed",
                )
            switches[name] = switch
            nodes[name] = {
                "name": name,
                "gpu_model": model,
                "gpu_count": count // MICRO,
                "cpu_milli": None if math.isnan(core) else round(WHOLE * core),
                "memory_mib": 0,
                "network": [] if cluster is None else [cluster],
            }
    clusters = {switches[name]: node["network"][0] for name, node in nodes.items() if node["network"]}
    for name, switch in switches.items():
        if switch is None:
            continue
        if not nodes[name]["network"]:
            nodes[name]["network"] = [clusters.get(switch, f"cluster of {switch}")]
            how = "unknown: the cluster of another server below its switch, or a separate cluster"
            tally.add("Server", "cluster", name, "approximated", how=how)
        nodes[name]["network"].append(f"{nodes[name]['network'][0]}/{switch}")
    return nodes


def keeps(pod: Pod, nodes: dict[str, Any], tally: Tally) -> bool:
    """Whether the pod exists at the end of the hour."""
    name = str(pod.name)
    if pod.name is None:
        tally.add("Pod", "name", name, "left_out", "too_lax", "null")
    elif pod.state in ("Succeeded", "Failed"):
        tally.add("Pod", "end", name, "left_out", how="ended within the hour")
    elif pod.state != "Pending" and pod.server not in nodes:
        tally.add("Pod", "server", name, "left_out", "too_lax", "null, or not in the table of servers")
    else:
        return True
    return False


def unknown_cores(nodes: dict[str, dict[str, Any]], pods: list[Pod], tally: Tally) -> None:
    missing = {name: 0 for name, node in nodes.items() if node["cpu_milli"] is None}
    for pod in pods:
        if pod.server in missing:
            missing[pod.server] += pod.cpu_milli
    for name, cores in missing.items():
        nodes[name]["cpu_milli"] = cores
        tally.add(
            "Server", "cores", name, "approximated", "too_strict", "unknown: the cores that its pods request"
        )


def place(pods: list[Pod], nodes: dict[str, dict[str, Any]], tally: Tally) -> Iterator[dict[str, Any]]:
    """Tasks, in the order in which they get their capacity."""
    free = {name: FreeCapacity(node["gpu_count"], node["cpu_milli"]) for name, node in nodes.items()}
    seen: set[str] = set()
    for pod in sorted(pods, key=lambda pod: (pod.class_ == "LP", -pod.part, -pod.gpu_micro, pod.name or "")):
        name = str(pod.name)
        if name in seen:
            tally.add("Pod", "second row", name, "left_out", how="its other row held the GPUs longer")
            continue
        gpus, share = request_of(pod.gpu_micro)
        spot, standby = pod.class_ == "LP", pod.state == "Standby" and pod.class_ == "HP"
        task: dict[str, Any] = {
            "name": name,
            "job": pod.workload,
            "gpu_count": gpus,
            "gpu_share_milli": share,
            "cpu_milli": pod.cpu_milli,
            "memory_mib": 0,
            "priority": PRIORITIES[pod.class_],
            "priority_class": CLASSES[pod.class_],
        }
        if pod.state != "Pending" and pod.server is not None:
            taken = free[pod.server].take(gpus, share, pod.cpu_milli, spot=spot, standby=standby)
            if taken is None:
                how = "does not fit next to the others: not all pods of an hour run at the same time"
                tally.add("Pod", "room", name, "left_out", how=how)
                continue
            task |= {"node": pod.server, "gpus": taken, "standby": standby}
        if gpus > 0 and pod.server in nodes and nodes[pod.server]["gpu_model"] is not None:
            task["gpu_models"] = [nodes[pod.server]["gpu_model"]]
        seen.add(name)
        count(pod, name, gpus, tally)
        yield task


def count(pod: Pod, name: str, gpus: int, tally: Tally) -> None:
    tally.add("Pod", "requests, class, server, workload, Standby", name)
    tally.add("Pod", "priority", name, "approximated", how="HP 1000, other 500, LP 200")
    tally.add("Pod", "memory", name, "ignored", "too_lax", "not in the tables")
    tally.add("Pod", "start, checkpoints", name, "ignored", "either", "not in the tables")
    if gpus > 0:
        tally.add(
            "Pod",
            "GPU models",
            name,
            "approximated",
            "too_strict",
            "its current GPU model: over 99 % of the jobs request one model",
        )
        tally.add("Pod", "which GPUs", name, "approximated", how="assigned: the tables do not contain them")
    if pod.state == "Standby" and pod.class_ != "HP":
        tally.add(
            "Pod",
            "Standby, not HP",
            name,
            "approximated",
            "too_strict",
            "lends no capacity: only HP tasks do",
        )
    if gpus > 1 and pod.gpu_micro % MICRO:
        tally.add(
            "Pod", "part of several GPUs", name, "approximated", "too_strict", "rounded up to whole GPUs"
        )


read_asi_hour.__module__ = "gpusched.io"
