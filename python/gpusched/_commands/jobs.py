"""Commands for tasks and jobs that wait: `preempt`, `allocate`, `admit`."""

from __future__ import annotations

import argparse
import functools
import warnings
from typing import Any

from .. import _core, admission, allocation, preemption
from .._views.words import counted
from ..errors import InvalidInput
from ..model import Cluster
from .arguments import FILES, Parser, flag, level, library_option, names
from .bundles import bundle_options, check_bundle, save_bundle
from .shared import FAILED, OK, Problems, given, matching, read_mapping, require_writable, say

JOBS_NAMED = 8
"""In a message."""


def where_it_goes(cluster: Cluster, decision: preemption.Decision) -> str:
    several = "GPUs" if len(decision.gpus) > 1 else "GPU"
    gpus = f"{several} {', '.join(map(str, decision.gpus))}" if decision.gpus else "no GPUs"
    where = {"numa": "one NUMA node", "socket": "one socket", "cross": "several sockets"}[decision.topology]
    if len(decision.gpus) > 1 and cluster.nodes[decision.node].hardware is None:
        where = "sockets not known"
    return f"{decision.task} goes to {decision.node}: {gpus}" + (f" ({where})" if decision.gpus else "")


def report_victims(decision: preemption.Decision | preemption.GangDecision) -> None:
    again = {placement.task: placement for placement in decision.replaced}
    for victim in decision.victims:
        there = again.get(victim)
        gpus = f": GPUs {', '.join(map(str, there.gpus))}" if there is not None and there.gpus else ""
        say(f"evict {victim}" + (f", which runs again on {there.node}{gpus}" if there is not None else ""))
    for budget, over in decision.broken_budgets.items():
        say(f"disruption budget {budget} breaks by {counted(over, 'task')}")


def preempt_gang(args: argparse.Namespace, cluster: Cluster, **options: Any) -> int:
    pods = args.job if args.job is not None else args.tasks
    objective = given(args, "preemption.preempt_gang")
    with warnings.catch_warnings(record=True) as limits:
        warnings.simplefilter("always")
        found = preemption.preempt_gang(cluster, pods, **options, **objective)
    plan = None if found is None else preemption.to_plan(found)
    save_bundle(args, "preempt", cluster, {"pods": pods, **options, **objective}, plan)
    if found is None:
        for limit in limits:
            say(str(limit.message))
        say("nobody is evicted: " + preemption.explain_gang(cluster, pods, **options))
        return FAILED
    for decision in found.pods:
        say(where_it_goes(cluster, decision))
    if not found.victims:
        say("they fit as it is")
    report_victims(found)
    if found.victims:
        losers = counted(found.lost_gangs, "gang or single task", "gangs and single tasks")
        say(f"lost work {found.cost:,.0f} GPU-seconds, of {losers}")
    if args.output is not None and plan is not None:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    return OK


def preempt_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "preemption.preempt")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("tasks", nargs="*", metavar="TASK", help="name of a pending task of the cluster; several are a gang")
    p.add_argument("--job", metavar="JOB", help="all pending tasks of a job, as a gang (default: the TASKs)")
    library_option(p, "preemption.preempt_gang", "objective", "of gangs: least lost work, or fewest gangs lost")
    option("policy")
    option("qos", "how the task is to be treated (default: as it asks)")
    option("score")
    option("alpha", metavar="WEIGHT")
    p.add_argument(
        "--break-budgets",
        action="store_true",
        help="evict more tasks of a disruption budget than it allows where nothing else helps",
    )
    p.add_argument("--replace-victims", action="store_true", help="place victims that find room elsewhere again")
    option("now", "the time of the decision (default: the snapshot's)", metavar="SECONDS")
    option("search_limit", "sets of victims looked at per node")
    option("time_limit", "then the best found so far is taken", metavar="SECONDS")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write evictions and placements here, as a plan")
    bundle_options(p)


def preempt(args: argparse.Namespace) -> int:
    check_bundle(args)
    require_writable(args.output, args.save_bundle, inputs=[args.cluster])
    if (args.job is None) == (not args.tasks):
        raise InvalidInput("TASK, --job: expected names of pending tasks, or --job with the name of a job")
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "preemption.preempt")
    options |= {name: True for name in ("break_budgets", "replace_victims") if getattr(args, name)}
    if args.job is not None or len(args.tasks) > 1:
        return preempt_gang(args, cluster, **options)
    if args.objective is not None:
        raise InvalidInput("--objective: several tasks or --job only")
    task = args.tasks[0]
    with warnings.catch_warnings(record=True) as limits:
        warnings.simplefilter("always")
        decision = preemption.preempt(cluster, task, **options)
    plan = None if decision is None else preemption.to_plan(decision)
    save_bundle(args, "preempt", cluster, {"pods": [task], **options}, plan)
    if decision is None:
        for limit in limits:
            say(str(limit.message))
        say("nobody is evicted: " + preemption.explain(cluster, task, **options).text)
        return FAILED
    say(where_it_goes(cluster, decision))
    if not decision.victims:
        say("it fits as it is")
    report_victims(decision)
    if decision.victims:
        score = "" if decision.score is None else f", score {decision.score:.6g}"
        say(f"lost work {decision.cost:,.0f} GPU-seconds, sum of priorities {decision.priority_sum}{score}")
    if not decision.proven:
        say("a limit was hit: this may not be the best answer")
    if args.output is not None and plan is not None:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    return OK


