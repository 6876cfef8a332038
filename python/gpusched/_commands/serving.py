"""The command `plan-serving`."""

from __future__ import annotations

import argparse

from .. import serving
from .._tables import format_table
from ..errors import InvalidInput
from .shared import FAILED, OK, given, read_mapping, require_writable, say, write_json


def plan_serving(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.request, args.replan_from])
    request = read_mapping(args.request)
    options = given(args, "max_deployments", "solver", "time_limit", "mip_gap", "threads", "progress")
    if args.replan_from is not None:
        other = given(args, "composition", "routing", "uniform_tp", "deadline")
        refused = [f"--{name.replace('_', '-')}" for name, value in other.items() if value != "optimized"]
        if refused:
            raise InvalidInput(f"{', '.join(refused)}: not with --replan-from, which changes a plan as little as possible")
        running = read_mapping(args.replan_from).get("replicas")
        if not isinstance(running, list):
            raise InvalidInput(f"{args.replan_from}: replicas: expected a list, as in a serving plan")
        changed = serving.replan(request, running, **options, **given(args, "max_starts", "slack"))
        plan = changed.plan
    else:
        changed = None
        if args.max_starts is not None or args.slack is not None:
            raise InvalidInput("--max-starts and --slack: only with --replan-from")
        plan = serving.plan_serving(
            request, **options, **given(args, "composition", "routing", "uniform_tp", "deadline")
        )
    document = serving.plan_to_dict(plan, changed)
    if args.output:
        write_json(args.output, document)
    if plan.makespan is None:
        say(f"no plan: {plan.status}" + (f" ({plan.message})" if plan.message else ""))
        return FAILED
    rows = [
        (
            replicas["model"],
            replicas["deployment"],
            replicas["count"],
            f"{replicas['cost']:.2f}",
            ", ".join(f"{share:.1%} of {name}" for name, share in replicas["share"].items()),
        )
        for replicas in plan.replicas
    ]
    say(format_table(("model", "deployment", "replicas", "cost_per_h", "serves"), rows))
    rented = ", ".join(f"{count} {name}" for name, count in plan.rented.items())
    say(f"rent {rented or 'nothing'}: {plan.cost:.2f} $/h, {1000 * plan.cost_per_request:.4g} $ per 1,000 requests")
    proof = "proven best" if plan.optimal else f"at least {plan.bound or 0:.4g} s are needed"
    if changed is not None and not plan.optimal and plan.message:
        proof += f"; {plan.message}"
    say(f"all requests are done after {plan.makespan:.4g} s ({plan.requests_per_s:.4g} per second); {proof}")
    if plan.left_out:
        say(f"of {plan.deployments:,} possible deployments, {plan.left_out:,} were not considered (--max-deployments)")
    if changed is not None:
        say(f"starts {changed.starts} replicas and stops {changed.stops}")
    if args.output:
        say(f"wrote {args.output}")
    return OK
