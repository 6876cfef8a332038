# SPDX-License-Identifier: Apache-2.0
"""Capacity of the servers in an hour, and sums over the pods on them."""

from __future__ import annotations

import numpy as np

from ..errors import InvalidInput
from .batch import MICRO, Batch, Ids, Wholes
from .release import Hour, Release
from .schema import JOB_TYPES, SERVER, display_model

CLASSES = ("HP", "LP")
SERVER_COLUMNS = ("server_id", "cluster_id", "asw_id", "gpu_spec_public", "gpu_count", "cpu_capacity_cores")


def total(at: Wholes, amounts: Wholes, size: int) -> Wholes:
    """Sums of amounts by position. They are exact, because amounts are integers and sums are below 2^53."""
    return np.bincount(at, weights=amounts, minlength=size).astype(np.int64)


def gpus_of_servers(batch: Batch) -> Wholes:
    """GPUs of servers in millionths. Raises InvalidInput for parts of GPUs."""
    gpus = batch.micro("gpu_count")
    if (gpus % MICRO).any():
        wrong = gpus[gpus % MICRO != 0][0] / MICRO
        raise InvalidInput(f"{batch.source}: gpu_count: {wrong:g}; expected an integer")
    return gpus


class Servers:
    """The inventory of an hour, one entry per server; quantities in millionths."""

    def __init__(self, release: Release, hour: Hour) -> None:
        self.ids, self.clusters, self.switches, self.models = Ids(), Ids(), Ids(), Ids()
        columns: list[list[Wholes]] = []
        rows = 0
        for batch in release.batches(SERVER, SERVER_COLUMNS, hour):
            rows += batch.size
            at = self.ids.of(batch.text("server_id"))
            if len(self.ids) != rows or (at < 0).any():
                raise InvalidInput(
                    f"{batch.source}: server_id: null or duplicate; expected a unique name for each server"
                )
            model = batch.text("gpu_spec_public")
            shown = model._replace(texts=[display_model(text) for text in model.texts])
            columns.append(
                [
                    at,
                    self.clusters.of(batch.text("cluster_id")),
                    self.switches.of(batch.text("asw_id")),
                    self.models.of(shown),
                    gpus_of_servers(batch),
                    batch.micro("cpu_capacity_cores"),
                ]
            )
        joined: list[Wholes] = [np.zeros(0, np.int64)] * 6
        if columns:
            joined = [np.concatenate(parts) for parts in zip(*columns)]
        ordered = (column[np.argsort(joined[0])] for column in joined[1:])
        self.cluster, self.switch, self.model, self.gpus, self.cores = ordered

    def __len__(self) -> int:
        return len(self.gpus)


class ServerHour:
    """Sums over the pods of an hour by server: first the servers of the inventory, then servers that only
    pods name.

    With A = `hp_active`, S = `hp_standby`, L = `lp` (GPU-hours): r = `unborrowed` = max(S - L, 0).
    """

    columns = (
        *("server_id", "state_public", "priority_class", "job_type_public"),
        *("gpu_request", "cpu_request_cores", "used_gpu_hours"),
    )

    def __init__(self, hour: Hour, servers: Servers) -> None:
        self.hour, self.servers = hour, servers
        self._ids = Ids(servers.ids)
        none = np.zeros(len(servers), np.int64)
        self.hp_active, self.hp_standby, self.lp, self.lp_active = none, none, none, none
        self.hp_gpus, self.hp_cores, self.hp_pods, self.job_types = none, none, none, none

    def add(self, batch: Batch) -> None:
        at = self._ids.of(batch.text("server_id"))
        size, known = len(self._ids), at >= 0
        class_, asks = batch.among("priority_class", CLASSES), batch.micro("gpu_request") > 0
        standby = batch.among("state_public", ("Standby",)) == 0
        hp, lp = (class_ == 0) & known, (class_ == 1) & known
        used = batch.micro("used_gpu_hours")

        def grown(sums: Wholes, of: np.ndarray, amounts: Wholes) -> Wholes:
            added = total(at[of], amounts[of], size)
            added[: len(sums)] += sums
            return added

        self.hp_active = grown(self.hp_active, hp & asks & ~standby, used)
        self.hp_standby = grown(self.hp_standby, hp & asks & standby, used)
        self.lp = grown(self.lp, lp & asks, used)
        self.lp_active = grown(self.lp_active, lp & asks & ~standby, used)
        self.hp_gpus = grown(self.hp_gpus, hp & asks, batch.micro("gpu_request"))
        self.hp_cores = grown(self.hp_cores, hp, batch.micro("cpu_request_cores"))
        self.hp_pods = grown(self.hp_pods, hp, np.ones(batch.size, np.int64))
        # The job types on a server, as bits.
        types = batch.among("job_type_public", JOB_TYPES)
        bits = np.zeros(size, np.int64)
        bits[: len(self.job_types)] = self.job_types
        of = known & asks & (types >= 0)
        np.bitwise_or.at(bits, at[of], 1 << types[of])
        self.job_types = bits

    @property
    def unborrowed(self) -> Wholes:
        return np.maximum(self.hp_standby - self.lp, 0)

    def of_inventory(self, sums: Wholes) -> Wholes:
        return sums[: len(self.servers)]
