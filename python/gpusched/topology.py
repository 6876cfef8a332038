"""The network above the nodes as a tree, machines as graphs, and racks that are one NVLink domain."""

from ._core.topology import (
    HardwareGraph,
    NetworkTree,
    RackPreset,
    Vertex,
    add_racks,
    hardware_to_dot,
    rack_preset,
    to_dot,
)
from ._flextopo_agent import FlexTopoAgent

__all__ = [
    "FlexTopoAgent",
    "HardwareGraph",
    "NetworkTree",
    "RackPreset",
    "Vertex",
    "add_racks",
    "hardware_to_dot",
    "rack_preset",
    "to_dot",
]
