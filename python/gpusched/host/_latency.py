# SPDX-License-Identifier: Apache-2.0
"""Latencies of requests as their service reports them: lines in a file or on a socket, or a Prometheus
histogram.
"""

from __future__ import annotations

import bisect
import contextlib
import io
import itertools
import math
import os
import socket
import socketserver
import stat
import threading
import urllib.request
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._optional import require
from . import _files

WINDOWS = 3  # quantiles are over the samples of so many windows
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}
MOST_MS = 1e7
MOST_LINE = 256
MOST_ARRIVALS = 1_000_000_000
MOST_SAMPLES = 1_000_000  # that a window keeps
MOST_DATAGRAM = 65536
MOST_DATAGRAMS = 100_000  # that wait for the end of a window
Samples = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Window:
    """The latencies of one window."""

    known: bool = False  # the source was there and could be read
    count: int = 0  # requests completed in the window
    misses: int = 0  # of these, above the target
    arrived: int | None = None  # requests that arrived; None if the source does not say
    ignored: int = 0  # lines that could not be read
    quantiles: dict[str, float] = field(
        default_factory=dict
    )  # over the last WINDOWS, by the names of QUANTILES


class Source:
    """A source of latencies. One that is gone gives windows that are not known, and is looked for again."""

    def prepare(self) -> None:
        """Begins work that `window` would wait for; called shortly before a window ends."""

    def window(self) -> Window:
        """Ends a window, and returns the latencies since the last call."""
        raise NotImplementedError

    def close(self) -> None:
        """Gives up files and sockets."""


class Lines:
    """Lines of latencies: `12.5` is a request that took 12.5 ms, `+3` says that three requests arrived.

    Other lines, numbers outside 0 to 1e7, and lines above 256 characters are counted and ignored.
    """

    def __init__(self, tau_ms: float) -> None:
        self._tau_ms = tau_ms
        self._rest = b""
        self._now = Window()
        self._samples: list[Samples] = []
        self._past: deque[Samples] = deque(maxlen=WINDOWS)

    def feed(self, text: bytes) -> None:
        """Takes a piece of the text; a line is complete with its newline."""
        text = self._rest + text
        *lines, rest = text.split(b"\n")
        self._rest = rest[: MOST_LINE + 1]  # a longer line is too long, however it ends
        if b"+" in text:
            lines = [line for line in lines if not self._take_arrivals(line)]
        values = self._latencies(lines)
        self._samples.append(values[: max(MOST_SAMPLES - self._now.count, 0)])
        self._now.count += values.size
        self._now.misses += int((values > self._tau_ms).sum())

    def drop_line(self) -> None:
        """Forgets the beginning of a line without an end."""
        self._rest = b""

    def ignore(self, count: int) -> None:
        """Counts lines that were lost before they could be read."""
        self._now.ignored += count

    def end_window(self, known: bool) -> Window:
        """The window so far; quantiles are over the last `WINDOWS`."""
        out = self._now
        out.known = known
        self._past.append(np.concatenate([[], *self._samples]))
        values = np.sort(np.concatenate(self._past))
        if values.size:
            ranks = {name: max(math.ceil(q * values.size), 1) - 1 for name, q in QUANTILES.items()}
            out.quantiles = {name: float(values[rank]) for name, rank in ranks.items()}
        self._samples = []
        self._now = Window(arrived=None if out.arrived is None else 0)
        return out

    def _take_arrivals(self, line: bytes) -> bool:
        """Takes a line that says how many requests arrived. Returns whether it is one."""
        word = line.strip()
        if word[:1] != b"+":
            return False
        if len(line) <= MOST_LINE and word[1:].isdigit() and int(word) <= MOST_ARRIVALS:
            self._now.arrived = (self._now.arrived or 0) + int(word)
        else:
            self._now.ignored += 1
        return True

    def _latencies(self, lines: list[bytes]) -> Samples:
        with contextlib.suppress(ValueError):
            # All at once, which is ten times as fast as one by one.
            values = np.fromiter(map(float, filter(None, lines)), float)
            in_range = values.size == 0 or (values.min() >= 0 and values.max() <= MOST_MS)
            if in_range and max(map(len, lines), default=0) <= MOST_LINE:
                return values
        lines = [line for line in lines if line.strip() or len(line) > MOST_LINE]
        good = [value for value in map(_latency, lines) if value is not None]
        self._now.ignored += len(lines) - len(good)
        return np.array(good)


def _latency(line: bytes) -> float | None:
    try:
        value = float(line)
    except ValueError:
        return None
    return value if len(line) <= MOST_LINE and 0 <= value <= MOST_MS else None


