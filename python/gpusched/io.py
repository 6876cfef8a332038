# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of other systems' formats."""

import importlib
from typing import TYPE_CHECKING, Any

from ._core.io import *

if TYPE_CHECKING:
    from ._asi.figures import read_asi_figures
    from ._asi.snapshot import read_asi_hour
    from ._asi.trace import read_asi_trace

__all__ = [
    "AbsentKind",
    "ClusterReading",
    "HardwareReading",
    "NetworkReading",
    "NodeResources",
    "NumaResources",
    "ReadingReport",
    "ReadingRow",
    "ResourceAmount",
    "anonymize",
    "flextopo_to_json",
    "machine_of",
    "network_tree",
    "plan_to_csv",
    "plan_to_kubernetes_steps",
    "plan_to_pod_migration_jobs",
    "plan_to_slurm_steps",
    "read_asi_figures",
    "read_asi_hour",
    "read_asi_trace",
    "read_flextopo",
    "read_hardware",
    "read_hwloc",
    "read_kai_snapshot",
    "read_kubernetes",
    "read_kubernetes_topology",
    "read_nccl_topology",
    "read_node_resource_topology",
    "read_nvidia_smi_topo",
    "read_openb",
    "read_slurm",
    "read_slurm_topology",
    "read_this_machine",
    "reads_xml",
    "reads_yaml",
    "set_network",
]

_LATER = {
    "read_asi_figures": "._asi.figures",
    "read_asi_hour": "._asi.snapshot",
    "read_asi_trace": "._asi.trace",
}
"""Functions that are imported at their first use, because few callers read the ASI trace."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name], __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
