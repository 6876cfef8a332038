"""Commands on plans: `consolidate`, `frontier`, `verify`, `explain`, `explain-move`, `export`."""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
from typing import Any

from .. import consolidation, io, verify
from .._views.words import counted
from ..errors import InvalidInput
from ..model import Cluster, Plan
from .arguments import Parser, Together, choices, goal, library_option, names
from .bundles import bundle_options, check_bundle, save_bundle
from .shared import FAILED, OK, Problems, given, refuse, require_writable, save_figure, say, write_text


def scope_options(parser: Parser, function: str = "consolidation.consolidate") -> None:
    """What a plan may touch: for making it, and for telling why it left something alone."""
    option = functools.partial(library_option, parser, function)
    of_nodes: dict[str, Any] = {"type": names, "metavar": "NODES"}
    option("clear", "vacate only these nodes, names with commas between them (default: any)", **of_nodes)
    option("exempt", "leave these nodes as they are, names with commas between them (default: none)", **of_nodes)
    option("max_disrupted", "most members of a job that move in one wave")
    option("protect_core_members", "only members beyond a job's min_members may move")
    option(
        "open_price",
        "let tasks move onto nodes that were empty, at so many thousandths of what these are worth; below 1000 only with --clear (default: never)",
        metavar="PRICE",
    )


def consolidate_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.consolidate")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan here")
    p.add_argument(
        "--last",
        metavar="PLAN.json",
        help="go on from this earlier plan of the cluster: what is still right of it comes first, in a small part of the time (default: plan anew)",
    )
    option("preset", "policies: ipc (the paper's algorithm), fast or best (ours)")
    of_kinds = consolidation.policy_names()
    known = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in of_kinds.items())
    option("policies", f"policies in place of some of the preset's: {known} (default: those of the preset)", type=choices, action=Together, metavar="KIND=NAME,...")
    for kind in of_kinds:  # of which the library speaks by the kind alone
        p.options.setdefault(kind, f"--policies: {kind}")
    option(
        "goal",
        "stop at so many empty nodes, like empty_nodes=3,gpu_model=H20, or slots for tasks of a shape, like count=2,gpu_count=8,cpu_milli=64000; usable_by=TASK or JOB counts nodes where that may run, else those without taints that others of their GPU model lack (default: none)",
        type=goal,
        metavar="KEY=VALUE,...",
    )
    option("objective")
    option("price", "thousandths of a GPU (with objective nodes, of a node) that a move costs; 0 = vacate as much as possible", metavar="PRICE")
    option("bound_method")
    scope_options(p)
    for name in ("partition_size", "depth", "rounds", "seed", "threads"):
        option(name)
    for name in ("max_moves", "max_move_cost", "max_others", "max_moves_per_wave", "max_moves_per_node"):
        option(name)
    option("record_chains", "every move says its chain and the vacated node it serves; the plan is of version 2 then")
    option("time_limit", "stop after so long with the best plan found until then", metavar="SECONDS")
    option("polish_time", "search on for so long and keep the best plan (default: not at all)", metavar="SECONDS")
    p.add_argument("--report", action="store_true", help="costs and gains in detail")
    bundle_options(p)
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def consolidate(args: argparse.Namespace) -> int:
    check_bundle(args)
    require_writable(args.output, args.save_bundle, inputs=[args.cluster, args.last])
    options = given(args, "consolidation.consolidate")
    beside = {"--policies": options.get("policies"), "--goal": options.get("goal"), "--save-bundle": args.save_bundle}
    if args.last is not None and any(value is not None for value in beside.values()):
        raise InvalidInput([f"{name}: cannot be given with --last" for name, value in beside.items() if value is not None])
    cluster = Cluster.from_json(args.cluster)
    if "goal" in options:
        name_user(cluster, options["goal"])
    if args.last is not None:
        plan = consolidation.replan(cluster, args.last, progress=args.progress, **options)
    else:
        plan = consolidation.consolidate(cluster, progress=args.progress, **options)
    # Against the file, which no code of the search has touched; a pipe cannot be read twice.
    checked = verify.plan(args.cluster if os.path.isfile(args.cluster) else cluster, plan)
    print_plan(plan)
    print_taints(cluster, plan)
    if args.clear:
        print_clear(cluster, plan, options)
    if args.report:
        say()
        say(str(consolidation.value_report(cluster, plan)).rstrip())
        print_refusals(plan)
    if args.output:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    code = print_check(checked)
    save_bundle(args, "consolidate", cluster, options, plan)
    return FAILED if plan.goal_reached is False else code


