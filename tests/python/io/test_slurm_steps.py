# SPDX-License-Identifier: Apache-2.0
"""The Slurm script of a plan, run with an scontrol whose records are laid out as scontrol prints them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli
from messages import mentions

FAKE = Path(__file__).resolve().parents[1] / "fake_scontrol.py"
WHERE = {"17": ["n0", "n1"], "20_4": ["n0"], "5": ["n2"]}
COMMENTS = ("", "ask Ann = first, then 17", "gpusched:other")


def plan(**fields: Any) -> dict[str, Any]:
    def move(task: str, source: str, target: str) -> dict[str, Any]:
        return {"task": task, "from": source, "to": target, "gpus": [], "wave": 0}

    return {
        "format": "gpusched.plan", "version": 1, "waves": 1,
        "moves": [move("20_4", "n0", "n3"), move("17/0", "n0", "n3"), move("17/1", "n1", "n2")],
        "vacated_nodes": ["n0", "n1"], "evictions": [], "placements": [], **fields,
    }  # fmt: skip


def cluster() -> gs.Cluster:
    def task(name: str, node: str, gpus: int, how: str = "restart") -> dict[str, Any]:
        return {"name": name, "cpu_milli": 0, "memory_mib": 0, "gpu_count": gpus, "node": node, "how": how,
                "preemptible": True}  # fmt: skip

    names = [f"n{i}" for i in range(5)]
    components = [task("30+0", "n3", 1), task("30+1", "n4", 1)]
    tasks = [
        task("17/0", "n0", 4),
        task("17/1", "n1", 4),
        task("20_4", "n0", 2),
        task("5", "n2", 2, "none"),
        *components,
    ]
    nodes = [{"name": name, "cpu_milli": 1, "memory_mib": 1, "gpu_count": 8} for name in names]
    return gs.Cluster.from_json({"format": "gpusched.cluster", "version": 2, "nodes": nodes, "tasks": tasks})


class Case:
    def __init__(self, folder: Path, document: dict[str, Any] | None = None, **state: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.script, self.file = folder / "plan.sh", folder / "cluster"
        made = gs.Plan.from_json(document or plan())
        self.script.write_text(gs.io.plan_to_slurm_steps(made, cluster()))
        jobs = {
            name: {"state": "RUNNING", "nodes": nodes, "count": len(nodes), "priority": 9, "requeue": 1}
            for name, nodes in WHERE.items()
        } | state.pop("jobs", {})
        nodes = {f"n{i}": {"cpus": 2, "state": "MIXED", "reason": ""} for i in range(5)} | state.pop(
            "nodes", {}
        )
        self.write({"jobs": jobs, "nodes": nodes, "log": [], "requeued": [], **state})

    def read(self) -> dict[str, Any]:
        return ast.literal_eval(self.file.read_text())

    def write(self, state: dict[str, Any]) -> None:
        self.file.write_text(repr(state))

    def drained(self) -> list[str]:
        return [name for name, node in self.read()["nodes"].items() if "DRAIN" in node["state"]]

    def run(self, *arguments: str, answer: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command = f"{sys.executable} -IS {FAKE} {self.file}"
        settings = {"SCONTROL": f"{command} scontrol", "SQUEUE": f"{command} squeue",
            "GPUSCHED_POLL_S": "0.1",
                    "GPUSCHED_WAIT_S": "20"}  # fmt: skip
        return subprocess.run(
            ["sh", str(self.script), *arguments], input=answer, capture_output=True, text=True, check=False,
            timeout=120, start_new_session=True, env=os.environ | settings | environment,
        )  # fmt: skip


def test_whole_jobs_are_requeued_largest_first(tmp_path: Path) -> None:
    case = Case(tmp_path)
    run = case.run(answer="y\n")
    assert run.returncode == 0, run.stdout + run.stderr
    state = case.read()
    assert state["requeued"] == ["17", "20_4"] and case.drained() == ["n0", "n1"]
    assert all(job["state"] == "RUNNING" for job in state["jobs"].values())
    assert mentions(run.stdout, "to be requeued: 2 17 20_4")
    assert mentions(run.stdout, "Vacated n0 n1") and "The plan is carried out." in run.stdout
    assert case.run(GPUSCHED_YES="1").returncode == 0 and case.read()["requeued"] == ["17", "20_4"]
    assert case.run("undo").returncode == 0 and case.drained() == []
    assert case.run("nonsense").returncode == 2


def test_nothing_is_requeued_without_approval(tmp_path: Path) -> None:
    case = Case(tmp_path, nodes={"n1": {"cpus": 2, "state": "MIXED+DRAIN", "reason": "broken fan"}})
    run = case.run()
    assert run.returncode == 1 and case.read()["requeued"] == []
    assert case.drained() == ["n1"] and case.read()["nodes"]["n1"]["reason"] == "broken fan"


@pytest.mark.parametrize(
    ("state", "requeued", "drained", "says"),
    [
        # It ended, it runs elsewhere, or it was made unfit meanwhile: it is left alone.
        ({"jobs": {"20_4": {"state": "COMPLETED", "nodes": []}}}, ["17"], ["n0", "n1"],
         "left alone 20_4 COMPLETED"),
        ({"jobs": {"20_4": {"state": "RUNNING", "nodes": ["n3"]}}}, ["17"], ["n0", "n1"],
         "left alone 20_4 RUNNING n3"),
        # A node that cannot be emptied is left out first, and with it the jobs that share it.
        ({"jobs": {"20_4": {"requeue": 0}}}, [], [], "left out: node n0 job 20_4 cannot be requeued"),
        ({"jobs": {"20_4": {"requeue": 0, "nodes": ["n1"]}}}, [], [],
         "left out: node n1 job 20_4 RUNNING n1"),
        ({"jobs": {"20_4": {"state": "SUSPENDED"}}}, [], [], "left out: node n0 job 20_4 SUSPENDED"),
        # A job that is not in the plan keeps its node, and with it the jobs that share the node.
        ({"jobs": {"9": {"nodes": ["n0"]}}}, [], [], "left out: node n0 job 9 is not in the plan"),
        # Job 17 keeps n0, too.
        ({"jobs": {"9": {"nodes": ["n1"]}}}, [], [],
         "left out: node n0 job 17 stays there and on other nodes"),
        # Its room was taken: it gets its nodes back.
        ({"nodes": {"n2": {"cpus": 1}, "n3": {"cpus": 0}, "n4": {"cpus": 1}}}, ["17"], [],
         "left out: node n0 job 17"),
    ],
)  # fmt: skip
def test_it_copes_with(
    state: dict[str, Any], requeued: list[str], drained: list[str], says: str, tmp_path: Path
) -> None:
    job = {"state": "RUNNING", "nodes": ["n0"], "count": 1, "priority": 9, "requeue": 1}
    node = {"cpus": 2, "state": "MIXED", "reason": ""}
    jobs = {name: job | one for name, one in state.get("jobs", {}).items()}
    nodes = {name: node | one for name, one in state.get("nodes", {}).items()}
    case = Case(tmp_path, jobs=jobs, nodes=nodes)
    run = case.run(GPUSCHED_YES="1", GPUSCHED_WAIT_S="2")
    assert case.read()["requeued"] == requeued, run.stdout + run.stderr
    assert case.drained() == drained and mentions(run.stdout, says), run.stdout + run.stderr
    assert run.returncode == (0 if drained == ["n0", "n1"] else 3 if drained else 1), run.stdout
    assert not any(one["priority"] == 0 for one in case.read()["jobs"].values())


@pytest.mark.parametrize(
    ("state", "code", "requeued", "says"),
    [
        # A node that was removed is passed over.
        ({"removed": ["n1"], "jobs": {"17": {"state": "NODE_FAIL", "nodes": []}}}, 0, ["20_4"],
         "node n1 is gone"),
        ({"removed": ["n1"], "jobs": {"17": {"state": "COMPLETED", "nodes": []}}}, 0, ["20_4"], "Vacated n0"),
        ({"removed": ["n0", "n1"]}, 1, [], "not in this cluster"),
        # An answer that is not understood stops it; only "Invalid job id" means that a job is gone.
        ({"fails": {"scontrol show job": "Unable to contact slurm controller"}}, 1, [],
         "job 17 Unable to contact"),
        ({"fails": {"squeue": "Unable to contact slurm controller"}}, 1, [], "node n0 squeue failed"),
        ({"fails": {"scontrol show node": "Unable to contact slurm controller"}}, 1, [],
         "node n0 Unable to contact"),
        # It ended while it was requeued.
        ({"ends": {"17": "CANCELLED"}}, 3, ["17", "20_4"], "Jobs that do not run: 17 CANCELLED"),
        ({"ends": {"17": "gone"}}, 3, ["17", "20_4"], "Jobs that do not run: 17 gone"),
        ({"ends": {"17": "COMPLETED"}}, 0, ["17", "20_4"], "job 17 is COMPLETED"),
    ],
)  # fmt: skip
def test_it_goes_on_only_if_it_knows(
    state: dict[str, Any], code: int, requeued: list[str], says: str, tmp_path: Path
) -> None:
    job = {"state": "RUNNING", "count": 1, "priority": 9, "requeue": 1}
    case = Case(
        tmp_path, **state | {"jobs": {name: job | one for name, one in state.get("jobs", {}).items()}}
    )
    run = case.run(GPUSCHED_YES="1", GPUSCHED_WAIT_S="2")
    said = run.stdout + run.stderr
    assert run.returncode == code and mentions(said, says) and case.read()["requeued"] == requeued, said
    case.write(case.read() | {"fails": {}})
    assert case.run("undo").returncode == 0
    gone = case.read().get("removed", ())
    assert [node for node in case.drained() if node not in gone] == []


@pytest.mark.parametrize(
    "environment",
    [{"GPUSCHED_WAIT_S": "abc"}, {"GPUSCHED_WAIT_S": "0"}, {"GPUSCHED_WAIT_S": "-1"},
     {"GPUSCHED_POLL_S": "1s"}],
)  # fmt: skip
@pytest.mark.parametrize("command", ["run", "undo"])
def test_wrong_usage_changes_nothing(command: str, environment: dict[str, str], tmp_path: Path) -> None:
    case = Case(tmp_path)
    run = case.run(command, GPUSCHED_YES="1", **environment)
    assert (run.returncode, run.stdout, case.read()["log"]) == (2, "", [])
    assert mentions(run.stderr, *environment)


@pytest.mark.parametrize("arguments", [["nonsense"], ["undo", "n0"], ["run", "n0"]])
def test_a_word_that_it_does_not_know_is_an_error(arguments: list[str], tmp_path: Path) -> None:
    case = Case(tmp_path)
    run = case.run(*arguments, GPUSCHED_YES="1")
    assert (run.returncode, run.stdout, case.read()["log"]) == (2, "", [])
    assert f"'{arguments[-1]}'" in run.stderr


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ({}, "to be requeued: 2"),
        ({"20_4": {"state": "COMPLETED", "nodes": []}}, "to be requeued: 1"),
        ({"20_4": {"nodes": ["n3"]}}, "to be requeued: 1"),
        ({"9": {"nodes": ["n1"]}}, ""),  # job 17 stays, and with it node n0
    ],
)
def test_the_question_counts_the_jobs_that_it_requeues(
    jobs: dict[str, Any], says: str, tmp_path: Path
) -> None:
    job = {"state": "RUNNING", "nodes": ["n0"], "count": 1, "priority": 9, "requeue": 1}
    case = Case(tmp_path, jobs={name: job | one for name, one in jobs.items()})
    run = case.run(answer="n\n")
    assert case.read()["requeued"] == [] and run.returncode == 1
    assert mentions(run.stdout, says) if says else not mentions(run.stdout, "to be requeued")


@pytest.mark.parametrize(("kill", "comment"), [
    *((None, comment) for comment in COMMENTS), *zip(range(14, 26, 2), 2 * COMMENTS),
])  # fmt: skip
def test_comments_of_administrators_stay(comment: str, kill: int | None, tmp_path: Path) -> None:
    job = {
        "state": "RUNNING",
        "nodes": ["n0", "n1"],
        "count": 2,
        "priority": 9,
        "requeue": 1,
        "comment": comment,
    }
    case = Case(tmp_path, jobs={"17": job}, kill=kill)
    assert case.run(GPUSCHED_YES="1").returncode == (-9 if kill else 0)
    assert case.run("undo").returncode == 0
    assert case.read()["jobs"]["17"]["comment"] == comment and case.read()["jobs"]["17"]["priority"] > 0


MAKES_ROOM = plan(moves=[], waves=0, vacated_nodes=[], evictions=["20_4"],
                  placements=[{"task": "40", "node": "n0", "gpus": []}])  # fmt: skip


def waiting(folder: Path, document: dict[str, Any] = MAKES_ROOM, **state: Any) -> Case:
    """Job 40 is pending. Only n0 has room for it, after job 20_4 has left."""
    job = {"state": "PENDING", "nodes": [], "count": 1, "priority": 99, "requeue": 1}
    full = {f"n{i}": {"cpus": 2 if i == 0 else 1, "state": "MIXED", "reason": ""} for i in range(3)}
    none = {name: {"cpus": 0, "state": "IDLE", "reason": ""} for name in ("n3", "n4")}
    return Case(folder, document, jobs={"40": job | state.pop("job", {})}, nodes=full | none, **state)


@pytest.mark.parametrize("again", [[], [{"task": "20_4", "node": "n3", "gpus": []}]])
def test_room_is_made_for_pending_jobs(again: list[dict[str, Any]], tmp_path: Path) -> None:
    case = waiting(tmp_path, MAKES_ROOM | {"placements": MAKES_ROOM["placements"] + again})
    run = case.run(GPUSCHED_YES="1", GPUSCHED_WAIT_S="2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert mentions(run.stdout, "to make room: 1 20_4")
    jobs = case.read()["jobs"]
    assert (
        jobs["40"]["nodes"] == ["n0"] and jobs["20_4"]["state"] == "PENDING" and jobs["20_4"]["priority"] > 0
    )


STARTED_OR_ENDED = [
    ({"state": "RUNNING", "nodes": ["n4"]}, 0), ({"state": "COMPLETED"}, 0), ({"state": "CANCELLED"}, 1),
    ({"state": "gone"}, 1), ({"priority": 0}, 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The calls of a script that makes room."""
    case = waiting(tmp_path_factory.mktemp("whole"))
    assert case.run(GPUSCHED_YES="1").returncode == 0
    return case.read()["log"]


