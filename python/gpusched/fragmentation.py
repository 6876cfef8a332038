"""Which idle GPUs cannot be used, by whom, and why."""

from ._core.fragmentation import (
    AllocationRatio,
    Occupancy,
    Workload,
    WorkloadShape,
    allocation_ratio,
    entropy,
    fgd,
    fgd_breakdown,
    fragment_rate,
    job_entropies,
    job_entropy,
    largest_job,
    occupancy,
    own_shapes,
    report,
    switch_slots,
    typical_workload,
    unusable_nodes,
)
from ._report import Report
from ._tables import Row, Table

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
    "switch_slots",
    "typical_workload",
    "unusable_nodes",
]
