# SPDX-License-Identifier: Apache-2.0
"""Generated clusters, traces and their replay."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from messages import mention, naming, problems_in, refuses


def write_openb(
    folder: Path, pods: list[str], nodes: tuple[str, ...] = ("n0,96000,100000,4,T4", "n1,96000,100000,2,T4")
) -> gs.sim.Trace:
    (folder / "nodes.csv").write_text("\n".join(("sn,cpu_milli,memory_mib,gpu,model", *nodes)) + "\n")
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
    header += ",creation_time,deletion_time,scheduled_time"
    (folder / "pods.csv").write_text("\n".join((header, *pods)) + "\n")
    return gs.io.read_openb(folder / "nodes.csv", folder / "pods.csv")


@pytest.fixture
def trace(tmp_path: Path) -> gs.sim.Trace:
    """Six GPUs; eight pods of one GPU each, the first of which leaves before the last comes."""
    pods = [f"p{i},1000,1000,1,1000,,LS,Running,{i},{'6' if i == 0 else ''},{i}" for i in range(8)]
    return write_openb(tmp_path, pods)


# Generated clusters ----------------------------------------------------------------------------------------


def test_numpy_numbers_are_numbers() -> None:
    c = gs.sim.generate_cluster(
        nodes=np.int64(60), seed=np.uint8(3), load=np.float32(1), cpu_tight=np.bool_(False)
    )  # type: ignore[arg-type]
    assert c == gs.sim.generate_cluster(nodes=60, seed=3)


# Traces -----------------------------------------------------------------------------------------------------


def test_traces(trace: gs.sim.Trace) -> None:
    assert (trace.node_count, trace.task_count, trace.gpu_count) == (2, 8, 6)
    assert pickle.loads(pickle.dumps(trace)) == trace
    assert repr(trace) == "<gpusched.sim.Trace: 2 nodes, 8 tasks>"
    nodes, tasks = trace.to_pandas()
    assert list(nodes["gpu_count"]) == [4, 2]
    assert list(tasks["creation_time"]) == list(range(8))
    assert tasks["deletion_time"].isna().sum() == 7


def own_lists() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    nodes: list[dict[str, Any]] = [
        {"name": "n0", "gpu_model": "A", "gpu_count": 2, "cpu_milli": 8000, "memory_mib": 100, "rack": "r7"}
    ]
    task = {"cpu_milli": 1000, "memory_mib": 10, "gpu_count": 2}
    tasks: list[dict[str, Any]] = [
        {"name": "a", **task, "arrival": 0, "duration": 10, "user": "u1"},
        {"name": "b", **task, "arrival": 5, "duration": 10, "weight": np.float64(0.5)},
        {"name": "c", **task, "arrival": np.int64(12), "duration": None, "user": "u2"},
    ]
    return nodes, tasks


def test_a_trace_of_ones_own() -> None:
    nodes, tasks = own_lists()
    mine = gs.sim.Trace(nodes, tasks)
    assert (mine.node_count, mine.task_count, mine.gpu_count) == (1, 3, 2)
    table_of_nodes, table = mine.to_pandas()
    assert list(table_of_nodes["rack"]) == ["r7"]
    assert list(table["creation_time"]) == [0, 5, 12]
    assert list(table["deletion_time"])[:2] == [10, 15] and table["deletion_time"].isna()[2]
    assert list(table["user"].fillna("")) == ["u1", "", "u2"] and table["weight"][1] == 0.5
    assert mine == copy.copy(mine) == copy.deepcopy(mine) == gs.sim.Trace(nodes, tasks)
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert list(pickle.loads(pickle.dumps(mine)).to_pandas()[1]["user"].fillna("")) == ["u1", "", "u2"]
    assert mine != gs.sim.Trace(nodes, [*tasks[:2], tasks[2] | {"user": "u3"}])
    assert mine != gs.sim.Trace(nodes, [*tasks[:2], tasks[2] | {"duration": 1}])
    assert gs.sim.Trace(nodes, [tasks[2] | {"duration": float("nan")}]) == gs.sim.Trace(nodes, tasks[2:])
    # a holds both GPUs until 10, so that b finds no place; c comes after a has left and runs on.
    result = gs.sim.replay(mine)
    assert result.unplaced == ["b"]
    assert {t.name: t.node for t in result.cluster.tasks if t.node} == {"c": "n0"}
    assert gs.sim.replay(mine, ignore_departures=True).unplaced == ["b", "c"]


def test_wrong_entries_of_a_trace_of_ones_own_are_named() -> None:
    nodes, tasks = own_lists()

    def told(*changes: Any, of: list[dict[str, Any]] = nodes) -> list[str]:
        return problems_in(gs.sim.Trace, of, changes)

    without = {key: value for key, value in tasks[0].items() if key != "arrival"}
    assert mention(
        told(without, tasks[1] | {"arrival": 1.5}, "x", tasks[2] | {"duration": "long"}),
        [
            "tasks[1].arrival 1.5 0 1000000000000",
            "tasks[2]: 'x'; expected a dict",
            "tasks[3].duration 'long' 0 1000000000000",
            "tasks[0].arrival: missing; expected whole seconds",
        ],
    )
    assert mention(
        told(tasks[0], tasks[1] | {"weight": float("inf"), "user": {"age": {1}}}),
        [
            "tasks[1].user: /age: {1} of type set; expected a list",
            "tasks[1].weight: inf; expected a finite number",
        ],
    )
    for field, words in (
        ({"node": "n0"}, "tasks[0].node: expected none, because tasks of a trace are pending"),
        ({"creation_time": 3}, "tasks[0].creation_time: expected 'arrival' and 'duration' instead"),
        ({"gpu_count": "two"}, '<trace> /tasks/0/gpu_count "two"'),
    ):
        assert mention(told(tasks[0] | field), [words])
    assert "'a'" in told(tasks[0], tasks[0])[0]
    assert told(of=[{"name": "n0", "gpu_count": 2}])[0].startswith("<trace>: /nodes/0: ")
    with pytest.raises(TypeError, match="tasks"):
        gs.sim.Trace(nodes, tasks[0])  # type: ignore[arg-type]


def test_a_trace_of_ones_own_is_made_again_of_its_table() -> None:
    nodes, tasks = own_lists()
    mine = gs.sim.Trace(nodes, tasks)
    times = ["deletion_time", "scheduled_time"]
    table = mine.to_pandas()[1].drop(columns=[*times, "gpu_models"])
    table = table.rename(columns={"creation_time": "arrival"})
    assert math.isnan(table["weight"][0])
    again = gs.sim.Trace(nodes, table.to_dict("records"))
    assert list(again.to_pandas()[1]["weight"].isna()) == [True, False, True]


def test_resampled_tasks_keep_the_columns_of_their_originals() -> None:
    nodes, tasks = own_lists()
    mine = gs.sim.Trace(nodes, tasks)
    users = {"a": "u1", "b": "", "c": "u2"}
    for ratio in (7.0, 2.0):
        some_nodes, table = gs.sim.resample(mine, ratio, seed=1).to_pandas()
        assert list(some_nodes["rack"]) == ["r7"]
        assert list(table["user"].fillna("")) == [users[name[0]] for name in table["name"]]
    assert len(table) == 2


# Replay -----------------------------------------------------------------------------------------------------


def test_replay_with_and_without_departures(trace: gs.sim.Trace) -> None:
    result = gs.sim.replay(trace)
    assert result.unplaced == ["p7"] and result.stop_reason == "completed"
    assert result.timeline.running.tolist() == [1, 2, 3, 4, 5, 6, 6, 6]
    assert gs.sim.replay(trace, ignore_departures=True).unplaced == ["p6", "p7"]
    again = pickle.loads(pickle.dumps(result))
    assert again.cluster == result.cluster and again.unplaced == result.unplaced
    early = gs.sim.replay(trace, until=3)
    assert len(early.timeline) == 4 and len(early.cluster.tasks) == 4


def test_the_timeline_is_arrays(trace: gs.sim.Trace) -> None:
    timeline = gs.sim.replay(trace).timeline
    assert timeline.requested_gpu_milli.tolist() == [1000 * i for i in range(1, 9)]
    assert not timeline.time.flags.writeable
    assert list(timeline.to_pandas()["unplaced"]) == timeline.unplaced.tolist()
    assert pickle.loads(pickle.dumps(timeline)) == timeline


# Policies in Python -----------------------------------------------------------------------------------------


def last_feasible(cluster: gs.Cluster, task: gs.Task) -> Any:
    """A first fit from the back, with the cards named."""
    for node in reversed(cluster.nodes[:]):
        if len(node.idle_gpus) >= task.gpu_count and node.cpu_free_milli >= task.cpu_milli:
            return node, node.idle_gpus[: task.gpu_count]
    return None


def test_a_python_policy_decides(trace: gs.sim.Trace) -> None:
    result = gs.sim.replay(trace, placement=last_feasible)
    assert [result.cluster.tasks[f"p{i}"].node for i in range(1, 7)] == ["n1", "n0", "n0", "n0", "n0", "n1"]
    assert result.unplaced == ["p7"]


def test_a_python_policy_sees_departures_and_arrivals(trace: gs.sim.Trace) -> None:
    seen, kept = [], []

    def policy(cluster: gs.Cluster, task: gs.Task) -> Any:
        seen.append(sorted(t.name for t in cluster.tasks if t.node is not None))
        kept.extend((cluster, task, cluster.nodes.gpu_free_milli))
        return last_feasible(cluster, task)

    gs.sim.replay(trace, placement=policy)
    assert seen[0] == [] and seen[5] == ["p0", "p1", "p2", "p3", "p4"]
    assert seen[6] == ["p1", "p2", "p3", "p4", "p5"]  # p0 has left
    # What a policy keeps stays valid.
    assert kept[1].name == "p0" and kept[0].nodes[0].name == "n0"
    assert kept[2].tolist() == [4000, 2000]


# The real trace ---------------------------------------------------------------------------------------------


def test_the_published_table(openb: Path) -> None:
    """Weng et al. (ATC '23), default list: FGD allocates about 95 % where random allocates about 87 %."""
    trace = gs.io.read_openb(openb / "openb_node_list_all_node.csv", openb / "openb_pod_list_default.csv")
    assert (trace.node_count, trace.gpu_count) == (1213, 6212)
    share = {}
    for placement in ("random", "best_fit", "fgd"):
        timeline = gs.sim.replay(trace, placement=placement, resample_to=1.3, seed=0).timeline
        share[placement] = 100 * timeline.allocated_gpu_milli[-1] / (1000 * trace.gpu_count)
    assert share["random"] < share["best_fit"] < share["fgd"]
    assert share["fgd"] == pytest.approx(95.39, abs=1.0)
    assert share["random"] == pytest.approx(87.47, abs=1.5)


def test_a_placement_with_other_parameters_is_refused(trace: gs.sim.Trace) -> None:
    other: Any = lambda cluster: None  # noqa: E731
    told = "placement: f(cluster, task)"
    with pytest.raises(gs.errors.InvalidType, match=naming(told)):
        gs.sim.replay(trace, placement=other)


def test_nodes_of_another_cluster_are_no_answer(trace: gs.sim.Trace, small: gs.Cluster) -> None:
    wrong: list[tuple[Any, str]] = [
        (small.nodes[0], "node 'node- of another cluster"),
        ((small.nodes[0], [0]), "node 'node- of another cluster"),
        ("n9", "policy's result for task 'p0': unknown node 'n9'"),
        (("n0", [9]), "node 'n0' for task 'p0', does not fit GPUs [9]"),
        (("n0", [-1]), "task GPU: -1; expected 0 to 63"),
        (("n0",), "policy's result for task 'p0'"),
        (3, "policy's result for task 'p0': 3; expected None, a node, or a pair"),
    ]
    for answer, told in wrong:
        with refuses(told):
            gs.sim.replay(trace, placement=lambda cluster, task: answer)  # noqa: B023
    # A copy has the same nodes.
    def copied(cluster: gs.Cluster, task: gs.Task) -> Any:
        return cluster.copy().nodes["n0"] if len(cluster.nodes["n0"].idle_gpus) else None

    assert len(gs.sim.replay(trace, placement=copied).unplaced) == 3
