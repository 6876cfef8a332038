# SPDX-License-Identifier: Apache-2.0
"""A plan as one page for its approval: self-contained HTML, readable in light, dark and print."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import TYPE_CHECKING, Any

from .. import _core, verify
from .._core.model import Cluster, Plan, apply
from ..errors import InvalidInput, explained
from .compare import read
from .risks import risk_texts
from .tables import counted, format_value, listed, rounded

if TYPE_CHECKING:
    from ..io import ReadingReport
    from ..model import Task

STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --soft: #5b6775; --line: #d8dee6; --paper: #ffffff;
  --panel: #f4f6f9; --good: #12734a; --bad: #a4281d; --used: #3c6fb4; --free: #c9d3df; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --soft: #9aa7b5; --line: #35404d;
  --paper: #12171d; --panel: #1b222b; --good: #5fc795; --bad: #f08a7d; --used: #6ea3ea; --free: #3a4653; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 66rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; text-wrap: balance; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.2rem 0 0; padding: 0; list-style: none; }
.tiles li { flex: 1 1 8rem; background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .9rem; } .tiles b { display: block; font-size: 1.5rem; line-height: 1.3; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; } td.n, th.n { text-align: right; padding-right: 1.6rem; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 11rem; }
tr.total td { font-weight: 600; border-bottom: 0; }
.gpus { white-space: nowrap; letter-spacing: 0; }
.gpus i { display: inline-block; width: .5rem; height: .8rem; margin-right: 2px; border-radius: 1px;
  background: var(--free); } .gpus i.u { background: var(--used); }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem;
  overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  font: .88em/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
li { margin: .25rem 0; }
@page { size: A4; margin: 16mm 14mm; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --panel: #fff;
    --good: #0b5d3a; --bad: #8a1c12; --used: #444; --free: #ddd; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, section > p { break-after: avoid; } h2 { margin-top: 1.4rem; }
  p, tr, .tiles, li { break-inside: avoid; }
  table { font-size: 8pt; line-height: 1.25; } th, td { padding: .1rem .6rem .1rem 0; }
  td.n, th.n { padding-right: 1rem; } .gpus i { width: .35rem; height: .6rem; margin-right: 1px; }
  thead { display: table-header-group; } .wide { overflow: visible; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

LONG = 20
"""Texts with more characters may be broken anywhere."""
BLOCKS = 16
"""Nodes with at most this number of GPUs get a block per GPU."""


def plan_page(
    plan: Plan | Any,
    cluster: Cluster | Any,
    path: str | os.PathLike[str] | None = None,
    report: ReadingReport | Any = None,
) -> str:
    """Makes one page for the approval of a plan, in HTML.

    It says what the plan is for, what it frees and disturbs, what happens in each wave, how each node looks
    before and after, which risks there are, and the commands to check and execute it. The page needs no
    other file and no network, and it prints on A4.

    Parameters
    ----------
    plan
        a Plan, a dict or the path of a file
    cluster
        the snapshot of the plan: a Cluster, a dict or the path of a file
    path
        the file to write; None = only return the text
    report
        the reading report of the snapshot, a dict or the path of a file: the page then names the pods with
        requests for GPUs that the snapshot lacks, on nodes that receive pods; None = unknown

    Returns
    -------
    the page

    Raises
    ------
    InvalidInput
        if the plan cannot be executed on the snapshot
    BackendError
        if a file cannot be read or written

    Complexity: O(nodes + tasks) for the state after the plan, and O(steps log steps).
    """
    names = [
        os.path.basename(os.fspath(x)) if isinstance(x, (str, os.PathLike)) else None for x in (plan, cluster)
    ]
    snapshot = cluster if isinstance(cluster, Cluster) else Cluster.from_json(cluster)
    made = plan if isinstance(plan, Plan) else Plan.from_json(plan)
    text = Page(
        made.described(snapshot),
        snapshot,
        names[0] or "plan.json",
        names[1] or "cluster.json",
        None if report is None else read_report(report),
    ).html()
    if path is not None:
        with explained(path), open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def read_report(report: Any) -> Mapping[str, Any]:
    kind, document = read("report", report)
    if kind != "report":
        raise InvalidInput(f"report: a {kind}; expected a reading report")
    for row in document["rows"]:
        examples = row.get("examples", [])
        if (
            not isinstance(row.get("what", ""), str)
            or (row.get("errs") and not ("what" in row and isinstance(row.get("count"), int)))
            or not (isinstance(examples, list) and all(isinstance(one, str) for one in examples))
        ):
            raise InvalidInput("report: rows: expected the rows of a reading report")
    return document


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], total: Sequence[Any] = ()) -> str:
    """A table. Columns with only numbers are aligned to the right; cells that are `Raw` are HTML."""
    rows = list(rows)
    if not rows:
        return ""
    right = [all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(columns))]

    def cell(tag: str, value: Any, is_right: bool) -> str:
        text = value.html if isinstance(value, Raw) else escape(format_value(value))
        kind = (
            " class=n"
            if is_right
            else " class=long"
            if tag == "td" and len(format_value(value)) > LONG
            else ""
        )
        return f"<{tag}{kind}>{text}</{tag}>"

    def cells(tag: str, values: Sequence[Any]) -> str:
        return "".join(cell(tag, value, is_right) for value, is_right in zip(values, right))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    if total:
        body += f"<tr class=total>{cells('td', total)}</tr>"
    head = f"<thead><tr>{cells('th', columns)}</tr></thead>"
    return f"<div class=wide><table>{head}<tbody>{body}</tbody></table></div>"


class Raw:
    """A cell that is HTML already."""

    def __init__(self, html: str) -> None:
        self.html = html

    def __str__(self) -> str:
        return ""


def items(texts: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


PARTICIPLES = {"copy": "copied", "restart": "restarted", "evict": "evicted"}


class Page:
    """The parts of the page."""

    def __init__(
        self,
        plan: Plan,
        cluster: Cluster,
        plan_file: str,
        cluster_file: str,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan, self.before = plan, cluster
        self.after = apply(cluster, plan)
        self.files = plan_file, cluster_file
        self.report = report
        self.facts, self.how = plan._tasks, plan._treatments
        self.task, self.owner_word = cluster._words["task"], cluster._words["owner"]
        self.disturbed = [task for task, how in self.how.items() if how != "start"]
        self.node = {name: at for at, name in enumerate(cluster.nodes.name)}
        self.leaving: dict[str, list[str]] = {}
        for task in self.disturbed:
            self.leaving.setdefault(cluster.tasks[task].node or "", []).append(task)

    def html(self) -> str:
        title = self.title()
        sections = [
            ("Goal", self.goal()),
            ("What becomes free", self.freed()),
            ("What is disturbed", self.disturbance()),
            ("Waves", self.waves()),
            (f"{self.task.capitalize()}s that start", self.starts()),
            ("Nodes before and after", self.nodes()),
            ("Risks", items(self.risks())),
            ("Commands", f"<pre>{escape(self.commands())}</pre>"),
        ]
        body = "".join(f"<section><h2>{name}</h2>{text}</section>" for name, text in sections if text)
        now = datetime.fromtimestamp(self.before.now, timezone.utc) if self.before.now > 0 else None
        taken = f"snapshot of {now:%Y-%m-%d %H:%M} UTC, " if now else ""
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
            f"<body><header><h1>{escape(title)}</h1>"
            f'<p class="soft">{escape(taken)}{escape(self.size())}; gpusched {escape(_core.__version__)}</p>'
            f"{self.tiles()}</header>{body}</body></html>\n"
        )

    def size(self) -> str:
        nodes = self.before.nodes
        return f"{counted(len(nodes), 'node')} with {counted(nodes.gpu_count.sum(), 'GPU')}"

    def title(self) -> str:
        plan = self.plan
        if plan.goal is not None:
            return f"Plan for {self.goal_text()}"
        if plan.placements and not plan.vacated_nodes:
            return f"Plan to start {self.started(self.task)}"
        return f"Plan to free {counted(len(plan.vacated_nodes), 'node')}"

    def started(self, noun: str) -> str:
        """The pods that start, and their jobs."""
        tasks = [task for task, how in self.how.items() if how == "start"]
        jobs = [self.facts[task][2] for task in tasks]
        joint = " of " if all(jobs) else ": "
        names = dict.fromkeys(job or task for job, task in zip(jobs, tasks))
        return counted(len(tasks), noun) + joint + listed(names)

    def goal_text(self) -> str:
        goal = self.plan.goal or {}
        model = f" of {goal['gpu_model']}" if goal.get("gpu_model") else ""
        usable = f" usable by {goal['usable_by']}" if goal.get("usable_by") else ""
        if "empty_nodes" in goal:
            return f"{counted(goal['empty_nodes'], 'empty node')}{model}{usable}"
        slots = goal.get("slots", {})
        parts = [
            counted(slots["gpu_count"], "GPU") if slots.get("gpu_count") else "",
            counted(slots["cpu_milli"] / 1000, "core") if slots.get("cpu_milli") else "",
            f"{rounded(slots['memory_mib'] / 1024):g} GiB" if slots.get("memory_mib") else "",
        ]
        return f"{counted(goal.get('count', 1), 'slot')} of {', '.join(filter(None, parts))}{model}{usable}"

    def tiles(self) -> str:
        d, gpus = self.plan.disturbs, self.gpus_of(self.plan.vacated_nodes)
        starts = sum(how == "start" for how in self.how.values())
        tiles = [
            (len(self.plan.vacated_nodes), "node", "freed"),
            (gpus, "GPU", "freed"),
            (starts, f"pending {self.task}", "started"),
            (d.pods, f"running {self.task}", "disturbed"),
            (len(self.plan.moves), "move", ""),
            (self.plan.waves, "wave", ""),
        ]
        shown = [
            f"<li><b>{count:,}</b>{noun}{'' if count == 1 else 's'} {what}</li>"
            for count, noun, what in tiles
            if count or what == "disturbed"
        ]
        return f"<ul class=tiles>{''.join(shown)}</ul>"

    def gpus_of(self, nodes: Iterable[str]) -> int:
        """Those that work."""
        found = map(self.before.nodes.__getitem__, nodes)
        return sum(int(node.gpu_count - node.failed_gpu_count) for node in found)

    def goal(self) -> str:
        plan, stats = self.plan, self.plan.stats
        if plan.goal is None:
            most = plan.bound["vacated_gpus_at_most"] if plan.bound["method"] else None
            bound = f" No plan can free more than {counted(most, 'GPU')}." if most else ""
            if plan.vacated_nodes and not plan.placements:
                return f"<p>Free as many GPUs as the options allow.{escape(bound)}</p>"
            starts = any(how == "start" for how in self.how.values())
            pending = self.started(f"pending {self.task}") if starts else ""
            return f"<p>Start {escape(pending)}.</p>" if starts else ""
        state = "<b class=good>reached</b>" if plan.goal_reached else "<b class=bad>not reached</b>"
        counts = ""
        if "goal_before" in stats:
            counts = f": {stats['goal_before']:,.0f} before the plan, {stats['goal_after']:,.0f} after it"
        return f"<p>{escape(self.goal_text())}: {state}{escape(counts)}.</p>"

    def freed(self) -> str:
        rows = []
        for name in self.plan.vacated_nodes:
            node = self.before.nodes[name]
            rows.append((name, node.gpu_model or "", self.gpus_of([name]), len(self.left(name))))
        return table(["node", "GPU model", "GPUs", f"{self.task}s that leave"], rows)

    def left(self, name: str) -> list[str]:
        """The disturbed pods that run on the node before the plan."""
        return self.leaving.get(name, [])

    def disturbance(self) -> str:
        if not self.disturbed:
            return f"<p>No running {self.task}.</p>"
        groups: dict[tuple[str, str, str, str], list[float]] = {}
        for task in self.disturbed:
            kind, gpus, _, space = self.facts[task]
            entry = groups.setdefault((space, self.owner(task), kind or "", self.how[task]), [0, 0])
            entry[0] += 1
            entry[1] += gpus
        rows = [
            (space, owner or f"(no {self.owner_word})", kind, PARTICIPLES[how],
             int(pods), whole(gpus))
            for (space, owner, kind, how), (pods, gpus) in sorted(groups.items())
        ]  # fmt: skip
        text = str(self.plan.disturbs)
        total = ("", "", "", "", sum(row[4] for row in rows), whole(sum(row[5] for row in rows)))
        shown = [at for at in range(len(total)) if at not in (0, 2) or any(row[at] for row in rows)]

        def chosen(row: Sequence[Any]) -> list[Any]:
            return [row[at] for at in shown]

        heads = chosen(["namespace", self.owner_word, "kind", "how", f"{self.task}s", "GPUs"])
        foot = ["total", *chosen(total)[1:]]
        return f"<p>This plan {escape(text)}</p>" + table(heads, map(chosen, rows), foot)

    def owner(self, task: str) -> str:
        """The name of the task's job without its namespace."""
        _, _, job, space = self.facts[task]
        return job.removeprefix(f"{space}/") if job else ""

    def owner_and_gpus(self, task: str) -> tuple[str, int | float]:
        kind, gpus, *_ = self.facts[task]
        return f"{kind or ''} {self.owner(task)}".strip(), whole(gpus)

    def waves(self) -> str:
        rows = [
            ("first", task, *self.owner_and_gpus(task), self.before.tasks[task].node or "", "",
             "evicted" if self.how[task] == "evict" else "evicted, starts again")
            for task in self.plan.evictions
        ]  # fmt: skip
        rows += [
            (str(m.wave + 1), m.task, *self.owner_and_gpus(m.task), m.from_, m.to, PARTICIPLES[m.how])
            for m in sorted(self.plan.moves, key=lambda m: (m.wave, m.from_, m.task))
        ]  # fmt: skip
        note = (
            "<p>A wave starts when all moves of the wave before are complete.</p>"
            if self.plan.waves > 1
            else ""
        )
        if not rows:
            return ""
        return note + table(["wave", self.task, self.owner_word, "GPUs", "from", "to", "how"], rows)

    def starts(self) -> str:
        rows = [
            (p.task, *self.owner_and_gpus(p.task), p.node,
             "evicted" if p.task in self.plan.evictions else "pending")
            for p in self.plan.placements
        ]  # fmt: skip
        return table([self.task, self.owner_word, "GPUs", "node", "before"], rows)

    def nodes(self) -> str:
        touched = {name for move in self.plan.moves for name in (move.from_, move.to)}
        touched |= {self.before.tasks[task].node or "" for task in self.plan.evictions}
        touched |= {place.node for place in self.plan.placements} | set(self.plan.vacated_nodes)
        before, after = self.before.nodes, self.after.nodes
        names, models, counts, devices = before.name, before.gpu_model, before.gpu_count, before.device_count
        states = before, after
        pods = [state.occupants for state in states]
        busy = [counts - state.idle_gpu_count - state.failed_gpu_count for state in states]
        taken = [devices - state.free_device_count for state in states]
        rows = [
            (names[at], models[at] or "", *(int(of[at]) for of in pods),
             *(Raw(in_use(int(gpus[at]), int(counts[at]), int(parts[at]), int(devices[at])))
               for gpus, parts in zip(busy, taken)))
            for at in sorted(self.node[name] for name in touched if name)
        ]  # fmt: skip
        return table(
            ["node", "GPU model", f"{self.task}s before", f"{self.task}s after"]
            + ["GPUs in use before", "GPUs in use after"],
            rows,
        )

    def risks(self) -> list[str]:
        plan, out = self.plan, []
        if not (report := verify.plan(self.before, plan)).ok:
            found = f"{report.violations[0]}" if report.violations else ""
            out.append(
                f"The plan breaks {counted(report.violation_count, 'constraint')}. The first: {found}."
            )
        if plan.goal_reached is False:
            out.append("The plan does not reach its goal.")
        tasks: dict[str, Task] = {name: self.before.tasks[name] for name in self.disturbed}
        bare = [
            name
            for name in tasks
            if self.facts[name][0] == "" or not (self.facts[name][0] or self.facts[name][2])
        ]
        if bare:
            verb = "has" if len(bare) == 1 else "have"
            out.append(
                f"{counted(len(bare), self.task)} {verb} no owner that creates a replacement: {listed(bare)}."
            )
        lost = [name for name in tasks if self.how[name] == "evict"]
        if lost:
            stop = "stops and does not" if len(lost) == 1 else "stop and do not"
            out.append(f"{counted(len(lost), self.task)} {stop} start again under the plan: {listed(lost)}.")
        restarts = [name for name in tasks if self.how[name] == "restart"]
        if restarts:
            is_down = "is down while it restarts" if len(restarts) == 1 else "are down while they restart"
            out.append(f"{counted(len(restarts), self.task)} {is_down}: {listed(restarts)}.")
        copies = sum(self.how[name] == "copy" for name in tasks)
        if copies:
            out.append(
                f"Moves by a copy start the new {self.task} before the old one stops: "
                f"{counted(copies, self.task)}. If the "
                "executor evicts instead, as the kubectl script does, each of them is down in between, and "
                "disruption budgets count it."
            )
        # Evicted pods are down in all waves.
        evicted = set(plan.evictions)
        down = {"The eviction at the start": evicted}
        for move in plan.moves:
            if move.how == "restart":
                down.setdefault(f"Wave {move.wave + 1}", set(evicted)).add(move.task)
        for budget in self.before.budgets:
            names, groups = set(budget["tasks"]), set(budget["groups"])
            for step, stopped in down.items():
                members = {name for name in stopped if name in names or groups & set(tasks[name].groups)}
                if (stopped is evicted or members - evicted) and 0 < len(members) == budget["allowed_down"]:
                    out.append(
                        f"{step} uses up disruption budget {budget['name']}: "
                        f"{counted(len(members), self.task)} of it may be down at once, and no other."
                    )
        out += [f"{text[0].upper()}{text[1:]}." for text in risk_texts(self.before, plan)]
        out += self.left_out()
        if plan.opened_nodes:
            opened = listed(plan.opened_nodes)
            out.append(f"{self.task.capitalize()}s move onto nodes that were empty: {opened}.")
        taken = f"{self.task}s that started or moved since are not in the plan."
        past = f"The snapshot is a picture of the past: {taken}"
        return [*out, past + " Check again before you execute it."]

    def left_out(self) -> list[str]:
        """Requests for GPUs that the snapshot does not have, of pods on the nodes that receive pods."""
        targets = {move.to for move in self.plan.moves} | {step.node for step in self.plan.placements}
        node = dict(zip(self.before.tasks.name, self.before.tasks.node_index.tolist()))
        there = {name for name, at in node.items() if at >= 0 and self.before.nodes.name[at] in targets}
        out = []
        for row in (self.report or {"rows": []})["rows"]:
            if row["kind"] != "Pod" or row.get("errs") != "too_lax" or "gpu" not in row["what"].lower():
                continue
            named = row.get("examples", [])
            found = [name for name in named if name in there]
            unnamed = row["count"] - len(named)
            parts = [f"on nodes that receive pods: {listed(found)}"] * bool(found)
            parts += [f"the report does not name {unnamed:,} of them"] * (unnamed > 0)
            if parts:
                how = f" ({row['how']})" if row.get("how") else ""
                pods = counted(row["count"], "pod")
                out.append(f"The snapshot lacks {row['what']} of {pods}{how}; {'; '.join(parts)}.")
        return out

    def commands(self) -> str:
        names = *self.files, self.files[0].removesuffix(".json") + ".sh"
        plan, cluster, script = (shlex.quote(f"./{name}" if name.startswith("-") else name) for name in names)
        slurm = self.task == "task"
        system, live = ("slurm", "Slurm") if slurm else ("kubernetes", "Kubernetes")
        check = "" if slurm else "check it on the live cluster, "
        undo = "remove the cordons; pods stay where they are"
        if slurm:
            undo = "open the nodes and release held jobs"
        return "\n".join(
            [
                "# check the plan against the snapshot",
                f"gpusched verify {cluster} {plan}",
                f"# {live}: make a script, {check}then execute it",
                f"gpusched export {plan} --to {system} --cluster {cluster} -o {script}",
                *([] if slurm else [f"sh {script} check"]),
                f"sh {script}",
                f"# give up: {undo}",
                f"sh {script} undo",
            ]
        )


def in_use(used: int, count: int, used_devices: int, devices: int) -> str:
    """The GPUs and the devices of GPUs in use as numbers, with a block per GPU if there are few."""
    texts = [f"{used} of {count}"] * bool(count)
    texts += [f"{used_devices} of {counted(devices, 'device')}"] * bool(devices)
    text = ", ".join(texts) or "no GPUs"
    if not 0 < count <= BLOCKS:
        return text
    return f"<span class=gpus>{'<i class=u></i>' * used}{'<i></i>' * (count - used)}</span> {text}"


plan_page.__module__ = "gpusched.model"
