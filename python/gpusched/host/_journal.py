"""The journal: what the controller is about to do, and must undo if it dies, in a SQLite file."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import BackendError
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
    drained: bool = False  # the tenant was stopped for the change
    cpuset: str | None = None  # what `set_cores` needs to undo the pin


@dataclass(frozen=True)
class Lease:
    """A limit of block I/O that ends with the controller."""

    tenant: str
    file: str  # .../io.max
    before: str  # the line to write that ends it


@dataclass
class _Contents:
    boot: str = ""  # of the kernel: GPU instances and control groups do not outlive it
    tenants: dict[str, TenantEntry] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    carryover: dict[str, dict[str, Any]] = field(default_factory=dict)  # that of `control.Controller`
    carryover_s: float = 0.0  # of the monotonic clock of that boot: when `carryover` was true


class Journal:
    """The journal in a file. Each `save` is one transaction, on the disk before it returns (WAL, `synchronous=FULL`).

    A reader finds the state before a save or after it, whenever the writer or the machine stops. `read_only` changes
    nothing, and a file that is missing reads as empty.

    Raises BackendError for a file that is no journal, that is damaged, or that another version wrote.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = os.fspath(path)
        self._contents = _Contents()
        self._saved: _Contents | None = None  # None: nothing is on the disk
        self._database: sqlite3.Connection | None = None
        self.read_only = read_only
        self._require_journal()
        if read_only and not self._has_content():
            return
        with self._explained():
            self._database = self._connect()
            if self._prepare():
                self._load()

    boot = property(lambda self: self._contents.boot, doc="Identity of the kernel that the journal is of.")
    tenants = property(lambda self: self._contents.tenants, doc="`TenantEntry` by name of the protected tenant.")
    leases = property(lambda self: self._contents.leases, doc="Limits of block I/O in effect: a list of `Lease`.")
    carryover = property(lambda self: self._contents.carryover, doc="What the next controller takes over, by tenant.")

    @property
    def found(self) -> bool:
        """Whether there is something on the disk."""
        return self._saved is not None

    def save(self) -> None:
        """Brings the contents to the disk. Raises `Failure`; the file is unchanged then."""
        if self._database is None or self.read_only:
            raise Failure("no_permission", f"{self.path} is open for reading only")
        if self._contents == self._saved:
            return
        try:
            self._write("contents", asdict(self._contents))
        except sqlite3.Error as error:
            raise Failure(_status(error), f"{self.path}: {error}") from None
        self._saved = copy.deepcopy(self._contents)

    def restore(self, call: Callable[[], None]) -> None:
        """Calls a function. If it raises, the contents in memory are those of before."""
        before = copy.deepcopy(self._contents)
        try:
            call()
        except BaseException:
            self._contents = before
            raise

    def remember(self, carryover: Mapping[str, Any], now_s: float) -> None:
        """Saves what must outlive the controller."""
        self._contents.carryover = dict(carryover)
        self._contents.carryover_s = now_s
        self.save()

    def believe(self, boot: str) -> None:
        """Keeps what is still true in this boot: after another boot only the carryover, without its floors."""
        if boot and self.boot == boot:
            return
        carryover = {name: {k: v for k, v in one.items() if k != "floor"} for name, one in self.carryover.items()}
        # The monotonic clock begins with the boot, so at least what it shows has passed.
        self._contents = _Contents(boot=boot, carryover=carryover)

    def age_s(self, now_s: float) -> float:
        """How long ago the carryover was true, by the monotonic clock."""
        return max(0.0, now_s - self._contents.carryover_s)

    def owned(self, starts: Mapping[str, Configuration], boot: str) -> set[Instance]:
        """The controller's own instances: those recorded in this boot, else those configured."""
        out: set[Instance] = set()
        for name, start in starts.items():
            entry = self.tenants.get(name) if boot and self.boot == boot else None
            if entry is None:
                out.add(start.instance)
                continue
            # A tenant that has moved away has no claim to where it started.
            out.add(entry.now.instance)
            if entry.pending is not None:
                out.add(entry.pending.instance)
        return out

    def check(self, tenants: Iterable[str], devices: list[str]) -> None:
        """Raises BackendError with everything that does not fit the host: an operator must look before anything is changed."""
        known = set(tenants)
        problems = []
        for name, entry in self.tenants.items():
            if name not in known:
                problems.append(f"tenants: expected the name of a protected tenant, found {name!r}")
            for place in filter(None, (entry.now, entry.pending)):
                if not 0 <= place.gpu < len(devices) or place.profile not in profiles(devices[place.gpu]):
                    problems.append(f"tenants: {name!r}: the host has no {place}")
        if problems:
            raise BackendError(f"{self.path}: " + "; ".join(problems))

    def note_program(self, process: int, started: float) -> None:
        """Keeps which program runs; 0 for none. A note that cannot be written is missing: the start time settles it."""
        with contextlib.suppress(sqlite3.Error):
            self._write("program", [process, started])

    def program(self) -> tuple[int, float]:
        """The program that was noted last, and when it was started; 0 for none."""
        with self._explained():
            process, started = self._read("program") or (0, 0.0)
            return int(process), float(started)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gpusched.host.Journal: {self.path}, {len(self.tenants)} tenants, {len(self.leases)} leases>"

    def _has_content(self) -> bool:
        return os.path.exists(self.path) and os.path.getsize(self.path) > 0

    def _require_journal(self) -> None:
        if os.path.islink(self.path):
            raise BackendError(f"{self.path} is a link; a journal must be a file")
        try:
            with open(self.path, "rb") as file:
                head = file.read(64)
        except FileNotFoundError:
            return
        except OSError as error:
            raise BackendError(f"{self.path}: cannot be read: {error.strerror}") from None
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
            database = sqlite3.connect(self.path, isolation_level=None)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            return database
        uri = f"file:{os.path.abspath(self.path).replace('?', '%3f').replace('#', '%23')}?mode=ro"
        # Without a log of its own nothing writes the file, and a folder without write permission does not matter.
        return sqlite3.connect(uri if os.path.exists(self.path + "-wal") else uri + "&immutable=1", uri=True)

    def _prepare(self) -> bool:
        """Makes the tables of a new file. Returns whether there is something to load."""
        assert self._database is not None
        application = self._database.execute("PRAGMA application_id").fetchone()[0]
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application == 0 and tables == 0:
            if not self.read_only:
                # One transaction: a process that dies here leaves an empty file.
                self._database.executescript(
                    f"BEGIN; CREATE TABLE journal (key TEXT PRIMARY KEY, value TEXT NOT NULL); "
                    f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
                )
            return False
        if application != APPLICATION_ID:
            raise BackendError(f"{self.path} is a database of another program, no journal of gpusched")
        if version != VERSION:
            raise BackendError(f"{self.path} has version {version}; this gpusched reads version {VERSION}")
        if self._database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise BackendError(f"{self.path} is damaged")
        return True

    def _load(self) -> None:
        document = self._read("contents")
        if document is None:
            return
        tenants = {}
        for name, one in document["tenants"].items():
            pending = one["pending"] and _configuration(one["pending"])
            tenants[name] = TenantEntry(**{**one, "now": _configuration(one["now"]), "pending": pending})
        leases = [Lease(**one) for one in document["leases"]]
        self._contents = _Contents(**{**document, "tenants": tenants, "leases": leases})
        self._saved = copy.deepcopy(self._contents)

    def _read(self, key: str) -> Any:
        if self._database is None:
            return None
        row = self._database.execute("SELECT value FROM journal WHERE key = ?", (key,)).fetchone()
        return row and json.loads(row[0])

    def _write(self, key: str, value: Any) -> None:
        assert self._database is not None
        # In autocommit mode a statement is a transaction.
        self._database.execute("REPLACE INTO journal VALUES (?, ?)", (key, json.dumps(value)))

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackendError(f"{self.path}: cannot be opened: {error.strerror}") from None
        except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BackendError(f"{self.path}: cannot be read: {error}") from None


def _configuration(document: Mapping[str, Any]) -> Configuration:
    place = Configuration(**document)
    if not all(type(number) is int for number in (place.gpu, place.slice, place.quota_percent)):
        raise ValueError(f"no configuration: {document}")
    return place


def _status(error: sqlite3.Error) -> str:
    """The failure that an error of SQLite stands for; before Python 3.11 it has no number."""
    texts = {"full": "insufficient_resources", "readonly": "no_permission", "locked": "in_use"}
    return next((status for text, status in texts.items() if text in str(error)), "unknown")
