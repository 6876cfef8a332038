# SPDX-License-Identifier: Apache-2.0
"""Actions on a host, an operator, changes of instance with a failure at every call, and programs."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gpusched as gs
import pytest
from gpusched.host import Configuration, Instance, Journal, TenantEntry, _files
from gpusched.host._actuator import Actuator, Mps, hook_arguments, run_hook
from gpusched.host._changes import replace_instance
from gpusched.host._failures import FREEZING, RETRIES, Failure, attempt
from gpusched.host._mig import MemoryMeter, NoMig
from gpusched.host._nvml import Nvml
from gpusched.host._places import fits
from gpusched.host._programs import Programs, Result, is_running
from host_world import BEFORE, DEVICES, LIMIT, World

Limit = Callable[[], str]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def actuator(world: World) -> Iterator[Actuator]:
    with world.actuator() as made:
        yield made


# ---- guards ----


def test_limits_are_written_and_taken_back(world: World, actuator: Actuator) -> None:
    assert world.act(actuator, "throttle_io", target="T2", value=500).status == "ok"
    # A lower limit that another program has set stays.
    assert sorted(world.read("cg/t2/io.max").splitlines()) == [
        "259:0 rbps=500000000 wbps=2000000 riops=max wiops=max",
        "259:1 rbps=500000000 wbps=500000000 riops=max wiops=max",
    ]
    assert world.act(actuator, "throttle_io", target="T2", value=250).status == "ok"
    assert len(actuator.journal.leases) == 2
    assert world.act(actuator, "release_io", target="T2").status == "ok"
    assert world.read("cg/t2/io.max") == LIMIT and actuator.journal.leases == []
    assert world.act(actuator, "throttle_io", target="T3", value=250).status == "not_supported"


def test_a_limit_that_cannot_be_ended_is_tried_again_and_not_taken_for_the_state_before(
    world: World, actuator: Actuator
) -> None:
    assert world.act(actuator, "throttle_io", target="T2", value=500).status == "ok"
    with mock.patch.object(_files, "write", side_effect=Failure("unknown")):
        assert world.act(actuator, "release_io", target="T2").status == "unknown"
        assert world.act(actuator, "throttle_io", target="T2", value=250).status == "unknown"
        assert not actuator.retry_releases() and len(actuator.journal.leases) == 2
    assert actuator.retry_releases() and actuator.journal.leases == []
    assert world.read("cg/t2/io.max") == LIMIT


@pytest.mark.parametrize("busy", [1, 4, 9])
def test_a_guard_in_use_is_tried_three_more_times(world: World, actuator: Actuator, busy: int) -> None:
    write, calls = _files.write, itertools.count()

    def refuse(path: str, text: str) -> None:
        if next(calls) < busy:
            raise Failure("in_use")
        write(path, text)

    with mock.patch.object(_files, "write", refuse):
        status = world.act(actuator, "throttle_io", target="T2", value=500).status
    assert status == ("ok" if busy < 9 else "in_use")
    actuator.retry_releases()
    assert len(actuator.journal.leases) == (2 if busy < 9 else 0)


def test_a_failure_of_an_action_is_of_that_action_only(world: World, actuator: Actuator) -> None:
    with mock.patch.object(_files, "read", side_effect=MemoryError):
        assert world.act(actuator, "throttle_io", target="T2", value=500).status == "unknown"
    assert world.act(actuator, "throttle_io", target="T2", value=500).status == "ok"


def test_a_quota_whose_client_does_not_restart_is_taken_back(world: World, actuator: Actuator) -> None:
    assert world.act(actuator, "set_quota", target="T3", value=75).status == "ok"
    assert world.programs.percentage == "75"
    world.programs.restart_code = 5
    end = world.act(actuator, "set_quota", target="T3", value=50)
    assert (end.status, end.tenant, end.target) == ("not_supported", "T1", "T3")
    assert world.notes == ["program 'restart-t3' ended with code 5: no such unit"]
    assert world.programs.percentage == "75" and actuator.journal.tenants["T1"].now.quota_percent == 75
    with Journal(world.live.journal, read_only=True) as journal:
        assert journal.tenants["T1"].now.quota_percent == 75


@pytest.mark.parametrize(("restart_code", "cores", "outcomes"), [(0, True, 1), (5, True, 2), (0, False, 2)])
def test_a_quota_and_cores_with_a_change_are_both_set_or_neither(
    world: World, restart_code: int, cores: bool, outcomes: int
) -> None:
    world.programs.restart_code = restart_code
    if not cores:
        (world.folder / "cg/t1/cpuset.cpus").unlink()
    after = Configuration(1, "2g", 4, quota_percent=75, cpus="4-5")
    with world.actuator() as actuator:
        ends = actuator.act([world.action("reconfigure", after=after)])
        assert [end.kind for end in ends] == ["pin", "reconfigure"][-outcomes:]
        assert ends[-1].status == "ok"
        now = actuator.journal.tenants["T1"].now
    assert now == (after if outcomes == 1 else Configuration(1, "2g", 4))
    assert world.programs.percentage == str(now.quota_percent)


def test_cores_of_a_group_without_cpuset(world: World, actuator: Actuator) -> None:
    (world.folder / "cg/t1/cpuset.cpus").unlink()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        before = os.sched_getaffinity(child.pid)
        world.write("cg/t1/cgroup.threads", f"{child.pid}\n4194303\n")  # the second one has ended
        first = min(before)
        assert world.act(actuator, "pin", after=Configuration(0, "2g", 0, cpus=str(first))).status == "ok"
        assert os.sched_getaffinity(child.pid) == {first}
        assert actuator.journal.tenants["T1"].cpuset == _files.THREADS
        assert world.act(actuator, "pin", after=BEFORE).status == "ok"
        assert os.sched_getaffinity(child.pid) == before and actuator.journal.tenants["T1"].cpuset is None
        world.write("cg/t1/cgroup.threads", "x\n")
        assert world.act(actuator, "pin", after=Configuration(0, "2g", 0, cpus="0")).status == "invalid_state"
    finally:
        child.kill()
        child.wait()


def test_the_group_above_has_fewer_cores(world: World, actuator: Actuator) -> None:
    write = _files.write

    def narrow(path: str, text: str) -> None:
        write(path, text)
        world.write("cg/t1/cpuset.cpus.effective", "0-1\n")

    with mock.patch.object(_files, "write", narrow):
        end = world.act(actuator, "pin", after=Configuration(0, "2g", 0, cpus="4-5"))
    assert end.status == "not_supported" and world.read("cg/t1/cpuset.cpus").strip() == ""
    assert actuator.journal.tenants["T1"].now.cpus == ""


# ---- control groups ----


def test_texts_of_control_groups() -> None:
    text = "8:0 rbps=1 wbps=max riops=3 wiops=max new=1\n259:0 rbps=max wbps=2 riops=max wiops=max\n"
    assert _files.io_limits(text, "8:0") == {"rbps": 1, "wbps": None, "riops": 3, "wiops": None}
    none = "8:0 rbps=max wbps=max riops=max wiops=max"
    assert _files.io_limits_text("8:0", _files.io_limits("", "8:0")) == none
    stat = "8:0 rbytes=10 wbytes=5 rios=1 wios=1 dbytes=9 dios=0\n259:0 rbytes=100 wbytes=0\n"
    for text, disks, total in ((stat, [], 115), (stat, ["259:0"], 100), ("", [], 0)):
        assert _files.io_bytes(text, disks) == total
    for bad in ("8:0 rbps", "8:0 rbps=x", "8:0 rbps=-1"):
        with pytest.raises(Failure, match="invalid_state"):
            _files.io_limits(bad, "8:0")
    with pytest.raises(Failure, match="invalid_state"):
        _files.io_bytes("8:0 rbytes=x\n", [])
    assert _files.same_cores("0-1535\n", "0-191,192-1535") and not _files.same_cores("0-1535", "0-255")
    assert not _files.same_cores("0-3", "x")


def test_links_in_the_place_of_a_file_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious", encoding="utf-8")
    for name in ("io.max", "journal"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    assert attempt(_files.write, str(tmp_path / "io.max"), "x") == "no_permission"
    with pytest.raises(gs.BackendError, match="is a link"):
        Journal(tmp_path / "journal")
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "precious"


def test_a_kernel_that_accepts_and_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "io.max"
    file.write_text("259:0 rbps=5 wbps=5 riops=max wiops=max\n", encoding="utf-8")
    none = "rbps=max wbps=max riops=max wiops=max"
    with mock.patch.object(_files, "write"):
        assert attempt(_files.end_limit, str(file), f"259:0 {none}") == "invalid_state"
        assert attempt(_files.end_limit, str(file), "259:0 rbps=5 wbps=5 riops=max wiops=max") == "ok"
        assert attempt(_files.end_limit, str(file), f"259:7 {none}") == "ok"
    # A limit is gone with its group.
    assert attempt(_files.end_limit, str(tmp_path / "gone/io.max"), "259:0 rbps=max") == "ok"


def test_the_control_groups_of_this_machine() -> None:
    """The real kernel takes a limit, a weight of cores and their end, if this process may make groups."""
    root = Path("/sys/fs/cgroup")
    group = root / f"gpusched-test-{os.getpid()}"
    try:
        if "io" not in (root / "cgroup.subtree_control").read_text(encoding="utf-8"):
            pytest.skip("NO REAL CONTROL GROUPS: no io controller below /sys/fs/cgroup")
        group.mkdir()
    except OSError as error:
        pytest.skip(f"NO REAL CONTROL GROUPS: {error}")
    try:
        disk = next(p.read_text(encoding="utf-8").strip() for p in sorted(Path("/sys/block").glob("*/dev")))
        limits = _files.io_limits(_files.read(f"{group}/io.max"), disk)
        before = _files.io_limits_text(disk, limits)
        limits["rbps"] = 500_000_000
        _files.set_io_limits(f"{group}/io.max", _files.io_limits_text(disk, limits))
        assert _files.io_limits(_files.read(f"{group}/io.max"), disk)["rbps"] == 500_000_000
        _files.end_limit(f"{group}/io.max", before)
        assert _files.io_limits(_files.read(f"{group}/io.max"), disk)["rbps"] is None
    finally:
        group.rmdir()


# ---- changes of instance ----


class FakeMig(NoMig):
    """Fails at one chosen call, before its effect or after, or at each from there on."""

    def __init__(self, fail_at: int = -1, status: str = "", after: bool = False, every: bool = False) -> None:
        super().__init__(DEVICES)
        self.layouts = [[Instance(0, "2g", 0), Instance(0, "1g", 2)], [Instance(1, "2g", 0)]]
        self.fail_at, self.status, self.after, self.every = fail_at, status, after, every
        self.calls = self.changes = 0
        self.tenant = None

    def call(self, effect: Callable[[], Any], quiet: bool = False) -> Any:
        fails = self.calls == self.fail_at or (self.every and 0 <= self.fail_at <= self.calls)
        self.calls += 1
        if fails and (not self.after or (quiet and self.status == "insufficient_resources")):
            raise Failure(self.status)
        result = effect()
        if fails:
            raise Failure(self.status)
        return result

    def read(self, gpu: int) -> list[Instance]:
        return list(self.call(lambda: list(self.layouts[gpu])))

    def create(self, new: Instance) -> None:
        def effect() -> None:
            if not fits(self.devices[new.gpu], self.layouts[new.gpu], new):
                raise Failure("insufficient_resources")
            self.layouts[new.gpu].append(new)
            self.changes += 1

        self.call(effect, quiet=True)

    def destroy(self, old: Instance) -> None:
        def effect() -> None:
            if old == self.tenant:
                raise Failure("in_use")
            if old not in self.layouts[old.gpu]:
                raise Failure("not_found")
            self.layouts[old.gpu].remove(old)
            self.changes += 1

        self.call(effect)


STATUSES = "in_use insufficient_resources no_permission reset_required not_supported not_found".split()


@pytest.mark.parametrize(
    "after", [Configuration(0, "3g", 4), Configuration(0, "1g", 0), Configuration(1, "2g", 2)], ids=str
)
@pytest.mark.parametrize("status", [*STATUSES, *sorted(FREEZING)])
def test_a_change_that_fails_at_any_call_says_what_stands(after: Configuration, status: str) -> None:
    ends = set()
    for fail_at, after_effect, every in itertools.product(range(14), (False, True), (False, True)):
        mig = FakeMig(fail_at, status, after_effect, every)
        moved: list[bool] = []
        waits: list[int] = []

        def record(to: Configuration, moved: list[bool] = moved) -> None:
            moved.append(to == after)

        end = replace_instance(mig, BEFORE, after, record, None, waits.append)
        assert Instance(0, "1g", 2) in mig.layouts[0] and Instance(1, "2g", 0) in mig.layouts[1]
        assert len(waits) <= 3 * RETRIES
        old, new = BEFORE.instance in mig.layouts[0], after.instance in mig.layouts[after.gpu]
        if end.status == "ok":
            assert new and not old and moved[-1]
        elif end.restored:
            assert old and (not new or end.status in FREEZING)
            assert not any(moved[-1:]) or end.status in FREEZING  # the tenant was sent back
            assert mig.changes or not moved  # a program is not asked for nothing
        ends.add((end.status == "ok", end.restored))
    assert ends >= {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize("goes", [False, True])
@pytest.mark.parametrize("returns", [False, True])
def test_a_tenant_that_went_although_its_program_failed_is_called_back(goes: bool, returns: bool) -> None:
    after = Configuration(0, "3g", 4)
    mig = FakeMig()
    mig.tenant = BEFORE.instance  # type: ignore[assignment]
    asked = []

    def switch_over(to: Configuration) -> None:
        asked.append(to)
        if goes if to == after else returns:
            mig.tenant = to.instance  # type: ignore[assignment]
        if to == after or not returns:
            raise Failure("not_supported")

    end = replace_instance(mig, BEFORE, after, switch_over, None, lambda k: None)
    assert (end.status, end.restored, asked) == ("not_supported", returns, [after, BEFORE])
    # If it cannot be called back both instances stay, and an operator must look.
    assert BEFORE.instance in mig.layouts[0] and (after.instance in mig.layouts[0]) == (not returns)


@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_instances_of_others_are_refused(tmp_path: Path, backend: str) -> None:
    world = World(tmp_path, backend=backend)
    with world.actuator() as actuator:
        mig = actuator.mig
        other, theirs = Instance(0, "1g", 6), Instance(1, "3g", 0)
        assert attempt(mig.destroy, other) == attempt(mig.complete, theirs) == "no_permission"
        assert attempt(mig.create, theirs) == "insufficient_resources"
        assert attempt(mig.destroy, theirs) == "no_permission"
        # An instance without its compute instance gets it back.
        state = world.load()
        state["gpus"][0][0]["compute"] = False
        world.save(state)
        mig.complete(BEFORE.instance)
        assert world.load()["gpus"][0][0]["compute"] and not world.load()["forbidden"]
        if backend == "nvidia-smi":
            world.programs.log.clear()
            mig.create(Instance(1, "2g", 4))
            asked = [line for line in world.programs.log if "-lgi" not in line and "-lci" not in line]
            assert asked == ["nvidia-smi mig -cgi 14:4 -C -i 1"]


# ---- an operator ----


@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_a_resumption_at_every_state_of_a_change(tmp_path: Path, backend: str) -> None:
    world = World(tmp_path, backend=backend)
    with world.actuator() as actuator:
        actuator.journal.tenants["T1"] = TenantEntry(now=BEFORE, pending=world.after)
        actuator.mig.adopt(world.after.instance)
        actuator.mig.create(world.after.instance)
        reasons = actuator.resume(["T1"], False)
        assert "still exists: remove it, or start the controller again" in reasons[0]
        actuator.mig.destroy(world.after.instance)
        assert actuator.resume(["T1"], True) == []  # a dry run looks only
        assert actuator.journal.tenants["T1"].pending is not None
        world.programs.failing_switches = 1
        world.notes.clear()
        reasons = actuator.resume(["T1"], False)
        assert "failed to return it to GPU 0 2g at 0: not_supported" in reasons[0]
        assert "warm-up failed" in world.notes[0]
        assert actuator.journal.tenants["T1"].pending is not None
        with mock.patch.object(Journal, "save", side_effect=Failure("insufficient_resources")):
            assert "cannot be written" in actuator.resume(["T1"], False)[0]
        assert actuator.resume(["T1"], False) == []
        assert actuator.journal.tenants["T1"] == TenantEntry(now=BEFORE)
        # The new place is free for other programs.
        assert actuator.mig.owned == {BEFORE.instance}


def test_sigkill_at_any_point_of_a_resumption(tmp_path: Path) -> None:
    for point in range(200):
        folder = tmp_path / str(point)
        folder.mkdir()
        world = World(folder)
        world.change_has_begun()

        def resume(world: World = world) -> None:
            with world.instrumented(), Journal(world.live.journal) as journal:
                mig = world.mig(journal)
                Actuator(mig, world.programs, world.live, world.host, journal, []).resume(["T1"], False)

        if not world.killed(point, resume):
            break
        assert world.require_known(2) == BEFORE
    assert point > 5


# ---- programs ----


def test_programs(tmp_path: Path) -> None:
    programs = Programs(5)
    shell = ["sh", "-c"]
    assert programs.run([*shell, "echo out; echo err >&2; exit 3"]) == Result(3, "out\nerr\n")
    assert programs.run([*shell, "kill -9 $$"]).code == 137
    assert programs.run(["cat"], "a line\n").output == "a line\n"
    assert programs.run([*shell, "printf '\\366\\377'"]).output == "\\xf6\\xff"
    assert len(programs.run([*shell, "head -c 3000000 /dev/zero"]).output) == 1 << 20
    # A process that the program leaves behind is not waited for.
    began = time.monotonic()
    assert programs.run([*shell, "sleep 20 & echo done"]).output == "done\n" and time.monotonic() - began < 4
    with pytest.raises(gs.BackendError, match="/nowhere: cannot be started: No such file"):
        programs.run(["/nowhere"])
    quick = Programs(0.2)
    late = quick.run([*shell, "echo begun; sleep 30"])
    assert late.timed_out and late.code == 137 and late.output == "begun\n" and quick.left_behind() == 0
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(gs.BackendError, match="SIGCHLD is ignored"):
            programs.run(["true"])
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_note_says_which_program_runs(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        seen = []
        real = subprocess.Popen.communicate

        def communicate(process: Any, *arguments: Any) -> Any:
            seen.append(journal.program())
            assert is_running(*journal.program())
            return real(process, *arguments)

        with mock.patch.object(subprocess.Popen, "communicate", communicate):
            Programs(5, note=journal.note_program).run(["sleep", "0.3"])
        assert seen[0][0] > 0 and not is_running(*seen[0]) and journal.program() == (0, 0.0)
    assert not is_running(os.getpid(), 1.0)  # another process had this number before


def test_arguments_and_failures_of_programs() -> None:
    at = Configuration(1, "3g", 4, quota_percent=75)
    program = ["move", "{gpu}:{profile}", "{slice}-{quota}-{x}", "{id}"]
    assert hook_arguments(program, at) == ["move", "1:3g", "4-75-{x}", "{id}"]
    assert hook_arguments(program, at, id=7)[-1] == "7"
    for result, status, note in (
        (Result(1, "first\nlast \n"), "not_supported", "program 'p' ended with code 1: last"),
        (Result(137, "", True), "timeout", "program 'p' took too long"),
        (Result(1, "x" * 1000), "not_supported", f"program 'p' ended with code 1: {'x' * 200}"),
    ):
        notes: list[str] = []
        with mock.patch.object(Programs, "run", return_value=result):
            assert attempt(run_hook, Programs(), ["p"], at, notes) == status and notes == [note]


@pytest.mark.parametrize(
    ("output", "code", "status"),
    [
        ("Cannot find MPS control daemon process", 1, "not_found"),
        ("Permission denied", 0, "no_permission"),
        ("Invalid argument", 0, "not_supported"),
        ("failed", 0, "unknown"),
        ("", 127, "not_found"),
        ("", 1, "unknown"),
        ("nonsense", 0, "invalid_state"),
        ("101", 0, "invalid_state"),
        ("75.0\n", 0, "ok"),
    ],
)
def test_replies_of_the_mps_daemon(output: str, code: int, status: str) -> None:
    class Daemon(Programs):
        def run(self, arguments: Any, given: str = "") -> Result:
            return Result(code, output)

    assert attempt(Mps(Daemon(), "/run/mps").probe) == status


def test_a_quota_reaches_servers_that_run() -> None:
    class Daemon(Programs):
        def __init__(self) -> None:
            self.default, self.servers = "100", {"11": "100", "12": "100"}
            self.deaf = False

        def run(self, arguments: Any, given: str = "") -> Result:
            assert arguments[1] == "CUDA_MPS_PIPE_DIRECTORY=/run/mps"
            command, *words = given.split()
            if command == "get_server_list":
                return Result(0, "\n".join([*self.servers, "13"]))
            if "default" not in command and words[0] not in self.servers:
                return Result(0, "Server not found")  # it ended meanwhile
            if command == "set_default_active_thread_percentage" and not self.deaf:
                self.default = words[0]
            if command == "set_active_thread_percentage":
                self.servers[words[0]] = words[1]
            return Result(0, f"{self.default if 'default' in command else self.servers[words[0]]}.0\n")

    daemon = Daemon()
    Mps(daemon, "/run/mps").set_default_percentage(75)
    assert (daemon.default, daemon.servers) == ("75", {"11": "75", "12": "75"})
    daemon.deaf = True
    assert attempt(Mps(daemon, "/run/mps").set_default_percentage, 50) == "invalid_state"


# ---- memory in use ----


def test_memory_in_use_is_asked_of_the_first_that_knows(world: World) -> None:
    with world.instrumented(), Journal(world.live.journal) as journal:
        smi = world.mig(journal)
        world.backend = "nvml"
        nvml = world.mig(journal)
        meter, tenants = MemoryMeter(), {"T1": BEFORE.instance, "T9": Instance(1, "2g", 4)}
        lines = meter.choose(tenants, [nvml, smi])
        assert lines[0] == "T1: memory in use 1000 MiB, by nvml"
        assert "not known to nvml: not_found" in lines[1]
        world.nvml.log.clear()
        both = {"T1": BEFORE.instance, "T2": BEFORE.instance}
        assert meter.read(both) == ({"T1": 1000.0, "T2": 1000.0}, "")
        assert world.nvml.log.count("nvmlDeviceGetMaxMigDeviceCount") == 1  # a GPU is asked once
        assert meter.read({}) == ({}, "")
        world.nvml.used_mib = None
        lines = meter.choose(tenants, [nvml, smi])
        assert lines[0] == "T1: memory in use 1010 MiB, by nvidia-smi"  # GiB in hundredths
        world.programs.fault, world.programs.fail_at = "hang", world.programs.calls + 1
        used, line = meter.read({"T1": BEFORE.instance})
        assert used == {} and "took too long and is not asked again" in line
        assert meter.read({"T1": BEFORE.instance}) == ({}, "")
        # If a driver's profiles are smaller than the table's, the difference counts as used.
        world.nvml.used_mib = 1000
        with mock.patch.object(Nvml, "profiles", lambda self, gpu: [mock.Mock(id=14, memorySizeMB=9000)]):
            assert world.mig(journal)._profile_sizes(0) == {14: 9000}
        with mock.patch.object(nvml, "_profile_sizes", lambda gpu: {14: 9000}):
            nvml._shortfalls.clear()
            assert nvml.memory_used(0)[BEFORE.instance] == 1856.0
