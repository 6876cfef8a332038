# SPDX-License-Identifier: Apache-2.0
"""What every long call promises: no interpreter lock, progress, Ctrl-C."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest

# A call that would run for a very long time.
ENDLESS = "gs.consolidate(cluster, preset='best', depth=16, rounds=10**6, polish_time=3600)"


@pytest.fixture(scope="module")
def packed() -> gs.Cluster:
    return gs.sim.generate_cluster(nodes=1000, layout="packed", seed=1)


def test_other_threads_run_meanwhile(packed: gs.Cluster) -> None:
    """A Python thread counts while the algorithm works. With the lock held, it would not get to."""
    counts: list[float] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counts.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    gs.consolidate(packed, preset="best", threads=1, polish_time=0.3)
    end = time.perf_counter()
    done.set()
    counter.join()
    inside = [t for t in counts if start + 0.02 < t < end - 0.02]
    assert end - start > 0.1
    assert len(inside) > 20 * (end - start)


def test_calls_from_several_threads_agree(small: gs.Cluster) -> None:
    expected = gs.consolidate(small, threads=1)
    plans: list[gs.Plan] = []
    threads = [
        threading.Thread(target=lambda: plans.append(gs.consolidate(small, threads=1))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert plans == [expected] * 4


def test_progress_is_reported(packed: gs.Cluster) -> None:
    seen: list[tuple[str, int, int]] = []
    gs.consolidate(packed, preset="best", polish_time=0.3, progress=lambda *report: seen.append(report))
    assert seen
    assert all(phase and done >= 0 and total >= 0 for phase, done, total in seen)
    seen.clear()
    gs.consolidate(packed, progress=lambda *report: seen.append(report))  # too short for a second report
    assert seen and seen[0][0]


def test_exceptions_in_progress_stop_the_call(packed: gs.Cluster) -> None:
    class Enough(Exception):
        pass

    error = Enough()

    def stop(phase: str, done: int, total: int) -> None:
        raise error

    start = time.perf_counter()
    with pytest.raises(Enough) as raised:
        gs.consolidate(packed, polish_time=60, progress=stop)
    assert raised.value is error
    assert time.perf_counter() - start < 10
    with pytest.raises(Enough):
        gs.consolidate(packed, progress=stop)


def test_progress_bars(packed: gs.Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    gs.consolidate(packed, preset="fast")
    assert capsys.readouterr() == ("", "")  # silence is the default
    gs.consolidate(packed, preset="best", polish_time=0.3, progress=True)
    assert capsys.readouterr().err


def test_progress_without_tqdm(
    packed: gs.Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    gs.consolidate(packed, preset="best", polish_time=0.3, progress=True)
    assert "%" in capsys.readouterr().err


def test_progress_must_be_callable(tiny: gs.Cluster) -> None:
    with pytest.raises(TypeError, match="progress"):
        gs.consolidate(tiny, progress=3)  # type: ignore[arg-type]


PACKED = "cluster = gs.sim.generate_cluster(nodes=2000, layout='packed', seed=1)"
spec = importlib.util.spec_from_file_location(
    "interrupt", Path(__file__).parents[3] / "benchmarks" / "package" / "interrupt.py"
)
assert spec is not None and spec.loader is not None
interrupt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(interrupt)


def stops_soon(call: str, setup: str = PACKED) -> bool:
    """Ctrl-C raises within a second, in one of three tries: the machine may be busy."""
    return any(interrupt.milliseconds(setup, call, 0.5) < 1000 for _ in range(3))


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("call", "setup"),
    [
        (ENDLESS[:-1] + ", threads=1)", PACKED),
        (ENDLESS[:-1] + ", threads=2)", PACKED),
        # Of two pools one is empty soon: then the calling thread only waits for the other's.
        interrupt.CALLS["consolidate, two pools"][::-1],
        interrupt.CALLS["preempt"][::-1],
        ("[gs.sim.generate_cluster(nodes=10**5) for _ in range(100)]", ""),
        ("[gs.consolidation.bound(cluster, 'lp') for _ in range(10**4)]", PACKED),
    ],
)
def test_ctrl_c_stops_calls_soon(call: str, setup: str) -> None:
    assert stops_soon(call, setup)


def write_openb(folder: Path, nodes: int, pods: list[str]) -> tuple[str, str]:
    """The paths of lists of as many nodes with 8 GPUs, and of these pods."""
    paths = str(folder / "nodes.csv"), str(folder / "pods.csv")
    rows = [f"n{i},96000,100000,8,T4" for i in range(nodes)]
    Path(paths[0]).write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *rows, ""]))
    rows = [f"p{i},{pod}" for i, pod in enumerate(pods)]
    Path(paths[1]).write_text("\n".join(["name,cpu_milli,memory_mib,num_gpu,gpu_milli", *rows, ""]))
    return paths


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_stops_a_replay_soon(tmp_path: Path) -> None:
    """Every arrival asks for a shape of its own, so that a policy must look at all nodes for each."""
    lists = write_openb(tmp_path, nodes=20000, pods=[f"{i},1000,1,1000" for i in range(20000)])
    setup = f"trace = gs.io.read_openb(*{lists})"
    assert stops_soon("gs.sim.replay(trace, placement='gpu_packing')", setup)


def test_a_handler_that_does_not_raise_does_not_stop(packed: gs.Cluster) -> None:
    seen: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        plan = gs.consolidate(packed, preset="best", polish_time=0.4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert seen == [signal.SIGALRM] and plan.stop_reason != "cancelled"


def test_policies_run_with_the_lock_and_progress(tmp_path: Path) -> None:
    """A Python policy and a progress function in the same call do not block each other."""
    trace = gs.io.read_openb(*write_openb(tmp_path, nodes=50, pods=["1000,1000,1,1000"] * 300))
    reports: list[Any] = []

    def policy(cluster: gs.Cluster, task: gs.Task) -> str:
        time.sleep(0.001)
        return str(cluster.nodes[int(cluster.nodes.gpu_free_milli.argmax())].name)

    result = gs.sim.replay(trace, placement=policy, progress=lambda *report: reports.append(report))
    assert result.unplaced == [] and reports
