# SPDX-License-Identifier: Apache-2.0
"""Consolidation through Python: plans, bounds, explanations, options."""

from __future__ import annotations

import pickle
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from clusters import document, make_node, make_task, tiny_document
from messages import mention, mentions, naming, problems_in, refuses


@pytest.mark.parametrize("preset", ["ipc", "fast", "best"])
def test_presets_make_verified_plans(small: gs.Cluster, preset: Any) -> None:
    plan = gs.consolidate(small, preset=preset)
    report = gs.verify.plan(small, plan)
    assert report.ok, report.violations
    assert report.vacated_nodes == plan.vacated_nodes and len(plan.vacated_nodes) > 10
    assert plan.stop_reason == "completed"
    assert plan.stats["moves"] == len(plan.moves) and plan.stats["waves"] == plan.waves
    assert plan.stats["vacated_nodes"] == len(plan.vacated_nodes)
    assert plan.stats["vacated_gpus"] == report.vacated_gpus
    after = gs.apply(small, plan)
    for name, c in (("before", small), ("after", after)):
        assert plan.stats[f"not_fully_occupied_{name}"] == gs.fragmentation.occupancy(c).not_fully_occupied
    assert sorted(n.name for n in small.nodes if n.occupants and not after.nodes[n.name].occupants) == sorted(
        plan.vacated_nodes
    )
    assert len(plan.vacated_nodes) <= plan.bound["vacated_nodes_at_most"]
    assert plan.stats["vacated_gpus"] <= plan.bound["vacated_gpus_at_most"]
    assert plan.bound["method"] == "counting"


def test_a_time_limit_of_nothing_still_gives_a_valid_plan(small: gs.Cluster) -> None:
    plan = gs.consolidate(small, time_limit=0)
    assert plan.stop_reason == "time_limit"
    assert gs.verify.plan(small, plan).ok


def test_policies_by_name(small: gs.Cluster) -> None:
    names = gs.consolidation.policy_names()
    assert "fewest_pods" in names["node_order"] and "by_gpu_model" in names["partitioner"]
    preset = gs.consolidate(small)
    assert gs.consolidate(small, policies={}) == preset
    assert gs.consolidate(small, policies={"node_order": "least_demand_for_size"}) == preset
    for kind, known in names.items():
        for name in known:
            assert gs.verify.plan(small, gs.consolidate(small, preset="fast", policies={kind: name})).ok
    others = {"node_order": "fewest_pods", "destination_ranking": "group_order"}
    assert gs.consolidate(small, policies=others) != preset
    with refuses("node_order: 'fewest_pots'; did you mean 'fewest_pods'"):
        gs.consolidate(small, policies={"node_order": "fewest_pots"})
    with refuses("policies: /node_orders: unknown field; did you mean 'node_order'"):
        gs.consolidate(small, policies={"node_orders": "fewest_pods"})


def test_bounds(small: gs.Cluster) -> None:
    counting = gs.consolidation.bound(small)
    assert counting == gs.consolidate(small).bound
    most = {"vacated_nodes_at_most", "vacated_gpus_at_most"}
    assert set(counting) == {"occupied_nodes_at_least", "method", *most}
    occupied = int((small.nodes.occupants > 0).sum())
    assert counting["occupied_nodes_at_least"] + counting["vacated_nodes_at_most"] == occupied
    lp = gs.consolidation.bound(small, "lp")
    assert lp["method"] == "lp"
    assert lp["vacated_gpus_at_most"] <= counting["vacated_gpus_at_most"]
    assert gs.consolidate(small, bound_method="none").bound["method"] == ""
    with pytest.raises(gs.InvalidInput, match="method"):
        gs.consolidation.bound(small, "x")  # type: ignore[arg-type]


def test_unknown_options_are_type_errors(tiny: gs.Cluster) -> None:
    for name, hint in (
        ("gpu_picker", "'gpu_picker'; write policies={'gpu_picker'"),
        ("partitions", "'partitions'"),
        ("empty_nodes", "'empty_nodes'; it is a field of 'goal'"),
    ):
        told = naming(f"consolidate() got an unexpected keyword argument {hint}")
        with pytest.raises(TypeError, match=told):
            gs.consolidate(tiny, **{name: 1})
    with pytest.raises(TypeError):
        gs.consolidate(tiny, "best")  # type: ignore[misc]
    with pytest.raises(TypeError):
        gs.consolidate("cluster")  # type: ignore[arg-type]


