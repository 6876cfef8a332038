"""The command `autoscale`: how many prefill and decode replicas over a day, by several policies."""

from __future__ import annotations

import argparse
import csv
import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from .. import _core, serving
from .._views.tables import format_table
from .._views.words import counted
from ..errors import BackendError, InvalidInput
from .arguments import FILES, Parser, names
from .shared import OK, Problems, require_writable, say, write_json

POLICIES = ("static", "forecast", "utilization", "token_rate")
"""`static` is the smallest fixed sizing that keeps the targets in 99 % of the windows, found with hindsight."""

AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
BURST_GPT = ("Timestamp", "Request tokens", "Response tokens")
"""Requests without response tokens have failed, and are left out."""
PLAIN = ("time_s", "input", "output")


MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d+))? ?(Z|[+-]\d\d(?::?\d\d)?)?")
"""Date, time of day, fraction of a second, zone."""


def seconds(text: str) -> float:
    """A number of seconds, or a date and a time of day, with any fraction of a second and any zone. Raises ValueError otherwise."""
    try:
        return float(text)
    except ValueError:
        found = MOMENT.fullmatch(text)
        when = datetime.fromisoformat(found[1] if found else text)
        zone = found[3] if found else None
        if zone and zone != "Z":
            ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
            when -= ahead if zone[0] == "+" else -ahead
        if when.tzinfo is None:  # not this machine's zone, whose clocks may change within the trace
            when = when.replace(tzinfo=timezone.utc)
        return when.timestamp() + float(f"0.{found[2] if found and found[2] else 0}")


def read_trace(path: str, longest_s: float = math.inf) -> list[tuple[float, int, int]]:
    """Requests of a CSV table by time, from 0 on, which come within so many seconds."""
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
            raise InvalidInput(f"{path}: line {number}: {','.join(line)!r}; expected a time and two numbers of tokens") from None
        if columns is BURST_GPT and row[2] == 0:
            failed += 1
            continue
        rows.append(row)
        if not (math.isfinite(rows[-1][0]) and min(rows[-1][1:3]) >= 1):
            raise InvalidInput(f"{path}: line {number}: {','.join(line)!r}; expected a time and at least one token of prompt and answer")
    if len(rows) < 2:
        raise InvalidInput(f"{path}: {counted(len(rows), 'request')}; expected at least two")
    if failed:
        say(f"{path}: {counted(failed, 'request')} without response tokens (failed) left out")
    rows.sort()
    first, last, at = rows[0][0], rows[-1][0], rows[-1][3]
    if first == last:
        raise InvalidInput(f"{path}: {counted(len(rows), 'request')}, all at one moment; expected times that differ")
    if last - first > longest_s:
        raise InvalidInput(
            f"{path}: line {at}: {last - first:g} s after the first request; expected at most {longest_s:g} s, "
            f"{serving.most_intervals:,} intervals between decisions"
        )
    return [(when - first, prompt, answer) for when, prompt, answer, _ in rows]


def find_replica(model: serving.LanguageModel, option: str, name: str) -> tuple[serving.GpuType, serving.Deployment]:
    """A GPU type of the catalogue and a deployment of one stage on it, such as `H100 1x4`."""
    type_name, _, shape = name.rpartition(" ")
    if not type_name or "x" not in shape:
        raise InvalidInput(f"{option}: {name!r}; expected a GPU type and a deployment of one stage, such as 'H100 1x4'")
    gpu = serving.gpu_type(type_name)
    known = {d.name: d for d in serving.enumerate_deployments(model, [gpu], [gpu.per_machine], max_stages=1)}
    if name not in known:
        there = ", ".join(known) or "there is none"
        raise InvalidInput(f"{option}: {name!r}; expected a deployment of one stage that holds {model.name}: {there}")
    return gpu, known[name]


def autoscale_options(p: Parser) -> None:
    trace = p.add_argument("trace", metavar="TRACE.csv", help="requests: columns time_s, input, output, or those of Azure's traces of language models or of BurstGPT")
    trace.complete = FILES  # type: ignore[attr-defined]
    p.add_argument("-o", "--output", metavar="OUT.json", help="write the figures of every day and policy here (default: nowhere)")
    p.add_argument("--model", field="name", default="Llama-3-70B", metavar="NAME", help="language model")
    p.add_argument("--prefill", default="A100-80GB 1x4", metavar="DEPLOYMENT", help="of a prefill replica: GPU type and tensor-parallel group")
    p.add_argument("--decode", metavar="DEPLOYMENT", help="of a decode replica (default: as --prefill)")
    p.add_argument("--ttft", field="ttft_s", type=float, default=2.0, metavar="SECONDS", help="target: time to the first token")
    p.add_argument("--tpot", field="tpot_s", type=float, default=0.06, metavar="SECONDS", help="target: time per further token")
    p.add_argument("--percent", type=float, default=90.0, metavar="X", help="per cent of the requests that meet each target, 50 .. 99.9")
    p.add_argument(
        "--policies", type=names, default=list(POLICIES), metavar="P1,P2,...",
        help=f"of {', '.join(POLICIES)} (default: all)",
    )  # fmt: skip
    p.add_argument("--mean-rate", type=float, metavar="R", help="stretch the trace along a daily curve of so many requests per second (default: as recorded)")
    p.add_argument("--swing", type=float, metavar="X", help="of the curve: 0.5 is three times as many at the peak as in the night, 0 .. 0.95 (default: 0.5)")
    p.add_argument("--peak-hour", type=float, metavar="H", help="of the curve, 0 .. 24 (default: 15)")
    p.add_argument("--hours", type=float, metavar="H", help="of the curve: how long, above 0, at most 240 (default: 24)")
    p.add_argument("--days", type=int, default=1, metavar="N", help="days along the curve, each with a level and a surge of its own")
    p.add_argument("--start-s", type=float, default=180.0, metavar="SECONDS", help="from a decision to a replica that serves")
    p.add_argument("--interval-s", type=float, default=60.0, metavar="SECONDS", help="between decisions")
    p.add_argument("--max-replicas", type=int, metavar="N", help="of each pool, 1 .. 100,000 (default: 1000)")
    p.add_argument("--target-utilization", field="utilization", type=float, default=0.6, metavar="X", help="set point of utilization and token_rate, 0.05 .. 1")


