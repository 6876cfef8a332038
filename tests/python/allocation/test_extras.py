# SPDX-License-Identifier: Apache-2.0
"""Named resources, devices beside whole GPUs and node affinity, as Python sees them."""

import copy
import pickle

import gpusched as gs
import numpy as np
import pytest
from messages import refuses


def document(**more):
    node = {"gpu_count": 2, "cpu_milli": 8000, "memory_mib": 1000}
    task = {"cpu_milli": 1000, "memory_mib": 1, "resources": {"pods": 1}}
    device = {"device_count": 1, "device_classes": ["mig-3g", "mig-1g"]}
    in_a = {"match_expressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    return {
        "format": "gpusched.cluster",
        "version": 2,
        "nodes": [
            {
                **node,
                "name": "n0",
                "labels": {"zone": "a"},
                "resources": {"pods": 3},
                "devices": [{"device_class": "mig-1g", "count": 3, "parents": [2, 2, 3]}],
                "failed_gpus": [1, 4],
            },
            {**node, "name": "n1", "resources": {"pods": 1, "rdma/hca": 2}},
        ],
        "tasks": [
            {**task, "name": "t0", "gpu_count": 0, "node": "n0", **device},
            {**task, "name": "t1", "gpu_count": 1, "node_affinity": [in_a]},
        ],
        **more,
    }


def test_nodes_and_tasks_show_them():
    c = gs.Cluster.from_json(document())
    n0, n1 = c.nodes
    assert n0.resources == {"pods": 3} and n0.resources_free == {"pods": 2}
    assert n1.resources == {"pods": 1, "rdma/hca": 2}
    assert n0.devices == [{"device_class": "mig-1g", "count": 3, "parents": [2, 2, 3], "memory_mib": 0}]
    assert n1.devices == [] and n1.free_devices == []
    assert (n0.failed_gpus, n0.failed_gpu_count, n0.idle_gpus, n0.free_devices) == ([1, 4], 1, [0], [3])
    t0, t1 = c.tasks
    assert t0.gpus == [2]  # assigned: the document does not say which
    assert (t0.device_count, t0.device_classes, t0.resources) == (1, ["mig-3g", "mig-1g"], {"pods": 1})
    assert t1.node_affinity == [
        {"match_expressions": [{"key": "zone", "operator": "In", "values": ["a"]}], "match_fields": []}
    ]
    assert (t1.device_count, t1.device_classes, t0.node_affinity) == (0, [], [])


def test_columns():
    nodes, tasks = (c := gs.Cluster.from_json(document())).nodes, c.tasks
    assert nodes.resource_names == ["pods", "rdma/hca"]
    assert nodes.resource("pods").tolist() == [3, 1] and nodes.resource_free("pods").tolist() == [2, 1]
    assert nodes.resource("rdma/hca").dtype == np.int64
    assert (nodes.device_count.tolist(), nodes.free_device_count.tolist()) == ([3, 0], [1, 0])
    assert tasks.device_count.tolist() == [1, 0] and tasks.gpu_mask.tolist() == [4, 0]
    with refuses("unknown resource 'pod'"):
        nodes.resource("pod")
    pytest.importorskip("pandas")
    frames = c.to_pandas()
    assert frames[0]["free pods"].tolist() == [2, 1] and frames[0]["free_device_count"].tolist() == [1, 0]
    assert frames[1]["device_count"].tolist() == [1, 0]


def test_a_document_survives_and_has_its_version():
    c = gs.Cluster.from_json(document())
    written = c.to_json()
    assert written["version"] == 2 and written["tasks"][0]["gpus"] == [2]
    assert gs.Cluster.from_json(written).to_json() == written
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert other.to_json() == written
    with refuses("/nodes/0/resources: version 2"):
        gs.Cluster.from_json({**document(), "version": 1})
    plain = {**document(), "version": 1, "tasks": []}
    for node in plain["nodes"]:
        for key in ("resources", "devices", "failed_gpus"):
            node.pop(key, None)
    assert gs.Cluster.from_json(plain).to_json()["version"] == 1


def test_placing_honours_them():
    c = gs.Cluster.from_json(document())
    node, gpus = gs.place(c, "t1")
    assert (node, gpus) == ("n0", [0])
    closed = document()
    closed["nodes"][0]["labels"] = {}
    assert gs.place(gs.Cluster.from_json(closed), "t1") is None
    pod = {"cpu_milli": 1, "memory_mib": 1, "gpu_count": 0, "device_count": 1, "device_classes": ["mig-1g"]}
    found = gs.allocate(c, {"name": "job", "pods": [{"count": 1, **pod}]})
    assert found.placed and found.pods == [("job-0", "n0", [3])]
    two = gs.allocate(c, {"name": "job", "pods": [{"count": 2, **pod}]})
    assert not two.placed and two.obstacle == "device"
