# SPDX-License-Identifier: Apache-2.0
"""Commands on plans: `consolidate`, `frontier`, `verify`, `explain`, `explain-move`, `export`."""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
from collections.abc import Callable
from typing import Any

from .. import consolidation, io, model, verify
from .._views.risks import refused_evictions, risk_texts
from .._views.tables import counted, listed
from ..errors import InvalidInput
from ..model import Cluster, Plan
from .arguments import Parser, Repeatable, choices, goal, library_option, names
from .bundles import bundle_options, check_bundle, save_bundle
from .shared import (
    FAILED,
    OK,
    PATTERNS,
    Problems,
    expanded_patterns,
    given,
    is_slurm,
    refuse,
    require_writable,
    save,
    save_figure,
    say,
    slurm_name,
    write_text,
)


def scope_options(parser: Parser, function: str = "consolidation.consolidate") -> None:
    """Options for the nodes and tasks that a plan may change.

    Making a plan and explaining it both take them.
    """
    option = functools.partial(library_option, parser, function)
    of_nodes: dict[str, Any] = {"type": names, "metavar": "NODES"}
    option("clear", f"vacate only these nodes, {PATTERNS} (default: any)", **of_nodes)
    option("exempt", f"do not change these nodes, {PATTERNS} (default: none)", **of_nodes)
    option("max_disrupted")
    option("protect_core_members")
    text = (
        "allow moves onto empty nodes at this price, in thousandths of the node's value; below 1000 only "
        "with --clear (default: never)"
    )
    option("open_price", text, metavar="PRICE")


PLAN_PRICE = "the price at which the plan was made, in thousandths of a GPU (of a node) per move"
GOAL = (
    "stop as soon as the goal is reached: a number of empty nodes, like empty_nodes=3,gpu_model=H20, or "
    "slots for tasks of a shape, like count=2,gpu_count=8,cpu_milli=64000. With usable_by=TASK or JOB, only "
    "nodes count that could hold it; otherwise, nodes do not count that have taints which others of their "
    "GPU model lack (default: none)"
)
LAST = (
    "continue from this earlier plan of the cluster: its moves that are still valid come first; on large "
    "clusters, without a goal, that takes much less time (default: plan from scratch)"
)


def consolidate_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.consolidate")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("-o --output", "write the plan here", metavar="PLAN.json")
    p.add("--last", LAST, metavar="PLAN.json")
    option("preset")
    policies_by_kind = consolidation.policy_names()
    known = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in policies_by_kind.items())
    text = f"policies that replace the preset's: {known} (default: the preset's)"
    option("policies", text, type=choices, action=Repeatable, metavar="KIND=NAME,...")
    for kind in policies_by_kind:  # messages of the library name only the kind
        p.options.setdefault(kind, f"--policies: {kind}")
    option("goal", GOAL, type=goal, metavar="KEY=VALUE,...")
    option("objective")
    option("price", metavar="PRICE")
    option("bound_method")
    scope_options(p)
    for name in ("partition_size", "depth", "rounds", "seed", "threads"):
        option(name)
    for name in ("max_moves", "max_move_cost", "max_others", "max_moves_per_wave", "max_moves_per_node"):
        option(name)
    option("record_chains")
    option("time_limit", "stop after this time and return the best plan so far", metavar="SECONDS")
    option(
        "polish_time",
        "continue the search for this time and keep the best plan (default: 0)",
        metavar="SECONDS",
    )
    p.add("--report", "print costs and gains in detail", action="store_true")
    bundle_options(p)
    p.add("--progress", "show a progress bar", action="store_true")


def consolidate(args: argparse.Namespace) -> int:
    check_bundle(args)
    require_writable(args.output, args.save_bundle, inputs=[args.cluster, args.last])
    options = given(args, "consolidation.consolidate")
    if args.last is not None:
        others = {
            "policies": options.get("policies"),
            "save-bundle": args.save_bundle,
        }
        if wrong := [name for name, value in others.items() if value is not None]:
            raise InvalidInput([f"--{name}: cannot be combined with --last" for name in wrong])
    cluster = Cluster.from_json(args.cluster)
    if "goal" in options:
        resolve_user(cluster, options["goal"])
    with expanded_patterns(cluster, options):
        if args.last is not None:
            plan = consolidation.replan(cluster, args.last, progress=args.progress, **options)
        else:
            plan = consolidation.consolidate(cluster, progress=args.progress, **options)
    # The file is read again, so that the check does not depend on the search. A pipe cannot be read twice.
    checked = verify.plan(args.cluster if os.path.isfile(args.cluster) else cluster, plan)
    print_plan(plan, cluster)
    if args.last is not None:
        print_dropped(cluster, args.last, plan, options)
    print_taints(cluster, plan)
    if args.clear:
        print_clear(cluster, plan, options)
    if args.report:
        say()
        say(str(consolidation.value_report(cluster, plan)).rstrip())
        print_refusals(plan)
    save(args.output, plan)
    code = print_check(checked)
    save_bundle(args, "consolidate", cluster, options, plan)
    return FAILED if plan.goal_reached is False else code


