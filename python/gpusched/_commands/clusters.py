"""Commands on snapshots: `generate`, `import`, `report`, `replay`, `anonymize`, `plot`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .. import fragmentation, io, sim
from .._tables import format_table
from .._words import counted
from ..errors import InvalidInput
from ..model import Cluster
from .shared import OK, Problems, given, require_writable, save_figure, say, write_text

TASKS_SHOWN = 4
"""By name, of each node of a report."""


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


def generate(args: argparse.Namespace) -> int:
    require_writable(args.output)
    cluster = sim.generate_cluster(**given(args, "preset", "sim.generate_cluster"))
    cluster.to_json(args.output)
    say(describe(cluster))
    say(f"wrote {args.output}")
    return OK


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


READERS: dict[str, tuple[Callable[..., io.ClusterReading], str]] = {
    "kubernetes": (lambda files, **options: io.read_kubernetes(files, **options), "io.read_kubernetes"),
    "kai": (read_kai, "io.read_kubernetes"),
    "slurm": (lambda files, **options: io.read_slurm(*files, **options), "io.read_slurm"),
}
"""Of `import`, by system: what reads its files, and the function of the library that has its options."""


def write_reading(reading: io.ClusterReading, output: str) -> None:
    """Says what was read and how, and writes the snapshot."""
    say(describe(reading.cluster))
    for warning in reading.cluster.warnings():
        say(f"note: {warning}")
    say()
    say(str(reading.report).rstrip())
    say()
    reading.cluster.to_json(output)
    say(f"wrote {output}")


def import_cluster(args: argparse.Namespace) -> int:
    require_writable(args.output, args.report, inputs=args.files)
    read, function = READERS[args.system]
    options = given(args, function)
    if wrong := sorted(given(args, *(other for _, other in READERS.values())).keys() - options.keys()):
        raise InvalidInput([f"--{name.replace('_', '-')}: not an option of import {args.system}" for name in wrong])
    reading = read(args.files, **options)
    write_reading(reading, args.output)
    if args.report:
        write_text(args.report, reading.report.to_json())
    return OK


def report(args: argparse.Namespace) -> int:
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
        if args.nodes:
            say_where(args, cluster)
        say(f"\nJobs of {counted(args.job_gpus, 'GPU')} that could start, across and within switches")
        say(str(slots))
    if args.plot:
        save_figure(args.plot, table.plot)
    return OK


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


def anonymize(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.input])
    io.anonymize(Cluster.from_json(args.input), **given(args, "seed")).to_json(args.output)
    say(f"wrote {args.output}")
    return OK


def plot(args: argparse.Namespace) -> int:
    from .. import plotting

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
