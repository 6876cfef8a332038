# SPDX-License-Identifier: Apache-2.0
"""The shell script of a plan, run with a kubectl that refuses, breaks off and dies; tests/kubernetes has a
real one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from messages import mention, mentions

FAKE = Path(__file__).resolve().parents[1] / "fake_kubectl.py"
PLAN = {
    "format": "gpusched.plan",
    "version": 1,
    "waves": 2,
    "moves": [
        {"task": "ml/web-a", "from": "n0", "to": "n5", "gpus": [2], "wave": 0},
        {"task": "ml/db-0", "from": "n0", "to": "n6", "gpus": [], "wave": 1},
        {"task": "ml/web-b", "from": "n1", "to": "n6", "gpus": [], "wave": 1},
        {"task": "ml/web-c", "from": "n2", "to": "n5", "gpus": [], "wave": 1},
    ],
    "vacated_nodes": ["n0", "n1"],
    "evictions": ["ml/spot"],
    "placements": [{"task": "ml/big", "node": "n0", "gpus": []}],
}


class Case:
    """A plan's script and the cluster that its kubectl works on."""

    def __init__(self, folder: Path, plan: dict[str, Any] = PLAN, shell: str = "sh", **state: Any) -> None:
        self.script, self.file, self.shell = folder / "plan.sh", folder / "cluster.json", shell
        self.script.write_text(gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(plan)))

        def pod(uid: str, node: str, owner: str, **more: Any) -> dict[str, Any]:
            return {"uid": uid, "node": node, "owner": owner, "ready": bool(node), **more}

        pods = {
            "ml/web-a": pod("u-web-a", "n0", "web"),
            "ml/web-b": pod("u-web-b", "n1", "web"),
            "ml/web-c": pod("u-web-c", "n2", "web"),
            "ml/db-0": pod("u-db-0", "n0", "db", keeps_name=True),
            "ml/spot": pod("u-spot", "n3", "spots"),
            "ml/big": pod("u-big", "n0", "job"),
            "ml/bare": pod("u-bare", "n2", ""),
        }
        # By order of evictions: spot waits for room, the others land where the plan wants them.
        lands = ["", "n5", "n6", "n6", "n5"]
        self.write({"pods": pods, "cordoned": ["n1"], "evicted": [], "lands": lands, "log": [], **state})

    def read(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())

    def write(self, state: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(state))

    def change(self, **fields: Any) -> None:
        self.write(self.read() | fields)

    def run(self, *arguments: str, answer: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "KUBECTL": f"{sys.executable} -IS {FAKE} {self.file}",
            "GPUSCHED_POLL_S": "0",
            "GPUSCHED_WAIT_S": "60",
            **environment,
        }
        return subprocess.run(
            [self.shell, str(self.script), *arguments],
            input=answer, capture_output=True, text=True, check=False, timeout=300, env=os.environ | settings,
            start_new_session=True,
        )  # fmt: skip


def assert_carried_out(case: Case) -> None:
    state = case.read()
    assert state["evicted"] == [
        "u-spot",
        "u-web-a",
        "u-db-0",
        "u-web-b",
        "u-web-c",
    ]  # each once, in order, and no other
    assert state["cordoned"] == ["n0", "n1"]


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "busybox sh"])
def test_a_plan_is_carried_out(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"there is no {shell}")
    case = Case(tmp_path)
    command = [*shell.split(), str(case.script)]
    environment = os.environ | {"KUBECTL": f"{sys.executable} -IS {FAKE} {case.file}", "GPUSCHED_POLL_S": "0"}
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert_carried_out(case)
    said = run.stdout.splitlines()
    assert said[0] == "Context prod: 5 of 5 pods are where the plan takes them from."
    assert said[1:4] == ["cordoned n0", "cordoned n2", "evicted ml/spot"]  # n1 was cordoned before
    assert mentions(said, "evicted ml/web-a from n0: cannot be told that the plan wants n5")
    assert mentions(said, "wave 1: ReplicaSet/db in namespace ml: new pods on: n6 (the plan wants: n6 )")
    assert mentions(said, "ml/big is on n0 (the plan wants n0)")
    assert mentions(
        said[-1], f"The plan is carried out. nodes stay cordoned until sh {case.script} undo: n0 n1."
    )
    assert [call for call in case.read()["log"] if "cordon" in call] == [
        "cordon n0",
        "cordon n2",
        "uncordon n2",
    ]
    assert case.read()["log"][-1] == "-n ml get pod"  # pending pods come after that