def test_explanations_name_task_and_constraint(tiny: gs.Cluster) -> None:
    plan = gs.consolidate(tiny)
    fixed = gs.consolidation.explain(tiny, plan, "n1")
    assert fixed.fate == "has_fixed" and ("fixed", "locked") in [(b.task, b.fixed_by) for b in fixed.blockers]
    assert "fixed" in str(fixed) and "locked" in str(fixed)
    assert gs.consolidation.explain(tiny, plan, "n0").fate == "vacated"
    assert gs.consolidation.explain(tiny, plan.to_json(), "n2").fate == "empty"
    assert pickle.loads(pickle.dumps(fixed)) == fixed
    with pytest.raises(gs.InvalidInput, match="nowhere"):
        gs.consolidation.explain(tiny, plan, "nowhere")


def test_nodes_that_could_not_be_cleared_are_explained(tiny: gs.Cluster) -> None:
    plan = gs.consolidate(tiny, clear=["n0", "n1"])
    left = gs.consolidation.explain_clear(tiny, plan, clear=["n0", "n1"])
    assert [(why.node, why.fate) for why in left] == [("n0", "has_stuck"), ("n1", "has_fixed")]
    assert left[1] == gs.consolidation.explain(tiny, plan, "n1", clear=["n0", "n1"])
    change = left[0].blockers[0].change
    assert (change.closed_node, change.closed_by) == ("n1", "to_clear")
    assert mentions(str(left[0]), "node 'n1', which is to be cleared")
    assert left[0].blockers[0].nodes_with_obstacle == 0
    cleared = gs.consolidate(tiny, clear=["n0"])
    assert gs.consolidation.explain_clear(tiny, cleared, clear=["n0"]) == []
    with pytest.raises(gs.InvalidInput, match="clear: absent"):
        gs.consolidation.explain_clear(tiny, plan)


def test_value_reports(small: gs.Cluster) -> None:
    plan = gs.consolidate(small)
    value = gs.consolidation.value_report(small, plan)
    assert (value.moves, value.waves) == (len(plan.moves), plan.waves)
    assert value.vacated_nodes == len(plan.vacated_nodes)
    assert value.moved_tasks == len({m.task for m in plan.moves})
    assert sum(m.vacated_nodes for m in value.models) == value.vacated_nodes
    assert value.vacated_gpus_per_move == pytest.approx(value.vacated_gpus / value.moves)
    assert str(value.vacated_nodes) in str(value).replace(",", "")
    assert pickle.loads(pickle.dumps(value)) == value


def test_place(tiny: gs.Cluster) -> None:
    task = {"name": "new", "cpu_milli": 8000, "memory_mib": 1000, "gpu_count": 4}
    place = gs.place(tiny, task)
    assert place == ("n1", [4, 5, 6, 7])  # packing: the fullest that fits
    assert gs.place(tiny, {**task, "gpu_count": 9}) is None
    spread = gs.place(tiny, task, rankers=["least_allocated"])
    assert spread is not None and spread[0] == "n2"
    with pytest.raises(gs.InvalidInput, match="small"):
        gs.place(tiny, {**task, "name": "small"})
    with pytest.raises(gs.InvalidInput, match="on no node"):
        gs.place(tiny, {**task, "gpus": [1]})


def test_explain_and_bound_take_the_scope_of_the_plan() -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]
    tasks = [make_task(f"t{i}", job="j", node=f"n{i}", gpus=[0]) for i in range(3)]
    cluster = gs.Cluster.from_json(document(nodes, tasks))
    scopes: list[tuple[dict[str, Any], str]] = [
        ({"exempt": ["n0", "n1", "n2"]}, "exempt_node"),
        ({"max_disrupted": 0}, "no_disruption"),
    ]
    for scope, reason in scopes:
        plan = gs.consolidate(cluster, **scope)
        assert plan.moves == ()
        without = gs.consolidation.explain(cluster, plan, "n0")
        told = gs.consolidation.explain(cluster, plan, "n0", **scope)
        assert without.fate != "has_fixed" and told.fate == "has_fixed"
        assert told.blockers[0].fixed_by == reason
        assert gs.consolidation.bound(cluster, **scope)["vacated_nodes_at_most"] == 0
        assert gs.consolidation.bound(cluster)["vacated_nodes_at_most"] == 2
    with pytest.raises(gs.InvalidInput, match="max_disrupted"):
        gs.consolidation.bound(cluster, max_disrupted=-1)


