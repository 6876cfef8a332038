# SPDX-License-Identifier: Apache-2.0
"""The shell script of a plan, run with a kubectl that refuses, breaks off and dies; tests/kubernetes has a
real one.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from messages import mentions

FAKE = Path(__file__).resolve().parents[1] / "fake_kubectl.py"


def move(task: str, source: str, target: str, wave: int = 0) -> dict[str, Any]:
    return {"task": f"ml/{task}", "from": source, "to": target, "gpus": [], "wave": wave}


def plan(*moves: dict[str, Any], vacated: tuple[str, ...] = ("n0", "n1"), **fields: Any) -> dict[str, Any]:
    waves = 1 + max((one["wave"] for one in moves), default=-1)
    return {
        "format": "gpusched.plan", "version": 1, "waves": waves, "moves": list(moves),
        "vacated_nodes": list(vacated), "evictions": [], "placements": [], **fields,
    }  # fmt: skip


PLAN = plan(move("db-0", "n0", "n5"), move("web-a", "n0", "n5"), move("web-b", "n1", "n5", 1))
TEMPORARY = [
    "The connection to the server was refused",
    "etcdserver: leader changed",
    "http2: client connection lost",
    "dial tcp: connect: no route to host",
    "dial tcp: connect: network is unreachable",
    "Error from server (BadGateway)",
    "net/http: TLS handshake timeout",
    "unexpected EOF",
]
LARGEST_FIRST = ["u-web-a", "u-db-0", "u-web-b"]  # a batch, then the second of an owner


def pod(node: str, owner: str, gpus: int = 1, **more: Any) -> dict[str, Any]:
    created = "2025-01-01T00:00:00Z"
    return {"node": node, "owner": owner, "gpus": gpus, "ready": bool(node), "created": created, **more}


class Case:
    """A plan's script and the cluster that its kubectl works on."""

    def __init__(self, folder: Path, plan: dict[str, Any] = PLAN, **state: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.script, self.file = folder / "plan.sh", folder / "cluster"
        self.script.write_text(gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(plan)))
        pods = {
            "ml/web-a": pod("n0", "web", 2),
            "ml/db-0": pod("n0", "db", keeps_name=True),
            "ml/agent-0": pod("n0", "agent", 0, kind="DaemonSet"),
            "ml/web-b": pod("n1", "web", 2),
            "ml/web-c": pod("n2", "web", 2),
            "ml/spot": pod("n3", "spots", 8),
        } | state.pop("pods", {})
        for name, one in pods.items():
            one.setdefault("uid", "u-" + name.split("/")[1])
        nodes = {f"n{i}": {"gpus": 8, "unschedulable": i == 1, "mark": "", "version": 1} for i in range(6)}
        for node, gpus in state.pop("room", {}).items():
            nodes[node]["gpus"] = gpus
        self.write({"pods": pods, "nodes": nodes, "evicted": [], "lands": [], "log": [], **state})

    def read(self) -> dict[str, Any]:
        return ast.literal_eval(self.file.read_text())

    def write(self, state: dict[str, Any]) -> None:
        self.file.write_text(repr(state))

    def change(self, **fields: Any) -> None:
        self.write(self.read() | fields)

    def evicted(self) -> list[str]:
        return self.read()["evicted"]

    def cordoned(self) -> list[str]:
        return [name for name, node in self.read()["nodes"].items() if node["unschedulable"]]

    def command(self, *arguments: str, shell: str = "sh", **environment: str) -> dict[str, Any]:
        settings = {
            "KUBECTL": f"{sys.executable} -IS {FAKE} {self.file}", "GPUSCHED_POLL_S": "0.1",
            "GPUSCHED_WAIT_S": "60", "GPUSCHED_LEASE_S": "20", **environment,
        }  # fmt: skip
        command = [*shell.split(), str(self.script), *arguments]
        return {"args": command, "env": os.environ | settings, "start_new_session": True, "text": True}

    def run(self, *arguments: str, answer: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments, **environment)
        return subprocess.run(**command, input=answer, capture_output=True, check=False, timeout=300)

    def go(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(*arguments, GPUSCHED_YES="1", **environment)


def assert_carried_out(case: Case) -> None:
    assert case.evicted() == LARGEST_FIRST  # each once, and no other
    assert case.cordoned() == ["n0", "n1"]


def assert_undone(case: Case) -> None:
    assert case.run("undo").returncode == 0
    state = case.read()
    assert case.cordoned() == ["n1"] and state["lease"] is None
    assert not any(node["mark"] for node in state["nodes"].values())


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_a_plan_is_carried_out(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"there is no {shell}")
    case = Case(tmp_path)
    run = case.run(shell=shell, answer="y\n")
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert_carried_out(case)
    assert run.stdout.startswith("Context prod.\n")
    assert "\nWhere the plan takes them from: 3 of 3 pods.\n" in run.stdout
    assert mentions(run.stdout, "Evicts 3 pods of 2 owners in 1 namespace, 5 GPUs")
    assert mentions(run.stdout, "evicted ml/web-a from n0 the plan wants n5")
    assert mentions(run.stdout, "Vacated undo: n0 n1") and "The plan is carried out." in run.stdout
    log = case.read()["log"]
    cordons = [i for i, call in enumerate(log) if call.startswith("cordon ")]
    listing = next(i for i, call in enumerate(log) if "pods" in call)
    assert [log[i] for i in cordons] == ["cordon n0 n1"] and cordons[0] < listing  # at once, and first
    again = case.go()
    assert again.returncode == 0 and "evicted" not in again.stdout
    assert_carried_out(case)
    assert_undone(case)


@pytest.mark.parametrize(
    ("state", "environment"),
    [
        ({"busy": 4}, {}),
        ({"down": TEMPORARY}, {}),
        ({"conflicts": 3}, {}),
        ({"slow": 3}, {}),
        ({"wants": {"web": 2}}, {}),  # scaled down meanwhile
        ({"owners": {"db": None}, "wants": {"db": 0}}, {}),  # deleted meanwhile
        ({"lands": ["n2", "n2", "n5"]}, {}),  # elsewhere than planned
        ({"pods": {"ml/waits": pod("", "job", stuck=True)}}, {}),
        ({}, {"GPUSCHED_AT_ONCE": "1"}),
    ],
)
def test_it_copes_with(state: dict[str, Any], environment: dict[str, str], tmp_path: Path) -> None:
    case = Case(tmp_path, **state)
    run = case.go(**environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert sorted(case.evicted()) == sorted(LARGEST_FIRST) and case.cordoned() == ["n0", "n1"]
    assert_undone(case)


@pytest.mark.parametrize(
    ("state", "evicted", "left_out", "says"),
    [  # (what is wrong, evictions, nodes that are given up, words)
        ({"forbidden": ["ml/db-0"]}, ["u-web-a", "u-web-b"], ["n0"], "refused for 1 s"),
        ({"pods": {"ml/new": pod("n1", "")}}, ["u-web-a", "u-db-0"], ["n1"], "Not in the plan ml/new"),
        ({"pods": {"ml/new": pod("n1", "new", kind="Job")}}, ["u-web-a", "u-db-0"], ["n1"],
         "Not in the plan ml/new"),
        ({"pods": {"ml/new": pod("n1", "new", odd="~")}}, ["u-web-a", "u-db-0"], ["n1"],
         "Not in the plan ml/new"),
        ({"pods": {"ml/new": pod("n1", "new", odd="!")}}, ["u-web-a", "u-db-0"], ["n1"],
         "Not in the plan ml/new"),
        ({"pods": {"ml/new": pod("n1", "new", 9)}}, ["u-web-a", "u-db-0"], ["n1"], "no open node takes it"),
        ({"pods": {"ml/db-0": pod("n0", "")}}, ["u-web-b"], ["n0"], "Without a controller ml/db-0"),
        ({"pods": {"ml/db-0": pod("n0", "db", odd="~@")}}, ["u-web-b"], ["n0"],
         "An annotation protects them ml/db-0"),
        # Room for one of the two on n2: nothing is evicted from the node that keeps its pod.
        ({"room": {"n2": 5, "n3": 8, "n4": 0, "n5": 0}}, ["u-web-a", "u-db-0"], ["n1"],
         "no open node takes it"),
        ({"pods": {"ml/web-a": pod("n0", "web", 9)}}, ["u-web-b"], ["n0"], "no open node takes it"),
        # A pod with constraints that the script does not judge goes to the node of the plan only.
        ({"pods": {"ml/web-a": pod("n0", "web", 2, odd="!")}, "room": {"n5": 1}}, ["u-web-b"], ["n0"],
         "no open node"),
        # A stranger took the room: the replacement gets a node back. If it does not start there, no other
        # node follows.
        ({"lands": ["", "n5", "n5"]}, ["u-web-a", "u-db-0"], ["n1"], "pending: ml/web-a-1"),
        ({"breaks": ["ml/pdb"]}, LARGEST_FIRST, [], "Disruption budgets that are broken now: ml/pdb"),
        ({"refusal": "This pod has more than one PodDisruptionBudget"}, [], ["n0", "n1"], "more than one"),
    ],
)  # fmt: skip
def test_nodes_are_left_out_alone(
    state: dict[str, Any], evicted: list[str], left_out: list[str], says: str, tmp_path: Path
) -> None:
    case = Case(tmp_path, **state)
    run = case.go(GPUSCHED_WAIT_S="1")
    said = run.stdout + run.stderr
    assert run.returncode == (1 if left_out == ["n0", "n1"] else 3), said
    assert case.evicted() == evicted, said
    assert case.cordoned() == sorted({"n0", "n1"} - set(left_out) | {"n1"}), said
    assert mentions(said, says), said
    assert "The plan is carried out.\n" not in said
    assert_undone(case)


@pytest.mark.parametrize(
    ("state", "answers", "environment", "evicted"),
    [
        ({}, "", {}, []),
        ({}, "n\n", {}, []),
        ({}, "s\n", {}, []),
        ({"pods": {"ml/new": pod("n1", "")}}, "", {}, []),
        ({"pods": {"ml/new": pod("n1", "")}}, "s\n", {}, []),
        ({"pods": {"ml/new": pod("n1", "")}}, "y\ny\n", {}, ["u-web-a", "u-db-0"]),
        ({"pods": {"ml/new": pod("n1", "new")}}, "", {}, []),
        ({"pods": {"ml/new": pod("n1", "new")}}, "y\n", {}, ["u-web-a", "u-db-0", "u-new", "u-web-b"]),
        ({"pods": {"ml/db-0": pod("n0", "")}}, "\n", {}, []),
        ({"pods": {"ml/db-0": pod("n0", "")}}, "y\ny\n", {}, LARGEST_FIRST),
        ({"pods": {"ml/db-0": pod("n0", "")}}, "y\n", {"GPUSCHED_BARE_PODS": "1"}, LARGEST_FIRST),
        # An annotation protects it; local data alone were known when the plan was made.
        ({"pods": {"ml/db-0": pod("n0", "db", odd="~@")}}, "\n", {}, []),
        ({"pods": {"ml/db-0": pod("n0", "db", odd="~@")}}, "y\ny\n", {}, LARGEST_FIRST),
        ({"pods": {"ml/db-0": pod("n0", "db", odd="~@")}}, "s\ny\n", {}, ["u-web-b"]),
        ({"pods": {"ml/db-0": pod("n0", "db", odd="~")}}, "y\n", {}, LARGEST_FIRST),
        ({"forbidden": ["ml/db-0"]}, "s\ny\n", {}, ["u-web-b"]),
        ({"forbidden": ["ml/db-0"]}, "n\n", {}, []),
    ],
)
def test_every_approval_is_asked_first(
    state: dict[str, Any], answers: str, environment: dict[str, str], evicted: list[str], tmp_path: Path
) -> None:
    case = Case(tmp_path, **state)
    run = case.run(answer=answers, **environment)
    assert case.evicted() == evicted, run.stdout + run.stderr
    if not evicted:
        assert run.returncode == 1 and case.cordoned() == ["n1"]
        assert "not approved" in run.stderr
    assert_undone(case)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_it_goes_on_after_being_killed_at_any_call(when: str, tmp_path: Path) -> None:
    whole = Case(tmp_path)
    assert whole.go().returncode == 0
    log = whole.read()["log"]
    changes = {
        number for number, call in enumerate(log, 1) if call.startswith(("create", "cordon", "patch node"))
    }
    for call in sorted({*changes, *range(1, len(log) + 1, 11)}):
        case = Case(tmp_path / f"{when}-{call}", kill={"call": call, "when": when})
        assert case.go().returncode == -9, call
        shutil.copy(case.script, other := case.script.with_name("elsewhere.sh"))  # nothing is kept beside it
        case.script = other
        if call % 2:
            run = case.go(GPUSCHED_LEASE_S="1")
            assert run.returncode == 0, (call, run.stdout, run.stderr)
            assert sorted(case.evicted()) == sorted(LARGEST_FIRST) and case.cordoned() == ["n0", "n1"]
        assert case.run("undo", GPUSCHED_LEASE_S="1").returncode == 0
        assert_undone(case)


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
def test_pods_that_come_before_the_cordons_leave_as_well(call: int, tmp_path: Path) -> None:
    case = Case(tmp_path, arrives={str(call): {"ml/new": {**pod("n1", "new"), "uid": "u-new"}}})
    run = case.run(answer="y\n")
    assert run.returncode == 0, run.stdout + run.stderr
    assert sorted(case.evicted()) == sorted([*LARGEST_FIRST, "u-new"])
    assert mentions(run.stdout, "not in the plan ml/new")
    assert_undone(case)


def test_only_pods_that_were_approved_leave(tmp_path: Path) -> None:
    """After an interruption, those that were named leave; later ones keep their nodes."""
    case = Case(tmp_path, pods={"ml/new": pod("n0", "new")}, kill={"call": 8, "when": "after"})
    assert case.go().returncode == -9 and len(case.evicted()) == 1
    state = case.read()
    state["pods"]["ml/late"] = pod("n1", "late") | {"uid": "u-late"}
    case.write(state | {"kill": None})
    run = case.go(GPUSCHED_LEASE_S="1")
    assert run.returncode == 3 and mentions(run.stdout, "left out: node n1"), run.stdout + run.stderr
    assert sorted(case.evicted()) == ["u-db-0", "u-new", "u-web-a"] and case.cordoned() == ["n0", "n1"]


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["skip"], {}),
        (["skip", "n5"], {}),
        (["undo", "typo"], {}),
        (["undo", "n0", "n5"], {}),
        (["check", "n0"], {}),
        (["run", "n0"], {}),
        (["nonsense"], {}),
        ([], {"GPUSCHED_WAIT_S": "abc"}),
        ([], {"GPUSCHED_WAIT_S": "0"}),
        ([], {"GPUSCHED_LEASE_S": "-1"}),
        ([], {"GPUSCHED_AT_ONCE": "1.5"}),
        ([], {"GPUSCHED_POLL_S": "1s"}),
    ],
)
def test_wrong_usage_changes_nothing(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    case = Case(tmp_path)
    run = case.go(*arguments, **environment)
    assert (run.returncode, run.stdout, case.read()["log"]) == (2, "", []) and run.stderr
    assert all(
        f"'{word}'" in run.stderr for word in [*arguments, *environment.values()][-1:] if word != "skip"
    )


def test_other_errors_stop_it(tmp_path: Path) -> None:
    case = Case(tmp_path, down=["nodes is forbidden: (Forbidden) at leader changed"])
    run = case.go()
    assert run.returncode == 1 and "(Forbidden)" in run.stderr and case.read()["clock"] == 1


def node_line(name: str, labels: str = "", gpus: int = 8, closed: str = "") -> str:
    return f"N|{name}|{closed}|True|pods=110,gpu/x={gpus},memory=16Gi,|name={name},{labels}|||u|1\n"


def pod_line(
    name: str, node: str, requests: str = " +gpu/x=1, ^ %", selector: str = "", anti: str = "",
        spread: str = "",
    labels: str = "",
) -> str:  # fmt: skip
    """A pod ml/p-1 is of an owner p and has the label app=p."""
    app = name.split("/")[1].rsplit("-", 1)[0]
    return (
        f"P|{name}|u-{name}|{node}|Running||2025|ReplicaSet/{app}/o-{app}|True|{requests}|{selector}||"
        f"|{anti}|{spread}||app={app},{labels}|\n"
    )


def decided(folder: Path, plan: dict[str, Any], nodes: list[str], pods: list[str]) -> str:
    """The script's next steps for these lines of its listings, within 5 s of processor time."""
    script = gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(plan)).removesuffix('main "$@"\n')
    script += 'ulimit -t 5\nrm -rf "$tmp"\ntmp=$1 nothing_evicted=0 started=2026-01-01T00:00:00Z\nview next\n'
    for name, text in {"plan.sh": script, "memo": "", "nodes": "".join(nodes), "pods": "".join(pods)}.items():
        (folder / name).write_text(text)
    run = subprocess.run(["sh", folder / "plan.sh", folder], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


OTHER = pod_line("ml/at-0", "n1")


@pytest.mark.parametrize(
    ("pod", "others", "labels", "gpus", "goes"),
    [  # (the pod on n0, others, labels of n1 and n2, GPUs of n1, whether n1 takes it; n2 is cordoned)
        # An init container runs alone, a sidecar beside all others and beside later init containers.
        ({"requests": " +gpu/x=1, ^ ^gpu/x=3, %"}, "", ("", ""), 3, True),
        ({"requests": " +gpu/x=1, ^ ^gpu/x=3, %"}, "", ("", ""), 2, False),
        ({"requests": " +gpu/x=1, ^ *gpu/x=2, ^gpu/x=1, %"}, "", ("", ""), 3, True),
        ({"requests": " +gpu/x=1, ^ *gpu/x=2, ^gpu/x=1, %"}, "", ("", ""), 2, False),
        ({"requests": " +gpu/x=1, ^ *gpu/x=1, ^gpu/x=2, %gpu/x=1,"}, "", ("", ""), 4, True),
        ({"requests": " +gpu/x=1, ^ *gpu/x=1, ^gpu/x=2, %gpu/x=1,"}, "", ("", ""), 3, False),
        ({"requests": " +memory=17179869184, ^ %"}, "", ("", ""), 8, True),
        ({"requests": " +memory=17G, ^ %"}, "", ("", ""), 8, True),
        ({"requests": " +memory=18G, ^ %"}, "", ("", ""), 8, False),
        ({"requests": " +memory=16777217Ki, ^ %"}, "", ("", ""), 8, False),
        # Selectors, also for the empty value and for a label that is missing.
        ({"selector": "&pool In a"}, "", ("pool=a,", ""), 8, True),
        ({"selector": "&pool In a"}, "", ("", ""), 8, False),
        ({"selector": "&pool In "}, "", ("pool=,", ""), 8, True),
        ({"selector": "&pool NotIn "}, "", ("pool=,", ""), 8, False),
        ({"selector": "&pool NotIn a"}, "", ("", ""), 8, True),
        # Its own anti-affinity, with selectors that name one value, several or none, and with namespaces.
        ({"anti": ";name^^&app In at"}, OTHER, ("", ""), 8, False),
        ({"anti": ";name^^&app In x at"}, OTHER, ("", ""), 8, False),
        ({"anti": ";name^^&app Exists"}, OTHER, ("", ""), 8, False),
        ({"anti": ";name^^&app NotIn at"}, OTHER, ("", ""), 8, True),
        ({"anti": ";name^^&app In at"}, pod_line("b/at-0", "n1"), ("", ""), 8, True),
        ({"anti": ";name^b,^&app In at"}, pod_line("b/at-0", "n1"), ("", ""), 8, False),
        ({"anti": ";name^*^&app In at"}, pod_line("b/at-0", "n1"), ("", ""), 8, False),
        ({"anti": ";zone^^&app In p"}, "", ("zone=a,", ""), 8, True),  # it does not avoid itself
        # The anti-affinity of others. A node without the label is in no domain.
        ({}, pod_line("ml/at-0", "n1", anti=";name^^&app In p"), ("", ""), 8, False),
        ({}, pod_line("ml/at-0", "n1", anti=";name^^&app NotIn p"), ("", ""), 8, True),
        ({}, pod_line("b/at-0", "n1", anti=";name^*^&app NotIn x"), ("", ""), 8, False),
        ({}, pod_line("ml/at-0", "n2", anti=";zone^^&app In p"), ("zone=a,", "zone=a,"), 8, False),
        ({}, pod_line("ml/at-0", "n2", anti=";zone^^&app In p"), ("zone=b,", "zone=a,"), 8, True),
        ({}, pod_line("ml/at-0", "n2", anti=";zone^^&app In p") + pod_line("ml/at-1", "n1",
         anti=";zone^^&app In p"),
         ("", "zone=a,"), 8, True),
        # Topology spread: n2 counts although it is cordoned.
        ({"spread": ";1^name^&app In p"}, pod_line("ml/p-2", "n1"), ("", ""), 8, False),
        ({"spread": ";2^name^&app In p"}, pod_line("ml/p-2", "n1"), ("", ""), 8, True),
        ({"spread": ";1^zone^&app In p"}, "", ("", "zone=a,"), 8, False),
        # A pod that waits may take the room; one that has no room there does not.
        ({}, pod_line("ml/waits-0", "", " +gpu/x=8, ^ %"), ("", ""), 8, False),
        ({}, pod_line("ml/waits-0", "", " +gpu/x=9, ^ %"), ("", ""), 8, True),
    ],
)  # fmt: skip
def test_a_pod_goes_if_an_open_node_takes_it(
    pod: dict[str, str], others: str, labels: tuple[str, str], gpus: int, goes: bool, tmp_path: Path
) -> None:
    nodes = [
        node_line("n0", closed="true"),
        node_line("n1", labels[0], gpus),
        node_line("n2", labels[1], 8, "true"),
    ]
    said = decided(
        tmp_path,
        plan(move("p-1", "n0", "n1"), vacated=("n0",)),
        nodes,
        [pod_line("ml/p-1", "n0", **pod), others],
    )
    assert said.startswith("evict|M|ml/p-1|" if goes else "full|u-ml/p-1|"), said


def test_one_look_at_a_thousand_nodes(tmp_path: Path) -> None:
    """8,000 pods, a third of them with anti-affinity; it took 15 s."""
    vacated = tuple(f"n{i}" for i in range(0, 1000, 5))
    nodes = [node_line(f"n{i}", f"zone=z{i % 4},", 9, "true" * (i % 5 == 0)) for i in range(1000)]
    pods = [
        pod_line(f"ml/a{i // 3}-{i}", f"n{i % 1000}", anti=f";name^^&app In a{i // 3}" * (i // 3 % 3 == 0))
        for i in range(8000)
    ]  # fmt: skip
    moves = [move(f"a{i // 3}-{i}", f"n{i % 1000}", "n1") for i in range(0, 8000, 5)]
    said = decided(tmp_path, plan(*moves, vacated=vacated), nodes, pods)
    assert said.count("evict|M|ml/a") >= 1, said


def test_a_node_that_was_uncordoned_meanwhile_takes_no_replacement(tmp_path: Path) -> None:
    full = {
        "ml/web-b": pod("n4", "web", 8),
        "ml/web-c": pod("n2", "web", 8),
        "ml/fills": pod("n5", "fills", 8),
    }
    case = Case(tmp_path, pods=full, uncordons={"6": "n1"})
    run = case.go(GPUSCHED_WAIT_S="1")
    assert case.evicted() == [] and run.returncode == 3, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("state", "code", "evicted", "says"),
    [
        # It was not ready before either.
        ({"pods": {"ml/web-d": pod("n5", "web", unready=True) | {"ready": False}}}, 0, LARGEST_FIRST,
         "carried out"),
        # A finalizer keeps it for ever: its node is given up once, and the rest goes on.
        ({"pods": {"ml/db-0": pod("n0", "db", leaving="2026")}}, 3, ["u-web-a", "u-web-b"],
         "left out: node n0"),
        # Its owner counts without the pod that the plan evicts for good.
        ({"plan": plan(move("web-a", "n0", "n5"), vacated=("n0",), evictions=["ml/web-b"]),
         "wants": {"web": 2},
          "pods": {"ml/db-0": pod("n4", "db")}}, 0, ["u-web-b", "u-web-a"], "carried out"),
    ],
)  # fmt: skip
def test_it_expects_the_pods_that_were_there(
    state: dict[str, Any], code: int, evicted: list[str], says: str, tmp_path: Path
) -> None:
    case = Case(tmp_path, **state)
    run = case.go(GPUSCHED_WAIT_S="2")
    assert run.returncode == code and mentions(run.stdout, says), run.stdout + run.stderr
    assert case.evicted() == evicted, run.stdout


def test_a_pending_pod_that_is_gone_is_no_success(tmp_path: Path) -> None:
    placed = plan(vacated=(), placements=[{"task": "ml/big", "node": "n2", "gpus": []}])
    run = Case(tmp_path, plan=placed).go(GPUSCHED_WAIT_S="1")
    assert run.returncode == 1 and mentions(run.stdout, "pending pod ml/big")


def test_what_it_records_may_be_longer_than_an_argument(tmp_path: Path) -> None:
    names = [f"p-{number}" for number in range(25)]
    pods = {f"ml/{name}": pod("n0", name + "x" * 3000, 0) for name in names}
    pods |= {f"ml/{name}": pod("n4", "done") for name in ("web-a", "web-b", "db-0")}
    case = Case(tmp_path, plan=plan(*(move(name, "n0", "n5") for name in names), vacated=("n0",)), pods=pods)
    run = case.go()
    assert run.returncode == 0, (run.stdout + run.stderr)[-500:]
    assert len(case.evicted()) == 25 and len(case.read()["lease"]["before"]) > 131072


def test_two_copies_do_not_run_at_once(tmp_path: Path) -> None:
    case = Case(tmp_path, slow=4)
    first = subprocess.Popen(
        **case.command(GPUSCHED_YES="1", GPUSCHED_POLL_S="0.3"), stdout=subprocess.DEVNULL
    )
    while not case.read().get("lease"):
        assert first.poll() is None
    second = case.go(GPUSCHED_POLL_S="0.1")
    assert second.returncode == 1 and "carries out plan" in second.stderr
    assert first.wait(60) == 0
    assert sorted(case.evicted()) == sorted(LARGEST_FIRST)


def asked(case: Case, questions: int = 1, **environment: str) -> subprocess.Popen[str]:
    """A run that waits at this question; it got "y" for those before."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    run = subprocess.Popen(
        **case.command(**environment), **pipes,  # type: ignore[call-overload]
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert run.stdin and run.stdout
    for number in range(questions):
        if number:
            run.stdin.write("y\n")
            run.stdin.flush()
        said = ""
        while not said.endswith("anything else: stop. "):
            one = run.stdout.read(1)
            assert one, said
            said += one
    return run


@pytest.mark.parametrize(
    ("state", "questions", "answer", "evicted"),
    [
        ({}, 1, "y\n", []),
        ({}, 1, "n\n", []),
        ({}, 1, "", []),
        ({"pods": {"ml/db-0": pod("n0", "")}}, 1, "s\n", []),
        # A replacement stays pending.
        ({"lands": ["", "n5", "n5"]}, 2, "s\n", ["u-web-a", "u-db-0"]),
        ({"lands": ["", "n5", "n5"]}, 2, "w\n", ["u-web-a", "u-db-0"]),
    ],
)
def test_it_stops_if_another_copy_took_the_lock_during_a_question(
    state: dict[str, Any], questions: int, answer: str, evicted: list[str], tmp_path: Path
) -> None:
    case = Case(tmp_path, **state)
    run = asked(case, questions, GPUSCHED_WAIT_S="1")
    lease = case.read()["lease"]
    case.change(lease=lease | {"holder": "other", "version": lease["version"] + 1})
    _, error = run.communicate(answer, timeout=60)
    assert run.returncode == 1 and mentions(error, "other took the lock"), error
    assert case.evicted() == evicted and case.cordoned() == ["n0", "n1"]  # the other one needs them
    assert case.read()["lease"]["holder"] == "other"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    case = Case(tmp_path)
    run = asked(case)
    os.killpg(run.pid, number)
    _, error = run.communicate(timeout=60)
    assert run.returncode == 130 and mentions(error, "To remove the cordons undo"), error
    assert case.evicted() == [] and case.read()["lease"]["holder"] == ""
    assert_undone(case)


def test_a_pod_of_the_plan_that_went_to_another_vacated_node_leaves_as_well(tmp_path: Path) -> None:
    case = Case(tmp_path, pods={"ml/db-0": pod("n1", "db", kind="StatefulSet", keeps_name=True)})
    run = case.run(answer="y\n")
    assert run.returncode == 0, run.stdout + run.stderr
    assert mentions(run.stdout, "Evicts 3 pods") and mentions(run.stdout, "Vacated n0 n1")
    assert mentions(run.stdout, "not in the plan started on these nodes since: ml/db-0")
    assert sorted(case.evicted()) == sorted(LARGEST_FIRST) and case.cordoned() == ["n0", "n1"]
    assert_undone(case)


def test_another_plan_does_not_take_marked_nodes(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.go().returncode == 0
    other = plan(move("web-c", "n2", "n5"), vacated=("n2", "n1"))
    case.script.write_text(gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(other)))
    run = case.go()
    assert run.returncode == 1 and "node n1 belongs to plan" in run.stderr and case.evicted() == LARGEST_FIRST
    assert case.run("undo").returncode == 0
    assert case.cordoned() == ["n0", "n1"]  # those of the first plan


def test_nodes_can_be_skipped_and_undone_one_by_one(tmp_path: Path) -> None:
    case = Case(tmp_path, lands=["n5"])
    run = case.go("skip", "n0")
    assert run.returncode == 3 and case.evicted() == ["u-web-b"] and case.cordoned() == ["n1"]
    assert case.go().returncode == 0
    assert sorted(case.evicted()) == sorted(LARGEST_FIRST)
    assert case.run("undo", "n0").stdout.splitlines() == ["uncordoned n0"]
    assert_undone(case)


def test_undo_passes_over_nodes_that_were_removed(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.go().returncode == 0
    state = case.read()
    del state["nodes"]["n0"]
    case.write(state)
    assert case.run("undo", "n0").stdout.splitlines() == ["node n0 is gone"]
    assert case.go().returncode == 0
    assert_undone(case)


def test_a_node_may_be_removed_before_it_is_cordoned(tmp_path: Path) -> None:
    gone = {"ml/web-a": pod("n4", "web", 2), "ml/db-0": pod("n4", "db")}
    case = Case(tmp_path, pods=gone, removes={"4": "n0"})
    run = case.go()
    assert run.returncode == 0 and mentions(run.stdout, "gone: n0"), run.stdout + run.stderr
    assert case.evicted() == ["u-web-b"] and case.cordoned() == ["n1"]


def test_a_plan_for_another_cluster_changes_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, nodes={"x": {"gpus": 8, "unschedulable": False, "mark": "", "version": 1}})
    run = case.go()
    assert run.returncode == 1 and "are not in this cluster" in run.stderr
    assert case.cordoned() == [] and case.evicted() == []


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({}, ""),
        ({"pods": {"ml/db-0": pod("n4", "db")}}, "pod ml/db-0 is on n4 node of the plan n0"),
        ({"pods": {"ml/new": pod("n0", "db")}}, "pod ml/new on n0 is not in the plan"),
        ({"pods": {"ml/db-0": pod("n1", "db")}}, "pod ml/db-0 on n1 is not in the plan"),
        ({"forbidden": ["ml/web-b"]}, "Disruption budgets allow no eviction now: ml/web-b"),
    ],
)
def test_check_only_looks(state: dict[str, Any], says: str, tmp_path: Path) -> None:
    case = Case(tmp_path, **state)
    before = case.read()
    run = case.run("check")
    assert run.returncode == (3 if says else 0) and mentions(run.stdout, says)
    assert {**case.read(), "log": [], "clock": 0} == {**before, "log": [], "clock": 0}
    broken = case.run("check", KUBECTL="false")
    assert broken.returncode == 1 and not mentions(broken.stderr, "undo")  # it has set no cordons


@pytest.mark.parametrize("action", ["run", "check", "undo"])
def test_a_server_out_of_reach_ends_the_script_at_once(action: str, tmp_path: Path) -> None:
    refused = (
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
    )
    case = Case(tmp_path, unreachable=refused + "\n", down=[refused] * 100)
    run = case.run(action, GPUSCHED_WAIT_S="1")
    assert run.returncode == 1 and mentions(run.stderr, "API server localhost:8080 was refused")
    assert case.read()["log"] == []


def test_moves_from_nodes_that_stay(tmp_path: Path) -> None:
    """They are not made to empty nodes; in a plan without such nodes, their replacements do not come back."""
    moves = [move("web-c", "n2", "n5"), move("web-a", "n0", "n2", 1)]
    case = Case(tmp_path, plan=plan(*moves, vacated=("n0",)), pods={"ml/db-0": pod("n4", "db")})
    assert case.go().returncode == 0 and case.evicted() == ["u-web-a"]
    case = Case(tmp_path / "all", plan=plan(*moves, vacated=()), lands=["n5"])
    run = case.go()
    assert run.returncode == 0, run.stdout + run.stderr
    assert case.evicted() == ["u-web-c", "u-web-a"] and case.cordoned() == ["n1"]
    log = case.read()["log"]
    changes = [call for call in log if call.startswith(("cordon", "patch node"))]
    assert changes == ["cordon n0", "cordon n2", "patch node n2", "patch node n0"]
    assert log.index("cordon n2") < max(i for i, call in enumerate(log) if call.startswith("create"))


@pytest.mark.parametrize("seed", range(8))
def test_no_harm_on_random_clusters(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    vacated, pods = sorted(dice.sample([f"n{i}" for i in range(6)], 3)), {}
    room = {f"n{i}": 8 for i in range(6)}
    for number in range(14):
        gpus, node = dice.choice([1, 1, 2, 4]), dice.choice(list(room))
        if room[node] >= gpus:
            room[node] -= gpus
            pods[f"ml/p-{number}"] = pod(node, f"o{dice.randrange(5)}", gpus)
    target = next(node for node in room if node not in vacated)
    moves = [move(name[3:], one["node"], target) for name, one in pods.items() if one["node"] in vacated]
    case = Case(tmp_path, plan=plan(*moves, vacated=tuple(vacated)))
    case.change(pods={name: {**one, "uid": name} for name, one in pods.items()})
    run = case.go(GPUSCHED_WAIT_S="1")
    state = case.read()
    on = {one["node"] for one in state["pods"].values()}
    assert state.get("no_room", []) == [] and "" not in on, run.stdout
    assert set(state["evicted"]) <= {one["task"] for one in moves}
    assert (run.returncode == 0) == (not on & set(vacated)), run.stdout
    assert case.cordoned() == sorted({"n1"} | set(vacated) - on), run.stdout


MAKES_ROOM = plan(
    move("web-c", "n2", "n5"), vacated=(), evictions=["ml/spot"],
    placements=[{"task": "ml/big", "node": "n2", "gpus": []}, {"task": "ml/spot", "node": "n4", "gpus": []}],
)  # fmt: skip


def test_room_for_pending_pods(tmp_path: Path) -> None:
    """Evictions come first, nodes that pods leave are closed until all have left, then the pod starts."""
    room = {"n0": 3, "n1": 3, "n4": 3, "n5": 3}
    case = Case(tmp_path, plan=MAKES_ROOM, pods={"ml/big": pod("", "big", 8)}, lands=["", "n5"], room=room)
    run = case.go()
    assert run.returncode == 0, run.stdout + run.stderr
    assert case.evicted() == ["u-spot", "u-web-c"] and case.cordoned() == ["n1"]
    assert mentions(run.stdout, "ml/big is on") and mentions(run.stdout, "make room for replacements: 1")
    state = case.read()
    assert "ml/big" in state["pods"] and state["pods"]["ml/big"]["ready"]
    stuck = Case(
        tmp_path / "stuck", plan=MAKES_ROOM, pods={"ml/big": pod("", "big", 8, stuck=True)}, lands=["", "n5"]
    )
    run = stuck.go(GPUSCHED_WAIT_S="1")
    assert run.returncode == 3 and mentions(run.stdout, "ml/big is on no node the plan wants n2")


@pytest.mark.parametrize("when", ["before", "during the question", "after a kill"])
@pytest.mark.parametrize(
    ("node", "code", "says"), [("n4", 0, "ml/big is on n4"), (None, 1, "ml/big is gone")]
)
def test_no_pod_is_evicted_for_pods_that_no_longer_wait(
    when: str, node: str | None, code: int, says: str, tmp_path: Path
) -> None:
    case = Case(tmp_path, plan=MAKES_ROOM, pods={"ml/big": pod("", "big", 8, stuck=True)}, lands=["", "n5"])
    if when == "after a kill":
        assert case.run(answer="n\n").returncode == 1
        case.change(kill={"call": case.read()["clock"] + 12, "when": "after"})
        assert case.go().returncode == -9
        case.change(kill=None)
    evicted = ["u-spot"] if when == "after a kill" else []
    assert case.evicted() == evicted
    run = asked(case) if when == "during the question" else None
    pods = {name: one for name, one in case.read()["pods"].items() if name != "ml/big"}
    case.change(pods=pods | ({"ml/big": pod(node, "big", 8, uid="u-big")} if node else {}))
    if run is None:
        check = case.run("check")
        assert check.returncode == 3 and mentions(check.stdout, f"{says} not pending")
        done = case.go(GPUSCHED_WAIT_S="2", GPUSCHED_LEASE_S="1")
        said, returned = done.stdout + done.stderr, done.returncode
    else:
        said, returned = str(run.communicate("y\n", timeout=60)), run.returncode
    code = 3 if code and evicted else code  # in part
    assert (returned, case.evicted(), case.cordoned()) == (code, evicted, ["n1"]), said
    assert mentions(said, "Nothing is evicted")


def test_a_plan_without_steps_says_so(tmp_path: Path) -> None:
    run = Case(tmp_path, plan=plan(vacated=())).go()
    assert run.returncode == 0 and "no steps" in run.stdout and "carried out" not in run.stdout
