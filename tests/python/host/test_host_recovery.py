# SPDX-License-Identifier: Apache-2.0
"""SIGKILL between any two steps, failures at any step, and the recovery of the next start."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gpusched as gs
import pytest
from gpusched.host import Configuration, Journal, Lease, TenantEntry, _files
from gpusched.host._actuator import Ended
from gpusched.host._failures import Failure
from host_world import BEFORE, LIMIT, World

Make = Callable[..., World]


@pytest.fixture
def make() -> Iterator[Make]:
    """Worlds in memory: the journal waits for the disk at each step."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as root:

        def world(**more: Any) -> World:
            shutil.rmtree(f"{root}/world", ignore_errors=True)
            os.mkdir(f"{root}/world")
            return World(Path(f"{root}/world"), **more)

        yield world


@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_a_change_that_goes_well(make: Make, backend: str, disjoint: bool) -> None:
    world = make(backend=backend, disjoint=disjoint)
    assert world.work().status == "ok"
    assert world.runs_only_in(world.after)
    now = world.require_known(len(world.instances(False)))
    assert now == Configuration(world.after.gpu, world.after.profile, world.after.slice)
    with Journal(world.live.journal) as journal:
        assert journal.carryover == {"T1": {"structural_windows": 0}} and journal.age_s(1010.0) == 10.0


@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_sigkill_at_any_point_of_the_work(make: Make, backend: str, disjoint: bool) -> None:
    died = moved = 0
    for point in range(0, 1000, 1 if backend == "nvidia-smi" else 4):
        world = make(backend=backend, disjoint=disjoint)
        others = len(world.instances(False))
        if not world.killed(point, world.work):
            break
        died += 1
        world.require_others_untouched(others)
        moved += world.require_known(others).instance == world.after.instance
    assert died > 50 and 5 < moved < died - 5


@pytest.mark.parametrize("disjoint", [True, False])
def test_sigkill_in_the_recovery_from_a_sigkill(make: Make, disjoint: bool) -> None:
    died = 0
    for point in range(0, 1000, 7):
        more, second = True, 0
        while more:
            world = make(disjoint=disjoint)
            others = len(world.instances(False))
            if not world.killed(point, world.work):
                break
            more = world.killed(second, world.recover)
            world.require_known(others)
            died += more
            second += 5
        if more:
            break
    assert died > 30


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        *itertools.product(["code", "partial"], [4, 6, 15, 19, 23]),
        *itertools.product(["code_after"], [4, 6, 15, 19]),  # INSUFFICIENT_RESOURCES: nothing was made
        ("hang", 137),
        ("garbage", 0),
    ],
)
def test_a_failure_of_nvidia_smi_at_any_call(make: Make, fault: str, code: int) -> None:
    runs = 0
    for disjoint in (True, False):
        for call in range(100):
            world = make(disjoint=disjoint)
            others = len(world.instances(False))
            world.programs.fault, world.programs.code, world.programs.fail_at = fault, code, call
            end = world.work()
            if world.programs.calls <= call:
                break
            runs += 1
            require_true(world, end)
            world.require_others_untouched(others)
            world.require_known(others)
    assert runs > 10


@pytest.mark.parametrize("code", [3, 4, 6, 10, 13, 15, 19, 20, 23, 29, 999])
@pytest.mark.parametrize("after_effect", [False, True])
def test_a_failure_of_nvml_at_any_call(make: Make, code: int, after_effect: bool) -> None:
    runs = 0
    for disjoint in (True, False):
        for call in range(0, 1000, 5):
            world = make(disjoint=disjoint, backend="nvml")
            others = len(world.instances(False))
            world.nvml.code, world.nvml.after_effect, world.nvml.fail_at = code, after_effect, call
            try:
                end = world.work()
            except gs.BackendError:
                continue  # NVML does not start
            except Failure:
                assert call < 4  # a GPU that is not found
                continue
            if world.nvml.calls <= call:
                break
            runs += 1
            require_true(world, end)
            world.require_others_untouched(others)
            world.nvml.fail_at = -1
            world.recover()  # an orphan after a failed creation may need an operator
            world.require_others_untouched(others)
    assert runs > 10


def require_true(world: World, end: Ended) -> None:
    """The report about a change is true."""
    status, restored = end.status, end.restored
    if status == "ok":
        assert world.runs_only_in(world.after)
    elif restored and status not in ("gpu_is_lost", "timeout", "unknown", "invalid_state"):
        assert world.runs_only_in(BEFORE)


