# SPDX-License-Identifier: Apache-2.0
"""Finds the GPUs of this machine, their surroundings and tenants; writes a first configuration."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import control
from .._optional import require
from ..errors import BackendError
from . import _files
from ._failures import Failure
from ._mig import Row
from ._nvml import Nvml
from ._places import profiles
from ._programs import Programs
from ._smi import parse_lgi, status_of

DEFAULT_CAPACITY = 22e9  # bytes/s of a PCIe root whose link cannot be read
# Counters that `discover` reads, with the NVML call and its unit.
COUNTERS: dict[str, Callable[[Nvml, Any], float]] = {
    "utilisation_percent": lambda nvml, gpu: nvml.call("nvmlDeviceGetUtilizationRates", gpu).gpu,
    "pcie_bytes": lambda nvml, gpu: nvml.pcie_bytes(gpu),
    "pcie_replays": lambda nvml, gpu: nvml.pcie_replays(gpu),
    "nvlink_kib": lambda nvml, gpu: nvml.nvlink_kib(gpu),
}


@dataclass
class Process:
    """A process on a GPU. `instance`: the profile's key and first memory slice; None without MIG."""

    pid: int
    name: str = ""
    cgroup: str = ""
    instance: tuple[str, int] | None = None

    @property
    def tenant(self) -> str:
        """The name of the tenant that it belongs to."""
        return os.path.basename(self.cgroup).removesuffix(".service") or self.name or f"pid-{self.pid}"


@dataclass
class Gpu:
    """A GPU of this machine. What cannot be read is empty."""

    index: int
    name: str
    pci: str = ""
    memory_mib: float = 0.0
    device: str = ""  # the MIG table that fits
    mig: str = "not supported"  # on, off, pending, not supported
    instances: list[tuple[str, int]] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)  # those of COUNTERS that the driver has
    numa: int = 0
    bridge: str = ""  # PCI host bridge
    root: str = ""  # the port below it that leads to the GPU
    link_bytes_per_s: float = DEFAULT_CAPACITY

    def __str__(self) -> str:
        shown = ", ".join(f"{key} at {start}" for key, start in self.instances) or "no instances"
        mig = f"MIG {self.mig}" + (f", {shown}" if self.mig == "on" else "")
        address = self.pci or "PCI address unknown"
        return f"GPU {self.index}: {self.name}, {address}, NUMA node {self.numa}, {mig}"


