"""Actions on a real host: GPU instances, limits of block I/O, cores and quotas. The journal has each before
it begins.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import control
from ..errors import BackendError
from . import _files
from ._changes import Outcome, TenantMove, replace_instance, resume_obstacle, resume_settle
from ._config import Live
from ._failures import FREEZING, Failure, attempt
from ._journal import Journal, Lease, TenantEntry
from ._mig import MigBackend
from ._places import Configuration
from ._programs import Programs, Result

GUARDS = ("throttle_io", "set_quota", "pin")


@dataclass
class Ended:
    """How an action ended."""

    kind: str
    tenant: str  # for whose sake
    target: str  # the tenant that it hits
    status: str = "ok"
    restored: bool = True


@dataclass
class Report:
    """What a window's actions came to. `notes`: lines on programs and files that failed."""

    outcomes: list[Ended] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def hook_arguments(program: Sequence[str], at: Configuration) -> list[str]:
    """A program's arguments for an instance."""
    values = {"{gpu}": at.gpu, "{profile}": at.profile, "{slice}": at.slice, "{quota}": at.quota_percent}
    return [
        re.sub(r"\{(gpu|profile|slice|quota)\}", lambda match: str(values[match.group()]), text)
        for text in program
    ]


def hook_failure(program: str, result: Result) -> str:
    """How a program failed, with the last line that it wrote."""
    how = "took too long" if result.timed_out else f"ended with code {result.code}"
    last = (result.output.strip().splitlines() or [""])[-1]
    return f"program {program!r} {how}" + (f": {last[:200]}" if last else "")


def run_hook(programs: Programs, program: Sequence[str], at: Configuration, notes: list[str]) -> None:
    """Runs a tenant's program for an instance. Raises `Failure`."""
    if not program:
        raise Failure("not_supported")
    arguments = hook_arguments(program, at)
    result = programs.run(arguments)
    if result.timed_out or result.code != 0:
        notes.append(hook_failure(arguments[0], result))
        raise Failure("timeout" if result.timed_out else "not_supported", notes[-1])


class Mps:
    """One MPS daemon, through `nvidia-cuda-mps-control`. A percentage reaches clients that connect
    afterwards.
    """

    _FAILURES = (
        (r"cannot find mps control daemon|not found", "not_found"),
        (r"permission denied|not permitted", "no_permission"),
        (r"not supported|invalid|unrecognized", "not_supported"),
    )

    def __init__(self, programs: Programs, pipe_directory: str) -> None:
        self._programs = programs
        self._pipe = pipe_directory

    def probe(self) -> None:
        """Raises `Failure` unless the daemon answers. Changes nothing."""
        try:
            self._percentage("get_default_active_thread_percentage")
        except BackendError as error:
            raise Failure("not_found", str(error)) from None

    def set_default_percentage(self, percent: int) -> None:
        """For servers that start later and for new clients of those that run. Reads back each."""
        self._ask(f"set_default_active_thread_percentage {percent}")
        self._require(percent, "get_default_active_thread_percentage")
        servers = self._ask("get_server_list").split()
        if not all(server.isdecimal() and int(server) > 0 for server in servers):
            raise Failure("invalid_state", "list of MPS servers")
        for server in servers:
            try:
                self._ask(f"set_active_thread_percentage {server} {percent}")
            except Failure as failure:
                if failure.status == "not_found":  # it ended meanwhile
                    continue
                raise
            self._require(percent, f"get_active_thread_percentage {server}")

    def _require(self, percent: int, command: str) -> None:
        if abs(self._percentage(command) - percent) >= 0.6:
            raise Failure("invalid_state", f"MPS: {command}")

    def _percentage(self, command: str) -> float:
        words = self._ask(command).split()
        with contextlib.suppress(ValueError, IndexError):
            value = float(words[-1])
            if 0 <= value <= 100:
                return value
        raise Failure("invalid_state", f"MPS: {command}")

    def _ask(self, command: str) -> str:
        program = ["env", f"CUDA_MPS_PIPE_DIRECTORY={self._pipe}", "nvidia-cuda-mps-control"]
        result = self._programs.run(program, command + "\n")
        if result.timed_out:
            raise Failure("timeout", f"MPS: {command}")
        # The program may end with 0 after an error.
        text = result.output.lower()
        for pattern, status in self._FAILURES:
            if re.search(pattern, text):
                raise Failure(status, f"MPS: {command}")
        if result.code != 0 or "fail" in text or "error" in text:
            raise Failure("not_found" if result.code == 127 else "unknown", f"MPS: {command}")
        return result.output


