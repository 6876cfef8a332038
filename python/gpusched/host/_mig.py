# SPDX-License-Identifier: Apache-2.0
"""Reads and changes the GPU instances of a machine: the common part of the backends NVML and `nvidia-smi`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ._failures import FREEZING, Failure, attempt
from ._places import Instance, fits, profiles

MOST_INSTANCES = 8


class Row(NamedTuple):
    """A GPU instance as the driver lists it. `id` is opaque, reused, and another one after each creation."""

    profile_id: int
    id: int
    start: int
    size: int


class MigBackend:
    """The GPU instances of the host's GPUs. A call that fails raises `Failure`.

    A backend destroys only the instances that it owns: those named at construction, and those that
    it created. An instance that appears in another way is foreign. Starts are always explicit, and
    a success counts only if the listing agrees. The MIG mode is never changed and no GPU is reset.
    """

    name = ""

    def __init__(self, devices: Sequence[str], owned: Iterable[Instance] = ()) -> None:
        self.devices = list(devices)
        self.owned = set(owned)
        self._shortfalls: dict[int, float] = {}  # MiB by GPU

    def read(self, gpu: int) -> list[Instance]:
        """The instances that exist, with a compute instance or without."""
        return self._instances(gpu, self._rows(gpu))

    def create(self, new: Instance) -> None:
        """Makes an instance with its compute instance.

        After `insufficient_resources` nothing was made, and the instance in the place is foreign. After
        another failure a half-made instance may be left, which `destroy` removes.
        """
        before = self._rows(new.gpu)
        # The driver reports this also if exactly this instance exists, which is not ours then.
        if not fits(self.devices[new.gpu], self._instances(new.gpu, before), new):
            raise Failure("insufficient_resources", f"no room for {new}")
        status, made = self._make(new)
        try:
            now = {self._known(new.gpu, row): row.id for row in self._rows(new.gpu)}
        except Failure:
            raise Failure(
                status if status in FREEZING else "invalid_state", f"{new} after its creation"
            ) from None
        found = now.get(new)
        reported = found in made if made else status == "ok"
        # A call may have an effect and fail, and another program may have been quicker.
        ours = found is not None and found not in {row.id for row in before} and reported
        if not ours:
            raise Failure("invalid_state" if status == "ok" else status, f"creation of {new}")
        self.owned.add(new)
        if status == "ok":
            status = attempt(self.complete, new)
        if status == "ok":
            return
        if (
            status not in FREEZING
            and attempt(self.destroy, new) != "ok"
            and status == "insufficient_resources"
        ):
            status = "invalid_state"  # that status would mean that nothing was made
        raise Failure(status, f"creation of {new}")

    def destroy(self, old: Instance) -> None:
        """Removes an instance. If it cannot be removed, it gets back its compute instance, so that its tenant
        goes on.
        """
        number = self._find_owned(old)
        try:
            self._remove(old.gpu, number)
        except Failure as failure:
            if failure.status in FREEZING:
                raise
            # A call may have an effect and fail.
            left = attempt(self.complete, old)
            if left == "ok":
                raise
            if left != "not_found":
                raise Failure("invalid_state", f"{old} lacks its compute instance: {failure}") from None
        try:
            stands = old in self.read(old.gpu)
        except Failure:
            stands = True
        if stands:
            raise Failure("invalid_state", f"{old} still stands")
        self.owned.discard(old)

    def complete(self, instance: Instance) -> None:
        """Gives an instance the compute instance that it lacks, as after a crash between two commands."""
        self._give_compute(instance, self._find_owned(instance, forget=False))

    def adopt(self, instance: Instance) -> None:
        """Takes a placement over, after an operator has confirmed it."""
        self.owned.add(instance)

    def disown(self, instance: Instance) -> None:
        """Gives up the claim to a placement. An instance that appears there later is foreign."""
        self.owned.discard(instance)

    def memory_used(self, gpu: int) -> dict[Instance, float | str]:
        """MiB that are not free, by instance, for each with a MIG device; a status if asking for it failed.

        The decision core compares with the tables' sizes, so what the driver's profiles lack, at most, counts
        as memory in use.
        """
        if gpu not in self._shortfalls:
            ours = {profile.id: profile.memory_mib for profile in profiles(self.devices[gpu]).values()}
            sizes = self._profile_sizes(gpu)
            known = [ours[number] - mib for number, mib in sizes.items() if number in ours]
            if not known:
                raise Failure("not_supported", "the sizes of its profiles are not known")
            self._shortfalls[gpu] = max(0.0, *known)
        return {
            one: mib if isinstance(mib, str) else mib + self._shortfalls[gpu]
            for one, mib in self._memory_used(gpu).items()
        }

    def _find_owned(self, instance: Instance, forget: bool = True) -> int:
        if instance not in self.owned:
            raise Failure("no_permission", f"{instance} is not the controller's")
        for row in self._rows(instance.gpu):
            if self._known(instance.gpu, row) == instance:
                return row.id
        if forget:
            self.owned.discard(instance)
        raise Failure("not_found", str(instance))

    def _known(self, gpu: int, row: Row) -> Instance | None:
        for key, profile in profiles(self.devices[gpu]).items():
            if profile.id == row.profile_id and profile.memory_slices == row.size and 0 <= row.start <= 7:
                return Instance(gpu, key, row.start)
        return None

    def _instances(self, gpu: int, rows: Sequence[Row]) -> list[Instance]:
        found = [self._known(gpu, row) for row in rows]
        if None in found or len(found) > MOST_INSTANCES:
            raise Failure(
                "not_supported", f"GPU {gpu} has an instance that the table of {self.devices[gpu]} lacks"
            )
        return [instance for instance in found if instance is not None]

    # A backend without one of these does not support it.

    def _rows(self, gpu: int) -> list[Row]:
        raise Failure("not_supported")

    def _make(self, new: Instance) -> tuple[str, set[int]]:
        """Asks for an instance. Returns the status and the ids that the driver says it created."""
        raise Failure("not_supported")

    def _remove(self, gpu: int, number: int) -> None:
        """Destroys the compute instances of a GPU instance, then the GPU instance."""
        raise Failure("not_supported")

    def _give_compute(self, instance: Instance, number: int) -> None:
        raise Failure("not_supported")

    def _memory_used(self, gpu: int) -> Mapping[Instance, float | str]:
        raise Failure("not_supported")

    def _profile_sizes(self, gpu: int) -> Mapping[int, float]:
        """MiB by the driver's profile id."""
        raise Failure("not_supported")