def frontier_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.frontier")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    option("points")
    option(
        "price", "lowest price of the search, in thousandths of a GPU (of a node) per move", metavar="PRICE"
    )
    for name in ("preset", "objective", "bound_method", "depth", "seed", "threads"):
        option(name)
    scope_options(p, "consolidation.frontier")
    option("time_limit", "stop after this time and return the points so far", metavar="SECONDS")
    p.add("--plot", "also draw the points and their bounds", metavar="OUT.png")
    p.add("--progress", "show a progress bar", action="store_true")


def frontier(args: argparse.Namespace) -> int:
    require_writable(args.plot, inputs=[args.cluster])
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "consolidation.frontier")
    with expanded_patterns(cluster, options):
        found = consolidation.frontier(cluster, progress=args.progress, **options)
    say(f"{'price':>10} {'cost':>8} {'moves':>8} {'nodes':>7} {'vacated':>8} {'at most':>8} {'gap':>7}")
    for point in found.points:
        bounds = f"{point.weight_at_most:>8} {percent_below(point.vacated_weight, point.weight_at_most):>7}"
        say(
            f"{point.price:>10} {point.relocation_cost:>8} {point.moves:>8} {point.vacated_nodes:>7} "
            f"{point.vacated_weight:>8}" + (f" {bounds}" if found.bound_method else "")
        )
    if found.bound_method:
        say(f"bounds: {found.bound_method}")
    if found.stop_reason != "completed":
        say(f"stopped early: {found.stop_reason}")
    if args.plot:
        from ..plotting import plot_frontier

        save_figure(args.plot, lambda: plot_frontier(found))
    return OK


def percent_below(part: int, whole: int) -> str:
    """The difference of `part` from `whole` in %, rounded up."""
    return f"{math.ceil(1000 * (whole - part) / whole) / 10} %" if whole > 0 else "0.0 %"


VACATED_SHOWN = 10
"""Vacated nodes that the text of a plan names."""


def print_plan(plan: Plan, cluster: Cluster) -> None:
    gpus, opened, bound = plan.stats.get("vacated_gpus", 0), plan.stats.get("opened_gpus", 0), plan.bound
    say(
        f"{counted(len(plan.vacated_nodes), 'node')} with {counted(gpus, 'GPU')} vacated by "
        f"{counted(len(plan.moves), 'move')} in {counted(plan.waves, 'wave')}"
    )
    if plan.vacated_nodes:
        say(f"vacated: {listed(plan.vacated_nodes, VACATED_SHOWN)}")
    if plan.moves:
        say(str(plan.disturbs))
        print_risks(cluster, plan)
    if plan.opened_nodes:
        say(f"{counted(len(plan.opened_nodes), 'node')} with {counted(opened, 'GPU')} opened")
        gpus -= opened
    if bound["method"] and bound["vacated_gpus_at_most"] and plan.goal_reached is None:
        say(
            f"{math.floor(1000 * gpus / bound['vacated_gpus_at_most']) / 10} % of the proven bound of "
            f"{counted(bound['vacated_gpus_at_most'], 'GPU')} "
            f"({counted(bound['vacated_nodes_at_most'], 'node')}; {bound['method']})"
        )
    if plan.goal_reached is not None:
        print_goal(plan)
    if plan.stop_reason != "completed":
        say(f"stopped early: {plan.stop_reason}")


def print_risks(cluster: Cluster, plan: Plan) -> None:
    for text in risk_texts(cluster, plan):
        say(text)
    if is_slurm(cluster):
        try:
            io.plan_to_slurm_steps(plan, cluster)
        except InvalidInput as error:
            say("`export --to slurm` would refuse this plan:")
            for problem in error.problems:
                say(f"  - {problem}")


