# SPDX-License-Identifier: Apache-2.0
"""Figures of requests: 8 (GPUs and cores of a job) and 10 (parts of GPUs, cores per GPU)."""

from __future__ import annotations

import numpy as np

from .._views.tables import Table
from .batch import MICRO, Batch, Ids, Wholes
from .capacity import even
from .demand import Pods, share
from .quantiles import Quantiles, distribution_table
from .release import Hour
from .schema import JOB_TYPES
from .server_hour import CLASSES, ServerHour, total


def ceil_div(a: Wholes, b: Wholes) -> Wholes:
    return -(-a // b)


class Jobs:
    """Figure 8: GPUs and cores of each workload in the (earliest) hour with its largest request for GPUs.

    Memory grows with the workloads, about 200 bytes each.
    """

    columns = ("workload_id", "is_genai_request", "gpu_request", "cpu_request_cores")

    def __init__(self) -> None:
        self.ids = Ids()
        self.most = np.zeros((3, 0), np.int64)  # GPUs, cores, generative AI: largest hour so far
        self.now = np.zeros((3, 0), np.int64)  # current hour

    def add(self, hour: Hour, batch: Batch) -> None:
        at = self.ids.of(batch.text("workload_id").where(batch.micro("gpu_request") > 0))
        of, size = at >= 0, len(self.ids)
        genai = batch.truth("is_genai_request").astype(np.int64)
        amounts = (batch.micro("gpu_request"), batch.micro("cpu_request_cores"), genai)
        added = np.array([total(at[of], amount[of], size) for amount in amounts])
        added[:, : self.now.shape[1]] += self.now
        self.now = added

    def close(self, sums: ServerHour) -> None:
        grown = np.zeros_like(self.now)
        grown[:, : self.most.shape[1]] = self.most
        self.most = np.where(self.now[0] > grown[0], self.now, grown)
        self.now = np.zeros_like(self.now)

    def tables(self) -> dict[str, Table]:
        gpus, cores, genai = self.most
        found = {}
        for name, of in (("all", gpus > 0), ("genai", (gpus > 0) & (genai > 0))):
            for measure, amounts in (("gpus", gpus), ("cores", cores)):
                found[name, measure] = Quantiles()
                found[name, measure].add(amounts[of] / MICRO)
        return {"fig8": distribution_table("jobs", found)}


class Fractions(Pods):
    """Figure 10, left: share of HP pods with GPUs that request a part of a GPU; means over even hours."""

    columns = ("priority_class", "gpu_request")

    def __init__(self) -> None:
        self.sums: dict[Hour, Wholes] = {}

    def add(self, hour: Hour, batch: Batch) -> None:
        if not even(hour):
            return
        asked = batch.micro("gpu_request")
        gpus = asked[(batch.among("priority_class", CLASSES) == 0) & (asked > 0)]
        part = gpus[gpus < MICRO]
        self.sums[hour] = self.sums.get(hour, 0) + np.array([len(gpus), len(part), gpus.sum(), part.sum()])

    def tables(self) -> dict[str, Table]:
        shares = [
            (share(part, pods), share(part_gpus, gpus))
            for pods, part, gpus, part_gpus in self.sums.values()
            if pods
        ]
        row = [float(np.mean(column)) for column in zip(*shares)]
        return {"fig10_left": Table({"pods_pct": "number", "gpus_pct": "number"}, [row] if row else [])}


class CoresPerGpu(Pods):
    """Figure 10, right: cores per GPU of a pod, rounded up, by job type, in even hours."""

    columns = ("job_type_public", "gpu_request", "cpu_request_cores")

    def __init__(self) -> None:
        self.found = {(name, "cores_per_gpu"): Quantiles() for name in JOB_TYPES}

    def add(self, hour: Hour, batch: Batch) -> None:
        if not even(hour):
            return
        types, gpus = batch.among("job_type_public", JOB_TYPES), batch.micro("gpu_request")
        for at, quantiles in enumerate(self.found.values()):
            of = (types == at) & (gpus > 0)
            whole = ceil_div(gpus[of], np.full(of.sum(), MICRO))
            quantiles.add(ceil_div(batch.micro("cpu_request_cores")[of], whole * MICRO).astype(float))

    def tables(self) -> dict[str, Table]:
        return {"fig10_right": distribution_table("job_type", self.found)}
