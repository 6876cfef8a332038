# SPDX-License-Identifier: Apache-2.0
"""Replay bundles: a snapshot, the options of a call and its plan in one file, to be run again by another
user.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli
from messages import mentions, naming, problems_in, refuses


@pytest.fixture
def cluster_path(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    gs.sim.generate_cluster(preset="asi", nodes=60, seed=3, layout="spread").to_json(path)
    return str(path)


def waiting() -> gs.Cluster:
    """A full node, and two pods that wait."""
    task = {"cpu_milli": 1000, "memory_mib": 1, "gpu_count": 2}
    runs = [
        {**task, "name": f"runs-{i}", "node": "n", "gpus": [2 * i, 2 * i + 1], "preemptible": True}
        for i in range(4)
    ]
    waits = [{**task, "name": f"waits-{i}", "job": "gang", "priority": 10} for i in range(2)]
    node = {"name": "n", "gpu_model": "G", "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 1024}
    return gs.Cluster.from_json(
        {"format": "gpusched.cluster", "version": 1, "nodes": [node], "tasks": runs + waits}
    )


def test_a_plan_is_made_again(cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle.json"
    arguments = ["--preset", "fast", "--seed", "5", "--max-moves", "9", "--save-bundle", str(bundle)]
    assert cli.main(["consolidate", cluster_path, *arguments]) == 0
    assert f"wrote {bundle}" in capsys.readouterr().out
    document = json.loads(bundle.read_text())
    assert document["options"] == {"preset": "fast", "seed": 5, "max_moves": 9}
    assert document["gpusched"] == gs.__version__
    assert 0 < len(document["plan"]["moves"]) <= 9
    assert cli.main(["replay-bundle", str(bundle)]) == 0
    assert mentions(capsys.readouterr().out, f"consolidate: the same plan as gpusched {gs.__version__} made")


def test_another_plan_is_reported(
    cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle.json"
    assert cli.main(["consolidate", cluster_path, "--save-bundle", str(bundle)]) == 0
    document = json.loads(bundle.read_text())
    moves = len(document["plan"]["moves"])
    document["plan"]["moves"][0]["wave"] = 1
    document["plan"]["stats"]["moves"] = 77
    bundle.write_text(json.dumps(document))
    capsys.readouterr()
    assert cli.main(["replay-bundle", str(bundle)]) == 1
    out = capsys.readouterr().out
    assert "another plan than" in out
    assert mentions(out, f"moves: 1 differ ({moves} saved, {moves} now): #0")
    assert f"stats.moves: 77 -> {moves}" in out
    replayed = gs.bundles.replay(bundle)
    assert not replayed.same and len(replayed.differences) == 2
    assert replayed.found is not None and len(replayed.found.moves) == moves


def test_no_name_is_left(cluster_path: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    path = Path(cluster_path)
    path.write_text(path.read_text().replace('"node-', '"our-node-').replace('"job-', '"our-job-'))
    cluster = gs.Cluster.from_json(cluster_path)
    clear = [str(name) for name in cluster.nodes.name[:20]]
    arguments = ["--clear", ",".join(clear), "--save-bundle", str(bundle), "--anonymize-bundle"]
    assert cli.main(["consolidate", cluster_path, *arguments]) == 0
    text = bundle.read_text()
    assert "our-" not in text
    document = json.loads(text)
    assert len(document["options"]["clear"]) == 20
    listed = [node["name"] for node in document["cluster"]["nodes"]]
    assert document["options"]["clear"] == listed[:20]
    assert gs.bundles.replay(bundle).same


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize("pods", [["waits-1"], ["waits-0", "waits-1"], "gang"])
def test_preemption(tmp_path: Path, pods: Any, anonymize: bool) -> None:
    cluster = waiting()
    cluster_path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    cluster.to_json(cluster_path)
    who = ["--job", pods] if isinstance(pods, str) else pods
    extra = ["--anonymize-bundle"] if anonymize else []
    assert cli.main(["preempt", str(cluster_path), *who, "--save-bundle", str(bundle), *extra]) == 0
    replayed = gs.bundles.replay(bundle)
    assert replayed.same and replayed.command == "preempt"
    assert replayed.found is not None
    assert len(replayed.found.evictions) == (1 if pods == ["waits-1"] else 2)
    assert ("waits" not in bundle.read_text()) == anonymize


def test_that_nothing_helps_is_a_result(tmp_path: Path) -> None:
    document = waiting().to_json()
    for task in document["tasks"]:
        task["preemptible"] = False
    cluster_path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    cluster_path.write_text(json.dumps(document))
    assert cli.main(["preempt", str(cluster_path), "waits-0", "--save-bundle", str(bundle)]) == 1
    assert json.loads(bundle.read_text())["plan"] is None
    assert gs.bundles.replay(bundle).same
    saved = json.loads(bundle.read_text())
    for task in saved["cluster"]["tasks"]:
        task["preemptible"] = task.get("node") is not None
    bundle.write_text(json.dumps(saved))
    assert gs.bundles.replay(bundle).differences == ["saved: no plan; now: a plan"]


def test_a_field_that_is_missing_is_named(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_text('{"format": "gpusched.bundle", "version": 1, "command": "consolidate"}')
    assert [problem.rsplit(": ", 1)[-1] for problem in problems_in(gs.bundles.replay, bundle)] == [
        f"field {name!r} is missing" for name in ("gpusched", "options", "cluster", "plan")
    ]


def test_options_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    options = {"policies": {"node_order": lambda *_: 0}}
    with pytest.raises(gs.InvalidInput, match="/options/policies/node_order"):
        gs.bundles.save(bundle, "consolidate", waiting(), options, None)
    assert not bundle.exists()
    with pytest.raises(gs.BackendError, match="bundle.json: cannot be written"):
        gs.bundles.save(tmp_path / "no" / "bundle.json", "consolidate", waiting(), {}, None)


def bundle_of(path: Path, command: str = "consolidate", **options: Any) -> dict[str, Any]:
    """A bundle without a plan, as written."""
    gs.bundles.save(path, command, waiting(), options, None)
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "gpusched.plan"}, "format: 'gpusched.plan'; expected 'gpusched.bundle'"),
        ({"optoins": {}}, "unknown field 'optoins'; did you mean 'options'"),
        ({"options": []}, "options: []; expected a mapping"),
        ({"cluster": "{}"}, "cluster: '{}'; expected a mapping"),
        ({"cluster": None}, "cluster: None; expected a mapping"),
        ({"plan": "{}"}, "plan: '{}'; expected a mapping, or null"),
        ({"plan": 5}, "plan: 5; expected a mapping, or null"),
        ({"cluster": {}}, "cluster 'format' 'version' missing"),
        ({"plan": {"format": "x"}}, "plan /format"),
        ({"version": 2}, "version: 2; expected 1"),
        ({"version": True}, "version: True; expected 1"),
        ({"gpusched": 5}, "gpusched: 5; expected version a string"),
        ({"command": ["preempt"]}, "command: ['preempt']; expected a string"),
        ({"command": "preemt"}, "command: 'preemt'; did you mean 'preempt'"),
        ({"options": {"sed": 1}}, "options: consolidate() 'sed'; did you mean 'seed'"),
        ({"options": {"seed": -1}}, "options: seed: -1; expected 0 to"),
        ({"options": {"seed": "inf"}}, "options: seed: 'inf'; expected"),
        ({"options": {"cluster": {}}}, "options: consolidate() multiple values 'cluster'"),
        *(
            ({"command": "preempt", "options": {"pods": pods}}, f"options: pods: {pods!r}; names")
            for pods in ({"a": 1}, None, [], [5], ["waits-0", {"name": "x"}])
        ),
        ({"command": "preempt", "options": {}}, "options: pods: missing; expected names of pending tasks"),
        ({"command": "preempt", "options": {"pods": [{"a": 1}]}}, "options: <task>: /a: unknown field"),
        ({"command": "preempt", "options": {"pods": "nobody"}}, "options: job: 'nobody'; a job"),
    ],
)
def test_errors_name_bundle_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], problem: str
) -> None:
    bundle, snapshot, plan = (tmp_path / name for name in ("bundle.json", "cluster.json", "plan.json"))
    waiting().to_json(snapshot)
    gs.consolidate(waiting()).to_json(plan)
    paths = {"cluster": str(snapshot), "plan": str(plan)}  # of files that could be read
    change = {key: paths[key] if value == "{}" else value for key, value in change.items()}
    problem = problem.replace("'{}'", repr(paths.get(next(iter(change)))))
    bundle.write_text(json.dumps({**bundle_of(bundle, seed=1), **change}))
    with pytest.raises(gs.InvalidInput) as error:
        gs.bundles.replay(bundle)
    assert mentions(error.value.problems[0], f"{bundle}: {problem}")
    assert "<dict>" not in str(error.value)
    assert cli.main(["replay-bundle", str(bundle)]) == 2
    assert mentions(capsys.readouterr().err, f"{bundle}: {problem}")


def test_paths_and_commands_are_of_their_type(tmp_path: Path) -> None:
    path, command = tmp_path / "bundle.json", ["preempt"]
    for call, told in (
        (lambda: gs.bundles.replay(None), "path: expected the path of a file"),
        (lambda: gs.bundles.save(5, "consolidate", waiting(), {}, None), "path: expected the path"),
        (lambda: gs.bundles.save(path, command, waiting(), {}, None), "command: expected a string"),
    ):
        with pytest.raises(gs.errors.InvalidType, match=naming(told)):
            call()


@pytest.mark.parametrize("extra", [[], ["--anonymize-bundle"]])
def test_an_infinite_option_is_kept(
    cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: list[str]
) -> None:
    bundle = tmp_path / "bundle.json"
    arguments = ["--time-limit", "inf", "--save-bundle", str(bundle), *extra]
    assert cli.main(["consolidate", cluster_path, *arguments]) == 0
    assert "the plan verifies" in capsys.readouterr().out
    assert json.loads(bundle.read_text())["options"] == {"time_limit": "inf"}
    assert gs.bundles.replay(bundle).same
    saved = gs.bundles.replay(bundle).saved
    if not extra:
        assert saved == gs.consolidate(gs.Cluster.from_json(cluster_path), time_limit=math.inf)


def test_a_job_may_have_the_name_of_infinity(tmp_path: Path) -> None:
    document = waiting().to_json()
    for task in document["tasks"][-2:]:
        task["job"] = "inf"
    document["jobs"] = []
    cluster = gs.Cluster.from_json(document)
    found = gs.preemption.preempt_gang(cluster, "inf")
    assert found is not None
    plan = gs.preemption.to_plan(found)
    gs.bundles.save(tmp_path / "bundle.json", "preempt", cluster, {"pods": "inf"}, plan)
    assert gs.bundles.replay(tmp_path / "bundle.json").same


def test_the_verdict_comes_before_a_bundle_that_cannot_be_written(
    cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise gs.BackendError("the disk is full")

    monkeypatch.setattr(gs.bundles, "save", fail)
    assert cli.main(["consolidate", cluster_path, "--save-bundle", str(tmp_path / "bundle.json")]) == 2
    assert "the plan verifies" in capsys.readouterr().out


@pytest.mark.parametrize("anonymize", [False, True])
def test_a_task_that_the_snapshot_lacks(tmp_path: Path, anonymize: bool) -> None:
    document = waiting().to_json()
    document["nodes"][0]["labels"] = {"secret-key": "secret-value"}
    cluster = gs.Cluster.from_json(document)
    task = {"name": "secret-task", "job": "secret-job", "priority": 10, "gpu_count": 4}
    task |= {"cpu_milli": 1000, "memory_mib": 1, "node_selector": {"secret-key": "secret-value"}}
    bundle = tmp_path / "bundle.json"
    decision = gs.preempt(cluster, task)
    assert decision is not None and len(decision.victims) == 2
    gs.bundles.save(
        bundle, "preempt", cluster, {"pods": [task]}, gs.preemption.to_plan(decision), anonymize=anonymize
    )
    assert ("secret" not in bundle.read_text()) == anonymize
    replayed = gs.bundles.replay(bundle)
    assert replayed.same and replayed.found is not None and len(replayed.found.evictions) == 2
    assert replayed.found.placements[0].task == json.loads(bundle.read_text())["options"]["pods"][0]["name"]
    with pytest.raises(gs.InvalidInput, match="pods: .*cpu_milly"):
        wrong = {**task, "cpu_milly": 1}
        gs.bundles.save(bundle, "preempt", cluster, {"pods": [wrong]}, None, anonymize=True)


@pytest.mark.parametrize("command", [["consolidate"], ["preempt", "waits-0"]])
def test_nothing_to_anonymize(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    path = tmp_path / "cluster.json"
    waiting().to_json(path)
    assert cli.main([command[0], str(path), *command[1:], "--anonymize-bundle"]) == 2
    assert capsys.readouterr() == ("", "gpusched: --anonymize-bundle: only with --save-bundle\n")


def fragmented() -> gs.Cluster:
    """Five nodes with 4 + 2 of 8 GPUs, four of which have a label, under two switches."""
    nodes = [
        {"name": f"our-node-{n}", "gpu_model": "G", "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 65_536,
         "network": ["our-rack-0" if n < 2 else "our-rack-1"], "labels": {"our-pool": "a" if n else "b"}}
        for n in range(5)
    ]  # fmt: skip
    tasks = [
        {"name": f"our-{name}-{n}", "gpu_count": len(gpus), "cpu_milli": 0, "memory_mib": 0,
         "node": f"our-node-{n}", "gpus": gpus,
         "job": f"our-job-{n}", "preemptible": True}
        for n in range(5) for name, gpus in (("four", [0, 1, 2, 3]), ("two", [4, 5]))
    ]  # fmt: skip
    waits = {"name": "our-wait", "job": "our-new", "gpu_count": 8, "cpu_milli": 0, "memory_mib": 0}
    return gs.Cluster.from_json(
        {"format": "gpusched.cluster", "version": 1, "now": 0, "nodes": nodes, "tasks": [*tasks, waits]}
    )


POD = {"gpu_count": 8, "cpu_milli": 0, "memory_mib": 0, "node_selector": {"our-pool": "a"}}
PAIR = {**POD, "gpu_count": 2}
ROLES = {
    "name": "our-own",
    "min_members": 2,
    "subgroups": [{"name": "our-work", "min_members": 1}, {"name": "our-lead", "min_members": 1}],
}
ADMITTED: list[tuple[Any, list[str]]] = [
    ("our-new", []),
    ("our-new", ["--exempt", "our-node-4", "--spare", "our-two-0", "--no-evictions"]),
    (
        {"name": "our-own", "mode": "preferred", "pods": [{"count": 1, **POD, "gpu_count": 2}, POD]},
        ["--max-moves", "9"],
    ),
    ({"name": "our-own", "pods": [{"count": 5, **POD}]}, []),
    (
        {**ROLES, "pods": [{"count": 1, **PAIR, "subgroup": "our-lead"}, {**PAIR, "subgroup": "our-work"}]},
        ["--max-moves", "9"],
    ),
]


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize(("job", "options"), ADMITTED)
def test_admission(
    tmp_path: Path, job: Any, options: list[str], anonymize: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file, bundle = tmp_path / "cluster.json", tmp_path / "job.json", tmp_path / "bundle.json"
    fragmented().to_json(path)
    file.write_text(json.dumps(job))
    who = job if isinstance(job, str) else str(file)
    extra = ["--anonymize-bundle"] if anonymize else []
    code = cli.main(["admit", str(path), who, *options, "--save-bundle", str(bundle), *extra])
    replayed = gs.bundles.replay(bundle)
    assert replayed.same and replayed.command == "admit"
    refused = isinstance(job, dict) and job["pods"][0]["count"] == 5
    assert (replayed.found is None, code) == (refused, int(refused))
    assert ("our-" not in bundle.read_text()) == anonymize
    if replayed.found is not None:
        limits: dict[str, Any] = {"max_moves": 9} if "--max-moves" in options else {}
        expected = gs.admit(fragmented(), job, **limits)
        if "--spare" not in options:
            assert len(replayed.found.moves) == len(expected.plan.moves)
            assert len(replayed.found.placements) == len(expected.plan.placements)
        else:
            document = json.loads(bundle.read_text())
            assert document["options"]["evictions"] is False and len(document["options"]["spare"]) == 1
            assert document["options"]["spare"][0] in [task["name"] for task in document["cluster"]["tasks"]]
    assert cli.main(["replay-bundle", str(bundle)]) == 0
    assert capsys.readouterr().out.endswith(f"admit: the same plan as gpusched {gs.__version__} made\n")


@pytest.mark.parametrize(
    "command",
    [
        ["admit", "our-wait"],
        ["allocate", "our-wait"],
        ["consolidate", "--goal", "empty_nodes=1,usable_by=our-new"],
        ["consolidate", "--goal", "empty_nodes=1,usable_by=our-wait"],
    ],
)
def test_names_of_tasks_and_jobs_are_replaced_wherever_they_may_stand(
    tmp_path: Path, command: list[str]
) -> None:
    path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    fragmented().to_json(path)
    cli.main([command[0], str(path), *command[1:], "--save-bundle", str(bundle), "--anonymize-bundle"])
    assert "our-" not in bundle.read_text()
    assert gs.bundles.replay(bundle).same


def test_names_of_pods_are_admitted(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    made = gs.admit(fragmented(), ["our-wait"])
    gs.bundles.save(bundle, "admit", fragmented(), {"job": ["our-wait"]}, made.plan, anonymize=True)
    assert gs.bundles.replay(bundle).same and "our-" not in bundle.read_text()


@pytest.mark.parametrize(("sizes", "anonymize"), [([2], False), ([2, 1], True), ([9], True)])
def test_allocation(tmp_path: Path, sizes: list[int], anonymize: bool) -> None:
    document = fragmented().to_json()
    document["tasks"] = [task for task in document["tasks"] if "four" not in task["name"]]
    path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    path.write_text(json.dumps(document))
    jobs = []
    for i, size in enumerate(sizes):
        jobs.append(str(tmp_path / f"job-{i}.json"))
        Path(jobs[-1]).write_text(
            json.dumps({"name": f"our-own-{i}", "pods": [{**POD, "gpu_count": 6}] * size})
        )
    extra = ["--anonymize-bundle"] if anonymize else []
    code = cli.main(["allocate", str(path), *jobs, "--save-bundle", str(bundle), *extra])
    assert code == (1 if sizes == [9] else 0)
    replayed = gs.bundles.replay(bundle)
    assert replayed.same and replayed.command == "allocate"
    assert ("our-" not in bundle.read_text()) == anonymize
    assert (0 if replayed.found is None else len(replayed.found.placements)) == (
        0 if sizes == [9] else sum(sizes)
    )


@pytest.mark.parametrize(
    ("command", "options", "problem"),
    [
        ("admit", {}, "job: missing; expected the name of a job"),
        ("admit", {"job": []}, "job: []; expected the name of a job"),
        ("allocate", {"jobs": [5]}, "jobs: [5]; expected a list"),
    ],
)
def test_pending_jobs_are_named(tmp_path: Path, command: str, options: dict[str, Any], problem: str) -> None:
    with refuses(problem):
        gs.bundles.save(tmp_path / "bundle.json", command, fragmented(), options, None)
