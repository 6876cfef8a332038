# SPDX-License-Identifier: Apache-2.0
"""Commands for pending tasks and jobs: `preempt`, `allocate`, `admit`."""

from __future__ import annotations

import argparse
import contextlib
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core, admission, allocation, preemption
from .._views.tables import counted, listed
from ..errors import InvalidInput
from ..model import Cluster
from .arguments import Parser, flag, level, library_option, names
from .bundles import bundle_options, check_bundle, save_bundle
from .plans import print_risks
from .shared import (
    FAILED,
    NO_ROOM_NEEDED,
    OK,
    PATTERNS,
    Problems,
    expanded_patterns,
    given,
    is_slurm,
    matching,
    read_mapping,
    require_writable,
    save,
    say,
    slurm_name,
)

BEST_SO_FAR = "stop after this time and return the best result so far"
JOB = "name of a job of the cluster with pending pods, or of a pending task, or JOB.json"
JOBS_NAMED = 8
"""Jobs named in a message."""


def destination(cluster: Cluster, decision: preemption.Decision) -> str:
    several = "GPUs" if len(decision.gpus) > 1 else "GPU"
    gpus = f"{several} {', '.join(map(str, decision.gpus))}" if decision.gpus else "no GPUs"
    span = {"numa": "one NUMA node", "socket": "one socket", "cross": "several sockets"}[decision.topology]
    if len(decision.gpus) > 1 and cluster.nodes[decision.node].hardware is None:
        span = "sockets not known"
    return f"{decision.task} goes to {decision.node}: {gpus}" + (f" ({span})" if decision.gpus else "")


def report_victims(decision: preemption.Decision | preemption.GangDecision) -> None:
    placements = {placement.task: placement for placement in decision.replaced}
    for victim in decision.victims:
        new = placements.get(victim)
        gpus = f": GPUs {', '.join(map(str, new.gpus))}" if new is not None and new.gpus else ""
        say(f"evict {victim}" + (f", restart it on {new.node}{gpus}" if new is not None else ""))
    report_broken_budgets(decision.broken_budgets)


def report_broken_budgets(broken: dict[str, int]) -> None:
    for budget, excess in broken.items():
        say(f"disruption budget {budget} is exceeded by {counted(excess, 'task')}")


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
        say("no eviction: " + preemption.explain_gang(cluster, pods, **options))
        return FAILED if _core.preemption._waits_for_room(cluster, pods) else NO_ROOM_NEEDED
    for decision in found.pods:
        say(destination(cluster, decision))
    if not found.victims:
        say("all tasks fit without evictions")
    report_victims(found)
    if found.victims:
        losers = counted(found.lost_gangs, "gang or single task", "gangs and single tasks")
        say(f"lost work {found.cost:,.0f} GPU-seconds, of {losers}")
    save(args.output, plan)
    return OK


def preempt_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "preemption.preempt")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    text = "name of a pending task of the cluster, or of a job with pending tasks; several tasks are a gang"
    p.add("tasks", text, nargs="*", metavar="TASK")
    p.add("--job", "all pending tasks of a job, as a gang (default: the TASKs)", metavar="JOB")
    library_option(
        p, "preemption.preempt_gang", "objective", "for gangs: least lost work, or fewest lost gangs"
    )
    option("policy")
    option("qos", "service class of the task (default: as the task says)")
    option("score")
    option("alpha", metavar="WEIGHT")
    p.add("--break-budgets", "exceed disruption budgets if there is no other solution", action="store_true")
    p.add("--replace-victims", "restart victims on other nodes if they fit there", action="store_true")
    option("now", "the time of the decision (default: the snapshot's)", metavar="SECONDS")
    option("search_limit", "maximum number of victim sets to try per node")
    option("time_limit", BEST_SO_FAR, metavar="SECONDS")
    p.add("-o --output", "write evictions and placements here, as a plan", metavar="PLAN.json")
    bundle_options(p)


