"""The console script `gpusched`: everyday jobs on files.

Exit codes: 0 done, 1 a plan does not verify, 2 bad input or a file that cannot be read, 130 interrupted.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import __version__, allocation, consolidation, fragmentation, io, sim, verify
from ._tables import format_table
from .errors import BackendError, InvalidInput
from .model import Cluster, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def shape(text: str) -> tuple[int, float]:
    """A request like 8x128 or 8G128C."""
    parts = text.upper().rstrip("C").replace("G", "X").split("X")
    try:
        gpus, cores = parts
        number = float(cores)
        return int(gpus), int(number) if number.is_integer() else number
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no request; write GPUs x cores, like 8x128") from None


def shapes(text: str) -> list[tuple[int, float]]:
    return [shape(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def given(args: argparse.Namespace, *fields: str) -> dict[str, Any]:
    """The options that were given; the library knows the defaults of all others."""
    return {name: value for name in fields if (value := getattr(args, name)) is not None}


def say(text: str = "") -> None:
    print(text)


def save_figure(path: str, draw: Callable[[], Axes]) -> None:
    try:
        import matplotlib
    except ImportError:
        raise BackendError("figures need matplotlib: pip install 'gpusched[plot]'") from None
    matplotlib.use("Agg")
    try:
        figure: Any = draw().figure
        figure.savefig(path, dpi=200, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise BackendError(f"{path}: cannot be written: {error}") from None
    say(f"wrote {path}")


def write_text(path: str | None, text: str) -> None:
    """To a file, or to standard output."""
    if path is None:
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BackendError(f"{path}: cannot be written: {error.strerror}") from None
    say(f"wrote {path}")


def describe(cluster: Cluster) -> str:
    nodes = cluster.nodes
    ratio = fragmentation.allocation_ratio(cluster)
    counts = fragmentation.occupancy(cluster)
    return (
        f"{len(nodes):,} nodes, {int(nodes.gpu_count.sum()):,} GPUs, {len(cluster.tasks):,} tasks "
        f"({int((cluster.tasks.node_index < 0).sum()):,} pending, "
        f"{int(cluster.tasks.locked.sum()):,} locked)\n"
        f"{100 * ratio.total:.1f} % of the GPUs allocated, HP alone {100 * ratio.hp:.1f} %; GPU nodes: "
        f"{counts.empty:,} empty, {counts.not_fully_occupied:,} not fully occupied, "
        f"{counts.fully_occupied:,} full"
    )


def generate(args: argparse.Namespace) -> int:
    cluster = sim.generate_cluster(
        **given(args, "preset", "nodes", "seed", "layout", "load", "cpu_tight", "locked_fraction")
    )
    cluster.to_json(args.output)
    say(describe(cluster))
    say(f"wrote {args.output}")
    return OK


def report(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    table = fragmentation.report(
        cluster, args.shapes, **given(args, "by", "max_gpus_per_node", "include_cordoned")
    )
    if args.csv:
        sys.stdout.write(table.to_csv())
    else:
        say(describe(cluster))
        for warning in cluster.warnings():
            say(f"note: {warning}")
        say("\nIdle GPUs that a request cannot use, by cause (percentages of all idle GPUs)")
        say(str(table))
        slots = fragmentation.switch_slots(
            cluster,
            **given(args, "include_cordoned", "max_gpus_per_node"),
            gpus=args.job_gpus,
            cores_per_gpu=args.cores_per_gpu,
        )
        say(f"\nJobs of {args.job_gpus} GPUs that could start, across and within switches")
        say(str(slots))
    if args.plot:
        save_figure(args.plot, table.plot)
    return OK


def replay(args: argparse.Namespace) -> int:
    trace = io.read_openb(args.nodes, args.pods)
    result = sim.replay(
        trace,
        progress=args.progress,
        **given(args, "placement", "until", "ignore_departures", "resample_to", "shuffle", "seed"),
    )
    timeline = result.timeline
    capacity = 1000 * trace.gpu_count
    if len(timeline):
        rows = [
            (
                "end",
                *(column[-1] for column in (timeline.requested_gpu_milli, timeline.allocated_gpu_milli)),
                timeline.fragmented_gpus[-1],
            )
        ]
        beyond = timeline.requested_gpu_milli > capacity
        if beyond.any() and beyond.argmax() > 0:
            at = int(beyond.argmax()) - 1
            rows.insert(
                0,
                (
                    "100 % requested",
                    timeline.requested_gpu_milli[at],
                    timeline.allocated_gpu_milli[at],
                    timeline.fragmented_gpus[at],
                ),
            )
        table = [
            (name, 100.0 * float(asked) / capacity, 100.0 * float(got) / capacity, float(lost))
            for name, asked, got, lost in rows
        ]
        say(format_table(("when", "requested_pct", "allocated_pct", "fragmented_gpus"), table))
    say(f"{len(timeline):,} arrivals, {len(result.unplaced):,} fitted nowhere")
    say(describe(result.cluster))
    if args.output:
        result.cluster.to_json(args.output)
        say(f"wrote {args.output}")
    return OK


def consolidate(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = consolidation.consolidate(
        cluster,
        progress=args.progress,
        **given(
            args,
            "preset",
            "partition_size",
            "depth",
            "rounds",
            "seed",
            "threads",
            "time_limit",
            "max_moves",
            "max_move_cost",
            "max_disrupted",
            "max_moves_per_wave",
            "max_moves_per_node",
            "protect_core_members",
            "objective",
            "bound_method",
            "clear",
            "exempt",
        ),
    )
    checked = verify.plan(cluster, plan)
    print_plan(plan)
    if args.report:
        say()
        say(str(consolidation.value_report(cluster, plan)).rstrip())
    if args.output:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    return print_check(checked)


def print_plan(plan: Plan) -> None:
    gpus, bound = plan.stats.get("vacated_gpus", 0), plan.bound
    say(
        f"{len(plan.vacated_nodes):,} nodes with {gpus:,} GPUs vacated by {len(plan.moves):,} moves "
        f"in {plan.waves} waves"
    )
    if bound["method"] and bound["vacated_gpus_at_most"]:
        say(
            f"{math.floor(1000 * gpus / bound['vacated_gpus_at_most']) / 10} % of the proven bound of "
            f"{bound['vacated_gpus_at_most']:,} GPUs "
            f"({bound['vacated_nodes_at_most']:,} nodes; {bound['method']})"
        )
    if plan.stop_reason != "completed":
        say(f"stopped early: {plan.stop_reason}")


def print_check(checked: verify.Report) -> int:
    if checked.ok:
        say("the plan verifies")
        return OK
    print(f"the plan does not verify: {checked.violation_count:,} violations", file=sys.stderr)
    for violation in checked.violations:
        print(f"  - {violation}", file=sys.stderr)
    return FAILED


def verify_plan(args: argparse.Namespace) -> int:
    checked = verify.plan(Cluster.from_json(args.cluster), args.plan, **given(args, "max_violations"))
    say(f"vacates {len(checked.vacated_nodes):,} nodes with {checked.vacated_gpus:,} GPUs")
    return print_check(checked)


def explain(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = Plan.from_json(args.plan)
    for node in args.node:
        say(str(consolidation.explain(cluster, plan, node)).rstrip())
    return OK


def export(args: argparse.Namespace) -> int:
    plan = Plan.from_json(args.plan)
    if args.to == "csv":
        write_text(args.output, io.plan_to_csv(plan))
    elif args.to == "kubernetes":
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


def anonymize(args: argparse.Namespace) -> int:
    io.anonymize(Cluster.from_json(args.input), **given(args, "seed")).to_json(args.output)
    say(f"wrote {args.output}")
    return OK


def plot(args: argparse.Namespace) -> int:
    from . import plotting

    cluster = Cluster.from_json(args.cluster)
    if args.what == "occupancy":
        save_figure(args.output, lambda: plotting.plot_occupancy(cluster, gpus=args.gpus))
    else:
        save_figure(args.output, lambda: fragmentation.report(cluster).plot())
    return OK


# The command line -----------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, without the usage text of all commands."""

    def error(self, message: str) -> Any:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_const", const=True, help=text)


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="gpusched", description="Scheduling algorithms for GPU clusters.")
    top.add_argument("--version", action="version", version=f"gpusched {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(run=run)
        return sub

    p = command("generate", generate, "write a generated cluster")
    p.add_argument("preset", nargs="?", help="asi (default), openb or flextopo-4090")
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json")
    p.add_argument("--nodes", type=int)
    p.add_argument("--seed", type=int)
    p.add_argument("--layout", choices=("random", "spread", "packed"))
    p.add_argument("--load", type=float)
    flag(p, "--cpu-tight", "tasks ask for about twice the cores per GPU")
    p.add_argument("--locked-fraction", type=float)

    p = command("report", report, "say which idle GPUs cannot be used, and why")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument(
        "--shapes", type=shapes, metavar="1x8,8x128", help="requests, GPUs x cores (default: the ASI paper's)"
    )
    p.add_argument("--by", choices=("gpu_model", "cluster"))
    p.add_argument("--max-gpus-per-node", type=int, metavar="N", help="leave out nodes with more GPUs")
    flag(p, "--include-cordoned", "GPUs of cordoned nodes are idle too")
    p.add_argument(
        "--job-gpus", type=int, default=128, metavar="N", help="size of the jobs counted per switch"
    )
    p.add_argument("--cores-per-gpu", type=int, default=12, metavar="N", help="what those jobs ask for")
    p.add_argument("--csv", action="store_true", help="the table alone, as CSV")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the causes")

    p = command("replay", replay, "place the tasks of an openb trace one by one")
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

    p = command("consolidate", consolidate, "plan moves that vacate nodes, and check the plan")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("-o", "--output", metavar="PLAN.json")
    p.add_argument("--preset", choices=("ipc", "fast", "best"))
    p.add_argument("--objective", choices=("gpus", "nodes"))
    p.add_argument("--bound-method", choices=("none", "counting", "lp"))
    p.add_argument("--clear", type=names, metavar="NODES", help="vacate only these nodes")
    p.add_argument("--exempt", type=names, metavar="NODES", help="leave these nodes as they are")
    for name in (
        "partition-size",
        "depth",
        "rounds",
        "seed",
        "threads",
        "max-moves",
        "max-move-cost",
        "max-disrupted",
        "max-moves-per-wave",
        "max-moves-per-node",
    ):
        p.add_argument("--" + name, type=int, metavar="N")
    p.add_argument("--time-limit", type=float, metavar="SECONDS")
    flag(p, "--protect-core-members", "only members beyond a job's min_members may move")
    p.add_argument("--report", action="store_true", help="costs and gains in detail")
    p.add_argument("--progress", action="store_true")

    p = command("verify", verify_plan, "replay a plan and report every constraint that it breaks")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("--max-violations", type=int, metavar="N")

    p = command("explain", explain, "say which task and which constraint kept a node")
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("node", nargs="+", metavar="NODE")

    p = command("export", export, "write a plan as CSV, as kubectl steps or as Koordinator objects")
    p.add_argument("plan", metavar="PLAN.json")
    p.add_argument("--to", choices=("csv", "kubernetes", "koordinator"), default="csv")
    p.add_argument("--cluster", metavar="CLUSTER.json", help="the snapshot, for koordinator")
    p.add_argument("--default-namespace", metavar="NAME")
    p.add_argument("-o", "--output", metavar="FILE", help="default: standard output")

    p = command("anonymize", anonymize, "write a snapshot without the names that tell whose it is")
    p.add_argument("input", metavar="IN.json")
    p.add_argument("output", metavar="OUT.json")
    p.add_argument("--seed", type=int)

    p = command("plot", plot, "draw a cluster")
    p.add_argument("what", choices=("occupancy", "fragmentation"))
    p.add_argument("cluster", metavar="CLUSTER.json")
    p.add_argument("-o", "--output", required=True, metavar="OUT.png")
    p.add_argument("--gpus", type=int, help="occupancy: only nodes with that many GPUs")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except InvalidInput as error:
        for problem in error.problems:
            print(f"gpusched: {problem}", file=sys.stderr)
    except BackendError as error:
        print(f"gpusched: {error}", file=sys.stderr)
    except ValueError as error:  # from the figures
        print(f"gpusched: {error}", file=sys.stderr)
    except BrokenPipeError:  # whoever reads has seen enough; keep the interpreter from flushing at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("gpusched: interrupted", file=sys.stderr)
        return INTERRUPTED
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
