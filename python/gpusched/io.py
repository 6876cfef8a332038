"""Readers and writers of outside formats."""

from ._core.io import (
    anonymize,
    plan_to_csv,
    plan_to_kubernetes_steps,
    plan_to_pod_migration_jobs,
    read_openb,
)

__all__ = [
    "anonymize",
    "plan_to_csv",
    "plan_to_kubernetes_steps",
    "plan_to_pod_migration_jobs",
    "read_openb",
]
