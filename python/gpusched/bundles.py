"""Replay bundles: one file with a snapshot, the options of a call and the plan that it gave, so that others can run it again."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core, consolidation, preemption
from ._core import __version__
from ._documents import json_text
from .errors import BackendError, InvalidInput
from .io import anonymize as without_names
from .model import Cluster, Plan

__all__ = ["Replay", "replay", "save"]

FORMAT, VERSION = "gpusched.bundle", 1
KEYS = ("format", "version", "gpusched", "command", "options", "cluster", "plan")
SHOWN = 5
"""How many other moves, evictions and the like a difference lists."""


@dataclass(frozen=True)
class Replay:
    """What came of running a bundle again."""

    command: str
    """Of the console: consolidate or preempt."""
    saved_by: str
    """The version of the library that wrote the bundle."""
    saved: Plan | None
    found: Plan | None
    """None: no plan, as where no eviction helps."""
    differences: list[str]
    """What is another in the plan that was found now; empty = the plans are the same."""

    @property
    def same(self) -> bool:
        return not self.differences


def save(
    path: str | os.PathLike[str],
    command: str,
    cluster: Cluster,
    options: Mapping[str, Any],
    plan: Plan | None,
    *,
    anonymize: bool = False,
) -> None:
    """Writes a bundle.

    `command` is consolidate, whose options are the keywords of `gs.consolidate`; or preempt, with those of `gs.preempt` or
    `gs.preemption.preempt_gang` and the pending tasks in `pods`: a list of names, or the name of a job.

    With `anonymize` the snapshot and the options have no names that tell whose they are, and the plan is made again from
    these. Raises InvalidInput for options that are no JSON (functions of your own), BackendError where the file cannot be
    written.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    run = _runner(command)
    if anonymize:
        other = without_names(cluster)
        chosen = _renamed(chosen, cluster, other)
        cluster, plan = other, run(other, chosen)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "gpusched": __version__,
        "command": command,
        "options": chosen,
        "cluster": cluster.to_json(),
        "plan": None if plan is None else plan.to_json(),
    }
    text = json_text(document, os.fspath(path))
    try:
        with open(path, "wb") as file:
            file.write(text + b"\n")
    except OSError as error:
        raise BackendError(f"{os.fspath(path)}: cannot be written: {error.strerror}") from None


def replay(path: str | os.PathLike[str]) -> Replay:
    """Runs a bundle again and compares the plans.

    Raises InvalidInput for a file that is no bundle, and for options that this version does not know.
    """
    name = os.fspath(path)
    document = _core.read_mapping(name)
    if document.get("format") != FORMAT:
        raise InvalidInput(f"{name}: format: {document.get('format')!r}; expected {FORMAT!r}")
    if document.get("version") != VERSION:
        raise InvalidInput(f"{name}: version: {document.get('version')!r}; expected {VERSION}")
    problems = [f"{name}: field {key!r} is missing" for key in KEYS if key not in document]
    problems += [f"{name}: unknown field {key!r}" for key in document if key not in KEYS and not key.startswith("x-")]
    if not problems and not isinstance(document["options"], dict):
        problems.append(f"{name}: options: expected a mapping")
    if problems:
        raise InvalidInput(problems)
    run = _runner(document["command"])
    cluster = Cluster.from_json(document["cluster"])
    saved = None if document["plan"] is None else Plan.from_json(document["plan"])
    try:
        found = run(cluster, document["options"])
    except InvalidInput:
        raise
    except TypeError as error:  # a keyword that the call does not have
        raise InvalidInput(f"{name}: options: {error}") from None
    return Replay(document["command"], document["gpusched"], saved, found, _differences(saved, found))


def _consolidate(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    return consolidation.consolidate(cluster, **options)


def _preempt(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    keywords = {name: value for name, value in options.items() if name != "pods"}
    pods = options.get("pods")
    if not isinstance(pods, str) and not pods:
        raise InvalidInput("pods: expected names of pending tasks, or the name of a job")
    found: preemption.Decision | preemption.GangDecision | None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search that a limit ended is told by the plan
        if isinstance(pods, str) or len(pods) > 1:
            found = preemption.preempt_gang(cluster, pods, **keywords)
        else:
            found = preemption.preempt(cluster, pods[0], **keywords)
    return None if found is None else preemption.to_plan(found)


RUNNERS: dict[str, Callable[[Cluster, Mapping[str, Any]], Plan | None]] = {
    "consolidate": _consolidate,
    "preempt": _preempt,
}


def _runner(command: str) -> Callable[[Cluster, Mapping[str, Any]], Plan | None]:
    if command not in RUNNERS:
        raise InvalidInput(f"command: {command!r}; expected one of {', '.join(RUNNERS)}{_core.did_you_mean(str(command), list(RUNNERS))}")
    return RUNNERS[command]


def _renamed(options: Mapping[str, Any], before: Cluster, after: Cluster) -> dict[str, Any]:
    """The options with the names that `after` has for what `before` lists at the same place."""
    nodes = dict(zip(before.nodes.name, after.nodes.name, strict=True))
    tasks = dict(zip(before.tasks.name, after.tasks.name, strict=True))
    jobs = dict(zip(before.tasks.job, after.tasks.job, strict=True))
    out = dict(options)
    for field in ("clear", "exempt"):
        if out.get(field) is not None:
            out[field] = [nodes.get(name, name) for name in out[field]]
    if isinstance(out.get("pods"), str):
        out["pods"] = jobs.get(out["pods"], out["pods"])
    elif "pods" in out:
        out["pods"] = [tasks.get(name, name) for name in out["pods"]]
    return out


def _differences(saved: Plan | None, found: Plan | None) -> list[str]:
    if saved is None or found is None:
        if saved is found:
            return []
        return ["there was no plan, and is one now" if saved is None else "there was a plan, and is none now"]
    old, new = saved.to_json(), found.to_json()
    out = []
    for key in dict.fromkeys([*old, *new]):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        if isinstance(was, list) and isinstance(now, list):
            at = [i for i in range(max(len(was), len(now))) if was[i : i + 1] != now[i : i + 1]]
            shown = "; ".join(f"#{i} {_item(was, i)} -> {_item(now, i)}" for i in at[:SHOWN])
            out.append(f"{key}: {len(at)} of {len(was)} -> {len(now)} are others: {shown}{'; ...' if len(at) > SHOWN else ''}")
        elif isinstance(was, dict) and isinstance(now, dict):
            out += [f"{key}.{name}: {was.get(name)} -> {now.get(name)}" for name in dict.fromkeys([*was, *now]) if was.get(name) != now.get(name)]
        else:
            out.append(f"{key}: {was} -> {now}")
    return out


def _item(items: list[Any], at: int) -> str:
    return str(items[at]) if at < len(items) else "nothing"
