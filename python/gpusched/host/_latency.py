"""Latencies of requests as their service reports them: lines in a file or on a socket, or a Prometheus histogram."""

from __future__ import annotations

import contextlib
import math
import os
import socket
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
MOST_SAMPLES = 1_000_000  # that a window keeps
MOST_DATAGRAM = 65536
MOST_DATAGRAMS = 100_000  # that wait for the end of a window


@dataclass
class Window:
    """What a source knows of one window."""

    known: bool = False  # the source was there and could be read
    count: int = 0  # requests completed in the window
    misses: int = 0  # of these, above the target
    arrived: int | None = None  # requests that arrived; None if the source does not say
    ignored: int = 0  # lines that could not be read
    quantiles: dict[str, float] = field(default_factory=dict)  # over the last WINDOWS, by the names of QUANTILES


class Source:
    """A source of latencies. One that is gone gives windows that are not known, and is looked for again."""

    def prepare(self) -> None:
        """Begins work that `window` would wait for; called shortly before a window ends."""

    def window(self) -> Window:
        """Ends a window: what came since the last call."""
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
        self._cut = False  # the rest belongs to a line that is too long
        self._now = Window()
        self._samples: list[float] = []
        self._past: deque[np.ndarray[Any, Any]] = deque(maxlen=WINDOWS)

    def feed(self, text: bytes) -> None:
        """Takes a piece of the text; a line is complete with its newline."""
        if self._cut:
            _, newline, text = text.partition(b"\n")
            if not newline:
                return
            self._cut = False
        *lines, self._rest = (self._rest + text).split(b"\n")
        if len(self._rest) > MOST_LINE:
            self.cut_line()
            self._cut = True
        self._take(lines)

    def end_line(self) -> None:
        """Ends a line that will not go on, as at the end of a datagram."""
        self._take([self._rest])
        self.drop_line()

    def drop_line(self) -> None:
        """Forgets the beginning of a line whose end is lost."""
        self._rest, self._cut = b"", False

    def cut_line(self) -> None:
        """The same, and counts it as one that could not be read."""
        self._now.ignored += 1
        self.drop_line()

    def end_window(self, known: bool) -> Window:
        out = self._now
        out.known = known
        samples = np.array(self._samples)
        self._past.append(samples)
        values = np.concatenate(self._past)
        if values.size:
            ranks = {name: max(math.ceil(q * values.size), 1) - 1 for name, q in QUANTILES.items()}
            values.partition(sorted(set(ranks.values())))
            out.quantiles = {name: float(values[rank]) for name, rank in ranks.items()}
        self._samples = []
        self._now = Window(arrived=None if out.arrived is None else 0)
        return out

    def _take(self, lines: list[bytes]) -> None:
        plain = [line for line in lines if line and b"+" not in line]
        try:
            # Most windows hold nothing but numbers and arrivals.
            values = [float(line) for line in plain]
            if any(b"_" in line or len(line) > MOST_LINE for line in plain):
                raise ValueError
            if not all(0 <= value <= MOST_MS for value in values):
                raise ValueError
            others = [line for line in lines if b"+" in line]
        except ValueError:
            values, others = [], lines
        values += [value for line in others if (value := self._number(line)) is not None]
        self._now.count += len(values)
        self._now.misses += sum(value > self._tau_ms for value in values)
        self._samples += values[: MOST_SAMPLES - len(self._samples)]

    def _number(self, line: bytes) -> float | None:
        """The latency of a line, which may also be empty, report arrivals or be unreadable."""
        words = line.split()
        if not words:
            return None
        if len(words) == 1 and words[0][:1] == b"+":
            self._arrive(words[0][1:])
            return None
        try:
            value = float(words[0]) if len(words) == 1 and len(line) <= MOST_LINE and b"_" not in line else math.nan
        except ValueError:
            value = math.nan
        if 0 <= value <= MOST_MS:
            return value
        self._now.ignored += 1
        return None

    def _arrive(self, text: bytes) -> None:
        if not text.isdigit() or len(text) > 10 or int(text) > 1_000_000_000:
            self._now.ignored += 1
            return
        self._now.arrived = (self._now.arrived or 0) + int(text)


