"""Documents given as dicts: what in them is no JSON, and where."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ._core import deepest_nesting
from .errors import InvalidInput, repr_text

MOST_PROBLEMS = 100

LARGEST_BITS = 1024
"""Integers beyond are beyond every number that a reader keeps, and Python refuses to print the longest of them."""


def json_text(document: object, source: str = "<dict>", arrays: bool = False) -> bytes:
    """JSON in UTF-8; with `arrays`, numpy's numbers and arrays are numbers and lists.

    Raises InvalidInput with the pointer of everything that has no JSON form.
    """
    try:
        return json.dumps(document, allow_nan=False, ensure_ascii=False, default=_as_plain if arrays else _as_dict).encode()
    except (TypeError, ValueError, RecursionError):
        # Python says that something is no JSON, but not where.
        require_json(document, source)
        raise


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def _as_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else _as_dict(value)


def require_json(document: object, source: str = "<dict>") -> None:
    """Raises InvalidInput with the JSON pointer of everything that has no JSON form; else does nothing."""
    problems: list[str] = []
    for problem in _problems(document):
        problems.append(f"{source}: {problem}")
        if len(problems) == MOST_PROBLEMS:
            break
    if problems:
        raise InvalidInput(problems)


def _problems(document: object) -> Iterator[str]:
    # No recursion: nesting without end is one of the things to be found.
    open_values: list[tuple[str, int, Any]] = [("", 0, document)]
    while open_values:
        path, depth, value = open_values.pop()
        where = f"{path}: " if path else ""
        if value is None or isinstance(value, (str, int, float)):
            if wrong := _wrong_scalar(value):
                yield where + wrong
        elif isinstance(value, (Mapping, list, tuple)):
            if depth == deepest_nesting:
                yield f"{where}nested deeper than {deepest_nesting} levels"
                continue
            if isinstance(value, Mapping):
                for key in value:
                    if not (key is None or isinstance(key, (str, int, float))):
                        yield f"{where}key {repr_text(key)}; expected a string"
                    elif wrong := _wrong_scalar(key):
                        yield f"{where}key {wrong}"
                children = [(pointer_part(key), child) for key, child in value.items()]
            else:
                children = [(str(position), child) for position, child in enumerate(value)]
            open_values += [(f"{path}/{name}", depth + 1, child) for name, child in reversed(children)]
        else:
            yield f"{where}{repr_text(value)} of type {_kind(value)}; expected {_expected(value)}"


def _wrong_scalar(value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}; expected a finite number"
    if isinstance(value, int) and value.bit_length() > LARGEST_BITS:
        return f"an integer of {value.bit_length()} bits; expected at most {LARGEST_BITS}"
    if isinstance(value, str) and _as_text(value) != value:
        return f"{repr_text(value)}; expected text, found half of a surrogate pair"
    return None


def _as_text(value: str) -> str:
    """As it may be printed: without halves of surrogate pairs."""
    return value.encode("utf-8", "backslashreplace").decode()


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _expected(value: Any) -> str:
    """What to write instead."""
    if isinstance(value, (set, frozenset)):
        return "a list"
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return "what its tolist() gives"
    return "None, a bool, an int, a float, a string, a list or a dict"


def pointer_part(key: object) -> str:
    """A key as it stands in a JSON pointer."""
    text = "(a long number)" if _wrong_scalar(key) and isinstance(key, int) else _as_text(str(key))
    return text.replace("~", "~0").replace("/", "~1")
