# SPDX-License-Identifier: Apache-2.0
"""Arguments of the console script: a parser that reports all mistakes at once, and types of option values."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable
from typing import Any

from .. import _core
from .shared import BAD_INPUT


def shape(text: str) -> tuple[int, float]:
    """A request such as 8x128 or 8G128C."""
    parts = text.upper().rstrip("C").replace("G", "X").split("X")
    try:
        gpus, cores = parts
        number = float(cores)
        return int(gpus), int(number) if number.is_integer() else number
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no request; expected GPUs x cores, like 8x128"
        ) from None


def shapes(text: str) -> list[tuple[int, float]] | str:
    """Requests separated by commas, or asi."""
    if text == "asi":
        return text
    return [shape(part) for part in text.split(",")]


def level(text: str) -> int | str:
    """A network level: node, or an index."""
    if text == "node" or text.isdigit():
        return text if text == "node" else int(text)
    raise argparse.ArgumentTypeError(
        f"{text!r} is no level; expected node, or an index into the nodes' network"
    )


def numbers(kind: str, like: str) -> Callable[[str], list[float]]:
    """A type of numbers separated by commas; `kind` and `like` describe them in the error message."""

    def read(text: str) -> list[float]:
        try:
            return [float(part) for part in text.split(",")]
        except ValueError:
            message = f"{text!r} are no {kind}; expected numbers separated by commas, like {like}"
            raise argparse.ArgumentTypeError(message) from None

    return read


rates = numbers("rates in requests/s", "5,10,20")
budgets = numbers("budgets in $/h", "15,30,60")


def by_name(text: str) -> dict[str, float]:
    """Numbers by name, such as chat=10,code=2. Raises ValueError for other texts."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, value = (word.strip() for word in part.rsplit("=", 1))
        if name in found:
            raise argparse.ArgumentTypeError(f"{text!r}: {name!r} appears twice")
        found[name] = float(value)
    return found


def rate(text: str) -> float | dict[str, float]:
    try:
        return by_name(text) if "=" in text else float(text)
    except ValueError:
        message = f"{text!r} is no rate; expected requests/s, like 10, or rates by kind, like chat=10,code=2"
        raise argparse.ArgumentTypeError(message) from None


def targets(text: str) -> dict[str, float]:
    try:
        return {name.removesuffix("_s") + "_s": value for name, value in by_name(text).items()}
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} are no targets; expected seconds by name, like ttft_p90=0.5,tpot_p90=0.05"
        ) from None


def names(text: str) -> list[str]:
    """Names separated by commas, such as a,b."""
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no names; expected names separated by commas, like a,b"
        )
    return parts


