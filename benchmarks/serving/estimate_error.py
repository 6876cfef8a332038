#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the throughput estimates of gpusched.serving with measurements.

    python benchmarks/serving/estimate_error.py [DATA]

DATA is the folder with profiles/ and splitwise-sim/ (default: GPUSCHED_DATA or ../shared/data). Prints one
line per table: the median and the largest error, and the median signed error. The efficiencies were chosen on
the operator tables and collectives, marked (fit); the other tables were not used for that.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import profiles
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


def operators(data: Path) -> None:
    for gpu, name in (("h100", "H100"), ("a100", "A100-80GB"), ("a40", "A40")):
        for path in sorted((data / "profiles/vidur/profiling/compute" / gpu).glob("*/*/mlp.csv")):
            errors = []
            for degree, tokens, model, seconds in profiles.layers(path):
                # The tables have neither attention nor all-reduces.
                estimate = serving.layer_seconds(
                    model,
                    serving.gpu_type(name, link_gb_s=1e9),
                    degree,
                    tokens,
                    0.0,
                    0.0,
                    efficiency={"collective_s": 0.0},
                )
                errors.append(estimate / seconds - 1)
            show(f"operators, {name}, {path.parent.name} (fit)", errors)


def prefill_and_decode(data: Path) -> None:
    model = serving.language_model("Llama-2-70B")
    found = defaultdict(lambda: {"prompt": [], "token": []})
    for (name, degree, prompt, batch, tokens), times in profiles.splitwise_times(data).items():
        gpu, errors = serving.gpu_type(name), found[name]
        embedding = model.vocabulary * model.hidden * 2 / (gpu.bandwidth_gb_s * 1e9 * 0.75) / degree
        prefill = embedding + model.layers * serving.layer_seconds(
            model, gpu, degree, float(prompt * batch), prompt / 2, float(batch)
        )
        decode = embedding + model.layers * serving.layer_seconds(
            model, gpu, degree, float(batch), prompt + tokens / 2, float(batch)
        )
        errors["prompt"].append(prefill / (statistics.median(t[0] for t in times) / 1e3) - 1)
        errors["token"].append(decode / (statistics.median(t[1] for t in times) / 1e3) - 1)
    for name, errors in found.items():
        for kind, values in errors.items():
            show(f"{kind} time, {name}, Llama-2-70B, TP 2 to 8", values)


def helix(data: Path) -> None:
    gpus = {"a100": "A100-40GB", "l4": "L4", "t4": "T4", "v100": "V100"}
    model = serving.language_model("Llama-2-70B")
    for folder, name in gpus.items():
        gpu = serving.gpu_type(name)
        for kind, context in (("prompt", 0.0), ("decode", 512.0)):
            path = data / "profiles/helix/llama2_70b" / folder / f"{kind}_bs2time.csv"
            points = [tuple(map(float, line)) for line in csv.reader(path.open()) if line]
            errors = []
            for size, ms in points:
                if size > 0:
                    sequences = 1.0 if kind == "prompt" else size
                    attended = size / 2 if kind == "prompt" else context
                    errors.append(
                        1e3 * serving.layer_seconds(model, gpu, 1, size, attended, sequences) / ms - 1
                    )
            show(f"Helix {kind} layer, {name}, Llama-2-70B", errors)


def collectives(data: Path) -> None:
    model = serving.language_model(
        "message", layers=1, hidden=1, heads=1, kv_heads=1, head_size=1, intermediate=1, vocabulary=1
    )
    for folder, name in (("a100_dgx", "A100-80GB"), ("h100_dgx", "H100")):
        gpu = serving.gpu_type(name, tflops=1e9, bandwidth_gb_s=1e12)
        errors = []
        for row in csv.DictReader(
            (data / f"profiles/vidur/profiling/network/{folder}/all_reduce.csv").open()
        ):
            degree, size = int(row["num_workers"]), float(row["size"])
            if degree == int(row["devices_per_node"]) > 1:
                # A layer without work has two all-reduces of 2 bytes a token.
                two = serving.layer_seconds(
                    model, gpu, degree, size / 2, 0.0, 0.0, efficiency={"layer_s": 0.0}
                )
                errors.append(two / 2 / (float(row["time_stats.all_reduce.median"]) / 1e3) - 1)
        show(f"all-reduce in a machine, {name} (fit)", errors)


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
    data = profiles.folder(__doc__, "only Table 6 is compared")
    if data is not None:
        operators(data)
        collectives(data)
        prefill_and_decode(data)
        helix(data)
    for table in GPUS:
        table_6(table)
    show("Table 6, the paper's own estimates", [theirs / real - 1 for _, real, theirs in TABLE_6])
    return 0


if __name__ == "__main__":
    sys.exit(main())
