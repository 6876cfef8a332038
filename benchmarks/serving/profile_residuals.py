#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares estimates with public profiles, before and after calibration.

    python benchmarks/serving/profile_residuals.py [DATA]

DATA is the folder with profiles/ and splitwise-sim/ (default: GPUSCHED_DATA or ../shared/data). A row is one
profile, by source, model, GPU and tensor-parallel degree: seconds of a layer (Helix, Vidur: operators and
all-reduces, without attention), of a whole prompt or token (Splitwise), of a matrix product (aiconfigurator),
or of a message between two stages of a pipeline (Vidur: send_recv).

`before` is the median of estimate / measured - 1. `after` is the same with a calibrated estimate: it is
multiplied by the geometric mean ratio of the other degrees of the same GPU and model (- if there is only one
degree). So no profile calibrates itself. `inversions` counts pairs of degrees for which the estimate prefers
the degree that serves less per GPU, by more than 5 %: for long prompts (2,455 in, 18 out) and chats (496,
510) at 64 requests together.
"""

from __future__ import annotations

import csv
import itertools
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import profiles
from gpusched import serving
from setting import language_model

Point = tuple[str, float, float, float]  # phase, size (tokens or requests), measured, estimated seconds


def interpolated(points: list[tuple[float, float]], size: float) -> float:
    points = sorted(points)
    if size <= points[0][0]:
        return points[0][1]
    for (a, x), (b, y) in itertools.pairwise(points):
        if size <= b:
            return x + (y - x) * (size - a) / (b - a)
    return points[-1][1] * size / points[-1][0]


def helix(data: Path) -> dict[tuple[str, str, str], dict[int, list[Point]]]:
    found: dict[tuple[str, str, str], dict[int, list[Point]]] = defaultdict(dict)
    models = {
        "llama2_70b": serving.language_model("Llama-2-70B"),
        "llama1_30b": language_model("Llama-1-30B"),
    }
    for folder, model in models.items():
        for machine in ("a100", "l4", "l4x2", "t4", "t4x2", "t4x4", "v100"):
            kind, _, many = machine.partition("x")
            name = {"a100": "A100-40GB", "l4": "L4", "t4": "T4", "v100": "V100"}[kind]
            degree, gpu = int(many or 1), serving.gpu_type(name)
            points: list[Point] = []
            for phase in ("prompt", "decode"):
                for line in csv.reader(
                    (data / "profiles/helix" / folder / machine / f"{phase}_bs2time.csv").open()
                ):
                    size, ms = float(line[0]), float(line[1])
                    if size <= 0:
                        continue
                    context, sequences = (size / 2, 1.0) if phase == "prompt" else (512.0, size)
                    points.append(
                        (
                            phase,
                            size,
                            ms / 1e3,
                            serving.layer_seconds(model, gpu, degree, size, context, sequences),
                        )
                    )
            found["Helix", folder, name][degree] = points
    return found


def vidur(data: Path) -> dict[tuple[str, str, str], dict[int, list[Point]]]:
    found: dict[tuple[str, str, str], dict[int, list[Point]]] = defaultdict(lambda: defaultdict(list))
    base = data / "profiles/vidur/profiling"
    for folder, name in (("h100", "H100"), ("a100", "A100-80GB"), ("a40", "A40")):
        reduce: dict[int, list[tuple[float, float]]] = defaultdict(list)
        network = base / "network" / f"{folder}_dgx" / "all_reduce.csv"
        if network.exists():
            for row in csv.DictReader(network.open()):
                if int(row["num_workers"]) == int(row["devices_per_node"]):
                    reduce[int(row["num_workers"])].append(
                        (float(row["size"]), float(row["time_stats.all_reduce.median"]) / 1e3)
                    )
        for path in sorted((base / "compute" / folder).glob("*/*/mlp.csv")):
            for layer in profiles.layers(path):
                degree, tokens, model = layer.degree, layer.tokens, layer.model
                if degree > 1 and degree not in reduce:
                    continue
                measured = layer.seconds
                if degree > 1:
                    measured += 2 * interpolated(reduce[degree], tokens * model.hidden * 2)
                estimate = serving.layer_seconds(model, serving.gpu_type(name), degree, tokens, 0.0, 0.0)
                for phase in ("prompt", "decode"):
                    found["Vidur", path.parent.name, name][degree].append((phase, tokens, measured, estimate))
    return found


def splitwise(data: Path) -> dict[tuple[str, str, str], dict[int, list[Point]]]:
    model = serving.language_model("Llama-2-70B")
    found: dict[tuple[str, str, str], dict[int, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for (name, degree, prompt, batch, tokens), measured in profiles.splitwise_times(data).items():
        gpu = serving.gpu_type(name)
        for phase, at, estimate in (
            (
                "prompt",
                0,
                serving.layer_seconds(model, gpu, degree, float(prompt * batch), prompt / 2, float(batch)),
            ),
            (
                "decode",
                1,
                serving.layer_seconds(model, gpu, degree, float(batch), prompt + tokens / 2, float(batch)),
            ),
        ):
            size = prompt * batch if phase == "prompt" else batch
            found["Splitwise", "Llama-2-70B", name][degree].append(
                (phase, size, statistics.median(t[at] for t in measured) / 1e3, model.layers * estimate)
            )
    return found


def matrix_products(data: Path) -> None:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        print("aiconfigurator: not compared, it needs pyarrow")
        return
    for folder, name in (("h100_sxm", "H100"), ("a100_sxm", "A100-80GB"), ("l40s", "L40S")):
        gpu = serving.gpu_type(name)
        table = parquet.read_table(
            data / f"profiles/aiconfigurator/data/{folder}/gemm/vllm/0.14.0/gemm_perf.parquet"
        ).to_pandas()
        table = table[table["gemm_dtype"].str.contains("float16|bf16|bfloat16")]
        for low, high in ((1, 16), (17, 256), (257, 8192)):
            part = table[(table["m"] >= low) & (table["m"] <= high) & (table["n"] * table["k"] >= 2**24)]
            bytes_moved = 2.0 * (part["n"] * part["k"] + part["m"] * (part["n"] + part["k"]))
            compute = 2.0 * part["m"] * part["n"] * part["k"] / (gpu.tflops * 1e12 * 0.7)
            estimate = [max(a, b) for a, b in zip(compute, bytes_moved / (gpu.bandwidth_gb_s * 1e9 * 0.75))]
            errors = [e / (ms / 1e3) - 1 for e, ms in zip(estimate, part["latency"])]
            median = 100 * statistics.median(errors)
            what = f"matrix product of {low:>3} to {high:>4} rows"
            print(f"aiconfigurator  {what}  {name:<10} points {len(errors):>5}  median {median:+6.1f} %")


def messages(data: Path) -> None:
    for folder, name in (("h100_dgx", "H100"), ("a100_dgx", "A100-80GB")):
        gpu = serving.gpu_type(name)
        rows = list(
            csv.DictReader((data / "profiles/vidur/profiling/network" / folder / "send_recv.csv").open())
        )
        for place, per_node, rate in (
            ("in a machine", "2", 0.7 * gpu.link_gb_s),
            ("between machines", "1", 0.8 * gpu.network_gb_s),
        ):
            for low, high in ((0, 2**18), (2**18, 2**22), (2**22, 2**40)):
                errors = [
                    (2e-5 + size / (rate * 1e9)) / (float(row["time_stats.send_recv.median"]) / 1e3) - 1
                    for row in rows
                    if row["devices_per_node"] == per_node and low <= (size := int(row["size"])) < high
                ]
                median = 100 * statistics.median(errors)
                what = f"message {place} of {low / 2**20:g} MiB and more"
                print(f"Vidur  {what:<48}  {name:<10} points {len(errors):>5}  median {median:+6.1f} %")


def per_gpu(points: list[Point], degree: int, at: int, tokens: tuple[int, int], batch: int = 64) -> float:
    """Requests per second, GPU and layer: at = 2 measured, 3 estimated."""
    prompt = interpolated([(p[1], p[at]) for p in points if p[0] == "prompt"], tokens[0])
    step = interpolated([(p[1], p[at]) for p in points if p[0] == "decode"], batch)
    return 1 / (prompt + (tokens[1] - 1) * step / batch) / degree


def main() -> int:
    data = profiles.folder(__doc__, "nothing is compared")
    if data is None:
        return 0
    sources = (helix, vidur, splitwise)
    print("source     model                GPU        TP  points  "
          "prompts before / after    decode before / after")  # fmt: skip
    inversions = pairs = 0
    for source in sources:
        for (origin, model, gpu), by_degree in source(data).items():
            ratio = {
                (degree, phase): [math.log(p[2] / p[3]) for p in points if p[0] == phase]
                for degree, points in by_degree.items()
                for phase in ("prompt", "decode")
            }
            for degree, points in sorted(by_degree.items()):
                cells = []
                for phase in ("prompt", "decode"):
                    others = [
                        r for (d, p), values in ratio.items() if d != degree and p == phase for r in values
                    ]
                    before = statistics.median(p[3] / p[2] - 1 for p in points if p[0] == phase)
                    after = "-"
                    if others:
                        factor = math.exp(statistics.mean(others))
                        errors = [factor * p[3] / p[2] - 1 for p in points if p[0] == phase]
                        after = f"{100 * statistics.median(errors):+.1f} %"
                    cells.append(f"{100 * before:+8.1f} % / {after:<9}")
                print(f"{origin:<10} {model:<20} {gpu:<10} {degree:>2}  {len(points):>6}  "
                      f"{cells[0]}  {cells[1]}")  # fmt: skip
            for a, b in itertools.combinations(sorted(by_degree), 2):
                for tokens in ((2455, 18), (496, 510)):
                    real = per_gpu(by_degree[a], a, 2, tokens) / per_gpu(by_degree[b], b, 2, tokens)
                    ours = per_gpu(by_degree[a], a, 3, tokens) / per_gpu(by_degree[b], b, 3, tokens)
                    pairs += 1
                    is_clear = abs(math.log(real)) > 0.05 and abs(math.log(ours)) > 0.05
                    if (real - 1) * (ours - 1) < 0 and is_clear:
                        inversions += 1
                        print(f"  inversion: TP {a} over TP {b}, {tokens}: "
                              f"measured {real:.2f}, estimated {ours:.2f}")  # fmt: skip
    matrix_products(data)
    messages(data)
    print(f"inversions: {inversions} of {pairs} pairs of degrees")
    return 0


if __name__ == "__main__":
    sys.exit(main())
