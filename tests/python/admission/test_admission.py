# SPDX-License-Identifier: Apache-2.0
"""gs.admit and `gpusched admit`."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document as snapshot
from gpusched import cli
from messages import mentions, problems_in, refuses

ONLY_GPUS = {"cpu_milli": 0, "memory_mib": 0}


def node(name: str, gpus: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "gpu_count": gpus, "cpu_milli": 64000, "memory_mib": 65536, **more}


def task(name: str, on: str, gpus: list[int], **more: Any) -> dict[str, Any]:
    return {"name": name, "gpu_count": len(gpus), **ONLY_GPUS, "node": on, "gpus": gpus, **more}


def one_pod(name: str, gpus: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "pods": [{"count": 1, "gpu_count": gpus, **ONLY_GPUS, **more}]}


def fragmented(nodes: int = 4) -> dict[str, Any]:
    """Every node holds 4 + 2 of 8 GPUs."""
    shapes = (("four", [0, 1, 2, 3]), ("two", [4, 5]))
    tasks = [task(f"{name}{n}", f"n{n}", gpus) for n in range(nodes) for name, gpus in shapes]
    tasks.append({"name": "waits", "job": "big", "gpu_count": 8, **ONLY_GPUS, "priority": 5})
    jobs = [{"name": "big", "min_members": 1}]
    return snapshot([node(f"n{n}", 8) for n in range(nodes)], tasks, now=0, jobs=jobs)


JOB = one_pod("new", 8)


@pytest.mark.parametrize("job", ["big", ["waits"], JOB])
def test_a_job_by_name_by_pods_and_as_a_dict(job: Any) -> None:
    cluster = gs.Cluster.from_json(fragmented())
    made = gs.admit(cluster, job)
    assert made and made.admitted and made.proven and made.reason == "" and made.obstacle == "none"
    assert len(made.plan.moves) == 3 and made.plan.evictions == [] and made.lost == []
    assert made.cost_parts["moves"] == made.cost == made.bound == 240.0
    assert [p.node for p in made.pods] == [p.node for p in made.plan.placements]
    assert gs.verify.plan(cluster, made.plan).ok
    assert made.stats["steps"] > 0 and made.stop_reason == "completed"


@pytest.mark.parametrize("name", ["a", "z"])
def test_pods_of_a_new_job_may_come_before_those_of_the_cluster(name: str) -> None:
    """Ids follow names: what was read for the cluster without the job would be another task in the one with
    it.
    """
    tasks = [task(f"p{k}", "n", [k], job=f"j{k}", preemptible=True) for k in range(4)]
    cluster = gs.Cluster.from_json(snapshot([node("n", 4)], tasks, now=0))
    job = one_pod(name, 1, priority=9)
    for spared in ("p0", "p1", "p2", "p3"):
        made = gs.admit(cluster, job, spare=[other for other in ("p0", "p1", "p2", "p3") if other != spared])
        assert made.plan.evictions == [spared]
    waits = {"name": "q", "job": "waits", "gpu_count": 1, **ONLY_GPUS}
    document = cluster.to_json()
    document["nodes"][0]["gpu_count"] = 6
    document["tasks"].append(waits)
    found = gs.allocate_many(gs.Cluster.from_json(document), [job, "waits"])
    assert [[pod for pod, _, _ in one.pods] for one in found.jobs] == [[f"{name}-0"], ["q"]]


def test_prices_and_spared_names_choose_the_means() -> None:
    document = fragmented(1)
    for task in document["tasks"]:
        task["preemptible"] = "node" in task
    cluster = gs.Cluster.from_json(document)
    made = gs.admit(cluster, "big")
    assert sorted(made.lost) == ["four0", "two0"] and made.cost_parts["losses"] == 6 * 3600
    assert gs.admit(cluster, "big", loss_s=1).cost == 6
    assert not gs.admit(cluster, "big", evictions=False) and not gs.admit(cluster, "big", spare=["four0"])
    refused = gs.admit(cluster, "big", exempt=["n0"])
    assert not refused.admitted and refused.proven and refused.bound is None
    assert refused.obstacle == "gpu" and "n0" in refused.reason


def test_a_filter_is_called_once_for_each_pair_and_its_faults_surface() -> None:
    cluster = gs.Cluster.from_json(fragmented(6))
    calls: list[tuple[str, str]] = []

    def away(snapshot: gs.Cluster, task: gs.Task, node: gs.Node) -> bool:
        calls.append((task.name, node.name))
        return node.name not in ("n0", "n3")

    made = gs.admit(cluster, "big", filter=away)
    assert made and gs.verify.plan(cluster, made.plan).ok and len(calls) == len(set(calls))
    assert {pod.node for pod in made.pods} | {move.to for move in made.plan.moves} <= {"n1", "n2", "n4", "n5"}
    refused = gs.admit(cluster, "big", filter=lambda *_: False)
    assert not refused and refused.proven and "the filter rejects 6 of 6 nodes" in refused.reason
    with pytest.raises(ZeroDivisionError):
        gs.admit(cluster, "big", filter=lambda *_: 1 // 0)
    wrong: list[tuple[Any, str]] = [
        (lambda *_: 3, "filter's answer for task 'waits' and node 'n0': 3"),
        ("nobody", "filter: 'nobody'; expected one of"),
    ]
    for filter_, message in wrong:
        with refuses(message):
            gs.admit(cluster, "big", filter=filter_)


def test_moved_and_evicted_tasks() -> None:
    document = fragmented(2)
    for task in document["tasks"][:4]:
        task["preemptible"] = True
    made = gs.admit(gs.Cluster.from_json(document), "big", moves=False)
    assert made and made.moved == [] and made.evicted == made.plan.evictions and len(made.evicted) == 2
    assert set(made.lost) < set(made.evicted)
    assert sum(made.cost_parts.values()) == made.cost == made.plan.stats["total"] >= made.bound
    moved = gs.admit(gs.Cluster.from_json(fragmented()), "big", evictions=False)
    assert moved.moved == [move.task for move in moved.plan.moves] and moved.evicted == []


def test_files_of_a_plan_bring_the_new_pods_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = gs.Cluster.from_json(fragmented())
    made = gs.admit(cluster, JOB)
    document = made.plan.to_json()
    assert (
        document["version"] == 2 and document["cost"] == made.cost_parts and made.plan.cost == made.cost_parts
    )
    assert [task["name"] for task in document["x-brings"]["tasks"]] == ["new-0"]
    made.plan.to_json(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == document
    # The new pod is not in the cluster yet, so a script cannot wait for it.
    assert "\nW|" not in gs.io.plan_to_kubernetes_steps(made.plan)
    assert cli.main(["export", str(tmp_path / "plan.json"), "--to", "kubernetes"]) == 0
    script, notes = capsys.readouterr()
    assert "\nW|" not in script and "\nM|" in script and mentions(notes, "new-0")
    for source in (document, tmp_path / "plan.json"):
        read = gs.Plan.from_json(source)
        assert read == made.plan and gs.verify.plan(cluster, source).ok and gs.verify.plan(cluster, read).ok
        assert gs.apply(cluster, source) == gs.apply(cluster, made.plan)
    assert "x-brings" not in gs.admit(cluster, "big", filter=lambda c, t, n: True, loss_s=1).plan.to_json()
    escaped = tmp_path / "escaped.json"
    escaped.write_text(json.dumps(document).replace('"x-brings"', '"x-\\u0062rings"'))
    assert gs.Plan.from_json(escaped) == made.plan
    pod = document["x-brings"]["tasks"][0]
    for wrong, message in (
        ({"tasks": [{**pod, "gpu_count": -1}]}, "x-brings: /tasks/0/gpu_count"),
        (
            {"tasks": [{**pod, "node": "n2", "gpus": list(range(8))}]},
            "task 'new-0': runs on a node; expected a pending task",
        ),
        ({"tasks": [pod, pod]}, "task 'new-0': appears twice"),
        ({"tasks": [pod, {**pod, "name": "ghost"}]}, "task 'ghost': not placed by the plan"),
        (
            {"nodes": [{"name": "n9", "gpu_count": 8, "cpu_milli": 1, "memory_mib": 1}]},
            "expected only tasks, jobs and label_levels",
        ),
    ):
        with refuses(message):
            gs.Plan.from_json({**document, "x-brings": {**document["x-brings"], **wrong}})
    snapshot, job, plan = tmp_path / "c.json", tmp_path / "job.json", tmp_path / "p.json"
    cluster.to_json(snapshot)
    job.write_text(json.dumps(JOB))
    assert cli.main(["admit", str(snapshot), str(job), "-o", str(plan)]) == 0
    assert cli.main(["verify", str(snapshot), str(plan)]) == 0


def test_a_plan_that_brings_pods_is_explained() -> None:
    cluster = gs.Cluster.from_json(fragmented())
    plan = gs.admit(cluster, JOB, task_price_s=1).plan
    after = gs.apply(cluster, plan)
    home = after.tasks["new-0"].node
    c = gs.consolidation
    assert c.explain(cluster, plan, home).fate == "receives"
    assert str(c.value_report(cluster, plan)) and c.explain_clear(cluster, plan, clear=[home])[0].node == home
    task = next(task.name for task in after.tasks if task.node not in (None, home))
    told = str(c.explain_move(cluster, task, home, plan=plan))
    assert told.startswith(
        f"task '{task}' cannot move to node '{home}' (too few idle GPUs); the move alone frees no node"
    )
    told = str(c.explain_move(cluster, "new-0", home, plan=plan))
    assert mentions(told, f"task 'new-0' does not run before the plan node '{home}'")
    free = {"cpu_milli": 0, "memory_mib": 0}
    running = {"preemptible": True, **free}
    tasks = [
        {"name": "t", "node": "n0", "gpu_count": 1, "gpus": [0], **running},
        {"name": "u", "node": "n1", "gpu_count": 2, "gpus": [0, 1], **running},
    ]
    nodes = [{"name": name, "gpu_count": 8, **free} for name in ("n0", "n1")]
    cluster = gs.Cluster.from_json(
        {"format": "gpusched.cluster", "version": 1, "nodes": nodes, "tasks": tasks}
    )
    plan = gs.admit(cluster, {"name": "new", "pods": [{"count": 1, "gpu_count": 7, **free}]}).plan
    assert mentions(str(c.explain(cluster, plan, "n0")), "node 'n0' stays occupied plan 1 task")
    plan = gs.admit(
        cluster, {"name": "new", "pods": [{"count": 2, "gpu_count": 8, "priority": 1, **free}]}
    ).plan
    assert sorted(plan.evictions) == ["t", "u"]
    assert mentions(str(c.explain_move(cluster, "t", "n1", plan=plan)), "task 't' is evicted by the plan")


# GPUs of the tasks of each node; those with a letter belong to the gang of that name.
@pytest.mark.parametrize(
    ("nodes", "least"),
    [
        (("1b 1 1", "2 1 2b", "4 2 1 1"), {"b": 2}),
        (("4 1 1 1", "1 2b 1 1 1 2a", "1b 2"), {"a": 1}),
        (("1 4 1a 1b 1", "1a 2a", "1a 1b 1a"), {"a": 2}),
        (("4b 2 1 1b", "4 1 1 1 1a", "1b 1 4a 1 1b"), {}),
    ],
)
def test_a_gang_that_takes_all_nodes_is_let_in(nodes: tuple[str, ...], least: dict[str, int]) -> None:
    """Tasks that were evicted and placed again on the next pod's node used up the steps of the search."""
    free = {"cpu_milli": 0, "memory_mib": 0}
    tasks: list[dict[str, Any]] = []
    for n, on_node in enumerate(nodes):
        first = 0
        for size in on_node.split():
            gpus, gang = list(range(first, first + int(size[0]))), {"job": size[1:]} if size[1:] else {}
            fields = {"node": f"n{n}", "gpu_count": len(gpus), "gpus": gpus, "preemptible": True}
            tasks.append({"name": f"t{n}-{first}", **fields, **free, **gang})
            first += len(gpus)
    gangs = sorted({task["job"] for task in tasks if "job" in task})
    cluster = gs.Cluster.from_json(
        {
            "format": "gpusched.cluster",
            "version": 1,
            "nodes": [{"name": f"n{n}", "gpu_count": 8, **free} for n in range(len(nodes))],
            "tasks": tasks,
            "jobs": [{"name": gang, "min_members": least.get(gang, 0)} for gang in gangs],
        }
    )
    job = {"name": "new", "pods": [{"count": len(nodes), "gpu_count": 8, "priority": 10, **free}]}
    assert gs.preemption.preempt_gang(cluster, job)
    made = gs.admit(cluster, job, moves=False)
    assert made.admitted and sorted(made.evicted) == sorted(task["name"] for task in tasks)
    assert gs.verify.plan(cluster, made.plan).ok


