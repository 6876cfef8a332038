"""The command `topology`: `show`, and `watch` (flextopo.py)."""

from __future__ import annotations

import argparse
import os
import re

from .. import io, topology
from .._views.tables import format_table
from .._views.words import counted
from ..errors import BackendError, InvalidInput
from ..model import Cluster
from .arguments import Parser, flag
from .flextopo import OPTIONS, watch_options, watch_topology
from .shared import OK, given, refuse, require_writable, say, write_text

LABEL_TOPOLOGY = re.compile(r"""apiVersion["']?\s*:\s*["']?(kueue\.x-k8s\.io|kai\.scheduler)/""")


def kind_of_topology(path: str) -> str:
    """What a file seems to hold: "cluster", "slurm", "labels" (a Topology of Kueue or KAI) or "machine". A pipe, which
    cannot be read twice, a cluster."""
    if not os.path.isfile(path):
        return "cluster"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            start = file.read(1 << 16)
    except OSError as error:
        raise BackendError(f"{path}: cannot be opened: {error.strerror}") from None
    if LABEL_TOPOLOGY.search(start):
        return "labels"
    name = os.path.basename(path)
    if name.endswith(".conf") or name in ("topology.yaml", "topology.yml"):
        return "slurm"
    if start.lstrip("\ufeff \t\r\n").startswith("{") and "FlexTopo" not in start:
        return "cluster"
    return "machine"


def show_machine(args: argparse.Namespace) -> int:
    if args.nodes is not None:
        raise InvalidInput("--no-nodes: only a network has nodes to leave out")
    reading = io.read_this_machine() if args.this_machine else io.read_hardware(args.file)
    graph = reading.graph
    if args.dot:
        write_text(args.output, topology.hardware_to_dot(graph, **given(args, "cores")))
        return OK
    vertices = graph.vertices
    counts = {kind: sum(v["kind"] == kind for v in vertices) for kind in ("gpu", "numa_node", "socket", "core")}
    say(
        f"{counted(counts['gpu'], 'GPU')}, {counted(counts['numa_node'], 'NUMA node')}, "
        f"{counted(counts['socket'], 'socket')}, {counted(counts['core'], 'core')}"
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


def labelled_network(args: argparse.Namespace) -> io.NetworkReading:
    try:
        return io.read_kubernetes_topology(args.file, args.node_labels or args.file)
    except InvalidInput as error:
        if args.node_labels is None and "objects of kind Node" in str(error):
            raise InvalidInput(f"{error}; --node-labels names the file that has them") from None
        raise


def topology_options(p: Parser) -> None:
    p.add_argument("what", choices=("show", "watch"), help="show it; or watch a machine, and publish its FlexTopo object whenever it changes")
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
    p.add_argument("-o", "--output", metavar="FILE", help="with --dot, or of watch; default: standard output")
    watch_options(p)


def topology_command(args: argparse.Namespace) -> int:
    watch = args.what == "watch"
    refuse((name for name in (("dot", "cores", "node_labels") if watch else OPTIONS) if getattr(args, name)), f"topology {args.what}")
    if watch and args.nodes is not None:
        refuse(["no_nodes"], "topology watch")
    return watch_topology(args) if watch else show_topology(args)


def show_topology(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.file])
    drawn = {"--output": args.output, "--no-nodes": args.nodes, "--cores": args.cores}
    if not args.dot and (wrong := [f"{name}: only of the drawing; add --dot" for name, value in drawn.items() if value is not None]):
        raise InvalidInput(wrong)
    if args.this_machine == (args.file is not None):
        raise InvalidInput("topology show: expected either a FILE or --this-machine")
    kind = "machine" if args.this_machine else kind_of_topology(args.file)
    if args.node_labels is not None and kind != "labels":
        raise InvalidInput("--node-labels: only a Topology of Kueue or KAI names labels of nodes")
    if kind == "machine":
        return show_machine(args)
    if args.cores:
        raise InvalidInput("--cores: only a machine has cores to draw")
    if kind in ("slurm", "labels"):
        reading = io.read_slurm_topology(args.file) if kind == "slurm" else labelled_network(args)
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
    say(f"{counted(len(tree.root.nodes), 'node')}, {alone:,} of unknown position")
    return OK
