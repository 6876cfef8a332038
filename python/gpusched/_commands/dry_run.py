# SPDX-License-Identifier: Apache-2.0
"""The summary of `gpusched control --dry-run`: time above the target (recorded and estimated), actions by
kind, their cost.

The estimate is a linear regression of the p99 on the load from others: PCIe traffic, block I/O, activity of a
client. It starts from the assumptions of `control::TailModel`: a quarter of the target each for a full PCIe
root, a busy client and the size of the instance, and a tenth for block I/O. The assumptions are needed
because the recorded windows may not contain every kind of load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import control
from .._views.tables import counted

ASSUMED = np.array(
    [0.0, 0.25, 0.1, 0.25, 0.25]
)  # constant, PCIe, block I/O, size, client; as parts of the target
TRUST = np.array([1.0, 0.15, 0.15, 0.15, 0.15])
NOISE = 0.15
KINDS = {
    "reconfigure": ("change of instance", "changes of instance"),
    "throttle_io": ("limit of block I/O", "limits of block I/O"),
    "set_quota": ("change of an MPS quota", "changes of an MPS quota"),
    "pin": ("pin to cores", "pins to cores"),
}
LEVERS = ("guard_io", "guard_mps", "place", "mig", "pin")
P99, OFFERED, PCIE, IO, SM, PCIE_KNOWN = 3, 8, 10, 11, 12, 15


class Summary:
    """Reads the lines of a dry run's audit log one by one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.host, self.options = config["host"], config["options"]
        on = any(config["flags"][name] for name in LEVERS)
        self.no_actions = "none" if on else f"none, because every lever is off (flags {', '.join(LEVERS)})"
        self.sms = [
            [p.sm_count for p in control.mig_layout(gpu["device"]).profiles] for gpu in self.host["gpus"]
        ]
        self.protected = [i for i, tenant in enumerate(self.host["tenants"]) if tenant["protected"]]
        self.requested: dict[int, list[dict[str, Any]]] = {i: [] for i in self.protected}
        self.first: dict[int, list[int]] = {}
        # Per tenant and window: p99, requests/s, recorded load, load with the actions, whether it falls into
        # a pause.
        self.seen: dict[int, list[tuple[float, float, np.ndarray, np.ndarray, bool]]] = {
            i: [] for i in self.protected
        }
        self.place: dict[int, list[int]] = {}
        self.lease: dict[int, tuple[float, int, int]] = {}  # end, target, MB/s
        self.pause_until: dict[int, float] = {}
        self.spent: dict[int, Counter[str]] = {i: Counter() for i in self.protected}

    def take(self, line: Mapping[str, Any]) -> None:
        seen = line["observation"]
        now = seen["time_s"]
        for i in self.protected:
            state = line["states"][i][4]
            here = self.first.setdefault(i, state)
            planned = self.place.setdefault(i, list(here))
            end, target, limit = self.lease.get(i, (-np.inf, -1, 0))
            throttled = now is not None and now <= end
            tenant = seen["tenants"][i]
            paused = now is not None and now <= self.pause_until.get(i, -np.inf)
            self.seen[i].append(
                (
                    number(tenant[P99], np.nan),
                    number(tenant[OFFERED], np.nan),
                    self.exposure(seen, i, here, here, -1, 0),
                    self.exposure(seen, i, here, planned, target if throttled else -1, limit),
                    paused,
                )
            )
            if throttled:
                self.spent[i]["throttled_s"] += self.options["window_s"]
            if planned[3] < 100 and any(self.activity(seen, i)):
                self.spent[i]["quota_s"] += self.options["window_s"]
            for action in line["actions"]:
                if action["tenant"] == i and action["kind"] in KINDS:
                    self.requested[i].append(action)
                    self.act(i, action, now)

    def act(self, i: int, action: Mapping[str, Any], now: float | None) -> None:
        """Applies an action, unless it is already in force.

        A dry run requests the same action again and again.
        """
        kind, place = action["kind"], self.place[i]
        before = list(place)
        if kind == "throttle_io" and now is not None:
            self.lease[i] = (now + self.options["lease_s"], action["target"], action["value"])
            self.spent[i][kind] += 1
            return
        if kind == "set_quota":
            place[3] = action["value"]
        elif kind == "reconfigure":
            place[:3], place[4:] = action["after"][:3], action["after"][4:]
            if action["after"][3] != action["before"][3]:  # the reconfiguration also changes the quota
                place[3] = action["after"][3]
        elif kind == "pin":
            place[4:] = action["after"][4:]
        if place == before:
            return
        self.spent[i][kind] += 1
        if kind == "reconfigure" and not action["make_before_break"] and now is not None:
            self.spent[i]["pauses"] += 1
            self.pause_until[i] = now + self.options["pause_s"]

    def activity(self, seen: Mapping[str, Any], i: int) -> list[float]:
        tenants = self.host["tenants"]
        names = (i, tenants[i]["name"])
        return [
            number(seen["tenants"][j][SM], 0.0)
            for j, tenant in enumerate(tenants)
            if tenant.get("client_of") in names and seen["tenants"][j][0]
        ]

    def exposure(
        self, seen: Mapping[str, Any], i: int, start: list[int], place: list[int], target: int, limit: int
    ) -> np.ndarray:
        """The load on a tenant in a place (`control::Exposure`), if the I/O of `target` is limited."""
        gpu = self.host["gpus"][place[0]]
        capacity = self.host["roots"][gpu["root"]]["capacity_bytes_per_s"]
        own = seen["tenants"][i][PCIE] if place[0] == start[0] else 0.0
        others = number(seen["roots"][gpu["root"]][0], 0.0) - own if own is not None else 0.0
        if own is None:  # the known traffic of others
            tenants = enumerate(seen["tenants"])
            known = [t for j, t in tenants if j != i and t[PCIE_KNOWN] and self.root_of(j) == gpu["root"]]
            others = sum(number(t[PCIE], 0.0) for t in known)
        others += number(seen["nic"][gpu["root"]], 0.0) if "nic" in seen else 0.0
        io = number(seen["numa_io"][gpu["numa"]], 0.0)
        if target >= 0:
            used = number(seen["tenants"][target][IO], 0.0)
            kept = min(1.0, limit * 1e6 / used) if used > 0 else 1.0
            if self.root_of(target) == gpu["root"]:
                others -= (1 - kept) * number(seen["tenants"][target][PCIE], 0.0)
            io -= (1 - kept) * used
        size = self.sms[start[0]][start[1]] / self.sms[place[0]][place[1]]
        client = max([0.0, *self.activity(seen, i)]) * 100 / max(1, start[3])
        pinned = any(place[4:])
        parts = (
            others / capacity,
            0.0 if pinned else io / 2e9,
            size,
            size * min(1.0, client) * place[3] / 100,
        )
        return np.array([1.0, *np.clip(parts[:2], 0, 1), *parts[2:]])

    def root_of(self, j: int) -> int:
        tenant = self.host["tenants"][j]
        gpu = tenant.get("gpu", -1)
        if gpu < 0:  # a protected tenant is on the GPU of its instance, if it has one
            gpu = tenant["start"]["gpu"] if "start" in tenant else -1
        return int(self.host["gpus"][gpu]["root"]) if gpu >= 0 else -1

    def lines(self) -> list[str]:
        out = []
        for i in self.protected:
            tenant, actions, spent = self.host["tenants"][i], self.requested[i], self.spent[i]
            tau, window_s = tenant["tau_ms"], self.options["window_s"]
            rows = [row for row in self.seen[i] if np.isfinite(row[0])]
            missing = len(self.seen[i]) - len(rows)
            head = f"{tenant['name']}, target {tau:g} ms"
            if not rows:
                out.append(f"{head}: no window with a p99")
                continue
            p99 = np.array([row[0] for row in rows])
            met = np.array([row[2] for row in rows])
            would = np.array([row[3] for row in rows])
            # Ridge regression towards the assumptions. Outliers far above the target do not count in full.
            start = ASSUMED * tau
            start[0] = np.median(p99 - met[:, 1:] @ start[1:])
            information = met.T @ met / (NOISE * tau) ** 2 + np.diag(1 / (TRUST * tau) ** 2)
            error = np.minimum(p99, 3 * tau) - met @ start
            slopes = start + np.linalg.solve(information, met.T @ error / (NOISE * tau) ** 2)
            after = np.maximum(0.0, p99 + (would - met)[:, 1:] @ np.maximum(0.0, slopes[1:]))
            above = p99 > tau
            above_after = (after > tau) | np.array([row[4] for row in rows])
            lost = sum(row[1] * window_s for row in self.seen[i] if row[4] and np.isfinite(row[1]))
            note = f"; {counted(missing, 'window')} without a p99 skipped" if missing else ""
            out += [
                f"{head}: {counted(len(rows), 'window')}, {len(rows) * window_s / 60:.1f} minutes{note}",
                f"  time above the target: {100 * above.mean():.1f} % as recorded, "
                f"{100 * above_after.mean():.1f} % estimated with the actions",
                f"  mean p99: {p99.mean():.2f} ms as recorded, {after.mean():.2f} ms estimated with the "
                "actions",
            ]
            kinds = Counter(action["kind"] for action in actions)
            requested = [
                counted(kinds[kind], one, many)
                + (f" ({spent[kind]} if earlier actions stay in force)" if spent[kind] < kinds[kind] else "")
                for kind, (one, many) in KINDS.items()
                if kinds[kind]
            ]
            out.append(f"  requested actions: {', '.join(requested) or self.no_actions}")
            pause_s = spent["pauses"] * self.options["pause_s"]
            out.append(
                f"  cost: {counted(spent['pauses'], 'pause')}, {pause_s:.0f} s in all, about "
                f"{counted(round(lost), 'request')} lost; block I/O of others limited for "
                f"{spent['throttled_s']:.0f} s; clients with a reduced quota for {spent['quota_s']:.0f} s "
                "of their activity"
            )
        return out


def number(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or not np.isfinite(value) else float(value)