def preempt(args: argparse.Namespace) -> int:
    check_bundle(args)
    require_writable(args.output, args.save_bundle, inputs=[args.cluster])
    if (args.job is None) == (not args.tasks):
        raise InvalidInput(
            "TASK, --job: expected either names of pending tasks, or --job with the name of a job"
        )
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "preemption.preempt")
    options |= {name: True for name in ("break_budgets", "replace_victims") if getattr(args, name)}
    args.tasks = [slurm_name(cluster, name) for name in args.tasks]
    args.job = args.job and slurm_name(cluster, args.job)
    for name in args.tasks or [args.job]:
        with contextlib.suppress(InvalidInput):  # the call below says it for its own argument
            if (reason := why_not_pending(name, cluster)) is not None:
                say("no eviction: " + (f"{name}: " if len(args.tasks) > 1 else "") + reason)
                return NO_ROOM_NEEDED
    if (
        len(args.tasks) == 1
        and args.tasks[0] not in cluster.tasks.name
        and args.tasks[0] in cluster.tasks.job
    ):
        args.job, args.tasks = args.tasks[0], []
    if args.job is not None or len(args.tasks) > 1:
        return preempt_gang(args, cluster, **options)
    if args.objective is not None:
        raise InvalidInput("--objective: only for several tasks or with --job")
    task = args.tasks[0]
    with warnings.catch_warnings(record=True) as limits:
        warnings.simplefilter("always")
        decision = preemption.preempt(cluster, task, **options)
    plan = None if decision is None else preemption.to_plan(decision)
    save_bundle(args, "preempt", cluster, {"pods": [task], **options}, plan)
    if decision is None:
        for limit in limits:
            say(str(limit.message))
        explanation = preemption.explain(cluster, task, **options)
        say("no eviction: " + explanation.text)
        return status([explanation.obstacle])
    say(destination(cluster, decision))
    if not decision.victims:
        say("the task fits without evictions")
    report_victims(decision)
    if decision.victims:
        score = "" if decision.score is None else f", score {decision.score:.6g}"
        say(f"lost work {decision.cost:,.0f} GPU-seconds, sum of priorities {decision.priority_sum}{score}")
    if not decision.proven:
        say("a limit ended the search: there may be a better result")
    save(args.output, plan)
    return OK


def status(obstacles: Iterable[str]) -> int:
    """The exit status for jobs that found no place, by their obstacles."""
    found = list(obstacles)
    if not found:
        return OK
    return NO_ROOM_NEEDED if all(obstacle == "waiting" for obstacle in found) else FAILED


def read_job(source: str, cluster: Cluster) -> tuple[dict[str, Any] | str, str | None]:
    """A job from a file, or the name of a job of the cluster and why nothing of it is pending, if so."""
    if not source.endswith(".json"):
        name = slurm_name(cluster, source)
        return name, why_not_pending(name, cluster)
    job = read_mapping(source)
    try:
        _core.allocation._require_job(job, cluster)
    except InvalidInput as error:
        raise InvalidInput(
            [f"{source}: {problem.removeprefix('job: ')}" for problem in error.problems]
        ) from None
    return job, None


def read_quotas(path: str) -> list[Any]:
    document = read_mapping(path)
    if set(document) != {"quotas"} or not isinstance(document["quotas"], list):
        raise InvalidInput(f'{path}: expected a mapping with the list "quotas" and no other key')
    return document["quotas"]


def why_not_pending(name: str, cluster: Cluster) -> str | None:
    """Why nothing of a job or a task is pending, as `why` says it; None if something is pending.

    Raises InvalidInput for an unknown name. The message lists the pending jobs.
    """
    pending: dict[str, None] = {}
    for task in cluster.tasks:
        if task.node is not None:
            continue
        if name in (task.name, task.job):
            return None
        pending[task.job or task.name] = None  # a pod without an owner
    with contextlib.suppress(InvalidInput):
        return admission.why(cluster, name).cause
    similar = [job for job in pending if name in job] or list(pending)
    named = f"; pending jobs: {listed(similar, JOBS_NAMED, 'others') or 'none'}"
    raise InvalidInput(f"job: {name!r}; expected a job or a task of the cluster, or a file JOB.json{named}")


def level_options(option: Callable[..., None]) -> None:
    option(
        "level", "node, or an index into the nodes' network (default: deepest)", type=level, metavar="LEVEL"
    )
    option("mode", "whether the level is required (default: as the job says, else preferred)")


