"""The console script `gpusched`: everyday jobs on files.

Exit codes: 0 done, 1 a plan does not verify, no eviction helps, a job is not placed, there is no serving plan or a log
replays otherwise, 2 bad input or a file that cannot be read or written, 130 interrupted, 141 whoever reads the output has
closed it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TextIO, cast

from . import __version__, allocation
from ._commands import clusters, control, jobs, plans, serving, topology
from ._commands.arguments import Parser, budgets, choices, flag, level, names, shapes
from ._commands.shared import BAD_INPUT, CLOSED_PIPE, INTERRUPTED
from .errors import BackendError, InvalidInput


def add_scope(parser: argparse.ArgumentParser) -> None:
    """What a plan may touch: for making it, and for telling why it left something alone."""
    parser.add_argument("--clear", type=names, metavar="NODES", help="vacate only these nodes")
    parser.add_argument("--exempt", type=names, metavar="NODES", help="leave these nodes as they are")
    parser.add_argument(
        "--max-disrupted", type=int, metavar="N", help="most members of a job that move in one wave"
    )
    flag(parser, "--protect-core-members", "only members beyond a job's min_members may move")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="gpusched", description="Scheduling algorithms for GPU clusters.")
    top.add_argument("--version", action="version", version=f"gpusched {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> Parser:
        sub: Parser = subparsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(run=run)
        sub.problems = top.problems
        return sub

    p = command("generate", clusters.generate, "write a generated cluster")
    p.add_argument("preset", nargs="?", help="asi (default), openb or flextopo-4090")
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json")
    p.add_argument("--nodes", type=int)
    p.add_argument("--seed", type=int)
    p.add_argument("--layout", choices=choices("sim::GeneratorOptions::layout"))
    p.add_argument("--load", type=float)
    flag(p, "--cpu-tight", "tasks ask for about twice the cores per GPU")
    p.add_argument("--locked-fraction", type=float)

    p = command("report", clusters.report, "say which idle GPUs cannot be used, and why")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument(
        "--shapes", type=shapes, metavar="1x8,8x128", help="requests, GPUs x cores (default: the ASI paper's)"
    )
    p.add_argument("--by", choices=[name for name in choices("fragmentation::ReportOptions::by") if name != "none"])
    p.add_argument("--max-gpus-per-node", type=int, metavar="N", help="leave out nodes with more GPUs")
    flag(p, "--include-cordoned", "GPUs of cordoned nodes are idle too")
    p.add_argument(
        "--job-gpus", type=int, default=128, metavar="N", help="size of the jobs counted per switch"
    )
    p.add_argument("--cores-per-gpu", type=int, default=12, metavar="N", help="what those jobs ask for")
    p.add_argument("--csv", action="store_true", help="the table alone, as CSV")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the causes")

    p = command("replay", clusters.replay, "place the tasks of an openb trace one by one")
    p.add_argument("nodes", metavar="NODES.csv")
    p.add_argument("pods", metavar="PODS.csv")
    p.add_argument(
        "--placement",
        choices=tuple(allocation.placement_names()),
        metavar="NAME",
        help=", ".join(allocation.placement_names()),
    )
    p.add_argument(
        "--resample-to",
        type=float,
        metavar="RATIO",
        help="append or remove random pods until they ask for so many times the GPUs",
    )
    p.add_argument("--until", type=int, metavar="SECONDS")
    flag(p, "--ignore-departures", "tasks stay for ever")
    flag(p, "--shuffle", "arrive in random order")
    p.add_argument("--seed", type=int)
    p.add_argument("-o", "--output", metavar="CLUSTER.json")
    p.add_argument("--progress", action="store_true")

    p = command("consolidate", plans.consolidate, "plan moves that vacate nodes, and check the plan")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("-o", "--output", metavar="PLAN.json")
    p.add_argument("--preset", choices=choices("consolidation::Options::preset"))
    p.add_argument("--objective", choices=choices("consolidation::Options::objective"))
    p.add_argument("--bound-method", choices=choices("consolidation::Options::bound_method"))
    add_scope(p)
    for name in (
        "partition-size",
        "depth",
        "rounds",
        "seed",
        "threads",
        "max-moves",
        "max-move-cost",
        "max-others",
        "max-moves-per-wave",
        "max-moves-per-node",
    ):
        p.add_argument("--" + name, type=int, metavar="N")
    p.add_argument("--max-price-ratio", type=float, metavar="X")
    p.add_argument("--time-limit", type=float, metavar="SECONDS")
    p.add_argument(
        "--polish-time", type=float, metavar="SECONDS", help="search on for so long and keep the best plan"
    )
    p.add_argument("--report", action="store_true", help="costs and gains in detail")
    p.add_argument("--progress", action="store_true")

    p = command("preempt", jobs.preempt, "say whom to evict so that a pending task, or a gang, can run")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("tasks", nargs="*", metavar="TASK", help="name of a pending task of the cluster; several are a gang")
    p.add_argument("--job", metavar="JOB", help="all pending tasks of a job, as a gang")
    p.add_argument("--objective", choices=("cost", "lost_gangs"), help="of gangs: least lost work (default), or fewest gangs lost")
    p.add_argument("--policy", choices=("spot", "spot_exact", "imp", "exhaustive", "reprieve", "first_fit"))
    p.add_argument("--qos", choices=("guaranteed", "best_effort", "none"), help="instead of the task's own")
    p.add_argument("--alpha", type=float, metavar="WEIGHT", help="of the victims' priorities in the score")
    p.add_argument("--now", type=int, metavar="SECONDS", help="instead of the snapshot's time")
    p.add_argument("--search-limit", type=int, metavar="N", help="sets of victims looked at per node")
    p.add_argument("--time-limit", type=float, metavar="SECONDS", help="then the best found so far is taken")
    p.add_argument("-o", "--output", metavar="PLAN.json")

    p = command("allocate", jobs.allocate, "place jobs over switches, each with all of its pods or not at all")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("jobs", nargs="+", metavar="JOB", help="name of a job of the cluster with pending pods, or JOB.json")
    p.add_argument(
        "--policy",
        choices=("exact", "entropy", "joint", "size_sorted"),
        help="one job: exact (default) or entropy, the paper's Algorithm 2; several: joint (default) or size_sorted",
    )
    p.add_argument("--level", type=level, metavar="LEVEL", help="node, or an index into the nodes' network (default: deepest)")
    p.add_argument("--mode", choices=("required", "preferred"), help="instead of the job's own")
    p.add_argument("--make-room", action="store_true", help="plan moves when the job does not fit")
    p.add_argument("--time-limit", type=float, metavar="SECONDS", help="then the best found so far is taken")
    p.add_argument("--write-cluster", metavar="OUT.json", help="the snapshot with the pods of jobs from files, pending")
    p.add_argument("-o", "--output", metavar="PLAN.json", help="the placements as a plan")
    p = command(
        "plan-serving", serving.plan_serving, "say which GPUs to rent for language models, and where requests go"
    )
    p.add_argument("request", metavar="REQUEST.yaml|json", help="as docs/serving.md describes it")
    p.add_argument("-o", "--output", metavar="PLAN.json")
    p.add_argument("--deadline", type=float, metavar="SECONDS", help="find the cheapest plan within it")
    p.add_argument("--budgets", type=budgets, metavar="B1,B2,...", help="a plan for each of these instead of the request's own")
    p.add_argument("--composition", choices=("optimized", "homogeneous", "uniform"))
    p.add_argument("--routing", choices=("optimized", "round_robin"))
    flag(p, "--uniform-tp", "all replicas are tensor-parallel groups of one degree")
    p.add_argument("--replan-from", metavar="PLAN.json", help="change this plan as little as possible")
    p.add_argument("--max-starts", type=int, metavar="N", help="with --replan-from: start so many replicas at most")
    p.add_argument(
        "--slack", type=float, metavar="PART", help="with --replan-from: accept this much more time for fewer starts"
    )
    p.add_argument("--max-deployments", type=int, metavar="N", help="of each model, 0 = all")
    p.add_argument("--solver", choices=("auto", "highs", "cbc"))
    p.add_argument("--time-limit", type=float, metavar="SECONDS")
    p.add_argument("--mip-gap", type=float, metavar="PART")
    p.add_argument("--threads", type=int, metavar="N")
    p.add_argument("--progress", action="store_true")

    p = command("verify", plans.verify_plan, "replay a plan and report every constraint that it breaks")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("--max-violations", type=int, metavar="N")

    p = command("explain", plans.explain, "say which task and which constraint kept a node; options as the plan was made with")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("node", nargs="+", metavar="NODE")
    add_scope(p)

    p = command("export", plans.export, "write a plan as CSV, as kubectl steps or as Koordinator objects")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("--to", choices=("csv", "kubernetes", "koordinator"), default="csv")
    p.add_argument("--cluster", metavar="CLUSTER.json", help="the snapshot, for koordinator")
    p.add_argument("--default-namespace", metavar="NAME")
    p.add_argument("-o", "--output", metavar="FILE", help="default: standard output")

    p = command("topology", topology.show_topology, "show the network above the nodes, or a machine")
    p.add_argument("what", choices=("show",))
    p.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a cluster; a machine as nvidia-smi topo -m, NCCL, hwloc or FlexTopo describe it; Slurm's topology.conf; "
        "a Topology of Kueue or KAI",
    )
    p.add_argument(
        "--node-labels", metavar="NODES", help="of Kueue or KAI: `kubectl get nodes -o json`; default: in FILE too"
    )
    p.add_argument("--this-machine", action="store_true", help="instead of a file: ask the hwloc library")
    p.add_argument("--dot", action="store_true", help="as a drawing for Graphviz")
    p.add_argument(
        "--no-nodes", dest="nodes", action="store_const", const=False, help="with --dot: the domains alone"
    )
    flag(p, "--cores", "with --dot of a machine: every core")
    p.add_argument("-o", "--output", metavar="FILE.dot", help="with --dot; default: standard output")

    p = command("anonymize", clusters.anonymize, "write a snapshot without the names that tell whose it is")
    p.add_argument("input", metavar="IN.json")
    p.add_argument("output", metavar="OUT.json")
    p.add_argument("--seed", type=int)

    p = command("control", control.control_host, "control this host, or say what would be done on recorded signals")
    p.add_argument("--config", required=True, metavar="FILE.json", help="with a section `live`: of this host")
    p.add_argument("--signals", metavar="FILE.jsonl", help="recorded windows; default without `live`: standard input")
    flag(p, "--dry-run", "decide and tell, act on nothing")
    p.add_argument("--audit", metavar="LOG.jsonl", help="write the audit log; of a host, append to it")
    p.add_argument("--windows", type=int, metavar="N", help="of a host: stop after so many")
    p.add_argument("--config-output", metavar="FILE.json", help="of a host: the configuration in effect, to replay the log")

    p = command("simulate-host", control.simulate_host, "run the controller on a simulated host")
    p.add_argument(
        "--variants",
        nargs="+",
        choices=control.VARIANTS,
        default=list(control.VARIANTS),
        metavar="NAME",
        help=", ".join(control.VARIANTS),
    )
    p.add_argument("--seeds", type=int, default=7, metavar="N", help="runs per variant")
    p.add_argument("--first-seed", type=int, default=0, metavar="N")
    p.add_argument("--duration-s", type=float, metavar="SECONDS")
    p.add_argument("--scenario", metavar="NAME", help="table3 (default) or a harder one")
    p.add_argument("--pause-mode", choices=("shed", "queue", "mbb"))
    p.add_argument("--audit", metavar="LOG.jsonl", help="audit log of the last variant's first run")
    p.add_argument("--config-output", metavar="FILE.json", help="its configuration, for replay-audit")
    p.add_argument("--plot", metavar="OUT.png", help="its timeline: p99, actions, instance")

    p = command("replay-audit", control.replay_audit, "derive the decisions of an audit log again")
    p.add_argument("log", metavar="LOG.jsonl")
    p.add_argument("--config", required=True, metavar="FILE.json")
    flag(p, "--dry-run", "the log is of a dry run")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the timeline")

    p = command("plot", clusters.plot, "draw a cluster")
    p.add_argument("what", choices=("occupancy", "gpus", "switches", "fragmentation"))
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("-o", "--output", required=True, metavar="OUT.png")
    p.add_argument("--gpus", type=int, help="occupancy: only nodes with that many GPUs")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    if sys.stdout is None:  # the caller closed it (>&-)
        sys.stdout = cast(TextIO, Closed())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that it cannot show is no reason to end
    try:
        try:
            args = parser().parse_args(argv)
        finally:
            flush()  # --help and --version print and end
        code = int(args.run(args))
        flush()
        return code
    except InvalidInput as error:
        complain(*error.problems)
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
