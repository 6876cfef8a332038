# SPDX-License-Identifier: Apache-2.0
"""Computes all figures of the release in one pass over its pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol

from .._checks import integer
from .._progress import ProgressBar
from .._views.tables import Table
from ..errors import InvalidInput, repr_text
from .batch import Batch
from .capacity import Allocation, Causes, Fleet, Slots, Standby
from .demand import Classes, Days, JobTypes, ModelTypes, Week
from .release import LAST_DAY, Hour, Release
from .requests import CoresPerGpu, Fractions, Jobs
from .schema import EXECUTION, NETWORK, POD, SERVER
from .server_hour import ServerHour, Servers
from .utilisation import Executions, Traffic, Utilisation

Progress = bool | Callable[[str, int, int], object] | None


class Figure(Protocol):
    """A figure receives every batch of an hour's pods, then the sums of the hour by server."""

    @property
    def columns(self) -> Sequence[str]: ...
    def add(self, hour: Hour, batch: Batch) -> None: ...
    def close(self, sums: ServerHour) -> None: ...
    def tables(self) -> dict[str, Table]: ...


def read_asi_figures(
    folder: str | PathLike[str],
    *,
    days: tuple[int, int] = (109, 115),
    job_type_days: tuple[int, int] = (109, 184),
    partial: bool = False,
    progress: Progress = None,
) -> dict[str, Table]:
    """Computes Table 1 and Figures 2 to 14 and 16 of the ASI paper from the public release of its trace.

    Reads the release as a stream; memory grows with servers and workloads, not with pods. Needs pyarrow.
    docs/asi.md defines each figure. Table 1 and Figures 4 left and 6 cover all days in the folder.

    `folder`: contains `asi_opensource_pod_hourly/day=D/hour=HH/*.parquet` and
    `asi_opensource_server_hourly/...`; optionally `asi_opensource_network_hourly/...` (Figure 12) and
    `asi_opensource_job_execution_summary/*.parquet` (Figure 7).
    `days`: first and last day of the other figures; default: the paper's week.
    `job_type_days`: first and last day of Figure 2; days that are not in the folder are skipped.
    `partial`: accept days with missing hours.
    `progress`: True, or a function (phase, hours done, all hours).

    Returns tables by name: `table1`, `fig2`, `fig3_left`, `fig3_right`, `fig4_left`, ..., `fig16`.

    Raises InvalidInput for missing hours or columns, wrong types and values out of range; BackendError for
    unreadable files.
    """
    check_days("days", days)
    check_days("job_type_days", job_type_days)
    release = Release(folder)
    window = requested_hours(release, days, partial)
    ended: list[Any] = [Executions(release)] if release.has(EXECUTION) else []
    fleet, of_type, daily = Fleet(), JobTypes(), Days()
    weekly: list[Figure] = [ModelTypes(), Classes(), Week(), Jobs(), Allocation(), Fractions()]
    weekly += [CoresPerGpu(), Utilisation(), Causes(), Slots(), Standby()]
    if release.has(NETWORK):
        weekly.append(Traffic(release))

    hours = sorted({*release.hours(POD), *release.hours(SERVER)})
    bar = ProgressBar() if progress is True else None
    report = bar or (progress if callable(progress) else None)
    for done, hour in enumerate(hours):
        if report is not None:
            report("hours", done, len(hours))
        servers = Servers(release, hour)
        if len(servers):
            fleet.add(hour, servers)
        figures: list[Figure] = [daily]
        if job_type_days[0] <= hour[0] <= job_type_days[1]:
            figures.append(of_type)
        if hour in window:
            figures += weekly
        read_hour(release, hour, figures, ServerHour(hour, servers) if hour in window else None)
    if report is not None:
        report("hours", len(hours), len(hours))
    if bar is not None:
        bar.close()
    ended += [fleet, of_type, daily, *weekly]
    tables = {name: table for figure in ended for name, table in figure.tables().items()}
    return {name: tables[name] for name in sorted(tables, key=in_order)}


def read_hour(release: Release, hour: Hour, figures: list[Figure], sums: ServerHour | None) -> None:
    """Passes the pods of an hour to the figures, with the columns that they need."""
    columns = dict.fromkeys(name for figure in figures for name in figure.columns)
    if sums is not None:
        columns |= dict.fromkeys(sums.columns)
    for batch in release.batches(POD, list(columns), hour):
        if sums is not None:
            sums.add(batch)
        for figure in figures:
            figure.add(hour, batch)
    if sums is not None:
        for figure in figures:
            figure.close(sums)


def requested_hours(release: Release, days: tuple[int, int], partial: bool) -> set[Hour]:
    present = {*release.hours(POD, days), *release.hours(SERVER, days)}
    if not present:
        known = release.hours(POD)
        span = f"{known[0][0]} to {known[-1][0]}" if known else "no days"
        raise InvalidInput(
            f"days: {days[0]} to {days[1]}; expected days of {release.folder}, which has {span}"
        )
    requested = (
        present if partial else {(day, hour) for day in range(days[0], days[1] + 1) for hour in range(24)}
    )
    release.require(sorted(requested), (POD, SERVER))
    return requested


def check_days(name: str, days: Any) -> None:
    if not isinstance(days, (tuple, list)) or len(days) != 2:
        raise InvalidInput(f"{name}: {repr_text(days)}; expected the first and the last day")
    for day in days:
        integer(name, day, 0, LAST_DAY)
    if days[0] > days[1]:
        raise InvalidInput(f"{name}: {days[0]} to {days[1]}; expected the first day before the last")


def in_order(name: str) -> tuple[bool, int, str]:
    digits = name.removeprefix("fig").removeprefix("table").partition("_")[0]
    return name.startswith("fig"), int(digits), name


read_asi_figures.__module__ = "gpusched.io"
