"""GPUs through NVML, by nvidia-ml-py: instances, memory, counters of PCIe and NVLink."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._optional import require
from ..errors import BackendError
from ._failures import Failure
from ._mig import MigBackend, Row
from ._places import Instance, profiles

_CODES = {
    1: "invalid_state",  # UNINITIALIZED
    3: "not_supported",
    4: "no_permission",
    6: "not_found",
    10: "timeout",
    13: "not_supported",  # FUNCTION_NOT_FOUND
    15: "gpu_is_lost",
    16: "reset_required",
    17: "no_permission",  # OPERATING_SYSTEM: the device is blocked, as by a control group
    19: "in_use",
    20: "insufficient_resources",  # MEMORY
    23: "insufficient_resources",
    25: "not_supported",  # ARGUMENT_VERSION_MISMATCH
    26: "not_supported",  # DEPRECATED
    28: "not_found",  # GPU_NOT_FOUND
    29: "invalid_state",
}
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
            raise Failure(_CODES.get(code, "unknown"), f"{function}: {error}", code) from None
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
            self._profiles[key] = self._each(GPU_PROFILES, "nvmlDeviceGetGpuInstanceProfileInfo", gpu)
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

    def create_instance(self, gpu: Any, profile_id: int, start: int, size: int) -> int:
        """A GPU instance without a compute instance. Returns its id."""
        place = self.api.c_nvmlGpuInstancePlacement_t(start, size)
        made = self.call("nvmlDeviceCreateGpuInstanceWithPlacement", gpu, profile_id, ctypes.byref(place))
        return self.row(made).id

    def instance(self, gpu: Any, number: int) -> Any:
        return self.call("nvmlDeviceGetGpuInstanceById", gpu, number)

    def compute_instances(self, gpu: Any, number: int) -> list[Any]:
        """All compute instances of a GPU instance, of any profile."""
        instance = self.instance(gpu, number)
        out = []
        for info in self._each(COMPUTE_PROFILES, "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, 0):
            if info.instanceCount > MOST_COMPUTE_INSTANCES:
                raise Failure(
                    "invalid_state", f"profile {info.id} has {info.instanceCount} compute instances"
                )
            found = (self.api.c_nvmlComputeInstance_t * MOST_COMPUTE_INSTANCES)()
            count = ctypes.c_uint(0)
            with _absent():
                self.call("nvmlGpuInstanceGetComputeInstances", instance, info.id, found, ctypes.byref(count))
            out += [found[k] for k in range(min(count.value, MOST_COMPUTE_INSTANCES))]
        return out

    def create_compute_instance(self, gpu: Any, number: int, slices: int, media: bool) -> None:
        """A compute instance with all slices of the GPU instance."""
        instance = self.instance(gpu, number)
        wanted = [_COMPUTE_MEDIA] if media and slices == 1 else []
        wanted += [_COMPUTE_PROFILE[slices]] if slices in _COMPUTE_PROFILE else []
        for k in wanted:
            for info in self._each([k], "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, 0):
                self.call("nvmlGpuInstanceCreateComputeInstance", instance, info.id)
                return
        raise Failure("not_supported", f"no compute instance of {slices} slices")

    def memory_used(self, gpu: Any) -> dict[tuple[int, int], float | str]:
        """MiB that are not free, by profile id and first slice, for each instance with a MIG device."""
        out: dict[tuple[int, int], float | str] = {}
        for k in range(self.call("nvmlDeviceGetMaxMigDeviceCount", gpu)):
            device = None
            with _absent():  # indices have gaps
                device = self.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu, k)
            if device is None:
                continue
            row = self.row(self.instance(gpu, self.call("nvmlDeviceGetGpuInstanceId", device)))
            try:
                out[row.profile_id, row.start] = self._used(device)
            except Failure as failure:
                out[row.profile_id, row.start] = failure.status
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
                raise Failure(_CODES.get(value.nvmlReturn, "unknown"), f"field {value.fieldId}")
            union = {1: "uiVal", 2: "ulVal", 3: "ullVal"}.get(value.valueType)
            if union is None:
                raise Failure("not_supported", f"field {value.fieldId}")
            out.append(float(getattr(value.value, union)))
        return out

    def pcie_rate(self, gpu: Any) -> float:
        """The same as bytes per second, over the last 20 ms, for a GPU without the counter."""
        return sum(1000.0 * self.call("nvmlDeviceGetPcieThroughput", gpu, counter) for counter in (0, 1))

    def pcie_replays(self, gpu: Any) -> float:
        return float(self.call("nvmlDeviceGetPcieReplayCounter", gpu))

    def nvlink_kib(self, gpu: Any) -> float:
        """KiB sent and received over all links of NVLink since some time in the past."""
        names = ("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX")
        return sum(self.field_values(gpu, [(getattr(self.api, name), ALL_LINKS) for name in names]))

    def _used(self, device: Any) -> float:
        try:
            memory = self.call("nvmlDeviceGetMemoryInfo", device, version=self.api.nvmlMemory_v2)
        except Failure as failure:
            if failure.status != "not_supported":
                raise
            memory = self.call("nvmlDeviceGetMemoryInfo", device)
        if memory.total == 0 or memory.free > memory.total:
            raise Failure("invalid_state", "memory")
        return float(memory.total - memory.free) / (1 << 20)

    def _each(self, numbers: Iterable[int], function: str, of: Any, *more: Any) -> list[Any]:
        """The profiles that exist of those with these numbers. Drivers older than a number call it invalid."""
        out = []
        for k in numbers:
            with _absent(INVALID_ARGUMENT):
                out.append(self.call(function, of, k, *more, version=1))
        return out


class NvmlMig(MigBackend):
    """GPU instances by NVML. `handles`: of `Nvml.find`, by the host's GPU."""

    name = "nvml"

    def __init__(
        self, nvml: Nvml, devices: Sequence[str], handles: Sequence[Any], owned: Iterable[Instance] = ()
    ) -> None:
        super().__init__(devices, owned)
        self._nvml = nvml
        self._handles = handles

    def memory_used(self, gpu: int) -> Mapping[Instance, float | str]:
        keys = {profile.id: key for key, profile in profiles(self.devices[gpu]).items()}
        found = self._nvml.memory_used(self._handles[gpu])
        return {
            Instance(gpu, keys[number], start): mib
            for (number, start), mib in found.items()
            if number in keys
        }

    def memory_shortfall(self, gpu: int) -> float:
        ours = {profile.id: profile.memory_mib for profile in profiles(self.devices[gpu]).values()}
        found = self._nvml.profiles(self._handles[gpu])
        return max([0.0, *(float(ours[one.id] - one.memorySizeMB) for one in found if one.id in ours)])

    def _rows(self, gpu: int) -> list[Row]:
        return self._nvml.instances(self._handles[gpu])

    def _make(self, new: Instance) -> tuple[str, set[int]]:
        profile = profiles(self.devices[new.gpu])[new.profile]
        try:
            made = self._nvml.create_instance(
                self._handles[new.gpu], profile.id, new.slice, profile.memory_slices
            )
        except Failure as failure:
            return failure.status, set()
        return "ok", {made}

    def _give_compute(self, instance: Instance, number: int) -> None:
        gpu = self._handles[instance.gpu]
        if not self._nvml.compute_instances(gpu, number):
            profile = profiles(self.devices[instance.gpu])[instance.profile]
            self._nvml.create_compute_instance(gpu, number, profile.compute_slices, profile.media)

    def _remove(self, gpu: int, number: int) -> None:
        handle = self._handles[gpu]
        for one in self._nvml.compute_instances(handle, number):
            self._nvml.call("nvmlComputeInstanceDestroy", one)
        self._nvml.call("nvmlGpuInstanceDestroy", self._nvml.instance(handle, number))
