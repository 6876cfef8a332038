# SPDX-License-Identifier: Apache-2.0
"""Generated clusters, replays of traces, simulation of HP and spot jobs, and a simulated host."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ._checks import MAX_SEED, as_dict, as_list, integer, one_of, require_keywords
from ._core.sim import *
from ._core.sim import record_host, simulate_host
from ._views.tables import Kind, Table
from .errors import InvalidInput

if TYPE_CHECKING:
    from ._asi.generate import generate_asi_tables

__all__ = [
    "HOST_COLUMNS",
    "HarvestResult",
    "HostResult",
    "ReplayResult",
    "SpotReplayResult",
    "SpotTimeline",
    "SpotTrace",
    "Spread",
    "Timeline",
    "Trace",
    "compare_hosts",
    "generate_asi_tables",
    "generate_cluster",
    "generate_spot_trace",
    "is_stable",
    "kingman_wait",
    "read_llm_trace",
    "read_spot_trace",
    "record_host",
    "replay",
    "replay_spot",
    "resample",
    "simulate_harvest",
    "simulate_host",
]


HOST_COLUMNS = {
    "variant": (
        "levers that the controller may use: static (none), guards, placement, mig, full (all levers), ours, "
        "paper (all, in the order of the paper's text), paper_largest (the same, largest profile first), "
        "no_guards, no_placement, no_mig (all but one)"
    ),
    "target_ms": (
        "latency limit of a protected tenant's requests; a slower request is missed; several are separated "
        "by /"
    ),
    "miss_pct": "requests that were missed or lost in a pause, in % of completed and lost requests",
    "p95_ms": "95th percentile of the latency of completed requests, ms",
    "p99_ms": "99th percentile, ms",
    "p999_ms": "99.9th percentile, ms",
    "above_pct": (
        "time with a p99 of the last three windows above the target, or with lost requests, % of the run"
    ),
    "served_pct": (
        "completed requests of the protected tenants, in % of the static variant with the same seed"
    ),
    "work_pct": (
        "work of a tenant (requests, PCIe bytes, kernels) in % of its work under static; mean over tenants"
    ),
    "changes_per_h": "changes of instance or placement, including rollbacks, per hour",
    "guards_per_h": "limits of block I/O and changes of an MPS quota, per hour",
}
"""Columns of `compare_hosts`.

Each number is a mean over the seeds; NAME_low and NAME_high are the extremes.
"""

# fmt: off
HostVariant = Literal[
    "static", "guards", "placement", "mig", "full", "ours",
    "paper", "paper_largest", "no_guards", "no_placement", "no_mig",
]
# fmt: on
"""The variants of `simulate_host`, for type checkers."""


def compare_hosts(
    variants: Iterable[HostVariant] = ("static", "guards", "placement", "mig", "full", "ours"),
    seeds: Iterable[int] = range(7),
    **options: Any,
) -> Table:
    """Runs variants of the controller on the simulated host. Returns a table with one row per variant.

    Columns are described in `HOST_COLUMNS`: means over the seeds. For each number, the columns NAME_low and
    NAME_high hold the lowest and the highest value of the seeds. With the same seed, all variants serve the
    same requests.

    `variants`: names as in `simulate_host`; `seeds`: integers; `options`: as in `simulate_host`.
    """
    names = as_list("compare_hosts", "variants", variants, "names")
    chosen: list[Any] = [
        one_of(f"variants[{at}]", name, get_args(HostVariant)) for at, name in enumerate(names)
    ]
    listed = enumerate(as_list("compare_hosts", "seeds", seeds, "integers"))
    numbers = [integer(f"seeds[{at}]", seed, 0, MAX_SEED) for at, seed in listed]
    if not numbers:
        raise InvalidInput("seeds: none; expected at least one")
    require_keywords("compare_hosts", options, ("duration_s", "scenario", "overrides"))
    if options.get("overrides") is not None:
        options["overrides"] = as_dict("compare_hosts", "overrides", options["overrides"])
    # Misses count against the target of the scenario, even if the controller uses another threshold.
    settings = {k: v for k, v in (options.get("overrides") or {}).items() if k != "threshold_ms"}
    _, config = record_host(0, **{**options, "duration_s": 1.0, "overrides": settings})
    targets = "/".join(f"{tenant['tau_ms']:g}" for tenant in config["host"]["tenants"] if tenant["protected"])
    number_columns = (f"{name}{end}" for name in list(HOST_COLUMNS)[2:] for end in ("", "_low", "_high"))
    columns: dict[str, Kind] = {
        "variant": "text",
        "target_ms": "text",
        **dict.fromkeys(number_columns, "number"),
    }
    rows = []
    for variant in chosen:
        r = simulate_host(variant=variant, seeds=numbers, **options)
        hours = float(options.get("duration_s", 3600.0)) / 3600
        values = (
            100 * r.miss_rate,
            r.p95_ms,
            r.p99_ms,
            r.p999_ms,
            100 * r.violation_s / (3600 * hours * r.services),
            100 * r.throughput,
            100 * r.system_throughput,
            r.structural_actions_per_hour,
            (r.throttles + r.quota_changes) / hours,
        )
        spread = (float(part) for x in values for part in (np.mean(x), np.min(x), np.max(x)))
        rows.append((variant, targets, *spread))
    return Table(columns, rows)


def __getattr__(name: str) -> Any:
    if name == "generate_asi_tables":  # imported at its first use, because few callers need it
        return import_module("._asi.generate", __package__).generate_asi_tables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
