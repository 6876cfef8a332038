#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates of figures 3, 4, 11, 12 and 13 of arXiv 2502.00722: requests per $ and costs of latency.

    python benchmarks/serving/deployments.py [--smoke] [--gpus dense|printed] [--kinds
input-major|output-major] [-o FOLDER]

Prints the best deployment of each GPU type for each of the nine kinds of requests and two models, with
requests per $ and the 50th and 90th percentile of the latency times the price. Then it prints how far types
and deployments differ. With -o it also draws the figures.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from gpusched import serving
from setting import NAMES, Setting, add_options, chosen

MODELS = {"Llama-3-70B": ("3", "4"), "Llama-3-8B": ("11", "4")}
"""The figures of the types, and of deployments on the first two types."""
GPUS = 8
"""Of a replica, and of each type."""
FIRST = ("H100", "L40")
"""Types of Figure 4; the others are in Figures 12 and 13."""


def spread(values: list[float]) -> float:
    return max(values) / min(values)


def compared(
    setting: Setting, model: str, percentiles: tuple[int, ...], requests: int
) -> serving.DeploymentCosts:
    alike = (1.0,) * len(setting.shapes)
    asked = setting.request(setting.model(model, alike), (GPUS,) * len(NAMES), 1.0)
    return serving.deployment_costs(asked, percentiles, simulated_requests=requests)


def draw(costs: serving.DeploymentCosts, model: str, folder: Path) -> None:
    from matplotlib import pyplot

    of_types, of_deployments = MODELS[model]
    best = costs.best()
    figures = {f"figure_{of_types}_throughput": best.plot}
    for kind in ("w1", "w9"):
        figures[f"figure_{of_types}_latencies_{kind}"] = best.of(workload=kind).plot_latencies
    even = serving.DeploymentCosts(
        costs.columns, [row for row in costs if GPUS % row.gpus == 0]
    )  # fill the GPUs with replicas
    for gpu in sorted({row.gpu for row in costs}):
        of = even.of(gpu=gpu)
        figures[f"figure_{of_deployments if gpu in FIRST else 12}_throughput_{model}_{gpu}"] = of.plot
        for kind in ("w1", "w9"):
            number = of_deployments if gpu in FIRST else 13
            figures[f"figure_{number}_latencies_{model}_{gpu}_{kind}"] = of.of(workload=kind).plot_latencies
    for name, plot in figures.items():
        figure, axes = pyplot.subplots(layout="constrained", figsize=(8, 3.6))
        plot(axes)
        figure.savefig(folder / f"{name}.png")
        pyplot.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="few simulated requests, one model")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="also draw the figures here")
    add_options(parser)
    args = parser.parse_args()
    setting = chosen(args)
    for model in list(MODELS)[: 1 if args.smoke else None]:
        costs = compared(setting, model, (10, 30, 50, 70, 90, 100), 50 if args.smoke else 2000)
        best = costs.best()
        kinds = sorted({row.workload for row in costs})
        print(
            f"\n{model}: best deployment of each type, requests per $, "
            "$ x 1000 of the 50th and the 90th percentile of the latency"
        )
        for kind in kinds:
            cells = [
                f"{row.deployment} {row.requests_per_dollar:,.0f} "
                f"({1e3 * row.dollars_p50:.1f}, {1e3 * row.dollars_p90:.1f})"
                for row in best.of(workload=kind)
            ]
            print(f"  {kind}: " + "; ".join(cells))
        types = [spread([row.requests_per_dollar for row in best.of(workload=kind)]) for kind in kinds]
        print("  types differ per $ by a factor of " + ", ".join(f"{factor:.2f}" for factor in types))
        first = [max(best.of(workload=kind), key=lambda row: row.requests_per_dollar).gpu for kind in kinds]
        print(
            "  kinds for which a type is best: "
            + ", ".join(f"{gpu} {first.count(gpu)}" for gpu in NAMES if gpu in first)
        )
        parallel = {gpu: sum(row.gpus > 1 for row in best.of(gpu=gpu)) for gpu in NAMES}
        print(
            "  kinds for which replicas of several GPUs are best: "
            + ", ".join(f"{gpu} {count}" for gpu, count in parallel.items())
        )
        within = [
            spread(
                [row.requests_per_dollar for row in costs.of(gpu=gpu, workload=kind) if GPUS % row.gpus == 0]
            )
            for gpu in NAMES
            for kind in kinds
        ]
        print(
            f"  deployments that fill {GPUS} GPUs of a type: {statistics.median(within):.2f} in the median, "
            f"{max(within):.2f} at most"
        )
        if args.output:
            folder = Path(args.output)
            folder.mkdir(parents=True, exist_ok=True)
            draw(costs, model, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
