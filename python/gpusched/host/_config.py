"""The section `live` of a configuration: how the machine and its tenants are reached."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import control
from ..errors import BackendError, InvalidInput, repr_text

Given = Mapping[str, Any] | str | os.PathLike[str]


@dataclass
class Latency:
    """Where a tenant's latencies come from. `kind` is file, socket or prometheus; `path` is an address for http://."""

    kind: str
    path: str
    metric: str = ""  # of a histogram, without `_bucket`
    labels: dict[str, str] = field(default_factory=dict)
    ms_per_unit: float = 1000.0  # of a histogram's bounds


@dataclass
class Tenant:
    """A tenant of the machine."""

    protected: bool = False
    tau_ms: float = 15.0
    gpu: int = -1  # of others: whose PCIe root they use
    client_of: str | None = None  # of others: MPS client in this tenant's instance
    latency: Latency | None = None
    cgroup: str = ""  # the whole path; empty: none
    disks: list[str] = field(default_factory=list)  # major:minor of the whole disks on which it is limited
    switch_over: list[str] = field(default_factory=list)
    drain: list[str] = field(default_factory=list)
    mps_pipe: str = ""
    restart: list[str] = field(default_factory=list)


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
    admission_capacity: int = 16
    admission_start: list[str] = field(default_factory=list)
    tenants: dict[str, Tenant] = field(default_factory=dict)


Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(one) for one in value)


def _within(low: float, high: float, *, above: bool = False, whole: bool = False) -> tuple[str, Check]:
    kind = "an integer" if whole else "a number"
    words = f"{kind} above {low:g} and at most {high:g}" if above else f"{kind} from {low:g} to {high:g}"

    def check(value: Any) -> bool:
        good = _is_number(value) and not (whole and not isinstance(value, int))
        return good and (low < value <= high if above else low <= value <= high)

    return words, check


_TEXT = ("a text", _is_text)
_TEXTS = ("a list of texts", _is_texts)
_LISTS = ("a list of lists of texts", lambda value: isinstance(value, list) and all(map(_is_texts, value)))
_LABELS = ("an object of texts", lambda value: isinstance(value, Mapping) and _is_texts([*value, *value.values()]))
_OBJECT = ("an object", lambda value: isinstance(value, Mapping))
_ADDRESS = ("host:port", lambda value: _is_text(value) and re.fullmatch(r"(\S+:\d{1,5})?", value) is not None)

_LIVE: dict[str, tuple[str, Check]] = {
    "mig": ("none, nvidia-smi or nvml", lambda value: value in ("none", "nvidia-smi", "nvml")),
    "nvml": ("true or false", lambda value: isinstance(value, bool)),
    "pci": _TEXTS,
    "journal": _TEXT,
    "command_limit_s": _within(0, 600, above=True),
    "backoff_s": _within(0, 60),
    "lock_wait_s": _within(0, 3600),
    "layout_every": _within(1, 1000, whole=True),
    "cgroups": _TEXT,
    "proc": _TEXT,
    "numa_disks": _LISTS,
    "root_nics": _LISTS,
    "metrics": _ADDRESS,
    "admission": _OBJECT,
    "tenants": _OBJECT,
}
_ADMISSION = {"capacity": _within(0, 100_000, whole=True), "start": _TEXTS}
_TENANT = {
    "latency": _OBJECT,
    "cgroup": _TEXT,
    "disks": _TEXTS,
    "switch_over": _TEXTS,
    "drain": _TEXTS,
    "mps_pipe": _TEXT,
    "restart": _TEXTS,
}
_KINDS = ("file", "socket", "prometheus")
_LATENCY = {
    **dict.fromkeys(_KINDS, _TEXT),
    "metric": _TEXT,
    "labels": _LABELS,
    "ms_per_unit": _within(0, 1e6, above=True),
}


def read_document(given: Given) -> dict[str, Any]:
    """A configuration as a dict: from a mapping, JSON text, or the path of a file."""
    if isinstance(given, Mapping):
        return dict(given)
    text = os.fspath(given)
    if not text.lstrip().startswith("{"):
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BackendError(f"{given}: cannot be read: {reason}") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"configuration: no JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInput("configuration: expected an object")
    return document


def read_live(document: Mapping[str, Any]) -> tuple[dict[str, Any], Live]:
    """The complete configuration of the decision core, and the section `live`.

    Raises InvalidInput with all problems of one of the two, each with its place.
    """
    config = control.Controller(document).config
    if "live" not in document:
        raise InvalidInput("/live: missing; expected how the host is reached")
    problems: list[str] = []
    given = _fields(document["live"], _LIVE, "/live", problems)
    live = Live(**{name: value for name, value in given.items() if name not in ("admission", "tenants")})
    admission = _fields(given.get("admission", {}), _ADMISSION, "/live/admission", problems)
    live.admission_capacity = admission.get("capacity", live.admission_capacity)
    live.admission_start = admission.get("start", [])
    host = config["host"]
    described = given.get("tenants", {})
    for one in host["tenants"]:
        place = f"/live/tenants/{one['name']}"
        live.tenants[one["name"]] = _tenant(one, described.get(one["name"], {}), live, place, problems)
    known = set(live.tenants)
    problems += [f"/live/tenants/{name}: expected the name of a tenant" for name in described if name not in known]
    _check(live, host, problems)
    _check_groups(live, problems)
    if problems:
        raise InvalidInput(problems)
    return config, live


