# SPDX-License-Identifier: Apache-2.0
"""The controller on this machine: it reads a window, decides, writes down and acts, until it is asked to
stop.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from .. import control
from ..errors import BackendError, InvalidInput, explained
from . import _files, _service
from ._actuator import Actuator, Ended, run_hook
from ._config import read_live
from ._failures import Failure, UnknownState
from ._interfaces import Interfaces
from ._journal import Journal
from ._mig import MemoryMeter, MigBackend
from ._places import Configuration, Instance
from ._programs import Programs, is_running, require_ends_of_programs
from ._recovery import recover
from ._signals import Signals

LONGEST_PAUSE_S = 0.05  # after which the loop looks for requests


class Controller:
    """The tail-latency controller of this machine.

    `config`: a configuration with a section `live` (docs/host.md), a dict or JSON text. `audit`: a
    file to which the lines of the audit log are appended; empty: none. Not for several threads at
    once, except for `stop` and `request_resume`.

    Raises InvalidInput with all problems of the configuration. Nothing is touched before `start`.
    """

    def __init__(self, config: Mapping[str, Any] | str, *, audit: str = "") -> None:
        self._config, self._live = read_live(config)
        self._audit_path = audit
        self._status_path = self._live.journal + ".status"
        self._host, self._flags, self._options = (self._config[name] for name in ("host", "flags", "options"))
        self._devices = [gpu["device"] for gpu in self._host["gpus"]]
        self._starts = {
            one["name"]: Configuration.read(one["start"]) for one in self._host["tenants"] if one["protected"]
        }
        self._queue = control.AdmissionQueue(self._live.admission.capacity)
        self._answers: list[control.AdmissionAnswer] = []
        self._lines: list[str] = []
        self._ends: list[Ended] = []  # ends of actions that the decision core does not know yet
        self._seen: dict[str, Any] = {}  # the last window
        self._window = 0
        self._enabled = True
        self._resume_accepted = False  # the next window tells the decision core
        self._stop = self._resume = False
        self._core: control.Controller | None = None
        self._metrics: _service.Metrics | None = None
        self._closers = contextlib.ExitStack()

    # ---- start ----

    def start(self) -> list[str]:
        """Locks the journal and the control groups, looks for what the host offers, and recovers from a
        crash.

        Flags whose interface is missing are switched off. A dry run changes nothing and locks
        nothing. `step` and `run` call this if it was not called.

        Returns lines for the operator. Raises `UnknownState` if the instances require manual repair
        or the journal cannot be read, and BackendError if another controller runs or the machine
        has no GPU.
        """
        if self._core is not None:
            raise InvalidInput("start: called twice")
        require_ends_of_programs()
        self._lines.clear()
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self._take_lines("start")

    def _open(self) -> None:
        live, dry_run = self._live, self._flags["dry_run"]
        lock = -1 if dry_run else self._lock()
        try:
            self._journal = Journal(live.journal, read_only=dry_run)
            self._closers.callback(self._journal.close)
            self._journal.check(self._starts, self._devices)
        except BackendError as error:
            raise UnknownState(str(error)) from None
        self._hooks = Programs(live.command_limit_s, note=None if dry_run else self._journal.note_program)
        # The driver's programs keep the lock, so that a restart waits for them.
        self._driver = Programs(live.command_limit_s, held=lock)
        if not dry_run:
            self._wait_for_program()
        boot = _files.boot_id(live.proc)
        owned = self._journal.owned(self._starts, boot)
        found = Interfaces(live, self._host, self._driver, owned, self._closers)
        found.look_for_guards(self._hooks)
        self._lines += found.lines
        for flag, why in found.missing.items():
            if self._flags[flag]:
                self._say(f"{flag} is off: {why}")
            self._flags[flag] = False
        carryover = self._recover(found.mig, boot)
        self._actuator = Actuator(found.mig, self._hooks, live, self._host, self._journal, self._lines)
        self._meter = MemoryMeter()
        if live.mig != "none" and self._flags["relax"] and self._flags["mig"]:
            self._lines += self._meter.choose(self._places(), found.memory_sources)
        self._audit = _service.AuditFile(self._audit_path)
        self._closers.callback(self._audit.close)
        window_s = self._options["window_s"]
        self._signals = Signals(self._host, live, found.eyes, found.nvml, found.handles, window_s)
        self._closers.callback(self._signals.close)
        if live.metrics:
            self._metrics = _service.Metrics(live.metrics)
            self._closers.callback(self._metrics.close)
        age_s = self._journal.age_s(time.monotonic())
        try:
            self._core = control.Controller(self._config, carryover=carryover, carryover_age_s=age_s)
        except InvalidInput as error:
            raise UnknownState(f"{self._journal.path}: {error}") from None
        self._core.record_start()
        self._audit.write(self._core.take_log())

    def _lock(self) -> int:
        """Locks the journal and the control groups. Returns the descriptor of the journal's lock."""
        path, groups = self._live.journal + ".lock", self._live.cgroups
        with explained(path, "opened"):
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._closers.callback(os.close, lock)
        # A command that a killed controller left behind may still run; it ends soon.
        self._wait_until(
            lambda: _locked(lock),
            f"{path}: another controller has this journal, or a command of one is running",
        )
        with contextlib.suppress(OSError):
            folder = os.open(groups, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._closers.callback(os.close, folder)
            # A controller with another journal would limit and restore the same groups.
            self._wait_until(
                lambda: _locked(folder), f"{groups}: another controller has these control groups"
            )
        return lock

    def _wait_for_program(self) -> None:
        process, started = self._journal.program()
        self._wait_until(
            lambda: not is_running(process, started),
            f"{self._live.journal}: a tenant's program, started by a controller that is gone, is running "
            f"(process {process})",
        )

    def _wait_until(self, done: Callable[[], bool], why: str) -> None:
        end = time.monotonic() + self._live.lock_wait_s
        while not done():
            if time.monotonic() >= end:
                raise BackendError(why)
            time.sleep(0.1)

    def _recover(self, mig: MigBackend, boot: str) -> dict[str, Any]:
        """Brings the host into a known state. Returns what the decision core takes over."""
        journal = self._journal
        if self._flags["dry_run"]:
            journal.believe(boot)
            for name, entry in journal.tenants.items():
                if entry.pending is not None:
                    self._say(f"{name}: a change was cut off; a dry run leaves it so")
        else:
            recovery = recover(mig, self._hooks, self._live, self._starts, journal, boot)
            if recovery.leases_ended:
                self._say(f"{recovery.leases_ended} limits of a controller that is gone ended")
            for name, verdict in recovery.verdicts.items():
                self._say(f"{name}: {verdict}, {journal.tenants[name].now}")
            recovery.require_known()
        carryover = {name: dict(one) for name, one in journal.carryover.items() if name in self._starts}
        for name, start in self._starts.items():
            carryover.setdefault(name, {}).setdefault("floor", start.document())
        for one in self._host["tenants"]:
            if one["protected"]:
                one["start"] = self._at(one["name"]).document()
        for name, one in carryover.items():
            actions, blocked = len(one.get("structural", ())), len(one.get("blocked", ()))
            cooldown = one.get("cooldown_windows", 0)
            if actions or blocked or cooldown:
                self._say(
                    f"{name}: remembered: {actions} structural actions, {blocked} changes not to be "
                    f"repeated, {cooldown} windows of cool-down"
                )
        return carryover

    # ---- windows ----

    def step(self) -> list[str]:
        """One window: reads it, decides, writes the audit line, then acts.

        Returns lines: transitions with reasons, actions and how they ended.
        """
        started = self._started_lines()
        observation, seconds = self.observe()
        self.decide(observation, seconds)
        self._admit_next()
        if self._signals.ignored:
            self._say(f"{self._signals.ignored} lines of latencies could not be read")
            self._signals.ignored = 0
        if not self._flags["dry_run"]:
            _service.write_status(self._status_path, self._window_status())
        return started + self._take_lines("window", window=self._window - 1)

    def observe(self) -> tuple[dict[str, Any], float]:
        """The signals of the window that ends now, and the seconds for reading them. Decides nothing."""
        self._require_start()
        began = time.perf_counter()
        observation = self._signals.read(time.monotonic())
        if self._signals.looked:
            here = {name: one for name, one in self._places().items() if self._signals.stands(one)}
            used, line = self._meter.read(here)
            for name, mib in used.items():
                observation["tenants"][name]["memory_used_mib"] = mib
            if line:
                self._say(line)
        observation["operator_resume"] = self._vouch()
        return observation, time.perf_counter() - began

    def decide(self, observation: dict[str, Any], observing_s: float = 0.0) -> None:
        """Decides on the signals of a window, writes its line of the audit log, then acts."""
        core = self._require_start()
        for end in self._ends:
            if end.kind == "reconfigure":
                ended = {"finished": True, "status": end.status, "restored": end.restored}
                observation.setdefault("feedback", {})[end.tenant] = ended
            elif end.kind != "release_io":
                observation.setdefault("guards", {})[end.tenant] = end.status
        self._ends = []
        now_s = time.monotonic()
        observation.update(window=self._window, time_s=now_s, wall_time_s=time.time(), enabled=self._enabled)
        self._window += 1
        began = time.perf_counter()
        actions = core.step(observation)
        deciding_s = time.perf_counter() - began
        self._seen = observation
        # The line is in the log before its actions are carried out.
        self._audit.write(core.take_log())
        for event in core.events:
            self._say(str(event))
        for action in core.wished if self._flags["dry_run"] else []:
            self._say(f"would {action}")
        for action in actions:
            self._say(str(action))
        self._actuator.retry_releases()
        if not self._flags["dry_run"]:
            self._actuator.remember(core, now_s)
        self._report(self._actuator.act(actions))
        if self._metrics is not None:
            self._metrics.took(observing_s, deciding_s)
            self._metrics.window(core.state, observation.get("tenants", {}), len(self._journal.leases))

    def _report(self, ends: list[Ended]) -> None:
        for end in ends:
            self._ends.append(end)
            if end.kind == "reconfigure":
                self._signals.look_again()
            self._say(f"{end.kind} of {end.target}: {end.status}")
            self._audit.record("outcome", kind=end.kind, target=end.target, status=end.status)
            if self._metrics is not None:
                self._metrics.ended(end.kind, end.status)

    def run(self, *, windows: int | None = None, say: Callable[[str], object] | None = None) -> int:
        """Runs a window each `window_s` until `stop` or the last of `windows`, then ends all limits of block
        I/O.

        A window that a long change delayed begins at once, and windows that were missed are not
        made up for. A request to resume is answered before the next window and puts off no window
        that is due. `say` is called with each line.

        Returns the number of windows. What a window or `say` raises surfaces after the limits have ended.
        """
        if windows is not None and windows < 0:
            raise InvalidInput(f"windows: {windows}; expected at least 0")
        tell = say or (lambda line: None)
        for line in self._started_lines():
            tell(line)
        _service.notify(READY="1", STATUS="controlling")
        try:
            done = self._loop(windows, tell)
        except BaseException:
            with contextlib.suppress(Exception):  # the first failure is the one to report
                self._end(tell)
            raise
        self._end(tell)
        return done

    def _end(self, tell: Callable[[str], object]) -> None:
        _service.notify(STOPPING="1")
        for line in self.release():
            tell(line)

    def _loop(self, windows: int | None, tell: Callable[[str], object]) -> int:
        period = float(self._options["window_s"])
        done = 0
        due = time.monotonic() + period
        while not self._stop and (windows is None or done < windows):
            self._wait(due, period)
            if self._stop:
                break
            if self._resume:
                self._resume = False
                for line in self.resume():
                    tell(line)
                # However many come, a window that is due is not put off, for limits end in it.
                if time.monotonic() < due:
                    continue
            for line in self.step():
                tell(f"window {done}: {line}")
            done += 1
            _service.notify(WATCHDOG="1", STATUS=f"{done} windows")
            due = max(due + period, time.monotonic())
        return done

    def _wait(self, due: float, period: float) -> None:
        prepared = False
        while not self._stop and not self._resume:
            left = due - time.monotonic()
            if not prepared and left <= min(0.25, period / 4):
                self._signals.prepare()
                prepared = True
            if left <= 0:
                return
            time.sleep(min(left, LONGEST_PAUSE_S))

    def stop(self, *_: object) -> None:
        """The window that runs is the last one of `run`. Also a handler: `signal.signal(signal.SIGTERM,
        controller.stop)`.
        """
        self._stop = True

    def request_resume(self, *_: object) -> None:
        """An operator has looked: `run` calls `resume` before its next window. Also a handler of a signal."""
        self._resume = True

    def release(self) -> list[str]:
        """Ends all limits of block I/O, as at a clean end. Windows after it are DISABLED until `resume`.
        Returns lines.
        """
        core = self._require_start()
        self._audit.must = False
        self._enabled = False

        def leased() -> bool:
            return any(state["lease"] is not None for state in core.state.values())

        if leased():
            core.end_leases()
            self._audit.write(core.take_log())
        while leased():
            self.decide(dict(self._seen, operator_resume=False, feedback={}, guards={}))
        if not self._actuator.retry_releases():
            self._say("a limit is left; the next start tries again")
        if not self._flags["dry_run"]:
            _service.write_status(self._status_path, self._window_status())
        return self._take_lines("release")

    def close(self) -> None:
        """Gives up locks, files and sockets. Limits stay: `release` ends them."""
        self._closers.close()
        self._core = self._metrics = None

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # the configuration was refused
            self.close()

    # ---- an operator ----

    @property
    def waits_for_operator(self) -> bool:
        """Whether a tenant is frozen until an operator has come: `resume`."""
        return bool(self._frozen())

    def resume(self) -> list[str]:
        """Resumes frozen tenants, after an operator has looked (HOLD ends after ten fresh windows), and
        enables the controller after `release`.

        Each instance must be at its recorded place, its destination must be empty, and no program
        may be running; otherwise the lines returned say what is wrong. Calls `switch_over` for each
        tenant, removes the interrupted change from the journal, and reads the instances again in the
        next window. A dry run changes nothing.
        """
        self._require_start()
        waiting = self._frozen()
        if not waiting and self._enabled:
            self._tell_resume("not needed", ["nothing waits for an operator"])
            return self._take_lines("resume")
        reasons: list[str] = []
        if waiting:
            reasons = [
                f"a program that was started for a change is running: process {process}"
                for process in (self._hooks.left_behind(), self._driver.left_behind())
                if process
            ]
            if not reasons:
                reasons = self._actuator.resume(waiting, self._flags["dry_run"])
        if reasons:
            self._tell_resume("refused", reasons)
            return self._take_lines("resume")
        done = [f"{name} goes on after ten fresh windows in {self._at(name)}" for name in waiting]
        if not self._enabled:
            done.append("enabled again")
        if waiting:
            self._resume_accepted = True
            self._signals.look_again()
        self._enabled = self._audit.must = True
        self._tell_resume("accepted", done)
        return self._take_lines("resume")

    def _frozen(self) -> list[str]:
        return [name for name, state in self._core.state.items() if state["frozen"]] if self._core else []

    def _tell_resume(self, verdict: str, texts: list[str]) -> None:
        self._lines += [f"resume {verdict}: {text}" for text in texts]
        self._audit.record("resume", verdict=verdict, reasons=texts)

    def _vouch(self) -> bool:
        """The core believes an operator in everything, so what was true then must be true of this window as
        well.
        """
        accepted, self._resume_accepted = self._resume_accepted, False
        if not accepted:
            return False
        reasons = []
        for name, one in self._places().items():
            if not self._signals.stands(one):
                how = "no longer stands" if self._signals.gpus[one.gpu].readable else "can no longer be read"
                reasons.append(f"{name!r}: {one} {how}")
        if reasons:
            self._tell_resume("refused", reasons)
        return not reasons

    # ---- newcomers ----

    def offer(self, newcomer: control.Newcomer) -> control.AdmissionAnswer:
        """A newcomer arrives: as `AdmissionQueue.offer`, with the state of the last window.

        The program `live.admission.start` starts an admitted newcomer; if it fails, the newcomer is
        rejected. Newcomers are queued, not admitted, while a tenant waits for an operator, after
        `release`, and in a dry run.
        """
        answer = self._queue.offer(self._require_start(), newcomer, open=self._open_to_newcomers())
        return self._start_newcomer(answer)

    def withdraw(self, id: int) -> bool:
        """Takes a newcomer out of the queue. Returns False if none with this id waits."""
        return bool(self._queue.withdraw(id))

    @property
    def waiting(self) -> list[control.Newcomer]:
        """The waiting newcomers, in order of service."""
        return list(self._queue.waiting)

    def take_answers(self) -> list[control.AdmissionAnswer]:
        """Answers to waiting newcomers since the last call; each window admits at most one."""
        answers, self._answers = self._answers, []
        return answers

    def _open_to_newcomers(self) -> bool:
        return self._enabled and not self._flags["dry_run"] and not self.waits_for_operator

    def _admit_next(self) -> None:
        answer = self._queue.next(self._require_start(), open=self._open_to_newcomers())
        if answer is not None:
            self._answers.append(self._start_newcomer(answer))

    def _start_newcomer(self, answer: control.AdmissionAnswer) -> control.AdmissionAnswer:
        number, found = answer.newcomer.id, answer.place
        place: dict[str, Any] = {}
        if found is not None:
            at = Configuration(found.gpu, found.profile, found.slice)
            self._say(f"newcomer {number}: admitted, {at}")
            try:
                if self._live.admission.start:
                    run_hook(self._hooks, self._live.admission.start, at, self._lines, id=number)
                place = {"gpu": at.gpu, "profile": at.profile, "slice": at.slice}
            except Failure:
                answer = answer.rejected()
            self._signals.look_again()
        if not place:
            self._say(f"newcomer {number}: {answer.verdict}")
        self._audit.record("admission", id=number, verdict=answer.verdict, **place)
        return answer

    # ---- state ----

    @property
    def config(self) -> dict[str, Any]:
        """The configuration in effect: flags that the host does not support are off, tenants start where they
        were found.

        `control.replay_audit` needs it for the log.
        """
        return control.Controller(self._config).config

    def status(self) -> dict[str, Any]:
        """The state for an operator; that of another process, if this controller has not started. Changes
        nothing.
        """
        if self._core is not None:
            return {"running": True, **self._window_status(), **_recorded(self._journal)}
        with Journal(self._live.journal, read_only=True) as journal:
            last = _service.read_status(self._status_path)
            return {"running": self._is_running(), **last, **_recorded(journal)}

    def _is_running(self) -> bool:
        with contextlib.suppress(OSError), open(self._live.journal + ".lock", "rb") as lock:
            return not _locked(lock.fileno())
        return False

    def _window_status(self) -> dict[str, Any]:
        core = self._require_start()
        seen = self._seen.get("tenants", {})
        return {
            "windows": self._window,
            "time": time.time(),
            "enabled": self._enabled,
            "dry_run": self._flags["dry_run"],
            "tenants": {
                name: {**state, "p99_ms": seen.get(name, {}).get("p99_ms")}
                for name, state in core.state.items()
            },
        }

    def _at(self, name: str) -> Configuration:
        entry = self._journal.tenants.get(name)
        return entry.now if entry is not None else self._starts[name]

    def _places(self) -> dict[str, Instance]:
        return {name: self._at(name).instance for name in self._starts}

    def _say(self, line: str) -> None:
        self._lines.append(line)

    def _take_lines(self, event: str, **fields: Any) -> list[str]:
        lines = list(self._lines)
        self._lines.clear()
        for line in lines:
            _service.log(event, line, **fields)
        return lines

    def _require_start(self) -> control.Controller:
        if self._core is None:
            raise InvalidInput("start: not called yet")
        return self._core

    def _started_lines(self) -> list[str]:
        return [] if self._core is not None else self.start()

    def __repr__(self) -> str:
        return f"<gpusched.host.Controller: {len(self._live.tenants)} tenants, {self._window} windows>"


def _locked(file: int) -> bool:
    """Takes the lock on a file, unless another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _recorded(journal: Journal) -> dict[str, Any]:
    changes = {
        name: str(entry.pending) for name, entry in journal.tenants.items() if entry.pending is not None
    }
    return {
        "instances": {name: str(entry.now) for name, entry in journal.tenants.items()},
        "changes_cut_off": changes,
        "limits": [f"{lease.tenant}: {lease.file}" for lease in journal.leases],
    }
