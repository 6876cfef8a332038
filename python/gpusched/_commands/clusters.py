# SPDX-License-Identifier: Apache-2.0
"""Commands on snapshots: `generate`, `import`, `report`, `replay`, `anonymize`, `plot`."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

from .. import _core, allocation, fragmentation, io, sim
from .._views.summary import idle_gpus, is_not_ready, largest_jobs, pending_jobs
from .._views.tables import Table, counted, format_table, listed
from ..errors import InvalidInput
from ..model import Cluster
from .arguments import Parser, first_sentence, library_option, names, shapes
from .shared import OK, Problems, given, refuse, require_writable, save, save_figure, say, write_text

TASKS_SHOWN = 4
"""Tasks named for each node of a report."""


KUBERNETES_OPTIONS = {
    "schedulers": (
        "schedulers with movable and evictable pods, separated by commas (default: default-scheduler; "
        "kai: the scheduler that wrote the snapshot)"
    ),
    "recreating_owners": "other kinds of owners that recreate a pod after it is deleted (default: none)",
    "evict_bare_pods": "pods without an owner may be evicted; no controller recreates them",
    "open_unready_nodes": (
        "nodes that are not ready receive pods if no taint forbids it, as with kube-scheduler"
    ),
    "moves_by_eviction": (
        "pods of Deployments move by eviction, as an unmodified cluster does it: they are down in between, "
        "and disruption budgets count them"
    ),
    "gpu_resources": (
        "other resources that are whole GPUs, like metax-tech.com/gpu, separated by commas (default: none)"
    ),
    "network_labels": (
        "labels with a node's network domains, from the root down (default: the labels of the Topology "
        "object or of NVIDIA's topograph)"
    ),
}
"""Help texts of the keywords of `io.read_kubernetes`."""


def kubernetes_reading_options(p: Parser, prefix: str) -> None:
    """Options of reading Kubernetes objects; `prefix` begins each help text."""
    lists: dict[str, Any] = dict.fromkeys(("schedulers", "recreating_owners", "gpu_resources"), "NAMES")
    lists["network_labels"] = "LABELS"
    for field, text in KUBERNETES_OPTIONS.items():
        of_list = {"type": names, "metavar": lists[field]} if field in lists else {}
        library_option(p, "io.read_kubernetes", field, prefix + text, **of_list)


def describe(cluster: Cluster) -> str:
    nodes, tasks = cluster.nodes, cluster.tasks
    ratio = fragmentation.allocation_ratio(cluster)
    counts = fragmentation.occupancy(cluster)
    failed, not_ready = nodes.failed_gpu_count.sum(), int(is_not_ready(cluster).sum())
    cordoned = int((~nodes.schedulable).sum()) - not_ready
    out_of_service = [counted(failed, "failed GPU")] * bool(failed)
    out_of_service += [counted(cordoned, f"{cluster._words['closed']} node")] * bool(cordoned)
    if not_ready:
        verb = "is" if not_ready == 1 else "are"
        out_of_service.append(f"{counted(not_ready, 'node')} that {verb} not ready")
    classes = set(tasks.priority_class)
    hp = f", {100 * ratio.hp:.1f} % by HP tasks" if classes & {"HP", "LP"} else ""
    return (
        f"{counted(len(nodes), 'node')}, {counted(nodes.gpu_count.sum(), 'GPU')}, "
        f"{counted(len(tasks), 'task')} "
        f"({(tasks.node_index < 0).sum():,} pending, {tasks.locked.sum():,} locked)"
        f"{''.join(', ' + text for text in out_of_service)}\n"
        f"{100 * ratio.total:.1f} % of the GPUs allocated{hp}; GPU nodes: "
        f"{counts.empty:,} empty, {counts.not_fully_occupied:,} partly used, "
        f"{counts.fully_occupied:,} full"
    )


def generate_options(p: Parser) -> None:
    generate = functools.partial(library_option, p, "sim.generate_cluster")
    presets = ("asi", "openb", "flextopo-4090", "constrained")
    text = (
        "asi (default), openb, flextopo-4090 or constrained: asi with MIG, shared cards, RDMA, spreading, "
        "budgets, gangs"
    )
    p.add("preset", text, nargs="?", known=presets, metavar="PRESET")
    p.add("-o --output", "write the cluster here", required=True, metavar="CLUSTER.json")
    generate("nodes", "number of nodes (default: as in the cluster that the preset imitates)")
    generate("seed")
    generate("layout")
    generate("load")
    generate("cpu_tight")
    generate(
        "locked_fraction",
        "probability that a task is locked (default: 0.4, for flextopo-4090 0)",
        metavar="PART",
    )
    for keyword in _core.keywords["sim.generate_cluster"]:
        if keyword["name"].endswith("_fraction") and keyword["name"] != "locked_fraction":
            share = f"share of {first_sentence(keyword['text'])}"
            text = f"{share} (default: 0; for constrained see docs/sim.md)"
            generate(keyword["name"], text, metavar="PART")


def generate(args: argparse.Namespace) -> int:
    require_writable(args.output)
    cluster = sim.generate_cluster(**given(args, "preset", "sim.generate_cluster"))
    say(describe(cluster))
    save(args.output, cluster)
    return OK


def say_excluded(cluster: Cluster, args: argparse.Namespace) -> None:
    """Prints the GPUs that the table of idle GPUs excludes: on cordoned nodes, and parts of GPUs."""
    cordoned = [node for node in cluster.nodes if not node.schedulable and node.gpu_count > 0]
    idle = sum(node.idle_gpu_count for node in cordoned)
    if cordoned and not args.include_cordoned:
        not_ready = bool(is_not_ready(cluster).any())
        closed = counted(len(cordoned), "node" if not_ready else f"{cluster._words['closed']} node")
        closed += f" {cluster._words['closed']} or not ready" * not_ready
        excluded = f"{counted(idle, 'idle GPU')} on {closed}"
        say(f"excluded (see --include-cordoned): {excluded}: {listed(node.name for node in cordoned)}")
    devices: dict[str, tuple[int, int]] = {}
    for node in cluster.nodes:
        first, free = node.gpu_count, set(node.free_devices)
        for device in node.devices:
            numbers = range(first, first + device["count"])
            count, unused = devices.get(device["device_class"], (0, 0))
            devices[device["device_class"]] = count + len(numbers), unused + len(free & set(numbers))
            first = numbers.stop
    for name, (count, unused) in devices.items():
        say(f"not whole GPUs: {count:,} of {name}, {unused:,} free")


PENDING_SHOWN = 10
"""Rows of pending jobs in a report."""


def say_summary(cluster: Cluster, requests: fragmentation.Report) -> None:
    """Prints the nodes by idle GPUs, the largest jobs that could start, and the requests of pending jobs."""
    nodes, task = idle_gpus(cluster), cluster._words["task"]
    if nodes:
        say("\nNodes by idle GPUs (column \"N idle\": number of nodes with N idle GPUs)")
        say(str(nodes))
        say(f"\nLargest job that could start now, in GPUs, by the request of each {task}")
        say(str(largest_jobs(cluster, requests)))
        say("(by GPUs and cores alone; `gpusched allocate` checks all constraints)")
    pending = pending_jobs(cluster)
    if not pending:
        say(f"\nNo {task} is pending")
        return
    jobs = counted(len({row.job for row in pending}), "pending job")
    say(f"\n{jobs} with {counted((cluster.tasks.node_index < 0).sum(), task)}")
    say(str(pending[:PENDING_SHOWN]))
    if len(pending) > PENDING_SHOWN:
        say(f"... and {counted(len(pending) - PENDING_SHOWN, 'more row')}")


def say_switches(gpus: int, slots: Table) -> None:
    """Prints how many jobs of this size could start per GPU model, and how many of them under one switch."""
    rows = [row for row in slots if row[0] != "*"] or list(slots)
    if not any(row.across for row in rows):
        say(f"\nNo job of {counted(gpus, 'GPU')} could start on nodes of one GPU model")
        return
    say(f"\nJobs of {counted(gpus, 'GPU')} that could start, anywhere and each under one switch")
    named = [(row[0] or "(no model)", *row[1:]) for row in rows]
    say(str(Table(["GPU model", "anywhere", "under one switch", "difference"], named)))


CAUSES = {
    "gpu_model": "GPU model",
    "cluster": "cluster",
    "gpus": "GPUs",
    "cpu_cores": "cores",
    "total_idle": "idle",
    "fractional": "parts of GPUs",
    "stranded": "too few on the node",
    "insufficient_cpu": "too few cores",
}
"""Columns of the report's table, and their names on the console."""