@pytest.mark.parametrize(("job", "code"), STARTED_OR_ENDED)
@pytest.mark.parametrize("when", ["before", "during the question", "after a kill"])
def test_nothing_is_requeued_for_jobs_that_no_longer_wait(
    when: str, job: dict[str, Any], code: int, calls: list[str], tmp_path: Path
) -> None:
    # Before and after the question.
    looks = [number for number, call in enumerate(calls, 1) if call == "show job 40"]
    state: dict[str, Any] = {
        "before": {"job": job},
        "during the question": {"changes": {looks[1]: {"40": job}}},
        "after a kill": {"kill": calls.index("requeuehold 20_4") + 2, "stuck": ["40"]},
    }[when]
    case = waiting(tmp_path, **state)
    run = case.run(GPUSCHED_YES="1")
    held = []
    if when == "after a kill":
        now = case.read()
        held = ["20_4"]
        assert run.returncode == -9 and now["requeued"] == held and now["jobs"]["20_4"]["priority"] == 0
        case.write(now | {"jobs": now["jobs"] | {"40": now["jobs"]["40"] | job}})
        run = case.run(GPUSCHED_YES="1")
    assert run.returncode == code, run.stdout + run.stderr
    assert case.read()["requeued"] == held and case.drained() == []
    assert case.read()["jobs"]["20_4"]["priority"] > 0
    assert "requeued" in run.stdout + run.stderr and "carried out" not in run.stdout


