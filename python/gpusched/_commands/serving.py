"""Commands of the serving planner: `plan-serving`, `serving-curve`."""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import _core, serving
from .._views.tables import format_table
from .._views.words import counted
from ..errors import InvalidInput
from .arguments import FILES, Parser, Together, budgets, library_option, rate, rates, targets
from .serving_changes import require_rentals, restarts, starts_and_stops
from .shared import FAILED, OK, Problems, given, read_mapping, require_writable, save_figure, say, write_json

TARGETS = tuple(f"{what}_p{percent}_s" for what in ("ttft", "tpot") for percent in (50, 90, 99))
# Options that a sweep over budgets does not have.
RENTAL = ("rate", "goal", "machines", "utilization", *TARGETS)


def rates_options(p: Parser, function: str, also: tuple[str, ...] = ()) -> None:
    """Rates, targets and machines."""
    option = functools.partial(library_option, p, function, also=also)
    if function == "serving.plan_serving":
        option(
            "rate", "requests per second, of all kinds or by name: chat=10,code=2, with the model where several have a kind of this name: "
            "Llama-3-8B/chat=10; may be given several times (default: the request's)", type=rate, action=Together, metavar="R",
        )  # fmt: skip
    for latency, told in (("ttft", "time to the first token"), ("tpot", "time per further token")):
        for percent in (50, 90, 99):
            option(
                f"{latency}_p{percent}_s", f"target: {percent} %% of requests have a {told} of at most so many seconds (default: none)".replace("%%", "%"),
                name=f"{latency}_p{percent}", metavar="SECONDS",
            )  # fmt: skip
    option("machines", "rent whole machines")
    option("measured_only", "plan with what was measured and nothing else")
    option("unmeasured_pipelines", "consider pipelines that nobody measured, too, where deployments without can do")
    option("utilization", "with rates: use this part of what a replica serves at most", metavar="PART")


def require(path: str, check: Callable[[], object], called: str) -> None:
    """What the library says of a document, with the file and the place in it instead of what the library calls the document.

    What it says of anything else stays as it is.
    """
    try:
        check()
    except InvalidInput as error:
        problems = error.problems
        raise InvalidInput(
            [f"{path}: {p.removeprefix(called).lstrip('.: ')}" if p.startswith(called) else p for p in problems]
        ) from None


def read_request(path: str, rate: float | Mapping[str, float] | None = None) -> dict[str, Any]:
    request = read_mapping(path)
    require(path, lambda: _core.serving._require_request(request, rate), "request")
    return request


def read_plan(path: str) -> dict[str, Any]:
    plan = read_mapping(path)
    require(path, lambda: _core.serving._require_running(plan), "running")
    require_rentals(path, plan)
    return plan


def targets_of(request: Mapping[str, Any], options: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, float]]:
    """The targets of each kind of requests, by model and name: those of the options, before its own, before those of the request."""
    return {
        (model, kind): {
            name: value
            for source in (request.get("targets"), workload.get("targets"), options)
            for name, value in (source or {}).items()
            if name in TARGETS and value is not None
        }
        for model, served in request["models"].items()
        for kind, workload in served["workloads"].items()
    }


def sweep(args: argparse.Namespace, request: dict[str, Any]) -> int:
    options = given(args, "serving.sweep_budgets", "progress")
    plans = serving.sweep_budgets(request, args.budgets, **options)
    if args.output:
        write_json(args.output, serving.sweep_to_dict(plans))
    rows = []
    for budget, plan in plans.items():
        rented = ", ".join(f"{count} {name}" for name, count in plan.rented.items())
        if plan.makespan is None:
            rows.append((f"{budget:g}", "-", "-", "-", "-", "-", f"no plan: {plan.status}"))
            continue
        rows.append(
            (
                f"{budget:g}",
                f"{plan.cost:.2f}",
                f"{plan.makespan:.4g}",
                "proven best" if plan.optimal else f"{plan.bound or 0:.4g}",
                f"{plan.requests_per_s:.4g}",
                f"{1000 * plan.cost_per_request:.4g}",
                rented or "nothing",
            )
        )
    head = ("budget", "cost_per_h", "makespan_s", "at_least_s", "requests_per_s", "dollars_per_1000", "rent")
    say(format_table(head, rows))
    if args.output:
        say(f"wrote {args.output}")
    return OK if any(plan.makespan is not None for plan in plans.values()) else FAILED


def sources(ttft: str, tpot: str) -> str:
    """Where latencies come from, in a word where it is the same for both."""
    return ttft if ttft == tpot else f"ttft {ttft}, tpot {tpot}"


