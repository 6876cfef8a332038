# SPDX-License-Identifier: Apache-2.0
"""The interfaces of this machine at a start: NVML, GPU instances, control groups, MPS daemons. Each is looked
for once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from typing import Any

from ..errors import BackendError
from . import _files
from ._actuator import Mps
from ._config import Live
from ._failures import Failure, attempt
from ._mig import MigBackend, NoMig
from ._nvml import Nvml, NvmlMig
from ._places import Instance, profiles
from ._programs import Programs
from ._smi import SmiMig


class Interfaces:
    """What the controller can reach. `lines`: one for each interface; `missing`: flags without one, and why.

    `driver`: runs the driver's programs; `owned`: the controller's own instances; `closers`: gets the calls
    that give NVML up. Raises BackendError if the GPU instances are to be changed and there is no driver.
    """

    def __init__(
        self,
        live: Live,
        host: Mapping[str, Any],
        driver: Programs,
        owned: set[Instance],
        closers: contextlib.ExitStack,
    ) -> None:
        self.lines: list[str] = []
        self.missing: dict[str, str] = {}
        self._live = live
        self._host = host
        self._devices = [gpu["device"] for gpu in host["gpus"]]
        self.nvml: Nvml | None = None
        self.handles: list[Any] = []  # of `nvml.find`, by GPU
        self._load_nvml(closers)
        self._compare_tables()
        self.mig = self._backend(driver, owned)  # changes the instances
        self.eyes = self.mig  # windows look at the instances with it
        self._look_at_instances()

    @property
    def memory_sources(self) -> list[MigBackend]:
        """Backends to ask for the memory in use, the quicker one first."""
        return list(dict.fromkeys((self.eyes, self.mig)))

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _load_nvml(self, closers: contextlib.ExitStack) -> None:
        if not self._live.nvml:
            return self._say("NVML is off; PCIe traffic is unknown")
        try:
            nvml = Nvml()
            closers.callback(nvml.close)
            for name in self._live.pci or range(len(self._devices)):
                self.handles.append(nvml.find(name))
        except (BackendError, Failure) as error:
            lost = f"NVML: GPU {len(self.handles)}: "
            why = f"{lost}{error.status}" if isinstance(error, Failure) else str(error)
            self.handles = []
            if self._live.mig == "nvml":
                raise _no_gpu(why) from None
            return self._say(f"{why}; PCIe traffic is unknown")
        self.nvml = nvml
        self._say(f"NVML: {len(self.handles)} GPUs")

    def _backend(self, driver: Programs, owned: set[Instance]) -> MigBackend:
        if self._live.mig == "nvml":
            assert self.nvml is not None
            return NvmlMig(self.nvml, self._devices, self.handles, owned)
        if self._live.mig == "none":
            return NoMig(self._devices, owned)
        if shutil.which("nvidia-smi") is None:
            raise _no_gpu("there is no program nvidia-smi")
        return SmiMig(driver, self._devices, owned, self._live.pci)

    def _compare_tables(self) -> None:
        """Says which counters a GPU has, and what in its MIG table is not as the driver has it."""
        for number, handle in enumerate(self.handles):
            assert self.nvml is not None
            status = attempt(self.nvml.pcie_bytes, handle)
            counted = "counted" if status == "ok" else f"not counted ({status})"
            self._say(f"GPU {number}: PCIe bytes {counted}")
            device = self._devices[number]
            with contextlib.suppress(Failure):
                sms = {one.id: one.multiprocessorCount for one in self.nvml.profiles(handle)}
                for key, ours in profiles(device).items():
                    if sms.get(ours.id) != ours.sm_count:
                        found = f"{sms[ours.id]} SMs for {key}" if ours.id in sms else f"no {key}"
                        table = f"the table of {device} {ours.sm_count} SMs"
                        self._say(f"GPU {number}: the driver has {found}, {table}")

    def _look_at_instances(self) -> None:
        why = ""
        if self._live.mig == "none":
            why = "no MIG backend"
        elif not self._can_read_instances():
            why = "instances cannot be read"
        elif not any(self._live.tenants[one["name"]].switch_over for one in self._protected()):
            why = "no tenant has a switch_over program"
        if why:
            self.missing.update(place=why, mig=why)

    def _can_read_instances(self) -> bool:
        """Looks with both backends. NVML is quicker, so windows look with it if it sees the same."""
        quicker = None
        if self.nvml is not None and self._live.mig == "nvidia-smi":
            quicker = NvmlMig(self.nvml, self._devices, self.handles)
        for number in range(len(self._devices)):
            try:
                found = self.mig.read(number)
            except Failure as failure:
                how = f"cannot be read by {self.mig.name}: {failure.status}"
                self._say(f"GPU {number}: instances {how}")
                return False
            self._say(f"GPU {number}: {len(found)} instances by {self.mig.name}")
            try:
                same = quicker is not None and sorted(quicker.read(number)) == sorted(found)
            except Failure:
                same = False
            quicker = quicker if same else None
        if quicker is not None:
            self.eyes = quicker
            self._say("windows look at the instances by nvml: no program is started for that")
        return True

    def look_for_guards(self, hooks: Programs) -> None:
        """Looks for limits of block I/O, cores and MPS daemons. `hooks`: runs the daemons' program."""
        io = pin = mps = False
        for one in self._host["tenants"]:
            name, tenant, group = one["name"], self._live.tenants[one["name"]], self._live.group(one["name"])
            if not one["protected"] and group and tenant.disks:
                good = _files.writable(f"{group}/io.max")
                self._say(f"{name}: io.max {'can' if good else 'cannot'} be written")
                io |= good
            if one["protected"] and group:
                how = _ways_to_pin(group)
                self._say(f"{name}: {how or 'neither cpuset.cpus nor cgroup.threads can be written'}")
                pin |= bool(how)
            if one.get("client_of") and tenant.mps_pipe:
                status = attempt(Mps(hooks, tenant.mps_pipe).probe)
                answer = "answers" if status == "ok" else f"does not answer: {status}"
                new_only = "" if tenant.restart else "; quotas reach new clients only"
                self._say(f"{name}: MPS daemon {answer}{new_only}")
                mps |= status == "ok"
        if not io:
            self.missing["guard_io"] = "no other tenant's io.max can be written"
        if not pin:
            self.missing["pin"] = "no protected tenant's cores can be set"
        if not mps:
            self.missing["guard_mps"] = "no MPS daemon answers"

    def _protected(self) -> list[Mapping[str, Any]]:
        return [one for one in self._host["tenants"] if one["protected"]]


def _no_gpu(why: str) -> BackendError:
    return BackendError(
        f"no NVIDIA GPU can be reached ({why}); live.mig = none controls without GPU instances"
    )


def _ways_to_pin(group: str) -> str:
    """How the cores of a control group can be set; empty if they cannot."""
    if _files.writable(f"{group}/cpuset.cpus"):
        return "cpuset.cpus can be written"
    if not os.path.exists(f"{group}/cpuset.cpus") and _files.writable(f"{group}/cgroup.threads"):
        return "no cpuset.cpus; the cores of its threads are set"
    return ""
