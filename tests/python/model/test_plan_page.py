# SPDX-License-Identifier: Apache-2.0
"""The page for the approval of a plan."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from html_page import Page
from messages import refuses


@pytest.fixture(scope="module")
def cluster() -> gs.Cluster:
    tasks = [
        make_task("ml/a-0", node="n0", gpus=[0, 1], gpu_count=2, job="ml/a", preemptible=True),
        make_task("ml/a-1", node="n0", gpus=[2, 3], gpu_count=2, job="ml/a", how="restart"),
        make_task("web/<b>", node="n0", gpus=[4]),
        make_task("web/c", node="n1", gpus=[0]),
    ]
    budgets = [{"name": "keep-a", "tasks": ["ml/a-0", "ml/a-1"], "allowed_down": 1}]
    content = document([make_node("n0"), make_node("n1"), make_node("n2")], tasks, budgets=budgets)
    return gs.Cluster.from_json({**content, "version": 2, "now": 1_795_361_074})


def test_the_page_says_what_the_plan_does(cluster: gs.Cluster) -> None:
    plan = gs.consolidate(cluster, goal={"empty_nodes": 2}, clear=["n0"])
    assert plan.goal_reached
    page = gs.plan_page(plan, cluster)
    read = Page(page)
    assert "Plan for 2 empty nodes" in read.text and "snapshot of 2026-11-22 15:24 UTC" in read.text
    assert "2 empty nodes: reached: 1 before the plan, 2 after it." in read.text
    assert str(plan.disturbs) in read.text
    assert ["n0", "A100", "8", "3"] in read.rows
    for move in plan.moves:
        how = "restarted" if move.how == "restart" else "copied"
        gpus = str(cluster.tasks[move.task].gpu_count)
        owner = {"ml": "a", "web": ""}[move.task.split("/")[0]]
        assert [str(move.wave + 1), move.task, owner, gpus, move.from_, move.to, how] in read.rows
    assert ["n0", "A100", "3", "0", " 5 of 8", " 0 of 8"] in read.rows
    assert ["n1", "A100", "1", "4", " 1 of 8", " 6 of 8"] in read.rows
    assert "kind" not in sum(read.rows, [])  # no kind is known
    wave = next(move.wave for move in plan.moves if move.task == "ml/a-1")
    assert f"Wave {wave + 1} uses up disruption budget keep-a: 1 pod of it may be down" in read.text
    assert "1 pod is down while it restarts: ml/a-1." in read.text
    assert "1 pod has no owner that creates a replacement: web/<b>." in read.text
    assert "gpusched verify cluster.json plan.json" in read.text


def test_the_page_needs_nothing_else(cluster: gs.Cluster) -> None:
    page = gs.plan_page(gs.consolidate(cluster, clear=["n0"]), cluster)
    read = Page(page)
    assert not read.tags & {"script", "link", "img", "iframe", "object"}
    assert not {name for name, _ in read.attributes} & {"src", "href", "onclick"}
    assert not re.search(r"url\(|@import|https?:", page)
    assert "@media print" in page and "prefers-color-scheme: dark" in page
    assert "<b>web" not in page and "web/&lt;b&gt;" in page


def test_plans_that_start_pods(cluster: gs.Cluster) -> None:
    made = gs.admit(
        cluster, {"name": "big", "pods": [{"count": 2, "gpu_count": 8, "cpu_milli": 1, "memory_mib": 1}]}
    )
    assert made.admitted
    read = Page(gs.plan_page(made.plan, cluster))
    assert "Plan to start 2 pods of big" in read.text
    assert {row[0] for row in read.rows if row[-1] == "pending"} == {"big-0", "big-1"}


GATED = {"start_time": 40, "x-waiting": {"waits_for": "gate", "detail": ""}}


def queue(*pods: dict[str, object]) -> gs.Cluster:
    """A node with a small pod, one with room for it, a full one, and the pending pods, with 8 GPUs each."""
    tasks = [
        make_task("small", node="n0", gpus=[0], preemptible=True),
        make_task("large", node="n1", gpus=list(range(6)), gpu_count=6),
        make_task("full", node="n2", gpus=list(range(8)), gpu_count=8),
    ]
    tasks += [make_task(**{"gpu_count": 8, "priority": 5, "start_time": 50, **pod}) for pod in pods]
    return gs.Cluster.from_json({**document([make_node(f"n{i}") for i in range(3)], tasks), "version": 2})


@pytest.mark.parametrize(
    ("others", "earlier"),
    [
        ([], None),
        ([{"name": "b", "start_time": 40}], "b (1)"),
        ([{"name": "b", "start_time": 60}], None),  # younger
        ([{"name": "b", "priority": 6, "start_time": 60}], "b (1)"),
        ([{"name": "b", "priority": 4, "start_time": 40}], None),
        ([{"name": "a0"}, {"name": "c"}], "a0 (1)"),  # by name
        ([{"name": f"p-{i}", "job": "p", "start_time": 40} for i in range(3)], "p (3)"),
        ([{"name": "b", "start_time": 40, "gpu_models": ["H100"]}], None),  # does not fit
        ([GATED | {"name": "b"}], None),
    ],
)
def test_pods_that_come_earlier_may_take_the_freed_nodes(
    others: list[dict[str, object]],
    earlier: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = queue({"name": "b-ours"}, *others)
    made = gs.admit(state, "b-ours", evictions=False)
    assert [move.task for move in made.plan.moves] == ["small"]
    (moves,) = (remedy for remedy in gs.why(state, "b-ours").remedies if remedy.kind == "moves")
    assert ("earlier in the queue" in moves.text) == (earlier is not None)
    risk = "come earlier in the queue"
    text = Page(gs.plan_page(made.plan, state)).text
    assert (risk in text) == (earlier is not None)
    state.to_json(tmp_path / "c.json")
    assert cli.main(["admit", str(tmp_path / "c.json"), "b-ours", "--no-evictions"]) == 0
    out = capsys.readouterr().out
    assert (risk in out) == (earlier is not None)
    if earlier is not None:
        assert f"may take them: {earlier}" in text and f"may take them: {earlier}\n" in out


@pytest.mark.parametrize(
    ("gated", "earlier"), [([], "p (2)"), (["p-0"], "p (1)"), (["p-1"], "p (1)"), (["p-0", "p-1"], None)]
)
def test_gated_pods_of_a_job_take_nothing(gated: list[str], earlier: str | None) -> None:
    pods = [{"name": name, "job": "p", "start_time": 40} for name in ("p-0", "p-1")]
    content = queue(
        {"name": "b-ours"}, *(pod | (GATED if pod["name"] in gated else {}) for pod in pods)
    ).to_json()
    state = gs.Cluster.from_json({**content, "jobs": [{"name": "p", "min_members": 1}]})
    text = Page(gs.plan_page(gs.admit(state, "b-ours", evictions=False).plan, state)).text
    assert f"may take them: {earlier}" in text if earlier else "come earlier" not in text


def test_a_new_job_comes_last_in_the_queue() -> None:
    state = queue({"name": "other", "start_time": 10**10})
    job = {
        "name": "new",
        "pods": [{"count": 1, "gpu_count": 8, "cpu_milli": 1, "memory_mib": 1, "priority": 5}],
    }
    made = gs.admit(state, job, evictions=False)
    assert "may take them: other (1)" in Page(gs.plan_page(made.plan, state)).text
    job["pods"][0]["priority"] = 6  # type: ignore[index]
    made = gs.admit(state, job, evictions=False)
    assert "come earlier" not in Page(gs.plan_page(made.plan, state)).text


@pytest.mark.parametrize(
    ("kind", "how", "text"),
    [
        ("Job", "restart", "2 of 3 of ml/train"),
        (None, "restart", "2 of 3 of ml/train"),
        ("StatefulSet", "restart", None),
        ("Job", "copy", None),
    ],
)
def test_jobs_that_stop_in_part(kind: str | None, how: str, text: str | None) -> None:
    owner = {} if kind is None else {"x-owner-kind": kind}
    tasks = [
        make_task(f"ml/train-{i}", node=node, gpus=[i], job="ml/train", how=how, **owner)
        for i, node in enumerate(["n0", "n0", "n1"])
    ]
    state = gs.Cluster.from_json({**document([make_node("n0"), make_node("n1")], tasks), "version": 2})
    page = Page(gs.plan_page(gs.consolidate(state, clear=["n0"]), state)).text
    assert ("only some pods" in page.lower()) == (text is not None)
    assert text is None or text in page
    whole = gs.consolidate(gs.apply(state, gs.consolidate(state, clear=["n0"])))
    assert not whole.moves  # nothing is left to move


def test_requests_for_gpus_that_the_snapshot_lacks(cluster: gs.Cluster) -> None:
    plan = gs.consolidate(cluster, clear=["n0"])
    row = {"kind": "Pod", "what": "annotation gpu-fraction", "errs": "too_lax", "count": 2, "how": "x"}
    for examples, named in ((["web/c", "web/d"], True), (["web/<b>", "web/d"], False), (["web/d"], False)):
        report = {"rows": [{**row, "examples": examples}]}
        text = Page(gs.plan_page(plan, cluster, report=report)).text
        assert ("nodes that receive pods: web/c" in text) == named
        assert ("does not name 1 of them" in text) == (len(examples) == 1)
    assert "gpu-fraction" not in Page(gs.plan_page(plan, cluster)).text
    with refuses("report expected a reading report"):
        gs.plan_page(plan, cluster, report=plan)


@pytest.mark.parametrize(
    "damage", [{"what": 1}, {"what": None}, {"count": "2"}, {"count": None}, {"count": 2.5}]
)
def test_damaged_reports_are_refused(cluster: gs.Cluster, damage: dict[str, object]) -> None:
    row = {
        "kind": "Pod",
        "what": "annotation gpu-fraction",
        "errs": "too_lax",
        "count": 2,
        "how": "x",
    } | damage
    with refuses("report: rows expected the rows of a reading report"):
        gs.plan_page(gs.consolidate(cluster), cluster, report={"rows": [row]})


def test_bad_plans_are_refused_or_named(cluster: gs.Cluster, tmp_path: Path) -> None:
    plan = gs.consolidate(cluster).to_json()
    with refuses("unknown node 'n9'"):
        gs.plan_page({**plan, "moves": [{**plan["moves"][0], "to": "n9"}]}, cluster)
    wrong = {**plan, "vacated_nodes": []}  # it can be executed, but does not verify
    assert "The plan breaks 1 constraint" in Page(gs.plan_page(wrong, cluster)).text
    with pytest.raises(gs.BackendError, match="cannot be written"):
        gs.plan_page(plan, cluster, tmp_path / "no" / "page.html")
    empty = {**plan, "moves": [], "vacated_nodes": [], "waves": 0}
    read = Page(gs.plan_page(empty, cluster))
    assert "No running pod" in read.text and "Start 0" not in read.text


def test_owners_have_their_kinds(cluster: gs.Cluster) -> None:
    content = cluster.to_json()
    for task in content["tasks"]:
        if task.get("job") == "ml/a":
            task["x-owner-kind"] = "Deployment"
    known = gs.Cluster.from_json(content)
    rows = Page(gs.plan_page(gs.consolidate(known, clear=["n0"]), known)).rows
    assert "kind" in sum(rows, [])
    assert {row[2] for row in rows if row[1:2] == ["ml/a-0"]} == {"Deployment a"}


def test_budgets_that_no_wave_uses_up_are_no_risk(cluster: gs.Cluster) -> None:
    content = cluster.to_json()
    content["budgets"][0]["allowed_down"] = 2
    roomy = gs.Cluster.from_json(content)
    assert "keep-a" not in gs.plan_page(gs.consolidate(roomy, clear=["n0"]), roomy)


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (
            {"allowed_down": 0, "tasks": ["a", "b"]},
            "allows no eviction of a, b: kubectl drain would wait for them, and the kubectl script would not free n0.",
        ),
        (
            {"allowed_down": 0, "groups": ["web"]},
            "allows no eviction of b: kubectl drain would wait for it, and the kubectl script would not free n0.",
        ),
        ({"allowed_down": 2, "tasks": ["b"], "broken": True}, "allows no eviction of b:"),
        ({"allowed_down": 1, "tasks": ["a", "b"]}, ""),
        ({"allowed_down": 0, "tasks": ["other"]}, ""),
    ],
)
def test_nodes_that_the_script_leaves_out_are_a_risk(budget: dict[str, Any], says: str) -> None:
    tasks = [
        make_task("a", node="n0", gpus=[0]),
        make_task("b", node="n0", gpus=[1], groups=["web"]),
        make_task("other", node="n1", gpus=[0]),
    ]
    budgets = [{"name": "keep", "tasks": [], **budget}]
    content = document([make_node("n0"), make_node("n1")], tasks, budgets=budgets)
    cluster = gs.Cluster.from_json({**content, "version": 2})
    text = Page(gs.plan_page(gs.consolidate(cluster, clear=["n0"]), cluster)).text
    assert ("the kubectl script would" in text) == bool(says)
    assert not says or "Disruption budget keep " + says in text


def test_evicted_pods_are_down_in_every_wave() -> None:
    tasks = [
        make_task("a", node="n0", gpus=[0], preemptible=True),
        make_task("b", node="n0", gpus=[1], how="restart"),
        make_task("c", node="n1", gpus=[0]),
    ]
    budgets = [{"name": "both", "tasks": ["a", "b"], "allowed_down": 2}]
    content = document([make_node("n0"), make_node("n1")], tasks, budgets=budgets)
    cluster = gs.Cluster.from_json({**content, "version": 2})
    move = {"task": "b", "from": "n0", "to": "n1", "gpus": [1], "wave": 0, "how": "restart"}
    plan = {"format": "gpusched.plan", "version": 2, "waves": 1, "moves": [move], "evictions": ["a"]}
    plan |= {"placements": [], "vacated_nodes": ["n0"], "stats": {}}
    text = Page(gs.plan_page(plan, cluster)).text
    assert "Wave 1 uses up disruption budget both: 2 pods of it may be down" in text
    assert "The eviction at the start uses up" not in text


def test_failed_gpus_are_not_in_use() -> None:
    nodes = [make_node("n0", failed_gpus=[6, 7]), make_node("n1")]
    tasks = [
        make_task("a", node="n0", gpus=[0], preemptible=True),
        make_task("b", node="n1", gpus=[0, 1], gpu_count=2),
    ]
    cluster = gs.Cluster.from_json(document(nodes, tasks))
    plan = gs.consolidate(cluster, clear=["n0"])
    page = Page(gs.plan_page(plan, cluster))
    assert ["n0", "A100", "1", "0", " 1 of 8", " 0 of 8"] in page.rows
    assert plan.stats["vacated_gpus"] == 6
    assert ["n0", "A100", "6", "1"] in page.rows and "6GPUs freed" in page.text.replace(" GPUs", "GPUs")


def test_nodes_without_gpus_have_none_in_use() -> None:
    nodes = [make_node(f"n{i}", gpu_count=0) for i in range(2)]
    tasks = [make_task(name, node=f"n{i}", gpu_count=0, preemptible=True) for i, name in enumerate("ab")]
    cluster = gs.Cluster.from_json(document(nodes, tasks))
    plan = gs.consolidate(cluster, objective="nodes", clear=["n0"])
    page = Page(gs.plan_page(plan, cluster))
    assert ["n0", "A100", "1", "0", "no GPUs", "no GPUs"] in page.rows
    assert "0 of 0" not in page.text


@pytest.mark.parametrize(
    ("gpu_count", "before", "after"),
    [(0, "2 of 7 devices", "0 of 7 devices"), (1, "0 of 1, 2 of 7 devices", "0 of 1, 0 of 7 devices")],
)
def test_devices_in_use_are_shown(gpu_count: int, before: str, after: str) -> None:
    group = [{"device_class": "mig-1g", "count": 7}]
    nodes = [make_node(f"n{i}", gpu_count=gpu_count, devices=group) for i in range(2)]
    device = {"gpu_count": 0, "device_count": 1, "device_classes": ["mig-1g"], "preemptible": True}
    places = [("a", "n0", 0), ("b", "n0", 1), ("c", "n1", 0)]
    tasks = [make_task(name, node=node, gpus=[gpu_count + at], **device) for name, node, at in places]
    state = gs.Cluster.from_json({**document(nodes, tasks), "version": 2})
    rows = Page(gs.plan_page(gs.consolidate(state, objective="nodes", clear=["n0"]), state)).rows
    assert [cell.strip() for row in rows if row[:1] == ["n0"] for cell in row[4:]] == [before, after]


@pytest.mark.parametrize("name", ["a b", "it's", "$(id)", "`id`", "a;b", "a|b", "a*", "-p", "\\"])
def test_commands_quote_the_names_of_files(cluster: gs.Cluster, tmp_path: Path, name: str) -> None:
    plan_file, cluster_file = tmp_path / f"{name}.json", tmp_path / f"{name} c.json"
    gs.consolidate(cluster).to_json(str(plan_file))
    cluster.to_json(str(cluster_file))
    text = Page(gs.plan_page(str(plan_file), str(cluster_file))).text
    words = [shlex.split(line) for line in text.splitlines() if line.startswith("gpusched ")]
    files = [cluster_file.name, plan_file.name]
    assert [word.removeprefix("./") for word in words[0][2:]] == files
    assert not any(word.startswith("-") for word in words[0])
    assert words[1][-1].removeprefix("./") == f"{name}.sh"
    # A shell reads the same words.
    line = next(line for line in text.splitlines() if line.startswith("gpusched verify "))
    out = subprocess.run(
        ["sh", "-c", line.replace("gpusched verify", "printf '%s\\n'", 1)], capture_output=True
    )
    assert [word.removeprefix("./") for word in out.stdout.decode().splitlines()] == files


def test_on_the_console(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = {name: str(tmp_path / name) for name in ("c 1.json", "p.json", "page.html")}
    cluster.to_json(paths["c 1.json"])
    gs.consolidate(cluster).to_json(paths["p.json"])
    assert cli.main(["plan-page", paths["p.json"], paths["c 1.json"], "-o", paths["page.html"]]) == 0
    text = Page(Path(paths["page.html"]).read_text()).text
    assert "gpusched verify 'c 1.json' p.json" in text  # the names of the files
    capsys.readouterr()
    assert cli.main(["plan-page", paths["p.json"], paths["c 1.json"]]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    Path(paths["p.json"]).write_text(json.dumps({"format": "gpusched.plan"}))
    assert cli.main(["plan-page", paths["p.json"], paths["c 1.json"]]) == 2
