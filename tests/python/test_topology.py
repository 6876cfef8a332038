"""The network tree."""

from __future__ import annotations

import copy
import pickle

import gpusched as gs
import pytest
from clusters import document, make_node


@pytest.fixture
def tree() -> gs.topology.NetworkTree:
    """Two switches below one domain, the second with one node; a node without switch, one of unknown position."""
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
    for level in (2, -1, "rack"):
        with pytest.raises(gs.InvalidInput, match="level"):
            tree.domains(level)  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidInput, match="nowhere"):
        tree.vertex("nowhere")
    with pytest.raises(gs.InvalidInput, match="different trees"):
        tree.distance(tree.root, pickle.loads(pickle.dumps(tree)).root)


def test_drawings_and_copies(tree: gs.topology.NetworkTree) -> None:
    dot = gs.topology.to_dot(tree)
    assert dot.startswith("graph") or dot.startswith("digraph")
    assert "n0" in dot and "s1" in dot
    assert "n0" not in gs.topology.to_dot(tree, nodes=False)
    for other in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert gs.topology.to_dot(other) == dot
    vertex = pickle.loads(pickle.dumps(tree.vertex("n2")))
    assert vertex.parent.name == "s1"


def test_vertices_keep_their_tree(tree: gs.topology.NetworkTree) -> None:
    vertex = gs.topology.NetworkTree(gs.sim.generate_cluster(nodes=50)).root
    assert len(vertex.nodes) == 50
