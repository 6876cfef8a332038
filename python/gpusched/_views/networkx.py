# SPDX-License-Identifier: Apache-2.0
"""Networks and machines as networkx graphs; networkx is imported at the first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._optional import require

if TYPE_CHECKING:
    import networkx as nx

    from ..topology import HardwareGraph, NetworkTree


def network_tree(tree: NetworkTree) -> nx.DiGraph:
    nx = require("networkx", "graph")
    graph = nx.DiGraph()
    waiting = [(tree.root, -1)]
    for number, (vertex, parent) in enumerate(waiting):
        graph.add_node(number, name=vertex.name, level="root" if vertex.level is None else vertex.level)
        if parent >= 0:
            graph.add_edge(parent, number)
        waiting += [(child, number) for child in vertex.children]
    return graph


def hardware_graph(machine: HardwareGraph) -> nx.MultiGraph:
    nx = require("networkx", "graph")
    graph = nx.MultiGraph()
    graph.add_nodes_from(enumerate(machine.vertices))
    graph.add_edges_from((a, b, {"kind": kind, "gb_s": gb_s}) for a, b, kind, gb_s in machine.edges)
    return graph
