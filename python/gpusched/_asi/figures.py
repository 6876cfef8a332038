"""All figures of the release in one pass over its pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol

from .._drawing.axes import require_range
from .._progress import ProgressBar
from .._views.tables import Table
from ..errors import InvalidInput, repr_text
from .batch import Batch
from .capacity import Allocation, Causes, Slots, Standby
from .demand import Classes, Days, JobTypes, ModelTypes, Week
from .fleet import Fleet
from .release import LAST_DAY, Hour, Release
from .requests import CoresPerGpu, Fractions, Jobs
from .schema import EXECUTION, NETWORK, POD, SERVER
from .server_hour import ServerHour, Servers
from .utilisation import Executions, Traffic, Utilisation

Progress = bool | Callable[[str, int, int], object] | None


class Figure(Protocol):
    """A figure sees every batch of an hour's pods, then the hour's sums by server."""

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
    """The tables behind Table 1 and Figures 2 to 14 and 16 of the ASI paper, from the public release of its trace.

    Reads the release (alibaba/clusterdata, cluster-trace-gpu-v2026) as a stream, only the columns that an hour needs, in memory
    that grows with the servers and with the workloads of `days` (Figure 8), not with the pods. Needs pyarrow. docs/asi.md has
    the definition of each figure.

    `folder`: holds `asi_opensource_pod_hourly/day=D/hour=HH/*.parquet`, `asi_opensource_server_hourly/...`, and, for Figures 12 and
    7, which are left out otherwise, `asi_opensource_network_hourly/...` and `asi_opensource_job_execution_summary/*.parquet`.
    `days`: first and last day of most figures; the default is the paper's week. Figure 6 is of all days that there are, as are
    Table 1 and the left of Figure 4, which are of the servers.
    `job_type_days`: those of Figure 2, as far as they are there.
    `partial`: take the hours of `days` that there are; else all 24 of each day are expected.
    `progress`: True, or a function (phase, hours done, all hours).

    Returns tables by name: `table1`, `fig2`, `fig3_left`, `fig3_right`, `fig4_left`, ..., `fig16`.

    Raises InvalidInput for hours and columns that are missing, columns of another type, values out of range; BackendError for files
    that cannot be read.
    """
    check_days("days", days)
    check_days("job_type_days", job_type_days)
    release = Release(folder)
    window = wanted_hours(release, days, partial)
    ended: list[Any] = [Executions(release)] if release.has(EXECUTION) else []
    fleet, of_type, daily = Fleet(), JobTypes(), Days()
    weekly: list[Figure] = [ModelTypes(), Classes(), Week(), Jobs(), Allocation(), Fractions(), CoresPerGpu(), Utilisation()]
    weekly += [Causes(), Slots(), Standby()]
    if release.has(NETWORK):
        weekly.append(Traffic(release))

    hours = sorted({*release.hours(POD), *release.hours(SERVER)})
    bar = ProgressBar() if progress is True else None
    tell = bar or (progress if callable(progress) else None)
    for done, hour in enumerate(hours):
        if tell is not None:
            tell("hours", done, len(hours))
        servers = Servers(release, hour)
        if len(servers):
            fleet.add(hour, servers)
        figures: list[Figure] = [daily]
        if job_type_days[0] <= hour[0] <= job_type_days[1]:
            figures.append(of_type)
        if hour in window:
            figures += weekly
        read_hour(release, hour, figures, ServerHour(hour, servers) if hour in window else None)
    if tell is not None:
        tell("hours", len(hours), len(hours))
    if bar is not None:
        bar.close()
    ended += [fleet, of_type, daily, *weekly]
    tables = {name: table for figure in ended for name, table in figure.tables().items()}
    return {name: tables[name] for name in sorted(tables, key=in_order)}


def read_hour(release: Release, hour: Hour, figures: list[Figure], sums: ServerHour | None) -> None:
    """One pass over the pods of an hour, of the columns that these figures look at."""
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


def wanted_hours(release: Release, days: tuple[int, int], partial: bool) -> set[Hour]:
    there = {*release.hours(POD, days), *release.hours(SERVER, days)}
    if not there:
        known = release.hours(POD)
        span = f"{known[0][0]} to {known[-1][0]}" if known else "none at all"
        raise InvalidInput(f"days: {days[0]} to {days[1]}; expected days of {release.folder}, which has {span}")
    wanted = there if partial else {(day, hour) for day in range(days[0], days[1] + 1) for hour in range(24)}
    release.require(sorted(wanted), (POD, SERVER))
    return wanted


def check_days(name: str, days: Any) -> None:
    if not isinstance(days, (tuple, list)) or len(days) != 2:
        raise InvalidInput(f"{name}: {repr_text(days)}; expected the first and the last day")
    for day in days:
        require_range(name, day, 0, LAST_DAY)
    if days[0] > days[1]:
        raise InvalidInput(f"{name}: {days[0]} to {days[1]}; expected the first day before the last")


def in_order(name: str) -> tuple[bool, int, str]:
    digits = name.removeprefix("fig").removeprefix("table").partition("_")[0]
    return name.startswith("fig"), int(digits), name


read_asi_figures.__module__ = "gpusched.io"
