# SPDX-License-Identifier: Apache-2.0
"""The command `autoscale`: compares policies for the number of prefill and decode replicas over a day."""

from __future__ import annotations

import argparse
import csv
import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from .. import _core, serving
from .._views.tables import counted, format_table
from ..errors import BackendError, InvalidInput
from .arguments import Parser, names
from .shared import OK, Problems, require_writable, say, write_json

POLICIES = ("static", "forecast", "utilization", "token_rate")
"""`static` is the smallest fixed size that keeps the targets in 99 % of the windows, found with hindsight."""

AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
BURST_GPT = ("Timestamp", "Request tokens", "Response tokens")
"""Requests without response tokens have failed and are skipped."""
PLAIN = ("time_s", "input", "output")


MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d+))? ?(Z|[+-]\d\d(?::?\d\d)?)?")
"""Date and time of day, fraction of a second, time zone."""


def seconds(text: str) -> float:
    """Reads a number of seconds, or a date with a time of day, fraction and time zone.

    Raises ValueError for other texts.
    """
    try:
        return float(text)
    except ValueError:
        found = MOMENT.fullmatch(text)
        when = datetime.fromisoformat(found[1] if found else text)
        zone = found[3] if found else None
        if zone and zone != "Z":
            ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
            when -= ahead if zone[0] == "+" else -ahead
        if when.tzinfo is None:  # UTC, because a local zone may switch to or from summer time
            when = when.replace(tzinfo=timezone.utc)
        return when.timestamp() + float(f"0.{found[2] if found and found[2] else 0}")