def test_place_with_filters_pickers_and_functions(tiny: gs.Cluster) -> None:
    task = {"name": "new", "cpu_milli": 8000, "memory_mib": 1000, "gpu_count": 2}
    assert gs.place(tiny, task, rankers=["least_allocated"]) == ("n2", [0, 1])
    assert gs.place(tiny, task, rankers=["least_allocated"], filters=["occupied"]) == ("n0", [0, 1])
    for name in gs.allocation.gpu_picker_names():
        assert gs.place(tiny, task, gpu_picker=name) is not None
    for name in gs.allocation.filter_names():
        assert gs.place(tiny, task, filters=[name]) is not None

    seen: list[str] = []

    def not_n1(cluster: gs.Cluster, task: gs.Task, node: gs.Node) -> bool:
        seen.append(node.name)
        assert task.name == "new" and cluster.tasks["new"] == task
        return node.name != "n1"

    assert gs.place(tiny, task, filters=[not_n1, "occupied"]) == ("n0", [0, 1])
    assert seen == ["n0", "n1", "n2"]
    last = gs.place(tiny, task, rankers=["first_fit", lambda c, t, n: c.nodes.index(n.name)])
    assert last is not None and last[0] == "n2"
    top = gs.place(tiny, task, gpu_picker=lambda c, t, n: n.idle_gpus[-t.gpu_count :])
    assert top == ("n1", [6, 7])
    workload = gs.fragmentation.Workload([{"gpu_count": 8}])
    fgd = gs.place(tiny, task, rankers=["fgd"], workload=workload)
    assert fgd == gs.place(tiny, task, rankers=["fgd"], workload=[{"gpu_count": 8}]) and fgd is not None
    assert fgd[0] != "n2"  # the only node that still takes a task of eight


def test_bad_policies_of_place_are_reported(tiny: gs.Cluster) -> None:
    new = make_task("new")
    about = "(<lambda>)'s answer for task 'new' and node"
    bad: list[tuple[dict[str, Any], str]] = [
        ({"filters": ["x"]}, "filter: 'x'; expected one of"),
        ({"rankers": []}, "rankers: 0 entries; expected at least 1"),
        ({"filters": [3]}, "filters"),
        ({"gpu_picker": lambda c, t, n: [0, 1]}, "gpu_picker's answer"),
        (
            {"rankers": ["packing", lambda c, t, n: "best"]},
            f"rankers[1] {about} 'n0': 'best'; expected an integer",
        ),
        ({"rankers": [lambda c, t, n: float("nan")]}, f"rankers[0] {about} 'n0': nan; expected an integer"),
        ({"rankers": [lambda c, t, n: True]}, "rankers[0] True; expected an integer"),
        ({"filters": [lambda c, t, n: None]}, f"filters[0] {about} None"),
        ({"rankers": ["fgd"], "workload": []}, "workload"),
    ]
    for options, text in bad:
        with refuses(text):
            gs.place(tiny, new, **options)
    refused = {"rankers": [lambda c: 1], "filters": [lambda: True], "gpu_picker": lambda c, t: [0]}
    for kind, other in refused.items():
        with pytest.raises(gs.errors.InvalidType, match=naming(f"{kind} f(cluster, task, node)")):
            gs.place(tiny, new, **{kind: other})

    def array(*_: object) -> Any:
        return np.array([1, 2])

    def mistaken(cluster: gs.Cluster, task: gs.Task, node: gs.Node) -> Any:
        none: Any = None
        return 1 + none

    with pytest.raises(gs.errors.InvalidType, match=naming("rankers[0] array array([1 2]")):
        gs.place(tiny, new, rankers=[array])
    with pytest.raises(TypeError, match="NoneType") as raised:  # of the function itself
        gs.place(tiny, new, rankers=[mistaken])
    assert not isinstance(raised.value, gs.InvalidInput)
    last = gs.place(tiny, new, rankers=[lambda c, t, n: c.nodes.index(n.name)])
    for number in (float, np.float32, np.int32):
        ranker: Any = lambda c, t, n, number=number: number(c.nodes.index(n.name))  # noqa: E731
        assert gs.place(tiny, new, rankers=[ranker]) == last


