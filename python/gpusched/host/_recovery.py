# SPDX-License-Identifier: Apache-2.0
"""After a start: from the journal and the hardware to a state that is known."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import BackendError
from . import _files
from ._actuator import run_hook
from ._changes import TenantMove, recover_change
from ._config import Live
from ._failures import Failure, UnknownState, attempt
from ._journal import Journal, Lease, TenantEntry
from ._mig import MigBackend
from ._places import Configuration
from ._programs import Programs


@dataclass
class Recovery:
    """The findings of a start. `verdicts`, by protected tenant, are those of docs/host.md."""

    verdicts: dict[str, str] = field(default_factory=dict)
    leases_ended: int = 0
    problems: list[str] = field(default_factory=list)  # for an operator; empty: control may start

    def require_known(self) -> None:
        if self.problems:
            raise UnknownState("\n  - ".join(["the host's state is not known:", *self.problems]))


def recover(
    mig: MigBackend,
    programs: Programs,
    live: Live,
    starts: Mapping[str, Configuration],
    journal: Journal,
    boot: str,
) -> Recovery:
    """Ends limits and changes that a controller left behind, and saves the result.

    `starts`: the protected tenants' instances by the configuration. Without a MIG backend a change
    that was cut off stays in the journal and is a problem.
    """
    out = Recovery()
    if not boot:
        out.problems.append(
            "the identity of the running kernel (boot_id) cannot be read, so nothing says whether "
            f"{journal.path} is of this boot"
        )
        return out
    first = "as_configured" if not journal.found else "as_recorded" if journal.boot == boot else "restarted"
    journal.believe(boot)
    for lease in list(journal.leases):
        _end_lease(lease, live, journal, out)
    for name, start in starts.items():
        recorded = name in journal.tenants
        entry = journal.tenants.setdefault(name, TenantEntry(now=start))
        found = first if recorded or first != "as_recorded" else "as_configured"
        notes: list[str] = []
        hook = functools.partial(run_hook, programs, live.tenants[name].switch_over, notes=notes)
        why = ""
        try:
            verdict = _recover_tenant(mig, live, entry, hook, found)
        except Failure as failure:
            verdict, why = "failed", f" ({failure.status})"
        except BackendError:  # a program that cannot be started
            verdict, why = "failed", " (unknown)"
        out.verdicts[name] = verdict
        out.problems += [f"{name!r}: {note}" for note in notes]
        if mig.name == "none" and verdict == "failed":
            out.problems.append(
                f"{name!r}: a change of its instance was cut off, and there is no MIG backend to look: "
                "start once with one"
            )
        if verdict in ("failed", "missing"):
            where = f"; {journal.path} has its place" if recorded else ""
            out.problems.append(f"{name!r}: {verdict}{why}: its GPU instance requires manual repair{where}")
        _recover_pin(name, live.group(name), entry, out)
    status = attempt(journal.save)
    if status != "ok":
        out.problems.append(f"{journal.path}: cannot be written: {status}")
    return out


def _end_lease(lease: Lease, live: Live, journal: Journal, out: Recovery) -> None:
    folder = live.cgroups + "/"
    if not (lease.file.startswith(folder) and lease.file.endswith("/io.max")) or "/../" in lease.file:
        out.problems.append(
            f"{lease.file!r}: named by {journal.path}, but no io.max below {live.cgroups}: nothing is written"
        )
        return
    status = attempt(_files.end_limit, lease.file, lease.before)
    if status != "ok":
        out.problems.append(f"{lease.file}: limit of {lease.tenant!r} cannot be ended: {status}")
        return
    out.leases_ended += 1
    journal.leases.remove(lease)


def _recover_tenant(
    mig: MigBackend, live: Live, entry: TenantEntry, hook: TenantMove, found: str
) -> str:
    """Brings a change that was cut off to an end. Returns the verdict; raises `Failure`."""
    now = entry.now
    if entry.pending is not None:
        if mig.name == "none":
            raise Failure("not_supported")
        stays = recover_change(mig, now, entry.pending, entry.switched, hook, live.back_off)
        found = "restored" if stays.instance == now.instance else "completed"
        now = now.at(stays)
    elif mig.name != "none":
        if now.instance not in mig.read(now.gpu):
            return "missing"
        mig.complete(now.instance)
    entry.settle(now)
    return found


def _recover_pin(name: str, group: str, entry: TenantEntry, out: Recovery) -> None:
    """A pin may have been cut off before or after it was written."""
    if entry.cpuset is None or not group:
        return
    status = attempt(_files.set_cores, group, entry.now.cpus, entry.cpuset)
    if status == "ok" and not entry.now.cpus:
        entry.cpuset = None
    if status not in ("ok", "not_found"):
        out.problems.append(f"{name!r}: its cores cannot be set: {status}")
