from collections.abc import Mapping
from os import PathLike
from typing import Any

from .model import Cluster, Plan
from .sim import Trace

__all__ = ["anonymize", "plan_to_csv", "plan_to_kubernetes_steps", "plan_to_pod_migration_jobs", "read_openb"]

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
