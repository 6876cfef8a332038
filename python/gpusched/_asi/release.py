"""Where the tables of the release lie, and their rows as a stream of batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from .._optional import require
from ..errors import BackendError, InvalidInput
from .batch import Batch, kind_of
from .schema import COLUMNS, EXECUTION, TEXT

BATCH_ROWS = 1 << 17
"""Rows that are in memory at a time."""

Hour = tuple[int, int]
"""A day since the trace began, and an hour of it."""


class Release:
    """The tables below a folder: `asi_opensource_pod_hourly/day=D/hour=HH/*.parquet`, or `pod_hourly/...`, also below `tables`."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        require("pyarrow.parquet", "arrow")
        self.folder = Path(fspath(folder))
        if not self.folder.is_dir():
            raise BackendError(f"{self.folder}: is no folder")
        self._files = {table: self._find(table) for table in COLUMNS}
        if not any(self._files.values()):
            raise InvalidInput(f"{self.folder}: holds no table; expected folders such as asi_opensource_pod_hourly")

    def _find(self, table: str) -> dict[Hour, list[Path]]:
        """Files by hour; those of the table without partitions are of hour (0, 0)."""
        found: dict[Hour, list[Path]] = {}
        for name in (f"asi_opensource_{table}", table, f"tables/{table}"):
            root = self.folder / name
            if table == EXECUTION:
                parts = sorted(root.glob("*.parquet"))
                found |= {(0, 0): parts} if parts else {}
            else:
                for path in sorted(root.glob("day=*/hour=*/*.parquet")):
                    at = re.fullmatch(r"day=(\d+)/hour=(\d+)", path.parent.relative_to(root).as_posix())
                    if at is not None:
                        found.setdefault((int(at[1]), int(at[2])), []).append(path)
            if found:
                break
        return found

    def has(self, table: str) -> bool:
        return bool(self._files[table])

    def hours(self, table: str, days: tuple[int, int] | None = None) -> list[Hour]:
        """The hours that there are, of the days from the first to the last, in order."""
        return sorted(hour for hour in self._files[table] if days is None or days[0] <= hour[0] <= days[1])

    def require(self, hours: Iterable[Hour], tables: Sequence[str]) -> None:
        """An error that names partitions that are not there."""
        missing = [
            f"{self.folder}: asi_opensource_{table}/day={day}/hour={hour:02d}: is missing"
            for day, hour in hours
            for table in tables
            if (day, hour) not in self._files[table]
        ]
        if missing:
            raise InvalidInput(missing)

    def batches(self, table: str, columns: Sequence[str], hour: Hour = (0, 0)) -> Iterator[Batch]:
        """The rows of a partition, of these columns alone.

        Raises InvalidInput for files that are no Parquet, and columns that are missing or of another kind.
        """
        for path in self._files[table].get(hour, []):
            yield from read_batches(path, {name: COLUMNS[table][name] for name in columns})


def read_batches(path: Path, kinds: dict[str, str]) -> Iterator[Batch]:
    pa, parquet = require("pyarrow", "arrow"), require("pyarrow.parquet", "arrow")
    try:
        texts = [name for name, kind in kinds.items() if kind == TEXT]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            check_columns(path, file.schema_arrow, kinds)
            for rows in file.iter_batches(BATCH_ROWS, columns=list(kinds)):
                yield Batch(rows, str(path))
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet: {error}") from None
    except OSError as error:
        raise BackendError(f"{path}: cannot be read: {error.strerror or error}") from None


def check_columns(path: Path, schema: Any, kinds: dict[str, str]) -> None:
    problems = []
    for name, kind in kinds.items():
        at = schema.get_all_field_indices(name)
        if len(at) != 1:
            problems.append(f"{path}: column {name!r} is {'missing' if not at else 'there twice'}")
        elif kind not in kind_of(schema.field(at[0]).type):
            problems.append(f"{path}: {name}: expected {kind}, found {schema.field(at[0]).type}")
    if problems:
        raise InvalidInput(problems)