def autoscale(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.trace])
    problems = Problems()
    trace: list[tuple[float, int, int]] = []
    with problems.collect():
        # A trace that is stretched along a curve may be of any length.
        trace = read_trace(args.trace, math.inf if args.mean_rate is not None else serving.most_intervals * max(args.interval_s, 1.0))
    options: dict[str, Any] = {
        "ttft_s": args.ttft, "tpot_s": args.tpot, "percent": args.percent, "start_s": args.start_s,
        "interval_s": args.interval_s, "utilization": args.target_utilization,
    }  # fmt: skip
    if args.max_replicas is not None:
        options["max_replicas"] = args.max_replicas
    for policy in args.policies:
        with problems.collect():
            if policy not in POLICIES:
                near = _core.did_you_mean(policy, list(POLICIES))
                raise InvalidInput(f"--policies: {policy!r}; expected some of {', '.join(POLICIES)}{near}")
    with problems.collect():
        if args.days < 1:
            raise InvalidInput(f"--days: {args.days}; expected at least 1")
    curve = {name: value for name in ("mean_rate", "swing", "peak_hour", "hours") if (value := getattr(args, name)) is not None}
    with problems.collect():
        if args.days > 1 and args.mean_rate is None:
            raise InvalidInput("--days: only with --mean-rate: a trace as it was recorded is the same every day")
    with problems.collect():
        if curve and args.mean_rate is None:
            of_curve = ", ".join(f"--{name.replace('_', '-')}" for name in curve)
            raise InvalidInput(f"{of_curve}: only with --mean-rate, which stretches the trace along a curve")
    with problems.collect():
        model = serving.language_model(args.model)
        gpu, prefill = find_replica(model, "--prefill", args.prefill)
        other, decode = find_replica(model, "--decode", args.decode or args.prefill)
        if other.name != gpu.name:
            raise InvalidInput(f"--decode: {args.decode!r}; expected a deployment on {gpu.name}, as --prefill")
    problems.raise_if_any()
    prompt, answer = (sum(row[i] for row in trace) / len(trace) for i in (1, 2))
    longest = max(2, *(row[1] for row in trace))
    options["times"] = serving.replica_times(model, [gpu], prefill, decode, round(prompt), max(1, round(answer)), longest)
    rows: list[dict[str, Any]] = []
    failed: dict[str, list[str]] = {}
    for seed in range(args.days):
        rows += day([p for p in args.policies if p not in failed], trace, options, curve, seed, failed)
    rows = [row for row in rows if row["policy"] not in failed]
    if not rows:
        raise InvalidInput(list(dict.fromkeys(problem for told in failed.values() for problem in told)))
    head = ("policy", "gpu_hours", "windows_met_pct", "requests_met_pct", "ttft_s", "tpot_s", "prefill_h", "decode_h", "starts")
    table = []
    for policy in (p for p in args.policies if p not in failed):
        days = [row for row in rows if row["policy"] == policy]
        table.append((policy, *(f"{sum(row[name] for row in days) / len(days):.4g}" for name in head[1:])))
    say(format_table(head, table))
    say(
        f"means of {counted(args.days, 'day')} of {sum(row['requests'] for row in rows) // len(rows):,} requests; "
        f"{args.percent:g} % within {args.ttft:g} s to the first token and {args.tpot:g} s per further token, in windows of five minutes"
    )
    if "static" in args.policies and "static" not in failed:
        say("static: the smallest fixed sizing that keeps both in 99 % of the windows of its day, found with hindsight")
    for policy, told in failed.items():
        for problem in told:
            say(f"{policy}: not found: {args.parser.commands[args.command].by_option(problem)}")
    if args.output:
        write_json(args.output, {"format": "gpusched.autoscaling", "version": 1, "days": rows})
        say(f"wrote {args.output}")
    return OK


def day(
    policies: list[str],
    trace: list[tuple[float, int, int]],
    options: dict[str, Any],
    curve: dict[str, Any],
    seed: int,
    failed: dict[str, list[str]],
) -> list[dict[str, Any]]:
    """Every policy on one day: the trace as it is, or stretched along a daily curve. What keeps a policy from an answer goes into `failed`."""
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
                found = serving.simulate_autoscaling(arrivals, policy, start=start, **(forecast if policy == "forecast" else options))
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
