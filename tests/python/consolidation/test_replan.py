# SPDX-License-Identifier: Apache-2.0
"""Planning again from an earlier plan: in Python and at the console."""

import json

import gpusched as gs
import pytest
from gpusched.cli import main
from messages import mentions, refuses


def without(cluster, tasks, path):
    cluster.to_json(path)
    data = json.loads(path.read_text())
    data["tasks"] = [task for task in data["tasks"] if task["name"] not in tasks]
    return gs.Cluster.from_json(data)


@pytest.fixture(scope="module")
def cluster():
    return gs.sim.generate_cluster(nodes=200, seed=4)


@pytest.fixture(scope="module")
def last(cluster):
    return gs.consolidate(cluster, record_chains=True)


def test_most_of_the_last_plan_stays_and_the_new_one_is_valid(cluster, last, tmp_path):
    gone = {move.task for move in last.moves[:5]}
    later = without(cluster, gone, tmp_path / "cluster.json")
    plan = gs.replan(later, last)
    assert gs.verify.plan(later, plan).ok
    planned = {(move.task, move.to) for move in last.moves}
    assert sum((move.task, move.to) in planned for move in plan.moves) * 10 >= len(plan.moves) * 7
    assert plan.stats["vacated_gpus"] >= 0.98 * gs.consolidate(later).stats["vacated_gpus"]


def test_the_last_plan_may_be_a_file_or_a_dict(cluster, last, tmp_path):
    path = tmp_path / "last.json"
    last.to_json(path)
    plan = gs.replan(cluster, last)
    assert gs.replan(cluster, path) == plan
    assert gs.replan(cluster, json.loads(path.read_text())) == plan


def test_with_a_goal_the_moves_of_the_last_plan_stay(cluster, tmp_path):
    empty = len(gs.consolidation.goal_nodes(cluster, {"empty_nodes": 1}))
    before = gs.consolidate(cluster, goal={"empty_nodes": 1}).stats["goal_before"]
    goal = {"empty_nodes": before + 4}
    last = gs.consolidate(cluster, goal=goal)
    assert empty > before + 4 and last.goal_reached and len(last.moves) >= 4
    gone = {last.moves[0].task}
    later = without(cluster, gone, tmp_path / "cluster.json")
    plan = gs.replan(later, last, goal=goal)
    assert plan.goal_reached and plan.goal == goal and gs.verify.plan(later, plan).ok
    # More is asked for: the search continues.
    more = gs.replan(later, last, goal={"empty_nodes": before + 6})
    assert more.goal_reached and more.stats["goal_after"] >= before + 6
    dropped = {move.task: reason for move, reason in gs.consolidation.dropped_moves(later, last, plan)}
    made = {(move.task, move.to) for move in plan.moves}
    assert set(dropped) == {move.task for move in last.moves if (move.task, move.to) not in made}
    assert dropped[last.moves[0].task] == "it no longer exists"


def test_mistakes_are_named(cluster, last):
    with refuses("goal: neither empty_nodes nor slots"):
        gs.replan(cluster, last, goal={})
    with refuses("price -1"):
        gs.consolidation.dropped_moves(cluster, last, last, price=-1)
    with refuses("unknown node 'nowhere'"):
        wrong = last.to_json() | {"vacated_nodes": ["nowhere"]}
        gs.consolidation.dropped_moves(cluster, last, wrong)
    with refuses("depth 0 1 16"):
        gs.replan(cluster, last, depth=0)


def test_the_console_goes_on_from_a_file(cluster, last, tmp_path, capsys):
    files = {name: str(tmp_path / f"{name}.json") for name in ("cluster", "last", "plan")}
    cluster.to_json(files["cluster"])
    last.to_json(files["last"])
    assert main(["consolidate", files["cluster"], "--last", files["last"], "-o", files["plan"]]) == 0
    assert "the plan verifies" in capsys.readouterr().out
    assert gs.Plan.from_json(files["plan"]) == gs.replan(cluster, last)
    capsys.readouterr()
    gone = last.moves[0].task
    without(cluster, {gone}, tmp_path / "later.json").to_json(tmp_path / "later.json")
    command = ["consolidate", str(tmp_path / "later.json"), "--last", files["last"]]
    assert main([*command, "--goal", "empty_nodes=3"]) == 0
    said = capsys.readouterr().out
    assert mentions(said, "of the earlier plan dropped") and mentions(said, f"{gone}: it no longer exists")
    assert main(command) == 0
    said = capsys.readouterr().out
    plan = gs.replan(gs.Cluster.from_json(command[1]), last)
    still_move, made = {move.task for move in plan.moves}, {(move.task, move.to) for move in plan.moves}
    final = {move.task: move.to for move in last.moves}
    away = [task for task, node in final.items() if (task, node) not in made]
    changed = sum(task in still_move for task in away)
    assert mentions(said, f"{len(away) - changed} move") and ("another target" in said) == (changed > 0)
    assert main([*command, "--goal", "empty_nodes=100000"]) == 1
    capsys.readouterr()
    assert main([*command, "--policies", "node_order=fewest_pods"]) == 2
    assert mentions(capsys.readouterr().err, "--policies: --last")