def test_a_task_that_runs_is_not_placed(tiny: gs.Cluster) -> None:
    running = make_task("new", node="n2", gpus=[0])
    tasks: list[tuple[Any, str, str]] = [
        ("small", "small", "n0"),
        (tiny.tasks["small"], "small", "n0"),
        (running, "new", "n2"),
    ]
    for task, name, node in tasks:
        text = f"task: '{name}'; expected a pending task; runs on node '{node}'"
        with refuses(text):
            gs.place(tiny, task)
    with refuses("task of this cluster"):
        gs.place(tiny, tiny.copy().tasks[0])


def test_feasible_nodes(tiny: gs.Cluster) -> None:
    new = make_task("new", gpu_count=5)
    assert gs.allocation.feasible_nodes(tiny, new).tolist() == [0, 2]
    assert gs.allocation.feasible_nodes(tiny, make_task("huge", gpu_count=9)).tolist() == []
    # A task that runs is judged as if it moved.
    assert gs.allocation.feasible_nodes(tiny, tiny.tasks["fixed"]).tolist() == [0, 1, 2]
    assert tiny.nodes.gpu_count[gs.allocation.feasible_nodes(tiny, "small")].tolist() == [8, 8, 8]
    with pytest.raises(
        TypeError, match=naming("task: 3; expected a dict, the name of a pending task, or a Task")
    ):
        gs.allocation.feasible_nodes(tiny, 3)  # type: ignore[arg-type]


def test_find_obstacles(tiny: gs.Cluster) -> None:
    new = make_task("new", gpu_count=5)
    obstacles = gs.allocation.find_obstacles(tiny, new)
    assert [i for i, obstacle in enumerate(obstacles) if obstacle == "none"] == [0, 2]
    assert obstacles[1] == "gpu"
    task = next(t for t in tiny.tasks if t.node is not None)
    assert gs.allocation.find_obstacles(tiny, task, old_copy="stays") == gs.allocation.find_obstacles(
        tiny, task.name
    )
    home = tiny.nodes.index(task.node)
    assert gs.allocation.find_obstacles(tiny, task, old_copy="leaves")[home] == "none"
    assert tiny.tasks[task.name].node == task.node  # the cluster is as it was
    with refuses("old_copy: 'left'; expected one of 'stays', 'leaves'"):
        gs.allocation.find_obstacles(tiny, new, old_copy="left")


def test_all_bad_options_come_at_once(tiny: gs.Cluster) -> None:
    wrong = {"seed": 2**64, "depth": 0, "exempt": ["nowhere"], "max_moves": 2**70}
    assert mention(
        sorted(problems_in(gs.consolidate, tiny, **wrong)),
        [
            "depth 0 1 16",
            "exempt unknown node 'nowhere'",
            f"max_moves {2**70} 0 9223372036854775807",
            f"seed {2**64} 0 18446744073709551615",
        ],
    )
    assert mention(
        problems_in(gs.consolidation.explain, tiny, gs.consolidate(tiny), "here", max_disrupted=-1),
        ["node unknown 'here'", "max_disrupted -1 0"],
    )


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        *(("depth", value, f"{value!r} 1 16") for value in (0, 17, 2**31, "x", 1.5)),
        *(("seed", value, f"{value} 0 18446744073709551615") for value in (-1, 1.5)),
        pytest.param("seed", 10**5000, "type int 0 18446744073709551615", id="seed"),
        pytest.param("time_limit", 10**5000, "type int; expected a number", id="time_limit"),
    ],
)
def test_a_field_has_one_range_in_all_messages(
    tiny: gs.Cluster, field: str, value: object, told: str
) -> None:
    assert mention(problems_in(gs.consolidate, tiny, **{field: value}), [f"{field} {told}"])