def causes(table: fragmentation.Report) -> Table:
    """The table for the console: each number of GPUs with its share of the idle GPUs."""
    names = [name for name in CAUSES if name in table.columns]

    def cell(row: Any, name: str) -> Any:
        if f"{name}_pct" not in table.columns:
            return f"{row[name]:g}" if name in ("cpu_cores", "total_idle") else row[name]
        return f"{row[name]:,.1f} ({row[f'{name}_pct'] or 0:.0f} %)" if row[name] else "0"

    return Table([CAUSES[name] for name in names], [[cell(row, name) for name in names] for row in table])


def say_unusable_nodes(args: argparse.Namespace, cluster: Cluster) -> None:
    shapes = fragmentation.report(cluster, args.shapes, **given(args, "fragmentation.unusable_nodes"))
    for shape in shapes:
        gpus, cores = shape.gpus, shape.cpu_cores
        table = fragmentation.unusable_nodes(
            cluster, (gpus, cores), **given(args, "fragmentation.unusable_nodes")
        )
        request = f"{counted(gpus, 'GPU')} and {counted(cores, 'core')}"
        say(f"\nNodes with idle GPUs that a request of {request} cannot use: {len(table):,}")
        for row in list(table)[: args.nodes]:
            runs = f"runs {listed(row.tasks, TASKS_SHOWN, 'others')}" if row.tasks else "runs no tasks"
            say(f"  {row.node}: {counted(row.gpus, 'GPU')}, {CAUSES[row.cause]}; {runs}")


