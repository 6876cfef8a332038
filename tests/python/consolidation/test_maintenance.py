# SPDX-License-Identifier: Apache-2.0
"""Blockers, drain orders and what-if: results, views, errors and the console."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched.cli import main
from messages import mentions, refuses


def half_full() -> dict[str, object]:
    """Four nodes with two tasks of two GPUs each; a1 is locked. The pending job needs a whole node."""
    nodes = [make_node(name) for name in "abcd"]
    tasks = [
        make_task(f"{name}{i}", node=name, gpu_count=2, gpus=[2 * i, 2 * i + 1], locked=f"{name}{i}" == "a1")
        for name in "abcd"
        for i in range(2)
    ]
    tasks.append(make_task("big", gpu_count=8, priority=1))
    tasks.append(make_task("huge", gpu_count=8, job="pair"))
    tasks.append(make_task("huger", gpu_count=8, job="pair"))
    return document(nodes, tasks)


def test_a_goal_may_name_a_task_that_stays_where_it_is() -> None:
    tasks = [
        make_task("user", node="a", gpu_count=2, gpus=[0, 1], locked=True),
        make_task("t", node="b", gpus=[0]),
    ]
    cluster = gs.Cluster.from_json(document([make_node(name) for name in "abc"], tasks))
    for goal in ({"empty_nodes": 2, "usable_by": "user"}, {"empty_nodes": 1, "usable_by": "user"}):
        plan = gs.consolidate(cluster, goal=goal)
        assert plan.goal_reached and gs.verify.plan(cluster, plan).ok


def test_a_pod_that_is_being_deleted_leaves() -> None:
    leaving = make_task(
        "old", node="a", gpu_count=8, gpus=list(range(8)), locked=True, **{"x-terminating": True}
    )
    cluster = gs.Cluster.from_json(document([make_node("a")], [leaving, make_task("new", gpu_count=8)]))
    assert "impossible" not in str(gs.what_if(cluster, consolidate=False))
    (remedy,) = [
        line for line in str(gs.why(cluster, "new")).splitlines() if "wait" in line and "old" in line
    ]
    assert "queue" not in remedy


@pytest.mark.parametrize(
    ("how", "allowed_down", "refused"), [("copy", 0, True), ("copy", 1, False), ("restart", 1, False)]
)
@pytest.mark.parametrize(
    ("command", "held", "freed"),
    [
        (["drain-order", "--nodes", "a,b", "--batch", "1"], "x, y", "a, b"),
        (["blockers"], "[xy]", "[ab]"),
        (["explain-move", "x", "b"], "x", "a"),
        (["why", "pair"], "[xy]", "[ab]"),
    ],
)
def test_plans_name_budgets_at_which_kubectl_drain_would_wait(
    command: list[str],
    held: str,
    freed: str,
    how: str,
    allowed_down: int,
    refused: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tasks = [make_task(name, node=node, gpus=[0], how=how) for name, node in (("x", "a"), ("y", "b"))]
    tasks += [make_task(name, gpu_count=8, job="pair") for name in ("big", "other")]
    budgets = [{"name": "ml/web", "tasks": ["x", "y"], "allowed_down": allowed_down}]
    path = str(tmp_path / "cluster.json")
    nodes = [make_node(name) for name in "abc"]
    gs.Cluster.from_json({**document(nodes, tasks, budgets=budgets), "version": 2}).to_json(path)
    assert main([command[0], path, *command[1:]]) == 0
    said = f"disruption budget ml/web allows no eviction of {held}: kubectl drain would wait for (it|them)"
    nodes_left = "" if command[0] == "why" else f", and the kubectl script would not free {freed}"
    assert (re.search(said + nodes_left, capsys.readouterr().out) is not None) == refused


def contains(text: str, *parts: str) -> bool:
    return all(part in text for part in parts)


@pytest.fixture(scope="module")
def cluster() -> gs.Cluster:
    return gs.Cluster.from_json(half_full())


@pytest.fixture
def path(cluster: gs.Cluster, tmp_path: Path) -> str:
    cluster.to_json(tmp_path / "cluster.json")
    return str(tmp_path / "cluster.json")


def test_blockers(cluster: gs.Cluster) -> None:
    found = gs.blockers(cluster)
    assert (found.vacated_nodes, found.nodes_held, found.gpus_held, found.found) == (2, 1, 8, 1)
    assert found.ranked == [] and len(found) == 0  # half of the GPUs are in use, so two nodes are the most
    assert [(other.name, other.nodes) for other in found.others] == [("a1", 1)]
    assert contains(str(found), "no single blocker helps", "a1 is locked", "removing blockers does not help")
    data = half_full()
    data["tasks"] = [task for task in data["tasks"] if task["name"][0] in "ab"]  # type: ignore[attr-defined]
    data["tasks"][2]["how"] = data["tasks"][3]["how"] = "restart"  # type: ignore[index]
    data["version"] = 2
    data["budgets"] = [{"name": "web", "tasks": ["b0", "b1"], "allowed_down": 0}]
    found = gs.blockers(gs.Cluster.from_json(data))
    assert [(r.blockers[0].kind, r.blockers[0].name, r.nodes, r.gpus, r.freed) for r in found] == [
        ("locked", "a1", 1, 8, ["a"]),
        ("budget", "web", 1, 8, ["b"]),
    ]
    assert found[0] == found.ranked[0] and found[1].blockers[0].tasks == ["b0", "b1"]
    text = str(found)
    assert contains(text, "a1 is locked", "disruption budget web", "with preset best frees 0 nodes")
    assert "with preset fast frees" in str(gs.blockers(cluster, preset="fast"))
    assert list(found.to_pandas().columns) == ["kind", "name", "reason", "nodes", "gpus", "tasks", "freed"]
    assert found.to_pandas().freed.tolist() == [["a"], ["b"]]
    assert "a1 is locked" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found)) == found


def test_blockers_say_what_was_left_out() -> None:
    def fixed(count: int, idle: int) -> gs.Cluster:
        tasks = [make_task(f"t{i}", node=f"n{i}", gpus=[0], locked=True) for i in range(count)]
        return gs.Cluster.from_json(document([make_node(f"n{i}") for i in range(count + idle)], tasks))

    assert contains(str(gs.blockers(fixed(3, 0), max_plans=1)), "1 of 3 blockers were tried (max_plans: 1)")
    assert "max_plans" not in str(gs.blockers(fixed(3, 0)))
    many = document(
        [make_node(f"n{i}") for i in range(12)],
        [make_task(f"t{i}", node=f"n{i}", gpu_count=8, gpus=list(range(8)), locked=True) for i in range(12)],
    )
    text = str(gs.blockers(gs.Cluster.from_json(many)))
    assert contains(text, "12 blockers hold", "\nand 2 more")


@pytest.mark.parametrize(
    ("leaving", "unready", "says"),
    [
        (True, False, "being deleted"),
        (False, True, "bound to a node that is not ready"),
        (True, True, "being deleted"),
        (False, False, "locked"),
    ],
)
def test_locked_tasks_say_why(leaving: bool, unready: bool, says: str) -> None:
    taints = [{"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}] * unready
    nodes = [make_node("a", taints=taints), make_node("b")]
    locked = make_task("t", node="a", gpus=[0], locked=True, **({"x-terminating": True} if leaving else {}))
    cluster = gs.Cluster.from_json({**document(nodes, [locked]), "version": 2})
    assert f"task 't' must stay ({says})" in str(gs.consolidation.explain_move(cluster, "t", "b"))
    assert f"task 't' must stay ({says})" in str(gs.drain_order(cluster, nodes=["a"]))
    if not unready:  # else the node is no node to free
        assert f"t is {says}" in str(gs.blockers(cluster))


def test_drain_order(cluster: gs.Cluster) -> None:
    order = gs.drain_order(cluster, batch=2)
    assert not order and [why.node for why in order.left] == ["a"]
    assert order.left[0].blockers[0].task == "a1" and order.left[0].blockers[0].fixed_by == "locked"
    assert order.batches_at_least == 2 and len(order.batches) == 2
    state = cluster
    for batch in order.batches:
        assert gs.verify.plan(state, batch.plan).ok
        state = gs.apply(state, batch.plan)
        assert all(not state.nodes[name].tasks for name in batch.nodes)
    assert sorted(sum((batch.nodes for batch in order.batches), [])) == ["b", "c", "d"]
    text = str(order)
    assert contains(text, "3 nodes in 2 batches (proven: no order", "in fewer batches)", "must stay (locked)")
    assert "(" not in str(gs.drain_order(cluster, nodes=["a"])).splitlines()[0]
    stopped = str(gs.drain_order(cluster, nodes=["b", "c"], time_limit=0))
    assert contains(stopped, "2 nodes are left", "'b' was not tried") and "cannot" not in stopped
    frame = order.to_pandas()
    assert frame.batch.tolist().count(-1) == 1 and len(frame) == 4
    assert "must stay" in order._repr_html_()
    assert pickle.loads(pickle.dumps(order)) == order
    assert gs.drain_order(cluster, nodes=["b"])


def test_jobs_in_more_than_one_batch() -> None:
    tasks = [make_task(f"gang-{n}", node=n, gpus=[0], job="gang", how="restart") for n in "ab"]
    tasks += [make_task(f"web-{n}", node=n, gpus=[1], job="web") for n in "ab"]  # copies disturb nothing
    tasks.append(make_task("x", node="c", gpus=[0]))
    cluster = gs.Cluster.from_json({**document([make_node(n) for n in "abc"], tasks), "version": 2})
    order = gs.drain_order(cluster, nodes=["a", "b"])
    assert order.jobs_restarted_twice == 1 and [batch.restarted_again for batch in order.batches] == [
        [],
        ["gang"],
    ]
    assert contains(str(order), "1 job restarts in more than one batch", "restarted again: gang")
    assert order.to_pandas().restarted_again.tolist() == [[], ["gang"]]
    assert gs.drain_order(cluster, nodes=["a", "b"], batch=2).jobs_restarted_twice == 0


def test_nodes_that_a_plan_without_the_blocker_no_longer_frees_are_counted() -> None:
    data = document(
        [make_node(name, gpu_count=gpus) for name, gpus in zip("abcd", (4, 4, 8, 8))],
        [
            make_task("a0", node="a", gpus=[0, 1, 2, 3], gpu_count=4, cpu_milli=1000),
            make_task("b0", node="b", gpus=[0, 1], gpu_count=2, cpu_milli=1000, locked=True),
            make_task("c0", node="c", gpus=[0, 1, 2, 3], gpu_count=4, cpu_milli=1000),
            make_task("d0", node="d", gpus=[0], gpu_count=1, cpu_milli=1000, locked=True),
        ],
    )
    found = gs.blockers(gs.Cluster.from_json(data))
    moved = {ranked.blockers[0].name: (ranked.nodes, ranked.freed) for ranked in found}
    assert moved["d0"] == (1, ["a", "d"])  # but no longer c
    assert "a, d, instead of 1 other" in str(found)


def test_what_if(cluster: gs.Cluster) -> None:
    now = gs.what_if(cluster)
    assert [state.state for state in now.states] == ["now", "consolidated"]
    assert [(s.starts, s.alone, s.jobs) for s in now.states] == [(0, 0, 2), (1, 2, 2)]
    assert [job.name for job in now.jobs] == ["big", "pair"]
    more = gs.what_if(cluster, add_nodes={"b": 1}, consolidate=False)
    assert [(s.starts, s.alone, s.jobs) for s in more.states] == [(0, 0, 2), (1, 1, 2)]
    assert more.states[1].placements[0].node == "b-new-1"
    described = gs.what_if(cluster, add_nodes=[(make_node("x", gpu_count=8), 3)], consolidate=False)
    assert described.states[1].starts == 2
    removed = gs.what_if(cluster, remove=["a"], consolidate=False)
    assert removed.lost == ["a1"]
    displaced = next(job for job in removed.jobs if job.name == "a0")
    assert displaced.displaced and displaced.outcomes[1].starts
    assert contains(str(more), "1 of 2 waiting jobs would start", "0 as it is", "pair: ")
    assert "starts only with the change: big" in str(more)
    assert "at least 0 of 2 waiting jobs" in str(gs.what_if(cluster, time_limit=0))
    assert contains(str(now), "after a consolidation", "idle GPUs that a request cannot use")
    frame = more.to_pandas()
    assert len(frame) == 4 and frame.starts.sum() == 1
    assert "1 of 2 waiting jobs" in more._repr_html_()
    assert pickle.loads(pickle.dumps(more)) == more


def test_a_job_of_which_some_pods_fit_does_not_count_as_started() -> None:
    data = half_full()
    data["tasks"] += [make_task(f"p{n}", gpu_count=2, job="job") for n in range(9)]  # type: ignore[operator]
    data["jobs"] = [{"name": "job", "min_members": 1}]
    answer = gs.what_if(gs.Cluster.from_json(data), consolidate=False)
    outcome = next(job.outcomes[0] for job in answer.jobs if job.name == "job")
    assert not outcome.starts and 0 < outcome.pods < 9
    assert f"job: places for {outcome.pods} of 9; " in str(answer)


def test_uncordoned_nodes_take_jobs() -> None:
    data = half_full()
    data["nodes"].append(make_node("e", schedulable=False))  # type: ignore[attr-defined]
    cluster = gs.Cluster.from_json(data)
    assert gs.what_if(cluster, uncordon=["e"], consolidate=False).states[1].starts == 1
    with refuses("uncordon 'a' cordoned"):
        gs.what_if(cluster, uncordon=["a"])
    with refuses("uncordon 'e' not removed"):
        gs.what_if(cluster, uncordon=["e"], remove=["e"])


def test_a_pattern_uncordons_the_cordoned_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unready = [{"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}]
    data = half_full()
    data["nodes"] += [  # type: ignore[operator]
        make_node("e", schedulable=False),
        make_node("f", schedulable=False, taints=unready),
    ]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    said = []
    for nodes in ("e", "*", "*,e"):
        assert main(["what-if", str(path), "--uncordon", nodes, "--no-consolidate"]) == 0
        said.append(capsys.readouterr().out)
    assert "1 of 2 waiting jobs would start with the change" in said[0]
    assert said[1:] == said[:1] * 2


def test_what_if_names_the_states_and_counts_jobs_of_removed_nodes_apart() -> None:
    tasks = [
        make_task("runs", node="a", gpus=[0, 1], gpu_count=2),
        make_task("fills", node="b", gpus=[0, 1, 2, 3], gpu_count=4),
        make_task("small", gpu_count=4),
        make_task("large", gpu_count=8),
    ]
    cluster = gs.Cluster.from_json(
        document([make_node("a"), make_node("b"), make_node("c", gpu_count=2)], tasks)
    )
    text = str(gs.what_if(cluster, remove=["c"], consolidate=False))
    assert "starts as it is: small" in text
    assert "1 job would wait with the change" in text
    answer = gs.what_if(cluster, remove=["a"], consolidate=False)
    assert [job.name for job in answer.jobs if job.displaced] == ["runs"]
    text = str(answer)
    assert text.startswith("1 of 2 waiting jobs would start with the change; 1 as it is\n")
    assert "1 of 1 job of removed nodes would find a new place" in text


@pytest.mark.parametrize(
    ("kind", "how", "lost"),
    [
        ("Slurm job", "none", True),  # Requeue=0
        ("Slurm job", "restart", False),
        ("Job", "none", False),
        (None, "none", True),
    ],
)
def test_tasks_that_nothing_starts_again_are_lost(kind: str | None, how: str, lost: bool) -> None:
    owner = {} if kind is None else {"x-owner-kind": kind}
    task = make_task("17", node="a", gpus=[0], how=how, **owner)
    state = gs.Cluster.from_json({**document([make_node("a"), make_node("b")], [task]), "version": 2})
    answer = gs.what_if(state, remove=["a"], consolidate=False)
    assert answer.lost == (["17"] if lost else [])
    assert [job.name for job in answer.jobs] == ([] if lost else ["17"])


def test_jobs_that_would_no_longer_start_are_named() -> None:
    data = document([make_node("a"), make_node("b", gpu_count=4)], [make_task("big", gpu_count=8)])
    answer = gs.what_if(gs.Cluster.from_json(data), remove=["a"], consolidate=False)
    assert contains(str(answer), "would no longer start with the change: big", "1 job would wait")


def test_all_nodes_of_a_drain_order_are_shown_up_to_50() -> None:
    for nodes in (50, 51):
        cluster = gs.Cluster.from_json(document([make_node(f"n{i:02}") for i in range(nodes)], []))
        for batch in (1, 50):
            text = str(gs.drain_order(cluster, batch=batch, tries=1))
            assert all(f"n{i:02}" in text for i in range(nodes)) == (nodes == 50)


def test_bad_arguments(cluster: gs.Cluster) -> None:
    with refuses("max_plans 0 1"):
        gs.blockers(cluster, max_plans=0)
    for nodes, told in (
        ({"a": 0}, "add_nodes[0] number 0 1 100000"),
        (["a"], "add_nodes[0] pair"),
        ([({"name": "x"}, 1)], "gpu_count"),
        ("a", "add_nodes 'a' dict"),
    ):
        with refuses(told):
            gs.what_if(cluster, add_nodes=nodes)  # type: ignore[arg-type]


def test_console(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blockers", path]) == 0
    assert "1 blocker holds 1 node with 8 GPUs" in capsys.readouterr().out
    folder = tmp_path / "batches"
    assert main(["drain-order", path, "--all", "--batch", "2", "-o", str(folder)]) == 1
    out = capsys.readouterr().out
    assert contains(out, "1 node cannot be drained", "every plan verifies")
    plans = sorted(folder.iterdir())
    assert [plan.name for plan in plans] == ["batch-001.json", "batch-002.json", "batches.csv"]
    rows = plans[-1].read_text().splitlines()
    assert rows[0] == "batch,node,tasks_move" and rows[-1] == "-1,a,no"
    assert len(rows) == 5 and all(row.endswith(",yes") for row in rows[1:4])
    assert gs.verify.plan(path, json.loads(plans[0].read_text())).ok
    assert main(["drain-order", path, "--nodes", "b,c"]) == 0
    chained = tmp_path / "chained"
    arguments = ["--nodes", "[b-d],b*,c,d", "--batch", "1", "-o", str(chained), "--write-clusters"]
    assert main(["drain-order", path, *arguments]) == 2  # a pattern has a *
    assert main(["drain-order", path, *[a.removeprefix("[b-d],") for a in arguments]]) == 0
    for number in (1, 2, 3):
        files = [str(chained / f"{name}-00{number}.json") for name in ("cluster", "batch")]
        assert main(["verify", *files]) == 0
        assert main(["plan-page", *reversed(files), "-o", str(tmp_path / "page.html")]) == 0
    capsys.readouterr()
    assert main(["drain-order", path, "--all", "-o", str(folder)]) == 2
    assert mentions(capsys.readouterr().err, f"--output '{folder}' another run batch-*.json")
    node = tmp_path / "node.json"
    node.write_text(json.dumps(make_node("x")))
    capsys.readouterr()
    assert main(["what-if", path, "--add-nodes", f"{node}=3", "--no-consolidate"]) == 0
    assert "2 of 2 waiting jobs would start" in capsys.readouterr().out
    assert main(["what-if", path, "--remove", "a", "--add-nodes", "b=1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("drain-order CLUSTER", "--nodes --all expected one"),
        ("drain-order CLUSTER --all --nodes a", "--nodes --all expected one"),
        ("drain-order CLUSTER --all --batch 0", "--batch 0 1"),
        ("drain-order CLUSTER --all --model B", "--model 'B'"),
        ("drain-order CLUSTER --nodes z*", "--nodes 'z*' matches no name"),
        ("drain-order CLUSTER --all --write-clusters", "--write-clusters --output"),
        ("blockers CLUSTER --model B", "--model 'B'"),
        ("what-if CLUSTER --add-nodes a", "--add-nodes 'a' NODE=N"),
        ("what-if CLUSTER --add-nodes z=1", "--add-nodes[0] 'z'"),
        ("what-if CLUSTER --uncordon a", "--uncordon 'a' cordoned"),
        ("what-if CLUSTER --uncordon a*", "--uncordon 'a*' matches no cordoned node"),
        ("what-if CLUSTER --remove z*", "--remove 'z*' matches no name"),
        ("blockers CLUSTER --exempt z*", "--exempt 'z*' matches no name"),
        ("consolidate CLUSTER --exempt z*", "--exempt 'z*' matches no name"),
        ("consolidate CLUSTER --clear z*", "--clear 'z*' matches no name"),
        ("frontier CLUSTER --exempt z*", "--exempt 'z*' matches no name"),
        ("drain-order CLUSTER --nodes * --exempt *", "--nodes 4 nodes '*' 'a' exempt"),
        ("drain-order CLUSTER --nodes a,b* --exempt b*", "--nodes 1 node 'b*' 'b' exempt"),
    ],
)
def test_console_mistakes(
    arguments: str, told: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([path if word == "CLUSTER" else word for word in arguments.split()]) == 2
    err = capsys.readouterr().err
    assert mentions(err, told) and err.count("\n") == 1  # one message per pattern
