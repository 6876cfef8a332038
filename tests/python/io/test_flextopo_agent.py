# SPDX-License-Identifier: Apache-2.0
"""FlexTopo's agent: round trips of the object, what is published and when, failures, and `topology watch`."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli
from messages import mention, mentions, refuses

DATA = Path(os.environ.get("GPUSCHED_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))


class Machine:
    """A machine that can break, and pods on it."""

    def __init__(self, preset: str = "rtx4090x8") -> None:
        self.graph = gs.topology.HardwareGraph.preset(preset)
        self.pods: dict[str, Any] = {}
        self.published: list[dict[str, Any]] = []
        self.broken: str | None = None
        self.refuses = 0

    def read(self) -> Any:
        if self.broken:
            raise gs.BackendError(self.broken)
        return Reading(gs.topology.HardwareGraph(self.graph.vertices, self.graph.edges))

    def publish(self, document: dict[str, Any]) -> None:
        if self.refuses:
            self.refuses -= 1
            raise gs.BackendError("the server is busy")
        self.published.append(document)

    def agent(self) -> gs.topology.FlexTopoAgent:
        return gs.topology.FlexTopoAgent("node-1", self.read, self.publish, lambda: self.pods)

    def lose(self, gpu: int) -> None:
        """The driver no longer lists the GPU."""
        vertices, edges = self.graph.vertices, self.graph.edges
        gone = next(at for at, v in enumerate(vertices) if v["kind"] == "gpu" and v["id"] == gpu)
        kept = [at for at in range(len(vertices)) if at != gone]
        number = {at: new for new, at in enumerate(kept)}
        links = [(number[a], number[b], kind, gb_s) for a, b, kind, gb_s in edges if gone not in (a, b)]
        self.graph = gs.topology.HardwareGraph([vertices[at] for at in kept], links)


class Reading:
    def __init__(self, graph: gs.topology.HardwareGraph) -> None:
        self.graph = graph


class Steps:
    """Ends a loop after so many polls, and does something at some of them."""

    def __init__(self, polls: int, at: dict[int, Callable[[], object]] | None = None) -> None:
        self.polls, self.at, self.waited = polls, at or {}, []

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.at.get(len(self.waited), lambda: None)()
        return len(self.waited) >= self.polls


def attributes(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        node["attributes"] for node in document["spec"]["nodes"] if node["id"] == name
    )
    return found


def read_back(document: dict[str, Any], tmp_path: Path) -> gs.topology.HardwareGraph:
    path = tmp_path / "object.json"
    path.write_text(json.dumps(document))
    return gs.io.read_flextopo(path).graph


@pytest.mark.parametrize("preset", ["rtx4090x8", "a100x8", "h100x8"])
def test_an_object_is_read_back(preset: str, tmp_path: Path) -> None:
    graph = gs.topology.HardwareGraph.preset(preset)
    graph.allocate([1, 2], "team/pod")
    graph.set_failed(2)
    document = gs.io.flextopo_to_json(graph, "10.0.0.1")
    assert document["metadata"]["name"] == "10.0.0.1" and document["kind"] == "FlexTopo"
    back = read_back(document, tmp_path)
    gpus = [[v for v in of.vertices if v["kind"] == "gpu"] for of in (back, graph)]
    assert gpus[0] == gpus[1]
    assert (back.numa_nodes, back.sockets) == (graph.numa_nodes, graph.sockets)
    assert back.free_gpus == graph.free_gpus
    assert back.hardware()["numa_nodes"] == graph.hardware()["numa_nodes"]
    assert gs.io.flextopo_to_json(back, "10.0.0.1") == gs.io.flextopo_to_json(
        read_back(document, tmp_path), "10.0.0.1"
    )


def recorded() -> Iterator[Any]:
    folders = ("flextopo", "hwloc", "nvidia-smi-topo", "nccl-topo")
    files = [
        path for folder in folders if (DATA / folder).is_dir() for path in sorted((DATA / folder).iterdir())
    ]
    for path in files or [Path("none")]:
        yield pytest.param(path, id=path.name)


@pytest.mark.parametrize("path", list(recorded()))
def test_recorded_machines(path: Path, tmp_path: Path) -> None:
    if path.name == "none":
        pytest.skip("recorded machines are not here: set GPUSCHED_DATA")
    try:
        reading = gs.io.read_hardware(path)
    except (gs.InvalidInput, gs.BackendError) as error:
        pytest.skip(f"no machine: {error}")
    graph = reading.graph
    back = read_back(gs.io.flextopo_to_json(graph, "n"), tmp_path)
    assert [v for v in back.vertices if v["kind"] in ("gpu", "core", "core_group")] == [
        v for v in graph.vertices if v["kind"] in ("gpu", "core", "core_group")
    ]
    assert back.numa_nodes == graph.numa_nodes
    # The agent finds nothing to change in what it published itself.
    assert graph.reconcile(graph) == []


def test_only_changes_are_published() -> None:
    machine = Machine()
    agent = machine.agent()
    assert agent.check_hardware() == [] and agent.publish() and not agent.publish()
    machine.pods = {"team/a": {"gpus": [0, 1], "cores": [0]}, "team/b": {"cores": [9]}}
    agent.check_holders()
    assert agent.publish() and not agent.publish()
    last = machine.published[-1]
    assert attributes(last, "gpu-1") == {**attributes(last, "gpu-1"), "status": "used", "usedBy": "team/a"}
    assert attributes(last, "gpu-2")["status"] == "free"
    for kind, users in (
        ("core", {0: "team/a", 1: None, 9: "team/b"}),
        ("coregroup", {0: "team/a", 1: "team/b", 2: None}),
    ):
        assert {n: attributes(last, f"{kind}-{n}").get("usedBy") for n in users} == users
    machine.lose(1)
    assert agent.check_hardware() == [("gpu_failed", 1)] and agent.publish()
    last = machine.published[-1]
    assert attributes(last, "gpu-1")["status"] == "failed" and attributes(last, "gpu-1")["usedBy"] == "team/a"
    machine.pods = {}
    agent.check_holders()
    agent.publish()
    assert attributes(machine.published[-1], "gpu-0")["status"] == "free"
    assert attributes(machine.published[-1], "gpu-1")["status"] == "failed"
    assert len(machine.published) == 4


def test_gpus_by_uuid_and_unknown_gpus() -> None:
    graph = gs.topology.HardwareGraph.preset("a100x8")
    vertices = graph.vertices
    for vertex in vertices:
        if vertex["kind"] == "gpu":
            vertex["uuid"] = f"GPU-{vertex['id']}"
    machine = Machine()
    machine.graph = gs.topology.HardwareGraph(vertices, graph.edges)
    machine.pods = {"a": {"gpus": ["GPU-3"]}}
    agent = machine.agent()
    agent.check_hardware()
    agent.check_holders()
    assert agent.graph is not None and agent.graph.free_gpus == [0, 1, 2, 4, 5, 6, 7]
    for pods, told in (
        ({"b": {"gpus": [99]}}, "holders['b'].gpus: 99; expected"),
        ({"b": {"gpus": [1]}, "c": {"gpus": ["GPU-1"]}}, "holders['c'].gpus: 'GPU-1' is held by 'b'"),
        ({"b": [1]}, "holders['b']: [1]; expected gpus and cores"),
        ({"b": {"disks": [1]}}, "holders['b']: expected gpus and cores"),
        ([("b", 1)], "expected a dict by pod"),
    ):
        machine.pods = pods
        before = agent.graph.vertices
        with refuses(told):
            agent.check_holders()
        assert agent.graph.vertices == before
    with refuses("publish(): no machine was read yet"):
        machine.agent().publish()


def test_without_holders_the_first_holder_stays(tmp_path: Path) -> None:
    machine = Machine()
    machine.graph.allocate([5], "old")
    agent = gs.topology.FlexTopoAgent("n", machine.read, machine.publish)
    agent.check_hardware()
    agent.check_holders()
    agent.publish()
    assert read_back(machine.published[0], tmp_path).free_gpus == [0, 1, 2, 3, 4, 6, 7]


def test_the_loop_polls_holders_often_and_hardware_now_and_then() -> None:
    machine = Machine()
    told: list[str] = []

    def run_a_pod() -> None:
        machine.pods = {"a": {"gpus": [0]}}

    steps = Steps(12, {2: run_a_pod, 3: lambda: machine.lose(7)})
    machine.agent().run(interval_s=5, poll_s=1, stop=steps, tell=told.append)
    assert told == ["published node-1", "published node-1", "GPU 7: failed", "published node-1"]
    assert steps.waited == [1] * 12 and len(machine.published) == 3
    assert (
        attributes(machine.published[1], "gpu-0")["usedBy"] == "a"
        and attributes(machine.published[1], "gpu-7")["status"] == "free"
    )


def test_the_loop_goes_on_after_failures() -> None:
    machine = Machine()
    told: list[str] = []
    steps = Steps(
        20,
        {
            1: lambda: setattr(machine, "broken", "nvidia-smi: no answer"),
            8: lambda: setattr(machine, "broken", None),
            9: lambda: setattr(machine, "pods", {"a": {"gpus": [64]}}),
            10: lambda: (setattr(machine, "pods", {"a": {"gpus": [6]}}), setattr(machine, "refuses", 3)),
        },
    )
    machine.agent().run(interval_s=5, poll_s=1, stop=steps, tell=told.append)
    assert mention(
        told,
        [
            "published node-1",
            "hardware: nvidia-smi: no answer; the published object stays",
            "holders: holders['a'].gpus: 64; expected the published object stays",
            "publish: the server is busy; next attempt in 1 s",
            "publish: the server is busy; next attempt in 2 s",
            "publish: the server is busy; next attempt in 4 s",
            "published node-1",
        ],
    )
    machine.broken = "gone"
    with pytest.raises(gs.BackendError, match="gone"):
        machine.agent().run(stop=Steps(1))
    with refuses("poll_s: 9; expected more than 0, and at most interval_s"):
        machine.agent().run(interval_s=5, poll_s=9)


TOPO = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\t0-3\t0\nGPU1\tNV12\t X \t4-7\t1\n"


def test_watch_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine, out, holders = tmp_path / "topo.txt", tmp_path / "object.json", tmp_path / "holders.json"
    machine.write_text(TOPO)
    holders.write_text(json.dumps({"team/a": {"gpus": [1]}}))
    words = ["topology", "watch", str(machine), "--name", "node-1", "--once"]
    assert cli.main(words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert attributes(printed, "gpu-1")["status"] == "free"
    assert cli.main([*words, "--holders", str(holders), "-o", str(out)]) == 0
    assert capsys.readouterr().out == "published node-1\n"
    assert attributes(json.loads(out.read_text()), "gpu-1")["usedBy"] == "team/a"
    assert gs.io.read_flextopo(out).graph.free_gpus == [0]
    assert list(tmp_path.glob("*.new")) == []
    link = tmp_path / "link.json"
    link.symlink_to(out)
    assert cli.main([*words, "-o", str(link)]) == 0
    assert link.is_symlink() and attributes(json.loads(out.read_text()), "gpu-1")["status"] == "free"
    capsys.readouterr()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        text = pool.submit(pipe.read_text)
        assert cli.main([*words, "-o", str(pipe)]) == 0
        assert json.loads(text.result())["kind"] == "FlexTopo" and pipe.is_fifo()


def test_watch_with_kubectl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, seen = tmp_path / "topo.txt", tmp_path / "seen.json"
    machine.write_text(TOPO)
    tool = tmp_path / "bin" / "kubectl"
    tool.parent.mkdir()
    body = f"open({str(seen)!r}, 'w').write(' '.join(sys.argv[1:]) + chr(10) + sys.stdin.read())"
    tool.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    words = ["topology", "watch", str(machine), "--name", "node-1", "--once", "--kubectl"]
    assert cli.main(words) == 0
    arguments, document = seen.read_text().split("\n", 1)
    assert arguments == "apply --server-side --force-conflicts --field-manager=gpusched -f -"
    assert json.loads(document)["kind"] == "FlexTopo"
    tool.write_text(
        f"#!{sys.executable}\nimport sys\nsys.exit('error: the server could not find the requested "
        "resource')\n"
    )
    assert cli.main(words) == 2
    assert mentions(
        capsys.readouterr().err, "kubectl: error: the server could not find the requested resource"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(words) == 2
    assert "kubectl: cannot be run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["watch"], "expected either a FILE or --this-machine"),
        (["watch", "topo.txt", "--once"], "--name: missing; a FILE"),
        (["watch", "topo.txt", "--name", "a"], "expected --output, --kubectl, or --once"),
        (
            ["watch", "topo.txt", "--name", "a", "--once", "--interval-s", "3", "--poll-s", "2"],
            "--interval-s, --poll-s: --once",
        ),
        (
            ["watch", "topo.txt", "--name", "a", "--kubectl", "-o", "x.json"],
            "--output: published with kubectl; expected one of them",
        ),
        (["watch", "topo.txt", "--name", "A_B", "--once"], "name: 'A_B'; expected a name Kubernetes"),
        (["show", "topo.txt", "--once"], "--once: not an option of topology show"),
    ],
)
def test_mistakes(
    words: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topo.txt").write_text(TOPO)
    assert cli.main(["topology", *words]) == 2
    assert mentions(capsys.readouterr().err, told)
