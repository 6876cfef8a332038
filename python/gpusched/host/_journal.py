# SPDX-License-Identifier: Apache-2.0
"""The journal: changes that the controller is about to make, and must undo if it dies, in a SQLite file."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import BackendError, explained
from ._failures import Failure
from ._places import Configuration, Instance, profiles

APPLICATION_ID = 0x67707363  # "gpsc"
VERSION = 1


@dataclass
class TenantEntry:
    """A protected tenant in the journal."""

    now: Configuration  # as last settled
    pending: Configuration | None = None  # a change of instance that has begun
    switched: bool = False  # the tenant already runs in `pending`
    cpuset: str | None = None  # for `set_cores` to undo the pin

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> TenantEntry:
        """The inverse of `asdict`."""
        places = {name: given[name] and Configuration(**given[name]) for name in ("now", "pending")}
        return cls(**{**given, **places})

    def settle(self, now: Configuration) -> None:
        """The tenant is here, and no change is under way."""
        self.now, self.pending, self.switched = now, None, False


@dataclass(frozen=True)
class Lease:
    """A limit of block I/O that ends with the controller."""

    tenant: str
    file: str  # .../io.max
    before: str  # the line to write that ends it


class Journal:
    """The journal in a file. Each `save` is one transaction, on the disk before it returns (WAL,
    `synchronous=FULL`).

    A reader finds the state before a save or after it, whenever the writer or the machine stops.
    `read_only` changes nothing, and a file that is missing reads as empty.

    Raises BackendError for a file that is no journal, that is damaged, or that another version wrote.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.fspath(path)
        self.read_only = read_only
        self.boot = ""  # of the kernel: GPU instances and control groups do not outlive it
        self.tenants: dict[str, TenantEntry] = {}  # the protected ones
        self.leases: list[Lease] = []
        self.carryover: dict[str, dict[str, Any]] = {}  # that of `control.Controller`
        self._carryover_s = 0.0  # of the monotonic clock of that boot: when `carryover` was true
        self._saved: str | None = None  # the text on the disk
        self._database: sqlite3.Connection | None = None
        self._require_journal()
        if read_only and not (os.path.exists(self.path) and os.path.getsize(self.path)):
            return
        with self._explained():
            self._database = self._connect()
            self._prepare(self._database)
            self._saved = self._read("contents")
            if self._saved is not None:
                self._set(self._saved)

    @property
    def found(self) -> bool:
        """Whether there is something on the disk."""
        return self._saved is not None

    def save(self) -> None:
        """Brings the contents to the disk. Raises `Failure`; the file is unchanged then."""
        if self._database is None or self.read_only:
            raise Failure("no_permission", f"{self.path} is open for reading only")
        now = self._text()
        if now == self._saved:
            return
        try:
            self._write("contents", now)
        except sqlite3.Error as error:
            raise Failure(_status(error), f"{self.path}: {error}") from None
        self._saved = now

    @contextlib.contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """If the block raises, the contents in memory are those of before."""
        before = self._text()
        try:
            yield
        except BaseException:
            self._set(before)
            raise

    def remember(self, carryover: Mapping[str, Any], now_s: float) -> None:
        """Saves the carryover, which must outlive the controller."""
        self.carryover, self._carryover_s = dict(carryover), now_s
        self.save()

    def believe(self, boot: str) -> None:
        """Keeps the contents in the same boot. After another boot only the carryover is kept, without its
        floors.
        """
        if boot and self.boot == boot:
            return
        self.boot, self.tenants, self.leases = boot, {}, []
        self.carryover = {
            name: {k: v for k, v in one.items() if k != "floor"} for name, one in self.carryover.items()
        }
        # The monotonic clock begins with the boot, so at least its time has passed.
        self._carryover_s = 0.0

    def age_s(self, now_s: float) -> float:
        """How long ago the carryover was true, by the monotonic clock."""
        return max(0.0, now_s - self._carryover_s)

    def owned(self, starts: Mapping[str, Configuration], boot: str) -> set[Instance]:
        """The controller's own instances: those recorded in this boot, else those configured."""
        out: set[Instance] = set()
        for name, start in starts.items():
            entry = self.tenants.get(name) if boot and self.boot == boot else None
            if entry is None:
                out.add(start.instance)
                continue
            # A tenant that has moved away has no claim to its first placement.
            out.add(entry.now.instance)
            if entry.pending is not None:
                out.add(entry.pending.instance)
        return out

    def check(self, tenants: Iterable[str], devices: list[str]) -> None:
        """Raises BackendError with everything that does not fit the host: an operator must look before
        anything is changed.
        """
        known = set(tenants)
        problems = []
        for name, entry in self.tenants.items():
            if name not in known:
                problems.append(f"tenants: expected the name of a protected tenant, found {name!r}")
            for place in filter(None, (entry.now, entry.pending)):
                if place.gpu not in range(len(devices)) or place.profile not in profiles(devices[place.gpu]):
                    problems.append(f"tenants: {name!r}: the host has no {place}")
        if problems:
            raise BackendError(f"{self.path}: " + "; ".join(problems))

    def note_program(self, process: int, started: float) -> None:
        """Keeps which program runs; 0 for none. A note that cannot be written is missing: the start time
        settles it.
        """
        with contextlib.suppress(sqlite3.Error):
            self._write("program", json.dumps([process, started]))

    def program(self) -> tuple[int, float]:
        """The program that was noted last, and when it was started; 0 for none."""
        with self._explained():
            process, started = json.loads(self._read("program") or "[0, 0]")
            return int(process), float(started)

    def close(self) -> None:
        """Closes the database."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gpusched.host.Journal: {self.path}, {len(self.tenants)} tenants, {len(self.leases)} leases>"

    def _require_journal(self) -> None:
        if os.path.islink(self.path):
            raise BackendError(f"{self.path} is a link; a journal must be a file")
        head = b""
        if os.path.exists(self.path):
            with explained(self.path, "read"), open(self.path, "rb") as file:
                head = file.read(64)
        if head.lstrip()[:1] == b"{":
            raise BackendError(
                f"{self.path} is a journal of the former C++ controller, which this version does not read: "
                "let that controller end cleanly, then remove the file"
            )
        if head and not head.startswith(b"SQLite format 3\0"):
            raise BackendError(f"{self.path} is no journal of gpusched; choose another file")

    def _connect(self) -> sqlite3.Connection:
        if not self.read_only:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            folder = os.open(
                os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            )
            os.fsync(folder)  # the file itself survives a loss of power
            os.close(folder)
            return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        uri = f"file:{os.path.abspath(self.path).replace('?', '%3f').replace('#', '%23')}?mode=ro"
        # Without a log of its own nothing writes the file, and a folder without write permission does not
        # matter.
        return sqlite3.connect(uri if os.path.exists(self.path + "-wal") else uri + "&immutable=1", uri=True)

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Makes the table of a new file, and checks one that exists."""
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION_ID and (application or tables):
            raise BackendError(f"{self.path} is a database of another program, no journal of gpusched")
        if version != VERSION and tables:
            raise BackendError(f"{self.path} has version {version}; this gpusched reads version {VERSION}")
        if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise BackendError(f"{self.path} is damaged")
        if self.read_only:
            if tables == 0:
                self.close()
            return
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if tables == 0:
            # One transaction: a process that dies here leaves an empty file.
            database.executescript(
                f"BEGIN; CREATE TABLE journal (key TEXT PRIMARY KEY, value TEXT NOT NULL); "
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
            )

    def _text(self) -> str:
        tenants = {name: asdict(entry) for name, entry in self.tenants.items()}
        leases = [asdict(lease) for lease in self.leases]
        return json.dumps([self.boot, tenants, leases, self.carryover, self._carryover_s])

    def _set(self, text: str) -> None:
        """The inverse of `_text`."""
        self.boot, tenants, leases, self.carryover, self._carryover_s = json.loads(text)
        self.leases = [Lease(**lease) for lease in leases]
        self.tenants = {name: TenantEntry.read(entry) for name, entry in tenants.items()}

    def _read(self, key: str) -> str | None:
        if self._database is None:
            return None
        row = self._database.execute("SELECT value FROM journal WHERE key = ?", (key,)).fetchone()
        return row and str(row[0])

    def _write(self, key: str, value: str) -> None:
        assert self._database is not None
        # In autocommit mode a statement is a transaction.
        self._database.execute("REPLACE INTO journal VALUES (?, ?)", (key, value))

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(self.path, "opened"):
                yield
        except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BackendError(f"{self.path}: cannot be read: {error}") from None


def _status(error: sqlite3.Error) -> str:
    """The failure that an error of SQLite stands for; before Python 3.11 it has no number."""
    texts = {"full": "insufficient_resources", "readonly": "no_permission", "locked": "in_use"}
    return next((status for text, status in texts.items() if text in str(error)), "unknown")
