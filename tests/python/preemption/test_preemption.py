# SPDX-License-Identifier: Apache-2.0
"""gpusched.preemption and `gpusched preempt`."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document, make_node
from gpusched import cli
from messages import mentions, naming, refuses


def machine(name: str) -> dict[str, Any]:
    size = {"cpu_milli": 64000, "memory_mib": 1000}
    return make_node(name, gpu_model="RTX4090", hardware="rtx4090x8", **size)


def task(name: str, gpus: list[int] | int, priority: int, node: str | None = None) -> dict[str, Any]:
    count = gpus if isinstance(gpus, int) else len(gpus)
    found: dict[str, Any] = {"name": name, "gpu_count": count, "cpu_milli": 8000 * count, "memory_mib": 1}
    found |= {"priority": priority, "priority_class": "LP" if priority < 1000 else "HP"}
    return found if node is None else found | {"node": node, "gpus": gpus}


@pytest.fixture
def cluster() -> gs.Cluster:
    """The example of FlexTopo's section 2: twelve options for two GPUs, four of them across sockets."""
    tasks = [task(f"c1{g}", [g], 100, "m1") for g in (4, 5, 6, 7)]
    tasks += [task(f"c2{g}", [g], 100, "m2") for g in (2, 3, 6, 7)]
    for node, blocks in (("m1", ([0, 1], [2, 3])), ("m2", ([0, 1], [4, 5]))):
        tasks += [task(f"{node}-{b[0]}", b, 1000, node) for b in blocks]
    tasks.append(task("waits", 4, 1000) | {"hardware_affinity": {"level": "socket", "qos": "guaranteed"}})
    return gs.Cluster.from_json(document([machine("m1"), machine("m2")], tasks, now=50))


def test_the_example_of_the_paper(cluster: gs.Cluster) -> None:
    b = task("b", 2, 1000)
    def sets(**qos: Any) -> list[list[str]]:
        ask = gs.preemption.minimal_victim_sets
        return [victims for node in ("m1", "m2") for victims in ask(cluster, b, node, **qos)]

    options, aligned = sets(qos="none"), sets(qos="guaranteed")
    assert len(options) == 12 and len(aligned) == 8
    assert all(victims in options for victims in aligned)
    # The default is what IMP guarantees; what the task says itself is asked for.
    assert aligned == sets() and options == sets(qos=None)
    with pytest.raises(TypeError, match=naming("unexpected keyword argument 'alpha'")):
        gs.preemption.minimal_victim_sets(cluster, b, "m1", alpha=None)  # type: ignore[call-arg]

    d = gs.preempt(cluster, "waits")
    assert d is not None
    assert (d.node, d.gpus, d.topology) == ("m1", [4, 5, 6, 7], "socket")
    assert d.victims == ["c14", "c15", "c16", "c17"]
    assert d.score == 0.5 / 400 + 0.5 * 0.5
    assert d.cost == 4 * 50 and d.priority_sum == 400 and d.proven
    plan = gs.preemption.to_plan(d)
    assert plan.evictions == d.victims and plan.placements[0].gpus == d.gpus
    assert gs.verify.plan(cluster, plan).ok


@pytest.mark.parametrize("policy", ["spot", "spot_exact"])
def test_spot_policies_rank_nodes_as_place_does_without_evictions(policy: str) -> None:
    def answer(kind: str, *held: tuple[str, str], evictions: int = 0) -> str:
        """The node for a task of this class, next to others, after evictions on "b"."""
        tasks = [
            task(f"held-{n}", [0, 1, 2, 3], 0, n) | {"priority_class": other} for n, other in held
        ]
        nodes = [make_node("a"), make_node("b", eviction_count=evictions)]
        cluster = gs.Cluster.from_json(document(nodes, tasks, version=2))
        waits = task("waits", 2, 0) | {"priority_class": kind}
        found = gs.preempt(cluster, waits, policy=policy)  # type: ignore[arg-type]
        assert found is not None and found.victims == []
        assert found.node == gs.place(cluster, waits)[0]
        return found.node

    # Packing: the node with less idle capacity, though the other one has the name that comes first.
    assert answer("HP", ("b", "HP")) == "b"
    # Co-location: beside HP, not beside spot tasks.
    both = ("a", "LP"), ("b", "HP")
    assert answer("HP", *both) == "b" and answer("LP", *both) == "a"
    # Eviction history: HP where spot tasks were evicted, spot tasks where none was.
    assert answer("HP", evictions=5) == "b" and answer("LP", evictions=5) == "a"


