"""Finds the GPUs of this machine, what surrounds them, and the tenants on them; writes a first configuration."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
from collections.abc import Sequence
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
NVLINK_FIELDS = ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX")
ALL_LINKS = (1 << 32) - 1


@dataclass
class Process:
    """A process on a GPU. `instance`: the profile's key and first memory slice; None without MIG."""

    pid: int
    name: str = ""
    cgroup: str = ""
    cpu_weight: str = ""
    instance: tuple[str, int] | None = None


@dataclass
class Gpu:
    """A GPU of this machine. What cannot be read is None or empty."""

    index: int
    name: str
    pci: str = ""
    uuid: str = ""
    memory_mib: float = 0.0
    device: str | None = None  # the MIG table that fits
    mig: str = "not supported"  # on, off, pending, not supported
    instances: list[tuple[str, int]] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    numa: int = 0
    bridge: str = ""  # PCI host bridge
    root: str = ""  # the port below it that leads to the GPU
    link_bytes_per_s: float | None = None
    pcie_bytes: float | None = None  # sent and received since some time in the past
    nvlink_kib: float | None = None
    utilisation: int | None = None  # percent; not known with MIG

    def __str__(self) -> str:
        shown = ", ".join(f"{key} at {start}" for key, start in self.instances) or "no instances"
        mig = f"MIG {self.mig}" + (f", {shown}" if self.mig == "on" else "")
        return f"GPU {self.index}: {self.name}, {self.pci or 'PCI address unknown'}, NUMA node {self.numa}, {mig}"


