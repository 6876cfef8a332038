# SPDX-License-Identifier: Apache-2.0
"""Models, their files, and solvers from Python."""

import json
import pickle
import re

import gpusched as gs
import numpy as np
import pytest
from clusters import document, make_node
from messages import naming, refuses
from milp_examples import BEST, CONFIGS, EXAMPLE, cluster, data, solvers, spot_example

pytest.importorskip("scipy")
milp = gs.milp
serving = gs.serving


def test_matrices_are_views():
    m = milp.serving_plan(*EXAMPLE)
    assert m.shape == (34, 22)
    assert m.A.shape == (34, 22)
    assert np.shares_memory(m.A.data, m.value)
    for array in (m.c, m.row_lower, m.row_upper, m.col_lower, m.col_upper, m.integrality):
        assert not array.flags.writeable
    assert len(m.row_names) == 34 and len(m.col_names) == 22
    assert m.col_names[0] == "T" and m.c[0] == 1
    assert m.integrality.sum() == 7
    assert m.index["x"].shape == (7, 2) and m.index["y"].shape == (7,)
    groups = {"coverage", "time", "active", "symmetry", "budget", "availability", "surrogate"}
    assert groups == set(m.group_names)
    assert m.rows_in("surrogate") == 4
    assert milp.serving_plan(*EXAMPLE, form="fixed_makespan", makespan=30).shape == (18, 12)
    assert milp.serving_plan(*EXAMPLE, form="rates").shape == (18, 13)


@pytest.mark.parametrize("solver", solvers())
@pytest.mark.parametrize("form", ["copies", "mccormick", "rates"])
def test_worked_example_model(solver, form):
    m = milp.serving_plan(*EXAMPLE, form=form)
    s = m.solve(solver=solver)
    assert s.status == "optimal"
    assert m.makespan_of(s.objective) == pytest.approx(BEST)
    assert m.makespan_of(s.bound) == pytest.approx(BEST)
    assert m.evaluate(s.x).feasible()
    replicas, assignment = m.decode(s.x)
    assert replicas == {"t1": 1, "TP(2xt2)": 1}
    assert assignment["t1"]["w1"] == pytest.approx(5 / 34)
    assert m.makespan_of(m.evaluate(m.encode(replicas, assignment)).objective) == pytest.approx(BEST)


@pytest.mark.parametrize("solver", solvers())
@pytest.mark.parametrize("method", ["milp", "binary_search"])
def test_worked_example_plan(solver, method):
    plan = milp.solve_serving_plan(*EXAMPLE, method=method, solver=solver)
    assert plan.status == "optimal" and plan.optimal
    assert plan.makespan == pytest.approx(BEST, rel=1e-4)
    assert plan.bound <= plan.makespan
    assert plan.cost == 8
    assert plan.rented == {"t1": 1, "t2": 2}
    assert plan.replicas == {"t1": 1, "TP(2xt2)": 1}
    assert plan.assignment["t1"] == {"w1": pytest.approx(5 / 34), "w2": pytest.approx(1)}
    assert plan.assignment["TP(2xt2)"] == {"w1": pytest.approx(29 / 34)}
    cheap = milp.solve_serving_plan(*EXAMPLE, deadline=60, solver=solver)
    assert cheap.cost == 4 and cheap.makespan <= 60


def test_several_models():
    configs = [
        {"name": "a", "gpus": {"g": 1}, "throughput": {"w": 2.0}, "model": "m0"},
        {"name": "b", "gpus": {"g": 1}, "throughput": {"w": 1.0}, "model": "m1"},
    ]
    plan = milp.solve_serving_plan(configs, {"m0": {"w": 40}, "m1": {"w": 40}}, {"g": 1.0}, {"g": 3}, 3)
    assert plan.replicas == {"a": 1, "b": 2}
    assert plan.makespan == pytest.approx(20)
    configs[0]["model"] = None
    with pytest.raises(gs.InvalidInput, match="model is missing"):
        milp.serving_plan(configs, {"m0": {"w": 1}, "m1": {"w": 1}}, {"g": 1.0}, {"g": 3}, 3)


