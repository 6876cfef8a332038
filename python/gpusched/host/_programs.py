"""Runs programs of this machine, one at a time and with a time limit."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .._optional import require
from ..errors import BackendError

MOST_OUTPUT = 1 << 20
PATIENCE_S = 5.0  # for a program that was killed


@dataclass
class Result:
    """How a program ended. `output` is its standard output and error."""

    code: int = 0
    output: str = ""
    timed_out: bool = False  # it was killed; whether it had an effect is not known


class Notes(Protocol):
    """Keeps which program is running, so that a later process can wait for it."""

    def note_program(self, process: int, started: float) -> None: ...


def started_at(process: int) -> float:
    """When a process was started, in seconds since the epoch; 0 if it is not running."""
    psutil = require("psutil", "host")
    with contextlib.suppress(psutil.Error):
        found = psutil.Process(process)
        if found.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return float(found.create_time())
    return 0.0


def is_running(process: int, started: float) -> bool:
    """Whether this process still runs. Another process with the same number, started later, does not count."""
    return process > 0 and started > 0 and abs(started_at(process) - started) < 0.02


def require_ends_of_programs() -> None:
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        raise BackendError("SIGCHLD is ignored, so the controller cannot see how programs end; it starts none")


class Programs:
    """Runs programs, found along PATH and without a shell.

    `held`: a descriptor that programs inherit; the lock on its file lasts while they run, even if this process is gone.
    `notes`: is given the program that runs.
    """

    def __init__(self, limit_s: float = 30.0, held: int = -1, notes: Notes | None = None) -> None:
        self._limit_s = limit_s
        self._held = held
        self._notes = notes
        self._left: list[tuple[subprocess.Popen[bytes], float]] = []

    def left_behind(self) -> int:
        """A program that did not end when it was killed and still runs; 0 if there is none."""
        self._left = [(p, started) for p, started in self._left if p.poll() is None and is_running(p.pid, started)]
        return self._left[0][0].pid if self._left else 0

    def run(self, arguments: Sequence[str], given: str = "") -> Result:
        """Runs a program with `given` on its standard input, at most 4,096 bytes.

        The end by a signal counts as 128 + signal, as in a shell. Output beyond 1 MiB is dropped.
        Raises BackendError if the program cannot be started.
        """
        require_ends_of_programs()
        process = self._start(arguments, given.encode())
        started = started_at(process.pid)
        if self._notes is not None:
            self._notes.note_program(process.pid, started)
        result = self._wait(process)
        if process.returncode is None:
            self._left.append((process, started))
        elif self._notes is not None:
            self._notes.note_program(0, 0.0)
        return result

    def _start(self, arguments: Sequence[str], given: bytes) -> subprocess.Popen[bytes]:
        source = subprocess.DEVNULL
        if given:
            # All of it fits into the pipe, so writing does not wait for the program.
            source, end = os.pipe()
            os.write(end, given[:4096])
            os.close(end)
        try:
            return subprocess.Popen(
                list(arguments),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(self._held,) if self._held >= 0 else (),
                start_new_session=True,  # the program and all that it starts can be killed together
            )
        except OSError as error:
            raise BackendError(f"{arguments[0]}: cannot be started: {error.strerror}") from None
        finally:
            if given:
                os.close(source)

    def _wait(self, process: subprocess.Popen[bytes]) -> Result:
        assert process.stdout is not None
        result = Result()
        output = bytearray()
        pipe = process.stdout.fileno()
        open_ = True

        def take(seconds: float) -> bool:
            nonlocal open_
            if not select.select([pipe] if open_ else [], [], [], seconds)[0]:
                return False
            chunk = os.read(pipe, 65536)
            open_ = bool(chunk)
            if len(output) < MOST_OUTPUT:
                output.extend(chunk)
            return open_

        with process.stdout:
            end = time.monotonic() + self._limit_s
            while process.poll() is None and not result.timed_out:
                left = end - time.monotonic()
                take(min(max(left, 0.0), 0.005))
                result.timed_out = left <= 0
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # A program that hangs in the kernel does not end.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE_S)
            # At most one full pipe: a process that the program left behind may go on writing.
            for _ in range(64):
                if result.timed_out or not take(0.0):
                    break
        code = process.returncode
        result.code = 128 + signal.SIGKILL if code is None else code if code >= 0 else 128 - code
        result.output = bytes(output).decode("utf-8", "backslashreplace")
        return result