def _fields(given: Any, table: Mapping[str, tuple[str, Check]], place: str, problems: list[str]) -> dict[str, Any]:
    """The fields of an object that are right; the others become problems."""
    if not isinstance(given, Mapping):
        problems.append(f"{place}: {repr_text(given)}; expected an object")
        return {}
    out = {}
    for name, value in given.items():
        if name not in table:
            problems.append(f"{place}/{name}: unknown field; expected one of {', '.join(table)}")
        elif not table[name][1](value):
            problems.append(f"{place}/{name}: {repr_text(value)}; expected {table[name][0]}")
        else:
            out[name] = value
    return out


def _tenant(host: Mapping[str, Any], given: Any, live: Live, place: str, problems: list[str]) -> Tenant:
    fields = _fields(given, _TENANT, place, problems)
    latency = fields.pop("latency", None)
    tenant = Tenant(**fields)
    tenant.protected, tenant.tau_ms = host["protected"], host["tau_ms"]
    tenant.gpu, tenant.client_of = host["gpu"], host.get("client_of")
    if latency is not None:
        tenant.latency = _latency(latency, f"{place}/latency", problems)
    elif tenant.protected:
        problems.append(f"{place}/latency: missing; expected where the protected tenant's latencies come from")
    for disk in tenant.disks:
        if not re.fullmatch(r"\d+:\d+", disk):
            problems.append(f"{place}/disks: {disk!r}; expected major:minor, such as 259:0")
    if tenant.cgroup:
        parts = _parts(tenant.cgroup)
        if not parts or ".." in parts:
            problems.append(f"{place}/cgroup: {tenant.cgroup!r}; expected a folder below the control groups")
        tenant.cgroup = "/".join([live.cgroups.rstrip("/"), *parts])
    return tenant


def _latency(given: Any, place: str, problems: list[str]) -> Latency | None:
    fields = _fields(given, _LATENCY, place, problems)
    kinds = [kind for kind in _KINDS if fields.get(kind)]
    if len(kinds) != 1:
        problems.append(f"{place}: expected exactly one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}")
        return None
    rest = {name: value for name, value in fields.items() if name not in _KINDS}
    latency = Latency(kinds[0], fields[kinds[0]], **rest)
    if latency.kind == "prometheus" and not latency.metric:
        problems.append(f"{place}/metric: missing; expected the name of a histogram")
    if latency.kind == "socket" and len(os.fsencode(latency.path)) > 107:
        problems.append(f"{place}/socket: {repr_text(latency.path)}; expected a path of 1 to 107 characters")
    return latency


def _check(live: Live, host: Mapping[str, Any], problems: list[str]) -> None:
    if live.mig == "nvml" and not live.nvml:
        problems.append("/live/nvml: false; expected true, as /live/mig is nvml")
    if not live.journal:
        problems.append("/live/journal: missing; expected a file")
    gpus, roots = len(host["gpus"]), len(host["roots"])
    if live.pci and len(live.pci) != gpus:
        problems.append(f"/live/pci: {len(live.pci)} elements; expected one per GPU: {gpus}")
    if len(live.numa_disks) > host["numa_nodes"]:
        problems.append(f"/live/numa_disks: {len(live.numa_disks)} elements; expected at most one per NUMA node: {host['numa_nodes']}")
    if len(live.root_nics) > roots:
        problems.append(f"/live/root_nics: {len(live.root_nics)} elements; expected at most one per PCIe root: {roots}")


def _parts(path: str) -> list[str]:
    """A folder's name without what does not matter in it."""
    return [part for part in path.split("/") if part not in ("", ".")]


def _check_groups(live: Live, problems: list[str]) -> None:
    """A limit of one tenant must not hit another, and two must not restore over each other."""
    seen: list[tuple[str, Sequence[str]]] = []
    for name, tenant in live.tenants.items():
        if not tenant.cgroup:
            continue
        mine = _parts(tenant.cgroup)
        for other, parts in seen:
            least = min(len(mine), len(parts))
            if mine[:least] == list(parts[:least]):
                problems.append(
                    f"/live/tenants/{name}/cgroup: {tenant.cgroup!r}; expected a group of its own: "
                    f"neither that of {other!r}, nor above or below it"
                )
        seen.append((name, mine))
