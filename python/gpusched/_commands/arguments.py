"""Arguments of the console script: a parser that tells all mistakes at once, and the values that options take."""

from __future__ import annotations

import argparse
from typing import Any

from .. import _core
from .shared import BAD_INPUT


def shape(text: str) -> tuple[int, float]:
    """A request like 8x128 or 8G128C."""
    parts = text.upper().rstrip("C").replace("G", "X").split("X")
    try:
        gpus, cores = parts
        number = float(cores)
        return int(gpus), int(number) if number.is_integer() else number
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no request; write GPUs x cores, like 8x128") from None


def shapes(text: str) -> list[tuple[int, float]]:
    return [shape(part) for part in text.split(",")]


def level(text: str) -> int | str:
    """A network level: node, or an index."""
    if text == "node" or text.isdigit():
        return text if text == "node" else int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no level; write node, or an index into the nodes' network")


def budgets(text: str) -> list[float]:
    """Numbers like 15,30,60."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no budgets; write $/h with commas between them, like 15,30,60") from None


def names(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


class Parser(argparse.ArgumentParser):
    """Tells everything that is wrong, one line each, without the usage text of all commands."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.problems: list[str] = []  # of the whole call: shared with the parsers of the commands

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """argparse's conversion of one value, which goes on after a bad one."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self.problems.append(str(error))
            return BAD

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The same for the values that an option may have."""
        if value is BAD:
            return
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if isinstance(action, argparse._SubParsersAction):
                raise  # nothing else can be understood without the command
            self.problems.append(str(error))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.problems.append(f"unrecognized arguments: {' '.join(unknown)}")
        if self.problems:
            command = getattr(parsed, "command", None)
            self.tell(f"{self.prog} {command}" if command else self.prog)
        return parsed

    def error(self, message: str) -> Any:
        self.problems.append(message)
        self.tell(self.prog)

    def tell(self, prog: str) -> None:
        lines = [f"{prog}: {problem} (see {prog} --help)\n" for problem in self.problems]
        self.exit(BAD_INPUT, "".join(lines))


BAD = object()
"""Stands for a value that could not be understood; the parser ends after all have been looked at."""


def choices(*options: str) -> tuple[str, ...]:
    """The names that an option of the library knows, by its C++ name; those of several together."""
    return tuple(dict.fromkeys(name for option in options for name in _core.option_choices[option]))


def flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_const", const=True, help=text)
