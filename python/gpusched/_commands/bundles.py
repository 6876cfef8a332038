# SPDX-License-Identifier: Apache-2.0
"""The command `replay-bundle`, and the options with which other commands write bundles."""

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
    """Options for a file with which others can run the command again."""
    p.add("--save-bundle", "write snapshot, options and plan here, for replay-bundle", metavar="BUNDLE.json")
    text = "replace all names in the bundle, and compute the plan again"
    p.add("--anonymize-bundle", text, action="store_true")


def check_bundle(args: argparse.Namespace) -> None:
    """Raises InvalidInput for options of a bundle without --save-bundle."""
    if args.anonymize_bundle and args.save_bundle is None:
        raise InvalidInput("--anonymize-bundle: only with --save-bundle")


def save_bundle(
    args: argparse.Namespace, command: str, cluster: Cluster, options: Mapping[str, Any], plan: Plan | None
) -> None:
    """Writes the bundle if --save-bundle is given."""
    if args.save_bundle is None:
        return
    bundles.save(args.save_bundle, command, cluster, options, plan, anonymize=args.anonymize_bundle)
    say(f"wrote {args.save_bundle}")


def replay_bundle_options(p: Parser) -> None:
    p.add("bundle", "a bundle that --save-bundle wrote", metavar="BUNDLE.json")


def replay_bundle(args: argparse.Namespace) -> int:
    found = bundles.replay(args.bundle)
    if found.same:
        say(f"{found.command}: the same plan as gpusched {found.saved_by} made")
        return OK
    say(f"{found.command}: another plan than gpusched {found.saved_by} made")
    for difference in found.differences:
        say(f"  - {difference}")
    return FAILED
