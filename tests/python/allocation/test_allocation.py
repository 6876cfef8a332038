# SPDX-License-Identifier: Apache-2.0
"""gpusched.allocation: jobs over switches."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document, make_node
from gpusched import cli
from messages import mention, mentions, problems_in, refuses


def node(name: str, network: list[str], **more: Any) -> dict[str, Any]:
    return make_node(name, gpu_model="A", cpu_milli=64000, memory_mib=65536, network=network) | more


def job(count: int, gpus: int, **more: Any) -> dict[str, Any]:
    pod = {"count": count, "gpu_count": gpus, "cpu_milli": 1000 * gpus, "memory_mib": 0, "gpu_models": []}
    return {"name": "train", "pods": [pod]} | more


@pytest.fixture
def cluster() -> gs.Cluster:
    nodes = [node("a0", ["g", "a"]), node("a1", ["g", "a"]), node("b0", ["g", "b"])]
    nodes += [node(f"c{i}", ["h", "c"]) for i in range(3)] + [node("lost", [])]
    return gs.Cluster.from_json(document(nodes, [], now=0))


def test_least_entropy_and_the_papers_greedy(cluster: gs.Cluster) -> None:
    a = gs.allocate(cluster, job(4, 8))
    assert a.placed and a.proven and a.reason == "" and a.obstacle == "none"
    assert a.per_domain == {"b": 8, "c": 24} and a.level == 1
    assert a.entropy == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert [pod for pod, _, _ in a.pods] == [f"train-{i}" for i in range(4)]
    assert all(gpus == list(range(8)) for _, _, gpus in a.pods)
    # Placements as those of `admit` and of plans, which read as tuples, too.
    first = a.pods[0]
    assert first == (first.task, first.node, first.gpus) == tuple(first)
    assert first != ("train-0", first.node, []) and a.pods == list(gs.admit(cluster, job(4, 8)).pods)
    literal = gs.allocate(cluster, job(4, 8), policy="entropy")
    assert literal.per_domain == {"a": 16, "b": 8, "c": 8} and not literal.proven
    assert copy.deepcopy(a) == a == pickle.loads(pickle.dumps(a)) != literal

    with_job = gs.allocation.with_job(cluster, job(4, 8))
    plan = gs.allocation.to_plan(a)
    assert gs.verify.plan(with_job, plan).ok
    after = gs.apply(with_job, plan)
    assert gs.fragmentation.job_entropy(after, "train") == pytest.approx(a.entropy)
    # A job of the cluster, by name.
    assert gs.allocate(with_job, "train") == a
    with pytest.raises(gs.InvalidInput, match="pending tasks"):
        gs.allocate(after, "train")


def test_levels_and_unknown_positions(cluster: gs.Cluster) -> None:
    assert gs.allocate(cluster, job(7, 8)).per_domain == {"a": 16, "b": 8, "c": 24, "lost": 8}
    assert gs.allocate(cluster, job(7, 8), level=0).per_domain == {"g": 24, "h": 24, "lost": 8}
    assert gs.allocate(cluster, job(1, 8), level="node").level == "node"
    assert gs.allocate(cluster, job(3, 8, mode="required")).per_domain == {"c": 24}
    refused = gs.allocate(cluster, job(4, 8, mode="required"))
    assert not refused.placed and refused.pods == [] and refused.per_domain == {}
    assert refused.obstacle == "network"
    assert mentions(refused.reason, "'c' comes closest 3 of the 4")
    assert gs.allocate(cluster, job(4, 8, mode="required"), mode="preferred").placed
    within = job(3, 8, further=[{"level": 0, "mode": "required"}], level="node")
    assert set(gs.allocate(cluster, within).per_domain) in ({"a0", "a1", "b0"}, {"c0", "c1", "c2"})
    refused = gs.allocate(cluster, job(8, 8))
    assert refused.obstacle == "gpu" and mentions(
        refused.reason, "too few idle GPUs: nodes 7 of the 8 pods 'train-0'"
    )


def test_keywords_and_the_dict_have_the_same_fields(cluster: gs.Cluster) -> None:
    nodes = [node(f"{s}{i}", [s]) for s in "st" for i in range(2)]
    nodes += [node(f"{s}b", [s], gpu_model="B") for s in "st"]
    c = gs.Cluster.from_json(document(nodes, [], now=0))
    groups = [
        {"count": 2, "gpu_count": 4, "gpu_models": ["B"]},
        {"count": 3, "gpu_count": 8, "gpu_models": ["A"]},
    ]
    pd = {"name": "pd", "pods": [{"cpu_milli": 0, "memory_mib": 0, **group} for group in groups]}
    traffic = [[0.0, 6.0], [6.0, 0.0]]
    talking = gs.allocate(c, pd, traffic=traffic)
    assert talking == gs.allocate(c, pd | {"traffic": traffic})
    assert talking.placed and talking.cross_traffic == pytest.approx(2)
    assert gs.allocate(c, pd).cross_traffic == 0
    # A job of the cluster has no dict.
    named = gs.allocate(gs.allocation.with_job(c, pd), "pd", traffic=traffic)
    assert named.placed and named.cross_traffic == pytest.approx(2)
    assert gs.allocation.pending_pods(gs.allocation.with_job(c, pd), "pd") == [f"pd-{i}" for i in range(5)]

    wish: Any = [{"level": 0, "mode": "required"}]
    assert gs.allocate(cluster, job(4, 8)).placed and not gs.allocate(cluster, job(4, 8), further=wish).placed
    assert gs.allocate(cluster, job(3, 8), further=wish) == gs.allocate(cluster, job(3, 8, further=wish))


def test_an_empty_node_has_a_past() -> None:
    """ASI's third criterion goes by the node's own evictions, not by what its present tasks remember."""
    nodes = [make_node("calm", eviction_count=0), make_node("volatile", eviction_count=9)]
    with pytest.raises(gs.InvalidInput, match="eviction_count"):
        gs.Cluster.from_json(document(nodes, []))  # version 1 has it for tasks alone
    cluster = gs.Cluster.from_json(document(nodes, [], version=2))
    assert [node.eviction_count for node in cluster.nodes] == [0, 9]
    assert cluster.nodes.eviction_count.tolist() == [0, 9]
    assert cluster.to_json()["version"] == 2 and gs.Cluster.from_json(cluster.to_json()) == cluster
    new = {"name": "new", "gpu_count": 1, "cpu_milli": 1000, "memory_mib": 0}
    assert gs.place(cluster, new | {"priority_class": "HP"})[0] == "volatile"


def test_counts_under_switches() -> None:
    assert gs.allocation.entropy_greedy([1, 3], 2) == [1, 1]
    assert gs.allocation.least_entropy([1, 3], 2) == [0, 2]
    assert gs.allocation.least_entropy([1, 3], 5) is None
    # The last pod joins half of the job.
    assert gs.allocation.least_entropy([4, 1, 1, 1], 5, groups=[[0, 1, 1, 0]]) == [4, 0, 0, 1]
    with refuses("capacity[1] 1.5"):
        gs.allocation.entropy_greedy([1, 1.5], 1)  # type: ignore[list-item]


def bridged(*pairs: tuple[int, int]) -> gs.topology.HardwareGraph:
    """Four GPUs of one NUMA node, some pairs with NVLink."""
    hardware = {"numa_nodes": [{"socket": 0, "cores": 8, "gpus": [0, 1, 2, 3]}]}
    graph = gs.topology.HardwareGraph.from_hardware(hardware)
    at = {v["id"]: i for i, v in enumerate(graph.vertices) if v["kind"] == "gpu"}
    links = [(at[a], at[b], "nvlink", 300.0) for a, b in pairs]
    return gs.topology.HardwareGraph(graph.vertices, [*graph.edges, *links])


def test_gpus_by_their_links() -> None:
    nodes = [make_node("n0", gpu_count=4), make_node("n1", gpu_count=4), make_node("n2", gpu_model="B")]
    c = gs.Cluster.from_json(document(nodes, [], now=0))
    picker = gs.allocation.ByLinks(c, by_gpu_model={"A100": bridged((0, 2))}, by_node={"n1": bridged((0, 3))})

    def where(name: str, gpu_picker: Any, count: int = 2) -> Any:
        pod = {"name": "new", "cpu_milli": 0, "memory_mib": 0, "gpu_count": count}
        return gs.place(c, pod, filters=[lambda c, task, node: node.name == name], gpu_picker=gpu_picker)

    for again in (picker, copy.copy(picker), copy.deepcopy(picker)):
        assert where("n0", again) == ("n0", [0, 2])
    assert where("n1", picker) == ("n1", [0, 3]) and where("n2", picker) == ("n2", [0, 1])
    assert where("n0", "fewest_crossings") == ("n0", [0, 1])
    wrong = {"by_gpu_model": {"A10": bridged(), "B": bridged()}, "by_node": {"n9": bridged()}}
    assert mention(
        problems_in(gs.allocation.ByLinks, c, **wrong),
        ["by_gpu_model: 'A10'; GPU model", "by_node: 'n9'; node", "node 'n2': lacks GPU 4"],
    )
    with refuses("by_node['n0']: 'x'"):
        gs.allocation.ByLinks(c, by_node={"n0": "x"})  # type: ignore[dict-item]
    with refuses("lacks GPU 4"):  # made for another cluster
        other = gs.Cluster.from_json(document([make_node("big", gpu_model="A100")], [], now=0))
        gs.place(other, {"name": "x", "cpu_milli": 0, "memory_mib": 0, "gpu_count": 1}, gpu_picker=picker)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(None, "a list"), ([4], "GPUs of the node"), ([0, 1], "GPUs of the node that are free for the task")],
)
def test_wrong_answers_of_a_picker_name_task_and_node(answer: Any, expected: str) -> None:
    c = gs.Cluster.from_json(document([make_node("n0", gpu_count=4)], [], now=0))
    pod = {"name": "new", "cpu_milli": 0, "memory_mib": 0, "gpu_count": 1}
    with refuses(f"gpu_picker's answer for task 'new' and node 'n0': {answer}; expected {expected}"):
        gs.place(c, pod, gpu_picker=lambda c, task, node: answer)
    with refuses("rankers[1]: 3; expected a name"):
        gs.place(c, pod, rankers=["packing", 3])  # type: ignore[list-item]


def test_several_jobs_at_once() -> None:
    # By size: the job of four takes the large switch and that of three is split. Nothing better exists.
    nodes = [node(name, [f"s{name}"], gpu_count=gpus) for name, gpus in (("small", 1), ("large", 6))]
    c = gs.Cluster.from_json(document(nodes, [], now=0))
    jobs = [job(3, 1, name="three"), job(4, 1, name="four")]
    found = gs.allocate_many(c, jobs)
    simple = gs.allocate_many(c, jobs, policy="size_sorted")
    assert found.placed == simple.placed == 2 and found.entropy <= simple.entropy
    assert found.entropy == pytest.approx(3 / 7 * found.jobs[0].entropy)
    assert [a.job for a in found.jobs] == ["three", "four"] and found.stop_reason == "completed"
    with_jobs = gs.allocation.with_job(c, *jobs)
    assert gs.allocate_many(with_jobs, ["three", "four"]) == found == copy.deepcopy(found)
    assert gs.verify.plan(with_jobs, gs.allocation.to_plan(*found.jobs)).ok
    # A job that does not fit beside the others is left out whole, and says why.
    found = gs.allocate_many(c, [*jobs, job(2, 1, name="two")])
    assert found.placed == 2 and [a.placed for a in found.jobs].count(False) == 1
    with pytest.raises(gs.InvalidInput, match="different names"):
        gs.allocate_many(c, [job(1, 1), job(1, 1)])
    with pytest.raises(TypeError):
        gs.allocate_many(c, job(1, 1))


def test_a_plan_brings_the_pods_of_its_job() -> None:
    nodes = [node(f"{s}{i}", [s]) for s in "st" for i in range(2)]
    tasks = [
        {"name": f"t{i}", "gpu_count": n, "cpu_milli": 0, "memory_mib": 0, "node": at, "gpus": list(range(n))}
        for i, (at, n) in enumerate([("s0", 2), ("s1", 4), ("t0", 4), ("t1", 8)])
    ]
    c = gs.Cluster.from_json(document(nodes, tasks, now=0))
    wish = job(1, 8, mode="required")
    plan = gs.admit(c, wish, evictions=False).plan
    assert [move.task for move in plan.moves] == ["t0"]  # two GPUs; t2 has four
    with_job = gs.allocation.with_job(c, wish)
    for cluster in (c, with_job, c.to_json()):
        for form in (plan, plan.to_json()):
            assert gs.verify.plan(cluster, form).ok
    assert gs.apply(c, plan) == gs.apply(with_job, plan)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert not gs.admit(c, wish, evictions=False, max_moves=0)


def test_bad_options_are_refused(cluster: gs.Cluster) -> None:
    told = problems_in(gs.allocate, cluster, job(1, 1), further=[{"mode": "required"}], traffic=7)
    assert mention(told, ["further: /0: field 'level' is missing", "traffic: 7"])
    with refuses("policy 'best'"):
        gs.allocate(cluster, job(1, 1), policy="best")  # type: ignore[arg-type]
    with refuses("level 5"):
        gs.allocate(cluster, job(1, 1), level=5)
    with refuses("a job or a task of the cluster"):
        gs.allocate(cluster, "nobody")


def test_console(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot, wish, plan, with_job = (str(tmp_path / f"{name}.json") for name in ("c", "job", "plan", "with"))
    cluster.to_json(snapshot)
    Path(wish).write_text(json.dumps(job(4, 8)))
    assert cli.main(["allocate", snapshot, wish, "-o", plan, "--write-cluster", with_job]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "train: 4 pods placed GPUs per b 8 c 24")
    placed = Counter(step.node for step in gs.Plan.from_json(plan).placements)
    assert all(f"{node} ({pods} pod" in out for node, pods in placed.items())
    assert cli.main(["verify", with_job, plan]) == 0
    assert cli.main(["allocate", with_job, "train", "--policy", "entropy", "--level", "1"]) == 0
    assert "a 16, b 8, c 8" in capsys.readouterr().out
    assert cli.main(["allocate", snapshot, wish, "--mode", "required"]) == 1
    assert mentions(capsys.readouterr().out, "train: not placed: network: pods one domain")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(job(2, 8, name="other")))
    assert cli.main(["allocate", snapshot, wish, str(other)]) == 0
    assert "other: 2 pods placed" in capsys.readouterr().out
    assert cli.main(["allocate", snapshot, wish, str(other), "--mode", "required"]) == 2
    with pytest.raises(SystemExit):
        cli.main(["allocate", snapshot, wish, "--level", "leaf"])
    assert "'leaf' is no level" in capsys.readouterr().err
    assert cli.main(["allocate", snapshot, wish, "--policy", "joint"]) == 2
    assert cli.main(["allocate", snapshot, str(tmp_path / "none.json")]) == 2
    other.write_text("[]")
    assert cli.main(["allocate", snapshot, str(other)]) == 2
    capsys.readouterr()

    nodes = [node(f"{s}{i}", [s], gpu_count=4) for s in "st" for i in range(2)]
    tasks = [
        {"name": f"t{at}", "gpu_count": 1, "cpu_milli": 0, "memory_mib": 0, "node": at, "gpus": [0]}
        for at in ("s0", "s1", "t0", "t1")
    ]
    gs.Cluster.from_json(document(nodes, tasks, now=0)).to_json(snapshot)
    Path(wish).write_text(json.dumps(job(1, 4)))
    Path(plan).unlink()
    arguments = [snapshot, wish, "-o", plan, "--write-cluster", with_job]
    assert cli.main(["allocate", *arguments]) == 1
    Path(wish).write_text(json.dumps(job(1, 5)))  # no node has so many
    assert cli.main(["admit", *arguments]) == 1
    assert f"wrote {plan}" not in capsys.readouterr().out
    assert not Path(plan).exists()  # nothing is placed: no plan
    Path(wish).write_text(json.dumps(job(1, 4)))
    assert cli.main(["admit", *arguments]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "wave 1: move ts0 from s0 to") and "\ntrain-0 goes to s0: GPUs 0, 1, 2, 3\n" in out
    assert cli.main(["verify", with_job, plan]) == 0


def test_a_node_may_be_called_as_a_switch() -> None:
    nodes = [make_node("s0"), make_node("a", network=["s0"]), make_node("b", network=["s1"])]
    cluster = gs.Cluster.from_json(document(nodes, []))
    pods = [{"count": 3, "gpu_count": 8, "cpu_milli": 0, "memory_mib": 0}]
    found = gs.allocate(cluster, {"name": "j", "pods": pods})
    assert found.per_domain == {"s0": 8, "s0 (node)": 8, "s1": 8}
    two = {"name": "j", "mode": "required", "pods": [pods[0] | {"count": 2}]}
    assert gs.preemption.preempt_gang(cluster, two) is None


def test_slowdowns_are_learnt() -> None:
    assert gs.allocation.fit_slowdown([(0.5, 0.1), (1, 0.3)]) == [280]
    assert gs.allocation.fit_slowdown([(0.5, 0.4)] * 3 + [(1, 0.2)], values=2) == [350, 350]
    with pytest.raises(gs.InvalidInput, match=r"observations\[0\]"):
        gs.allocation.fit_slowdown([(0.5, 0.1, 3)])  # type: ignore[list-item]
