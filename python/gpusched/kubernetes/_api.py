# SPDX-License-Identifier: Apache-2.0
"""Read-only access to the API server of a Kubernetes cluster, through the official client."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .._core import __version__
from .._optional import require
from ..errors import BackendError

ATTEMPTS = 6
"""For a request that the server answers with 429 or 5xx, or not at all."""
FIRST_WAIT_S = 0.5
"""Wait before the third attempt; it doubles with every further attempt. `Retry-After` takes precedence."""
LONGEST_WAIT_S = 30.0
"""Longest wait before an attempt, also for `Retry-After`."""
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Accept header of a request for the metadata of objects without the rest."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """The server's error message."""
        return str(self.body.get("message") or f"status {self.status}")


@dataclass(frozen=True)
class Forbidden(Exception):
    """The credentials may not list these objects."""

    message: str


@dataclass(frozen=True)
class Unavailable(Exception):
    """The server of these objects, or a webhook behind the API server, does not answer."""

    message: str


def retries() -> Any:
    """The policy that repeats failed requests. It is safe because all requests only read."""
    retry = require("urllib3.util.retry", "kubernetes").Retry

    def limited_retry_after(self: Any, response: Any) -> float | None:
        asked = retry.get_retry_after(self, response)
        return None if asked is None else min(asked, LONGEST_WAIT_S)

    return type("Limited", (retry,), {"get_retry_after": limited_retry_after})(
        total=ATTEMPTS - 1,
        backoff_factor=FIRST_WAIT_S / 2,
        status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=("GET",),
        raise_on_status=False,
    )


def without_credentials(url: str) -> str:
    """A URL without its user and password, because reports and messages show it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Api:
    """A connection to an API server."""

    def __init__(
        self, kubeconfig: str | None, context: str | None, in_cluster: bool, timeout_s: float
    ) -> None:
        """Raises BackendError if the package kubernetes is missing or the kubeconfig cannot be used."""
        config = require("kubernetes.config", "kubernetes")
        client = require("kubernetes.client", "kubernetes")
        yaml = require("yaml", "kubernetes")
        self._errors = require("urllib3.exceptions", "kubernetes")
        self._timeout_s = timeout_s
        configuration = client.Configuration()
        configuration.retries = retries()
        source = "in-cluster credentials" if in_cluster else f"kubeconfig {kubeconfig or ''}".rstrip()
        try:
            if in_cluster:
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(
                    config_file=kubeconfig, context=context, client_configuration=configuration
                )
        except (config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
            hint = "" if in_cluster or kubeconfig else " (in a pod: in_cluster)"
            raise BackendError(f"{source}: {error}{hint}") from None
        except (TypeError, AttributeError, LookupError):  # the client does not check the types of fields
            raise BackendError(
                f"{source}: a field has a wrong type; expected the fields of a kubeconfig"
            ) from None
        self.server = without_credentials(str(configuration.host))
        if not self.server.startswith(("http://", "https://")):
            raise BackendError(
                f"{source}: server {self.server!r}; expected a URL such as https://10.0.0.1:6443"
            )
        self._configuration = configuration
        # The client's connections know certificates and proxies. Its own calls would parse every object into
        # a class.
        self._pool = client.ApiClient(configuration).rest_client.pool_manager

    def get(self, path: str, query: dict[str, str] | None = None, accept: str = "application/json") -> Answer:
        """The answer to a GET request, with any status except 401.

        Raises BackendError if the server does not answer, answers without JSON, or rejects the credentials.
        """
        headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": f"gpusched/{__version__}"}
        for (
            credential
        ) in self._configuration.auth_settings().values():  # read for every request: they may expire
            headers[credential["key"]] = credential["value"]
        try:
            with warnings.catch_warnings():  # the user has chosen insecure-skip-tls-verify
                warnings.simplefilter("ignore", self._errors.InsecureRequestWarning)
                url = self.server + path
                answer = self._pool.request(
                    "GET", url, fields=query or {}, headers=headers, timeout=self._timeout_s
                )
            status, text = int(answer.status), answer.data
        except self._errors.HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise BackendError(f"{self.server}: does not answer: {reason}") from None
        try:
            body = json.loads(text) if text else {}
        except ValueError:
            body = {}
        if status == 401:
            raise BackendError(f"{self.server}: does not accept the credentials (401)")
        if not isinstance(body, dict) or (status == 200 and not body):
            raise BackendError(f"{url}: expected a JSON object of the Kubernetes API; is this an API server?")
        return Answer(status, body)


def require_available(path: str, answer: Answer) -> None:
    """Raises Unavailable for a status of 500 or more."""
    if answer.status >= 500:
        raise Unavailable(f"{path}: {answer.message}")


class Discovery:
    """The groups and versions that the server supports. Each group is requested once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._group = cache(self._read_group)

    def version_of(self, group: str, plural: str) -> str | None:
        """The version in which the server has a kind, preferably the server's preferred one; None if it has
        none.

        Raises Unavailable if the server of the group does not answer.
        """
        return next((version for version, plurals in self._group(group) if plural in plurals), None)

    def _read_group(self, group: str) -> list[tuple[str, set[str]]]:
        if not group:
            return [("v1", self._plurals("/api/v1"))]
        found = self._get(f"/apis/{group}")
        if found is None:
            return []
        preferred = (found.get("preferredVersion") or {}).get("version")
        versions = sorted((v["version"] for v in found.get("versions") or ()), key=lambda v: v != preferred)
        return [(version, self._plurals(f"/apis/{group}/{version}")) for version in versions]

    def _plurals(self, path: str) -> set[str]:
        found = self._get(path) or {}
        return {resource["name"] for resource in found.get("resources") or ()}

    def _get(self, path: str) -> dict[str, Any] | None:
        answer = self._api.get(path)
        if answer.status == 404:
            return None
        require_available(path, answer)
        if answer.status != 200:
            raise BackendError(f"{self._api.server}{path}: {answer.message}")
        return answer.body


