# SPDX-License-Identifier: Apache-2.0
"""Files of the kernel and control groups (version 2): block I/O, cores and threads of a tenant."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator

from ._failures import Failure, attempt, of_system

MOST_BYTES = 16 << 20
ALL_CORES = range(1024)  # as many as the kernel's cpu_set_t names
THREADS = "threads"  # recorded in place of cpuset.cpus if the cores of the group's threads are set instead

_LIMITS = ("rbps", "wbps", "riops", "wiops")


def read(path: str) -> str:
    """All of a file, at most 16 MiB. Does not wait for a writer of a pipe."""
    data = bytearray()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Small pieces: room for 16 MiB would cost more than most of these files.
            while len(data) <= MOST_BYTES and (piece := os.read(descriptor, 1 << 16)):
                data += piece
        finally:
            os.close(descriptor)
    except OSError as error:
        raise of_system(error) from None
    if len(data) > MOST_BYTES:
        raise Failure("unknown", f"{path}: too large")
    return data.decode("utf-8", "replace")


def write(path: str, text: str) -> None:
    """Writes into a file that exists, in one call, as the kernel's control files require. Follows no link."""
    try:
        flags = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags)
        try:
            if os.write(descriptor, text.encode()) != len(text.encode()):
                raise Failure("unknown", f"{path}: written in part")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise of_system(error) from None


def writable(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def boot_id(proc: str) -> str:
    """The identity of the running kernel; empty if it cannot be read."""
    try:
        return read(f"{proc}/sys/kernel/random/boot_id").strip()
    except Failure:
        return ""


def parse_cores(text: str) -> set[int]:
    """Cores of a list such as `0-3,8`. Raises ValueError for other text."""
    cores: set[int] = set()
    for part in text.strip().split(","):
        if not part:
            continue
        if not re.fullmatch(r"\d+(-\d+)?", part):
            raise ValueError(f"cores {text!r}: expected a list such as 0-3,8")
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return cores


def same_cores(a: str, b: str) -> bool:
    try:
        return a == b or parse_cores(a) == parse_cores(b)
    except ValueError:
        return False


def _fields(text: str, disks: Iterable[str], file: str) -> Iterator[tuple[str, str]]:
    """Keys and values in the lines of these disks; in all lines if there are none."""
    chosen = set(disks)
    for line in text.splitlines():
        disk, *words = line.split() or [""]
        if disk and (not chosen or disk in chosen):
            for key, equals, value in (word.partition("=") for word in words):
                if not equals:
                    raise Failure("invalid_state", f"{file}: line cannot be read: {line}")
                yield key, value


def _whole(key: str, value: str) -> int:
    if not value.isdecimal():
        raise Failure("invalid_state", f"{key}={value}: expected a number")
    return int(value)


def io_limits(text: str, disk: str) -> dict[str, int | None]:
    """The limits of a disk in the text of io.max; None is no limit. Limits of a later kernel are ignored."""
    found = {key: value for key, value in _fields(text, [disk], "io.max") if value != "max"}
    return {key: _whole(key, found[key]) if key in found else None for key in _LIMITS}


def io_limits_text(disk: str, limits: dict[str, int | None]) -> str:
    """The line to write. It names all four limits, because the kernel keeps those that are left out."""
    return " ".join([disk, *(f"{key}={'max' if limits[key] is None else limits[key]}" for key in _LIMITS)])


def io_bytes(text: str, disks: Iterable[str]) -> int:
    """Bytes read and written, by the text of io.stat, on these disks; on all if there are none."""
    fields = _fields(text, disks, "io.stat")
    return sum(_whole(key, value) for key, value in fields if key in ("rbytes", "wbytes"))


def set_io_limits(file: str, line: str) -> None:
    """Writes a line into an io.max and reads it back: the kernel may accept a value and use another."""
    write(file, line)
    disk = line.split()[0]
    if io_limits(read(file), disk) != io_limits(line, disk):
        raise Failure("invalid_state", f"{file}: the limit was not taken")


def end_limit(file: str, before: str) -> None:
    """Ends a limit. A control group or disk that is gone has none."""
    try:
        set_io_limits(file, before)
    except Failure as failure:
        if failure.code != errno.ENODEV and os.path.exists(file):
            raise


def set_cores(group: str, cores: str, before: str) -> None:
    """Puts a tenant on cores. Empty: on those that it had `before`, the text of cpuset.cpus or THREADS."""
    if before == THREADS:
        # All cores: the kernel leaves out those that do not exist.
        _set_affinity(group, parse_cores(cores) if cores else set(ALL_CORES))
        return
    wanted = cores or before
    # The kernel ignores an empty write; a newline clears.
    write(f"{group}/cpuset.cpus", wanted + "\n")
    if not same_cores(read(f"{group}/cpuset.cpus").strip(), wanted):
        raise Failure("invalid_state", f"{group}: the cores were not taken")
    # The group above may have fewer cores. Then the tenant would not get these.
    if cores and not same_cores(read(f"{group}/cpuset.cpus.effective").strip(), cores):
        raise Failure("not_supported", f"{group}: the group above has fewer cores")


def cores_before(group: str) -> str:
    """Reads the state that `set_cores` needs to undo a pin."""
    try:
        return read(f"{group}/cpuset.cpus").strip()
    except Failure as failure:
        if failure.status != "not_found":
            raise
    read(f"{group}/cgroup.threads")
    return THREADS


def _set_affinity(group: str, cores: set[int]) -> None:
    """Puts each thread of a group without the cpuset controller on cores."""
    done: set[int] = set()

    def put(thread: int) -> None:
        try:
            os.sched_setaffinity(thread, cores)
        except OSError as error:
            raise of_system(error) from None

    # Threads start while others are set. A few looks find all, unless they never stop coming.
    for _ in range(8):
        words = read(f"{group}/cgroup.threads").split()
        if not all(word.isdecimal() for word in words):
            raise Failure("invalid_state", f"{group}/cgroup.threads cannot be read")
        new = {int(word) for word in words} - done
        if not new:
            return
        for thread in sorted(new):
            status = attempt(put, thread)
            if status not in ("ok", "not_found"):  # a thread may have ended meanwhile
                raise Failure(status, f"cores of thread {thread}")
        done |= new
    raise Failure("timeout", f"{group}: threads never stop coming")
