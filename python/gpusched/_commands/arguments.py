"""Arguments of the console script: a parser that tells all mistakes at once, options of the library, the values they take."""

from __future__ import annotations

import argparse
import ast
import re
import sys
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


def shapes(text: str) -> list[tuple[int, float]] | str:
    """Requests with commas between them, or asi."""
    if text == "asi":
        return text
    return [shape(part) for part in text.split(",")]


def level(text: str) -> int | str:
    """A network level: node, or an index."""
    if text == "node" or text.isdigit():
        return text if text == "node" else int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no level; write node, or an index into the nodes' network")


def rates(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no rates; write requests/s with commas between them, like 5,10,20") from None


def by_name(text: str) -> dict[str, float]:
    """Numbers like chat=10,code=2. Raises ValueError where a part is none."""
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
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; write requests/s, like 10, or by kind, like chat=10,code=2") from None


def targets(text: str) -> dict[str, float]:
    try:
        return {name.removesuffix("_s") + "_s": value for name, value in by_name(text).items()}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no targets; write them like ttft_p90=0.5,tpot_p90=0.05") from None


def budgets(text: str) -> list[float]:
    """Numbers like 15,30,60."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no budgets; write $/h with commas between them, like 15,30,60") from None


def names(text: str) -> list[str]:
    """Names like a,b."""
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing; write names with commas between them, like a,b")
    return parts


def choices(text: str) -> dict[str, str]:
    """Names by kind, like node_order=fewest_pods,ejection_rule=first_victims."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    chosen = dict(pairs)
    if not all(chosen.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is no choice; write KIND=NAME with commas between them")
    if len(chosen) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r} chooses for one kind twice")
    return chosen


def goal(text: str) -> dict[str, Any]:
    """A goal like empty_nodes=3,gpu_model=H20 or count=2,gpu_count=8,cpu_milli=64000, whose values the library looks at."""
    of_goal, of_slots = ({field["name"]: field["type"] for field in _core.keywords[table]} for table in ("model.Goal", "model.SlotShape"))
    known = [name for name in of_goal if name != "slots"] + list(of_slots)
    found: dict[str, Any] = {}
    slots: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if not key or not value:
            raise argparse.ArgumentTypeError(f"{text!r} is no goal; write KEY=VALUE with commas between them, like empty_nodes=3,gpu_model=H20")
        if key not in known:
            near = _core.did_you_mean(key, known)
            raise argparse.ArgumentTypeError(f"{text!r}: a goal has no {key!r}; expected {', '.join(known)}{near}")
        fields = slots if key in of_slots else found
        if key in fields:
            raise argparse.ArgumentTypeError(f"{text!r}: {key} is given twice")
        is_number = {**of_goal, **of_slots}[key].startswith("int") and re.fullmatch(r"-?[0-9]{1,18}", value)
        fields[key] = int(value) if is_number else value
    return {**found, "slots": slots} if slots else found


class Parser(argparse.ArgumentParser):
    """Tells everything that is wrong, one line each, without the usage text of all commands."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.problems: list[str] = []  # of the whole call: shared with the parsers of the commands
        self.commands: dict[str, Parser] = {}
        self.options: dict[str, str] = {}  # by what the library calls their values
        self.fields: dict[str, list[str]] = {}  # of `library_option`, by function of the library
        super().__init__(*args, **{"allow_abbrev": False, **keywords})

    def add_argument(self, *words: Any, **keywords: Any) -> argparse.Action:
        """argparse's, with the default in the help of every option, and completion of file names. Options that hold names may
        be given several times.

        `field` is what the library calls the value, where that is not the option's own name; `known` are names that shells
        complete, and that the library checks.
        """
        field, known = keywords.pop("field", None), keywords.pop("known", None)
        metavar = keywords.get("metavar")
        file = isinstance(metavar, str) and re.search(r"FILE|\.\w+$", metavar) is not None
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
            keywords.setdefault("action", Together)
        action = super().add_argument(*words, **keywords)
        if file:
            action.complete = FILES  # type: ignore[attr-defined]  # read by shtab
        if known is not None:
            action.choices = Known(known)
        if action.option_strings:
            self.options[field or action.dest] = action.option_strings[-1]
        return action

    def by_option(self, problem: str) -> str:
        """What the library says of a value, with the option that it was given by."""
        field = re.match(r"(\w+)(?=(\[[^\]]*\])?: )", problem)
        if field is None or field[1] not in self.options:
            return problem
        return self.options[field[1]] + problem[field.end() :]

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse's, which ignores that standard output cannot be written."""
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

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
            known = [str(choice) for choice in action.choices or ()]
            error.message += _core.did_you_mean(str(value), known)
            if isinstance(action, argparse._SubParsersAction):
                raise  # nothing else can be understood without the command
            self.problems.append(str(error))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options = list(self.commands.get(getattr(parsed, "command", ""), self)._option_string_actions)
            near = [_core.did_you_mean(word.split("=")[0], options) for word in unknown if word.startswith("--")]
            self.problems.append(f"unrecognized arguments: {' '.join(unknown)}{''.join(near[:1])}")
            lists = [option for option in options if self.commands.get(getattr(parsed, "command", ""), self)._option_string_actions[option].type is names]
            if lists and not any(word.startswith("-") for word in unknown):
                self.problems[-1] += f"; names stand with commas between them, like {lists[0]} a,b"
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


class Together(argparse.Action):
    """An option that may be given several times: lists, and numbers by name, are put together; anything else is told."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        before = getattr(namespace, self.dest)
        if isinstance(before, list) and isinstance(values, list):
            values = before + values
        elif isinstance(before, dict) and isinstance(values, dict):
            for name in sorted(before.keys() & values.keys()):
                self.tell(parser, f"{name!r} is given twice")
            values = {**before, **values}
        elif before is not None and BAD not in (before, values):
            self.tell(parser, "given twice, once for all together; expected that alone, or all by name")
        setattr(namespace, self.dest, values)

    def tell(self, parser: argparse.ArgumentParser, problem: str) -> None:
        assert isinstance(parser, Parser)
        parser.problems.append(str(argparse.ArgumentError(self, problem)))


class Known(list[str]):
    """Names among which the parser does not look for a value."""

    def __contains__(self, value: object) -> bool:
        return True


BAD = object()
"""Stands for a value that could not be understood; the parser ends after all have been looked at."""


def flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_const", const=True, help=text)


FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""How shells complete the names of files, in the words of shtab."""


def library_option(
    parser: Parser, function: str, field: str, text: str | None = None, also: tuple[str, ...] = (), name: str | None = None, **keywords: Any
) -> None:
    """An option that is a keyword of a function of the library, such as `consolidation.consolidate`.

    `name` is the option's where it is not the keyword's. `also` are other functions with the same keyword that the command calls.
    `given` finds the option under each of them.
    Type, choices and default are the library's; its help is what the library says of it, unless there is a `text`. Where the
    option is not given, the library applies its default.
    """
    for called in (function, *also):
        parser.fields.setdefault(called, []).append(field)
    keyword = next(k for k in _core.keywords[function] if k["name"] == field)
    kind = keyword["type"].removesuffix(" | None")
    told = text or first_sentence(keyword["text"])
    default = keyword["default"].strip("'")
    if kind == "bool":
        keywords.update(action="store_const", const=True)
    elif "default:" not in told:
        if default not in ("None", "[]"):
            told += f" (default: {default})"
        elif field.startswith("max_") or field == "time_limit":
            told += " (default: no limit)"
    if found := re.match(r"Literal(\[[^]]*\])", kind):
        keywords.setdefault("choices", ast.literal_eval(found[1]))
    elif kind in NUMBERS:
        keywords.setdefault("type", NUMBERS[kind][0])
        keywords.setdefault("metavar", NUMBERS[kind][1])
    parser.add_argument("--" + (name or field).replace("_", "-"), dest=field, help=told.replace("%", "%%"), **keywords)


NUMBERS: dict[str, tuple[type, str]] = {"int": (int, "N"), "float": (float, "X")}


def first_sentence(text: str) -> str:
    """Without what follows the first full stop or tells what an absent value means, and beginning with a small letter."""
    first = re.split(r"(?<!\.)\.(?:\s|$)|; (?:absent|none)\b", text, maxsplit=1)[0].replace("`", "")
    return first[:1].lower() + first[1:] if first[1:2].islower() or first[1:2] == " " else first
