# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar

from .model import Cluster, Plan
from .sim import Trace
from .topology import HardwareGraph, NetworkTree

class HardwareReading:
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def graph(self) -> HardwareGraph: ...
    @property
    def notes(self) -> list[str]: ...
    def __copy__(self) -> HardwareReading: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> HardwareReading: ...

class NetworkReading:
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
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
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ResourceAmount: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ResourceAmount: ...

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
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> NumaResources: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> NumaResources: ...

class NodeResources:
    @property
    def node(self) -> str: ...
    @property
    def numa_nodes(self) -> list[NumaResources]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> NodeResources: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> NodeResources: ...

def read_openb(
    node_csv: str | PathLike[str], pod_csv: str | PathLike[str], *, gpu_nodes_only: bool = True
) -> Trace: ...
def anonymize(cluster: Cluster, *, seed: int = 0) -> Cluster: ...
def plan_to_csv(plan: Plan | Mapping[str, Any] | str | PathLike[str]) -> str: ...
def plan_to_kubernetes_steps(
    plan: Plan | Mapping[str, Any] | str | PathLike[str], *, default_namespace: str = "default"
) -> str: ...
def plan_to_pod_migration_jobs(
    plan: Plan | Mapping[str, Any] | str | PathLike[str],
    cluster: Cluster,
    *,
    default_namespace: str = "default",
    name_prefix: str = "gpusched",
    scheduler_name: str = "koord-scheduler",
    ttl_s: int = 900,
) -> str: ...
def read_hardware(
    path: str | PathLike[str],
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_nvidia_smi_topo(
    path: str | PathLike[str],
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_nccl_topology(
    path: str | PathLike[str],
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_hwloc(
    path: str | PathLike[str],
    *,
    core_group_size: int = 8,
    threads_per_core: int = 0,
    numa_nodes_per_socket: int = 1,
    pcie_gb_s: float = 31.5,
    interconnect_gb_s: float = 32.0,
    nvlink_gb_s_per_link: float = 25.0,
) -> HardwareReading: ...
def read_flextopo(
    path: str | PathLike[str],
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
def read_node_resource_topology(path: str | PathLike[str]) -> list[NodeResources]: ...
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
def read_slurm_topology(path: str | PathLike[str], *, topology: str = "") -> NetworkReading: ...
def read_kubernetes_topology(
    topology_path: str | PathLike[str], nodes_path: str | PathLike[str], *, topology: str = ""
) -> NetworkReading: ...
def network_tree(reading: NetworkReading) -> NetworkTree: ...
def set_network(cluster: Cluster, reading: NetworkReading) -> Cluster: ...
def reads_xml() -> bool: ...
def reads_yaml() -> bool: ...
