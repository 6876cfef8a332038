# SPDX-License-Identifier: Apache-2.0
"""The section `live` of a configuration: how the machine and its tenants are reached."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin, get_type_hints

from .. import control
from ..errors import InvalidInput, repr_text


@dataclass
class Latency:
    """Where a tenant's latencies come from: exactly one of a file, a socket and a Prometheus histogram."""

    file: str = ""
    socket: str = ""
    prometheus: str = ""  # a file that is replaced, or an address, http://...
    metric: str = ""  # of a histogram, without `_bucket`
    labels: dict[str, str] = field(default_factory=dict)  # that a series must have
    ms_per_unit: float = 1000.0  # of the histogram's bounds


@dataclass
class Tenant:
    """How a tenant is reached."""

    latency: Latency | None = None
    cgroup: str = ""  # below `Live.cgroups`; empty: none
    disks: list[str] = field(default_factory=list)  # major:minor of the whole disks on which it is limited
    switch_over: list[str] = field(default_factory=list)
    drain: list[str] = field(default_factory=list)
    mps_pipe: str = ""
    restart: list[str] = field(default_factory=list)


@dataclass
class Admission:
    """How newcomers come to the host."""

    capacity: int = 16
    start: list[str] = field(default_factory=list)


@dataclass
class Live:
    """The machine. docs/host.md says what each field means."""

    mig: str = "nvidia-smi"
    nvml: bool = True
    pci: list[str] = field(default_factory=list)
    journal: str = ""
    command_limit_s: float = 30.0
    backoff_s: float = 0.5
    lock_wait_s: float = 35.0
    layout_every: int = 5
    cgroups: str = "/sys/fs/cgroup"
    proc: str = "/proc"
    numa_disks: list[list[str]] = field(default_factory=list)
    root_nics: list[list[str]] = field(default_factory=list)
    metrics: str = ""  # host:port of the endpoint for Prometheus; empty: none
    admission: Admission = field(default_factory=Admission)
    tenants: dict[str, Tenant] = field(default_factory=dict)

    def back_off(self, k: int) -> None:
        """Waits before try k of something in use."""
        time.sleep(self.backoff_s * (1 << k))

    def group(self, tenant: str) -> str:
        """The folder of a tenant's control group; empty if it has none."""
        below = self.tenants[tenant].cgroup
        return f"{self.cgroups.rstrip('/')}/{below}" if below else ""


_WITHIN: dict[str, tuple[float, float]] = {
    "backoff_s": (0, 60),
    "lock_wait_s": (0, 3600),
    "layout_every": (1, 1000),
    "capacity": (0, 100_000),
    "command_limit_s": (1e-6, 600),
    "ms_per_unit": (1e-6, 1e6),
}


_EXPECTED: dict[Any, str] = {
    bool: "true or false",
    str: "a text",
    list[str]: "a list of texts",
    list[list[str]]: "a list of lists of texts",
    dict[str, str]: "an object of texts",
}


def read_live(given: Mapping[str, Any] | str) -> tuple[dict[str, Any], Live]:
    """The complete configuration of the decision core, and the section `live`; from a mapping or JSON text.

    Raises InvalidInput with all problems of one of the two, each with its place.
    """
    try:
        document = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"configuration: no JSON: {error}") from None
    config = control.Controller(document).config
    if "live" not in document:
        raise InvalidInput("/live: missing; expected an object")
    problems: list[str] = []
    live: Live = _read(Live, document["live"], "/live", problems)
    problems += _problems(live, config["host"])
    if problems:
        raise InvalidInput(problems)
    return config, live


def _read(kind: Any, given: Any, place: str, problems: list[str]) -> Any:
    """An object of a dataclass from a document. Fields that are wrong become problems and keep their
    defaults.
    """
    out = kind()
    if not isinstance(given, Mapping):
        problems.append(f"{place}: {repr_text(given)}; expected an object")
        return out
    hints = get_type_hints(kind)
    for name, value in given.items():
        at = f"{place}/{name}"
        if name.startswith("x-"):  # fields of the user
            continue
        if name not in hints:
            problems.append(f"{at}: unknown field; expected one of {', '.join(hints)}")
        elif name == "tenants":
            tenants = value if isinstance(value, Mapping) else {"": value}
            out.tenants = {
                tenant: _read(Tenant, one, f"{at}/{tenant}", problems) for tenant, one in tenants.items()
            }
        elif name in ("latency", "admission"):
            setattr(out, name, _read(Latency if name == "latency" else Admission, value, at, problems))
        elif expected := _expected(hints[name], name, value):
            problems.append(f"{at}: {repr_text(value)}; expected {expected}")
        else:
            setattr(out, name, value)
    return out