def test_tasks_that_fit_and_tasks_that_do_not(cluster: gs.Cluster) -> None:
    assert gs.preempt(cluster, task("x", 5, 1000)) is None
    why = gs.preemption.explain(cluster, task("x", 5, 1000) | {"cpu_milli": 1})
    assert (why.node, why.obstacle, why.missing) == ("m1", "gpu", 1)
    assert str(why).startswith("node 'm1' comes closest:")
    assert gs.preemption.minimal_victim_sets(cluster, task("x", 5, 1000), "m1") == []
    nothing = {"name": "y", "cpu_milli": 0, "memory_mib": 1, "gpu_count": 0}
    fits = gs.preempt(cluster, nothing)
    assert fits is not None and fits.victims == [] and fits.score is None
    assert gs.preemption.minimal_victim_sets(cluster, nothing, "m1") == [[]]
    # Spot tasks evict no task, whatever their priority.
    assert gs.preempt(cluster, task("z", 1, 999), policy="spot") is None
    new = task("new", 1, 1000)
    plan = gs.preemption.to_plan(gs.preempt(cluster, new))
    assert gs.verify.plan(gs.allocation.with_task(cluster, new, task("newer", 1, 0)), plan).ok
    with pytest.raises(TypeError, match="expected a dict"):
        gs.allocation.with_task(cluster, "waits")  # type: ignore[arg-type]
    with refuses("now 9223372036854775807 -1000000000000 1000000000000"):
        gs.preempt(cluster, "waits", now=2**63 - 1)
    with refuses("qos: 'perhaps'; expected one of 'guaranteed', 'best_effort', 'none'"):
        gs.preempt(cluster, "waits", qos="perhaps")  # type: ignore[arg-type]
    with refuses("runs on node 'm1'"):
        gs.preempt(cluster, "c14")


def test_search_limits_are_reported(cluster: gs.Cluster) -> None:
    with pytest.warns(RuntimeWarning, match="search_limit was hit"):
        gs.preemption.minimal_victim_sets(cluster, task("b", 2, 1000), "m1", search_limit=1)
    crowd = [
        dict(task(f"v{i}", 0, 1), cpu_milli=1000, preemptible=True, node="n0", gpus=[]) for i in range(300)
    ]
    crowded = gs.Cluster.from_json(document([make_node("n0", cpu_milli=300_000, hardware=None)], crowd))
    half = dict(task("half", 0, 100), cpu_milli=150_000)
    with pytest.warns(RuntimeWarning, match=naming("search_limit was hit: sets may be missing")):
        sets = gs.preemption.minimal_victim_sets(crowded, half, "n0", search_limit=15_000)
    assert len(sets) == 100 and {len(victims) for victims in sets} == {150}
    b = task("b", 2, 1000)
    for ask in (
        gs.preempt,
        lambda *a, **k: gs.preemption.preempt_gang(gs.allocation.with_task(*a), ["b"], **k),
    ):
        with pytest.warns(RuntimeWarning, match=naming("time_limit was hit: evictions may")):
            assert ask(cluster, b, time_limit=0) is None
        assert ask(cluster, b, time_limit=1000) == ask(cluster, b)
    with refuses("time_limit=1 is not supported by PreemptionIndex"):
        gs.preemption.OnlinePreemption(cluster, time_limit=1)


@pytest.mark.parametrize(
    ("policy", "gpus", "sets"), [("imp", 1, 8), ("imp", 2, 8 + 28), ("imp", 4, 162), ("exhaustive", 1, 255)]
)
def test_the_plain_engine_tries_every_set_up_to_the_smallest_size(policy: Any, gpus: int, sets: int) -> None:
    """FlexTopo, section 3.4: the sum of C(8, i) over these sizes i, and all 2^8 - 1 sets without IMP."""
    holders = [task(f"v{g}", [g], 10, "m") | {"preemptible": True} for g in range(8)]
    full = gs.Cluster.from_json(document([machine("m")], [*holders, task("p", gpus, 1000)]))
    for limit in (sets - 1, sets):
        found = gs.preempt(full, "p", policy=policy, engine="plain", search_limit=limit)
        assert found is not None and found.proven == (limit == sets)


