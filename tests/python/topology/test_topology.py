# SPDX-License-Identifier: Apache-2.0
"""The network tree, machines, and the readers of both."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node
from messages import refuses


@pytest.fixture
def tree() -> gs.topology.NetworkTree:
    """Two switches below one domain, the second with one node; a node without switch, one of unknown
    position.
    """
    paths = [["c", "s0"], ["c", "s0"], ["c", "s1"], ["c"], []]
    nodes = [make_node(f"n{i}", network=path) for i, path in enumerate(paths)]
    return gs.topology.NetworkTree(gs.Cluster.from_json(document(nodes, [])))


def test_up_and_down(tree: gs.topology.NetworkTree) -> None:
    assert (tree.levels, tree.node_count, tree.vertex_count) == (2, 5, 9)
    root = tree.root
    assert (root.name, root.level, root.depth, root.parent) == ("", None, 0, None)
    (top,) = tree.domains(0)
    assert (top.name, top.level, top.parent) == ("c", 0, root)
    assert [v.name for v in top.children] == ["s0", "s1", "n3"]
    assert [v.name for v in root.children] == ["c", "n4"]
    s0, s1 = tree.domains(1)
    assert s0.nodes == ["n0", "n1"] and s1.nodes == ["n2"] and s0.depth == 2
    n0 = tree.vertex("n0")
    assert (n0.level, n0.parent, n0.children, n0.nodes) == ("node", s0, [], ["n0"])
    assert tree.domains("node") == [tree.vertex(f"n{i}") for i in range(5)]
    assert tree.locality_order() == ["n0", "n1", "n2", "n3", "n4"] == root.nodes
    assert len({s0, s1, tree.domains(1)[0]}) == 2


def test_pairs(tree: gs.topology.NetworkTree) -> None:
    v = [tree.vertex(f"n{i}") for i in range(5)]
    assert tree.common_ancestor(v[0], v[1]).name == "s0"
    assert tree.common_ancestor(v[0], v[2]).name == "c"
    assert tree.common_ancestor(v[0], v[4]) == tree.root
    assert [tree.distance(v[0], other) for other in v] == [0, 2, 4, 3, None]
    assert tree.ancestor("n2", 1).name == "s1" and tree.ancestor("n2", "node") == v[2]
    assert tree.ancestor("n3", 1) == v[3]


def test_bad_questions(tree: gs.topology.NetworkTree) -> None:
    with pytest.raises(gs.InvalidInput, match="level"):
        tree.domains(2)
    with pytest.raises(gs.InvalidInput, match="nowhere"):
        tree.vertex("nowhere")
    with pytest.raises(gs.InvalidInput, match="different trees"):
        tree.distance(tree.root, pickle.loads(pickle.dumps(tree)).root)


def test_drawings_and_copies(tree: gs.topology.NetworkTree) -> None:
    dot = gs.topology.to_dot(tree)
    assert dot.startswith(("graph", "digraph"))
    assert "n0" in dot and "s1" in dot
    assert "n0" not in gs.topology.to_dot(tree, nodes=False)
    for other in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert gs.topology.to_dot(other) == dot
    vertex = pickle.loads(pickle.dumps(tree.vertex("n2")))
    assert vertex.parent.name == "s1"


def test_vertices_keep_their_tree(tree: gs.topology.NetworkTree) -> None:
    vertex = gs.topology.NetworkTree(gs.sim.generate_cluster(nodes=50)).root
    assert len(vertex.nodes) == 50


MATRIX = (
    "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tPIX\tSYS\tNV2\t0-3\t0\n"
    "GPU1\tPIX\t X \tSYS\tSYS\t0-3\t0\n"
    "GPU2\tSYS\tSYS\t X \tPHB\t4-7\t1\n"
    "GPU3\tNV2\tSYS\tPHB\t X \t4-7\t1\n"
)


def test_a_preset_answers_questions() -> None:
    graph = gs.topology.HardwareGraph.preset("h100x8")
    assert graph is not None and len(graph.gpus) == 8
    assert graph.healthy_gpus == graph.free_gpus == list(range(8))
    assert graph.numa_nodes == graph.sockets == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert graph.pcie_roots[0] == [0, 1]
    assert (graph.distance(0, 7), graph.bandwidth(0, 7)) == (1, 450)
    assert graph.bottleneck_bandwidth([0, 3, 7]) == 450
    assert math.isinf(graph.bandwidth(2, 2)) and math.isinf(graph.bottleneck_bandwidth([]))
    assert (graph.numa_node_of([4, 7]), graph.socket_of([3, 4]), graph.pcie_root_of([6, 7])) == (1, None, 3)
    assert (graph.locality([0, 1]), graph.locality([0, 4])) == ("numa", "cross")
    assert graph.hardware() == gs.model.hardware_preset("h100x8")
    assert graph.best_gpus(2) == [0, 1] and graph.best_gpus(2, [3, 5, 6]) == [5, 6]
    assert graph.best_gpus(0) == [] and graph.best_gpus(3, [0, 1]) is None


def test_a_machine_changes_and_is_copied() -> None:
    graph = gs.topology.HardwareGraph.preset("a100x8")
    assert graph is not None
    fresh = copy.copy(graph)
    graph.allocate([0, 1], "a")
    graph.set_failed(7)
    assert graph.free_gpus == [2, 3, 4, 5, 6] and graph.best_gpus(4) == [2, 3, 4, 5]
    for other in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert other == graph and other.free_gpus == graph.free_gpus
    assert graph != fresh
    assert graph.reconcile(fresh) == [("gpu_recovered", 7)]
    assert graph.release("a") == [0, 1] and graph == fresh
    with pytest.raises(gs.InvalidInput, match="free, healthy GPUs"):
        graph.allocate([9], "b")
    dot = gs.topology.hardware_to_dot(graph)
    assert dot.startswith("graph hardware") and "core 3" not in dot
    assert "core 3" in gs.topology.hardware_to_dot(graph, cores=True)


def test_a_machine_of_ones_own() -> None:
    vertices = [{"kind": "gpu", "id": 0}, {"kind": "gpu", "id": 1, "status": "failed"}]
    graph = gs.topology.HardwareGraph(vertices, [(0, 1, "nvlink", 25.0)])
    assert graph.healthy_gpus == [0] and graph.bandwidth(0, 1) == 25
    with refuses("vertices: /0/colour: unknown field; expected one of kind, id"):
        gs.topology.HardwareGraph([{"kind": "gpu", "id": 0, "colour": "red"}], [])
    for edge, told in (((0, 1), r"edges\[0\]"), ((0, 5, "nvlink"), "not among the vertices")):
        with pytest.raises(gs.InvalidInput, match=told):
            gs.topology.HardwareGraph(vertices, [edge])  # type: ignore[list-item]


def test_a_machine_of_numa_nodes() -> None:
    hardware = {"numa_nodes": [{"socket": s, "cores": 8, "gpus": [2 * s, 2 * s + 1]} for s in range(2)]}
    graph = gs.topology.HardwareGraph.from_hardware(hardware, pcie_gb_s=16, interconnect_gb_s=10)
    assert graph.hardware() == hardware and graph.gpus == [0, 1, 2, 3]
    assert (graph.bandwidth(0, 1), graph.bandwidth(0, 2)) == (16, 10)
    assert gs.topology.HardwareGraph.from_hardware(hardware, nvlink_gb_s=300).bandwidth(0, 2) == 300
    graph.set_failed(3)
    assert graph.gpus == [0, 1, 2, 3] and graph.healthy_gpus == [0, 1, 2]
    assert gs.topology.HardwareGraph.from_hardware("a100x8").hardware() == gs.model.hardware_preset("a100x8")
    for bad in ("abacus", {"numa_nodes": 7}, None):
        with pytest.raises(gs.InvalidInput, match="hardware"):
            gs.topology.HardwareGraph.from_hardware(bad)  # type: ignore[arg-type]


def test_reading_a_machine(tmp_path: Path) -> None:
    file = tmp_path / "topo.txt"
    file.write_text(MATRIX)
    reading = gs.io.read_nvidia_smi_topo(file, numa_nodes_per_socket=2)
    assert reading.graph.hardware() == {
        "numa_nodes": [{"socket": 0, "cores": 4, "gpus": [0, 1]}, {"socket": 0, "cores": 4, "gpus": [2, 3]}]
    }
    assert reading.graph.bandwidth(0, 3) == 50 and len(reading.notes) == 2
    assert gs.io.read_hardware(file, nvlink_gb_s_per_link=100).graph.bandwidth(0, 3) == 200
    again = pickle.loads(pickle.dumps(reading))
    assert again.graph == reading.graph == copy.deepcopy(reading).graph and again.notes == reading.notes
    with refuses("core_group_size 0"):
        gs.io.read_hardware(file, core_group_size=0)
    with pytest.raises(gs.BackendError, match="nowhere"):
        gs.io.read_hwloc(tmp_path / "nowhere")
    file.write_text("not a machine")
    with pytest.raises(gs.InvalidInput, match="expected a machine"):
        gs.io.read_hardware(file)
    flextopo = tmp_path / "f.json"
    flextopo.write_text('{"kind": "FlexTopo", "spec": {"nodes": [{"id": "gpu-0", "type": "GPU"}]}}')
    assert gs.io.read_flextopo(flextopo).graph.healthy_gpus == [0]
    xml = tmp_path / "t.xml"
    xml.write_text('<system><cpu numaid="0"><pci busid="a"><gpu dev="2"/></pci></cpu></system>')
    if gs.io.reads_xml():
        assert gs.io.read_nccl_topology(xml).graph.healthy_gpus == [2]
    else:
        with pytest.raises(gs.BackendError, match="libpugixml-dev"):
            gs.io.read_nccl_topology(xml)


def test_reading_a_network(tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n2\n")
    reading = gs.io.read_slurm_topology(conf)
    assert reading.nodes == [("n0", ["top", "a"]), ("n1", ["top", "a"]), ("n2", ["top", "b"])]
    tree = gs.io.network_tree(reading)
    assert tree.levels == 2 and tree.distance(tree.vertex("n0"), tree.vertex("n2")) == 4
    assert pickle.loads(pickle.dumps(reading)).nodes == reading.nodes
    cluster = gs.Cluster.from_json(document([make_node("n2"), make_node("n9", network=["x"])], []))
    placed = gs.io.set_network(cluster, reading)
    assert [list(node.network) for node in placed.nodes] == [["top", "b"], ["x"]]
    with refuses(":1: switch 'c' has no line"):
        conf.write_text("SwitchName=top Switches=c\n")
        gs.io.read_slurm_topology(conf)

    objects = tmp_path / "objects.json"
    objects.write_text(
        '{"kind": "List", "items": [{"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", '
        '"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}, '
        '{"kind": "Node", "metadata": {"name": "n0", "labels": {"rack": "r0"}}}]}'
    )
    reading = gs.io.read_kubernetes_topology(objects, objects, topology="t")
    assert reading.nodes == [("n0", ["r0"])] and reading.levels == ["rack"]
    with pytest.raises(gs.InvalidInput, match="name 'u'"):
        gs.io.read_kubernetes_topology(objects, objects, topology="u")


def test_racks() -> None:
    preset = gs.topology.rack_preset("gb200-nvl72")
    assert preset is not None and (preset.nodes_per_rack, preset.gpus_per_node) == (18, 4)
    assert copy.copy(preset) == preset
    with refuses("rack preset: 'abacus'; expected one of gb200-nvl72"):
        gs.topology.rack_preset("abacus")
    nodes = [make_node(f"n{i}", gpu_count=4, network=["s"]) for i in range(36)]
    cluster = gs.Cluster.from_json(document(nodes, []))
    racks = gs.topology.add_racks(cluster, preset, [f"n{i}" for i in range(36)], prefix="x-")
    tree = gs.topology.NetworkTree(racks)
    assert [len(rack.nodes) for rack in tree.domains(1)] == [18, 18] and tree.domains(1)[0].name == "x-r0"
    assert gs.topology.NetworkTree(cluster).levels == 1
    with pytest.raises(gs.InvalidInput, match="multiple of 18"):
        gs.topology.add_racks(cluster, preset, ["n0"])


def test_node_resource_topology(tmp_path: Path) -> None:
    def zone(number: int, gpus: int) -> dict[str, object]:
        resources = [
            {"name": "cpu", "capacity": "4", "allocatable": "3500m", "available": "1"},
            {"name": "nvidia.com/gpu", "capacity": str(gpus), "available": "0"},
        ]
        costs = [{"name": f"node-{1 - number}", "value": 20}]
        return {"name": f"node-{number}", "type": "Node", "resources": resources, "costs": costs}

    path = tmp_path / "nrt.json"
    head = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
    path.write_text(json.dumps(head | {"metadata": {"name": "w0"}, "zones": [zone(1, 2), zone(0, 1)]}))
    (node,) = gs.io.read_node_resource_topology(path)
    assert node.node == "w0" and [n.id for n in node.numa_nodes] == [0, 1]
    first = node.numa_nodes[0]
    assert (first.zone, first.socket, first.costs) == ("node-0", None, {"node-1": 20})
    cpu = first.resources["cpu"]
    assert (cpu.capacity_milli, cpu.allocatable_milli, cpu.available_milli) == (4000, 3500, 1000)
    assert pickle.loads(pickle.dumps(node)) == copy.deepcopy(node) == node
    machine = gs.io.machine_of(node, threads_per_core=2)
    assert machine.graph.numa_nodes == [[0], [1, 2]] and any("counted, not named" in n for n in machine.notes)
    with refuses("core_group_size 0"):
        gs.io.machine_of(node, core_group_size=0)
    path.write_text('{"kind": "Pod"}')
    with refuses("expected objects of kind NodeResourceTopology"):
        gs.io.read_node_resource_topology(path)
    with pytest.raises(gs.BackendError):
        gs.io.read_node_resource_topology(tmp_path / "none.json")
