"""The network above the nodes, as a tree."""

from ._core.topology import NetworkTree, Vertex, to_dot

__all__ = ["NetworkTree", "Vertex", "to_dot"]
