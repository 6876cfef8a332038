# SPDX-License-Identifier: Apache-2.0
"""What changed between two snapshots, plans or reading reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import _core
from .._core.io import ReadingReport
from .._core.model import Cluster, Plan
from ..errors import InvalidInput
from .tables import Table, counted

Document = Mapping[str, Any]

LISTS = {"nodes": "node", "tasks": "task", "jobs": "job", "budgets": "budget"}
"""The lists of a snapshot whose entries have names."""

SLURM = "Slurm job"
"""The kind of owner of jobs from Slurm, which says the numbers of their GPUs."""

PLAN_LISTS = {
    "vacated_nodes": "vacated node",
    "opened_nodes": "opened node",
    "evictions": "eviction",
}
"""The lists of a plan that hold names."""

OBJECTS_SHOWN = 20
"""Objects of each kind that the text shows."""


class Diff(Table):
    """The differences of two snapshots, plans or reports: a row per object or field that differs.

    Columns: `kind` (such as node, task, move), `name`, `change` (added, removed, changed), `field`, `before`
    and `after` (values of the documents, None = absent).
    """

    closed = "cordoned"  # the word for nodes that receive no tasks

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        kinds: dict[str, Any] = dict.fromkeys(("kind", "name", "change", "field"), "text")
        super().__init__({**kinds, "before": "any", "after": "any"}, rows)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return len(self) == 0

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of objects by kind and change."""
        found: dict[tuple[str, str], set[str]] = {}
        for row in self:
            found.setdefault((row.kind, row.change), set()).add(row.name)
        return {key: len(names) for key, names in found.items()}

    def __str__(self) -> str:
        if self.equal:
            return "no differences"
        nodes = [row for row in self if row.kind == "task" and row.field == "node"]
        counts = self.counts()
        if nodes:
            counts["task", "changed"] -= len(nodes)  # they are counted below
        parts = [
            f"{counted(count, kind)} {how}"
            for (kind, how), count in counts.items()
            if kind != "plan" and count
        ]
        for how, count in (
            ("moved", sum(None not in (row.before, row.after) for row in nodes)),
            ("started", sum(row.before is None for row in nodes)),
            ("stopped", sum(row.after is None for row in nodes)),
        ):
            parts += [f"{counted(count, 'task')} {how}"] * bool(count)
        lines = [", ".join(parts)] * bool(parts)
        for kind in dict.fromkeys(self.column("kind")):
            objects: dict[str, list[Any]] = {}
            for row in self:
                if row.kind == kind:
                    objects.setdefault(row.name, []).append(row)
            lines += [
                "  "
                + " ".join(filter(None, (kind, name)))
                + ": "
                + "; ".join(changes(kind, rows, self.closed))
                for name, rows in list(objects.items())[:OBJECTS_SHOWN]
            ]
            if len(objects) > OBJECTS_SHOWN:
                lines.append(f"  ... and {counted(len(objects) - OBJECTS_SHOWN, f'other {kind}')}")
        return "\n".join(lines)


STATES = {
    "node.kubernetes.io/unschedulable": ("cordoned", "uncordoned"),
    "node.kubernetes.io/not-ready": ("not ready", "ready again"),
    "node.kubernetes.io/unreachable": ("not ready", "ready again"),
}
"""Taints of Kubernetes that say what the state of a node is: the words if one comes, and if it goes."""


def changes(kind: str, rows: list[Any], closed: str) -> list[str]:
    """The changes of one object in words; fields that change together are one change."""
    fields = {row.field: row for row in rows}
    words: list[str] = []
    if kind == "task" and (row := fields.pop("x-terminating", None)):
        words.append("is being deleted" if row.after else "is no longer being deleted")
        fields.pop("locked", None)  # the readers lock it
    if kind == "node":
        row, opens = fields.pop("taints", None), fields.pop("schedulable", None)
        for taint, at in taint_changes(row) if row else ():
            state = STATES.get(taint["key"])
            text = f"taint {taint['key']}={taint['value']}:{taint['effect']} {('added', 'removed')[at]}"
            words.append(state[at] if state and state not in states_of((row.before, row.after)[at]) else text)
        if opens and not any(word in words for states in STATES.values() for word in states):
            words.append(OPENED[closed] if opens.after else closed)
    return [*dict.fromkeys(words), *map(change, fields.values())]


def states_of(taints: list[Document] | None) -> set[tuple[str, str]]:
    """The states that taints of a node say; several taints may say the same."""
    return {STATES[taint["key"]] for taint in taints or () if taint["key"] in STATES}


OPENED = {"cordoned": "uncordoned", "drained": "resumed"}


def taint_changes(row: Any) -> list[tuple[Document, int]]:
    """The taints that came (0) and went (1)."""
    before, after = row.before or [], row.after or []
    return [(one, 0) for one in after if one not in before] + [(one, 1) for one in before if one not in after]


def change(row: Any) -> str:
    if row.change != "changed":
        return str(row.change)
    before, after = row.before, row.after
    if isinstance(before, list) and isinstance(after, list):  # what they share would hide the difference
        before, after = ([one for one in a if one not in b] for a, b in ((before, after), (after, before)))
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = (before, after), (after, before)
        before, after = ({k: v for k, v in a.items() if k not in b or b[k] != v} for a, b in pairs)
    return f"{row.field.removeprefix('x-').replace('-', ' ')} {shown(before)} -> {shown(after)}"


def shown(value: Any) -> str:
    empty = value is None or value == {} or value == []
    text = "none" if empty else value if isinstance(value, str) else json.dumps(value)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= 60 else text[:57] + "..."