def read_kai(files: list[str], **options: Any) -> io.ClusterReading:
    if len(files) != 1:
        raise InvalidInput([f"FILE: {len(files)} files; expected one snapshot"])
    return io.read_kai_snapshot(files[0], **options)


def read_asi(files: list[str], day: int | None = None, hour: int | None = None) -> io.ClusterReading:
    problems = [f"FILE: {len(files)} folders; expected one"] if len(files) != 1 else []
    problems += [
        f"{name}: missing; import asi requires it"
        for name, value in (("day", day), ("hour", hour))
        if value is None
    ]
    if day is None or hour is None or problems:
        raise InvalidInput(problems)
    return io.read_asi_hour(files[0], day, hour)


READERS: dict[str, tuple[Callable[..., io.ClusterReading], tuple[str, ...]]] = {
    "kubernetes": (lambda files, **options: io.read_kubernetes(files, **options), ("io.read_kubernetes",)),
    "kai": (read_kai, ("io.read_kubernetes",)),
    "slurm": (lambda files, **options: io.read_slurm(*files, **options), ("io.read_slurm",)),
    "asi": (read_asi, ("day", "hour")),
}
"""By system: the function that reads its files, and its options or the library function with its options."""


def write_reading(reading: io.ClusterReading, output: str, report: str | None = None) -> None:
    """Writes the snapshot and, if requested, the reading report. Prints a summary."""
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
    p.add("system", "the system that wrote the files", choices=("kubernetes", "kai", "slurm", "asi"))
    p.add(
        "files",
        "kubernetes: the output of `kubectl get nodes,pods,pdb,priorityclasses -A -o json`, other files "
        "with objects (JSON or YAML), or a folder of such files. kai: the zip archive of the snapshot "
        "plugin of KAI-Scheduler. slurm: the output of `scontrol show nodes`, `show jobs -d` and `show "
        "partitions`, as text or --json, and topology.conf or topology.yaml. asi: the folder with the "
        "tables of the ASI trace",
        nargs="+",
        metavar="FILE",
    )
    p.add("-o --output", "write the snapshot here", required=True, metavar="CLUSTER.json")
    p.add("--report", "write the reading report here, too", metavar="REPORT.json")
    kubernetes_reading_options(p, "kubernetes, kai: ")
    both(
        "ignore_protection",
        "ignore protection from eviction. kubernetes, kai: marks such as safe-to-evict=false; "
        "slurm: partitions with PreemptMode=OFF",
    )
    slurm("evict_without_requeue", "slurm: jobs that Slurm cannot requeue may be evicted; they are lost")
    slurm("array_tasks", "slurm: number of tasks to read from a pending job array")
    text = "slurm: the topology of topology.yaml to use (default: the cluster's default, or the only one)"
    slurm("topology", text, metavar="NAME")
    both("examples", "number of example names in each row of the report")
    p.add("--day", "asi: day since the trace began (default: none; required)", type=int, metavar="N")
    p.add("--hour", "asi: hour of the day (default: none; required)", type=int, metavar="N")


def import_cluster(args: argparse.Namespace) -> int:
    require_writable(args.output, args.report, inputs=args.files)
    read, has = READERS[args.system]
    options = given(args, *has)
    every_option = given(args, *(name for _, others in READERS.values() for name in others))
    refuse(every_option.keys() - options.keys(), f"import {args.system}")
    reading = read(args.files, **options)
    write_reading(reading, args.output, args.report)
    return OK


NOT_IN_CSV = {"nodes": 0, "job_gpus": 128, "cores_per_gpu": 12}
"""Options of `report` that do not affect its CSV, with their defaults."""