@dataclass
class Machine:
    """The result of `discover`. `source`: nvml or nvidia-smi."""

    source: str
    gpus: list[Gpu]
    core_numa: list[int]
    numa_disks: list[list[str]]
    disks: list[str]  # major:minor of the whole disks
    nics: dict[str, list[str]]  # network interfaces by the port of the PCI host bridge
    notes: list[str] = field(default_factory=list)

    def config(self, *, journal: str = "/var/lib/gpusched/journal.sqlite") -> dict[str, Any]:
        """A complete configuration. Processes in GPU instances become tenants: the first of an instance is
        protected.
        """
        gpus = [gpu for gpu in self.gpus if gpu.device]
        roots = {gpu.root: gpu for gpu in gpus}
        names, bridges = list(roots), list(dict.fromkeys(gpu.bridge for gpu in gpus))
        tenants, live_tenants = self._tenants(gpus)
        host = {
            "roots": [
                {
                    "capacity_bytes_per_s": gpu.link_bytes_per_s,
                    "bridge": bridges.index(gpu.bridge),
                    "numa": gpu.numa,
                }
                for gpu in roots.values()
            ],
            "gpus": [
                {"device": gpu.device, "root": names.index(gpu.root), "numa": gpu.numa} for gpu in gpus
            ],
            "core_numa": self.core_numa,
            "numa_nodes": len(self.numa_disks),
            "tenants": tenants,
        }
        live = {
            "mig": self.source,
            "nvml": self.source == "nvml",
            "pci": [gpu.pci for gpu in gpus],
            "journal": journal,
            "numa_disks": self.numa_disks,
            "root_nics": [self.nics.get(name, []) for name in names],
            "tenants": live_tenants,
        }
        return {"format": "gpusched.control", "version": 1, "host": host, "live": live}

    def _tenants(self, gpus: Sequence[Gpu]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        found = [
            (k, one, one.instance) for k, gpu in enumerate(gpus) for one in gpu.processes if one.instance
        ]
        if not found and gpus:  # a configuration needs a tenant: one to edit
            first = next(iter(profiles(gpus[0].device)))
            found = [(0, Process(0, "service"), (gpus[0].instances or [(first, 0)])[0])]
        tenants: list[dict[str, Any]] = []
        live: dict[str, dict[str, Any]] = {}
        owners: dict[Any, str] = {}
        for k, process, (profile, start) in found:
            name, group = process.tenant, process.cgroup.strip("/")
            if name in live:
                continue  # another process of the tenant
            live[name] = {"cgroup": group} if group else {}
            owner = owners.setdefault((k, start), name)
            if owner == name:
                place = {"gpu": k, "profile": profile, "slice": start}
                tenants.append({"name": name, "protected": True, "start": place})
                live[name]["latency"] = {"socket": f"/run/gpusched/{name}.sock"}
            else:
                tenants.append({"name": name, "gpu": k, "numa": gpus[k].numa, "client_of": owner})
                live[name]["disks"] = self.disks
        return tenants, live

    def __str__(self) -> str:
        return "\n".join([f"found by {self.source}", *map(str, self.gpus), *self.notes])


def discover(*, sys: str = "/sys", proc: str = "/proc") -> Machine:
    """The GPUs of this machine with their MIG instances and processes, and the cores, disks and networks
    around them.

    Asks NVML, else `nvidia-smi`. Changes nothing. Raises BackendError without a GPU. `sys`, `proc`: folders
    of the kernel.
    """
    machine = Machine("nvml", [], _core_numa(sys), [], [], {})
    try:
        nvml = Nvml()
    except BackendError as error:
        nvml, why = None, str(error)
    try:
        if nvml is None:
            machine.source = "nvidia-smi"
            machine.gpus = _by_smi(why)
        else:
            machine.gpus = [_by_nvml(nvml, k, proc) for k in range(nvml.call("nvmlDeviceGetCount"))]
    except Failure as failure:
        raise BackendError(f"{machine.source}: {failure}") from None
    finally:
        if nvml is not None:
            nvml.close()
    if not machine.gpus:
        raise BackendError("no NVIDIA GPU found: the driver lists none")
    for gpu in machine.gpus:
        _surroundings(gpu, sys)
        if not gpu.device:
            left_out = "has no MIG table and is left out of the configuration"
            machine.notes.append(f"GPU {gpu.index}: {gpu.name} {left_out}")
        elif gpu.mig != "on":
            machine.notes.append(f"GPU {gpu.index}: MIG is {gpu.mig}; the controller never changes the mode")
    nodes = max([0, *machine.core_numa, *(gpu.numa for gpu in machine.gpus)]) + 1
    _devices(machine, sys, nodes)
    if not any(process.instance for gpu in machine.gpus for process in gpu.processes):
        machine.notes.append("no process runs in a GPU instance: the tenant 'service' is an example to edit")
    return machine


def device_of(name: str, memory_mib: float) -> str:
    """The MIG table that fits a GPU by its product name and memory; empty if there is none."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    fitting = [device for device in control.mig_devices() if device.partition("-")[0] in words]
    return min(
        fitting, key=lambda device: abs(float(device.partition("-")[2][:-2]) - memory_mib / 1024), default=""
    )


def pcie_bytes_per_s(speed: str, width: str) -> float:
    """Bytes per second of a PCIe link in one direction without its encoding, from "16.0 GT/s PCIe" and "16".

    DEFAULT_CAPACITY for texts that cannot be read.
    """
    match = re.match(r"([\d.]+) GT/s", speed)
    transfers = float(match.group(1)) if match else 0.0
    if transfers <= 0 or not width.isdecimal() or not 1 <= int(width) <= 32:
        return DEFAULT_CAPACITY
    # 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s fixed-size packets: 242 of 256 bytes.
    part = 0.8 if transfers <= 5 else 128 / 130 if transfers < 64 else 242 / 256
    return transfers * 1e9 / 8 * part * int(width)


def _text(path: str) -> str:
    try:
        return _files.read(path).strip()
    except Failure:
        return ""


def _node(folder: str) -> int | None:
    """The NUMA node of a device; None if it is not known, as on virtual machines (-1)."""
    text = _text(f"{folder}/numa_node")
    return int(text) if text.isdecimal() else None


def _core_numa(sys: str) -> list[int]:
    """The NUMA node of each core."""
    nodes: dict[int, int] = {}
    for folder in glob.glob(f"{sys}/devices/system/node/node[0-9]*"):
        with contextlib.suppress(ValueError):
            cores = _files.parse_cores(_text(f"{folder}/cpulist"))
            nodes.update(dict.fromkeys(cores, int(folder.rpartition("node")[2])))
    count = max([*nodes, require("psutil", "host").cpu_count() - 1]) + 1
    return [nodes.get(core, 0) for core in range(count)]


def _by_nvml(nvml: Nvml, index: int, proc: str) -> Gpu:
    handle = nvml.find(index)
    gpu = Gpu(index, str(nvml.call("nvmlDeviceGetName", handle)))
    with contextlib.suppress(Failure):
        gpu.memory_mib = nvml.call("nvmlDeviceGetMemoryInfo", handle).total / (1 << 20)
    with contextlib.suppress(Failure):
        bus = nvml.call("nvmlDeviceGetPciInfo", handle).busId
        gpu.pci = (bus.decode() if isinstance(bus, bytes) else bus).lower()[-12:]
    gpu.device = device_of(gpu.name, gpu.memory_mib)
    for name, read in COUNTERS.items():
        with contextlib.suppress(Failure):
            gpu.counters[name] = float(read(nvml, handle))
    known: dict[int, tuple[str, int]] = {}
    with contextlib.suppress(Failure):
        on, pending = nvml.mig_mode(handle)
        gpu.mig = "pending" if pending else "on" if on else "off"
        known = _known(gpu.device, nvml.instances(handle) if on else [])
    gpu.instances = sorted(known.values(), key=lambda one: one[1])
    with contextlib.suppress(Failure):
        for one in nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", handle):
            gpu.processes.append(_process(one.pid, known.get(one.gpuInstanceId), proc))
    return gpu


def _known(device: str, rows: Sequence[Row]) -> dict[int, tuple[str, int]]:
    """Instances by the driver's id."""
    keys = {profile.id: key for key, profile in profiles(device).items()} if device else {}
    return {row.id: (keys[row.profile_id], row.start) for row in rows if row.profile_id in keys}


def _process(pid: int, instance: tuple[str, int] | None, proc: str) -> Process:
    match = re.search(r"^0::(/.*)$", _text(f"{proc}/{pid}/cgroup"), re.MULTILINE)
    return Process(pid, _text(f"{proc}/{pid}/comm"), match.group(1) if match else "", instance)


def _by_smi(why: str) -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        raise BackendError(f"no NVIDIA GPU found: {why}, and there is no program nvidia-smi")
    programs = Programs()
    fields = "index,name,pci.bus_id,memory.total,mig.mode.current,mig.mode.pending"
    result = programs.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
    if status_of(result) != "ok":
        last = (result.output.strip().splitlines() or ["no output"])[-1]
        ended = f"nvidia-smi ended with code {result.code}: {last}"
        raise BackendError(f"no NVIDIA GPU found: {why}, and {ended}")
    modes = {"Enabled": "on", "Disabled": "off"}
    out = []
    for line in result.output.splitlines():
        index, name, pci, mib, now, pending = (word.strip() for word in line.split(","))
        gpu = Gpu(int(index), name, pci.lower()[-12:], float(mib) if mib.isdecimal() else 0.0)
        gpu.device = device_of(name, gpu.memory_mib)
        gpu.mig = modes.get(now, "not supported") if now == pending else "pending"
        if gpu.mig == "on":
            listed = programs.run(["nvidia-smi", "mig", "-lgi", "-i", index])
            rows = [row for _, row in parse_lgi(listed.output)] if status_of(listed) == "ok" else []
            gpu.instances = sorted(_known(gpu.device, rows).values(), key=lambda one: one[1])
        out.append(gpu)
    return out


def _ports(folder: str) -> tuple[str, str] | None:
    """The PCI host bridge above a device, and the port below it."""
    match = re.search(r"/(pci[0-9a-f]+:[0-9a-f]+)/([0-9a-f:.]+)", folder)
    return (match.group(1), match.group(2)) if match else None


def _surroundings(gpu: Gpu, sys: str) -> None:
    folder = os.path.realpath(f"{sys}/bus/pci/devices/{gpu.pci}")
    gpu.numa = _node(folder) or 0
    gpu.bridge, gpu.root = _ports(folder) or (f"unknown-{gpu.index}", f"unknown-{gpu.index}")
    # The current speed is that of an idle link, which is lower.
    speed, width = _text(f"{folder}/max_link_speed"), _text(f"{folder}/current_link_width")
    gpu.link_bytes_per_s = pcie_bytes_per_s(speed, width)


def _devices(machine: Machine, sys: str, nodes: int) -> None:
    """The whole disks by NUMA node, and the network interfaces by PCI port."""
    machine.numa_disks = [[] for _ in range(nodes)]
    for folder in sorted(glob.glob(f"{sys}/block/*")):
        above = os.path.realpath(folder)
        if "/virtual/" in above:
            continue
        machine.disks.append(_text(f"{folder}/dev"))
        while (node := _node(above)) is None and above.count("/") > 2:  # the controller above the disk knows
            above = os.path.dirname(above)
        machine.numa_disks[min(node or 0, nodes - 1)].append(os.path.basename(folder))
    for folder in sorted(glob.glob(f"{sys}/class/net/*/device")):
        ports = _ports(os.path.realpath(folder))
        if ports is not None:
            machine.nics.setdefault(ports[1], []).append(os.path.basename(os.path.dirname(folder)))
