# SPDX-License-Identifier: Apache-2.0
"""Runs programs of this machine, one at a time and with a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from ..errors import BackendError, explained

MOST_OUTPUT = 1 << 20
PATIENCE_S = 5.0  # for a program that was killed
Note = Callable[[int, float], object]


@dataclass
class Result:
    """How a program ended. `output` is its standard output and error."""

    code: int = 0
    output: str = ""
    timed_out: bool = False  # it was killed; whether it had an effect is not known


def started_at(process: int) -> float:
    """When a process was started, in ticks of the kernel; 0 if it is not running."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return 0.0 if fields[0] in "ZX" else float(fields[19])


def is_running(process: int, started: float) -> bool:
    """Whether this process still runs. Another one with the same number, started later, does not count."""
    return process > 0 and started > 0 and started_at(process) == started


def require_ends_of_programs() -> None:
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        raise BackendError(
            "SIGCHLD is ignored, so the controller cannot see how programs end; it starts none"
        )


class Programs:
    """Runs programs, found along PATH and without a shell.

    `held`: a descriptor that programs inherit; the lock on its file lasts while they run, even if this
    process is gone.
    `note`: is told which program runs and when it was started, so that a later process can wait for it.
    """

    def __init__(self, limit_s: float = 30.0, held: int = -1, note: Note | None = None) -> None:
        self._limit_s = limit_s
        self._held = held
        self._note = note or (lambda process, started: None)
        self._left: list[tuple[subprocess.Popen[bytes], float]] = []

    def left_behind(self) -> int:
        """A program that did not end when it was killed and still runs; 0 if there is none."""
        self._left = [
            (p, started) for p, started in self._left if p.poll() is None and is_running(p.pid, started)
        ]
        return self._left[0][0].pid if self._left else 0

    def run(self, arguments: Sequence[str], given: str = "") -> Result:
        """Runs a program with `given` on its standard input.

        The end by a signal counts as 128 + signal, as in a shell. Output beyond 1 MiB is dropped. A
        process that the program leaves behind is not waited for. Raises BackendError if the program
        cannot be started.
        """
        require_ends_of_programs()
        with tempfile.TemporaryFile() as output:
            process = self._start(arguments, output)
            started = started_at(process.pid)
            self._note(process.pid, started)
            timed_out = False
            try:
                process.communicate(given.encode(), self._limit_s)
            except subprocess.TimeoutExpired:
                timed_out = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # A program that hangs in the kernel does not end.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE_S)
            code = process.returncode
            if code is None:
                self._left.append((process, started))
            else:
                self._note(0, 0.0)
            output.seek(0)
            text = output.read(MOST_OUTPUT).decode("utf-8", "backslashreplace")
        return Result(
            128 + signal.SIGKILL if code is None else code if code >= 0 else 128 - code, text, timed_out
        )

    def _start(self, arguments: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        with explained(arguments[0], "started"):
            return subprocess.Popen(
                list(arguments),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(self._held,) if self._held >= 0 else (),
                start_new_session=True,  # the program and all that it starts can be killed together
            )
