#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the throughput estimates of gpusched.serving with measurements that are not in the fit.

    python benchmarks/serving/estimate_error.py [DATA]

DATA is the folder with splitwise-sim/ (default: GPUSCHED_DATA or ../shared/data). Prints one line per table: the
median and the largest error, and the median signed error.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from gpusched import serving
from setting import GPUS

# Table 6 of arXiv 2502.00722: name with TP x PP (across: on several machines), the measured value, and the
# paper's estimate. "H100+A100" has TP 4, PP 2.
TABLE_6 = [
    ("H100 4x2", 0.56, 0.60),
    ("H100 2x4", 0.44, 0.47),
    ("H100 2x4 across", 0.42, 0.44),
    ("L40 4x2", 0.42, 0.46),
    ("L40 2x4", 0.21, 0.22),
    ("L40 2x4 across", 0.18, 0.19),
    ("A100 1x4+H100 1x4", 0.48, 0.52),
]


def show(name: str, errors: list[float]) -> None:
    size = [abs(error) for error in errors]
    print(
        f"{name:<44} {len(errors):>5}  median {100 * statistics.median(size):5.1f} %  "
        f"largest {100 * max(size):6.1f} %  signed median {100 * statistics.median(errors):+6.1f} %"
    )


SPLITWISE = {"a100-80gb": "A100-80GB", "h100-80gb": "H100"}


def splitwise_times(path: Path) -> dict[tuple[str, int, int, int, int], list[tuple[float, float]]]:
    """Milliseconds of the prompt and of a token, by (GPU, degree, prompt tokens, requests, output tokens)."""
    times: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["model"] == "llama2-70b" and row["hardware"] in SPLITWISE:
                sizes = (int(row[n]) for n in ("tensor_parallel", "prompt_size", "batch_size", "token_size"))
                key = (SPLITWISE[row["hardware"]], *sizes)
                times[key].append((float(row["prompt_time"]), float(row["token_time"])))
    return times


def prefill_and_decode(path: Path) -> None:
    model = serving.language_model("Llama-2-70B")
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"prompt": [], "token": []})
    for (name, degree, prompt, batch, tokens), times in splitwise_times(path).items():
        gpu, errors = serving.gpu_type(name), found[name]
        prefill = model.layers * serving.layer_seconds(
            model, gpu, degree, float(prompt * batch), prompt / 2, float(batch)
        )
        decode = model.layers * serving.layer_seconds(
            model, gpu, degree, float(batch), prompt + tokens / 2, float(batch)
        )
        errors["prompt"].append(prefill / (statistics.median(t[0] for t in times) / 1e3) - 1)
        errors["token"].append(decode / (statistics.median(t[1] for t in times) / 1e3) - 1)
    for name, errors in found.items():
        for kind, values in errors.items():
            show(f"{kind} time, {name}, Llama-2-70B, TP 2 to 8", values)


def table_6(table: str) -> None:
    model = serving.language_model("Llama-3-70B")
    gpus = GPUS[table]()
    price = {gpu.name: gpu.price for gpu in gpus}
    deployments = {d.name: d for d in serving.enumerate_deployments(model, gpus, [8] * 6, max_gpus=8)}
    names = {"A100": "A100-80GB", "4090": "RTX4090"}
    fields = ("tflops", "bandwidth_gb_s", "memory_gb", "link_gb_s", "network_gb_s", "price")
    alone = [
        serving.gpu_type(names.get(g.name, g.name), per_machine=4, **{f: getattr(g, f) for f in fields})
        for g in gpus
    ]
    printed, paid = [], []
    print(f"\nTable 6, GPUs {table}: 2,455 tokens in, 18 out; requests/s, and requests/s per $/h")
    for name, real, theirs in TABLE_6:
        d = deployments[name.removesuffix(" across")]
        types = alone if name.endswith("across") else gpus
        cost = sum(stage.degree * price[gpus[stage.gpu].name] for stage in d.stages)
        rate = serving.estimate_throughput(model, types, d, 2455, 18).requests_per_s
        print(
            f"  {name:<20} measured {real:.2f}, paper's estimate {theirs:.2f}; "
            f"ours {rate:6.2f} = {rate / cost:.2f} per $/h"
        )
        printed.append(rate / real - 1)
        paid.append(rate / cost / real - 1)
    show("Table 6 in requests/s", printed)
    show("Table 6 in requests/s per $/h", paid)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument(
        "data", nargs="?", type=Path, metavar="DATA", default=Path(os.environ.get("GPUSCHED_DATA", beside)),
        help="folder with splitwise-sim/; default: $GPUSCHED_DATA, or ../shared/data",
    )  # fmt: skip
    parser.add_argument("--smoke", action="store_true", help="no effect, because it is quick anyway")
    table = parser.parse_args().data / "splitwise-sim" / "perf_model.csv"
    if table.is_file():
        prefill_and_decode(table)
    else:
        print(f"{parser.prog}: no {table}: only Table 6 is compared", file=sys.stderr)
    for gpus in GPUS:
        table_6(gpus)
    show("Table 6, the paper's own estimates", [theirs / real - 1 for _, real, theirs in TABLE_6])
    return 0


if __name__ == "__main__":
    sys.exit(main())
