"""Latencies of requests as their service reports them: lines in a file or on a socket, or a Prometheus
histogram.
"""

from __future__ import annotations

import bisect
import contextlib
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
from ._failures import Failure

WINDOWS = 3  # quantiles are over the samples of so many windows
QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}
MOST_MS = 1e7
MOST_LINE = 256
PLAIN = b"0123456789.\n"
MOST_ARRIVALS = 1_000_000_000
MOST_SAMPLES = 1_000_000  # that a window keeps
MOST_DATAGRAM = 65536
MOST_DATAGRAMS = 100_000  # that wait for the end of a window


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
        self._samples: list[float] = []
        self._past: deque[np.ndarray[Any, Any]] = deque(maxlen=WINDOWS)

    def feed(self, text: bytes) -> None:
        """Takes a piece of the text; a line is complete with its newline."""
        text = self._rest + text
        *lines, self._rest = text.split(b"\n")
        if text.translate(None, PLAIN) or not self._take_plain(lines):
            for line in lines:
                self._take(line)
        if len(self._rest) > MOST_LINE:
            self._rest = self._rest[: MOST_LINE + 1]  # the line is too long, however it ends

    def end_line(self) -> None:
        """Ends a line that will not go on, as at the end of a datagram."""
        self._take(self._rest)
        self._rest = b""

    def drop_line(self) -> None:
        """Forgets the beginning of a line without an end."""
        self._rest = b""

    def ignore(self, count: int = 1) -> None:
        self._now.ignored += count

    def end_window(self, known: bool) -> Window:
        out = self._now
        out.known = known
        self._past.append(np.array(self._samples))
        values = np.concatenate(self._past)
        if values.size:
            ranks = {name: max(math.ceil(q * values.size), 1) - 1 for name, q in QUANTILES.items()}
            values.partition(sorted(set(ranks.values())))
            out.quantiles = {name: float(values[rank]) for name, rank in ranks.items()}
        self._samples = []
        self._now = Window(arrived=None if out.arrived is None else 0)
        return out

    def _take_plain(self, lines: list[bytes]) -> bool:
        """Takes lines of plain numbers at once, which is ten times as fast. Returns whether they are."""
        try:
            values = list(map(float, filter(None, lines)))
        except ValueError:
            return False
        if max(map(len, lines), default=0) > MOST_LINE or max(values, default=0) > MOST_MS:
            return False
        self._now.count += len(values)
        self._now.misses += int((np.array(values) > self._tau_ms).sum())
        self._samples += values[: MOST_SAMPLES - len(self._samples)]
        return True

    def _take(self, line: bytes) -> None:
        word = line.strip()
        try:
            if len(line) > MOST_LINE:
                raise ValueError
            if word[:1] == b"+":
                if not word[1:].isdigit() or int(word) > MOST_ARRIVALS:
                    raise ValueError
                self._now.arrived = (self._now.arrived or 0) + int(word)
            elif word:
                value = float(word)
                if not 0 <= value <= MOST_MS:
                    raise ValueError
                self._now.count += 1
                self._now.misses += value > self._tau_ms
                if len(self._samples) < MOST_SAMPLES:
                    self._samples.append(value)
        except ValueError:
            self._now.ignored += 1