def test_running_it_again_does_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.run().returncode == 0
    calls = len(case.read()["log"])
    again = case.run()
    assert again.returncode == 0 and len(case.read()["log"]) == calls
    assert_carried_out(case)


def test_refusals_are_waited_for(tmp_path: Path) -> None:
    case = Case(tmp_path, busy=4, down=2)
    run = case.run()
    assert run.returncode == 0, run.stderr
    assert (
        run.stdout.count("(TooManyRequests): Cannot evict pod as it would violate") == 4
        and run.stdout.count("connection refused") == 2
    )
    assert_carried_out(case)


def test_refusals_without_end_stop_it_and_it_goes_on(tmp_path: Path) -> None:
    case = Case(tmp_path, busy=1000000)
    run = case.run(GPUSCHED_WAIT_S="0")
    assert run.returncode == 1 and case.read()["evicted"] == []
    assert (
        mentions(run.stderr, "stopped: pod ml/spot, for 0 s: Error from server (TooManyRequests)")
        and "To go on: sh " in run.stderr
    )
    case.change(busy=1)
    assert case.run().returncode == 0
    assert_carried_out(case)


def test_it_waits_until_replacements_are_ready(tmp_path: Path) -> None:
    case = Case(tmp_path, slow=3)
    assert case.run().returncode == 0
    log = case.read()["log"]
    evictions = [number for number, call in enumerate(log) if call.startswith("create")]
    assert log[evictions[1] : evictions[2]].count("-n ml get pods") >= 4  # between the waves
    assert_carried_out(case)


def test_it_does_not_wait_for_an_owner_that_was_scaled_down(tmp_path: Path) -> None:
    case = Case(tmp_path, wants={"web": 1}, lands=["", "n6", "n5"])
    run = case.run(GPUSCHED_YES="1", GPUSCHED_WAIT_S="20")
    assert run.returncode == 0, run.stdout + run.stderr
    assert_carried_out(case)
    assert mentions(run.stdout, "wave 0: ReplicaSet/web in namespace ml wants 1 pods now, and had 3 ready")


@pytest.mark.parametrize(
    ("says", "waits"),
    [
        (None, False),
        ("another-uid|3|||||", False),
        ("uid-db|||||true|", False),  # a suspended Job
        ("uid-db||1|1|1||Complete", False),
        ("uid-db||2||1||Failed", False),
        ("uid-db||4|4|4||", False),  # a Job with nothing left to do
        ("uid-db||4|4|2||", True),
        ("uid-db||1||||", True),
        ("uid-db|1||||| Available Progressing", True),
        ("uid-db||||||", True),  # a kind that does not say how many it wants
        ("Error from server (Forbidden): databases.example.com is forbidden", True),
    ],
)
def test_the_script_waits_for_the_owner(says: str | None, waits: bool, tmp_path: Path) -> None:
    case = Case(tmp_path, owners={"db": says}, lands=["", "n5", ""])  # the replacement of db never starts
    run = case.run(GPUSCHED_YES="1", GPUSCHED_WAIT_S="2")
    if waits:
        assert run.returncode == 1
        assert mentions(
            run.stderr, "stopped: wave 1: after 2 s 0 of 1 pods of ReplicaSet/db in namespace ml are ready"
        )
    else:
        assert mentions(run.stdout, "ReplicaSet/db in namespace ml wants 0 pods now, and had 1 ready")


def test_the_next_wave_does_not_begin_before(tmp_path: Path) -> None:
    case = Case(tmp_path, slow=1000000)
    run = case.run(GPUSCHED_WAIT_S="1")
    assert run.returncode == 1 and mentions(
        run.stderr, "wave 0: after 1 s 2 of 3 pods of ReplicaSet/web in namespace ml are ready"
    )
    assert case.read()["evicted"] == ["u-spot", "u-web-a"]
    case.change(slow=0)
    assert case.run().returncode == 0
    assert_carried_out(case)


