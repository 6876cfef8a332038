"""The commands `kube snapshot` and `kube rbac`: a Kubernetes cluster through its API server."""

from __future__ import annotations

import argparse
import functools
import json

from .. import io, kubernetes
from .arguments import Parser, flag, library_option
from .clusters import kubernetes_reading_options, write_reading
from .shared import OK, given, refuse, require_writable, say, write_json, write_text

OF_THE_API = ("kubeconfig", "context", "in_cluster", "allow_missing", "page_size", "timeout_s")


def snapshot_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "io.read_kubernetes")
    p.add_argument("-o", "--output", required=True, metavar="CLUSTER.json", help="write the snapshot here")
    p.add_argument("--raw", action="store_true", help="write the objects instead, for import kubernetes; what containers run is left out")
    p.add_argument("--report", metavar="REPORT.json", help="write here how the objects were listed and read")
    p.add_argument("--kubeconfig", metavar="FILE", help="credentials (default: as kubectl, KUBECONFIG, else ~/.kube/config)")
    p.add_argument("--context", metavar="NAME", help="of the kubeconfig (default: its current one)")
    flag(p, "--in-cluster", "use the service account of the pod that this runs in (default: no)")
    flag(p, "--allow-missing", "go on without kinds that the credentials may not list, or whose server does not answer; nodes and pods are needed (default: no)")
    p.add_argument("--page-size", type=int, metavar="N", help="objects asked for at once (default: 500)")
    p.add_argument("--timeout-s", type=float, metavar="SECONDS", help="for each request (default: 60)")
    kubernetes_reading_options(p, "")
    option("ignore_protection", "pods marked as not safe to evict, or not to be disrupted, are like others")
    option("examples", "names of objects in each row of the report")


def snapshot(args: argparse.Namespace) -> int:
    if args.raw:
        refuse(given(args, "io.read_kubernetes"), "kube snapshot --raw")
    require_writable(args.output, args.report, inputs=[args.kubeconfig])
    taken = kubernetes.snapshot(**given(args, *OF_THE_API))
    say(str(taken))
    say()
    told = taken.to_dict()
    if args.raw:
        write_json(args.output, taken.objects)
        if args.report:
            write_json(args.report, told)
        say(f"wrote {args.output}")
    else:
        reading = io.read_kubernetes(taken.objects, **given(args, "io.read_kubernetes"))
        if args.report:
            write_json(args.report, told | json.loads(reading.report.to_json()))
        write_reading(reading, args.output)
    if args.report:
        say(f"wrote {args.report}")
    return OK


def rbac_options(p: Parser) -> None:
    """No option: `kubectl apply -f -` reads what it prints."""


def rbac(args: argparse.Namespace) -> int:
    write_text(None, kubernetes.rbac())
    return OK
