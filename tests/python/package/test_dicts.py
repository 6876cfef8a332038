# SPDX-License-Identifier: Apache-2.0
"""Dicts that stand for structs of C++: one reader for all of them, which reports every problem with its
place.
"""

from __future__ import annotations

from collections import UserDict
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from clusters import document, make_node, make_task
from messages import mention, mentions, problems_in

WRONG_GOAL = {"empty_nodes": 0, "slotz": 1}


@pytest.fixture
def cluster() -> gs.Cluster:
    return gs.Cluster.from_json(
        document([make_node("n0", gpu_count=8), make_node("n1", gpu_count=8)], [make_task("t", gpu_count=1)])
    )


def job(**fields: Any) -> dict[str, Any]:
    return {"name": "j", "pods": [{"count": 2, "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1, **fields}]}


def places_of(problems: list[str]) -> list[str]:
    return [problem.split(": ")[1] for problem in problems]


def test_a_goal_is_read_alike_as_a_keyword_and_in_a_plan(cluster: gs.Cluster) -> None:
    told = [
        "/empty_nodes: from 1 to 9223372036854775807, found 0",
        "/slotz: unknown field; empty_nodes, slots, count, gpu_model, usable_by, did you mean 'slots'",
    ]
    plan = {**gs.consolidate(cluster).to_json(), "version": 2, "goal": WRONG_GOAL}
    assert mention(problems_in(gs.Plan.from_json, plan), [f"<dict>: /goal{words}" for words in told])
    for found in (
        problems_in(gs.consolidate, cluster, goal=WRONG_GOAL),
        problems_in(gs.consolidation.goal_nodes, cluster, WRONG_GOAL),
    ):
        assert mention(found, [f"goal: {words}" for words in told])


def test_every_kind_of_dict_reports_all_of_its_problems() -> None:
    workload = problems_in(gs.fragmentation.Workload, [{"gpu_count": "x", "wieght": 2}, {"weight": 0}, 3])
    assert places_of(workload) == ["/0/gpu_count", "/0/wieght", "/1/weight", "/2"]
    assert workload[1].endswith("did you mean 'weight'?")
    assert mentions(workload[3], "workload: /2: object, found 3")
    wrong = {"dwel": 3, "duration_s": 1, "servers": 0, "classes": [[1, 2]]}
    overrides = problems_in(gs.sim.simulate_host, seeds=[0], overrides=wrong)
    assert places_of(overrides) == ["/dwel", "/duration_s", "/servers", "/classes/0"]
    assert overrides[0].endswith("did you mean 'dwell'?")
    assert mentions(overrides[3], "expected a row of share, bytes, compute_ms, found an array")
    graph = [{"kind": "gpu", "id": "x", "colour": 1}, {"kind": "abacus"}]
    vertices = problems_in(gs.topology.HardwareGraph, graph, [])
    assert places_of(vertices) == ["/0/id", "/0/colour", "/1/kind"]
    tasks = problems_in(gs.milp.spot_schedule, [{"chekpoints": [1]}, {"checkpoints": "x"}], [2], 4, 1.0)
    assert places_of(tasks) == ["/0/chekpoints", "/0", "/1/checkpoints"]


def test_mappings_and_numbers_of_numpy_are_dicts_and_numbers(cluster: gs.Cluster) -> None:
    plain = gs.admit(cluster, job())
    pod = {"count": np.int64(2), "gpu_count": np.uint8(1), "cpu_milli": np.float64(1)}
    pods = (UserDict({**pod, "memory_mib": np.array(1)}),)
    for wish in (UserDict(job()), MappingProxyType(job()), {"name": "j", "pods": pods}):
        assert gs.admit(cluster, wish) == plain  # type: ignore[arg-type]
        assert gs.allocate(cluster, wish) == gs.allocate(cluster, job())  # type: ignore[arg-type]
        assert gs.preemption.preempt_gang(cluster, wish) == gs.preemption.preempt_gang(cluster,
            job())  # type: ignore[arg-type]
    task = {"name": "u", "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1}
    assert gs.place(cluster, UserDict(task)) == gs.place(cluster, task)  # type: ignore[arg-type]
    assert gs.consolidate(cluster, goal=UserDict(empty_nodes=np.int32(1))) == gs.consolidate(
        cluster, goal={"empty_nodes": 1}
    )  # type: ignore[arg-type]
    nodes = [make_node("n0", gpu_count=np.int64(8), network=np.array(["core", "s0"]))]
    like = [make_node("n0", gpu_count=8, network=["core", "s0"])]
    assert gs.Cluster.from_json(document(nodes, [])) == gs.Cluster.from_json(document(like, []))


def test_values_that_no_document_holds_are_reported_with_their_place(cluster: gs.Cluster) -> None:
    goal = {"slots": {"gpu_count": {1}, 3: b"x"}, "count": float("nan")}
    assert mention(
        problems_in(gs.consolidate, cluster, goal=goal),
        [
            "goal: /slots/gpu_count: {1} of type set; expected a list",
            "goal: /slots: key 3; expected a string",
            "goal: /slots/3: b'x' of type bytes; expected None, a bool, an int, a float,",
            "goal: /count: nan; expected a finite number",
        ],
    )


class Endless:
    """Its `tolist` gives an object of another class, whose `tolist` gives this one."""

    def __init__(self) -> None:
        self.other: Any = type("Other", (), {"tolist": lambda other: self})()

    def tolist(self) -> Any:
        return self.other


class Pairs(UserDict[str, Any]):
    """Its items are what it is given."""

    items_given: Any = ()

    def items(self) -> Any:
        return self.items_given


@pytest.mark.parametrize("items", [[["slots", 1]], [("slots",)], [("slots", 1, 2)], ["ab"]])
def test_objects_that_are_no_mappings_or_arrays_after_all(cluster: gs.Cluster, items: list[Any]) -> None:
    mapping = Pairs()
    mapping.items_given = items
    told = f"goal: item {items[0]!r}; expected a tuple of a key and its value"
    assert mention(problems_in(gs.consolidate, cluster, goal=mapping), [told])
    assert "of type" in problems_in(gs.consolidate, cluster, goal={"empty_nodes": Endless()})[0]


class NoNumber:
    """Its class has the method of a number, which gives none."""

    def __float__(self) -> Any:
        return "x"


@pytest.mark.parametrize(
    "value",
    [np.array([1, 2]), np.datetime64("2020"), np.str_("x"), np.void(b"x"), Decimal("sNaN"), NoNumber()],
)
def test_numbers_that_are_none_after_all(cluster: gs.Cluster, value: Any) -> None:
    (told,) = problems_in(gs.consolidate, cluster, time_limit=value)
    assert told.startswith("time_limit: ") and told.endswith("; expected a number")
    (told,) = problems_in(gs.consolidate, cluster, goal={"empty_nodes": value})
    assert told.startswith("goal: /empty_nodes: ") and "expected " in told


def test_arguments_that_name_themselves(cluster: gs.Cluster, tmp_path: Path) -> None:
    told = problems_in(gs.allocation.to_plan, gs.allocate(cluster, job()), 3)
    assert mention(told, ["allocations[1]: 3; expected an Allocation"])
    told = problems_in(gs.fragmentation.report, cluster, by=np.array([1, 2]))
    assert mentions(told, "by: array([1, 2])")
    for read, names in (
        (gs.io.read_openb, ("node_csv", "pod_csv")),
        (gs.io.read_kubernetes_topology, ("topology_path", "nodes_path")),
        (gs.sim.read_spot_trace, ("node_csv", "job_csv")),
    ):
        for name in names:
            arguments = {**dict.fromkeys(names, tmp_path / "none"), name: 3}
            told = f"{name}: 3; expected a path: a string or an os.PathLike"
            assert mention(problems_in(read, **arguments), [told])
    for call in (
        lambda jobs: gs.allocate_many(cluster, jobs),
        lambda jobs: gs.allocation.with_job(cluster, *jobs),
    ):
        for wrong, told in (
            (None, "jobs[1]: None; expected a dict, or the name of a job of the cluster"),
            ({"name": "k", "pods": 3}, "jobs[1]: /pods: array, found 3"),
        ):
            assert mention(problems_in(call, [job(), wrong]), [told])
    assert mention(problems_in(gs.control.Controller), ["options: None; expected a configuration, or `mig`"])


def test_lists_of_dicts_are_lists() -> None:
    for value in (None, "ab", {"a": 1}):
        told = problems_in(gs.milp.spot_schedule, value, [2], 4, 1.0)
        assert mentions(told, "expected a list of")
        assert mentions(problems_in(gs.sim.Trace, [], value)[0], "expected a list of")
    task = make_task("t", arrival=np.array([1, 2]))
    assert problems_in(gs.sim.Trace, [], [task])[0].startswith("tasks[0].arrival: array([1, 2])")
    cluster = gs.Cluster.from_json(document([make_node("n0")], []))
    told = problems_in(gs.consolidate, cluster, rounds=np.array([1, 2]))
    assert mentions(told, "rounds: array([1, 2]); expected an integer from")


def test_every_problem_of_a_job_is_reported(cluster: gs.Cluster) -> None:
    pods = [{"count": 0, "gpu_cuont": 1, "gpu_count": 1, "cpu_milli": "x", "memory_mib": 1}]
    wrong = {"pods": pods, "mode": "maybe", "levle": 1, "subgroups": [{"min_members": 1}]}
    told = problems_in(gs.allocate, cluster, wrong)
    of_pods = ["/pods/0/count", "/pods/0/gpu_cuont", "/pods/0/cpu_milli"]
    others = ["/mode", "/levle", "/subgroups/0", "field 'name' is missing"]
    assert places_of(told) == of_pods + others
    assert told[1].endswith("did you mean 'gpu_count'?") and told[4].endswith("did you mean 'level'?")


def test_the_cost_of_a_plan_has_known_parts_of_at_least_nothing(cluster: gs.Cluster) -> None:
    plan = {**gs.consolidate(cluster).to_json(), "version": 2}
    assert gs.Plan.from_json({**plan, "cost": {"moves": 0, "x-mine": "any"}}).cost == {"moves": 0}
    found = problems_in(gs.Plan.from_json, {**plan, "cost": {"moves": -1, "moved": 1}})
    assert mention(found, ["/cost/moves: at least 0, found -1", "/cost/moved: mean 'moves'"])


def test_a_plan_that_brings_pods_along_is_written_as_plans_are(cluster: gs.Cluster, tmp_path: Any) -> None:
    made = gs.admit(cluster, job())
    made.plan.to_json(tmp_path / "plan.json")
    lines = (tmp_path / "plan.json").read_text().splitlines()
    assert [line for line in lines if '"x-brings"' in line] and lines[0] == "{" and lines[-1] == "}"
    assert gs.Plan.from_json(tmp_path / "plan.json") == made.plan


def test_dicts_of_callers_stay_as_they_are(cluster: gs.Cluster) -> None:
    policies: dict[str, Any] = {"node_order": lambda c: [0] * len(c.nodes), "gpu_picker": None}
    wish = {"pods": [{"count": 1, "gpu_count": 1}]}
    options: dict[str, Any] = {"options": {"dwell": 64}}
    before = [dict(policies), {**wish}, dict(options)]
    gs.consolidate(cluster, policies=policies)
    gs.milp.joint_allocation(cluster, [wish], level="node")
    gs.control.Controller(options, mig=gs.control.mig_layout("A100-80GB"))
    assert [policies, wish, options] == before
