# SPDX-License-Identifier: Apache-2.0
"""Models and their results pickled, and input that is odd, huge, tiny or wrong."""

import copy
import math
import pickle

import gpusched as gs
import numpy as np
import pytest
from messages import mention, problems_in, refuses
from milp_examples import BEST, CONFIGS, EXAMPLE, cluster, spot_example

pytest.importorskip("scipy")
milp = gs.milp


def test_models_and_results_pickle():
    """Equal states give equal matrices; what is read from a vector must be the same, too."""
    tasks = [{"name": "a", "gpu_count": 1, "cpu_milli": 0, "memory_mib": 0, "node": "n0", "gpus": [0]},
             {"name": "p", "gpu_count": 1, "cpu_milli": 0, "memory_mib": 0, "priority": 3}]  # fmt: skip
    c = cluster(tasks)
    jobs = [{"name": "a", "pods": [{"count": 2, "gpu_count": 1}]}]
    forms = [milp.serving_plan(*EXAMPLE, form=form) for form in ("copies", "rates", "mccormick")]
    models = [*forms, milp.serving_plan(*EXAMPLE, form="fixed_makespan", makespan=30)]
    models += [milp.spot_schedule(spot_example(), [2], 7, 1), milp.joint_allocation(c, jobs, level="node")]
    models += [milp.consolidation(c, form=form) for form in ("plain", "classes")]
    for model in models:
        again, x = pickle.loads(pickle.dumps(model)), model.solve().x
        assert copy.copy(model) is model and copy.deepcopy(model) is model  # nothing here ever changes
        assert again == model and repr(again) == repr(model) and again.to_mps() == model.to_mps()
        assert again.decode(x) == model.decode(x)
        if model in forms:
            assert np.array_equal(again.encode(*again.decode(x)), model.encode(*model.decode(x)))
            assert again.makespan_of(0.5) == model.makespan_of(0.5)
    solution, plan = models[0].solve(), milp.solve_serving_plan(*EXAMPLE)
    infeasible = milp.serving_plan(*EXAMPLE[:4], 1).solve()
    for result in (solution, infeasible, plan, models[0].elastic(["coverage"]), milp.priority_packing(c)):
        assert pickle.loads(pickle.dumps(result)) == result
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again.x, solution.x) and pickle.loads(pickle.dumps(infeasible)).x is None
    assert pickle.loads(pickle.dumps(plan)).rented == plan.rented


def test_a_pickle_that_is_cut_is_refused():
    m = milp.serving_plan(*EXAMPLE)
    state = m.__getstate__()
    fresh = type(m).__new__(type(m))
    with refuses("pickled state of ServingMilp: expected more members"):
        fresh.__setstate__(state[:-1])
    with refuses("pickled state of ServingMilp: an array"):
        fresh.__setstate__((*state[:3], state[3][:-1], *state[4:]))
    with pytest.raises(gs.InvalidInput, match="entries of"):
        fresh.__setstate__((*state[:6], state[6][:-8], *state[7:]))


def test_states_of_other_versions_are_refused(tiny):
    """Of plain structs, records, views and objects with a state of their own."""
    plan = gs.consolidate(tiny)
    report = gs.verify.plan(tiny, plan)
    for thing in (report, tiny.nodes[0], tiny.nodes, plan, gs.topology.NetworkTree(tiny)):
        state = thing.__getstate__()
        fresh = type(thing).__new__(type(thing))
        for wrong in (state[:-1], (*state, 1), ("x",) * len(state)):
            with refuses(f"pickled state of {type(thing).__name__}:"):
                fresh.__setstate__(wrong)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "solver's answer: None; expected a dict with status, x, bound"),
        ({}, "solver's answer: status is missing"),
        ({"status": "great"}, "solver's answer.status: 'great'; expected one of"),
        ({"status": "optimal", "x": np.zeros((2, 2))}, "solver's answer.x"),
        ({"status": "optimal", "bound": "x"}, "solver's answer.bound: 'x'; expected a number"),
        ({"status": "failed", "message": 3}, "solver's answer.message: 3; expected a string"),
    ],
)
def test_malformed_answers_of_a_solver(answer, message):
    with refuses(message):
        milp.serving_plan(*EXAMPLE).solve(solver=lambda model, options: answer)


