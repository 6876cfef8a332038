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
    report,
    switch_slots,
    typical_workload,
)
from ._tables import Report, Row, Table

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
    "report",
    "switch_slots",
    "typical_workload",
]