def test_replacements_elsewhere_need_confirmation(tmp_path: Path) -> None:
    case = Case(tmp_path, lands=["", "n2", "n6", "n6", "n5"])
    run = case.run()  # no answer
    assert run.returncode == 1 and "replacements are elsewhere than planned" in run.stderr
    assert mentions(run.stdout, "new pods on: n2 (the plan wants: n5 )")
    assert mentions(run.stdout, "not where the plan wants them: ml/ReplicaSet/web")
    assert case.read()["evicted"] == ["u-spot", "u-web-a"]
    assert case.run(answer="\n").returncode == 0
    assert_carried_out(case)
    (tmp_path / "second").mkdir()
    second = Case(tmp_path / "second", lands=["", "n2", "n2", "n2", "n2"])
    assert second.run(GPUSCHED_YES="1").returncode == 0
    assert_carried_out(second)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_it_goes_on_after_being_killed_at_any_call(when: str, tmp_path: Path) -> None:
    whole = Case(tmp_path)
    assert whole.run().returncode == 0
    log = whole.read()["log"]
    evictions = [number for number, call in enumerate(log, 1) if call.startswith("create")]
    assert len(log) > 12 and len(evictions) == 5
    for call in sorted({*evictions, *range(1, len(log) + 1, 4)}):
        folder = tmp_path / f"{when}-{call}"
        folder.mkdir()
        case = Case(folder, kill={"call": call, "when": when})
        assert case.run().returncode == -9, call
        run = case.run()
        assert run.returncode == 0, (call, run.stdout, run.stderr)
        assert_carried_out(case)
        assert case.run("undo").returncode == 0
        assert case.read()["cordoned"] == ["n1"]


def test_undo_in_the_middle(tmp_path: Path) -> None:
    case = Case(tmp_path, refusal="Error from server (Forbidden): no")
    assert case.run().returncode == 1
    assert case.read()["cordoned"] == ["n0", "n1", "n2"]
    assert case.run("undo").returncode == 0
    assert case.read()["cordoned"] == ["n1"]


def test_undo_takes_its_own_cordons_back(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.run("undo").stdout.startswith("nothing to undo")
    assert case.run().returncode == 0
    run = case.run("undo")
    assert run.returncode == 0 and case.read()["cordoned"] == ["n1"]
    assert mention(run.stdout.splitlines(), ["uncordoned n0", "5 pods that were evicted stay"])
    assert [path.name for path in tmp_path.iterdir() if "state" in path.name] == []


def test_undo_passes_over_nodes_that_were_removed(tmp_path: Path) -> None:
    case = Case(tmp_path, plan={**PLAN, "vacated_nodes": ["n0", "n1", "n3"]})
    assert case.run().returncode == 0
    case.change(gone=["n0"])
    run = case.run("undo")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[:2] == ["node n0 is gone", "uncordoned n3"]


def test_names_in_errors_are_not_taken_for_errors(tmp_path: Path) -> None:
    case = Case(tmp_path, plan={**PLAN, "evictions": ["ml/timeout-proxy"]}, lands=["n5", "n6", "n6", "n5"])
    run = case.run(GPUSCHED_WAIT_S="0")
    assert "pod ml/timeout-proxy is gone already" in run.stdout.splitlines(), run.stderr


def test_a_replacement_that_cannot_be_moved_needs_confirmation(tmp_path: Path) -> None:
    moves = [
        {"task": "ml/web-a", "from": "n0", "to": "n5", "gpus": [], "wave": 0},
        {"task": "ml/db-0", "from": "n0", "to": "n5", "gpus": [], "wave": 0},
        {"task": "ml/web-a", "from": "n5", "to": "n6", "gpus": [], "wave": 1},
        {"task": "ml/db-0", "from": "n5", "to": "n6", "gpus": [], "wave": 1},
    ]
    case = Case(
        tmp_path, plan={**PLAN, "moves": moves, "vacated_nodes": ["n0"], "evictions": [], "placements": []}
    )
    case.change(lands=["n5", "n5", "n6"])
    run = case.run()  # no answer
    assert run.returncode == 1 and "the replacement of ml/web-a is not moved on" in run.stderr
    assert case.read()["evicted"] == ["u-web-a", "u-db-0"]
    assert case.run(answer="\n").returncode == 0
    assert case.read()["evicted"] == ["u-web-a", "u-db-0", "new-2"]  # db keeps its name


def test_pods_on_other_nodes_than_planned_are_skipped(tmp_path: Path) -> None:
    case = Case(tmp_path)
    state = case.read()
    state["pods"]["ml/web-a"]["node"] = "n4"
    del state["pods"]["ml/web-b"], state["pods"]["ml/big"]
    state["lands"] = ["", "n6", "n5"]
    case.write(state)
    run = case.run()
    assert run.returncode == 0 and mentions(run.stdout, "carried out except for 2 of 5 steps:")
    assert case.read()["evicted"] == ["u-spot", "u-db-0", "u-web-c"]
    for words in (
        "left alone: ml/web-a is on n4, and the plan takes it from n0",
        "pod ml/web-b is gone already",
        "ml/big: there is no pod of this name now; n0",
    ):
        assert mentions(run.stdout.splitlines(), words)


def test_a_plan_for_other_pods_changes_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, pods={})
    run = case.run()  # no answer
    assert run.returncode == 1 and "most pods of the plan are gone or elsewhere" in run.stderr
    assert "Context prod: 0 of 5 pods are where the plan takes them from." in run.stdout
    assert case.read()["cordoned"] == ["n1"] and case.read()["evicted"] == []
    run = case.run(answer="\n")  # asked again
    assert run.returncode == 3 and mentions(run.stderr, "Nothing of the plan was carried out: all 5 steps")
    assert case.run("undo").returncode == 0 and case.read()["cordoned"] == ["n1"]


