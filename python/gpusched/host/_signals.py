# SPDX-License-Identifier: Apache-2.0
"""The signals of a window: latencies, the kernel's counters, NVML's, and the GPU instances. A value that
cannot be read is None.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import control
from .._optional import require
from . import _files
from ._config import Latency, Live
from ._failures import Failure
from ._latency import LatencyFile, LatencyHistogram, LatencySocket, Source, Window
from ._mig import MigBackend
from ._nvml import Nvml
from ._places import Instance

MOST = float(1 << 63)


def interrupts(text: str) -> list[int]:
    """Interrupts of devices by core, from /proc/interrupts: the rows with a number that are no timer's.

    The other rows (LOC, RES, ...) and timers say how busy a core is, not which device disturbs it.
    A core that is off has 0. Raises ValueError for other text.
    """
    heading, *rows = text.splitlines() or [""]
    names = heading.split()
    if not names or not all(re.fullmatch(r"CPU\d{1,5}", name) for name in names):
        raise ValueError("interrupts: no heading with cores")
    cores = [int(name[3:]) for name in names]
    counts = [0] * (max(cores) + 1)
    for row in rows:
        label, colon, rest = row.partition(":")
        # On ARM the timers have numbers, too.
        if not colon or not label.strip().isdigit() or row.rstrip().endswith((" timer", "_timer")):
            continue
        words = rest.split(maxsplit=len(cores))
        if len(words) < len(cores):
            raise ValueError(f"interrupts: row cannot be read: {row}")
        for core, word in zip(cores, words):
            counts[core] += int(word)
    return counts


def disk_bytes() -> dict[str, int]:
    """Bytes read and written by name of the disk or partition."""
    found = require("psutil", "host").disk_io_counters(perdisk=True, nowrap=False) or {}
    return {name: one.read_bytes + one.write_bytes for name, one in found.items()}


def nic_bytes() -> dict[str, int]:
    """Bytes received and sent by network interface, without traffic that bypasses the kernel (RDMA)."""
    found = require("psutil", "host").net_io_counters(pernic=True, nowrap=False) or {}
    return {name: one.bytes_recv + one.bytes_sent for name, one in found.items()}


@dataclass
class Rate:
    """The rate of a counter. There is none for the first value, and for a value below the last, after a
    reset.
    """

    value: float | None = None
    time_s: float = 0.0

    def update(self, now: float | None, now_s: float) -> float | None:
        if now is not None and not 0 <= now < MOST:
            now = None
        before, passed = self.value, now_s - self.time_s
        self.value, self.time_s = now, now_s
        if before is None or now is None or passed <= 0 or now < before:
            return None
        return (now - before) / passed


@dataclass
class Gpu:
    """A GPU as read back."""

    lost: bool = False
    readable: bool = True
    instances: list[Instance] = field(default_factory=list)


def source_of(latency: Latency, tau_ms: float) -> Source:
    """The source of a tenant's latencies."""
    if latency.file:
        return LatencyFile(latency.file, tau_ms)
    if latency.socket:
        return LatencySocket(latency.socket, tau_ms)
    return LatencyHistogram(latency.prometheus, latency.metric, latency.labels, latency.ms_per_unit, tau_ms)


