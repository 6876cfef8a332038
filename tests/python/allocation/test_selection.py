# SPDX-License-Identifier: Apache-2.0
"""Groups that tasks avoid, want near or spread, as Python sees them."""

import pickle

import gpusched as gs
from messages import refuses


def document(**more):
    node = {"gpu_count": 0, "cpu_milli": 8000, "memory_mib": 1000}
    task = {"cpu_milli": 1000, "memory_mib": 1, "gpu_count": 0}
    return {
        "format": "gpusched.cluster",
        "version": 2,
        "label_levels": ["zone"],
        "nodes": [
            {**node, "name": "a0", "labels": {"zone": "a"}},
            {**node, "name": "a1", "labels": {"zone": "a"}},
            {**node, "name": "b0", "labels": {"zone": "b"}},
            {**node, "name": "x"},
        ],
        "tasks": [
            {**task, "name": "web", "node": "a0", "groups": ["web", "all"]},
            {**task, "name": "picky", "avoid": [{"group": "web", "level": "zone"}, {"group": "db"}]},
            {**task, "name": "close", "near": [{"group": "web", "level": "zone"}]},
            {**task, "name": "even", "groups": ["web"], "spread": [{"group": "web", "level": "zone"}]},
        ],
        **more,
    }


def fits(cluster, task):
    return [cluster.nodes[int(n)].name for n in gs.allocation.feasible_nodes(cluster, task)]


def test_tasks_show_their_groups():
    cluster = gs.Cluster.from_json(document())
    assert cluster.label_levels == ["zone"]
    assert cluster.tasks["web"].groups == ["all", "web"]  # a set, in order
    assert cluster.tasks["web"].avoid == cluster.tasks["web"].near == cluster.tasks["web"].spread == []
    web = {"group": "web", "level": "zone"}
    assert cluster.tasks["picky"].avoid == [web, {"group": "db", "level": "node"}]
    assert cluster.tasks["close"].near == [web]
    (spread,) = cluster.tasks["even"].spread
    rules = {"max_skew": 1, "min_domains": 1, "honor_node_affinity": True, "honor_taints": False}
    assert spread == web | rules
    again = cluster.to_json()
    assert again["version"] == 2
    assert again["label_levels"] == ["zone"]
    assert again["tasks"][1]["avoid"][0] == {"group": "web", "level": "zone"}
    assert gs.Cluster.from_json(again) == cluster == pickle.loads(pickle.dumps(cluster))


def test_they_decide_which_nodes_fit():
    cluster = gs.Cluster.from_json(document())
    assert fits(cluster, "picky") == ["b0", "x"]
    assert fits(cluster, "close") == ["a0", "a1"]
    assert fits(cluster, "even") == ["b0"]


def test_a_new_task_may_name_the_levels_of_the_cluster():
    cluster = gs.Cluster.from_json(document())
    task = {"name": "new", "cpu_milli": 1, "memory_mib": 1, "gpu_count": 0}
    assert fits(cluster, {**task, "avoid": [{"group": "web", "level": "zone"}]}) == ["b0", "x"]
    with refuses('label_levels or an integer, found "rack"'):
        fits(cluster, {**task, "avoid": [{"group": "web", "level": "rack"}]})
    pods = {k: v for k, v in task.items() if k != "name"}
    job = {"name": "j", "pods": [{**pods, "count": 2, "near": [{"group": "web", "level": "zone"}]}]}
    found = gs.allocation.allocate(cluster, job)
    assert found.placed
    assert {node for _, node, _ in found.pods} <= {"a0", "a1"}