def _expected(hint: Any, name: str, value: Any) -> str:
    """What a field expects, if the value is something else."""
    if name not in _WITHIN:
        return "" if _is(hint, value) else _EXPECTED[hint]
    low, high = _WITHIN[name]
    kinds: Any = int if hint is int else (int, float)
    if isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high:
        return ""
    limits = f"from {low:g} to {high:g}" if low >= 1 or low == 0 else f"above 0 and at most {high:g}"
    return f"{'an integer' if hint is int else 'a number'} {limits}"


def _is(hint: Any, value: Any) -> bool:
    """Whether a value is of a type with a text in `_EXPECTED`."""
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_is(get_args(hint)[0], one) for one in value)
    if get_origin(hint) is dict:
        return isinstance(value, Mapping) and all(_is(str, one) for one in (*value, *value.values()))
    return isinstance(value, hint) and not (hint is str and "\0" in value)


def _problems(live: Live, host: Mapping[str, Any]) -> Iterator[str]:
    """The rules between fields, and with the host."""
    gpus, nodes, roots = len(host["gpus"]), host["numa_nodes"], len(host["roots"])
    if live.mig not in ("none", "nvidia-smi", "nvml"):
        yield f"/live/mig: {live.mig!r}; expected none, nvidia-smi or nvml"
    if live.mig == "nvml" and not live.nvml:
        yield "/live/nvml: false; expected true, as /live/mig is nvml"
    if not live.journal:
        yield "/live/journal: missing; expected a file"
    if live.metrics and not re.fullmatch(r"\S+:\d{1,5}", live.metrics):
        yield f"/live/metrics: {live.metrics!r}; expected host:port"
    if live.pci and len(live.pci) != gpus:
        yield f"/live/pci: {len(live.pci)} elements; expected one per GPU: {gpus}"
    if len(live.numa_disks) > nodes:
        found = f"{len(live.numa_disks)} elements"
        yield f"/live/numa_disks: {found}; expected at most one per NUMA node: {nodes}"
    if len(live.root_nics) > roots:
        yield f"/live/root_nics: {len(live.root_nics)} elements; expected at most one per PCIe root: {roots}"
    given, live.tenants = live.tenants, {}
    groups: dict[str, list[str]] = {}
    for one in host["tenants"]:
        name = one["name"]
        tenant = live.tenants[name] = given.pop(name, Tenant())
        yield from _tenant_problems(tenant, one["protected"], f"/live/tenants/{name}")
        if not tenant.cgroup:
            continue
        # A limit of one tenant must not hit another, and two must not restore over each other.
        parts = [part for part in tenant.cgroup.split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            expected = "expected a folder below the control groups"
            yield f"/live/tenants/{name}/cgroup: {tenant.cgroup!r}; {expected}"
        for other, theirs in groups.items():
            least = min(len(parts), len(theirs))
            if parts[:least] == theirs[:least]:
                yield (
                    f"/live/tenants/{name}/cgroup: {tenant.cgroup!r}; expected a group of its own: "
                    f"neither that of {other!r}, nor above or below it"
                )
        groups[name] = parts
    for name in given:
        yield f"/live/tenants/{name}: expected the name of a tenant"


def _tenant_problems(tenant: Tenant, protected: bool, place: str) -> Iterator[str]:
    latency = tenant.latency
    if latency is None and protected:
        yield f"{place}/latency: missing; expected file, socket or prometheus for a protected tenant"
    if latency is not None:
        if sum(map(bool, (latency.file, latency.socket, latency.prometheus))) != 1:
            yield f"{place}/latency: expected exactly one of file, socket and prometheus"
        if latency.prometheus and not latency.metric:
            yield f"{place}/latency/metric: missing; expected the name of a histogram"
        if len(latency.socket.encode("utf-8", "surrogateescape")) > 107:
            yield f"{place}/latency/socket: {latency.socket!r}; expected a path of at most 107 characters"
    for disk in tenant.disks:
        if not re.fullmatch(r"\d+:\d+", disk):
            yield f"{place}/disks: {disk!r}; expected major:minor, such as 259:0"