class Signals:
    """Reads windows. Nothing raises.

    A tenant without a source of latencies is there as long as its control group is. PCIe counters
    are those of whole GPUs: a tenant's traffic is inferred, as at least its block I/O, once that
    moves with the traffic of its GPU's root.
    `handles`: of `Nvml.find`, by the host's GPU.
    """

    def __init__(
        self,
        host: Mapping[str, Any],
        live: Live,
        mig: MigBackend,
        nvml: Nvml | None,
        handles: Sequence[Any],
        window_s: float,
    ) -> None:
        self._host = host
        self._live = live
        self._mig = mig
        self._nvml = nvml
        self._handles = handles
        self._tenants = {one["name"]: one for one in host["tenants"]}
        self._sources = {
            name: source_of(latency, one["tau_ms"])
            for name, one in self._tenants.items()
            if (latency := live.tenants[name].latency) is not None
        }
        require("psutil", "host").PROCFS_PATH = live.proc
        self._since_look = -1
        self._window_s = self._passed_s = window_s
        self._now_s = math.inf
        self._rates: defaultdict[tuple[str, Any], Rate] = defaultdict(Rate)
        self._links = {name: control.ActivityCorrelation() for name in self._tenants}
        self.gpus = [Gpu() for _ in host["gpus"]]
        self.ignored = 0  # lines of latencies that could not be read, since the caller last set it to 0

    @property
    def looked(self) -> bool:
        """Whether the last window looked at the instances."""
        return self._since_look == 0

    def stands(self, instance: Instance) -> bool:
        """Whether the last look saw an instance."""
        gpu = self.gpus[instance.gpu]
        return gpu.readable and not gpu.lost and instance in gpu.instances

    def look_again(self) -> None:
        """The instances have been changed: the next window looks at them."""
        self._since_look = -1

    def prepare(self) -> None:
        for source in self._sources.values():
            source.prepare()

    def close(self) -> None:
        for source in self._sources.values():
            source.close()

    def read(self, now_s: float) -> dict[str, Any]:
        """The signals of the window that ends now, as `control.Controller.step` takes them."""
        self._passed_s = now_s - self._now_s if now_s > self._now_s else self._window_s
        self._now_s = now_s
        roots = self._roots()
        return {
            "tenants": {name: self._tenant(name, roots) for name in self._tenants},
            "roots": roots,
            "nic_bytes_per_s": self._sums(nic_bytes, self._live.root_nics, len(roots)),
            "numa_io_bytes_per_s": self._sums(disk_bytes, self._live.numa_disks, self._host["numa_nodes"]),
            "irq_per_s": self._interrupts(),
            "gpus": self._instances(),
        }

    def _rate(self, kind: str, what: Any, value: float | None) -> float | None:
        return self._rates[kind, what].update(value, self._now_s)

    def _tenant(self, name: str, roots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        tenant, source, group = self._tenants[name], self._sources.get(name), self._live.group(name)
        out: dict[str, Any] = self._latencies(source.window()) if source is not None else {}
        if not group:
            return out
        total: float | None = None
        try:
            total = _files.io_bytes(_files.read(f"{group}/io.stat"), self._live.tenants[name].disks)
        except Failure as failure:
            if failure.status == "not_found" and not tenant["protected"]:
                out["present"] = os.path.exists(f"{group}/cgroup.procs")
        rate = self._rate("io", name, total)
        if rate is not None:
            out.update(io_bytes_per_s=rate, io_attribution="measured")
        if tenant["protected"] or tenant["gpu"] < 0:
            return out
        link = self._links[name]
        pressure = roots[self._host["gpus"][tenant["gpu"]]["root"]]["bytes_per_s"]
        link.update(*(math.nan if value is None else value for value in (rate, pressure)))
        if link.inferred:
            out.update(pcie_bytes_per_s=rate, pcie_attribution="inferred")
        return out

    def _latencies(self, window: Window) -> dict[str, Any]:
        self.ignored += window.ignored
        if not window.known:
            return {}
        out = {**window.quantiles, "count": window.count, "misses": window.misses}
        out["completed_per_s"] = window.count / self._passed_s
        if window.arrived is not None:
            out["offered_per_s"] = window.arrived / self._passed_s
        return out

    def _roots(self) -> list[dict[str, float | None]]:
        gpus = [(gpu["root"], *self._pcie(number)) for number, gpu in enumerate(self._host["gpus"])]
        return [
            {
                "bytes_per_s": _sum([traffic for its, traffic, _ in gpus if its == root]),
                "replays": _sum([replays for its, _, replays in gpus if its == root]),
            }
            for root in range(len(self._host["roots"]))
        ]

    def _pcie(self, number: int) -> tuple[float | None, float | None]:
        """Traffic of a GPU, and its replays in this window."""
        if self._nvml is None:
            return None, None
        handle = self._handles[number]
        try:
            traffic = self._rate("pcie", number, self._nvml.pcie_bytes(handle))
        except Failure as failure:
            self._rate("pcie", number, None)
            traffic = _or_none(self._nvml.pcie_rate, handle) if failure.status == "not_supported" else None
        replays = self._rate("replays", number, _or_none(self._nvml.pcie_replays, handle))
        return traffic, None if replays is None else replays * self._passed_s

    def _sums(
        self, read: Callable[[], dict[str, int]], groups: Sequence[Sequence[str]], count: int
    ) -> list[float | None]:
        """Rates of counters, summed over the names of each group."""
        found: Mapping[str, int] = {}
        with contextlib.suppress(Exception):  # psutil raises many kinds for files that it cannot read
            found = read() if groups else {}
        sums = [_sum([found.get(name) for name in names]) if names else None for names in groups]
        sums += [None] * (count - len(sums))
        return [self._rate(read.__name__, k, total) for k, total in enumerate(sums)]

    def _interrupts(self) -> list[float | None]:
        counts: list[int] = []
        with contextlib.suppress(Failure, ValueError):
            counts = interrupts(_files.read(f"{self._live.proc}/interrupts"))
        cores = len(self._host["core_numa"])
        known = [*counts, *[None] * cores][:cores]
        return [self._rate("irq", core, count) for core, count in enumerate(known)]

    def _instances(self) -> list[dict[str, Any]]:
        look = self._since_look < 0 or self._since_look + 1 >= self._live.layout_every
        self._since_look = 0 if look else self._since_look + 1
        for number, gpu in enumerate(self.gpus):
            if look or not gpu.readable:
                try:
                    gpu.instances = self._mig.read(number)
                    gpu.lost, gpu.readable = False, True
                except Failure as failure:
                    gpu.lost, gpu.readable = failure.status == "gpu_is_lost", False
        return [
            {"lost": gpu.lost, "readable": gpu.readable, "instances": [one[1:] for one in gpu.instances]}
            for gpu in self.gpus
        ]


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; not known if one of the values is not known."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else None


def _or_none(call: Callable[..., float], *arguments: Any) -> float | None:
    try:
        return call(*arguments)
    except Failure:
        return None
