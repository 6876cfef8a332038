# SPDX-License-Identifier: Apache-2.0
"""The command `topology`: `show` a network or a machine, and `watch` a machine with FlexTopo's agent."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
from typing import Any

from .. import io, topology
from .._views.tables import counted, format_table
from ..errors import BackendError, InvalidInput, explained
from ..model import Cluster
from .arguments import Parser, flag
from .shared import OK, given, read_mapping, refuse, require_writable, say, write_text

LABEL_TOPOLOGY = re.compile(r"""apiVersion["']?\s*:\s*["']?(kueue\.x-k8s\.io|kai\.scheduler)/""")
SLURM_TOPOLOGY = re.compile(
    r"""^\s*(SwitchName|BlockName)\s*=|^[\s\[]*(-\s+|\{\s*)["']?topology["']?\s*:""",
    re.IGNORECASE | re.MULTILINE,
)


def kind_of_topology(path: str) -> str:
    """Guesses the content of a file: "cluster", "slurm", "labels" (a Topology of Kueue or KAI) or "machine".

    A pipe counts as a cluster, because it cannot be read twice.
    """
    if not os.path.isfile(path):
        return "cluster"
    with explained(path, "opened"), open(path, encoding="utf-8", errors="replace") as file:
        start = file.read(1 << 16)
    if LABEL_TOPOLOGY.search(start):
        return "labels"
    if SLURM_TOPOLOGY.search(start) or path.endswith(".conf"):
        return "slurm"
    if start.lstrip("\ufeff \t\r\n").startswith("{") and "FlexTopo" not in start:
        return "cluster"
    return "machine"


def show_machine(args: argparse.Namespace) -> int:
    if args.nodes is not None:
        raise InvalidInput("--no-nodes: a machine has no nodes; expected a network")
    reading = io.read_this_machine() if args.this_machine else io.read_hardware(args.file)
    graph = reading.graph
    if args.dot:
        write_text(args.output, topology.hardware_to_dot(graph, **given(args, "cores")))
        return OK
    vertices = graph.vertices
    counts = {
        kind: sum(v["kind"] == kind for v in vertices) for kind in ("gpu", "numa_node", "socket", "core")
    }
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
        links = [(a, *("-" if a == b else f"{graph.bandwidth(a, b):.6g}" for b in ids)) for a in ids]
        say(format_table(("gpu", *map(str, ids)), links))
    for note in reading.notes:
        say(f"note: {note}")
    return OK


def places(graph: topology.HardwareGraph, gpu: int) -> tuple[int | None, int | None, int | None]:
    """NUMA node, socket and PCIe root of a GPU."""
    return graph.numa_node_of([gpu]), graph.socket_of([gpu]), graph.pcie_root_of([gpu])


def labelled_network(args: argparse.Namespace) -> io.NetworkReading:
    try:
        return io.read_kubernetes_topology(args.file, args.node_labels or args.file)
    except InvalidInput as error:
        if args.node_labels is None and "objects of kind Node" in str(error):
            raise InvalidInput(f"{error}; give the file with the nodes as --node-labels") from None
        raise


def topology_options(p: Parser) -> None:
    text = (
        "show a network or a machine; or watch a machine, and publish its FlexTopo object whenever it changes"
    )
    p.add("what", text, choices=("show", "watch"))
    text = (
        "a cluster; a machine in the format of nvidia-smi topo -m, NCCL, hwloc or FlexTopo; Slurm's "
        "topology.conf; or a Topology of Kueue or KAI"
    )
    p.add("file", text, nargs="?", metavar="FILE")
    text = "for a Topology of Kueue or KAI: output of `kubectl get nodes -o json` (default: in FILE)"
    p.add("--node-labels", text, metavar="NODES.json")
    p.add("--this-machine", "read this machine with the hwloc library", action="store_true")
    p.add("--dot", "write a drawing for Graphviz", action="store_true")
    p.add("--no-nodes", "with --dot: draw only the domains", dest="nodes", action="store_const", const=False)
    flag(p, "--cores", "with --dot of a machine: draw every core")
    p.add("-o --output", "output file of --dot and watch (default: standard output)", metavar="FILE")
    watch_options(p)


def topology_command(args: argparse.Namespace) -> int:
    watch = args.what == "watch"
    options_of_the_other = ("dot", "cores", "node_labels") if watch else WATCH_OPTIONS
    refuse((name for name in options_of_the_other if getattr(args, name)), f"topology {args.what}")
    if watch and args.nodes is not None:
        refuse(["no_nodes"], "topology watch")
    return watch_topology(args) if watch else show_topology(args)


def show_topology(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.file])
    of_drawing = {"--output": args.output, "--no-nodes": args.nodes, "--cores": args.cores}
    if not args.dot and (wrong := [name for name, value in of_drawing.items() if value is not None]):
        raise InvalidInput([f"{name}: only with --dot" for name in wrong])
    if args.this_machine == (args.file is not None):
        raise InvalidInput("topology show: expected either a FILE or --this-machine")
    kind = "machine" if args.this_machine else kind_of_topology(args.file)
    if args.node_labels is not None and kind != "labels":
        raise InvalidInput("--node-labels: only with a Topology of Kueue or KAI")
    if kind == "machine":
        return show_machine(args)
    if args.cores:
        raise InvalidInput("--cores: a network has no cores; expected a machine")
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
        rows.append(
            (level, len(sizes), sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else (level, 0, 0, 0, 0)
        )
    say(format_table(("level", "domains", "fewest_nodes", "median_nodes", "most_nodes"), rows))
    alone = sum(vertex.level == "node" for vertex in tree.root.children)
    say(f"{counted(len(tree.root.nodes), 'node')}, {alone:,} of unknown position")
    return OK


# The agent of `topology watch`.

WATCH_OPTIONS = ("name", "holders", "once", "interval_s", "poll_s", "kubectl")
"""Options that `topology show` does not have."""


def watch_options(p: Parser) -> None:
    text = "watch: name of the object (default: the host name with --this-machine; required with FILE)"
    p.add("--name", text, metavar="NODE")
    text = (
        'watch: file with the holders of GPUs and cores, such as {"team/pod": {"gpus": [0, 1], "cores": '
        "[0]}} "
        "(default: the holders of the first reading)"
    )
    p.add("--holders", text, metavar="FILE")
    p.add("--once", "watch: publish once and exit (default: no)", action="store_const", const=True)
    text = "watch: seconds between readings of the hardware (default: 60)"
    p.add("--interval-s --interval", text, type=float, metavar="SECONDS")
    text = "watch: seconds between readings of the holders (default: 1)"
    p.add("--poll-s", text, type=float, metavar="SECONDS")
    text = "watch: publish with kubectl apply (default: to --output)"
    p.add("--kubectl", text, action="store_const", const=True)


def kubectl_apply(document: dict[str, Any]) -> None:
    """Publishes with kubectl and its credentials.

    No other program writes this object, so conflicts are forced.
    """
    command = [
        "kubectl",
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=gpusched",
        "-f",
        "-",
    ]
    try:
        text = json.dumps(document)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise BackendError(f"kubectl: cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BackendError("kubectl: did not end within 60 s") from None
    if done.returncode != 0:
        raise BackendError(f"kubectl: {done.stderr.strip() or f'ended with {done.returncode}'}")


def write_atomically(path: str, document: dict[str, Any]) -> None:
    """Replaces a file so that readers see either the old or the new object.

    Pipes and devices are written directly.
    """
    target = os.path.realpath(path)
    regular = os.path.isfile(target) or not os.path.exists(target)
    written = f"{target}.new" if regular else target
    with explained(path):
        with open(written, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        if regular:
            os.replace(written, target)


def watch_topology(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.file, args.holders])
    if args.this_machine == (args.file is not None):
        raise InvalidInput("topology watch: expected either a FILE or --this-machine")
    if args.name is None and not args.this_machine:
        raise InvalidInput("--name: missing; a FILE does not say which node the machine is")
    if args.kubectl and args.output is not None:
        raise InvalidInput("--output: the object is published with kubectl; expected one of them")
    if not args.once and not args.kubectl and args.output is None:
        raise InvalidInput("topology watch: expected --output, --kubectl, or --once")
    if args.once and (args.interval_s is not None or args.poll_s is not None):
        raise InvalidInput("--interval-s, --poll-s: nothing is repeated with --once")

    def read() -> io.HardwareReading:
        return io.read_this_machine() if args.this_machine else io.read_hardware(args.file)

    def publish(document: dict[str, Any]) -> None:
        if args.kubectl:
            kubectl_apply(document)
        elif args.output is not None:
            write_atomically(args.output, document)
        else:
            print(json.dumps(document, indent=1))

    name = args.name or socket.gethostname().lower()
    holders = (lambda: read_mapping(args.holders)) if args.holders is not None else None
    agent = topology.FlexTopoAgent(name, read, publish, holders)
    if args.once:
        agent.check_hardware()
        agent.check_holders()
        agent.publish()
        if args.kubectl or args.output is not None:
            say(f"published {name}")
    else:
        agent.run(**given(args, "interval_s", "poll_s"), tell=lambda text: print(text, flush=True))
    return OK
