# SPDX-License-Identifier: Apache-2.0
"""Tables of the ASI release's schema, written row by row, and read row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Rows = list[dict[str, Any]]

TYPES = {
    "pod_hourly": {
        **dict.fromkeys(
            ("pod_id", "workload_id", "server_id", "cluster_id", "state_public", "gpu_spec_public"), "string"
        ),
        **dict.fromkeys(("server_gpu_count", "server_cpu_capacity_cores"), "float64"),
        **dict.fromkeys(("priority_class", "job_type_public", "model_type_public"), "string"),
        "is_genai_request": "bool",
        **dict.fromkeys(("gpu_request", "gpu_mem_request", "cpu_request_cores", "used_gpu_hours"), "float64"),
        **dict.fromkeys(
            ("avg_gpu_sm_util", "avg_gpu_mem_gib", "avg_cpu_request_util", "avg_memory_util"), "float64"
        ),
        "ready_status": "bool",
        **dict.fromkeys(("schedule_delay_sec", "ready_delay_sec"), "int64"),
    },
    "server_hourly": {
        **dict.fromkeys(("server_id", "cluster_id", "asw_id", "gpu_spec_public"), "string"),
        **dict.fromkeys(("gpu_count", "cpu_capacity_cores"), "float64"),
    },
    "network_hourly": {"server_id": "string", "rx_gibps_avg": "float64", "tx_gibps_avg": "float64"},
    "job_execution_summary": {
        **dict.fromkeys(("job_type_public", "model_type_public"), "string"),
        **dict.fromkeys(("gpu_request", "duration_hours"), "float64"),
    },
}


def write(
    folder: Path,
    table: str,
    day: int | None,
    hour: int | None,
    rows: Sequence[Mapping[str, Any]],
    types: Mapping[str, str] | None = None,
    name: str = "part-000",
) -> Path:
    """A partition with these rows, or the table itself where no hour is given; columns that a row does not
    name are null.

    `types` replaces types of columns; "" leaves one out.
    """
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {**TYPES[table], **(types or {})}
    columns = {
        column: pa.array([row.get(column) for row in rows], pa.string()).dictionary_encode()
        if kind == "dictionary"
        else pa.array([row.get(column) for row in rows], getattr(pa, "bool_" if kind == "bool" else kind)())
        for column, kind in kinds.items()
        if kind
    }
    partition = f"day={day}/hour={hour:02d}" if hour is not None else ""
    path = folder / f"asi_opensource_{table}" / partition / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def read(folder: Path, table: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Every row with its day and hour; without these where the table has no partitions."""
    parquet = pytest.importorskip("pyarrow.parquet")
    for path in sorted((folder / f"asi_opensource_{table}").rglob("*.parquet")):
        at = dict(part.split("=") for part in path.parts if "=" in part)
        for row in parquet.ParquetFile(path).read().to_pylist():
            yield int(at.get("day", -1)), int(at.get("hour", -1)), row


def pod(name: str, server: str | None, gpus: float | None, **more: Any) -> dict[str, Any]:
    """An HP pod that held its GPUs for the whole hour."""
    return {
        "pod_id": name,
        "server_id": server,
        "state_public": "Running",
        "priority_class": "HP",
        "gpu_request": gpus,
        "used_gpu_hours": gpus,
        "cpu_request_cores": 0.0,
        **more,
    }


def server(name: str, gpus: float, cores: float | None, **more: Any) -> dict[str, Any]:
    place = {"server_id": name, "cluster_id": "c", "asw_id": "s"}
    return {**place, "gpu_spec_public": "H20", "gpu_count": gpus, "cpu_capacity_cores": cores, **more}
