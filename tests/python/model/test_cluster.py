# SPDX-License-Identifier: Apache-2.0
"""Snapshots: documents in and out, views, columns, frames, copies."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from pathlib import Path

import gpusched as gs
import numpy as np
import pytest
from clusters import document, make_node, make_task, tiny_document
from messages import mention, mentions, problems_in, refuses


def test_documents_survive_the_round_trip(tiny: gs.Cluster, tmp_path: Path) -> None:
    again = gs.Cluster.from_json(tiny.to_json())
    assert again == tiny
    path = tmp_path / "cluster.json"
    assert tiny.to_json(path) is None
    assert gs.Cluster.from_json(path) == tiny
    assert gs.Cluster.from_json(str(path)) == tiny
    assert json.loads(path.read_text()) == tiny.to_json()


def test_views_show_the_document() -> None:
    node = make_node(
        "n0",
        gpu_memory_mib=81920,
        schedulable=False,
        network=["c", "s"],
        labels={"zone": "a"},
        taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}],
        hardware="a100x8",
        failed_gpus=[7],
    )
    task = make_task(
        "t0",
        job="j0",
        gpu_count=2,
        gpu_models=["A100"],
        priority=7,
        priority_class="LP",
        node="n0",
        gpus=[0, 5],
        node_selector={"zone": "a"},
        tolerations=[{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        anti_affinity=[{"group": "g", "level": "node", "limit": 2}, {"group": "h", "level": 1, "limit": 3}],
        affinity=[{"group": "a", "level": 0}],
        network_affinity={"level": 1, "mode": "required"},
        hardware_affinity=[{"level": "numa", "qos": "best_effort"}],
        gpu_memory_mib=1000,
        move_cost=5,
        start_time=10,
        last_checkpoint_time=20,
        checkpoint_interval=30,
        eviction_count=4,
    )
    c = gs.Cluster.from_json(document([node], [task], now=99))
    n, t = c.nodes[0], c.tasks[0]
    for key, value in node.items():
        assert getattr(n, key) == value, key
    for key, value in task.items():
        assert getattr(t, key) == value, key
    assert (c.now, t.preemptible, t.gpu_milli, t.cores, n.tasks) == (99, True, 2000, None, [t])
    assert (n.cpu_free_milli, n.memory_free_mib, n.gpu_free_milli) == (120000, 999000, 5000)
    assert n.idle_gpus == [1, 2, 3, 4, 6]


def test_files_that_cannot_be_read_or_written(tiny: gs.Cluster, tmp_path: Path) -> None:
    with pytest.raises(gs.BackendError, match="missing.json"):
        gs.Cluster.from_json(tmp_path / "missing.json")
    with pytest.raises(gs.BackendError):
        tiny.to_json(tmp_path / "no" / "folder.json")
    (tmp_path / "bad.json").write_text('{"format": ')
    with pytest.raises(gs.InvalidInput, match="bad.json"):
        gs.Cluster.from_json(tmp_path / "bad.json")


def test_errors_survive_pickling() -> None:
    error = gs.InvalidInput(["a", "b"])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.problems, str(again)) == (gs.InvalidInput, ["a", "b"], str(error))
    assert str(gs.InvalidInput("one")) == "one"


def test_sequences(tiny: gs.Cluster) -> None:
    nodes = tiny.nodes
    assert len(nodes) == 3 and len(tiny.tasks) == 2
    assert [n.name for n in nodes] == nodes.name == ["n0", "n1", "n2"]
    assert nodes[-1] == nodes["n2"] == nodes[2]
    assert [n.name for n in nodes[::2]] == ["n0", "n2"]
    assert "n1" in nodes and "x" not in nodes and nodes[0] in nodes and 3 not in nodes
    assert nodes.index("n1") == 1
    assert {nodes[0]: 1}[nodes["n0"]] == 1
    with pytest.raises(IndexError):
        nodes[3]
    with pytest.raises(KeyError):
        nodes["x"]
    with pytest.raises(ValueError, match="no node"):
        nodes.index("x")
    assert nodes.domain(1) == ["asw-0", "asw-0", "asw-1"]
    with pytest.raises(IndexError):
        nodes.domain(2)


def test_columns_agree_with_views(small: gs.Cluster) -> None:
    nodes, tasks = small.nodes, small.tasks
    of_nodes = (
        "gpu_count cpu_milli memory_mib schedulable occupants cpu_free_milli memory_free_mib gpu_free_milli"
    )
    of_tasks = (
        "cpu_milli memory_mib gpu_count gpu_share_milli priority locked preemptible start_time move_cost "
        "eviction_count job priority_class"
    )
    for views, columns in ((nodes, of_nodes), (tasks, of_tasks)):
        for name in columns.split():
            assert list(getattr(views, name)) == [getattr(one, name) for one in views], name
    assert [nodes.name[i] if i >= 0 else None for i in tasks.node_index] == [t.node for t in tasks]
    assert [[g for g in range(64) if m >> g & 1] for m in tasks.gpu_mask.tolist()] == [t.gpus for t in tasks]


@pytest.mark.parametrize("name", ["gpu_count", "cpu_milli", "idle_gpu_mask"])
def test_arrays_are_read_only_and_outlive_their_cluster(name: str) -> None:
    array = getattr(gs.sim.generate_cluster(nodes=50, seed=1).nodes, name)
    kept = array.copy()
    gc.collect()
    gs.sim.generate_cluster(nodes=50, seed=2)  # reuses what a dangling array would point to
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    np.testing.assert_array_equal(array, kept)


def test_views_outlive_their_cluster() -> None:
    node = gs.Cluster.from_json(tiny_document()).nodes[1]
    gc.collect()
    assert node.tasks[0].name == "fixed"


def test_copies_and_pickles_are_equal(small: gs.Cluster) -> None:
    for other in (small.copy(), copy.copy(small), copy.deepcopy(small), pickle.loads(pickle.dumps(small))):
        assert other == small and other is not small


def test_equality_is_about_content(tiny: gs.Cluster) -> None:
    assert tiny != gs.Cluster.from_json(document([make_node("n0")], []))
    moved = tiny_document()
    moved["tasks"][0]["gpus"] = [4]
    assert tiny != gs.Cluster.from_json(moved)
    assert tiny != "cluster"
    with pytest.raises(TypeError):
        hash(tiny)


def test_warnings_name_tasks_on_failed_gpus() -> None:
    c = gs.Cluster.from_json(
        document([make_node("n0", failed_gpus=[2])], [make_task("t", node="n0", gpus=[2])])
    )
    assert len(c.warnings()) == 1 and "'t'" in c.warnings()[0]


def test_frames(small: gs.Cluster) -> None:
    pytest.importorskip("pandas")
    nodes, tasks = small.to_pandas()
    assert len(nodes) == len(small.nodes) and len(tasks) == len(small.tasks)
    assert nodes["gpu_count"].sum() == sum(n.gpu_count for n in small.nodes)
    assert list(tasks["node"]) == [t.node for t in small.tasks]
    assert list(nodes["network_2"]) == [n.network[2] for n in small.nodes]
    assert list(nodes["idle_gpu_count"]) == [len(n.idle_gpus) for n in small.nodes]


def test_an_empty_cluster_is_legal() -> None:
    c = gs.Cluster.from_json(document([], []))
    assert (len(c.nodes), len(c.tasks), c.nodes.gpu_count.shape) == (0, 0, (0,))
    assert gs.consolidate(c).moves == ()


def test_hardware_presets_are_valid_hardware_of_nodes() -> None:
    preset = gs.model.hardware_preset("a100x8")
    assert preset is not None and len(preset["numa_nodes"]) == 2
    assert preset["numa_nodes"][1] == {"socket": 1, "cores": 64, "gpus": [4, 5, 6, 7]}
    with refuses("hardware preset: 'abacus'; expected one of rtx4090x8, a100x8, h100x8"):
        gs.model.hardware_preset("abacus")
    node = gs.Cluster.from_json(document([make_node("n", hardware=preset)], [])).nodes["n"]
    assert node.hardware == preset


def test_views_pickle_with_their_cluster(tiny: gs.Cluster) -> None:
    node, task = tiny.nodes["n1"], tiny.tasks["small"]
    parts = (node, task, tiny, tiny.nodes, tiny.tasks)
    for again in (pickle.loads(pickle.dumps(parts)), copy.deepcopy(parts)):
        node_again, task_again, cluster, nodes, tasks = again
        assert (node_again.name, task_again.name) == ("n1", "small") and task_again.gpus == [3]
        assert cluster == tiny and node_again in cluster.nodes and node_again not in tiny.nodes
        assert nodes["n1"] == node_again and tasks["small"] == task_again
    # The cluster is in the pickle once.
    assert len(pickle.dumps(tiny.nodes[:])) < len(pickle.dumps(tiny)) + 500


def bad_document(**fields: object) -> dict[str, object]:
    return {**document([make_node("n0")], [make_task("t")]), **fields}


def test_invalid_json_is_reported_with_its_place() -> None:
    nodes = [make_node("n0", gpu_count=np.int64(8), labels={"a/b": {1, 2}})]
    bad = document(nodes, [make_task("t", gpu_count=2)])
    bad["tasks"][0]["gpu_models"] = np.datetime64("2026-01-01T00:00:00", "s")
    bad["now"] = float("nan")
    bad["x-mine"] = {(1, 2): b"raw"}
    with pytest.raises(gs.InvalidInput) as raised:
        gs.Cluster.from_json(bad)
    found = sorted(raised.value.problems)
    assert len(found) == 5
    assert mentions(found[0], "<dict>: /nodes/0/labels/a~1b: {1, 2} of type set; expected a list")
    assert mentions(found[1], "<dict>: /now: nan; expected a finite number")
    assert found[2].startswith("<dict>: /tasks/0/gpu_models: datetime.datetime(")
    assert mentions(found[2], "of type datetime.datetime; expected None, a bool")
    assert mentions(found[3], "<dict>: /x-mine/(1, 2): b'raw' of type bytes; expected None, a bool")
    assert mentions(found[4], "<dict>: /x-mine: key (1, 2); expected a string")


@pytest.mark.parametrize("depth", [70, 100_000])
def test_nesting_too_deep_is_reported_with_its_place(depth: int) -> None:
    nested: list[object] = []
    for _ in range(depth):
        nested = [nested]
    try:
        with pytest.raises(gs.InvalidInput, match=r"^<dict>: /x-deep(/0)+: nested deeper than 64 levels$"):
            gs.Cluster.from_json(bad_document(**{"x-deep": nested}))
    finally:
        while nested:  # so that freeing it needs no deep recursion
            nested = nested.pop()  # type: ignore[assignment]


def test_a_document_that_holds_itself_is_reported() -> None:
    circle: list[object] = []
    circle.append(circle)
    with refuses("nested deeper than 64 levels"):
        gs.Cluster.from_json(bad_document(**{"x-circle": circle}))


def test_mistakes_of_form_and_of_content_come_together(tmp_path: Path) -> None:
    nodes = [make_node("n0", cpu_milli="many"), make_node("n1"), make_node("n1")]
    bad = document(nodes, [make_task("t", move_cost=-1)])
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(bad))
    for source, name in ((bad, "<dict>"), (path, str(path))):
        assert mention(
            problems_in(gs.Cluster.from_json, source),
            [
                f'{name}: /nodes/0/cpu_milli: integer, found "many"',
                f"{name}: /tasks/0/move_cost: from 0 to 1000000000000, found -1",
                "node 'n1': duplicate node name",
            ],
        )
