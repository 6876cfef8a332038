"""The two kinds of errors; expected outcomes (infeasible, time limit, cancelled) are values instead."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BackendError", "InvalidInput", "InvalidType"]


def repr_text(value: object) -> str:
    """A value as it appears in messages: some have no text, such as integers of thousands of digits."""
    try:
        text = repr(value)
    except Exception:  # whatever a foreign __repr__ raises
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else text[:200] + "..."


class InvalidInput(ValueError):
    """The caller's mistake. `problems` lists all that was found, each naming the field and the value."""

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
    """An argument of a type that a function does not take: caught as InvalidInput and as TypeError."""


class BackendError(RuntimeError):
    """The environment's failure: a file that cannot be read or written, a missing solver."""
