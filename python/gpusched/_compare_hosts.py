"""Variants of the controller of one host, compared on the simulated host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np

from ._core.sim import record_host, simulate_host
from ._values import MOST_SEED, a_dict, a_list, integer, keywords, one_of
from ._views.tables import Kind, Table
from .errors import InvalidInput

HOST_COLUMNS = {
    "variant": (
        "which levers the controller has: static (none), guards, placement, mig, full (all levers), ours, "
        "paper (all, in the order of the paper's text), paper_largest (the same, largest profile first), "
        "no_guards, no_placement, no_mig (all but one)"
    ),
    "target_ms": "a request of a protected tenant that takes longer is missed; of several tenants, with / between",
    "miss_pct": "requests missed, or lost in a pause, of those completed or lost, %",
    "p95_ms": "95th percentile of the latencies of completed requests, ms",
    "p99_ms": "99th percentile of the same, ms",
    "p999_ms": "99.9th percentile of the same, ms",
    "above_pct": "time in which the p99 of the last three windows was above the target, or requests were lost, % of the run",
    "served_pct": "completed requests of the protected tenants, % of those under static and the same seed",
    "work_pct": "work of all tenants (requests, PCIe bytes, kernels), mean of each tenant's % of its work under static",
    "changes_per_h": "changes of instance or place, rollbacks included, per hour",
    "guards_per_h": "limits of block I/O and changes of an MPS quota, per hour",
}
"""What the columns of `compare_hosts` mean; each number is a mean over the seeds, `_low` and `_high` are the extremes."""


HostVariant = Literal[
    "static", "guards", "placement", "mig", "full", "ours", "paper", "paper_largest", "no_guards", "no_placement", "no_mig"
]
"""As `simulate_host` takes them, for type checkers."""


def compare_hosts(
    variants: Iterable[HostVariant] = ("static", "guards", "placement", "mig", "full", "ours"),
    seeds: Iterable[int] = range(7),
    **options: Any,
) -> Table:
    """Runs variants of the controller on the simulated host: a table with one row per variant.

    The columns are those of `HOST_COLUMNS`: means over the seeds, and beside each number `NAME_low` and `NAME_high`, the lowest and
    the highest of the seeds. Variants under the same seed meet the same requests.

    `variants`: names as in `simulate_host`; `seeds`: integers; `options`: those of `simulate_host`.
    """
    listed = a_list("compare_hosts", "variants", variants, "names")
    chosen: list[Any] = [one_of(f"variants[{at}]", name, get_args(HostVariant)) for at, name in enumerate(listed)]
    numbers = [integer(f"seeds[{at}]", seed, 0, MOST_SEED) for at, seed in enumerate(a_list("compare_hosts", "seeds", seeds, "integers"))]
    if not numbers:
        raise InvalidInput("seeds: none; expected at least one")
    keywords("compare_hosts", options, ("duration_s", "scenario", "overrides"))
    if options.get("overrides") is not None:
        options["overrides"] = a_dict("compare_hosts", "overrides", options["overrides"])
    # The controller's threshold may be another one; the target is the scenario's.
    settings = {k: v for k, v in (options.get("overrides") or {}).items() if k != "threshold_ms"}
    _, config = record_host(0, **{**options, "duration_s": 1.0, "overrides": settings})
    services = [tenant for tenant in config["host"]["tenants"] if tenant["protected"]]
    targets = "/".join(f"{tenant['tau_ms']:g}" for tenant in services)
    names = list(HOST_COLUMNS)[2:]
    numbers_of = (f"{name}{end}" for name in names for end in ("", "_low", "_high"))
    columns: dict[str, Kind] = {"variant": "text", "target_ms": "text", **dict.fromkeys(numbers_of, "number")}
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


compare_hosts.__module__ = "gpusched.sim"
