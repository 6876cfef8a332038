"""The command `replay-bundle`, and what other commands write for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from .. import bundles
from ..errors import InvalidInput
from ..model import Cluster, Plan
from .arguments import Parser
from .shared import FAILED, OK, say


def bundle_options(p: Parser) -> None:
    """A file with which somebody else can run the command again."""
    p.add_argument("--save-bundle", metavar="BUNDLE.json", help="write snapshot, options and plan here, for replay-bundle")
    p.add_argument("--anonymize-bundle", action="store_true", help="without the names that tell whose the snapshot is; the plan is made again")


def check_bundle(args: argparse.Namespace) -> None:
    """Raises InvalidInput for options of a bundle that nobody asks for."""
    if args.anonymize_bundle and args.save_bundle is None:
        raise InvalidInput("--anonymize-bundle: with --save-bundle only")


def save_bundle(args: argparse.Namespace, command: str, cluster: Cluster, options: Mapping[str, Any], plan: Plan | None) -> None:
    """Where --save-bundle asks for it."""
    if args.save_bundle is None:
        return
    bundles.save(args.save_bundle, command, cluster, options, plan, anonymize=args.anonymize_bundle)
    say(f"wrote {args.save_bundle}")


def replay_bundle_options(p: Parser) -> None:
    p.add_argument("bundle", metavar="BUNDLE.json", help="what --save-bundle wrote")


def replay_bundle(args: argparse.Namespace) -> int:
    found = bundles.replay(args.bundle)
    if found.same:
        say(f"{found.command}: the same plan as gpusched {found.saved_by} made")
        return OK
    say(f"{found.command}: another plan than gpusched {found.saved_by} made")
    for difference in found.differences:
        say(f"  - {difference}")
    return FAILED