def read_trace(path: str, longest_s: float = math.inf) -> list[tuple[float, int, int]]:
    """Requests of a CSV table, sorted by time and starting at 0.

    Raises InvalidInput if they span more than `longest_s`.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise BackendError(f"{path}: {error}") from None
    head = tuple(cell.strip() for cell in lines[0]) if lines else ()
    for columns in (PLAIN, AZURE, BURST_GPT):
        if set(columns) <= set(head):
            places = [head.index(name) for name in columns]
            break
    else:
        raise InvalidInput(
            f"{path}: line 1: expected columns {', '.join(PLAIN)}, {', '.join(AZURE)} as in Azure's traces, "
            f"or {', '.join(BURST_GPT)} as in BurstGPT"
        )
    rows, failed = [], 0
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        try:
            when, prompt, answer = (line[place].strip() for place in places)
            row = (seconds(when), int(prompt), int(answer), number)
        except (ValueError, IndexError):
            text = f"{path}: line {number}: {','.join(line)!r}"
            raise InvalidInput(f"{text}; expected a time and two numbers of tokens") from None
        if columns is BURST_GPT and row[2] == 0:
            failed += 1
            continue
        rows.append(row)
        if not (math.isfinite(rows[-1][0]) and min(rows[-1][1:3]) >= 1):
            text = f"{path}: line {number}: {','.join(line)!r}"
            raise InvalidInput(f"{text}; expected a finite time and at least one token of prompt and answer")
    if len(rows) < 2:
        raise InvalidInput(f"{path}: {counted(len(rows), 'request')}; expected at least two")
    if failed:
        say(f"{path}: skipped {counted(failed, 'failed request')} (without response tokens)")
    rows.sort()
    first, last, at = rows[0][0], rows[-1][0], rows[-1][3]
    if first == last:
        raise InvalidInput(
            f"{path}: {counted(len(rows), 'request')}, all at the same time; expected different times"
        )
    if last - first > longest_s:
        raise InvalidInput(
            f"{path}: line {at}: {last - first:g} s after the first request; expected at most {longest_s:g} "
            f"s ({serving.most_intervals:,} intervals)"
        )
    return [(when - first, prompt, answer) for when, prompt, answer, _ in rows]


def find_replica(
    model: serving.LanguageModel, option: str, name: str
) -> tuple[serving.GpuType, serving.Deployment]:
    """Finds a GPU type of the catalogue and a one-stage deployment on it, such as `H100 1x4`."""
    type_name, _, shape = name.rpartition(" ")
    if not type_name or "x" not in shape:
        raise InvalidInput(
            f"{option}: {name!r}; expected a GPU type and a one-stage deployment, such as 'H100 1x4'"
        )
    gpu = serving.gpu_type(type_name)
    known = {d.name: d for d in serving.enumerate_deployments(model, [gpu], [gpu.per_machine], max_stages=1)}
    if name not in known:
        expected = (
            f"expected a one-stage deployment that fits {model.name}: {', '.join(known) or 'there is none'}"
        )
        raise InvalidInput(f"{option}: {name!r}; {expected}")
    return gpu, known[name]


def autoscale_options(p: Parser) -> None:
    option = p.add
    number, seconds = {"type": float, "metavar": "X"}, {"type": float, "metavar": "SECONDS"}
    text = (
        "requests: columns time_s, input, output, or the columns of Azure's traces of language models or of "
        "BurstGPT"
    )
    p.add("trace", text, metavar="TRACE.csv")
    p.add("-o --output", "write the figures of every day and policy here (default: none)", metavar="OUT.json")
    option("--model", "language model", field="model", default="Llama-3-70B", metavar="NAME")
    text = "deployment of a prefill replica: GPU type and tensor-parallel group"
    option("--prefill", text, default="A100-80GB 1x4", metavar="DEPLOYMENT")
    option("--decode", "deployment of a decode replica (default: as --prefill)", metavar="DEPLOYMENT")
    option("--ttft", "target: time to the first token", field="ttft_s", default=2.0, **seconds)
    option("--tpot", "target: time per further token", field="tpot_s", default=0.06, **seconds)
    option(
        "--percent", "percentage of requests that must meet each target, 50 to 99.9", default=90.0, **number
    )
    text = f"of {', '.join(POLICIES)} (default: all)"
    option("--policies", text, type=names, default=list(POLICIES), metavar="P1,P2,...")
    text = (
        "stretch the trace along a daily curve with this mean rate in requests per second (default: as "
        "recorded)"
    )
    option("--mean-rate", text, type=float, metavar="R")
    text = (
        "swing of the curve, 0 to 0.95; 0.5 means three times as many requests at the peak as at night "
        "(default: 0.5)"
    )
    option("--swing", text, **number)
    option("--peak-hour", "hour of the peak of the curve, 0 to 24 (default: 15)", type=float, metavar="H")
    option("--hours", "length of the curve, above 0, at most 240 (default: 24)", type=float, metavar="H")
    text = "number of days along the curve; levels and surges differ from day to day"
    option("--days", text, type=int, default=1, metavar="N")
    option("--start-s", "time from a decision until a new replica serves", default=180.0, **seconds)
    option("--interval-s", "time between decisions", default=60.0, **seconds)
    option("--max-replicas", "limit for each pool, 1 to 100,000 (default: 1000)", type=int, metavar="N")
    text = "set point of the policies utilization and token_rate, 0.05 to 1"
    option("--target-utilization", text, field="utilization", default=0.6, **number)


def check_options(args: argparse.Namespace, curve: dict[str, Any]) -> list[str]:
    """Problems of the options that do not need the trace."""
    problems = [
        f"--policies: {policy!r}; expected some of "
        f"{', '.join(POLICIES)}{_core.did_you_mean(policy, list(POLICIES))}"
        for policy in args.policies
        if policy not in POLICIES
    ]
    if args.days < 1:
        problems.append(f"--days: {args.days}; expected at least 1")
    if args.days > 1 and args.mean_rate is None:
        problems.append("--days: only with --mean-rate; a recorded trace is the same every day")
    if curve and args.mean_rate is None:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in curve)
        problems.append(f"{names}: only with --mean-rate, which stretches the trace along a curve")
    return problems


def autoscale(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.trace])
    problems = Problems()
    trace: list[tuple[float, int, int]] = []
    with problems.collect():
        # A trace that is stretched along a curve may have any length.
        longest_s = (
            math.inf if args.mean_rate is not None else serving.most_intervals * max(args.interval_s, 1.0)
        )
        trace = read_trace(args.trace, longest_s)
    options: dict[str, Any] = {
        "ttft_s": args.ttft, "tpot_s": args.tpot, "percent": args.percent, "start_s": args.start_s,
        "interval_s": args.interval_s, "utilization": args.target_utilization,
    }  # fmt: skip
    if args.max_replicas is not None:
        options["max_replicas"] = args.max_replicas
    curve = {name: getattr(args, name) for name in ("mean_rate", "swing", "peak_hour", "hours")}
    curve = {name: value for name, value in curve.items() if value is not None}
    problems.found += check_options(args, curve)
    with problems.collect():
        model = serving.language_model(args.model)
        gpu, prefill = find_replica(model, "--prefill", args.prefill)
        other, decode = find_replica(model, "--decode", args.decode or args.prefill)
        if other.name != gpu.name:
            raise InvalidInput(
                f"--decode: {args.decode!r}; expected a deployment on {gpu.name}, as --prefill"
            )
    problems.raise_if_any()
    prompt, answer = (sum(row[i] for row in trace) / len(trace) for i in (1, 2))
    tokens = round(prompt), max(1, round(answer)), max(2, *(row[1] for row in trace))
    options["times"] = serving.replica_times(model, [gpu], prefill, decode, *tokens)
    rows: list[dict[str, Any]] = []
    failed: dict[str, list[str]] = {}
    for seed in range(args.days):
        rows += day([p for p in args.policies if p not in failed], trace, options, curve, seed, failed)
    rows = [row for row in rows if row["policy"] not in failed]
    if not rows:
        raise InvalidInput(list(dict.fromkeys(problem for found in failed.values() for problem in found)))
    print_results(args, rows, failed)
    if args.output:
        write_json(args.output, {"format": "gpusched.autoscaling", "version": 1, "days": rows})
        say(f"wrote {args.output}")
    return OK


def print_results(args: argparse.Namespace, rows: list[dict[str, Any]], failed: dict[str, list[str]]) -> None:
    """Prints the means over the days, and the policies that failed."""
    head = (
        *("policy", "gpu_hours", "windows_met_pct", "requests_met_pct"),
        *("ttft_s", "tpot_s", "prefill_h", "decode_h", "starts"),
    )
    table = []
    for policy in (p for p in args.policies if p not in failed):
        days = [row for row in rows if row["policy"] == policy]
        table.append((policy, *(f"{sum(row[name] for row in days) / len(days):.4g}" for name in head[1:])))
    say(format_table(head, table))
    requests = sum(row["requests"] for row in rows) // len(rows)
    say(
        f"means of {counted(args.days, 'day')} of {requests:,} requests; target: {args.percent:g} % within "
        f"{args.ttft:g} s to the first token and {args.tpot:g} s per further token, in windows of five "
        "minutes"
    )
    if "static" in args.policies and "static" not in failed:
        say(
            "static: the smallest fixed size that keeps both in 99 % of the windows of its day, found with "
            "hindsight"
        )
    for policy, problems in failed.items():
        for problem in problems:
            say(f"{policy}: not found: {args.parser.commands[args.command].with_option_name(problem)}")


def day(
    policies: list[str],
    trace: list[tuple[float, int, int]],
    options: dict[str, Any],
    curve: dict[str, Any],
    seed: int,
    failed: dict[str, list[str]],
) -> list[dict[str, Any]]:
    """Runs every policy on one day: the trace as it is, or stretched along a daily curve.

    Adds errors to `failed`.
    """
    if not curve:
        arrivals: Any = trace
        first = len([row for row in trace if row[0] < 600]) / min(600.0, trace[-1][0])
        forecast = options
    else:
        arrivals = serving.daily_arrivals(trace, seed=seed, **curve)
        expected = [serving.expected_rate(1800.0 * i, **curve) for i in range(48)]
        first = expected[0]
        forecast = {**options, "expected_per_s": expected}
    start = serving.pool_sizes(trace, first, **options)
    rows = []
    for policy in policies:
        try:
            if policy == "static":
                sizes = serving.fewest_fixed(arrivals, **options)
                found = serving.simulate_autoscaling(arrivals, "fixed", start=sizes, **options)
            else:
                given = forecast if policy == "forecast" else options
                found = serving.simulate_autoscaling(arrivals, policy, start=start, **given)
        except InvalidInput as error:
            failed[policy] = list(error.problems)
            continue
        rows.append(
            {
                "policy": policy, "seed": seed, "requests": found.requests, "gpu_hours": found.gpu_h,
                "windows_met_pct": 100 * found.windows_met, "requests_met_pct": 100 * found.both_met,
                "ttft_s": found.ttft_s, "tpot_s": found.tpot_s,
                "prefill_h": found.prefill_h, "decode_h": found.decode_h, "starts": found.starts,
            }
        )  # fmt: skip
    return rows
