# SPDX-License-Identifier: Apache-2.0
"""Finds the tables of the release and reads their rows as a stream of batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from .._optional import require
from ..errors import BackendError, InvalidInput, explained
from .batch import Batch, kind_of
from .schema import COLUMNS, EXECUTION, TEXT

BATCH_ROWS = 1 << 17
"""Rows in memory at a time."""

LAST_DAY = 100_000

Hour = tuple[int, int]
"""A day since the trace began, and an hour of the day."""


class Release:
    """The tables in a folder or in its folder `tables`, with or without the prefix `asi_opensource_`."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        require("pyarrow.parquet", "arrow")
        self.folder = Path(fspath(folder))
        if not self.folder.is_dir():
            raise BackendError(f"{self.folder}: is not a folder")
        self._files = {table: self._find(table) for table in COLUMNS}
        if not any(self._files.values()):
            raise InvalidInput(
                f"{self.folder}: no tables found; expected folders such as asi_opensource_pod_hourly"
            )

    def _find(self, table: str) -> dict[Hour, list[Path]]:
        """Files by hour. The table without partitions has hour (0, 0)."""
        found: dict[Hour, list[Path]] = {}
        names = (f"asi_opensource_{table}", table)
        for root in [parent / name for parent in (self.folder, self.folder / "tables") for name in names]:
            if table == EXECUTION:
                parts = sorted(root.glob("*.parquet"))
                found |= {(0, 0): parts} if parts else {}
            else:
                for path in sorted(root.glob("day=*/hour=*/*.parquet")):
                    found.setdefault(hour_of(path.parent), []).append(path)
            if found:
                break
        return found

    def has(self, table: str) -> bool:
        return bool(self._files[table])

    def hours(self, table: str, days: tuple[int, int] | None = None) -> list[Hour]:
        """The hours with files, in order, within these days."""
        return sorted(hour for hour in self._files[table] if days is None or days[0] <= hour[0] <= days[1])

    def require(self, hours: Sequence[Hour], tables: Sequence[str]) -> None:
        """Raises InvalidInput, with one problem per table, if hours are missing."""
        problems = []
        for table in tables:
            missing = [hour for hour in hours if hour not in self._files[table]]
            if missing:
                day, hour = missing[0]
                first = f"{self.folder}: asi_opensource_{table}/day={day}/hour={hour:02d}: is missing"
                rest = f", and {len(missing) - 1} more of {len(hours)} hours" if len(missing) > 1 else ""
                problems.append(first + rest)
        if problems:
            raise InvalidInput(problems)

    def batches(self, table: str, columns: Sequence[str], hour: Hour = (0, 0)) -> Iterator[Batch]:
        """Reads these columns of a partition.

        Raises InvalidInput for files that are not Parquet, for missing columns and for columns of another
        kind.
        """
        for path in self._files[table].get(hour, []):
            yield from read_batches(path, {name: COLUMNS[table][name] for name in columns})


def hour_of(partition: Path) -> Hour:
    """The day and hour from the path of a partition."""
    at = re.fullmatch(r"day=(\d{1,6})/hour=(\d{1,2})", f"{partition.parent.name}/{partition.name}")
    if at is None or int(at[1]) > LAST_DAY or int(at[2]) > 23:
        raise InvalidInput(f"{partition}: expected a day from 0 to {LAST_DAY} and an hour from 00 to 23")
    return int(at[1]), int(at[2])


def read_batches(path: Path, kinds: dict[str, str]) -> Iterator[Batch]:
    pa, parquet = require("pyarrow", "arrow"), require("pyarrow.parquet", "arrow")
    try:
        texts = [name for name, kind in kinds.items() if kind == TEXT]
        with explained(path, "read"), parquet.ParquetFile(path, read_dictionary=texts) as file:
            check_columns(path, file.schema_arrow, kinds)
            for rows in file.iter_batches(BATCH_ROWS, columns=list(kinds)):
                yield Batch(rows, str(path))
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet: {error}") from None


def check_columns(path: Path, schema: Any, kinds: dict[str, str]) -> None:
    problems = []
    for name, kind in kinds.items():
        at = schema.get_all_field_indices(name)
        if len(at) != 1:
            problems.append(f"{path}: column {name!r} {'is missing' if not at else 'appears twice'}")
        elif kind not in kind_of(schema.field(at[0]).type):
            problems.append(f"{path}: {name}: expected {kind}, found {schema.field(at[0]).type}")
    if problems:
        raise InvalidInput(problems)