def test_decisions_are_data(cluster: gs.Cluster) -> None:
    d = gs.preempt(cluster, "waits")
    assert d is not None
    for twin in (copy.deepcopy(d), copy.copy(d), pickle.loads(pickle.dumps(d))):
        assert twin == d
    assert "node='m1'" in repr(d)


def test_the_index_follows_events(cluster: gs.Cluster) -> None:
    index = gs.preemption.OnlinePreemption(cluster)
    assert index.decide("waits") == gs.preempt(cluster, "waits")
    index.fail_gpu("m1", 4)
    assert index.decide("waits") is None
    index.fail_gpu("m1", 4, False)
    index.remove("m1-0")
    index.remove("m1-2")
    fits = index.decide("waits")
    assert fits is not None and fits.victims == [] and fits.gpus == [0, 1, 2, 3]
    index.place("m1-0", "m1", [0, 1])
    d = index.decide("waits")
    assert d is not None and d.victims
    index.apply(d)
    with refuses("runs on node 'm1'"):
        index.decide("waits")
    index.fail_node("m1")
    index.set_now(100)
    assert index.decide("waits") is None
    with refuses("expected distinct GPUs of node 'm2'"):
        index.place("m1-0", "m2", [8, 9])


def test_costs_of_ones_own(cluster: gs.Cluster) -> None:
    b = task("b", 2, 1000)
    asked = []

    def cost(snapshot: gs.Cluster, victim: gs.model.Task, now: int) -> float:
        asked.append((victim.name, now))
        assert "b" in [t.name for t in snapshot.tasks]
        return 0.5 if victim.name in ("c23", "c27") else 9

    for policy in ("spot", "spot_exact", "imp", "exhaustive"):
        d = gs.preempt(cluster, b, policy=policy, qos="none", cost=cost)  # type: ignore[arg-type]
        assert d is not None and d.victims == ["c23", "c27"] and d.cost == 1
    assert {now for _, now in asked} == {50} and ("c14", 50) in asked
    with_b = gs.allocation.with_task(cluster, b)
    index = gs.preemption.OnlinePreemption(with_b, qos="none", cost=cost)
    assert index.decide("b") == gs.preempt(with_b, "b", qos="none", cost=cost)
    gang = gs.preemption.preempt_gang(with_b, ["b"], policy="spot", cost=cost)
    assert gang is not None and gang.victims == ["c23", "c27"] and gang.cost == 1
    # The default, written out.
    default = gs.preempt(cluster, b, policy="spot")
    assert gs.preempt(cluster, b, policy="spot", cost=gs.preemption.lost_work) == default

    for ask in (gs.preempt, lambda *a, **k: gs.preemption.OnlinePreemption(with_b, **k).decide("b")):
        for answer, message in (
            (-1, "cost: -1; expected GPU-seconds, 0 to 7.2e13, for task 'c14'"),
            ("much", "cost: 'much'; expected a number"),
            (True, "cost: "),
        ):
            with refuses(message):
                ask(cluster, b, cost=lambda snapshot, victim, now, answer=answer: answer)
    with refuses("cost: 3; expected a callable"):
        gs.preempt(cluster, b, cost=3)  # type: ignore[arg-type]


def test_lost_work_and_scores(cluster: gs.Cluster) -> None:
    assert gs.preemption.lost_work(cluster, "c14") == 50 == gs.preemption.lost_work(cluster, cluster.tasks[0])
    assert gs.preemption.lost_work(cluster, "m1-0", now=60) == 2 * 60
    assert gs.preemption.lost_work(cluster, "c14", -5) == 0
    assert gs.preemption.gang_lost_work(cluster, "c14") == 50  # a pod on its own
    assert gs.preemption.score(400, 0.5) == 0.5 / 400 + 0.5 * 0.5
    assert gs.preemption.paper_score(400, 0.5) == gs.preemption.score(400, 0.5)
    assert gs.preemption.paper_score(0, 0, alpha=1) == 1 < gs.preemption.paper_score(-1, 0, 1) == 1.5
    assert [gs.preemption.priority_weight(p) for p in (7, 1, 0, -2)] == [7, 1, 0.5, 0.25]
    assert gs.preemption.score(0.5, 0, alpha=1) == 1.5
    with pytest.raises(gs.InvalidInput, match="nobody"):
        gs.preemption.lost_work(cluster, "nobody")


