# SPDX-License-Identifier: Apache-2.0
"""An API server of Kubernetes as far as listing needs one: discovery, pages, 403, 404, 410, 429, and changes
meanwhile.
"""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]


def thing(name: str, namespace: str | None = None, **more: Any) -> Object:
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "managedFields": [{"manager": "kubelet"}],
    }
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), **more}


class FakeApi:
    """Objects by path, such as `/api/v1/pods`, and what goes wrong."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Object]] = {"/api/v1/nodes": [], "/api/v1/pods": []}
        self.revision = 100
        self.forbidden: set[str] = set()
        self.expires_after: dict[str, int] = {}  # by path: pages after which the continue token is too old
        self.failures: list[
            tuple[int, dict[str, str]]
        ] = []  # answers to the next requests: status and headers
        self.requests: list[tuple[str, dict[str, str], str]] = []  # path, query, what is accepted
        self.before: Callable[[FakeApi, str, dict[str, str]], None] | None = (
            None  # called with every list request
        )
        self.unauthorized = False
        self.broken: set[str] = (
            set()
        )  # paths below which the server that they are passed on to does not answer
        self.url = ""

    def groups(self) -> dict[str, dict[str, set[str]]]:
        """By group: versions, and the plurals that each of them has."""
        found: dict[str, dict[str, set[str]]] = {}
        for path in self.lists:
            parts = path.strip("/").split("/")
            group, version, plural = (
                ("", parts[1], parts[2]) if parts[0] == "api" else (parts[1], parts[2], parts[3])
            )
            found.setdefault(group, {}).setdefault(version, set()).add(plural)
        return found

    def answer(self, path: str, query: dict[str, str], accept: str) -> tuple[int, Object]:
        parts = path.strip("/").split("/")
        groups = self.groups()
        if any(path.startswith(broken) for broken in self.broken):
            return self.status(
                503, "error trying to reach service: dial tcp 10.0.0.9:443: connect: connection refused"
            )
        if parts[0] == "apis" and len(parts) == 2:
            if parts[1] not in groups:
                return self.status(404, "the server could not find the requested resource")
            versions = [{"groupVersion": f"{parts[1]}/{v}", "version": v} for v in groups[parts[1]]]
            return 200, {"kind": "APIGroup", "versions": versions, "preferredVersion": versions[0]}
        if len(parts) == (2 if parts[0] == "api" else 3):
            plurals = groups.get("" if parts[0] == "api" else parts[1], {}).get(parts[-1], set())
            return 200, {"kind": "APIResourceList", "resources": [{"name": p} for p in sorted(plurals)]}
        if path in self.forbidden:
            return self.status(
                403,
                f'{parts[-1]} is forbidden: User "u" cannot list resource "{parts[-1]}" at the cluster scope',
            )
        if path not in self.lists:
            return self.status(404, "the server could not find the requested resource")
        if self.before:
            self.before(self, path, query)
        return self.page(path, query, "PartialObjectMetadataList" in accept)

    def page(self, path: str, query: dict[str, str], metadata_alone: bool) -> tuple[int, Object]:
        limit = int(query.get("limit", 0))
        if "continue" in query:
            kept = json.loads(query["continue"])
            if kept["page"] >= self.expires_after.get(path, 1 << 30):
                return self.status(410, "The provided continue parameter is too old")
            revision, rest, page = kept["revision"], kept["rest"], kept["page"]
        else:
            revision, rest, page = self.revision, copy.deepcopy(self.lists[path]), 0
            self.revision += 1  # another client writes all the time
        now, later = (rest[:limit], rest[limit:]) if limit else (rest, [])
        if metadata_alone:
            now = [{"metadata": item["metadata"]} for item in now]
        metadata: Object = {"resourceVersion": str(revision)}
        if later:
            metadata["continue"] = json.dumps({"revision": revision, "rest": later, "page": page + 1})
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": now}

    @staticmethod
    def status(code: int, message: str) -> tuple[int, Object]:
        return code, {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "code": code,
        }

    def kubeconfig(self) -> Object:
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip


@contextlib.contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            accept = self.headers.get("Accept", "")
            api.requests.append((parts.path, query, accept))
            headers: dict[str, str] = {}
            if api.failures:
                status, headers = api.failures.pop(0)
                body = FakeApi.status(status, "not now")[1]
            elif api.unauthorized or self.headers.get("Authorization") != "Bearer secret":
                status, body = FakeApi.status(401, "Unauthorized")
            else:
                status, body = api.answer(parts.path, query, accept)
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(text)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