@pytest.mark.parametrize(("ends", "code"), [("CANCELLED", 3), ("gone", 3), ("COMPLETED", 0)])
def test_a_job_that_made_room_and_ended_is_named(ends: str, code: int, tmp_path: Path) -> None:
    case = waiting(tmp_path, ends={"20_4": ends})
    run = case.run(GPUSCHED_YES="1")
    assert run.returncode == code, run.stdout + run.stderr
    assert mentions(run.stdout, f"Jobs that do not run: 20_4 {ends}") == (code == 3)


def test_a_plan_without_steps_says_so(tmp_path: Path) -> None:
    case = Case(tmp_path, plan(moves=[], waves=0, vacated_nodes=[]))
    run = case.run()
    assert (run.returncode, case.read()["log"]) == (0, [])
    assert "no steps" in run.stdout and "carried out" not in run.stdout


@pytest.mark.parametrize("call", range(3, 30, 3))
def test_nothing_stays_held_after_it_was_killed(call: int, tmp_path: Path) -> None:
    case = Case(tmp_path, kill=call)
    assert case.run(GPUSCHED_YES="1").returncode == -9
    if call % 2:
        assert case.run(GPUSCHED_YES="1").returncode == 0
        assert sorted(case.read()["requeued"]) == ["17", "20_4"] and case.drained() == ["n0", "n1"]
    assert case.run("undo").returncode == 0
    assert case.drained() == [] and all(job["priority"] > 0 for job in case.read()["jobs"].values())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moves": [{"task": "17/0", "from": "n0", "to": "n3", "gpus": [], "wave": 0}]},
         "job '17' 1 of its 2"),
        ({"moves": [{"task": "17/0", "from": "n0", "to": "n3", "gpus": [], "wave": 0}]}, "--exempt n0,n1"),
        ({"moves": [{"task": "5", "from": "n2", "to": "n3", "gpus": [], "wave": 0}]},
         "job '5' cannot be requeued"),
        ({"moves": [], "evictions": ["x"]}, "task 'x' Slurm job"),
        ({"moves": [], "evictions": ["30+0", "30+1"]}, "job '30' is heterogeneous"),
    ],
)  # fmt: skip
def test_a_plan_that_slurm_cannot_carry_out_is_an_error(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.InvalidInput) as error:
        gs.io.plan_to_slurm_steps(gs.Plan.from_json(plan(**{"waves": 1, **fields})), cluster())
    assert mentions(str(error.value), words)


