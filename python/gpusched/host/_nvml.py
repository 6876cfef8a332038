# SPDX-License-Identifier: Apache-2.0
"""GPUs through NVML, by nvidia-ml-py: instances, memory, counters of PCIe and NVLink."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._optional import require
from ..errors import BackendError
from ._failures import BY_NVML_CODE, Failure
from ._mig import MigBackend, Row
from ._places import Instance, profiles

INVALID_ARGUMENT = 2
ALL_LINKS = (1 << 32) - 1
MOST_GPU_INSTANCES, MOST_COMPUTE_INSTANCES = 32, 16
GPU_PROFILES, COMPUTE_PROFILES = range(18), range(10)
# Profiles of compute instances by slices; 7 is one slice with media engines.
_COMPUTE_PROFILE = {1: 0, 2: 1, 3: 2, 4: 3, 6: 6, 7: 4, 8: 5}
_COMPUTE_MEDIA = 7


@contextlib.contextmanager
def _absent(code: int = 0) -> Iterator[None]:
    """Ignores a request for something that the GPU does not have."""
    try:
        yield
    except Failure as failure:
        if failure.status not in ("not_supported", "not_found") and (code == 0 or failure.code != code):
            raise


class Nvml:
    """The driver's library. A call that fails raises `Failure`. Calls have no time limit: a driver that hangs
    holds the caller.

    Functions that change the MIG mode or reset a GPU are never called.
    """

    def __init__(self) -> None:
        """Raises BackendError without nvidia-ml-py, without the library, or if it does not start."""
        self.api = require("pynvml", "host")
        try:
            self.api.nvmlInit()
        except self.api.NVMLError as error:
            raise BackendError(f"NVML does not start: {error}") from None
        self._profiles: dict[int, list[Any]] = {}

    def close(self) -> None:
        try:
            self.api.nvmlShutdown()
        except self.api.NVMLError:
            return

    def call(self, function: str, *arguments: Any, **keywords: Any) -> Any:
        """Calls a function of NVML by name. A driver that lacks it does not support it."""
        try:
            return getattr(self.api, function)(*arguments, **keywords)
        except self.api.NVMLError as error:
            code = int(error.value)
            raise Failure(BY_NVML_CODE.get(code, "unknown"), f"{function}: {error}", code) from None
        except AttributeError:
            raise Failure("not_supported", function) from None

    def find(self, gpu: int | str) -> Any:
        """A GPU by index, or by PCI address, which stays the same over boots."""
        if isinstance(gpu, int):
            return self.call("nvmlDeviceGetHandleByIndex", gpu)
        return self.call("nvmlDeviceGetHandleByPciBusId", gpu.encode())

    def mig_mode(self, gpu: Any) -> tuple[bool, bool]:
        """Whether MIG is on, and whether that is about to change."""
        now, later = self.call("nvmlDeviceGetMigMode", gpu)
        return now == 1, now != later

    def profiles(self, gpu: Any) -> list[Any]:
        """The profiles of GPU instances as the driver has them. They do not change, so they are kept."""
        key = ctypes.cast(gpu, ctypes.c_void_p).value or 0
        if key not in self._profiles:
            self._profiles[key] = self.existing(GPU_PROFILES, "nvmlDeviceGetGpuInstanceProfileInfo", gpu)
            if not self._profiles[key]:
                raise Failure("not_supported", "no profiles of GPU instances")
        return self._profiles[key]

    def instances(self, gpu: Any) -> list[Row]:
        out = []
        for profile in self.profiles(gpu):
            if profile.instanceCount > MOST_GPU_INSTANCES:
                raise Failure("invalid_state", f"profile {profile.id} has {profile.instanceCount} instances")
            found = (self.api.c_nvmlGpuInstance_t * MOST_GPU_INSTANCES)()
            count = ctypes.c_uint(0)
            self.call("nvmlDeviceGetGpuInstances", gpu, profile.id, found, ctypes.byref(count))
            for k in range(count.value):
                out.append(self.row(found[k]))
        return out

    def row(self, instance: Any) -> Row:
        info = self.call("nvmlGpuInstanceGetInfo", instance)
        return Row(info.profileId, info.id, info.placement.start, info.placement.size)

    def instance(self, gpu: Any, number: int) -> Any:
        return self.call("nvmlDeviceGetGpuInstanceById", gpu, number)

    def existing(self, numbers: Iterable[int], function: str, of: Any, *more: Any) -> list[Any]:
        """The profiles that exist of those with these numbers. Older drivers call a number invalid."""
        out = []
        for k in numbers:
            with _absent(INVALID_ARGUMENT):
                out.append(self.call(function, of, k, *more, version=1))
        return out

    def pcie_bytes(self, gpu: Any) -> float:
        """Bytes sent and received over PCIe since some time in the past, by the whole GPU."""
        names = ("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", "NVML_FI_DEV_PCIE_COUNT_RX_BYTES")
        return sum(self.field_values(gpu, [getattr(self.api, name) for name in names]))

    def field_values(self, gpu: Any, fields: Sequence[Any]) -> list[float]:
        out = []
        for value in self.call("nvmlDeviceGetFieldValues", gpu, list(fields)):
            # Each has its own result, also if the call as a whole succeeds.
            if value.nvmlReturn != 0:
                raise Failure(BY_NVML_CODE.get(value.nvmlReturn, "unknown"), f"field {value.fieldId}")
            union = {1: "uiVal", 2: "ulVal", 3: "ullVal"}.get(value.valueType)
            if union is None:
                raise Failure("not_supported", f"field {value.fieldId}")
            out.append(float(getattr(value.value, union)))
        return out

    def pcie_rate(self, gpu: Any) -> float:
        """The same as bytes per second, over the last 20 ms, for a GPU without the counter."""
        return 1000.0 * sum(int(self.call("nvmlDeviceGetPcieThroughput", gpu, k)) for k in (0, 1))

    def pcie_replays(self, gpu: Any) -> float:
        return float(self.call("nvmlDeviceGetPcieReplayCounter", gpu))

    def nvlink_kib(self, gpu: Any) -> float:
        """KiB sent and received over all links of NVLink since some time in the past."""
        names = ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX")
        return sum(self.field_values(gpu, [(getattr(self.api, name), ALL_LINKS) for name in names]))


class NvmlMig(MigBackend):
    """GPU instances by NVML. `handles`: of `Nvml.find`, by the host's GPU."""

    name = "nvml"

    def __init__(
        self, nvml: Nvml, devices: Sequence[str], handles: Sequence[Any], owned: Iterable[Instance] = ()
    ) -> None:
        super().__init__(devices, owned)
        self._nvml = nvml
        self._handles = handles

    def _rows(self, gpu: int) -> list[Row]:
        return self._nvml.instances(self._handles[gpu])

    def _make(self, new: Instance) -> tuple[str, set[int]]:
        profile = profiles(self.devices[new.gpu])[new.profile]
        place = self._nvml.api.c_nvmlGpuInstancePlacement_t(new.slice, profile.memory_slices)
        function = "nvmlDeviceCreateGpuInstanceWithPlacement"
        try:
            made = self._nvml.call(function, self._handles[new.gpu], profile.id, ctypes.byref(place))
            return "ok", {self._nvml.row(made).id}
        except Failure as failure:
            return failure.status, set()

    def _give_compute(self, instance: Instance, number: int) -> None:
        parent = self._nvml.instance(self._handles[instance.gpu], number)
        if self._compute_instances(parent):
            return
        profile = profiles(self.devices[instance.gpu])[instance.profile]
        slices = profile.compute_slices
        wanted = [_COMPUTE_MEDIA] if profile.media and slices == 1 else []
        wanted += [_COMPUTE_PROFILE[slices]] if slices in _COMPUTE_PROFILE else []
        found = self._compute_profiles(wanted, parent)
        if not found:
            raise Failure("not_supported", f"no compute instance of {slices} slices")
        self._nvml.call("nvmlGpuInstanceCreateComputeInstance", parent, found[0].id)

    def _remove(self, gpu: int, number: int) -> None:
        parent = self._nvml.instance(self._handles[gpu], number)
        for one in self._compute_instances(parent):
            self._nvml.call("nvmlComputeInstanceDestroy", one)
        self._nvml.call("nvmlGpuInstanceDestroy", parent)

    def _compute_profiles(self, numbers: Iterable[int], parent: Any) -> list[Any]:
        return self._nvml.existing(numbers, "nvmlGpuInstanceGetComputeInstanceProfileInfo", parent, 0)

    def _compute_instances(self, parent: Any) -> list[Any]:
        """All compute instances of a GPU instance, of any profile."""
        out = []
        for info in self._compute_profiles(COMPUTE_PROFILES, parent):
            if info.instanceCount > MOST_COMPUTE_INSTANCES:
                many = f"profile {info.id} has {info.instanceCount} compute instances"
                raise Failure("invalid_state", many)
            found = (self._nvml.api.c_nvmlComputeInstance_t * MOST_COMPUTE_INSTANCES)()
            count = ctypes.c_uint(0)
            with _absent():
                function = "nvmlGpuInstanceGetComputeInstances"
                self._nvml.call(function, parent, info.id, found, ctypes.byref(count))
            out += found[: min(count.value, MOST_COMPUTE_INSTANCES)]
        return out

    def _memory_used(self, gpu: int) -> Mapping[Instance, float | str]:
        out: dict[Instance, float | str] = {}
        call, handle = self._nvml.call, self._handles[gpu]
        for k in range(call("nvmlDeviceGetMaxMigDeviceCount", handle)):
            with _absent():  # indices have gaps
                device = call("nvmlDeviceGetMigDeviceHandleByIndex", handle, k)
                parent = self._nvml.instance(handle, call("nvmlDeviceGetGpuInstanceId", device))
                instance = self._known(gpu, self._nvml.row(parent))
                if instance is not None:
                    out[instance] = self._memory_of(device)
        return out

    def _memory_of(self, device: Any) -> float | str:
        try:
            try:
                version = self._nvml.api.nvmlMemory_v2
                memory = self._nvml.call("nvmlDeviceGetMemoryInfo", device, version=version)
            except Failure as failure:
                if failure.status != "not_supported":
                    raise
                memory = self._nvml.call("nvmlDeviceGetMemoryInfo", device)
        except Failure as failure:
            return failure.status
        if memory.total == 0 or memory.free > memory.total:
            return "invalid_state"
        return float(memory.total - memory.free) / (1 << 20)

    def _profile_sizes(self, gpu: int) -> Mapping[int, float]:
        return {one.id: one.memorySizeMB for one in self._nvml.profiles(self._handles[gpu])}