def save_cluster(args: argparse.Namespace, cluster: Cluster, jobs: list[Any]) -> None:
    """Writes the snapshot with the pending pods of jobs from files, if requested."""
    if args.write_cluster is not None:
        described = [job for job in jobs if isinstance(job, dict)]
        save(args.write_cluster, allocation.with_job(cluster, *described))


def allocate_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "allocation.allocate")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("jobs", JOB, nargs="+", metavar="JOB", file=True)
    p.add(
        "--policy",
        "one job: exact or entropy, the paper's Algorithm 2; several: joint or size_sorted (default: "
        "exact, joint)",
        choices=("exact", "entropy", "joint", "size_sorted"),
    )
    level_options(option)
    option("time_limit", BEST_SO_FAR, metavar="SECONDS", also=("allocation.allocate_many",))
    text = "write the snapshot with the pending pods of jobs from files here"
    p.add("--write-cluster", text, metavar="OUT.json")
    p.add("-o --output", "write the placements here, as a plan", metavar="PLAN.json")
    bundle_options(p)


def allocate(args: argparse.Namespace) -> int:
    check_bundle(args)
    files = [job for job in args.jobs if job.endswith(".json")]
    require_writable(args.output, args.write_cluster, args.save_bundle, inputs=[args.cluster, *files])
    cluster = Cluster.from_json(args.cluster)
    problems = Problems()
    jobs: list[dict[str, Any] | str] = []
    not_pending: dict[str, str] = {}
    for source in args.jobs:
        with problems.collect():
            job, reason = read_job(source, cluster)
            if reason is None:
                jobs.append(job)
            else:
                not_pending[source] = reason
    problems.raise_if_any()
    if len(args.jobs) > 1 and (args.level is not None or args.mode is not None):
        raise InvalidInput("--level, --mode: only for one job; for several jobs, set them in the jobs' files")
    for source, reason in not_pending.items():
        say(f"{source}: not placed: {reason}")
    if not jobs:
        return NO_ROOM_NEEDED
    if len(args.jobs) == 1:
        options = given(args, "policy", "allocation.allocate")
        found = in_order = [allocation.allocate(cluster, jobs[0], **options)]
    else:
        options = given(args, "policy", "allocation.allocate_many")
        many = allocation.allocate_many(cluster, jobs, **options)
        found, in_order = many.jobs, [many.jobs[j] for j in many.order]
    task = cluster._words["task"]
    for a in found:
        if a.placed:
            unit = "node" if set(a.per_domain) <= set(cluster.nodes.name) else "switch"
            switches = ", ".join(f"{name} {gpus}" for name, gpus in a.per_domain.items())
            say(f"{a.job}: {counted(len(a.pods), task)} placed; GPUs per {unit}: {switches}")
            if unit != "node":
                nodes = Counter(pod.node for pod in a.pods)
                say("  on " + ", ".join(f"{name} ({counted(n, task)})" for name, n in nodes.items()))
        else:
            say(f"{a.job}: not placed: {a.reason}")
    plan = allocation.to_plan(*in_order)
    save_bundle(args, "allocate", cluster, {"jobs": jobs, **options}, plan if plan.placements else None)
    save_cluster(args, cluster, jobs)
    save(args.output, plan if plan.placements else None)
    return status(["waiting"] * len(not_pending) + [a.obstacle for a in found if not a.placed])


ADMIT_SWITCHES = {
    "moves": "do not move tasks",
    "evictions": "do not evict tasks",
    "replace": "do not place evicted tasks again",
    "standby": "do not borrow from Standby tasks",
    "work": "ignore the lost work of victims",
}
"""Keywords of `admit` that an option --no-KEYWORD turns off, with help texts."""