def test_moves_alone_admit_a_job() -> None:
    cluster = gs.Cluster.from_json(fragmented())
    plan = gs.make_room(cluster, JOB, task_price_s=1)
    assert plan is not None and len(plan.moves) == 3 and [p.task for p in plan.placements] == ["new-0"]
    assert (
        gs.verify.plan(cluster, plan).ok
        and plan == gs.admit(cluster, JOB, evictions=False, task_price_s=1).plan
    )
    document = fragmented(1)
    for task in document["tasks"]:
        task["preemptible"] = "node" in task
    assert (
        gs.admit(gs.Cluster.from_json(document), "big")
        and gs.make_room(gs.Cluster.from_json(document), "big") is None
    )
    with refuses("evictions: True; expected False"):
        gs.make_room(cluster, JOB, evictions=True)
    with pytest.raises(gs.InvalidInput) as wrong:
        gs.make_room(cluster, JOB, evictions=3)
    assert "expected False" not in str(wrong.value)


def test_a_job_given_as_a_dict_brings_its_subgroups() -> None:
    cluster = gs.Cluster.from_json(fragmented())
    pod = {"gpu_count": 1, "cpu_milli": 0, "memory_mib": 0}
    job = {
        "name": "new",
        "min_members": 3,
        "subgroups": [{"name": "leader", "min_members": 1}, {"name": "worker", "min_members": 2}],
        "pods": [{"count": 1, "subgroup": "leader", **pod}, {"count": 3, "subgroup": "worker", **pod}],
    }
    made = gs.admit(cluster, job)
    assert made and pickle.loads(pickle.dumps(made)) == made
    assert gs.verify.plan(cluster, made.plan).ok
    after = gs.apply(cluster, made.plan)
    assert [after.tasks[f"new-{i}"].subgroup for i in range(4)] == ["leader", "worker", "worker", "worker"]
    assert gs.allocate(cluster, job).placed
    for change, message in (
        ({"subgroups": [{"name": "leader"}]}, "task 'new-1': subgroup: 'worker' job 'new'"),
        ({"min_members": 1}, "job 'new' min_members 1 3"),
        ({"subgroups": [{"size": 1}]}, "job /subgroups/0/size unknown name min_members"),
        ({"subgroups": "leader"}, 'job /subgroups array "leader"'),
    ):
        with refuses(message):
            gs.admit(cluster, {**job, **change})


