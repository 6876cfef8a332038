"""The snapshot of an hour of the release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from typing import Any, NamedTuple

from .._core.io import ClusterReading
from .._drawing.axes import require_range
from ..errors import InvalidInput
from ..model import Cluster
from .batch import MICRO, Batch, Wholes
from .release import LAST_DAY, Hour, Release
from .room import WHOLE, Room
from .schema import POD, SERVER
from .server_hour import SERVER_COLUMNS, gpus_of_servers
from .tally import Tally

PRIORITIES = {"HP": 1000, "Other": 500, "LP": 200}
CLASSES = {"HP": "HP", "LP": "LP", "Other": "other"}
MOST_GPUS = 64
"""Of a node, and so of a pod."""


class Pod(NamedTuple):
    """A row of the table of pods."""

    name: str | None
    workload: str | None
    server: str | None
    state: str | None
    class_: str
    gpu_micro: int
    cpu_milli: int
    part: float  # of the hour in which it held its GPUs


def gpus_on_a_node(batch: Batch, name: str) -> Wholes:
    """A column of GPUs in millionths: of servers, or what pods ask for."""
    gpus = gpus_of_servers(batch) if name == "gpu_count" else batch.micro(name)
    if len(gpus) and gpus.max() > MOST_GPUS * MICRO:
        raise InvalidInput(f"{batch.source}: {name}: {gpus.max() / MICRO:g}; expected at most {MOST_GPUS}, the GPUs of a node")
    return gpus


def request_of(gpu_micro: int) -> tuple[int, int]:
    """GPUs, and thousandths of each."""
    gpus = -(-gpu_micro // MICRO)
    return gpus, max(1, round(gpu_micro / 1000)) if 0 < gpu_micro < MICRO else WHOLE


def texts(batch: Batch, name: str) -> list[str | None]:
    column = batch.text(name)
    known: list[str | None] = [*column.texts, None]
    return [known[code] for code in column.codes.tolist()]


def pods_of(batch: Batch) -> Iterator[Pod]:
    asked, used = gpus_on_a_node(batch, "gpu_request"), batch.micro("used_gpu_hours")
    part = used / (asked + (asked == 0))
    columns = (texts(batch, name) for name in ("pod_id", "workload_id", "server_id", "state_public", "priority_class"))
    cpu = batch.micro("cpu_request_cores") // (MICRO // WHOLE)
    for name, workload, server, state, class_, *rest in zip(*columns, asked.tolist(), cpu.tolist(), part.tolist()):
        yield Pod(name, workload, server, state, class_ or "Other", *rest)


def read_asi_hour(folder: str | PathLike[str], day: int, hour: int) -> ClusterReading:
    """The snapshot of one hour of the ASI trace's public release, and how each part of it was read.

    Servers have their GPUs, cores, cluster and access switch; pods their requests, class (HP, LP, other), workload (as job), server
    and Standby state. Spot pods run on the GPUs that Standby pods lend. A row of the table covers an hour, in which more pods can
    have run than there is room at any time: those that ended are left out, and so are those that find no room beside the others, of
    which HP and other pods come before LP, and those that held their GPUs longest first. Which GPUs pods have, memory, and times
    are not in the tables; the report says what stands in the snapshot instead. `gpusched.fragmentation` computes Figures 9, 13, 14
    and 16 of a snapshot with `accounting="hp"`. Needs pyarrow.

    `folder`: as for `read_asi_figures`. `day`, `hour`: since the trace began, and of the day.

    Raises InvalidInput for an hour or columns that are missing, columns of another type, values out of range; BackendError for
    files that cannot be read.
    """
    require_range("day", day, 0, LAST_DAY)
    require_range("hour", hour, 0, 23)
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
    """By name; null where the table does not say the cores."""
    nodes: dict[str, dict[str, Any]] = {}
    switches: dict[str, str | None] = {}
    for batch in release.batches(SERVER, SERVER_COLUMNS, at):
        gpus, cores = gpus_on_a_node(batch, "gpu_count").tolist(), batch.number("cpu_capacity_cores").tolist()
        columns = (texts(batch, name) for name in ("server_id", "cluster_id", "asw_id", "gpu_spec_public"))
        for name, cluster, switch, model, count, core in zip(*columns, gpus, cores):
            if name is None or name in nodes:
                tally.met("Server", "row", str(name), "left_out", how="its name is null, or was there before")
                continue
            tally.met("Server", "GPUs, cores, model, cluster", name)
            if switch is None:
                tally.met("Server", "access switch", name, "approximated", how="unknown: it is a switch of its own")
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
            how = "unknown: that of another server below its switch, else one of that switch alone"
            tally.met("Server", "cluster", name, "approximated", how=how)
        nodes[name]["network"].append(f"{nodes[name]['network'][0]}/{switch}")
    return nodes


def keeps(pod: Pod, nodes: dict[str, Any], tally: Tally) -> bool:
    """Whether the pod is there at the end of the hour."""
    name = str(pod.name)
    if pod.name is None:
        tally.met("Pod", "name", name, "left_out", "too_lax", "is null")
    elif pod.state in ("Succeeded", "Failed"):
        tally.met("Pod", "end", name, "left_out", how="ended within the hour")
    elif pod.state != "Pending" and pod.server not in nodes:
        tally.met("Pod", "server", name, "left_out", "too_lax", "is null, or not in the table of servers")
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
        tally.met("Server", "cores", name, "approximated", "too_strict", "unknown: as many as its pods ask for")


def place(pods: list[Pod], nodes: dict[str, dict[str, Any]], tally: Tally) -> Iterator[dict[str, Any]]:
    """Tasks, in the order in which they get room."""
    rooms = {name: Room(node["gpu_count"], node["cpu_milli"]) for name, node in nodes.items()}
    seen: set[str] = set()
    for pod in sorted(pods, key=lambda pod: (pod.class_ == "LP", -pod.part, -pod.gpu_micro, pod.name or "")):
        name = str(pod.name)
        if name in seen:
            tally.met("Pod", "second row", name, "left_out", how="the row with which it is in the snapshot held its GPUs longer")
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
            taken = rooms[pod.server].take(gpus, share, pod.cpu_milli, spot=spot, standby=standby)
            if taken is None:
                tally.met("Pod", "room", name, "left_out", how="no room beside the others: not all pods of an hour run at once")
                continue
            task |= {"node": pod.server, "gpus": taken, "standby": standby}
        if gpus > 0 and pod.server in nodes and nodes[pod.server]["gpu_model"] is not None:
            task["gpu_models"] = [nodes[pod.server]["gpu_model"]]
        seen.add(name)
        count(pod, name, gpus, tally)
        yield task


def count(pod: Pod, name: str, gpus: int, tally: Tally) -> None:
    tally.met("Pod", "requests, class, server, workload, Standby", name)
    tally.met("Pod", "priority", name, "approximated", how="HP 1000, other 500, LP 200")
    tally.met("Pod", "memory", name, "ignored", "too_lax", "not in the tables")
    tally.met("Pod", "start, checkpoints", name, "ignored", "either", "not in the tables")
    if gpus > 0:
        tally.met("Pod", "GPU models", name, "approximated", "too_strict", "the one that it runs on: over 99 % of the jobs pin one")
        tally.met("Pod", "which GPUs", name, "approximated", how="assigned: the tables do not say it")
    if pod.state == "Standby" and pod.class_ != "HP":
        tally.met("Pod", "Standby, not HP", name, "approximated", "too_strict", "lends nothing: only HP tasks do")
    if gpus > 1 and pod.gpu_micro % MICRO:
        tally.met("Pod", "part of several GPUs", name, "approximated", "too_strict", "rounded up to whole GPUs")


read_asi_hour.__module__ = "gpusched.io"
