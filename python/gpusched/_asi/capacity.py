"""Figures of what servers hold: 9 (allocation), 13 (fragmentation), 14 (switches) and 16 (Standby)."""

from __future__ import annotations

import numpy as np

from .._views.report import Report
from .._views.tables import Kind, Table
from .batch import MICRO, Batch, Truths, Wholes
from .release import Hour
from .server_hour import ServerHour, total

ASI_SHAPES = ((1, 8), (1, 12), (4, 32), (4, 48), (4, 64), (8, 64), (8, 96), (8, 128))
CORES_PER_SLOT = 12
JOB_GPUS = (128, 256)
SWITCH_MODELS = ("H20", "XPU-A", "L20", "A100")
"""GPU models of Figure 14."""
LEFT_OUT_GPUS = 16
"""Servers of so many GPUs are left out of Figure 13."""


def even(hour: Hour) -> bool:
    return hour[1] % 2 == 0


class Capacity:
    """A figure that is made of the sums of each hour alone."""

    columns = ServerHour.columns

    def add(self, hour: Hour, batch: Batch) -> None:
        pass


class Allocation(Capacity):
    """Figure 9: means over servers of (A + r) / G and (min(A + L, G) + r) / G, then over even hours and hour 23, by GPU model.

    L is of LP pods that are not Standby here.
    """

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}  # hours, sums of their means

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
        rows = [(name, 100 * hp / hours, 100 * both / hours) for name, (hours, hp, both) in sorted(self.sums.items())]
        return {"fig9": Table({"gpu_model": "text", "hp_pct": "number", "hp_and_lp_pct": "number"}, rows)}


class Causes(Capacity):
    """Figure 13: idle GPUs that requests cannot use, by cause, means over even hours."""

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
    """Figure 14: jobs that could start at 10 o'clock, across and within switches; servers with an HP pod and a known switch."""

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
        counted = (sums.of_inventory(sums.hp_pods) > 0) & (servers.switch >= 0) & np.isin(servers.model, models)
        for name, of in (
            *((name, counted & (servers.model == model)) for name, model in zip(SWITCH_MODELS, models)),
            ("*", counted),
        ):
            if of.any():
                self.rows += [
                    (sums.hour[0], name, size, jobs(servers.cluster, slots, of, size), jobs(servers.switch, slots, of, size))
                    for size in JOB_GPUS
                ]

    def tables(self) -> dict[str, Table]:
        columns: dict[str, Kind] = {"day": "whole", "gpu_model": "text", **dict.fromkeys(("gpus", "across", "within"), "whole")}
        return {"fig14": Table(columns, sorted(self.rows))}


def jobs(domain: Wholes, slots: Wholes, of: Truths, size: int) -> int:
    """Jobs of so many slots that fit into single domains."""
    of = of & (domain >= 0)
    return int((total(domain[of], slots[of], 0) // size).sum())


class Standby(Capacity):
    """Figure 16: GPU-hours of Standby pods in each hour, and the mean over servers with some of L / S."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, float, float | None]] = []

    def close(self, sums: ServerHour) -> None:
        of = sums.hp_standby > 0
        used = float(np.mean(sums.lp[of] / sums.hp_standby[of])) if of.any() else None
        self.rows.append((*sums.hour, int(sums.hp_standby.sum()) / MICRO, used))

    def tables(self) -> dict[str, Table]:
        columns: dict[str, Kind] = {"day": "whole", "hour": "whole", "standby_gpu_hours": "number", "standby_used": "number"}
        return {"fig16": Table(columns, self.rows)}