def test_check_only_looks(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.run("check").returncode == 0
    state = case.read()
    assert (
        state["cordoned"] == ["n1"] and state["evicted"] == [] and not Path(f"{case.script}.state").exists()
    )
    state["pods"]["ml/web-a"]["node"] = "n4"
    del state["pods"]["ml/spot"]
    case.write(state)
    run = case.run("check")
    assert run.returncode == 3
    assert run.stdout.splitlines() == [
        "pod ml/spot is gone",
        "pod ml/web-a is on n4, and the plan takes it from n0",
        "Context prod: 3 of 5 pods are where the plan takes them from.",
    ]


def test_budgets_that_allow_no_eviction_are_reported_first(tmp_path: Path) -> None:
    case = Case(tmp_path, forbidden=["ml/web-b"])
    told = [
        "pod ml/web-b: its disruption budget allows no eviction now: "
        "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's disruption "
        "budget.",
        "Context prod: 5 of 5 pods are where the plan takes them from.",
        "Disruption budgets allow no eviction of 1 of them now.",
    ]
    looked = case.run("check")
    assert looked.returncode == 3 and looked.stdout.splitlines() == told
    run = case.run()  # no answer
    assert run.returncode == 1 and mentions(
        run.stderr, "stopped: disruption budgets allow no eviction of 1 pods"
    )
    assert case.read()["cordoned"] == ["n1"] and case.read()["evicted"] == []
    case.change(forbidden=[])
    assert case.run().returncode == 0
    assert_carried_out(case)


def test_the_header_shows_cordons_if_any() -> None:
    moves = gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(PLAN))
    only = {**PLAN, "moves": [], "waves": 0, "vacated_nodes": []}
    evictions = gs.io.plan_to_kubernetes_steps(gs.Plan.from_json(only))
    assert mentions(moves, "# Nodes from which pods move are cordoned:") and "are not cordoned" not in moves
    assert mentions(evictions, "# Nodes of evicted pods are not cordoned,") and "\n  cordon" not in evictions


def test_pods_without_a_controller_are_not_evicted(tmp_path: Path) -> None:
    case = Case(tmp_path, plan={**PLAN, "evictions": ["ml/bare"]})
    run = case.run()
    assert run.returncode == 1 and case.read()["evicted"] == []
    assert mentions(run.stderr, "pod ml/bare has no controller GPUSCHED_BARE_PODS=1")
    case.change(lands=["n5", "n6", "n6", "n5"])
    assert case.run(GPUSCHED_BARE_PODS="1").returncode == 0
    assert case.read()["evicted"][0] == "u-bare"


def test_the_cost_of_an_eviction_for_a_job_is_reported(tmp_path: Path) -> None:
    case = Case(tmp_path)
    state = case.read()
    state["pods"]["ml/spot"]["kind"] = "Job"
    case.write(state)
    run = case.run()
    assert run.returncode == 0 and mentions(
        run.stdout, "pod ml/spot: its eviction counts as a failure of Job/spots"
    )
    assert run.stdout.count("backoffLimit") == 1


def test_other_errors_stop_it(tmp_path: Path) -> None:
    refusal = (
        "Error from server (InternalError): "
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    case = Case(tmp_path, refusal=refusal)
    run = case.run()
    assert run.returncode == 1 and f"stopped: pod ml/spot: {refusal}" in run.stderr
    assert len([call for call in case.read()["log"] if call.startswith("create")]) == 1


def test_the_state_of_another_plan_is_not_taken(tmp_path: Path) -> None:
    case = Case(tmp_path)
    assert case.run().returncode == 0
    case.script.write_text(gs.io.plan_to_kubernetes_steps(gs.Plan.from_json({**PLAN, "evictions": []})))
    run = case.run()
    assert run.returncode == 2 and "belongs to another plan" in run.stderr
    assert case.run("nonsense").returncode == 2
