"""Commands on snapshots: `generate`, `import`, `report`, `replay`, `anonymize`, `plot`."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

from .. import allocation, fragmentation, io, sim
from .._views.tables import format_table
from .._views.words import counted
from ..errors import InvalidInput
from ..model import Cluster
from .arguments import FILES, Parser, library_option, names, shapes
from .shared import OK, Problems, given, refuse, require_writable, save_figure, say, write_text

TASKS_SHOWN = 4
"""By name, of each node of a report."""


def kubernetes_reading_options(p: Parser, of: str) -> None:
    """How objects of Kubernetes are read; `of` begins the help of each option."""
    option = functools.partial(library_option, p, "io.read_kubernetes")
    of_names: dict[str, Any] = {"type": names, "metavar": "NAMES"}
    option("schedulers", f"{of}schedulers whose pods may be moved and evicted, with commas between them (default: default-scheduler; kai: the one that wrote the snapshot)", **of_names)
    option("recreating_owners", f"{of}kinds of owners, besides those of Kubernetes, that make a pod anew when it goes (default: none)", **of_names)
    option("evict_bare_pods", f"{of}pods without an owner may be evicted; nobody makes them anew")
    option("open_unready_nodes", f"{of}nodes that are not ready receive pods where no taint keeps them off, as from kube-scheduler")
    option("moves_by_eviction", f"{of}pods of Deployments move by an eviction, as a stock cluster can carry out: they are down in between, and budgets count them")
    option("gpu_resources", f"{of}resources that are whole GPUs besides those that are known, like metax-tech.com/gpu, with commas between them (default: none)", **of_names)
    option("network_labels", f"{of}labels that name a node's network domain, from the root down (default: of the Topology object, or of NVIDIA's topograph)", type=names, metavar="LABELS")


def describe(cluster: Cluster) -> str:
    nodes, tasks = cluster.nodes, cluster.tasks
    ratio = fragmentation.allocation_ratio(cluster)
    counts = fragmentation.occupancy(cluster)
    failed, cordoned = nodes.failed_gpu_count.sum(), (~nodes.schedulable).sum()
    out_of_service = [counted(failed, "failed GPU")] * bool(failed)
    out_of_service += [counted(cordoned, "cordoned node")] * bool(cordoned)
    return (
        f"{counted(len(nodes), 'node')}, {counted(nodes.gpu_count.sum(), 'GPU')}, {counted(len(tasks), 'task')} "
        f"({(tasks.node_index < 0).sum():,} pending, {tasks.locked.sum():,} locked)"
        f"{''.join(', ' + text for text in out_of_service)}\n"
        f"{100 * ratio.total:.1f} % of the GPUs allocated, HP alone {100 * ratio.hp:.1f} %; GPU nodes: "
        f"{counts.empty:,} empty, {counts.not_fully_occupied:,} not fully occupied, "
        f"{counts.fully_occupied:,} full"
    )


# What each share of `sim.generate_cluster` is of.
CONSTRAINT_SHARES = {
    "mig_fraction": "nodes of 8 GPUs of which two cards are split into MIG instances",
    "shared_fraction": "nodes of 2 or 4 GPUs of which one card is shared",
    "large_fraction": "nodes of 8 GPUs that have 32",
    "rdma_fraction": "jobs that ask for RDMA adapters",
    "named_node_fraction": "jobs that name nodes",
    "spread_fraction": "jobs of 3 or more that are spread over zones, racks or nodes",
    "avoid_fraction": "jobs of several whose members avoid each other",
    "near_fraction": "jobs that want to be near another",
    "budget_fraction": "jobs of several with a disruption budget",
    "restart_fraction": "jobs that restart to move",
    "suspend_fraction": "jobs that are suspended to move",
    "fixed_fraction": "jobs that never move",
    "gang_fraction": "jobs of several of which most members must run",
}


def generate_options(p: Parser) -> None:
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
    for name, of in CONSTRAINT_SHARES.items():
        generate(name, f"share of the {of} (default: 0, for constrained that of docs/sim.md)", metavar="PART")


def generate(args: argparse.Namespace) -> int:
    require_writable(args.output)
    cluster = sim.generate_cluster(**given(args, "preset", "sim.generate_cluster"))
    cluster.to_json(args.output)
    say(describe(cluster))
    say(f"wrote {args.output}")
    return OK


NODES_SHOWN = 5
"""By name, of those that are cordoned."""


def say_left_out(cluster: Cluster, args: argparse.Namespace) -> None:
    """Says what the figures of idle GPUs do not hold: cordoned nodes, and devices that are no whole GPUs."""
    cordoned = [node for node in cluster.nodes if not node.schedulable and node.gpu_count > 0]
    idle = sum(node.idle_gpu_count for node in cordoned)
    if cordoned and not args.include_cordoned:
        named = ", ".join(node.name for node in cordoned[:NODES_SHOWN])
        more = f" and {len(cordoned) - NODES_SHOWN:,} more" if len(cordoned) > NODES_SHOWN else ""
        say(f"without {counted(idle, 'idle GPU')} of {counted(len(cordoned), 'cordoned node')} (--include-cordoned): {named}{more}")
    devices: dict[str, tuple[int, int]] = {}
    for node in cluster.nodes:
        first, free = node.gpu_count, set(node.free_devices)
        for device in node.devices:
            numbers = range(first, first + device["count"])
            there, unused = devices.get(device["device_class"], (0, 0))
            devices[device["device_class"]] = there + len(numbers), unused + len(free & set(numbers))
            first = numbers.stop
    for name, (there, unused) in devices.items():
        say(f"not whole GPUs: {there:,} of {name}, {unused:,} free")


def say_where(args: argparse.Namespace, cluster: Cluster) -> None:
    shapes = fragmentation.report(cluster, args.shapes, **given(args, "fragmentation.unusable_nodes"))
    for shape in shapes:
        gpus, cores = shape.gpus, shape.cpu_cores
        table = fragmentation.unusable_nodes(cluster, (gpus, cores), **given(args, "fragmentation.unusable_nodes"))
        say(f"\nNodes with idle GPUs that a request of {counted(gpus, 'GPU')} and {cores:g} cores cannot use: {len(table):,}")
        for row in list(table)[: args.nodes]:
            tasks = ", ".join(row.tasks[:TASKS_SHOWN])
            more = f" and {len(row.tasks) - TASKS_SHOWN:,} others" if len(row.tasks) > TASKS_SHOWN else ""
            runs = f"; runs {tasks}{more}" if row.tasks else "; runs nothing"
            say(f"  {row.node}: {row.gpus:g} {row.cause.replace('_', ' ')}{runs}")


def read_kai(files: list[str], **options: Any) -> io.ClusterReading:
    if len(files) != 1:
        raise InvalidInput([f"FILE: {len(files)} files; expected one snapshot"])
    return io.read_kai_snapshot(files[0], **options)


def read_asi(files: list[str], day: int | None = None, hour: int | None = None) -> io.ClusterReading:
    problems = [f"FILE: {len(files)} folders; expected one"] if len(files) != 1 else []
    problems += [f"{name}: missing; import asi expects it" for name, value in (("day", day), ("hour", hour)) if value is None]
    if day is None or hour is None or problems:
        raise InvalidInput(problems)
    return io.read_asi_hour(files[0], day, hour)


READERS: dict[str, tuple[Callable[..., io.ClusterReading], tuple[str, ...]]] = {
    "kubernetes": (lambda files, **options: io.read_kubernetes(files, **options), ("io.read_kubernetes",)),
    "kai": (read_kai, ("io.read_kubernetes",)),
    "slurm": (lambda files, **options: io.read_slurm(*files, **options), ("io.read_slurm",)),
    "asi": (read_asi, ("day", "hour")),
}
"""Of `import`, by system: what reads its files, and its options, or the function of the library that has them."""


def write_reading(reading: io.ClusterReading, output: str, report: str | None = None) -> None:
    """Writes the snapshot, and the reading report where it is asked for, then says what was read and how."""
    reading.cluster.to_json(output)
    say(describe(reading.cluster))
    for warning in reading.cluster.warnings():
        say(f"note: {warning}")
    say()
    say(str(reading.report).rstrip())
    say()
    say(f"wrote {output}")
    if report:
        write_text(report, reading.report.to_json())


def import_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "io.read_kubernetes")
    slurm = functools.partial(library_option, p, "io.read_slurm")
    both = functools.partial(option, also=("io.read_slurm",))
    p.add_argument("system", choices=("kubernetes", "kai", "slurm", "asi"), help="what wrote the files")
    files = p.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="kubernetes: what `kubectl get nodes,pods,pdb,priorityclasses -A -o json` prints, or other files with objects, JSON "
        "or YAML; of a folder all of these. kai: the zip archive of KAI-Scheduler's snapshot plugin. slurm: what `scontrol show nodes`, `show jobs -d` and `show partitions` print, as text or "
        "--json, and topology.conf or topology.yaml. asi: the folder with the tables of the ASI trace",
    )
    files.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json", help="write the snapshot here")
    p.add_argument("--report", metavar="REPORT.json", help="write the reading report here, too")
    kubernetes_reading_options(p, "kubernetes, kai: ")
    both("ignore_protection", "kubernetes, kai: pods marked as not safe to evict, or not to be disrupted, are like others; slurm: jobs of partitions with PreemptMode=OFF are like others")
    slurm("evict_without_requeue", "slurm: jobs that Slurm cannot requeue may be evicted; they are lost")
    slurm("array_tasks", "slurm: of a pending job array, the first that become tasks")
    slurm("topology", "slurm: which topology of topology.yaml (default: the cluster's default, or the only one)", metavar="NAME")
    both("examples", "names of objects in each row of the report")
    p.add_argument("--day", type=int, metavar="N", help="asi: the day, since the trace began (default: none; required)")
    p.add_argument("--hour", type=int, metavar="N", help="asi: the hour of the day (default: none; required)")


def import_cluster(args: argparse.Namespace) -> int:
    require_writable(args.output, args.report, inputs=args.files)
    read, has = READERS[args.system]
    options = given(args, *has)
    refuse(given(args, *(name for _, others in READERS.values() for name in others)).keys() - options.keys(), f"import {args.system}")
    reading = read(args.files, **options)
    write_reading(reading, args.output, args.report)
    return OK


NOT_IN_CSV = {"nodes": 0, "job_gpus": 128, "cores_per_gpu": 12}
"""Options of `report` for what its CSV does not hold, with their defaults."""


def report_options(p: Parser) -> None:
    report = functools.partial(library_option, p, "fragmentation.report")
    every = functools.partial(report, also=("fragmentation.switch_slots", "fragmentation.unusable_nodes"))
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument(
        "--shapes",
        type=shapes,
        metavar="1x8,8x128",
        help="requests, GPUs x cores, or asi: the ASI paper's (default: the cluster's own, by what its tasks ask for)",
    )
    p.add_argument("--nodes", field="most_nodes", type=int, default=NOT_IN_CSV["nodes"], metavar="N", help="for each request, name N nodes with GPUs that it cannot use, and their tasks")
    report("by", "rows for each of these (default: one row for the whole cluster)", choices=("gpu_model", "cluster"))
    every("max_gpus_per_node", "leave out nodes with more GPUs")
    every("include_cordoned", "GPUs of cordoned nodes are idle too")
    every("accounting", "who holds capacity: all tasks, or HP tasks alone as in the ASI paper's figures", choices=("all", "hp"))
    p.add_argument("--job-gpus", field="gpus", type=int, default=NOT_IN_CSV["job_gpus"], metavar="N", help="size of the jobs counted per switch")
    p.add_argument("--cores-per-gpu", type=int, default=NOT_IN_CSV["cores_per_gpu"], metavar="N", help="what those jobs ask for")
    p.add_argument("--csv", action="store_true", help="the table alone, as CSV")
    p.add_argument("--plot", metavar="OUT.png", help="also draw the causes")


def report(args: argparse.Namespace) -> int:
    if args.csv:
        refuse((name for name, default in NOT_IN_CSV.items() if getattr(args, name) != default), "report --csv")
    require_writable(args.plot, inputs=[args.cluster])
    cluster = Cluster.from_json(args.cluster)
    problems = Problems()
    with problems.collect():
        table = fragmentation.report(cluster, args.shapes, **given(args, "fragmentation.report"))
    with problems.collect():
        slots = fragmentation.switch_slots(
            cluster,
            **given(args, "fragmentation.switch_slots"),
            gpus=args.job_gpus,
            cores_per_gpu=args.cores_per_gpu,
        )
    if args.nodes < 0:
        problems.found.append(f"most_nodes: {args.nodes}; expected at least 0")
    problems.raise_if_any()
    if args.csv:
        write_text(None, table.to_csv())
    else:
        say(describe(cluster))
        for warning in cluster.warnings():
            say(f"note: {warning}")
        say("\nIdle GPUs that a request cannot use, by cause (percentages of all idle GPUs)")
        say(str(table))
        say_left_out(cluster, args)
        if args.nodes:
            say_where(args, cluster)
        say(f"\nJobs of {counted(args.job_gpus, 'GPU')} that could start, across and within switches")
        say(str(slots))
    if args.plot:
        save_figure(args.plot, table.plot)
    return OK


def replay_options(p: Parser) -> None:
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


def replay(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.nodes, args.pods])
    trace = io.read_openb(args.nodes, args.pods)
    result = sim.replay(trace, progress=args.progress, **given(args, "sim.replay"))
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
    say(f"{counted(len(timeline), 'arrival')}, {len(result.unplaced):,} fitted nowhere")
    say(describe(result.cluster))
    if args.output:
        result.cluster.to_json(args.output)
        say(f"wrote {args.output}")
    return OK


def anonymize_options(p: Parser) -> None:
    p.add_argument("input", metavar="IN.json", help="the snapshot")
    p.add_argument("output", metavar="OUT.json", help="write the one without names here")
    p.add_argument("--seed", type=int, metavar="N", help="where the order of the new names starts (default: 0)")


def anonymize(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.input])
    io.anonymize(Cluster.from_json(args.input), **given(args, "seed")).to_json(args.output)
    say(f"wrote {args.output}")
    return OK


def plot_options(p: Parser) -> None:
    p.add_argument("what", choices=("occupancy", "gpus", "switches", "fragmentation"), help="what to draw")
    p.add_argument("cluster", metavar="CLUSTER.json", help="the snapshot")
    p.add_argument("-o", "--output", required=True, metavar="OUT.png", help="write the figure here")
    p.add_argument(
        "--gpus", type=int, metavar="N", help="occupancy: only nodes with so many GPUs (default: the most common number)"
    )


def plot(args: argparse.Namespace) -> int:
    from .. import plotting

    if args.what != "occupancy":
        refuse(given(args, "gpus"), f"plot {args.what}")
    require_writable(args.output, inputs=[args.cluster])
    cluster = Cluster.from_json(args.cluster)
    if args.what == "occupancy":
        save_figure(args.output, lambda: plotting.plot_occupancy(cluster, gpus=args.gpus))
    elif args.what == "gpus":
        save_figure(args.output, lambda: plotting.plot_gpus(cluster))
    elif args.what == "switches":
        save_figure(args.output, lambda: plotting.plot_switches(cluster))
    else:
        save_figure(args.output, lambda: fragmentation.report(cluster).plot())
    return OK
