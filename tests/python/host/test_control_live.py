# SPDX-License-Identifier: Apache-2.0
"""`gpusched control` on a host: a fake nvidia-smi, control groups and /proc in a folder, latencies from a
file.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from control_host import NO_CHANGES, NO_GUARDS, Host
from gpusched import cli
from schemas import validator


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


Load = Callable[..., None]


@pytest.fixture
def load(host: Host) -> Iterator[Load]:
    """Latencies and disk traffic, from the call until the test ends."""
    with contextlib.ExitStack() as stack:

        def begin(p99: float, read: int = 0) -> None:
            stack.enter_context(host.working(f"+5\n{p99}\n" + "1\n" * 4, read))

        yield begin


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def limited(host: Host) -> bool:
    return "rbps=500000000" in host.read("cg/t2/io.max")


def kill(running: subprocess.Popen[str]) -> None:
    running.kill()
    running.communicate(timeout=30)


def test_limits_begin_and_end_with_sigterm(host: Host, load: Load) -> None:
    load(40.0, 100_000_000)
    audit, effective = host.folder / "audit.jsonl", host.folder / "effective.json"
    config = host.config(flags=NO_CHANGES)
    running = host.start(config, "--audit", str(audit), "--config-output", str(effective))
    wait_for(lambda: limited(host))
    assert len(host.journal().leases) == 1
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 0, out
    assert "throttle_io of T2: ok" in out and "release_io of T2: ok" in out and "limits ended" in out
    assert "guard_mps is off: no MPS daemon answers" in out and "GPU 0: 2 instances by nvidia-smi" in out
    host.require_known()
    replay = gs.control.replay_audit(audit.read_text(encoding="utf-8"), effective.read_text(encoding="utf-8"))
    assert replay.first_difference == -1 and replay.actions == 2


def test_a_killed_controllers_limit_ends_with_the_next_start(host: Host, load: Load) -> None:
    load(40.0, 100_000_000)
    config = host.config(flags=NO_CHANGES)
    running = host.start(config)
    wait_for(lambda: limited(host))
    config["live"]["lock_wait_s"] = 0
    second = host.run(config, "--windows", "1")
    assert second.returncode != 0 and "another controller has this journal" in second.stderr
    kill(running)
    assert limited(host)
    assert "1 limits of a controller that is gone ended" in host.start_again(config)
    host.require_known()


def test_an_instance_is_enlarged_and_the_next_start_finds_it(host: Host, load: Load) -> None:
    load(40.0)
    host.run_until(host.config(flags={"rollback": False}), "reconfigure of T1: ok")
    now = host.require_known()
    assert (now.profile, now.slice) != ("2g", 0)
    assert host.read("moves").splitlines()[-1] == f"{now.gpu} {now.profile} {now.slice}"
    assert f"T1: as_recorded, GPU {now.gpu} {now.profile} at {now.slice}" in host.start_again(host.config())
    assert host.require_known() == now


def test_gpus_by_pci_address(host: Host, load: Load) -> None:
    load(40.0)
    # nvidia-smi counts them the other way round.
    pci = ["0000:af:00.0", "0000:3b:00.0"]
    host.gpus(host.smi()["gpus"][::-1], pci=pci)
    config = host.config(flags={"rollback": False})
    config["live"]["pci"] = pci[::-1]
    assert "T1: as_configured, GPU 0 2g at 0" in host.run_until(config, "reconfigure of T1: ok")
    host.smi()


def test_files_that_are_read_are_not_written(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.write("config.json", json.dumps(host.config()))
    config, signals = str(host.folder / "config.json"), str(host.folder / "signals.jsonl")
    host.write("signals.jsonl", "{}\n")
    before = host.read("config.json")
    for options in (
        ["--audit", config],
        ["--config-output", config],
        ["--audit", config, "--signals", signals, "--dry-run"],
        ["--audit", signals, "--signals", signals, "--dry-run"],
    ):
        assert cli.main(["control", "--config", config, *options]) == 2
        assert "is also read by this command" in capsys.readouterr().err
    assert (host.read("config.json"), host.read("signals.jsonl")) == (before, "{}\n")


def test_dry_runs_change_nothing(host: Host, load: Load) -> None:
    load(40.0, 100_000_000)
    before = host.smi()
    host.run_until(host.config(), "would T1: ", "--dry-run")
    assert host.smi() == before and host.read("cg/t2/io.max") == ""
    assert not (host.folder / "journal.sqlite").exists()


def test_an_unknown_state_is_not_controlled(host: Host) -> None:
    host.gpus([[], []])
    out = host.run(host.config(), "--windows", "1")
    assert out.returncode == 3
    assert "'T1': missing" in out.stderr
    for text, words in (
        (b'{"format": "gpusched.control-journal"}', "former C++ controller"),
        (b"x", "no journal of gpusched"),
    ):
        for path in host.folder.glob("journal.sqlite*"):
            path.unlink()
        (host.folder / "journal.sqlite").write_bytes(text)
        out = host.run(host.config(), "--windows", "1")
        assert out.returncode == 3 and words in out.stderr
    (host.folder / "journal.sqlite").unlink()
    (host.folder / "proc/sys/kernel/random/boot_id").unlink()
    out = host.run(host.config(), "--windows", "1")
    assert out.returncode == 3 and "boot_id" in out.stderr


def test_failures_that_may_be_over_the_next_time_have_another_code(host: Host) -> None:
    out = host.run(host.config(), "--windows", "2", "--audit", "/dev/full")
    assert out.returncode == 1 and "audit log: cannot be written" in out.stderr


def test_the_log_of_several_starts_replays(host: Host, load: Load) -> None:
    load(40.0, 100_000_000)
    audit, effective = host.folder / "audit.jsonl", host.folder / "effective.json"
    config = host.config(flags=NO_CHANGES)
    config["options"]["release_on_disable"] = False
    arguments = ("--audit", str(audit), "--config-output", str(effective))
    for windows in ("6", "5"):
        assert host.run(config, "--windows", windows, *arguments).returncode == 0
        audit.write_bytes(audit.read_bytes() + b'{"config":"00')  # the next one died in the middle of a line
    config["options"]["persistence"] = 2
    assert host.run(config, "--windows", "3", *arguments).returncode == 0
    log = audit.read_text(encoding="utf-8")
    replay = gs.control.replay_audit(log, effective.read_text(encoding="utf-8"))
    assert replay.first_difference == -1 and replay.windows >= 14
    assert '{"record":"release"}' in log
    assert '{"record":"outcome","kind":"throttle_io","target":"T2","status":"ok"}' in log
    signals = host.folder / "dry.jsonl"
    config.pop("live")
    for _ in range(2):
        dry = host.run(config, "--dry-run", "--signals", str(audit), "--audit", str(signals))
        assert dry.returncode == 2 and "line" in dry.stderr  # torn lines are told
    whole = "".join(f"{line}\n" for line in log.splitlines() if not line.startswith('{"config":"00{')
                    and line != '{"config":"00')  # fmt: skip
    audit.write_text(whole, encoding="utf-8")
    signals.unlink()
    for _ in range(2):
        assert host.run(config, "--dry-run", "--signals", str(audit), "--audit", str(signals)).returncode == 0
    config["flags"]["dry_run"] = True
    again = gs.control.replay_audit(signals.read_text(encoding="utf-8"), config)
    assert (again.first_difference, again.windows) == (-1, 2 * replay.windows)
    signals.write_text("", encoding="utf-8")
    host.write("config.json", json.dumps(config))
    assert cli.main(["replay-audit", str(signals), "--config", str(host.folder / "config.json")]) == 1


def test_one_controller_per_host_and_dry_runs_beside_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.borrow_programs(monkeypatch)
    config = host.config()
    config["live"]["lock_wait_s"] = 0
    other = json.loads(json.dumps(config))
    other["live"]["journal"] = str(host.folder / "other.sqlite")
    with gs.host.Controller(config) as first:
        first.start()
        with pytest.raises(gs.BackendError, match="another controller has these control groups"):
            gs.host.Controller(other).start()
        with gs.host.Controller({**config, "flags": {"dry_run": True}}) as beside:
            beside.start()
            assert beside.status()["dry_run"]
        assert gs.host.Controller(config).status()["running"]
    status = gs.host.Controller(config).status()
    assert not status["running"] and status["instances"] == {"T1": "GPU 0 2g at 0"}
    with gs.host.Controller(other) as second:
        second.start()


def test_a_program_of_the_tenant_that_outlives_the_controller_is_waited_for(
    host: Host, load: Load
) -> None:
    load(40.0)
    moves = host.folder / "moves"
    host.script("move-t1", f'echo "start $@" >> "{moves}"; sleep 8; echo "end $@" >> "{moves}"')
    config = host.config(flags=NO_GUARDS)
    running = host.start(config)
    wait_for(lambda: moves.exists() and host.journal().program()[0] > 0)
    kill(running)
    config["live"]["lock_wait_s"] = 0
    early = host.run(config, "--windows", "0")
    assert early.returncode == 1 and "is running (process " in early.stderr
    config["live"]["lock_wait_s"] = 30
    host.start_again(config)
    words = [line.split()[0] for line in host.read("moves").splitlines()]
    assert words == ["start", "end"] * (len(words) // 2)
    host.require_known()


def test_a_caller_that_ignores_sigchld(host: Host) -> None:
    command, environment = host.command(host.config(), "--windows", "1")
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    program = [sys.executable, "-c", f"{ignore}; os.execv(sys.argv[1], sys.argv[1:])", *command]
    out = subprocess.run(program, env=environment, text=True, capture_output=True, timeout=60, check=False)
    assert out.returncode == 0 and "GPU 0: 2 instances by nvidia-smi" in out.stdout
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(gs.BackendError, match="SIGCHLD is ignored"):
            gs.host.Controller(host.config()).start()
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mig": "x"}, "/live/mig: 'x'; expected none, nvidia-smi or nvml"),
        ({"journal": ""}, "/live/journal: missing"),
        ({"surprise": 1}, "/live/surprise: unknown field"),
        ({"pci": ["a"]}, "/live/pci: 1 elements"),
        ({"mig": "nvml"}, "/live/nvml: false"),
        ({"metrics": "9400"}, "/live/metrics: '9400'; expected host:port"),
        ({"tenants": {}}, "/live/tenants/T1/latency: missing"),
        ({"tenants": {"T9": {}}}, "name of a tenant"),
        ({"tenants": {"T1": {"latency": {"file": "a", "socket": "b"}}}}, "exactly one of"),
        ({"tenants": {"T1": {"latency": {"prometheus": "a"}}}}, "/latency/metric: missing"),
        ({"tenants": {"T2": {"cgroup": "../x"}}}, "a folder below"),
        ({"tenants": {"T2": {"disks": ["sda"]}}}, "major:minor"),
        ({"tenants": {"T2": {"disks": ["a:b c=d"]}}}, "major:minor"),
        ({"tenants": {"T1": {"cgroup": "t"}, "T2": {"cgroup": "t/x"}}}, "a group of its own"),
        ({"command_limit_s": 0}, "/live/command_limit_s: 0; expected a number above 0 and at most 600"),
        ({"layout_every": 0}, "/live/layout_every: 0; expected an integer from 1 to 1000"),
        ({"numa_disks": [[], []]}, "at most one per NUMA node"),
        ({"root_nics": [[], [], []]}, "at most one per PCIe root"),
        (
            {"admission": {"capacity": -1}},
            "/live/admission/capacity: -1; expected an integer from 0 to 100000",
        ),
        ({"admission": {"stop": []}}, "/live/admission"),
    ],
)
def test_bad_configurations(host: Host, change: dict[str, Any], message: str) -> None:
    config = host.config()
    config["live"].update(change)
    with pytest.raises(gs.InvalidInput) as caught:
        gs.host.Controller(config)
    assert message in str(caught.value)


def test_recorded_signals_need_a_dry_run(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    config = host.config()
    del config["live"]
    host.write("config.json", json.dumps(config))
    assert cli.main(["control", "--config", str(host.folder / "config.json")]) == 2
    assert "a section `live`" in capsys.readouterr().err
    with pytest.raises(gs.InvalidInput, match="/live: missing"):
        gs.host.Controller(config)


def test_the_schema_has_the_fields_of_the_reader(host: Host) -> None:
    checks = validator("control.v1")
    checks.validate(host.config())

    def accepted(config: dict[str, Any]) -> bool:
        try:
            gs.host.Controller(config)
        except gs.InvalidInput:
            return False
        return True

    # Lengths and names in these are seen by the reader alone.
    reader = "pci numa_disks root_nics admission tenants mig journal metrics".split()
    for name, field in checks.schema["$defs"]["live"]["properties"].items():
        ends = [field[b] for b in ("minimum", "maximum", "default") if b in field]
        for value in (*ends, 0, -1, 1e9, "", "x", [1]):
            config = host.config()
            config["live"][name] = value
            valid = checks.is_valid(config)
            assert valid == accepted(config) or (valid and name in reader), (name, value)


def test_newcomers_are_admitted_and_started(
    host: Host, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.borrow_programs(monkeypatch)
    host.script("start", f'echo "$@" >> "{host.folder}/started"; [ "$1" != 13 ]')
    config = host.config(flags=NO_CHANGES)
    config["live"]["admission"] = {"capacity": 2, "start": ["start", "{id}", "{gpu}", "{profile}", "{slice}"]}
    audit = host.folder / "audit.jsonl"
    controller = gs.host.Controller(config, audit=str(audit))
    controller.start()
    with pytest.raises(gs.InvalidInput, match="no window yet"):
        controller.offer(gs.control.Newcomer(id=1))
    load(8.0)

    def window() -> list[str]:
        time.sleep(0.1)
        return controller.step()

    for _ in range(10):
        window()
    answer = controller.offer(gs.control.Newcomer(id=7, profile="1g"))
    assert answer.verdict == "admitted" and answer.place is not None
    assert host.read("started").splitlines() == [f"7 {answer.place.gpu} 1g {answer.place.slice}"]
    # One in a window; the next comes with the next one, the third is one too many.
    verdicts = [controller.offer(gs.control.Newcomer(id=n)).verdict for n in (8, 13, 9)]
    assert verdicts == ["queued", "queued", "rejected"] and [n.id for n in controller.waiting] == [8, 13]
    assert controller.take_answers() == []
    said = window() + window()
    assert [(a.newcomer.id, a.verdict, a.place is None) for a in controller.take_answers()] == [
        (8, "admitted", False),
        (13, "rejected", True),  # its program failed
    ]
    assert any(line.startswith("newcomer 8: admitted, GPU ") for line in said)
    assert "program 'start' ended with code 1" in said and "newcomer 13: rejected" in said
    assert not controller.waiting and not controller.withdraw(8)
    controller.release()
    assert controller.offer(gs.control.Newcomer(id=21)).verdict == "queued"
    assert controller.withdraw(21)
    log = audit.read_text(encoding="utf-8")
    records = [json.loads(line) for line in log.splitlines() if line.startswith('{"record":"admission"')]
    assert [(r["id"], r["verdict"]) for r in records] == [
        (7, "admitted"), (8, "queued"), (13, "queued"), (9, "rejected"), (8, "admitted"), (13, "rejected"),
            (21, "queued"),
    ]  # fmt: skip
    assert records[0]["gpu"] == answer.place.gpu and "gpu" not in records[1]
    assert gs.control.replay_audit(log, controller.config).first_difference == -1


def test_nobody_is_admitted_in_a_dry_run(
    host: Host, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.borrow_programs(monkeypatch)
    controller = gs.host.Controller(host.config(flags={"dry_run": True}))
    controller.start()
    load(8.0)
    for _ in range(10):
        time.sleep(0.1)
        controller.step()
    assert controller.offer(gs.control.Newcomer(id=1)).verdict == "queued"
    time.sleep(0.1)
    controller.step()
    assert controller.take_answers() == [] and len(controller.waiting) == 1


def test_a_number_of_windows_is_checked_before_the_start(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.write("config.json", json.dumps(host.config()))
    assert cli.main(["control", "--config", str(host.folder / "config.json"), "--windows", "-1"]) == 2
    assert capsys.readouterr() == ("", "gpusched: --windows: -1; expected at least 0\n")


def test_the_loop_from_python(host: Host, load: Load) -> None:
    load(40.0, 100_000_000)
    config = host.config(flags=NO_CHANGES)
    config["live"]["mig"] = "none"
    with gs.host.Controller(config) as controller:
        with pytest.raises(gs.InvalidInput, match="windows: -1; expected at least 0"):
            controller.run(windows=-1)
        lines: list[str] = []
        assert controller.run(windows=10, say=lines.append) == 10
        assert any(line.startswith("window ") for line in lines)

        def full(line: str) -> None:
            raise OSError("no space left")

        controller.resume()
        with pytest.raises(OSError, match="no space left"):
            controller.run(windows=20, say=full)
        assert any("-> disabled" in line for line in controller.step())  # limits have ended all the same
        controller.stop(signal.SIGTERM, None)  # as a handler
        assert controller.run() == 0