def keys_of_the_preset(cluster: gs.Cluster) -> list[int]:
    """`least_demand_for_size`, as the library computes it: with whole numbers alone."""
    roots = [next(r for r in range(3000, 0, -1) if r**3 <= gpus * 10**9) for gpus in range(1, 17)]
    keys = []
    for node in cluster.nodes:
        used = 1000 * node.gpu_count - node.gpu_free_milli
        demand = used + (node.cpu_milli - node.cpu_free_milli) // 16 + 1000 * node.occupants
        keys.append(demand * 1000 // roots[node.gpu_count - 1] if node.gpu_count else 2**62 - 1)
    return keys


def test_a_node_order_in_python_is_called_once_a_round(small: gs.Cluster) -> None:
    seen: list[gs.Cluster] = []

    def order(cluster: gs.Cluster) -> Any:
        seen.append(cluster)
        return np.array(keys_of_the_preset(cluster))

    before = small.copy()
    for threads in (1, 2, 8):
        seen.clear()
        plan = gs.consolidate(small, policies={"node_order": order}, threads=threads)
        assert plan == gs.consolidate(small, threads=threads)
        # In every round of every start; later rounds of a start find the moves of earlier ones.
        assert len(plan.rounds) <= len(seen) <= 3 * (len(plan.rounds) + 1)
        assert seen[0] == small and seen[1] != small
    assert small == before
    # Lists, whole numbers in floating point, and numbers beyond 32 bits will do.
    for f in (keys_of_the_preset, lambda c: np.array(keys_of_the_preset(c), dtype=float)):
        assert gs.consolidate(small, policies={"node_order": f}).moves
    backwards = gs.consolidate(small, policies={"node_order": lambda c: -np.arange(len(c.nodes))})
    assert backwards != plan and gs.verify.plan(small, backwards).ok


def test_weights_and_groups_in_python_are_those_of_the_names(small: gs.Cluster) -> None:
    for name, f in (
        ("unit", lambda c: np.ones(len(c.nodes), dtype=int)),
        ("gpus", lambda c: c.nodes.gpu_count),
    ):
        by_function = gs.consolidate(small, policies={"node_weight": f})
        assert by_function == gs.consolidate(small, policies={"node_weight": name})
    asked: list[gs.Cluster] = []

    def one_group(cluster: gs.Cluster) -> list[int]:
        asked.append(cluster)
        return [0] * len(cluster.nodes)

    plan = gs.consolidate(
        small, policies={"partitioner": one_group, "node_order": "fewest_pods"}, preset="fast"
    )
    assert asked == [small] and plan.moves and gs.verify.plan(small, plan).ok
    # Nodes in no group neither leave nor receive.
    chosen = [0 if i < 200 else -1 for i in range(len(small.nodes))]
    plan = gs.consolidate(small, policies={"partitioner": lambda c: chosen})
    inside = {node.name for node, group in zip(small.nodes, chosen) if group == 0}
    assert plan.moves and {move.to for move in plan.moves} <= inside


@pytest.mark.parametrize("kind", ["node_order", "partitioner", "node_weight"])
def test_answers_of_policies_in_python_are_checked(small: gs.Cluster, kind: str) -> None:
    n = len(small.nodes)
    field = f"policies.{kind}'s answer"
    first, last = (f"{field} for node '{small.nodes[at].name}':" for at in (0, -1))
    for answer, message in (
        (None, f"{field}: None; expected {n} whole numbers"),
        (3, f"{field}: 3; expected {n} whole numbers"),
        (np.zeros(n - 1), f"{field}: {n - 1} numbers; expected {n}, one for each node"),
        (np.zeros((n, 1)), f"{field}: an array of shape ({n}, 1); expected {n} whole numbers"),
        ([[1], [1, 2]], f"{field}: [[1], [1, 2]]; expected {n} whole numbers"),
        (np.r_[np.zeros(n - 1), np.nan], f"{last} nan; expected an integer"),
        (np.r_[0.5, np.zeros(n - 1)], f"{first} 0.5; expected an integer"),
        (["a"] * n, f"{first} 'a' expected an integer"),
        ([2**70] + [0] * (n - 1), f"{first} {2**70}; expected"),
    ):
        with refuses(message):
            gs.consolidate(small, policies={kind: lambda c, answer=answer: answer})
    if kind == "node_weight":
        with refuses(f"{field} for node -1; expected 0 to"):
            gs.consolidate(small, policies={kind: lambda c: -np.ones(n)})

    class Enough(Exception):
        pass

    def fail(cluster: gs.Cluster) -> Any:
        raise Enough(kind)

    # InvalidType if it is called within the search; the others are called while all of `policies` is checked.
    with refuses(f"policies.{kind}: f(cluster)"):
        gs.consolidate(small, policies={kind: lambda: [0] * n})
    for threads in (1, 4):
        with pytest.raises(Enough, match=kind):
            gs.consolidate(small, policies={kind: fail}, threads=threads)
    assert gs.consolidate(small).moves  # nothing is left behind


def test_policies_that_cannot_be_functions_are_refused(small: gs.Cluster) -> None:
    with refuses("policies.ejection_rule: expected a name"):
        gs.consolidate(small, policies={"ejection_rule": lambda c: []})
    assert len(problems_in(gs.consolidate, small, policies={"node_order": 3, "gpu_picker": print})) == 2


def test_a_frontier_ascends_to_its_bounds(small: gs.Cluster) -> None:
    frontier = gs.frontier(small, points=5)
    assert len(frontier) == 5
    assert len(frontier) == len(frontier.points) and list(frontier) == frontier.points
    assert frontier[0] == frontier.points[0] and frontier[-1] == frontier.points[-1]
    with pytest.raises(IndexError, match="99; there are"):
        frontier[99]
    assert frontier.bound_method == "counting"
    assert frontier.stop_reason == "completed"
    table = frontier.to_pandas()
    assert len(table) == len(frontier.points) > 3
    assert table.relocation_cost.is_monotonic_increasing
    assert table.vacated_weight.is_monotonic_increasing
    assert (table.vacated_weight <= table.weight_at_most).all()
    assert (table.value_milli <= table.value_at_most_milli).all()
    assert [point.vacated_gpus_at_most for point in frontier.points] == list(table.weight_at_most)
    of_nodes = gs.frontier(small, points=2, objective="nodes")
    assert {point.vacated_gpus_at_most for point in of_nodes.points} == {None}
    for point in frontier.points:
        assert gs.verify.plan(small, point.plan).ok
        assert len(point.plan.moves) == point.moves
    with refuses("points 0 1 1000"):
        gs.consolidation.frontier(small, points=0)


def test_a_goal_survives_documents_and_pickles_and_is_checked() -> None:
    cluster = gs.Cluster.from_json(tiny_document())
    plan = gs.consolidate(cluster, goal={"empty_nodes": 2})
    assert (plan.stats["goal_before"], plan.stats["goal_after"]) == (1, 2)
    document = plan.to_json()
    assert (document["version"], document["goal"], document["goal_reached"]) == (2, {"empty_nodes": 2}, True)
    for again in (gs.Plan.from_json(document), pickle.loads(pickle.dumps(plan))):
        assert (again.goal, again.goal_reached, again) == (plan.goal, True, plan)
    wrong = gs.verify.plan(cluster, {**document, "goal_reached": False})
    assert wrong.violations == ["goal_reached: is false, but there are 2 of 2"]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({}, "goal: neither empty_nodes nor slots"),
        ({"empty_nodes": "3"}, 'goal: /empty_nodes: integer, found "3"'),
        ({"slots": {"gpus": 8}}, "goal: /slots/gpus: unknown field; expected one of gpu_count,"),
        ({"empty_nodes": 1, "count": 2}, "goal: count cannot be combined with empty_nodes"),
        (3, "goal: object, found 3"),
    ],
)
def test_each_mistake_in_a_goal_is_named(goal: object, message: str) -> None:
    cluster = gs.Cluster.from_json(tiny_document())
    with refuses(message):
        gs.consolidate(cluster, goal=goal)  # type: ignore[arg-type]


