# SPDX-License-Identifier: Apache-2.0
"""A configuration of the controller and the signals of a window."""

from __future__ import annotations

from typing import Any


def config(**more: Any) -> dict[str, Any]:
    return {
        "format": "gpusched.control",
        "version": 1,
        "host": {
            "roots": [{}, {"bridge": 1}],
            "gpus": [{"root": 0}, {"root": 1}],
            "tenants": [
                {"name": "T1", "protected": True, "start": {"profile": "2g", "slice": 0}},
                {"name": "T2", "gpu": 0, "numa": 0},
            ],
        },
        **more,
    }


def window(p99: float, pcie: float = 0.0) -> dict[str, Any]:
    return {
        "tenants": {
            "T1": {"p99_ms": p99, "count": 100, "offered_per_s": 50, "completed_per_s": 50},
            "T2": {"pcie_bytes_per_s": pcie, "pcie_attribution": "measured", "io_bytes_per_s": pcie / 4},
        },
        "roots": [{"bytes_per_s": pcie + 1e9}, {"bytes_per_s": 1e9}],
        "numa_io_bytes_per_s": [0],
    }