def with_models(several: bool, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A table whose first column is the model, which is shown where there are several."""
    return format_table(("model", *head) if several else head, rows if several else [row[1:] for row in rows])


def say_rental(plan: serving.ServingPlan, targets: Mapping[tuple[str, str], Mapping[str, float]], ranges: bool) -> None:
    """A plan of rentals: what runs, what it means, latencies, what it costs and, if asked for, how far prices may move."""
    several = len({model for model, _ in targets}) > 1
    rows: list[tuple[Any, ...]] = [
        (
            replicas["model"],
            replicas["deployment"],
            replicas["count"],
            f"{replicas['cost']:.2f}",
            ", ".join(
                f"{share:.1%} of {name} ({replicas['source'][name]} {replicas['requests_per_s'][name]:.3g}/s each)"
                for name, share in replicas["share"].items()
            ),
            replicas["means"],
        )
        for replicas in plan.replicas
    ]
    say(with_models(several, ("deployment", "replicas", "cost_per_h", "serves", "means"), rows))
    if plan.latencies:
        percentiles = tuple(name for name in plan.latencies[0] if name in TARGETS)
        rows = [
            (
                kind["model"], kind["workload"], f"{kind['rate']:.3g}",
                *("-" if kind[name] is None else f"{kind[name]:.3g}" for name in percentiles),
                sources(kind["ttft_source"], kind["tpot_source"]),
                ("kept" if kind["met"] else "missed") if targets[kind["model"], kind["workload"]] else "none",
            )
            for kind in plan.latencies
        ]  # fmt: skip
        say(with_models(several, ("workload", "per_s", *percentiles, "latencies", "targets"), rows))
    for factor in plan.calibration["factors"]:
        if factor["rows"]:
            known = counted(factor["rows"], "measurement")
            say(f"estimates of {factor['model']} on {factor['gpu']} are multiplied by {factor['factor']:.3g} ({known})")
    say(f"rent {serving.rent_in_words(plan)}: {plan.cost:.2f} $/h, {1000 * plan.cost_per_request:.4g} $ per 1,000 requests")
    if plan.rate_bound:
        say(f"serves {plan.rate:.4g} requests per second; no plan of these deployments serves more than {plan.rate_bound:.4g}")
    elif plan.rate:
        say(f"serves {plan.rate:.4g} requests per second; no plan of these deployments costs less than {plan.cost_bound:.2f} $/h")
    else:
        proof = "proven best" if plan.optimal else f"at least {plan.bound or 0:.4g} s are needed"
        say(f"all requests are done after {plan.makespan:.4g} s; {proof}")
    if plan.message:
        say(plan.message)
    if ranges:
        say_ranges(plan)


def say_ranges(plan: serving.ServingPlan) -> None:
    """Between which prices a plan stays the cheapest, and among which plans."""
    alike = []
    if plan.capacity != 1:
        alike.append(f"fill replicas as far (capacity {plan.capacity:.3g})")
    if plan.separate:
        alike.append("keep the kinds of requests apart")
    among = f"of the plans that {' and '.join(alike)}, it " if alike else ""
    for each in plan.price_ranges:
        what = f"spot {each['gpu']}" if each["spot"] else each["gpu"]
        if not each["proven"]:
            say(f"how far the price of {what} may move was not found within the limits of the solver")
            continue
        high = f"{each['high']:.4g}" if math.isfinite(each["high"]) else "any"
        say(f"{among}stays the cheapest while {what} costs {each['low']:.4g} to {high} $/h (now {each['price']:.4g})")


def serving_curve_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "serving.curve")
    request = p.add_argument("request", metavar="REQUEST.yaml|json", help="as docs/serving.md describes it")
    request.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="CURVE.json|svg|png|pdf", help="write the points with their plans here, or a plot (default: nowhere)")
    p.add_argument(
        "--rates", type=rates, action=Together, metavar="R1,R2,...", help="requests per second of all kinds together (default: the request's)"
    )
    p.add_argument(
        "--targets", type=targets, action="append", metavar="ttft_p90=0.5,tpot_p90=0.05",
        help="a set of targets in seconds, beside those of the options; once for each set (default: those of the options alone)",
    )  # fmt: skip
    rates_options(p, "serving.curve")
    option("max_deployments", "of each model, 0 = all")
    option("solver", "what solves the mixed-integer programs", choices=("auto", "highs", "cbc", "scipy"))
    option("time_limit", "of each plan (default: no limit)", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def own_targets(targets: Mapping[tuple[str, str], Mapping[str, float]], replaced: set[str]) -> list[str]:
    """A line for each target of the request that is not the same for all kinds of requests, nor replaced by the call's."""
    several = len({model for model, _ in targets}) > 1
    lines = []
    for name in (each for each in TARGETS if each not in replaced):
        values = {kind: of[name] for kind, of in targets.items() if name in of}
        if values and (len(values) < len(targets) or len(set(values.values())) > 1):
            words = (f"{value:g} of {model}/{kind}" if several else f"{value:g} of {kind}" for (model, kind), value in values.items())
            lines.append(f"{name} in the request: {', '.join(words)}")
    return lines


def serving_curve(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.request])
    request = read_request(args.request, 1.0 if args.rates else None)
    options = given(args, "serving.curve", "progress")
    curve = serving.curve(request, args.rates or (), args.targets or (), **options)
    say(str(curve))
    replaced = {name for name in TARGETS if name in options or (args.targets and all(name in each for each in args.targets))}
    for line in own_targets(targets_of(request, {}), replaced):
        say(line)
    for row, plan in zip(curve, curve.plans):
        for reason in plan.binding:
            say(f"{row.rate:g} requests/s: {reason}")
    if args.output and args.output.endswith(".json"):
        write_json(args.output, serving.curve_to_dict(curve))
        say(f"wrote {args.output}")
    elif args.output:
        from .. import plotting

        save_figure(args.output, lambda: plotting.plot_curve(curve))
    return OK if any(plan.makespan is not None for plan in curve.plans) else FAILED


