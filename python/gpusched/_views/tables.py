# SPDX-License-Identifier: Apache-2.0
"""Tables of results: a sequence of rows that prints as text and converts to pandas, Arrow, CSV and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from .. import _core
from .._drawing import draw_fragmentation_bars
from ..errors import InvalidInput
from . import frames

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes
    from typing_extensions import Self

PUBLIC = "gpusched.fragmentation"
"""The public module of these classes. Pickles store this name, so it must not change."""

Kind = Literal["text", "whole", "number", "texts", "any"]
"""The type of a column: text, integer, number (None if missing), list of texts, or anything."""


class Row(tuple[Any, ...]):
    """One row. Values are read by attribute, by column name or by position."""

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
        message = f"no column {name!r}; expected one of {', '.join(self.columns)}"
        return message + _core.did_you_mean(name, list(self.columns))

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self.columns, self))

    def __repr__(self) -> str:
        return "(" + ", ".join(f"{name}={value!r}" for name, value in self._asdict().items()) + ")"

    @classmethod
    def make(cls, columns: Sequence[str], values: Iterable[Any]) -> Row:
        """A row with these columns."""
        return row_type(columns)(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Row.make, (self.columns, tuple(self))


def row_type(columns: Sequence[str]) -> type[Row]:
    return type("Row", (Row,), {"__slots__": (), "__module__": PUBLIC, "columns": tuple(columns)})


EXTENSION_TABLES: dict[tuple[str, ...], tuple[Kind, ...]] = {
    ("gpu_model", "across", "within", "loss"): ("text", "whole", "whole", "whole"),
    ("gpu_model", "across", "within", "cluster", "domain"): ("text", "whole", "whole", "text", "text"),
    ("node", "cause", "gpus", "tasks"): ("text", "text", "number", "texts"),
    ("gpu_model", "servers", "hp", "hp_and_lp", "standby_servers", "standby_used"): (
        "text",
        "whole",
        "number",
        "number",
        "whole",
        "number",
    ),  # fmt: skip
}
"""Column kinds of the tables that the extension makes. It passes only the column names."""


def rounded(number: float) -> float:
    """The number with three digits, or whole from 100 on."""
    return float(round(number)) if number >= 100 else float(f"{number:.3g}")


class Table(Sequence[Row]):
    """Rows with named columns. A slice of a table (`table[:2]`) is a table.

    `columns` maps each name to its kind: "text", "whole", "number" (None if missing), "texts" or "any". A
    list of names without kinds means "any". The kind alone decides the type of a column in pandas and Arrow.
    """

    columns: tuple[str, ...]
    kinds: dict[str, Kind]

    def __init__(self, columns: Mapping[str, Kind] | Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        if isinstance(columns, Mapping):
            self.kinds = dict(columns)
            known = get_args(Kind)
            problems = [
                f"columns[{name!r}]: {kind!r}; expected one of {', '.join(known)}"
                + _core.did_you_mean(str(kind), known)
                for name, kind in columns.items()
                if kind not in known
            ]
            if problems:
                raise InvalidInput(problems)
        else:
            known_kinds = EXTENSION_TABLES.get(tuple(columns), ())
            self.kinds = {**dict.fromkeys(columns, "any"), **dict(zip(columns, known_kinds))}
        self._fill(rows)

    def _fill(self, rows: Iterable[Sequence[Any]]) -> None:
        self.columns = tuple(self.kinds)
        self._rows: list[Row] = list(map(row_type(self.columns), rows))

    def _part(self, at: Iterable[int]) -> Self:
        """A table of the rows at these positions."""
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        part._rows = [self._rows[i] for i in at]
        return part

    def __getstate__(self) -> dict[str, Any]:
        """The rows as tuples, and the attributes that a subclass adds."""
        added = {name: value for name, value in vars(self).items() if name not in ("columns", "_rows")}
        return added | {"rows": [*map(tuple, self)]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = state.pop("rows")
        vars(self).update(state)
        self._fill(rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Row | Self:
        return self._part(range(len(self))[index]) if isinstance(index, slice) else self._rows[index]

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
        """The table as a pandas DataFrame."""
        return frames.to_pandas(self._typed())

    def to_arrow(self) -> pa.Table:
        """The table as an Arrow table (pyarrow)."""
        return frames.to_arrow(self._typed())

    def _typed(self) -> frames.Columns:
        return frames.by_column(self.kinds, self._rows)

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


REPORT_KINDS: dict[str, Kind] = {"gpu_model": "text", "cluster": "text", "gpus": "whole"}
"""Kinds of the columns of a fragmentation report; all others are numbers."""


class Report(Table):
    """Idle GPUs that requests cannot use, by cause. Percentages refer to all idle GPUs of the row's group."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        super().__init__({name: REPORT_KINDS.get(name, "number") for name in columns}, rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the causes as stacked bars, one bar per row; see `gpusched.plotting.plot_fragmentation`."""
        return draw_fragmentation_bars(self, ax)


Row.__module__ = Table.__module__ = Report.__module__ = PUBLIC


def counted(count: Any, one: str, several: str | None = None) -> str:
    """A number with its noun: `1 node`, `2,000 nodes`, `0.5 cores`."""
    number = f"{int(count):,}" if int(count) == count else f"{count:g}"
    return f"{number} {one if count == 1 else several or one + 's'}"


def listed(names: Iterable[str], most: int = 5, rest: str = "more") -> str:
    """Names separated by commas; a number stands for those after the first ones."""
    names = list(names)
    more = f" and {len(names) - most:,} {rest}" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_value(value: Any) -> str:
    """A table cell as text, with thousands separators; floats have one decimal."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A text table: texts are aligned to the left, numbers to the right."""
    cells = [[format_value(value) for value in row] for row in rows]
    values = [list(row) for row in rows] if not isinstance(rows, list) else rows
    right = [all(not isinstance(row[i], str) for row in values) for i in range(len(columns))]
    width = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]

    def line(texts: Sequence[str]) -> str:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, width, right))
        return "  ".join(padded).rstrip()

    return "\n".join([line(columns), line(["-" * w for w in width]), *(line(row) for row in cells)])
