# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments of Python functions, with the same messages as the extension module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from . import _core
from .errors import InvalidInput, InvalidType, repr_text

MAX_SEED = 2**64 - 1


def as_list(called: str, name: str, value: Any, of: str) -> list[Any]:
    """The elements of a list, an array or another iterable, but not of a text or a dict."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidType(f"{called}(): {name}: {repr_text(value)}; expected a list of {of}")
    return list(value)


def as_dict(called: str, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidType(f"{called}(): {name}: {repr_text(value)}; expected a dict")
    return dict(value)


def as_options(called: str, name: str, value: Any, known: Iterable[str]) -> dict[str, Any]:
    """A dict with keys from `known` only; None stands for an empty dict."""
    found, names = as_dict(called, name, {} if value is None else value), list(known)
    problems = [
        f"{name}: unknown field {repr_text(key)}; expected {', '.join(names)}"
        + _core.did_you_mean(str(key), names)
        for key in found
        if key not in names
    ]
    if problems:
        raise InvalidInput(problems)
    return found


def require_keywords(called: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises TypeError for unknown keywords, as a function does that declares its keywords."""
    names = list(known)
    for name in given:
        if name not in names:
            hint = _core.did_you_mean(name, names)
            raise TypeError(f"{called}() got an unexpected keyword argument {name!r}{hint}")


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    names = list(known)
    if not isinstance(value, str) or value not in names:
        near = _core.did_you_mean(value, names) if isinstance(value, str) else ""
        raise InvalidInput(f"{name}: {repr_text(value)}; expected one of {', '.join(map(repr, names))}{near}")
    return value


def integer(name: str, value: Any, low: int, high: int) -> int:
    """An integer of Python or numpy from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise InvalidInput(f"{name}: {repr_text(value)}; expected an integer from {low} to {high}")
    return int(value)


def number(name: str, value: Any, low: float, high: float) -> float:
    """A number of Python or numpy from `low` to `high`, both finite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InvalidInput(f"{name}: {repr_text(value)}; expected a number from {low:g} to {high:g}")
    return float(value)