def read_job(source: str, cluster: Cluster) -> dict[str, Any] | str:
    """A job's description from a file, or the name of one of the cluster's."""
    if not source.endswith(".json"):
        require_job(source, cluster)
        return source
    job = read_mapping(source)
    try:
        _core.allocation._require_job(job, cluster)
    except InvalidInput as error:
        raise InvalidInput([f"{source}: {problem.removeprefix('job: ')}" for problem in error.problems]) from None
    return job


def read_quotas(path: str) -> list[Any]:
    document = read_mapping(path)
    if set(document) != {"quotas"} or not isinstance(document["quotas"], list):
        raise InvalidInput(f'{path}: expected a mapping with a list "quotas", and nothing else')
    return document["quotas"]


def require_job(name: str, cluster: Cluster) -> None:
    """Raises InvalidInput with the jobs that wait, where the cluster has neither a job nor a pending task of that name."""
    jobs: dict[str, bool] = {}
    for task in cluster.tasks:
        if task.job:
            jobs[task.job] = jobs.get(task.job, False) or task.node is None
        elif task.node is None:
            jobs[task.name] = True  # a pod that nobody owns
        if task.name == name and task.node is None:
            return
    if name in jobs:
        return
    waiting = [job for job, waits in jobs.items() if waits]
    alike = [job for job in waiting if name in job] or waiting
    more = f" and {len(alike) - JOBS_NAMED:,} others" if len(alike) > JOBS_NAMED else ""
    named = f"; waiting are {', '.join(alike[:JOBS_NAMED])}{more}" if alike else "; none waits"
    raise InvalidInput(f"job: {name!r}; expected a job or a pending task of the cluster, or a file JOB.json{named}")


def allocate_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "allocation.allocate")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    waiting = p.add_argument("jobs", nargs="+", metavar="JOB", help="name of a job of the cluster with pending pods, or of a pending task, or JOB.json")
    waiting.complete = FILES  # type: ignore[attr-defined]
    p.add_argument(
        "--policy",
        choices=("exact", "entropy", "joint", "size_sorted"),
        help="one job: exact or entropy, the paper's Algorithm 2; several: joint or size_sorted (default: exact, joint)",
    )
    option("level", "node, or an index into the nodes' network (default: deepest)", type=level, metavar="LEVEL")
    option("mode", "whether the level is required (default: as the job says, else preferred)")
    option("time_limit", "then the best found so far is taken", metavar="SECONDS", also=("allocation.allocate_many",))
    p.add_argument("--write-cluster", metavar="OUT.json", help="the snapshot with the pods of jobs from files, pending")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="the placements as a plan")
    bundle_options(p)


def allocate(args: argparse.Namespace) -> int:
    check_bundle(args)
    files = [job for job in args.jobs if job.endswith(".json")]
    require_writable(args.output, args.write_cluster, args.save_bundle, inputs=[args.cluster, *files])
    cluster = Cluster.from_json(args.cluster)
    problems, jobs = Problems(), []
    for job in args.jobs:
        with problems.collect():
            jobs.append(read_job(job, cluster))
    problems.raise_if_any()
    if len(jobs) > 1 and (args.level is not None or args.mode is not None):
        raise InvalidInput("--level, --mode: one job only; write them into the jobs' files")
    if len(jobs) == 1:
        options = given(args, "policy", "allocation.allocate")
        found = in_order = [allocation.allocate(cluster, jobs[0], **options)]
    else:
        options = given(args, "policy", "allocation.allocate_many")
        many = allocation.allocate_many(cluster, jobs, **options)
        found, in_order = many.jobs, [many.jobs[j] for j in many.order]
    for a in found:
        if a.placed:
            switches = ", ".join(f"{name} {gpus}" for name, gpus in a.per_domain.items())
            say(f"{a.job}: {counted(len(a.pods), 'pod')} placed, GPUs per domain: {switches}; entropy {a.entropy:.4f}")
        else:
            say(f"{a.job}: not placed: {a.reason}")
    plan = allocation.to_plan(*in_order)
    save_bundle(args, "allocate", cluster, {"jobs": jobs, **options}, plan if plan.placements else None)
    if args.write_cluster is not None:
        allocation.with_job(cluster, *[job for job in jobs if isinstance(job, dict)]).to_json(args.write_cluster)
        say(f"wrote {args.write_cluster}")
    if args.output is not None and plan.placements:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    return OK if all(a.placed for a in found) else FAILED