def admit_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "admission.admit")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("job", JOB, metavar="JOB", file=True)
    for name, text in ADMIT_SWITCHES.items():
        flag(p, f"--no-{name}", text)
    for price in ("move_price_s", "restart_s", "loss_s", "recall_price_s", "task_price_s"):
        option(price, metavar="SECONDS")
    text = "price of each task beyond a disruption budget (default: budgets must not be exceeded)"
    option("budget_price_s", text, metavar="SECONDS")
    for limit in ("max_moves", "max_evictions", "max_cost_s", "max_disrupted"):
        option(limit)
    for limit in ("max_moves_per_wave", "max_moves_per_node", "depth", "search_limit"):
        option(limit)
    option("time_limit", BEST_SO_FAR, metavar="SECONDS")
    level_options(option)
    option("now", "time of the decision, for lost work (default: the snapshot's)", metavar="SECONDS")
    text = f"no task leaves these nodes or moves onto them, {PATTERNS} (default: none)"
    p.add("--exempt", text, type=names, metavar="NODES")
    text = (
        "these tasks are neither moved nor evicted, names separated by commas; * stands for any characters, "
        "as in 'inference/*' (default: none)"
    )
    p.add("--spare", text, type=names, metavar="TASKS")
    text = 'a mapping with the list "quotas": tenants and their limits (default: none)'
    p.add("--quotas", text, metavar="QUOTAS.json")
    text = "write the snapshot with the pending pods of a job from a file here"
    p.add("--write-cluster", text, metavar="OUT.json")
    p.add("-o --output", "write evictions, moves and placements here, as a plan", metavar="PLAN.json")
    bundle_options(p)


def admit(args: argparse.Namespace) -> int:
    check_bundle(args)
    files = [args.job] if args.job.endswith(".json") else []
    require_writable(
        args.output, args.write_cluster, args.save_bundle, inputs=[args.cluster, args.quotas, *files]
    )
    cluster = Cluster.from_json(args.cluster)
    job, reason = read_job(args.job, cluster)
    if reason is not None:
        say("not admitted: " + reason)
        return NO_ROOM_NEEDED
    options = given(args, "admission.admit")
    if args.quotas is not None:
        options["quotas"] = read_quotas(args.quotas)
    if args.exempt is not None:
        options["exempt"] = args.exempt
    if args.spare is not None:
        options["spare"] = matching("spare", args.spare, [task.name for task in cluster.tasks])
    options |= {name: False for name in ADMIT_SWITCHES if getattr(args, f"no_{name}")}
    with expanded_patterns(cluster, options):
        made = admission.admit(cluster, job, **options)
    save_bundle(args, "admit", cluster, {"job": job, **options}, made.plan if made.admitted else None)
    save_cluster(args, cluster, [job])
    if not made.admitted:
        say("not admitted: " + made.reason)
        return status([made.obstacle])
    placements = {placement.task: placement for placement in made.plan.placements}
    for victim in made.plan.evictions:
        say(
            f"evict {victim}" + (f", restart it on {placements[victim].node}" if victim in placements else "")
        )
    for move in made.plan.moves:
        kind, gpus, *_ = made.plan._tasks.get(move.task, (None, 0))
        of = f" of a {kind}" if kind else " without an owner" if kind == "" else ""
        how = "restarted" if move.how == "restart" else "copied"
        what = f"{counted(gpus, 'GPU')}{of}, {how}"
        say(f"wave {move.wave + 1}: move {move.task} from {move.from_} to {move.to} ({what})")
    for pod in made.pods:
        gpus = f": GPUs {', '.join(map(str, pod.gpus))}" if pod.gpus else ""
        say(f"{pod.task} goes to {pod.node}{gpus}")
    if made.plan.moves or made.plan.evictions:
        say(str(made.plan.disturbs))
        print_risks(cluster, made.plan)
    report_broken_budgets(made.broken_budgets)
    restarted = {move.task for move in made.plan.moves if move.how == "restart"}
    word = cluster._words["task"]
    if is_slurm(cluster):  # it restarts whole jobs
        restarted, word = {cluster.tasks[name].job or name for name in restarted}, "job"
    parts = ", ".join(f"{name} {value:,.0f}" for name, value in made.cost_parts.items() if value)
    bound = "no plan costs less" if made.proven else f"no plan costs less than {made.bound:,.0f}"
    if restarted:
        bound += f"; not counted: work lost by {counted(len(restarted), f'restarted {word}')}"
    say(f"cost {made.cost:,.0f} GPU-seconds" + (f" ({parts})" if parts else "") + f"; {bound}")
    save(args.output, made.plan)
    return OK
