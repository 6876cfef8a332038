# SPDX-License-Identifier: Apache-2.0
"""HP and spot jobs and their replay."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from messages import naming, refuses

NODES = [{"name": "a", "gpu_count": 2, "cpu_milli": 64000, "memory_mib": 100000}]


def job(name: str, priority_class: str, gpus: int, arrival: int, work: int, **more: Any) -> dict[str, Any]:
    asked = {"name": name, "gpu_count": gpus, "cpu_milli": 1000, "memory_mib": 1}
    times = {"arrival_s": arrival, "work_s": work}
    return {**asked, **times, "priority_class": priority_class, **more}


@pytest.fixture
def by_hand() -> gs.sim.SpotTrace:
    """The case of tests/unit/sim/test_spot_replay.cpp, except for the time that victims take to leave."""
    jobs = [job("lp", "LP", 2, 0, 1000, checkpoint_interval=300), job("hp", "HP", 1, 500, 100)]
    return gs.sim.SpotTrace(NODES, jobs)


def test_a_case_by_hand(by_hand: gs.sim.SpotTrace) -> None:
    result = gs.sim.replay_spot(by_hand, start_delay_s=10)
    assert result.jobs["lost_s"].tolist() == [190, 0]
    assert result.jobs["evictions"].tolist() == [1, 0]
    left = int(result.jobs["wait_s"][1])  # eviction, at most a minute
    assert 0 < left <= 60
    assert result.jobs["finish_s"].tolist() == [500 + left + 100 + 10 + 700, 500 + left + 100]
    assert result.lp_completion_s.count == 1 and result.lp_completion_s.mean == result.end_s
    assert result.lp_lost_gpu_h == pytest.approx(2 * 190 / 3600)
    assert (result.preemptions, result.lp_evictions, result.stop_reason) == (1, 1, "completed")
    none = gs.sim.replay_spot(by_hand, victims="none", start_delay_s=10)
    assert none.jobs["finish_s"].tolist() == [1010, 1110]


def test_evictions_of_ones_own(by_hand: gs.sim.SpotTrace) -> None:
    at_once = gs.preemption.EvictionModel(grace_ms=0)
    result = gs.sim.replay_spot(by_hand, start_delay_s=10, eviction=at_once)
    assert result.jobs["wait_s"].tolist() == [0, 0] and result.jobs["finish_s"].tolist() == [1310, 600]
    with refuses("eviction: 'soon'; expected a gpusched.preemption.EvictionModel"):
        gs.sim.replay_spot(by_hand, eviction="soon")  # type: ignore[arg-type]


def test_every_plan_is_observed(by_hand: gs.sim.SpotTrace) -> None:
    seen: list[tuple[int, gs.Cluster, gs.Plan]] = []
    gs.sim.replay_spot(by_hand, observer=lambda *what: seen.append(what))
    steps = [(now, len(plan.evictions), len(plan.placements)) for now, _, plan in seen[:2]]
    assert steps == [(0, 0, 1), (500, 1, 1)]
    assert len(seen) == 3 and not seen[2][2].evictions
    for _, before, plan in seen:
        assert gs.verify.plan(before, plan).ok
    running = [[task.name for task in before.tasks if task.node] for _, before, _ in seen]
    assert [len(names) for names in running] == [0, 1, 0]
    with refuses("observer: 3; expected a callable"):
        gs.sim.replay_spot(by_hand, observer=3)  # type: ignore[arg-type]


def test_traces(by_hand: gs.sim.SpotTrace) -> None:
    assert (by_hand.node_count, by_hand.job_count) == (1, 2)
    assert repr(by_hand) == "<gpusched.sim.SpotTrace: 1 node, 2 jobs>"
    again = pickle.loads(pickle.dumps(by_hand))
    assert again == by_hand and copy.deepcopy(by_hand) == by_hand
    frame = by_hand.to_pandas()
    assert list(frame["priority_class"]) == ["LP", "HP"] and list(frame["work_s"]) == [1000, 100]


def test_bad_jobs_are_named() -> None:
    with refuses("jobs: /0/work_s: expected an integer, found"):
        gs.sim.SpotTrace(NODES, [job("j", "HP", 1, 0, 1) | {"work_s": "long"}])
    with pytest.raises(gs.InvalidInput, match="hp_load"):
        gs.sim.generate_spot_trace(hp_load=3)


def test_rankers_in_python() -> None:
    trace = gs.sim.generate_spot_trace(nodes=6, hours=24, seed=1)
    names = gs.sim.replay_spot(trace, rankers=["first_fit"])
    asked = []

    def first(cluster: gs.Cluster, task: gs.model.Task, node: gs.model.Node) -> int:
        asked.append((cluster, task.name, node.name))
        return 0

    mine = gs.sim.replay_spot(trace, rankers=[first])
    assert mine.jobs["finish_s"].tolist() == names.jobs["finish_s"].tolist()
    # One copy of the cluster for each ranking, as it then is; it stays as it was.
    copies = {id(cluster): cluster for cluster, _, _ in asked}
    assert 1 < len(copies) < len(asked)
    assert len({sum(len(node.tasks) for node in c.nodes) for c in copies.values()}) > 2

    def last(cluster: gs.Cluster, task: gs.model.Task, node: gs.model.Node) -> int:
        return [n.name for n in cluster.nodes].index(node.name)

    def finishes(*rankers: Any) -> list[int]:
        return gs.sim.replay_spot(trace, rankers=rankers).jobs["finish_s"].tolist()

    assert finishes("packing", last) == finishes("packing", last)

    def nodes_used(ranker: Any) -> list[str]:
        log: list[str] = []
        gs.sim.replay_spot(
            trace, rankers=[ranker], observer=lambda now, c, plan: log.extend(p.node for p in plan.placements)
        )
        return log

    assert nodes_used(first)[0] != nodes_used(last)[0]


def test_bad_rankers_in_python_are_reported(by_hand: gs.sim.SpotTrace) -> None:
    with refuses("rankers[0] (<lambda>)'s answer for task 'lp' and node 'a': 0.5; expected an integer"):
        gs.sim.replay_spot(by_hand, rankers=[lambda c, t, n: 0.5])  # type: ignore[list-item, return-value]
    two: Any = lambda cluster, task: 0  # noqa: E731
    told = naming("rankers[1] (<lambda>): f(cluster, task, node)")
    with pytest.raises(gs.errors.InvalidType, match=told):
        gs.sim.replay_spot(by_hand, rankers=["packing", two])
    with refuses("rankers[1]: 3; expected a name or a callable (cluster, task, node)"):
        gs.sim.replay_spot(by_hand, rankers=["packing", 3])  # type: ignore[list-item]
    with refuses("rankers: 'fgd'; expected no workload"):
        gs.sim.replay_spot(by_hand, rankers=["fgd"])


def test_spot_lists_are_read(tmp_path):
    nodes, jobs = tmp_path / "node_info_df.csv", tmp_path / "job_info_df.csv"
    nodes.write_text("node_name,gpu_model,gpu_capacity_num,cpu_num\n3,A10,8,128\n")
    columns = (
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type"
    )
    jobs.write_text(f"{columns}\n7,1,A10,15,2,3,60,100,Spot\n8,1,A10,4,0.5,1,0,50,HP\n")
    trace = gs.sim.read_spot_trace(nodes, jobs, checkpoint_interval=30)
    hp = {"name": "8", "cpu_milli": 4000, "gpu_count": 1, "gpu_share_milli": 500, "priority": 1000}
    lp = {"name": "7", "cpu_milli": 15000, "gpu_count": 2, "priority": 200}
    lp["checkpoint_interval"] = 30
    for wanted, kind in ((hp, "HP"), (lp, "LP")):
        wanted |= {"priority_class": kind, "memory_mib": 0, "gpu_models": ["A10"]}
    node = {"name": "3", "gpu_model": "A10", "gpu_count": 8, "cpu_milli": 128000, "memory_mib": 0}
    assert trace == gs.sim.SpotTrace(
        [node], [{**hp, "work_s": 50}, {**lp, "pods": 3, "arrival_s": 60, "work_s": 100}]
    )
    assert gs.sim.replay_spot(trace).lp_unfinished == 0
    jobs.write_text(f"{columns}\n7,1,A10,15,2,3,60,100,LP\n")
    with refuses("job_info_df.csv:2: job_type: expected HP or Spot, found 'LP'"):
        gs.sim.read_spot_trace(nodes, jobs)


def test_interference_and_limits() -> None:
    jobs = [job("gpu", "HP", 1, 0, 1000), job("cpu", "LP", 0, 100, 300) | {"cpu_milli": 33000}]
    trace = gs.sim.SpotTrace(NODES, jobs)
    slowed = gs.sim.replay_spot(trace, start_delay_s=0, cpu_slowdown_milli=[1000])
    assert slowed.jobs["slowed_s"][0] > 0 == slowed.jobs["slowed_s"][1]
    assert slowed.hp_slowdown.mean > 0 == slowed.lp_slowdown.count
    limited = gs.sim.replay_spot(gs.sim.SpotTrace(NODES, jobs), filters=["co_location_limit"])
    assert limited.jobs["first_start_s"].tolist() == [0, -1]
    with refuses("cpu_slowdown_milli[1]: 5; expected at least before, 10"):
        gs.sim.replay_spot(trace, cpu_slowdown_milli=[10, 5])
    with pytest.raises(gs.InvalidInput, match="co_location_limit"):
        gs.sim.replay_spot(trace, filters=["co_location"])


def test_results_are_arrays_and_pickle() -> None:
    trace = gs.sim.generate_spot_trace(nodes=16, hours=72, seed=1)
    assert trace == gs.sim.generate_spot_trace(nodes=16, hours=72, seed=1)
    result, none = (gs.sim.replay_spot(trace, victims=v) for v in ("spot", "none"))  # type: ignore[arg-type]
    assert none.preemptions == 0 < result.preemptions and none.hp_wait_s.mean > result.hp_wait_s.mean
    assert not result.jobs["held_s"].flags.writeable and not result.timeline.time_s.flags.writeable
    columns = ["time_s", "hp_gpu_milli", "lp_gpu_milli", "hp_waiting", "lp_waiting"]
    assert list(result.timeline.to_pandas()) == columns
    assert len(result.timeline) == len(result.timeline.to_pandas())
    again = pickle.loads(pickle.dumps(result))
    assert again == result and again.timeline == result.timeline
    assert all(np.array_equal(again.jobs[k], result.jobs[k]) for k in result.jobs)
    assert gs.sim.replay_spot(trace, spot_jobs=False).lp_allocation == 0 < result.lp_allocation


def test_consolidations_are_those_of_the_preset() -> None:
    """Every consolidation of a replay is the plan that the preset makes of the cluster as it is, with LP
    tasks locked.
    """
    trace = gs.sim.generate_spot_trace(nodes=16, hours=48, seed=3)
    moves = {}
    for preset in ("ipc", "fast", "best"):
        made: list[int] = []

        def observer(
            now: int, cluster: gs.Cluster, plan: gs.Plan, made: list[int] = made, preset: str = preset
        ) -> None:
            if len(plan.moves):
                document = cluster.to_json()
                for task in document["tasks"]:
                    task["locked"] = task["priority_class"] == "LP" and task.get("node") is not None
                alone = gs.consolidate(
                    gs.Cluster.from_json(document), preset=preset, seed=0, threads=1, bound_method="none"
                )
                assert len(alone.moves) == len(plan.moves) and alone.vacated_nodes == plan.vacated_nodes
                made.append(len(plan.moves))

        result = gs.sim.replay_spot(
            trace, consolidate_every_h=6, consolidation_preset=preset, observer=observer
        )
        assert sum(made) >= result.moves > 0
        moves[preset] = made
    assert moves["ipc"] != moves["fast"]
    with refuses("consolidation_preset: 'all'; expected one of 'ipc', 'fast', 'best'"):
        gs.sim.replay_spot(trace, consolidation_preset="all")  # type: ignore[arg-type]
