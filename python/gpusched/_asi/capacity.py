# SPDX-License-Identifier: Apache-2.0
"""Figures of servers: Table 1, Figures 4 left, 9 (allocation), 13 (fragmentation), 14 and 16 (Standby)."""

from __future__ import annotations

import numpy as np

from .._views.tables import Kind, Report, Table
from .batch import MICRO, Batch, Ids, Truths, Wholes
from .demand import share
from .release import Hour
from .server_hour import ServerHour, Servers, total

ASI_SHAPES = ((1, 8), (1, 12), (4, 32), (4, 48), (4, 64), (8, 64), (8, 96), (8, 128))
CORES_PER_SLOT = 12
JOB_GPUS = (128, 256)
SWITCH_MODELS = ("H20", "XPU-A", "L20", "A100")
"""GPU models of Figure 14."""
LEFT_OUT_GPUS = 16
"""Figure 13 excludes servers with this number of GPUs."""


def even(hour: Hour) -> bool:
    return hour[1] % 2 == 0


class Capacity:
    """A figure that needs only the sums of each hour, not the pods."""

    columns = ServerHour.columns

    def add(self, hour: Hour, batch: Batch) -> None:
        pass


class Allocation(Capacity):
    """Figure 9: allocation by GPU model, as means over servers of (A + r) / G and (min(A + L, G) + r) / G.

    These are then averaged over the even hours and hour 23. L counts LP pods that are not Standby.
    """

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}  # number of hours, sums of their means

    def close(self, sums: ServerHour) -> None:
        if not even(sums.hour) and sums.hour[1] != 23:
            return
        servers, rest = sums.servers, sums.of_inventory(sums.unborrowed)
        active, lp = sums.of_inventory(sums.hp_active), sums.of_inventory(sums.lp_active)
        for name, model in servers.models.items():
            of = (servers.model == model) & (servers.gpus > 0)
            if not of.any():
                continue
            held = active + rest, np.minimum(active + lp, servers.gpus) + rest
            row = self.sums.setdefault(name, [0, 0, 0])
            row[0] += 1
            for column, gpus in enumerate(held, 1):
                row[column] += float(np.mean(gpus[of] / servers.gpus[of]))

    def tables(self) -> dict[str, Table]:
        rows = [
            (name, 100 * hp / hours, 100 * both / hours)
            for name, (hours, hp, both) in sorted(self.sums.items())
        ]
        return {"fig9": Table({"gpu_model": "text", "hp_pct": "number", "hp_and_lp_pct": "number"}, rows)}


class Causes(Capacity):
    """Figure 13: idle GPUs that requests cannot use, by cause; means over even hours."""

    def __init__(self) -> None:
        self.hours = 0
        self.sums = np.zeros((len(ASI_SHAPES), 4), np.int64)

    def close(self, sums: ServerHour) -> None:
        servers = sums.servers
        of = (servers.gpus > 0) & (servers.gpus != LEFT_OUT_GPUS * MICRO)
        if not even(sums.hour) or not of.any():
            return
        self.hours += 1
        taken = sums.of_inventory(sums.hp_active + sums.unborrowed)
        idle = np.maximum(servers.gpus - taken, 0)[of]
        cores = np.maximum(servers.cores - sums.of_inventory(sums.hp_cores), 0)[of]
        whole = idle // MICRO * MICRO
        for row, (g, c) in zip(self.sums, ASI_SHAPES):
            enough = cores >= c * MICRO
            row += (
                (idle - whole)[enough & (whole >= g * MICRO)].sum(),
                whole[enough & (whole < g * MICRO)].sum(),
                np.minimum(idle, g * MICRO)[~enough].sum(),
                idle.sum(),
            )

    def tables(self) -> dict[str, Table]:
        names = ("fractional", "stranded", "insufficient_cpu")
        columns = ("gpus", "cpu_cores", *names, "total_idle", *(f"{name}_pct" for name in names))
        rows = []
        for (g, c), sums in zip(ASI_SHAPES, self.sums.tolist() if self.hours else []):
            *causes, idle = sums
            shares = (100 * cause / idle if idle else 0.0 for cause in causes)
            rows.append((g, float(c), *(amount / self.hours / MICRO for amount in sums), *shares))
        return {"fig13": Report(columns, rows)}