@dataclass
class Machine:
    """What `discover` found. `source`: nvml or nvidia-smi."""

    source: str
    gpus: list[Gpu]
    core_numa: list[int]
    numa_disks: list[list[str]]
    root_nics: dict[str, list[str]]
    disks: list[str]  # major:minor of the whole disks
    notes: list[str] = field(default_factory=list)

    def config(self, *, journal: str = "/var/lib/gpusched/journal.sqlite") -> dict[str, Any]:
        """A complete configuration. Processes in GPU instances become tenants: the first of an instance is protected."""
        roots: dict[str, dict[str, Any]] = {}
        bridges: list[str] = []
        usable = [gpu for gpu in self.gpus if gpu.device is not None]
        for gpu in usable:
            if gpu.bridge not in bridges:
                bridges.append(gpu.bridge)
            roots.setdefault(
                gpu.root,
                {
                    "capacity_bytes_per_s": gpu.link_bytes_per_s or DEFAULT_CAPACITY,
                    "bridge": bridges.index(gpu.bridge),
                    "numa": gpu.numa,
                },
            )
        names = list(roots)
        tenants, live = self._tenants(usable)
        if not tenants and usable:  # a configuration needs a tenant: one to edit
            device, instances = usable[0].device or "", usable[0].instances
            profile, start = instances[0] if instances else (next(iter(profiles(device))), 0)
            tenants = [{"name": "service", "protected": True, "start": {"gpu": 0, "profile": profile, "slice": start}}]
            live = {"service": {"latency": {"socket": "/run/gpusched/service.sock"}}}
        return {
            "format": "gpusched.control",
            "version": 1,
            "host": {
                "roots": list(roots.values()),
                "gpus": [{"device": gpu.device, "root": names.index(gpu.root), "numa": gpu.numa} for gpu in usable],
                "core_numa": self.core_numa,
                "numa_nodes": max([0, *self.core_numa, *(gpu.numa for gpu in usable)]) + 1,
                "tenants": tenants,
            },
            "live": {
                "mig": self.source,
                "nvml": self.source == "nvml",
                "pci": [gpu.pci for gpu in usable],
                "journal": journal,
                "numa_disks": self.numa_disks,
                "root_nics": [self.root_nics.get(name, []) for name in names],
                "metrics": "",
                "tenants": live,
            },
        }

    def _tenants(self, gpus: Sequence[Gpu]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        tenants: list[dict[str, Any]] = []
        live: dict[str, Any] = {}
        for index, gpu in enumerate(gpus):
            owners: dict[tuple[str, int], str] = {}
            for process in gpu.processes:
                if process.instance is None or (process.cgroup and self._known(live, process.cgroup)):
                    continue
                name = base = os.path.basename(process.cgroup).removesuffix(".service") or process.name or f"pid-{process.pid}"
                k = 2
                while name in live:
                    name, k = f"{base}-{k}", k + 1
                live[name] = {"cgroup": process.cgroup.lstrip("/")} if process.cgroup.strip("/") else {}
                profile, start = process.instance
                if process.instance in owners:
                    owner = owners[process.instance]
                    tenants.append({"name": name, "gpu": index, "numa": gpu.numa, "client_of": owner})
                    live[name]["disks"] = self.disks
                    continue
                owners[process.instance] = name
                place = {"gpu": index, "profile": profile, "slice": start}
                tenants.append({"name": name, "protected": True, "start": place})
                live[name]["latency"] = {"socket": f"/run/gpusched/{name}.sock"}
        return tenants, live

    @staticmethod
    def _known(live: dict[str, Any], cgroup: str) -> bool:
        return any(one.get("cgroup") == cgroup.lstrip("/") for one in live.values())

    def __str__(self) -> str:
        return "\n".join([f"found by {self.source}", *map(str, self.gpus), *self.notes])


def discover(*, sys: str = "/sys", proc: str = "/proc") -> Machine:
    """The GPUs of this machine with their MIG instances and processes, and the cores, disks and networks around them.

    Asks NVML, else `nvidia-smi`. Changes nothing. Raises BackendError without a GPU. `sys`, `proc`: folders of the kernel.
    """
    machine = Machine("nvml", [], _core_numa(sys), [], {}, [])
    try:
        nvml = Nvml()
    except BackendError as error:
        machine.source = "nvidia-smi"
        machine.gpus = _by_smi(str(error))
    else:
        try:
            machine.gpus = [_by_nvml(nvml, k, proc) for k in range(nvml.call("nvmlDeviceGetCount"))]
        except Failure as failure:
            raise BackendError(f"NVML: {failure}") from None
        finally:
            nvml.close()
    if not machine.gpus:
        raise BackendError("no NVIDIA GPU found: the driver lists none")
    for gpu in machine.gpus:
        _surroundings(gpu, sys)
        if gpu.device is None:
            machine.notes.append(f"GPU {gpu.index}: {gpu.name} has no MIG table and is left out of the configuration")
        elif gpu.mig != "on":
            machine.notes.append(f"GPU {gpu.index}: MIG is {gpu.mig}; the controller never changes the mode")
    nodes = max([0, *machine.core_numa, *(gpu.numa for gpu in machine.gpus)]) + 1
    machine.numa_disks, machine.disks = _disks(sys, nodes)
    machine.root_nics = _nics(sys)
    if not any(process.instance for gpu in machine.gpus for process in gpu.processes):
        machine.notes.append("no process runs in a GPU instance: the tenant 'service' is an example to edit")
    return machine


def device_of(name: str, memory_mib: float) -> str | None:
    """The MIG table that fits a GPU by its product name and memory."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    fitting = [device for device in control.mig_devices() if device.partition("-")[0] in words]
    return min(fitting, key=lambda device: abs(float(device.partition("-")[2][:-2]) - memory_mib / 1024), default=None)


def pcie_bytes_per_s(speed: str, width: str) -> float | None:
    """Bytes per second of a PCIe link in one direction without its encoding, from "16.0 GT/s PCIe" and "16"."""
    match = re.match(r"([\d.]+) GT/s", speed)
    if match is None or not width.strip().isdigit() or not 1 <= int(width) <= 32 or not float(match.group(1)) > 0:
        return None
    transfers = float(match.group(1))
    # 8b/10b up to 5 GT/s, 128b/130b above; from 64 GT/s fixed-size packets: 242 of 256 bytes.
    part = 0.8 if transfers <= 5 else 128 / 130 if transfers < 64 else 242 / 256
    return transfers * 1e9 / 8 * part * int(width)


def _text(path: str) -> str:
    try:
        return _files.read(path).strip()
    except Failure:
        return ""


def _numa(folder: str) -> int:
    """The NUMA node of a device; -1 if it is not known, as on virtual machines."""
    text = _text(f"{folder}/numa_node")
    return int(text) if text.isdigit() else -1


def _core_numa(sys: str) -> list[int]:
    """The NUMA node of each core."""
    nodes: dict[int, int] = {}
    for folder in glob.glob(f"{sys}/devices/system/node/node[0-9]*"):
        with contextlib.suppress(ValueError):
            nodes.update(dict.fromkeys(_files.parse_cores(_text(f"{folder}/cpulist")), int(folder.rpartition("node")[2])))
    count = max([*nodes, require("psutil", "host").cpu_count() - 1]) + 1
    return [nodes.get(core, 0) for core in range(count)]


def _by_nvml(nvml: Nvml, index: int, proc: str) -> Gpu:
    handle = nvml.find(index)
    gpu = Gpu(index, str(nvml.call("nvmlDeviceGetName", handle)))

    def ask(function: str) -> Any:
        try:
            return nvml.call(function, handle)
        except Failure:
            return None

    pci, memory = ask("nvmlDeviceGetPciInfo"), ask("nvmlDeviceGetMemoryInfo")
    gpu.uuid = ask("nvmlDeviceGetUUID") or ""
    if pci is not None:
        bus = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
        gpu.pci = bus.lower()[-12:]
    gpu.memory_mib = memory.total / (1 << 20) if memory is not None else 0.0
    gpu.device = device_of(gpu.name, gpu.memory_mib)
    utilisation = ask("nvmlDeviceGetUtilizationRates")
    gpu.utilisation = None if utilisation is None else int(utilisation.gpu)
    with contextlib.suppress(Failure):
        gpu.pcie_bytes = nvml.pcie_bytes(handle)
    with contextlib.suppress(Failure, AttributeError):
        gpu.nvlink_kib = sum(nvml.field_values(handle, [(getattr(nvml.api, name), ALL_LINKS) for name in NVLINK_FIELDS]))
    with contextlib.suppress(Failure):
        on, pending = nvml.mig_mode(handle)
        gpu.mig = "pending" if pending else "on" if on else "off"
    rows: list[Row] = []
    if gpu.mig == "on":
        with contextlib.suppress(Failure):
            rows = nvml.instances(handle)
    known = _known(gpu.device, rows)
    gpu.instances = sorted(known.values(), key=lambda one: one[1])
    for one in ask("nvmlDeviceGetComputeRunningProcesses") or []:
        instance = known.get(one.gpuInstanceId) if gpu.mig == "on" else None
        gpu.processes.append(_process(one.pid, instance, proc))
    return gpu


def _known(device: str | None, rows: Sequence[Row]) -> dict[int, tuple[str, int]]:
    """Instances by the driver's id."""
    keys = {profile.id: key for key, profile in profiles(device).items()} if device else {}
    return {row.id: (keys[row.profile_id], row.start) for row in rows if row.profile_id in keys}


def _process(pid: int, instance: tuple[str, int] | None, proc: str) -> Process:
    psutil = require("psutil", "host")
    out = Process(pid, instance=instance)
    with contextlib.suppress(psutil.Error):
        out.name = psutil.Process(pid).name()
    match = re.search(r"^0::(/.*)$", _text(f"{proc}/{pid}/cgroup"), re.MULTILINE)
    if match:
        out.cgroup = match.group(1)
        out.cpu_weight = _text(f"/sys/fs/cgroup{out.cgroup}/cpu.weight")
    return out


def _by_smi(why: str) -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        raise BackendError(f"no NVIDIA GPU found: {why}, and there is no program nvidia-smi")
    programs = Programs()
    fields = "index,name,uuid,pci.bus_id,memory.total,mig.mode.current,mig.mode.pending"
    result = programs.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
    if status_of(result) != "ok":
        last = (result.output.strip().splitlines() or ["no output"])[-1]
        raise BackendError(f"no NVIDIA GPU found: {why}, and nvidia-smi ended with code {result.code}: {last}")
    out = []
    for line in result.output.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) != 7 or not words[0].isdigit():
            continue
        gpu = Gpu(int(words[0]), words[1], words[3].lower()[-12:], words[2])
        gpu.memory_mib = float(words[4]) if words[4].isdigit() else 0.0
        gpu.device = device_of(gpu.name, gpu.memory_mib)
        now, pending = words[5].lower(), words[6].lower()
        gpu.mig = "pending" if now != pending else {"enabled": "on", "disabled": "off"}.get(now, "not supported")
        if gpu.mig == "on":
            listed = programs.run(["nvidia-smi", "mig", "-lgi", "-i", str(gpu.index)])
            rows = [row for _, row in parse_lgi(listed.output)] if status_of(listed) == "ok" else []
            gpu.instances = sorted(_known(gpu.device, rows).values(), key=lambda one: one[1])
        out.append(gpu)
    return out


