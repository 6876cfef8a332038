"""Documents given as dicts: what in them is no JSON, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .errors import InvalidInput, repr_text

DEEPEST = 64
"""As the readers of files have it."""

MOST_PROBLEMS = 100


def require_json(document: object) -> None:
    """Raises InvalidInput with the JSON pointer of everything that has no JSON form; else does nothing."""
    problems: list[str] = []
    for problem in _problems(document):
        problems.append(problem)
        if len(problems) == MOST_PROBLEMS:
            break
    if problems:
        raise InvalidInput(problems)


def _problems(document: object) -> Iterator[str]:
    # No recursion: nesting without end is one of the things to be found.
    open_values: list[tuple[str, int, Any]] = [("", 0, document)]
    while open_values:
        path, depth, value = open_values.pop()
        where = f"<dict>: {path}: " if path else "<dict>: "
        if value is None or isinstance(value, (str, bool, int)):
            continue
        if isinstance(value, float):
            if not math.isfinite(value):
                yield f"{where}{value}; expected a finite number"
        elif isinstance(value, (dict, list, tuple)):
            if depth == DEEPEST:
                yield f"{where}nested deeper than {DEEPEST} levels"
                continue
            if isinstance(value, dict):
                for key in value:
                    if not (key is None or isinstance(key, (str, bool, int, float))):
                        yield f"{where}key {repr_text(key)}; expected a string"
                children = [(_escaped(key), child) for key, child in value.items()]
            else:
                children = [(str(position), child) for position, child in enumerate(value)]
            open_values += [(f"{path}/{name}", depth + 1, child) for name, child in reversed(children)]
        else:
            yield f"{where}{repr_text(value)} of type {_kind(value)}; expected {_expected(value)}"


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


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