class Actuator:
    """Carries out actions. They are over when `act` returns. A change that the journal cannot take is not
    begun.
    """

    def __init__(
        self, mig: MigBackend, programs: Programs, live: Live, host: Mapping[str, Any], journal: Journal
    ) -> None:
        self.mig = mig
        self.live = live
        self._host = host
        self.journal = journal
        self._programs = programs
        self._report = Report()
        self._ending: list[str] = []  # tenants whose limit should have ended and has not
        self._deeds = 0  # of the state that the journal has
        self._forgetful = False  # the journal could not take it

    def act(self, actions: Iterable[control.Action]) -> None:
        for action in actions:
            self._carry_out(action)

    def take_report(self) -> Report:
        """How actions ended since the last call."""
        report, self._report = self._report, Report()
        return report

    def hook(self, program: Sequence[str], at: Configuration) -> None:
        run_hook(self._programs, program, at, self._report.notes)

    def remember(self, core: control.Controller, now_s: float) -> None:
        """Saves the state to the journal if more than ages changed."""
        if core.deeds == self._deeds:
            return
        status = attempt(self.journal.remember, core.carryover, now_s)
        if status == "ok":
            self._deeds = core.deeds
        elif not self._forgetful:
            path = self.journal.path
            self._report.notes.append(f"{path}: cannot save the state that the next start needs: {status}")
        self._forgetful = status != "ok"

    def retry_releases(self) -> bool:
        """Tries again to end limits that could not be ended. Returns whether none is left."""
        ending, self._ending = self._ending, []
        for target in ending:
            attempt(self._release, target)
        return not self._ending

    def resume(self, tenants: Sequence[str], looks_only: bool) -> tuple[list[str], list[str]]:
        """Lets frozen tenants go on, all of them or none. Returns the reasons against it, and notes."""
        entries = {name: self.journal.tenants[name] for name in tenants}
        reasons = [why for name, entry in entries.items() if (why := resume_obstacle(self.mig, name, entry))]
        if reasons or looks_only:
            return reasons, []

        def settle() -> None:
            for name, entry in entries.items():
                resume_settle(self.mig, name, entry, self._move_of(name))
            try:
                self.journal.save()
            except Failure as failure:
                path = self.journal.path
                raise Failure(failure.status, f"{path}: cannot be written: {failure.status}") from None

        try:
            self.journal.restore(settle)
        except Failure as failure:
            reasons.append(str(failure).partition(": ")[2])
        except BackendError as error:  # a program that cannot be started
            reasons.append(str(error))
        return reasons, self.take_report().notes

    def _move_of(self, tenant: str) -> TenantMove:
        return lambda to: self.hook(self.live.tenants[tenant].switch_over, to)

    def _carry_out(self, action: control.Action) -> None:
        ended = Ended(action.kind, action.tenant, action.target, "unknown")
        # A program that cannot be started is a failure of this action only.
        try:
            self._perform(action, ended)
            for k in range(3):
                if action.kind not in GUARDS or ended.status != "in_use":
                    break
                self.live.back_off(k)
                self._perform(action, ended)
        except (BackendError, OSError, MemoryError) as error:
            ended.restored = False
            self._report.notes.append(str(error))
        self._report.outcomes.append(ended)

    def _perform(self, action: control.Action, ended: Ended) -> None:
        after = Configuration.read(action.after)
        if action.kind == "reconfigure":
            outcome = self._reconfigure(action)
            ended.status, ended.restored = outcome.status, outcome.restored
        elif action.kind == "throttle_io":
            ended.status = attempt(self._throttle, action.target, action.value)
        elif action.kind == "release_io":
            ended.status = attempt(self._release, action.target)
        elif action.kind == "set_quota":
            at = Configuration.read(action.before)
            ended.status = attempt(self._quota, action.tenant, action.target, action.value, at)
        else:
            ended.status = attempt(self._pin, action.tenant, after.cpus)

    def _throttle(self, target: str, mb_per_s: int) -> None:
        group, disks = self.live.group(target), self.live.tenants[target].disks
        if not group or not disks:
            raise Failure("not_supported")
        # A limit that could not be ended would be taken for what was there before.
        if any(lease.tenant == target for lease in self.journal.leases):
            self._release(target)
        file = f"{group}/io.max"
        lines = []

        def record() -> None:
            for disk in disks:
                limits = _files.io_limits(_files.read(file), disk)
                self.journal.leases.append(Lease(target, file, _files.io_limits_text(disk, limits)))
                for key in ("rbps", "wbps"):
                    # A lower limit that another program has set stays.
                    limits[key] = min(mb_per_s * 1_000_000, limits[key] or mb_per_s * 1_000_000)
                lines.append(_files.io_limits_text(disk, limits))
            self.journal.save()

        self.journal.restore(record)
        try:
            for line in lines:
                _files.set_io_limits(file, line)
        except Failure:
            attempt(self._release, target)
            raise

    def _release(self, target: str) -> None:
        failed = None
        for lease in [lease for lease in self.journal.leases if lease.tenant == target]:
            try:
                _files.end_limit(lease.file, lease.before)
                self.journal.leases.remove(lease)
            except Failure as failure:
                failed = failure
        saved = attempt(self.journal.save)
        self._ending = [name for name in self._ending if name != target]
        if failed is not None:
            self._ending.append(target)
            raise failed
        if saved != "ok":
            raise Failure(saved, self.journal.path)

    def _record(self, entry: TenantEntry, now: Configuration) -> None:
        """Writes into the journal that a tenant has other cores or another quota, before it has."""
        before, entry.now = entry.now, now
        try:
            self.journal.save()
        except Failure:
            entry.now = before
            raise

    def _quota(self, tenant: str, target: str, percent: int, at: Configuration) -> None:
        to = self.live.tenants[target]
        if not to.mps_pipe:
            raise Failure("not_supported")
        entry = self.journal.tenants[tenant]
        before = entry.now
        self._record(entry, replace(before, quota_percent=percent))
        mps = Mps(self._programs, to.mps_pipe)
        try:
            mps.set_default_percentage(percent)
            if to.restart:
                self.hook(to.restart, at)
        except Failure:
            # Part of it may have been done: what the journal says must be true of the daemon, too.
            attempt(mps.set_default_percentage, before.quota_percent)
            entry.now = before
            attempt(self.journal.save)
            raise

    def _pin(self, tenant: str, cpus: str) -> None:
        entry = self.journal.tenants[tenant]
        before = entry.now
        if cpus == before.cpus:
            return
        group = self.live.group(tenant)
        if not group:
            raise Failure("not_supported")
        if entry.cpuset is None:
            entry.cpuset = _files.cores_before(group)
        original = entry.cpuset
        try:
            self._record(entry, replace(before, cpus=cpus))
            _files.set_cores(group, cpus, original)
        except Failure:
            entry.now = before
            if attempt(_files.set_cores, group, before.cpus, original) == "ok" and not before.cpus:
                entry.cpuset = None
            attempt(self.journal.save)
            raise
        if not cpus:
            entry.cpuset = None
            self.journal.save()

    def _reconfigure(self, action: control.Action) -> Outcome:
        entry = self.journal.tenants[action.tenant]
        before, after = Configuration.read(action.before), Configuration.read(action.after)
        same = before.instance == after.instance
        if not same and not self.live.tenants[action.tenant].switch_over:
            return Outcome("not_supported")
        entry.pending = after
        entry.switched = entry.drained = False
        status = attempt(self.journal.save)
        if status != "ok":
            entry.pending = None
            return Outcome(status)
        end = Outcome() if same else self._replace(action, entry)
        if end.status == "ok":
            # Cores and a quota are a help, not a condition: if one cannot be set, the change stands without
            # both.
            status = attempt(self._join_guards, action, entry)
            if status != "ok":
                self._report.outcomes.append(Ended("pin", action.tenant, action.tenant, status))
            entry.now = entry.now.at(after)
        if end.status == "ok" or (end.restored and end.status not in FREEZING):
            entry.pending = None
            entry.switched = entry.drained = False
        # True whether or not it can be written; a restart then finds the instances as they are.
        attempt(self.journal.save)
        return end

    def _join_guards(self, action: control.Action, entry: TenantEntry) -> None:
        """The quota and the cores that come with a change of instance: both, or neither."""
        after = Configuration.read(action.after)
        before = entry.now.quota_percent
        clients = [one["name"] for one in self._host["tenants"] if one.get("client_of") == action.tenant]

        def set_quota(percent: int) -> None:
            if not clients:
                raise Failure("not_supported")
            for client in clients:
                self._quota(action.tenant, client, percent, after)

        if after.quota_percent != before:
            set_quota(after.quota_percent)
        if after.cpus == entry.now.cpus:
            return
        try:
            self._pin(action.tenant, after.cpus)
        except Failure:
            if entry.now.quota_percent != before:
                attempt(set_quota, before)
            raise

    def _replace(self, action: control.Action, entry: TenantEntry) -> Outcome:
        before, after = Configuration.read(action.before), Configuration.read(action.after)
        program = self.live.tenants[action.tenant].drain
        move = self._move_of(action.tenant)

        def switch_over(to: Configuration) -> None:
            move(to)
            entry.switched = to != before
            self.journal.save()

        def stop(at: Configuration) -> None:
            entry.drained = True
            self.journal.save()
            self.hook(program, at)

        end = replace_instance(
            self.mig, before, after, switch_over, stop if program else None, self.live.back_off
        )
        # Stopped, or sent to an instance that is gone: the tenant is put back where it was.
        if (
            end.status != "ok"
            and end.restored
            and end.status not in FREEZING
            and (end.moved or entry.switched)
        ):
            end.restored = attempt(move, before) == "ok"
        if end.refused:
            entry.pending = None  # a restart must not take the other one's instance for the tenant's
        return end
