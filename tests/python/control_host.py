# SPDX-License-Identifier: Apache-2.0
"""A folder that looks like a host, and the `gpusched control` command on it."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import control_documents
import fake_nvidia_smi
import gpusched as gs
import pytest
from gpusched import cli

HERE = Path(__file__).resolve().parent
TWO_G = 14
NO_CHANGES = {"place": False, "mig": False}
NO_GUARDS = {"rollback": False, "guard_io": False}


class Host:
    """A folder that looks like a host; T1 is protected and in 2g at 0 of GPU 0, T2 reads from disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "cg/t1", "cg/t2", "proc/sys/kernel/random"):
            (folder / name).mkdir(parents=True)
        self.script("nvidia-smi", f'exec "{sys.executable}" -S "{HERE / "fake_nvidia_smi.py"}" "$@"')
        self.script("move-t1", f'echo "$@" >> "{folder}/moves"')
        self.write("cg/t1/cpuset.cpus", "\n")
        self.write("cg/t1/cpuset.cpus.effective", "0-3\n")
        self.write("cg/t2/io.max", "")
        self.write("cg/t2/io.stat", "")
        self.write("proc/sys/kernel/random/boot_id", "b1\n")
        self.write("proc/interrupts", "CPU0 CPU1 CPU2 CPU3\n 9: 1 1 1 1 chip\n")
        self.read_bytes = 0
        self.tick(0)
        self.gpus(
            [[self.gi(TWO_G, 1, 0, 2, True), self.gi(19, 2, 6, 1, False)], [self.gi(9, 3, 0, 4, False)]]
        )

    @staticmethod
    def gi(profile: int, number: int, start: int, size: int, mine: bool) -> dict[str, Any]:
        return {"profile": profile, "id": number, "start": start, "size": size, "compute": True, "mine": mine}

    def script(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.with_suffix(".tmp").write_text(text, encoding="utf-8")
        path.with_suffix(".tmp").replace(path)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def gpus(self, instances: list[list[dict[str, Any]]], **more: Any) -> None:
        with open(self.folder / "smi.state.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # no `nvidia-smi` that runs writes back what it read before
            state = {"gpus": instances, "next": 10, "forbidden": False, **more}
            fake_nvidia_smi.save(str(self.folder / "smi.state"), state)

    def smi(self) -> dict[str, Any]:
        """The state of the GPUs; no instance of others has been touched."""
        state = fake_nvidia_smi.load(str(self.folder / "smi.state"))
        assert not state["forbidden"]
        return state

    def tick(self, read: int) -> None:
        self.read_bytes += read
        self.write(
            "cg/t2/io.stat", f"259:0 rbytes={self.read_bytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"
        )
        self.write("proc/diskstats", f" 259 0 nvme0n1 1 0 {self.read_bytes // 512} 0 0 0 0 0 0 0 0\n")

    @contextlib.contextmanager
    def working(self, line: str, read: int = 0) -> Iterator[None]:
        """T1 writes this line again and again, and T2 reads from disk."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.02):
                with open(self.folder / "t1.log", "a", encoding="utf-8") as file:
                    file.write(line)
                self.tick(read)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def config(self, **more: Any) -> dict[str, Any]:
        return {
            **control_documents.config(),
            "host": control_documents.config()["host"] | {"core_numa": [0, 0, 0, 0]},
            "options": {
                "window_s": 0.1, "least_samples": 1, "persistence": 1, "stale_after": 1000, "io_high": 1000,
                "io_low": 500, "dwell": 4, "guard_dwell": 1, "cool_down": 2, "validation": 3, "lease_s": 60,
            },
            "live": {
                "nvml": False,
                "mig": "nvidia-smi",
                "journal": str(self.folder / "journal.sqlite"),
                "layout_every": 1,
                "backoff_s": 0,
                "lock_wait_s": 20,
                "cgroups": str(self.folder / "cg"),
                "proc": str(self.folder / "proc"),
                "numa_disks": [["nvme0n1"]],
                "tenants": {
                    "T1": {
                        "latency": {"file": str(self.folder / "t1.log")},
                        "cgroup": "t1",
                        "switch_over": ["move-t1", "{gpu}", "{profile}", "{slice}"],
                    },
                    "T2": {"cgroup": "t2", "disks": ["259:0"]},
                },
            },
            **copy.deepcopy(more),
        }  # fmt: skip

    def arguments(self, config: dict[str, Any], *more: str) -> list[str]:
        self.write("config.json", json.dumps(config))
        return ["control", "--config", str(self.folder / "config.json"), *more]

    def environment(self) -> dict[str, str]:
        """The host's programs are those of the process that has it."""
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "FAKE_SMI_STATE": str(self.folder / "smi.state"),
        }

    def command(self, config: dict[str, Any], *more: str) -> tuple[list[str], dict[str, str]]:
        program = [sys.executable, "-m", "gpusched", *self.arguments(config, *more)]
        return program, {**os.environ, **self.environment(), "PYTHONUNBUFFERED": "1"}

    def borrow_programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)

    def start(self, config: dict[str, Any], *more: str) -> subprocess.Popen[str]:
        command, environment = self.command(config, *more)
        return subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, config: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
        """The command to its end, in this process, which starts sooner than a new one."""
        out, errors, arguments = io.StringIO(), io.StringIO(), self.arguments(config, *more)
        with (
            mock.patch.dict(os.environ, self.environment()),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            code = cli.main(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), errors.getvalue())

    def run_until(self, config: dict[str, Any], words: str, *more: str) -> str:
        """As `run`, for as many windows as it takes until a line has these words; then asked to end, which it
        does. Returns its lines.
        """
        with self.start(config, *more) as running:
            late = threading.Timer(60, running.kill)
            late.start()
            assert running.stdout is not None
            lines = []
            for line in running.stdout:
                lines.append(line)
                if words in line:
                    running.send_signal(signal.SIGTERM)
                    break
            lines += running.stdout
            late.cancel()
        out = "".join(lines)
        assert running.returncode == 0 and words in out, out
        return out

    def start_again(self, config: dict[str, Any]) -> str:
        """A start without a window, which succeeds. Returns its lines."""
        again = self.run(config, "--windows", "0")
        assert again.returncode == 0, again.stderr
        return again.stdout

    def journal(self) -> gs.host.Journal:
        """The journal as it is now; the file may not exist yet."""
        return gs.host.Journal(self.folder / "journal.sqlite", read_only=True)

    def require_known(self) -> gs.host.Configuration:
        """T1 has one whole instance, that of the journal; nobody else's was touched."""
        state = self.smi()
        others = [i for gpu in state["gpus"] for i in gpu if not i["mine"]]
        assert [(i["id"], i["compute"]) for i in others] == [(2, True), (3, True)]
        mine = [(g, i) for g, gpu in enumerate(state["gpus"]) for i in gpu if i["mine"]]
        assert len(mine) == 1 and mine[0][1]["compute"]
        with self.journal() as journal:
            entry = journal.tenants["T1"]
            assert entry.pending is None and journal.leases == []
        now = entry.now
        assert (now.gpu, now.slice) == (mine[0][0], mine[0][1]["start"])
        assert self.read("cg/t2/io.max").strip() in ("", "259:0 rbps=max wbps=max riops=max wiops=max")
        return now