def test_any_moves_become_a_plan() -> None:
    cluster = gs.Cluster.from_json(tiny_document())
    ordered = gs.order_into_waves(cluster, [("small", "n1"), ("fixed", "n0")])
    assert [(move.task, move.to) for move in ordered.plan.moves] == [("small", "n1")]
    assert ordered.plan.vacated_nodes == ["n0"] and gs.verify.plan(cluster, ordered.plan).ok
    assert [(why.task, why.to_node, why.fate, why.fixed_by) for why in ordered.dropped] == [
        ("fixed", "n0", "task_stays", "locked")
    ]
    assert mentions(str(ordered.dropped[0]), "task 'fixed' must stay (locked)")
    # GPUs that are named are taken, and no others.
    free = cluster.nodes["n1"].idle_gpus[-1]
    named = gs.order_into_waves(cluster, [("small", "n1", [free])])
    assert named.plan.moves[0].gpus == [free]
    held = cluster.tasks["fixed"].gpus[0]
    taken = gs.order_into_waves(cluster, [["small", "n1", [held]]])
    assert not taken.plan.moves and "are in use" in str(taken.dropped[0])
    empty = gs.order_into_waves(cluster, [("small", "n2")])
    assert empty.dropped[0].closed_by == "empty"
    plan = gs.consolidate(cluster)
    again = gs.order_into_waves(cluster, plan.moves)
    assert again.plan.moves == plan.moves and not again.dropped
    wrong = [("nobody", "nowhere"), ("small",), ("small", "n1", [99])]
    assert len(problems_in(gs.order_into_waves, cluster, wrong)) == 4
    bare = small({"a": 2, "b": 0}, [{"name": "t", "node": "a", "gpu_count": 0}])
    with refuses("expected none, because node 'b' has no GPUs"):
        gs.order_into_waves(bare, [("t", "b", [0])])