def print_goal(plan: Plan) -> None:
    stats = plan.stats
    before, after = stats["goal_before"], stats["goal_after"]
    reached = "reached" if plan.goal_reached else "not reached"
    text = f"the goal is {reached}: {after:.0f} after the plan, {before:.0f} before"
    if not plan.goal_reached and "goal_at_most" in stats:
        most = stats["goal_at_most"]
        text += f"; no plan reaches more than {most:.0f}"
        if most > after and plan.bound["method"] == "counting":
            text += " (--bound-method lp may prove less)"
    say(text)
    if "goal_cost_at_least" in stats:
        cost, least = stats["relocation_cost"], stats["goal_cost_at_least"]
        bound = "" if least >= cost else f" than {least:,.0f}"
        say(f"the moves cost {cost:,.0f}; no plan with this result costs less{bound}")


def resolve_user(cluster: Cluster, goal: dict[str, Any]) -> None:
    """Replaces a job in `usable_by` by its first pending pod."""
    name = slurm_name(cluster, goal["usable_by"]) if "usable_by" in goal else None
    if name is None or any(task.name == name for task in cluster.tasks):
        return
    pods = [task.name for task in cluster.tasks if task.job == name]
    pending = [task.name for task in cluster.tasks if task.job == name and task.node is None]
    goal["usable_by"] = (pending or pods or [name])[0]


def by_taints(cluster: Cluster, nodes: list[str]) -> list[str]:
    """One text per set of taints that repel tasks and that not all open nodes with the same GPUs have."""

    def repelling(node: Any) -> set[str]:
        return {
            f"{taint['key']}{'=' + taint['value'] if taint['value'] else ''}:{taint['effect']}"
            for taint in node.taints
            if taint["effect"] != "PreferNoSchedule"
        }

    def gpus(node: Any) -> tuple[str | None, ...]:
        """The model of the whole GPUs, and the classes of the other ones."""
        return (node.gpu_model, *sorted({group["device_class"] for group in node.devices}))

    shared: dict[tuple[str | None, ...], set[str]] = {}
    for node in (node for node in cluster.nodes if node.schedulable):
        shared[gpus(node)] = shared.get(gpus(node), repelling(node)) & repelling(node)
    found: dict[str, list[str]] = {}
    for name in nodes:
        node = cluster.nodes[name]
        if taints := repelling(node) - shared.get(gpus(node), set()):
            found.setdefault(", ".join(sorted(taints)), []).append(name)

    return [f"{taints} ({listed(tainted)})" for taints, tainted in found.items()]


def print_taints(cluster: Cluster, plan: Plan) -> None:
    """Prints the vacated nodes that repel tasks by taints, and the nodes that a goal does not count."""
    open_nodes = set(consolidation.goal_nodes(cluster, {"empty_nodes": 1}))
    for taints in by_taints(cluster, [node for node in plan.vacated_nodes if node not in open_nodes]):
        say(f"vacated nodes with taints that others of their GPU model lack: {taints}")
    if plan.goal is None:
        return
    user = plan.goal.get("usable_by")
    if print_not_counted(cluster, plan.goal) and user is None:
        say("  usable_by=TASK counts the nodes that could hold the task")


def print_not_counted(cluster: Cluster, goal: dict[str, Any]) -> bool:
    """Prints the nodes of the GPU model that a goal does not count; returns whether there are any."""
    counted_nodes = set(consolidation.goal_nodes(cluster, goal))
    models = {cluster.nodes[node].gpu_model for node in counted_nodes} if goal.get("gpu_model") else None
    user = goal.get("usable_by")
    candidates = [node for node in cluster.nodes if node.schedulable and node.gpu_count > 0]
    excluded = [
        n.name
        for n in candidates
        if n.name not in counted_nodes and (models is None or n.gpu_model in models)
    ]
    if user is not None and excluded:
        say(
            f"not counted, because {user} could not run there, even without all tasks that may move: "
            f"{counted(len(excluded), 'node')}"
        )
    elif excluded:
        taints = "; ".join(by_taints(cluster, excluded))
        say(f"not counted, because of taints that others of their GPU model lack: {taints}")
    return bool(excluded)


DROPPED_SHOWN = 10
"""Moves of an earlier plan listed for each reason."""


def print_dropped(cluster: Cluster, last: str, plan: Plan, options: dict[str, Any]) -> None:
    """Prints the moves of the earlier plan that the new one does not make, by reason."""
    scope = {name: options[name] for name in SCOPE if name in options}
    dropped = consolidation.dropped_moves(cluster, last, plan, **scope)
    if not dropped:
        return
    by_reason: dict[str, list[str]] = {}
    for move, reason in dropped:
        by_reason.setdefault(reason, []).append(move.task)
    still_move = {move.task for move in plan.moves}
    changed = sum(move.task in still_move for move, _ in dropped)
    parts = [f"{counted(len(dropped) - changed, 'move')} of the earlier plan dropped"]
    parts += [f"{changed:,} with another target"] * bool(changed)
    say(f"{', '.join(parts)}:")
    for reason, tasks in by_reason.items():
        say(f"  - {listed(tasks, DROPPED_SHOWN)}: {reason}")