@pytest.mark.parametrize("solver", solvers())
def test_statuses(solver):
    m = milp.serving_plan(*EXAMPLE[:4], 1)
    s = m.solve(solver=solver)
    assert s.status == "infeasible" and s.x is None and s.objective is None
    soft = m.elastic(["coverage"])
    relaxed = soft.solve(solver=solver)
    assert relaxed.objective == pytest.approx(2)
    assert [v.group for v in soft.violated_groups(relaxed.x)] == ["coverage"]
    assert "coverage" in m.conflicting_groups(solver=solver)


def test_a_solver_of_ones_own_that_lies():
    calls = []

    def liar(model, options):
        calls.append(options["presolve"])
        return {"status": "infeasible"}

    plan = milp.solve_serving_plan(*EXAMPLE, method="binary_search", solver=liar)
    assert plan.status == "failed" and not plan.optimal and plan.message
    assert plan.makespan >= BEST and plan.bound <= BEST
    assert False in calls  # it was asked again without presolve

    def broken(model, options):
        raise RuntimeError("no licence")

    with pytest.raises(RuntimeError, match="no licence"):
        milp.serving_plan(*EXAMPLE).solve(solver=broken)
    wrong = milp.serving_plan(*EXAMPLE).solve(solver=lambda m, o: {"status": "optimal", "x": np.zeros(22)})
    assert wrong.status == "failed" and "coverage" in wrong.message
    with refuses("solver: 'cplex'"):
        milp.serving_plan(*EXAMPLE).solve(solver="cplex")


@pytest.mark.parametrize("suffix", ["mps", "lp"])
def test_files_come_back_to_the_same_optimum(tmp_path, suffix):
    configs = [{**c, "name": name} for c, name in zip(CONFIGS, ["a b", "3x[1]", "end", 'q"ü'])]
    m = milp.serving_plan(configs, *EXAMPLE[1:])
    file = tmp_path / f"m.{suffix}"
    getattr(m, f"write_{suffix}")(file)
    highspy = pytest.importorskip("highspy")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(file))
    highs.run()
    assert highs.getInfo().objective_function_value == pytest.approx(BEST)


# Table 5 of the paper: shares of the nine workloads, input-major.
TRACES = {
    1: [33, 7, 8, 7, 27, 6, 6, 3, 3],
    2: [22, 5, 5, 21, 5, 5, 19, 6, 12],
    3: [4, 1, 4, 3, 20, 27, 1, 25, 15],
}


def helix(trace, budget):
    d = json.loads(data("milp", "llama2_70b_helix_instance.json").read_text())
    names = [f"w{i + 1}" for i in range(9)]
    configs = [{"name": c["name"], "throughput": dict(zip(names, c["h"]))} for c in d["configs"]]
    for made, c in zip(configs, d["configs"]):
        made["gpus"] = {g: n for g, n in zip(d["gpus"], c["d"]) if n}
    demand = {name: 10.0 * share for name, share in zip(names, TRACES[trace])}
    return configs, demand, dict(zip(d["gpus"], d["price"])), dict(zip(d["gpus"], d["avail"])), budget


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trace", "budget", "makespan"),
    [(1, 15, 139.2), (2, 15, 112.1), (3, 15, 113.6), (1, 30, 69.5), (2, 30, 56.0), (3, 30, 55.7)],
)
def test_real_instance(trace, budget, makespan):
    plan = milp.solve_serving_plan(*helix(trace, budget), time_limit=60)
    assert plan.optimal
    assert plan.makespan == pytest.approx(makespan, abs=0.051)
    if budget == 15:
        assert plan.rented == {"A100": 8}


@pytest.mark.parametrize(
    ("alpha", "mode", "objective"),
    [(0.2, "meaning", -0.142857), (3, "meaning", -2.666667), (1, "literal", -3.726190)],
)
def test_spot_schedule(alpha, mode, objective):
    m = milp.spot_schedule(spot_example(), [2], 7, alpha, mode=mode)
    s = m.solve()
    assert s.objective == pytest.approx(objective, abs=2e-6)
    pods = m.decode(s.x)
    assert m.schedule_value(pods)["objective"] == pytest.approx(objective, abs=2e-6)
    assert m.evaluate(m.encode(pods)).objective == pytest.approx(objective, abs=2e-6)
    with refuses("tasks: /0: field 'checkpoints' is missing"):
        milp.spot_schedule([{"arrival": 0}], [2], 7, 1)