def test_copies_and_pickles() -> None:
    made = gs.admit(gs.Cluster.from_json(fragmented()), "big")
    assert pickle.loads(pickle.dumps(made)) == made == copy.copy(made) == copy.deepcopy(made)


def test_bad_values_come_together() -> None:
    cluster = gs.Cluster.from_json(fragmented())
    assert len(problems_in(gs.admit, cluster, "big", move_price_s=-1, depth=17, exempt=["n9"])) == 3
    with pytest.raises(gs.InvalidInput, match="spare: "):
        gs.admit(cluster, "big", spare=["nobody"])
    with pytest.raises(TypeError):
        gs.admit(cluster, 3)  # type: ignore[arg-type]


def test_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot, plan, job = tmp_path / "cluster.json", tmp_path / "plan.json", tmp_path / "job.json"
    snapshot.write_text(json.dumps(fragmented()))
    job.write_text(json.dumps(JOB))
    assert cli.main(["admit", str(snapshot), "big", "-o", str(plan)]) == 0
    text = capsys.readouterr().out
    assert mentions(text, "waits goes to") and text.count(": move ") == 3
    assert mentions(text, "cost 240 GPU-seconds (moves 240);")
    assert gs.verify.plan(gs.Cluster.from_json(str(snapshot)), str(plan)).ok
    restarting = fragmented()
    restarting["version"] = 2
    for task in restarting["tasks"]:
        task |= {"how": "restart", "preemptible": True}
    (tmp_path / "restarting.json").write_text(json.dumps(restarting))
    assert cli.main(["admit", str(tmp_path / "restarting.json"), "big", "--no-evictions"]) == 0
    # A restart loses work, and moves have no part for it.
    assert mentions(capsys.readouterr().out, "not counted: work lost by 3 restarted pods")
    found = gs.why(gs.Cluster.from_json(restarting), "big")
    assert "not counted: work lost by 3 restarted pods" in str(found)
    assert cli.main(["admit", str(snapshot), str(job), "--max-moves", "3", "--task-price-s", "1"]) == 0
    assert "tasks 3" in capsys.readouterr().out
    assert cli.main(["admit", str(snapshot), "big", "--no-moves"]) == 1
    assert mentions(capsys.readouterr().out, "not admitted: task 'waits' fits on no node")
    assert cli.main(["admit", str(snapshot), "big", "--spare", "*"]) == 1  # patterns
    assert cli.main(["admit", str(snapshot), "big", "--spare", "nobody*", "--spare", "four0"]) == 2
    assert mentions(capsys.readouterr().err, "--spare: 'nobody*' matches no")
    assert cli.main(["admit", str(snapshot), "big", "--depth", "0"]) == 2


