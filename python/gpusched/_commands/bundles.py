"""The command `replay-bundle`, and what other commands write for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from .. import bundles
from ..model import Cluster, Plan
from .shared import FAILED, OK, say


def save_bundle(args: argparse.Namespace, command: str, cluster: Cluster, options: Mapping[str, Any], plan: Plan | None) -> None:
    """Where --save-bundle asks for it."""
    if args.save_bundle is None:
        return
    bundles.save(args.save_bundle, command, cluster, options, plan, anonymize=args.anonymize_bundle)
    say(f"wrote {args.save_bundle}")


def replay_bundle(args: argparse.Namespace) -> int:
    found = bundles.replay(args.bundle)
    if found.same:
        say(f"{found.command}: the same plan as gpusched {found.saved_by} made")
        return OK
    say(f"{found.command}: another plan than gpusched {found.saved_by} made")
    for difference in found.differences:
        say(f"  - {difference}")
    return FAILED