def test_the_index_answers_questions(cluster: gs.Cluster) -> None:
    index = gs.preemption.OnlinePreemption(
        gs.allocation.with_task(cluster, task("b", 2, 1000)), most_shapes=1
    )
    assert index.shapes == 0
    for name in ("waits", "b"):
        index.decide(name)
    assert index.shapes == 1 and index.proven
    index.remove("m1-0")
    index.fail_gpu("m1", 4)
    index.fail_node("m2")
    assert (index.failed_gpus("m1"), index.has_failed("m1"), index.has_failed("m2")) == ([4], False, True)
    now = {t.name: t.node for t in index.cluster().tasks}
    assert now["m1-0"] is None and now["m1-2"] == "m1" and now["m2-0"] is None
    with refuses("most_shapes: 0; expected at least 1"):
        gs.preemption.OnlinePreemption(cluster, most_shapes=0)


def test_the_command(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot, plan = str(tmp_path / "c.json"), str(tmp_path / "p.json")
    cluster.to_json(snapshot)
    assert cli.main(["preempt", snapshot, "waits", "--policy", "exhaustive", "-o", plan]) == 0
    out = capsys.readouterr().out
    assert "waits goes to m1: GPUs 4, 5, 6, 7 (one socket)" in out and "evict c14" in out
    assert json.loads(Path(plan).read_text())["evictions"] == ["c14", "c15", "c16", "c17"]
    assert cli.main(["verify", snapshot, plan]) == 0
    assert cli.main(["preempt", snapshot, "waits", "--qos", "none", "--policy", "spot"]) == 0
    impossible = json.loads(Path(snapshot).read_text())
    for node in impossible["nodes"]:
        node.pop("hardware")
    impossible["tasks"][-1].pop("hardware_affinity")
    Path(snapshot).write_text(json.dumps(impossible))
    capsys.readouterr()
    assert cli.main(["preempt", snapshot, "waits"]) == 0
    assert "(sockets not known)" in capsys.readouterr().out
    impossible["tasks"][-1]["gpu_count"] = 8
    Path(snapshot).write_text(json.dumps(impossible))
    capsys.readouterr()
    assert cli.main(["preempt", snapshot, "waits"]) == 1
    assert mentions(capsys.readouterr().out, "no eviction: node 'm1' comes closest")


def two_switches() -> gs.Cluster:
    """Two machines under each switch, full of LP tasks; those under `b` have worked less."""
    nodes = [machine(name) | {"network": [f"switch-{name[0]}"]} for name in ("a1", "a2", "b1", "b2")]
    starts = {"a1": 95, "a2": 0, "b1": 80, "b2": 80}
    tasks = [task(f"lp-{n}", list(range(8)), 0, n) | {"start_time": at} for n, at in starts.items()]
    wish = {"job": "waits", "network_affinity": {"level": 0, "mode": "required"}}
    tasks += [task(f"pod{i}", 8, 1000) | wish for i in range(2)]
    return gs.Cluster.from_json(document(nodes, tasks, now=100))


def test_gangs_of_preemptors() -> None:
    cluster = two_switches()
    d = gs.preemption.preempt_gang(cluster, "waits", policy="spot_exact")
    assert d is not None and d.victims == ["lp-b1", "lp-b2"]
    assert (d.cost, d.lost_gangs) == (2 * 8 * 20, 2)
    assert [(p.task, p.node, p.victims) for p in d.pods] == [
        ("pod0", "b1", ["lp-b1"]),
        ("pod1", "b2", ["lp-b2"]),
    ]
    assert d == gs.preemption.preempt_gang(cluster, ["pod0", "pod1"], policy="spot_exact")
    assert pickle.loads(pickle.dumps(d)) == d and copy.deepcopy(d) == d
    assert gs.verify.plan(cluster, gs.preemption.to_plan(d)).ok
    # A job that is not in the snapshot.
    group = {"gpu_count": 8, "cpu_milli": 64000, "memory_mib": 1, "priority": 500, "priority_class": "HP"}
    job = {"name": "new", "mode": "required", "pods": [group | {"count": 2}]}
    new = gs.preemption.preempt_gang(cluster, job, policy="spot")
    assert new is not None and new.victims == ["lp-b1", "lp-b2"]
    assert [p.task for p in new.pods] == ["new-0", "new-1"]
    assert gs.verify.plan(gs.allocation.with_job(cluster, job), gs.preemption.to_plan(new)).ok
    assert gs.preemption.explain_gang(cluster, job) == ""
    # Three do not fit under one switch, and no task is evicted for two of them.
    three = job | {"pods": [group | {"count": 3}]}
    assert gs.preemption.preempt_gang(cluster, three) is None
    why = gs.preemption.explain_gang(cluster, three)
    assert mentions(why, "domain 'switch-a' comes closest: it holds 2 of 3 pods, 'new-2'")
    loose = {"name": "new", "pods": three["pods"]}
    anywhere = gs.preemption.preempt_gang(cluster, loose, objective="lost_gangs")
    assert anywhere is not None and len(anywhere.victims) == 3
    with refuses("'pod0' twice"):
        gs.preemption.preempt_gang(cluster, ["pod0", "pod0"])
    with refuses("objective: 'x'; expected one of 'cost', 'lost_gangs'"):
        gs.preemption.preempt_gang(cluster, "waits", objective="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=naming("pods: 7; expected a job (a dict, or the name")):
        gs.preemption.preempt_gang(cluster, 7)  # type: ignore[arg-type]
    with refuses("job: further and traffic are not supported"):
        gs.preemption.preempt_gang(cluster, job | {"traffic": [[1.0]]})


def test_the_command_for_gangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot, plan = str(tmp_path / "c.json"), str(tmp_path / "p.json")
    two_switches().to_json(snapshot)
    assert cli.main(["preempt", snapshot, "--job", "waits", "--policy", "spot", "-o", plan]) == 0
    out = capsys.readouterr().out
    assert "pod1 goes to b2: GPUs 0, 1, 2, 3, 4, 5, 6, 7" in out and "evict lp-b1\nevict lp-b2\n" in out
    assert mentions(out, "lost work 320 GPU-seconds, of 2 gangs and single tasks")
    assert cli.main(["verify", snapshot, plan]) == 0
    assert cli.main(["preempt", snapshot, "pod0", "pod1", "--objective", "lost_gangs"]) == 0
    for wrong in (["pod0", "--objective", "cost"], [], ["pod0", "--job", "waits"]):
        assert cli.main(["preempt", snapshot, *wrong]) == 2
    document_ = json.loads(Path(snapshot).read_text())
    document_["tasks"][0]["locked"] = document_["tasks"][2]["locked"] = True
    Path(snapshot).write_text(json.dumps(document_))
    capsys.readouterr()
    assert cli.main(["preempt", snapshot, "--job", "waits"]) == 1
    assert mentions(capsys.readouterr().out, "domain 'switch-a' comes closest: it holds 1 of 2 pods")


def test_cost_functions_cannot_change_the_index_that_asks_them(cluster: gs.Cluster) -> None:
    calls: list[str] = []

    def meddle(snapshot: gs.Cluster, task: gs.model.Task, now: int) -> float:
        for event in (
            lambda: index.remove("c14"),
            lambda: index.fail_node("m1"),
            lambda: index.set_now(60),
            lambda: index.decide("waits"),
        ):
            with pytest.raises(gs.InvalidInput, match="a decision is being made"):
                event()
        assert len(index.cluster().tasks) == len(snapshot.tasks)  # reading is harmless
        calls.append(task.name)
        if len(calls) == 1:
            raise RuntimeError("not today")
        return 1.0

    index = gs.preemption.OnlinePreemption(cluster, cost=meddle, policy="exhaustive")
    with pytest.raises(RuntimeError, match="not today"):
        index.decide("waits")
    assert index.shapes == 0  # what was not found out is not kept
    decision = index.decide("waits")
    assert decision == gs.preempt(cluster, "waits", cost=lambda *_: 1.0, policy="exhaustive")
    assert calls
    index.remove("c14")


def test_victim_orders_in_python(cluster: gs.Cluster) -> None:
    b = task("b", 2, 1000)
    asked = []

    def order(snapshot: gs.Cluster, victim: gs.model.Task, now: int) -> int:
        asked.append((victim.name, now))
        assert "b" in [t.name for t in snapshot.tasks]
        return 0 if victim.name in ("c23", "c27") else 1

    def cost(snapshot: gs.Cluster, victim: gs.model.Task, now: int) -> float:
        return 1.0 if victim.name.startswith("c2") else 9.0

    d = gs.preempt(cluster, b, policy=order, qos="none", cost=cost)
    assert d is not None and d.victims == ["c23", "c27"] and d.cost == 2 and d.proven and d.score is not None
    assert {now for _, now in asked} == {50}
    with_b = gs.allocation.with_task(cluster, b)
    gang = gs.preemption.preempt_gang(with_b, ["b"], policy=order, qos="none", cost=cost)
    assert gang is not None and gang.victims == d.victims
    assert gs.verify.plan(with_b, gs.preemption.to_plan(d)).ok

    with refuses("result for task 'c14': 0.5; expected an integer"):
        gs.preempt(cluster, b, policy=lambda *_: 0.5)  # type: ignore[arg-type, return-value]
    with refuses("policy: a victim order; expected imp or exhaustive"):
        gs.preemption.OnlinePreemption(with_b, policy=order)
    whole: Any = lambda *a: float(order(*a))  # noqa: E731
    assert gs.preempt(cluster, b, policy=whole, qos="none", cost=cost) == d
    for name in ("policy", "cost"):
        with pytest.raises(gs.errors.InvalidType, match=naming(f"{name}: f(cluster, task, now)")):
            gs.preempt(cluster, b, **{name: lambda victim: 1})
    with refuses("policy: 3; expected one of 'spot', 'spot_exact' or a callable"):
        gs.preempt(cluster, b, policy=3)  # type: ignore[arg-type]


def two_machines(**budget: Any) -> gs.Cluster:
    """m1 and m2, full of tasks of two GPUs each; those on m2 end earlier in the alphabet."""
    tasks = [
        task(f"{n}-{g}", [g, g + 1], 10, n) | {"preemptible": True}
        for n in ("m1", "m2")
        for g in (0, 2, 4, 6)
    ]
    tasks.append(task("waits", 4, 1000))
    found = document([machine("m1"), machine("m2")], tasks, now=50, version=2)
    if budget:
        found["budgets"] = [budget]
    return gs.Cluster.from_json(found)


def test_gangs_leave_whole_and_victims_run_again() -> None:
    tasks = [
        task("x", [0, 1, 2, 3, 4, 5, 6, 7], 10, "m1") | {"job": "j"},
        task("y", [0, 1], 10, "m2") | {"job": "j"},
    ]
    tasks = [t | {"preemptible": True} for t in tasks]
    tasks.append(task("waits", 8, 1000))
    nodes = [machine("m1"), machine("m2"), machine("m3") | {"gpu_count": 8, "schedulable": False}]
    snapshot = document(nodes, tasks, now=50)
    c = gs.Cluster.from_json(snapshot)
    # It fits on neither, and only m1 has a victim large enough; m2 is empty but for y.
    d = gs.preempt(c, "waits", policy="exhaustive", replace_victims=True)
    assert d is not None and d.victims == ["x", "y"] and d.cost == 10 * 50
    assert {(p.task, p.node) for p in d.replaced} in ({("x", "m2")}, set())
    plan = gs.preemption.to_plan(d)
    assert gs.verify.plan(c, plan).ok and set(plan.evictions) == {"x", "y"}
    assert d.vacated_nodes == (["m2"] if d.node == "m1" else ["m1"])
    index = gs.preemption.OnlinePreemption(c, policy="exhaustive", replace_victims=True)
    assert index.decide("waits") == d
    index.apply(d)
    assert index.cluster().tasks["waits"].node == d.node


def test_the_console_breaks_budgets_and_places_victims_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot, plan = str(tmp_path / "c.json"), str(tmp_path / "plan.json")
    everywhere = [f"{n}-{g}" for n in ("m1", "m2") for g in (0, 2, 4, 6)]
    two_machines(name="web", tasks=everywhere, allowed_down=1).to_json(snapshot)
    assert cli.main(["preempt", snapshot, "waits"]) == 1
    assert mentions(capsys.readouterr().out, "exceed disruption budgets: 'web' by 1 task")
    assert cli.main(["preempt", snapshot, "waits", "--break-budgets", "--score", "paper", "-o", plan]) == 0
    assert mentions(capsys.readouterr().out, "disruption budget web is exceeded by 1 task")
    tasks = [task("x", [0, 1], 10, "m1") | {"preemptible": True}]
    tasks += [task("y", [2, 3, 4, 5, 6, 7], 2000, "m1"), task("z", [0, 1, 2, 3, 4, 5], 2000, "m2")]
    tasks.append(task("waits", 2, 1000) | {"gpu_models": ["RTX4090"]})
    found = document([machine("m1"), machine("m2") | {"gpu_model": "A100", "hardware": None}], tasks)
    c = gs.Cluster.from_json(found)
    c.to_json(snapshot)
    assert cli.main(["preempt", snapshot, "waits", "--replace-victims", "-o", plan]) == 0
    assert mentions(capsys.readouterr().out, "evict x, restart it on m2: GPUs 6, 7")
    assert cli.main(["verify", snapshot, plan]) == 0


def test_demands_for_two_gpu_types_are_vectors() -> None:
    """ASI, section 4.2: victims are taken until every element of the demand is met. The second type is a
    class of devices.
    """
    l20 = {"device_class": "L20", "count": 4}
    node = make_node("n", gpu_model="H20", gpu_count=4, devices=[l20])

    def pod(name: str, h20: int, l20: int, **more: Any) -> dict[str, Any]:
        asked = {"name": name, "gpu_count": h20, "cpu_milli": 1, "memory_mib": 1, **more}
        return asked | ({"device_count": l20, "device_classes": ["L20"]} if l20 else {})

    spot: dict[str, Any] = {"node": "n", "priority_class": "LP"}
    running = [
        pod("a", 1, 0, gpus=[0], start_time=90, **spot),
        pod("b", 1, 2, gpus=[1, 4, 5], start_time=70, **spot),
        pod("c", 2, 0, gpus=[2, 3], start_time=40, **spot),
        pod("d", 0, 2, gpus=[6, 7], start_time=10, **spot),
    ]
    cluster = gs.Cluster.from_json(document([node], running, now=100, version=2))

    def victims(h20: int, l20: int, policy: str = "spot") -> list[str] | None:
        asks = pod("hp", h20, l20, priority=9, priority_class="HP")
        found = gs.preempt(cluster, asks, policy=policy)
        return None if found is None else sorted(found.victims)

    lost = [gs.preemption.lost_work(cluster, name) for name in "abcd"]
    assert lost == [1 * 10, 3 * 30, 2 * 60, 2 * 90]  # of both types
    assert victims(1, 0) == ["a"]  # a prefix in the order of C_t; "d" was in it while only whole GPUs counted
    assert victims(0, 1) == ["a", "b"]
    assert victims(1, 0, "spot_exact") == ["a"]
    assert victims(2, 2, "spot_exact") == ["a", "b"]  # one element each, and the second of both
    assert victims(4, 0, "spot_exact") == ["a", "b", "c"]
    assert victims(1, 4, "spot_exact") == ["b", "d"]
    assert victims(1, 5) is None and victims(5, 1) is None
    for h20, l20 in itertools.product(range(5), repeat=2):
        if h20 + l20 > 0:
            gone = [t for t in running if t["name"] in (victims(h20, l20) or [])]
            assert sum(t["gpu_count"] for t in gone) >= h20, (h20, l20)
            assert sum(t.get("device_count", 0) for t in gone) >= l20, (h20, l20)
