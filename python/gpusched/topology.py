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

__all__ = [
    "HardwareGraph",
    "NetworkTree",
    "RackPreset",
    "Vertex",
    "add_racks",
    "hardware_to_dot",
    "rack_preset",
    "to_dot",
]