@dataclass
class Pages:
    """A list that was read page by page."""

    resource_version: str = ""
    """The moment of the objects."""
    count: int = 0
    """Number of pages, without discarded ones."""
    expired: bool = False
    """The server forgot that moment before the last page, so the list was read again in one piece."""
    items: list[dict[str, Any]] = field(default_factory=list)


def read_list(api: Api, path: str, page_size: int, accept: str = "application/json") -> Pages:
    """All objects at a path, as they were at the `resourceVersion` of the first page.

    If the server has forgotten that moment (410), the list is read again without pages. Raises Forbidden for
    403, Unavailable for 500 or more, and BackendError for other errors.
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
            raise BackendError(
                f"{api.server}{path}: the pages of a list have several resourceVersions; expected one"
            )
        pages.resource_version = metadata.get("resourceVersion", "")
        pages.count += 1
        pages.items += answer.body.get("items") or ()
        token = metadata.get("continue") or ""
        if not token:
            return pages


def require_list(api: Api, path: str, answer: Answer) -> None:
    if answer.status == 403:
        raise Forbidden(answer.message)
    require_available(path, answer)
    if answer.status != 200:
        raise BackendError(f"{api.server}{path}: {answer.message}")
    items = answer.body.get("items") or ()
    if not isinstance(answer.body.get("metadata"), dict) or not all(is_named(item) for item in items):
        raise BackendError(
            f"{api.server}{path}: expected a list of objects with names; is this an API server?"
        )


def is_named(item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def versions_by_name(items: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """By `namespace/name`: the object's uid and the version of its state."""
    found = {}
    for item in items:
        meta = item["metadata"]
        name = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        found[name] = (meta.get("uid", ""), meta.get("resourceVersion", ""))
    return found
