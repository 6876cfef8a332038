# SPDX-License-Identifier: Apache-2.0
"""An operator comes to `gpusched control` with SIGUSR1: a real process, a fake nvidia-smi, control groups in
a folder.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from control_host import NO_CHANGES, NO_GUARDS, TWO_G, Host


class Running:
    """The command with its audit log, and what it has written so far."""

    def __init__(self, host: Host, config: dict[str, Any]) -> None:
        self.audit, self.effective = host.folder / "audit.jsonl", host.folder / "effective.json"
        more = ["--audit", str(self.audit), "--config-output", str(self.effective)]
        self.process: subprocess.Popen[str] = host.start(config, *more)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end and self.process.poll() is None, "".join(self.lines)
            time.sleep(0.01)

    def wait(self, text: str) -> None:
        self.wait_for(lambda: any(text in line for line in list(self.lines)))

    def windows(self) -> int:
        return self.audit.read_text(encoding="utf-8").count('"observation"')

    def resume(self) -> None:
        self.process.send_signal(signal.SIGUSR1)

    def end(self, number: int = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        self.process.wait(60)
        self._reader.join()
        if number == signal.SIGTERM:
            assert self.process.returncode == 0 and "limits ended" in self.lines[-1]
        return "".join(self.lines)

    def replayed_log(self) -> str:
        """The log, of which each decision follows from the signals."""
        log = self.audit.read_text(encoding="utf-8")
        replay = gs.control.replay_audit(log, self.effective.read_text(encoding="utf-8"))
        assert replay.first_difference == -1 and replay.windows > 0, (replay.expected, replay.found)
        return log


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """T1 is far above its target all the time."""
    host = Host(tmp_path)
    with host.working("+2\n40\n40\n"):
        yield host


@pytest.fixture
def start(host: Host) -> Iterator[Callable[..., Running]]:
    begun: list[Running] = []

    def begin(config: dict[str, Any]) -> Running:
        begun.append(Running(host, config))
        return begun[-1]

    yield begin
    for running in begun:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)


@pytest.fixture
def at_an_unknown_end(host: Host, start: Callable[..., Running]) -> Running:
    """A change of instance has begun, and the program that moves T1 took too long. It works again."""
    host.gpus([[host.gi(TWO_G, 1, 0, 2, True), host.gi(19, 2, 3, 1, False)], [host.gi(9, 3, 0, 4, False)]])
    move(host, "exec sleep 20")
    config = host.config(flags=NO_GUARDS)
    config["live"]["command_limit_s"] = 4
    running = start(config)
    running.wait("T1: reconfig -> hold (row 15, cause unknown): timeout")
    assert host.journal().tenants["T1"].pending is not None
    return running


def move(host: Host, then: str = "") -> None:
    """The program that moves T1 writes down its arguments."""
    host.script("move-t1", f'echo "$@" >> "{host.folder}/moves"; {then}')


def moves(host: Host) -> list[str]:
    return host.read("moves").splitlines()


def remove_destination(host: Host) -> None:
    """As an operator does."""
    state = host.smi()
    left = [
        [i for i in gpu if not i["mine"] or (g, i["start"]) == (0, 0)] for g, gpu in enumerate(state["gpus"])
    ]
    host.gpus(left, next=state["next"])


def test_nobody_waits(host: Host, start: Callable[..., Running]) -> None:
    running = start(host.config(flags=NO_CHANGES))
    running.wait("tail above the threshold")
    running.resume()
    running.wait("resume not needed: nothing waits for an operator")
    before = running.windows()
    running.wait_for(lambda: running.windows() >= before + 5)
    running.end()
    log = running.replayed_log()
    assert log.count('"record":"resume"') == 1 and '"operator_resume":true' not in log


def test_an_instance_that_was_gone_and_is_back(host: Host, start: Callable[..., Running]) -> None:
    running = start(host.config(flags=NO_CHANGES))
    running.wait("tail above the threshold")
    host.gpus([[host.gi(19, 2, 6, 1, False)], [host.gi(9, 3, 0, 4, False)]])
    running.wait("(row 20, cause unknown): own instance missing")
    running.resume()
    running.wait("resume refused: 'T1': its instance, GPU 0 2g at 0, does not stand")
    host.gpus([[host.gi(TWO_G, 31, 0, 2, True), host.gi(19, 2, 6, 1, False)], [host.gi(9, 3, 0, 4, False)]])
    time.sleep(2)
    assert not any("hold -> " in line for line in running.lines)
    running.resume()
    running.wait("resume accepted: T1 goes on after ten fresh windows in GPU 0 2g at 0")
    running.wait("T1: hold -> cooldown (row 23")
    running.end()
    log = running.replayed_log()
    assert log.count('"operator_resume":true') == 1
    assert log.count('{"record":"resume","verdict":"refused"') == 1
    host.require_known()


def test_a_change_with_an_unknown_end_then_a_restart(host: Host, at_an_unknown_end: Running) -> None:
    running = at_an_unknown_end
    running.resume()
    running.wait("the destination of the interrupted move, still exists: remove it")
    remove_destination(host)
    move(host)
    running.resume()
    running.wait("resume accepted: T1")
    assert moves(host)[-1] == "0 2g 0"
    assert host.journal().tenants["T1"].pending is None
    running.wait("T1: hold -> cooldown (row 23")
    running.end(signal.SIGKILL)
    assert running.replayed_log().count('"operator_resume":true') == 1
    now = host.require_known()
    again = host.start_again(host.config(flags=NO_GUARDS))
    assert f"T1: as_recorded, GPU {now.gpu} {now.profile} at {now.slice}" in again


def test_signals_without_end_put_off_no_window(host: Host, start: Callable[..., Running]) -> None:
    running = start(host.config(flags=NO_CHANGES))
    running.wait("tail above the threshold")
    host.gpus([[host.gi(19, 2, 6, 1, False)], [host.gi(9, 3, 0, 4, False)]])
    running.wait("own instance missing")
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            running.resume()

    def looks() -> int:
        return sum("resume refused" in line for line in list(running.lines))

    threads = [threading.Thread(target=storm) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        # When a window is due it comes before the next look; on a slow machine each takes its time.
        before = running.windows(), looks()
        running.wait_for(lambda: running.windows() >= before[0] + 4 and looks() >= before[1] + 4)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert "RecursionError" not in running.end()


def test_calls_of_python(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.borrow_programs(monkeypatch)
    controller = gs.host.Controller(host.config(flags=NO_CHANGES))
    with pytest.raises(gs.InvalidInput, match="start: not called yet"):
        controller.resume()
    assert not controller.waits_for_operator
    controller.start()
    assert controller.resume() == ["resume not needed: nothing waits for an operator"]
    host.gpus([[], [host.gi(9, 3, 0, 4, False)]])
    controller.step()
    assert controller.waits_for_operator
    assert controller.resume() == ["resume refused: 'T1': its instance, GPU 0 2g at 0, does not stand"]
    host.gpus([[host.gi(TWO_G, 1, 0, 2, True)], [host.gi(9, 3, 0, 4, False)]])
    assert controller.resume()[0].startswith("resume accepted: T1")
    controller.step()
    assert not controller.waits_for_operator
    controller.release()
    assert any("-> disabled" in line for line in controller.step())
    assert controller.resume() == ["resume accepted: enabled again"]
    assert any("disabled -> " in line for line in controller.step())
