# SPDX-License-Identifier: Apache-2.0
"""A host that outlives the process which works on it: its GPUs, control groups and journal are in files.

T1 is protected and in 2g at 0 of GPU 0, T2 is limited, T3 is an MPS client of T1; instances of others stand
around. A process can be killed at any point: before and after every command, call of NVML, write of a file
and of the journal, and between the two halves of a creation.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fake_nvidia_smi
import fake_nvml
from gpusched.host import Configuration, Journal, TenantEntry, _files
from gpusched.host._actuator import Actuator, Ended
from gpusched.host._config import Live, Tenant
from gpusched.host._mig import MigBackend, NoMig
from gpusched.host._nvml import Nvml, NvmlMig
from gpusched.host._programs import Programs, Result
from gpusched.host._recovery import Recovery, recover
from gpusched.host._smi import SmiMig

DEVICES = ["A100-40GB", "A100-40GB"]
BEFORE = Configuration(0, "2g", 0)
SIZES = {"1g": (19, 1), "2g": (14, 2), "3g": (9, 4), "4g": (5, 4), "7g": (0, 8)}
LIMIT = "259:0 rbps=max wbps=2000000 riops=max wiops=max\n"


class Points:
    """Counts points of work, and kills this process at one of them."""

    def __init__(self) -> None:
        self.count, self.kill_at = 0, -1

    def __call__(self) -> None:
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


class World:
    def __init__(self, folder: Path, *, disjoint: bool = True, backend: str = "nvidia-smi") -> None:
        self.folder = folder
        self.backend = backend
        self.point = Points()
        self.notes: list[str] = []
        self.after = (
            Configuration(1, "2g", 4, cpus="4-5") if disjoint else Configuration(0, "4g", 0, cpus="4-5")
        )
        self.state = folder / "smi.state"
        gpus = [[self.gi("2g", 1, 0, True), self.gi("1g", 2, 6, False)], [self.gi("3g", 3, 0, False)]]
        if not disjoint:
            gpus[0].append(self.gi("2g", 4, 4, False))
        self.save({"gpus": gpus, "next": 10, "forbidden": False})
        (folder / "cg/t1").mkdir(parents=True)
        (folder / "cg/t2").mkdir(parents=True)
        self.write("cg/t1/cpuset.cpus", "\n")
        self.write("cg/t1/cpuset.cpus.effective", "0-7\n")
        self.write("cg/t2/io.max", LIMIT)
        self.live = Live(journal=str(folder / "journal.sqlite"), cgroups=str(folder / "cg"), backoff_s=0.0)
        switch = ["switch", "{gpu}", "{profile}", "{slice}"]
        self.live.tenants = {
            "T1": Tenant(cgroup="t1", switch_over=switch, drain=["drain"]),
            "T2": Tenant(cgroup="t2", disks=["259:0", "259:1"]),
            "T3": Tenant(mps_pipe="/run/mps", restart=["restart-t3"]),
        }
        self.host = {"tenants": [{"name": "T1"}, {"name": "T2"}, {"name": "T3", "client_of": "T1"}]}
        self.nvml = fake_nvml.FakeNvml(self.state)
        self.programs = FakePrograms(self)

    @staticmethod
    def gi(profile: str, number: int, start: int, mine: bool) -> dict[str, Any]:
        code, size = SIZES[profile]
        one = {"profile": code, "id": number, "start": start, "size": size, "compute": True}
        return {**one, "mine": mine, "client": mine}

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def load(self) -> dict[str, Any]:
        return fake_nvidia_smi.load(str(self.state))

    def save(self, state: dict[str, Any]) -> None:
        fake_nvidia_smi.save(str(self.state), state)

    # ---- work ----

    def mig(self, journal: Journal, boot: str = "b1") -> MigBackend:
        owned = journal.owned({"T1": BEFORE}, boot)
        if self.backend == "none":
            return NoMig(DEVICES, owned)
        if self.backend == "nvml":
            nvml = Nvml()
            return NvmlMig(nvml, DEVICES, [nvml.find(0), nvml.find(1)], owned)
        return SmiMig(self.programs, DEVICES, owned)

    def recover(self, boot: str = "b1") -> Recovery:
        """A start: recovery alone."""
        with self.instrumented(), Journal(self.live.journal) as journal:
            return recover(self.mig(journal, boot), self.programs, self.live, {"T1": BEFORE}, journal, boot)

    @contextlib.contextmanager
    def actuator(self) -> Iterator[Actuator]:
        with self.instrumented(), Journal(self.live.journal) as journal:
            mig = self.mig(journal)
            recover(mig, self.programs, self.live, {"T1": BEFORE}, journal, "b1")
            yield Actuator(mig, self.programs, self.live, self.host, journal, self.notes)

    def action(
        self,
        kind: str,
        target: str = "T1",
        value: int = 0,
        after: Configuration = BEFORE,
        before: Configuration = BEFORE,
    ) -> Any:
        return SimpleNamespace(kind=kind, tenant="T1", target=target, value=value, before=before, after=after)

    def act(self, actuator: Actuator, kind: str, **more: Any) -> Ended:
        self.notes.clear()
        return actuator.act([self.action(kind, **more)])[-1]

    def work(self) -> Ended:
        """The work of a controller: limits T2, moves or enlarges T1, ends the limit, unpins. Returns the end
        of the change.
        """
        with self.actuator() as actuator:
            self.act(actuator, "throttle_io", target="T2", value=500)
            actuator.journal.remember({"T1": {"structural_windows": 0}}, 1000.0)
            end = self.act(actuator, "reconfigure", after=self.after)
            self.act(actuator, "release_io", target="T2")
            actuator.retry_releases()
            if end.status == "ok":
                self.act(actuator, "pin", before=self.after, after=BEFORE)
            return end

    @contextlib.contextmanager
    def instrumented(self) -> Iterator[None]:
        """Every write of a file and of the journal is two points; the kernel's side of control groups is
        played.
        """
        write, journal_write = _files.write, Journal._write

        def files_write(path: str, text: str) -> None:
            self.point()
            write(path, self.io_max(path, text) if path.endswith("/io.max") else text)
            if path.endswith("/cpuset.cpus"):
                write(path + ".effective", "0-7\n" if text == "\n" else text)
            self.point()

        def journal(this: Journal, key: str, value: Any) -> None:
            self.point()
            journal_write(this, key, value)
            self.point()

        self.nvml.point = self.point
        with (
            mock.patch.object(_files, "write", files_write),
            mock.patch.object(Journal, "_write", journal),
            fake_nvml.installed(self.nvml),
        ):
            yield

    @staticmethod
    def io_max(path: str, text: str) -> str:
        """io.max keeps a line for each disk that has a limit."""
        disk = text.split()[0]
        lines = [
            line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.split()[0] != disk
        ]
        if any(limit is not None for limit in _files.io_limits(text, disk).values()):
            lines.append(text)
        return "".join(line + "\n" for line in lines)

    def killed(self, kill_at: int, what: Callable[[], object]) -> bool:
        """Runs it in a process of its own that dies at a point. Returns whether it died."""
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self.point.count, self.point.kill_at = 0, kill_at
                what()
                os._exit(0)
            os._exit(3)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)

    def change_has_begun(self) -> None:
        """The journal has a change to `after`, and its end is not known."""
        with Journal(self.live.journal) as journal:
            journal.believe("b1")
            journal.tenants["T1"] = TenantEntry(now=BEFORE, pending=self.after)
            journal.save()

    # ---- checks ----

    def instances(self, mine: bool) -> list[tuple[int, dict[str, Any]]]:
        return [(g, one) for g, gpu in enumerate(self.load()["gpus"]) for one in gpu if one["mine"] == mine]

    def runs_only_in(self, place: Configuration) -> bool:
        """Whether T1 runs there, in a whole instance, and nowhere else is anything of ours."""
        mine = self.instances(True)
        if len(mine) != 1:
            return False
        gpu, one = mine[0]
        here = (gpu, one["profile"], one["start"]) == (place.gpu, SIZES[place.profile][0], place.slice)
        return bool(here and one["compute"] and one["client"])

    def require_others_untouched(self, count: int) -> None:
        assert not self.load()["forbidden"]
        others = self.instances(False)
        assert len(others) == count and all(one["compute"] for _, one in others)

    def require_known(self, others: int) -> Configuration:
        """After a start the state is known, and another start changes nothing."""
        recovery = self.recover()
        assert recovery.problems == []
        with Journal(self.live.journal) as journal:
            entry, leases = journal.tenants["T1"], journal.leases
        assert self.runs_only_in(entry.now) and entry.now.instance in (BEFORE.instance, self.after.instance)
        self.require_others_untouched(others)
        assert self.read("cg/t2/io.max") == LIMIT and leases == [] and entry.pending is None
        assert _files.parse_cores(self.read("cg/t1/cpuset.cpus")) == _files.parse_cores(entry.now.cpus)
        again = self.recover()
        assert again.problems == [] and again.verdicts == {"T1": "as_recorded"}
        with Journal(self.live.journal) as journal:
            assert journal.tenants["T1"] == entry
        return entry.now


class FakePrograms(Programs):
    """`nvidia-smi`, the tenant's programs and the MPS daemon of a world, with faults."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.calls, self.fail_at, self.fault, self.code = 0, -1, "", 1
        self.failing_switches = 0  # so many of the tenant's programs do their work and end with 1
        self.restart_code = 0
        self.percentage = "100"
        self.log: list[str] = []

    def run(self, arguments: Any, given: str = "") -> Result:
        self.world.point()
        self.log.append(" ".join(arguments))
        if arguments[0] == "nvidia-smi":
            result = self.smi(list(arguments[1:]))
        elif arguments[0] == "env":
            result = self.mps(given)
        elif arguments[0] == "restart-t3":
            result = Result(self.restart_code, "no such unit\n")
        else:
            result = self.hook(arguments)
        self.world.point()
        return result

    def smi(self, arguments: list[str]) -> Result:
        fails = self.calls == self.fail_at
        self.calls += 1
        if fails and self.fault in ("code", "hang", "garbage"):
            return {"hang": Result(137, "", True), "garbage": Result(0, "|   0  x |\n")}.get(
                self.fault, Result(self.code)
            )
        state = self.world.load()
        before = state["next"]
        output = io.StringIO()
        sleep = mock.patch.object(fake_nvidia_smi.time, "sleep", lambda s: self.world.point())
        with contextlib.redirect_stdout(output), sleep:
            code = fake_nvidia_smi.command(str(self.world.state), state, arguments)
        if not fails:
            return Result(code, output.getvalue())
        if self.fault == "partial" and state["next"] != before:  # the GPU instance, and no compute instance
            state["gpus"][int(arguments[-1])][-1]["compute"] = False
            self.world.save(state)
            return Result(self.code, output.getvalue())
        return Result(self.code)

    def hook(self, arguments: Any) -> Result:
        state = self.world.load()
        code = 0 if arguments[0] == "drain" else 1
        for g, gpu in enumerate(state["gpus"]):
            for one in gpu:
                if one["mine"]:
                    place = [str(g), str(one["profile"]), str(one["start"])]
                    wanted = (
                        arguments[1:2] + [str(SIZES[arguments[2]][0]), arguments[3]]
                        if len(arguments) > 3
                        else None
                    )
                    one["client"] = arguments[0] == "switch" and place == wanted and one["compute"]
                    code = 0 if one["client"] else code
        self.world.save(state)
        if arguments[0] == "switch" and self.failing_switches > 0:
            self.failing_switches -= 1
            return Result(1, "moving\nwarm-up failed\n")
        return Result(code)

    def mps(self, given: str) -> Result:
        command, _, value = given.strip().partition(" ")
        if command == "set_default_active_thread_percentage":
            self.percentage = value
        return Result(0, "" if command == "get_server_list" else f"{self.percentage}.0\n")
