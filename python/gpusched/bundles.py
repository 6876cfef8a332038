# SPDX-License-Identifier: Apache-2.0
"""Replay bundles: files with a snapshot, the options of a call and its plan, so that others can repeat it."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core, admission, allocation, consolidation, preemption
from ._core import __version__
from .errors import InvalidInput, InvalidType, explained, repr_text
from .io import anonymize as without_names
from .model import Cluster, Plan

__all__ = ["Replay", "replay", "save"]

FORMAT, VERSION = "gpusched.bundle", 1
KEYS = ("format", "version", "gpusched", "command", "options", "cluster", "plan")
PODS = "names of pending tasks, one task as in a cluster, or the name of a job"
JOB = "the name of a job, a job as a mapping, or names of pending tasks"
JOBS = "a list of names of jobs and of jobs as mappings"
INFINITE = "inf"
"""Represents an infinite number in a file, because JSON has none."""
SHOWN = 5
"""Number of differing items (moves, evictions, ...) that a difference lists."""


@dataclass(frozen=True)
class Replay:
    """The result of running a bundle again."""

    command: str
    """A command of the console: admit, allocate, consolidate or preempt."""
    saved_by: str
    """The version of the library that wrote the bundle."""
    saved: Plan | None
    found: Plan | None
    """The new plan; None if there is no plan, for example because no eviction helps."""
    differences: list[str]
    """Differences of the new plan from the saved plan; empty if they are equal."""

    @property
    def same(self) -> bool:
        """True if the new plan equals the saved plan."""
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

    The options depend on the command:

    - consolidate: the keywords of `gs.consolidate`
    - preempt: the keywords of `gs.preempt` or `gs.preemption.preempt_gang`, and the pending tasks in `pods`:
    a list of
      names, a list with one task as in the cluster format, or the name of a job
    - admit: the keywords of `gs.admit`, and `job`
    - allocate: `jobs`, a list, and the keywords of `gs.allocate` (one job) or `gs.allocate_many` (several
    jobs)

    Infinite options are written as "inf". With `anonymize`, names in the snapshot and in the options are
    replaced, and the plan is computed again.

    Raises InvalidInput for options without a JSON form (such as functions), BackendError if the file cannot
    be written.
    """
    name = _path(path)
    chosen = {key: value for key, value in options.items() if value is not None}
    run = _runner(command)
    if command in SUBJECTS:
        SUBJECTS[command](chosen)
    _core.json_text({"options": _as_written(chosen)}, name)  # reports bad options before any work
    if anonymize:
        cluster, chosen = _without_names(cluster, chosen)
        plan = run(cluster, chosen)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "gpusched": __version__,
        "command": command,
        "options": _as_written(chosen),
        "cluster": cluster.to_json(),
        "plan": None if plan is None else plan.to_json(),
    }
    text = _core.json_text(document, name)
    with explained(name), open(name, "w", encoding="utf-8", newline="\n") as file:
        file.write(text + "\n")


def replay(path: str | os.PathLike[str]) -> Replay:
    """Runs a bundle again and compares the plans. Opens no other file.

    Raises InvalidInput, with file and field, for files that are not bundles and for options that this version
    does not know. Raises BackendError if the file cannot be read.
    """
    name = _path(path)
    document = _core.read_mapping(name)
    if document.get("format") != FORMAT:
        raise InvalidInput(f"{name}: format: {repr_text(document.get('format'))}; expected {FORMAT!r}")
    found_version = document.get("version")
    if type(found_version) is not int or found_version != VERSION:
        raise InvalidInput(f"{name}: version: {repr_text(found_version)}; expected {VERSION}")
    problems = [f"{name}: field {key!r} is missing" for key in KEYS if key not in document]
    problems += [
        f"{name}: unknown field {key!r}; expected {', '.join(KEYS)}{_core.did_you_mean(key, KEYS)}"
        for key in document
        if key not in KEYS and not key.startswith("x-")
    ]
    problems += [
        f"{name}: {key}: {repr_text(document[key])}; expected {expected}"
        for key, (kinds, expected) in KINDS.items()
        if key in document and not isinstance(document[key], kinds)
    ]
    if problems:
        raise InvalidInput(problems)
    command: str = document["command"]
    with _error_source(name):
        run = _runner(command)
    with _error_source(f"{name}: cluster"):
        cluster = Cluster.from_json(document["cluster"])
    with _error_source(f"{name}: plan"):
        saved = None if document["plan"] is None else Plan.from_json(document["plan"])
    with _error_source(f"{name}: options"):
        found = run(cluster, _as_read(document["options"], command))
    return Replay(command, document["gpusched"], saved, found, _differences(saved, found))


KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "gpusched": ((str,), "the version that wrote the bundle, a string"),
    "command": ((str,), "a string"),
    "options": ((dict,), "a mapping"),
    "cluster": ((dict,), "a mapping"),
    "plan": ((dict, type(None)), "a mapping, or null if there was no plan"),
}


@contextlib.contextmanager
def _error_source(source: str) -> Iterator[None]:
    """Lets errors name the bundle and the field instead of the dict that was read from it."""
    try:
        yield
    except InvalidInput as error:
        problems = [f"{source}: {problem.removeprefix('<dict>: ')}" for problem in error.problems]
        raise InvalidInput(problems) from None
    except TypeError as error:  # an unknown keyword
        raise InvalidInput(f"{source}: {error}") from None


def _path(path: object) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidType(f"path: {repr_text(path)}; expected the path of a file")
    return os.fsdecode(path)


def _as_written(options: Mapping[str, Any]) -> dict[str, Any]:
    infinite = {name for name, value in options.items() if isinstance(value, float) and value == math.inf}
    return {name: INFINITE if name in infinite else value for name, value in options.items()}


def _as_read(options: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The inverse of `_as_written`.

    Only options of type float are converted, because a job may be called "inf".
    """
    keywords = (keyword for call in CALLS[command] for keyword in _core.keywords[call])
    numbers = {keyword["name"] for keyword in keywords if "float" in keyword["type"].split(" | ")}
    return {
        name: math.inf if name in numbers and value == INFINITE else value for name, value in options.items()
    }


CALLS: dict[str, tuple[str, ...]] = {
    "consolidate": ("consolidation.consolidate",),
    "preempt": ("preemption.preempt", "preemption.preempt_gang"),
    "admit": ("admission.admit",),
    "allocate": ("allocation.allocate", "allocation.allocate_many"),
}
"""Functions of the library, by command."""


def _consolidate(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    return consolidation.consolidate(cluster, **options)


def _preempt(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    keywords = {name: value for name, value in options.items() if name != "pods"}
    pods = _pods(options)
    found: preemption.Decision | preemption.GangDecision | None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plan also says that a limit ended the search
        if isinstance(pods, str) or len(pods) > 1:
            found = preemption.preempt_gang(cluster, pods, **keywords)
        else:
            found = preemption.preempt(cluster, pods[0], **keywords)
    return None if found is None else preemption.to_plan(found)


def _admit(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    keywords = {name: value for name, value in options.items() if name != "job"}
    made = admission.admit(cluster, _job(options), **keywords)
    return made.plan if made.admitted else None


def _allocate(cluster: Cluster, options: Mapping[str, Any]) -> Plan | None:
    keywords = {name: value for name, value in options.items() if name != "jobs"}
    jobs = _jobs(options)
    if len(jobs) == 1:
        found = [allocation.allocate(cluster, jobs[0], **keywords)]
    else:
        many = allocation.allocate_many(cluster, jobs, **keywords)
        found = [many.jobs[j] for j in many.order]
    return allocation.to_plan(*found) if any(a.placed for a in found) else None


def _names(value: Any) -> bool:
    """Whether the value is a list of at least one name."""
    return (
        isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(name, str) for name in value)
    )


def _option(options: Mapping[str, Any], name: str, expected: str, good: Callable[[Any], bool]) -> Any:
    """The value of a required option. Raises InvalidInput if it is missing or `good` returns False."""
    if name not in options:
        raise InvalidInput(f"{name}: missing; expected {expected}")
    if not good(options[name]):
        raise InvalidInput(f"{name}: {repr_text(options[name])}; expected {expected}")
    return options[name]


def _job(options: Mapping[str, Any]) -> Any:
    """The job to admit."""
    return _option(options, "job", JOB, lambda job: isinstance(job, (str, dict)) or _names(job))


def _jobs(options: Mapping[str, Any]) -> Any:
    """The jobs to place."""

    def good(jobs: Any) -> bool:
        return (
            isinstance(jobs, (list, tuple))
            and len(jobs) > 0
            and all(isinstance(job, (str, dict)) for job in jobs)
        )

    return _option(options, "jobs", JOBS, good)


def _pods(options: Mapping[str, Any]) -> Any:
    """The pending pods: the name of a job, or a list."""

    def good(pods: Any) -> bool:
        one_task = isinstance(pods, (list, tuple)) and len(pods) == 1 and isinstance(pods[0], Mapping)
        return isinstance(pods, str) or one_task or _names(pods)

    return _option(options, "pods", PODS, good)


RUNNERS: dict[str, Callable[[Cluster, Mapping[str, Any]], Plan | None]] = {
    "consolidate": _consolidate,
    "preempt": _preempt,
    "admit": _admit,
    "allocate": _allocate,
}
SUBJECTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {"preempt": _pods, "admit": _job, "allocate": _jobs}
"""By command: reads the pods or jobs that the call is about from the options."""


def _runner(command: str) -> Callable[[Cluster, Mapping[str, Any]], Plan | None]:
    if not isinstance(command, str):
        raise InvalidType(f"command: {repr_text(command)}; expected a string")
    if command not in RUNNERS:
        near = _core.did_you_mean(command, list(RUNNERS))
        raise InvalidInput(f"command: {command!r}; expected one of {', '.join(RUNNERS)}{near}")
    return RUNNERS[command]


def _without_names(cluster: Cluster, options: Mapping[str, Any]) -> tuple[Cluster, dict[str, Any]]:
    """Replaces all names in the cluster and in the options, consistently."""
    pods = options.get("pods")
    if isinstance(pods, (list, tuple)) and isinstance(pods[0], Mapping):
        # The task joins the snapshot while names are replaced, so that its labels, groups and job are
        # replaced, too.
        document = cluster.to_json()
        document["tasks"].append(dict(pods[0]))
        try:
            whole = Cluster.from_json(document)
        except InvalidInput as error:
            at = f"<dict>: /tasks/{len(document['tasks']) - 1}"
            problems = [p.replace(f"{at}: ", "pods: ").replace(f"{at}/", "pods: /") for p in error.problems]
            raise InvalidInput(problems) from None
        after = without_names(whole)
        document = after.to_json()
        task = document["tasks"].pop()
        out = {**_renamed(options, whole, after), "pods": [task]}
        return Cluster.from_json(document), out
    described = [job for job in (options.get("job"), *options.get("jobs", [])) if isinstance(job, dict)]
    if described:
        return _without_names_of_jobs(cluster, options, described)
    after = without_names(cluster)
    return after, _renamed(options, cluster, after)


def _without_names_of_jobs(
    cluster: Cluster, options: Mapping[str, Any], described: list[dict[str, Any]]
) -> tuple[Cluster, dict[str, Any]]:
    """The same for options with jobs as mappings. Their pods join the snapshot while names are replaced."""
    whole = allocation.with_job(cluster, *described)
    after = without_names(whole)
    document = after.to_json()
    count = len(cluster.tasks.name)
    pods = document["tasks"][count:]
    document["tasks"] = document["tasks"][:count]
    listed = {job["name"]: job for job in document.get("jobs", [])}
    jobs = []
    for job in described:
        groups = []
        name = pods[0]["job"]
        for group in job["pods"]:
            numbers = {key: value for key, value in group.items() if isinstance(value, (int, float))}
            groups.append({**numbers, **{key: pods[0][key] for key in group if key in pods[0]}})
            del pods[: group.get("count", 1)]
        roles = {"subgroups": listed[name].get("subgroups", [])} if "subgroups" in job else {}
        jobs.append({**job, "name": name, "pods": groups, **roles})
    new = {job["name"] for job in jobs}
    document["jobs"] = [job for job in document.get("jobs", []) if job["name"] not in new]
    out = _renamed({key: value for key, value in options.items() if key not in ("job", "jobs")}, whole, after)
    if "job" in options:
        out["job"] = jobs[0]
    else:
        new_jobs = iter(jobs)
        by_name: dict[Any, Any] = {
            **dict(zip(whole.tasks.name, after.tasks.name, strict=True)),
            **dict(zip(whole.tasks.job, after.tasks.job, strict=True)),
        }
        out["jobs"] = [
            by_name.get(job, job) if isinstance(job, str) else next(new_jobs) for job in options["jobs"]
        ]
    return Cluster.from_json(document), out


def _renamed(options: Mapping[str, Any], before: Cluster, after: Cluster) -> dict[str, Any]:
    """The options with the names of `before` replaced by the names that `after` has at the same positions.

    A text that names both a job and a task stands for the job.
    """
    nodes: dict[Any, Any] = dict(zip(before.nodes.name, after.nodes.name, strict=True))
    tasks: dict[Any, Any] = dict(zip(before.tasks.name, after.tasks.name, strict=True))
    jobs: dict[Any, Any] = dict(zip(before.tasks.job, after.tasks.job, strict=True))
    out = dict(options)
    of_tasks = {"spare": tasks, "pods": tasks, "job": tasks, "jobs": {**tasks, **jobs}}
    lists: dict[str, dict[Any, Any]] = {"clear": nodes, "exempt": nodes, **of_tasks}
    for field, known in lists.items():
        names = out.get(field)
        if isinstance(names, str) and field in ("pods", "job"):
            out[field] = {**tasks, **jobs}.get(names, names)
        elif isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            out[field] = [known.get(name, name) for name in names]
    if "quotas" in out:
        pairs = zip(before.tasks, after.tasks, strict=True)
        groups = {old: new for b, a in pairs for old, new in zip(b.groups, a.groups, strict=True)}
        out["quotas"] = [
            {**quota, "tenant": groups.get(quota["tenant"], f"tenant-{at} without a task")}
            for at, quota in enumerate(out["quotas"])
        ]
    goal = out.get("goal")
    if isinstance(goal, Mapping) and "usable_by" in goal:
        out["goal"] = {**goal, "usable_by": {**jobs, **tasks}.get(goal["usable_by"], goal["usable_by"])}
    return out


def _differences(saved: Plan | None, found: Plan | None) -> list[str]:
    if saved is None or found is None:
        if saved is found:
            return []
        return ["saved: no plan; now: a plan" if saved is None else "saved: a plan; now: no plan"]
    old, new = saved.to_json(), found.to_json()
    out = []
    for key in dict.fromkeys([*old, *new]):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        if isinstance(was, list) and isinstance(now, list):
            at = [i for i in range(max(len(was), len(now))) if was[i : i + 1] != now[i : i + 1]]
            shown = "; ".join(f"#{i} {_item(was, i)} -> {_item(now, i)}" for i in at[:SHOWN])
            more = "; ..." if len(at) > SHOWN else ""
            out.append(f"{key}: {len(at)} differ ({len(was)} saved, {len(now)} now): {shown}{more}")
        elif isinstance(was, dict) and isinstance(now, dict):
            changed = [name for name in dict.fromkeys([*was, *now]) if was.get(name) != now.get(name)]
            out += [f"{key}.{name}: {was.get(name)} -> {now.get(name)}" for name in changed]
        else:
            out.append(f"{key}: {was} -> {now}")
    return out


def _item(items: list[Any], at: int) -> str:
    return str(items[at]) if at < len(items) else "nothing"
