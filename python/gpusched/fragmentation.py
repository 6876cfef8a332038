# SPDX-License-Identifier: Apache-2.0
"""Measures of fragmentation: idle GPUs that requests cannot use, and the reasons."""

from ._core.fragmentation import *
from ._views.tables import Report, Row, Table

__all__ = [
    "AllocationRatio",
    "Occupancy",
    "Report",
    "Row",
    "Table",
    "Workload",
    "WorkloadShape",
    "allocation_ratio",
    "entropy",
    "fgd",
    "fgd_breakdown",
    "fragment_rate",
    "job_entropies",
    "job_entropy",
    "largest_job",
    "occupancy",
    "own_shapes",
    "report",
    "server_ratios",
    "switch_slots",
    "typical_workload",
    "unusable_nodes",
]
