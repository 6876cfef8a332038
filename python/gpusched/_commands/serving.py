# SPDX-License-Identifier: Apache-2.0
"""Commands of the serving planner: `plan-serving`, `serving-curve`."""

from __future__ import annotations

import argparse
import functools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import _core, serving
from .._serving_curve import PERCENTILES, TARGETS
from .._serving_deploy import ENGINES, require_exportable, workloads_of
from .._views.tables import counted, format_table
from ..errors import InvalidInput, repr_text
from .arguments import Parser, Repeatable, budgets, choices, library_option, rate, rates, targets
from .shared import (
    FAILED,
    OK,
    Problems,
    given,
    read_mapping,
    require_writable,
    save_figure,
    say,
    write_json,
    write_text,
)

RENTAL = ("rate", "goal", "machines", "utilization", *TARGETS)
"""Options that a sweep over budgets does not have."""


def rates_options(p: Parser, function: str, also: tuple[str, ...] = ()) -> None:
    """Options for rates, targets and machines."""
    option = functools.partial(library_option, p, function, also=also)
    if function == "serving.plan_serving":
        text = (
            "requests per second, of all kinds or by kind: chat=10,code=2; with the model if several models "
            "have the kind: Llama-3-8B/chat=10; may be repeated (default: the request's)"
        )
        option("rate", text, type=rate, action=Repeatable, metavar="R")
    for latency, name in (
        ("ttft", "time to the first token"),
        ("tpot", "time per further token"),
        ("latency", "time to the last token"),
    ):
        for percent in PERCENTILES:
            text = f"target: maximum {name} in seconds for {percent} % of the requests (default: none)"
            option(f"{latency}_p{percent}_s", text, name=f"{latency}_p{percent}", metavar="SECONDS")
    option("machines", "rent whole machines")
    option("measured_only", "use only measured throughputs")
    option(
        "unmeasured_pipelines", "consider pipelines without measurements even if other deployments suffice"
    )
    option("utilization", "with rates: maximum part of a replica's throughput to use", metavar="PART")


def require(path: str, check: Callable[[], object], document: str) -> None:
    """Lets errors of the library name the file instead of the library's name of the document."""
    try:
        check()
    except InvalidInput as error:
        problems = [
            f"{path}: {problem.removeprefix(document).lstrip('.: ')}"
            if problem.startswith(document)
            else problem
            for problem in error.problems
        ]
        raise InvalidInput(problems) from None


def read_request(path: str, rate: float | Mapping[str, float] | None = None) -> dict[str, Any]:
    request = read_mapping(path)
    for workload in workloads_of(request):
        if isinstance(workload.get("trace"), str):
            workload["trace"] = os.path.join(os.path.dirname(path), workload["trace"])
    require(path, lambda: _core.serving._require_request(request, rate), "request")
    return request


def read_plan(path: str) -> dict[str, Any]:
    plan = read_mapping(path)
    require(path, lambda: _core.serving._require_running(plan), "running")
    require_rentals(path, plan)
    return plan


