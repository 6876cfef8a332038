# SPDX-License-Identifier: Apache-2.0
"""Reads a snapshot of a cluster from its API server."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from .._views.tables import counted, format_table, listed
from ..errors import BackendError, InvalidInput
from ._api import METADATA_ONLY, Api, Discovery, Forbidden, Unavailable, read_list, versions_by_name

NAMES_SHOWN = 3


@dataclass(frozen=True)
class Kind:
    """A kind of objects, with the API's names."""

    group: str
    plural: str
    kind: str
    required: bool = False
    """A snapshot needs objects of this kind."""

    @property
    def resource(self) -> str:
        """The name in kubectl and in the API server's messages: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


KINDS = (
    Kind("", "nodes", "Node", required=True),
    Kind("", "pods", "Pod", required=True),
    Kind("", "namespaces", "Namespace"),
    Kind("", "persistentvolumes", "PersistentVolume"),
    Kind("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Kind("storage.k8s.io", "storageclasses", "StorageClass"),
    Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
    Kind("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
    Kind("apps", "deployments", "Deployment"),
    Kind("apps", "replicasets", "ReplicaSet"),
    Kind("apps", "statefulsets", "StatefulSet"),
    Kind("apps", "daemonsets", "DaemonSet"),
    Kind("batch", "jobs", "Job"),
    Kind("resource.k8s.io", "resourceslices", "ResourceSlice"),
    Kind("resource.k8s.io", "resourceclaims", "ResourceClaim"),
    Kind("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Kind("resource.k8s.io", "deviceclasses", "DeviceClass"),
    Kind("scheduling.k8s.io", "podgroups", "PodGroup"),
    Kind("scheduling.k8s.io", "workloads", "Workload"),
    Kind("scheduling.volcano.sh", "podgroups", "PodGroup"),
    Kind("scheduling.run.ai", "podgroups", "PodGroup"),
    Kind("scheduling.x-k8s.io", "podgroups", "PodGroup"),
    Kind("scheduling.sigs.k8s.io", "podgroups", "PodGroup"),
    Kind("kueue.x-k8s.io", "workloads", "Workload"),
    Kind("kueue.x-k8s.io", "topologies", "Topology"),
    Kind("kai.scheduler", "topologies", "Topology"),
    Kind("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
    Kind("jobset.x-k8s.io", "jobsets", "JobSet"),
)

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
PRIVATE_FIELDS = ("command", "args", "env", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""Fields of a container that do not affect placement and may contain passwords."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a copy of the whole object."""


