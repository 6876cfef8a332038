"""Reading all objects of a kind as they were at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import BackendError
from ._api import Answer, Api

NAMES_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Asks for the objects' metadata without the rest."""


@dataclass
class Pages:
    """A list that was read, page by page."""

    resource_version: str = ""
    """Of the moment that the objects are from."""
    count: int = 0
    """How many pages were read, those that were thrown away not counted."""
    expired: bool = False
    """The server had forgotten that moment before the last page: the list was read again, in one piece."""
    items: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Forbidden(Exception):
    """The credentials may not list these objects."""

    message: str


@dataclass(frozen=True)
class Unavailable(Exception):
    """The server of these objects does not answer: the API server passes requests on to others, and asks webhooks."""

    message: str


def require_served(path: str, answer: Answer) -> None:
    """Raises Unavailable for a status of 500 and more."""
    if answer.status >= 500:
        raise Unavailable(f"{path}: {answer.message}")


def read_list(api: Api, path: str, page_size: int, accept: str = "application/json") -> Pages:
    """All objects at a path. Pages belong to one moment: the server answers for the `resourceVersion` of the first one.

    Where it cannot any more (410), the list is read again without pages. Raises Forbidden for 403, Unavailable for 500 and more,
    BackendError for other errors.
    """
    pages = Pages()
    limit, token = page_size, ""
    while True:
        query = {name: str(value) for name, value in (("limit", limit), ("continue", token)) if value}
        answer = api.get(path, query, accept)
        if answer.status == 410 and token and not pages.expired:
            pages, limit, token = Pages(expired=True), 0, ""
            continue
        require_list(api, path, answer)
        metadata = answer.body["metadata"]
        if pages.count and metadata.get("resourceVersion") != pages.resource_version:
            raise BackendError(f"{api.server}{path}: the pages of one list have several resourceVersions; expected one moment")
        pages.resource_version = metadata.get("resourceVersion", "")
        pages.count += 1
        pages.items += answer.body.get("items") or ()
        token = metadata.get("continue") or ""
        if not token:
            return pages


def require_list(api: Api, path: str, answer: Answer) -> None:
    if answer.status == 403:
        raise Forbidden(answer.message)
    require_served(path, answer)
    if answer.status != 200:
        raise BackendError(f"{api.server}{path}: {answer.message}")
    items = answer.body.get("items") or ()
    if not isinstance(answer.body.get("metadata"), dict) or not all(is_named(item) for item in items):
        raise BackendError(f"{api.server}{path}: expected a list of objects with names; is this an API server of Kubernetes?")


def is_named(item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def versions_by_name(items: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """By `namespace/name`: which object it is, and which state of it."""
    found = {}
    for item in items:
        meta = item["metadata"]
        name = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        found[name] = (meta.get("uid", ""), meta.get("resourceVersion", ""))
    return found