class LatencyFile(Source):
    """The tail of a file to which a service appends lines. Lines from before the first window are left out.

    A file that was replaced (rotated) is read to its end and the new one from its beginning. One
    that became shorter is read again from its beginning.
    """

    def __init__(self, path: str, tau_ms: float) -> None:
        self._path = path
        self._lines = Lines(tau_ms)
        self._file: io.FileIO | None = None
        self._from_end = True  # all of a file that appears later is new

    def window(self) -> Window:
        good = False
        if self._file is not None:
            with contextlib.suppress(OSError):
                here = os.fstat(self._file.fileno())
                if here.st_size < self._file.tell():
                    self._lines.drop_line()
                    self._file.seek(0)
                self._drain(self._file)
                good = os.path.samestat(here, os.stat(self._path))
        if not good:  # replaced or gone: all of the old one has been read
            self.close()
            with contextlib.suppress(OSError):
                good = self._open()
        return self._lines.end_window(good)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._lines.drop_line()

    def _open(self) -> bool:
        from_end, self._from_end = self._from_end, False
        if not os.path.isfile(self._path):  # a directory, a device or a pipe has no tail
            return False
        self._file = io.FileIO(self._path)
        if from_end:
            self._file.seek(0, os.SEEK_END)
        self._drain(self._file)
        return True

    def _drain(self, file: io.FileIO) -> None:
        while chunk := file.read(1 << 16):
            self._lines.feed(chunk)


class LatencySocket(Source):
    """A Unix datagram socket that services send lines to, several per datagram if they like, up to 64 KiB.

    The rest of a longer datagram is left out and counts as a line that cannot be read. The socket's
    mode is 0666, so the right to enter its folder is the right to send. A thread takes datagrams as
    they come: the kernel holds few, and then the service would wait. A socket file that no process
    serves is replaced; one that was removed is made again.
    """

    def __init__(self, path: str, tau_ms: float) -> None:
        self._path = path
        self._lines = Lines(tau_ms)
        self._server: _Server | None = None
        self._inode = 0
        self._open()

    def window(self) -> Window:
        if self._server is not None and not self._ours():
            self.close()
        known = self._server is not None or self._open()
        if self._server is not None:
            datagrams, ignored = self._server.take()
            self._lines.feed(b"".join(datagram + b"\n" for datagram in datagrams))
            self._lines.ignore(ignored)
        return self._lines.end_window(known)

    def close(self) -> None:
        if self._server is None:
            return
        if self._ours():
            os.unlink(self._path)
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    def _ours(self) -> bool:
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            return stat.S_ISSOCK(found.st_mode) and found.st_ino == self._inode
        return False

    def _open(self) -> bool:
        with contextlib.suppress(OSError):
            # A file left by a process that is gone refuses. One that is served, or is no socket, stays.
            if os.path.lexists(self._path) and stat.S_ISSOCK(os.lstat(self._path).st_mode):
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
                    try:
                        probe.connect(self._path)
                    except ConnectionRefusedError:
                        os.unlink(self._path)
            self._server = _Server(self._path, socketserver.BaseRequestHandler)
            self._inode = os.stat(self._path).st_ino
            os.chmod(self._path, 0o666)
            threading.Thread(target=self._server.serve_forever, args=(0.25,), daemon=True).start()
        return self._server is not None


class _Server(socketserver.UnixDatagramServer):
    """Keeps datagrams until the end of a window."""

    max_packet_size = MOST_DATAGRAM + 1

    def __init__(self, *arguments: Any) -> None:
        self.waiting: deque[bytes] = deque()
        self._dropped = 0
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        datagram = request[0]
        if len(datagram) > MOST_DATAGRAM:
            self._dropped += 1
            datagram = datagram.rpartition(b"\n")[0]  # the rest may be the beginning of a number
        if len(self.waiting) < MOST_DATAGRAMS:
            self.waiting.append(datagram)
        else:
            self._dropped += 1
        return False  # there is nothing to answer

    def take(self) -> tuple[list[bytes], int]:
        """The datagrams that wait, and how many were dropped, also in part."""
        dropped, self._dropped = self._dropped, 0
        return [self.waiting.popleft() for _ in range(len(self.waiting))], dropped


Histogram = dict[float, float]  # for each upper bound, how many are at or below it


def _cumulative(buckets: Histogram) -> tuple[list[float], list[float]] | None:
    """Bounds and counts in rising order, from 0 on if the first bound is above.

    None without observations, with fewer than two buckets, or without +Inf.
    A scrape may tear, so counts are made to never fall with the bound.
    """
    if len(buckets) < 2 or buckets.get(math.inf, 0) <= 0:
        return None
    bounds = sorted(buckets)
    counts = list(itertools.accumulate((buckets[bound] for bound in bounds), max))
    return (bounds, counts) if bounds[0] <= 0 else ([0.0, *bounds], [0.0, *counts])


