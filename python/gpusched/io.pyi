from collections.abc import Mapping
from os import PathLike
from typing import Any

from .model import Cluster, Plan
from .sim import Trace
from .topology import HardwareGraph, NetworkTree

__all__ = [
    "HardwareReading",
    "NetworkReading",
    "NodeResources",
    "NumaResources",
    "ResourceAmount",
    "anonymize",
    "machine_of",
    "network_tree",
    "plan_to_csv",
    "plan_to_kubernetes_steps",
    "plan_to_pod_migration_jobs",
    "read_flextopo",
    "read_hardware",
    "read_hwloc",
    "read_kubernetes_topology",
    "read_nccl_topology",
    "read_node_resource_topology",
    "read_nvidia_smi_topo",
    "read_openb",
    "read_slurm_topology",
    "read_this_machine",
    "reads_xml",
    "reads_yaml",
    "set_network",
]

_Path = str | PathLike[str]
_Plan = Plan | Mapping[str, Any] | str | PathLike[str]

def read_openb(
    node_csv: str | PathLike[str], pod_csv: str | PathLike[str], *, gpu_nodes_only: bool = True
) -> Trace: ...
def anonymize(cluster: Cluster, *, seed: int = 0) -> Cluster: ...
def plan_to_csv(plan: _Plan) -> str: ...
def plan_to_kubernetes_steps(plan: _Plan, *, default_namespace: str = "default") -> str: ...
def plan_to_pod_migration_jobs(
    plan: _Plan,
    cluster: Cluster,
    *,
    default_namespace: str = "default",
    name_prefix: str = "gpusched",
    scheduler_name: str = "koord-scheduler",
    ttl_s: int = 900,
) -> str: ...

class HardwareReading:
    @property
    def graph(self) -> HardwareGraph: ...
    @property
    def notes(self) -> list[str]: ...
    def __copy__(self) -> HardwareReading: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> HardwareReading: ...

class NetworkReading:
    @property
    def nodes(self) -> list[tuple[str, list[str]]]: ...
    @property
    def levels(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    def __copy__(self) -> NetworkReading: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> NetworkReading: ...

class ResourceAmount:
    @property
    def capacity_milli(self) -> int: ...
    @property
    def allocatable_milli(self) -> int: ...
    @property
    def available_milli(self) -> int: ...
    def __copy__(self) -> ResourceAmount: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ResourceAmount: ...
    def __eq__(self, other: object, /) -> bool: ...

class NumaResources:
    @property
    def zone(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def socket(self) -> int | None: ...
    @property
    def resources(self) -> dict[str, ResourceAmount]: ...
    @property
    def costs(self) -> dict[str, int]: ...
    def __copy__(self) -> NumaResources: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> NumaResources: ...
    def __eq__(self, other: object, /) -> bool: ...

class NodeResources:
    @property
    def node(self) -> str: ...
    @property
    def numa_nodes(self) -> list[NumaResources]: ...
    def __copy__(self) -> NodeResources: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> NodeResources: ...
    def __eq__(self, other: object, /) -> bool: ...

def read_hardware(
    path: _Path,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_nvidia_smi_topo(
    path: _Path,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_nccl_topology(
    path: _Path,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_hwloc(
    path: _Path,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_this_machine(
    *,
    library: str = "libhwloc.so.15",
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_flextopo(
    path: _Path,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_node_resource_topology(path: _Path) -> list[NodeResources]: ...
def machine_of(
    node: NodeResources,
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_slurm_topology(path: _Path, *, topology: str = "") -> NetworkReading: ...
def read_kubernetes_topology(
    topology_path: _Path, nodes_path: _Path, *, topology: str = ""
) -> NetworkReading: ...
def network_tree(reading: NetworkReading) -> NetworkTree: ...
def set_network(cluster: Cluster, reading: NetworkReading) -> Cluster: ...
def reads_xml() -> bool: ...
def reads_yaml() -> bool: ...
