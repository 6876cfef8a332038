"""The commands `kube snapshot` and `kube rbac`: a Kubernetes cluster through its API server."""

from __future__ import annotations

import argparse
import json

from .. import io, kubernetes
from .clusters import write_reading
from .shared import OK, given, require_writable, say, write_json, write_text

OF_THE_API = ("kubeconfig", "context", "in_cluster", "allow_missing", "page_size", "timeout_s")


def snapshot(args: argparse.Namespace) -> int:
    require_writable(args.output, args.report, inputs=[args.kubeconfig])
    taken = kubernetes.snapshot(**given(args, *OF_THE_API))
    say(str(taken))
    say()
    told = taken.to_dict()
    if args.raw:
        write_json(args.output, taken.objects)
        say(f"wrote {args.output}")
    else:
        reading = io.read_kubernetes(taken.objects, **given(args, "io.read_kubernetes"))
        write_reading(reading, args.output)
        told |= json.loads(reading.report.to_json())
    if args.report:
        write_json(args.report, told)
        say(f"wrote {args.report}")
    return OK


def rbac(args: argparse.Namespace) -> int:
    write_text(None, kubernetes.rbac())
    return OK
