# SPDX-License-Identifier: Apache-2.0
"""Errors. Expected outcomes (infeasible, time limit, cancelled) are return values instead."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

__all__ = ["BackendError", "InvalidInput", "InvalidType"]


def repr_text(value: object) -> str:
    """A value as messages show it: shortened, and with its type if `repr` fails."""
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__ may raise anything
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."


class InvalidInput(ValueError):
    """A mistake of the caller. `problems` lists all mistakes, each with its field and value."""

    problems: list[str]

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        if len(self.problems) == 1:
            text = self.problems[0]
        else:
            text = "\n  - ".join([f"{len(self.problems)} problems:", *self.problems])
        super().__init__(text)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[list[str]]]:
        return type(self), (self.problems,)


class InvalidType(InvalidInput, TypeError):
    """An argument of a wrong type: both an InvalidInput and a TypeError."""


class BackendError(RuntimeError):
    """A failure of the environment, such as an unreadable file or a missing solver."""


@contextlib.contextmanager
def explained(path: object, verb: str = "written") -> Iterator[None]:
    """Turns an OSError into a BackendError that names the file: it cannot be written (read, opened)."""
    try:
        yield
    except OSError as error:
        raise BackendError(f"{path}: cannot be {verb}: {error.strerror or error}") from None
