# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the library libnvidia-ml.so.1, below the real nvidia-ml-py: GPU instances in a file, faults
at any call.

The file is that of `fake_nvidia_smi`, so that both tools see the same GPUs. A fault is a return code at one
call (counted over all calls), before the call has its effect or after.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml
from fake_nvidia_smi import MIB, load, save
from gpusched import control

OK, INVALID, NOT_SUPPORTED, NOT_FOUND, TOO_SMALL, IN_USE, INSUFFICIENT = 0, 2, 3, 6, 7, 19, 23
FUNCTION_NOT_FOUND, LOST, UNKNOWN = 13, 15, 999
COMPUTE_SLICES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7}  # by number of the compute profile
GPU, INSTANCE, COMPUTE, DEVICE = (k << 40 for k in range(1, 5))  # kinds of handles


def value(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def parts(handle: Any) -> tuple[int, int]:
    """The GPU and the instance of a handle."""
    return value(handle) >> 20 & 0xFF, value(handle) & 0xFFFFF


def number(argument: Any) -> int:
    return int(getattr(argument, "value", argument))


class FakeNvml:
    def __init__(self, state: Path, device: str = "A100-40GB") -> None:
        self.state = state
        self.profiles = list(control.mig_layout(device).profiles)
        self.missing: set[str] = set()  # functions that this driver lacks
        self.calls = 0
        self.fail_at, self.code, self.after_effect = -1, UNKNOWN, False
        self.point: Callable[[], None] = lambda: None
        self.pcie = 0
        self.field_codes = [OK, OK]
        self.lost = False
        self.processes: list[tuple[int, int]] = []  # pid, id of the GPU instance
        self.used_mib: int | None = 1000
        self.name = f"NVIDIA {device.replace('-', '-SXM4-')}"
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        body = self.__class__.__dict__.get("do_" + name.removesuffix("_v2").removesuffix("_v3"))
        if not name.startswith("nvml") or body is None or name in self.missing:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.point()
            fails = self.calls == self.fail_at
            self.calls += 1
            self.log.append(name)
            # INSUFFICIENT_RESOURCES and MEMORY mean that nothing was made.
            if fails and (not self.after_effect or self.code in (20, INSUFFICIENT)):
                return self.code
            result = body(self, *arguments)
            self.point()
            return self.code if fails else int(result or OK)

        return call

    # ---- the file ----

    def load(self) -> dict[str, Any]:
        return load(str(self.state))

    def save(self, state: dict[str, Any]) -> None:
        save(str(self.state), state)

    def find(self, state: dict[str, Any], handle: Any) -> dict[str, Any] | None:
        gpu, instance = parts(handle)
        return next((one for one in state["gpus"][gpu] if one["id"] == instance), None)

    @staticmethod
    def put(argument: Any, kind: int, gpu: int, instance: int = 0) -> None:
        ctypes.c_void_p.from_buffer(getattr(argument, "_obj", argument)).value = kind | gpu << 20 | instance

    # ---- GPUs ----

    def do_nvmlInitWithFlags(self, flags: Any) -> None: ...

    def do_nvmlShutdown(self) -> None: ...

    def do_nvmlDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.load()["gpus"])

    def do_nvmlDeviceGetHandleByIndex(self, index: Any, out: Any) -> int:
        if number(index) >= len(self.load()["gpus"]):
            return NOT_FOUND
        self.put(out, GPU, number(index))
        return OK

    def do_nvmlDeviceGetHandleByPciBusId(self, pci: Any, out: Any) -> int:
        known = self.load().get("pci") or []
        if pci.value.decode() not in known:
            return NOT_FOUND
        self.put(out, GPU, known.index(pci.value.decode()))
        return OK

    def do_nvmlDeviceGetName(self, gpu: Any, out: Any, size: Any) -> None:
        out.value = self.name.encode()

    def do_nvmlDeviceGetPciInfo(self, gpu: Any, out: Any) -> None:
        known = self.load().get("pci") or ["0000:3b:00.0", "0000:af:00.0"]
        out._obj.busId = ("0000" + known[parts(gpu)[0]].upper()).encode()

    def do_nvmlDeviceGetMigMode(self, gpu: Any, now: Any, later: Any) -> None:
        now._obj.value = later._obj.value = 1

    def do_nvmlDeviceGetMemoryInfo(self, device: Any, out: Any) -> int:
        if value(device) < DEVICE:
            out._obj.total, out._obj.free = 40960 << 20, 1 << 20
            return OK
        one = self.find(self.load(), device)
        if one is None or self.used_mib is None:
            return NOT_SUPPORTED if one else NOT_FOUND
        out._obj.total = MIB[one["size"]] << 20
        out._obj.free = (MIB[one["size"]] - self.used_mib) << 20
        return OK

    def do_nvmlDeviceGetComputeRunningProcesses(self, gpu: Any, count: Any, out: Any) -> int:
        found = self.processes if parts(gpu)[0] == 0 else []
        if out is None:
            count._obj.value = len(found)
            return TOO_SMALL if found else OK
        count._obj.value = len(found)
        for k, (pid, instance) in enumerate(found):
            out[k].pid, out[k].gpuInstanceId = pid, instance
        return OK

    def do_nvmlDeviceGetPcieReplayCounter(self, gpu: Any, out: Any) -> int:
        out._obj.value = 5
        return LOST if self.lost else OK

    def do_nvmlDeviceGetPcieThroughput(self, gpu: Any, counter: Any, out: Any) -> int:
        out._obj.value = 100
        return LOST if self.lost else OK

    def do_nvmlDeviceGetFieldValues(self, gpu: Any, count: Any, out: Any) -> int:
        for k in range(number(count)):
            out._obj[k].nvmlReturn = self.field_codes[k % 2]
            out._obj[k].valueType = 3
            out._obj[k].value.ullVal = self.pcie + k
        return LOST if self.lost else OK

    # ---- GPU instances ----

    def do_nvmlDeviceGetGpuInstanceProfileInfo(self, gpu: Any, k: Any, out: Any) -> int:
        if self.lost:
            return LOST
        for profile in self.profiles:
            if profile.nvml_index == number(k):
                out._obj.id, out._obj.instanceCount = profile.id, profile.max_count
                out._obj.multiprocessorCount, out._obj.memorySizeMB = profile.sm_count, profile.memory_mib
                return OK
        return NOT_SUPPORTED if number(k) < 10 else INVALID

    def do_nvmlDeviceGetGpuInstances(self, gpu: Any, profile: Any, out: Any, count: Any) -> int:
        g = parts(gpu)[0]
        found = [one["id"] for one in self.load()["gpus"][g] if one["profile"] == number(profile)]
        count._obj.value = len(found)
        for k, instance in enumerate(found):
            ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[k] = INSTANCE | g << 20 | instance
        return LOST if self.lost else OK

    def do_nvmlDeviceGetGpuInstanceById(self, gpu: Any, instance: Any, out: Any) -> int:
        g = parts(gpu)[0]
        if all(one["id"] != number(instance) for one in self.load()["gpus"][g]):
            return NOT_FOUND
        self.put(out, INSTANCE, g, number(instance))
        return OK

    def do_nvmlGpuInstanceGetInfo(self, handle: Any, out: Any) -> int:
        one = self.find(self.load(), handle)
        if one is None:
            return NOT_FOUND
        out._obj.id, out._obj.profileId = one["id"], one["profile"]
        out._obj.placement.start, out._obj.placement.size = one["start"], one["size"]
        return OK

    def do_nvmlDeviceCreateGpuInstanceWithPlacement(
        self, gpu: Any, profile: Any, place: Any, out: Any
    ) -> int:
        g, state = parts(gpu)[0], self.load()
        start, size = place._obj.start, place._obj.size
        new = {"profile": number(profile), "start": start, "size": size, "compute": False, "mine": True}
        if state.pop("intrude", False):
            state["gpus"][g].append({**new, "id": 77, "compute": True, "mine": False})
            self.save(state)
        if any(
            start < one["start"] + one["size"] and one["start"] < start + size for one in state["gpus"][g]
        ):
            return INSUFFICIENT
        state["gpus"][g].append({**new, "id": state["next"]})
        self.put(out, INSTANCE, g, state["next"])
        state["next"] += 1
        self.save(state)
        return OK

    def do_nvmlGpuInstanceDestroy(self, handle: Any) -> int:
        state = self.load()
        one = self.find(state, handle)
        if one is None:
            return NOT_FOUND
        state["forbidden"] |= not one["mine"]
        if one["compute"]:
            return IN_USE
        state["gpus"][parts(handle)[0]].remove(one)
        self.save(state)
        return OK

    # ---- compute instances ----

    def do_nvmlGpuInstanceGetComputeInstanceProfileInfo(
        self, handle: Any, k: Any, engine: Any, out: Any
    ) -> int:
        one = self.find(self.load(), handle)
        if one is None:
            return NOT_FOUND
        if number(k) not in COMPUTE_SLICES or COMPUTE_SLICES[number(k)] > one["size"]:
            return NOT_SUPPORTED
        out._obj.id, out._obj.instanceCount = number(k), 1
        return OK

    def do_nvmlGpuInstanceGetComputeInstances(self, handle: Any, profile: Any, out: Any, count: Any) -> int:
        one = self.find(self.load(), handle)
        slices = next(p.compute_slices for p in self.profiles if p.id == (one or {"profile": 0})["profile"])
        there = one is not None and one["compute"] and COMPUTE_SLICES[number(profile)] == slices
        count._obj.value = int(there)
        if there:
            gpu, instance = parts(handle)
            ctypes.cast(out, ctypes.POINTER(ctypes.c_void_p))[0] = COMPUTE | gpu << 20 | instance
        return OK

    def change(self, handle: Any, compute: bool) -> int:
        state = self.load()
        one = self.find(state, handle)
        if one is None:
            return NOT_FOUND
        state["forbidden"] |= not one["mine"]
        if not compute and one.get("client"):
            return IN_USE
        one["compute"] = compute
        self.save(state)
        return OK

    def do_nvmlGpuInstanceCreateComputeInstance(self, handle: Any, profile: Any, out: Any) -> int:
        return self.change(handle, True)

    def do_nvmlComputeInstanceDestroy(self, handle: Any) -> int:
        return self.change(handle, False)

    # ---- MIG devices ----

    def do_nvmlDeviceGetMaxMigDeviceCount(self, gpu: Any, out: Any) -> None:
        out._obj.value = 7

    def do_nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: Any, k: Any, out: Any) -> int:
        g = parts(gpu)[0]
        found = [one["id"] for one in self.load()["gpus"][g] if one["compute"]]
        if number(k) % 2 or number(k) // 2 >= len(found):  # indices have gaps
            return NOT_FOUND
        self.put(out, DEVICE, g, found[number(k) // 2])
        return OK

    def do_nvmlDeviceGetGpuInstanceId(self, device: Any, out: Any) -> None:
        out._obj.value = parts(device)[1]


@contextmanager
def installed(library: FakeNvml | None) -> Iterator[None]:
    """nvidia-ml-py uses this library; None: it finds none."""
    before = pynvml.nvmlLib
    pynvml.nvmlLib = library
    pynvml._nvmlGetFunctionPointer_cache.clear()
    try:
        yield
    finally:
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
