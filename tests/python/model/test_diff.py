# SPDX-License-Identifier: Apache-2.0
"""The differences of two snapshots or two plans."""

from __future__ import annotations

import copy
import json
import os
import threading
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from messages import mentions, refuses

BEFORE = document(
    [make_node("n0"), make_node("n1"), make_node("old")],
    [
        make_task("stays", node="n0", gpus=[0]),
        make_task("moves", node="n0", gpus=[1]),
        make_task("stops", node="n1", gpus=[0]),
        make_task("starts"),
        make_task("goes", node="n1", gpus=[1]),
    ],
    jobs=[{"name": "j", "min_members": 1}],
)


def after() -> dict[str, Any]:
    changed = copy.deepcopy(BEFORE)
    changed["now"] = 77  # does not count
    changed["nodes"] = [
        make_node("new"),
        make_node("n1", schedulable=False),
        make_node("n0"),
    ]  # nor does the order
    tasks = {task["name"]: task for task in changed["tasks"]}
    tasks["moves"].update(node="n1", gpus=[1])
    tasks["stops"].pop("node"), tasks["stops"].pop("gpus")
    tasks["starts"].update(node="n0", gpus=[2])
    del tasks["goes"]
    changed["tasks"] = list(tasks.values())
    changed["jobs"][0]["min_members"] = 2
    return changed


def test_every_change_of_a_snapshot_is_a_row() -> None:
    found = gs.diff(BEFORE, after())
    assert not found.equal
    assert list(map(tuple, found)) == [
        ("node", "n1", "changed", "schedulable", True, False),
        ("node", "new", "added", None, None, None),
        ("node", "old", "removed", None, None, None),
        ("task", "goes", "removed", None, None, None),
        ("task", "moves", "changed", "node", "n0", "n1"),
        ("task", "starts", "changed", "node", None, "n0"),
        ("task", "starts", "changed", "gpus", [], [2]),
        ("task", "stops", "changed", "node", "n1", None),
        ("task", "stops", "changed", "gpus", [0], []),
        ("job", "j", "changed", "min_members", 1, 2),
    ]
    text = str(found)
    for words in ("1 node added", "1 task moved", "1 task started", "1 task stopped", "node n0 -> n1"):
        assert mentions(text, words), text


UNSCHEDULABLE, UNREACHABLE, OTHER = (
    {"key": key, "value": "", "effect": "NoSchedule"}
    for key in ("node.kubernetes.io/unschedulable", "node.kubernetes.io/unreachable", "dedicated")
)
CLOSED = {"schedulable": False, "taints": [UNSCHEDULABLE]}
LOST = {"schedulable": False, "taints": [UNREACHABLE, {**UNREACHABLE, "effect": "NoExecute"}]}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({}, {"schedulable": False}, "node n: cordoned"),
        ({}, CLOSED, "node n: cordoned"),
        (CLOSED, {}, "node n: uncordoned"),
        ({}, LOST, "node n: not ready"),
        (LOST, {}, "node n: ready again"),
        (LOST, CLOSED, "node n: cordoned; ready again"),
        (
            LOST,
            {"schedulable": False, "taints": [UNREACHABLE]},
            "node n: taint node.kubernetes.io/unreachable=:NoExecute removed",
        ),
        ({}, {"taints": [OTHER]}, "node n: taint dedicated=:NoSchedule added"),
        ({"taints": [OTHER]}, CLOSED, "node n: cordoned; taint dedicated=:NoSchedule removed"),
        ({"labels": {"a": "1"}}, {"labels": {}}, 'node n: labels {"a": "1"} -> none'),
        ({"failed_gpus": []}, {"failed_gpus": [1]}, "node n: failed_gpus none -> [1]"),
        (
            {"labels": {"a": "1", "b": "2"}},
            {"labels": {"a": "1", "b": "3"}},
            'node n: labels {"b": "2"} -> {"b": "3"}',
        ),
    ],
)
def test_states_of_nodes_are_said_in_words(before: dict[str, Any], after: dict[str, Any], line: str) -> None:
    found = str(gs.diff(*(document([make_node("n", **fields)], []) for fields in (before, after))))
    assert found.splitlines()[1:] == ["  " + line]


def test_a_pod_that_is_being_deleted_is_said_in_words() -> None:
    nodes = [make_node("n")]
    runs, ends = (
        document(
            nodes,
            [make_task("t", node="n", gpus=[0], locked=ends, **{"x-terminating": True} if ends else {})],
        )
        for ends in (False, True)
    )
    assert str(gs.diff(runs, ends)).splitlines()[1:] == ["  task t: is being deleted"]
    assert str(gs.diff(ends, runs)).splitlines()[1:] == ["  task t: is no longer being deleted"]


def test_a_new_note_of_a_pod_is_said_without_its_key() -> None:
    plans = (document([make_node("n")], [make_task("t", **{"x-answer-note": note})]) for note in ("at noon", "at\x1bten"))
    assert str(gs.diff(*plans)).splitlines()[1:] == ["  task t: answer note at noon -> at ten"]


def test_equal_snapshots_have_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(BEFORE))
    for other in (BEFORE, str(path), path, gs.Cluster.from_json(BEFORE)):
        found = gs.diff(BEFORE, other)
        assert found.equal and len(found) == 0 and str(found) == "no differences"


