# SPDX-License-Identifier: Apache-2.0
"""Reads the pods of the release as arriving jobs, for a replay."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from .._checks import integer
from .._core.sim import SpotTrace
from .batch import MICRO, Batch, Ids, Reals, Wholes
from .figures import check_days, requested_hours
from .release import Hour, Release
from .schema import POD
from .server_hour import CLASSES
from .snapshot import PRIORITIES, WHOLE, Tally, gpus_on_a_node, read_nodes, request_of

SECONDS = 3600

COLUMNS = (
    *("pod_id", "workload_id", "gpu_spec_public", "priority_class", "job_type_public"),
    *("gpu_request", "cpu_request_cores", "used_gpu_hours", "schedule_delay_sec"),
)


class Pods:
    """Data of each pod over all hours read so far."""

    def __init__(self) -> None:
        self.ids, self.workloads, self.models = Ids(), Ids(), Ids()
        self.met = np.zeros(0, np.int64)  # hour of its first row, counted from the first hour
        # From its first row: workload, model, class, training, GPUs, cores.
        self.constant = np.zeros((6, 0), np.int64)
        self.first_used, self.used = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.delay = np.zeros(0)

    def add(self, number: int, batch: Batch) -> None:
        class_, gpus = batch.among("priority_class", CLASSES), gpus_on_a_node(batch, "gpu_request")
        at = self.ids.of(batch.text("pod_id").where((class_ >= 0) & (gpus > 0)))
        of = np.flatnonzero(at >= 0)
        size = len(self.ids)
        self.grow(size)
        constant = np.array(
            [
                self.workloads.of(batch.text("workload_id")),
                self.models.of(batch.text("gpu_spec_public")),
                class_,
                batch.among("job_type_public", ("training",)) == 0,
                gpus,
                batch.micro("cpu_request_cores"),
            ]
        )
        # Of several rows of a new pod, the first counts: it is written last.
        new = of[self.met[at[of]] < 0][::-1]
        self.constant[:, at[new]] = constant[:, new]
        self.delay[at[new]] = np.nan_to_num(batch.number("schedule_delay_sec")[new])
        self.met[at[new]] = number
        used = np.bincount(at[of], weights=batch.micro("used_gpu_hours")[of], minlength=size).astype(np.int64)
        self.used += used
        self.first_used += np.where(self.met == number, used, 0)

    def grow(self, size: int) -> None:
        more = size - len(self.met)
        self.met = np.append(self.met, np.full(more, -1))
        self.constant = np.pad(self.constant, ((0, 0), (0, more)))
        self.first_used = np.append(self.first_used, np.zeros(more, np.int64))
        self.used = np.append(self.used, np.zeros(more, np.int64))
        self.delay = np.append(self.delay, np.zeros(more))

    def arrival(self) -> Wholes:
        """The time at which it began to hold GPUs, minus its scheduling delay; in seconds since the start."""
        held = np.minimum(1, self.first_used / np.maximum(self.constant[4], 1))
        begin: Reals = SECONDS * (self.met + 1 - held)
        begin[self.met == 0] = 0
        return np.rint(np.maximum(begin - np.maximum(self.delay, 0), 0)).astype(np.int64)

    def work(self) -> Wholes:
        seconds = SECONDS * self.used / np.maximum(self.constant[4], 1)
        return np.maximum(np.rint(seconds).astype(np.int64), 1)


def read_asi_trace(
    folder: str | PathLike[str],
    *,
    days: tuple[int, int] = (109, 115),
    partial: bool = False,
    checkpoint_interval: int = 0,
) -> SpotTrace:
    """Reads servers and pods of the ASI trace's public release as HP and spot jobs, for
    `gpusched.sim.replay_spot`.

    A job arrives when its pod began to hold GPUs, minus its scheduling delay, and works for its GPU-hours
    divided by its GPUs. Pods of a training workload that appear in the same hour with the same requests,
    class and GPU model are a gang, which works as long as its longest pod. Other pods are separate jobs.
    docs/asi.md says what the tables lack, and what takes its place. Uses about 600 bytes per pod. Needs
    pyarrow.

    `folder`, `days`, `partial`: as for `read_asi_figures`.
    `checkpoint_interval`: seconds of work between checkpoints of LP jobs; 0 = no checkpoints.

    Raises InvalidInput for missing hours or columns, wrong types and values out of range; BackendError for
    unreadable files.
    """
    check_days("days", days)
    integer("checkpoint_interval", checkpoint_interval, 0, 1_000_000_000)
    release = Release(folder)
    hours = sorted(requested_hours(release, days, partial))
    pods = Pods()
    nodes: dict[str, dict[str, Any]] = {}
    for hour in hours:
        for name, node in read_nodes(release, hour, Tally()).items():
            if node["cpu_milli"] is None and name in nodes:
                node["cpu_milli"] = nodes[name]["cpu_milli"]
            nodes[name] = node
        for batch in release.batches(POD, COLUMNS, hour):
            pods.add(hours_between(hours[0], hour), batch)
    most: dict[int, int] = {}
    for node in nodes.values():
        most[node["gpu_count"]] = max(most.get(node["gpu_count"], 0), node["cpu_milli"] or 0)
    for node in nodes.values():
        if node["cpu_milli"] is None:
            node["cpu_milli"] = most[node["gpu_count"]]
    return SpotTrace(list(nodes.values()), jobs_of(pods, checkpoint_interval))


def hours_between(first: Hour, hour: Hour) -> int:
    return 24 * (hour[0] - first[0]) + hour[1] - first[1]


def jobs_of(pods: Pods, checkpoint_interval: int) -> list[dict[str, Any]]:
    """Jobs in the order of arrival; within a second, by name."""
    names, models = list(pods.ids), [*pods.models, ""]
    arrival, work = pods.arrival().tolist(), pods.work().tolist()
    jobs: dict[Sequence[Any], dict[str, Any]] = {}
    for at in np.flatnonzero((pods.met >= 0) & (pods.used > 0)).tolist():
        workload, model, class_, training, gpu_micro, cpu_micro = pods.constant[:, at].tolist()
        gang = (
            (workload, pods.met[at], model, class_, gpu_micro, cpu_micro)
            if training and workload >= 0
            else (at,)
        )
        if gang in jobs:
            job = jobs[gang]
            job["pods"] += 1
            job["arrival_s"], job["work_s"] = min(job["arrival_s"], arrival[at]), max(job["work_s"], work[at])
            continue
        gpus, share = request_of(gpu_micro)
        jobs[gang] = {
            "name": names[at],
            "gpu_count": gpus,
            "gpu_share_milli": share,
            "cpu_milli": cpu_micro // (MICRO // WHOLE),
            "memory_mib": 0,
            "gpu_models": [models[model]] if model >= 0 else [],
            "priority": PRIORITIES[CLASSES[class_]],
            "priority_class": CLASSES[class_],
            "checkpoint_interval": checkpoint_interval if CLASSES[class_] == "LP" else 0,
            "pods": 1,
            "arrival_s": arrival[at],
            "work_s": work[at],
        }
    return sorted(jobs.values(), key=lambda job: (job["arrival_s"], job["name"]))


read_asi_trace.__module__ = "gpusched.io"
