# SPDX-License-Identifier: Apache-2.0
"""Mixed-integer programs: builders that expose their matrices, files and solvers."""

from ._core.milp import *
from ._core.serving import serving_milp as serving_plan
from ._core.serving import solve_serving_plan

__all__ = [
    "ConsolidationModel",
    "ElasticModel",
    "Evaluation",
    "GroupViolation",
    "JointModel",
    "Model",
    "PackingModel",
    "PackingResult",
    "Solution",
    "SpotModel",
    "available_solvers",
    "consolidation",
    "joint_allocation",
    "packing_model",
    "priority_packing",
    "serving_plan",
    "solve_serving_plan",
    "spot_schedule",
]