def diff(before: Cluster | Plan | Any, after: Cluster | Plan | Any) -> Diff:
    """Compares two snapshots, two plans or two reading reports: what was added, removed and changed.

    The order of entries, the time of a snapshot, the statistics and the price of a plan and the examples of a
    report do not count. For pods from Kubernetes, which does not say their GPUs, only their number does.

    Parameters
    ----------
    before, after
        two objects of the same kind: a Cluster, a Plan, the report of an import, a dict in the format of
        their documents, or the path of a file

    Raises
    ------
    InvalidInput
        if their kinds differ, or for mistakes in a document

    Complexity: O(n log n) for n entries of both.
    """
    (kind, old), (other, new) = read("before", before), read("after", after)
    if kind != other:
        raise InvalidInput(f"after: a {other}; expected a {kind} like before")
    found = Diff([*ROWS[kind](old, new)])
    if any(task.get("x-owner-kind") == SLURM for one in (old, new) for task in one.get("tasks", [])):
        found.closed = "drained"
    return found


def read(argument: str, source: Any) -> tuple[str, Document]:
    """The kind of a document, and its content, which is valid."""
    if isinstance(source, Cluster):
        return "snapshot", source.to_json()
    if isinstance(source, Plan):
        return "plan", source.to_json()
    if isinstance(source, ReadingReport):
        return "report", json.loads(source.to_json())
    if not isinstance(source, (Mapping, str, os.PathLike)):
        kind = type(source).__name__
        raise InvalidInput(f"{argument}: a {kind}; expected a Cluster, a Plan, a dict or the path of a file")
    document = source if isinstance(source, Mapping) else _core.read_mapping(os.fspath(source))
    if not isinstance(source, Mapping) and not os.path.isfile(source):
        source = document  # a pipe can be read only once
    if document.get("format") == "gpusched.plan":
        return "plan", Plan.from_json(source).to_json()
    if "format" not in document and "rows" in document:
        for key in ("rows", "absent"):
            entries = document.get(key, [])
            if not isinstance(entries, list) or not all(
                isinstance(e, Mapping) and "kind" in e for e in entries
            ):
                raise InvalidInput(f"{argument}: {key}: expected the {key} of a reading report")
        return "report", document
    return "snapshot", Cluster.from_json(source).to_json()


def cluster_rows(old: Document, new: Document) -> Iterator[tuple[Any, ...]]:
    for key, kind in LISTS.items():
        before, after = ({entry["name"]: entry for entry in one.get(key, [])} for one in (old, new))
        for row in object_rows(kind, before, after):
            if not (kind == "task" and row[3] == "gpus" and are_assigned(before[row[1]], after[row[1]])):
                yield row
    if old.get("label_levels", []) != new.get("label_levels", []):
        yield "snapshot", "", "changed", "label_levels", old.get("label_levels"), new.get("label_levels")


def are_assigned(before: Document, after: Document) -> bool:
    """Whether the reader has chosen the numbers of a pod's GPUs: Kubernetes does not say them."""
    counts = len(before.get("gpus", [])), len(after.get("gpus", []))
    return counts[0] == counts[1] and after.get("x-owner-kind", SLURM) != SLURM


def plan_rows(old: Document, new: Document) -> Iterator[tuple[Any, ...]]:
    for field in ("goal", "goal_reached", "cost"):
        if old.get(field) != new.get(field):
            yield "plan", "", "changed", field, old.get(field), new.get(field)
    for key, kind in PLAN_LISTS.items():
        yield from object_rows(kind, *({name: {} for name in one.get(key, [])} for one in (old, new)))
    for key, kind in (("moves", "move"), ("placements", "placement")):
        yield from object_rows(
            kind, *({step_name(step): step for step in numbered(one, key)} for one in (old, new))
        )


def report_rows(old: Document, new: Document) -> Iterator[tuple[Any, ...]]:
    def by_name(report: Document) -> dict[str, Document]:
        rows = {f"{row['kind']}, {row.get('what')}": {**row, "examples": None} for row in report["rows"]}
        absent = {f"{row['kind']}, not in the input": row for row in report.get("absent", [])}
        return {**rows, **absent}

    yield from object_rows("row", by_name(old), by_name(new))


ROWS: dict[str, Callable[[Document, Document], Iterator[tuple[Any, ...]]]] = {
    "snapshot": cluster_rows,
    "plan": plan_rows,
    "report": report_rows,
}


def numbered(document: Document, key: str) -> Iterator[dict[str, Any]]:
    """The steps of a plan, each with its number among the steps of its task."""
    seen: dict[str, int] = {}
    for step in document.get(key, []):
        seen[step["task"]] = seen.get(step["task"], 0) + 1
        yield {**step, "number": seen[step["task"]]}


def step_name(step: Document) -> str:
    return step["task"] if step["number"] == 1 else f"{step['task']} (step {step['number']})"


def object_rows(
    kind: str, old: Mapping[str, Document], new: Mapping[str, Document]
) -> Iterator[tuple[Any, ...]]:
    """The differences of objects by name, in the order of their names."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield kind, name, "removed", None, None, None
        elif name not in old:
            yield kind, name, "added", None, None, None
        else:
            before, after = old[name], new[name]
            for field in dict.fromkeys([*before, *after]):
                if before.get(field) != after.get(field):
                    yield kind, name, "changed", field, before.get(field), after.get(field)


Diff.__module__ = diff.__module__ = "gpusched.model"
