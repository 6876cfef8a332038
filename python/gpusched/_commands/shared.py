# SPDX-License-Identifier: Apache-2.0
"""Helpers of all commands: exit codes, given options, reading and writing of files."""

from __future__ import annotations

import argparse
import contextlib
import errno
import fnmatch
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._views.summary import is_not_ready
from .._views.tables import counted
from ..errors import BackendError, InvalidInput, explained, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..model import Cluster, Plan

OK, FAILED, BAD_INPUT, UNKNOWN_STATE, NO_ROOM_NEEDED, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 3, 4, 130, 141


def given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The given options as keywords. The library applies the defaults of all others.

    A name with a dot is a function of the library; it stands for all options of this function that the
    command has.
    """
    fields = [field for name in names for field in (args.fields[name] if "." in name else (name,))]
    return {field: value for field in fields if (value := getattr(args, field)) is not None}


def refuse(options: Iterable[str], of: str) -> None:
    """Raises InvalidInput for options that a command would ignore.

    Names are those of the parser's namespace.
    """
    if wrong := [f"--{name.replace('_', '-')}: not an option of {of}" for name in sorted(options)]:
        raise InvalidInput(wrong)


class Problems:
    """Collects the mistakes that several functions find in the options of one call."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        try:
            yield
        except InvalidInput as error:
            self.found += [problem for problem in error.problems if problem not in self.found]

    def raise_if_any(self) -> None:
        if self.found:
            raise InvalidInput(self.found)


def require_writable(*paths: str | None, inputs: Iterable[str | None] = ()) -> None:
    """Raises BackendError unless these files can be written, so that no work is lost.

    Raises InvalidInput for a file that is also read or written twice, because its content would be lost.
    """
    taken = [(path, "read") for path in inputs if path is not None]
    for path in paths:
        if path is None:
            continue
        for other, how in taken:
            if same_file(path, other):
                raise InvalidInput(
                    f"{path}: is also {how} by this command; expected another file to write to"
                )
        taken.append((path, "written"))
    for path in paths:
        if path is None:
            continue
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                if os.path.isdir(path):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                continue  # a pipe or a device: opening it may block or have effects
            target = os.path.realpath(path)  # the file that is removed below must not be a link
            new = not os.path.exists(target)
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o666))
            if new:
                os.unlink(target)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BackendError(f"{path}: cannot be written: {reason}") from None


def same_file(path: str, other: str) -> bool:
    """Whether both are the same regular file. A terminal may be both input and output."""
    try:
        if os.path.exists(path) and os.path.exists(other):
            return os.path.isfile(path) and os.path.samefile(path, other)
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):
        return False


def say(text: str = "") -> None:
    print(text)


def read_mapping(path: str) -> dict[str, Any]:
    """Reads a JSON or YAML file with a mapping, with the library's readers."""
    return _core.read_mapping(path)


def write_json(path: str, document: dict[str, Any]) -> None:
    with explained(path), open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def save_figure(path: str, draw: Callable[[], Axes]) -> None:
    try:
        import matplotlib
        from matplotlib import pyplot
    except ImportError:
        raise BackendError("figures need matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    try:
        figure: Any = draw().figure
        figure.savefig(path, dpi=200, bbox_inches="tight")
        pyplot.close(figure)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise BackendError(f"{path}: cannot be written: {error}") from None
    say(f"wrote {path}")


def matching(option: str, patterns: Sequence[str], names: Sequence[str], noun: str = "name") -> list[str]:
    """The names that match the patterns of an option; `noun` says what they are names of.

    * matches any characters; a pattern without * is a name.
    """
    matched: dict[str, None] = {}
    problems = []
    for pattern in patterns:
        found = fnmatch.filter(names, pattern.replace("[", "[[]")) if "*" in pattern else [pattern]
        if not found:
            problems.append(f"--{option}: {repr_text(pattern)} matches no {noun}")
        matched |= dict.fromkeys(found)
    if problems:
        raise InvalidInput(problems)
    return list(matched)


def is_slurm(cluster: Cluster) -> bool:
    return cluster._words["owner"] == "job"


def slurm_name(cluster: Cluster, name: str) -> str:
    """The job or task of the snapshot for a name that Slurm writes: its first pending task for an array, such
    as 20 or 20_[3-7%2], and its job for a component, such as 30+1. Other names stay.
    """
    tasks = cluster.tasks
    if name in tasks.name or name in tasks.job:
        return name
    if "+" in name:
        found = (job for job, task in zip(tasks.job, tasks.name) if task.rpartition("/")[0] == name)
    else:
        array = name.partition("_[")[0]
        pending = [job for job, node in zip(tasks.job, tasks.node_index.tolist()) if job and node < 0]
        found = (job for job in pending if array.isdecimal() and job.rpartition("_")[0] == array)
    return next(found, name)


PATTERNS = "names separated by commas; * stands for any characters, as in 'h100-*'"


@contextlib.contextmanager
def expanded_patterns(cluster: Cluster, options: dict[str, Any]) -> Iterator[None]:
    """Replaces the patterns in options by the names of nodes, for the calls in its block.

    If such a call rejects nodes of one pattern for one reason, a single message names the pattern.
    """
    pattern_of: dict[tuple[str, str], str] = {}
    for option in ("nodes", "clear", "exempt", "remove", "uncordon"):
        if option in options:
            patterns, allowed, noun = options[option], cluster.nodes.name, "name"
            if option == "uncordon":  # a pattern means the nodes that can be uncordoned
                cordoned = ~cluster.nodes.schedulable & ~is_not_ready(cluster)
                allowed, noun = (
                    [allowed[at] for at in np.flatnonzero(cordoned)],
                    f"{cluster._words['closed']} node",
                )
            options[option] = matching(option, patterns, allowed, noun)
            for pattern in patterns:
                for name in matching(option, [pattern], options[option]) if "*" in pattern else []:
                    pattern_of[option, repr_text(name)] = pattern
    try:
        yield
    except InvalidInput as error:
        problems: list[str] = []
        rejected: dict[tuple[str, str, str], list[str]] = {}
        for problem in error.problems:
            option, _, rest = problem.partition(": ")
            name, _, reason = rest.partition("; ")
            if pattern := pattern_of.get((option, name)):
                rejected.setdefault((option, pattern, reason), []).append(name)
            else:
                problems.append(problem)
        for (option, pattern, reason), nodes in rejected.items():
            such = f"{counted(len(nodes), 'node')} of {repr_text(pattern)}, such as {nodes[0]}"
            problems.append(f"{option}: {such}; {reason}")
        raise InvalidInput(problems) from None


def save(path: str | None, document: Cluster | Plan | None) -> None:
    """Writes a snapshot or a plan if there is one, and a file for it."""
    if path is not None and document is not None:
        document.to_json(path)
        say(f"wrote {path}")


def write_text(path: str | None, text: str) -> None:
    """Writes to a file, or to standard output if the path is None."""
    if path is None:
        print(text, end="")
        return
    with explained(path), open(path, "w", encoding="utf-8") as file:
        file.write(text)
    say(f"wrote {path}")
