# SPDX-License-Identifier: Apache-2.0
"""Changes of instance that undo themselves: a tenant's GPU instance is replaced, or the old one is back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._failures import FREEZING, Failure, attempt, patiently
from ._journal import TenantEntry
from ._mig import MigBackend
from ._places import Configuration, Instance, fits

# Has a tenant run in this instance and nowhere else; raises Failure.
TenantMove = Callable[[Configuration], None]
Wait = Callable[[int], None]  # before retry k of something in use


@dataclass
class Outcome:
    """How a change ended."""

    status: str = "ok"
    restored: bool = True  # after a failure, the tenant is in the old instance
    refused: bool = False  # the instance in the new place is foreign


def _destroy(mig: MigBackend, instance: Instance, wait: Wait) -> None:
    patiently(lambda: mig.destroy(instance), wait)


def _stands(mig: MigBackend, place: Configuration) -> bool:
    """Whether an instance is known to exist."""
    try:
        return place.instance in mig.read(place.gpu)
    except Failure:
        return False


def replace_instance(
    mig: MigBackend,
    before: Configuration,
    after: Configuration,
    switch_over: TenantMove,
    stop: TenantMove | None,
    wait: Wait,
) -> Outcome:
    """Replaces a tenant's own instance, and nothing else.

    The new instance comes first if it fits beside the old one; otherwise the old one is destroyed
    first, after `stop`. If a step fails, what was made is removed, what was removed is made
    again, and the tenant is sent back. After a failure that freezes nothing more is tried.
    """
    old, new = before.instance, after.instance
    try:
        there, here = mig.read(new.gpu), mig.read(old.gpu)
        beside = fits(mig.devices[new.gpu], there, new)
        instead = fits(mig.devices[new.gpu], [one for one in there if one != old], new)
    except Failure as failure:
        return Outcome(failure.status)
    if old not in here:
        return Outcome("not_found", restored=False)
    if not beside and not instead:
        return Outcome("insufficient_resources")
    step = ""
    end = Outcome()

    def undo() -> None:
        if beside and step == "move":
            # A program that failed may have moved the tenant: nothing is destroyed under it.
            switch_over(before)
        # Instances are read again, because a failed call may have had its effect.
        if not end.refused and new != old and new in mig.read(new.gpu):
            if not beside and step == "move" and stop is not None:
                stop(after)
            _destroy(mig, new, wait)
        gone = old not in mig.read(old.gpu)
        if gone:
            mig.create(old)
        if gone or (stop is not None and not beside):
            switch_over(before)

    try:
        if not beside:
            step = "stop"
            if stop is not None:
                stop(before)
            step = "clear"
            _destroy(mig, old, wait)
        step = "create"
        mig.create(new)
        step = "move"
        switch_over(after)
        step = "leave"
        if beside:
            _destroy(mig, old, wait)
    except Failure as failure:
        end.status = failure.status
        end.refused = step == "create" and failure.status == "insufficient_resources"
        if step == "leave":
            end.restored = False  # the tenant is in the new instance
        elif failure.status in FREEZING:
            end.restored = _stands(mig, before)
        else:
            end.restored = attempt(undo) == "ok"
    return end


def recover_change(
    mig: MigBackend,
    before: Configuration,
    after: Configuration,
    switched: bool,
    switch_over: TenantMove,
    wait: Wait,
) -> Configuration:
    """Completes an interrupted change and returns the tenant's configuration.

    Chooses the new instance if `switch_over` had already sent the tenant there, else the old one
    if it exists, else the new one. If neither exists, it creates the old one again. It calls
    `switch_over` before it removes the other instance. The instance that stays gets the compute
    instance that it lacks, and the claim to the other placement is given up.
    """
    old, new = before.instance, after.instance
    old_stands, new_stands = old in mig.read(old.gpu), new in mig.read(new.gpu)
    forward = new_stands and old != new and (switched or not old_stands)
    stays, other = (after, old) if forward else (before, new)
    if not old_stands and not new_stands:
        mig.create(old)
    mig.complete(stays.instance)
    switch_over(stays)
    if old != new:
        if old_stands if forward else new_stands:
            _destroy(mig, other, wait)
        mig.disown(other)
    return stays


def resume_obstacle(mig: MigBackend, entry: TenantEntry) -> str:
    """The reason why a frozen tenant may not go on; empty if there is none. Looks only.

    It may go on if its instance stands where the journal has it, and nothing is left of a change.
    """
    now, pending = entry.now.instance, (entry.pending or entry.now).instance
    for instance in dict.fromkeys((now, pending)):
        try:
            stands = instance in mig.read(instance.gpu)
        except Failure as failure:
            return f"GPU {instance.gpu} cannot be read: {failure.status}"
        if instance == now and not stands:
            return f"its instance, {instance}, does not stand"
        if instance != now and stands:
            return (
                f"{instance}, the destination of the interrupted move, still exists: remove it, or start "
                "the controller again, which does"
            )
    return ""


def resume_settle(mig: MigBackend, entry: TenantEntry, switch_over: TenantMove) -> None:
    """Brings a frozen tenant back to where the journal has it, and forgets the change.

    A process that dies here leaves what recovery expects. Raises `Failure`.
    """
    now, pending = entry.now, entry.pending
    mig.adopt(now.instance)
    mig.complete(now.instance)
    if pending is not None and pending.instance != now.instance:
        switch_over(now)
        mig.disown(pending.instance)  # an instance that appears there later is foreign
    entry.settle(now)