def plan_serving_options(p: Parser) -> None:
    alone = functools.partial(library_option, p, "serving.plan_serving")
    anew = functools.partial(alone, also=("serving.sweep_budgets",))
    option = functools.partial(alone, also=("serving.sweep_budgets", "serving.replan"))
    replan = functools.partial(library_option, p, "serving.replan")
    request = p.add_argument("request", metavar="REQUEST.yaml|json", help="as docs/serving.md describes it")
    request.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan here")
    alone("deadline", "find the cheapest plan within it (default: the fastest plan)", metavar="SECONDS")
    p.add_argument(
        "--budgets", type=budgets, action=Together, metavar="B1,B2,...", help="a plan for each of these (default: the request's own)"
    )
    rates_options(p, "serving.plan_serving", ("serving.replan",))
    alone("goal", "with rates: the cheapest rental, or the most requests per second for the budget")
    anew("composition")
    anew("routing")
    anew("uniform_tp", "all replicas are tensor-parallel groups of one degree")
    p.add_argument("--price-ranges", action="store_true", help="with rates: say how far each price may move until another rental is cheaper")
    p.add_argument("--replan-from", metavar="PLAN.json", help="change this plan as little as possible")
    replan("max_starts", "with --replan-from: start so many replicas at most")
    replan("slack", "with --replan-from: accept this much more time for fewer starts", metavar="PART")
    option("max_deployments", "of each model, 0 = all")
    option("solver", "what solves the mixed-integer programs", choices=("auto", "highs", "cbc", "scipy"))
    option("time_limit", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add_argument("--progress", action="store_true", help="show a progress bar")


def plan_serving(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.request, args.replan_from])
    problems = Problems()
    options = given(args, "serving.replan" if args.replan_from is not None else "serving.plan_serving", "progress")
    if args.replan_from is not None:
        asked = given(args, "serving.plan_serving", "budgets")
        if args.price_ranges:
            asked["price_ranges"] = True
        refused = [f"--{name.replace('_', '-')}" for name in asked if name not in options and asked[name] != "optimized"]
        with problems.collect():
            if refused:
                raise InvalidInput(f"{', '.join(refused)}: not with --replan-from, which changes a plan as little as possible")
    else:
        with problems.collect():
            if args.max_starts is not None or args.slack is not None:
                raise InvalidInput("--max-starts and --slack: only with --replan-from")
        with problems.collect():
            rental = [f"--{name.replace('_', '-').removesuffix('-s')}" for name in RENTAL if getattr(args, name) is not None]
            if args.budgets is not None and rental:
                raise InvalidInput(f"{', '.join(rental)}: not with --budgets, which are of a batch; see serving-curve")
        with problems.collect():
            if args.price_ranges and (args.budgets is not None or args.goal == "most_rate"):
                raise InvalidInput("--price-ranges: of the cheapest plan for rates alone")
        with problems.collect():
            if args.budgets is not None and args.deadline is not None:
                raise InvalidInput("--deadline: not with --budgets: the cheapest plan is the same for each that pays it")
    request: dict[str, Any] = {}
    running: dict[str, Any] = {}
    with problems.collect():
        request = read_request(args.request, args.rate)
    if args.replan_from is not None:
        with problems.collect():
            running = read_plan(args.replan_from)
    problems.raise_if_any()
    if args.budgets is not None:
        return sweep(args, request)
    changed = None
    if args.replan_from is not None:
        changed = serving.replan(request, running, **options)
        plan = changed.plan
    else:
        plan = serving.plan_serving(request, **options)
    document = serving.plan_to_dict(plan, changed, price_ranges=args.price_ranges)
    if args.output:
        write_json(args.output, document)
    if plan.makespan is None:
        say(f"no plan: {plan.status}" + (f" ({plan.message})" if plan.message else ""))
        for reason in plan.binding:
            say(f"  {reason}")
        return FAILED
    if plan.rate or any(rented["spot"] or rented["per_rental"] > 1 for rented in plan.rentals):
        say_rental(plan, targets_of(request, options), args.price_ranges)
        if changed is not None:
            say(starts_and_stops(running, changed))
            if moved := restarts(running, plan):
                say(moved)
            say(f"the cheapest plan costs {changed.cost_free:.2f} $/h")
        if args.output:
            say(f"wrote {args.output}")
        return OK
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
    say(f"all requests are done after {plan.makespan:.4g} s ({plan.requests_per_s:.4g} per second); {proof}")
    if plan.message:
        say(plan.message)
    if plan.left_out:
        say(f"of {counted(plan.deployments, 'possible deployment')}, {plan.left_out:,} were not considered (--max-deployments)")
    if changed is not None:
        say(starts_and_stops(running, changed))
    if args.output:
        say(f"wrote {args.output}")
    return OK