@pytest.mark.parametrize("parts", [1, 2])
def test_the_console_says_that_slurm_would_refuse_a_plan(
    parts: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def task(name: str, node: str, gpus: int, how: str) -> dict[str, Any]:
        job = {"job": name.split("/")[0], "x-owner-kind": "Slurm job", "how": how}
        return {"name": name, "cpu_milli": 0, "memory_mib": 0, "gpu_count": gpus, "node": node, **job}

    tasks = [task("17/0", "n0", 2, "restart"), task("6/0", "n1", 4, "none")]
    tasks += [task("17/1", "n2", 8, "restart")] * (parts - 1)
    snapshot = str(tmp_path / "cluster.json")
    gs.Cluster.from_json({**cluster().to_json(), "tasks": tasks}).to_json(snapshot)
    assert cli.main(["consolidate", snapshot]) == 0
    out = capsys.readouterr().out
    assert "1 node with 8 GPUs vacated" in out and ("export --to slurm" in out) == (parts == 2)
    assert (mentions(out, "job '17' 1 of its 2") and "--exempt n0,n2" in out) == (parts == 2)


def test_the_console_exports_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, snapshot, out = (str(tmp_path / name) for name in ("plan.json", "cluster.json", "plan.sh"))
    gs.Plan.from_json(plan()).to_json(document)
    cluster().to_json(snapshot)
    command = ["export", document, "--to", "slurm"]
    assert cli.main(command) == 2 and mentions(capsys.readouterr().err, "--cluster: missing; slurm")
    command += ["--cluster", snapshot, "-o", out]
    assert cli.main([*command, "--default-namespace", "x"]) == 2
    assert cli.main(command) == 0 and "scontrol" in Path(out).read_text()
    assert cli.main(["export", document, "--to", "slurm", "--cluster", snapshot, "-o", snapshot]) == 2
