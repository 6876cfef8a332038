"""Read-only access to the API of a Kubernetes cluster, through the official client."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .._core import __version__
from .._optional import require
from ..errors import BackendError

ATTEMPTS = 6
"""Of a request that the server answers with 429 or 5xx, or not at all."""
FIRST_WAIT_S = 0.5
"""Before the third attempt; it doubles with every further one. `Retry-After` goes before."""
LONGEST_WAIT_S = 30.0
"""Before any attempt, whatever `Retry-After` asks for."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """What the server says of an error."""
        return str(self.body.get("message") or f"status {self.status}")


def retries() -> Any:
    """How requests are repeated, all of which only read."""
    retry = require("urllib3.util.retry", "kubernetes").Retry

    def at_most(self: Any, response: Any) -> float | None:
        asked = retry.get_retry_after(self, response)
        return None if asked is None else min(asked, LONGEST_WAIT_S)

    return type("Limited", (retry,), {"get_retry_after": at_most})(
        total=ATTEMPTS - 1,
        backoff_factor=FIRST_WAIT_S / 2,
        status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=("GET",),
        raise_on_status=False,
    )


def without_credentials(url: str) -> str:
    """A URL without the user and password that it may hold: it stands in reports and messages."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Api:
    """A connection to an API server."""

    def __init__(self, kubeconfig: str | None, context: str | None, in_cluster: bool, timeout_s: float) -> None:
        """Raises BackendError without the package kubernetes, and for a kubeconfig that cannot be used."""
        config = require("kubernetes.config", "kubernetes")
        client = require("kubernetes.client", "kubernetes")
        yaml = require("yaml", "kubernetes")
        self._errors = require("urllib3.exceptions", "kubernetes")
        self._timeout_s = timeout_s
        configuration = client.Configuration()
        configuration.retries = retries()
        where = "in-cluster credentials" if in_cluster else f"kubeconfig {kubeconfig}" if kubeconfig else "kubeconfig"
        try:
            if in_cluster:
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
        except (config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
            hint = "" if in_cluster or kubeconfig else " (in a pod: in_cluster)"
            raise BackendError(f"{where}: {error}{hint}") from None
        except (TypeError, AttributeError, LookupError):  # the client does not look at types
            raise BackendError(f"{where}: expected the fields of a kubeconfig, each of its type") from None
        self.server = without_credentials(str(configuration.host))
        if not self.server.startswith(("http://", "https://")):
            raise BackendError(f"{where}: server {self.server!r}; expected a URL such as https://10.0.0.1:6443")
        self._configuration = configuration
        # Its connections, which know certificates and proxies. Its calls would parse every object into a class.
        self._pool = client.ApiClient(configuration).rest_client.pool_manager

    def get(self, path: str, query: dict[str, str] | None = None, accept: str = "application/json") -> Answer:
        """The answer, whatever its status but 401.

        Raises BackendError where the server does not answer, answers no JSON, or does not accept the credentials.
        """
        headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": f"gpusched/{__version__}"}
        for credential in self._configuration.auth_settings().values():  # fetched anew where they expire
            headers[credential["key"]] = credential["value"]
        try:
            with warnings.catch_warnings():  # who asks for insecure-skip-tls-verify knows it
                warnings.simplefilter("ignore", self._errors.InsecureRequestWarning)
                answer = self._pool.request("GET", self.server + path, fields=query or {}, headers=headers, timeout=self._timeout_s)
            status, text = int(answer.status), answer.data
        except self._errors.HTTPError as error:
            raise BackendError(f"{self.server}: does not answer: {getattr(error, 'reason', None) or error}") from None
        try:
            body = json.loads(text) if text else {}
        except ValueError:
            body = {}
        if status == 401:
            raise BackendError(f"{self.server}: does not accept the credentials (401)")
        if not isinstance(body, dict) or (status == 200 and not body):
            raise BackendError(f"{self.server}{path}: expected a JSON object of the Kubernetes API; is this an API server?")
        return Answer(status, body)