class Slots(Capacity):
    """Figure 14: jobs that could start at 10 o'clock, across and within switches.

    Counts servers with an HP pod and a known switch.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, int, int, int]] = []

    def close(self, sums: ServerHour) -> None:
        if sums.hour[1] != 10:
            return
        servers = sums.servers
        gpus = servers.gpus // MICRO - sums.of_inventory(sums.hp_gpus) // MICRO
        cores = (servers.cores - sums.of_inventory(sums.hp_cores)) // (CORES_PER_SLOT * MICRO)
        slots = np.minimum(np.maximum(gpus, 0), np.maximum(cores, 0))
        models = [servers.models.get(name, -2) for name in SWITCH_MODELS]
        counted = (
            (sums.of_inventory(sums.hp_pods) > 0) & (servers.switch >= 0) & np.isin(servers.model, models)
        )
        for name, of in (
            *((name, counted & (servers.model == model)) for name, model in zip(SWITCH_MODELS, models)),
            ("*", counted),
        ):
            if of.any():
                for size in JOB_GPUS:
                    across = jobs(servers.cluster, slots, of, size)
                    within = jobs(servers.switch, slots, of, size)
                    self.rows.append((sums.hour[0], name, size, across, within))

    def tables(self) -> dict[str, Table]:
        counts: dict[str, Kind] = dict.fromkeys(("gpus", "across", "within"), "whole")
        columns: dict[str, Kind] = {"day": "whole", "gpu_model": "text", **counts}
        return {"fig14": Table(columns, sorted(self.rows))}


def jobs(domain: Wholes, slots: Wholes, of: Truths, size: int) -> int:
    """The number of jobs with `size` slots each that fit into single domains."""
    of = of & (domain >= 0)
    return int((total(domain[of], slots[of], 0) // size).sum())


class Standby(Capacity):
    """Figure 16: GPU-hours of Standby pods in each hour, and the mean of L / S over their servers."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, float, float | None]] = []

    def close(self, sums: ServerHour) -> None:
        of = sums.hp_standby > 0
        used = float(np.mean(sums.lp[of] / sums.hp_standby[of])) if of.any() else None
        self.rows.append((*sums.hour, int(sums.hp_standby.sum()) / MICRO, used))

    def tables(self) -> dict[str, Table]:
        hours, numbers = ("day", "hour"), ("standby_gpu_hours", "standby_used")
        columns: dict[str, Kind] = {**dict.fromkeys(hours, "whole"), **dict.fromkeys(numbers, "number")}
        return {"fig16": Table(columns, self.rows)}


class Fleet:
    """Table 1 and Figure 4 left: servers by GPU model over all hours.

    A server counts once per GPU model that it had, with its last number of GPUs.
    """

    def __init__(self) -> None:
        self.days: set[int] = set()
        self.servers = Ids()
        self.gpus: dict[tuple[int, str], int] = {}

    def add(self, hour: Hour, servers: Servers) -> None:
        self.days.add(hour[0])
        models = list(servers.models)
        new = np.array([self.servers.setdefault(name, len(self.servers)) for name in servers.ids])
        for at in np.flatnonzero(servers.gpus > 0).tolist():
            model = servers.model[at]
            self.gpus[int(new[at]), models[model] if model >= 0 else ""] = int(servers.gpus[at]) // MICRO

    def tables(self) -> dict[str, Table]:
        sums: dict[str, list[int]] = {}
        for (_, model), gpus in self.gpus.items():
            row = sums.setdefault(model, [0, 0])
            row[0] += 1
            row[1] += gpus
        whole = sum(gpus for _, gpus in sums.values())
        left = [(model, servers, gpus, share(gpus, whole)) for model, (servers, gpus) in sorted(sums.items())]
        size = (len(self.days), len({server for server, _ in self.gpus}), whole, len(sums))
        return {
            "table1": Table(dict.fromkeys(("days", "servers", "gpus", "gpu_models"), "whole"), [size]),
            "fig4_left": Table(
                {"gpu_model": "text", "servers": "whole", "gpus": "whole", "share_pct": "number"}, left
            ),
        }
