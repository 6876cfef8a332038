# SPDX-License-Identifier: Apache-2.0
"""Figures of usage: 7 (running times), 11 (pods) and 12 (network)."""

from __future__ import annotations

import numpy as np

from .._views.tables import Table
from .batch import MICRO, Batch, Ids, Reals
from .demand import Pods, counts_as_ready, sm_share
from .quantiles import Quantiles, distribution_table
from .release import Hour, Release
from .schema import EXECUTION, JOB_TYPES, MODEL_TYPES, NETWORK
from .server_hour import ServerHour

NETWORK_GPUS = 8
"""Number of GPUs of the servers in Figure 12."""

LEAST_GIBPS = 0.001
"""Traffic up to this value does not count."""

SERVER_JOBS = {
    "online_inference": ("online_inference",),
    "offline_inference": ("offline_inference",),
    "training": ("training",),
    "offline_inference,online_inference": ("offline_inference", "online_inference"),
    "offline_inference,training": ("offline_inference", "training"),
    "dev": ("dev",),
}
"""Sets of job types on the servers of Figure 12."""


class Executions:
    """Figure 7: running times in hours (except negative ones) by job type (left) and model type (right)."""

    columns = ("job_type_public", "model_type_public", "gpu_request", "duration_hours")

    def __init__(self, release: Release) -> None:
        self.jobs = {(name, "hours"): Quantiles() for name in JOB_TYPES}
        self.models = {(name, "hours"): Quantiles() for name in MODEL_TYPES}
        for batch in release.batches(EXECUTION, self.columns):
            hours = batch.number("duration_hours")
            counted = (hours >= 0) & (batch.micro("gpu_request") > 0)
            for found, column, names in (
                (self.jobs, "job_type_public", JOB_TYPES),
                (self.models, "model_type_public", MODEL_TYPES),
            ):
                group = batch.among(column, names)
                for at, quantiles in enumerate(found.values()):
                    quantiles.add(hours[counted & (group == at)])

    def tables(self) -> dict[str, Table]:
        return {
            "fig7_left": distribution_table("job_type", self.jobs),
            "fig7_right": distribution_table("model_type", self.models),
        }


class Utilisation(Pods):
    """Figure 11: utilisation of ready pods with GPUs, in each hour, by job type."""

    columns = (
        *("job_type_public", "ready_status", "gpu_request"),
        *("avg_gpu_sm_util", "avg_gpu_mem_gib", "avg_cpu_request_util", "avg_memory_util"),
    )

    def __init__(self) -> None:
        measures = ("cpu", "memory", "sm", "gpu_memory_gib")
        self.found = {(name, measure): Quantiles() for name in JOB_TYPES for measure in measures}

    def add(self, hour: Hour, batch: Batch) -> None:
        types, ready = batch.among("job_type_public", JOB_TYPES), counts_as_ready(batch)
        measures: dict[str, Reals] = {
            "cpu": batch.number("avg_cpu_request_util"),
            "memory": batch.number("avg_memory_util"),
            "sm": sm_share(batch),
            "gpu_memory_gib": batch.number("avg_gpu_mem_gib"),
        }
        for at, name in enumerate(JOB_TYPES):
            for measure, numbers in measures.items():
                self.found[name, measure].add(numbers[ready & (types == at)])

    def tables(self) -> dict[str, Table]:
        return {"fig11": distribution_table("job_type", self.found)}


class Traffic:
    """Figure 12: average traffic of servers with 8 GPUs in an hour, by the job types on them."""

    columns = ServerHour.columns

    def __init__(self, release: Release) -> None:
        self.release = release
        self.found = {(name, way): Quantiles() for name in SERVER_JOBS for way in ("rx_gibps", "tx_gibps")}

    def add(self, hour: Hour, batch: Batch) -> None:
        pass

    def close(self, sums: ServerHour) -> None:
        servers = sums.servers
        counted = servers.gpus == NETWORK_GPUS * MICRO
        # The last entry stands for servers that are not in the inventory.
        types = np.append(np.where(counted, sums.of_inventory(sums.job_types), 0), 0)
        for batch in self.release.batches(NETWORK, ("server_id", "rx_gibps_avg", "tx_gibps_avg"), sums.hour):
            name = batch.text("server_id")
            known = Ids(servers.ids)
            at = known.of(name)
            at[(at < 0) | (at >= len(servers))] = len(servers)
            for group, jobs in SERVER_JOBS.items():
                of = types[at] == sum(1 << JOB_TYPES.index(job) for job in jobs)
                for way in ("rx_gibps", "tx_gibps"):
                    numbers = batch.number(f"{way}_avg")[of]
                    self.found[group, way].add(numbers[numbers > LEAST_GIBPS])

    def tables(self) -> dict[str, Table]:
        return {"fig12": distribution_table("jobs_on_server", self.found)}
