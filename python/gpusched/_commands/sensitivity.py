# SPDX-License-Identifier: Apache-2.0
"""`gpusched simulate-host --sensitivity`: changes one setting at a time (experiment E3 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import sim
from .._views.tables import format_table

COLUMNS = (
    *("variant", "setting", "value", "miss_pct", "p99_ms", "above_pct"),
    *("throughput", "actions_per_h", "guards", "rollbacks"),
)


def settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Overrides of `simulate_host` that differ from the configuration, as pairs of name and value."""
    tau, now = config["host"]["tenants"][0]["tau_ms"], config["options"]
    study: dict[str, tuple[Any, Sequence[Any]]] = {
        "threshold_ms": (tau, [round(part * tau, 6) for part in (0.8, 0.9, 1.1, 1.2)]),
        "persistence": (now["persistence"], (1, 2, 3, 5, 10)),
        "window_s": (now["window_s"], (1, 2, 5)),
        "dwell": (now["dwell"], (64, 128, 256, 512)),
        "quota_levels": (now["quota_levels"], ([50], [75], [90], [75, 50])),
        "io_levels_mb_s": (now["io_levels_mb_s"], ([500], [250], [100], [500, 250, 100])),
    }
    for name, (known, values) in study.items():
        for value in values:
            if value != known:
                yield name, value


def in_words(value: Any) -> str:
    return " ".join(f"{x:g}" for x in (value if isinstance(value, list) else [value]))


def table(variants: Sequence[Any], seeds: Sequence[int], options: Mapping[str, Any]) -> str:
    """Means over the seeds: the unchanged scenario, then each changed setting."""
    given = dict(options.get("overrides") or {})
    _, config = sim.record_host(0, **{**options, "duration_s": 1.0})
    duration_s = options.get("duration_s", 3600.0)
    rows = []
    for variant in variants:
        for name, value in [("as it is", None), *settings(config)]:
            overrides = given if value is None else {**given, name: value}
            r = sim.simulate_host(variant=variant, seeds=seeds, **{**options, "overrides": overrides})
            numbers = (
                100 * r.miss_rate,
                r.p99_ms,
                100 * r.violation_s / duration_s / r.services,
                r.throughput,
                r.structural_actions_per_hour,
                r.throttles + r.quota_changes,
                r.rollbacks,
            )
            means = (f"{float(np.mean(x)):.3f}" for x in numbers)
            rows.append((variant, name, "" if value is None else in_words(value), *means))
    return format_table(COLUMNS, rows)
