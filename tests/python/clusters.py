# SPDX-License-Identifier: Apache-2.0
"""Cluster documents that can be checked by hand."""

from __future__ import annotations

from typing import Any


def make_node(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "gpu_model": "A100",
        "gpu_count": 8,
        "cpu_milli": 128000,
        "memory_mib": 1000000,
        **fields,
    }


def make_task(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cpu_milli": 8000, "memory_mib": 1000, "gpu_count": 1, **fields}


def document(nodes: list[dict[str, Any]], tasks: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"format": "gpusched.cluster", "version": 1, "nodes": nodes, "tasks": tasks} | fields


def tiny_document() -> dict[str, Any]:
    """Three nodes; the one task of n0 fits next to the locked one of n1; n2 is empty."""
    nodes = [make_node(f"n{i}", network=["cluster-0", f"asw-{i // 2}"]) for i in range(3)]
    tasks = [
        make_task("small", node="n0", gpus=[3], gpu_count=1),
        make_task("fixed", node="n1", gpus=[0, 1, 2, 3], gpu_count=4, cpu_milli=32000, locked=True),
    ]
    return document(nodes, tasks)
