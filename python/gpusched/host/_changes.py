"""Changes of instance that undo themselves: a tenant's GPU instance is replaced, or the old one stands again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._failures import FREEZING, Failure, attempt
from ._journal import TenantEntry
from ._mig import MigBackend
from ._places import Configuration, Instance, fits

TenantMove = Callable[
    [Configuration], None
]  # has a tenant run in this instance and nowhere else; raises Failure
Wait = Callable[[int], None]  # before retry k of something in use
RETRIES = 3


@dataclass
class Outcome:
    """How a change ended."""

    status: str = "ok"
    restored: bool = True  # after a failure, the old instance stands
    refused: bool = False  # the instance in the new place is foreign
    moved: bool = False  # the tenant was stopped or told to go, and not told to come back


def destroy(backend: MigBackend, instance: Instance, wait: Wait) -> str:
    """Destroys an instance. One in use is tried three more times. Returns the status."""
    status = attempt(backend.destroy, instance)
    for k in range(RETRIES):
        if status != "in_use":
            break
        wait(k)
        status = attempt(backend.destroy, instance)
    return status


def _stands(backend: MigBackend, instance: Instance) -> bool | None:
    """Whether an instance exists; None if that cannot be read."""
    try:
        return instance in backend.read(instance.gpu)
    except Failure:
        return None


def replace_instance(
    backend: MigBackend,
    before: Configuration,
    after: Configuration,
    switch_over: TenantMove,
    stop: TenantMove | None,
    wait: Wait,
) -> Outcome:
    """Replaces a tenant's own instance, and nothing else.

    The new instance comes first if it fits beside the old one; otherwise the old one is destroyed
    first, after `stop`. If a step fails, what was made is removed and what was removed is made
    again. After a failure that freezes nothing more is tried. `switch_over` is called when the new
    instance exists; if that fails, the tenant may have moved or not, so it is called for the old
    instance before the new one is destroyed.
    """
    old, new = before.instance, after.instance
    end = Outcome()

    def failed(status: str, restored: bool) -> Outcome:
        end.status, end.restored = status, restored
        return end

    try:
        there, here = backend.read(new.gpu), backend.read(old.gpu)
        beside = fits(backend.devices[new.gpu], there, new)
        instead = new.gpu == old.gpu and fits(
            backend.devices[new.gpu], [one for one in there if one != old], new
        )
    except Failure as failure:
        return failed(failure.status, True)
    if old not in here:
        return failed("not_found", False)
    drained = tried = False

    def create() -> str:
        status = attempt(backend.create, new)
        end.refused = status == "insufficient_resources"
        end.moved |= status == "ok"
        return status

    def move() -> str:
        nonlocal tried
        tried = True
        return attempt(switch_over, after)

    def drain() -> str:
        nonlocal drained
        if stop is None:
            return "ok"
        drained = end.moved = True
        return attempt(stop, before)

    def undo(why: str) -> Outcome:
        # Read back: a failed call may have had its effect.
        if why in FREEZING:
            return failed(why, bool(_stands(backend, old)))
        if not end.refused and new != old and _stands(backend, new):
            # A program that failed to move the tenant may have moved it.
            if drained and tried and stop is not None and attempt(stop, after) != "ok":
                return failed(why, False)
            if destroy(backend, new, wait) != "ok":
                return failed(why, False)
        stands = _stands(backend, old)
        if stands is None:
            return failed(why, False)
        return failed(why, stands or attempt(backend.create, old) == "ok")

    if beside:
        status = create()
        if status != "ok":
            return undo(status)
        status = move()
        if status != "ok":
            # Nothing is destroyed under a tenant that moved although its program failed.
            if status not in FREEZING:
                if attempt(switch_over, before) != "ok":
                    return failed(status, False)
                end.moved = False
            return undo(status)
        status = destroy(backend, old, wait)
        return failed(status, status == "ok")
    if not instead:
        return failed("insufficient_resources", True)
    for step in (drain, lambda: destroy(backend, old, wait), create, move):
        status = step()
        if status != "ok":
            return undo(status)
    return end


def recover_change(
    backend: MigBackend,
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
    old_stands, new_stands = old in backend.read(old.gpu), new in backend.read(new.gpu)
    forward = new_stands and old != new and (switched or not old_stands)
    stays, other = (after, old) if forward else (before, new)
    if not old_stands and not new_stands:
        backend.create(old)
    backend.complete(stays.instance)
    switch_over(stays)
    if old == new:
        return stays
    if old_stands if forward else new_stands:
        status = destroy(backend, other, wait)
        if status != "ok":
            raise Failure(status, f"destruction of {other}")
    backend.disown(other)
    return stays


def resume_obstacle(backend: MigBackend, name: str, entry: TenantEntry) -> str:
    """The reason why a frozen tenant may not go on; empty if there is none. Looks only.

    It may go on if its instance stands where the journal has it, and nothing is left of a change.
    """
    places = [entry.now.instance]
    if entry.pending is not None and entry.pending.instance != entry.now.instance:
        places.append(entry.pending.instance)
    for instance in places:
        try:
            stands = instance in backend.read(instance.gpu)
        except Failure as failure:
            return f"{name!r}: GPU {instance.gpu} cannot be read: {failure.status}"
        if instance is places[0] and not stands:
            return f"{name!r}: its instance, {instance}, does not stand"
        if instance is not places[0] and stands:
            still_exists = f"{name!r}: {instance}, the destination of the interrupted move, still exists"
            return f"{still_exists}: remove it, or start the controller again, which does"
    return ""


def resume_settle(backend: MigBackend, name: str, entry: TenantEntry, switch_over: TenantMove) -> None:
    """Brings a frozen tenant back to where the journal has it, and forgets the change.

    A process that dies here leaves what recovery expects. Raises `Failure` with the reason.
    """
    backend.adopt(entry.now.instance)
    try:
        backend.complete(entry.now.instance)
    except Failure as failure:
        raise Failure(failure.status, f"{name!r}: its compute instance: {failure.status}") from None
    if entry.pending is None:
        return
    other = entry.pending.instance
    if other != entry.now.instance:
        try:
            switch_over(entry.now)
        except Failure as failure:
            raise Failure(
                failure.status, f"{name!r}: switch_over failed to return it to {entry.now}: {failure.status}"
            ) from None
        # An instance that appears there later is foreign.
        backend.disown(other)
    entry.pending = None
    entry.switched = entry.drained = False