class LatencyFile(Source):
    """The tail of a file to which a service appends lines. Lines from before the first window are left out.

    A file that was replaced (rotated) is read to its end and the new one from its beginning. One
    that became shorter is read again from its beginning.
    """

    def __init__(self, path: str, tau_ms: float) -> None:
        self._path = path
        self._lines = Lines(tau_ms)
        self._file = -1
        self._first = True

    def window(self) -> Window:
        good = False
        if self._file < 0 and not self._open():
            self._first = False  # all of a file that appears is new
            return self._lines.end_window(False)
        with contextlib.suppress(OSError):
            here = os.fstat(self._file)
            if here.st_size < os.lseek(self._file, 0, os.SEEK_CUR):
                self._lines.drop_line()
                os.lseek(self._file, 0, os.SEEK_SET)
            self._drain()
            good = os.path.samestat(here, os.stat(self._path))
        if not good:  # replaced or gone: all of the old one has been read
            self.close()
            self._lines.drop_line()
            with contextlib.suppress(OSError):
                good = self._open()
                if good:
                    self._drain()
        return self._lines.end_window(good)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _open(self) -> bool:
        with contextlib.suppress(OSError):
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            # A directory, a device or a pipe has no tail.
            if stat.S_ISREG(os.fstat(self._file).st_mode):
                if self._first:
                    os.lseek(self._file, 0, os.SEEK_END)
                self._first = False
                return True
        self.close()
        return False

    def _drain(self) -> None:
        while chunk := os.read(self._file, 1 << 20):
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
        while self._server is not None and self._server.waiting:
            datagram = self._server.waiting.popleft()
            self._lines.feed(datagram[:MOST_DATAGRAM])
            if len(datagram) > MOST_DATAGRAM:  # the rest may be the beginning of a number
                self._lines.drop_line()
                self._lines.ignore()
            self._lines.end_line()
        if self._server is not None:
            self._lines.ignore(self._server.dropped)
            self._server.dropped = 0
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
        self.dropped = 0
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        if len(self.waiting) < MOST_DATAGRAMS:
            self.waiting.append(request[0])
        else:
            self.dropped += 1
        return False  # there is nothing to answer


Histogram = dict[float, float]  # for each upper bound, how many are at or below it


def _cumulative(buckets: Histogram) -> tuple[list[float], list[float]] | None:
    """Bounds and counts in rising order; None without observations, with fewer than two buckets, or without
    +Inf.

    A scrape may tear, so counts are made to never fall with the bound.
    """
    if len(buckets) < 2 or buckets.get(math.inf, 0) <= 0:
        return None
    bounds = sorted(buckets)
    return bounds, list(itertools.accumulate((buckets[bound] for bound in bounds), max))


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
    low, below = (bounds[k - 1], counts[k - 1]) if k > 0 else (0.0, 0.0)
    if math.isinf(bounds[k]):
        return low
    if (k == 0 and bounds[k] <= 0) or counts[k] <= below:
        return bounds[k]
    return low + (bounds[k] - low) * (rank - below) / (counts[k] - below)


def histogram_count_below(value: float, buckets: Histogram) -> float:
    """How many are at or below a value, by the same rule. 0 for an empty histogram."""
    found = _cumulative(buckets)
    if found is None:
        return 0.0
    bounds, counts = found
    k = bisect.bisect_left(bounds, value)
    low, below = (bounds[k - 1], counts[k - 1]) if k > 0 else (0.0, 0.0)
    if bounds[k] == value:
        return counts[k]
    # Above the last finite bound nothing is known: these count as above the value.
    if math.isinf(bounds[k]) or (k == 0 and (bounds[k] <= 0 or value <= 0)):
        return below
    return below + (counts[k] - below) * (value - low) / (bounds[k] - low)


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
        self._remote = where.startswith(("http://", "https://"))
        self._pool = ThreadPoolExecutor(1) if self._remote else None
        self._page: Future[str] | None = None

    def prepare(self) -> None:
        if self._pool is not None and self._page is None:
            self._page = self._pool.submit(self._scrape)

    def window(self) -> Window:
        series, ignored = parse_histogram(self._read(), self._metric, self._labels)
        last, self._last = self._last, series
        known = [name for name, now in series.items() if self._goes_on(last.get(name), now)]
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
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _goes_on(last: Histogram | None, now: Histogram) -> bool:
        return (
            last is not None and last.keys() == now.keys() and all(now[bound] >= last[bound] for bound in now)
        )

    def _read(self) -> str:
        if self._pool is None:
            with contextlib.suppress(Failure):
                return _files.read(self._where)
            return ""
        self.prepare()
        assert self._page is not None
        text = ""
        with contextlib.suppress(Exception):  # a server may do anything
            text = self._page.result(self.TIMEOUT_S)
        if not self._page.done():
            return ""  # the scrape goes on and counts for a later window
        self._page = None
        return text

    def _scrape(self) -> str:
        with urllib.request.urlopen(self._where, timeout=self.TIMEOUT_S) as response:
            return str(response.read(_files.MOST_BYTES).decode("utf-8", "replace"))
