"""The two kinds of errors; expected outcomes (infeasible, time limit, cancelled) are values instead."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BackendError", "InvalidInput"]


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


class BackendError(RuntimeError):
    """The environment's failure: a file that cannot be read or written, a missing solver."""