def without_private(value: Any) -> Any:
    """A Kubernetes object without the private fields of containers in pods and in templates of owners."""
    if isinstance(value, list):
        return [without_private(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[Any, Any] = {}
    for key, item in value.items():
        if key in CONTAINERS and isinstance(item, list):
            kept[key] = [
                {k: v for k, v in container.items() if k not in PRIVATE_FIELDS}
                if isinstance(container, dict)
                else container
                for container in item
            ]
        elif key == "annotations" and isinstance(item, dict):
            kept[key] = {k: v for k, v in item.items() if k != LAST_APPLIED}
        else:
            kept[key] = without_private(item)
    return kept


@dataclass(frozen=True)
class ListRead:
    """One list of objects, and the changes to it until all lists were read."""

    resource: str
    """The name in kubectl: `pods`, `jobs.batch`."""
    version: str
    """Version of the API, such as `v1`."""
    resource_version: str
    """The moment of the list: all objects are from this moment."""
    count: int
    pages: int
    expired: bool
    """The server forgot the first moment before the last page, so the list was read again in one piece."""
    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    """Names of objects that changed after that moment and before all lists were read."""

    @property
    def changes(self) -> int:
        """Number of objects that changed after this list was read."""
        return len(self.changed) + len(self.created) + len(self.deleted)


@dataclass(frozen=True)
class Snapshot:
    """The objects of a cluster that affect placement, and how they were read.

    `gs.io.read_kubernetes(snapshot.objects)` turns them into a cluster.
    """

    objects: dict[str, Any] = field(repr=False)
    """A List as in `kubectl get -o json`, without commands, environment and probes of containers."""
    lists: tuple[ListRead, ...]
    absent: tuple[str, ...]
    """Resources that the server does not have, such as `podgroups.scheduling.volcano.sh`."""
    forbidden: tuple[str, ...]
    """Resources that the credentials may not list."""
    unavailable: tuple[str, ...]
    """Resources for which the server behind the API server does not answer."""
    server: str

    @property
    def changes(self) -> int:
        """Number of objects that changed after their list was read. 0: all lists show the same moment."""
        return sum(read.changes for read in self.lists)

    def to_dict(self) -> dict[str, Any]:
        """How the objects were read, without the objects."""

        def as_json(read: ListRead) -> dict[str, Any]:
            return {
                name: list(value) if isinstance(value, tuple) else value for name, value in vars(read).items()
            }

        return {
            "server": self.server,
            "lists": [as_json(read) for read in self.lists],
            "absent": list(self.absent),
            "forbidden": list(self.forbidden),
            "unavailable": list(self.unavailable),
        }

    def __str__(self) -> str:
        rows = [(r.resource, r.version, r.count, r.pages, r.resource_version, r.changes) for r in self.lists]
        lines = [
            format_table(
                ("resource", "version", "objects", "pages", "resource_version", "changed_since"), rows
            )
        ]
        for read in self.lists:
            if read.expired:
                lines.append(
                    f"{read.resource}: the first page expired on the server; the list was read again in one "
                    "piece"
                )
        lines += [line for read in self.lists for line in change_lines(read)]
        if not self.changes:
            lines.append("Nothing changed while the lists were read: they show one moment.")
        lines += [f"Not on this server: {', '.join(self.absent)}"] * bool(self.absent)
        lines += [f"Not read, since the verb list is missing: {', '.join(self.forbidden)}"] * bool(
            self.forbidden
        )
        unavailable = ", ".join(self.unavailable)
        lines += [f"Not read, since their server does not answer: {unavailable}"] * bool(unavailable)
        return "\n".join(lines)


def change_lines(read: ListRead) -> list[str]:
    lines = []
    for change, names in (("changed", read.changed), ("created", read.created), ("deleted", read.deleted)):
        if names:
            lines.append(
                f"{read.resource}: {counted(len(names), 'object')} {change} while other lists were read: "
                + listed(names, NAMES_SHOWN, "others")
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
    """Reads all objects that affect placement from the API server: the kinds that `read_kubernetes` knows.

    Each list shows one moment, its `resource_version`. Different lists show different moments, so `snapshot`
    compares all names and versions again at the end; `Snapshot.lists` holds the changes. Requests are
    repeated after 429, 5xx and broken connections.

    `kubeconfig`: file with credentials; default as kubectl: `KUBECONFIG`, else `~/.kube/config`.
    `context`: a context of the kubeconfig; default: its current context.
    `in_cluster`: uses the service account of the pod that runs this program instead of a kubeconfig.
    `allow_missing`: continues without kinds that cannot be listed, except nodes and pods.
    `page_size`: objects per request, 1 to 10000. `timeout_s`: limit for each request.

    Raises BackendError if the package kubernetes is missing, the kubeconfig cannot be used, the server does
    not answer, or a kind cannot be listed. Raises InvalidInput for options out of range.
    """
    problems = []
    if not 1 <= page_size <= 10000:
        problems.append(f"page_size: {page_size}; expected 1 to 10000")
    if not 0 < timeout_s < math.inf:
        problems.append(f"timeout_s: {timeout_s}; expected a finite number above 0")
    if in_cluster and (kubeconfig is not None or context is not None):
        problems.append("in_cluster: cannot be combined with kubeconfig or context")
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
            version = discovery.version_of(kind.group, kind.plural)
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
            item["metadata"].pop("managedFields", None)  # as kubectl does
            items.append({"apiVersion": api_version, "kind": kind.kind, **without_private(item)})
        moment, count = pages.resource_version, len(pages.items)
        read = ListRead(kind.resource, version, moment, count, pages.count, pages.expired)
        lists.append((path, read, versions_by_name(pages.items)))
    if missing := [kind for kind in forbidden if kind.required or not allow_missing]:
        raise BackendError(forbidden_message(api.server, missing, forbidden))
    if unavailable and not allow_missing:
        raise BackendError(unavailable_message(api.server, unavailable))
    return Snapshot(
        objects={"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items},
        lists=tuple(with_changes(api, path, page_size, read, before) for path, read, before in lists),
        absent=tuple(absent),
        forbidden=tuple(kind.resource for kind in forbidden),
        unavailable=tuple(kind.resource for kind in unavailable),
        server=api.server,
    )


def with_changes(
    api: Api, path: str, page_size: int, read: ListRead, before: dict[str, tuple[str, str]]
) -> ListRead:
    """The list with its changes until now."""
    try:
        now = versions_by_name(read_list(api, path, page_size, METADATA_ONLY).items)
    except Forbidden as error:  # the permission was removed meanwhile
        raise BackendError(f"{api.server}{path}: {error.message}") from None
    except Unavailable as error:
        raise BackendError(f"{api.server}{error.message}") from None
    both = before.keys() & now.keys()
    replaced = {
        name for name in both if before[name][0] != now[name][0]
    }  # deleted, then created with the same name
    return ListRead(
        **{
            **vars(read),
            "changed": tuple(sorted(name for name in both - replaced if before[name] != now[name])),
            "created": tuple(sorted((now.keys() - before.keys()) | replaced)),
            "deleted": tuple(sorted((before.keys() - now.keys()) | replaced)),
        }
    )


def forbidden_message(server: str, kinds: list[Kind], messages: dict[Kind, str]) -> str:
    optional = not any(kind.required for kind in kinds)
    return (
        f"{server}: the credentials lack the verb list on {', '.join(kind.resource for kind in kinds)}, in "
        "all namespaces; `gpusched kube rbac` prints a role with this "
        f"verb{'; allow_missing (--allow-missing) continues without these kinds' if optional else ''}. "
        f"Message of the server: {messages[kinds[0]]}"
    )


def unavailable_message(server: str, messages: dict[Kind, str]) -> str:
    return (
        f"{server}: the server behind it for {', '.join(kind.resource for kind in messages)} does not answer "
        "(see `kubectl get apiservices` and the webhooks of these kinds); allow_missing (--allow-missing) "
        f"continues without these kinds. Message of the server: {next(iter(messages.values()))}"
    )