def frontier_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.frontier")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    option("points")
    option("price", "the lowest price that the search goes down to, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    option("preset", "policies: ipc (the paper's algorithm), fast or best (ours)")
    option("objective")
    option("bound_method")
    scope_options(p, "consolidation.frontier")
    for name in ("depth", "seed", "threads"):
        option(name)
    option("time_limit", "stop after so long with the points found until then", metavar="SECONDS")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the points and their bounds")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def frontier(args: argparse.Namespace) -> int:
    require_writable(args.plot, inputs=[args.cluster])
    cluster = Cluster.from_json(args.cluster)
    found = consolidation.frontier(cluster, progress=args.progress, **given(args, "consolidation.frontier"))
    say(f"{'price':>10} {'cost':>8} {'moves':>8} {'nodes':>7} {'vacated':>8} {'at most':>8} {'gap':>7}")
    for point in found.points:
        bounds = f"{point.weight_at_most:>8} {percent_below(point.vacated_weight, point.weight_at_most):>7}"
        say(
            f"{point.price:>10} {point.relocation_cost:>8} {point.moves:>8} {point.vacated_nodes:>7} {point.vacated_weight:>8}"
            + (f" {bounds}" if found.bound_method else "")
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
    """How far `part` is below `whole`, rounded up."""
    return f"{math.ceil(1000 * (whole - part) / whole) / 10} %" if whole > 0 else "0.0 %"


def print_plan(plan: Plan) -> None:
    gpus, opened, bound = plan.stats.get("vacated_gpus", 0), plan.stats.get("opened_gpus", 0), plan.bound
    say(
        f"{counted(len(plan.vacated_nodes), 'node')} with {counted(gpus, 'GPU')} vacated by "
        f"{counted(len(plan.moves), 'move')} in {counted(plan.waves, 'wave')}"
    )
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


def print_goal(plan: Plan) -> None:
    stats = plan.stats
    told = f"the goal is {'' if plan.goal_reached else 'not '}reached: {stats['goal_after']:.0f} there afterwards, {stats['goal_before']:.0f} before"
    if not plan.goal_reached and "goal_at_most" in stats:
        told += f", and no plan leaves more than {stats['goal_at_most']:.0f}"
    say(told)
    if "goal_cost_at_least" in stats:
        cost, least = stats["relocation_cost"], stats["goal_cost_at_least"]
        say(f"the moves cost {cost:,.0f}; no plan that comes as close costs less" + ("" if least >= cost else f" than {least:,.0f}"))


def name_user(cluster: Cluster, goal: dict[str, Any]) -> None:
    """Lets the first pending pod of a job stand for the job that is to use the nodes of a goal."""
    name = goal.get("usable_by")
    if name is None or any(task.name == name for task in cluster.tasks):
        return
    pods = [task.name for task in cluster.tasks if task.job == name]
    waiting = [task.name for task in cluster.tasks if task.job == name and task.node is None]
    goal["usable_by"] = (waiting or pods or [name])[0]


NODES_SHOWN = 5
"""By name, of those with the same taints."""


def by_taints(cluster: Cluster, nodes: list[str]) -> list[str]:
    """The taints that keep tasks off these nodes, with the nodes that have them."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        taints = [
            f"{taint['key']}{'=' + taint['value'] if taint['value'] else ''}:{taint['effect']}"
            for taint in cluster.nodes[node].taints
            if taint["effect"] != "PreferNoSchedule"
        ]
        if taints:
            found.setdefault(", ".join(sorted(taints)), []).append(node)
    return [
        f"{taints} ({', '.join(of[:NODES_SHOWN])}{f' and {len(of) - NODES_SHOWN:,} more' if len(of) > NODES_SHOWN else ''})"
        for taints, of in found.items()
    ]


def print_taints(cluster: Cluster, plan: Plan) -> None:
    """Says which of the vacated nodes keep others away, and which nodes a goal does not count."""
    open_nodes = set(consolidation.goal_nodes(cluster, {"empty_nodes": 1}))
    for taints in by_taints(cluster, [node for node in plan.vacated_nodes if node not in open_nodes]):
        say(f"vacated nodes with taints that others of their GPU model lack: {taints}")
    if plan.goal is None:
        return
    counted_nodes = set(consolidation.goal_nodes(cluster, plan.goal))
    model, user = plan.goal.get("gpu_model"), plan.goal.get("usable_by")
    left_out = [
        node.name
        for node in cluster.nodes
        if node.schedulable and node.gpu_count > 0 and model in (None, node.gpu_model) and node.name not in counted_nodes
    ]
    if user is not None and left_out:
        say(f"{counted(len(left_out), 'node')} where {user} may not run {'does' if len(left_out) == 1 else 'do'} not count")
    elif left_out:
        say("not counted, for taints that others of their GPU model lack: " + "; ".join(by_taints(cluster, left_out)))
        say("  usable_by=TASK counts the nodes where that task may run")


REFUSED = "refused_by_"


def print_refusals(plan: Plan) -> None:
    """Says what kept the search from more, and how often, the most frequent first."""
    counts = {name.removeprefix(REFUSED): count for name, count in plan.stats.items() if name.startswith(REFUSED) and count > 0}
    if counts:
        say("moves that the search looked at were refused by")
    for name, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        say(f"{count:>14,.0f}  {name}")


SCOPE = ("open_price", "max_disrupted", "protect_core_members", "clear", "exempt", "price", "objective")
"""The options that `explain_clear` takes."""
LEFT_SHOWN = 20
"""Of the nodes that could not be cleared."""


def print_clear(cluster: Cluster, plan: Plan, options: dict[str, Any]) -> None:
    """Says which of the nodes to clear stay occupied, and why."""
    left = consolidation.explain_clear(cluster, plan, **{name: options[name] for name in SCOPE if name in options})
    if not left:
        say("all nodes to clear are empty")
        return
    say(f"{counted(len(left), 'node')} to clear {'stays' if len(left) == 1 else 'stay'} occupied:")
    for why in left[:LEFT_SHOWN]:
        say(f"  - {why}")
    if len(left) > LEFT_SHOWN:
        say(f"  - and {len(left) - LEFT_SHOWN:,} more; `gpusched explain` tells of each")


def print_check(checked: verify.Report) -> int:
    if checked.ok:
        say("the plan verifies")
        return OK
    print(f"the plan does not verify: {counted(checked.violation_count, 'violation')}", file=sys.stderr)
    for violation in checked.violations:
        print(f"  - {violation}", file=sys.stderr)
    return FAILED


def verify_options(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("plan", metavar="PLAN.json", help="the plan")
    library_option(p, "verify.plan", "max_violations", "how many violations are shown; all are counted")


def verify_plan(args: argparse.Namespace) -> int:
    checked = verify.plan(args.cluster, args.plan, **given(args, "verify.plan"))
    if checked.vacated_nodes:
        say(f"vacates {counted(len(checked.vacated_nodes), 'node')} with {counted(checked.vacated_gpus, 'GPU')}")
    return print_check(checked)


def explain_options(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("plan", metavar="PLAN.json", help="the plan that was made for it")
    p.add_argument("node", nargs="+", type=names, metavar="NODE", help="names of nodes")
    scope_options(p)
    library_option(p, "consolidation.consolidate", "price", "the price that the plan was made at, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    library_option(p, "consolidation.consolidate", "objective")


def explain(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = Plan.from_json(args.plan)
    scope = given(args, "consolidation.consolidate")
    problems, texts = Problems(), []
    for node in sum(args.node, []):
        with problems.collect():
            texts.append(str(consolidation.explain(cluster, plan, node, **scope)).rstrip())
    problems.raise_if_any()
    for text in texts:
        say(text)
    return OK


def explain_move_options(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("task", metavar="TASK", help="name of a task")
    p.add_argument("node", nargs="+", type=names, metavar="NODE", help="names of nodes where it might go")
    library_option(p, "consolidation.explain_move", "plan", "the plan after which the move would be made (default: none, the cluster as it is)", metavar="PLAN.json")
    scope_options(p, "consolidation.explain_move")
    library_option(p, "consolidation.explain_move", "price", "the price that the plan was made at, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    library_option(p, "consolidation.explain_move", "objective")


def explain_move(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "consolidation.explain_move")
    if "plan" in options:
        options["plan"] = Plan.from_json(options["plan"])
    problems, texts = Problems(), []
    for node in sum(args.node, []):
        with problems.collect():
            texts.append(str(consolidation.explain_move(cluster, args.task, node, **options)))
    problems.raise_if_any()
    for text in texts:
        say(text)
    return OK


def export_options(p: Parser) -> None:
    p.add_argument("plan", metavar="PLAN.json", help="the plan")
    p.add_argument("--to", choices=("csv", "kubernetes", "koordinator"), default="csv", help="the form to write")
    p.add_argument("--cluster", metavar="CLUSTER.json", help="the snapshot; koordinator needs it, and for kubernetes it tells which disruption budgets are in the way")
    p.add_argument(
        "--default-namespace", metavar="NAME", help="of tasks whose names have none (default: the one called default)"
    )
    p.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def warn_of_copies(plan: Plan, cluster: Cluster | None) -> None:
    """Says on standard error which moves an eviction cannot do as the plan has them: those by a copy."""

    def warn(text: str) -> None:
        print(f"gpusched: note: {text}", file=sys.stderr)

    copies = [move.task for move in plan.moves if move.how == "copy"]
    if not copies:
        return
    moves = f"{counted(len(copies), 'move')} of the plan {'is' if len(copies) == 1 else 'are'} by a copy"
    warn(f"{moves}, and the script evicts: the pods are down in between, and disruption budgets count them")
    if cluster is None:
        warn("--cluster CLUSTER.json tells which disruption budgets allow no eviction of them")
    else:
        for budget in cluster.budgets:
            guarded = sorted(set(copies) & set(budget["tasks"]))
            if guarded and (budget["broken"] or budget["allowed_down"] == 0):
                warn(f"disruption budget {budget['name']} allows no eviction: the script would stop at {', '.join(guarded)}")
    warn("`gpusched import kubernetes --moves-by-eviction` makes a snapshot whose plans keep all budgets with evictions")


def export(args: argparse.Namespace) -> int:
    if args.to == "csv":
        refuse(given(args, "cluster", "default_namespace"), "export --to csv")
    require_writable(args.output, inputs=[args.plan, args.cluster])
    plan = Plan.from_json(args.plan)
    if args.to == "csv":
        write_text(args.output, io.plan_to_csv(plan))
    elif args.to == "kubernetes":
        warn_of_copies(plan, None if args.cluster is None else Cluster.from_json(args.cluster))
        write_text(args.output, io.plan_to_kubernetes_steps(plan, **given(args, "default_namespace")))
    else:
        if args.cluster is None:
            raise InvalidInput(
                "--cluster: koordinator objects name the tasks' requests, so the snapshot is needed"
            )
        cluster = Cluster.from_json(args.cluster)
        write_text(
            args.output, io.plan_to_pod_migration_jobs(plan, cluster, **given(args, "default_namespace"))
        )
    return OK
