"""The console script `gpusched`: everyday jobs on files.

Exit codes: 0 done, 1 a plan does not verify, no eviction helps, a job is not placed, there is no serving plan or a log
replays otherwise, 2 bad input or a file that cannot be read or written, 130 interrupted, 141 whoever reads the output has
closed it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import io
import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO, cast

from . import __version__, allocation, consolidation
from ._commands import autoscale, bundles, clusters, completion, control, jobs, kube, plans, serving, topology
from ._commands.arguments import FILES, Parser, budgets, choices, flag, level, library_option, names, rate, rates, shapes, targets
from ._commands.shared import BAD_INPUT, CLOSED_PIPE, INTERRUPTED
from .errors import BackendError, InvalidInput
from .sim import HOST_COLUMNS


def add_scope(parser: Parser, function: str = "consolidation.consolidate") -> None:
    """What a plan may touch: for making it, and for telling why it left something alone."""
    option = functools.partial(library_option, parser, function)
    of_nodes: dict[str, Any] = {"type": names, "metavar": "NODES"}
    option("clear", "vacate only these nodes, names with commas between them (default: any)", **of_nodes)
    option("exempt", "leave these nodes as they are, names with commas between them (default: none)", **of_nodes)
    option("max_disrupted", "most members of a job that move in one wave")
    option("protect_core_members", "only members beyond a job's min_members may move")


def add_bundle(p: Parser) -> None:
    """A file with which somebody else can run the command again."""
    p.add_argument("--save-bundle", metavar="BUNDLE.json", help="write snapshot, options and plan here, for replay-bundle")
    p.add_argument("--anonymize-bundle", action="store_true", help="without the names that tell whose the snapshot is; the plan is made again")


def add_replay_bundle(p: Parser) -> None:
    p.add_argument("bundle", metavar="BUNDLE.json", help="what --save-bundle wrote")


def add_generate(p: Parser) -> None:
    generate = functools.partial(library_option, p, "sim.generate_cluster")
    presets = ("asi", "openb", "flextopo-4090", "constrained")
    p.add_argument("preset", nargs="?", known=presets, metavar="PRESET", help="asi (default), openb, flextopo-4090 or constrained: asi with MIG, shared cards, RDMA, spreading, budgets, gangs")
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json", help="write the cluster here")
    generate("nodes", "how many nodes (default: as many as the preset's original)")
    generate("seed")
    generate("layout")
    generate("load", "multiplies the allocated share of every kind of node")
    generate("cpu_tight", "tasks ask for about twice the cores per GPU")
    generate("locked_fraction", "probability that a task is locked (default: 0.4, for flextopo-4090 0)", metavar="PART")
    for name, of in clusters.CONSTRAINT_SHARES.items():
        generate(name, f"share of the {of} (default: 0, for constrained that of docs/sim.md)", metavar="PART")


def add_kubernetes_reading(p: Parser, of: str) -> None:
    """How objects of Kubernetes are read; `of` begins the help of each option."""
    option = functools.partial(library_option, p, "io.read_kubernetes")
    of_names: dict[str, Any] = {"type": names, "metavar": "NAMES"}
    option("schedulers", f"{of}schedulers whose pods may be moved and evicted, with commas between them (default: default-scheduler; kai: the one that wrote the snapshot)", **of_names)
    option("recreating_owners", f"{of}kinds of owners, besides those of Kubernetes, that make a pod anew when it goes (default: none)", **of_names)
    option("evict_bare_pods", f"{of}pods without an owner may be evicted; nobody makes them anew")
    option("network_labels", f"{of}labels that name a node's network domain, from the root down (default: of the Topology object, or of NVIDIA's topograph)", type=names, metavar="LABELS")


def add_import(p: Parser) -> None:
    option = functools.partial(library_option, p, "io.read_kubernetes")
    slurm = functools.partial(library_option, p, "io.read_slurm")
    both = functools.partial(option, also=("io.read_slurm",))
    p.add_argument("system", choices=("kubernetes", "kai", "slurm"), help="what wrote the files")
    files = p.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="kubernetes: what `kubectl get nodes,pods,pdb,priorityclasses -A -o json` prints, or other files with objects, JSON "
        "or YAML; of a folder all of these. kai: the zip archive of KAI-Scheduler's snapshot plugin. slurm: what `scontrol show nodes`, `show jobs -d` and `show partitions` print, as text or "
        "--json, and topology.conf or topology.yaml",
    )
    files.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json", help="write the snapshot here")
    p.add_argument("--report", metavar="REPORT.json", help="write the reading report here, too")
    add_kubernetes_reading(p, "kubernetes, kai: ")
    both("ignore_protection", "kubernetes, kai: pods marked as not safe to evict, or not to be disrupted, are like others; slurm: jobs of partitions with PreemptMode=OFF are like others")
    slurm("evict_without_requeue", "slurm: jobs that Slurm cannot requeue may be evicted; they are lost")
    slurm("array_tasks", "slurm: of a pending job array, the first that become tasks")
    slurm("topology", "slurm: which topology of topology.yaml (default: the cluster's default, or the only one)", metavar="NAME")
    both("examples", "names of objects in each row of the report")


def add_kube_snapshot(p: Parser) -> None:
    option = functools.partial(library_option, p, "io.read_kubernetes")
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json", help="write the snapshot here")
    p.add_argument("--raw", action="store_true", help="write the objects instead, for import kubernetes; what containers run is left out")
    p.add_argument("--report", metavar="REPORT.json", help="write here how the objects were listed and read")
    p.add_argument("--kubeconfig", metavar="FILE", help="credentials (default: as kubectl, KUBECONFIG, else ~/.kube/config)")
    p.add_argument("--context", metavar="NAME", help="of the kubeconfig (default: its current one)")
    flag(p, "--in-cluster", "use the service account of the pod that this runs in (default: no)")
    flag(p, "--allow-missing", "go on without kinds that the credentials may not list, or whose server does not answer; nodes and pods are needed (default: no)")
    p.add_argument("--page-size", type=int, metavar="N", help="objects asked for at once (default: 500)")
    p.add_argument("--timeout-s", type=float, metavar="SECONDS", help="for each request (default: 60)")
    add_kubernetes_reading(p, "")
    option("ignore_protection", "pods marked as not safe to evict, or not to be disrupted, are like others")
    option("examples", "names of objects in each row of the report")


def add_kube_rbac(p: Parser) -> None:
    """No option: `kubectl apply -f -` reads what it prints."""


def add_report(p: Parser) -> None:
    report = functools.partial(library_option, p, "fragmentation.report")
    every = functools.partial(report, also=("fragmentation.switch_slots", "fragmentation.unusable_nodes"))
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument(
        "--shapes",
        type=shapes,
        metavar="1x8,8x128",
        help="requests, GPUs x cores, or asi: the ASI paper's (default: the cluster's own, by what its tasks ask for)",
    )
    p.add_argument("--nodes", field="most_nodes", type=int, default=0, metavar="N", help="for each request, name N nodes with GPUs that it cannot use, and their tasks")
    report("by", "rows for each of these (default: one row for the whole cluster)", choices=("gpu_model", "cluster"))
    every("max_gpus_per_node", "leave out nodes with more GPUs")
    every("include_cordoned", "GPUs of cordoned nodes are idle too")
    every("accounting", "who holds capacity: all tasks, or HP tasks alone as in the ASI paper's figures", choices=("all", "hp"))
    p.add_argument("--job-gpus", field="gpus", type=int, default=128, metavar="N", help="size of the jobs counted per switch")
    p.add_argument("--cores-per-gpu", type=int, default=12, metavar="N", help="what those jobs ask for")
    p.add_argument("--csv", action="store_true", help="the table alone, as CSV")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the causes")


def add_replay(p: Parser) -> None:
    replay = functools.partial(library_option, p, "sim.replay")
    p.add_argument("nodes", metavar="NODES.csv", help="the trace's list of nodes")
    p.add_argument("pods", metavar="PODS.csv", help="the trace's list of pods")
    placements = tuple(allocation.placement_names())
    replay("placement", ", ".join(placements), choices=placements, metavar="NAME")
    replay("resample_to", "append or remove random pods until they ask for so many times the GPUs (default: as they are)", metavar="RATIO")
    replay("until", "stop after the events of that second (default: the last one)", metavar="SECONDS")
    replay("ignore_departures", "tasks stay for ever")
    replay("shuffle", "arrive in random order")
    replay("seed")
    p.add_argument("-o", "--output", metavar="CLUSTER.json", help="write the cluster at the end here")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_consolidate(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.consolidate")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan here")
    option("preset", "policies: ipc (the paper's algorithm), fast or best (ours)")
    known = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in consolidation.policy_names().items())
    option("policies", f"policies in place of some of the preset's: {known} (default: those of the preset)", type=choices, metavar="KIND=NAME,...")
    option("objective")
    option("price", "thousandths of a GPU (with objective nodes, of a node) that a move costs; 0 = vacate as much as possible", metavar="PRICE")
    option("bound_method")
    add_scope(p)
    for name in ("partition_size", "depth", "rounds", "seed", "threads"):
        option(name)
    for name in ("max_moves", "max_move_cost", "max_others", "max_moves_per_wave", "max_moves_per_node"):
        option(name)
    option("record_chains", "every move says its chain and the vacated node it serves; the plan is of version 2 then")
    option("time_limit", "stop after so long with the best plan found until then", metavar="SECONDS")
    option("polish_time", "search on for so long and keep the best plan (default: not at all)", metavar="SECONDS")
    p.add_argument("--report", action="store_true", help="costs and gains in detail")
    add_bundle(p)
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_frontier(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.frontier")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    option("points")
    option("price", "the lowest price that the search goes down to, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    option("preset", "policies: ipc (the paper's algorithm), fast or best (ours)")
    option("objective")
    option("bound_method")
    add_scope(p, "consolidation.frontier")
    for name in ("depth", "seed", "threads"):
        option(name)
    option("time_limit", "stop after so long with the points found until then", metavar="SECONDS")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the points and their bounds")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_reach_goal(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.reach_goal")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    option("count", "how many empty nodes, or places, there are to be afterwards; those that are there already count", metavar="N")
    option("gpu_model", "on nodes of this GPU model only (default: on any)", metavar="MODEL")
    for name in ("gpus", "cpu_milli", "memory_mib"):
        option(name, f"{name} of each place; without any of gpus, cpu_milli, memory_mib empty nodes are counted", metavar="N")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan here")
    option("preset", "how long the search goes on: fast or best")
    option("price", "the lowest price that the search goes down to, in thousandths of an empty node, or place, for a move", metavar="PRICE")
    option("bound_method")
    add_scope(p, "consolidation.reach_goal")
    for name in ("depth", "seed", "threads", "max_moves"):
        option(name)
    option("time_limit", "stop after so long with the best plan found until then", metavar="SECONDS")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_preempt(p: Parser) -> None:
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
    add_bundle(p)


def add_allocate(p: Parser) -> None:
    option = functools.partial(library_option, p, "allocation.allocate")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    waiting = p.add_argument("jobs", nargs="+", metavar="JOB", help="name of a job of the cluster with pending pods, or JOB.json")
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
    add_bundle(p)


def add_admit(p: Parser) -> None:
    option = functools.partial(library_option, p, "admission.admit")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    waiting = p.add_argument("job", metavar="JOB", help="name of a job of the cluster with pending pods, or JOB.json")
    waiting.complete = FILES  # type: ignore[attr-defined]
    flag(p, "--no-move", "nobody is moved")
    flag(p, "--no-evict", "nobody is evicted")
    flag(p, "--no-replace", "evicted tasks are not placed again")
    flag(p, "--no-borrow", "nothing is borrowed from Standby tasks")
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
    p.add_argument("--exempt", nargs="+", metavar="NODE", help="nothing leaves these nodes and nothing moves onto them (default: none)")
    p.add_argument("--spare", nargs="+", metavar="TASK", help="these tasks are neither moved nor evicted (default: none)")
    p.add_argument("--write-cluster", metavar="OUT.json", help="the snapshot with the pods of a job from a file, pending")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="evictions, moves and placements as a plan")
    add_bundle(p)


def add_plan_serving(p: Parser) -> None:
    alone = functools.partial(library_option, p, "serving.plan_serving")
    anew = functools.partial(alone, also=("serving.sweep_budgets",))
    option = functools.partial(alone, also=("serving.sweep_budgets", "serving.replan"))
    replan = functools.partial(library_option, p, "serving.replan")
    request = p.add_argument("request", metavar="REQUEST.yaml|json", help="as docs/serving.md describes it")
    request.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan here")
    alone("deadline", "find the cheapest plan within it (default: the fastest plan)", metavar="SECONDS")
    p.add_argument(
        "--budgets", type=budgets, metavar="B1,B2,...", help="a plan for each of these (default: the request's own)"
    )
    add_rates(p, "serving.plan_serving", ("serving.replan",))
    alone("goal", "with rates: the cheapest rental, or the most requests per second for the budget")
    anew("composition")
    anew("routing")
    anew("uniform_tp", "all replicas are tensor-parallel groups of one degree")
    p.add_argument("--price-ranges", action="store_true", help="with rates: say how far each price may move until another rental is cheaper")
    p.add_argument("--replan-from", metavar="PLAN.json", help="change this plan as little as possible")
    replan("max_starts", "with --replan-from: start so many replicas at most")
    replan("slack", "with --replan-from: accept this much more time for fewer starts", metavar="PART")
    option("max_deployments", "of each model, 0 = all")
    option("solver", "what solves the mixed-integer programs", choices=("auto", "highs", "cbc", "scipy"))
    option("time_limit", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_rates(p: Parser, function: str, also: tuple[str, ...] = ()) -> None:
    """Rates, targets and machines."""
    option = functools.partial(library_option, p, function, also=also)
    if function == "serving.plan_serving":
        option("rate", "requests per second, of all kinds or by name: chat=10,code=2 (default: the request's)", type=rate, metavar="R")
    for latency, told in (("ttft", "time to the first token"), ("tpot", "time per further token")):
        for percent in (50, 90, 99):
            option(
                f"{latency}_p{percent}_s", f"target: {percent} %% of requests have a {told} of at most so many seconds (default: none)".replace("%%", "%"),
                name=f"{latency}_p{percent}", metavar="SECONDS",
            )  # fmt: skip
    option("machines", "rent whole machines")
    option("measured_only", "plan with what was measured and nothing else")
    option("unmeasured_pipelines", "consider pipelines, too, where only deployments without were measured")
    option("utilization", "with rates: use this part of what a replica serves at most", metavar="PART")


def add_serving_curve(p: Parser) -> None:
    option = functools.partial(library_option, p, "serving.serving_curve")
    request = p.add_argument("request", metavar="REQUEST.yaml|json", help="as docs/serving.md describes it")
    request.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="CURVE.json|svg|png|pdf", help="write the points with their plans here, or a plot (default: nowhere)")
    p.add_argument("--rates", type=rates, metavar="R1,R2,...", help="requests per second of all kinds together (default: the request's)")
    p.add_argument(
        "--targets", type=targets, action="append", metavar="ttft_p90=0.5,tpot_p90=0.05",
        help="a set of targets in seconds; once for each set (default: those of the options)",
    )  # fmt: skip
    add_rates(p, "serving.serving_curve")
    option("max_deployments", "of each model, 0 = all")
    option("solver", "what solves the mixed-integer programs", choices=("auto", "highs", "cbc", "scipy"))
    option("time_limit", "of each plan (default: no limit)", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def add_autoscale(p: Parser) -> None:
    trace = p.add_argument("trace", metavar="TRACE.csv", help="requests: columns time_s, input, output, or those of Azure's traces of language models")
    trace.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="OUT.json", help="write the figures of every day and policy here (default: nowhere)")
    p.add_argument("--model", default="Llama-3-70B", metavar="NAME", help="language model")
    p.add_argument("--prefill", default="A100-80GB 1x4", metavar="DEPLOYMENT", help="of a prefill replica: GPU type and tensor-parallel group")
    p.add_argument("--decode", metavar="DEPLOYMENT", help="of a decode replica (default: as --prefill)")
    p.add_argument("--ttft", type=float, default=2.0, metavar="SECONDS", help="target: time to the first token")
    p.add_argument("--tpot", type=float, default=0.06, metavar="SECONDS", help="target: time per further token")
    p.add_argument("--percent", type=float, default=90.0, metavar="X", help="per cent of the requests that meet each target, 50 .. 99.9")
    p.add_argument(
        "--policies", type=names, default=list(autoscale.POLICIES), metavar="P1,P2,...",
        help=f"of {', '.join(autoscale.POLICIES)} (default: all)",
    )  # fmt: skip
    p.add_argument("--mean-rate", type=float, metavar="R", help="stretch the trace along a daily curve of so many requests per second (default: as recorded)")
    p.add_argument("--swing", type=float, default=0.5, metavar="X", help="of the curve: 0.5 is three times as many at the peak as in the night, 0 .. 0.95")
    p.add_argument("--peak-hour", type=float, default=15.0, metavar="H", help="of the curve, 0 .. 24")
    p.add_argument("--hours", type=float, default=24.0, metavar="H", help="of the curve: how long, above 0, at most 240")
    p.add_argument("--days", type=int, default=1, metavar="N", help="days along the curve, each with a level and a surge of its own")
    p.add_argument("--start-s", type=float, default=180.0, metavar="SECONDS", help="from a decision to a replica that serves")
    p.add_argument("--interval-s", type=float, default=60.0, metavar="SECONDS", help="between decisions")
    p.add_argument("--target-utilization", type=float, default=0.6, metavar="X", help="set point of utilization and token_rate, 0.05 .. 1")


def add_verify(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("plan", metavar="PLAN.json", help="the plan")
    library_option(p, "verify.plan", "max_violations", "how many violations are shown; all are counted")


def add_explain(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("plan", metavar="PLAN.json", help="the plan that was made for it")
    p.add_argument("node", nargs="+", metavar="NODE", help="names of nodes")
    add_scope(p)
    library_option(p, "consolidation.consolidate", "price", "the price that the plan was made at, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    library_option(p, "consolidation.consolidate", "objective")


def add_export(p: Parser) -> None:
    p.add_argument("plan", metavar="PLAN.json", help="the plan")
    p.add_argument("--to", choices=("csv", "kubernetes", "koordinator"), default="csv", help="the form to write")
    p.add_argument("--cluster", metavar="CLUSTER.json", help="the snapshot, for koordinator")
    p.add_argument(
        "--default-namespace", metavar="NAME", help="of tasks whose names have none (default: the one called default)"
    )
    p.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def add_topology(p: Parser) -> None:
    p.add_argument("what", choices=("show",), help="what to do")
    p.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a cluster; a machine as nvidia-smi topo -m, NCCL, hwloc or FlexTopo describe it; Slurm's topology.conf; "
        "a Topology of Kueue or KAI",
    )
    p.add_argument(
        "--node-labels",
        metavar="NODES.json",
        help="of Kueue or KAI: `kubectl get nodes -o json`; default: in FILE too",
    )
    p.add_argument("--this-machine", action="store_true", help="instead of a file: ask the hwloc library")
    p.add_argument("--dot", action="store_true", help="as a drawing for Graphviz")
    p.add_argument(
        "--no-nodes", dest="nodes", action="store_const", const=False, help="with --dot: the domains alone"
    )
    flag(p, "--cores", "with --dot of a machine: every core")
    p.add_argument("-o", "--output", metavar="FILE.dot", help="with --dot; default: standard output")


def add_anonymize(p: Parser) -> None:
    p.add_argument("input", metavar="IN.json", help="the snapshot")
    p.add_argument("output", metavar="OUT.json", help="write the one without names here")
    p.add_argument("--seed", type=int, metavar="N", help="where the order of the new names starts (default: 0)")


def add_control(p: Parser) -> None:
    p.add_argument("--config", required=True, metavar="FILE.json", help="with a section `live`: of this host")
    p.add_argument("--signals", metavar="FILE.jsonl", help="recorded windows (default: this host; without `live`, standard input)")
    flag(p, "--dry-run", "decide and tell, act on nothing")
    p.add_argument("--audit", metavar="LOG.jsonl", help="write the audit log; of a host, append to it")
    p.add_argument("--windows", type=int, metavar="N", help="of a host: stop after so many (default: no limit)")
    p.add_argument("--config-output", metavar="FILE.json", help="of a host: the configuration in effect, to replay the log")


def add_simulate_host(p: Parser) -> None:
    explain_columns(p, HOST_COLUMNS)
    option = functools.partial(library_option, p, "sim.simulate_host")
    p.add_argument(
        "--variants",
        nargs="+",
        choices=control.VARIANTS,
        default=list(control.VARIANTS),
        metavar="NAME",
        help="variants of the controller to compare",
    )
    p.add_argument("--seeds", type=int, default=7, metavar="N", help="runs per variant")
    p.add_argument("--first-seed", type=int, default=0, metavar="N", help="seed of the first run; the others follow")
    option("duration_s", metavar="SECONDS")
    option("scenario", "table3 or a harder one", metavar="NAME")
    p.add_argument(
        "--pause-mode",
        choices=("shed", "queue", "mbb"),
        help="what happens to requests while a tenant is paused (default: as the scenario says)",
    )
    flag(p, "--sensitivity", "instead: each setting of the controller changed by itself (threshold, persistence, window, dwell, levels)")
    p.add_argument("--audit", metavar="LOG.jsonl", help="audit log of the last variant's first run")
    p.add_argument("--config-output", metavar="FILE.json", help="its configuration, for replay-audit")
    p.add_argument("--plot", metavar="OUT.png", help="its timeline: p99, actions, instance")


def explain_columns(p: Parser, columns: Mapping[str, str]) -> None:
    """What the figures of a command's table are, below its options in the help."""
    lines = [
        textwrap.fill(f"{name}: {text}", 78, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
        for name, text in columns.items()
    ]
    p.epilog = "figures:\n" + "\n".join(lines)
    p.formatter_class = argparse.RawDescriptionHelpFormatter


def add_replay_audit(p: Parser) -> None:
    p.add_argument("log", metavar="LOG.jsonl", help="the audit log")
    p.add_argument("--config", required=True, metavar="FILE.json", help="the configuration that was in effect")
    flag(p, "--dry-run", "the log is of a dry run")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the timeline")


def add_plot(p: Parser) -> None:
    p.add_argument("what", choices=("occupancy", "gpus", "switches", "fragmentation"), help="what to draw")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("-o", "--output", required=True, metavar="OUT.png", help="write the figure here")
    p.add_argument(
        "--gpus", type=int, metavar="N", help="occupancy: only nodes with so many GPUs (default: the most common number)"
    )


def add_completion(p: Parser) -> None:
    p.add_argument("shell", choices=("bash", "zsh"), help="the shell that reads the script")
    p.set_defaults(parser=parser)


def add_explain_move(p: Parser) -> None:
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("plan", metavar="PLAN.json", help="the plan that was made for it")
    p.add_argument("task", metavar="TASK", help="name of a task")
    p.add_argument("node", nargs="+", metavar="NODE", help="names of nodes where it might go")
    add_scope(p)
    library_option(p, "consolidation.consolidate", "price", "the price that the plan was made at, in thousandths of a GPU (of a node) for a move", metavar="PRICE")
    p.set_defaults(parser=parser)


COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], Callable[[Parser], None], str], ...] = (
    ("generate", clusters.generate, add_generate, "write a generated cluster"),
    ("import", clusters.import_cluster, add_import, "read a cluster from what another system prints, and say how exactly"),
    ("kube snapshot", kube.snapshot, add_kube_snapshot, "read a cluster from its API server, and say how exactly"),
    ("kube rbac", kube.rbac, add_kube_rbac, "print the least rights that kube snapshot needs, for kubectl apply"),
    ("report", clusters.report, add_report, "say which idle GPUs cannot be used, and why"),
    ("replay", clusters.replay, add_replay, "place the tasks of an openb trace one by one"),
    ("consolidate", plans.consolidate, add_consolidate, "plan moves that vacate nodes, and check the plan"),
    ("frontier", plans.frontier, add_frontier, "show what can be vacated for how many moves, and what nobody can exceed"),
    ("reach-goal", plans.reach_goal, add_reach_goal, "make so many empty nodes, or places for tasks of a shape, by few moves"),
    ("preempt", jobs.preempt, add_preempt, "say whom to evict so that a pending task, or a gang, can run"),
    ("allocate", jobs.allocate, add_allocate, "place jobs over switches, each with all of its pods or not at all"),
    ("admit", jobs.admit, add_admit, "let a job in by placing, moving, evicting and borrowing, at the least cost"),
    (
        "plan-serving",
        serving.plan_serving,
        add_plan_serving,
        "say which GPUs to rent for language models, and where requests go",
    ),
    ("serving-curve", serving.serving_curve, add_serving_curve, "show what rates and latency targets cost"),
    ("autoscale", autoscale.autoscale, add_autoscale, "compare policies that scale prefill and decode replicas over a day of requests"),
    ("verify", plans.verify_plan, add_verify, "replay a plan and report every constraint that it breaks"),
    (
        "explain",
        plans.explain,
        add_explain,
        "say which task and which constraint kept a node; options as the plan was made with",
    ),
    (
        "explain-move",
        plans.explain_move,
        add_explain_move,
        "say what keeps a task off a node, and what the move would change; options as the plan was made with",
    ),
    ("replay-bundle", bundles.replay_bundle, add_replay_bundle, "run a saved command again and compare the plans"),
    ("export", plans.export, add_export, "write a plan as CSV, as kubectl steps or as Koordinator objects"),
    ("topology", topology.show_topology, add_topology, "show the network above the nodes, or a machine"),
    ("anonymize", clusters.anonymize, add_anonymize, "write a snapshot without the names that tell whose it is"),
    ("control", control.control_host, add_control, "control this host, or say what would be done on recorded signals"),
    ("simulate-host", control.simulate_host, add_simulate_host, "run the controller on a simulated host"),
    ("replay-audit", control.replay_audit, add_replay_audit, "derive the decisions of an audit log again"),
    ("plot", clusters.plot, add_plot, "draw a cluster"),
    ("completion", completion.completion, add_completion, "print the script that completes commands and options in a shell"),
)