def test_consolidation_and_packing():
    def task(name, gpus, node=None, first=0, **more):
        placed = {"node": node, "gpus": list(range(first, first + gpus))} if node else {}
        return {"name": name, "gpu_count": gpus, "cpu_milli": 1000, "memory_mib": 1, **placed, **more}

    c = cluster([task("a", 2, "n0"), task("b", 1, "n1"), task("d", 1, "n2")])
    for form in ("plain", "classes"):
        m = milp.consolidation(c, form=form)
        s = m.solve()
        placement = m.decode(s.x)
        assert m.occupied(placement) == 1 and m.moves(placement) == 2
        assert s.objective == pytest.approx(1 + 2 / 4)
        assert m.evaluate(m.encode(placement)).feasible()
    waiting = [task("p", 4, priority=5), task("q", 4, priority=1), task("r", 3, priority=9)]
    c = cluster([task("a", 4, "n0"), task("b", 2, "n1"), *waiting])
    r = milp.priority_packing(c)
    assert [(s["priority"], s["placed"], s["bound"]) for s in r.steps] == [(9, 1, 1), (5, 0, 0), (1, 0, 0)]
    assert r.optimal and r.moves == 0 and r.placement["r"] == "n2" and r.placement["p"] is None
    above = []
    for step in r.steps:
        m = milp.packing_model(c, step["priority"], above)
        x = m.encode(r.placement)
        assert m.decode(x) == r.placement and m.evaluate(x).feasible()
        assert m.evaluate(x).objective == step["placed"] == pytest.approx(m.solve().objective)
        above.append(step["placed"])
    assert m.rows_in("above") == 2 and m.rows_in("place") == 3 and m.rows_in("gpu") == len(c.nodes)
    assert pickle.loads(pickle.dumps(m)).encode(r.placement).tolist() == x.tolist()
    assert milp.packing_model(c, 9, allow_moves=True).rows_in("place") == 5


