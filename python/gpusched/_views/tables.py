"""Tables: what metrics return. A sequence of rows that prints well and turns into a pandas frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from .. import _core
from . import frames

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class Row(tuple[Any, ...]):
    """One row: by attribute, by column name, or as a plain tuple."""

    __slots__ = ()
    columns: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in self.columns:
            return self[self.columns.index(name)]
        raise AttributeError(self._unknown(name))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(self._unknown(key))
            key = self.columns.index(key)
        return super().__getitem__(key)

    def _unknown(self, name: str) -> str:
        there = f"no column is named {name!r}: there are {', '.join(self.columns)}"
        return there + _core.did_you_mean(name, list(self.columns))

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self.columns, self))

    def __repr__(self) -> str:
        return "(" + ", ".join(f"{name}={value!r}" for name, value in self._asdict().items()) + ")"

    def __reduce__(self) -> tuple[Any, ...]:
        return make_row, (self.columns, tuple(self))


def make_row(columns: tuple[str, ...], values: Iterable[Any]) -> Row:
    """A row with these columns."""
    return type("Row", (Row,), {"__slots__": (), "columns": columns})(values)


def floats(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=np.float64)


class Table(Sequence[Row]):
    """Rows with named columns."""

    kinds: ClassVar[dict[str, Callable[[list[Any]], Any]]] = {
        **dict.fromkeys(("gpu_model", "cluster", "domain"), frames.Texts),
        **dict.fromkeys(("gpus", "across", "within", "loss"), frames.Wholes),
        **dict.fromkeys(("cpu_cores", "fractional", "stranded", "insufficient_cpu", "total_idle"), floats),
        **dict.fromkeys(("fractional_pct", "stranded_pct", "insufficient_cpu_pct"), floats),
    }

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.columns = tuple(columns)
        kind = type("Row", (Row,), {"__slots__": (), "columns": self.columns})
        self._rows: list[Row] = [kind(row) for row in rows]

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and self._rows == other._rows

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        return [row[name] for row in self._rows]

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame."""
        return frames.to_pandas(self._typed())

    def to_arrow(self) -> pa.Table:
        """The table for Arrow (pyarrow)."""
        return frames.to_arrow(self._typed())

    def _typed(self) -> frames.Columns:
        """The columns; those that the library's tables have are of the same type whatever the rows hold."""
        return {name: self.kinds.get(name, list)(self.column(name)) for name in self.columns}

    def to_csv(self) -> str:
        """The table as CSV text."""
        import csv
        import io

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self._rows)
        return text.getvalue()

    def __str__(self) -> str:
        return format_table(self.columns, self._rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(format_value(value))}</td>" for value in row) + "</tr>"
            for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def format_value(value: Any) -> str:
    """A table cell as text: thousands separated, floats with one digit."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Aligned columns: text to the left, numbers to the right."""
    cells = [[format_value(value) for value in row] for row in rows]
    values = [list(row) for row in rows] if not isinstance(rows, list) else rows
    right = [all(not isinstance(row[i], str) for row in values) for i in range(len(columns))]
    width = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]

    def line(texts: Sequence[str]) -> str:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, width, right))
        return "  ".join(padded).rstrip()

    return "\n".join([line(columns), line(["-" * w for w in width]), *(line(row) for row in cells)])