def test_a_move_that_was_not_made_is_explained() -> None:
    cluster = gs.Cluster.from_json(tiny_document())
    plan = gs.consolidate(cluster)

    def ask(task: str, node: str) -> gs.consolidation.MoveExplanation:
        return gs.explain_move(cluster, task, node, plan=plan, price=100)

    back = ask("small", "n0")
    assert (back.fate, back.closed_by) == ("node_closed", "emptied")
    assert (back.cost, back.weight, back.value_milli) == (-1, -8, -8000 + 100)
    assert mentions(str(back), "task 'small' cannot move to node 'n0'")
    assert ask("small", "n1").fate == "is_there"
    assert ask("small", "n2").closed_by == "empty"
    assert (ask("fixed", "n2").fate, ask("fixed", "n2").fixed_by) == ("task_stays", "locked")
    with pytest.raises(gs.InvalidInput, match="^task: unknown task 'nobody'"):
        ask("nobody", "n0")
    before = gs.explain_move(cluster, "small", "n1")
    assert (before.fate, before.from_node, before.weight, before.cost) == ("possible", "n0", 8, 1)
    assert mentions(str(gs.explain_move(cluster, "small", "n0")), "task 'small' is on node 'n0' already")


def to_clear() -> gs.Cluster:
    """The task of `a` fits on `empty` alone, as long as that of `b` stays, which fits on `c`."""
    nodes = [make_node(name) for name in ("a", "b", "c", "empty")]
    tasks = [
        make_task("red", node="a", gpus=[0, 1, 2, 3, 4, 5], gpu_count=6),
        make_task("blue", node="b", gpus=[0, 1, 2, 3], gpu_count=4),
        make_task("fixed", node="c", gpus=[0, 1, 2, 3], gpu_count=4, locked=True),
    ]
    return gs.Cluster.from_json(document(nodes, tasks))


def tenants_apart(cluster: gs.Cluster) -> Any:
    return (
        [int(task.name == "blue") for task in cluster.tasks],
        np.array([float(node.name == "c") for node in cluster.nodes]),
        [[True, True], [True, False]],
    )


def test_a_rule_of_ones_own_keeps_tasks_away_from_nodes() -> None:
    cluster = to_clear()
    nothing = gs.consolidate(cluster, max_moves=0)
    plan = gs.consolidate(cluster)
    assert [move.to for move in plan.moves] == ["c"]
    assert not gs.consolidate(cluster, rule=tenants_apart).moves
    checked = gs.verify.plan(cluster, plan, rule=lambda task, node: (task, node) != ("blue", "c"))
    assert mention(checked.violations, ["wave 1, move #0 of task 'blue' from 'b' to 'c': rule: refuses it"])
    assert gs.verify.plan(cluster, plan, rule=lambda task, node: True).ok
    assert not gs.consolidation.frontier(cluster, rule=tenants_apart).points
    assert not gs.consolidate(cluster, goal={"empty_nodes": 2}, rule=tenants_apart).goal_reached
    assert gs.consolidate(cluster, goal={"empty_nodes": 2}).goal_reached
    move = gs.explain_move(cluster, "blue", "c", rule=tenants_apart)
    assert move.fate == "refused" and mentions(str(move), "rule 'tenants_apart' rejects it")
    why = gs.consolidation.explain(cluster, nothing, "b", clear=["b"], exempt=["a"], rule=tenants_apart)
    assert why.blockers[0].nodes_refused == 1


def test_answers_of_a_rule_are_checked() -> None:
    cluster = to_clear()
    good = tenants_apart(cluster)
    for answer, message in (
        (None, "rule's answer: None; expected three arrays"),
        (good[:2], "rule's answer: expected three arrays"),
        (([0], good[1], good[2]), "classes of tasks: 1 number; expected 3, one for each task"),
        ((good[0], [0, 0, 0, -1], good[2]), "classes of nodes: -1; expected 0 to 1"),
        ((good[0], good[1], [True, False]), "rule's table: an array of shape"),
    ):
        with refuses(message):
            gs.consolidate(cluster, rule=lambda c, answer=answer: answer)
    with refuses("rule: 3; expected a callable"):
        gs.consolidate(cluster, rule=3)  # type: ignore[arg-type]