@pytest.mark.parametrize(
    "status", ["unknown", "no_permission", "insufficient_resources", "not_found", "in_use"]
)
@pytest.mark.parametrize("disjoint", [True, False])
def test_a_failure_of_any_write(make: Make, status: str, disjoint: bool) -> None:
    """Of a control file or the journal: others are untouched, the report is true, and a restart mends it."""
    runs = 0
    for call in range(100):
        world = make(disjoint=disjoint)
        others = len(world.instances(False))
        calls = itertools.count()

        def failing(
            body: Callable[..., None], call: int = call, calls: Iterator[int] = calls
        ) -> Callable[..., None]:
            def run(*arguments: Any) -> None:
                if next(calls) == call:
                    raise Failure(status)
                body(*arguments)

            return run

        with (
            mock.patch.object(_files, "write", failing(_files.write)),
            mock.patch.object(Journal, "save", failing(Journal.save)),
        ):
            try:
                end = world.work()
            except Failure:
                continue  # the journal did not take what must outlive the controller
        if next(calls) <= call:
            break
        runs += 1
        require_true(world, end)
        world.require_others_untouched(others)
        world.require_known(others)
    assert runs > 8


def test_a_placement_of_a_cut_off_change_is_nobodys_claim_after_recovery(make: Make) -> None:
    world = make()
    world.change_has_begun()
    assert world.recover().verdicts == {"T1": "restored"}
    with Journal(world.live.journal) as journal:
        mig = world.mig(journal)
    assert mig.owned == {BEFORE.instance}
    with pytest.raises(Failure, match="no_permission"):
        mig.destroy(world.after.instance)


def test_after_a_boot_the_journal_is_no_claim(make: Make) -> None:
    world = make()
    world.work()
    with Journal(world.live.journal) as journal:
        journal.leases.append(Lease("T2", f"{world.folder}/cg/t2/io.max", "259:0 rbps=1"))
        journal.remember({"T1": {"structural_windows": 3, "floor": BEFORE.document()}}, 5.0)
    state = world.load()
    state["gpus"] = [[world.gi("2g", 40, 0, True)], []]
    world.save(state)
    recovery = world.recover("b2")
    assert (recovery.verdicts, recovery.problems, recovery.leases_ended) == ({"T1": "restarted"}, [], 0)
    assert world.read("cg/t2/io.max") == LIMIT
    with Journal(world.live.journal) as journal:
        # Instances are gone with the boot, and with them the floor.
        assert journal.carryover == {"T1": {"structural_windows": 3}} and journal.boot == "b2"


def test_without_the_identity_of_the_boot_nothing_is_done(make: Make) -> None:
    world = make()
    world.killed(40, world.work)
    before, calls = world.load(), world.programs.calls
    recovery = world.recover("")
    assert "boot_id" in recovery.problems[0] and world.load() == before and world.programs.calls == calls


def test_a_cut_off_change_is_not_forgotten_without_a_mig_backend(make: Make) -> None:
    world = make()
    world.change_has_begun()
    world.backend = "none"
    recovery = world.recover()
    assert recovery.verdicts == {"T1": "failed"} and "start once with one" in recovery.problems[0]
    world.backend = "nvidia-smi"
    assert world.recover().verdicts == {"T1": "restored"}


def test_nothing_is_done_if_no_known_instance_stands(make: Make) -> None:
    world = make()
    state = world.load()
    del state["gpus"][0][0]
    world.save(state)
    recovery = world.recover()
    assert recovery.verdicts == {"T1": "missing"} and world.load() == state


def test_a_tenant_that_moved_although_its_program_failed_is_called_back(make: Make) -> None:
    world = make()
    world.programs.failing_switches = 1
    with world.actuator() as actuator:
        end = world.act(actuator, "reconfigure", after=world.after)
    assert (end.status, end.restored) == ("not_supported", True)
    assert world.notes == ["program 'switch' ended with code 1: warm-up failed"]
    assert world.runs_only_in(BEFORE)


@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_a_quicker_program_keeps_the_instance_over_restarts(make: Make, backend: str) -> None:
    for disjoint in (True, False):
        world = make(disjoint=disjoint, backend=backend)
        others = len(world.instances(False))
        state = world.load()
        state["intrude"] = True
        world.save(state)
        with world.actuator() as actuator:
            end = world.act(actuator, "reconfigure", after=world.after)
        world.require_others_untouched(others + 1)
        assert end.status == "insufficient_resources" and end.restored == disjoint
        world.recover()
        world.require_others_untouched(others + 1)


def test_limits_are_ended_below_the_control_groups_only(make: Make) -> None:
    world = make()
    world.write("victim", "precious")
    folder = world.live.cgroups
    for file in (f"{world.folder}/victim", f"{folder}/t2/../t2/io.max", f"{folder}x/t2/io.max"):
        with Journal(world.live.journal) as journal:
            journal.believe("b1")
            journal.leases[:] = [Lease("T2", file, "259:0 rbps=1")]
            journal.save()
        assert "no io.max below" in world.recover().problems[0]
        with Journal(world.live.journal) as journal:
            assert len(journal.leases) == 1
    assert world.read("victim") == "precious"


def test_more_cores_than_a_pin_names_are_given_back(make: Make) -> None:
    world = make()
    with Journal(world.live.journal) as journal:
        journal.believe("b1")
        journal.tenants["T1"] = TenantEntry(now=BEFORE, cpuset="0-1535")
        journal.save()
    assert world.recover().problems == []
    assert world.read("cg/t1/cpuset.cpus") == "0-1535\n"