def test_quotas_of_tenants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = fragmented()
    document["version"] = 2
    for task in document["tasks"]:
        task["groups"] = ["ads"]
    cluster = gs.Cluster.from_json(document)
    quota: dict[str, Any] = {"tenant": "ads", "gpu_milli": 32_000}
    assert gs.admit(cluster, "big", quotas=[quota])
    refused = gs.admit(
        cluster, "big", quotas=[{"tenant": "maps", "gpu_milli": 0}, {**quota, "gpu_milli": 31_000}]
    )
    assert not refused and refused.proven and refused.obstacle == "gpu"
    assert mentions(refused.reason, "tenant 'ads' 31 GPUs: 24 8")
    # A job that is in no snapshot yet names its tenant.
    pods = {"count": 1, "gpu_count": 8, "cpu_milli": 9000, "memory_mib": 0, "groups": ["ads"]}
    job = {"name": "new", "pods": [pods]}
    assert gs.admit(cluster, job, quotas=[{**quota, "cpu_milli_per_gpu": 1125}])
    many = gs.admit(cluster, job, quotas=[{**quota, "cpu_milli_per_gpu": 1124}])
    assert many.obstacle == "cpu" and mentions(many.reason, "cores GPU task 'new-0' 9 8")
    for wrong, words in (
        ({"gpu_milli": 1}, "tenant"),
        ({**quota, "gpus": 1}, "gpus"),
        ({**quota, "gpu_milli": -1}, "quotas /0/gpu_milli -1"),
    ):
        with refuses(words):
            gs.admit(cluster, "big", quotas=[wrong])

    cluster.to_json(tmp_path / "cluster.json")
    (tmp_path / "quotas.json").write_text(json.dumps({"quotas": [{**quota, "gpu_milli": 31_000}]}))
    command = ["admit", str(tmp_path / "cluster.json"), "big", "--quotas", str(tmp_path / "quotas.json")]
    bundle = str(tmp_path / "bundle.json")
    assert cli.main([*command, "--save-bundle", bundle]) == 1
    assert mentions(capsys.readouterr().out, "not admitted: tenant 'ads' 31 GPUs")
    assert cli.main(["replay-bundle", bundle]) == 0
    unused = {"tenant": "secret", "gpu_milli": 1}
    (tmp_path / "quotas.json").write_text(json.dumps({"quotas": [{**quota, "gpu_milli": 31_000}, unused]}))
    assert cli.main([*command, "--save-bundle", bundle, "--anonymize-bundle"]) == 1
    text = Path(bundle).read_text()
    assert "ads" not in text and "secret" not in text
    assert cli.main(["replay-bundle", bundle]) == 0  # refused by the same quota
    (tmp_path / "quotas.json").write_text(json.dumps({"quotas": 1}))
    assert cli.main(command) == 2
    assert mentions(capsys.readouterr().err, 'expected a mapping "quotas"')