def choices(text: str) -> dict[str, str]:
    """Names by kind, such as node_order=fewest_pods,ejection_rule=first_victims."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    chosen = dict(pairs)
    if not all(chosen.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is no choice; expected KIND=NAME, separated by commas")
    if len(chosen) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: a kind appears twice")
    return chosen


def goal(text: str) -> dict[str, Any]:
    """A goal such as empty_nodes=3,gpu_model=H20 or count=2,gpu_count=8,cpu_milli=64000.

    The library checks its values.
    """
    of_goal = {field["name"]: field["type"] for field in _core.keywords["model.Goal"]}
    of_slots = {field["name"]: field["type"] for field in _core.keywords["model.SlotShape"]}
    known = [name for name in of_goal if name != "slots"] + list(of_slots)
    found: dict[str, Any] = {}
    slots: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if not key or not value:
            message = (
                f"{text!r} is no goal; expected KEY=VALUE, separated by commas, like "
                "empty_nodes=3,gpu_model=H20"
            )
            raise argparse.ArgumentTypeError(message)
        if key not in known:
            near = _core.did_you_mean(key, known)
            raise argparse.ArgumentTypeError(
                f"{text!r}: a goal has no {key!r}; expected {', '.join(known)}{near}"
            )
        fields = slots if key in of_slots else found
        if key in fields:
            raise argparse.ArgumentTypeError(f"{text!r}: {key} is given twice")
        is_number = {**of_goal, **of_slots}[key].startswith("int") and re.fullmatch(r"-?[0-9]{1,18}", value)
        fields[key] = int(value) if is_number else value
    return {**found, "slots": slots} if slots else found


class Parser(argparse.ArgumentParser):
    """Reports all mistakes of a call, one per line, without the usage text."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.problems: list[str] = []  # shared by the parsers of all commands
        self.commands: dict[str, Parser] = {}
        self.options: dict[str, str] = {}  # option names by the library's names of their values
        self.fields: dict[str, list[str]] = {}  # keywords of `library_option`, by function of the library
        super().__init__(*args, **{"allow_abbrev": False, **keywords})

    def add_argument(self, *words: Any, **keywords: Any) -> argparse.Action:
        """Adds defaults to help texts, completes file names, and lets options with names be repeated.

        `field`: the library's name of the value, if it differs from the option's name. `known`: names that
        shells complete and the library checks. `file`: whether shells complete names of files; by default, if
        the metavar looks like one.
        """
        field, known = keywords.pop("field", None), keywords.pop("known", None)
        named_file = re.search(r"FILE|\.\w+(\|\w+)*$", str(keywords.get("metavar"))) is not None
        file = keywords.pop("file", named_file)
        default = keywords.get("default")
        if default is argparse.SUPPRESS or "default:" in keywords.get("help", "") or keywords.get("required"):
            shown = None
        elif default is not None and default is not False:
            shown = " ".join(map(str, default)) if isinstance(default, list) else str(default)
        elif keywords.get("action") in ("store_const", "store_true"):
            shown = "no"
        else:
            shown = "none" if file and words[0].startswith("-") else None
        if shown is not None:
            keywords["help"] = f"{keywords.get('help', '')} (default: {shown})".strip()
        if keywords.get("type") is names and words[0].startswith("-") and default is None:
            keywords.setdefault("action", Repeatable)
        action = super().add_argument(*words, **keywords)
        if file:
            action.complete = FILES  # type: ignore[attr-defined]  # read by shtab
        if known is not None:
            action.choices = Known(known)
        if action.option_strings:
            self.options[field or action.dest] = action.option_strings[-1]
        return action

    def add(self, names: str, text: str, **keywords: Any) -> argparse.Action:
        """Adds an argument by its name, or an option by all its names, with its help text."""
        return self.add_argument(*names.split(), help=text, **keywords)

    def with_option_name(self, problem: str) -> str:
        """The library's message with the name of the option in place of the field's name."""
        field = re.match(r"(\w+)(?=(\[[^\]]*\])?: )", problem)
        if field is None or field[1] not in self.options:
            return problem
        return self.options[field[1]] + problem[field.end() :]

    def _print_message(self, message: str, file: Any = None) -> None:
        """Lets errors of standard output pass, which argparse ignores."""
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Converts one value. Collects the problem of a bad value and continues."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            self.problems.append(str(error))
            return BAD

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Checks the choices of an option in the same way."""
        if value is BAD:
            return
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            known = [str(choice) for choice in action.choices or ()]
            error.message += _core.did_you_mean(str(value), known)
            if isinstance(action, argparse._SubParsersAction):
                raise  # without the command, nothing else can be parsed
            self.problems.append(str(error))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            actions = self.commands.get(getattr(parsed, "command", ""), self)._option_string_actions
            options = list(actions)
            near = [
                _core.did_you_mean(word.split("=")[0], options) for word in unknown if word.startswith("--")
            ]
            self.problems.append(f"unrecognized arguments: {' '.join(unknown)}{''.join(near[:1])}")
            lists = [option for option in options if actions[option].type is names]
            if lists and not any(word.startswith("-") for word in unknown):
                self.problems[-1] += f"; separate names with commas, like {lists[0]} a,b"
        if self.problems:
            command = getattr(parsed, "command", None)
            self.exit_with_problems(f"{self.prog} {command}" if command else self.prog)
        return parsed

    def error(self, message: str) -> Any:
        self.problems.append(message)
        self.exit_with_problems(self.prog)

    def exit_with_problems(self, prog: str) -> None:
        lines = [f"{prog}: {problem} (see {prog} --help)\n" for problem in self.problems]
        self.exit(BAD_INPUT, "".join(lines))


class Repeatable(argparse.Action):
    """An option that may be repeated.

    Lists and numbers by name are combined; other repetitions are problems.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        if isinstance(before, list) and isinstance(values, list):
            values = before + values
        elif isinstance(before, dict) and isinstance(values, dict):
            for name in sorted(before.keys() & values.keys()):
                self.add_problem(parser, f"{name!r} is given twice")
            values = {**before, **values}
        elif before is not None and BAD not in (before, values):
            self.add_problem(parser, "given twice; expected one value for all kinds, or values by name")
        setattr(namespace, self.dest, values)

    def add_problem(self, parser: argparse.ArgumentParser, problem: str) -> None:
        assert isinstance(parser, Parser)
        parser.problems.append(str(argparse.ArgumentError(self, problem)))


class Known(list[str]):
    """Names for completion. The parser accepts other values, too."""

    def __contains__(self, value: object) -> bool:
        return True


BAD = object()
"""Stands for a value that could not be read. The parser reports it after it has read all values."""


def flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_const", const=True, help=text)


FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""Functions that complete file names, by shell, for shtab."""


def library_option(
    parser: Parser,
    function: str,
    field: str,
    text: str | None = None,
    also: tuple[str, ...] = (),
    name: str | None = None,
    **keywords: Any,
) -> None:
    """Adds an option for a keyword of a library function, such as `consolidation.consolidate`.

    Type, choices, default and help text come from the library. The library applies its default if the option
    is missing.

    `text`: replaces the help text. `name`: the option's name, if it differs from the keyword. `also`: other
    functions with the same keyword that the command calls; `given` finds the option under each of them.
    """
    for called in (function, *also):
        parser.fields.setdefault(called, []).append(field)
    keyword = next(k for k in _core.keywords[function] if k["name"] == field)
    kind = keyword["type"].removesuffix(" | None")
    help_text = text or first_sentence(keyword["text"])
    default = keyword["default"].strip("'")
    if kind == "bool":
        keywords.update(action="store_const", const=True)
    elif "default:" not in help_text:
        if default not in ("None", "[]"):
            help_text += f" (default: {default})"
        elif field.startswith("max_") or field == "time_limit":
            help_text += " (default: no limit)"
    if found := re.match(r"Literal(\[[^]]*\])", kind):
        keywords.setdefault("choices", ast.literal_eval(found[1]))
    elif kind in NUMBERS:
        keywords.setdefault("type", NUMBERS[kind][0])
        keywords.setdefault("metavar", NUMBERS[kind][1])
    option = "--" + (name or field).replace("_", "-")
    parser.add_argument(option, dest=field, help=help_text.replace("%", "%%"), **keywords)


NUMBERS: dict[str, tuple[type, str]] = {"int": (int, "N"), "float": (float, "X")}


def first_sentence(text: str) -> str:
    """The first sentence, without a clause about absent values, and with a small initial letter."""
    first = re.split(r"(?<!\.)\.(?:\s|$)|; (?:absent|none)\b", text, maxsplit=1)[0].replace("`", "")
    return first[:1].lower() + first[1:] if first[1:2].islower() or first[1:2] == " " else first