def report_options(p: Parser) -> None:
    report = functools.partial(library_option, p, "fragmentation.report")
    every = functools.partial(report, also=("fragmentation.switch_slots", "fragmentation.unusable_nodes"))
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add(
        "--shapes",
        "requests, GPUs x cores; asi: the requests of the ASI paper (default: the requests of the "
        "cluster's tasks)",
        type=shapes,
        metavar="1x8,8x128",
    )
    integer = functools.partial(p.add_argument, type=int, metavar="N")
    text = "for each request, name N nodes with GPUs that it cannot use, and their tasks"
    integer("--nodes", field="most_nodes", default=NOT_IN_CSV["nodes"], help=text)
    report("by", "rows per GPU model or cluster (default: one row for all)", choices=("gpu_model", "cluster"))
    every("max_gpus_per_node")
    every("include_cordoned")
    text = "tasks that hold capacity: all tasks, or only HP tasks as in the ASI paper's figures"
    every("accounting", text, choices=("all", "hp"))
    text = "size of the jobs counted per switch"
    integer("--job-gpus", field="gpus", default=NOT_IN_CSV["job_gpus"], help=text)
    integer("--cores-per-gpu", default=NOT_IN_CSV["cores_per_gpu"], help="cores per GPU of these jobs")
    p.add("--csv", "print only the table, as CSV", action="store_true")
    p.add("--plot", "also draw the causes", metavar="OUT.png")


def report(args: argparse.Namespace) -> int:
    if args.csv:
        refuse(
            (name for name, default in NOT_IN_CSV.items() if getattr(args, name) != default), "report --csv"
        )
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
        say_summary(cluster, table)
        say("\nIdle GPUs that a request of this size cannot use, by cause")
        say(str(causes(table)))
        say_excluded(cluster, args)
        if args.nodes:
            say_unusable_nodes(args, cluster)
        if args.job_gpus != NOT_IN_CSV["job_gpus"] or any(row.across for row in slots):
            say_switches(args.job_gpus, slots)
    if args.plot:
        save_figure(args.plot, table.plot)
    return OK


def replay_options(p: Parser) -> None:
    replay = functools.partial(library_option, p, "sim.replay")
    p.add("nodes", "the trace's list of nodes", metavar="NODES.csv")
    p.add("pods", "the trace's list of pods", metavar="PODS.csv")
    placements = tuple(allocation.placement_names())
    replay("placement", ", ".join(placements), choices=placements, metavar="NAME")
    text = "append or remove random pods until they request RATIO times all GPUs (default: unchanged)"
    replay("resample_to", text, metavar="RATIO")
    replay("until", "stop after the events of this second (default: the last one)", metavar="SECONDS")
    for name in ("ignore_departures", "shuffle", "seed"):
        replay(name)
    p.add("-o --output", "write the final cluster here", metavar="CLUSTER.json")
    p.add("--progress", "show a progress bar", action="store_true")


def replay(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.nodes, args.pods])
    trace = io.read_openb(args.nodes, args.pods)
    result = sim.replay(trace, progress=args.progress, **given(args, "sim.replay"))
    timeline = result.timeline
    capacity = 1000 * trace.gpu_count
    if len(timeline):
        rows = [("end", -1)]
        beyond = timeline.requested_gpu_milli > capacity
        if beyond.any() and beyond.argmax() > 0:
            rows.insert(0, ("100 % requested", int(beyond.argmax()) - 1))
        table = [
            (
                name,
                100.0 * float(timeline.requested_gpu_milli[at]) / capacity,
                100.0 * float(timeline.allocated_gpu_milli[at]) / capacity,
                float(timeline.fragmented_gpus[at]),
            )
            for name, at in rows
        ]
        say(format_table(("when", "requested_pct", "allocated_pct", "fragmented_gpus"), table))
    say(f"{counted(len(timeline), 'arrival')}, {len(result.unplaced):,} not placed")
    say(describe(result.cluster))
    save(args.output, result.cluster)
    return OK


def anonymize_options(p: Parser) -> None:
    p.add("input", "the snapshot", metavar="IN.json")
    p.add("output", "write the snapshot without names here", metavar="OUT.json")
    p.add("--seed", "seed for the order of the new names (default: 0)", type=int, metavar="N")


def anonymize(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.input])
    save(args.output, io.anonymize(Cluster.from_json(args.input), **given(args, "seed")))
    return OK


def plot_options(p: Parser) -> None:
    p.add("what", "the figure to draw", choices=("occupancy", "gpus", "switches", "fragmentation"))
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("-o --output", "write the figure here", required=True, metavar="OUT.png")
    text = "occupancy: only nodes with N GPUs (default: the most common number)"
    p.add("--gpus", text, type=int, metavar="N")


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