def histogram_quantile(q: float, buckets: Histogram) -> float:
    """The quantile by Prometheus' rule (`histogram_quantile`): linear within the bucket that holds rank q x
    total.

    The first bucket begins at 0 if its bound is above 0; otherwise its bound is the answer. Above
    the highest finite bound, that bound is the answer. NaN without observations, with fewer than
    two buckets, or without the bucket +Inf. Source: Prometheus' documentation of the query
    functions.
    """
    found = _cumulative(buckets)
    if found is None or not 0 <= q <= 1:
        return math.nan
    bounds, counts = found
    rank = q * counts[-1]
    k = bisect.bisect_left(counts, rank)
    if k == 0:
        return bounds[0]
    if math.isinf(bounds[k]):
        return bounds[k - 1]
    return float(np.interp(rank, counts[k - 1 : k + 1], bounds[k - 1 : k + 1]))


def histogram_count_below(value: float, buckets: Histogram) -> float:
    """How many are at or below a value, by the same rule. 0 for an empty histogram."""
    found = _cumulative(buckets)
    if found is None:
        return 0.0
    bounds, counts = found
    # Above the last finite bound nothing is known: these count as above the value.
    return float(np.interp(value, bounds[:-1], counts[:-1], left=0.0))


def parse_histogram(
    text: str, metric: str, labels: Mapping[str, str]
) -> tuple[dict[tuple[Any, ...], Histogram], int]:
    """The buckets of a histogram in the text format of Prometheus, by the other labels of each series that
    has `labels`.

    Also returns how many lines of it could not be read.
    """
    families = require("prometheus_client.parser", "host").text_string_to_metric_families
    out: dict[tuple[Any, ...], Histogram] = {}
    ignored = 0
    name = metric + "_bucket"
    for line in text.splitlines():
        line = line.strip()
        if not line.startswith(name) or line[len(name) :].lstrip()[:1] != "{":
            continue
        try:
            sample = next(families(line.partition(" # ")[0] + "\n")).samples[0]
            bound, count = float(sample.labels["le"]), float(sample.value)
            if sample.name != name or math.isnan(bound) or not 0 <= count < math.inf:
                raise ValueError(line)
        except Exception:
            ignored += 1
            continue
        if any(sample.labels.get(key) != value for key, value in labels.items()):
            continue
        series = out.setdefault(tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le")), {})
        series[bound] = series.get(bound, 0.0) + count
    return out, ignored


def _sum(histograms: Iterable[Histogram]) -> Histogram:
    out: Histogram = {}
    for histogram in histograms:
        for bound, count in histogram.items():
            out[bound] = out.get(bound, 0.0) + count
    return out


def _goes_on(last: Histogram, now: Histogram) -> bool:
    """Whether a series only grew; one that restarted has lower counts or other buckets."""
    return last.keys() == now.keys() and all(now[bound] >= last[bound] for bound in now)


class LatencyHistogram(Source):
    """A histogram that a service exports to Prometheus, from a file that is replaced or from an address,
    `http://...`.

    A window is the difference of two readings, series by series. A new series, or one with lower
    counts (a restart), counts from its next reading on. A window in which no series goes on is not
    known. `ms_per_unit`: of the bounds.
    """

    TIMEOUT_S = 1.0

    def __init__(
        self, where: str, metric: str, labels: Mapping[str, str], ms_per_unit: float, tau_ms: float
    ) -> None:
        self._where = where
        self._metric = metric
        self._labels = labels
        self._ms_per_unit = ms_per_unit
        self._tau_ms = tau_ms
        self._last: dict[tuple[Any, ...], Histogram] = {}
        self._past: deque[Histogram] = deque(maxlen=WINDOWS)
        self._pool = ThreadPoolExecutor(1)
        self._page: Future[str] | None = None

    def prepare(self) -> None:
        if self._page is None:
            self._page = self._pool.submit(self._scrape)

    def window(self) -> Window:
        series, ignored = parse_histogram(self._read(), self._metric, self._labels)
        last, self._last = self._last, series
        known = [name for name, now in series.items() if _goes_on(last.get(name, {}), now)]
        if not known:
            self._past.clear()
            return Window(ignored=ignored)
        grown = _sum({bound: n - last[name][bound] for bound, n in series[name].items()} for name in known)
        total = grown.get(math.inf, 0.0)
        out = Window(known=True, count=round(min(total, 1e15)), ignored=ignored)
        out.misses = round(min(total - histogram_count_below(self._tau_ms / self._ms_per_unit, grown), 1e15))
        self._past.append(grown)
        sums = _sum(self._past)
        values = {name: histogram_quantile(q, sums) * self._ms_per_unit for name, q in QUANTILES.items()}
        out.quantiles = {name: value for name, value in values.items() if not math.isnan(value)}
        return out

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> str:
        self.prepare()
        assert self._page is not None
        text = ""
        with contextlib.suppress(Exception):  # a server may do anything, and a file may be missing
            text = self._page.result(self.TIMEOUT_S)
        if self._page.done():  # otherwise the scrape goes on and counts for a later window
            self._page = None
        return text

    def _scrape(self) -> str:
        if not self._where.startswith(("http://", "https://")):
            return _files.read(self._where)
        with urllib.request.urlopen(self._where, timeout=self.TIMEOUT_S) as response:
            return str(response.read(_files.MOST_BYTES).decode("utf-8", "replace"))