def test_a_rule_may_have_no_classes_without_tasks() -> None:
    empty = gs.Cluster.from_json({**to_clear().to_json(), "tasks": []})
    table = np.zeros((0, 2), dtype=bool)
    plan = gs.consolidate(empty, rule=lambda c: (np.zeros(0, int), np.zeros(len(c.nodes), int), table))
    assert plan.moves == ()


def small(nodes: dict[str, int], tasks: list[dict[str, Any]]) -> gs.Cluster:
    """Nodes by their GPUs, and tasks without cores."""
    free = {"cpu_milli": 0, "memory_mib": 0}
    models = {name: "A" if gpus else "" for name, gpus in nodes.items()}
    made = [make_node(n, gpu_count=gpus, gpu_model=models[n]) for n, gpus in nodes.items()]
    run = [{**free, "gpus": list(range(task["gpu_count"])), **task} for task in tasks]
    return gs.Cluster.from_json(document(made, run))


def test_ordered_moves_vacate_no_node_that_receives_in_an_earlier_pass() -> None:
    apart = [{"group": "y", "level": "node", "limit": 1}]
    cluster = small(
        {"n2": 8, "n3": 2, "n4": 2},
        [
            {"name": "t0", "node": "n2", "gpu_count": 0, "anti_affinity": apart},
            {"name": "t1", "node": "n3", "gpu_count": 2},
            {"name": "t5", "node": "n4", "gpu_count": 1, "anti_affinity": apart},
        ],
    )
    ordered = gs.order_into_waves(cluster, [("t1", "n4"), ("t0", "n4"), ("t5", "n2")])
    assert gs.verify.plan(cluster, ordered.plan).violations == []


def test_ordered_moves_leave_no_task_on_a_transit_node() -> None:
    cluster = small(
        {"A": 1, "B": 2, "H": 2},
        [
            {"name": "t1", "node": "A", "gpu_count": 1},
            {"name": "b", "node": "B", "gpu_count": 2},
            {"name": "h", "node": "H", "gpu_count": 1},
        ],
    )
    ordered = gs.order_into_waves(cluster, [("t1", "B"), ("b", "A")])
    assert not ordered.plan.moves and [move.task for move in ordered.dropped] == ["t1", "b"]


def test_nodes_that_are_worth_nothing_are_not_opened_for_nothing() -> None:
    cluster = small({"c0": 0, "c1": 0}, [{"name": "a", "node": "c0", "gpu_count": 0}])
    assert not gs.consolidate(cluster, open_price=1000).moves
    assert not gs.consolidate(cluster, open_price=1000, objective="nodes").moves


def test_a_plan_holds_its_price() -> None:
    cluster = gs.sim.generate_cluster(nodes=200, seed=3)
    plan = gs.consolidate(cluster, price=500)
    document = plan.to_json()
    assert plan.price == document["price"] == plan.stats["price"] == 500
    assert "cost" not in document and plan.cost == {}
    assert gs.Plan.from_json(document) == plan and gs.verify.plan(cluster, document).ok
    free = gs.consolidate(cluster, price=0)
    assert free.price is None and "price" not in free.to_json()
    document["cost"] = {"moves": 12.5}
    assert gs.Plan.from_json(document).cost == {"moves": 12.5}
    document["price"] = -1
    with refuses("/price: from 0 to found -1"):
        gs.Plan.from_json(document)
    points = gs.frontier(cluster, points=4)
    frame = points.to_pandas()
    assert list(frame["vacated_gpus_at_most"]) == [point.vacated_gpus_at_most for point in points]
    assert gs.frontier(cluster, points=2, objective="nodes").to_pandas()["vacated_gpus_at_most"].isna().all()


@pytest.mark.parametrize(("method", "most"), [("counting", 1), ("lp", 0)])
def test_the_limit_of_a_goal_is_the_tightest_that_is_proven(method: str, most: int) -> None:
    nodes = [make_node(name) for name in "abc"]  # no two tasks of 5 GPUs fit on 8
    tasks = [make_task(f"{name}0", node=name, gpus=list(range(5)), gpu_count=5) for name in "abc"]
    cluster = gs.Cluster.from_json(document(nodes, tasks))
    plan = gs.consolidate(cluster, goal={"empty_nodes": 1}, bound_method=method)
    assert plan.stats["goal_at_most"] == most