def joint_cluster():
    """Two switches of two nodes each, with 8 GPUs and 32 cores; s1 has another GPU model."""
    nodes = [
        make_node(f"n{i}", gpu_model="AB"[i // 2], cpu_milli=32_000, network=["core", f"s{i // 2}"])
        for i in range(4)
    ]
    return gs.Cluster.from_json(document(nodes, []))


def test_joint_allocation():
    c = joint_cluster()
    m = milp.joint_allocation(
        c, [{"name": n, "pods": [{"count": k, "gpu_count": 1}]} for n, k in (("a", 12), ("b", 16))]
    )
    placed = m.decode(m.solve().x)
    assert placed["b"] in ({"s0": 16}, {"s1": 16})
    assert len(placed["a"]) == 1
    again = m.encode(placed)
    assert m.decode(again) == placed and m.evaluate(again).feasible()
    assert m.evaluate(again).objective == pytest.approx(m.solve().objective)
    for bad, message in (
        ({"c": {}}, "there is no 'c'"),
        ({"a": {"s9": 1}}, "there is no 's9'"),
        ({"a": {"s0": 3}}, "pods in all: 3"),
    ):
        with refuses(message):
            m.encode(bad)
    many = [{"name": "a", "pods": [{"count": 1_000_000, "gpu_count": 1}]}]
    assert milp.joint_allocation(c, many).index["z"].shape == (1, 2, 17)
    pods = {"count": 2, "gpu_count": 1}
    for jobs, message in (
        ([{"name": "a", "pods": [{**pods, "gpu": 1}]}], "jobs[0]: /pods/0/gpu: unknown field;"),
        ([{"name": "a", "pods": [pods], "priority": 3}], "jobs[0]: /priority: unknown field;"),
        ([{"name": "a", "pods": [pods], "level": 0}], "jobs[0].level: 0; expected 1"),
        ([{"name": "a", "pods": [pods], "traffic": [[1.0]]}], "jobs[0].traffic: joint allocation"),
    ):
        with refuses(message):
            milp.joint_allocation(c, jobs)


def test_joint_allocation_takes_the_jobs_of_allocate():
    c = joint_cluster()

    def job(name, count):
        pod = {"count": count, "gpu_count": 1, "cpu_milli": 10_000, "memory_mib": 1024}
        return {"name": name, "pods": [pod], "mode": "preferred"}

    # Six pods fill a switch by cores: the second job goes to the other one, the third finds no place.
    jobs = [job("a", 6), job("b", 5), job("c", 4)]
    assert all(gs.allocate(c, j).placed for j in jobs)
    m = milp.joint_allocation(c, jobs)
    placed = m.decode(m.solve().x)
    best = gs.allocate_many(c, jobs, policy="joint")
    assert sum(bool(pods) for pods in placed.values()) == best.placed == 2
    # All on one switch, or not placed.
    seven = [job("a", 7) | {"mode": "required"}]
    m = milp.joint_allocation(c, seven)
    assert m.decode(m.solve().x) == {"a": {}} and not gs.allocate(c, seven[0]).placed
    m = milp.joint_allocation(c, [job("a", 7)])
    assert sorted(m.decode(m.solve().x)["a"].values()) == [1, 6]


def test_joint_allocation_refuses_the_jobs_that_allocate_refuses():
    c = joint_cluster()
    pod = {"count": 2, "gpu_count": 1, "cpu_milli": 0, "memory_mib": 0}
    in_group = [{**pod, "subgroup": "g"}]
    groups = [{"name": "g", "min_members": 1}]
    for job in (
        {"name": "a", "pods": [pod], "min_members": -1},
        {"name": "a", "pods": in_group},
        {"name": "a", "pods": in_group, "subgroups": groups * 2, "min_members": 2},
    ):
        with pytest.raises(gs.InvalidInput) as refused:
            gs.allocate(c, job)
        with pytest.raises(gs.InvalidInput) as joint:
            milp.joint_allocation(c, [job])
        told = [re.sub(r"^job: ", "jobs[0]: ", problem) for problem in refused.value.problems]
        assert joint.value.problems and set(joint.value.problems) <= set(told)  # of one pod, not of all
    m = milp.joint_allocation(c, [{"name": "a", "pods": in_group, "subgroups": groups, "min_members": 1}])
    assert sum(m.decode(m.solve().x)["a"].values()) == 2
    # A tuple of pods is as good as a list.
    with refuses("jobs[0].pods: 2 kinds of pods; expected one"):
        milp.joint_allocation(c, [{"name": "a", "pods": (pod, {**pod, "count": 50})}])
    assert milp.joint_allocation(c, [{"name": "a", "pods": ({"count": 2, "gpu_count": 1},)}]).shape == m.shape
    with pytest.raises(TypeError, match=naming("jobs: None; expected a list of dicts")):
        milp.joint_allocation(c, None)


def test_joint_allocation_names_a_node_that_is_called_as_a_switch():
    nodes = [make_node("s", gpu_count=1), make_node("n", gpu_count=2, network=["core", "s"])]
    c = gs.Cluster.from_json(document(nodes, []))
    m = milp.joint_allocation(c, [{"name": "a", "pods": [{"count": 3, "gpu_count": 1}]}])
    placed = m.decode(m.solve().x)
    assert sorted(placed["a"]) == ["s", "s (node)"] and sum(placed["a"].values()) == 3
    assert m.decode(m.encode(placed)) == placed


def test_a_missing_solver_is_reported_and_all_else_works(monkeypatch):
    solvers_module = __import__("gpusched._solvers", fromlist=["_solvers"])
    monkeypatch.setattr(solvers_module, "_importable", lambda name: False)
    with pytest.raises(gs.BackendError, match=r"pip install highspy.*coinor-libcbc-dev"):
        solvers_module.find("auto", [])
    m = milp.serving_plan(*EXAMPLE)
    assert m.to_mps().startswith("*") and "Subject To" in m.to_lp()
    assert m.evaluate(np.zeros(22)).violation == 1
    bound = serving.closed_form_bound(*EXAMPLE)
    assert bound <= BEST
    makespan = m.evaluate(m.encode(*serving.greedy_plan(*EXAMPLE))).objective
    assert BEST <= makespan < 1.1 * BEST
    assert serving.greedy_plan(*EXAMPLE, makespan=makespan + 1) is not None
    assert serving.greedy_plan(*EXAMPLE, makespan=bound / 2) is None
    with refuses("makespan: expected a number above 0"):
        serving.greedy_plan(*EXAMPLE, makespan=0)
    assert m.lp_relaxation().shape == m.shape and m.elastic().shape[0] == 34
