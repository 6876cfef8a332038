"""A snapshot of a cluster from its API."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from .._views.tables import format_table
from .._views.words import counted
from ..errors import BackendError, InvalidInput
from ._api import Api
from ._discovery import Discovery
from ._kinds import KINDS, Kind
from ._lists import NAMES_ALONE, Forbidden, Unavailable, read_list, versions_by_name
from ._private import without_private

NAMES_SHOWN = 3


@dataclass(frozen=True)
class ListRead:
    """A kind of objects that was read, and what changed of it until all kinds were."""

    resource: str
    """As kubectl writes it: `pods`, `jobs.batch`."""
    version: str
    """Of the API, such as `v1`."""
    resource_version: str
    """Of the moment that the objects are from, all of them."""
    count: int
    pages: int
    expired: bool
    """The server had forgotten that moment before the last page, so the list was read again, in one piece."""
    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    """Names of objects that were changed, created and deleted after that moment, before all lists had been read."""

    @property
    def changes(self) -> int:
        return len(self.changed) + len(self.created) + len(self.deleted)


@dataclass(frozen=True)
class Snapshot:
    """The objects of a cluster that bear on placement, and how they were read.

    `gs.io.read_kubernetes(snapshot.objects)` makes a cluster of them.
    """

    objects: dict[str, Any] = field(repr=False)
    """A List, as `kubectl get -o json` prints it, without what containers run: command, arguments, environment variables, probes."""
    lists: tuple[ListRead, ...]
    absent: tuple[str, ...]
    """Resources that the server does not have, such as `podgroups.scheduling.volcano.sh`."""
    forbidden: tuple[str, ...]
    """Resources that the credentials may not list."""
    unavailable: tuple[str, ...]
    """Resources whose server, behind the API server, does not answer."""
    server: str

    @property
    def changes(self) -> int:
        """Objects that were changed, created or deleted after their list was read. 0: all lists show the cluster at one moment."""
        return sum(read.changes for read in self.lists)

    def to_dict(self) -> dict[str, Any]:
        """How the objects were read, without the objects."""
        lists = [{name: list(value) if isinstance(value, tuple) else value for name, value in vars(read).items()} for read in self.lists]
        return {
            "server": self.server,
            "lists": lists,
            "absent": list(self.absent),
            "forbidden": list(self.forbidden),
            "unavailable": list(self.unavailable),
        }

    def __str__(self) -> str:
        rows = [(r.resource, r.version, r.count, r.pages, r.resource_version, r.changes) for r in self.lists]
        lines = [format_table(("resource", "version", "objects", "pages", "resource_version", "changed_since"), rows)]
        for read in self.lists:
            if read.expired:
                lines.append(f"{read.resource}: the server forgot the moment of the first page; read again, in one piece")
        lines += [line for read in self.lists for line in told_changes(read)]
        if not self.changes:
            lines.append("Nothing changed while the lists were read: they show one moment.")
        lines += [f"Not on this server: {', '.join(self.absent)}"] * bool(self.absent)
        lines += [f"Not read, since the verb list is missing: {', '.join(self.forbidden)}"] * bool(self.forbidden)
        lines += [f"Not read, since their server does not answer: {', '.join(self.unavailable)}"] * bool(self.unavailable)
        return "\n".join(lines)


def told_changes(read: ListRead) -> list[str]:
    lines = []
    for what, names in (("changed", read.changed), ("created", read.created), ("deleted", read.deleted)):
        if names:
            more = f" and {len(names) - NAMES_SHOWN:,} others" if len(names) > NAMES_SHOWN else ""
            lines.append(
                f"{read.resource}: {counted(len(names), 'object')} {what} while other lists were read: "
                f"{', '.join(names[:NAMES_SHOWN])}{more}"
            )
    return lines


def snapshot(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    in_cluster: bool = False,
    allow_missing: bool = False,
    page_size: int = 500,
    timeout_s: float = 60.0,
) -> Snapshot:
    """Reads the objects that bear on placement from the API server: all kinds that `read_kubernetes` knows and the server has.

    Each list is of one moment, however many pages it has: its `resource_version`. Different lists are of different moments, so at
    the end the names and versions of all objects are listed again, and `Snapshot.lists` says what changed in between.

    `kubeconfig` is a file with credentials (default: as kubectl, `KUBECONFIG`, else `~/.kube/config`), `context` one of its contexts
    (default: the current one); `in_cluster` uses the service account of the pod that this runs in instead. `page_size` objects, 1 to
    10000, are asked for at once, `timeout_s` holds for each request; requests are repeated after 429, 5xx and broken connections.

    Raises BackendError without the package kubernetes (extra `kubernetes`), for a kubeconfig that cannot be used, for a server that
    does not answer, and where a kind cannot be listed: it names all kinds for which the credentials lack the verb `list`, and all whose
    server, behind the API server, does not answer. With `allow_missing` only nodes and pods are needed, and `Snapshot.forbidden` and
    `Snapshot.unavailable` name the others. InvalidInput for options out of range.
    """
    problems = []
    if not 1 <= page_size <= 10000:
        problems.append(f"page_size: {page_size}; expected 1 to 10000")
    if not 0 < timeout_s < math.inf:
        problems.append(f"timeout_s: {timeout_s}; expected a finite number above 0")
    if in_cluster and (kubeconfig is not None or context is not None):
        problems.append("in_cluster: the credentials are those of the pod; expected neither kubeconfig nor context")
    if problems:
        raise InvalidInput(problems)
    api = Api(None if kubeconfig is None else os.fspath(kubeconfig), context, in_cluster, timeout_s)
    discovery = Discovery(api)
    items: list[dict[str, Any]] = []
    lists: list[tuple[str, ListRead, dict[str, tuple[str, str]]]] = []
    absent: list[str] = []
    forbidden: dict[Kind, str] = {}
    unavailable: dict[Kind, str] = {}
    for kind in KINDS:
        try:
            version = discovery.version_of(kind)
            if version is None:
                absent.append(kind.resource)
                continue
            api_version = f"{kind.group}/{version}" if kind.group else version
            path = f"/apis/{api_version}/{kind.plural}" if kind.group else f"/api/{version}/{kind.plural}"
            pages = read_list(api, path, page_size)
        except Forbidden as error:
            forbidden[kind] = error.message
            continue
        except Unavailable as error:
            if kind.required:
                raise BackendError(f"{api.server}{error.message}") from None
            unavailable[kind] = error.message
            continue
        for item in pages.items:
            item["metadata"].pop("managedFields", None)  # as kubectl prints it
            items.append({"apiVersion": api_version, "kind": kind.kind, **without_private(item)})
        read = ListRead(kind.resource, version, pages.resource_version, len(pages.items), pages.count, pages.expired)
        lists.append((path, read, versions_by_name(pages.items)))
    if missing := [kind for kind in forbidden if kind.required or not allow_missing]:
        raise BackendError(told_forbidden(api.server, missing, forbidden))
    if unavailable and not allow_missing:
        raise BackendError(told_unavailable(api.server, unavailable))
    return Snapshot(
        objects={"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items},
        lists=tuple(with_changes(api, path, page_size, read, then) for path, read, then in lists),
        absent=tuple(absent),
        forbidden=tuple(kind.resource for kind in forbidden),
        unavailable=tuple(kind.resource for kind in unavailable),
        server=api.server,
    )


def with_changes(api: Api, path: str, page_size: int, read: ListRead, then: dict[str, tuple[str, str]]) -> ListRead:
    """The list with what changed of it until now."""
    try:
        now = versions_by_name(read_list(api, path, page_size, NAMES_ALONE).items)
    except Forbidden as error:  # somebody took the right away meanwhile
        raise BackendError(f"{api.server}{path}: {error.message}") from None
    except Unavailable as error:
        raise BackendError(f"{api.server}{error.message}") from None
    both = then.keys() & now.keys()
    fresh = {name for name in both if then[name][0] != now[name][0]}  # deleted, and created under the same name
    return ListRead(
        **{
            **vars(read),
            "changed": tuple(sorted(name for name in both - fresh if then[name] != now[name])),
            "created": tuple(sorted((now.keys() - then.keys()) | fresh)),
            "deleted": tuple(sorted((then.keys() - now.keys()) | fresh)),
        }
    )


def told_forbidden(server: str, kinds: list[Kind], said: dict[Kind, str]) -> str:
    missing = ", ".join(kind.resource for kind in kinds)
    return (
        f"{server}: these credentials lack the verb list on {missing}, in all namespaces; `gpusched kube rbac` prints a role that has it"
        f"{'' if any(kind.required for kind in kinds) else '; allow_missing (--allow-missing) goes on without'}. "
        f"The server says: {said[kinds[0]]}"
    )


def told_unavailable(server: str, said: dict[Kind, str]) -> str:
    return (
        f"{server}: the server behind it for {', '.join(kind.resource for kind in said)} does not answer (kubectl get apiservices, and the "
        f"webhooks of these kinds, say why); allow_missing (--allow-missing) goes on without. It says: {next(iter(said.values()))}"
    )