REFUSED = "refused_by_"


def print_refusals(plan: Plan) -> None:
    """Prints how often each constraint rejected a move in the search, the most frequent first."""
    counts = {
        name.removeprefix(REFUSED): count
        for name, count in plan.stats.items()
        if name.startswith(REFUSED) and count > 0
    }
    if counts:
        say("moves that the search tried were rejected by")
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        say(f"{count:>14,.0f}  {name}")


SCOPE = ("open_price", "max_disrupted", "protect_core_members", "clear", "exempt", "price", "objective")
"""The options of `explain_clear`."""
LEFT_SHOWN = 20
"""Nodes listed that could not be cleared."""


def print_clear(cluster: Cluster, plan: Plan, options: dict[str, Any]) -> None:
    """Prints which of the nodes to clear stay occupied, and why."""
    scope = {name: options[name] for name in SCOPE if name in options}
    left = consolidation.explain_clear(cluster, plan, **scope)
    if not left:
        say("all nodes to clear are empty")
        return
    say(f"{counted(len(left), 'node')} to clear {'stays' if len(left) == 1 else 'stay'} occupied:")
    for why in left[:LEFT_SHOWN]:
        say(f"  - {why}")
    if len(left) > LEFT_SHOWN:
        say(f"  - and {len(left) - LEFT_SHOWN:,} more; see `gpusched explain`")


def print_check(checked: verify.Report) -> int:
    if checked.ok:
        say("the plan verifies")
        return OK
    print(f"the plan does not verify: {counted(checked.violation_count, 'violation')}", file=sys.stderr)
    for violation in checked.violations:
        print(f"  - {violation}", file=sys.stderr)
    return FAILED


def verify_options(p: Parser) -> None:
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("plan", "the plan", metavar="PLAN.json")
    library_option(p, "verify.plan", "max_violations", "number of violations to print; all are counted")


def verify_plan(args: argparse.Namespace) -> int:
    checked = verify.plan(args.cluster, args.plan, **given(args, "verify.plan"))
    if checked.vacated_nodes:
        say(
            f"vacates {counted(len(checked.vacated_nodes), 'node')} with "
            f"{counted(checked.vacated_gpus, 'GPU')}"
        )
    return print_check(checked)


def explain_options(p: Parser) -> None:
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("plan", "a plan for this snapshot", metavar="PLAN.json")
    p.add("node", "names of nodes", nargs="+", type=names, metavar="NODE")
    scope_options(p)
    library_option(p, "consolidation.consolidate", "price", PLAN_PRICE, metavar="PRICE")
    library_option(p, "consolidation.consolidate", "objective")


