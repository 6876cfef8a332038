"""What the commands of the console script do: each takes the parsed arguments and returns the exit code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import allocation, consolidation, fragmentation, io, preemption, serving, sim, topology, verify
from ._tables import format_table
from .errors import BackendError, InvalidInput
from .model import Cluster, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OK, FAILED, BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141


def given(args: argparse.Namespace, *fields: str) -> dict[str, Any]:
    """The options that were given; the library knows the defaults of all others."""
    return {name: value for name in fields if (value := getattr(args, name)) is not None}


class Problems:
    """Mistakes in the options of one call that different functions of the library find."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        try:
            yield
        except InvalidInput as error:
            self.found += [problem for problem in error.problems if problem not in self.found]

    def raise_if_any(self) -> None:
        if self.found:
            raise InvalidInput(self.found)


def require_writable(*paths: str | None) -> None:
    """Raises BackendError unless files can be written there: before work that would be lost."""
    for path in paths:
        if path is None:
            continue
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                if os.path.isdir(path):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                continue  # a pipe or a device; opening it may wait for somebody or do something
            target = os.path.realpath(path)  # what is removed must not be a link that was there
            new = not os.path.exists(target)
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o666))
            if new:
                os.unlink(target)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BackendError(f"{path}: cannot be written: {reason}") from None


def say(text: str = "") -> None:
    print(text)