ADMIT_SWITCHES = {"no_moves": "moves", "no_evictions": "evictions", "no_replace": "replace", "no_standby": "standby", "no_work": "work"}
"""Options of the console that switch a keyword of `admit` off."""


def admit_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "admission.admit")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    waiting = p.add_argument("job", metavar="JOB", help="name of a job of the cluster with pending pods, or of a pending task, or JOB.json")
    waiting.complete = FILES  # type: ignore[attr-defined]
    flag(p, "--no-moves", "nobody is moved")
    flag(p, "--no-evictions", "nobody is evicted")
    flag(p, "--no-replace", "evicted tasks are not placed again")
    flag(p, "--no-standby", "nothing is borrowed from Standby tasks")
    flag(p, "--no-work", "the work that victims lose does not count")
    option("move_price_s", "of a move, for each GPU and unit of its move_cost", metavar="SECONDS")
    option("restart_s", "of an eviction with a new place, for each GPU", metavar="SECONDS")
    option("loss_s", "of an eviction without one, for each GPU", metavar="SECONDS")
    option("recall_price_s", "of each borrowed GPU", metavar="SECONDS")
    option("task_price_s", "of each disturbed task, in seconds of one GPU", metavar="SECONDS")
    option("budget_price_s", "of each task beyond a disruption budget (default: budgets hold)", metavar="SECONDS")
    for limit in ("max_moves", "max_evictions", "max_cost_s", "max_disrupted", "max_moves_per_wave", "max_moves_per_node"):
        option(limit)
    option("depth", "nesting of displacements")
    option("search_limit", "steps of the search for each pod")
    option("time_limit", "then the best found so far is taken", metavar="SECONDS")
    option("level", "node, or an index into the nodes' network (default: deepest)", type=level, metavar="LEVEL")
    option("mode", "whether the level is required (default: as the job says, else preferred)")
    option("now", "work is lost up to this time (default: the snapshot's)", metavar="SECONDS")
    p.add_argument("--exempt", type=names, metavar="NODES", help="nothing leaves these nodes and nothing moves onto them, names with commas between them (default: none)")
    p.add_argument("--spare", type=names, metavar="TASKS", help="these tasks are neither moved nor evicted, names with commas between them; * stands for any characters, as in 'inference/*' (default: none)")
    p.add_argument("--quotas", metavar="QUOTAS.json", help='a mapping with a list "quotas", of tenants and what each may hold (default: none)')
    p.add_argument("--write-cluster", metavar="OUT.json", help="the snapshot with the pods of a job from a file, pending")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="evictions, moves and placements as a plan")
    bundle_options(p)


def admit(args: argparse.Namespace) -> int:
    check_bundle(args)
    files = [args.job] if args.job.endswith(".json") else []
    require_writable(args.output, args.write_cluster, args.save_bundle, inputs=[args.cluster, args.quotas, *files])
    cluster = Cluster.from_json(args.cluster)
    job = read_job(args.job, cluster)
    options = given(args, "admission.admit")
    if args.quotas is not None:
        options["quotas"] = read_quotas(args.quotas)
    if args.exempt is not None:
        options["exempt"] = args.exempt
    if args.spare is not None:
        options["spare"] = matching("spare", args.spare, [task.name for task in cluster.tasks])
    options |= {name: False for option, name in ADMIT_SWITCHES.items() if getattr(args, option)}
    made = admission.admit(cluster, job, **options)
    save_bundle(args, "admit", cluster, {"job": job, **options}, made.plan if made.admitted else None)
    if args.write_cluster is not None:
        allocation.with_job(cluster, *([job] if isinstance(job, dict) else [])).to_json(args.write_cluster)
        say(f"wrote {args.write_cluster}")
    if not made.admitted:
        say("not admitted: " + made.reason)
        return FAILED
    again = {placement.task: placement for placement in made.plan.placements}
    for victim in made.plan.evictions:
        say(f"evict {victim}" + (f", which runs again on {again[victim].node}" if victim in again else ""))
    for move in made.plan.moves:
        say(f"wave {move.wave}: move {move.task} from {move.from_} to {move.to}{', by a restart' if move.how == 'restart' else ''}")
    for pod in made.pods:
        gpus = f": GPUs {', '.join(map(str, pod.gpus))}" if pod.gpus else ""
        say(f"{pod.task} goes to {pod.node}{gpus}")
    for budget, over in made.broken_budgets.items():
        say(f"disruption budget {budget} breaks by {counted(over, 'task')}")
    parts = ", ".join(f"{name} {value:,.0f}" for name, value in made.cost_parts.items() if value)
    bound = "no way costs less" if made.proven else f"no way costs less than {made.bound:,.0f}"
    say(f"cost {made.cost:,.0f} GPU-seconds" + (f" ({parts})" if parts else "") + f"; {bound}")
    if args.output is not None:
        made.plan.to_json(args.output)
        say(f"wrote {args.output}")
    return OK
