# SPDX-License-Identifier: Apache-2.0
"""The commands `kube snapshot` and `kube rbac`, which use the API server of a Kubernetes cluster."""

from __future__ import annotations

import argparse
import functools
import json

from .. import io, kubernetes
from .arguments import Parser, flag, library_option
from .clusters import kubernetes_reading_options, write_reading
from .shared import OK, given, refuse, require_writable, say, write_json, write_text

API_OPTIONS = ("kubeconfig", "context", "in_cluster", "allow_missing", "page_size", "timeout_s")


def snapshot_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "io.read_kubernetes")
    p.add("-o --output", "write the snapshot here", required=True, metavar="CLUSTER.json")
    text = "write the objects instead, for import kubernetes, without commands and environment of containers"
    p.add("--raw", text, action="store_true")
    p.add("--report", "write a report on listing and reading the objects here", metavar="REPORT.json")
    text = "credentials (default: as kubectl: KUBECONFIG, else ~/.kube/config)"
    p.add("--kubeconfig", text, metavar="FILE")
    p.add("--context", "context of the kubeconfig (default: its current context)", metavar="NAME")
    flag(p, "--in-cluster", "use the service account of the pod that runs this command (default: no)")
    text = "continue without kinds that cannot be listed, except nodes and pods (default: no)"
    flag(p, "--allow-missing", text)
    p.add("--page-size", "objects per request (default: 500)", type=int, metavar="N")
    p.add("--timeout-s", "limit for each request (default: 60)", type=float, metavar="SECONDS")
    kubernetes_reading_options(p, "")
    option("ignore_protection", "ignore marks that protect pods from eviction, such as safe-to-evict=false")
    option("examples", "number of example names in each row of the report")


def snapshot(args: argparse.Namespace) -> int:
    if args.raw:
        refuse(given(args, "io.read_kubernetes"), "kube snapshot --raw")
    require_writable(args.output, args.report, inputs=[args.kubeconfig])
    taken = kubernetes.snapshot(**given(args, *API_OPTIONS))
    say(str(taken))
    say()
    listed = taken.to_dict()
    if args.raw:
        write_json(args.output, taken.objects)
        if args.report:
            write_json(args.report, listed)
        say(f"wrote {args.output}")
    else:
        reading = io.read_kubernetes(taken.objects, **given(args, "io.read_kubernetes"))
        if args.report:
            write_json(args.report, listed | json.loads(reading.report.to_json()))
        write_reading(reading, args.output)
    if args.report:
        say(f"wrote {args.report}")
    return OK


def rbac_options(p: Parser) -> None:
    """No options: the output is the input of `kubectl apply -f -`."""


def rbac(args: argparse.Namespace) -> int:
    write_text(None, kubernetes.rbac())
    return OK
