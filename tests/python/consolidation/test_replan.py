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


def test_mistakes_are_named(cluster, last):
    with refuses("goal: replan() does not support a goal"):
        gs.replan(cluster, last, goal={"empty_nodes": 3})
    with refuses("depth 0 1 16"):
        gs.replan(cluster, last, depth=0)


def test_the_console_goes_on_from_a_file(cluster, last, tmp_path, capsys):
    files = {name: str(tmp_path / f"{name}.json") for name in ("cluster", "last", "plan")}
    cluster.to_json(files["cluster"])
    last.to_json(files["last"])
    assert main(["consolidate", files["cluster"], "--last", files["last"], "-o", files["plan"]]) == 0
    assert "the plan verifies" in capsys.readouterr().out
    assert gs.Plan.from_json(files["plan"]) == gs.replan(cluster, last)
    assert main(["consolidate", files["cluster"], "--last", files["last"], "--goal", "empty_nodes=3"]) == 2
    assert mentions(capsys.readouterr().err, "--goal: --last")
