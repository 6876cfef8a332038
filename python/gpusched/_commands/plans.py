"""Commands on plans: `consolidate`, `verify`, `explain`, `export`."""

from __future__ import annotations

import argparse
import math
import os
import sys

from .. import consolidation, io, verify
from .._words import counted
from ..errors import InvalidInput
from ..model import Cluster, Plan
from .bundles import check_bundle, save_bundle
from .shared import FAILED, OK, Problems, given, require_writable, say, write_text


def consolidate(args: argparse.Namespace) -> int:
    check_bundle(args)
    require_writable(args.output, args.save_bundle, inputs=[args.cluster])
    cluster = Cluster.from_json(args.cluster)
    options = given(args, "consolidation.consolidate")
    plan = consolidation.consolidate(cluster, progress=args.progress, **options)
    # Against the file, which no code of the search has touched; a pipe cannot be read twice.
    checked = verify.plan(args.cluster if os.path.isfile(args.cluster) else cluster, plan)
    print_plan(plan)
    if args.report:
        say()
        say(str(consolidation.value_report(cluster, plan)).rstrip())
    if args.output:
        plan.to_json(args.output)
        say(f"wrote {args.output}")
    code = print_check(checked)
    save_bundle(args, "consolidate", cluster, options, plan)
    return code


def print_plan(plan: Plan) -> None:
    gpus, bound = plan.stats.get("vacated_gpus", 0), plan.bound
    say(
        f"{counted(len(plan.vacated_nodes), 'node')} with {counted(gpus, 'GPU')} vacated by "
        f"{counted(len(plan.moves), 'move')} in {counted(plan.waves, 'wave')}"
    )
    if bound["method"] and bound["vacated_gpus_at_most"]:
        say(
            f"{math.floor(1000 * gpus / bound['vacated_gpus_at_most']) / 10} % of the proven bound of "
            f"{counted(bound['vacated_gpus_at_most'], 'GPU')} "
            f"({counted(bound['vacated_nodes_at_most'], 'node')}; {bound['method']})"
        )
    if plan.stop_reason != "completed":
        say(f"stopped early: {plan.stop_reason}")


def print_check(checked: verify.Report) -> int:
    if checked.ok:
        say("the plan verifies")
        return OK
    print(f"the plan does not verify: {counted(checked.violation_count, 'violation')}", file=sys.stderr)
    for violation in checked.violations:
        print(f"  - {violation}", file=sys.stderr)
    return FAILED


def verify_plan(args: argparse.Namespace) -> int:
    checked = verify.plan(args.cluster, args.plan, **given(args, "verify.plan"))
    say(f"vacates {counted(len(checked.vacated_nodes), 'node')} with {counted(checked.vacated_gpus, 'GPU')}")
    return print_check(checked)


def explain(args: argparse.Namespace) -> int:
    cluster = Cluster.from_json(args.cluster)
    plan = Plan.from_json(args.plan)
    scope = given(args, "consolidation.consolidate")
    problems, texts = Problems(), []
    for node in args.node:
        with problems.collect():
            texts.append(str(consolidation.explain(cluster, plan, node, **scope)).rstrip())
    problems.raise_if_any()
    for text in texts:
        say(text)
    return OK


def export(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.plan, args.cluster])
    plan = Plan.from_json(args.plan)
    if args.to == "csv":
        write_text(args.output, io.plan_to_csv(plan))
    elif args.to == "kubernetes":
        write_text(args.output, io.plan_to_kubernetes_steps(plan, **given(args, "default_namespace")))
    else:
        if args.cluster is None:
            raise InvalidInput(
                "--cluster: koordinator objects name the tasks' requests, so the snapshot is needed"
            )
        cluster = Cluster.from_json(args.cluster)
        write_text(
            args.output, io.plan_to_pod_migration_jobs(plan, cluster, **given(args, "default_namespace"))
        )
    return OK