def read_mapping(path: str) -> dict[str, Any]:
    """A JSON or, where PyYAML is installed, YAML file that holds a mapping."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise BackendError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    document: Any
    if path.endswith((".yaml", ".yml")):
        try:
            yaml: Any = importlib.import_module("yaml")
        except ImportError:
            raise BackendError(f"{path}: YAML needs PyYAML: pip install pyyaml; or write JSON") from None
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidInput(f"{path}: no YAML: {error}") from None
    else:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InvalidInput(f"{path}: no JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{path}: expected a mapping")
    return document


def write_json(path: str, document: dict[str, Any]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise BackendError(f"{path}: cannot be written: {error.strerror}") from None


def save_figure(path: str, draw: Callable[[], Axes]) -> None:
    try:
        import matplotlib
    except ImportError:
        raise BackendError("figures need matplotlib: pip install 'gpusched[plot]'") from None
    matplotlib.use("Agg")
    try:
        figure: Any = draw().figure
        figure.savefig(path, dpi=200, bbox_inches="tight")
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise BackendError(f"{path}: cannot be written: {error}") from None
    say(f"wrote {path}")


def write_text(path: str | None, text: str) -> None:
    """To a file, or to standard output."""
    if path is None:
        print(text, end="")
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
    require_writable(args.output)
    cluster = sim.generate_cluster(
        **given(args, "preset", "nodes", "seed", "layout", "load", "cpu_tight", "locked_fraction")
    )
    cluster.to_json(args.output)
    say(describe(cluster))
    say(f"wrote {args.output}")
    return OK


def report(args: argparse.Namespace) -> int:
    require_writable(args.plot)
    cluster = Cluster.from_json(args.cluster)
    problems = Problems()
    with problems.collect():
        table = fragmentation.report(
            cluster, args.shapes, **given(args, "by", "max_gpus_per_node", "include_cordoned")
        )
    with problems.collect():
        slots = fragmentation.switch_slots(
            cluster,
            **given(args, "include_cordoned", "max_gpus_per_node"),
            gpus=args.job_gpus,
            cores_per_gpu=args.cores_per_gpu,
        )
    problems.raise_if_any()
    if args.csv:
        write_text(None, table.to_csv())
    else:
        say(describe(cluster))
        for warning in cluster.warnings():
            say(f"note: {warning}")
        say("\nIdle GPUs that a request cannot use, by cause (percentages of all idle GPUs)")
        say(str(table))
        say(f"\nJobs of {args.job_gpus} GPUs that could start, across and within switches")
        say(str(slots))
    if args.plot:
        save_figure(args.plot, table.plot)
    return OK


def replay(args: argparse.Namespace) -> int:
    require_writable(args.output)
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
    require_writable(args.output)
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
            "polish_time",
            "max_moves",
            "max_move_cost",
            "max_others",
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
    # Against the file, which no code of the search has touched; a pipe cannot be read twice.
    checked = verify.plan(args.cluster if os.path.isfile(args.cluster) else cluster, plan)
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
    checked = verify.plan(args.cluster, args.plan, **given(args, "max_violations"))
    say(f"vacates {len(checked.vacated_nodes):,} nodes with {checked.vacated_gpus:,} GPUs")
    return print_check(checked)


def explain(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = Plan.from_json(args.plan)
    scope = given(args, "protect_core_members", "max_disrupted", "clear", "exempt")
    problems, texts = Problems(), []
    for node in args.node:
        with problems.collect():
            texts.append(str(consolidation.explain(cluster, plan, node, **scope)).rstrip())
    problems.raise_if_any()
    for text in texts:
        say(text)
    return OK


def preempt(args: argparse.Namespace) -> int:
    require_writable(args.output)
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "policy", "qos", "alpha", "now", "search_limit")
    decision = preemption.preempt(cluster, args.task, **options)
    if decision is None:
        say("nobody is evicted: " + preemption.explain(cluster, args.task, **options).text)
        return FAILED
    gpus = f"GPUs {', '.join(map(str, decision.gpus))}" if decision.gpus else "no GPUs"
    where = {"numa": "one NUMA node", "socket": "one socket", "cross": "several sockets"}[decision.topology]
    say(f"{decision.task} goes to {decision.node}: {gpus}" + (f" ({where})" if decision.gpus else ""))
    if not decision.victims:
        say("it fits as it is")
    for victim in decision.victims:
        say(f"evict {victim}")
    if decision.victims:
        score = "" if decision.score is None else f", score {decision.score:.6g}"
        say(f"lost work {decision.cost:,.0f} GPU-seconds, sum of priorities {decision.priority_sum}{score}")
    if not decision.proven:
        say("the search limit was hit: this may not be the best answer")
    if args.output is not None:
        preemption.to_plan(decision).to_json(args.output)
        say(f"wrote {args.output}")
    return OK


def read_job(source: str) -> dict[str, Any] | str:
    """A job's description from a file, or the name of one of the cluster's."""
    if not source.endswith(".json"):
        return source
    try:
        job = json.loads(Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise BackendError(f"{source}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"{source}: {error}") from None
    if not isinstance(job, dict):
        raise InvalidInput(f"{source}: no JSON object; expected a job")
    return job


def allocate(args: argparse.Namespace) -> int:
    for path in (args.output, args.write_cluster):
        require_writable(path)
    cluster = Cluster.from_json(args.cluster)
    jobs = [read_job(job) for job in args.jobs]
    if len(jobs) > 1 and (args.make_room or args.level is not None or args.mode is not None):
        raise InvalidInput("--level, --mode, --make-room: one job only; write them into the jobs' files")
    options = given(args, "level", "mode")
    plan = None
    if len(jobs) == 1:
        found = [allocation.allocate(cluster, jobs[0], **options, **given(args, "policy"))]
        if args.make_room and not found[0].placed:
            plan = consolidation.make_room(cluster, jobs[0], **options)
    else:
        found = allocation.allocate_many(cluster, jobs, **given(args, "policy")).jobs
    for a in found:
        if a.placed:
            switches = ", ".join(f"{name} {gpus}" for name, gpus in a.per_domain.items())
            say(f"{a.job}: {len(a.pods)} pods placed, GPUs per domain: {switches}; entropy {a.entropy:.4f}")
        elif plan is not None:
            moves, pods = len(plan.moves), len(plan.placements)
            say(f"{a.job}: moves make room: {moves} in {plan.waves} waves, then {pods} pods")
        else:
            say(f"{a.job}: not placed: {a.reason}")
    if plan is None:
        plan = allocation.to_plan(*found)
    if args.write_cluster is not None:
        allocation.with_job(cluster, *[job for job in jobs if isinstance(job, dict)]).to_json(args.write_cluster)
        say(f"wrote {args.write_cluster}")
    if args.output is not None:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    return OK if all(a.placed for a in found) or plan.moves else FAILED


def plan_serving(args: argparse.Namespace) -> int:
    require_writable(args.output)
    request = read_mapping(args.request)
    options = given(args, "max_deployments", "solver", "time_limit", "mip_gap", "threads", "progress")
    if args.replan_from is not None:
        running = read_mapping(args.replan_from).get("replicas")
        if not isinstance(running, list):
            raise InvalidInput(f"{args.replan_from}: replicas: expected a list, as in a serving plan")
        changed = serving.replan(request, running, **options, **given(args, "max_starts", "slack"))
        plan = changed.plan
    else:
        changed = None
        if args.max_starts is not None or args.slack is not None:
            raise InvalidInput("--max-starts and --slack: only with --replan-from")
        plan = serving.plan_serving(
            request, **options, **given(args, "composition", "routing", "uniform_tp", "deadline")
        )
    document = serving.plan_to_dict(plan, changed)
    if args.output:
        write_json(args.output, document)
    if plan.makespan is None:
        say(f"no plan: {plan.status}" + (f" ({plan.message})" if plan.message else ""))
        return FAILED
    rows = [
        (
            replicas["model"],
            replicas["deployment"],
            replicas["count"],
            replicas["cost"],
            ", ".join(f"{share:.1%} of {name}" for name, share in replicas["share"].items()),
        )
        for replicas in plan.replicas
    ]
    say(format_table(("model", "deployment", "replicas", "cost_per_h", "serves"), rows))
    rented = ", ".join(f"{count} {name}" for name, count in plan.rented.items())
    say(f"rent {rented or 'nothing'}: {plan.cost:.2f} $/h")
    proof = "proven best" if plan.optimal else f"at least {plan.bound or 0:.4g} s are needed"
    say(f"all requests are done after {plan.makespan:.4g} s ({plan.requests_per_s:.4g} per second); {proof}")
    if plan.left_out:
        say(f"of {plan.deployments:,} possible deployments, {plan.left_out:,} were not considered (--max-deployments)")
    if changed is not None:
        say(f"starts {changed.starts} replicas and stops {changed.stops}")
    if args.output:
        say(f"wrote {args.output}")
    return OK


def export(args: argparse.Namespace) -> int:
    require_writable(args.output)
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
    require_writable(args.output)
    io.anonymize(Cluster.from_json(args.input), **given(args, "seed")).to_json(args.output)
    say(f"wrote {args.output}")
    return OK


def plot(args: argparse.Namespace) -> int:
    from . import plotting

    require_writable(args.output)
    cluster = Cluster.from_json(args.cluster)
    if args.what == "occupancy":
        save_figure(args.output, lambda: plotting.plot_occupancy(cluster, gpus=args.gpus))
    else:
        save_figure(args.output, lambda: fragmentation.report(cluster).plot())
    return OK


def kind_of_topology(path: str) -> str:
    """What a file seems to hold: "cluster", "slurm" or "machine". A pipe, which cannot be read twice, a cluster."""
    if not os.path.isfile(path):
        return "cluster"
    name = os.path.basename(path)
    if name.endswith(".conf") or name in ("topology.yaml", "topology.yml"):
        return "slurm"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            start = file.read(1 << 16)
    except OSError as error:
        raise BackendError(f"{path}: cannot be opened: {error.strerror}") from None
    if start.lstrip("\ufeff \t\r\n").startswith("{") and "FlexTopo" not in start:
        return "cluster"
    return "machine"


def show_machine(args: argparse.Namespace) -> int:
    if args.nodes is not None:
        raise InvalidInput("--no-nodes: only a network has nodes to leave out")
    reading = io.read_hardware(args.file)
    graph = reading.graph
    if args.dot:
        write_text(args.output, topology.hardware_to_dot(graph, **given(args, "cores")))
        return OK
    vertices = graph.vertices
    counts = {kind: sum(v["kind"] == kind for v in vertices) for kind in ("gpu", "numa_node", "socket", "core")}
    say(
        f"{counts['gpu']} GPUs, {counts['numa_node']} NUMA nodes, {counts['socket']} sockets, "
        f"{counts['core']} cores"
    )
    gpus = sorted((v for v in vertices if v["kind"] == "gpu"), key=lambda v: int(v["id"]))
    if gpus:
        rows = [
            (
                v["id"],
                *("-" if at is None else at for at in places(graph, v["id"])),
                v["model"] or "-",
                v["status"],
                v["used_by"] or "-",
            )
            for v in gpus
        ]
        say(format_table(("gpu", "numa_node", "socket", "pcie_root", "model", "status", "used_by"), rows))
    if len(gpus) > 1:
        ids = [v["id"] for v in gpus]
        say("GB/s between GPUs (widest path, one direction):")
        links = [
            (a, *("-" if a == b else f"{graph.bandwidth(a, b):.6g}" for b in ids)) for a in ids
        ]
        say(format_table(("gpu", *map(str, ids)), links))
    for note in reading.notes:
        say(f"note: {note}")
    return OK


def places(graph: topology.HardwareGraph, gpu: int) -> tuple[int | None, int | None, int | None]:
    """Where a GPU is: NUMA node, socket, PCIe root."""
    return graph.numa_node_of([gpu]), graph.socket_of([gpu]), graph.pcie_root_of([gpu])


def show_topology(args: argparse.Namespace) -> int:
    require_writable(args.output)
    if args.output is not None and not args.dot:
        raise InvalidInput("--output: only the drawing is written to a file; add --dot")
    kind = kind_of_topology(args.file)
    if kind == "machine":
        return show_machine(args)
    if args.cores:
        raise InvalidInput("--cores: only a machine has cores to draw")
    if kind == "slurm":
        reading = io.read_slurm_topology(args.file)
        for note in reading.notes:
            say(f"note: {note}")
        tree = io.network_tree(reading)
    else:
        tree = topology.NetworkTree(Cluster.from_json(args.file))
    if args.dot:
        write_text(args.output, topology.to_dot(tree, **given(args, "nodes")))
        return OK
    rows = []
    for level in range(tree.levels):
        sizes = sorted(len(domain.nodes) for domain in tree.domains(level))
        rows.append((level, len(sizes), sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else (level, 0, 0, 0, 0))
    say(format_table(("level", "domains", "fewest_nodes", "median_nodes", "most_nodes"), rows))
    alone = sum(vertex.level == "node" for vertex in tree.root.children)
    say(f"{len(tree.root.nodes):,} nodes, {alone:,} of unknown position")
    return OK
