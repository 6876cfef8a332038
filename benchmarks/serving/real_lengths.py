#!/usr/bin/env python3
"""Plans on mean lengths and plans on recorded lengths, judged by the recorded requests.

    python benchmarks/serving/real_lengths.py [DATA] [--write] [--smoke]

DATA is the folder with azure-llm-2023/, mooncake/ and burstgpt-replay/ (default: GPUSCHED_DATA or
../shared/data). A trace that is not there is skipped. For each trace, Llama-3-70B on machines of 8 H100 is planned
twice: with the mean lengths of the requests, and with the trace. Both plans are simulated with the lengths of the
trace, 20,000 requests on three seeds that no plan was made with. The table has the largest percentile of the
seeds, over the target. --write puts it into docs/serving-measurements.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gpusched import serving, sim

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "serving-measurements.md"
MARKS = "<!-- lengths: written by benchmarks/serving/real_lengths.py -->", "<!-- end of lengths -->"
MODEL = "Llama-3-70B"
# trace: its file, requests per second, targets
CASES: dict[str, tuple[str, float, dict[str, float]]] = {
    "Azure 2023, conversations": (
        "azure-llm-2023/AzureLLMInferenceTrace_conv.csv", 10, {"ttft_p90_s": 0.2, "tpot_p90_s": 0.05},
    ),
    "Azure 2023, code": (
        "azure-llm-2023/AzureLLMInferenceTrace_code.csv", 10, {"ttft_p90_s": 0.3, "tpot_p90_s": 0.05},
    ),
    "Mooncake, conversations": (
        "mooncake/conversation_trace.jsonl", 1, {"ttft_p90_s": 3.0, "tpot_p90_s": 0.1},
    ),
    "BurstGPT, replayed": (
        "burstgpt-replay/detail_log_scale100.json", 10, {"ttft_p90_s": 0.15, "tpot_p90_s": 0.05},
    ),
}  # fmt: skip


def as_trace(path: Path, folder: Path) -> Path:
    """The file, or the log of a replay of BurstGPT as a trace of BurstGPT."""
    if path.suffix != ".json":
        return path
    table = folder / "burst.csv"
    rows = sorted(
        (row["record_time"], row["in_len"], row["out_len"]) for row in json.loads(path.read_text()).values()
    )
    lines = [f"{at - rows[0][0]},{prompt},{answer}" for at, prompt, answer in rows]
    table.write_text("\n".join(["Timestamp,Request tokens,Response tokens", *lines]) + "\n")
    return table


def request(workload: dict[str, Any], targets: dict[str, float]) -> dict[str, Any]:
    return {
        "gpus": {"H100": {"machines": 40, "price": 3.0}},
        "models": {MODEL: {"workloads": {"w": workload}}},
        "targets": targets,
    }


def judged(
    plan: serving.ServingPlan, asked: dict[str, Any], targets: dict[str, float], requests: int
) -> list[float]:
    """The largest percentile of three seeds over each target, with the lengths of the request."""
    replicas = [
        {"model": MODEL, "deployment": row["deployment"], "count": row["count"], "share": row["share"]}
        for row in plan.replicas
    ]
    found = [
        serving.simulate_latency(asked, replicas, seed=seed, requests=requests, warm_up=0.1).kinds[0]
        for seed in (101, 102, 103)
    ]
    return [
        max(float(np.percentile(getattr(kind, name[:4]), float(name[6:8]))) for kind in found) / target
        for name, target in targets.items()
    ]


def rows_of(name: str, trace: Path, rate: float, targets: dict[str, float], requests: int) -> list[str]:
    recorded = [row for row in sim.read_llm_trace(trace) if row[1] > 0 and row[2] > 0]
    means = {
        "input": round(np.mean([row[1] for row in recorded])),
        "output": round(np.mean([row[2] for row in recorded])),
    }
    real = request({"trace": str(trace), "rate": rate}, targets)
    lines = []
    for title, asked in (("means", request({**means, "rate": rate}, targets)), ("trace", real)):
        begin = time.perf_counter()
        plan = serving.plan_serving(asked, machines=True, deployments={"max_types": 1})
        seconds = time.perf_counter() - begin
        if plan.makespan is None:
            lines.append(f"| {name} | {title} | no plan: {plan.binding[0]} | - | - | - | {seconds:.0f} s |")
            continue
        promised = [plan.latencies[0][target] / limit for target, limit in targets.items()]
        got = judged(plan, real, targets, requests)
        replicas = ", ".join(f"{row['count']} x {row['deployment']}" for row in plan.replicas)
        lines.append(
            f"| {name} | {title} | {replicas} | {plan.cost:.0f} | "
            + " | ".join(f"{p:.2f} / {g:.2f}" for p, g in zip(promised, got))
            + f" | {seconds:.0f} s |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = ROOT.parent / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=Path(os.environ.get("GPUSCHED_DATA", beside)))
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--smoke", action="store_true", help="one trace, few requests")
    options = parser.parse_args()
    lines = [
        "| trace | planned with | replicas | $/h | first token, promised / got "
        "| further tokens, promised / got | planning |",
        "|---|---|---|---|---|---|---|",
    ]
    skipped = False
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, rate, targets) in list(CASES.items())[: 1 if options.smoke else None]:
            path = options.data / file
            if not path.exists():
                print(f"SKIPPED {name}: no file {path}", file=sys.stderr)
                skipped = True
                continue
            found = rows_of(
                name, as_trace(path, Path(folder)), rate, targets, 2000 if options.smoke else 20_000
            )
            lines += found
            print("\n".join(found), flush=True)
    if options.write and not skipped:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0] + "\n")
        after = rest.partition(MARKS[1])[2]
        PAGE.write_text("\n".join([before + MARKS[0], *lines, MARKS[1]]) + after, encoding="utf-8")
        print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