def test_vectors_that_are_no_numbers():
    m = milp.serving_plan(*EXAMPLE)
    for value in (math.nan, math.inf):
        with pytest.raises(gs.InvalidInput, match="expected finite numbers"):
            m.decode([value] * 22)
    assert m.decode([-1] * 22) == ({}, {})
    with refuses("assignment: /t1/w1: nan; expected a finite number"):
        m.encode({"t1": 1}, {"t1": {"w1": math.nan}})
    with refuses("share: 1.1; expected 0 to 1"):
        m.encode({"t1": 1}, {"t1": {"w1": 1.1}})


@pytest.mark.parametrize("method", ["milp", "binary_search"])
def test_units_do_not_matter(method):
    """Requests and money may be tiny, huge, or both at once."""
    for requests in (1e-290, 1e-12, 1e290):
        for money in (1e-290, 1e290):
            w = {"w1": 80 * requests, "w2": 20 * requests}
            prices = {name: price * money for name, price in EXAMPLE[2].items()}
            plan = milp.solve_serving_plan(CONFIGS, w, prices, EXAMPLE[3], 8 * money, method=method)
            assert plan.status == "optimal" and plan.optimal
            assert plan.makespan / requests == pytest.approx(BEST, rel=1e-4)
            assert plan.cost / money == pytest.approx(8)
            cheap = milp.solve_serving_plan(CONFIGS, w, prices, EXAMPLE[3], 8 * money, deadline=60 * requests)
            assert cheap.status == "optimal" and cheap.cost / money == pytest.approx(4)
    plan = milp.solve_serving_plan(*EXAMPLE[:4], 1e308, method=method)
    assert plan.optimal and plan.cost == 16
    plan = milp.solve_serving_plan(CONFIGS, {"w1": 1e15, "w2": 1}, *EXAMPLE[2:], method=method)
    assert plan.optimal
    assert milp.solve_serving_plan(*EXAMPLE, deadline=1e300).cost == 2
    with refuses("cost: inf"):
        milp.solve_serving_plan(CONFIGS, EXAMPLE[1], {**EXAMPLE[2], "t2": 1.7e308}, *EXAMPLE[3:])
    with refuses("seconds for 'w1': inf"):
        tiny = [{"name": "a", "gpus": {"t1": 1}, "throughput": {"w1": 1e-300}}]
        milp.solve_serving_plan(tiny, {"w1": 1e300}, *EXAMPLE[2:])


def test_a_billion_gpus():
    many = dict.fromkeys(EXAMPLE[3], 10**9)
    plan = milp.solve_serving_plan(*EXAMPLE[:3], many, 1e9, mip_gap=1e-6, time_limit=20)
    assert plan.status == "optimal" and plan.cost <= 1e9
    assert plan.makespan == pytest.approx(plan.bound, rel=1e-5)
    with refuses("expected at most 10000000 form 'copies'"):
        milp.serving_plan(*EXAMPLE[:3], many, 1e9)
    assert milp.serving_plan(*EXAMPLE[:3], many, 1e9, form="rates").shape == (18, 13)


def test_packing_models_of_fractions():
    def task(name, share, **more):
        asked = {"gpu_count": 1, "gpu_share_milli": share, "cpu_milli": 0, "memory_mib": 0}
        return {"name": name, **asked, **more}

    waiting = [task("b", 400), task("d", 500), task("e", 500), task("f", 1000)]
    c = cluster([task("a", 600, node="n0", gpus=[2]), *waiting])
    m = milp.packing_model(c, 0)
    full = m.encode({"b": "n0", "d": "n0", "e": "n0", "f": "n0"})
    assert m.evaluate(full).feasible() and m.evaluate(full).objective == 4
    assert full[m.index["card"][0, 0, 2]] == 1 and full[m.index["used"][0]].sum() == 1
    assert m.decode(full) == {"a": "n0", "b": "n0", "d": "n0", "e": "n0", "f": "n0"}
    assert m.decode(m.solve().x)["f"] is not None
    for bad, messages in (
        ({"a": "n1", "b": "n9"}, ["unknown node 'n9'"]),
        ({"a": "n1", "x": "n0", "y": None}, ["unknown task 'x'", "unknown task 'y'"]),
        ({"a": "n1"}, ["task 'a': placement: 'n1'; expected 'n0',"]),
        ({"a": None, "b": "n1"}, ["task 'a': placement: no node; expected 'n0',"]),
    ):
        assert mention(problems_in(m.encode, bad), messages)
    assert len(problems_in(milp.packing_model, c, "high", ["many"], allow_moves=3)) == 3
    with refuses("entries of placed: 1; expected at most 0"):
        milp.packing_model(c, 0, [-1])