@pytest.mark.parametrize("names", [("t0", "t1"), ("t1", "t0")])
def test_a_filter_distinguishes_tasks_that_are_equal_otherwise(names: tuple[str, str]) -> None:
    """Only the second of two equal tasks may go to the empty node: it must be the one that moves, whatever it
    is called.
    """
    stays, goes = names
    places = ((stays, "n1", [0, 1]), (goes, "n1", [2, 3]), ("resident", "n0", [0]))
    tasks = [task(name, on, gpus, preemptible=True) for name, on, gpus in places]
    cluster = gs.Cluster.from_json(snapshot([node("n0", 3), node("n1", 4)], tasks, now=0))
    job = one_pod("new", 2, priority=9)

    def only(_: gs.Cluster, task: gs.Task, node: gs.Node) -> bool:
        return (
            node.name == "n1"
            if task.name.startswith("new")
            else not (task.name == stays and node.name == "n0")
        )

    made = gs.admit(cluster, job, filter=only, evictions=False)
    assert made.moved == [goes] and made.evicted == [] and made.proven


@pytest.mark.parametrize("names", [("t0", "t1"), ("t1", "t0")])
@pytest.mark.parametrize("kind", ["failed GPU", "device class", "lent GPU"])
def test_tasks_that_ask_for_the_same_but_free_different_things(kind: str, names: tuple[str, str]) -> None:
    wrong, right = names
    full, free = node("n0", 2, labels={"here": "yes"}), node("n1", 2)
    ask: dict[str, Any] = {"gpus": 1}
    more: list[dict[str, Any]] = []
    held: dict[str, Any] = {"gpu_count": 1}
    if kind == "failed GPU":
        full["failed_gpus"] = [0]
    elif kind == "device class":
        ask = {"gpus": 0, "device_count": 1, "device_classes": ["q"]}
        held = {"gpu_count": 0, "device_count": 1, "device_classes": ["m", "q"]}
        for one in (full, free):
            one.update(gpu_count=0, devices=[{"device_class": k, "count": 1} for k in "mq"])
    else:
        held = {"gpu_count": 1, "priority_class": "LP"}
        more = [task("s", "n0", [0], standby=True, priority=99, priority_class="HP")]
        ask["priority_class"] = "HP"
    tasks = [task(name, "n0", [gpu], preemptible=True, **held) for gpu, name in enumerate((wrong, right))]
    more.append({"name": "resident", "gpu_count": 0, "cpu_milli": 1, "memory_mib": 0, "node": "n1"})
    cluster = gs.Cluster.from_json(snapshot([full, free], tasks + more, version=2, now=0))
    job = one_pod("new", priority=9, node_selector=full["labels"], **ask)
    made = gs.admit(cluster, job, evictions=False)
    assert made.admitted and made.moved == [right]


