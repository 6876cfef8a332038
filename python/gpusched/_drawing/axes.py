"""Axes, sizes and colours that figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import require
from ..errors import InvalidInput, InvalidType, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#4d4d4d")
# Files of wider figures exceed what image formats can hold; bars then get narrower instead.
WIDEST_INCHES = 100.0


def width(least: float, per_bar: float, bars: int) -> float:
    return min(WIDEST_INCHES, max(least, 1.6 + per_bar * bars))


def require_range(field: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        shown = repr_text(value)
        raise InvalidInput(f"{field}: {shown}; expected an integer from {low} to {high}")


def require_type(function: str, field: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InvalidType(f"{function}(): {field}: {repr_text(value)}; expected {article} {kind.__name__}")


def plain(name: object) -> str:
    """A name for a figure, whose texts are formulas between dollars."""
    return str(name).replace("$", r"\$")


def new_axes(ax: Axes | None, **figure: Any) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained", **figure)[1]
    return axes


MOST_NAMES = 24


def name_nodes(ax: Axes, at: np.ndarray, names: Sequence[str]) -> None:
    """Names below the columns of a figure, where they fit."""
    if len(names) > MOST_NAMES:
        ax.set_xticks([])
    else:
        ax.set_xticks(at, [plain(name) for name in names], rotation=45, ha="right", rotation_mode="anchor", fontsize=8)


def quiet(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
