# SPDX-License-Identifier: Apache-2.0
"""Places tasks and jobs on free resources."""

from ._core.allocation import *

__all__ = [
    "Allocation",
    "ByLinks",
    "JointAllocation",
    "allocate",
    "allocate_many",
    "entropy_greedy",
    "feasible_nodes",
    "filter_names",
    "find_obstacles",
    "fit_slowdown",
    "gpu_picker_names",
    "least_entropy",
    "pending_pods",
    "place",
    "placement_names",
    "ranker_names",
    "to_plan",
    "with_job",
    "with_task",
]
