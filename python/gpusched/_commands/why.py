# SPDX-License-Identifier: Apache-2.0
"""The command `why`: why a pending job or task does not run."""

from __future__ import annotations

import argparse
import functools
import shlex

from .. import admission
from .._views.risks import refused_evictions
from ..model import Cluster
from .arguments import Parser, library_option
from .shared import NO_ROOM_NEEDED, OK, given, say, slurm_name


def why_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "admission.why")
    p.add("cluster", "the snapshot", metavar="CLUSTER.json")
    p.add("name", "name of a job with pending tasks, or of a pending task", metavar="NAME")
    option("on", "answer for this node only (default: for all nodes)", metavar="NODE")
    option("order", "order of the constraints: permanence starts with those that never change")
    option(
        "time_limit",
        "stop after this time; remedies that were not found by then are missing",
        metavar="SECONDS",
    )


def why(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    name = slurm_name(cluster, args.name)
    found = admission.why(cluster, name, **given(args, "admission.why"))
    if name != args.name:
        say(f"{args.name} stands for {name} here")
    say(str(found))
    plans = [remedy.plan for remedy in found.remedies if remedy.plan is not None]
    for text in dict.fromkeys(text for plan in plans for text in refused_evictions(cluster, plan)):
        say(text)
    alone = len(found.pods) == 1 or args.name not in found.pods  # `admit` does not ask for the gang of a pod
    if alone and args.on is None and any(remedy.kind in ("moves", "evictions") for remedy in found.remedies):
        command = shlex.join(["gpusched", "admit", args.cluster, args.name])
        say(f"to plan the moves or evictions: {command}; its search can miss a cheaper plan")
    return OK if found.waiting_for is None else NO_ROOM_NEEDED