def test_every_mistake_in_a_problem_is_reported():
    configs, workloads, prices, availability, budget = EXAMPLE
    wrong = {"w1": "many", "w2": None}, {"t1": "x"}, {"t1": 1.5, "t2": 2}, "8"
    assert mention(
        problems_in(milp.serving_plan, configs, *wrong),
        [
            'prices /t1 "x"',
            "availability /t1 1.5",
            'workloads /w1 "many"',
            "workloads: /w2: expected a number, found null",
            "budget '8'",
        ],
    )
    unpriced = {"name": "c", "gpus": {"t9": 1, "t8": 1}, "throughput": {"nobody": -1}}
    assert mention(
        problems_in(milp.serving_plan, [unpriced], workloads, prices, availability, budget),
        [
            "prices: no price of GPU type 't9', configuration 'c'",
            "prices: no price of GPU type 't8', configuration 'c'",
            "configuration 'c': throughput of 'nobody': >= 0",
        ],
    )
    unnamed = {"name": "c", "gpus": {"t1": 1}}
    for given, told in (
        ([unnamed], "configs: /0: field 'throughput' is missing"),
        ([CONFIGS[0], CONFIGS[0]], "configuration 't1': appears twice"),
    ):
        assert mention(problems_in(milp.solve_serving_plan, given, *EXAMPLE[1:]), [told])
    named = [{**c, "model": model} for c, model in zip(CONFIGS, ["a", "b", "c", "a"])]
    assert mention(
        problems_in(milp.serving_plan, named, *EXAMPLE[1:]), ["workloads: expected a dict per model"]
    )


def test_every_mistake_in_tasks_and_jobs_is_reported():
    tasks = [{"arrival": "x"}, 3, {"checkpoints": [1], "typo": 1}]
    problems = problems_in(milp.spot_schedule, tasks, [2, "a"], "long", None, "odd")
    places = ["tasks", "tasks", "tasks", "tasks", "nodes[1]", "horizon", "alpha", "mode"]
    assert [problem.split(":")[0] for problem in problems] == places
    c = cluster([])
    assert mention(
        problems_in(milp.joint_allocation, c, [{"pods": "x"}, {"pods": [{"gpu_count": "y"}]}, "z"]),
        ['jobs[0] /pods array "x"', 'jobs[1] /pods/0/gpu_count "y"', "jobs[2] 'z'"],
    )
    model = milp.joint_allocation(c, [{"name": "a", "pods": [{"count": 1, "gpu_count": 1}]}], level="node")
    assert mention(problems_in(model.encode, {"a": {"n0": "x"}}), ['allocation /a/n0 "x"'])
    assert mention(
        problems_in(model.encode, {"a": {"n9": 1}, "b": {}}),
        ["allocation: switch: there is no 'n9'", "allocation: job: there is no 'b'"],
    )


def test_a_packing_model_whose_pickle_was_changed_is_refused():
    c = cluster([{"name": "b", "gpu_count": 1, "gpu_share_milli": 400, "cpu_milli": 0, "memory_mib": 0}])
    m = milp.packing_model(c, 0)
    for entry in (-4, -3, -2):  # tasks, untouched, card_milli; the last is the cluster
        state = list(m.__getstate__())
        state[entry] = type(state[entry])()
        other = type(m).__new__(type(m))
        other.__setstate__(tuple(state))
        for call in (lambda: other.encode({"b": "n0"}), lambda: other.decode([0] * m.shape[1])):  # noqa: B023
            with refuses("cluster: 3 nodes and 1 tasks; expected the one that the model was made of"):
                call()