@pytest.mark.parametrize("constraint", ["anti_affinity", "affinity", "spread", "avoid", "near"])
def test_a_plan_of_new_pods_keeps_levels_that_are_label_keys(constraint: str, tmp_path: Path) -> None:
    """Elsewhere the levels may have other numbers: their keys identify them."""
    nodes = [node(f"n{n}", 4, labels={"zone": "ab"[n], "rack": str(n)}) for n in range(2)]
    document = snapshot(nodes, [], version=2, now=0)
    cluster = gs.Cluster.from_json({**document, "label_levels": ["zone", "rack"]})
    group = "other" if constraint == "avoid" else "g"
    groups = {} if constraint == "anti_affinity" else {"groups": ["g"]}
    job = one_pod("new", 1, **groups, **{constraint: [{"group": group, "level": "rack"}]})
    made = gs.admit(cluster, job)
    assert made.admitted
    file = tmp_path / "plan.json"
    made.plan.to_json(file)
    for plan in (
        gs.Plan.from_json(made.plan.to_json()),
        gs.Plan.from_json(file),
        pickle.loads(pickle.dumps(made.plan)),
    ):
        assert plan == made.plan and gs.verify.plan(cluster, plan).ok
        for levels in (["zone", "rack"], ["rack", "zone"], ["rack"], []):
            after = gs.apply(gs.Cluster.from_json({**document, "label_levels": levels}), plan).to_json()
            (task,) = after["tasks"]
            assert task[constraint][0]["level"] == "rack" and "rack" in after["label_levels"]


@pytest.mark.parametrize(
    ("change", "says"),
    [({"locked": True}, "locked or standby"), ({"name": "ghost"}, "task 'ghost': not placed by the plan")],
)
def test_new_pods_of_a_plan(change: dict[str, Any], says: str) -> None:
    made = gs.admit(gs.Cluster.from_json(fragmented()), JOB)
    document = made.plan.to_json()
    document["x-brings"]["tasks"][0].update(change)
    with refuses(says):
        gs.Plan.from_json(document)


def test_a_plan_brings_no_jobs_without_tasks_and_no_budgets() -> None:
    document = gs.admit(gs.Cluster.from_json(fragmented()), JOB).plan.to_json()
    brought = copy.deepcopy(document)
    brought["x-brings"]["jobs"] = [{"name": "ghost", "min_members": 1}]
    with refuses("job 'ghost': no tasks"):
        gs.Plan.from_json(brought)
    document["x-brings"]["now"] = 5
    with refuses("expected only tasks, jobs and label_levels"):
        gs.Plan.from_json(document)
