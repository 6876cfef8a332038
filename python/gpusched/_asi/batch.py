# SPDX-License-Identifier: Apache-2.0
"""Batches of rows of a table, with columns as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._optional import require
from ..errors import InvalidInput
from .schema import SIGNED, TEXT, TRUTH, VALUES

if TYPE_CHECKING:
    import pyarrow as pa

Reals = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

MICRO = 1_000_000
"""Quantities are stored as integer millionths, so that sums do not depend on the order of rows."""

LARGEST, LARGEST_SECONDS = 1e6, 1e9
"""Largest numbers. In millionths, sums over thousands of pods are exact."""


class Coded(NamedTuple):
    """A column of texts: the position of each row's text in `texts`, or -1."""

    codes: Wholes
    texts: list[str]

    def where(self, rows: Truths) -> Coded:
        """Keeps the texts of these rows; others become -1."""
        return self._replace(codes=np.where(rows, self.codes, -1))

    def among(self, names: Sequence[str]) -> Wholes:
        """The position of each row's text in `names`; -1 if it is missing or not among them."""
        known = {name: at for at, name in enumerate(names)}
        return np.append(np.array([known.get(text, -1) for text in self.texts], np.int64), -1)[self.codes]


class Batch:
    """Rows of one file. A column is converted at its first use and then kept."""

    def __init__(self, rows: pa.RecordBatch, source: str) -> None:
        self.source = source
        self.size = int(rows.num_rows)
        self._rows = rows
        self._kept: dict[Any, Any] = {}

    def text(self, name: str) -> Coded:
        """A column of texts; null and empty texts are -1."""
        return self._once(("text", name), lambda: self._text(name))

    def among(self, name: str, values: Sequence[str]) -> Wholes:
        """The position of each row's text in `values`; -1 for others and for null."""
        return self._once(("among", name, tuple(values)), lambda: self.text(name).among(values))

    def number(self, name: str) -> Reals:
        """A column of numbers; null is NaN."""
        return self._once(("number", name), lambda: self._number(name))

    def micro(self, name: str) -> Wholes:
        """A column of numbers in millionths, rounded; null is 0."""
        return self._once(("micro", name), lambda: micro(self.number(name)))

    def truth(self, name: str) -> Truths:
        """A column of truth values; null is False."""
        return self._once(("truth", name), lambda: self._truth(name))

    def _once(self, key: Any, make: Any) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _text(self, name: str) -> Coded:
        pa, column = require("pyarrow", "arrow"), self._rows.column(name)
        if pa.types.is_null(column.type):
            return Coded(np.full(self.size, -1), [])
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        texts = column.dictionary.to_pylist()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        empty = [code for code, text in enumerate(texts) if not text]
        if name in VALUES and (wrong := sorted({text for text in texts if text} - set(VALUES[name]))):
            raise InvalidInput(
                f"{self.source}: {name}: {wrong[0]!r}; expected one of {', '.join(VALUES[name])}"
            )
        return Coded(np.where(np.isin(codes, empty), -1, codes) if empty else codes, texts)

    def _truth(self, name: str) -> Truths:
        pa = require("pyarrow", "arrow")
        return np.asarray(
            self._rows.column(name).cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False), bool
        )

    def _number(self, name: str) -> Reals:
        pa = require("pyarrow", "arrow")
        numbers = np.array(
            self._rows.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        )
        high = LARGEST_SECONDS if name.endswith("_sec") else LARGEST
        low = -high if name in SIGNED else 0.0
        wrong = numbers[(numbers < low) | (numbers > high)]
        if len(wrong):
            raise InvalidInput(f"{self.source}: {name}: {wrong[0]:g}; expected {low:g} to {high:g}")
        return numbers


def micro(numbers: Reals) -> Wholes:
    return np.rint(np.nan_to_num(numbers) * MICRO).astype(np.int64)


def kind_of(type_: Any) -> set[str]:
    """The kinds of columns that may have this Arrow type."""
    pa = require("pyarrow", "arrow")
    types = pa.types
    if types.is_null(type_):
        return {TEXT, TRUTH, "a number"}
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_string(type_) or types.is_large_string(type_):
        return {TEXT}
    if types.is_boolean(type_):
        return {TRUTH}
    if types.is_integer(type_) or types.is_floating(type_):
        return {"a number"}
    return set()


class Ids(dict[str, int]):
    """Positions of texts, in the order of their first occurrence."""

    def of(self, column: Coded) -> Wholes:
        """The position of each row's text; new texts get new positions; -1 for missing texts."""
        found = np.full(len(column.texts) + 1, -1)
        present = np.bincount(column.codes + 1, minlength=len(found))[
            1:
        ]  # the dictionary also holds texts of other batches
        for code in np.flatnonzero(present).tolist():
            found[code] = self.setdefault(column.texts[code], len(self))
        return found[column.codes]