def targets_of(
    request: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[tuple[str, str], dict[str, float]]:
    """The targets of each kind of requests, by model and kind: the options override the kind's targets, which
    override
    the request's."""
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
    options = given(args, "serving.sweep_budgets", "progress") | estimates(args)
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


def latency_sources(ttft: str, tpot: str) -> str:
    """The sources of latencies, in one word if both are equal."""
    return ttft if ttft == tpot else f"ttft {ttft}, tpot {tpot}"


def with_models(several: bool, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A table with the model as first column; the column is omitted if there is only one model."""
    return format_table(("model", *head) if several else head, rows if several else [row[1:] for row in rows])


def say_rental(
    plan: serving.ServingPlan, targets: Mapping[tuple[str, str], Mapping[str, float]], ranges: bool
) -> None:
    """Prints a plan of rentals: replicas, latencies, cost and, if requested, the price ranges."""
    several = len({model for model, _ in targets}) > 1
    rows: list[tuple[Any, ...]] = [
        (
            replicas["model"],
            replicas["deployment"],
            replicas["count"],
            f"{replicas['cost']:.2f}",
            ", ".join(
                f"{share:.1%} of {name} ({replicas['source'][name]} {replicas['requests_per_s'][name]:.3g}/s "
                "each)"
                for name, share in replicas["share"].items()
            ),
            replicas["means"],
        )
        for replicas in plan.replicas
    ]
    say(with_models(several, ("deployment", "replicas", "cost_per_h", "serves", "means"), rows))
    if plan.latencies:
        percentiles = tuple(
            name for name in TARGETS if any(kind.get(name) is not None for kind in plan.latencies)
        )
        rows = [
            (
                kind["model"], kind["workload"], f"{kind['rate']:.3g}",
                *("-" if kind.get(name) is None else f"{kind[name]:.3g}" for name in percentiles),
                latency_sources(kind["ttft_source"], kind["tpot_source"]),
                ("kept" if kind["met"] else "missed") if targets[kind["model"], kind["workload"]] else "none",
            )
            for kind in plan.latencies
        ]  # fmt: skip
        say(with_models(several, ("workload", "per_s", *percentiles, "latencies", "targets"), rows))
    for factor in plan.calibration["factors"]:
        if factor["rows"]:
            known = counted(factor["rows"], "measurement")
            subject = f"{factor['model']} on {factor['gpu']}"
            say(f"estimates of {subject} are multiplied by {factor['factor']:.3g} ({known})")
    for errors in plan.errors:
        say(f"estimates of {errors['model']} on {errors['gpu']}: {errors['means']}")
    say(rent_line(plan, serving.rent_in_words(plan)))
    if plan.cost_high is not None and plan.cost_high > plan.cost:
        say(f"at the low end of the requests per second: {plan.cost_high:.2f} $/h")
    if plan.rate_bound is None:
        say(f"serves {plan.rate:.4g} requests per second; no bound is known")
    elif plan.rate_bound:
        bound = f"serves more than {plan.rate_bound:.4g}"
        say(f"serves {plan.rate:.4g} requests per second; no plan {bound}")
    elif plan.rate:
        bound = f"costs less than {plan.cost_bound:.2f} $/h"
        say(f"serves {plan.rate:.4g} requests per second; no plan {bound}")
    else:
        say(f"all requests are done after {plan.makespan:.4g} s; {makespan_proof(plan)}")
    if plan.message:
        say(plan.message)
    if ranges:
        say_ranges(plan)


def rent_line(plan: serving.ServingPlan, rented: str) -> str:
    return f"rent {rented}: {plan.cost:.2f} $/h, {1000 * plan.cost_per_request:.4g} $ per 1,000 requests"


def makespan_proof(plan: serving.ServingPlan) -> str:
    return "proven best" if plan.optimal else f"lower bound {plan.bound or 0:.4g} s"


def say_ranges(plan: serving.ServingPlan) -> None:
    """Prints the prices between which the plan stays the cheapest, and the plans that it is compared with."""
    compared = []
    if plan.capacity != 1:
        compared.append(f"fill replicas equally (capacity {plan.capacity:.3g})")
    if plan.separate:
        compared.append("keep the kinds of requests apart")
    among = f"of the plans that {' and '.join(compared)}, it " if compared else ""
    for each in plan.price_ranges:
        gpu = f"spot {each['gpu']}" if each["spot"] else each["gpu"]
        if not each["proven"]:
            say(f"the price range of {gpu} was not found within the limits of the solver")
            continue
        high = f"{each['high']:.4g}" if math.isfinite(each["high"]) else "any"
        say(
            f"{among}stays the cheapest while {gpu} costs {each['low']:.4g} to {high} $/h (now "
            f"{each['price']:.4g})"
        )


REQUEST = "a request as described in docs/serving.md"
MAX_DEPLOYMENTS = "maximum number of deployments per model, 0 = all"
SOLVERS = ("auto", "highs", "cbc", "scipy")


def serving_curve_options(p: Parser) -> None:
    option = functools.partial(library_option, p, "serving.curve")
    p.add("request", REQUEST, metavar="REQUEST.yaml|json")
    text = "write the points with their plans here, or a plot (default: none)"
    p.add("-o --output", text, metavar="CURVE.json|svg|png|pdf")
    text = "requests per second of all kinds together (default: the request's)"
    p.add("--rates", text, type=rates, action=Repeatable, metavar="R1,R2,...")
    text = (
        "a set of targets in seconds, in addition to the targets of the options; may be repeated (default: "
        "none)"
    )
    p.add("--targets", text, type=targets, action="append", metavar="ttft_p90=0.5,tpot_p90=0.05")
    rates_options(p, "serving.curve")
    option("max_deployments", MAX_DEPLOYMENTS)
    option("solver", "solver of the mixed-integer programs", choices=SOLVERS)
    option("time_limit", "limit for each plan (default: no limit)", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add("--progress", "show a progress bar", action="store_true")


def own_targets(targets: Mapping[tuple[str, str], Mapping[str, float]], replaced: set[str]) -> list[str]:
    """One line per target that differs between kinds of requests and that the call does not replace."""
    several = len({model for model, _ in targets}) > 1
    lines = []
    for name in (each for each in TARGETS if each not in replaced):
        values = {kind: of[name] for kind, of in targets.items() if name in of}
        if values and (len(values) < len(targets) or len(set(values.values())) > 1):
            subjects = {key: "/".join(key) if several else key[1] for key in values}
            words = (f"{value:g} for {subjects[key]}" for key, value in values.items())
            lines.append(f"{name} in the request: {', '.join(words)}")
    return lines


def serving_curve(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.request])
    request = read_request(args.request, 1.0 if args.rates else None)
    options = given(args, "serving.curve", "progress")
    curve = serving.curve(request, args.rates or (), args.targets or (), **options)
    say(str(curve))
    replaced = {name for name in TARGETS if name in options}
    if args.targets:
        replaced |= {name for name in TARGETS if all(name in each for each in args.targets)}
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
    plan_only = functools.partial(library_option, p, "serving.plan_serving")
    plan_or_sweep = functools.partial(plan_only, also=("serving.sweep_budgets",))
    option = functools.partial(plan_only, also=("serving.sweep_budgets", "serving.replan"))
    replan = functools.partial(library_option, p, "serving.replan")
    p.add("request", REQUEST, metavar="REQUEST.yaml|json")
    p.add("-o --output", "write the plan here", metavar="PLAN.json")
    text = "find the cheapest plan within this time (default: find the fastest plan)"
    plan_only("deadline", text, metavar="SECONDS")
    text = "make a plan for each of these budgets (default: the request's budget)"
    p.add("--budgets", text, type=budgets, action=Repeatable, metavar="B1,B2,...")
    rates_options(p, "serving.plan_serving", ("serving.replan",))
    plan_only("goal", "with rates: the cheapest rental, or the most requests per second for the budget")
    plan_or_sweep("composition")
    plan_or_sweep("routing")
    plan_or_sweep("uniform_tp", "all replicas are tensor-parallel groups of the same degree")
    text = "plan for times at this end of the error bands (default: for the estimates)"
    p.add("--error", text, choices=("p10", "p90"))
    text = "with rates: print the price ranges in which the rental stays the cheapest"
    p.add("--price-ranges", text, action="store_true")
    text = "write the engine's command lines (.sh) or Kubernetes manifests (.yaml) of the plan here"
    p.add("--export", text, metavar="SERVE.sh|yaml")
    p.add("--engine", "with --export: the engine (default: vllm)", choices=tuple(ENGINES))
    text = "with --export: checkpoints by model, as ids on Hugging Face or paths (default: of known models)"
    p.add("--model-ids", text, type=choices, action=Repeatable, metavar="MODEL=ID,...")
    text = "with --export: most tokens of a request with its answer (default: of the longest kind)"
    p.add("--max-model-len", text, type=int, metavar="N")
    p.add("--replan-from", "change this plan as little as possible", metavar="PLAN.json")
    replan("max_starts", "with --replan-from: maximum number of replicas to start")
    replan("slack", "with --replan-from: accept this much more time for fewer starts", metavar="PART")
    option("max_deployments", MAX_DEPLOYMENTS)
    option("solver", "solver of the mixed-integer programs", choices=SOLVERS)
    option("time_limit", metavar="SECONDS")
    option("mip_gap", metavar="PART")
    option("threads")
    p.add("--progress", "show a progress bar", action="store_true")


def conflicts(args: argparse.Namespace, options: Mapping[str, Any]) -> list[str]:
    """Problems of options of `plan-serving` that cannot be combined."""
    if args.replan_from is not None:
        asked = given(args, "serving.plan_serving", "budgets")
        if args.price_ranges:
            asked["price_ranges"] = True
        wrong = [name for name in asked if name not in options and asked[name] != "optimized"]
        names = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        return [f"{names}: not with --replan-from"] if wrong else []
    problems = []
    if args.budgets is not None and args.export is not None:
        problems.append("--export: not with --budgets, which make several plans")
    if args.max_starts is not None or args.slack is not None:
        problems.append("--max-starts and --slack: only with --replan-from")
    rental = [
        f"--{name.replace('_', '-').removesuffix('-s')}" for name in RENTAL if getattr(args, name) is not None
    ]
    if args.budgets is not None and rental:
        problems.append(f"{', '.join(rental)}: not with --budgets, which plan a batch; see serving-curve")
    if args.price_ranges and (args.budgets is not None or args.goal == "most_rate"):
        problems.append("--price-ranges: only for the cheapest plan for rates")
    if args.budgets is not None and args.deadline is not None:
        problems.append("--deadline: not with --budgets; the cheapest plan does not depend on the budget")
    return problems


def estimates(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the estimates."""
    return {} if args.error is None else {"estimate": {"error": args.error}}


def export_problems(args: argparse.Namespace) -> list[str]:
    """Problems of options that belong to `--export`."""
    if args.export is None:
        asked = [
            f"--{name.replace('_', '-')}" for name in given(args, "engine", "model_ids", "max_model_len")
        ]
        return [f"{', '.join(asked)}: only with --export"] if asked else []
    known = args.export.endswith((".sh", ".yaml", ".yml"))
    return [] if known else [f"--export: {repr_text(args.export)}; expected a file .sh or .yaml"]


def export(args: argparse.Namespace, request: Mapping[str, Any], plan: serving.ServingPlan) -> None:
    """Writes the file of `--export`, if it is given."""
    if args.export is None:
        return
    options = given(args, "engine", "model_ids", "max_model_len")
    if args.export.endswith(".sh"):
        text = "\n\n".join(serving.command_lines(request, plan, **options)) + "\n"
    else:
        text = serving.manifests(request, plan, **options)
    write_text(args.export, text)


def plan_serving(args: argparse.Namespace) -> int:
    require_writable(args.output, args.export, inputs=[args.request, args.replan_from])
    problems = Problems()
    options = given(
        args, "serving.replan" if args.replan_from is not None else "serving.plan_serving", "progress"
    )
    problems.found += conflicts(args, options) + export_problems(args)
    options |= estimates(args)
    request: dict[str, Any] = {}
    running: dict[str, Any] = {}
    with problems.collect():
        request = read_request(args.request, args.rate)
    if args.replan_from is not None:
        with problems.collect():
            running = read_plan(args.replan_from)
    if args.export is not None and request:
        with problems.collect():
            options_of_export = given(args, "engine", "model_ids", "max_model_len")
            require_exportable(request, **options_of_export, kubernetes=not args.export.endswith(".sh"))
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
        export(args, request, plan)
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
    say(rent_line(plan, rented or "nothing"))
    rate_text = f"{plan.requests_per_s:.4g} per second"
    say(f"all requests are done after {plan.makespan:.4g} s ({rate_text}); {makespan_proof(plan)}")
    if plan.message:
        say(plan.message)
    if plan.left_out:
        possible = counted(plan.deployments, "possible deployment")
        say(f"of {possible}, {plan.left_out:,} were not considered (--max-deployments)")
    if changed is not None:
        say(starts_and_stops(running, changed))
    if args.output:
        say(f"wrote {args.output}")
    export(args, request, plan)
    return OK


# Changes of replanning in words.

Key = tuple[str, tuple[tuple[str, int, int], ...]]
"""Model and stages (GPU type, degree, layers). Replicas with the same key are interchangeable."""


def require_rentals(path: str, before: Mapping[str, Any]) -> None:
    """Raises InvalidInput unless a plan's document has the counts of on-demand and spot GPUs of each type."""
    rentals = before.get("rentals", [])
    if not isinstance(rentals, list):
        raise InvalidInput(f"{path}: rentals: {repr_text(rentals)}; expected a list, as in a serving plan")
    for i, rental in enumerate(rentals):
        counts = [rental.get(name) for name in ("count", "spot")] if isinstance(rental, dict) else [None]
        if not all(isinstance(n, int) and n >= 0 for n in counts) or not isinstance(rental.get("gpu"), str):
            expected = "expected gpu, count and spot, as in a serving plan"
            raise InvalidInput(f"{path}: rentals[{i}]: {repr_text(rental)}; {expected}")


def key_of(replicas: Mapping[str, Any]) -> Key:
    return replicas["model"], tuple(
        (stage["gpu"], stage["degree"], stage["layers"]) for stage in replicas["stages"]
    )


def counts_of(plan: Iterable[Mapping[str, Any]]) -> Counter[Key]:
    counts: Counter[Key] = Counter()
    for replicas in plan:
        counts[key_of(replicas)] += replicas["count"]
    return counts


def starts_and_stops(before: Mapping[str, Any], changed: serving.ReplanResult) -> str:
    """The replicas that start and stop, such as `starts 1 replica (1 H100 1x4) and stops 0`."""
    old, new = counts_of(before["replicas"]), counts_of(changed.plan.replicas)
    several = len({model for model, _ in (*old, *new)}) > 1
    named = (r for r in (*before["replicas"], *changed.plan.replicas) if "deployment" in r)
    names = {key_of(r): r["deployment"] for r in named}

    def listed(more: Counter[Key]) -> str:
        words = [
            f"{count} {names.get(key, 'unnamed')}" + (f" of {key[0]}" if several else "")
            for key, count in more.items()
        ]
        return f" ({', '.join(words)})" if words else ""

    starts = f"starts {counted(changed.starts, 'replica')}{listed(new - old)}"
    return f"{starts} and stops {changed.stops}{listed(old - new)}"


def restarts(before: Mapping[str, Any], plan: serving.ServingPlan) -> str | None:
    """The least number of kept replicas that must restart because their GPUs are no longer rented; None if
    there is none.

    The GPUs of a type that are still rented are filled with replicas, the smallest first.
    """
    rented = {r["gpu"]: r for r in plan.rentals}
    kept = counts_of(before["replicas"]) & counts_of(plan.replicas)
    each, returned = [], []  # by GPU type
    for old in before.get("rentals", []):
        gpu, now = old["gpu"], rented.get(old["gpu"], {"count": 0, "spot": 0})
        gone = {"usual": max(0, old["count"] - now["count"]), "spot": max(0, old["spot"] - now["spot"])}
        sizes = [
            (sum(degree for name, degree, _ in stages if name == gpu), count)
            for (_, stages), count in kept.items()
        ]
        excess = sum(size * count for size, count in sizes) - (
            old["count"] + old["spot"] - sum(gone.values())
        )
        must = 0
        for size, count in sorted(sizes, reverse=True):
            if excess > 0:
                some = min(count, -(-excess // size))
                must, excess = must + some, excess - some * size
        if must:
            each.append(must)
            returned += [f"{count} {price} {gpu}" for price, count in gone.items() if count]
    if not each:
        return None
    # A replica on several GPU types is counted for each of them.
    types = max(len({gpu for gpu, _, _ in stages}) for _, stages in kept)
    least = max(*each, -(-sum(each) // types))
    returned_text = " and ".join(returned)
    return (
        f"at least {least} of the replicas that go on must restart on other GPUs: {returned_text} are no "
        "longer rented"
    )