class LatencyFile(Source):
    """The tail of a file to which a service appends lines; what was there at the first window is left out.

    A file that was replaced (rotated) is read to its end and the new one from its beginning. One that became shorter is
    read again from its beginning.
    """

    def __init__(self, path: str, tau_ms: float) -> None:
        self._path = path
        self._lines = Lines(tau_ms)
        self._file = -1
        self._first = True

    def window(self) -> Window:
        good = False
        if self._file < 0 and not self._open():
            self._first = False  # what comes now is new
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

    The rest of a longer datagram is left out and counts as a line that cannot be read. The socket's mode is 0666, so the
    right to enter its folder is the right to send. A thread takes datagrams as they come: the kernel holds few, and then
    the service would wait. A socket file that no process serves is replaced; one that was removed is made again.
    """

    def __init__(self, path: str, tau_ms: float) -> None:
        self._path = path
        self._lines = Lines(tau_ms)
        self._socket: socket.socket | None = None
        self._inode = 0
        self._thread: threading.Thread | None = None
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._dropped = 0
        self._open()

    def window(self) -> Window:
        if self._socket is None and not self._open():
            return self._lines.end_window(False)
        known = self._ours()
        if not known:
            self.close(remove=False)
            known = self._open()
        while self._waiting:
            datagram, cut = self._waiting.popleft()
            self._lines.feed(datagram)
            if cut:
                self._lines.cut_line()  # the rest may be the beginning of a number
            else:
                self._lines.end_line()
        for _ in range(self._dropped):
            self._lines.cut_line()
        self._dropped = 0
        return self._lines.end_window(known)

    def close(self, remove: bool = True) -> None:
        if self._socket is None:
            return
        if remove and self._ours():
            os.unlink(self._path)
        old, self._socket = self._socket, None
        with contextlib.suppress(OSError):
            old.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if self._thread is not None:
            self._thread.join(1.0)
        old.close()

    def _ours(self) -> bool:
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            return stat.S_ISSOCK(found.st_mode) and found.st_ino == self._inode
        return False

    def _open(self) -> bool:
        new = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            # A file left by a process that is gone refuses. One that is served, or is no socket, stays.
            if os.path.lexists(self._path) and stat.S_ISSOCK(os.lstat(self._path).st_mode):
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
                    try:
                        probe.connect(self._path)
                    except ConnectionRefusedError:
                        os.unlink(self._path)
            new.bind(self._path)
            self._inode = os.stat(self._path).st_ino
            os.chmod(self._path, 0o666)
        except OSError:
            new.close()
            return False
        self._socket = new
        self._thread = threading.Thread(target=self._receive, args=(new,), daemon=True)
        self._thread.start()
        return True

    def _receive(self, source: socket.socket) -> None:
        while self._socket is source:
            try:
                datagram, _, flags, _ = source.recvmsg(MOST_DATAGRAM)
            except OSError:
                return
            if self._socket is not source:
                return
            if len(self._waiting) < MOST_DATAGRAMS:
                self._waiting.append((datagram, bool(flags & socket.MSG_TRUNC)))
            else:
                self._dropped += 1


Histogram = dict[float, float]  # for each upper bound, how many are at or below it


def _fits(buckets: Histogram) -> bool:
    return len(buckets) >= 2 and buckets.get(math.inf, 0) > 0


def histogram_quantile(q: float, buckets: Histogram) -> float:
    """The quantile by Prometheus' rule (`histogram_quantile`): linear within the bucket that holds rank q x total.

    The first bucket begins at 0 if its bound is above 0; otherwise its bound is the answer. Above the highest finite
    bound, that bound is the answer. NaN without observations, with fewer than two buckets, or without the bucket +Inf.
    Source: Prometheus' documentation of the query functions.
    """
    if not _fits(buckets) or not 0 <= q <= 1:
        return math.nan
    rank = q * buckets[math.inf]
    low = below = 0.0
    first = True
    for bound, raw in sorted(buckets.items()):
        count = max(raw, below)  # a scrape may tear: counts never fall with the bound
        if count >= rank and (count > 0 or first):
            if math.isinf(bound):
                return low
            if (first and bound <= 0) or count <= below:
                return bound
            return low + (bound - low) * ((rank - below) / (count - below))
        low, below, first = (low if math.isinf(bound) else bound), count, False
    return low


def histogram_count_below(value: float, buckets: Histogram) -> float:
    """How many are at or below a value, by the same rule. 0 for an empty histogram."""
    if not _fits(buckets):
        return 0.0
    low = below = 0.0
    first = True
    for bound, raw in sorted(buckets.items()):
        count = max(raw, below)
        if bound == value:
            return count
        if bound > value:
            # Above the last finite bound nothing is known: these count as above the value.
            if math.isinf(bound):
                return below
            if first and bound <= 0:
                return 0.0
            return below if value <= low else below + (count - below) * (value - low) / (bound - low)
        low, below, first = bound, count, False
    return below


def parse_histogram(text: str, metric: str, labels: Mapping[str, str]) -> tuple[dict[tuple[Any, ...], Histogram], int]:
    """The buckets of a histogram in the text format of Prometheus, by the other labels of each series that has `labels`.

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
        except Exception:  # noqa: BLE001  the parser raises many kinds
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
    """A histogram that a service exports to Prometheus, from a file that is replaced or from an address, `http://...`.

    A window is the difference of two readings, series by series. A series that is new, or whose counts fell (a restart),
    counts from its next reading on. A window in which no series goes on is not known. `ms_per_unit`: of the bounds.
    """

    TIMEOUT_S = 1.0

    def __init__(self, where: str, metric: str, labels: Mapping[str, str], ms_per_unit: float, tau_ms: float) -> None:
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
        return last is not None and last.keys() == now.keys() and all(now[bound] >= last[bound] for bound in now)

    def _read(self) -> str:
        if self._pool is None:
            with contextlib.suppress(Failure):
                return _files.read(self._where)
            return ""
        self.prepare()
        assert self._page is not None
        text = ""
        with contextlib.suppress(Exception):  # whatever a server may do
            text = self._page.result(self.TIMEOUT_S)
        if not self._page.done():
            return ""  # the scrape goes on and counts for a later window
        self._page = None
        return text

    def _scrape(self) -> str:
        with urllib.request.urlopen(self._where, timeout=self.TIMEOUT_S) as response:  # noqa: S310
            return str(response.read(_files.MOST_BYTES).decode("utf-8", "replace"))


