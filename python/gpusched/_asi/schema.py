# SPDX-License-Identifier: Apache-2.0
"""Schema of the tables of the release: columns, their kinds, and allowed values."""

from __future__ import annotations

TEXT, NUMBER, TRUTH = "text", "a number", "true or false"
"""Kinds of columns. A column without values may also have the type null."""

POD, SERVER, NETWORK, EXECUTION = "pod_hourly", "server_hourly", "network_hourly", "job_execution_summary"

COLUMNS: dict[str, dict[str, str]] = {
    POD: {
        **dict.fromkeys(
            ("pod_id", "workload_id", "server_id", "cluster_id", "state_public", "gpu_spec_public"), TEXT
        ),
        **dict.fromkeys(("server_gpu_count", "server_cpu_capacity_cores"), NUMBER),
        **dict.fromkeys(("priority_class", "job_type_public", "model_type_public"), TEXT),
        "is_genai_request": TRUTH,
        **dict.fromkeys(("gpu_request", "gpu_mem_request", "cpu_request_cores", "used_gpu_hours"), NUMBER),
        **dict.fromkeys(
            ("avg_gpu_sm_util", "avg_gpu_mem_gib", "avg_cpu_request_util", "avg_memory_util"), NUMBER
        ),
        "ready_status": TRUTH,
        **dict.fromkeys(("schedule_delay_sec", "ready_delay_sec"), NUMBER),
    },
    SERVER: {
        **dict.fromkeys(("server_id", "cluster_id", "asw_id", "gpu_spec_public"), TEXT),
        **dict.fromkeys(("gpu_count", "cpu_capacity_cores"), NUMBER),
    },
    NETWORK: {"server_id": TEXT, **dict.fromkeys(("rx_gibps_avg", "tx_gibps_avg"), NUMBER)},
    EXECUTION: {
        **dict.fromkeys(("pod_id", "workload_id", "server_id", "gpu_spec_public", "priority_class"), TEXT),
        **dict.fromkeys(("job_type_public", "model_type_public"), TEXT),
        "is_genai_request": TRUTH,
        **dict.fromkeys(("gpu_request", "duration_hours", "schedule_delay_sec", "ready_delay_sec"), NUMBER),
        **dict.fromkeys(("ready_status", "schedule_status"), TRUTH),
    },
}
"""Kinds of the columns of each table."""

VALUES = {
    "priority_class": ("HP", "LP", "Other"),
    "state_public": ("Standby", "Running", "Pending", "Succeeded", "Failed", "Unknown"),
}
"""Columns in which other values are errors, because no figure would count them."""

SIGNED = frozenset(("schedule_delay_sec", "ready_delay_sec", "duration_hours"))
"""Number columns that may be negative."""

JOB_TYPES = ("training", "online_inference", "offline_inference", "dev")
MODEL_TYPES = ("genai", "rec", "cv", "embedding", "dev")
GPU_MODELS = ("A10", "L20", "H20", "A100", "H800", "XPU-A")
"""GPU models of the figures."""


def display_model(name: str) -> str:
    """The name of a GPU model in the figures: `A100-80G` counts as A100."""
    base = name.partition("-")[0]
    return base if base in GPU_MODELS else name