def test_the_changes_by_a_plan_are_its_moves(small: gs.Cluster) -> None:
    plan = gs.consolidate(small)
    found = gs.diff(small, gs.apply(small, plan))
    assert {row.name for row in found} == {move.task for move in plan.moves}
    assert {row.kind for row in found} == {"task"}
    places = {row.name: (row.before, row.after) for row in found if row.field == "node"}
    first = {m.task: m.from_ for m in reversed(plan.moves)}
    last = {m.task: m.to for m in plan.moves}
    assert places == {task: (first[task], last[task]) for task in places}


def test_plans_are_compared_by_their_steps(small: gs.Cluster) -> None:
    plan = gs.consolidate(small, max_moves=4).to_json()
    other = copy.deepcopy(plan)
    other["stats"] = {}  # do not count
    assert gs.diff(plan, other).equal
    other["moves"] = other["moves"][1:] + [{**other["moves"][0], "to": "elsewhere"}]
    other["vacated_nodes"] = other["vacated_nodes"][1:]
    found = gs.diff(plan, other)
    first = plan["moves"][0]
    assert ("move", first["task"], "changed", "to", first["to"], "elsewhere") in list(map(tuple, found))
    assert ("vacated node", plan["vacated_nodes"][0], "removed", None, None, None) in list(map(tuple, found))
    assert len(found) == 2


def test_reading_reports_are_compared_by_their_rows(tmp_path: Path) -> None:
    row = {"kind": "Node", "what": "taints", "fidelity": "exact", "count": 3, "how": "", "examples": ["a"]}
    before = {"rows": [row, {**row, "what": "cordons"}], "absent": []}
    now = {"rows": [{**row, "count": 4, "examples": []}], "absent": [{"kind": "Job", "undecided": "x"}]}
    assert [tuple(row) for row in gs.diff(before, now)] == [
        ("row", "Job, not in the input", "added", None, None, None),
        ("row", "Node, cordons", "removed", None, None, None),
        ("row", "Node, taints", "changed", "count", 3, 4),
    ]
    (tmp_path / "r.json").write_text(json.dumps(before))
    assert gs.diff(before, tmp_path / "r.json").equal
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "1"}},
    }
    report = gs.io.read_kubernetes([{"kind": "List", "apiVersion": "v1", "items": [node]}]).report
    assert gs.diff(report, json.loads(report.to_json())).equal


def test_moved_tasks_are_counted_once() -> None:
    moved = copy.deepcopy(BEFORE)
    next(task for task in moved["tasks"] if task["name"] == "moves").update(node="n1", gpus=[2])
    assert str(gs.diff(BEFORE, moved)).splitlines()[0] == "1 task moved"


def test_pipes_are_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plan = {"format": "gpusched.plan", "version": 1, "waves": 0, "moves": [], "vacated_nodes": []}
    for content in (BEFORE, plan):
        writer = threading.Thread(target=pipe.write_text, args=(json.dumps(content),), daemon=True)
        writer.start()
        assert gs.diff(content, pipe).equal
        writer.join()


def test_long_lists_are_shortened() -> None:
    many = document([make_node(f"n{i}") for i in range(50)], [])
    text = str(gs.diff(many, document([], [])))
    assert mentions(text, "50 nodes removed") and mentions(text, "... and 30 other nodes")


def test_mistakes_are_named(tmp_path: Path) -> None:
    plan = {"format": "gpusched.plan", "version": 1, "waves": 0, "moves": [], "vacated_nodes": []}
    with refuses("after: a plan; expected a snapshot like before"):
        gs.diff(BEFORE, plan)
    with refuses("before: rows: the rows of a reading report"):
        gs.diff({"rows": 3}, {"rows": []})
    for absent in (3, [3], [{}]):
        with refuses("after: absent: the absent of a reading report"):
            gs.diff({"rows": []}, {"rows": [], "absent": absent})
    with refuses("before: a int"):
        gs.diff(3, plan)  # type: ignore[arg-type]
    with refuses("nodes"):
        gs.diff({**BEFORE, "nodes": 7}, BEFORE)
    with pytest.raises(gs.BackendError, match="nowhere"):
        gs.diff(tmp_path / "nowhere.json", BEFORE)


def test_on_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path, content in zip(files, (BEFORE, after())):
        Path(path).write_text(json.dumps(content))
    assert cli.main(["diff", *files]) == 1
    assert mentions(capsys.readouterr().out, "task moves: node n0 -> n1")
    assert cli.main(["diff", *files, "--csv"]) == 1
    assert "task,moves,changed,node,n0,n1\n" in capsys.readouterr().out
    assert cli.main(["diff", files[0], files[0]]) == 0
    assert capsys.readouterr().out == "no differences\n"


@pytest.mark.parametrize(
    ("kind", "gpus", "fields"),
    [
        ("Deployment", [2, 3], []),  # the reader chose them
        ("", [2, 3], []),
        ("Deployment", [2], ["gpu_count", "gpus"]),
        ("Slurm job", [2, 3], ["gpus"]),  # Slurm says them
        (None, [2, 3], ["gpus"]),
    ],
)
def test_numbers_of_gpus_that_the_reader_chose_do_not_count(
    kind: str | None, gpus: list[int], fields: list[str]
) -> None:
    def snapshot(gpus: list[int]) -> dict[str, Any]:
        task = make_task("pod", node="n0", gpus=gpus, gpu_count=len(gpus))
        return document([make_node("n0")], [task if kind is None else {**task, "x-owner-kind": kind}])

    assert gs.diff(snapshot([0, 1]), snapshot(gpus)).column("field") == fields


def test_the_price_of_a_plan_does_not_count(small: gs.Cluster) -> None:
    plan = {**gs.consolidate(small).to_json(), "version": 2}
    assert gs.diff({**plan, "price": 1}, {**plan, "price": 2}).equal