class NoMig(MigBackend):
    """Without a driver: the configured instances count as existing, and nothing is changed."""

    name = "none"

    def read(self, gpu: int) -> list[Instance]:
        return sorted(one for one in self.owned if one.gpu == gpu)

    def destroy(self, old: Instance) -> None:
        raise Failure("not_supported")

    def complete(self, instance: Instance) -> None:
        raise Failure("not_supported")


class MemoryMeter:
    """Memory in use of the protected tenants' instances. While it is unknown, no instance is made smaller."""

    def __init__(self) -> None:
        self._source: MigBackend | None = None

    def choose(self, tenants: Mapping[str, Instance], sources: Sequence[MigBackend]) -> list[str]:
        """Takes the first source that knows the use of a tenant. Returns a line per tenant."""
        lines: list[str] = []
        for source in sources:
            used = _measure(source, tenants)
            lines = [f"{name}: memory in use {_text(mib, source.name)}" for name, mib in used.items()]
            if any(not isinstance(mib, str) for mib in used.values()):
                self._source = source
                return lines
        self._source = None
        return lines

    def read(self, tenants: Mapping[str, Instance]) -> tuple[dict[str, float], str]:
        """MiB by tenant, and a line if the source is given up. `tenants`: whose instances were just read."""
        if self._source is None:
            return {}, ""
        used = _measure(self._source, tenants)
        if "timeout" in used.values():
            name, self._source = self._source.name, None
            line = f"{name} took too long and is not asked again; instances are not made smaller"
            return {}, f"memory in use: {line}"
        return {name: mib for name, mib in used.items() if not isinstance(mib, str)}, ""


def _text(mib: float | str, source: str) -> str:
    if isinstance(mib, str):
        return f"not known to {source}: {mib}; while it is not, the instance is not made smaller"
    return f"{mib:.0f} MiB, by {source}"


def _measure(source: MigBackend, tenants: Mapping[str, Instance]) -> dict[str, float | str]:
    """MiB by tenant, or why it is not known. A GPU is asked once for all of its tenants."""
    found: dict[Instance, float | str] = {}
    failed: dict[int, str] = {}
    for gpu in {one.gpu for one in tenants.values()}:
        try:
            found.update(source.memory_used(gpu))
        except Failure as failure:
            failed[gpu] = failure.status
    return {name: found.get(one, failed.get(one.gpu, "not_found")) for name, one in tenants.items()}
