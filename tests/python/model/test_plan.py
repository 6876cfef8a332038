# SPDX-License-Identifier: Apache-2.0
"""Plans: documents, checks, application."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import tiny_document


def plan_document(**fields: Any) -> dict[str, Any]:
    """Moves the only task of n0 to n1, which vacates n0."""
    return {
        "format": "gpusched.plan",
        "version": 1,
        "waves": 1,
        "moves": [{"task": "small", "from": "n0", "to": "n1", "gpus": [4], "wave": 0}],
        "vacated_nodes": ["n0"],
        "evictions": [],
        "placements": [],
        "stats": {},
        "bound": {
            "occupied_nodes_at_least": 0,
            "vacated_nodes_at_most": 0,
            "vacated_gpus_at_most": 0,
            "method": "",
        },
        **fields,
    }


def test_documents_survive_the_round_trip(tmp_path: Path) -> None:
    plan = gs.Plan.from_json(plan_document(stats={"moves": 1, "gain": 0.5}))
    assert gs.Plan.from_json(plan.to_json()) == plan
    plan.to_json(tmp_path / "plan.json")
    assert gs.Plan.from_json(tmp_path / "plan.json") == plan
    move = plan.moves[0]
    assert (move.task, move.from_, move.to, move.gpus, move.wave) == ("small", "n0", "n1", [4], 0)
    assert (plan.waves, plan.vacated_nodes, plan.evictions, plan.placements) == (1, ["n0"], [], [])
    assert plan.stats == {"moves": 1, "gain": 0.5} and isinstance(plan.stats["moves"], int)
    assert plan.bound["method"] == "" and plan.stop_reason is None
    assert repr(plan).startswith("<gpusched.Plan: 1 move in 1 wave")


def test_copies_and_pickles_are_equal(tiny: gs.Cluster) -> None:
    plan = gs.consolidate(tiny)
    for other in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert other == plan and other.stop_reason == plan.stop_reason == "completed"
    assert plan != gs.Plan.from_json(plan_document())


@pytest.mark.parametrize("form", [gs.Plan.from_json, dict])
def test_apply_returns_a_new_snapshot(tiny: gs.Cluster, form: Any) -> None:
    after = gs.apply(tiny, form(plan_document()))
    assert (after.tasks["small"].node, after.tasks["small"].gpus) == ("n1", [4])
    assert tiny.tasks["small"].node == "n0"
    assert after != tiny
    assert after.nodes.occupants.tolist() == [0, 2, 0]


def test_apply_refuses_plans_that_do_not_fit(tiny: gs.Cluster) -> None:
    taken = plan_document()
    taken["moves"][0]["gpus"] = [1]
    with pytest.raises(gs.InvalidInput, match="small"):
        gs.apply(tiny, taken)
    with pytest.raises(gs.InvalidInput, match="nobody"):
        gs.apply(tiny, plan_document(evictions=["nobody"]))


def test_verify_accepts_a_plan_a_dict_and_a_path(tiny: gs.Cluster, tmp_path: Path) -> None:
    plan = gs.Plan.from_json(plan_document())
    plan.to_json(tmp_path / "plan.json")
    for form in (plan, plan_document(), tmp_path / "plan.json", str(tmp_path / "plan.json")):
        report = gs.verify.plan(tiny, form)
        assert report.ok and report and report.violations == [] and report.vacated_nodes == ["n0"]
        assert report.vacated_gpus == 8
    with pytest.raises(TypeError, match="plan"):
        gs.verify.plan(tiny, 3)  # type: ignore[arg-type]


def test_verify_reads_the_snapshot_itself(tiny: gs.Cluster, tmp_path: Path) -> None:
    tiny.to_json(tmp_path / "cluster.json")
    bad = plan_document(vacated_nodes=["n1"])
    for form in (tiny_document(), tmp_path / "cluster.json", str(tmp_path / "cluster.json")):
        assert gs.verify.plan(form, plan_document()) == gs.verify.plan(tiny, plan_document())
        assert gs.verify.plan(form, bad) == gs.verify.plan(tiny, bad)
    invalid = tiny_document()
    invalid["tasks"][0]["cpu_milli"] = 10**9
    with pytest.raises(gs.InvalidInput, match="n0"):
        gs.verify.plan(invalid, plan_document())
    with pytest.raises(gs.BackendError, match="missing"):
        gs.verify.plan(tmp_path / "missing.json", plan_document())
    with pytest.raises(TypeError, match="a dict or the path"):
        gs.verify.plan(3, plan_document())  # type: ignore[arg-type]


def test_verify_reports_every_violation_up_to_the_limit(tiny: gs.Cluster) -> None:
    bad = plan_document(vacated_nodes=["n1"])
    bad["moves"][0].update(task="fixed", gpus=[0])
    report = gs.verify.plan(tiny, bad)
    assert not report.ok and not report
    assert report.violation_count == len(report.violations) >= 2
    assert any("fixed" in violation for violation in report.violations)
    short = gs.verify.plan(tiny, bad, max_violations=1)
    assert len(short.violations) == 1 and short.violation_count == report.violation_count
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(gs.InvalidInput, match="max_violations"):
        gs.verify.plan(tiny, bad, max_violations=0)


def test_moves_are_made_once_and_rounds_are_reported(small: gs.Cluster) -> None:
    plan = gs.consolidate(small)
    assert isinstance(plan.moves, tuple) and plan.moves is plan.moves
    assert len(plan.rounds) == plan.stats["rounds"] > 0
    assert set(plan.rounds[0]) == {"vacated_nodes", "vacated_gpus", "moves"}
    # What was vacated, unless the moves could not be ordered.
    gained = sum(r["vacated_nodes"] for r in plan.rounds)
    assert gained == len(plan.vacated_nodes) + plan.stats["dropped_chains"]
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert again == plan and again.rounds == plan.rounds and again.moves == plan.moves
    read = gs.Plan.from_json(plan.to_json())
    assert read.rounds == plan.rounds and read.stats == plan.stats
    assert gs.Plan.from_json(plan_document()).rounds == []


def test_moves_and_placements_pickle(tiny: gs.Cluster) -> None:
    placed = {"task": "t", "node": "n2", "gpus": [1, 2]}
    plan = gs.Plan.from_json(plan_document(placements=[placed]))
    for part in (plan.moves[0], plan.placements[0]):
        again = pickle.loads(pickle.dumps(part))
        assert again == part and again is not part
        assert copy.copy(part) is part and copy.deepcopy(part) is part  # it never changes
    assert pickle.loads(pickle.dumps(plan.moves)) == plan.moves
