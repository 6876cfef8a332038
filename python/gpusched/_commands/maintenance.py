# SPDX-License-Identifier: Apache-2.0
"""Commands for maintenance and capacity: `blockers`, `drain-order`, `what-if`."""

from __future__ import annotations

import argparse
import csv
import functools
import glob
import os
from typing import Any

from .. import consolidation, verify
from .._views.maintenance import SHOWN, drain_csv_rows
from .._views.risks import refused_evictions
from .._views.tables import counted
from ..errors import InvalidInput
from ..model import Cluster, apply
from .arguments import Parser, library_option, names
from .plans import print_not_counted
from .shared import FAILED, OK, PATTERNS, expanded_patterns, given, read_mapping, say

NODES: dict[str, Any] = {"type": names, "metavar": "NODES"}


def blockers_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.blockers")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    option("gpu_model", "only nodes of this GPU model count (default: all nodes)", name="model", metavar="M")
    option("objective")
    option("exempt", f"do not change these nodes, {PATTERNS} (default: none)", **NODES)
    for name in ("protect_core_members", "max_plans", "preset", "seed", "threads"):
        option(name)
    option("time_limit", "stop after this time and return the ranking so far", metavar="SECONDS")
    p.add("--progress", "show a progress bar", action="store_true")


def blockers(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "consolidation.blockers")
    with expanded_patterns(cluster, options):
        found = consolidation.blockers(cluster, progress=args.progress, **options)
    say(str(found))
    for text in refused_evictions(cluster, found.plan):
        say(text)
    if "gpu_model" in options:
        print_not_counted(cluster, {"empty_nodes": 1, "gpu_model": options["gpu_model"]})
    return OK


def drain_order_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.drain_order")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    option("nodes", f"drain these nodes, {PATTERNS} (default: none; see --all)", **NODES)
    p.add("--all", "drain all nodes", action="store_true")
    option("gpu_model", "drain only nodes of this GPU model (default: of all)", name="model", metavar="M")
    option("batch")
    option("exempt", f"do not change these nodes, {PATTERNS} (default: none)", **NODES)
    for name in ("max_disrupted", "protect_core_members", "tries", "preset"):
        option(name)
    for name in ("max_moves_per_wave", "max_moves_per_node", "seed", "threads"):
        option(name)
    option("time_limit", "stop after this time and return the batches so far", metavar="SECONDS")
    p.add(
        "-o --output",
        "write one plan per batch here (batch-001.json and so on) and batches.csv (default: none)",
        metavar="FOLDER",
    )
    text = "with -o, also write the snapshot for which each plan is (cluster-001.json and so on)"
    p.add("--write-clusters", text, action="store_true")
    p.add("--progress", "show a progress bar", action="store_true")


def drain_order(args: argparse.Namespace) -> int:
    options = given(args, "consolidation.drain_order")
    if args.all and "nodes" in options or not (args.all or options.keys() & {"nodes", "gpu_model"}):
        raise InvalidInput("--nodes, --all: expected one of them, or --model")
    if args.write_clusters and args.output is None:
        raise InvalidInput("--write-clusters: requires --output")
    if args.output is not None:
        require_folder(args.output)
    cluster = Cluster.from_json(args.cluster)
    with expanded_patterns(cluster, options):
        order = consolidation.drain_order(cluster, progress=args.progress, **options)
    say(str(order))
    for text in refused_evictions(cluster, *(batch.plan for batch in order.batches)):
        say(text)
    problems = []
    digits = max(3, len(str(len(order.batches))))
    for number, batch in enumerate(order.batches, 1):
        checked = verify.plan(cluster, batch.plan)
        problems += [f"batch {number}: {violation}" for violation in checked.violations]
        if args.write_clusters:
            cluster.to_json(os.path.join(args.output, f"cluster-{number:0{digits}}.json"))
        cluster = apply(cluster, batch.plan)
        if args.output is not None:
            batch.plan.to_json(os.path.join(args.output, f"batch-{number:0{digits}}.json"))
    if args.output is not None:
        with open(os.path.join(args.output, "batches.csv"), "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(drain_csv_rows(order))
        plans = f"{counted(len(order.batches), 'plan')} and batches.csv"
        snapshots = ", each with its snapshot" if args.write_clusters else ""
        say(f"wrote {plans} to {args.output}{snapshots}; each plan is for the cluster after those before it")
    for problem in problems[:SHOWN]:
        say(problem)
    if order.batches:
        say(
            "the plans do not verify"
            if problems
            else "every plan verifies on the cluster that the plans before it leave"
        )
    return FAILED if problems or order.left else OK


def require_folder(path: str) -> None:
    """Creates the folder, so that no work is lost. Raises if it cannot, and if old batches are there."""
    from ..errors import BackendError

    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise BackendError(f"{path}: cannot be written: {error.strerror}") from None
    if glob.glob(os.path.join(glob.escape(path), "batch-*.json")):
        expected = "expected a folder without batch-*.json"
        raise InvalidInput(f"--output: {path!r} holds the batches of another run; {expected}")


def what_if_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "consolidation.what_if")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add(
        "--add-nodes",
        "add nodes like NODE of the cluster, or like the one that NODE.json describes: NODE=10; may be "
        "repeated (default: none)",
        action="append",
        metavar="NODE=N",
    )
    option("remove", f"remove these nodes, {PATTERNS} (default: none)", **NODES)
    option("uncordon", f"uncordon these nodes, {PATTERNS} (default: none)", **NODES)
    p.add("--no-consolidate", "do not answer for the cluster after a consolidation", action="store_true")
    for name in ("preset", "seed", "threads"):
        option(name)
    option("time_limit", "stop after this time; jobs that were not tried count as waiting", metavar="SECONDS")


def added_nodes(texts: list[str]) -> list[tuple[Any, int]]:
    """Reads NODE=10 or NODE.json=10."""
    pairs: list[tuple[Any, int]] = []
    problems = []
    for text in texts:
        node, _, number = text.rpartition("=")
        if not node or not number.isdecimal():
            problems.append(f"--add-nodes: {text!r}; expected NODE=N or NODE.json=N, like h100-1=10")
            continue
        pairs.append((read_mapping(node) if node.endswith((".json", ".yaml", ".yml")) else node, int(number)))
    if problems:
        raise InvalidInput(problems)
    return pairs


def what_if(args: argparse.Namespace) -> int:
    options = given(args, "consolidation.what_if")
    if args.add_nodes:
        options["add_nodes"] = added_nodes(args.add_nodes)
    if args.no_consolidate:
        options["consolidate"] = False
    cluster = Cluster.from_json(args.cluster)
    with expanded_patterns(cluster, options):
        say(str(consolidation.what_if(cluster, **options)))
    for name in options.get("uncordon", ()):
        if reason := cluster._closed_reason(name):
            say(f"{name} is {cluster._words['closed']}: {reason}")
    return OK
