# SPDX-License-Identifier: Apache-2.0
"""Actions on a real host: GPU instances, limits of block I/O, cores and quotas. The journal has each before
it begins.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import control
from ..errors import BackendError
from . import _files
from ._changes import Outcome, TenantMove, replace_instance, resume_obstacle, resume_settle
from ._config import Live
from ._failures import FREEZING, Failure, attempt, patiently
from ._journal import Journal, Lease, TenantEntry
from ._mig import MigBackend
from ._places import Configuration
from ._programs import Programs


@dataclass
class Ended:
    """How an action ended."""

    kind: str
    tenant: str  # for whose sake
    target: str  # the tenant that it hits
    status: str = "ok"
    restored: bool = True


def hook_arguments(program: Sequence[str], at: Configuration, **more: object) -> list[str]:
    """A program's arguments for an instance. `more`: further names in braces."""
    values = {"gpu": at.gpu, "profile": at.profile, "slice": at.slice, "quota": at.quota_percent, **more}
    names = re.compile(rf"{{({'|'.join(values)})}}")
    return [names.sub(lambda match: str(values[match[1]]), text) for text in program]


def run_hook(
    programs: Programs, program: Sequence[str], at: Configuration, notes: list[str], **more: object
) -> None:
    """Runs a tenant's program for an instance. Raises `Failure`; `notes` gets a line on how it failed."""
    if not program:
        raise Failure("not_supported")
    arguments = hook_arguments(program, at, **more)
    result = programs.run(arguments)
    if result.timed_out or result.code != 0:
        how = "took too long" if result.timed_out else f"ended with code {result.code}"
        last = (result.output.strip().splitlines() or [""])[-1]
        notes.append(f"program {arguments[0]!r} {how}" + (f": {last[:200]}" if last else ""))
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
    begun. `notes` gets lines on programs and files that failed.
    """

    def __init__(
        self,
        mig: MigBackend,
        programs: Programs,
        live: Live,
        host: Mapping[str, Any],
        journal: Journal,
        notes: list[str],
    ) -> None:
        self.mig = mig
        self.live = live
        self._host = host
        self.journal = journal
        self._programs = programs
        self._notes = notes
        self._ends: list[Ended] = []
        self._ending: list[str] = []  # tenants whose limit should have ended and has not
        self._deeds = 0  # of the state that the journal has
        self._forgetful = False  # the journal could not take it

    def act(self, actions: Iterable[control.Action]) -> list[Ended]:
        """Carries out actions. Returns how they ended."""
        self._ends = []
        for action in actions:
            self._carry_out(action)
        return self._ends

    def hook(self, program: Sequence[str], at: Configuration) -> None:
        run_hook(self._programs, program, at, self._notes)

    def remember(self, core: control.Controller, now_s: float) -> None:
        """Saves the state to the journal if more than ages changed."""
        if core.deeds == self._deeds:
            return
        status = attempt(self.journal.remember, core.carryover, now_s)
        if status == "ok":
            self._deeds = core.deeds
        elif not self._forgetful:
            path = self.journal.path
            self._notes.append(f"{path}: cannot save the state that the next start needs: {status}")
        self._forgetful = status != "ok"

    def retry_releases(self) -> bool:
        """Tries again to end limits that could not be ended. Returns whether none is left."""
        ending, self._ending = self._ending, []
        for target in ending:
            attempt(self._release, target)
        return not self._ending

    def resume(self, tenants: Sequence[str], looks_only: bool) -> list[str]:
        """Lets frozen tenants go on, all of them or none. Returns the reasons against it."""
        entries = {name: self.journal.tenants[name] for name in tenants}
        obstacles = {name: resume_obstacle(self.mig, entry) for name, entry in entries.items()}
        reasons = [f"{name!r}: {why}" for name, why in obstacles.items() if why]
        if reasons or looks_only:
            return reasons

        with contextlib.suppress(Failure, BackendError), self.journal.undone_on_failure():
            for name, entry in entries.items():
                try:
                    resume_settle(self.mig, entry, self._move_of(name))
                except (Failure, BackendError) as error:  # BackendError: a program that cannot be started
                    reasons.append(f"{name!r}: failed to return it to {entry.now}: {error}")
                    raise
            try:
                self.journal.save()
            except Failure as failure:
                reasons.append(f"{self.journal.path}: cannot be written: {failure.status}")
                raise
        return reasons

    def _move_of(self, tenant: str) -> TenantMove:
        return lambda to: self.hook(self.live.tenants[tenant].switch_over, to)

    def _carry_out(self, action: control.Action) -> None:
        ended = Ended(action.kind, action.tenant, action.target)
        try:
            if action.kind == "reconfigure":
                end = self._reconfigure(action)
                ended.status, ended.restored = end.status, end.restored
            else:
                patiently(lambda: self._guard(action), self.live.back_off)
        except Failure as failure:
            ended.status = failure.status
        except (BackendError, OSError, MemoryError) as error:
            # For example a program that cannot be started: a failure of this action only.
            ended.status, ended.restored = "unknown", False
            self._notes.append(str(error))
        self._ends.append(ended)

    def _guard(self, action: control.Action) -> None:
        if action.kind == "throttle_io":
            self._throttle(action.target, action.value)
        elif action.kind == "release_io":
            self._release(action.target)
        elif action.kind == "set_quota":
            self._quota(action.tenant, action.target, action.value, Configuration.read(action.before))
        else:
            self._pin(action.tenant, action.after.cpus)

    def _throttle(self, target: str, mb_per_s: int) -> None:
        group, disks = self.live.group(target), self.live.tenants[target].disks
        if not group or not disks:
            raise Failure("not_supported")
        # A limit that could not be ended would be taken for what was there before.
        if any(lease.tenant == target for lease in self.journal.leases):
            self._release(target)
        file = f"{group}/io.max"
        lines = []
        with self.journal.undone_on_failure():
            for disk in disks:
                limits = _files.io_limits(_files.read(file), disk)
                self.journal.leases.append(Lease(target, file, _files.io_limits_text(disk, limits)))
                for key in ("rbps", "wbps"):
                    # A lower limit that another program has set stays.
                    limits[key] = min(mb_per_s * 1_000_000, limits[key] or mb_per_s * 1_000_000)
                lines.append(_files.io_limits_text(disk, limits))
            self.journal.save()
        try:
            for line in lines:
                _files.set_io_limits(file, line)
        except Failure:
            attempt(self._release, target)
            raise

    def _release(self, target: str) -> None:
        self._ending = [name for name in self._ending if name != target]
        failed = None
        for lease in [lease for lease in self.journal.leases if lease.tenant == target]:
            try:
                _files.end_limit(lease.file, lease.before)
                self.journal.leases.remove(lease)
            except Failure as failure:
                failed = failure
        if failed is not None:
            self._ending.append(target)
            attempt(self.journal.save)
            raise failed
        self.journal.save()

    @contextlib.contextmanager
    def _recorded(self, entry: TenantEntry, **now: Any) -> Iterator[None]:
        """The journal has other cores or another quota before the tenant has, and the old ones if that
        fails.
        """
        before, entry.now = entry.now, replace(entry.now, **now)
        try:
            self.journal.save()
            yield
        except Failure:
            entry.now = before
            attempt(self.journal.save)
            raise

    def _quota(self, tenant: str, target: str, percent: int, at: Configuration) -> None:
        client, entry = self.live.tenants[target], self.journal.tenants[tenant]
        if not client.mps_pipe:
            raise Failure("not_supported")
        mps, before = Mps(self._programs, client.mps_pipe), entry.now.quota_percent
        with self._recorded(entry, quota_percent=percent):
            try:
                mps.set_default_percentage(percent)
                if client.restart:
                    self.hook(client.restart, at)
            except Failure:
                # Part of it may have been done: what the journal says must be true of the daemon, too.
                attempt(mps.set_default_percentage, before)
                raise

    def _pin(self, tenant: str, cpus: str) -> None:
        entry, group = self.journal.tenants[tenant], self.live.group(tenant)
        before = entry.now.cpus
        if cpus == before:
            return
        if not group:
            raise Failure("not_supported")
        if entry.cpuset is None:
            entry.cpuset = _files.cores_before(group)
        original = entry.cpuset
        with self._recorded(entry, cpus=cpus):
            try:
                _files.set_cores(group, cpus, original)
            except Failure:
                if attempt(_files.set_cores, group, before, original) == "ok" and not before:
                    entry.cpuset = None
                raise
        if not cpus:
            entry.cpuset = None
            self.journal.save()

    def _reconfigure(self, action: control.Action) -> Outcome:
        tenant, entry = action.tenant, self.journal.tenants[action.tenant]
        before, after = Configuration.read(action.before), Configuration.read(action.after)
        moves = before.instance != after.instance
        if moves and not self.live.tenants[tenant].switch_over:
            raise Failure("not_supported")
        entry.pending, entry.switched = after, False
        try:
            self.journal.save()
        except Failure:
            entry.pending = None
            raise
        end = self._replace(tenant, before, after) if moves else Outcome()
        if end.status == "ok":
            # Cores and a quota are a help, not a condition: if one cannot be set, the change stands without
            # both.
            status = attempt(self._join_guards, tenant, after)
            if status != "ok":
                self._ends.append(Ended("pin", tenant, tenant, status))
            entry.settle(entry.now.at(after))
        elif end.refused:
            entry.pending = None  # a restart must not take the other one's instance for the tenant's
        elif end.restored and end.status not in FREEZING:
            entry.settle(entry.now)
        # True whether or not it can be written; a restart then finds the instances as they are.
        attempt(self.journal.save)
        return end

    def _replace(self, tenant: str, before: Configuration, after: Configuration) -> Outcome:
        entry, drain = self.journal.tenants[tenant], self.live.tenants[tenant].drain
        move = self._move_of(tenant)

        def switch_over(to: Configuration) -> None:
            move(to)
            entry.switched = to != before
            self.journal.save()

        def stop(at: Configuration) -> None:
            self.hook(drain, at)

        return replace_instance(
            self.mig, before, after, switch_over, stop if drain else None, self.live.back_off
        )

    def _join_guards(self, tenant: str, after: Configuration) -> None:
        """The quota and the cores that come with a change of instance: both, or neither."""
        entry = self.journal.tenants[tenant]
        before = entry.now.quota_percent
        clients = [one["name"] for one in self._host["tenants"] if one.get("client_of") == tenant]

        def set_quota(percent: int) -> None:
            if not clients:
                raise Failure("not_supported")
            for client in clients:
                self._quota(tenant, client, percent, after)

        if after.quota_percent != before:
            set_quota(after.quota_percent)
        try:
            self._pin(tenant, after.cpus)
        except Failure:
            if entry.now.quota_percent != before:
                attempt(set_quota, before)
            raise