def explain(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = Plan.from_json(args.plan)
    scope = given(args, "consolidation.consolidate")
    return say_each(args.node, cluster, scope, functools.partial(consolidation.explain, cluster, plan))


def say_each(
    nodes: list[list[str]], cluster: Cluster, options: dict[str, Any], explain: Callable[..., object]
) -> int:
    """Prints what `explain` says of each node with these options, or all its problems."""
    problems, texts = Problems(), []
    with expanded_patterns(cluster, options):
        for node in sum(nodes, []):
            with problems.collect():
                texts.append(str(explain(node, **options)).rstrip())
        problems.raise_if_any()
    for text in texts:
        say(text)
    return OK


def explain_move_options(p: Parser) -> None:
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("task", "name of a task", metavar="TASK")
    p.add("node", "names of possible target nodes", nargs="+", type=names, metavar="NODE")
    option = functools.partial(library_option, p, "consolidation.explain_move")
    option("plan", "a plan that is applied before the move (default: none)", metavar="PLAN.json")
    scope_options(p, "consolidation.explain_move")
    option("price", PLAN_PRICE, metavar="PRICE")
    option("objective")


def explain_move(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "consolidation.explain_move")
    if "plan" in options:
        options["plan"] = Plan.from_json(options["plan"])

    def explain(node: str, **options: Any) -> str:
        found = consolidation.explain_move(cluster, args.task, node, **options)
        texts = [str(found).rstrip()]
        if found.fate == "possible":
            ends = {"task": found.task, "from": found.from_node, "to": node, "gpus": [], "wave": 0}
            move = {**ends, "how": cluster.tasks[found.task].how}
            content = {"format": "gpusched.plan", "version": 2, "waves": 1, "moves": [move]}
            freed = [found.from_node] if found.weight > 0 else []
            texts += refused_evictions(cluster, Plan.from_json({**content, "vacated_nodes": freed}))
        return "\n".join(texts)

    return say_each(args.node, cluster, options, explain)


def export_options(p: Parser) -> None:
    p.add("plan", "the plan", metavar="PLAN.json")
    p.add("--to", "output format", choices=("csv", "kubernetes", "koordinator", "slurm"), default="csv")
    text = (
        "the snapshot; required for koordinator and slurm; for csv, it adds owners and GPUs; for kubernetes, "
        "it lets the command check disruption budgets"
    )
    p.add("--cluster", text, metavar="CLUSTER.json")
    text = "namespace of tasks without one in their names (default: the namespace called default)"
    p.add("--default-namespace", text, metavar="NAME")
    p.add("-o --output", "default: standard output", metavar="FILE")


def warn_of_copies(plan: Plan, cluster: Cluster | None) -> None:
    """Warns on standard error that an eviction cannot do moves by a copy as planned."""

    def warn(text: str) -> None:
        print(f"gpusched: note: {text}", file=sys.stderr)

    copies = [move.task for move in plan.moves if move.how == "copy"]
    if not copies:
        return
    moves = f"the plan has {counted(len(copies), 'move')} by a copy"
    warn(f"{moves}, but the script evicts: each pod is down in between, and disruption budgets count it")
    if cluster is None:
        warn("with --cluster CLUSTER.json, this names the disruption budgets that allow no eviction")
    else:
        for text in refused_evictions(cluster, plan):
            warn(text)
    warn(
        "plans of a snapshot from `gpusched import kubernetes --moves-by-eviction` keep all budgets with "
        "evictions"
    )


def note_new_tasks(plan: Plan) -> None:
    """Names the tasks that a script makes room for, but does not start."""
    if new := [task["name"] for task in plan.to_json().get("x-brings", {"tasks": []})["tasks"]]:
        print(f"gpusched: note: start these when the script has made room: {listed(new)}", file=sys.stderr)


def export(args: argparse.Namespace) -> int:
    if args.to == "csv":
        refuse(given(args, "default_namespace"), "export --to csv")
    require_writable(args.output, inputs=[args.plan, args.cluster])
    plan = Plan.from_json(args.plan)
    if args.to in ("kubernetes", "slurm"):
        note_new_tasks(plan)
    if args.to == "csv":
        if args.cluster is not None:
            plan = plan.described(Cluster.from_json(args.cluster))
        write_text(args.output, io.plan_to_csv(plan))
    elif args.to == "kubernetes":
        warn_of_copies(plan, None if args.cluster is None else Cluster.from_json(args.cluster))
        write_text(args.output, io.plan_to_kubernetes_steps(plan, **given(args, "default_namespace")))
    else:
        if args.cluster is None:
            raise InvalidInput(f"--cluster: missing; the export for {args.to} needs the snapshot's tasks")
        cluster = Cluster.from_json(args.cluster)
        if args.to == "slurm":
            refuse(given(args, "default_namespace"), "export --to slurm")
            text = io.plan_to_slurm_steps(plan, cluster)
        else:
            text = io.plan_to_pod_migration_jobs(plan, cluster, **given(args, "default_namespace"))
        write_text(args.output, text)
    return OK


def diff_options(p: Parser) -> None:
    p.add("before", "a snapshot, a plan or the report of an import", metavar="BEFORE.json")
    p.add("after", "another one of the same kind", metavar="AFTER.json")
    p.add("--csv", "print all differences as CSV", action="store_true")


def diff(args: argparse.Namespace) -> int:
    found = model.diff(args.before, args.after)
    if args.csv:
        write_text(None, found.to_csv())
    else:
        say(str(found))
    return OK if found.equal else FAILED


def plan_page_options(p: Parser) -> None:
    p.add("plan", "the plan", metavar="PLAN.json")
    p.add("cluster", "the snapshot of the plan", metavar="CLUSTER.json")
    p.add("-o --output", "write the page here (default: standard output)", metavar="PAGE.html")
    text = (
        "the reading report of the snapshot (import --report): the page then names pods with requests "
        "for GPUs that the snapshot lacks (default: none)"
    )
    p.add("--report", text, metavar="REPORT.json")


def plan_page(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.plan, args.cluster, args.report])
    write_text(args.output, model.plan_page(args.plan, args.cluster, report=args.report))
    return OK