GROUPS = {"kube": "read a Kubernetes cluster through its API server"}
"""First words of commands of two words."""


def parser() -> Parser:
    top = Parser(prog="gpusched", description="Scheduling algorithms for GPU clusters.")
    top.add_argument("--version", action="version", version=f"gpusched {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    groups: dict[str, Any] = {}
    for name, run, add, text in COMMANDS:
        group, _, word = name.rpartition(" ")
        if group and group not in groups:
            parent: Parser = subparsers.add_parser(group, help=GROUPS[group], description=sentence(GROUPS[group]))
            parent.problems = top.problems
            groups[group] = parent.add_subparsers(dest="command", required=True, metavar="COMMAND")
        sub: Parser = groups.get(group, subparsers).add_parser(word, help=text, description=sentence(text))
        sub.set_defaults(run=run, fields=sub.fields, command=name)
        sub.problems = top.problems
        top.commands[name] = sub
        add(sub)
    return top


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    if sys.stdout is None:  # the caller closed it (>&-)
        sys.stdout = cast(TextIO, Closed())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that it cannot show is no reason to end
    command = top = parser()
    try:
        try:
            args = top.parse_args(argv)
            command = top.commands[args.command]
        finally:
            flush()  # --help and --version print and end
        code = int(args.run(args))
        flush()
        return code
    except InvalidInput as error:
        complain(*map(command.by_option, error.problems))
    except BackendError as error:
        complain(error)
        return int(getattr(error, "exit_code", BAD_INPUT))
    except BrokenPipeError:  # whoever reads has seen enough
        abandon(sys.stdout)
        return CLOSED_PIPE
    except OSError as error:  # files have been seen to; this is standard output
        abandon(sys.stdout)
        complain(f"standard output: cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    return BAD_INPUT


class Closed(io.TextIOBase):
    """Standard output that nobody opened: what is written to it fails."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def complain(*problems: object) -> None:
    """One line each on standard error, as far as that can be written."""
    try:
        for problem in problems:
            print(f"gpusched: {problem}", file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def flush() -> None:
    sys.stdout.flush()


def abandon(stream: TextIO) -> None:
    """Keeps the interpreter from flushing what cannot be written when it ends, which would print or fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


if __name__ == "__main__":
    sys.exit(main())
