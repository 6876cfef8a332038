#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the controller of a host costs: CPU time of an observation and of a decision.

32 protected tenants in MIG instances of 8 GPUs, their latencies in files. Files, /proc and the journal are
real; control groups are files of a folder, and NVML is the stand-in of the tests, whose calls take a few
microseconds, as Python and without a driver.

    PYTHONPATH=<package> python3 benchmarks/control/host_cost.py [--windows 200] [--requests 100]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "python"))

import fake_nvml  # noqa: E402
import gpusched as gs  # noqa: E402

GPUS, PER_GPU, CORES = 8, 4, 64


def world(folder: Path) -> tuple[dict[str, Any], fake_nvml.FakeNvml]:
    """A host with four instances of 1g on each GPU."""
    gpus: list[list[dict[str, Any]]] = []
    tenants: list[dict[str, Any]] = []
    live: dict[str, Any] = {}
    for gpu in range(GPUS):
        gpus.append([])
        for start in range(PER_GPU):
            name = f"T{gpu}-{start}"
            number = gpu * PER_GPU + start + 1
            gpus[gpu].append(
                {"profile": 19, "id": number, "start": start, "size": 1, "compute": True, "mine": True}
            )
            tenants.append(
                {"name": name, "protected": True, "start": {"gpu": gpu, "profile": "1g", "slice": start}}
            )
            (folder / "cg" / name).mkdir(parents=True)
            (folder / "cg" / name / "io.stat").write_text("259:0 rbytes=1 wbytes=1\n", encoding="utf-8")
            (folder / name).touch()
            live[name] = {"latency": {"file": str(folder / name)}, "cgroup": name}
    # /proc of this machine, and an identity of the boot, which containers lack.
    (folder / "proc/sys/kernel/random").mkdir(parents=True)
    (folder / "proc/sys/kernel/random/boot_id").write_text("boot\n", encoding="utf-8")
    for file in ("interrupts", "diskstats"):
        (folder / "proc" / file).symlink_to(f"/proc/{file}")
    state = {"gpus": gpus, "next": 100, "forbidden": False}
    library = fake_nvml.FakeNvml(folder / "unused")
    library.load = lambda: state  # type: ignore[method-assign]
    config = {
        "format": "gpusched.control",
        "version": 1,
        "host": {
            "roots": [{"bridge": gpu // 2} for gpu in range(GPUS)],
            "gpus": [{"root": gpu} for gpu in range(GPUS)],
            "core_numa": [0] * CORES,
            "tenants": tenants,
        },
        "live": {
            "mig": "nvml",
            "journal": str(folder / "journal"),
            "cgroups": str(folder / "cg"),
            "proc": str(folder / "proc"),
            "numa_disks": [["sda"]],
            "tenants": live,
        },
    }
    return config, library


def milliseconds(times: list[float]) -> str:
    ordered = sorted(times)
    median, p99 = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
    return f"median {1e3 * median:6.2f} ms, p99 {1e3 * p99:6.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", type=int, default=200)
    parser.add_argument("--requests", type=int, default=100, help="of a tenant in a window")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, library = world(folder)
        observing: dict[str, list[float]] = {"with a look at the instances": [], "without": []}
        deciding = []
        with (
            fake_nvml.installed(library),
            gs.host.Controller(config, audit=str(folder / "audit")) as controller,
        ):
            controller.start()
            for _ in range(arguments.windows):
                for tenant in config["live"]["tenants"]:
                    with open(folder / tenant, "a", encoding="utf-8") as file:
                        file.write("5.25\n" * arguments.requests)
                calls = library.calls
                began = time.thread_time()
                observation, _ = controller.observe()
                seconds = time.thread_time() - began
                looked = library.calls - calls > 10 * GPUS
                observing["with a look at the instances" if looked else "without"].append(seconds)
                began = time.thread_time()
                controller.decide(observation)
                deciding.append(time.thread_time() - began)
    print(f"{GPUS * PER_GPU} tenants, {GPUS} GPUs, {arguments.requests} requests of a tenant in a window")
    for kind, times in observing.items():
        print(f"observation, {kind:28}: {milliseconds(times)}")
    print(f"decision, its log line and actions       : {milliseconds(deciding)}")


if __name__ == "__main__":
    main()
