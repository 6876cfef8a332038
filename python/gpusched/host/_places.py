# SPDX-License-Identifier: Apache-2.0
"""Instances of GPUs and the configuration of tenants, as the journal, the backends and messages have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from .. import control
from ..errors import InvalidInput
from ._failures import Failure


class Instance(NamedTuple):
    """A GPU instance by placement. The driver's id changes with each creation; this does not."""

    gpu: int
    profile: str
    slice: int

    def __str__(self) -> str:
        return f"GPU {self.gpu} {self.profile} at {self.slice}"


@dataclass(frozen=True)
class Configuration:
    """The settings of a tenant that the controller may change. Limits of block I/O are leased and no part of
    it.
    """

    gpu: int = 0
    profile: str = ""
    slice: int = 0
    quota_percent: int = 100
    cpus: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any] | Configuration | control.Configuration) -> Configuration:
        """From a document, or an attribute of an action."""
        if isinstance(given, Mapping):
            return cls(**given)
        return cls(given.gpu, given.profile, given.slice, given.quota_percent, given.cpus)

    @property
    def instance(self) -> Instance:
        """The instance alone, without quota and cores."""
        return Instance(self.gpu, self.profile, self.slice)

    def document(self) -> dict[str, Any]:
        """The fields as JSON holds them."""
        return asdict(self)

    def at(self, other: Configuration) -> Configuration:
        """This quota and these cores in the other's instance."""
        return replace(self, gpu=other.gpu, profile=other.profile, slice=other.slice)

    def __str__(self) -> str:
        return str(self.instance)


_PROFILES: dict[str, dict[str, control.MigProfile]] = {}


def profiles(device: str) -> dict[str, control.MigProfile]:
    """The profiles of a part by key."""
    if device not in _PROFILES:
        _PROFILES[device] = {profile.key: profile for profile in control.mig_layout(device).profiles}
    return _PROFILES[device]


def fits(device: str, instances: Iterable[Instance], new: Instance) -> bool:
    """Whether a GPU with these instances has room for a new one."""
    try:
        layout = control.mig_layout(device, [(one.profile, one.slice) for one in instances])
    except InvalidInput as error:
        raise Failure("not_supported", str(error)) from None
    return bool(layout.can_create(new.profile, new.slice))
