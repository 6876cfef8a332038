# SPDX-License-Identifier: Apache-2.0
"""The controller as a service: notices to systemd, metrics for Prometheus, logs, and its status for other
processes.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from .._optional import require
from ..errors import BackendError, explained

logger = logging.getLogger("gpusched.host")


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, event, the text, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        fields = {
            "time": when,
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "message"),
        }
        return json.dumps({**fields, **getattr(record, "fields", {}), "text": record.getMessage()})


def log(event: str, text: str, **fields: Any) -> None:
    logger.info("%s", text, extra={"event": event, "fields": fields})


def notify(**state: str) -> None:
    """Tells systemd, for example `notify(READY="1")`. Without systemd nothing happens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    text = "\n".join(f"{name}={value}" for name, value in state.items())
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(text.encode())


class Metrics:
    """The endpoint for Prometheus at `address`, `host:port`; for port 0, `port` is a free one."""

    PHASES = "observe suspect guarded reconfig validate cooldown exhausted hold disabled".split()

    def __init__(self, address: str) -> None:
        client = require("prometheus_client", "host")
        self._registry = client.CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Any:
            return client.Gauge(f"gpusched_{name}", text, labels, registry=self._registry)

        def counter(name: str, text: str, *labels: str) -> Any:
            return client.Counter(f"gpusched_{name}", text, labels, registry=self._registry)

        def histogram(name: str, text: str) -> Any:
            steps = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)
            return client.Histogram(f"gpusched_{name}", text, registry=self._registry, buckets=steps)

        self._latency = gauge("latency_ms", "Latency over the last three windows.", "tenant", "quantile")
        self._phase = gauge("phase", "1 for the phase of a protected tenant.", "tenant", "phase")
        self._frozen = gauge("frozen", "1 if a tenant waits for an operator.", "tenant")
        place = ("tenant", "gpu", "profile", "slice")
        self._instance = gauge("instance", "1 for the instance of a tenant.", *place)
        self._leases = gauge("leases", "Limits of block I/O in effect.")
        self._windows = counter("windows", "Windows.")
        self._missing = counter("missing_windows", "Windows without latencies of a tenant.", "tenant")
        self._actions = counter("actions", "Actions by how they ended.", "kind", "status")
        self._observing = histogram("observation_seconds", "Time to read a window.")
        self._deciding = histogram("decision_seconds", "Time to decide on a window.")
        host, _, port = address.rpartition(":")
        try:
            self._server, self._thread = client.start_http_server(int(port), host.strip("[]"), self._registry)
        except (OSError, OverflowError) as error:
            raise BackendError(f"metrics at {address}: {error}") from None
        self.port = int(self._server.server_port)

    def window(self, states: Mapping[str, Any], seen: Mapping[str, Any], leases: int) -> None:
        self._windows.inc()
        self._leases.set(leases)
        self._instance.clear()
        for name, state in states.items():
            signals = seen.get(name, {})
            for phase in self.PHASES:
                self._phase.labels(name, phase).set(phase == state["phase"])
            self._frozen.labels(name).set(state["frozen"])
            self._instance.labels(name, state["gpu"], state["profile"], state["slice"]).set(1)
            for quantile in ("p50", "p95", "p99", "p999"):
                self._latency.labels(name, quantile).set(signals.get(f"{quantile}_ms", float("nan")))
            if not signals.get("count"):
                self._missing.labels(name).inc()

    def took(self, observing_s: float, deciding_s: float) -> None:
        self._observing.observe(observing_s)
        self._deciding.observe(deciding_s)

    def ended(self, kind: str, status: str) -> None:
        self._actions.labels(kind, status).inc()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2.0)


def write_status(path: str, status: Mapping[str, Any]) -> None:
    """Writes the state after a window, for `gpusched control status`. It need not survive."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        with open(os.open(path + ".new", flags, 0o644), "w") as file:
            json.dump(status, file)
        os.replace(path + ".new", path)


def read_status(path: str) -> dict[str, Any]:
    """The state that another process wrote last; empty if there is none."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        found = json.load(file)
        return found if isinstance(found, dict) else {}
    return {}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class AuditFile:
    """Appends lines to the audit log; without a path to none."""

    def __init__(self, path: str) -> None:
        self.must = True  # at the end, a log that cannot be written must not keep limits from being ended
        self._file: io.FileIO | None = None
        if path:
            with explained(path, "opened"):
                self._file = file = io.FileIO(path, "a+", opener=_private)
                # The process that wrote it before may have died in the middle of a line.
                if file.seekable() and file.tell() > 0:
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        self.write("\n")

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        try:
            while self._file is not None and data:
                data = data[self._file.write(data) :]
        except OSError as error:
            if self.must:
                raise BackendError(f"audit log: cannot be written: {error.strerror}") from None

    def record(self, kind: str, /, **fields: Any) -> None:
        """Appends a record that decides nothing."""
        line = {"record": kind, **fields}
        self.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