def _surroundings(gpu: Gpu, sys: str) -> None:
    folder = os.path.realpath(f"{sys}/bus/pci/devices/{gpu.pci}")
    gpu.numa = max(0, _numa(folder))
    gpu.bridge, gpu.root = _ports(folder) or (f"unknown-{gpu.index}", f"unknown-{gpu.index}")
    # The current speed is that of an idle link, which is lower.
    gpu.link_bytes_per_s = pcie_bytes_per_s(_text(f"{folder}/max_link_speed"), _text(f"{folder}/current_link_width"))


def _ports(folder: str) -> tuple[str, str] | None:
    """The PCI host bridge above a device, and the port below it."""
    match = re.search(r"/(pci[0-9a-f]+:[0-9a-f]+)/([0-9a-f:.]+)", folder)
    return (match.group(1), match.group(2)) if match else None


def _disks(sys: str, nodes: int) -> tuple[list[list[str]], list[str]]:
    """The names of the whole disks by NUMA node, and their numbers."""
    by_node: list[list[str]] = [[] for _ in range(nodes)]
    numbers = []
    for folder in sorted(glob.glob(f"{sys}/block/*")):
        real = os.path.realpath(folder)
        if "/virtual/" in real:
            continue
        numbers.append(_text(f"{folder}/dev"))
        node = next((n for n in map(_numa, _parents(real)) if n >= 0), 0)
        by_node[min(node, nodes - 1)].append(os.path.basename(folder))
    return by_node, [number for number in numbers if number]


def _parents(folder: str) -> list[str]:
    out = []
    while folder.count("/") > 2:
        out.append(folder)
        folder = os.path.dirname(folder)
    return out


def _nics(sys: str) -> dict[str, list[str]]:
    """Network interfaces by the port of the PCI host bridge that leads to them."""
    out: dict[str, list[str]] = {}
    for folder in sorted(glob.glob(f"{sys}/class/net/*/device")):
        ports = _ports(os.path.realpath(folder))
        if ports is not None:
            out.setdefault(ports[1], []).append(os.path.basename(os.path.dirname(folder)))
    return out
